/* SPDX-License-Identifier: BSD-3-Clause */
/* What tallyctl export and import are made of: rows of files, rules for keys of
 * other stores, and dump files of Redis. t/data/redis-7 was written by SAVE of
 * Redis 7.0.15. */
#include "cli/import_map.h"
#include "cli/rdb.h"
#include "cli/rows.h"

#include "unit/check_help.h"

#include <check.h>
#include <limits.h>
#include <stdio.h>

static const char *const schema_lines[] = {"add counter weibo",
    "add column weibo wid hint=64 max=64 default=0 primarykey",
    "add column weibo likes hint=16 max=32 default=0 suffix=cl",
    "add column weibo reposts hint=16 max=64 default=0",
    "add column weibo feed follows=posts",
    ("add column weibo liked members=exact max=1 member=33 counts=likes "
     "suffix=lk")};

static struct rows_columns columns;
static struct rows_reader reader;
static struct row row;
static struct rows_end end;
static struct buf out;

static void
setup(void)
{
    columns = (struct rows_columns){0};
    for (size_t i = 0; i < sizeof schema_lines / sizeof *schema_lines; i++) {
        ck_assert(rows_columns_take(
            &columns, schema_lines[i], strlen(schema_lines[i])));
    }
    reader = (struct rows_reader){.columns = &columns, .members = -1};
    buf_clear(&out);
}

static void
teardown(void)
{
    buf_fini(&out);
}

static enum rows_took
take(const char *line)
{
    return rows_take(&reader, line, strlen(line), &row, &end);
}

static void
header(enum rows_format format, const char *line)
{
    reader.format = format;
    ck_assert_msg(rows_take_header(&reader, line, strlen(line)), "%s: %s",
        line, reader.why);
}

static void
is_out(const char *text)
{
    buf_add(&out, "", 1);
    ck_assert_str_eq(out.data, text);
    buf_clear(&out);
}

/* What the line would store. */
static void
stores(const char *line, const char *set)
{
    ck_assert_msg(take(line) == ROWS_ROW, "%s: %s", line, reader.why);
    rows_put_set(&columns, &row, &out);
    is_out(set);
}

static void
is_bad(const char *line)
{
    ck_assert_msg(take(line) == ROWS_BAD, "%s", line);
    ck_assert_str_ne(reader.why, "");
}

START_TEST(test_columns)
{
    static const char *const wrong[] = {"END", "add column other x", "add",
        "add column weibo 1x", "add counter", "drop column weibo likes"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(!rows_columns_take(&columns, wrong[i], strlen(wrong[i])),
            "%s", wrong[i]);
    }
    ck_assert_uint_eq(columns.n, 3);
    ck_assert(columns.is_counted[0] && !columns.is_counted[1]);
    ck_assert(columns.is_list[2]);
    ck_assert_str_eq(columns.key.text, "wid");
    ck_assert_int_eq(rows_column_of(&columns, "feed", 4), -1);
    ck_assert_int_eq(rows_column_of(&columns, "reposts", 7), 1);
    ck_assert_int_eq(rows_members_of(&columns, "lk", 2), 0);
    ck_assert_int_eq(rows_members_of(&columns, "liked", 5), 0);
}
END_TEST

