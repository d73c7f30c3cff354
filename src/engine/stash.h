/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_STASH_H
#define ENGINE_STASH_H

#include "engine/pool.h"
#include "engine/shapes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The stash of a table: a small compact map from key (an offset of up to 64
 * bits) to a record of up to 16 codes of up to 64 bits, for records that fit
 * no line. One block of a fixed size; when it is full the table makes a larger
 * one aside (stash_grown) and publishes that.
 *
 * One writer (the shard's lock), and readers at any time: stash_find may run
 * while a writer changes the stash, and then returns anything; the caller
 * validates by a sequence counter. It never reads outside the block and always
 * ends. All shared words are read and written as in line_read.h. */

struct stash; /* opaque; begins with struct pool_garbage */

/* What lies behind this many bytes of the block may be anything at all while
 * stash_find runs. */
enum {
    STASH_HEAD_BYTES = 64,
    STASH_ASK_BYTES = 768 /* a usual stash; a look hops about in all of it */
};

/* An empty stash for about n records of key_bits (1..64) bit keys and
 * usual_bits (sum of widths) of codes each; one such record fits for sure. 0,
 * ERR_HOT_FULL, ERR_NO_MEMORY. */
int stash_create(struct pool *pool, unsigned key_bits, size_t n,
    unsigned usual_bits, enum pool_purpose purpose, struct stash **out);

/* Frees it at once (nobody can see it); NULL is fine. */
void stash_destroy(struct pool *pool, struct stash **stash);

/* Retires it; NULL is fine. */
void stash_retire(struct pool *pool, struct stash *stash);

/* Asks for what stash_find will read: from one of its looks to the next it
 * cannot be foreseen where, so for all of a small stash at once. NULL is
 * fine. */
static inline void
stash_prefetch(const struct stash *stash)
{
    uintptr_t head = (uintptr_t)stash;
    for (uintptr_t at = 0; at < STASH_ASK_BYTES; at += STASH_HEAD_BYTES) {
        __builtin_prefetch((const void *)(head + at));
    }
}

/* Fills code[16] (absent columns 0) and returns true where the key is; else
 * code is left alone. */
bool stash_find(const struct stash *stash, uint64_t key, uint64_t *code);

/* A code of a record, and where it is kept. */
struct stash_code {
    uint64_t code; /* not 0 */
    uint64_t at;   /* for stash_flip, until the next other change */
};

/* The writer's: the code of one slot of a key's record; false where the key is
 * not there, or its code is 0. */
bool stash_seek(const struct stash *stash, uint64_t key, unsigned column,
    struct stash_code *out);

/* Puts a code of as many bits in the place of one that stash_seek has found. */
void stash_flip(
    struct stash *stash, const struct stash_code *found, uint64_t code);

/* Adds or replaces the record of key (below 2^key_bits). False, and nothing
 * changed, where it has no room; codes with the widths that the key has now
 * always have room. */
bool stash_put(struct stash *stash, uint64_t key, const uint64_t *code);

/* False where there was none. */
bool stash_remove(struct stash *stash, uint64_t key);

/* A copy, compacted, with room for one more record of these codes (or for
 * them in the place of another record's) and some growth (about a sixth).
 * Errors as stash_create. */
int stash_grown(struct pool *pool, const struct stash *stash,
    const uint64_t *code, enum pool_purpose purpose, struct stash **out);

/* Records now; bytes of the block. NULL: 0. */
size_t stash_count(const struct stash *stash);
size_t stash_bytes(const struct stash *stash);

/* The record in the first place from *place on that has one: its key, its codes
 * (all 16) and the place. False where there is none. Who goes on at the next
 * place, and at the same one where the record has been removed, meets all: a
 * removal moves records to that place and to later ones only, and from earlier
 * ones, which have been met, only around the end. */
bool stash_next(
    const struct stash *stash, uint32_t *place, uint64_t *key, uint64_t *code);

/* Calls record_fn for each record; it must not change the stash. */
void stash_each(const struct stash *stash,
    void (*record_fn)(void *context, uint64_t key, const uint64_t *code),
    void *context);

void stash_verify(const struct stash *stash);

#endif
