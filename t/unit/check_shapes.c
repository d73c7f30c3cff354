/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/shapes: what fits, and how many bits it takes. */
#include "engine/shapes.h"

#include "lib/dist.h"
#include "unit/check_help.h"

enum { ALL = 0xffff };

static unsigned
need_get(const struct shapes_need *need, unsigned column)
{
    return need->packed[column / 8] >> (column % 8 * 8) & 0xff;
}

static unsigned
need_total(const struct shapes_need *need)
{
    unsigned total = 0;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        total += need_get(need, i);
    }
    return total;
}

static struct shapes_need
need_from(const unsigned *width)
{
    struct shapes_need need = {{0, 0}};
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        need.packed[i / 8] |= (uint64_t)width[i] << (i % 8 * 8);
    }
    return need;
}

static struct shapes_need
need_three(unsigned a, unsigned b, unsigned c)
{
    return need_from((unsigned[SHAPES_COLUMNS_MAX]){a, b, c});
}

/* The need of the next post from *post on that has a number. */
static struct shapes_need
need_of_post(const struct dist *dist, uint64_t *post, unsigned columns)
{
    struct shapes_need need = {{0, 0}};
    while (need_total(&need) == 0) {
        uint64_t value[SHAPES_COLUMNS_MAX] = {0};
        dist_values(dist, (*post)++, columns, value);
        need = shapes_need_of(value, (1U << columns) - 1);
    }
    return need;
}

/* The total of the shape for need, which must have one. A ck_assert costs
 * a system call: hot loops ask first. */
static unsigned
fit_total(const struct shapes *shapes, const struct shapes_need *need)
{
    int fit = shapes_fit(shapes, need);
    if (fit < 0) {
        ck_abort_msg("a need fits no shape");
    }
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        if (shapes->field[i][fit].width < need_get(need, i)) {
            ck_abort_msg("a column is too narrow");
        }
    }
    return shapes->total[fit];
}

static void
expect_within(const struct shapes *shapes, uint32_t columns, unsigned bits_max)
{
    shapes_verify(shapes);
    ck_assert_uint_eq(shapes->columns, columns);
    ck_assert_uint_le(shapes->total[SHAPES_N - 1], bits_max);
}

START_TEST(test_needs)
{
    uint64_t code[SHAPES_COLUMNS_MAX] = {0, 1, 2, 3, 4, 255, 256, UINT64_MAX,
        UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1};
    const unsigned bits[SHAPES_COLUMNS_MAX] = {
        0, 1, 2, 2, 3, 8, 9, 64, 64, 63};
    struct shapes_need need = shapes_need_of(code, ALL);
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        ck_assert_uint_eq(need_get(&need, i), bits[i]);
    }
    need = shapes_need_of(code, 0x180);
    ck_assert_uint_eq(need_total(&need), 128);
}
END_TEST

/* The comparison of packed widths against one column after the other. */
START_TEST(test_covers)
{
    uint64_t state = 1;
    unsigned covered = 0;
    for (int round = 0; round < 20000; round++) {
        unsigned a[SHAPES_COLUMNS_MAX], b[SHAPES_COLUMNS_MAX];
        bool segment_map = true;
        for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
            b[i] = (unsigned)random_below(&state, 65);
            a[i] = (unsigned)random_below(&state, 65 - b[i]) + b[i];
            if (random_below(&state, 40) == 0) {
                a[i] = (unsigned)random_below(&state, 65);
            }
            segment_map = segment_map && a[i] >= b[i];
        }
        struct shapes_need width = need_from(a), need = need_from(b);
        if (shapes_covers(&width, &need) != segment_map) {
            ck_abort_msg("round %d", round);
        }
        covered += segment_map;
    }
    ck_assert_uint_gt(covered, 5000);
    ck_assert_uint_lt(covered, 19000);
}
END_TEST

