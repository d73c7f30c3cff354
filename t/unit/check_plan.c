/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/plan: whatever the rows look like, the ranges are aligned, apart,
 * inside, and cover every row; strays and clusters are cut off, even rows are
 * not; no range is too full; widening stops at neighbours. The sort, against
 * qsort. */
#include "engine/plan.h"

#include "lib/id_family.h"
#include "unit/check_help.h"

#include <stdbool.h>
#include <stdio.h>

enum { ROWS_MAX = 5000, NO_WIDENING = 1 };

struct rows {
    size_t n;
    uint64_t row[ROWS_MAX], spare[ROWS_MAX];
};

static uint64_t
mask_of(unsigned width)
{
    return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

/* n different rows, evenly at random in base + 0..2^width - 1, beside what
 * there is. */
static void
add_even(struct rows *rows, size_t n, uint64_t base, unsigned width,
    uint64_t *random)
{
    for (size_t i = 0; i < n; i++) {
        rows->row[rows->n++] =
            base + (random_below(random, UINT64_MAX) & mask_of(width));
    }
}

/* In order, each once. */
static void
tidy(struct rows *rows)
{
    size_t n = 0;
    plan_sort(rows->row, rows->spare, rows->n);
    for (size_t i = 0; i < rows->n; i++) {
        if (n == 0 || rows->row[n - 1] != rows->row[i]) {
            rows->row[n++] = rows->row[i];
        }
    }
    rows->n = n;
}

static bool
has_row(const struct plan_range *range, uint64_t row)
{
    return row >= range->base && row - range->base <= mask_of(range->width);
}

/* What holds for every plan. */
static void
expect_sound(const struct plan *plan, const struct rows *rows, uint32_t scale,
    uint64_t base, unsigned width)
{
    size_t at = 0;
    ck_assert_uint_ge(plan->n, 1);
    ck_assert_uint_le(plan->n, PLAN_MAX);
    for (unsigned i = 0; i < plan->n; i++) {
        const struct plan_range *range = &plan->range[i];
        size_t first = at;
        ck_assert_uint_ge(range->width, 1);
        ck_assert_uint_le(range->width, width);
        ck_assert_uint_eq(range->base & mask_of(range->width), 0);
        ck_assert_uint_eq((range->base ^ base) & ~mask_of(width), 0);
        if (i > 0) {
            const struct plan_range *last = &plan->range[i - 1];
            ck_assert_uint_lt(last->base + mask_of(last->width), range->base);
        }
        while (at < rows->n && has_row(range, rows->row[at])) {
            at++;
        }
        ck_assert_uint_gt(at, first);
        ck_assert_uint_eq(range->n, (at - first) * scale);
    }
    ck_assert_uint_eq(at, rows->n);
}

static void
make(struct plan *plan, const struct rows *rows, uint32_t scale, uint64_t base,
    unsigned width, uint32_t n_max, uint32_t n_fit)
{
    plan_ranges(plan, rows->row, rows->n, scale, base, width, n_max, n_fit);
    expect_sound(plan, rows, scale, base, width);
}

static uint64_t
cost_of(const struct plan *plan)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < plan->n; i++) {
        bits += plan_bits(plan->range[i].n, plan->range[i].width);
    }
    return bits;
}

static uint32_t
fullest(const struct plan *plan)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < plan->n; i++) {
        n = plan->range[i].n > n ? plan->range[i].n : n;
    }
    return n;
}

/* Rows of some clusters and some strays in a range at a random place. */
static void
random_rows(
    struct rows *rows, uint64_t *base, unsigned *width, uint64_t *random)
{
    *width = 1 + (unsigned)random_below(random, 64);
    *base = random_below(random, UINT64_MAX) & ~mask_of(*width);
    rows->n = 0;
    unsigned clusters = 1 + (unsigned)random_below(random, 8);
    for (unsigned i = 0; i < clusters; i++) {
        unsigned inner = 1 + (unsigned)random_below(random, *width);
        uint64_t at = random_below(random, UINT64_MAX) & mask_of(*width) &
            ~mask_of(inner);
        size_t n = 1 + random_below(random, i % 2 == 0 ? 600 : 3);
        add_even(rows, n, *base + at, inner, random);
    }
    tidy(rows);
}

