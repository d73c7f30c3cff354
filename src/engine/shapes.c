/* SPDX-License-Identifier: BSD-3-Clause */

/* Choosing the 16 shapes of a set.
 *
 * Training is a weighted k-medoids problem: points are the needs of a sample,
 * centers are shapes, and a point costs the total of the cheapest center that
 * covers it. The method is the eager swap of FasterPAM (Schubert and
 * Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101,
 * 2021): one pass over the points prices a candidate against the removal of
 * every center at once, since each point knows its cheapest and its second
 * cheapest center, and the first exchange that gains is made. Candidates are
 * the needs themselves, centers with one column a bit wider or narrower, and
 * the joins (widths of both, column by column) of two centers.
 *
 * Invariants (shapes_verify): totals ascend and are the sums of the widths;
 * fields of a shape lie end to end in the order of the columns; columns out of
 * the mask have width 0; shapes of a single set are all the same.
 *
 * Happy path: sample every record of a table, train, done. center[0] is the
 * widest shape: it is never exchanged, so whatever the search does, a need of
 * the sample fits as long as the widest stays within bits_max. Where it does
 * not, it is cut down, and records with several wide columns may fit no shape.
 * The work is bounded by STEPS_MAX, not by a clock: the same sample gives the
 * same shapes. */

#include "engine/shapes.h"

#include "base/assert.h"

#include <assert.h>
#include <string.h>

enum {
    /* The places of a sample: needs as they are, needs rounded up, and
     * a random choice of the rest. */
    SAMPLE_EXACT = 96,
    SAMPLE_HASHED = SAMPLE_EXACT + 64,
    SAMPLE_CHOSEN = SHAPES_SAMPLE_MAX - SAMPLE_HASHED,
    PLACES = 2 * SHAPES_SAMPLE_MAX,

    RAISED_MAX = 32,     /* points for columns that are about to be filled */
    RAISED_EACH = 4,     /* of one need */
    RAISED_DIVISOR = 50, /* they weigh 2 % of all */
    POINTS_MAX = SHAPES_SAMPLE_MAX + RAISED_MAX + RAISED_EACH,
    WEIGHT_ONE = 1024, /* of a record, so that shares of it are integers */

    SLACK_BITS = 2,       /* in each column of the widest shape */
    UNUSED_BITS = 4,      /* room for a column that was never written */
    UNUSED_BITS_WIDE = 8, /* the same in the widest shape */
    HINT_UNKNOWN = 8,

    STEPS_MAX = 1000, /* candidates priced in one training */
    NOBODY = SHAPES_N
};

static_assert((PLACES & (PLACES - 1)) == 0, "places are masked");
static_assert(SHAPES_WIDTH_MAX < 128, "a width leaves its byte's top bit");

struct point {
    struct shapes_need need;
    uint64_t weight;
    uint16_t total;        /* of the need */
    uint16_t best, second; /* totals of the cheapest centers that cover it */
    uint8_t owner, heir;   /* these centers, or NOBODY (then bits_max) */
};

struct center {
    struct shapes_need width;
    uint16_t total;
};

struct trainer {
    uint32_t columns;
    unsigned bits_max;
    unsigned steps; /* candidates that may still be priced */
    unsigned n_points;
    struct center center[SHAPES_N]; /* [0] is the widest */
    int64_t cost;                   /* of all points */
    int64_t loss[SHAPES_N + 1];     /* what removing each would add to it */
    struct point point[POINTS_MAX];
};

static const uint64_t TOP_BITS = UINT64_C(0x8080808080808080);
static const uint64_t ONES = UINT64_C(0x0101010101010101);

static unsigned
width_get(const struct shapes_need *need, unsigned column)
{
    return need->packed[column / 8] >> (column % 8 * 8) & 0xff;
}

static void
width_set(struct shapes_need *need, unsigned column, unsigned width)
{
    unsigned shift = column % 8 * 8;
    uint64_t *word = &need->packed[column / 8];
    *word &= ~(UINT64_C(0xff) << shift);
    *word |= (uint64_t)width << shift;
}

