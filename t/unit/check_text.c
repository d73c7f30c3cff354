/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/text: a table of lines and of what each means, every row of it also
 * byte by byte and in all cuts; then the limits of lines. What is dialect is
 * in check_dialect.c. */
#include "proto/text.h"

#include "unit/parse_help.h"

#include <stdbool.h>
#include <stdio.h>

#define BAD_DELTA "ERROR \"CLIENT_ERROR invalid numeric delta argument\""
#define TYPE_HELP "ERROR \"ERROR type help\""
#define BAD_EXPTIME "ERROR \"CLIENT_ERROR invalid exptime argument\""

static const struct row retrieval[] = {
    {"get a\r\n", "GET words=[ a]"},
    {"get a\n", "GET words=[ a]"},
    {"get   a  \r\n", "GET words=[   a  ]"},
    {"get a b  c\r\n", "GET words=[ a b  c]"},
    {"get 1234.cntcm\r\n", "GET words=[ 1234.cntcm]"},
    {"get weibos\r\n", "GET words=[ weibos]"},
    {"get a weibo\r\n", "GET words=[ a weibo]"},
    {"gets a b\r\n", "GETS words=[ a b]"},
    {"get " KEY_250 "\r\n", "GET words=[ " KEY_250 "]"},
    {"get " KEY_251 "\r\n", BAD_FORMAT},
    {"get\r\n", BAD_FORMAT},
    {"get \r\n", BAD_FORMAT},
    {"gets\r\n", BAD_FORMAT},
    {"gat 0 a\r\n", "GAT words=[ a]"},
    {"gat 100 a b\r\n", "GAT words=[ a b] exptime=100"},
    {"gats -1 a\r\n", "GATS words=[ a] exptime=-1"},
    {"gat 2147483647 a\r\n", "GAT words=[ a] exptime=2147483647"},
    {"gat 2147483648 a\r\n", BAD_EXPTIME},
    {"gat +1 a\r\n", BAD_EXPTIME},
    {"gat - a\r\n", "GAT words=[ a]"},
    {"gat 9223372036854775808 a\r\n", BAD_EXPTIME},
    {"gat x a\r\n", BAD_EXPTIME},
    {"gat 1.5 a\r\n", BAD_EXPTIME},
    {"gat 0\r\n", BAD_FORMAT},
    {"gat\r\n", BAD_FORMAT},
    {"gats\r\n", BAD_FORMAT},
    {"gat 0 " KEY_251 "\r\n", BAD_FORMAT},
};

