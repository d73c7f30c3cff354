/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/key: which keys name cells and records, and which only look so. */
#include "proto/key.h"

#include "base/err.h"
#include "names/own_id.h"
#include "proto/key_names.h"

#include "unit/proto_help.h"

#define MAX_ID "18446744073709551615"

struct row {
    const char *text;
    uint64_t id;
    const char *column; /* NULL: the whole record */
};

static const struct row cells[] = {
    {"0.cntcm", 0, "comment_num"},
    {"1234.cntcm", 1234, "comment_num"},
    {"1234.cntrn", 1234, "repost_num"},
    {"1234.comment_num", 1234, "comment_num"},
    {"1234.weibo", 1234, NULL},
    {MAX_ID ".cntcm", UINT64_MAX, "comment_num"},
    {"10000000000000000000.weibo", UINT64_C(10000000000000000000), NULL},
    {"{0}.cntcm", 0, "comment_num"},
    {"{1234}.cntcm", 1234, "comment_num"},
    {"{1234}.weibo", 1234, NULL},
    {"{" MAX_ID "}.cntcm", UINT64_MAX, "comment_num"},
    {"0|#|.cntcm", 0, "comment_num"},
    {"1234|#|.cntcm", 1234, "comment_num"},
    {"1234|#|.comment_num", 1234, "comment_num"},
    {"1234|#|.weibo", 1234, NULL},
    {MAX_ID "|#|.weibo", UINT64_MAX, NULL},
};

/* Items for memcached's commands, and no words of the dialect either. */
static const char *const near_misses[] = {"", ".", ".cntcm", "1234.", "1234..",
    "1234.nosuch", "1234.cntc", "1234.cntcmx", "1234.CNTCM", "1234..cntcm",
    "1234.cntcm.", "1234.cntcm ", " 1234.cntcm", "1234 .cntcm", "1234cntcm",
    "1234,cntcm", "007.cntcm", "00.cntcm", "01.cntcm",
    "18446744073709551616.cntcm", "99999999999999999999.cntcm",
    "100000000000000000000.cntcm", "+1.cntcm", "-1.cntcm", "1e3.cntcm",
    "0x10.cntcm", "12a.cntcm", "a12.cntcm", "x.cntcm", "cntcm", "weibo",
    "{}.cntcm", "{007}.cntcm", "{18446744073709551616}.cntcm", "{1234.cntcm",
    "1234}.cntcm", "{1234}cntcm", "{1234}", "{1234}.", "{1234}.nosuch",
    "{{1234}}.cntcm", "{ 1234}.cntcm", "{1234}|#|.cntcm", "{1234|#|}.cntcm",
    "{", "}", "{}", "1234|#|", "1234|#|.", "1234|#|cntcm", "1234|#.cntcm",
    "1234|.cntcm", "1234||.cntcm", "1234|#|.nosuch", "1234|#||#|.cntcm",
    "|#|.cntcm", "1234.|#|cntcm"};

static void
expect_cell(const struct key *key, const struct row *row)
{
    ck_assert_msg(key->kind == (row->column == NULL ? KEY_RECORD : KEY_CELL),
        "%s is no cell", row->text);
    ck_assert_uint_eq(key->id, row->id);
    ck_assert_str_eq(key->target.counter->name.text, "weibo");
    if (row->column == NULL) {
        ck_assert_ptr_null(key->target.column);
    } else {
        ck_assert_str_eq(key->target.column->name.text, row->column);
    }
}