static unsigned
word_sum(uint64_t word)
{
    const uint64_t even = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t pairs = (word & even) + (word >> 8 & even);
    return (unsigned)(pairs * UINT64_C(0x0001000100010001) >> 48);
}

static unsigned
total_of(const struct shapes_need *need)
{
    return word_sum(need->packed[0]) + word_sum(need->packed[1]);
}

static uint64_t
word_max(uint64_t a, uint64_t b)
{
    uint64_t at_least = ((a | TOP_BITS) - b) & TOP_BITS;
    uint64_t take_a = (at_least - (at_least >> 7)) | at_least;
    return (a & take_a) | (b & ~take_a);
}

static struct shapes_need
join(const struct shapes_need *a, const struct shapes_need *b)
{
    return (struct shapes_need){{word_max(a->packed[0], b->packed[0]),
        word_max(a->packed[1], b->packed[1])}};
}

/* The part of a need that concerns columns of the mask. */
static struct shapes_need
need_within(const struct shapes_need *need, uint32_t columns)
{
    struct shapes_need within = {{0, 0}};
    for (; columns != 0; columns &= columns - 1) {
        unsigned i = (unsigned)__builtin_ctz(columns);
        width_set(&within, i, width_get(need, i));
    }
    return within;
}

/* splitmix64's finisher (Steele, Lea and Flood, 2014). */
static uint64_t
mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

void
shapes_sample_init(struct shapes_sample *sample)
{
    memset(sample, 0, sizeof(*sample));
}

/* Counts need; false where it is new and n is limit. */
static bool
sample_count(struct shapes_sample *sample, const struct shapes_need *need,
    uint32_t limit)
{
    const uint64_t gamma = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = mix(need->packed[0] + gamma * need->packed[1]);
    unsigned place = (unsigned)hash & (PLACES - 1);
    while (sample->place[place] != 0) {
        unsigned i = sample->place[place] - 1U;
        if (memcmp(&sample->need[i], need, sizeof(*need)) == 0) {
            sample->weight[i]++;
            return true;
        }
        place = (place + 1) & (PLACES - 1);
    }
    if (sample->n >= limit) {
        return false;
    }
    sample->need[sample->n] = *need;
    sample->weight[sample->n] = 1;
    sample->place[place] = (uint16_t)++sample->n;
    return true;
}

void
shapes_sample_add(struct shapes_sample *sample, const struct shapes_need *need)
{
    sample->widest = join(&sample->widest, need);
    if (sample_count(sample, need, SAMPLE_EXACT)) {
        return;
    }
    struct shapes_need even;
    for (unsigned i = 0; i < 2; i++) {
        even.packed[i] = (need->packed[i] + ONES) & ~ONES;
    }
    if (sample_count(sample, &even, SAMPLE_HASHED)) {
        return;
    }
    /* Reservoir sampling (Vitter, 1985, algorithm R). */
    uint64_t at = sample->others++;
    if (at >= SAMPLE_CHOSEN) {
        at = mix(sample->others) % sample->others;
    }
    if (at < SAMPLE_CHOSEN) {
        uint32_t i = SAMPLE_HASHED + (uint32_t)at;
        sample->need[i] = *need;
        sample->n = sample->n > i ? sample->n : i + 1;
    }
}

/* How many records entry i stands for, times WEIGHT_ONE. */
static uint64_t
sample_weight(const struct shapes_sample *sample, uint32_t i)
{
    if (i < SAMPLE_HASHED) {
        return (uint64_t)sample->weight[i] * WEIGHT_ONE;
    }
    return sample->others * WEIGHT_ONE / (sample->n - SAMPLE_HASHED);
}

uint64_t
shapes_cost(const struct shapes *shapes, const struct shapes_sample *sample,
    unsigned bits_max)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < sample->n; i++) {
        int fit = shapes_fit(shapes, &sample->need[i]);
        unsigned bits = fit < 0 ? bits_max : shapes->total[fit];
        cost += sample_weight(sample, i) * bits;
    }
    return cost / WEIGHT_ONE;
}