static const struct row storage[] = {
    {"set a 0 0 5\r\nhello\r\n", "SET key=[a] value=[hello]"},
    {"set a 0 0 5\nhello\r\n", "SET key=[a] value=[hello]"},
    {"set a 4294967295 -1 1\r\nx\r\n",
        "SET key=[a] value=[x] flags=4294967295 exptime=-1"},
    {"add a 1 2 1\r\nx\r\n", "ADD key=[a] value=[x] flags=1 exptime=2"},
    {"replace a 0 0 0\r\n\r\n", "REPLACE key=[a]"},
    {"append a 0 0 2\r\n\r\n\r\n", "APPEND key=[a] value=[\r\n]"},
    {"prepend a 0 0 7\r\nget b\r\n\r\n", "PREPEND key=[a] value=[get b\r\n]"},
    {"cas a 0 0 1 18446744073709551615\r\nx\r\n",
        "CAS key=[a] value=[x] cas=18446744073709551615"},
    {"set a 0 0 1 noreply\r\nx\r\n", "SET key=[a] value=[x] noreply"},
    {"cas a 0 0 1 7 noreply\r\nx\r\n", "CAS key=[a] value=[x] cas=7 noreply"},
    {"set a 0 0 1 extra words\r\nx\r\n", "SET key=[a] value=[x] more=[extra]"},
    {"set a 0 0 1 tx=p:1 noreply\r\nx\r\n",
        "SET key=[a] value=[x] noreply tx=[p:1]"},
    {"cas a 0 0 1 7 tx=\r\nx\r\n", "CAS key=[a] value=[x] cas=7 tx=[]"},
    {"set noreply 0 0 1\r\nx\r\n", "SET key=[noreply] value=[x]"},
    {"set 1234.cntcm 0 0 3\r\n111\r\n", "SET key=[1234.cntcm] value=[111]"},
    {"set " KEY_250 " 0 0 1\r\nx\r\n", "SET key=[" KEY_250 "] value=[x]"},
    {"add counter 0 0 5\r\nhello\r\n", "ADD key=[counter] value=[hello]"},
    {"set a 0 0 01\r\nx\r\n", "SET key=[a] value=[x]"},
    {"set a +1 +2 1\r\nx\r\n", "SET key=[a] value=[x] flags=1 exptime=2"},
    {"set a 0 0 +1\r\n", BAD_FORMAT " closes"},
    {"set a 4294967297 0 1\r\nx\r\n", "SET key=[a] value=[x] flags=1"},
    {"set a 0 2147483648 1\r\nx\r\n",
        "SET key=[a] value=[x] exptime=-2147483648"},
    {"set a 4294967296 0 1\r\nx\r\n", "SET key=[a] value=[x]"},
    {"set a 18446744073709551615 0 1\r\nx\r\n",
        "SET key=[a] value=[x] flags=4294967295"},
    /* grammar */
    {"set\r\n", BAD_FORMAT},
    {"set a\r\n", BAD_FORMAT},
    {"set a 0\r\n", BAD_FORMAT},
    {"set a 0 0\r\n", BAD_FORMAT},
    {"set a 0 0 x\r\n", BAD_FORMAT},
    {"cas a 0 0 x 1\r\n", BAD_FORMAT},
    {"cas a 0 0 1\r\n", BAD_FORMAT " swallow=3"},
    {"set a 0 0 -1\r\n", BAD_FORMAT},
    {"set a 0 0 -1 noreply\r\n", BAD_FORMAT " noreply"},
    {"set a 0 0 5x\r\n", BAD_FORMAT},
    {"set a 0 0 +\r\n", BAD_FORMAT},
    /* a number that no block has as its length: where the next command begins
     * is not known */
    {"set a 0 0 4294967296\r\n", BAD_FORMAT " closes"},
    {"set a 0 0 2147483646\r\n", BAD_FORMAT " closes"},
    {"set a 0 0 99999999999999999999999\r\n", BAD_FORMAT " closes"},
    {"set a 0 0 000000000005\r\n", BAD_FORMAT " closes"},
    {"set a 0 0 2147483647 noreply\r\n", BAD_FORMAT " noreply closes"},
    {"cas a x 0 2147483646 1\r\n", BAD_FORMAT " closes"},
    {"append a 0 x 2147483648\r\n", BAD_FORMAT " closes"},
    {"set " KEY_251 " 0 0 2147483646\r\n", BAD_FORMAT " closes"},
    {"add counter 0 0 2147483646\r\n", BAD_FORMAT " closes"},
    {"add counter 0 0 99999999999999999999999\r\n", BAD_FORMAT " closes"},
    {"add column 0 1.5 2147483648\r\n", BAD_FORMAT " closes"},
    {"set weibo 0 0 2147483646\r\n",
        "COUNTER_STORE key=[weibo] words=[ 0 0 2147483646] closes"},
    {"add weibo 0 0 99999999999999999999999 noreply\r\n",
        "COUNTER_STORE key=[weibo] words=[ 0 0 99999999999999999999999 ] "
        "noreply closes"},
    {"prepend weibo 0 0 4294967296\r\n",
        "COUNTER_STORE key=[weibo] words=[ 0 0 4294967296] closes"},
    {"cas weibo 0 0 4294967296 1\r\n",
        "COUNTER_STORE key=[weibo] words=[ 0 0 4294967296 1] closes"},
    /* what follows is skipped: the block of a line that is wrong, but for its
     * length; of a key that is too long ... */
    {"cas a 0 0 1 x\r\n", BAD_FORMAT " swallow=3"},
    {"cas a 0 0 1 noreply\r\n", BAD_FORMAT " noreply swallow=3"},
    {"cas a 0 0 1 18446744073709551616\r\n", BAD_FORMAT " swallow=3"},
    {"set a x 0 1\r\n", BAD_FORMAT " swallow=3"},
    {"set a -1 0 1\r\n", BAD_FORMAT " swallow=3"},
    {"set a 18446744073709551616 0 1\r\n", BAD_FORMAT " swallow=3"},
    {"set a 0 x 1\r\n", BAD_FORMAT " swallow=3"},
    {"set a 0 9223372036854775808 0\r\n", BAD_FORMAT " swallow=2"},
    {"set " KEY_251 " 0 0 5\r\n", BAD_FORMAT " swallow=7"},
    {"set " KEY_251 " 0 0 0 noreply\r\n", BAD_FORMAT " noreply swallow=2"},
    {"cas " KEY_251 " 0 0 2147483645 1\r\n", BAD_FORMAT " swallow=2147483647"},
    {"set " KEY_251 " 0 0 x\r\n", BAD_FORMAT},
    /* ... and of a value that is */
    {"set a 0 0 1001\r\n", "TOO_LARGE as=SET key=[a] swallow=1003"},
    {"cas a 0 0 2147483645 9 noreply\r\n",
        "TOO_LARGE as=CAS key=[a] cas=9 noreply swallow=2147483647"},
    /* blocks without CR LF where it should be */
    {"set a 0 0 5\r\nhello!\n", BAD_CHUNK},
    {"set a 0 0 5\r\nhello!!", BAD_CHUNK " swallow_line"},
    {"set a 0 0 5\r\nhello\rx", BAD_CHUNK " swallow_line"},
    {"set a 0 0 1 noreply\r\nxyz", BAD_CHUNK " noreply swallow_line"},
};

