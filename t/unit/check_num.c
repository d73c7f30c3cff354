/* SPDX-License-Identifier: BSD-3-Clause */
/* base/num: fixed vectors, and random ones against code that goes digit by
 * digit. Spans lie in heap blocks of exactly their size, so that ASan sees a
 * read past either end. */
#include "base/num.h"

#include "unit/check_help.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 200000, SPAN_MAX = 28 };

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Digit by digit in 128 bits. */
static bool
model_parse(const char *text, size_t len, uint64_t *out)
{
    __extension__ unsigned __int128 value = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        value = value * 10 + (unsigned)(text[i] - '0');
        if (value > UINT64_MAX) {
            return false;
        }
    }
    if (len > 0) {
        *out = (uint64_t)value;
    }
    return len > 0;
}

static void
compare_with_model(const char *text, size_t len)
{
    uint64_t expected = 77, got = 77, id = 77;
    bool ok = model_parse(text, len, &expected);
    bool canonical = ok && (len == 1 || text[0] != '0');
    char *span = malloc(len > 0 ? len : 1);

    ck_assert_ptr_nonnull(span);
    memcpy(span, text, len);
    ck_assert_int_eq(num_parse_u64(span, len, &got), ok);
    ck_assert_uint_eq(got, expected);
    ck_assert_int_eq(num_parse_id(span, len, &id), canonical);
    ck_assert_uint_eq(id, canonical ? expected : 77);
    free(span);
}

START_TEST(test_u64_vectors)
{
    static const char *const texts[] = {"", "0", "7", "00", "007", "10",
        "1234567", "12345678", "123456789", "1234567890123456",
        "9999999999999999999", "10000000000000000000", "18446744073709551615",
        "18446744073709551616", "18446744073709551620", "28446744073709551615",
        "99999999999999999999", "100000000000000000000",
        "000000000000000000000000007", "0018446744073709551615",
        "0018446744073709551616", "-1", "+1", " 1", "1 ", "1.0", "0x10",
        "1234567a", "a1234567", "12345678a", "123456789:", "12345678/",
        "123456789012345678z"};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        compare_with_model(texts[i], strlen(texts[i]));
    }
}
END_TEST

/* Every byte value in every position of every length. */
START_TEST(test_u64_every_byte)
{
    char text[SPAN_MAX];

    for (size_t len = 1; len <= SPAN_MAX; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int byte = 0; byte < 256; byte++) {
                memset(text, '0', sizeof text);
                text[len - 1] = '9';
                text[at] = (char)byte;
                compare_with_model(text, len);
            }
        }
    }
}
END_TEST

START_TEST(test_u64_random)
{
    uint64_t state = 0x9e3779b97f4a7c15;
    char text[SPAN_MAX];

    for (int round = 0; round < ROUNDS; round++) {
        size_t len = next_random(&state) % (SPAN_MAX + 1);
        size_t zeros = next_random(&state) % (SPAN_MAX + 1);

        for (size_t i = 0; i < len; i++) {
            text[i] = i < zeros && round % 2 == 0
                ? '0'
                : (char)('0' + next_random(&state) % 10);
        }
        compare_with_model(text, len);
    }
}
END_TEST

START_TEST(test_u32)
{
    uint32_t value = 5;

    ck_assert(num_parse_u32("4294967295", 10, &value));
    ck_assert_uint_eq(value, UINT32_MAX);
    ck_assert(!num_parse_u32("4294967296", 10, &value));
    ck_assert(!num_parse_u32("", 0, &value));
    ck_assert(!num_parse_u32("-1", 2, &value));
    ck_assert_uint_eq(value, UINT32_MAX);
    ck_assert(num_parse_u32("0000000000000000000000042", 25, &value));
    ck_assert_uint_eq(value, 42);
}
END_TEST

static void
check_i64(const char *text, bool ok, int64_t expected)
{
    int64_t value = 77;

    ck_assert_int_eq(num_parse_i64(text, strlen(text), &value), ok);
    ck_assert_int_eq(value, ok ? expected : 77);
}

