/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans the ranges of tables by their cost.
 *
 * A table stores of an id what the line does not say: width minus log2 of the
 * lines, but at least the 16 bits of the tag. So a range that is mostly empty
 * wastes bits, and a table of its own costs a head. The plan weighs the two: it
 * takes the smallest aligned range around the rows, and cuts it in the middle
 * where the two halves, planned the same way, cost less together. Rows that lie
 * evenly cost the same either way, and stay together; a stray row far away is
 * cut off.
 *
 * Invariant (plan_verify): ranges are aligned, ascend, do not overlap, and lie
 * within the range that was to be cut. */
#include "engine/plan.h"

#include "base/assert.h"

#include <stdbool.h>
#include <string.h>

enum {
    HEAD_BITS = 512 * 8, /* a table's head and its last line's slack */
    RECORDS_A_LINE = 14, /* roughly */
    TAG_BITS = 16,       /* the least a record's id takes */
    CUT_ROWS_MIN = 64,   /* fewer are not worth a table */
    RADIX_BITS = 11,
    RADIX = 1 << RADIX_BITS
};

static unsigned
log2_floor(uint64_t n)
{
    return n < 2 ? 0 : 63 - (unsigned)__builtin_clzll(n);
}

static uint64_t
mask_of(unsigned width)
{
    return width == 0 ? 0 : UINT64_MAX >> (64 - width);
}

uint64_t
plan_bits(uint64_t n, unsigned width)
{
    /* in quarters of a bit below a power of two: linear between them */
    uint64_t lines = n / RECORDS_A_LINE + 1;
    unsigned log = log2_floor(lines);
    uint64_t quarter = ((lines << 2) >> log) - 4;
    uint64_t id = 4 * (uint64_t)width;
    uint64_t off = 4 * (uint64_t)log + quarter;
    id = id > off ? id - off : 0;
    if (id < 4 * TAG_BITS) {
        id = 4 * TAG_BITS;
    }
    return n * id / 4 + HEAD_BITS;
}

unsigned
plan_width(uint64_t n, unsigned width, uint32_t n_fit)
{
    for (; n > 0 && n < n_fit && width < 64; n *= 2) {
        if (n * 2 > n_fit) {
            break;
        }
        width++;
    }
    for (; n > n_fit && width > 1; n /= 2) {
        width--;
    }
    return width;
}

struct planner {
    struct plan *plan;
    const uint64_t *row;
    uint32_t scale;
    uint32_t n_max;
};

/* The smallest aligned range with rows first..end-1. */
static struct plan_range
tight(const struct planner *planner, size_t first, size_t end)
{
    const uint64_t *row = planner->row;
    uint64_t differ = row[first] ^ row[end - 1];
    unsigned width = differ == 0 ? 1 : log2_floor(differ) + 1;
    return (struct plan_range){.base = row[first] & ~mask_of(width),
        .width = width,
        .n = (uint32_t)(end - first) * planner->scale};
}

static size_t
lower_bound(const uint64_t *row, size_t first, size_t end, uint64_t value)
{
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (row[middle] < value) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

/* Appends the best ranges for rows first..end-1; returns their cost. */
static uint64_t
cut(struct planner *planner, size_t first, size_t end)
{
    struct plan *plan = planner->plan;
    struct plan_range whole = tight(planner, first, end);
    unsigned before = plan->n;
    bool must = whole.n > planner->n_max && whole.width > 1;
    uint64_t bits = plan_bits(whole.n, whole.width);
    ASSERT(before < PLAN_MAX);
    if (before + 1 < PLAN_MAX &&
        (must ||
            (whole.n >= CUT_ROWS_MIN && end - first > 1 &&
                bits > HEAD_BITS + (uint64_t)TAG_BITS * whole.n))) {
        uint64_t half = whole.base + (mask_of(whole.width) >> 1) + 1;
        size_t middle = lower_bound(planner->row, first, end, half);
        /* the highest bit in which two rows differ is half's */
        ASSERT(middle > first && middle < end);
        uint64_t parts = cut(planner, first, middle);
        if (plan->n < PLAN_MAX) {
            parts += cut(planner, middle, end);
            if (must || parts + bits / 32 < bits) {
                return parts;
            }
        }
    }
    plan->n = before;
    plan->range[plan->n++] = whole;
    return bits;
}

/* Widens range i as far as its density asks and its neighbours allow. */
static void
widen(struct plan *plan, unsigned i, uint64_t base, unsigned width,
    unsigned wanted)
{
    struct plan_range *range = &plan->range[i];
    while (range->width < wanted && range->width < width) {
        uint64_t mask = mask_of(range->width + 1);
        uint64_t low = range->base & ~mask;
        ASSERT(low >= base);
        if (i > 0) {
            const struct plan_range *last = &plan->range[i - 1];
            if (last->base + mask_of(last->width) >= low) {
                return;
            }
        }
        if (i + 1 < plan->n && plan->range[i + 1].base <= low + mask) {
            return;
        }
        range->base = low;
        range->width++;
    }
}

void
plan_verify(const struct plan *plan, uint64_t base, unsigned width)
{
    ASSERT(plan->n >= 1 && plan->n <= PLAN_MAX);
    for (unsigned i = 0; i < plan->n; i++) {
        const struct plan_range *range = &plan->range[i];
        uint64_t mask = mask_of(range->width);
        ASSERT(range->width >= 1 && range->width <= width);
        ASSERT((range->base & mask) == 0);
        ASSERT((range->base & ~mask_of(width)) == base);
        ASSERT(range->n >= 1);
        if (i > 0) {
            const struct plan_range *last = &plan->range[i - 1];
            ASSERT(last->base + mask_of(last->width) < range->base);
        }
    }
}

void
plan_ranges(struct plan *plan, const uint64_t *row, size_t n, uint32_t scale,
    uint64_t base, unsigned width, uint32_t n_max, uint32_t n_fit)
{
    struct planner planner = {
        .plan = plan, .row = row, .scale = scale, .n_max = n_max};
    ASSERT(n >= 1 && width >= 1 && width <= 64);
    ASSERT(((row[0] ^ base) & ~mask_of(width)) == 0);
    ASSERT(((row[n - 1] ^ base) & ~mask_of(width)) == 0);
    plan->n = 0;
    cut(&planner, 0, n);
    for (unsigned i = 0; i < plan->n; i++) {
        const struct plan_range *range = &plan->range[i];
        widen(plan, i, base, width, plan_width(range->n, range->width, n_fit));
    }
    plan_verify(plan, base, width);
}

void
plan_sort(uint64_t *row, uint64_t *spare, size_t n)
{
    uint32_t count[RADIX];
    uint64_t differ = 0;
    uint64_t *from = row;
    uint64_t *to = spare;
    for (size_t i = 1; i < n; i++) {
        differ |= row[i] ^ row[0];
    }
    for (unsigned shift = 0; shift < 64 && differ >> shift != 0;
         shift += RADIX_BITS) {
        uint32_t sum = 0;
        if ((differ >> shift & (RADIX - 1)) == 0) {
            continue;
        }
        memset(count, 0, sizeof count);
        for (size_t i = 0; i < n; i++) {
            count[from[i] >> shift & (RADIX - 1)]++;
        }
        for (unsigned i = 0; i < RADIX; i++) {
            uint32_t here = count[i];
            count[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++) {
            to[count[from[i] >> shift & (RADIX - 1)]++] = from[i];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != row) {
        memcpy(row, from, n * sizeof *row);
    }
}