START_TEST(test_fields)
{
    header(ROWS_CSV, "id,reposts,-,likes");
    stores("7,12,anything,3", "set weibo 7 reposts=12\n");
    stores("\"7\",\"12\",\"a,b\",3", "set weibo 7 reposts=12\n");
    stores("18446744073709551615,18446744073709551615,,",
        "set weibo 18446744073709551615 reposts=18446744073709551615\n");
    ck_assert(take("") == ROWS_NONE);
    ck_assert(take("7,,,") == ROWS_NONE);
    ck_assert(take("7,,,3") == ROWS_NONE); /* members count that */
    is_bad("7,1,2");
    is_bad("7,1,2,3,4");
    is_bad("7,-1,,");
    is_bad("7,1.0,,");
    is_bad("18446744073709551616,1,,");
    is_bad(",1,,");
    is_bad("x,1,,");
    is_bad("\"7,1,,");
    is_bad("\"7\"8,1,,");
    stores("7,12,\"a \"\"b\"\", c\",3", "set weibo 7 reposts=12\n");
    stores("7,12,\"\"\"\",", "set weibo 7 reposts=12\n");
    ck_assert(take("7,\"\",\"\",\"\"") == ROWS_NONE);
    is_bad("7,\"4\"\"\",,");
    ck_assert_ptr_nonnull(strstr(reader.why, "no whole number"));
    is_bad("7,12,\"a\"\",");
    ck_assert_ptr_nonnull(strstr(reader.why, "a quote"));
    header(ROWS_TSV, "wid\treposts");
    stores("7\t12", "set weibo 7 reposts=12\n");
    ck_assert(take("7\t\\N") == ROWS_NONE);
    is_bad("7,12");
    reader.members = 0;
    header(ROWS_CSV, "wid,member,value");
    stores("7,77,1", "set weibo 7.lk:77 1\n");
    is_bad("7,,1");
}
END_TEST

START_TEST(test_headers)
{
    static const char *const wrong[] = {"", "reposts", "id,nosuch", "id,id",
        "id,reposts,reposts", "id,feed", "id,wid", "id,member", "\"id"};
    reader.format = ROWS_CSV;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(!rows_take_header(&reader, wrong[i], strlen(wrong[i])),
            "%s", wrong[i]);
    }
    reader.members = 0;
    ck_assert(!rows_take_header(&reader, "id,value", 8));
    ck_assert(!rows_take_header(&reader, "id,member,reposts", 17));
}
END_TEST

START_TEST(test_objects)
{
    reader.format = ROWS_NDJSON;
    stores(
        "{\"id\":7,\"reposts\":12,\"likes\":3}", "set weibo 7 reposts=12\n");
    stores(" { \"reposts\" : 12 , \"wid\" : 7 } ", "set weibo 7 reposts=12\n");
    stores("{\"id\":7,\"members\":\"liked\",\"member\":77}",
        "set weibo 7.lk:77 1\n");
    stores("{\"id\":7,\"members\":\"lk\",\"member\":77,\"value\":0}",
        "set weibo 7.lk:77 0\n");
    ck_assert(take("{\"id\":7,\"likes\":3}") == ROWS_NONE);
    static const char *const wrong[] = {"{}", "{\"id\":7", "[7]", "7",
        "{\"reposts\":7}", "{\"id\":7,\"reposts\":-1}",
        "{\"id\":7,\"reposts\":1.5}", "{\"id\":7,\"reposts\":1e3}",
        "{\"id\":7,\"reposts\":01}", "{\"id\":7,\"reposts\":\"1\"}",
        "{\"id\":7,\"reposts\":1,\"reposts\":2}", "{\"id\":7,\"id\":8}",
        "{\"id\":7,\"nosuch\":1}", "{\"id\":7,\"reposts\":1}}",
        "{\"id\":7,\"reposts\":1,}", "{\"id\":7,\"member\":1}",
        "{\"id\":7,\"members\":\"nosuch\",\"member\":1}",
        "{\"id\":7,\"members\":\"liked\"}",
        "{\"id\":7,\"members\":\"liked\",\"member\":1,\"reposts\":1}",
        "{\"id\":7,\"re\\u0070osts\":1}", "{\"end\":{\"rows\":1}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_bad(wrong[i]);
    }
}
END_TEST

/* Lines of a dump become rows that are written and read again: the same line
 * stores them. */
