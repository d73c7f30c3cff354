/* SPDX-License-Identifier: BSD-3-Clause */
/* base/fold: the fold has an inverse, and ids whose low 22 bits are all zero
 * (one a second, as the job issues them) still spread over 16 shards. The ids
 * are fixed, so the bounds either hold or do not. */
#include "base/fold.h"

#include "unit/check_help.h"

#include <stdlib.h>

enum {
    ID_SHIFT = 22,
    SHARD_BITS = 4,
    SHARDS = 1 << SHARD_BITS,
    SAMPLES = 1 << 18
};

static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The inverse of an odd number modulo 2^64: each of Newton's steps doubles
 * the right bits, and an odd number is its own inverse to 3 bits. */
static uint64_t
inverse_of(uint64_t odd)
{
    uint64_t inverse = odd;

    for (int bits = 3; bits < 64; bits *= 2) {
        inverse *= 2 - odd * inverse;
    }
    return inverse;
}

static uint64_t
undo_xor_shift(uint64_t value, unsigned shift)
{
    uint64_t original = value;

    for (unsigned known = shift; known < 64; known += shift) {
        original = value ^ (original >> shift);
    }
    return original;
}

static uint64_t
unfold_id(uint64_t folded)
{
    folded = undo_xor_shift(folded, 31);
    folded *= inverse_of(UINT64_C(0x94d049bb133111eb));
    folded = undo_xor_shift(folded, 27);
    folded *= inverse_of(UINT64_C(0xbf58476d1ce4e5b9));
    return undo_xor_shift(folded, 30);
}

static void
check_both_ways(uint64_t id)
{
    ck_assert_uint_eq(unfold_id(fold_id(id)), id);
    ck_assert_uint_eq(fold_id(unfold_id(id)), id);
}

START_TEST(test_bijection)
{
    uint64_t state = 0x9e3779b97f4a7c15;

    for (uint64_t id = 0; id < SAMPLES / 4; id++) {
        check_both_ways(id);
        check_both_ways(UINT64_MAX - id);
        check_both_ways(id << ID_SHIFT);
        check_both_ways(next_random(&state));
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        check_both_ways(UINT64_C(1) << bit);
    }
}
END_TEST

/* The standard deviation of a count is 124 here. */
START_TEST(test_shards_even)
{
    const unsigned expected = SAMPLES / SHARDS;
    unsigned count[SHARDS] = {0};

    for (uint64_t i = 0; i < SAMPLES; i++) {
        count[fold_id(i << ID_SHIFT) % SHARDS]++;
    }
    for (int shard = 0; shard < SHARDS; shard++) {
        ck_assert_uint_gt(count[shard], expected - 700);
        ck_assert_uint_lt(count[shard], expected + 700);
    }
}
END_TEST

/* Turning one bit of the id turns each low bit of the fold half of the time:
 * within 45 and 55 %. */
START_TEST(test_avalanche)
{
    const unsigned samples = SAMPLES / 16;
    uint64_t turned;
    unsigned count[SHARD_BITS];

    for (unsigned bit = ID_SHIFT; bit < 64; bit++) {
        for (unsigned low = 0; low < SHARD_BITS; low++) {
            count[low] = 0;
        }
        for (uint64_t i = 0; i < samples; i++) {
            turned = fold_id(i << ID_SHIFT) ^
                fold_id((i << ID_SHIFT) ^ (UINT64_C(1) << bit));
            for (unsigned low = 0; low < SHARD_BITS; low++) {
                count[low] += (unsigned)(turned >> low) & 1;
            }
        }
        for (unsigned low = 0; low < SHARD_BITS; low++) {
            ck_assert_uint_gt(count[low], samples / 20 * 9);
            ck_assert_uint_lt(count[low], samples / 20 * 11);
        }
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("fold");
    TCase *tcase = tcase_create("fold");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_test(tcase, test_bijection);
    tcase_add_test(tcase, test_shards_even);
    tcase_add_test(tcase, test_avalanche);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