uint64_t
shapes_cost_least(const struct shapes_sample *sample)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < sample->n; i++) {
        cost += sample_weight(sample, i) * total_of(&sample->need[i]);
    }
    return cost / WEIGHT_ONE;
}

void
shapes_weigh(const struct shapes *shapes, const struct shapes_sample *sample,
    uint64_t weight[SHAPES_N])
{
    memset(weight, 0, SHAPES_N * sizeof *weight);
    for (uint32_t i = 0; i < sample->n; i++) {
        int fit = shapes_fit(shapes, &sample->need[i]);
        if (fit >= 0) {
            weight[fit] += sample_weight(sample, i);
        }
    }
}

/* Makes *out from n (1..16) tuples of widths, in any order; the widest fills
 * the rest. */
static void
shapes_make(struct shapes *out, const struct shapes_need *width, unsigned n,
    uint32_t columns)
{
    memset(out, 0, sizeof(*out));
    out->columns = (uint16_t)columns;
    for (unsigned i = 0; i < n; i++) {
        unsigned at = i;
        unsigned total = total_of(&width[i]);
        ASSERT(total <= SHAPES_BITS_MAX);
        for (; at > 0 && out->total[at - 1] > total; at--) {
            out->width[at] = out->width[at - 1];
            out->total[at] = out->total[at - 1];
        }
        out->width[at] = width[i];
        out->total[at] = (uint8_t)total;
    }
    for (unsigned i = n; i < SHAPES_N; i++) {
        out->width[i] = out->width[n - 1];
        out->total[i] = out->total[n - 1];
    }
    for (unsigned i = 0; i < SHAPES_N; i++) {
        unsigned start = 0;
        for (unsigned j = 0; j < SHAPES_COLUMNS_MAX; j++) {
            unsigned bits = width_get(&out->width[i], j);
            out->field[j][i].start = (uint8_t)start;
            out->field[j][i].width = (uint8_t)bits;
            start += bits;
        }
    }
}

/* Takes bits from the widest columns until the total is within bits_max. */
static void
cut(struct shapes_need *width, unsigned bits_max)
{
    for (unsigned total = total_of(width); total > bits_max; total--) {
        unsigned widest = 0;
        for (unsigned i = 1; i < SHAPES_COLUMNS_MAX; i++) {
            if (width_get(width, i) > width_get(width, widest)) {
                widest = i;
            }
        }
        width_set(width, widest, width_get(width, widest) - 1);
    }
}

/* Widens columns bit by bit, all in turn, up to limit[column] each, while the
 * total is below bits_max. */
static void
widen(struct shapes_need *width, uint32_t columns, const uint8_t *limit,
    unsigned bits_max)
{
    unsigned total = total_of(width);
    bool any = true;
    while (any) {
        any = false;
        for (uint32_t left = columns; left != 0; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            unsigned bits = width_get(width, i);
            if (bits < limit[i] && total < bits_max) {
                width_set(width, i, bits + 1);
                total++;
                any = true;
            }
        }
    }
}

/* The columns of the mask at eighths / 8 of their hints, at least a bit. */
static struct shapes_need
hint_share(const uint8_t *hint_bits, uint32_t columns, unsigned eighths,
    unsigned bits_max)
{
    struct shapes_need width = {{0, 0}};
    for (; columns != 0; columns &= columns - 1) {
        unsigned i = (unsigned)__builtin_ctz(columns);
        unsigned bits = (hint_bits[i] * eighths + 7) / 8;
        bits = bits == 0 ? 1 : bits;
        bits = bits > SHAPES_WIDTH_MAX ? SHAPES_WIDTH_MAX : bits;
        width_set(&width, i, bits);
    }
    cut(&width, bits_max);
    return width;
}

