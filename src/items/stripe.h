/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_STRIPE_H
#define ITEMS_STRIPE_H

#include "items/budget.h"
#include "items/items.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* uthash takes memory from the struct budget *budget that is in scope where
 * its macros are used, and reports a failure by hh.tbl == NULL. */
#define HASH_NONFATAL_OOM 1
#define uthash_malloc(bytes) items__budget_take(budget, (bytes))
#define uthash_free(block, bytes)                                             \
    items__budget_give_back(budget, (block), (bytes))
#include <uthash.h>

/* A stripe: the items whose hash falls into one part, with their lock, their
 * hash table and their list by last use. Inside src/items only. All functions
 * that take a stripe want its lock held, but init, fini, lock and unlock. */

struct items_key {
    const char *text;
    size_t len;
    uint64_t hash; /* high bits: the stripe; low 32: the place in its table */
};

/* One item: header, key, value in one block. */
struct entry {
    /* the stripe's lock: */
    UT_hash_handle hh;
    struct entry *newer; /* by last use */
    struct entry *older;
    uint64_t expiry_s;
    uint64_t used_s; /* last read or stored */
    bool fetched;    /* was read since it was stored */
    bool is_stale;
    bool is_won; /* a reader was told to make it anew */
    /* the stripe's lock, and written only while refs is 1: */
    struct item item;
    /* written before it is linked: */
    uint64_t born; /* when the value began that owes nothing to an older one */
    size_t room;   /* bytes for the value */
    uint8_t key_len;
    /* the table's reference (or the maker's) and one a pin; grows only under
     * the stripe's lock */
    _Atomic uint32_t refs;
    char bytes[]; /* key, value */
};

struct stripe {
    pthread_mutex_t lock;
    struct budget *budget; /* read-only */
    /* under lock: */
    struct entry *table; /* uthash's head; NULL while empty */
    struct entry *newest;
    struct entry *oldest;
    struct items_stats sums; /* bytes is left out: struct budget counts it */
};

/* What a new entry asks of the budget. */
size_t items__entry_bytes(size_t key_len, size_t room);

char *items__entry_value(struct entry *entry);

/* A new entry with room for a value, one reference, not linked. NULL when
 * memory is out. Its bytes must have been charged; it owns the charge. */
struct entry *items__entry_create(
    struct budget *budget, const struct items_key *key, size_t room);

/* Drops one reference; the last one frees. Any thread, no lock needed. */
void items__entry_release(struct budget *budget, struct entry *entry);

void items__stripe_init(struct stripe *stripe, struct budget *budget);
void items__stripe_fini(struct stripe *stripe); /* drops all entries */
void items__stripe_lock(struct stripe *stripe);
void items__stripe_unlock(struct stripe *stripe);

/* The entry under key, dead or alive, or NULL. */
struct entry *items__stripe_find(
    struct stripe *stripe, const struct items_key *key);

/* Puts entry in, as the most recently used, in place of old (NULL: there is
 * none); takes over the caller's reference. False and nothing changed when
 * memory is out. */
bool items__stripe_link(struct stripe *stripe, const struct items_key *key,
    struct entry *entry, struct entry *old);

/* Takes entry out and drops the table's reference. */
void items__stripe_unlink(struct stripe *stripe, struct entry *entry);

/* Makes entry the most recently used. */
void items__stripe_use(struct stripe *stripe, struct entry *entry);

/* Asserts the invariants; returns the charged bytes of what is linked and of
 * the table. */
uint64_t items__stripe_verify(struct stripe *stripe);

#endif
