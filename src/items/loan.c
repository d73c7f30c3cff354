/* SPDX-License-Identifier: BSD-3-Clause */
/* Loans: values that are sent to slow readers from where they are.
 *
 * A pin is short: its owner reads the value and lets go. A loan is a pin that
 * lasts as long as a client takes to read, so the pool knows it. The value
 * stays as it is, since nothing is written over while somebody refers to it: a
 * set, an append or an incr makes a new entry beside it, a delete or a flush
 * only takes it out of the table. Two things have to be prevented: that
 * cleaning goes over it again and again without gain, and that much memory is
 * lent.
 *
 * So a segment with a loan is in none of the queues of victims, and the rest of
 * what lives in it stays too. With its last loan given back it becomes the
 * newest of its queue. Its bytes count once and whole as lent, and are bounded
 * by LENT_EIGHTHS of the limit: a value of the largest size allowed, half of
 * the limit, always has room beside them.
 *
 * A limit that is lowered below what is lent cannot be met at once. What is
 * lent above the new bound then comes on top of the limit until it is given
 * back, so stores go on within the rest; nothing more is lent meanwhile. */
#include "items/loan.h"

#include "base/assert.h"
#include "items/core.h"
#include "items/pool_priv.h"

#include <assert.h>

enum {
    LENT_EIGHTHS = 3, /* of the limit */
    LOANS_MAX = 30000
};

static_assert(LOANS_MAX < UINT16_MAX / 2,
    "the references of an entry, pins included, can be counted");

static uint64_t
lent_max(const struct pool *pool)
{
    return pool->limit_wanted_bytes / 8 * LENT_EIGHTHS;
}

uint64_t
items__pool_aim(const struct pool *pool)
{
    uint64_t most = lent_max(pool);

    mutex_assert_held(&pool->lock);
    return pool->limit_wanted_bytes +
        (pool->lent_bytes > most ? pool->lent_bytes - most : 0);
}

/* Makes a loan of a reference that the caller has; a segment is kept as it is
 * while it has loans. False where there are as many as there may be. */
static bool
lend(struct pool *pool, struct entry *entry)
{
    struct segment *segment = items__segment_of(entry);
    bool may;

    items__pool_lock(pool);
    ASSERT(pool->n_loans <= LOANS_MAX && segment->n_loans <= pool->n_loans);
    ASSERT(segment->n_live > 0 && segment->state != ITEMS__FREE);
    may = pool->n_loans < LOANS_MAX &&
        (segment->n_loans > 0 ||
            pool->lent_bytes + segment->size <= lent_max(pool));
    if (may) {
        pool->n_loans++;
        segment->n_loans++;
        if (segment->n_loans == 1) {
            pool->lent_bytes += segment->size;
            items__pool_sort(pool, segment);
        }
    }
    items__pool_unlock(pool);
    return may;
}

static void
unlend(struct pool *pool, struct entry *entry)
{
    struct segment *segment = items__segment_of(entry);

    items__pool_lock(pool);
    ASSERT(segment->n_loans > 0 && segment->n_loans <= pool->n_loans);
    ASSERT(pool->lent_bytes >= segment->size);
    pool->n_loans--;
    segment->n_loans--;
    if (segment->n_loans == 0) {
        pool->lent_bytes -= segment->size;
        items__pool_sink(pool);
        items__pool_sort(pool, segment);
    }
    items__pool_unlock(pool);
}

static struct entry *
entry_of(const struct item *item)
{
    char *start = (char *)(uintptr_t)item - offsetof(struct entry, item);

    return (struct entry *)(void *)start;
}

bool
items_lend(struct items *items, const struct item *item)
{
    return lend(&items->pool, entry_of(item));
}

void
items_unlend(struct items *items, const struct item *item)
{
    unlend(&items->pool, entry_of(item));
    items_unpin(items, item);
}

void
items_lent(struct items *items, struct items_lent *out)
{
    struct pool *pool = &items->pool;

    items__pool_lock(pool);
    out->loans = pool->n_loans;
    out->lent_bytes = pool->lent_bytes;
    items__pool_unlock(pool);
}

size_t
items_value_len(
    struct items *items, const char *key, size_t key_len, uint64_t now_s)
{
    struct items_key k = items__core_begin(items, key, key_len, now_s);
    struct stripe *stripe = items__core_stripe(items, &k);
    struct entry *entry;
    size_t len;

    items__stripe_lock(stripe);
    entry = items__stripe_find(stripe, &k);
    len = entry == NULL ? 0 : entry->item.value_len;
    items__stripe_unlock(stripe);
    return len;
}