void
shapes_from_hints(struct shapes *out, const uint8_t *hint_bits,
    uint32_t columns, unsigned bits_max)
{
    /* Most numbers are far smaller than the usual maximum, and a table is
     * often filled column by column: so shares of all columns and of single
     * ones. */
    static const uint8_t all[] = {1, 2, 3, 4, 6, 8, 12};
    static const uint8_t single[] = {2, 4};
    struct shapes_need width[SHAPES_N];
    uint8_t limit[SHAPES_COLUMNS_MAX];
    unsigned n = 0;

    ASSERT(bits_max <= SHAPES_BITS_MAX);
    ASSERT(columns >> SHAPES_COLUMNS_MAX == 0);
    for (; n < sizeof(all); n++) {
        width[n] = hint_share(hint_bits, columns, all[n], bits_max);
    }
    width[n] = width[n - 1];
    memset(limit, SHAPES_WIDTH_MAX, sizeof(limit));
    widen(&width[n], columns, limit, bits_max);
    n++;
    for (unsigned i = 0; i < sizeof(single); i++) {
        uint32_t left = columns;
        for (; left != 0 && n < SHAPES_N; left &= left - 1) {
            width[n++] =
                hint_share(hint_bits, left & (~left + 1), single[i], bits_max);
        }
    }
    shapes_make(out, width, n, columns);
}

static void
point_add(
    struct trainer *trainer, const struct shapes_need *need, uint64_t weight)
{
    unsigned total = total_of(need);
    if (total > trainer->bits_max || weight == 0) {
        return;
    }
    ASSERT(trainer->n_points < POINTS_MAX);
    trainer->point[trainer->n_points++] = (struct point){
        .need = *need, .weight = weight, .total = (uint16_t)total};
}

/* Heaviest first. */
static int
by_weight(const struct point *a, const struct point *b)
{
    return (a->weight < b->weight) - (a->weight > b->weight);
}

/* Narrowest first. */
static int
by_total(const struct point *a, const struct point *b)
{
    return (int)a->total - (int)b->total;
}

/* Stable, so that the result does not depend on the C library. */
static void
points_sort(struct trainer *trainer,
    int (*compare_fn)(const struct point *, const struct point *))
{
    for (unsigned i = 1; i < trainer->n_points; i++) {
        struct point point = trainer->point[i];
        unsigned at = i;
        for (; at > 0 && compare_fn(&trainer->point[at - 1], &point) > 0;
             at--) {
            trainer->point[at] = trainer->point[at - 1];
        }
        trainer->point[at] = point;
    }
}

/* The median width of a column where it is not 0. */
static unsigned
usual_width(const struct trainer *trainer, unsigned column)
{
    uint64_t weight[SHAPES_WIDTH_MAX + 1] = {0};
    uint64_t sum = 0;
    for (unsigned i = 0; i < trainer->n_points; i++) {
        const struct point *point = &trainer->point[i];
        unsigned bits = width_get(&point->need, column);
        weight[bits] += bits == 0 ? 0 : point->weight;
        sum += bits == 0 ? 0 : point->weight;
    }
    if (sum == 0) {
        return UNUSED_BITS;
    }
    unsigned median = 0;
    for (uint64_t below = 0; below * 2 < sum; median++) {
        below += weight[median + 1];
    }
    return median;
}

/* Adds point i with one and another of its columns that are 0 raised to
 * their usual widths, each time other ones. */
static void
need_raise(struct trainer *trainer, unsigned i, const unsigned *usual)
{
    unsigned left = RAISED_EACH;
    for (unsigned j = 0; j < SHAPES_COLUMNS_MAX && left > 0; j++) {
        unsigned column = (i * RAISED_EACH + j) % SHAPES_COLUMNS_MAX;
        struct shapes_need need = trainer->point[i].need;
        if ((trainer->columns >> column & 1) != 0 &&
            width_get(&need, column) == 0) {
            width_set(&need, column, usual[column]);
            point_add(trainer, &need, trainer->point[i].weight);
            left--;
        }
    }
}

