/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/login, and base/siphash that logins are remembered by. */
#include "proto/login.h"

#include "base/siphash.h"
#include "unit/check_help.h"

#include <string.h>

/* A request at the front of a text, and what comes of it. */
struct row {
    const char *said;
    enum parse_status status;
    enum request_op op;
    uint32_t len;      /* of the request */
    const char *words; /* the value, or the error */
};

#define LOGIN(said, len, words)                                               \
    {                                                                         \
        said, PARSE_REQUEST, REQUEST_LOGIN, len, words                        \
    }
#define UNREAD(said, len)                                                     \
    {                                                                         \
        said, PARSE_REQUEST, REQUEST_UNREAD, len, NULL                        \
    }
static const struct row rows[] = {
    LOGIN("set a 0 0 7\r\nfoo bar\r\nrest", 22, "foo bar"),
    LOGIN("set a 0 0 7\nfoo bar\r\n", 21, "foo bar"),
    LOGIN("set  a   b  c   7  noreply\r\nfoo bar\r\n", 37, "foo bar"),
    LOGIN("set a 0 0 11\r\nfoo ba\r\nr x\r\n", 27, "foo ba\r\nr x"),
    LOGIN("set a 0 0 2\r\nhi\r\n", 17,
        "CLIENT_ERROR bad authentication token format"),
    LOGIN("set a 0 0 0\r\n\r\n", 15,
        "CLIENT_ERROR bad authentication token format"),
    LOGIN("set a 0 0 7\r\nfoo barxx", 22,
        "CLIENT_ERROR bad command line termination"),
    LOGIN("set a 0 0 4294967295\r\n", 22, "CLIENT_ERROR auth token too long"),
    LOGIN("set a 0 0 1010\r\n", 16, "CLIENT_ERROR auth token too long"),
    UNREAD("set a 0 0 -1\r\n", 14),
    UNREAD("set a 0 0 4294967296\r\n", 22),
    UNREAD("set a 0 0\r\n", 11),
    UNREAD("set a 0 0 x\r\n", 13),
    UNREAD("sets a 0 0 7\r\n", 14),
    UNREAD(" set a 0 0 7\r\n", 14),
    UNREAD("ms a 7\r\nfoo bar\r\n", 8),
    {"set weibo 1 2 3\r\n", PARSE_MORE, REQUEST_GET, 0, NULL},
    UNREAD("      \n", 7),
    {"quit\r\n", PARSE_CLOSE, REQUEST_GET, 0, NULL},
    {"\r\n", PARSE_CLOSE, REQUEST_GET, 0, NULL},
    {"set a 0 0 7", PARSE_MORE, REQUEST_GET, 0, NULL},
    {"set a 0 0 7\r\nfoo bar\r", PARSE_MORE, REQUEST_GET, 0, NULL},
    {"set a 0 0 1000\r\nfoo", PARSE_MORE, REQUEST_GET, 0, NULL},
};

START_TEST(test_rows)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        struct parse_scan scan = {0, 0};
        struct request out;
        enum parse_status status =
            login_parse(row->said, strlen(row->said), &scan, &out);
        ck_assert_msg(status == row->status, "'%s'", row->said);
        if (status != PARSE_REQUEST) {
            continue;
        }
        ck_assert_msg(out.op == row->op && out.len == row->len, "'%s': %u",
            row->said, out.len);
        if (out.error != NULL) {
            ck_assert_str_eq(out.error, row->words);
        } else if (row->words != NULL) {
            ck_assert_uint_eq(out.value.len, strlen(row->words));
            ck_assert_int_eq(
                memcmp(row->said + out.value.at, row->words, out.value.len),
                0);
        }
    }
}
END_TEST

