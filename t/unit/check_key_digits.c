/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/key_digits: an id whose length is known is read as one digit by one. */
#include "proto/key_digits.h"

#include "unit/check_help.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 2000 };

/* The last n bytes before end, as a reader of single bytes has them. */
static bool
read_slowly(const char *end, unsigned n, uint64_t *value)
{
    bool are_digits = true;
    *value = 0;
    for (const char *at = end - n; at < end; at++) {
        are_digits = are_digits && *at >= '0' && *at <= '9';
        *value = *value * 10 + (uint64_t)(*at - '0');
    }
    return are_digits;
}

/* A block of 16 bytes, the last n of them digits. */
static char *
make_block(uint64_t *random, unsigned n)
{
    char *block = malloc(KEY_DIGITS_WIDE);
    ck_assert_ptr_nonnull(block);
    for (unsigned i = 0; i < KEY_DIGITS_WIDE; i++) {
        block[i] = i < KEY_DIGITS_WIDE - n
            ? (char)random_below(random, 256)
            : (char)('0' + random_below(random, 10));
    }
    return block;
}

START_TEST(test_values)
{
    uint64_t random = 1;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n = 1 + i % KEY_DIGITS_WIDE;
        uint64_t value = 0;
        char *block = make_block(&random, n);
        char *end = block + KEY_DIGITS_WIDE;
        struct key_digits mask = key_digits_mask(n);
        struct key_digits it = key_digits_before(end, mask);
        ck_assert(read_slowly(end, n, &value));
        ck_assert(key_digits_are_digits(it));
        ck_assert_uint_eq(key_digits_value(it), value);
        ck_assert(key_digits_are_same(it, it));
        memset(end - n, '9', n);
        read_slowly(end, n, &value);
        it = key_digits_before(end, mask);
        ck_assert(key_digits_are_same(it, key_digits_nines(mask)));
        ck_assert_uint_eq(key_digits_value(it), value);
        free(block);
    }
}
END_TEST

/* Each byte at each place: a digit, or seen not to be one. */
START_TEST(test_any_byte)
{
    uint64_t random = 2;
    for (unsigned n = 1; n <= KEY_DIGITS_WIDE; n++) {
        struct key_digits mask = key_digits_mask(n);
        for (unsigned i = 0; i < KEY_DIGITS_WIDE * 256; i++) {
            char *block = make_block(&random, n);
            char *end = block + KEY_DIGITS_WIDE;
            struct key_digits before = key_digits_before(end, mask);
            unsigned at = i / 256;
            char was = block[at];
            uint64_t value;
            block[at] = (char)(i % 256);
            struct key_digits it = key_digits_before(end, mask);
            bool is_same = block[at] == was || at < KEY_DIGITS_WIDE - n;
            ck_assert_int_eq(
                key_digits_are_digits(it), read_slowly(end, n, &value));
            ck_assert_int_eq(key_digits_are_same(it, before), is_same);
            free(block);
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_values, test_any_byte};
    return run_tests("key_digits", tests, COUNT_OF(tests));
}
