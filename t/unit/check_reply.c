/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/reply: exact bytes. */
#include "proto/reply.h"

#include "base/err.h"
#include "base/num.h"
#include "proto/reply_cell.h"
#include "proto/reply_stats.h"
#include "unit/check_help.h"

static void
expect(struct buf *out, const char *bytes)
{
    ck_assert(!out->failed);
    ck_assert_uint_eq(out->len, strlen(bytes));
    ck_assert_mem_eq(out->data, bytes, out->len);
    buf_fini(out);
}

/* reply_value of a number. */
static void
value_u64(struct buf *out, const char *key, size_t key_len, uint32_t flags,
    uint64_t value, const uint64_t *cas)
{
    char text[NUM_U64_DIGITS_MAX];
    size_t n = num_format_u64(value, text);
    reply_value(out, key, key_len, flags, text, n, cas);
}

START_TEST(test_lines)
{
    struct buf out = {0};
    reply_line(&out, "STORED");
    reply_line(&out, "");
    reply_number(&out, 0);
    reply_number(&out, UINT64_MAX);
    expect(&out, "STORED\r\n\r\n0\r\n18446744073709551615\r\n");
}
END_TEST

START_TEST(test_errors)
{
    struct buf out = {0};
    reply__error(&out, ERR_OVER_MAX);
    expect(&out, "CLIENT_ERROR value is above the column's max\r\n");
    reply__error(&out, ERR_NO_MEMORY);
    expect(&out, "SERVER_ERROR out of memory\r\n");
    reply__error(&out, ERR_HOT_FULL);
    expect(&out,
        "SERVER_ERROR the memory for counters is full, see --hot-memory\r\n");
    reply__error(&out, ERR_JUMP);
    expect(&out,
        "CLIENT_ERROR the id is too far beyond the largest one, "
        "see maxjump\r\n");
    reply__error(&out, ERR_TOO_LARGE);
    expect(&out, "SERVER_ERROR object too large for cache\r\n");
    reply__error(&out, ERR_BAD_FORMAT);
    expect(&out, "CLIENT_ERROR bad command line format\r\n");
    reply__error(&out, ERR_NOT_NUMERIC);
    expect(&out,
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    reply__error(&out, ERR_BAD_DELTA);
    expect(&out, "CLIENT_ERROR invalid numeric delta argument\r\n");
}
END_TEST

/* Each error is one line, and says whose fault it is. */
START_TEST(test_all_errors)
{
    for (int err = 1; err < ERR_COUNT; err++) {
        struct buf out = {0};
        bool ours = err == ERR_NO_MEMORY || err == ERR_HOT_FULL ||
            err == ERR_TOO_LARGE || err == ERR_CLOSED || err == ERR_SYSTEM ||
            err == ERR_NO_THREAD || err == ERR_LOADING ||
            err == ERR_NOT_PRIMARY || err == ERR_NO_PRIMARY ||
            err == ERR_MOVED || err == ERR_BY_ETCD || err == ERR_NOT_HANDED ||
            err == ERR_STALE || err == ERR_FEW_REPLICAS ||
            err == ERR_NO_DIALLER || err == ERR_DISK_FULL || err == ERR_DISK ||
            err == ERR_FILE_SIZE || err == ERR_DIR_TAKEN ||
            err == ERR_NO_DATA_DIR || err == ERR_NO_CHECKPOINT ||
            err == ERR_UNSURE || err == ERR_UNSURE_COPIES ||
            err == ERR_UNSURE_SLOW || err == ERR_UNSURE_PRIMARY ||
            err == ERR_FORWARD_BUSY || err == ERR_UNCOMMITTED ||
            err == ERR_UNCOMMITTED_SLOW || err == ERR_LOG_FULL ||
            err == ERR_COLD_READ || err == ERR_MANY_PRODUCERS ||
            err == ERR_MANY_DUMPS || err == ERR_NAMES_AGAIN ||
            err == ERR_FORGETS || err == ERR_BACKUP_BUSY ||
            err == ERR_BACKUP_GONE || err == ERR_LIST_BUSY ||
            err == ERR_MANY_MEMBERS;
        reply__error(&out, err);
        ck_assert_int_eq(reply_is_server_error(err), ours);
        ck_assert_uint_gt(out.len, 15);
        ck_assert_mem_eq(
            out.data, ours ? "SERVER_ERROR " : "CLIENT_ERROR ", 13);
        ck_assert_ptr_eq(
            memchr(out.data, '\r', out.len), out.data + out.len - 2);
        ck_assert_ptr_eq(
            memchr(out.data, '\n', out.len), out.data + out.len - 1);
        ck_assert_mem_eq(out.data + 13, err_text(err), out.len - 15);
        buf_fini(&out);
    }
}
END_TEST

START_TEST(test_values)
{
    struct buf out = {0};
    uint64_t cas = UINT64_MAX;
    reply_value(&out, "a", 1, 0, "hello", 5, NULL);
    expect(&out, "VALUE a 0 5\r\nhello\r\n");
    reply_value(&out, "abc", 2, UINT32_MAX, "", 0, &cas);
    expect(&out, "VALUE ab 4294967295 0 18446744073709551615\r\n\r\n");
    cas = 1;
    value_u64(&out, "1234.cntcm", 10, 4, 0, &cas);
    expect(&out, "VALUE 1234.cntcm 4 1 1\r\n0\r\n");
    value_u64(&out, "1234.cntcm", 10, 0, UINT64_MAX, NULL);
    expect(&out, "VALUE 1234.cntcm 0 20\r\n18446744073709551615\r\n");
}
END_TEST

/* The longest key and numbers fit what is reserved, at any fill level. */
START_TEST(test_longest)
{
    enum { KEY = 250, VALUE = 1 << 20 };
    char key[KEY];
    char *value = malloc(VALUE);
    uint64_t cas = UINT64_MAX;
    struct buf out = {0};
    ck_assert_ptr_nonnull(value);
    memset(key, 'k', sizeof key);
    memset(value, 'v', VALUE);
    for (int i = 0; i < 40; i++) {
        size_t before = out.len;
        value_u64(&out, key, KEY, UINT32_MAX, UINT64_MAX, &cas);
        ck_assert_uint_eq(out.len - before,
            strlen("VALUE  4294967295 20 ") + KEY + 20 + 2 + 20 + 2);
    }
    buf_clear(&out);
    reply_value(&out, key, KEY, UINT32_MAX, value, VALUE, &cas);
    ck_assert_uint_eq(out.len,
        strlen("VALUE  4294967295 1048576 ") + KEY + 20 + 2 + VALUE + 2);
    ck_assert_mem_eq(out.data + out.len - 3, "v\r\n", 3);
    free(value);
    buf_fini(&out);
}
END_TEST

START_TEST(test_join)
{
    enum { N = 16 };
    uint64_t number[N] = {0};
    char text[N * (NUM_U64_DIGITS_MAX + 1)];
    ck_assert_uint_eq(reply_join_u64(number, 0, text), 0);
    number[0] = 7;
    ck_assert_uint_eq(reply_join_u64(number, 1, text), 1);
    ck_assert_mem_eq(text, "7", 1);
    number[1] = 0;
    number[2] = 333;
    ck_assert_uint_eq(reply_join_u64(number, 3, text), 7);
    ck_assert_mem_eq(text, "7 0 333", 7);
    for (size_t i = 0; i < N; i++) {
        number[i] = UINT64_MAX;
    }
    ck_assert_uint_eq(reply_join_u64(number, N, text), sizeof text - 1);
}
END_TEST

START_TEST(test_stats)
{
    const struct echo echo = {.proto = PROTO_TEXT};
    struct buf out = {0};
    struct reply_stats stats = {&out, &echo};
    reply_stats_u64(&stats, "pid", 42);
    reply_stats_text(&stats, "version", "1.0");
    reply_stats_end(&stats);
    expect(&out, "STAT pid 42\r\nSTAT version 1.0\r\nEND\r\n");
}
END_TEST

START_TEST(test_stats_without_pairs)
{
    const struct echo echo = {.proto = PROTO_TEXT};
    struct buf out = {0};
    struct reply_stats stats = {&out, &echo};
    reply_stats_done(&stats, "RESET");
    reply_stats_refuse(&stats, "CLIENT_ERROR usage");
    reply_stats_error(&stats, ERR_NO_COUNTER);
    expect(&out,
        "RESET\r\nCLIENT_ERROR usage\r\n"
        "CLIENT_ERROR no such counter\r\n");
}
END_TEST

/* Lines that are no pairs go into the reply itself. */
START_TEST(test_stats_of_lines)
{
    const struct echo echo = {.proto = PROTO_TEXT};
    struct buf out = {0};
    struct buf aside = {0};
    struct reply_stats stats = {&out, &echo};
    reply_line(reply_stats_dump(&stats, &aside), "ITEM a");
    reply_stats_end_dump(&stats, NULL, &aside);
    expect(&out, "ITEM a\r\nEND\r\n");
}
END_TEST

/* Written in wide stores, a reply is what value_u64 makes; the key ends
 * where the readable bytes do, or further on. */
static void
expect_cell(size_t len, size_t behind, uint32_t flags, uint64_t value,
    const uint64_t *cas)
{
    struct buf out = {0};
    char *key = malloc(len + behind);
    char *at = malloc(len + REPLY_CELL_ROOM);
    ck_assert(key != NULL && at != NULL);
    for (size_t i = 0; i < len + behind; i++) {
        key[i] = (char)('a' + i % 26);
    }
    value_u64(&out, key, len, flags, value, cas);
    const char *end = reply_put_cell(
        at, key, len, key + len + behind, flags, value, cas ? *cas : 0);
    ck_assert_uint_eq((size_t)(end - at), out.len);
    ck_assert_mem_eq(at, out.data, out.len);
    buf_fini(&out);
    free(key);
    free(at);
}

START_TEST(test_cells)
{
    static const uint64_t values[] = {0, 9, 10, 99, 100, 999, 1000, 99999999,
        100000000, 4294967295, UINT64_MAX - 1, UINT64_MAX};
    static const uint32_t flags[] = {0, 1, 4294967295};
    for (size_t len = 1; len <= 250; len++) {
        for (size_t behind = 0; behind <= 40; behind += 4) {
            expect_cell(len, behind, 0, len, NULL);
        }
    }
    for (uint64_t value = 0; value < 3000; value++) {
        expect_cell(20, 20, 0, value, NULL);
        expect_cell(20, 20, 0, value * 33333, NULL); /* up to 10^8 */
    }
    for (size_t v = 0; v < COUNT_OF(values); v++) {
        for (size_t f = 0; f < COUNT_OF(flags); f++) {
            expect_cell(20, 0, flags[f], values[v], NULL);
            for (size_t c = 1; c < COUNT_OF(values); c++) {
                expect_cell(20, 90, flags[f], values[v], &values[c]);
            }
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_lines, test_errors, test_all_errors,
        test_values, test_longest, test_join, test_stats,
        test_stats_without_pairs, test_stats_of_lines, test_cells};
    return run_tests("reply", tests, COUNT_OF(tests));
}
