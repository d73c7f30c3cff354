/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_CORE_H
#define ITEMS_CORE_H

#include "base/mutex.h"
#include "items/stripe.h"

/* What the operations on items share: the struct behind struct items, keys,
 * liveness, flush, room. Inside src/items only. */

enum { ITEMS__STRIPES_BITS = 6, ITEMS__STRIPES = 1 << ITEMS__STRIPES_BITS };

/* Where items_tend is; the thread's that calls it. */
struct items_tend {
    uint64_t cursor;  /* as of items_each; 0: between two passes */
    uint32_t flushes; /* when the pass began */
    uint64_t first_s; /* the earliest expiry to come that the pass has met */
};

struct items {
    /* read-only after creation: */
    uint64_t seed;
    uint64_t item_bytes_max;
    const struct alloc *alloc;
    struct items_witness *witness; /* not owned; NULL: none */
    /* written under flush_lock, read by any thread: */
    _Atomic uint32_t flushes;    /* entries born before the last are gone */
    _Atomic uint64_t flush_at_s; /* when the pending flush is due */
    struct mutex flush_lock;
    /* nothing expires before it, but what items_tend has met in this pass */
    _Atomic uint64_t first_expiry_s;
    struct items_tend tend;
    /* each under its own lock: */
    struct stripe stripe[ITEMS__STRIPES];
    struct pool pool;
    _Atomic uint64_t sequence; /* the last cas given out */
    _Atomic uint64_t direct_reclaims;
    _Atomic uint64_t evicted_time_s[ITEMS_CLASSES]; /* of the last evicted */
    struct classes classes;
};

/* How much one store has done for room. */
struct items_effort {
    unsigned n;        /* segments cleaned */
    unsigned n_barren; /* of them, not freed */
    unsigned n_gentle; /* so many first, in which what was used may stay */
};

/* Does a pending flush that is due: every operation begins with it. */
void items__core_tick(struct items *items, uint64_t now_s);

/* The same, and the key with its hash. */
struct items_key items__core_begin(
    struct items *items, const char *text, size_t len, uint64_t now_s);

struct stripe *items__core_stripe(
    struct items *items, const struct items_key *key);

/* The live entry under key or NULL; a dead one is given up. Wants the
 * stripe's lock. */
struct entry *items__core_find(struct items *items, struct stripe *stripe,
    const struct items_key *key, uint64_t now_s);

/* Gives up the entry if it is dead: then true. Wants the stripe's lock. */
bool items__core_reclaim(struct items *items, struct stripe *stripe,
    struct entry *entry, uint64_t now_s);

/* The entry is used: it may stay longer. Wants the stripe's lock. */
void items__core_use(struct entry *entry, uint64_t now_s);

/* Sets the expiry. Wants the stripe's lock, or the only reference. */
void items__core_expire(
    struct items *items, struct entry *entry, uint64_t expiry_s);

/* A pin on the entry: see items_get. Wants the stripe's lock. */
const struct item *items__core_pin(struct entry *entry);

/* True where nobody has it pinned, so that it may be written over. Wants the
 * stripe's lock. */
bool items__core_is_alone(struct entry *entry);

/* The next cas unique. Taken under the lock of the stripe that it is for, so
 * that those of one key grow in the order of its changes. */
uint64_t items__core_next_cas(struct items *items);

/* The birth of what owes nothing to an older value. Wants the stripe's lock:
 * see core.c. */
uint32_t items__core_birth(struct items *items);

/* Makes every entry born until now dead, and drops a pending flush. */
void items__core_flush(struct items *items);

/* Does the pending flush if now_s has reached it. */
void items__core_flush_due(struct items *items, uint64_t now_s);

/* Cleans one segment: gives up or moves what lives in it. False where there is
 * nothing left to clean, or it is no use. Wants no lock. */
bool items__room_make(
    struct items *items, struct items_effort *effort, uint64_t now_s);

#endif
