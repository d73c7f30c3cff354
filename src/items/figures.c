/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures: sums over the stripes; and items_verify, for tests. */
#include "items/core.h"

#include "base/assert.h"

#include <stdatomic.h>

static unsigned
log2_of(uint64_t n)
{
    unsigned power = 0;

    while (n >> (power + 1) != 0) {
        power++;
    }
    return power;
}

void
items_stats(struct items *items, struct items_stats *out)
{
    uint64_t n_buckets = 0;

    *out = (struct items_stats){0};
    for (unsigned i = 0; i < ITEMS__STRIPES; i++) {
        struct stripe *stripe = &items->stripe[i];

        items__stripe_lock(stripe);
#define X(name, text) out->name += stripe->sums.name;
        ITEMS_STATS_HELD(X)
        ITEMS_STATS_SUMS(X)
#undef X
        n_buckets += stripe->table.n_buckets;
        out->hash_bytes +=
            sizeof stripe->table + items__table_bytes(&stripe->table);
        items__stripe_unlock(stripe);
    }
    /* relaxed: a figure */
    out->direct_reclaims =
        atomic_load_explicit(&items->direct_reclaims, memory_order_relaxed);
    out->held_bytes = items__pool_bytes(&items->pool);
    out->hash_power_level = log2_of(n_buckets);
    out->limit_bytes = items__pool_limit(&items->pool);
}

void
items_stats_reset(struct items *items)
{
    for (unsigned i = 0; i < ITEMS__STRIPES; i++) {
        struct stripe *stripe = &items->stripe[i];

        items__stripe_lock(stripe);
#define X(name, text) stripe->sums.name = 0;
        ITEMS_STATS_SUMS(X)
#undef X
        items__stripe_unlock(stripe);
    }
    /* relaxed: a figure */
    atomic_store_explicit(&items->direct_reclaims, 0, memory_order_relaxed);
    items__classes_reset(&items->classes);
}

void
items_classes(struct items *items, struct items_class out[ITEMS_CLASSES])
{
    uint64_t oldest_s[ITEMS_CLASSES];

    items__pool_ages(&items->pool, oldest_s);
    for (unsigned c = 0; c < ITEMS_CLASSES; c++) {
        out[c] = (struct items_class){0};
    }
    items__classes_sum(&items->classes, out);
    for (unsigned c = 0; c < ITEMS_CLASSES; c++) {
        out[c].oldest_s = out[c].number == 0 ? 0 : oldest_s[c];
        /* relaxed: a figure */
        out[c].evicted_time_s = atomic_load_explicit(
            &items->evicted_time_s[c], memory_order_relaxed);
    }
}

unsigned
items_class_of(const struct items *items, size_t key_len, size_t value_len)
{
    return items__classes_of(&items->classes, key_len, value_len);
}

void
items_verify(struct items *items)
{
    uint64_t bytes = 0, blocks = 0;

    for (unsigned i = 0; i < ITEMS__STRIPES; i++) {
        struct stripe *stripe = &items->stripe[i];

        items__stripe_lock(stripe);
        bytes += items__stripe_verify(stripe);
        blocks += items__table_bytes(&stripe->table);
        items__stripe_unlock(stripe);
    }
    ASSERT(bytes <= items__pool_verify(&items->pool, blocks));
}
