/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_ITEMS_H
#define ITEMS_ITEMS_H

#include "base/alloc.h"
#include "items/figures.h"
#include "items/loan.h"
#include "items/walk.h"
#include "items/witness.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* memcached items: a cache of byte strings with flags, expiry and cas, bounded
 * in bytes. All functions lock what they need; any thread. Times are seconds
 * of one clock that never jumps, passed in by the caller (now_s >= 1). */

enum {
    ITEMS_KEY_MAX = 250,
    ITEMS_HEADER_BYTES = 59, /* of an item, as memcached's -I counts them */
    ITEMS_FLAGS_BYTES = 4,   /* on top, where they are not 0 */
    ITEMS_NEVER = 0,         /* expiry_s of an item that does not expire */
    ITEMS_RELATIVE_MAX_S = 60 * 60 * 24 * 30 /* an exptime; unix time above */
};

struct items; /* opaque */

/* One stored value; immutable while pinned. */
struct item {
    const char *value;
    uint32_t value_len;
    uint32_t flags;
    uint64_t cas; /* never 0; larger for every change of any item, but where a
                   * client has chosen it */
};

enum items_op {
    ITEMS_SET,
    ITEMS_ADD,
    ITEMS_REPLACE,
    ITEMS_APPEND,
    ITEMS_PREPEND,
    ITEMS_CAS
};

/* What the meta and binary protocols ask besides; all zero: nothing of it.
 * Each operation says what it looks at. */
struct items_terms {
    bool compares; /* ERR_EXISTS unless cas is the item's */
    bool touches;  /* the item's expiry becomes expiry_s */
    bool vivifies; /* a miss makes an item that expires at vivify_expiry_s */
    bool recaches; /* the first to see it with less than recache_s left wins */
    bool outdates; /* store: a cas below the item's stores a stale value;
                     * delete: the item becomes stale instead of going */
    bool empties;  /* delete: value and flags go, the item stays, for ever
                     * or, with touches, until expiry_s */
    bool peeks;    /* get: no use for eviction, nor a fetch, nor an age */
    bool recaches_first;  /* get: recache_s is held against the expiry of
                          * before the touch */
    bool inspects;        /* get: as peeks, and wins nothing either */
    bool yields;          /* get: wins nothing, as all but memcached's mg */
    bool is_hidden;       /* store, get, delete: the key is not a client's but
                           * the server's own. One with the same bytes that is
                           * a client's is another one; items_each and the
                           * witness do not tell of it */
    bool keeps_expiry;    /* store: the expiry of what is there stays */
    uint32_t empty_flags; /* empties: the flags that take their place */
    uint64_t cas;
    uint64_t new_cas; /* of what is changed or made; 0: the next one */
    uint64_t expiry_s;
    uint64_t vivify_expiry_s;
    uint64_t recache_s;
};

struct items_store {
    enum items_op op;
    const char *key;
    size_t key_len; /* 1..ITEMS_KEY_MAX; any bytes */
    const char *value;
    size_t value_len;
    uint32_t flags;    /* ignored by append and prepend, unless they vivify */
    uint64_t expiry_s; /* ITEMS_NEVER or a time; ignored by append, prepend */
    uint64_t cas;      /* ITEMS_CAS: the expected one */
    /* compares (of a set, replace, append or prepend; the first two are then
     * as ITEMS_CAS), outdates (of these and ITEMS_CAS), vivifies (append,
     * prepend: a miss stores the value, until vivify_expiry_s), new_cas,
     * is_hidden, keeps_expiry */
    struct items_terms terms;
};

/* An item with all that can be said of it. */
struct items_found {
    const struct item *item; /* pinned; NULL: a miss */
    uint64_t expiry_s;       /* ITEMS_NEVER or a time */
    uint64_t old_expiry_s;   /* before a touch; is_new: ITEMS_NEVER */
    bool is_new;             /* the miss has made it */
    uint64_t idle_s;         /* since the get, or store, before this one */
    bool was_fetched;        /* had been read before */
    bool has_won;            /* this caller is to make the value anew */
    bool is_stale;
    bool was_won; /* somebody else has won and not stored yet */
};

