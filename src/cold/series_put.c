/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes series of numbers: counts classes, plans the tree, divides.
 *
 * The cheapest tree over an ordered alphabet is found by dynamic programming
 * over intervals of classes (Gilbert and Moore, "Variable-length binary
 * encodings", 1959), where a split is looked for only between those of the two
 * shorter intervals (Knuth, "Optimum binary search trees", 1971). With planes
 * that may be written sparsely the cost of a node is no longer just its size,
 * so that bound is a rule of thumb here: the tree may miss the best by a hair,
 * and is a tree in any case. */
#include "cold/series_priv.h"

#include "base/assert.h"
#include "cold/rice.h"

#include <string.h>

struct plan {
    bool is_rice;
    unsigned k;
    uint64_t cost_bits;
    struct series_classes classes;
    uint32_t before[SERIES_CLASSES + 1]; /* numbers of the first i classes */
};

enum { SPARSE_HEAD_BITS = 18, NODE_HEAD_BITS = 2 };

/* What a plane of so many zeros and ones is likely to take. */
static uint32_t
plane_cost(uint32_t zeros, uint32_t ones)
{
    uint32_t all = zeros + ones;
    uint32_t rare = zeros < ones ? zeros : ones;
    uint32_t sparse, mean;
    unsigned k;

    if (rare > all * 3 / 10) {
        return all + NODE_HEAD_BITS;
    }
    mean = (all - rare) / rare;
    k = bits_width(mean * 11 / 16);
    k -= k > 0;
    /* a gap is not a multiple of 2^k: half of what is cut off is saved */
    sparse = rare * (k + 1) + ((all - rare) >> k) -
        ((rare >> 1) - (rare >> (k + 1))) + SPARSE_HEAD_BITS;
    return (sparse < all ? sparse : all) + NODE_HEAD_BITS;
}

static void
plan_interval(
    struct series_work *work, const struct plan *plan, unsigned i, unsigned j)
{
    const uint32_t *before = plan->before;
    unsigned first = j - i == 2 ? i + 1 : work->split[i][j - 1];
    unsigned last = j - i == 2 ? i + 1 : work->split[i + 1][j];
    uint32_t best = UINT32_MAX;
    unsigned best_at = first;

    for (unsigned t = first; t <= last; t++) {
        uint32_t cost = work->cost[i][t] + work->cost[t][j] +
            plane_cost(before[t] - before[i], before[j] - before[t]);
        if (cost < best) {
            best = cost;
            best_at = t;
        }
    }
    work->cost[i][j] = best + series__split_bits(j - i);
    work->split[i][j] = (uint8_t)best_at;
}

static void
count_classes(struct plan *plan, const uint64_t *value, size_t n)
{
    uint32_t count[2][SERIES_CLASSES] = {{0}};
    struct series_classes *classes = &plan->classes;

    for (size_t i = 0; i < n; i++) {
        count[i % 2][bits_width(value[i])]++;
    }
    classes->n = 0;
    plan->before[0] = 0;
    for (unsigned c = 0; c < SERIES_CLASSES; c++) {
        uint32_t sum = count[0][c] + count[1][c];

        if (sum > 0) {
            plan->before[classes->n + 1] = plan->before[classes->n] + sum;
            classes->of[classes->n++] = (uint8_t)c;
        }
    }
}

/* Cost of the tree for what has been counted. */
static uint64_t
plan_tree(struct series_work *work, const struct plan *plan)
{
    const struct series_classes *classes = &plan->classes;
    uint64_t rest = 0;

    for (unsigned i = 0; i < classes->n; i++) {
        work->cost[i][i + 1] = 0;
        rest += (uint64_t)(plan->before[i + 1] - plan->before[i]) *
            series__rest_bits(classes->of[i]);
    }
    for (unsigned len = 2; len <= classes->n; len++) {
        for (unsigned i = 0; i + len <= classes->n; i++) {
            plan_interval(work, plan, i, i + len);
        }
    }
    return rest + work->cost[0][classes->n] + 2 * SERIES_CLASS_BITS +
        (unsigned)(classes->of[classes->n - 1] - classes->of[0]);
}

static void
make_plan(struct series_work *work, struct plan *plan, const uint64_t *value,
    size_t n, unsigned favour)
{
    uint64_t tree_bits;

    ASSERT(n >= 1 && n <= SERIES_MAX);
    count_classes(plan, value, n);
    ASSERT(plan->classes.n >= 1 && plan->before[plan->classes.n] == n);
    tree_bits = plan_tree(work, plan);
    plan->k = rice_choose(value, n, &plan->cost_bits);
    plan->cost_bits += SERIES_K_BITS;
    plan->is_rice = plan->cost_bits <= tree_bits + tree_bits / 100 * favour;
    if (!plan->is_rice) {
        plan->cost_bits = tree_bits;
    }
}

uint64_t
series_cost(struct series_work *work, const uint64_t *value, size_t n)
{
    struct plan plan;

    if (n == 0) {
        return 0;
    }
    make_plan(work, &plan, value, n, 0);
    return plan.cost_bits + 1;
}

static void
put_classes(struct bits_out *out, const struct series_classes *classes)
{
    unsigned first = classes->of[0];
    unsigned last = classes->of[classes->n - 1];
    unsigned next = 1;

    ASSERT(first <= last && last < SERIES_CLASSES);
    bits_put(out, first, SERIES_CLASS_BITS);
    bits_put(out, last - first, SERIES_CLASS_BITS);
    for (unsigned c = first + 1; c < last; c++) {
        bits_put(out, classes->of[next] == c, 1);
        next += classes->of[next] == c;
    }
}

/* Writes the bits value >= least as they are. */
static void
put_plane(
    struct bits_out *out, const uint64_t *value, size_t n, uint64_t least)
{
    size_t i = 0;

    for (; i + 64 <= n; i += 64) {
        uint64_t word = 0;

        for (unsigned b = 0; b < 64; b++) {
            word |= (uint64_t)(value[i + b] >= least) << b;
        }
        bits_put(out, word, 64);
    }
    for (; i < n; i++) {
        bits_put(out, value[i] >= least, 1);
    }
}

/* The gaps between those with value >= least, or between the others; how many
 * there are. */
static size_t
find_gaps(struct series_work *work, const uint64_t *value, size_t n,
    uint64_t least, bool is_one_rare)
{
    size_t n_rare = 0;
    size_t next = 0;

    for (size_t i = 0; i < n; i++) {
        work->place[n_rare] = (uint16_t)i;
        n_rare += (value[i] >= least) == is_one_rare;
    }
    for (size_t i = 0; i < n_rare; i++) {
        work->gap[i] = work->place[i] - next;
        next = (size_t)work->place[i] + 1;
    }
    return n_rare;
}

/* Writes the plane as gaps where that is shorter. */
static void
put_node_plane(struct series_work *work, struct bits_out *out,
    const uint64_t *value, size_t n, size_t zeros, uint64_t least)
{
    bool is_one_rare = zeros > n / 2;
    size_t rare = is_one_rare ? n - zeros : zeros;
    unsigned count_bits = bits_width(n);

    if (rare * 3 <= n) {
        uint64_t cost;
        size_t found = find_gaps(work, value, n, least, is_one_rare);
        unsigned k = rice_choose(work->gap, found, &cost);

        ASSERT(found == rare && k < 1 << SERIES_PLACE_K_BITS);
        if (cost + 1 + count_bits + SERIES_PLACE_K_BITS < n) {
            bits_put(out, 1, 1);
            bits_put(out, is_one_rare, 1);
            bits_put(out, rare, count_bits);
            bits_put(out, k, SERIES_PLACE_K_BITS);
            rice_put(out, work->gap, rare, k);
            return;
        }
    }
    bits_put(out, 0, 1);
    put_plane(out, value, n, least);
}

/* Those below least to the front of to, the others behind, both in order. */
static void
divide(const uint64_t *value, size_t n, size_t zeros, uint64_t least,
    uint64_t *to)
{
    size_t ones = zeros; /* where the next one goes */

    ASSERT(zeros <= n);
    for (size_t i = 0; i < n; i++) {
        size_t is_one = value[i] >= least;
        size_t zero_at = i + zeros - ones;

        /* without a branch: it would be guessed wrong half of the time */
        to[zero_at ^ ((zero_at ^ ones) & -is_one)] = value[i];
        ones += is_one;
    }
    ASSERT(ones == n); /* as many as were counted */
}

/* A node that waits: which classes it has and where its numbers stand. */
struct waiting {
    uint8_t first, end;
    bool side; /* in which array */
    size_t from;
};

static void
put_tree(struct series_work *work, struct bits_out *out,
    const struct plan *plan, const uint64_t *value)
{
    struct waiting stack[SERIES_CLASSES];
    const uint8_t *class = plan->classes.of;
    size_t depth = 0;
    bool is_root = true;

    stack[depth++] = (struct waiting){0, (uint8_t)plan->classes.n, false, 0};
    while (depth > 0) {
        struct waiting node = stack[--depth];
        const uint64_t *from =
            is_root ? value : work->part[node.side] + node.from;
        size_t n = plan->before[node.end] - plan->before[node.first];

        ASSERT(node.first < node.end && n > 0);
        is_root = false;
        if (node.end - node.first == 1) {
            unsigned width = series__rest_bits(class[node.first]);

            for (size_t i = 0; width > 0 && i < n; i++) {
                bits_put(out, from[i] & bits_mask(width), width);
            }
            continue;
        }
        unsigned leaves = (unsigned)(node.end - node.first);
        uint8_t split = work->split[node.first][node.end];
        size_t zeros = plan->before[split] - plan->before[node.first];
        uint64_t least = series__least(class[split]);

        ASSERT(split > node.first && split < node.end);
        ASSERT(depth + 2 <= SERIES_CLASSES && zeros > 0 && zeros < n);
        bits_put(out, (uint64_t)(split - node.first - 1),
            series__split_bits(leaves));
        put_node_plane(work, out, from, n, zeros, least);
        divide(from, n, zeros, least, work->part[!node.side] + node.from);
        stack[depth++] =
            (struct waiting){split, node.end, !node.side, node.from + zeros};
        stack[depth++] =
            (struct waiting){node.first, split, !node.side, node.from};
    }
}

void
series_put(struct series_work *work, struct bits_out *out,
    const uint64_t *value, size_t n, unsigned favour)
{
    struct plan plan;

    if (n == 0) {
        return;
    }
    make_plan(work, &plan, value, n, favour);
    bits_put(out, plan.is_rice, 1);
    if (plan.is_rice) {
        bits_put(out, plan.k, SERIES_K_BITS);
        rice_put(out, value, n, plan.k);
        return;
    }
    put_classes(out, &plan.classes);
    put_tree(work, out, &plan, value);
}
