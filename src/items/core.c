/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys, liveness, flush.
 *
 * An entry has a birth: the number of flushes before it. What was born before
 * the last flush is dead. A set or an add gives the entry a new birth; an
 * append, replace, cas or incr keeps the birth of the entry it changes, because
 * it could not be there without it. The birth is read under the stripe's lock,
 * after the old entry was judged by an earlier look at the same number. So an
 * incr beside a flush cannot carry a flushed value over it.
 *
 * A delayed flush is a time. The first operation at or after it counts the
 * flush, under flush_lock, before it looks at anything. A thread that reads
 * that no flush is pending (acquire) also sees the count of the flush that was
 * (release). */
#include "items/core.h"

#include "base/assert.h"

#include <stdatomic.h>

enum { HASH_BITS = 64 };

static const uint64_t no_flush = UINT64_MAX; /* in flush_at_s: none pending */

void
items__core_tick(struct items *items, uint64_t now_s)
{
    ASSERT(now_s >= 1 && now_s < UINT32_MAX);
    /* acquire: where the flush is done already, its count is seen too */
    if (now_s >=
        atomic_load_explicit(&items->flush_at_s, memory_order_acquire)) {
        mutex_lock(&items->flush_lock);
        items__core_flush_due(items, now_s);
        mutex_unlock(&items->flush_lock);
    }
}

struct items_key
items__core_begin(
    struct items *items, const char *text, size_t len, uint64_t now_s)
{
    struct items_key key = {.text = text, .len = len};

    ASSERT(len > 0 && len <= ITEMS_KEY_MAX);
    items__core_tick(items, now_s);
    key.hash = items__hash(text, len, items->seed);
    return key;
}

struct stripe *
items__core_stripe(struct items *items, const struct items_key *key)
{
    return &items->stripe[key->hash >> (HASH_BITS - ITEMS__STRIPES_BITS)];
}

static bool
is_expired(const struct entry *entry, uint64_t now_s)
{
    return entry->expiry_s != ITEMS_NEVER && entry->expiry_s <= now_s;
}

uint32_t
items__core_birth(struct items *items)
{
    /* acquire: who sees a flush is in all that follows behind it */
    return atomic_load_explicit(&items->flushes, memory_order_acquire);
}

bool
items__core_reclaim(struct items *items, struct stripe *stripe,
    struct entry *entry, uint64_t now_s)
{
    unsigned class_;
    bool unread = (entry->marks & ITEMS__FETCHED) == 0;

    if (!is_expired(entry, now_s) && entry->born == items__core_birth(items)) {
        return false;
    }
    mutex_assert_held(&stripe->lock);
    class_ = items__stripe_class(stripe, entry);
    stripe->sums.reclaimed++;
    stripe->sums.expired_unfetched += unread;
    ITEMS__COUNT(stripe, class_, reclaimed, 1);
    ITEMS__COUNT(stripe, class_, expired_unfetched, unread);
    items__stripe_unlink(stripe, entry);
    return true;
}

struct entry *
items__core_find(struct items *items, struct stripe *stripe,
    const struct items_key *key, uint64_t now_s)
{
    struct entry *entry = items__stripe_find(stripe, key);
    bool expired = entry != NULL && is_expired(entry, now_s);

    if (entry != NULL && items__core_reclaim(items, stripe, entry, now_s)) {
        stripe->sums.get_expired += expired;
        stripe->sums.get_flushed += !expired;
        entry = NULL;
    }
    return entry;
}

void
items__core_use(struct entry *entry, uint64_t now_s)
{
    entry->used_s = (uint32_t)now_s;
    if (entry->heat < ITEMS__HEAT_MAX) {
        entry->heat++;
    }
}

void
items__core_expire(struct items *items, struct entry *entry, uint64_t expiry_s)
{
    /* relaxed: a hint for items_tend; one that comes late is seen by its next
     * look */
    uint64_t first =
        atomic_load_explicit(&items->first_expiry_s, memory_order_relaxed);

    entry->expiry_s = expiry_s < UINT32_MAX ? (uint32_t)expiry_s : UINT32_MAX;
    if (expiry_s == ITEMS_NEVER) {
        return;
    }
    while (expiry_s < first &&
        !atomic_compare_exchange_weak_explicit(&items->first_expiry_s, &first,
            expiry_s, memory_order_relaxed, memory_order_relaxed)) {
    }
}

const struct item *
items__core_pin(struct entry *entry)
{
    /* relaxed: the lock orders it before any look at refs == 1 */
    uint16_t refs =
        atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);

    ASSERT(refs < UINT16_MAX);
    return &entry->item;
}

bool
items__core_is_alone(struct entry *entry)
{
    /* acquire: the reads of whoever unpinned it last are over */
    return atomic_load_explicit(&entry->refs, memory_order_acquire) == 1;
}

uint64_t
items__core_next_cas(struct items *items)
{
    /* relaxed: the number publishes nothing */
    return 1 +
        atomic_fetch_add_explicit(&items->sequence, 1, memory_order_relaxed);
}

void
items__core_flush(struct items *items)
{
    mutex_assert_held(&items->flush_lock);
    /* release: as with flush_at_s; flush_lock orders those who write */
    atomic_fetch_add_explicit(&items->flushes, 1, memory_order_release);
    /* release: whoever sees it done sees the count */
    atomic_store_explicit(&items->flush_at_s, no_flush, memory_order_release);
}

void
items__core_flush_due(struct items *items, uint64_t now_s)
{
    mutex_assert_held(&items->flush_lock);
    /* relaxed: flush_lock orders all that write it */
    if (now_s >=
        atomic_load_explicit(&items->flush_at_s, memory_order_relaxed)) {
        items__core_flush(items);
    }
}
