/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SORTED_PRIV_H
#define ENGINE_SORTED_PRIV_H

#include "engine/sorted.h"

#include <stdatomic.h>

/* What the files of the engine need of arrays of members (sorted.c). Under the
 * lock of that shard unless said. */

struct sorted_table; /* sorted.c */

/* Of all shards. */
struct sorted_state {
    _Atomic(struct sorted_table *) *table; /* one a shard, made with its first
                                            * array, and kept */
    uint64_t limit_bytes;                  /* constant, like the next */
    uint32_t n_buckets; /* of a shard's table; a power of two */
    _Atomic uint64_t arrays, bytes, made, dropped;
};

/* Before any other call; no lock. 0 or ERR_NO_MEMORY. */
int sorted__init(struct engine *engine, uint64_t hot_bytes);

/* Frees all. No other call is under way; no lock. */
void sorted__fini(struct engine *engine);

/* A member has come (is_in) or gone; key->id is of that shard. */
void sorted__change(struct engine *engine, unsigned shard,
    const struct sorted_key *key, uint64_t member, bool is_in);

/* No record has that number any more. */
void sorted__forget(
    struct engine *engine, unsigned shard, const struct sorted_key *key);

/* The counter of pairs in that slot is no more. */
void sorted__drop(struct engine *engine, unsigned shard, unsigned pairs);

/* Drops what has not been used lately while there is too much; takes the locks
 * of shards. */
void sorted__tend(struct engine *engine);

/* Asserts what holds of the arrays of a shard. */
void sorted__verify(struct engine *engine, unsigned shard);

#endif