START_TEST(test_round)
{
    static const char *const lines[] = {
        "set weibo 7 3 12 0", "set weibo 8 reposts=5", "set weibo 7.lk:77 1"};
    static const char *const sets[] = {
        "set weibo 7 reposts=12\n", "set weibo 8 reposts=5\n", ""};
    for (unsigned f = ROWS_CSV; f <= ROWS_DIALECT; f++) {
        reader.format = (enum rows_format)f;
        rows_put_header(reader.format, &columns, -1, &out);
        if (out.len > 0) {
            ck_assert(rows_take_header(&reader, out.data, out.len - 1));
        }
        for (size_t i = 0; i < 3; i++) {
            bool is_member = i == 2;
            buf_clear(&out);
            ck_assert(rows_take_dumped(&columns, lines[i], strlen(lines[i]),
                          &row) == ROWS_ROW);
            ck_assert(row.is_member == is_member);
            if (is_member && f <= ROWS_TSV) {
                continue; /* a file of their own */
            }
            rows_put(reader.format, &columns, &row, &out);
            ck_assert(rows_take(&reader, out.data, out.len - 1, &row, &end) ==
                ROWS_ROW);
            buf_clear(&out);
            rows_put_set(&columns, &row, &out);
            is_out(is_member ? "set weibo 7.lk:77 1\n" : sets[i]);
        }
    }
    static const char *const wrong[] = {"END", "set other 7 1 2 3",
        "set weibo x 1 2 3", "set weibo 7 1 2 3 4", "set weibo 7.no:7 1",
        "set weibo 7.lk:7", "set weibo 7 nosuch=1", "add counter other",
        "delete weibo 7", "set weibo 7.lk:7 1 2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(rows_take_dumped(&columns, wrong[i], strlen(wrong[i]),
                          &row) == ROWS_BAD,
            "%s", wrong[i]);
    }
}
END_TEST

/* The last line is that, exactly as it is written, or it is none. */
START_TEST(test_end)
{
    const struct rows_end told = {.rows = 12, .sum = 0xabcd};
    for (unsigned f = ROWS_CSV; f <= ROWS_NDJSON; f += ROWS_NDJSON) {
        buf_clear(&out);
        rows_put_end((enum rows_format)f, &told, &out);
        ck_assert(out.len <= ROWS_END_BYTES_MAX);
        ck_assert(rows_is_end(out.data, out.len - 1, &end));
        ck_assert(end.rows == told.rows && end.sum == told.sum);
        for (size_t i = 0; i + 1 < out.len; i++) {
            ck_assert(!rows_is_end(out.data, i, &end));
            out.data[i] ^= 1;
            ck_assert(!rows_is_end(out.data, out.len - 1, &end) ||
                end.rows != told.rows || end.sum != told.sum);
            out.data[i] ^= 1;
        }
    }
    ck_assert(!rows_is_end("", 0, &end));
}
END_TEST

/* ---- ids that are names ---- */

static const char *const site_lines[] = {"add counter site",
    "add column site url primarykey=text",
    "add column site hits hint=16 max=64 default=0 suffix=h",
    "add column site at hint=16 max=64 default=0",
    ("add column site seen hint=16 max=64 default=0 marks=at unread=new "
     "unmarked=all"),
    "add column site fans members=exact max=1 member=33 suffix=f"};

static void
setup_site(void)
{
    columns = (struct rows_columns){0};
    for (size_t i = 0; i < sizeof site_lines / sizeof *site_lines; i++) {
        ck_assert(
            rows_columns_take(&columns, site_lines[i], strlen(site_lines[i])));
    }
    reader = (struct rows_reader){.columns = &columns, .members = -1};
    buf_clear(&out);
}