START_TEST(test_sample)
{
    struct shapes_sample sample;
    shapes_sample_init(&sample);
    ck_assert_uint_eq(sample.n, 0);
    for (unsigned round = 1; round <= 3; round++) {
        for (unsigned i = 0; i < 60; i++) {
            struct shapes_need need = need_three(i % 10, i / 10, 64);
            shapes_sample_add(&sample, &need);
        }
        ck_assert_uint_eq(sample.n, 60);
        for (unsigned i = 0; i < 60; i++) {
            ck_assert_uint_eq(sample.weight[i], round);
        }
    }
    struct shapes_need widest = need_three(9, 5, 64);
    ck_assert_mem_eq(&sample.widest, &widest, sizeof(widest));
    ck_assert_uint_eq(sample.others, 0);
    /* Later ones are rounded up, never down. */
    for (unsigned i = 0; sample.n < SHAPES_SAMPLE_MAX / 2; i++) {
        struct shapes_need need = need_three(64, i, 64);
        shapes_sample_add(&sample, &need);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct shapes_need odd = need_three(33, 63, 0);
        struct shapes_need even = need_three(34, 64, 0);
        shapes_sample_add(&sample, &odd);
        ck_assert_mem_eq(&sample.need[sample.n - 1], &even, sizeof(even));
        ck_assert_uint_eq(sample.weight[sample.n - 1], i + 1);
    }
}
END_TEST

/* A full sample still stands for all: the sum of what it counts is right, and
 * so is the cost, nearly. */
START_TEST(test_sample_full)
{
    enum { N = 20000 };
    uint64_t state = 2, exact = 0, counted = 0;
    struct shapes_sample sample;
    struct shapes shapes;
    struct shapes_need need, widest = {{0, 0}};
    const uint8_t hint_bits[SHAPES_COLUMNS_MAX] = {8, 8, 8, 8, 8, 8, 8, 8};
    shapes_from_hints(&shapes, hint_bits, 0xff, SHAPES_BITS_MAX);
    shapes_sample_init(&sample);
    for (unsigned i = 0; i < N; i++) {
        unsigned width[SHAPES_COLUMNS_MAX] = {0};
        for (unsigned j = 0; j < 8; j++) {
            width[j] = (unsigned)random_below(&state, 1 + i * 17 / N);
        }
        need = need_from(width);
        exact += fit_total(&shapes, &need);
        shapes_sample_add(&sample, &need);
        for (unsigned j = 0; j < 8; j++) {
            unsigned bits = need_get(&widest, j);
            width[j] = width[j] > bits ? width[j] : bits;
        }
        widest = need_from(width);
    }
    ck_assert_mem_eq(&sample.widest, &widest, sizeof(widest));
    ck_assert_uint_eq(sample.n, SHAPES_SAMPLE_MAX);
    for (unsigned i = 0; i < sample.n; i++) {
        counted += sample.weight[i];
    }
    ck_assert_uint_eq(counted + sample.others, N);
    uint64_t cost = shapes_cost(&shapes, &sample, SHAPES_BITS_MAX);
    ck_assert_uint_gt(cost, exact / 10 * 8);
    ck_assert_uint_lt(cost, exact / 10 * 12);
}
END_TEST

START_TEST(test_cost)
{
    struct shapes_sample sample;
    struct shapes shapes;
    struct shapes_need need = need_three(1, 2, 3);
    const uint8_t hint_bits[SHAPES_COLUMNS_MAX] = {8, 8, 8};
    shapes_from_hints(&shapes, hint_bits, 7, 100);
    shapes_sample_init(&sample);
    ck_assert_uint_eq(shapes_cost(&shapes, &sample, 100), 0);
    for (int i = 0; i < 5; i++) {
        shapes_sample_add(&sample, &need);
    }
    uint64_t one = fit_total(&shapes, &need);
    ck_assert_uint_eq(shapes_cost(&shapes, &sample, 100), 5 * one);
    need = need_three(64, 64, 64);
    shapes_sample_add(&sample, &need);
    ck_assert_uint_eq(shapes_cost(&shapes, &sample, 100), 5 * one + 100);
}
END_TEST

START_TEST(test_hints)
{
    uint64_t state = 3;
    for (int round = 0; round < 1000; round++) {
        uint8_t hint_bits[SHAPES_COLUMNS_MAX];
        uint32_t columns = (uint32_t)random_below(&state, ALL + 1);
        unsigned bits_max = 150 + (unsigned)random_below(&state, 91);
        unsigned most = 1 + (unsigned)random_below(&state, 65);
        unsigned sum = 0;
        struct shapes_need need = {{0, 0}};
        for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
            hint_bits[i] = (uint8_t)random_below(&state, most);
            if (columns >> i & 1) {
                need.packed[i / 8] |= (uint64_t)hint_bits[i] << (i % 8 * 8);
                sum += hint_bits[i];
            }
        }
        struct shapes shapes;
        shapes_from_hints(&shapes, hint_bits, columns, bits_max);
        expect_within(&shapes, columns, bits_max);
        if (sum <= bits_max / 2) {
            fit_total(&shapes, &need);
        }
        /* Of a few columns each alone has a place far below the widest. */
        bool few = __builtin_popcount(columns) <= 4;
        for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
            if (columns >> i & 1) {
                unsigned width[SHAPES_COLUMNS_MAX] = {0};
                width[i] = 1;
                need = need_from(width);
                unsigned total = fit_total(&shapes, &need);
                ck_assert(!few || total <= bits_max / 4);
            }
        }
    }
}
END_TEST

