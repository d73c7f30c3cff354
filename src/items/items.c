/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of memcached items: its life, and the operations that need no new
 * value.
 *
 *   look.c, store.c, arith.c, delete.c  the other operations
 *   op.c                                what those share that make entries
 *   core.c                              what is alive
 *   stripe.c, table.c                   what is linked
 *   pool.c, segment.c, loan.c           the memory
 *   room.c                              what stays when memory is short
 *   walk.c, figures.c                   looks at all items
 *
 * An operation hashes the key, locks its stripe (one of 64, so threads seldom
 * meet), finds, acts, unlocks. A get returns a pin: the value stays valid and
 * unchanged while others replace, delete or evict the item; the last to let go
 * gives the memory back. Only items_create can fail. */
#include "items/items.h"

#include "base/assert.h"
#include "base/err.h"
#include "items/core.h"

#include <stdatomic.h>

enum {
    LONG_AGO_S = 1 /* expired, whatever the time is now */
};

static const uint64_t item_bytes_least = 1024;
static const uint64_t item_bytes_most = UINT64_C(1) << 30;

struct items *
items_create(const struct items_config *config)
{
    struct items *items = alloc_zeroed(config->alloc, sizeof *items);

    ASSERT(config->item_bytes_max >= item_bytes_least);
    ASSERT(config->item_bytes_max <= item_bytes_most);
    if (items == NULL) {
        return NULL;
    }
    items->seed = config->seed;
    items->item_bytes_max = config->item_bytes_max;
    items->alloc = config->alloc;
    mutex_init(&items->flush_lock);
    items__pool_init(&items->pool, config);
    items__classes_init(&items->classes, config->item_bytes_max);
    mutex_lock(&items->flush_lock);
    items__core_flush(items);
    mutex_unlock(&items->flush_lock);
    atomic_init(&items->first_expiry_s, UINT64_MAX);
    for (unsigned i = 0; i < ITEMS__STRIPES; i++) {
        items__stripe_init(
            &items->stripe[i], i, &items->pool, &items->classes, config->seed);
    }
    return items;
}

void
items_destroy(struct items **items)
{
    struct items *gone = *items;

    *items = NULL;
    if (gone == NULL) {
        return;
    }
    for (unsigned i = 0; i < ITEMS__STRIPES; i++) {
        items__stripe_fini(&gone->stripe[i]);
    }
    items__pool_fini(&gone->pool);
    mutex_fini(&gone->flush_lock);
    alloc_free(gone->alloc, gone, sizeof *gone);
}

void
items_unpin(struct items *items, const struct item *item)
{
    char *start = (char *)(uintptr_t)item - offsetof(struct entry, item);

    items__pool_release(&items->pool, (struct entry *)(void *)start);
}

bool
items_has(struct items *items, const char *key, size_t key_len, uint64_t now_s)
{
    struct items_key k = items__core_begin(items, key, key_len, now_s);
    struct stripe *stripe = items__core_stripe(items, &k);
    bool has;

    items__stripe_lock(stripe);
    has = items__core_find(items, stripe, &k, now_s) != NULL;
    items__stripe_unlock(stripe);
    return has;
}

void
items_flush(struct items *items, uint64_t at_s, uint64_t now_s)
{
    mutex_lock(&items->flush_lock);
    items__core_flush_due(items, now_s);
    if (at_s <= now_s) {
        items__core_flush(items);
    } else {
        /* release: as in items__core_flush, for a flush done just now */
        atomic_store_explicit(&items->flush_at_s, at_s, memory_order_release);
    }
    mutex_unlock(&items->flush_lock);
}

void
items_set_witness(struct items *items, struct items_witness *witness)
{
    items->witness = witness;
}

void
items_set_limit(struct items *items, uint64_t limit_bytes)
{
    items__pool_set_limit(&items->pool, limit_bytes);
}

uint64_t
items_expiry(int64_t exptime, uint64_t now_s, int64_t unix_now_s)
{
    uint64_t expiry_s, ahead_s;

    if (exptime == 0) {
        return ITEMS_NEVER;
    }
    if (exptime < 0) {
        return LONG_AGO_S;
    }
    if (exptime <= ITEMS_RELATIVE_MAX_S) {
        ahead_s = (uint64_t)exptime;
    } else if (exptime <= unix_now_s) {
        return LONG_AGO_S;
    } else {
        ahead_s = (uint64_t)exptime - (uint64_t)unix_now_s;
    }
    if (__builtin_add_overflow(now_s, ahead_s, &expiry_s)) {
        return UINT64_MAX;
    }
    return expiry_s;
}