START_TEST(test_i64)
{
    check_i64("0", true, 0);
    check_i64("-0", true, 0);
    check_i64("+17", true, 17);
    check_i64("-1", true, -1);
    check_i64("9223372036854775807", true, INT64_MAX);
    check_i64("9223372036854775808", false, 0);
    check_i64("-9223372036854775808", true, INT64_MIN);
    check_i64("-9223372036854775809", false, 0);
    check_i64("", false, 0);
    check_i64("-", false, 0);
    check_i64("+", false, 0);
    check_i64("--1", false, 0);
    check_i64("1-", false, 0);
}
END_TEST

static void
check_lenient(const char *text, bool ok, uint64_t expected)
{
    uint64_t value = 77;

    ck_assert_int_eq(num_parse_lenient_u64(text, strlen(text), &value), ok);
    ck_assert_uint_eq(value, ok ? expected : 77);
}

START_TEST(test_lenient)
{
    check_lenient("10", true, 10);
    check_lenient(" 10 ", true, 10);
    check_lenient("\t\n\v\f\r 10", true, 10);
    check_lenient("+10", true, 10);
    check_lenient("  +007  ", true, 7);
    check_lenient("99   ", true, 99);
    check_lenient("18446744073709551615", true, UINT64_MAX);
    check_lenient("18446744073709551616", false, 0);
    check_lenient("-5", false, 0);
    check_lenient("-0", true, 0);
    check_lenient(" -000 ", true, 0);
    check_lenient("-", false, 0);
    check_lenient("-+0", false, 0);
    check_lenient("++5", false, 0);
    check_lenient("+ 5", false, 0);
    check_lenient("1.5", false, 0);
    check_lenient("0x10", false, 0);
    check_lenient("5\t", true, 5);
    check_lenient("5\r\n6", true, 5);
    check_lenient("5 abc", true, 5);
    check_lenient("5abc", false, 0);
    check_lenient("5.", false, 0);
    check_lenient("", false, 0);
    check_lenient("   ", false, 0);
    check_lenient("+", false, 0);

    uint64_t value = 77;
    ck_assert(num_parse_lenient_u64("99\0x", 4, &value));
    ck_assert_uint_eq(value, 99);
    ck_assert(!num_parse_lenient_u64("\0", 1, &value));
}
END_TEST

static void
check_format(uint64_t value)
{
    char expected[NUM_U64_DIGITS_MAX + 1];
    char wide[NUM_U64_DIGITS_MAX];
    int len = snprintf(expected, sizeof expected, "%" PRIu64, value);
    char *got = malloc((size_t)len);
    uint64_t back = 0;

    ck_assert_ptr_nonnull(got);
    ck_assert_uint_eq(num_format_u64(value, got), (size_t)len);
    ck_assert_mem_eq(got, expected, (size_t)len);
    ck_assert_uint_eq(num_put_u64(value, wide), (size_t)len);
    ck_assert_mem_eq(wide, expected, (size_t)len);
    ck_assert(num_parse_id(got, (size_t)len, &back));
    ck_assert_uint_eq(back, value);
    free(got);
}

START_TEST(test_format)
{
    uint64_t power = 1, state = 0x2545f4914f6cdd1d;

    for (uint64_t value = 0; value < 20000; value++) {
        check_format(value);
    }
    for (int i = 0; i < NUM_U64_DIGITS_MAX; i++, power *= 10) {
        check_format(power - 1);
        check_format(power);
        check_format(power + 1);
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        check_format(UINT64_C(1) << bit);
        check_format((UINT64_C(1) << bit) - 1);
    }
    check_format(UINT64_MAX);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t shift = next_random(&state) % 64;

        check_format(next_random(&state) >> shift);
    }
}
END_TEST

START_TEST(test_short)
{
    for (uint64_t i = 0; i < NUM_SHORT_END; i++) {
        char text[NUM_U64_DIGITS_MAX];
        ck_assert_uint_eq(num_format_u64(i, text), num_short[i].len);
        ck_assert_mem_eq(text, num_short[i].text, num_short[i].len);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("num");
    TCase *tcase = tcase_create("num");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_test(tcase, test_u64_vectors);
    tcase_add_test(tcase, test_u64_every_byte);
    tcase_add_test(tcase, test_u64_random);
    tcase_add_test(tcase, test_u32);
    tcase_add_test(tcase, test_i64);
    tcase_add_test(tcase, test_lenient);
    tcase_add_test(tcase, test_format);
    tcase_add_test(tcase, test_short);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