/* Adds points in which a column that is 0 has its usual width: without them
 * a table that is filled column by column would have no cheap shape for any
 * record when the next column begins. Points are sorted by weight. */
static void
points_raise(struct trainer *trainer)
{
    unsigned usual[SHAPES_COLUMNS_MAX];
    unsigned n = trainer->n_points;
    uint64_t sum = 0, raised = 0;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        usual[i] = usual_width(trainer, i);
    }
    for (unsigned i = 0; i < n; i++) {
        sum += trainer->point[i].weight;
    }
    for (unsigned i = 0; i < n && trainer->n_points < n + RAISED_MAX; i++) {
        need_raise(trainer, i, usual);
    }
    for (unsigned i = n; i < trainer->n_points; i++) {
        raised += trainer->point[i].weight;
    }
    for (unsigned i = n; i < trainer->n_points; i++) {
        double share = (double)trainer->point[i].weight / (double)raised;
        trainer->point[i].weight =
            1 + (uint64_t)(share * (double)(sum / RAISED_DIVISOR));
    }
}

/* The two cheapest centers that cover a point. */
static void
point_settle(const struct trainer *trainer, struct point *point)
{
    point->best = point->second = (uint16_t)trainer->bits_max;
    point->owner = point->heir = NOBODY;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        const struct center *center = &trainer->center[i];
        if (center->total >= point->second ||
            !shapes_covers(&center->width, &point->need)) {
            continue;
        }
        if (center->total < point->best) {
            point->second = point->best;
            point->heir = point->owner;
            point->best = center->total;
            point->owner = (uint8_t)i;
        } else {
            point->second = center->total;
            point->heir = (uint8_t)i;
        }
    }
}

/* Sets center i and brings the points up to date. */
static void
center_set(
    struct trainer *trainer, unsigned i, const struct shapes_need *width)
{
    struct center *center = &trainer->center[i];
    center->width = *width;
    center->total = (uint16_t)total_of(width);
    memset(trainer->loss, 0, sizeof(trainer->loss));
    trainer->cost = 0;
    for (unsigned k = 0; k < trainer->n_points; k++) {
        struct point *point = &trainer->point[k];
        if (point->owner == i || point->heir == i ||
            (center->total < point->second &&
                shapes_covers(width, &point->need))) {
            point_settle(trainer, point);
        }
        int64_t weight = (int64_t)point->weight;
        trainer->loss[point->owner] += weight * (point->second - point->best);
        trainer->cost += weight * point->best;
    }
}

/* Puts width in the place of the center for which that gains most; false where
 * there is none. Points are sorted by total. */
static bool
try_width(struct trainer *trainer, const struct shapes_need *width)
{
    int total = (int)total_of(width);
    if (total > (int)trainer->bits_max || trainer->steps == 0) {
        return false;
    }
    trainer->steps--;
    int64_t gain = 0;
    int64_t change[SHAPES_N + 1];
    memcpy(change, trainer->loss, sizeof(change));
    for (unsigned k = 0; k < trainer->n_points; k++) {
        const struct point *point = &trainer->point[k];
        if (point->total > total) {
            break;
        }
        if (total >= point->second || !shapes_covers(width, &point->need)) {
            continue;
        }
        /* A point that comes here does not go to its heir. */
        int64_t weight = (int64_t)point->weight;
        if (total < point->best) {
            gain += weight * (point->best - total);
            change[point->owner] -= weight * (point->second - point->best);
        } else {
            change[point->owner] -= weight * (point->second - total);
        }
    }
    unsigned best = 1;
    for (unsigned i = 2; i < SHAPES_N; i++) {
        best = change[i] < change[best] ? i : best;
    }
    if (change[best] >= gain) {
        return false;
    }
    int64_t expected = trainer->cost + change[best] - gain;
    center_set(trainer, best, width);
    ASSERT(trainer->cost == expected);
    return true;
}