static const struct row changes[] = {
    {"delete a\r\n", "DELETE key=[a]"},
    {"delete a 0\r\n", "DELETE key=[a]"},
    {"delete a noreply\r\n", "DELETE key=[a] noreply"},
    {"delete a 0 noreply\r\n", "DELETE key=[a] noreply"},
    {"delete noreply\r\n", "DELETE key=[noreply]"},
    {"delete a 10\r\n", BAD_FORMAT},
    {"delete a x\r\n", BAD_FORMAT},
    {"delete a tx=p:1\r\n", "DELETE key=[a] tx=[p:1]"},
    {"delete a 0 tx=p:1 noreply\r\n", "DELETE key=[a] noreply tx=[p:1]"},
    {"delete a 0 0\r\n", "DELETE key=[a] more=[0]"},
    {"delete a noreply x\r\n", "DELETE key=[a] more=[noreply]"},
    {"delete a 10 noreply\r\n", BAD_FORMAT " noreply"},
    {"delete\r\n", BAD_FORMAT},
    {"delete " KEY_251 "\r\n", BAD_FORMAT},
    {"delete " KEY_251 " noreply\r\n", BAD_FORMAT " noreply"},
    {"incr a 5\r\n", "INCR key=[a] number=5"},
    {"decr a 18446744073709551615\r\n",
        "DECR key=[a] number=18446744073709551615"},
    {"incr a 0 noreply\r\n", "INCR key=[a] noreply"},
    {"incr a 007\r\n", "INCR key=[a] number=7"},
    {"incr a +5\r\n", BAD_DELTA},
    {"incr a 0000000000000000000005\r\n", "INCR key=[a] number=5"},
    {"incr a 00000000000000000000005\r\n", BAD_DELTA},
    {"incr a +\r\n", BAD_DELTA},
    {"incr a ++5\r\n", BAD_DELTA},
    {"incr a\r\n", BAD_FORMAT},
    {"incr\r\n", BAD_FORMAT},
    {"decr\r\n", BAD_FORMAT},
    {"incr " KEY_251 " 1\r\n", BAD_FORMAT},
    {"incr a -1\r\n", BAD_DELTA},
    {"incr a x\r\n", BAD_DELTA},
    {"incr a 1.5\r\n", BAD_DELTA},
    {"decr a 18446744073709551616\r\n", BAD_DELTA},
    {"decr a x noreply\r\n", BAD_DELTA " noreply"},
    {"incr a 5 xnoreply\r\n", "INCR key=[a] number=5 more=[xnoreply]"},
    {"incr a 5 noreply  \r\n", "INCR key=[a] number=5 noreply"},
    /* on keys that begin with a digit, which have a way of their own */
    {"incr 1234.cntcm 5\r\n", "INCR key=[1234.cntcm] number=5"},
    {"decr 1234.cntcm 5\n", "DECR key=[1234.cntcm] number=5"},
    {"incr 1 0\n", "INCR key=[1]"},
    {"incr  1234.cntcm 5\r\n", "INCR key=[1234.cntcm] number=5"},
    {"incr 1234.cntcm  5\r\n", "INCR key=[1234.cntcm] number=5"},
    {"incr 1234.cntcm 5 \r\n", "INCR key=[1234.cntcm] number=5"},
    {"incr 1234.cntcm 5\r\r\n", BAD_DELTA},
    {"incr 1234.cntcm 5 noreply\r\n",
        "INCR key=[1234.cntcm] number=5 noreply"},
    {"decr 1234.cntcm 5 noreply\n", "DECR key=[1234.cntcm] number=5 noreply"},
    {"incr 1234.cntcm 5 noreplyx\r\n",
        "INCR key=[1234.cntcm] number=5 more=[noreplyx]"},
    {"incr 1234.cntcm 5 x noreply\r\n",
        "INCR key=[1234.cntcm] number=5 noreply more=[x]"},
    {"incr 1234.cntcm 5 noreply x\r\n",
        "INCR key=[1234.cntcm] number=5 more=[noreply]"},
    {"incr 1234.cntcm 5 tx=p:1\r\n",
        "INCR key=[1234.cntcm] number=5 tx=[p:1]"},
    {"decr 1234.cntcm 5 tx=p:1  noreply \r\n",
        "DECR key=[1234.cntcm] number=5 noreply tx=[p:1]"},
    {"incr 1234.cntcm 5 tx=p:1 tx=p:2\r\n",
        "INCR key=[1234.cntcm] number=5 more=[tx=p:2]"},
    {"incr 1234.cntcm 5 tx\r\n", "INCR key=[1234.cntcm] number=5 more=[tx]"},
    {"incr 1234.cntcm noreply\r\n", BAD_DELTA " noreply"},
    {"incr 1234.cntcm 0007\r\n", "INCR key=[1234.cntcm] number=7"},
    {"incr 1234.cntcm 9999999999999999999\r\n",
        "INCR key=[1234.cntcm] number=9999999999999999999"},
    {"incr 1234.cntcm 18446744073709551615\r\n",
        "INCR key=[1234.cntcm] number=18446744073709551615"},
    {"incr 1234.cntcm 18446744073709551616\r\n", BAD_DELTA},
    {"incr 1234.cntcm -1\r\n", BAD_DELTA},
    {"incr 1234.cntcm 5x\r\n", BAD_DELTA},
    {"incr 1234.cntcm \r\n", BAD_FORMAT},
    {"incr 1234.cntcm\r\n", BAD_FORMAT},
    {"incr 12\t34 5\r\n", "INCR key=[12\t34] number=5"},
    {"incr 12\x80\xff\xa1 5\r\n", "INCR key=[12\x80\xff\xa1] number=5"},
    {"incr 1" KEY_249 " 5\r\n", "INCR key=[1" KEY_249 "] number=5"},
    {"incr 1" KEY_250 " 5\r\n", BAD_FORMAT},
    {"incx 1234.cntcm 5\r\n", "ERROR \"ERROR\""},
    {"touch a 0\r\n", "TOUCH key=[a]"},
    {"touch a -5 noreply\r\n", "TOUCH key=[a] exptime=-5 noreply"},
    {"touch a\r\n", BAD_FORMAT},
    {"touch\r\n", BAD_FORMAT},
    {"touch " KEY_251 " 0\r\n", BAD_FORMAT},
    {"touch a x\r\n", BAD_EXPTIME},
    {"touch a -2147483648\r\n", "TOUCH key=[a] exptime=-2147483648"},
    {"touch a -2147483649\r\n", BAD_EXPTIME},
    {"touch a 2147483648\r\n", BAD_EXPTIME},
    {"touch a 9223372036854775808\r\n", BAD_EXPTIME},
};

