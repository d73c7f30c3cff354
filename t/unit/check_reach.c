/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/reach: loads fall as records grow, and where sizes differ; they are
 * those that lines of real records reach. */
#include "engine/reach.h"

#include "engine/line.h"
#include "unit/check_help.h"

#include <stdio.h>

/* Of one size. */
static unsigned
reach_of(unsigned bits)
{
    uint16_t size[REACH_SIZES];
    uint64_t weight[REACH_SIZES] = {[3] = 1000};
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        size[i] = (uint16_t)bits;
    }
    return reach_load(size, weight);
}

START_TEST(test_one_size)
{
    /* places in a line: what share of them is used, in percent */
    static const unsigned places[] = {1, 2, 3, 4, 5, 6};
    static const unsigned least[] = {40, 65, 78, 85, 88, 90};
    static const unsigned most[] = {52, 75, 88, 94, 97, 98};
    for (unsigned i = 0; i < COUNT_OF(places); i++) {
        unsigned bits = LINE_USABLE_BITS / places[i];
        unsigned reach = reach_of(bits < 260 ? bits : 260);
        double share = reach / 1024.0 * LINE_USABLE_BITS /
            (places[i] * (bits < 260 ? bits : 260));
        printf("# %u a line: load %.3f, %.3f of the places\n", places[i],
            reach / 1024.0, share);
        ck_assert(share * 100 > least[i] && share * 100 < most[i]);
    }
    ck_assert_uint_eq(reach_of(40), REACH_USUAL);
    ck_assert_uint_eq(reach_of(20), REACH_USUAL);
}
END_TEST

START_TEST(test_mixed)
{
    uint16_t size[REACH_SIZES];
    uint64_t weight[REACH_SIZES];
    uint64_t none[REACH_SIZES] = {0};
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        size[i] = (uint16_t)(40 + 10 * i);
        weight[i] = 7;
    }
    unsigned mixed = reach_load(size, weight);
    /* sizes that differ leave gaps */
    ck_assert_uint_lt(mixed, reach_of(115));
    ck_assert_uint_gt(mixed, 700);
    ck_assert_uint_eq(mixed, reach_load(size, weight));
    ck_assert_uint_eq(reach_load(size, none), REACH_USUAL);
    /* a few large ones among small ones change little */
    weight[0] = 100000;
    ck_assert_uint_gt(reach_load(size, weight), 950);
}
END_TEST

/* Of sizes from `bits` on, each 1 more. */
static unsigned
packed_of(unsigned bits, unsigned most)
{
    uint16_t size[REACH_SIZES];
    uint64_t weight[REACH_SIZES];
    for (unsigned i = 0; i < REACH_SIZES; i++) {
        size[i] = (uint16_t)(bits + i);
        weight[i] = REACH_SIZES - i;
    }
    return reach_packed(size, weight, most);
}

START_TEST(test_packed)
{
    enum { MOST = 980 };
    static const unsigned bits[] = {25, 40, 48, 52, 56, 70, 90, 150, 240};
    ck_assert_uint_eq(packed_of(25, MOST), MOST);
    for (size_t i = 0; i < COUNT_OF(bits); i++) {
        unsigned packed = packed_of(bits[i], MOST);
        printf("# from %u bits on: load %.3f\n", bits[i], packed / 1024.0);
        ck_assert_uint_le(packed, MOST);
        ck_assert_uint_eq(packed, packed_of(bits[i], MOST));
        /* a lower bound is kept, too */
        ck_assert_uint_le(packed_of(bits[i], 800), 800);
    }
    ck_assert_uint_gt(packed_of(48, MOST), 930);
    /* more of a line stays unused */
    ck_assert_uint_lt(packed_of(56, MOST), packed_of(48, MOST));
    ck_assert_uint_lt(packed_of(150, MOST), packed_of(56, MOST));
    ck_assert_uint_lt(packed_of(240, MOST), packed_of(150, MOST));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_one_size, test_mixed, test_packed};
    return run_tests("reach", tests, COUNT_OF(tests));
}
