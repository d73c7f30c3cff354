/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_CORE_H
#define ITEMS_CORE_H

#include "items/stripe.h"

/* What the operations on items share: the struct behind struct items, keys,
 * liveness, flush, room. Inside src/items only. */

enum { ITEMS__STRIPES_BITS = 6, ITEMS__STRIPES = 1 << ITEMS__STRIPES_BITS };

struct items {
    /* read-only after creation: */
    uint64_t seed;
    uint64_t item_bytes_max;
    /* written under flush_lock, read by any thread: */
    _Atomic uint64_t flush_mark; /* entries born at or before it are gone */
    _Atomic uint64_t flush_at_s; /* when the pending flush is due */
    pthread_mutex_t flush_lock;
    /* each under its own lock; they also keep the numbers below, which every
     * store writes, off the cache lines above, which every read needs: */
    struct stripe stripe[ITEMS__STRIPES];
    struct budget budget;
    _Atomic uint64_t sequence; /* the last cas, or birth, given out */
};

/* The key with its hash, after a pending flush that is due was done: every
 * operation begins with it. */
struct items_key items__core_begin(
    struct items *items, const char *text, size_t len, uint64_t now_s);

struct stripe *items__core_stripe(
    struct items *items, const struct items_key *key);

/* The live entry under key or NULL; a dead one is given up. Wants the
 * stripe's lock. */
struct entry *items__core_find(struct items *items, struct stripe *stripe,
    const struct items_key *key, uint64_t now_s);

/* The entry is used: it is young again. Wants the stripe's lock. */
void items__core_use(
    struct stripe *stripe, struct entry *entry, uint64_t now_s);

/* A pin on the entry: see items_get. Wants the stripe's lock. */
const struct item *items__core_pin(struct entry *entry);

/* The next cas unique, which is a birth too. Taken under the lock of the stripe that it is for, so
 * that those of one key grow in the order of its changes. */
uint64_t items__core_next_cas(struct items *items);

/* Makes every entry born until now dead, and drops a pending flush. Wants
 * flush_lock. */
void items__core_flush(struct items *items);

/* Does the pending flush if now_s has reached it. Wants flush_lock. */
void items__core_flush_due(struct items *items, uint64_t now_s);

/* Gives up entries, those of stripe first and then of those after it, until
 * the budget is not over its limit (true) or nothing is left to give up
 * (false). True stays good for what is charged already: a thread that charges
 * more makes its own room. stripe may be the end of the array, which means
 * its start. Wants no lock. */
bool items__core_make_room(
    struct items *items, struct stripe *stripe, uint64_t now_s);

#endif