static const struct row others[] = {
    {"flush_all\r\n", "FLUSH_ALL"},
    {"flush_all 10\r\n", "FLUSH_ALL exptime=10"},
    {"flush_all noreply\r\n", "FLUSH_ALL noreply"},
    {"flush_all 0 noreply\r\n", "FLUSH_ALL noreply"},
    {"flush_all x\r\n", BAD_EXPTIME},
    {"flush_all noreply 0\r\n", BAD_EXPTIME},
    {"flush_all noreply noreply\r\n", BAD_EXPTIME " noreply"},
    {"flush_all 2592001\r\n", "FLUSH_ALL exptime=2592001"},
    {"flush_all -0\r\n", "FLUSH_ALL"},
    {"flush_all x noreply\r\n", BAD_EXPTIME " noreply"},
    {"version\r\n", "VERSION"},
    {"version noreply\r\n", "VERSION words=[ noreply]"},
    {"verbosity 1\r\n", "VERBOSITY number=1"},
    {"verbosity 0 noreply\r\n", "VERBOSITY noreply"},
    {"verbosity\r\n", BAD_FORMAT},
    {"verbosity x\r\n", BAD_FORMAT},
    {"verbosity noreply\r\n", BAD_FORMAT " noreply"},
    {"stats\r\n", "STATS"},
    {"stats settings\r\n", "STATS words=[ settings]"},
    {"stats  detail on \r\n", "STATS words=[  detail on ]"},
    {"quit\r\n", "QUIT"},
    {"shutdown\r\n", "ADMIN words=[shutdown]"},
    {"\r\n", BAD_FORMAT},
    {"\n", BAD_FORMAT},
    {"ab\n", BAD_FORMAT},
    {"abc\n", TYPE_HELP},
    {"Nonsense\r\n", TYPE_HELP},
    {"GET\r\n", TYPE_HELP},
    {"zyxwvutsrqponmlk\r\n", TYPE_HELP},
    {"zyxwvutsrqponmlkj\r\n", "ERROR \"ERROR\""},
    {"ab\r\n", "ERROR \"ERROR\""},
    {"mx\r\n", "ERROR \"ERROR\""},
    {" abc\r\n", "ERROR \"ERROR\""},
    {"abc \r\n", "ERROR \"ERROR\""},
    {"abc d\r\n", "ERROR \"ERROR\""},
    {"abc\t\r\n", "ERROR \"ERROR\""},
    {"abc\r\r\n", "ERROR \"ERROR\""},
    {"abc4\r\n", "ERROR \"ERROR\""},
    {"lease-get\r\n", "ERROR \"ERROR\""},
    {"db_backup\r\n", "ERROR \"ERROR\""},
    {"ab\xc3\xa9\r\n", "ERROR \"ERROR\""},
    {"abc noreply\r\n", "ERROR \"ERROR\" noreply"},
    {"   \r\n", "ERROR \"ERROR\""},
    {" get a\r\n", "ERROR \"ERROR\""},
    {"\r\r\n", BAD_FORMAT},
    {"GET a\r\n", "ERROR \"ERROR\""},
    {"GET a noreply\r\n", "ERROR \"ERROR\" noreply"},
    {"noreply\r\n", "ERROR \"ERROR\" noreply"},
    {"gett a\r\n", "ERROR \"ERROR\""},
    {"ge a\r\n", "ERROR \"ERROR\""},
    {"get\ta\r\n", "ERROR \"ERROR\""},
    {"get a\rb\r\n", "GET words=[ a\rb]"},
    {"\x80\x01\xff\r\n", "ERROR \"ERROR\""},
    {"PUT x HTTP\r\n", "ERROR \"ERROR\""},
};