struct items_arith {
    const char *key;
    size_t key_len;
    bool negative; /* decr */
    uint64_t delta;
    uint64_t initial; /* terms.vivifies: the value of what a miss makes */
    struct items_terms terms; /* compares, touches, vivifies, new_cas */
};

struct items_number {
    uint64_t value;
    uint64_t cas;
    uint64_t expiry_s;
    uint64_t old_expiry_s; /* before a touch; is_new: ITEMS_NEVER */
    bool is_new;           /* the miss has made it */
};

struct items_config {
    uint64_t limit_bytes; /* memory for items, overhead included; 0: none */
    /* memcached's -I: the largest key + value + ITEMS_HEADER_BYTES;
     * 1024..2^30 */
    uint64_t item_bytes_max;
    uint64_t seed; /* of the hash, random against flooding */
    bool keeps;    /* memcached's -M: no live item is given up for room, a
                    * store fails instead */
    const struct alloc
        *alloc; /* NULL: the system; else it outlives the cache */
};

/* An empty cache, or NULL when memory is out. */
struct items *items_create(const struct items_config *config);
void items_destroy(struct items **items); /* nothing may be pinned */

/* The live item under key, pinned: valid until items_unpin. NULL on a miss.
 * Counts as a use for eviction. If touch, its expiry becomes expiry_s in the
 * same step (gat). */
const struct item *items_get(struct items *items, const char *key,
    size_t key_len, uint64_t now_s, bool touch, uint64_t expiry_s);
void items_unpin(struct items *items, const struct item *item);

/* The same with all that is known of it. terms: touches, vivifies, recaches,
 * peeks, new_cas. On a miss that vivifies an empty item is made, and has_won
 * says so; out->item is NULL only where there is none, or memory is out. */
void items_look(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s, struct items_found *out);

/* Of what is stored; all zero where nothing is. */
struct items_stored {
    uint64_t cas;
    size_t value_len; /* of the whole value: append and prepend add to it */
};

/* 0 and *out, or ERR_NOT_STORED (add, replace, append, prepend; also when what
 * is joined gets too large), ERR_NOT_FOUND or ERR_EXISTS (cas), ERR_TOO_LARGE,
 * ERR_NO_MEMORY.
 * A SET that fails with one of the last two removes the old value: a stale
 * one must not be read on. */
int items_store_and_report(struct items *items,
    const struct items_store *store, uint64_t now_s, struct items_stored *out);

/* incr or decr: the value is read as memcached does (num_parse_lenient_u64),
 * incr wraps at 2^64, decr stops at 0, the result is not padded; flags and
 * expiry stay. 0, ERR_NOT_FOUND, ERR_EXISTS, ERR_NOT_NUMERIC, ERR_NO_MEMORY. */
int items_arith(struct items *items, const struct items_arith *arith,
    uint64_t now_s, struct items_number *out);

/* 0, ERR_NOT_FOUND or ERR_EXISTS. terms (NULL: none): compares, outdates (with
 * touches), empties (keeps the cas unless outdates or new_cas), new_cas; these
 * can answer ERR_NO_MEMORY, and have changed nothing then. */
int items_delete(struct items *items, const char *key, size_t key_len,
    const struct items_terms *terms, uint64_t now_s);

/* True while a live item has this key; no use for eviction. */
bool items_has(
    struct items *items, const char *key, size_t key_len, uint64_t now_s);

/* Every item stored before this call (at_s == 0), or before the time at_s
 * comes (UINT64_MAX: never), is gone from then on; a later flush replaces an
 * earlier, pending one.
 * O(1): the memory is reclaimed by items_tend, and as items are met. */
void items_flush(struct items *items, uint64_t at_s, uint64_t now_s);

/* Changes the byte limit; over it, later stores and items_tend evict, bit by
 * bit. */
void items_set_limit(struct items *items, uint64_t limit_bytes);

/* The expiry of a client's exptime: 0 never, negative at once, up to 30 days
 * relative to now_s, above that unix time (unix_now_s is the wall clock at
 * now_s). Pure. */
uint64_t items_expiry(int64_t exptime, uint64_t now_s, int64_t unix_now_s);

/* Asserts the invariants (counts, bytes, lists); for tests. */
void items_verify(struct items *items);

#endif
