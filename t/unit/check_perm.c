/* SPDX-License-Identifier: BSD-3-Clause */
/* base/perm: one to one for every width, undone by its inverse, every bit of
 * a number matters for the top ones, and what comes in regular steps is spread
 * evenly. All numbers are fixed, so the bounds either hold or do not. */
#include "base/perm.h"

#include "unit/check_help.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SEEDS = 5, W_MAX = 64, W_ALL = 16 };

/* A random number of w bits. */
static uint64_t
random_bits(uint64_t *random, unsigned w)
{
    return random_below(random, UINT64_MAX) & perm_mask(w);
}

START_TEST(test_mask)
{
    ck_assert_uint_eq(perm_mask(1), 1);
    ck_assert_uint_eq(perm_mask(33), UINT64_C(0x1ffffffff));
    ck_assert_uint_eq(perm_mask(64), UINT64_MAX);
}
END_TEST

START_TEST(test_one_to_one)
{
    static bool seen[1 << W_ALL];
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct perm perm = perm_make(seed);
        for (unsigned w = 1; w <= W_ALL; w++) {
            memset(seen, 0, sizeof seen);
            for (uint64_t x = 0; x <= perm_mask(w); x++) {
                uint64_t y = perm_apply(&perm, x, w);
                if (y > perm_mask(w) || seen[y] ||
                    perm_undo(&perm, y, w) != x) {
                    ck_abort_msg("seed %u, width %u: wrong from %u",
                        (unsigned)seed, w, (unsigned)x);
                }
                seen[y] = true;
            }
        }
    }
}
END_TEST

/* Number i of a series of numbers of w bits: both ends first. */
static uint64_t
number(uint64_t *random, unsigned w, int i)
{
    return i == 0 ? 0 : i == 1 ? perm_mask(w) : random_bits(random, w);
}

START_TEST(test_undo)
{
    enum { ROUNDS = 1000 };
    uint64_t random = 1;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct perm perm = perm_make(random_bits(&random, W_MAX));
        for (unsigned w = 1; w <= W_MAX; w++) {
            for (int i = 0; i < ROUNDS; i++) {
                uint64_t x = number(&random, w, i);
                uint64_t y = perm_apply(&perm, x, w);
                if (y > perm_mask(w) || perm_undo(&perm, y, w) != x ||
                    perm_apply(&perm, perm_undo(&perm, x, w), w) != x) {
                    ck_abort_msg(
                        "width %u: wrong from %llx", w, (unsigned long long)x);
                }
            }
        }
    }
}
END_TEST

/* Flips one bit of many numbers: each of the top bits must change at times,
 * and in a fair part one of them. */
static void
expect_bit_matters(
    const struct perm *perm, unsigned w, unsigned bit, uint64_t *random)
{
    enum { ROUNDS = 256, TOP_BITS = 6 };
    uint64_t any = 0;
    unsigned changed = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t x = random_bits(random, w);
        uint64_t differ = perm_apply(perm, x, w) ^
            perm_apply(perm, x ^ (UINT64_C(1) << bit), w);
        any |= differ >> (w - TOP_BITS);
        changed += differ >> (w - TOP_BITS) != 0;
    }
    if (any != (1 << TOP_BITS) - 1 || changed < ROUNDS / 8) {
        ck_abort_msg("width %u, bit %u: changes bits %x, one in %u of %d", w,
            bit, (unsigned)any, changed, ROUNDS);
    }
}

START_TEST(test_every_bit_matters)
{
    uint64_t random = 3;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct perm perm = perm_make(seed);
        for (unsigned w = 16; w <= W_MAX; w += 3) {
            for (unsigned bit = 0; bit < w; bit++) {
                expect_bit_matters(&perm, w, bit, &random);
            }
        }
    }
}
END_TEST

/* The share of NUMBERS numbers a step apart that find their part of the range
 * full, of BINS equal parts that take one more than their share. */
enum {
    BIN_BITS = 8,
    BINS = 1 << BIN_BITS,
    SHARE = 16,
    NUMBERS = SHARE * BINS
};

static double
crowded(const struct perm *perm, unsigned w, uint64_t first, uint64_t step)
{
    unsigned bin[BINS] = {0};
    unsigned over = 0;
    for (uint64_t i = 0; i < NUMBERS; i++) {
        uint64_t x = (first + i * step) & perm_mask(w);
        over += bin[perm_apply(perm, x, w) >> (w - BIN_BITS)]++ > SHARE;
    }
    return (double)over / NUMBERS;
}

START_TEST(test_steps_are_spread)
{
    uint64_t random = 4;
    double sum = 0, worst = 0;
    unsigned n = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct perm perm = perm_make(seed);
        for (unsigned w = 14; w <= W_MAX; w += 5) {
            for (unsigned k = 0; k + 12 <= w; k++, n++) {
                uint64_t first = random_bits(&random, w);
                double over = crowded(&perm, w, first, UINT64_C(1) << k);
                sum += over;
                worst = over > worst ? over : worst;
            }
        }
    }
    printf("# crowded out: %.4f, at most %.4f\n", sum / n, worst);
    /* by chance it were 0.073, and at most 0.1; a few steps are unlucky */
    ck_assert(sum / n < 0.08);
    ck_assert(worst < 0.6);
}
END_TEST

/* Who does not know the seed does not know where a number goes. */
START_TEST(test_seeds_differ)
{
    enum { ROUNDS = 1000 };
    uint64_t random = 5;
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct perm perm = perm_make(seed);
        struct perm other = perm_make(seed + 1);
        struct perm high = perm_make(seed | UINT64_C(1) << 63);
        unsigned same = 0;
        for (int i = 0; i < ROUNDS; i++) {
            uint64_t x = random_bits(&random, 40);
            uint64_t y = perm_apply(&perm, x, 40) >> 34;
            same += y == perm_apply(&other, x, 40) >> 34;
            same += y == perm_apply(&high, x, 40) >> 34;
        }
        /* 2000 of 64 */
        ck_assert_uint_lt(same, 100);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_mask, test_one_to_one, test_undo,
        test_every_bit_matters, test_steps_are_spread, test_seeds_differ};
    return run_tests("perm", tests, COUNT_OF(tests));
}