START_TEST(test_retrieval)
{
    play(retrieval, COUNT_OF(retrieval));
}
END_TEST

START_TEST(test_storage)
{
    play(storage, COUNT_OF(storage));
}
END_TEST

START_TEST(test_changes)
{
    play(changes, COUNT_OF(changes));
}
END_TEST

START_TEST(test_others)
{
    play(others, COUNT_OF(others));
}
END_TEST

/* Where the dialect's lines come through the text parser. */
START_TEST(test_dialect)
{
    static const struct row rows[] = {
        {"get weibo 1234\r\n", "COUNTER_GET key=[weibo] words=[ 1234]"},
        {"set weibo 1 2 3 4\r\n", "COUNTER_SET key=[weibo] words=[ 1 2 3 4]"},
        {"set weibo 1 2 3\r\n",
            "COUNTER_STORE key=[weibo] words=[ 1 2 3] swallow=5"},
        {"add weibo 1 1.5 3 noreply\r\n",
            "COUNTER_STORE key=[weibo] words=[ 1 1.5 3 ] noreply swallow=5"},
        {"replace weibo NaN -1 0\r\n",
            "COUNTER_STORE key=[weibo] words=[ NaN -1 0] swallow=2"},
        {"set weibo 1 2 x\r\n", "COUNTER_STORE key=[weibo] words=[ 1 2 x]"},
        {"add counter 0 1.5 9\r\n", BAD_FORMAT " swallow=11"},
        {"add column x NaN 9\r\n", BAD_FORMAT " swallow=11"},
        {"add counter x\r\n", "SCHEMA_EDIT edit=add counter words=[ x]"},
        {"gat weibo 1\r\n", "COUNTER_MISUSE key=[weibo] words=[ 1]"},
        {"append weibo 0 0 5\r\n",
            "COUNTER_STORE key=[weibo] words=[ 0 0 5] swallow=7"},
        {"cas weibo 0 0 0 1 noreply\r\n",
            "COUNTER_STORE key=[weibo] words=[ 0 0 0 1 ] noreply swallow=2"},
        {"prepend weibo 0 0 x\r\n",
            "COUNTER_STORE key=[weibo] words=[ 0 0 x]"},
        {"help\r\n", "HELP"},
    };
    play(rows, COUNT_OF(rows));
}
END_TEST

