/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/key_names: what is read in one pass is what key__parse says, whatever
 * stands behind the key and wherever the readable bytes end. */
#include "proto/key_names.h"

#include "unit/proto_help.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const texts[] = {"0.cntcm", "1.cntcm", "12.cntrn",
    "1234567.cntcm", "12345678.cntcm", "123456789.comment_num",
    "1234567890123456.cntcm", "12345678901234567.cntrn",
    "1234567890123456789.cntcm", "9999999999999999999.weibo",
    "12345678901234567890.cntcm", "18446744073709551615.cntcm",
    "18446744073709551616.cntcm", "123456789012345678901234.cntcm",
    "100000000000000000000000000000000000000000000000000.cntcm", "1234.weibo",
    "1234.repost_num", "1234.bare", "1234.seven77", "1234.eight888",
    "1234.fifteen15151515", "1234.sixteen161616161", "1234.cntcmx",
    "1234.cntc", "1234.", "1234", "1234x.cntcm", "01.cntcm", "00.cntcm",
    "{1234}.cntcm", "1234|#|.cntcm", "1234..cntcm", "1234.cntcm.", "-1.cntcm",
    "1234.cnt\rcm", "1234.cntcm\r", "1234.\x80\xff", "1\xff.cntcm",
    "1234.cnt\tcm", "1234.a\x01", "a", ".cntcm", "12345678",
    "1234567890123456", "12/4.cntcm", "12:4.cntcm", "1234567:.cntcm",
    "1234567/.cntcm"};

static struct schema *
many_names(void)
{
    struct schema *schema = weibo_schema();
    edit_schema(&schema, "add column weibo a suffix=seven77");
    edit_schema(&schema, "add column weibo b suffix=eight888");
    edit_schema(&schema, "add column weibo c suffix=fifteen15151515");
    edit_schema(&schema, "add column weibo d suffix=sixteen161616161");
    return schema;
}

/* The key at text, of len bytes, with `behind` bytes behind it; in a block of
 * just that size. Returns whether it was read in one pass. */
static bool
expect_same(const struct key_names *names, const char *text, size_t len,
    const char *behind, size_t n_behind)
{
    struct key slow = {.kind = KEY_ITEM};
    struct key fast;
    char *line = malloc(len + n_behind);
    ck_assert_ptr_nonnull(line);
    memcpy(line, text, len);
    memcpy(line + len, behind, n_behind);
    const char *end =
        n_behind > 0 && behind[0] == ' ' ? line + len + n_behind : line + len;
    key__parse(names->schema, line, len, &slow);
    uint32_t n =
        key_names_read(names, line, end, line + len + n_behind, &fast);
    ck_assert_msg(n == 0 || n == len, "%u of '%.*s'", n, (int)len, text);
    if (n > 0) {
        ck_assert_msg(slow.kind == fast.kind, "'%.*s'", (int)len, text);
        ck_assert_uint_eq(slow.id, fast.id);
        ck_assert_ptr_eq(slow.target.counter, fast.target.counter);
        ck_assert_ptr_eq(slow.target.column, fast.target.column);
    }
    if (key_names_is_kept(names, line, len, line + len + n_behind, &fast)) {
        ck_assert_msg(slow.kind == fast.kind, "'%.*s'", (int)len, text);
        ck_assert_uint_eq(slow.id, fast.id);
        ck_assert_ptr_eq(slow.target.counter, fast.target.counter);
        ck_assert_ptr_eq(slow.target.column, fast.target.column);
    } else {
        ck_assert_msg(n == 0, "'%.*s'", (int)len, text);
    }
    free(line);
    return n > 0;
}

/* Each text before each end of the bytes; keeps: its name is kept first. */
static unsigned
expect_all_same(struct key_names *names, bool keeps)
{
    static const char crlf[] =
        "\r\nget 1.cntcm 2.cntrn 3.cntcm 4.cntcm 5.cntcm 6.cntcm 7.cntcm\r\n";
    static const char more[] =
        " 123456789012345678.cntrn 1.cntcm 1.cntcm 1.cntcm 1.cntcm 1.cntcm";
    unsigned n_fast = 0;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct key key;
        size_t len = strlen(texts[i]);
        if (keeps) {
            key_names_parse(names, texts[i], len, &key);
        }
        for (size_t n = 0; n <= 60; n++) {
            n_fast += expect_same(names, texts[i], len, crlf, n);
            n_fast += expect_same(names, texts[i], len, more, n);
            n_fast += expect_same(names, texts[i], len, crlf + 1, n);
        }
    }
    return n_fast;
}

static void
keep_all(struct key_names *names)
{
    struct key key;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        key_names_parse(names, texts[i], strlen(texts[i]), &key);
    }
}

START_TEST(test_same_as_key_parse)
{
    struct schema *schema = many_names();
    struct key_names names = {0};
    key_names_use(&names, schema);
    ck_assert_uint_eq(expect_all_same(&names, false), 0);
    /* 15 texts can be read in one pass */
    ck_assert_uint_eq(expect_all_same(&names, true), 15 * 61 * 3);
    schema_destroy(&schema);
}
END_TEST

