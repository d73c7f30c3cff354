/* SPDX-License-Identifier: BSD-3-Clause */
/* A stripe: linked entries, and how much there is of them.
 *
 * Invariants, under the stripe's lock: an entry is in the table if and only if
 * it is marked as linked; the table then has a reference to it; each key is in
 * the table once. An entry's bytes are dead when its last reference goes, not
 * when it is unlinked: a pin may hold it longer. */
#include "items/stripe.h"

#include "base/assert.h"

#include <stdatomic.h>

void
items__stripe_init(struct stripe *stripe, unsigned number, struct pool *pool,
    struct classes *classes, uint64_t seed)
{
    mutex_init(&stripe->lock);
    stripe->pool = pool;
    stripe->classes = classes;
    stripe->number = number;
    items__table_init(&stripe->table, pool, seed);
    stripe->sums = (struct items_stats){0};
}

void
items__stripe_fini(struct stripe *stripe)
{
    items__stripe_lock(stripe);
    for (uint64_t b = 0; b < stripe->table.n_buckets; b++) {
        struct entry *entry;

        while ((entry = items__table_bucket(&stripe->table, b)) != NULL) {
            items__stripe_unlink(stripe, entry);
        }
    }
    ASSERT(stripe->sums.curr_items == 0 && stripe->sums.bytes == 0);
    items__stripe_unlock(stripe);
    items__table_fini(&stripe->table);
    mutex_fini(&stripe->lock);
}

void
items__stripe_lock(struct stripe *stripe)
{
    mutex_lock(&stripe->lock);
}

void
items__stripe_unlock(struct stripe *stripe)
{
    mutex_unlock(&stripe->lock);
}

unsigned
items__stripe_class(const struct stripe *stripe, const struct entry *entry)
{
    return items__classes_of(
        stripe->classes, entry->key_len, entry->item.value_len);
}

struct entry *
items__stripe_find(struct stripe *stripe, const struct items_key *key)
{
    return items__table_find(&stripe->table, key);
}

/* Counts the entry (sign 1) or no more (sign -1). */
static void
count(struct stripe *stripe, const struct entry *entry, int sign)
{
    unsigned class_ = items__stripe_class(stripe, entry);
    uint64_t n = (uint64_t)sign;
    uint64_t bytes =
        items__classes_bytes(entry->key_len, entry->item.value_len);

    stripe->sums.curr_items += n;
    stripe->sums.bytes += n * items__entry_bytes(entry->key_len, entry->room);
    ITEMS__COUNT(stripe, class_, number, n);
    ITEMS__COUNT(stripe, class_, mem_requested, n * bytes);
}

static void
unmark(struct stripe *stripe, struct entry *entry)
{
    ASSERT((entry->marks & ITEMS__LINKED) != 0);
    ASSERT(stripe->sums.curr_items > 0);
    ASSERT(
        stripe->sums.bytes >= items__entry_bytes(entry->key_len, entry->room));
    count(stripe, entry, -1);
    entry->marks &= (uint8_t)~ITEMS__LINKED;
    items__pool_release(stripe->pool, entry);
}

void
items__stripe_link(struct stripe *stripe, const struct items_key *key,
    struct entry *entry, struct entry *old)
{
    mutex_assert_held(&stripe->lock);
    ASSERT((entry->marks & ITEMS__LINKED) == 0 &&
        entry->stripe == stripe->number);
    ASSERT(old == NULL || old->key_len == key->len);
    entry->marks |= ITEMS__LINKED;
    count(stripe, entry, 1);
    if (old != NULL) {
        items__table_replace(&stripe->table, old, entry, key->hash);
        unmark(stripe, old);
    } else {
        items__table_add(&stripe->table, entry, key->hash);
    }
}

void
items__stripe_unlink(struct stripe *stripe, struct entry *entry)
{
    uint64_t hash =
        items__hash(entry->bytes, entry->key_len, stripe->table.seed);

    mutex_assert_held(&stripe->lock);
    ASSERT(entry->stripe == stripe->number);
    items__table_replace(&stripe->table, entry, NULL, hash);
    unmark(stripe, entry);
}

void
items__stripe_resize(
    struct stripe *stripe, struct entry *entry, size_t value_len)
{
    mutex_assert_held(&stripe->lock);
    ASSERT(value_len <= entry->room);
    count(stripe, entry, -1);
    entry->item.value_len = (uint32_t)value_len;
    count(stripe, entry, 1);
}

static uint64_t
verify_entry(struct stripe *stripe, struct entry *entry)
{
    struct items_key key = {
        .text = entry->bytes,
        .len = entry->key_len,
        .is_hidden = entry->is_hidden,
        .hash = items__hash(entry->bytes, entry->key_len, stripe->table.seed),
    };

    ASSERT(items__stripe_find(stripe, &key) == entry);
    /* relaxed: only looked at */
    ASSERT(atomic_load_explicit(&entry->refs, memory_order_relaxed) > 0);
    ASSERT((entry->marks & ITEMS__LINKED) != 0);
    ASSERT(entry->stripe == stripe->number);
    ASSERT(entry->heat <= ITEMS__HEAT_MAX);
    ASSERT(entry->item.value == items__entry_value(entry));
    ASSERT(entry->item.value_len <= entry->room);
    ASSERT(entry->item.cas > 0);
    return items__entry_bytes(entry->key_len, entry->room);
}

uint64_t
items__stripe_verify(struct stripe *stripe)
{
    struct table *table = &stripe->table;
    uint64_t bytes = 0;

    mutex_assert_held(&stripe->lock);
    items__table_verify(table);
    for (uint64_t b = 0; b < table->n_buckets; b++) {
        for (struct entry *at = items__table_bucket(table, b); at != NULL;
             at = at->next) {
            bytes += verify_entry(stripe, at);
        }
    }
    ASSERT(table->n == stripe->sums.curr_items);
    ASSERT(bytes == stripe->sums.bytes);
    return bytes;
}