/* A counter that comes while the data block of a set of that key is on its
 * way: the block stays a block. */
START_TEST(test_schema_changes_in_a_block)
{
    static const struct row row = {
        "set weibo 0 0 5\r\nhello\r\n", "SET key=[weibo] value=[hello]"};
    size_t len = strlen(row.bytes);
    for (size_t cut = strlen("set weibo 0 0 5\r\n"); cut < len; cut++) {
        struct schema *none = schema_create();
        struct schema *schema = weibo_schema();
        struct parse_scan scan = {0, 0};
        struct request request;
        ck_assert_int_eq(
            parse(none, row.bytes, cut, &scan, &request), PARSE_MORE);
        ck_assert_int_eq(
            parse(schema, row.bytes, len, &scan, &request), PARSE_REQUEST);
        expect_request(&row, &request);
        schema_destroy(&none);
        schema_destroy(&schema);
    }
}
END_TEST

/* A line of exactly len bytes: head, then padding, then CR LF. */
static char *
line_of(const char *head, char padding, size_t len)
{
    char *line = malloc(len);
    size_t n = strlen(head);
    ck_assert_ptr_nonnull(line);
    memcpy(line, head, n);
    memset(line + n, padding, len - n - 2);
    memcpy(line + len - 2, "\r\n", 2);
    return line;
}

