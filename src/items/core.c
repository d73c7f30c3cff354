/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, liveness, flush and room.
 *
 * Flush. An entry is born when a set or add makes it, or when an append,
 * replace, cas or incr changes it: then it keeps the birth of what it changed,
 * because it exists only while that was alive. Births are numbers of the same
 * sequence as cas uniques, but a client may choose a cas. A flush takes the sequence
 * number of its moment as the mark; what was born at or before it is dead. So
 * an incr that runs beside a flush cannot carry a flushed value over the mark,
 * and what is stored after the flush has a later birth. A delayed flush is a
 * time; the first operation at or after it takes the mark, under flush_lock,
 * before it looks at anything. A thread that reads that no flush is pending
 * (acquire) also sees the mark of the flush that was (release).
 *
 * Room. A store charges the budget first, then gives up entries until the
 * budget is within its limit, and allocates last: what is allocated for items
 * never passes the limit, what is counted passes it by one item a thread. A
 * bucket array that doubles comes on top until the store that made it ends,
 * which makes room again. One stripe is locked at a time, and only for a
 * bounded number of entries, so that one large item does not empty the stripe
 * it falls into. What can go wrong: everything left is pinned; then the store
 * fails for want of memory. */
#include "items/core.h"

#include "base/assert.h"

#include <stdatomic.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum {
    HASH_BITS = 64,
    ROOM_RUN_MAX = 32 /* entries given up before the next stripe's turn */
};

static const uint64_t no_flush = UINT64_MAX; /* in flush_at_s: none pending */

struct items_key
items__core_begin(
    struct items *items, const char *text, size_t len, uint64_t now_s)
{
    struct items_key key = {.text = text, .len = len};

    ASSERT(len > 0 && len <= ITEMS_KEY_MAX);
    ASSERT(now_s >= 1);
    /* acquire: where the flush is done already, its mark is seen too */
    if (now_s >=
        atomic_load_explicit(&items->flush_at_s, memory_order_acquire)) {
        pthread_mutex_lock(&items->flush_lock);
        items__core_flush_due(items, now_s);
        pthread_mutex_unlock(&items->flush_lock);
    }
    key.hash = XXH3_64bits_withSeed(text, len, items->seed);
    return key;
}

struct stripe *
items__core_stripe(struct items *items, const struct items_key *key)
{
    return &items->stripe[key->hash >> (HASH_BITS - ITEMS__STRIPES_BITS)];
}

static bool
is_dead(struct items *items, const struct entry *entry, uint64_t now_s)
{
    if (entry->expiry_s != ITEMS_NEVER && entry->expiry_s <= now_s) {
        return true;
    }
    /* acquire: a cas taken after this is above the mark */
    return entry->born <=
        atomic_load_explicit(&items->flush_mark, memory_order_acquire);
}

static void
reclaim(struct stripe *stripe, struct entry *entry)
{
    stripe->sums.reclaimed++;
    stripe->sums.expired_unfetched += !entry->fetched;
    items__stripe_unlink(stripe, entry);
}

static void
evict(struct stripe *stripe, struct entry *entry)
{
    stripe->sums.evictions++;
    stripe->sums.evicted_unfetched += !entry->fetched;
    items__stripe_unlink(stripe, entry);
}

struct entry *
items__core_find(struct items *items, struct stripe *stripe,
    const struct items_key *key, uint64_t now_s)
{
    struct entry *entry = items__stripe_find(stripe, key);

    if (entry != NULL && is_dead(items, entry, now_s)) {
        reclaim(stripe, entry);
        entry = NULL;
    }
    return entry;
}

void
items__core_use(struct stripe *stripe, struct entry *entry, uint64_t now_s)
{
    entry->used_s = now_s;
    items__stripe_use(stripe, entry);
}

const struct item *
items__core_pin(struct entry *entry)
{
    /* relaxed: the lock orders it before any look at refs == 1 */
    atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return &entry->item;
}

uint64_t
items__core_next_cas(struct items *items)
{
    /* relaxed: the number publishes nothing; see is_dead and flush */
    return 1 +
        atomic_fetch_add_explicit(&items->sequence, 1, memory_order_relaxed);
}

void
items__core_flush(struct items *items)
{
    uint64_t mark =
        atomic_load_explicit(&items->sequence, memory_order_relaxed);

    /* release: whoever reads the mark takes a later cas */
    atomic_store_explicit(&items->flush_mark, mark, memory_order_release);
    /* release: whoever sees it done sees the mark */
    atomic_store_explicit(&items->flush_at_s, no_flush, memory_order_release);
}

void
items__core_flush_due(struct items *items, uint64_t now_s)
{
    /* relaxed: flush_lock orders all that write it */
    if (now_s >=
        atomic_load_explicit(&items->flush_at_s, memory_order_relaxed)) {
        items__core_flush(items);
    }
}

/* True if it gave up something. */
static bool
give_up_run(struct items *items, struct stripe *stripe, uint64_t now_s)
{
    unsigned n = 0;

    items__stripe_lock(stripe);
    while (n < ROOM_RUN_MAX && stripe->oldest != NULL &&
        items__budget_is_over(&items->budget)) {
        if (is_dead(items, stripe->oldest, now_s)) {
            reclaim(stripe, stripe->oldest);
        } else {
            evict(stripe, stripe->oldest);
        }
        n++;
    }
    items__stripe_unlock(stripe);
    return n > 0;
}

bool
items__core_make_room(
    struct items *items, struct stripe *stripe, uint64_t now_s)
{
    struct stripe *end = items->stripe + ITEMS__STRIPES;
    unsigned n_empty = 0; /* stripes in a row that had nothing */

    while (items__budget_is_over(&items->budget)) {
        if (n_empty == ITEMS__STRIPES) {
            return false;
        }
        if (stripe == end) {
            stripe = items->stripe;
        }
        n_empty = give_up_run(items, stripe, now_s) ? 0 : n_empty + 1;
        stripe++;
    }
    return true;
}