/* The widest shape: over all needs seen, with some room to grow and some for
 * columns that were never used. */
static struct shapes_need
widest_of(const struct trainer *trainer, const struct shapes_need *seen)
{
    uint8_t limit[SHAPES_COLUMNS_MAX];
    struct shapes_need width = *seen;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        unsigned bits = width_get(&width, i);
        bits = bits == 0 ? UNUSED_BITS_WIDE : bits + SLACK_BITS;
        limit[i] =
            (uint8_t)(bits > SHAPES_WIDTH_MAX ? SHAPES_WIDTH_MAX : bits);
    }
    cut(&width, trainer->bits_max);
    widen(&width, trainer->columns, limit, trainer->bits_max);
    return width;
}

static bool
try_neighbours(struct trainer *trainer, unsigned i)
{
    bool any = false;
    for (uint32_t left = trainer->columns; left != 0; left &= left - 1) {
        unsigned column = (unsigned)__builtin_ctz(left);
        struct shapes_need width = trainer->center[i].width;
        unsigned bits = width_get(&width, column);
        if (bits > 0) {
            width_set(&width, column, bits - 1);
            any |= try_width(trainer, &width);
        }
        width = trainer->center[i].width;
        bits = width_get(&width, column);
        if (bits < SHAPES_WIDTH_MAX) {
            width_set(&width, column, bits + 1);
            any |= try_width(trainer, &width);
        }
    }
    return any;
}

/* Exchanges centers until nothing gains or the steps are used up. */
static void
improve(struct trainer *trainer)
{
    bool any = true;
    while (any && trainer->steps > 0) {
        any = false;
        for (unsigned i = 1; i < SHAPES_N; i++) {
            any |= try_neighbours(trainer, i);
        }
        for (unsigned i = 0; i < trainer->n_points; i++) {
            any |= try_width(trainer, &trainer->point[i].need);
        }
        for (unsigned i = 2; i < SHAPES_N; i++) {
            for (unsigned j = 1; j < i; j++) {
                struct shapes_need both =
                    join(&trainer->center[i].width, &trainer->center[j].width);
                any |= try_width(trainer, &both);
            }
        }
    }
}

/* Turns centers that no point uses into steps from the heaviest need to the
 * widest shape, for numbers yet to come. */
static void
spare_fill(struct trainer *trainer, const struct shapes_need *heaviest)
{
    unsigned spare[SHAPES_N], n = 0;
    unsigned used = 0;
    for (unsigned i = 0; i < trainer->n_points; i++) {
        used |= 1U << trainer->point[i].owner;
    }
    for (unsigned i = 1; i < SHAPES_N; i++) {
        if ((used >> i & 1) == 0) {
            spare[n++] = i;
        }
    }
    const struct shapes_need *widest = &trainer->center[0].width;
    for (unsigned k = 0; k < n; k++) {
        struct shapes_need width = {{0, 0}};
        for (unsigned j = 0; j < SHAPES_COLUMNS_MAX; j++) {
            unsigned high = width_get(widest, j);
            unsigned low = width_get(heaviest, j);
            low = low < high ? low : high;
            width_set(&width, j, low + (high - low) * (k + 1) / (n + 1));
        }
        trainer->center[spare[k]].width = width;
    }
}

static void
train(struct trainer *trainer, const struct shapes_sample *sample)
{
    for (uint32_t i = 0; i < sample->n; i++) {
        struct shapes_need need =
            need_within(&sample->need[i], trainer->columns);
        point_add(trainer, &need, sample_weight(sample, i));
    }
    points_sort(trainer, by_weight);
    points_raise(trainer);
    for (unsigned i = 1; i < SHAPES_N && i <= trainer->n_points; i++) {
        trainer->center[i].width = trainer->point[i - 1].need;
        trainer->center[i].total = trainer->point[i - 1].total;
    }
    struct shapes_need heaviest = trainer->center[1].width;
    points_sort(trainer, by_total);
    for (unsigned i = 0; i < trainer->n_points; i++) {
        point_settle(trainer, &trainer->point[i]);
    }
    center_set(trainer, 0, &trainer->center[0].width);
    improve(trainer);
    spare_fill(trainer, &heaviest);
}