/* The example of the manual: narrow values are stored in few bits, and wide
 * ones up to 64 bits fit, before anything is known. */
START_TEST(test_hints_steps)
{
    struct shapes shapes;
    const uint8_t hint_bits[SHAPES_COLUMNS_MAX] = {16, 16, 8};
    shapes_from_hints(&shapes, hint_bits, 7, SHAPES_BITS_MAX);
    struct shapes_need need = need_three(1, 1, 1);
    ck_assert_uint_le(fit_total(&shapes, &need), 6);
    need = need_three(3, 0, 0);
    ck_assert_uint_le(fit_total(&shapes, &need), 4);
    need = need_three(16, 16, 8);
    ck_assert_uint_eq(fit_total(&shapes, &need), 40);
    need = need_three(20, 20, 10);
    ck_assert_uint_le(fit_total(&shapes, &need), 60);
    need = need_three(64, 64, 64);
    ck_assert_uint_eq(fit_total(&shapes, &need), 192);
}
END_TEST

START_TEST(test_train_one)
{
    struct shapes_sample sample;
    struct shapes shapes;
    struct shapes_need need = need_three(3, 0, 5);
    shapes_sample_init(&sample);
    shapes_sample_add(&sample, &need);
    shapes_train(&shapes, &sample, 7, SHAPES_BITS_MAX);
    expect_within(&shapes, 7, SHAPES_BITS_MAX);
    ck_assert_uint_eq(fit_total(&shapes, &need), 8);
    need = need_three(3, 4, 5);
    ck_assert_uint_le(fit_total(&shapes, &need), 12);
    need = need_three(4, 0, 5);
    ck_assert_uint_le(fit_total(&shapes, &need), 14);
    need = need_three(5, 8, 7);
    ck_assert_uint_eq(fit_total(&shapes, &need), 20);
    need = need_three(6, 0, 0);
    ck_assert_int_eq(shapes_fit(&shapes, &need), -1);
}
END_TEST

START_TEST(test_train_empty)
{
    struct shapes_sample sample;
    struct shapes shapes;
    shapes_sample_init(&sample);
    shapes_train(&shapes, &sample, ALL, 150);
    expect_within(&shapes, ALL, 150);
    struct shapes_need need = need_three(1, 1, 1);
    fit_total(&shapes, &need);
    shapes_train(&shapes, &sample, 0, 150);
    expect_within(&shapes, 0, 150);
    ck_assert_uint_eq(shapes.total[SHAPES_N - 1], 0);
    /* Needs that were all 0: their column has been dropped. */
    need = need_three(0, 7, 0);
    shapes_sample_add(&sample, &need);
    shapes_train(&shapes, &sample, 1, 150);
    expect_within(&shapes, 1, 150);
    need = need_three(8, 0, 0);
    ck_assert_uint_eq(fit_total(&shapes, &need), 8);
}
END_TEST

/* Nothing as wide as 64 bits in each of 16 columns goes into 150 bits: what
 * is narrow still fits, and what is wide in one column at least may. */
START_TEST(test_train_wide)
{
    struct shapes_sample sample;
    struct shapes shapes;
    unsigned width[SHAPES_COLUMNS_MAX] = {0};
    shapes_sample_init(&sample);
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        width[i] = 64;
    }
    struct shapes_need wide = need_from(width);
    shapes_sample_add(&sample, &wide);
    shapes_train(&shapes, &sample, ALL, 150);
    expect_within(&shapes, ALL, 150);
    ck_assert_uint_eq(shapes.total[SHAPES_N - 1], 150);
    ck_assert_int_eq(shapes_fit(&shapes, &wide), -1);
    struct shapes_need narrow = need_three(9, 9, 9);
    fit_total(&shapes, &narrow);
    for (unsigned i = 0; i < 12; i++) {
        memset(width, 0, sizeof(width));
        width[i] = 64;
        struct shapes_need need = need_from(width);
        shapes_sample_add(&sample, &need);
    }
    shapes_train(&shapes, &sample, ALL, 150);
    expect_within(&shapes, ALL, 150);
    for (unsigned i = 0; i < sample.n; i++) {
        if (need_total(&sample.need[i]) <= 150) {
            fit_total(&shapes, &sample.need[i]);
        }
    }
}
END_TEST