START_TEST(test_random)
{
    enum { ROUNDS = 1500 };
    static struct rows rows;
    struct plan plan;
    uint64_t random = 1;
    unsigned cut = 0, widened = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t base;
        unsigned width;
        uint32_t scale = 1 + (uint32_t)random_below(&random, 20);
        uint32_t most = 64U << random_below(&random, 10);
        random_rows(&rows, &base, &width, &random);
        make(&plan, &rows, scale, base, width, UINT32_MAX, NO_WIDENING);
        /* no dearer than one range */
        uint64_t differ = rows.row[0] ^ rows.row[rows.n - 1];
        unsigned whole =
            differ == 0 ? 1 : 64 - (unsigned)__builtin_clzll(differ);
        ck_assert_uint_le(cost_of(&plan), plan_bits(rows.n * scale, whole));
        cut += plan.n > 1;
        struct plan narrow = plan;
        make(&plan, &rows, scale, base, width, UINT32_MAX, most);
        ck_assert_uint_eq(plan.n, narrow.n);
        for (unsigned k = 0; k < plan.n; k++) {
            ck_assert_uint_ge(plan.range[k].width, narrow.range[k].width);
            widened += plan.range[k].width > narrow.range[k].width;
        }
    }
    ck_assert_uint_gt(cut, ROUNDS / 10);
    ck_assert_uint_gt(widened, ROUNDS / 2);
}
END_TEST

/* None has more than it may while they are few; where they are not, all are
 * covered all the same. */
START_TEST(test_limit)
{
    enum { ROUNDS = 500 };
    static struct rows rows;
    struct plan plan;
    uint64_t random = 2;
    unsigned many = 0;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t base;
        unsigned width;
        uint32_t scale = 1 + (uint32_t)random_below(&random, 20);
        random_rows(&rows, &base, &width, &random);
        uint32_t limit = 1 + (uint32_t)rows.n * scale / 6;
        limit = limit < 2 * scale ? 2 * scale : limit;
        make(&plan, &rows, scale, base, width, limit, NO_WIDENING);
        if (plan.n < PLAN_MAX / 2) {
            ck_assert_uint_le(fullest(&plan), limit);
        }
        many += plan.n >= 6;
        make(&plan, &rows, scale, base, width, 2 * scale, NO_WIDENING);
    }
    ck_assert_uint_gt(many, ROUNDS / 2);
}
END_TEST

/* One row after the other, with gaps or without, is one range. */
START_TEST(test_even_rows_stay)
{
    static const uint64_t gaps[] = {1, 2, 3, 7, 64, 3624, UINT64_C(1) << 40};
    static struct rows rows;
    struct plan plan;
    uint64_t random = 3;
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        rows.n = 4096;
        for (size_t k = 0; k < rows.n; k++) {
            rows.row[k] = (k + 5) * gaps[i];
        }
        make(&plan, &rows, 1, 0, 64, UINT32_MAX, NO_WIDENING);
        /* it begins in the middle of a power of two */
        ck_assert_uint_le(plan.n, 2);
    }
    for (unsigned width = 14; width <= 64; width++) {
        rows.n = 0;
        add_even(&rows, ROWS_MAX, 0, width, &random);
        tidy(&rows);
        make(&plan, &rows, 1, 0, width, UINT32_MAX, NO_WIDENING);
        ck_assert_uint_eq(plan.n, 1);
        ck_assert_uint_eq(plan.range[0].width, width);
    }
}
END_TEST

/* The families of ids that a store meets: a plan is never much dearer than
 * cutting even rows would be. */