void
shapes_train(struct shapes *out, const struct shapes_sample *sample,
    uint32_t columns, unsigned bits_max)
{
    ASSERT(bits_max <= SHAPES_BITS_MAX);
    ASSERT(columns >> SHAPES_COLUMNS_MAX == 0);
    if (sample->n == 0) {
        uint8_t hint_bits[SHAPES_COLUMNS_MAX];
        memset(hint_bits, HINT_UNKNOWN, sizeof(hint_bits));
        shapes_from_hints(out, hint_bits, columns, bits_max);
        return;
    }

    struct trainer trainer;
    trainer.columns = columns;
    trainer.bits_max = bits_max;
    trainer.steps = STEPS_MAX;
    trainer.n_points = 0;
    memset(trainer.center, 0, sizeof(trainer.center));
    struct shapes_need seen = need_within(&sample->widest, columns);
    trainer.center[0].width = widest_of(&trainer, &seen);
    trainer.center[0].total = (uint16_t)total_of(&trainer.center[0].width);
    train(&trainer, sample);

    struct shapes_need width[SHAPES_N];
    for (unsigned i = 0; i < SHAPES_N; i++) {
        width[i] = trainer.center[i].width;
    }
    shapes_make(out, width, SHAPES_N, columns);
}

/* Value bits of the sample's records under one shape. */
static uint64_t
single_cost(const struct shapes_sample *sample,
    const struct shapes_need *width, unsigned bits_max)
{
    uint64_t cost = 0;
    unsigned total = total_of(width);
    for (uint32_t i = 0; i < sample->n; i++) {
        bool fits = shapes_covers(width, &sample->need[i]);
        cost += sample_weight(sample, i) * (fits ? total : bits_max);
    }
    return cost;
}

void
shapes_train_single(struct shapes *out, const struct shapes_sample *sample,
    uint32_t columns, unsigned bits_max)
{
    ASSERT(bits_max <= SHAPES_BITS_MAX);
    ASSERT(columns >> SHAPES_COLUMNS_MAX == 0);
    struct shapes_need best = need_within(&sample->widest, columns);
    cut(&best, bits_max);
    uint64_t least = single_cost(sample, &best, bits_max);
    uint64_t weight = 0;
    for (uint32_t i = 0; i < sample->n; i++) {
        weight += sample_weight(sample, i);
    }
    for (uint32_t i = 0; i < sample->n; i++) {
        struct shapes_need width = need_within(&sample->need[i], columns);
        unsigned total = total_of(&width);
        if (total > bits_max || weight * total >= least) {
            continue; /* even if all were to fit */
        }
        uint64_t cost = single_cost(sample, &width, bits_max);
        if (cost < least) {
            least = cost;
            best = width;
        }
    }
    shapes_make(out, &best, 1, columns);
    out->is_single = true;
}

void
shapes_verify(const struct shapes *shapes)
{
    for (unsigned i = 0; i < SHAPES_N; i++) {
        unsigned start = 0;
        for (unsigned j = 0; j < SHAPES_COLUMNS_MAX; j++) {
            struct shapes_field field = shapes->field[j][i];
            ASSERT(field.width <= SHAPES_WIDTH_MAX);
            ASSERT(field.width == width_get(&shapes->width[i], j));
            ASSERT(field.start == start);
            ASSERT(field.width == 0 || (shapes->columns >> j & 1) != 0);
            start += field.width;
        }
        ASSERT(start == shapes->total[i] && start <= SHAPES_BITS_MAX);
        ASSERT(i == 0 || shapes->total[i - 1] <= shapes->total[i]);
        ASSERT(!shapes->is_single ||
            memcmp(&shapes->width[i], &shapes->width[0],
                sizeof shapes->width[i]) == 0);
    }
}