/* A word of the dialect is that record's, or bad. */
START_TEST(test_name_words)
{
    setup_site();
    static const char *const words[][2] = {{"anna", "anna"}, {"007", "007"},
        {"a.b", "a.b"}, {"{a.b}.site", "a.b"}, {"a.b.site", "a.b"},
        {"a.hits.site", "a.hits"}, {"{a}.b", "{a}.b"}, {"{a}", "{a}"},
        {"{{a}}.site", "{a}"}, {"a|#|.site", "a"}, {"{a|#|}.site", "a|#|"},
        {"a.hits:7", "a.hits:7"}, {"a.f:", NULL}, {"a.hits", NULL},
        {"a.h", NULL}, {"a.new", "a.new"}, {"a.fans", NULL}, {".site", NULL},
        {"a\x7f", NULL}};
    ck_assert(columns.has_names);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char line[100];
        int n = snprintf(line, sizeof line, "set site %s 5 0 0", words[i][0]);
        bool is_row =
            rows_take_dumped(&columns, line, (size_t)n, &row) == ROWS_ROW;
        ck_assert_msg(is_row == (words[i][1] != NULL), "%s", line);
        ck_assert_msg(
            !is_row || row.id.len == strlen(words[i][1]), "%s", line);
        ck_assert(
            !is_row || memcmp(row.id.name, words[i][1], row.id.len) == 0);
    }
    ck_assert(rows_take_dumped(&columns, "set site {a.f:2}.f:7 1", 22, &row) ==
        ROWS_ROW);
    ck_assert(row.is_member && row.member == 7 && row.id.len == 5);
}
END_TEST

/* A row of that name is written, and read again, in each form, as a record and
 * as a member. */
static void
make_round(const char *name, size_t len)
{
    for (unsigned f = ROWS_CSV; f <= ROWS_DIALECT; f++) {
        for (int members = -1; members < 1; members++) {
            struct row put = {.id = {.name = name, .len = len}};
            put.is_member = members == 0;
            put.n = put.is_member ? 0 : 1;
            put.member = put.is_member ? 7 : 0;
            put.value = put.is_member;
            put.cell[0].value = 5;
            reader.format = (enum rows_format)f;
            reader.members = f <= ROWS_TSV ? members : -1;
            buf_clear(&out);
            rows_put_header(reader.format, &columns, reader.members, &out);
            if (out.len > 0) {
                ck_assert(rows_take_header(&reader, out.data, out.len - 1));
            }
            buf_clear(&out);
            rows_put(reader.format, &columns, &put, &out);
            ck_assert(
                memchr(out.data, '\n', out.len) == out.data + out.len - 1);
            ck_assert_msg(rows_take(&reader, out.data, out.len - 1, &row,
                              &end) == ROWS_ROW,
                "%.*s %s", (int)out.len, out.data, reader.why);
            ck_assert_msg(rows_compare_ids(&row.id, &put.id) == 0, "%.*s",
                (int)out.len, out.data);
            ck_assert(row.is_member == put.is_member && row.n == put.n &&
                row.member == put.member && row.value == put.value);
        }
    }
}

START_TEST(test_name_round)
{
    setup_site();
    static const char *const names[] = {"anna", "1", "007", "a,b", "\"",
        "\"\"", "\"a\"", "a\"\"b,", "\\", "\\N", "\\u0041", "#", "#end", "{}",
        "{", "}", "{x}", "x|#|", "a.hits", "a.site", "a.f:7", ".", "..", ".h",
        "\xc3\xa9", "\xc3", "\xa9", "\xff\xfe", "\xed\xa0\x80", "\xed\xb2\x80",
        "\xe0\x80\x80", "\xf0\x9f\x98\x80", "\xf4\x90\x80\x80", "\xc0\x80",
        "\xf0\x9f\x98", "-", "id", "a=b", "'"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        make_round(names[i], strlen(names[i]));
    }
    /* all bytes that a name can have, beside one of all others */
    char name[NAME_BYTES_MAX];
    for (unsigned a = 33; a < 256; a++) {
        for (unsigned b = 33; b < 256 && a != 127; b++) {
            const char pair[2] = {(char)a, (char)b};
            if (b != 127) {
                make_round(pair, 2);
            }
        }
        memset(name, (int)a, sizeof name);
        if (a != 127) {
            make_round(name, sizeof name);
        }
    }
}
END_TEST

