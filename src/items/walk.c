/* SPDX-License-Identifier: BSD-3-Clause */
/* Walks over all items, some buckets at a time: items_each shows them,
 * items_tend gives up what is dead.
 *
 * A cursor is a stripe and a bucket. Buckets are visited in ascending order.
 * While a table grows, an entry only moves to a bucket of a higher number, so
 * none is passed over; what is cleaned or changed meanwhile keeps its bucket.
 * The highest bucket may get entries of one visited before: an item can be met
 * again.
 *
 * Tending is in passes. A pass notes the earliest expiry that is still to come;
 * stores meanwhile do the same (items__core_expire). The next pass begins when
 * that time has come, or after a flush. */
#include "items/core.h"

#include "base/assert.h"

#include <stdatomic.h>

enum {
    CURSOR_BITS = 48,   /* of the bucket; the stripe is above */
    TEND_CLEANINGS = 8, /* segments, where the limit has been lowered */
    BUCKETS_A_LOCK = 16 /* looked at before the stripe is unlocked */
};

typedef void visit_fn(
    void *context, struct stripe *stripe, struct entry *entry);

/* Visits about n_max entries from cursor on; returns the next cursor, 0 at the
 * end. An entry may be unlinked by the visit. */
static uint64_t
walk(struct items *items, uint64_t cursor, unsigned n_max, visit_fn *visit,
    void *context)
{
    uint64_t number = cursor >> CURSOR_BITS;
    uint64_t bucket = cursor & ((UINT64_C(1) << CURSOR_BITS) - 1);
    unsigned n = 0;

    ASSERT(number < ITEMS__STRIPES);
    while (number < ITEMS__STRIPES && n < n_max) {
        struct stripe *stripe = &items->stripe[number];
        bool at_end;

        items__stripe_lock(stripe);
        for (unsigned i = 0;
             i < BUCKETS_A_LOCK && bucket < stripe->table.n_buckets; i++) {
            struct entry *at = items__table_bucket(&stripe->table, bucket);

            while (at != NULL) {
                struct entry *next = at->next;

                visit(context, stripe, at);
                at = next;
                n++;
            }
            bucket++;
            n++;
        }
        at_end = bucket >= stripe->table.n_buckets;
        items__stripe_unlock(stripe);
        if (at_end) {
            number++;
            bucket = 0;
        }
    }
    ASSERT(bucket >> CURSOR_BITS == 0);
    return number == ITEMS__STRIPES ? 0 : number << CURSOR_BITS | bucket;
}

struct showing {
    struct items *items;
    uint64_t now_s;
    items_each_fn *fn;
    void *context;
};

static void
show(void *context, struct stripe *stripe, struct entry *entry)
{
    const struct showing *showing = context;
    struct items_seen seen = {.key = entry->bytes,
        .key_len = entry->key_len,
        .item = &entry->item,
        .expiry_s = entry->expiry_s,
        .used_s = entry->used_s,
        .was_fetched = (entry->marks & ITEMS__FETCHED) != 0,
        .class_ = items__stripe_class(stripe, entry),
        .bytes = items__classes_bytes(entry->key_len, entry->item.value_len)};

    if (!items__core_reclaim(showing->items, stripe, entry, showing->now_s) &&
        !entry->is_hidden) {
        showing->fn(showing->context, &seen);
    }
}

uint64_t
items_each(struct items *items, uint64_t cursor, unsigned n_max,
    uint64_t now_s, items_each_fn *fn, void *context)
{
    struct showing showing = {
        .items = items, .now_s = now_s, .fn = fn, .context = context};

    items__core_tick(items, now_s);
    return walk(items, cursor, n_max, show, &showing);
}

struct tending {
    struct items *items;
    uint64_t now_s;
};

static void
tend(void *context, struct stripe *stripe, struct entry *entry)
{
    const struct tending *tending = context;
    struct items *items = tending->items;
    unsigned class_ = items__stripe_class(stripe, entry);
    uint64_t expiry_s = entry->expiry_s;

    mutex_assert_held(&stripe->lock);
    stripe->sums.crawler_items_checked++;
    ITEMS__COUNT(stripe, class_, crawler_items_checked, 1);
    if (items__core_reclaim(items, stripe, entry, tending->now_s)) {
        stripe->sums.crawler_reclaimed++;
        ITEMS__COUNT(stripe, class_, crawler_reclaimed, 1);
    } else if (expiry_s != ITEMS_NEVER && expiry_s < items->tend.first_s) {
        items->tend.first_s = expiry_s;
    }
}

/* Whether a pass should begin; begins it. */
static bool
begins(struct items *items, uint64_t now_s)
{
    uint32_t flushes = items__core_birth(items);
    /* relaxed: what comes late is seen by the next look */
    uint64_t first =
        atomic_load_explicit(&items->first_expiry_s, memory_order_relaxed);

    if (now_s < first && flushes == items->tend.flushes) {
        return false;
    }
    /* relaxed: whoever stores an earlier one from here on is noted, and what
     * was stored before is met by the pass, under its stripe's lock */
    atomic_store_explicit(
        &items->first_expiry_s, UINT64_MAX, memory_order_relaxed);
    items->tend.first_s = UINT64_MAX;
    items->tend.flushes = flushes;
    return true;
}

/* What the pass has met counts as what stores have noted since. */
static void
end_pass(struct items *items)
{
    /* relaxed: as in items__core_expire */
    uint64_t first =
        atomic_load_explicit(&items->first_expiry_s, memory_order_relaxed);
    uint64_t met = items->tend.first_s;

    while (met < first &&
        !atomic_compare_exchange_weak_explicit(&items->first_expiry_s, &first,
            met, memory_order_relaxed, memory_order_relaxed)) {
    }
}

bool
items_tend(struct items *items, uint64_t now_s, unsigned n_max)
{
    struct tending tending = {.items = items, .now_s = now_s};
    struct items_effort effort = {.n_gentle = TEND_CLEANINGS};

    items__core_tick(items, now_s);
    while (effort.n < TEND_CLEANINGS && items__pool_is_over(&items->pool) &&
        items__room_make(items, &effort, now_s)) {
    }
    if (items->tend.cursor == 0 && !begins(items, now_s)) {
        return effort.n == TEND_CLEANINGS;
    }
    items->tend.cursor =
        walk(items, items->tend.cursor, n_max, tend, &tending);
    if (items->tend.cursor == 0) {
        end_pass(items);
        return false;
    }
    return true;
}