/* A key whose length is known may have any bytes, and any may follow. */
START_TEST(test_any_bytes)
{
    static const char bytes[] = "1234.cntcm\0\x80\x0d\0\0\0\0\0\0\0\0";
    struct schema *schema = many_names();
    struct key_names names = {0};
    struct key key;
    key_names_use(&names, schema);
    keep_all(&names);
    for (size_t len = 0; len < sizeof bytes; len++) {
        for (size_t n = len; n < sizeof bytes; n++) {
            char *line = copy_of(bytes, n);
            bool is_kept =
                key_names_is_kept(&names, line, len, line + n, &key);
            ck_assert_int_eq(is_kept, len == strlen("1234.cntcm"));
            free(line);
        }
    }
    schema_destroy(&schema);
}
END_TEST

/* Another schema makes names forgotten. */
static const char *const member_texts[] = {"1.liked:5",
    "12345678.liked:123456789", "1234567890123456.seven77:536870911",
    "9999999999999999999.wide:9999999999999999999", "77.fifteen15151515:8",
    "77.sixteen161616161:8", "18446744073709551615.liked:18446744073709551615",
    "1.liked:18446744073709551616", "1.liked:0", "0.liked:5", "01.liked:5",
    "1.liked:05", "1.liked:", "1.liked", "1.liked:5:5", "1.likedx:5",
    "1.like:5", "1.cntcm:5", "{1}.liked:5", "1|#|.liked:5", "1.liked: 5",
    "1.feed:77", "1.:5", "1:5"};

static void
expect_equal_members(const struct key *slow, const struct key *fast,
    const char *text, size_t len)
{
    ck_assert_msg(slow->kind == fast->kind, "'%.*s'", (int)len, text);
    ck_assert_uint_eq(slow->id, fast->id);
    ck_assert_ptr_eq(slow->target.counter, fast->target.counter);
    ck_assert_ptr_eq(slow->target.column, fast->target.column);
    ck_assert_int_eq(slow->has_member, fast->has_member);
    ck_assert(!slow->has_member || slow->member == fast->member);
}

/* The key where it lies in a block of just that size, up to the end of it, of
 * what may be looked at, or to a space: what is read in one pass is the same as
 * key__parse has. Returns whether it was, with some bytes behind
 * it. */
static bool
expect_same_in_place(const struct key_names *names, const struct key *slow,
    const char *text, size_t len)
{
    static const char *const behind[] = {"", "\r\n", "7.liked:5", ":5 .",
        " 2.liked:6 3.liked:7 4.liked:8 5.liked:9 6.liked:10 7.liked:11 8.li"};
    unsigned n_read = 0;
    for (size_t i = 0; i < COUNT_OF(behind); i++) {
        size_t n_behind = strlen(behind[i]);
        char block[200];
        ck_assert_uint_le(len + n_behind, sizeof block);
        memcpy(block, text, len);
        memcpy(block + len, behind[i], n_behind);
        char *copy = copy_of(block, len + n_behind);
        struct key fast = {.kind = KEY_ITEM};
        bool has_space = behind[i][0] == ' ';
        uint32_t n = key_names_read_member(names, copy,
            copy + len + (has_space ? n_behind : 0), copy + len + n_behind,
            &fast);
        if (n == len && n > 0) {
            expect_equal_members(slow, &fast, text, len);
            n_read++;
        }
        ck_assert(n == 0 || n == len || (n < len && text[n] == ' '));
        free(copy);
    }
    return n_read > 0;
}

/* A text, and it cut, with one byte another one, and with one more behind: the
 * same is read of each as by key__parse, also once its name is kept. */
static unsigned
expect_same_member(struct key_names *names, const char *text, size_t len,
    unsigned *n_in_place)
{
    struct key slow, fast;
    unsigned n_members = 0;
    for (unsigned i = 0; i < 2; i++) {
        char *copy = copy_of(text, len);
        slow = fast = (struct key){.kind = KEY_ITEM};
        key__parse(names->schema, copy, len, &slow);
        key_names_parse(names, copy, len, &fast);
        ck_assert_msg(slow.kind == fast.kind, "'%.*s'", (int)len, text);
        if (slow.kind == KEY_MEMBER || slow.kind == KEY_LIST) {
            expect_equal_members(&slow, &fast, copy, len);
            n_members++;
        }
        *n_in_place += expect_same_in_place(names, &slow, copy, len);
        free(copy);
    }
    return n_members;
}