START_TEST(test_cells)
{
    struct schema *schema = weibo_schema();
    const struct schema_counter *weibo = schema_counter(schema, "weibo", 5);
    const struct schema_counter *bare = schema_counter(schema, "bare", 4);
    for (size_t i = 0; i < COUNT_OF(cells); i++) {
        size_t len = strlen(cells[i].text);
        char *text = copy_of(cells[i].text, len);
        struct key key;
        key__parse(schema, text, len, &key);
        expect_cell(&key, &cells[i]);
        ck_assert(key_parse_dialect(weibo, text, len, &key));
        expect_cell(&key, &cells[i]);
        ck_assert(!key_parse_dialect(bare, text, len, &key));
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_near_misses)
{
    struct schema *schema = weibo_schema();
    const struct schema_counter *weibo = schema_counter(schema, "weibo", 5);
    for (size_t i = 0; i < COUNT_OF(near_misses); i++) {
        size_t len = strlen(near_misses[i]);
        char *text = copy_of(near_misses[i], len);
        struct key key;
        key__parse(schema, text, len, &key);
        ck_assert_msg(key.kind == KEY_ITEM, "'%s'", near_misses[i]);
        ck_assert_msg(!key_parse_dialect(weibo, text, len, &key), "'%s'",
            near_misses[i]);
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

/* Every part of a key that is shorter at either end is something else. */
START_TEST(test_prefixes)
{
    static const char whole[] = "1234|#|.cntcm";
    struct schema *schema = weibo_schema();
    for (size_t len = 0; len < sizeof whole - 1; len++) {
        char *text = copy_of(whole, len);
        struct key key;
        key__parse(schema, text, len, &key);
        ck_assert_int_eq(key.kind, KEY_ITEM);
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_bare_ids)
{
    static const char *const bad[] = {
        "007", "-1", "1 ", "18446744073709551616", "{7}", "7|#|", "7.", "x"};
    struct schema *schema = weibo_schema();
    const struct schema_counter *weibo = schema_counter(schema, "weibo", 5);
    struct key key;
    ck_assert(key_parse_dialect(weibo, "0", 1, &key));
    ck_assert_int_eq(key.kind, KEY_RECORD);
    ck_assert_uint_eq(key.id, 0);
    ck_assert(key_parse_dialect(weibo, MAX_ID, strlen(MAX_ID), &key));
    ck_assert_uint_eq(key.id, UINT64_MAX);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert(!key_parse_dialect(weibo, bad[i], strlen(bad[i]), &key));
    }
    /* a bare id is nothing to memcached's commands */
    key__parse(schema, "1234", 4, &key);
    ck_assert_int_eq(key.kind, KEY_ITEM);
    schema_destroy(&schema);
}
END_TEST

static const struct {
    const char *text;
    int err;
} looks[] = {
    {"1234.cntlk", ERR_NEAR_NAME},
    {"{1234}.cntlk", ERR_NEAR_NAME},
    {"1234|#|.cntlk", ERR_NEAR_NAME},
    {"0.x", ERR_NEAR_NAME},
    {MAX_ID ".CNTCM", ERR_NEAR_NAME},
    {"1234.", ERR_NEAR_NAME},
    {"{1234}.", ERR_NEAR_NAME},
    {"1234|#|.", ERR_NEAR_NAME},
    {"1234..cntcm", ERR_NEAR_NAME},
    {"1234.cntcm.", ERR_NEAR_NAME},
    {"1234.cntcm.cntcm", ERR_NEAR_NAME},
    {"10.0.0.1", ERR_NEAR_NAME},
    {"1234.weibo_id", ERR_NEAR_NAME},
    {"007.cntcm", ERR_NEAR_ID},
    {"-1.cntcm", ERR_NEAR_ID},
    {"18446744073709551616.cntcm", ERR_NEAR_ID},
    {"alice.cntcm", ERR_NEAR_ID},
    {"alice.comment_num", ERR_NEAR_ID},
    {"alice.weibo", ERR_NEAR_ID},
    {":1:1234.cntcm", ERR_NEAR_ID},
    {"a.b.cntcm", ERR_NEAR_ID},
    {".cntcm", ERR_NEAR_ID},
    {"{007}.cntcm", ERR_NEAR_ID},
    {"{1234.cntcm", ERR_NEAR_ID},
    {"1234|#.cntcm", ERR_NEAR_ID},
    {"", 0},
    {".", 0},
    {"1234", 0},
    {"{1234}", 0},
    {"1234|#|", 0},
    {"cntcm", 0},
    {"1234:cntcm", 0},
    {"1234cntcm", 0},
    {"alice.cntcm.", 0},
    {"alice.CNTCM", 0},
    {"alice.xcntcm", 0},
    {"alice.weibo_id", 0},
    {"01.x", 0},
    {"page.html", 0},
    {"user:17", 0},
};

/* What looks like a cell's key, and by what it is none. */
START_TEST(test_near)
{
    struct schema *schema = weibo_schema();
    struct schema *none = schema_create();
    struct key_names names = {0};
    ck_assert_ptr_nonnull(none);
    key_names_use(&names, schema);
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        size_t len = strlen(looks[i].text);
        char *text = copy_of(looks[i].text, len);
        int err = key_near(schema, text, len);
        ck_assert_msg(err == looks[i].err, "'%s': %d", looks[i].text, err);
        ck_assert_msg(err == 0 || key_names_may_be_near(&names, text, len),
            "'%s'", looks[i].text);
        ck_assert_int_eq(key_near(none, text, len), 0);
        free(text);
    }
    ck_assert(!key_names_may_be_near(&names, "user:17", 7));
    edit_schema(&schema, "add column weibo z7 suffix=z7");
    key_names_use(&names, schema);
    ck_assert(key_names_may_be_near(&names, "user:17", 7));
    schema_destroy(&none);
    schema_destroy(&schema);
}
END_TEST

static const struct look_of_list {
    const char *text;
    bool is_list, has_member;
    uint64_t id, member;
    int near; /* of what is an item's */
} list_looks[] = {
    {"77.feed", true, false, 77, 0, 0},
    {"{77}.feed", true, false, 77, 0, 0},
    {"77|#|.feed", true, false, 77, 0, 0},
    {"77.feed:15", true, true, 77, 15, 0},
    {"{77}.feed:0", true, true, 77, 0, 0},
    {"77|#|.feed:" MAX_ID, true, true, 77, UINT64_MAX, 0},
    {"0.followed:7", true, true, 0, 7, 0},
    {"77.feed:", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.feed:015", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.feed:15 ", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.feed:1:5", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.feed:18446744073709551616", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.feed:-1", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.cntcm:15", false, false, 0, 0, ERR_NEAR_NAME},
    {"77.weibo:15", false, false, 0, 0, ERR_NEAR_NAME},
    {"77:15.feed", false, false, 0, 0, ERR_NEAR_ID},
    {"a.feed:15", false, false, 0, 0, ERR_NEAR_ID},
    {"a.cntcm:15", false, false, 0, 0, 0},
    {"a:15", false, false, 0, 0, 0},
};

/* Keys of lists, and of one id of them; before and after others were read. */
START_TEST(test_lists)
{
    struct schema *schema = weibo_schema();
    struct key_names names = {0};
    edit_schema(&schema, "add counter author cold=never");
    edit_schema(&schema, "add column author aid primarykey");
    edit_schema(&schema, "add column author posts");
    edit_schema(
        &schema, "add column weibo followed follows=posts suffix=feed");
    key_names_use(&names, schema);
    for (size_t i = 0; i < 2 * COUNT_OF(list_looks); i++) {
        const struct look_of_list *look = &list_looks[i / 2];
        size_t len = strlen(look->text);
        char *text = copy_of(look->text, len);
        struct key key;
        key_names_parse(&names, text, len, &key);
        ck_assert_msg((key.kind == KEY_LIST) == look->is_list, "%s", text);
        if (look->is_list) {
            ck_assert_uint_eq(key.id, look->id);
            ck_assert_int_eq(key.has_member, look->has_member);
            ck_assert(!look->has_member || key.member == look->member);
            ck_assert_str_eq(key.target.column->name.text, "followed");
            ck_assert(!key_names_is_kept(&names, text, len, text + len, &key));
        } else {
            ck_assert_int_eq(key.kind, KEY_ITEM);
            ck_assert_int_eq(key_near(schema, text, len), look->near);
            ck_assert(
                look->near == 0 || key_names_may_be_near(&names, text, len));
        }
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

static const struct look_of_member {
    const char *text;
    enum key_kind kind;
    bool has_member;
    uint64_t id, member;
    int err; /* key_fault's, or of an item key_near's */
} member_looks[] = {
    {"77.liked", KEY_MEMBER, false, 77, 0, ERR_NO_MEMBER},
    {"77.attitudes:5", KEY_MEMBER, true, 77, 5, 0},
    {"77.liked:0", KEY_MEMBER, true, 77, 0, 0},
    {"{77}.liked:65535", KEY_MEMBER, true, 77, 65535, 0},
    {"77|#|.liked:65536", KEY_MEMBER, true, 77, 65536, ERR_MEMBER},
    {MAX_ID ".liked:" MAX_ID, KEY_MEMBER, true, UINT64_MAX, UINT64_MAX,
        ERR_MEMBER},
    {"77.liked:18446744073709551616", KEY_MEMBER, true, 77, UINT64_MAX,
        ERR_MEMBER},
    {"77.liked:99999999999999999999999999", KEY_MEMBER, true, 77, UINT64_MAX,
        ERR_MEMBER},
    {"77.wide:281474976710655", KEY_MEMBER, true, 77, 281474976710655, 0},
    {"77.wide:281474976710656", KEY_MEMBER, true, 77, 281474976710656,
        ERR_MEMBER},
    {"77.likes", KEY_COUNTED, false, 77, 0, 0},
    {"{77}.likes", KEY_COUNTED, false, 77, 0, 0},
    {"77.plain", KEY_CELL, false, 77, 0, 0},
    {"77.post", KEY_RECORD, false, 77, 0, 0},
    {"77.liked:", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.liked:05", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.liked:018446744073709551616", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.liked:1844674407370955161x6", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.liked:-1", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.liked:1:1", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.likes:1", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"77.post:1", KEY_ITEM, false, 0, 0, ERR_NEAR_NAME},
    {"a.liked:5", KEY_ITEM, false, 0, 0, ERR_NEAR_ID},
    {"a.liked", KEY_ITEM, false, 0, 0, ERR_NEAR_ID},
    {"a.plain:5", KEY_ITEM, false, 0, 0, 0},
};

static struct schema *
schema_with_members(void)
{
    struct schema *schema = weibo_schema();
    edit_schema(&schema, "add counter post cold=never");
    edit_schema(&schema, "add column post pid primarykey");
    edit_schema(&schema, "add column post likes");
    edit_schema(&schema, "add column post plain");
    edit_schema(&schema,
        "add column post attitudes members=exact member=16 "
        "suffix=liked counts=likes");
    edit_schema(&schema, "add column post wide members=exact member=48");
    return schema;
}

/* Keys of members, of one of them, and of what counts them; before and after
 * others were read. None of members is kept. */
START_TEST(test_members)
{
    struct schema *schema = schema_with_members();
    struct key_names names = {0};
    key_names_use(&names, schema);
    ck_assert(names.has_faults);
    for (size_t i = 0; i < 2 * COUNT_OF(member_looks); i++) {
        const struct look_of_member *look = &member_looks[i / 2];
        size_t len = strlen(look->text);
        char *text = copy_of(look->text, len);
        struct key key, kept;
        key_names_parse(&names, text, len, &key);
        ck_assert_msg(key.kind == look->kind, "%s", text);
        if (look->kind == KEY_ITEM) {
            ck_assert_int_eq(key_near(schema, text, len), look->err);
            ck_assert(
                look->err == 0 || key_names_may_be_near(&names, text, len));
        } else {
            ck_assert_uint_eq(key.id, look->id);
            ck_assert_int_eq(key_fault(&key), look->err);
        }
        if (look->kind == KEY_MEMBER) {
            ck_assert_int_eq(key.has_member, look->has_member);
            ck_assert(!key.has_member || key.member == look->member);
            ck_assert(
                !key_names_is_kept(&names, text, len, text + len, &kept));
        } else if (key_names_is_kept(&names, text, len, text + len, &kept)) {
            ck_assert_int_eq(kept.kind, look->kind);
        } else {
            ck_assert(look->kind == KEY_ITEM || text[0] == '{');
        }
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

/* ---- ids that are names ---- */

#define LONG_NAME "some.one@example.org"
#define TEN "xxxxxxxxxx"
#define FIFTY TEN TEN TEN TEN TEN
#define LONGEST FIFTY FIFTY FIFTY FIFTY

static const struct look_of_name {
    const char *text;
    enum key_kind kind;
    const char *name;        /* NULL: it is an id by itself, or none */
    bool is_own, is_dialect; /* the same in the dialect */
    int err;
} name_looks[] = {
    {"alice.hits", KEY_CELL, NULL, true, true, 0},
    {"{alice}.hits", KEY_CELL, NULL, true, true, 0},
    {"alice|#|.hits", KEY_CELL, NULL, true, true, 0},
    {"alice.site", KEY_RECORD, NULL, true, true, 0},
    {"7.hits", KEY_CELL, NULL, true, true, 0},
    {"007.hits", KEY_CELL, NULL, true, true, 0},
    {"123456789012345678901.hits", KEY_CELL, "123456789012345678901", false,
        true, 0},
    {LONG_NAME ".hits", KEY_CELL, LONG_NAME, false, true, 0},
    {"{" LONG_NAME "}.hits", KEY_CELL, LONG_NAME, false, true, 0},
    {LONG_NAME "|#|.hits", KEY_CELL, LONG_NAME, false, true, 0},
    {"{{" LONG_NAME "}}.hits", KEY_CELL, "{" LONG_NAME "}", false, true, 0},
    {"{" LONG_NAME ".hits", KEY_CELL, "{" LONG_NAME, false, true, 0},
    {"{" LONG_NAME "}|#|.hits", KEY_CELL, "{" LONG_NAME "}", false, true, 0},
    {LONG_NAME ".hits.hits", KEY_CELL, LONG_NAME ".hits", false, true, 0},
    {LONG_NAME ".met:5", KEY_MEMBER, LONG_NAME, false, true, 0},
    {"http://a.b/c:80.met:5", KEY_MEMBER, "http://a.b/c:80", false, true, 0},
    {LONG_NAME ".met", KEY_MEMBER, LONG_NAME, false, true, ERR_NO_MEMBER},
    {"\xff\x80.hits", KEY_CELL, "\xff\x80", false, true, 0},
    {LONGEST ".hits", KEY_CELL, LONGEST, false, true, 0},
    {LONGEST "x.hits", KEY_CELL, NULL, false, true, ERR_BAD_ID_NAME},
    {".hits", KEY_CELL, NULL, false, true, ERR_BAD_ID_NAME},
    {"{}.hits", KEY_CELL, NULL, false, true, ERR_BAD_ID_NAME},
    {"|#|.hits", KEY_CELL, NULL, false, true, ERR_BAD_ID_NAME},
    {"a b.hits", KEY_CELL, NULL, false, true, ERR_BAD_ID_NAME},
    {"a\x7f.hits", KEY_CELL, NULL, false, true, ERR_BAD_ID_NAME},
    {LONG_NAME ".hit", KEY_ITEM, NULL, false, false, 0},
    {LONG_NAME ".hits:5", KEY_ITEM, NULL, false, false, 0},
    {LONG_NAME ".met:x", KEY_ITEM, NULL, false, false, 0},
    {"alice", KEY_ITEM, NULL, false, false, 0},
    {"7.cntcm", KEY_CELL, NULL, true, false, 0},
    {"alice.cntcm", KEY_ITEM, NULL, false, false, 0},
};

static struct schema *
schema_with_names(void)
{
    struct schema *schema = weibo_schema();
    edit_schema(&schema, "add counter site");
    edit_schema(&schema, "add column site url primarykey=text");
    edit_schema(&schema, "add column site hits");
    edit_schema(&schema, "add column site met members=exact");
    return schema;
}

static void
expect_name(const struct key *key, const struct look_of_name *look)
{
    ck_assert_msg(key->kind == look->kind, "%s", look->text);
    if (key->kind == KEY_ITEM || !key->target.counter->key_is_text) {
        return;
    }
    ck_assert_int_eq(key_fault(key), look->err);
    ck_assert_msg(key_has_name(key) == (look->name != NULL), "%s", look->text);
    if (look->name != NULL) {
        ck_assert_uint_eq(key->name_len, strlen(look->name));
        ck_assert_mem_eq(key->name, look->name, key->name_len);
    }
    char name[OWN_DIGITS_MAX];
    ck_assert(!look->is_own || own_id_name(key->id, name) > 0);
}

/* Each form of key, once and again: nothing of names is kept. */
START_TEST(test_names)
{
    struct schema *schema = schema_with_names();
    const struct schema_counter *site = schema_counter(schema, "site", 4);
    struct key_names names = {0};
    key_names_use(&names, schema);
    ck_assert(names.has_faults);
    for (size_t i = 0; i < 2 * COUNT_OF(name_looks); i++) {
        const struct look_of_name *look = &name_looks[i / 2];
        size_t len = strlen(look->text);
        char *text = copy_of(look->text, len);
        struct key key;
        key_names_parse(&names, text, len, &key);
        expect_name(&key, look);
        if (look->is_dialect) {
            ck_assert(!key_names_is_kept(&names, text, len, text + len, &key));
            ck_assert(key_parse_dialect(site, text, len, &key));
            expect_name(&key, look);
        }
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

/* A word that is all name, and what names are written as. */
START_TEST(test_words_of_names)
{
    static const char *const words[] = {"alice", "a.b.c@d", "7", LONG_NAME,
        "http://a.b/c.html", LONG_NAME ".hits", LONG_NAME ".site", "{x}",
        "{" LONG_NAME "}", LONG_NAME "|#|", "a.met:7", "a.met:x", "{a.hits",
        "hits", ".hits", LONGEST};
    struct schema *schema = schema_with_names();
    const struct schema_counter *site = schema_counter(schema, "site", 4);
    char out[NAME_BYTES_MAX + KEY_WORD_MORE];
    struct key key;
    uint64_t id;
    ck_assert(key_parse_dialect(site, LONG_NAME, strlen(LONG_NAME), &key));
    ck_assert(key.kind == KEY_RECORD && key_has_name(&key));
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t len = strlen(words[i]);
        bool is_own = own_id_of(words[i], len, &id);
        for (unsigned c = 0; c < 2; c++) {
            const struct schema_column *column =
                c == 0 ? NULL : &site->column[0];
            size_t n = key_put_word(site, column, words[i], len, out);
            ck_assert_uint_le(n, len + KEY_WORD_MORE);
            char *text = copy_of(out, n);
            ck_assert(key_parse_dialect(site, text, n, &key));
            ck_assert_int_eq(key.kind, c == 0 ? KEY_RECORD : KEY_CELL);
            ck_assert_int_eq(key_fault(&key), 0);
            if (is_own) {
                ck_assert(!key_has_name(&key) && key.id == id);
            } else {
                ck_assert(key_has_name(&key) && key.name_len == len);
                ck_assert_mem_eq(key.name, words[i], len);
            }
            free(text);
        }
    }
    schema_destroy(&schema);
}
END_TEST

static const struct look_in_dialect {
    const char *text;
    enum key_kind kind; /* KEY_ITEM: it is refused */
    uint64_t member;
} dialect_looks[] = {
    {"77", KEY_RECORD, 0}, {"77.post", KEY_RECORD, 0},
    {"77.plain", KEY_CELL, 0}, {"77.likes", KEY_COUNTED, 0},
    {"{77}.liked:5", KEY_MEMBER, 5},
    {"77|#|.attitudes:65536", KEY_MEMBER, 65536},
    {"77.liked:18446744073709551616", KEY_MEMBER, UINT64_MAX},
    {"77.liked:05", KEY_ITEM, 0}, {"77.liked:", KEY_ITEM, 0},
    {"77.plain:5", KEY_ITEM, 0}, {"77.post:5", KEY_ITEM, 0},
    {"77:5", KEY_ITEM, 0}, {"77.cntcm", KEY_ITEM, 0}, /* of another counter */
};

START_TEST(test_members_in_dialect)
{
    struct schema *schema = schema_with_members();
    const struct schema_counter *post = schema_counter(schema, "post", 4);
    for (size_t i = 0; i < COUNT_OF(dialect_looks); i++) {
        const struct look_in_dialect *look = &dialect_looks[i];
        size_t len = strlen(look->text);
        char *text = copy_of(look->text, len);
        struct key key;
        bool is_known = key_parse_dialect(post, text, len, &key);
        ck_assert_msg(is_known == (look->kind != KEY_ITEM), "%s", text);
        if (is_known) {
            ck_assert_msg(key.kind == look->kind, "%s", text);
            ck_assert(key.kind != KEY_MEMBER || key.member == look->member);
        }
        free(text);
    }
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_follows_the_schema)
{
    struct schema *schema = weibo_schema();
    struct key key;
    key__parse(schema, "1.bare", 6, &key);
    ck_assert_int_eq(key.kind, KEY_RECORD);
    ck_assert_uint_eq(key.target.counter->n_columns, 0);
    key__parse(schema, "1.late", 6, &key);
    ck_assert_int_eq(key.kind, KEY_ITEM);
    edit_schema(&schema, "add column weibo like_num suffix=late");
    key__parse(schema, "1.late", 6, &key);
    ck_assert_int_eq(key.kind, KEY_CELL);
    edit_schema(&schema, "drop column weibo like_num like_num");
    key__parse(schema, "1.late", 6, &key);
    ck_assert_int_eq(key.kind, KEY_ITEM);
    /* the key column is no value */
    key__parse(schema, "1.weibo_id", 10, &key);
    ck_assert_int_eq(key.kind, KEY_ITEM);
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_cells, test_near_misses, test_prefixes,
        test_bare_ids, test_near, test_lists, test_members,
        test_members_in_dialect, test_names, test_words_of_names,
        test_follows_the_schema};
    return run_tests("key", tests, COUNT_OF(tests));
}
