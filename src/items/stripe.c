/* SPDX-License-Identifier: BSD-3-Clause */
/* One part of the items: hash table, list by last use, reference counts.
 *
 * Invariants, under the stripe's lock: the table and the list hold the same
 * entries; a linked entry has at least the table's reference; the key of an
 * entry is in the table once (twice only inside items__stripe_link).
 *
 * A store makes the new entry first and takes the old one out after it, so
 * that a failing allocation (uthash's table, or a bucket array that doubles)
 * changes nothing. The table is allocated with a stripe's first item and
 * freed with its last; bucket arrays do not shrink in between. The charge for
 * an entry is refunded when it is freed, not when it is unlinked: a pin may
 * hold it longer. */
#include "items/stripe.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <string.h>

size_t
items__entry_bytes(size_t key_len, size_t room)
{
    return sizeof(struct entry) + key_len + room;
}

char *
items__entry_value(struct entry *entry)
{
    return entry->bytes + entry->key_len;
}

struct entry *
items__entry_create(
    struct budget *budget, const struct items_key *key, size_t room)
{
    size_t bytes = items__entry_bytes(key->len, room);
    struct entry *entry = alloc_zeroed(budget->alloc, bytes);

    ASSERT(key->len > 0 && key->len <= ITEMS_KEY_MAX);
    if (entry == NULL) {
        return NULL;
    }
    memcpy(entry->bytes, key->text, key->len);
    entry->key_len = (uint8_t)key->len;
    entry->item.value = entry->bytes + key->len;
    entry->room = room;
    atomic_init(&entry->refs, 1);
    return entry;
}

void
items__entry_release(struct budget *budget, struct entry *entry)
{
    /* release: this owner's reads come before the free or the change in place
     * that another thread does after it; acquire: the same, for us. */
    uint32_t refs =
        atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel);

    ASSERT(refs > 0);
    if (refs == 1) {
        items__budget_give_back(
            budget, entry, items__entry_bytes(entry->key_len, entry->room));
    }
}

void
items__stripe_init(struct stripe *stripe, struct budget *budget)
{
    int failed = pthread_mutex_init(&stripe->lock, NULL);

    ASSERT(!failed);
    stripe->budget = budget;
    stripe->table = NULL;
    stripe->newest = NULL;
    stripe->oldest = NULL;
    stripe->sums = (struct items_stats){0};
}

void
items__stripe_fini(struct stripe *stripe)
{
    int failed;

    while (stripe->oldest != NULL) {
        items__stripe_unlink(stripe, stripe->oldest);
    }
    failed = pthread_mutex_destroy(&stripe->lock);
    ASSERT(!failed);
}

void
items__stripe_lock(struct stripe *stripe)
{
    int failed = pthread_mutex_lock(&stripe->lock);

    ASSERT(!failed);
}

void
items__stripe_unlock(struct stripe *stripe)
{
    int failed = pthread_mutex_unlock(&stripe->lock);

    ASSERT(!failed);
}

struct entry *
items__stripe_find(struct stripe *stripe, const struct items_key *key)
{
    struct entry *found;

    HASH_FIND_BYHASHVALUE(
        hh, stripe->table, key->text, key->len, (unsigned)key->hash, found);
    return found;
}

static void
list_push(struct stripe *stripe, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = stripe->newest;
    if (stripe->newest != NULL) {
        stripe->newest->newer = entry;
    } else {
        stripe->oldest = entry;
    }
    stripe->newest = entry;
}

static void
list_remove(struct stripe *stripe, struct entry *entry)
{
    if (entry->newer != NULL) {
        entry->newer->older = entry->older;
    } else {
        stripe->newest = entry->older;
    }
    if (entry->older != NULL) {
        entry->older->newer = entry->newer;
    } else {
        stripe->oldest = entry->newer;
    }
    entry->newer = NULL;
    entry->older = NULL;
}

static bool
table_add(
    struct stripe *stripe, const struct items_key *key, struct entry *entry)
{
    struct budget *budget = stripe->budget;

    HASH_ADD_KEYPTR_BYHASHVALUE(hh, stripe->table, entry->bytes,
        entry->key_len, (unsigned)key->hash, entry);
    return entry->hh.tbl != NULL;
}

static void
table_remove(struct stripe *stripe, struct entry *entry)
{
    struct budget *budget = stripe->budget;

    HASH_DELETE(hh, stripe->table, entry);
}

bool
items__stripe_link(struct stripe *stripe, const struct items_key *key,
    struct entry *entry, struct entry *old)
{
    if (!table_add(stripe, key, entry)) {
        return false;
    }
    list_push(stripe, entry);
    stripe->sums.curr_items++;
    if (old != NULL) {
        items__stripe_unlink(stripe, old);
    }
    return true;
}

void
items__stripe_unlink(struct stripe *stripe, struct entry *entry)
{
    ASSERT(stripe->sums.curr_items > 0);
    stripe->sums.curr_items--;
    list_remove(stripe, entry);
    table_remove(stripe, entry);
    items__entry_release(stripe->budget, entry);
}

void
items__stripe_use(struct stripe *stripe, struct entry *entry)
{
    if (stripe->newest != entry) {
        list_remove(stripe, entry);
        list_push(stripe, entry);
    }
}

static uint64_t
table_cost(const struct stripe *stripe)
{
    const UT_hash_table *table;

    if (stripe->table == NULL) {
        return 0;
    }
    table = stripe->table->hh.tbl;
    return items__budget_cost(sizeof *table) +
        items__budget_cost(table->num_buckets * sizeof(UT_hash_bucket));
}

static void
verify_entry(struct stripe *stripe, struct entry *entry)
{
    struct items_key key = {
        .text = entry->bytes,
        .len = entry->key_len,
        .hash = entry->hh.hashv,
    };

    ASSERT(items__stripe_find(stripe, &key) == entry);
    ASSERT(atomic_load_explicit(&entry->refs, memory_order_relaxed) > 0);
    ASSERT(entry->item.value == entry->bytes + entry->key_len);
    ASSERT(entry->item.value_len <= entry->room);
    ASSERT(entry->born > 0 && entry->item.cas > 0);
    ASSERT(entry->newer == NULL ? stripe->newest == entry
                                : entry->newer->older == entry);
}

uint64_t
items__stripe_verify(struct stripe *stripe)
{
    uint64_t n = 0, bytes = table_cost(stripe);
    struct entry *last = NULL;

    for (struct entry *at = stripe->newest; at != NULL; at = at->older) {
        verify_entry(stripe, at);
        bytes += items__budget_cost(items__entry_bytes(at->key_len, at->room));
        last = at;
        n++;
    }
    ASSERT(last == stripe->oldest);
    ASSERT(n == stripe->sums.curr_items);
    ASSERT(n == HASH_COUNT(stripe->table));
    return bytes;
}