/* A random sample of n needs, all of which are left in *need. */
static void
random_sample(uint64_t *state, uint32_t columns, unsigned n,
    struct shapes_sample *sample, struct shapes_need *need)
{
    unsigned most[SHAPES_COLUMNS_MAX];
    unsigned zeros = (unsigned)random_below(state, 4);
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        most[i] = 1U << random_below(state, random_below(state, 7) + 1);
    }
    shapes_sample_init(sample);
    for (unsigned k = 0; k < n; k++) {
        unsigned width[SHAPES_COLUMNS_MAX] = {0};
        for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
            if ((columns >> i & 1) && random_below(state, zeros + 1) == 0) {
                uint64_t high = 1 + random_below(state, most[i]);
                width[i] = (unsigned)random_below(state, high + 1);
            }
        }
        need[k] = need_from(width);
        shapes_sample_add(sample, &need[k]);
    }
}

START_TEST(test_train_random)
{
    enum { NEEDS = 1500, ROUNDS = 100 };
    static struct shapes_need need[NEEDS];
    uint64_t state = 4;
    int cheaper = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t columns = 1 + (uint32_t)random_below(&state, ALL);
        columns &= round % 2 == 0 ? 0x0421 : ALL;
        unsigned bits_max = 150 + (unsigned)random_below(&state, 91);
        unsigned n = 1 + (unsigned)random_below(&state, NEEDS);
        struct shapes_sample sample;
        random_sample(&state, columns, n, &sample, need);
        struct shapes shapes, again, hinted;
        memset(&shapes, 0xff, sizeof(shapes));
        shapes_train(&shapes, &sample, columns, bits_max);
        expect_within(&shapes, columns, bits_max);
        shapes_train(&again, &sample, columns, bits_max);
        ck_assert_mem_eq(&shapes, &again, sizeof(shapes));
        bool all_fit = need_total(&sample.widest) <= bits_max;
        for (unsigned i = 0; i < n && all_fit; i++) {
            fit_total(&shapes, &need[i]);
        }
        uint8_t hint_bits[SHAPES_COLUMNS_MAX];
        for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
            hint_bits[i] = (uint8_t)need_get(&sample.widest, i);
        }
        shapes_from_hints(&hinted, hint_bits, columns, bits_max);
        uint64_t cost = shapes_cost(&shapes, &sample, bits_max);
        uint64_t before = shapes_cost(&hinted, &sample, bits_max);
        /* The slack of the widest and the points that stand for numbers yet
         * to come cost a little. */
        ck_assert_uint_le(cost, before + before / 20);
        cheaper += cost <= before;
    }
    ck_assert_int_ge(cheaper, ROUNDS - 4);
}
END_TEST

/* Mean bits that records of a distribution take under shapes trained on
 * others of it. */
static double
mean_bits(enum dist_kind kind, unsigned columns)
{
    enum { N = 20000 };
    struct dist dist = {11, kind};
    struct shapes_sample sample;
    struct shapes shapes;
    uint64_t post = 0, bits = 0;
    shapes_sample_init(&sample);
    for (unsigned i = 0; i < N; i++) {
        struct shapes_need need = need_of_post(&dist, &post, columns);
        shapes_sample_add(&sample, &need);
    }
    shapes_train(&shapes, &sample, (1U << columns) - 1, SHAPES_BITS_MAX);
    for (unsigned i = 0; i < N; i++) {
        struct shapes_need need = need_of_post(&dist, &post, columns);
        int fit = shapes_fit(&shapes, &need);
        bits += fit < 0 ? SHAPES_BITS_MAX : shapes.total[fit];
    }
    return (double)bits / N;
}