/* The status of a line, at once and cut at the places that matter. */
static void
expect_status(const char *line, size_t len, enum parse_status expected)
{
    const size_t cuts[] = {1, 5, TEXT_LINE_MAX - 2, TEXT_LINE_MAX - 1,
        TEXT_LINE_MAX, TEXT_LINE_MAX + 1, TEXT_LINE_MAX + 2, TEXT_LINE_MAX + 6,
        len - 2, len - 1};
    struct schema *schema = weibo_schema();
    struct request request;
    struct parse_scan scan = {0, 0};
    ck_assert_int_eq(parse(schema, line, len, &scan, &request), expected);
    for (size_t i = 0; i < COUNT_OF(cuts); i++) {
        if (cuts[i] >= len) {
            continue;
        }
        scan = (struct parse_scan){0, 0};
        enum parse_status status =
            parse(schema, line, cuts[i], &scan, &request);
        if (status == PARSE_MORE) {
            status = parse(schema, line, len, &scan, &request);
        }
        ck_assert_msg(status == expected, "cut at %zu of %zu", cuts[i], len);
    }
    schema_destroy(&schema);
}

START_TEST(test_line_limit)
{
    static const char *const heads[] = {
        "set a 0 0 5 ", "delete a ", "nothing ", "version", "getx ", ""};
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        char *line = line_of(heads[i], ' ', TEXT_LINE_MAX + 1);
        expect_status(line, TEXT_LINE_MAX + 1, PARSE_CLOSE);
        free(line);
        line = line_of(heads[i], ' ', TEXT_LINE_MAX);
        expect_status(
            line, TEXT_LINE_MAX, i == 0 ? PARSE_MORE : PARSE_REQUEST);
        free(line);
    }
}
END_TEST

START_TEST(test_get_line_limit)
{
    static const char *const heads[] = {
        "get ", "gets ", "gat 0 ", "gats 0 ", "   get "};
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        char *line = line_of(heads[i], 'k', TEXT_LINE_MAX + 1);
        expect_status(line, TEXT_LINE_MAX + 1, PARSE_REQUEST);
        free(line);
        line = line_of(heads[i], ' ', TEXT_GET_LINE_MAX);
        expect_status(line, TEXT_GET_LINE_MAX, PARSE_REQUEST);
        free(line);
        line = line_of(heads[i], ' ', TEXT_GET_LINE_MAX + 1);
        expect_status(line, TEXT_GET_LINE_MAX + 1, PARSE_REQUEST);
        free(line);
    }
}
END_TEST

/* Spaces before the command: what counts is what the first bytes show, so
 * that a cut behind them cannot make a difference. */
START_TEST(test_spaces_before_get)
{
    for (size_t n = TEXT_LINE_MAX - 8; n < TEXT_LINE_MAX + 8; n++) {
        enum { LEN = TEXT_LINE_MAX + 100 };
        char *line = line_of("", ' ', LEN);
        memcpy(line + n, "gets a", 6);
        expect_status(
            line, LEN, n + 5 <= TEXT_LINE_MAX ? PARSE_REQUEST : PARSE_CLOSE);
        free(line);
    }
}
END_TEST

