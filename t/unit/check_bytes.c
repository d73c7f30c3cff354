/* SPDX-License-Identifier: BSD-3-Clause */
/* base/bytes: numbers of fixed size, varints and zigzags, there and back; and
 * what is no varint. */
#include "base/bytes.h"

#include "unit/check_help.h"

START_TEST(test_fixed)
{
    uint8_t out[8];

    bytes_put_u16(out, 0x0102);
    ck_assert_mem_eq(out, "\2\1", 2);
    ck_assert_uint_eq(bytes_get_u16(out), 0x0102);
    bytes_put_u32(out, 0xf1020304);
    ck_assert_mem_eq(out, "\4\3\2\xf1", 4);
    ck_assert_uint_eq(bytes_get_u32(out), 0xf1020304);
    bytes_put_u64(out, 0xf102030405060708);
    ck_assert_mem_eq(out, "\10\7\6\5\4\3\2\xf1", 8);
    ck_assert_uint_eq(bytes_get_u64(out), 0xf102030405060708);
    bytes_put_be16(out, 0xf102);
    ck_assert_mem_eq(out, "\xf1\2", 2);
    ck_assert_uint_eq(bytes_get_be16(out), 0xf102);
    bytes_put_be32(out, 0xf1020304);
    ck_assert_mem_eq(out, "\xf1\2\3\4", 4);
    ck_assert_uint_eq(bytes_get_be32(out), 0xf1020304);
    bytes_put_be64(out, 0xf102030405060708);
    ck_assert_mem_eq(out, "\xf1\2\3\4\5\6\7\10", 8);
    ck_assert_uint_eq(bytes_get_be64(out), 0xf102030405060708);
}
END_TEST

/* There and back, and cut at every place. */
static void
check_varint(uint64_t value, size_t len)
{
    uint8_t out[BYTES_VARINT_MAX];
    uint64_t got = 0;

    ck_assert_uint_eq(bytes_put_varint(out, value), len);
    for (size_t have = 0; have <= len; have++) {
        char *copy = copy_of((const char *)out, have);
        const uint8_t *start = (const uint8_t *)copy;
        const uint8_t *at = start;

        ck_assert_int_eq(
            bytes_get_varint(&at, start + have, &got), have == len);
        ck_assert_uint_eq((size_t)(at - start), have == len ? len : 0);
        free(copy);
    }
    ck_assert_uint_eq(got, value);
    uint8_t wide[BYTES_VARINT_MAX + 1];
    wide[BYTES_VARINT_MAX] = 0x5a;
    ck_assert_uint_eq(bytes_put_varint_wide(wide, value), len);
    ck_assert_mem_eq(wide, out, len);
    ck_assert_uint_eq(wide[BYTES_VARINT_MAX], 0x5a);
}

START_TEST(test_varints)
{
    uint64_t random = 1;
    check_varint(0, 1);
    for (unsigned bits = 1; bits <= 64; bits++) {
        uint64_t largest = UINT64_MAX >> (64 - bits);

        check_varint(largest, (bits + 6) / 7);
        check_varint(largest / 2 + 1, (bits + 6) / 7);
        for (int i = 0; i < 100; i++) {
            uint64_t top = largest / 2 + 1;
            check_varint(top | (random_below(&random, UINT64_MAX) & (top - 1)),
                (bits + 6) / 7);
        }
    }
}
END_TEST

START_TEST(test_no_varints)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"\x80", 1},
        {"\x80\0", 2}, /* longer than need be */
        {"\xff\0", 2},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\2", 10}, /* 2^64 and more */
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\2", 10},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\0", 11},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", 11},
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char *copy = copy_of(bad[i].bytes, bad[i].len);
        const uint8_t *at = (const uint8_t *)copy;
        uint64_t got = 77;

        ck_assert(!bytes_get_varint(&at, at + bad[i].len, &got));
        ck_assert_ptr_eq(at, copy);
        ck_assert_uint_eq(got, 77);
        free(copy);
    }
}
END_TEST

START_TEST(test_zigzag)
{
    uint64_t state = 1;

    ck_assert_uint_eq(bytes_zigzag(0), 0);
    ck_assert_uint_eq(bytes_zigzag((uint64_t)-1), 1);
    ck_assert_uint_eq(bytes_zigzag(1), 2);
    ck_assert_uint_eq(bytes_zigzag((uint64_t)-2), 3);
    ck_assert_uint_eq(bytes_zigzag(UINT64_MAX >> 1), UINT64_MAX - 1);
    ck_assert_uint_eq(bytes_zigzag(UINT64_C(1) << 63), UINT64_MAX);
    for (int i = 0; i < 10000; i++) {
        uint64_t distance = random_below(&state, UINT64_MAX);

        distance >>= random_below(&state, 64);
        distance *= random_below(&state, 2) == 0 ? 1 : UINT64_MAX;
        ck_assert_uint_eq(bytes_unzigzag(bytes_zigzag(distance)), distance);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_fixed, test_varints, test_no_varints, test_zigzag};

    return run_tests("bytes", tests, COUNT_OF(tests));
}