START_TEST(test_families)
{
    static struct rows rows;
    struct plan plan;
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        rows.n = 4000;
        id_family_make((enum id_family)family, 7, rows.n, rows.row);
        make(&plan, &rows, 1, 0, 64, UINT32_MAX, NO_WIDENING);
        double bits = (double)cost_of(&plan) / (double)rows.n;
        printf("# %s: %u ranges, %.1f bits an id\n",
            id_family_name((enum id_family)family), plan.n, bits);
        /* 64 less log2 of the lines is the worst there is */
        ck_assert(bits < 60);
        if (family == ID_SEQUENTIAL || family == ID_STRAY) {
            ck_assert(bits < 25);
        }
    }
}
END_TEST

START_TEST(test_stray_is_cut_off)
{
    static const uint64_t strays[] = {
        0, 1, UINT64_C(1) << 63, UINT64_MAX, UINT64_C(77) << 50};
    static struct rows rows;
    struct plan plan;
    uint64_t random = 4;
    for (size_t i = 0; i < COUNT_OF(strays); i++) {
        rows.n = 0;
        add_even(&rows, 3000, UINT64_C(5) << 40, 24, &random);
        rows.row[rows.n++] = strays[i];
        tidy(&rows);
        make(&plan, &rows, 1, 0, 64, UINT32_MAX, NO_WIDENING);
        ck_assert_uint_eq(plan.n, 2);
        unsigned alone = strays[i] < UINT64_C(5) << 40 ? 0 : 1;
        ck_assert_uint_eq(plan.range[alone].n, 1);
        ck_assert(has_row(&plan.range[alone], strays[i]));
        ck_assert_uint_eq(plan.range[1 - alone].base, UINT64_C(5) << 40);
        ck_assert_uint_eq(plan.range[1 - alone].width, 24);
        /* made wider, they stay apart */
        make(&plan, &rows, 1, 0, 64, UINT32_MAX, 100000);
        ck_assert_uint_eq(plan.n, 2);
        ck_assert_uint_le(plan.range[1 - alone].width, 30);
    }
}
END_TEST

START_TEST(test_clusters_are_cut)
{
    static struct rows rows;
    struct plan plan;
    uint64_t random = 5;
    add_even(&rows, 1500, UINT64_C(1) << 40, 20, &random);
    add_even(&rows, 1500, UINT64_C(3) << 55, 22, &random);
    tidy(&rows);
    make(&plan, &rows, 1, 0, 60, UINT32_MAX, NO_WIDENING);
    ck_assert_uint_eq(plan.n, 2);
    ck_assert_uint_eq(plan.range[0].base, UINT64_C(1) << 40);
    ck_assert_uint_eq(plan.range[0].width, 20);
    ck_assert_uint_eq(plan.range[1].base, UINT64_C(3) << 55);
    ck_assert_uint_eq(plan.range[1].width, 22);
    /* small ones are not worth a table each, whatever the distance */
    rows.n = 0;
    add_even(&rows, 8, UINT64_C(1) << 40, 4, &random);
    add_even(&rows, 8, UINT64_C(3) << 55, 4, &random);
    tidy(&rows);
    make(&plan, &rows, 1, 0, 60, UINT32_MAX, NO_WIDENING);
    ck_assert_uint_eq(plan.n, 1);
}
END_TEST

/* Two clusters side by side: neither grows into the other, nor out of the
 * whole. */