START_TEST(test_name_forms)
{
    setup_site();
    reader.format = ROWS_NDJSON;
    stores("{\"id\":\"a\\u0062\\/\\\"\\\\\",\"hits\":5}",
        "set site ab/\"\\ hits=5\n");
    stores("{\"url\":\"\\ud83d\\ude00.\\udcff\\u00e9\\u20AC\",\"hits\":5}",
        "set site {\xf0\x9f\x98\x80.\xff\xc3\xa9\xe2\x82\xac}.site hits=5\n");
    static const char *const wrong[] = {"{\"id\":7,\"hits\":1}",
        "{\"id\":\"\",\"hits\":1}", "{\"id\":\"a b\",\"hits\":1}",
        "{\"id\":\"\\u0000\",\"hits\":1}", "{\"id\":\"\\n\",\"hits\":1}",
        "{\"id\":\"\\ud83d\",\"hits\":1}", "{\"id\":\"\\udc7f\",\"hits\":1}",
        "{\"id\":\"\\ud83d\\u0041\",\"hits\":1}",
        "{\"id\":\"\\u00\",\"hits\":1}", "{\"id\":\"\\u00g0\",\"hits\":1}",
        "{\"id\":\"\\", "{\"id\":\"\\\"", "{\"hits\":1}",
        "{\"id\":\"a\",\"id\":\"a\",\"hits\":1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        is_bad(wrong[i]);
    }
    header(ROWS_CSV, "url,hits");
    stores("\"a\"\"b\",5", "set site a\"b hits=5\n");
    stores("a\"b,5", "set site a\"b hits=5\n");
    is_bad(",5");
    is_bad("a b,5");
    ck_assert_ptr_nonnull(strstr(reader.why, "no name"));
    char line[NAME_BYTES_MAX + 40];
    for (unsigned more = 0; more < 2; more++) {
        (void)snprintf(line, sizeof line, "\"%0*d\"\"\",5",
            (int)(NAME_BYTES_MAX - 1 + more), 0);
        ck_assert(take(line) == (more == 0 ? ROWS_ROW : ROWS_BAD));
    }
}
END_TEST

/* ---- rules ---- */

static struct import_map map;

static void
add(const char *text)
{
    const char *why = import_map_add(&map, text);
    ck_assert_msg(why == NULL, "%s: %s", text, why);
    why = import_map_know(&map.rule[map.n - 1], &columns);
    ck_assert_msg(why == NULL, "%s: %s", text, why);
}

static void
finds(const char *key, int rule, uint64_t wanted)
{
    struct rows_id id = {0};
    const struct import_rule *found =
        import_map_find(&map, 0, key, strlen(key), &id);
    ck_assert_msg(
        (found == NULL ? -1 : (int)(found - map.rule)) == rule, "%s", key);
    ck_assert(rule < 0 || (id.name == NULL && id.number == wanted));
}

START_TEST(test_map)
{
    static const char *const wrong[] = {"", "post:likes=weibo.reposts",
        "post:{id}", "post:{id}=weibo", "{id}{id}=weibo.reposts",
        "{id}=1.reposts", "{id}[]=weibo.reposts", "{id}=weibo.re-posts"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(import_map_add(&map, wrong[i]) != NULL, "%s", wrong[i]);
    }
    ck_assert_uint_eq(map.n, 0);
    add("post:{id}:reposts=weibo.reposts");
    add("h:{id}[re=posts]=weibo.reposts");
    add("liked:{id}=weibo.liked");
    add("{id}=weibo.reposts");
    finds("post:12:reposts", 0, 12);
    finds("post:12:repost", -1, 0);
    finds("post::reposts", -1, 0);
    finds("post:012:reposts", -1, 0);
    finds("post:x:reposts", -1, 0);
    finds("h:9", 1, 9);
    finds("18446744073709551615", 3, UINT64_MAX);
    const struct rows_id id = {.number = 12};
    ck_assert(import_map_put(&map.rule[0], &id, "5", 1, &out));
    ck_assert(import_map_put(&map.rule[2], &id, "77", 2, &out));
    ck_assert(!import_map_put(&map.rule[0], &id, "-5", 2, &out));
    ck_assert(!import_map_put(&map.rule[0], &id, "", 0, &out));
    is_out("set weibo 12 reposts=5\nset weibo 12.lk:77 1\n");
    static const char *const other[] = {"{id}=weibo.nosuch",
        "{id}=weibo.likes", "{id}=weibo.feed", "{id}[f]=weibo.liked"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ck_assert_ptr_null(import_map_add(&map, other[i]));
        ck_assert_msg(import_map_know(&map.rule[map.n - 1], &columns) != NULL,
            "%s", other[i]);
    }
    while (map.n < IMPORT_RULES_MAX) {
        ck_assert_ptr_null(import_map_add(&map, "{id}=weibo.reposts"));
    }
    ck_assert_ptr_nonnull(import_map_add(&map, "{id}=weibo.reposts"));
}
END_TEST