/* Without a newline in sight. */
START_TEST(test_endless_lines)
{
    struct schema *schema = weibo_schema();
    struct request request;
    struct parse_scan scan = {0, 0};
    char *bytes = malloc(TEXT_GET_LINE_MAX + 1);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'x', TEXT_GET_LINE_MAX + 1);
    ck_assert_int_eq(
        parse(schema, bytes, TEXT_LINE_MAX, &scan, &request), PARSE_MORE);
    ck_assert_int_eq(
        parse(schema, bytes, TEXT_LINE_MAX + 1, &scan, &request), PARSE_CLOSE);
    memcpy(bytes, "get ", 4);
    scan = (struct parse_scan){0, 0};
    ck_assert_int_eq(
        parse(schema, bytes, TEXT_GET_LINE_MAX, &scan, &request), PARSE_MORE);
    ck_assert_int_eq(
        parse(schema, bytes, TEXT_GET_LINE_MAX + 1, &scan, &request),
        PARSE_REQUEST);
    ck_assert_int_eq(request.op, REQUEST_ERROR);
    ck_assert_str_eq(request.error, "CLIENT_ERROR line too long");
    ck_assert_uint_eq(request.len, TEXT_GET_LINE_MAX + 1);
    ck_assert(request.closes && request.swallow_line);
    free(bytes);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_http_closes)
{
    static const char *const lines[] = {"GET / HTTP/1.1\r\n",
        "POST /x/y HTTP/1.0\r\n", "PUT  /  HTTP/2\n", "x HTTP/\r\n",
        "POST /x\r\n", "POST\r\n", "Host: localhost\r\n", "GET /a\r\n",
        "PUT /x HTTP\r\n", "DELETE http://x/\n", "OPTIONS *\r\n"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        expect_status(lines[i], strlen(lines[i]), PARSE_CLOSE);
    }
    /* only where the line is nothing else */
    expect_status("get HTTP/1.1\r\n", 14, PARSE_REQUEST);
    expect_status("get POST\r\n", 10, PARSE_REQUEST);
    expect_status("POSTS\r\n", 7, PARSE_REQUEST);
    expect_status("GET a\r\n", 7, PARSE_REQUEST);
    expect_status("GETS /a\r\n", 9, PARSE_REQUEST);
    expect_status("get /a\r\n", 8, PARSE_REQUEST);
}
END_TEST

/* The bytes of a line are looked at once; an unfinished data block not at all
 * until it is whole: nothing may be read then, not even from NULL. */
START_TEST(test_scans_once)
{
    static const char set[] = "set a 0 0 500\r\nvalue";
    struct schema *schema = weibo_schema();
    struct request request;
    struct parse_scan scan = {0, 0};
    ck_assert_int_eq(parse(schema, set, 10, &scan, &request), PARSE_MORE);
    ck_assert_uint_eq(scan.scanned, 10);
    ck_assert_int_eq(
        parse(schema, set, sizeof set - 1, &scan, &request), PARSE_MORE);
    ck_assert_uint_eq(scan.need, 15 + 500 + 2);
    ck_assert_int_eq(
        text_parse(NULL, 516, schema, VALUE_MAX, &scan, &request), PARSE_MORE);
    schema_destroy(&schema);
}
END_TEST

START_TEST(test_value_limit)
{
    static const char set[] = "set a 0 0 1000\r\n";
    char bytes[sizeof set - 1 + 1002];
    struct schema *schema = weibo_schema();
    struct request request;
    struct parse_scan scan = {0, 0};
    memset(bytes, 'v', sizeof bytes);
    memcpy(bytes, set, sizeof set - 1);
    memcpy(bytes + sizeof bytes - 2, "\r\n", 2);
    ck_assert_int_eq(
        parse(schema, bytes, sizeof bytes, &scan, &request), PARSE_REQUEST);
    ck_assert_int_eq(request.op, REQUEST_SET);
    ck_assert_uint_eq(request.value.len, 1000);
    scan = (struct parse_scan){0, 0};
    ck_assert_int_eq(
        text_parse(bytes, sizeof bytes, schema, 999, &scan, &request),
        PARSE_REQUEST);
    ck_assert_int_eq(request.op, REQUEST_TOO_LARGE);
    ck_assert_uint_eq(request.len, sizeof set - 1);
    ck_assert_uint_eq(request.swallow_bytes, 1002);
    schema_destroy(&schema);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_retrieval, test_storage, test_changes,
        test_others, test_dialect, test_schema_changes_in_a_block,
        test_line_limit, test_get_line_limit, test_spaces_before_get,
        test_endless_lines, test_http_closes, test_scans_once,
        test_value_limit};
    return run_tests("text", tests, COUNT_OF(tests));
}
