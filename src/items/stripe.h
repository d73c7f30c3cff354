/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_STRIPE_H
#define ITEMS_STRIPE_H

#include "base/mutex.h"
#include "items/classes.h"
#include "items/items.h"
#include "items/table.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stripe: the items whose hash falls into one part, with their lock, their
 * hash table and their figures. Inside src/items only. All functions that take
 * a stripe want its lock held, but init, fini, lock and unlock; those that
 * change it assert so. */

struct stripe {
    struct mutex lock;
    /* read-only: */
    struct pool *pool;
    struct classes *classes;
    unsigned number;
    /* under lock: */
    struct table table;
    struct items_stats sums; /* of one stripe; no figure of the system */
};

/* Adds n to a figure of a class, by name. */
#define ITEMS__COUNT(stripe, class_, name, n)                                 \
    atomic_fetch_add_explicit(/* relaxed: a figure for itself */              \
        &(stripe)                                                             \
             ->classes->sums[(stripe)->number % ITEMS__CLASS_SHARDS][class_]  \
             .name,                                                           \
        (uint64_t)(n), memory_order_relaxed)

void items__stripe_init(struct stripe *stripe, unsigned number,
    struct pool *pool, struct classes *classes, uint64_t seed);
void items__stripe_fini(struct stripe *stripe); /* drops all entries */
void items__stripe_lock(struct stripe *stripe);
void items__stripe_unlock(struct stripe *stripe);

unsigned items__stripe_class(
    const struct stripe *stripe, const struct entry *entry);

/* The entry under key, dead or alive, or NULL. */
struct entry *items__stripe_find(
    struct stripe *stripe, const struct items_key *key);

/* Puts entry in, in place of old (NULL: there is none); takes over the
 * caller's reference. */
void items__stripe_link(struct stripe *stripe, const struct items_key *key,
    struct entry *entry, struct entry *old);

/* Takes entry out and drops the table's reference. */
void items__stripe_unlink(struct stripe *stripe, struct entry *entry);

/* The value, which nobody else sees, gets another length. */
void items__stripe_resize(
    struct stripe *stripe, struct entry *entry, size_t value_len);

/* Asserts the invariants; returns the bytes of what is linked. */
uint64_t items__stripe_verify(struct stripe *stripe);

#endif