/* The figures reached are 4.7, 5.4, 7.8 and 13.8 bits. */
START_TEST(test_distributions)
{
    ck_assert_double_lt(mean_bits(DIST_MAIN, 3), 5.0);
    ck_assert_double_lt(mean_bits(DIST_HEAVY, 3), 5.7);
    ck_assert_double_lt(mean_bits(DIST_LOGNORMAL, 3), 8.2);
    ck_assert_double_lt(mean_bits(DIST_MAIN, 4), 14.4);
}
END_TEST

/* One shape for all: the narrowest that all but a few fit, or that of the
 * widest. */
START_TEST(test_single)
{
    static const struct {
        unsigned few, bits; /* so many of 1000 need 9 bits; the others 5 */
    } cases[] = {{0, 5}, {1, 5}, {10, 5}, {20, 9}, {500, 9}, {1000, 9}};
    struct shapes_need usual = need_three(5, 0, 0);
    struct shapes_need large = need_three(9, 0, 0);
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        struct shapes_sample sample;
        struct shapes shapes;
        unsigned few = cases[k].few;
        shapes_sample_init(&sample);
        for (unsigned i = 0; i < 1000; i++) {
            shapes_sample_add(&sample, i < few ? &large : &usual);
        }
        shapes_train_single(&shapes, &sample, 1, 240);
        shapes_verify(&shapes);
        ck_assert(shapes.is_single);
        ck_assert_uint_eq(shapes.total[0], cases[k].bits);
        ck_assert_uint_eq(shapes.total[SHAPES_N - 1], cases[k].bits);
        unsigned outside = cases[k].bits == 5 ? few : 0;
        ck_assert_uint_eq(shapes_cost(&shapes, &sample, 240),
            outside * 240 + (1000 - outside) * cases[k].bits);
    }
}
END_TEST

/* The same of several columns, and where not all may be had. */
START_TEST(test_single_columns)
{
    struct shapes_sample sample;
    struct shapes shapes;
    struct shapes_need need[] = {
        need_three(3, 7, 1), need_three(2, 7, 0), need_three(30, 40, 50)};
    shapes_sample_init(&sample);
    for (unsigned i = 0; i < 400; i++) {
        shapes_sample_add(&sample, &need[i % 2]);
    }
    shapes_sample_add(&sample, &need[2]);
    shapes_train_single(&shapes, &sample, 7, 200);
    expect_within(&shapes, 7, 200);
    ck_assert_uint_eq(fit_total(&shapes, &need[0]), 11);
    ck_assert_uint_eq(fit_total(&shapes, &need[1]), 11);
    ck_assert_int_eq(shapes_fit(&shapes, &need[2]), -1);
    shapes_train_single(&shapes, &sample, 7, 8);
    expect_within(&shapes, 7, 8);
    ck_assert(shapes.is_single);
    shapes_sample_init(&sample);
    shapes_train_single(&shapes, &sample, 7, 100);
    ck_assert_uint_eq(shapes.total[SHAPES_N - 1], 0);
}
END_TEST

/* A table that has been filled in some columns takes the first numbers of the
 * next one at a price that is not much above theirs. */
START_TEST(test_next_column)
{
    enum { N = 20000 };
    for (unsigned columns = 1; columns <= 3; columns++) {
        struct dist dist = {12, DIST_MAIN};
        struct shapes_sample sample;
        struct shapes shapes;
        uint64_t post = 0, before = 0, after = 0;
        shapes_sample_init(&sample);
        for (unsigned i = 0; i < N; i++) {
            struct shapes_need need = need_of_post(&dist, &post, columns);
            shapes_sample_add(&sample, &need);
        }
        shapes_train(&shapes, &sample, 0xf, SHAPES_BITS_MAX);
        for (unsigned i = 0; i < 2000; i++) {
            struct shapes_need need = need_of_post(&dist, &post, columns);
            int fit = shapes_fit(&shapes, &need);
            if (fit >= 0 && fit < SHAPES_N - 1) {
                before += shapes.total[fit];
                need.packed[0] |= UINT64_C(3) << (8 * columns);
                after += fit_total(&shapes, &need);
            }
        }
        ck_assert_uint_lt(after, before + 20 * 2000);
        ck_assert_uint_gt(after, before);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_needs, test_covers, test_sample,
        test_sample_full, test_cost, test_hints, test_hints_steps,
        test_train_one, test_train_empty, test_train_wide, test_train_random,
        test_distributions, test_next_column, test_single,
        test_single_columns};
    return run_tests("shapes", tests, COUNT_OF(tests));
}
