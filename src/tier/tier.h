/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_TIER_H
#define TIER_TIER_H

#include "tier/cold_call.h"
#include "tier/sealer.h"

/* The cold tier of a store with a data directory: maps, pool, sealer. Part of
 * the store; nobody else calls it. */
struct tier {
    struct cold cold;
    struct sealer sealer;
    struct durable *durable; /* the store's */
    bool has_sealer;
};

/* Nothing is covered, and loading may begin; covers go to the durable, and to
 * the engine. All must outlive it. 0, ERR_NO_MEMORY, ERR_NO_THREAD. */
int tier_init(struct tier *tier, struct engine *engine, unsigned n_shards,
    struct qsbr *qsbr, struct durable *durable, uint64_t hot_bytes);

/* All is loaded: what is not in the engine is looked for in segments, and
 * ranges are sealed. 0 or ERR_NO_THREAD. */
int tier_begin(struct tier *tier, _Atomic(const struct schema *) *schema,
    struct checkpointer *checkpointer);

/* Nothing is sealed any more; who waits is answered (sealer_stop). The
 * checkpointer still runs, or never did. May be called again, by the same
 * thread. */
void tier_end(struct tier *tier);

/* No call is under way, and the checkpointer has been stopped. */
void tier_fini(struct tier *tier);

/* Bytes of the segments that have records of the counter in a slot; 0 where
 * there is none. Any thread. */
uint64_t tier_file_bytes(struct tier *tier, unsigned slot);

/* A ring of the calling thread's, as store_ring_open; where --cold-io wants one
 * and there is none, the logger is told. Any thread. */
int tier_open_ring(struct tier *tier, struct store_ring **out);

/* Calls stat_fn for each line of `stats cold`. */
void tier_each_stat(struct tier *tier,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

#endif
