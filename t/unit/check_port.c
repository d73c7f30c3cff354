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
    uint64_t id = 0;
    const struct import_rule *found =
        import_map_find(&map, 0, key, strlen(key), &id);
    ck_assert_msg(
        (found == NULL ? -1 : (int)(found - map.rule)) == rule, "%s", key);
    ck_assert(rule < 0 || id == wanted);
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
    ck_assert(import_map_put(&map.rule[0], 12, "5", 1, &out));
    ck_assert(import_map_put(&map.rule[2], 12, "77", 2, &out));
    ck_assert(!import_map_put(&map.rule[0], 12, "-5", 2, &out));
    ck_assert(!import_map_put(&map.rule[0], 12, "", 0, &out));
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
    tcase_add_test(tcase, test_map);
    tcase_add_test(tcase, test_near);
    tcase_add_test(tcase, test_rdb);
    tcase_add_test(tcase, test_rdb_harmed);
    return run_case("port", tcase);
}