/* Rules for a counter whose ids are names. */
START_TEST(test_map_names)
{
    struct rows_id id;
    const struct import_rule *rule;
    setup_site();
    map.n = 0;
    add("url:{id}=site.hits");
    add("{id}:fans=site.fans");
    rule = import_map_find(&map, 0, "url:http://a.b", 14, &id);
    ck_assert_ptr_eq(rule, &map.rule[0]);
    ck_assert(id.len == 10 && memcmp(id.name, "http://a.b", 10) == 0);
    ck_assert(import_map_put(rule, &id, "5", 1, &out));
    rule = import_map_find(&map, 0, "007:fans", 8, &id);
    ck_assert_ptr_eq(rule, &map.rule[1]);
    ck_assert(import_map_put(rule, &id, "77", 2, &out));
    is_out("set site {http://a.b}.site hits=5\nset site {007}.f:77 1\n");
    ck_assert_ptr_null(import_map_find(&map, 0, "url:a b", 7, &id));
    ck_assert(import_map_is_near(&map, "url:a b", 7));
    ck_assert(!import_map_is_near(&map, "url:", 4));
    ck_assert(!import_map_is_near(&map, "url:a", 5));
    ck_assert(!import_map_is_near(&map, "other", 5));
}
END_TEST

static void
is_near(const char *key, bool is)
{
    ck_assert_msg(import_map_is_near(&map, key, strlen(key)) == is, "%s", key);
}

/* Which keys are told of, though no rule fits them. */
START_TEST(test_near)
{
    map.n = 0;
    add("post:{id}:reposts=weibo.reposts");
    add("h.{id}=weibo.reposts");
    static const char *const near[] = {"post:x:reposts", "post:012:reposts",
        "post:-5:reposts", "post:18446744073709551616:reposts",
        "post::reposts", "post:1 2:reposts", "h.x", "h.", "h.5:6"};
    static const char *const others[] = {"post:12:reposts", "h.7",
        "post:1:2:reposts", "post:x:likes", "post:reposts", "h", "h.5.title",
        "", "other", "12x"};
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        is_near(near[i], true);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        is_near(others[i], false);
    }
    add("{id}=weibo.reposts");
    is_near("12x", true);
    is_near("12", false);
    is_near("other", false);
    is_near("", false);
}
END_TEST

/* ---- dump files of Redis ---- */

enum { FILE_MAX = 4096 };

static uint8_t file[FILE_MAX];
static size_t file_len;

static void
load(void)
{
    FILE *in = fopen(DATA_DIR "/redis-7", "re");
    ck_assert_ptr_nonnull(in);
    file_len = fread(file, 1, sizeof file, in);
    ck_assert(file_len > 100 && file_len < sizeof file);
    (void)fclose(in);
}

static bool
see_key(void *context, const struct rdb_key *key, bool *is_wanted)
{
    struct buf *seen = context;
    *is_wanted = key->name.len > 0 && key->name.at[0] != 'x';
    if (seen != NULL) {
        buf_addf(seen, "%u %.*s%s\n", (unsigned)key->database,
            (int)key->name.len, key->name.at,
            key->expires_ms == 0 ? "" : " goes");
    }
    return true;
}