START_TEST(test_members)
{
    static const char bytes[] = "\0 .:05a\xff";
    struct schema *schema = many_names();
    struct key_names names = {0};
    edit_schema(&schema, "add counter author cold=never");
    edit_schema(&schema, "add column author aid primarykey");
    edit_schema(&schema, "add column author posts");
    edit_schema(&schema, "add column weibo m1 members=exact suffix=liked");
    edit_schema(&schema, "add column weibo m2 members=exact suffix=wide");
    edit_schema(&schema, "add column weibo feed follows=posts");
    key_names_use(&names, schema);
    unsigned n_members = 0, n_in_place = 0;
    for (size_t i = 0; i < COUNT_OF(member_texts); i++) {
        char text[80] = {0};
        size_t len = strlen(member_texts[i]);
        memcpy(text, member_texts[i], len);
        for (size_t at = 0; at <= len; at++) {
            char was = text[at];
            n_members += expect_same_member(&names, text, at, &n_in_place);
            for (size_t k = 0; k < sizeof bytes - 1; k++) {
                text[at] = bytes[k];
                n_members +=
                    expect_same_member(&names, text, len + 1, &n_in_place);
                n_members +=
                    expect_same_member(&names, text, len, &n_in_place);
            }
            text[at] = was;
        }
    }
    n_members += expect_same_member(&names, "1.liked:5", 9, &n_in_place);
    ck_assert_uint_eq(
        expect_same_member(&names, "1.liked\0:5", 10, &n_in_place), 0);
    ck_assert_uint_gt(n_members, 500);
    ck_assert_uint_gt(n_in_place, 300);
    ck_assert_uint_gt(names.n_with_member, 0);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_another_schema)
{
    struct schema *schema = many_names();
    struct key_names names = {0};
    key_names_use(&names, schema);
    keep_all(&names);
    key_names_use(&names, schema);
    ck_assert(expect_same(&names, "7.cntcm", 7, " ", 1));
    edit_schema(&schema, "drop column weibo comment_num comment_num");
    key_names_use(&names, schema);
    ck_assert(!expect_same(&names, "7.cntcm", 7, " ", 1));
    keep_all(&names);
    ck_assert(!expect_same(&names, "7.cntcm", 7, " ", 1));
    ck_assert(expect_same(&names, "7.cntrn", 7, " ", 1));
    schema_destroy(&schema);
}
END_TEST

/* More names than are kept: what is kept is right, and some are kept. */
START_TEST(test_many_names)
{
    enum { NAMES = 15 * 16 };
    struct schema *schema = weibo_schema();
    struct key_names names = {0};
    struct key key;
    char text[64];
    for (unsigned c = 0; c < NAMES / 15; c++) {
        snprintf(text, sizeof text, "add counter c%u", c);
        edit_schema(&schema, text);
        snprintf(text, sizeof text, "add column c%u id%u primarykey", c, c);
        edit_schema(&schema, text);
        for (unsigned i = 0; i < 15; i++) {
            snprintf(text, sizeof text, "add column c%u n%u", c, 15 * c + i);
            edit_schema(&schema, text);
        }
    }
    key_names_use(&names, schema);
    unsigned n_kept = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < NAMES; i++) {
            int len = snprintf(text, sizeof text, "%u.n%u", i + 1, i);
            key_names_parse(&names, text, (size_t)len, &key);
            ck_assert(expect_same(&names, text, (size_t)len, "\r\n", 2));
        }
    }
    for (unsigned i = 0; i < NAMES; i++) {
        int len = snprintf(text, sizeof text, "%u.n%u", i + 1, i);
        n_kept += expect_same(&names, text, (size_t)len, "\r\n", 2);
    }
    ck_assert_uint_ge(n_kept, KEY_NAMES / 2);
    ck_assert_uint_le(n_kept, KEY_NAMES);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_chunks)
{
    ck_assert_uint_eq(chunk_value(chunk_load("12345678")), 12345678);
    for (unsigned n = 0; n <= CHUNK_BYTES; n++) {
        for (int c = 0; c < 256; c++) {
            char text[] = "98765432";
            bool is_digit = c >= '0' && c <= '9';
            bool is_printed = c > ' ';
            if (n < CHUNK_BYTES) {
                text[n] = (char)c;
            }
            uint64_t word = chunk_load(text);
            unsigned end = n == CHUNK_BYTES ? n : CHUNK_BYTES;
            ck_assert_uint_eq(chunk_count_digits(word), is_digit ? end : n);
            ck_assert_uint_eq(chunk_count_printed(word), is_printed ? end : n);
        }
    }
}
END_TEST

START_TEST(test_few_digits)
{
    uint64_t word = chunk_load("98765432");
    uint64_t value = 98765432;
    for (unsigned n = CHUNK_BYTES - 1; n > 0; n--) {
        value /= 10;
        ck_assert_uint_eq(chunk_value(chunk_last(word, n)), value);
        ck_assert_uint_eq(
            chunk_value(chunk_last(chunk_first(word, n), n)), value);
    }
    ck_assert_uint_eq(chunk_last(word, 0), 0);
    ck_assert_uint_eq(chunk_first(word, 0), 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_same_as_key_parse, test_any_bytes,
        test_members, test_another_schema, test_many_names, test_chunks,
        test_few_digits};
    return run_tests("key_names", tests, COUNT_OF(tests));
}