/* Byte by byte it is the same, and never more than 1 KiB is asked for. */
START_TEST(test_bytes)
{
    char line[LOGIN_BYTES_MAX + 1];
    struct parse_scan scan = {0, 0};
    struct request out;
    memset(line, 'x', sizeof line);
    for (size_t len = 1; len < LOGIN_BYTES_MAX; len++) {
        ck_assert_int_eq(login_parse(line, len, &scan, &out), PARSE_MORE);
    }
    ck_assert_int_eq(
        login_parse(line, LOGIN_BYTES_MAX, &scan, &out), PARSE_CLOSE);
    line[LOGIN_BYTES_MAX] = '\n';
    ck_assert_int_eq(
        login_parse(line, LOGIN_BYTES_MAX + 1, &scan, &out), PARSE_CLOSE);
    static const char said[] = "set a 0 0 7\r\nfoo bar\r\n";
    for (size_t len = 1; len < strlen(said); len++) {
        ck_assert_int_eq(login_parse(said, len, &scan, &out), PARSE_MORE);
        ck_assert_uint_le(scan.need, LOGIN_BYTES_MAX);
    }
    ck_assert_int_eq(
        login_parse(said, strlen(said), &scan, &out), PARSE_REQUEST);
    ck_assert_ptr_null(out.error);
}
END_TEST

static bool
is(const struct login_words *words, const char *user, const char *password)
{
    return words->user_len == strlen(user) &&
        words->password_len == strlen(password) &&
        memcmp(words->user, user, words->user_len) == 0 &&
        memcmp(words->password, password, words->password_len) == 0;
}

START_TEST(test_text)
{
    struct login_words words;
    char value[2 * LOGIN_WORD_MAX + 3];
    ck_assert(login_read_text("u p", 3, &words) && is(&words, "u", "p"));
    ck_assert(login_read_text("u p q", 5, &words) && is(&words, "u", "p q"));
    ck_assert(login_read_text("u  p", 4, &words) && is(&words, "u", " p"));
    ck_assert(!login_read_text("u ", 2, &words));
    ck_assert(!login_read_text("u p\0q", 5, &words));
    ck_assert(!login_read_text(" p", 2, &words));
    ck_assert(!login_read_text("u", 1, &words));
    ck_assert(!login_read_text("", 0, &words));
    memset(value, 'a', sizeof value);
    value[LOGIN_WORD_MAX] = ' ';
    ck_assert(login_read_text(value, 2 * LOGIN_WORD_MAX + 1, &words));
    ck_assert(!login_read_text(value, 2 * LOGIN_WORD_MAX + 2, &words));
    value[LOGIN_WORD_MAX] = 'a';
    value[LOGIN_WORD_MAX + 1] = ' ';
    ck_assert(!login_read_text(value, LOGIN_WORD_MAX + 5, &words));
}
END_TEST

START_TEST(test_plain)
{
    struct login_words words;
#define PLAIN(text) login_read_plain(text, sizeof text - 1, &words)
    ck_assert(PLAIN("\0u\0p") && is(&words, "u", "p"));
    ck_assert(PLAIN("u\0u\0p q") && is(&words, "u", "p q"));
    ck_assert(!PLAIN("v\0u\0p"));
    ck_assert(!PLAIN("uu\0u\0p"));
    ck_assert(!PLAIN("\0u\0"));
    ck_assert(!PLAIN("\0\0p"));
    ck_assert(!PLAIN("\0u"));
    ck_assert(!PLAIN("u"));
    ck_assert(!PLAIN(""));
    ck_assert(!PLAIN("\0u\0p\0"));
    ck_assert(!PLAIN("\0u\0p\0q"));
#undef PLAIN
}
END_TEST

/* Appendix A of the paper, and what its reference gives for no input. */
START_TEST(test_siphash)
{
    uint8_t key[SIPHASH_KEY_BYTES];
    uint8_t bytes[15];
    for (size_t i = 0; i < sizeof key; i++) {
        key[i] = (uint8_t)i;
    }
    memcpy(bytes, key, sizeof bytes);
    ck_assert_uint_eq(
        siphash(key, bytes, sizeof bytes), UINT64_C(0xa129ca6149be45e5));
    ck_assert_uint_eq(siphash(key, bytes, 0), UINT64_C(0x726fdb47dd0e0e31));
    ck_assert_uint_ne(siphash(key, bytes, 8), siphash(key, bytes, 7));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_rows, test_bytes, test_text, test_plain, test_siphash};
    return run_tests("login", tests, COUNT_OF(tests));
}