static bool
see_part(void *context, char kind, const struct rdb_text *field,
    const struct rdb_text *text)
{
    struct buf *seen = context;
    if (seen != NULL) {
        buf_addf(seen, " %c %.*s %.*s\n", kind, (int)field->len, field->at,
            (int)text->len, text->at);
    } else { /* so that a sanitizer sees each byte */
        unsigned sum = 0;
        for (size_t i = 0; i < text->len; i++) {
            sum += (unsigned char)text->at[i];
        }
        for (size_t i = 0; i < field->len; i++) {
            sum += (unsigned char)field->at[i];
        }
        ck_assert_uint_le(sum, UINT_MAX / 2);
    }
    return true;
}

static void
has(const char *text)
{
    ck_assert_msg(
        strstr(out.data, text) != NULL, "no \"%s\" in %s", text, out.data);
}

START_TEST(test_rdb)
{
    struct rdb rdb;
    const struct rdb_sink sink = {
        .key_fn = see_key, .part_fn = see_part, .context = &out};
    load();
    buf_add_text(&out, "\n");
    ck_assert_msg(rdb_verify(&rdb, file, file_len), "%s", rdb.why);
    ck_assert_msg(rdb_read(&rdb, &sink), "%s", rdb.why);
    ck_assert(rdb.at == rdb.end);
    rdb_fini(&rdb);
    buf_add(&out, "", 1);
    has("\n0 post:1:likes\n s  0\n");
    has("\n0 post:3:likes\n s  200\n");
    has("\n0 post:4:likes\n s  40000\n");
    has("\n0 post:5:likes\n s  3000000000\n");
    has("\n0 post:6:likes\n s  18446744073709551615\n");
    has("\n0 post:7:likes\n s  -5\n");
    has("\n0 post:9:likes goes\n s  9\n");
    has("\n3 post:1:likes\n s  333\n");
    has(" s  abababababababababababababababababababababababababababababababab"
        "abababababababababababababababababababababababababababab\n");
    has(" h reposts 2000\n");
    has(" h n -3\n");
    has(" h reposts 12345678901\n");
    has(" h reposts 44\n");
    has(" e  100000\n");
    has(" e  1099511627776\n");
    has(" e  x\n");
    has("\n0 list\n o  \n");
    has("\n0 z\n o  \n");
    has("\n0 z2\n o  \n");
    has("\n0 stream\n o  \n");
}
END_TEST

/* A bit that is another is found by the checksum; where that is left out, what
 * is read may be wrong, but never from beyond the end. */
START_TEST(test_rdb_harmed)
{
    static uint8_t copy[FILE_MAX];
    const struct rdb_sink sink = {.key_fn = see_key, .part_fn = see_part};
    struct rdb rdb;
    load();
    for (size_t len = 0; len < file_len; len++) {
        uint8_t *exact = malloc(len + 1);
        ck_assert_ptr_nonnull(exact);
        memcpy(exact, file, len);
        ck_assert(!rdb_verify(&rdb, exact, len));
        free(exact);
    }
    for (size_t bit = 0; bit < file_len * 8; bit++) {
        memcpy(copy, file, file_len);
        copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert(!rdb_verify(&rdb, copy, file_len));
        memset(copy + file_len - 8, 0, 8);
        if (bit / 8 < file_len - 9 && rdb_verify(&rdb, copy, file_len)) {
            (void)rdb_read(&rdb, &sink);
            ck_assert(rdb.at <= rdb.end);
            rdb_fini(&rdb);
        }
    }
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("port");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_columns);
    tcase_add_test(tcase, test_fields);
    tcase_add_test(tcase, test_headers);
    tcase_add_test(tcase, test_objects);
    tcase_add_test(tcase, test_round);
    tcase_add_test(tcase, test_end);
    tcase_add_test(tcase, test_name_words);
    tcase_add_test(tcase, test_name_round);
    tcase_add_test(tcase, test_name_forms);
    tcase_add_test(tcase, test_map);
    tcase_add_test(tcase, test_map_names);
    tcase_add_test(tcase, test_near);
    tcase_add_test(tcase, test_rdb);
    tcase_add_test(tcase, test_rdb_harmed);
    return run_case("port", tcase);
}