START_TEST(test_widening)
{
    static struct rows rows;
    struct plan plan;
    uint64_t random = 6;
    uint64_t base = UINT64_C(9) << 32;
    add_even(&rows, 1000, base + (UINT64_C(4) << 20), 20, &random);
    tidy(&rows);
    make(&plan, &rows, 1, base, 32, UINT32_MAX, 4000);
    ck_assert_uint_eq(plan.n, 1);
    ck_assert_uint_eq(plan.range[0].base, base + (UINT64_C(4) << 20));
    ck_assert_uint_eq(plan.range[0].width, 22);
    make(&plan, &rows, 1, base, 32, UINT32_MAX, UINT32_MAX);
    ck_assert_uint_eq(plan.range[0].base, base);
    ck_assert_uint_eq(plan.range[0].width, 32);
    /* a neighbour in the way; both are wanted at 24 bits */
    add_even(&rows, 1000, base + (UINT64_C(7) << 20), 20, &random);
    tidy(&rows);
    make(&plan, &rows, 1, base, 32, 1000, 16000);
    ck_assert_uint_eq(plan.n, 2);
    ck_assert_uint_eq(plan.range[0].width, 21);
    ck_assert_uint_eq(plan.range[1].width, 21);
    /* rows that stand for more are denser: nothing to widen */
    make(&plan, &rows, 16, base, 32, 16000, 16000);
    ck_assert_uint_eq(plan.n, 2);
    ck_assert_uint_eq(plan.range[0].width, 20);
    ck_assert_uint_eq(plan.range[1].width, 20);
}
END_TEST

START_TEST(test_width)
{
    for (uint64_t n = 1; n < UINT64_C(1) << 40; n += 1 + n / 3) {
        for (uint32_t n_fit = 1; n_fit < 1 << 20; n_fit += 1 + n_fit / 2) {
            unsigned width = plan_width(n, 40, n_fit);
            double fit = (double)n;
            for (unsigned w = 40; w < width; w++) {
                fit *= 2;
            }
            for (unsigned w = 40; w > width; w--) {
                fit /= 2;
            }
            ck_assert_uint_ge(width, 1);
            ck_assert_uint_le(width, 64);
            /* as wide as n_fit rows, to a factor of two */
            ck_assert(width == 1 || fit < n_fit + 1.0);
            ck_assert(width == 64 || fit * 2 > n_fit);
        }
    }
    ck_assert_uint_eq(plan_width(0, 17, 1000), 17);
    ck_assert_uint_eq(plan_width(1, 64, 1000), 64);
}
END_TEST

START_TEST(test_bits)
{
    for (unsigned width = 1; width < 64; width++) {
        for (uint64_t n = 1; n < 1 << 24; n += 1 + n / 2) {
            uint64_t bits = plan_bits(n, width);
            ck_assert_uint_le(bits, plan_bits(n, width + 1));
            ck_assert_uint_lt(bits, plan_bits(n + n / 8 + 8, width));
            /* a tag at least, the id at most, and a head */
            ck_assert_uint_ge(bits, n * 16 + 1);
            ck_assert_uint_le(bits, n * (width < 16 ? 16 : width) + 65536);
        }
    }
}
END_TEST

static int
compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

START_TEST(test_sort)
{
    static uint64_t row[ROWS_MAX], spare[ROWS_MAX], expected[ROWS_MAX];
    static const size_t sizes[] = {0, 1, 2, 3, 100, 2047, ROWS_MAX};
    uint64_t random = 8;
    for (unsigned bits = 1; bits <= 64; bits++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            size_t n = sizes[i];
            uint64_t base = random_below(&random, UINT64_MAX);
            /* some have low bits alike */
            unsigned shift = (unsigned)random_below(&random, 65 - bits);
            for (size_t k = 0; k < n; k++) {
                uint64_t low = random_below(&random, UINT64_MAX);
                expected[k] = row[k] = (base & ~(mask_of(bits) << shift)) |
                    (low & mask_of(bits)) << shift;
            }
            qsort(expected, n, sizeof *expected, compare);
            plan_sort(row, spare, n);
            ck_assert(memcmp(row, expected, n * sizeof *row) == 0);
        }
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_random, test_limit, test_even_rows_stay,
        test_families, test_stray_is_cut_off, test_clusters_are_cut,
        test_widening, test_width, test_bits, test_sort};
    return run_tests("plan", tests, COUNT_OF(tests));
}
