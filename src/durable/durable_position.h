/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_POSITION_H
#define DURABLE_DURABLE_POSITION_H

#include "durable/durable.h"

/* Which batches the tables have, by number. On a primary that is what the log
 * was told. On a replica batches come to the log first, and are applied to the
 * tables afterwards, one after the other (store/applier.h):
 *
 *   ... applied | applying | in the log, not applied ... last of the log
 *
 * All of it any thread, once all is loaded. */

/* All batches up to the one returned are in the tables, whole. */
uint64_t durable_applied(struct durable *durable);

/* No batch behind the one returned is in the tables, not even a part of it; it
 * is durable_applied or, where a batch is being applied, the next one. */
uint64_t durable_touched(struct durable *durable);

/* durable_applied, and what is changed later is in batches behind it. */
uint64_t durable_cut(struct durable *durable);

/* True where changes come from another server's log: the sink appends nothing
 * then, and says durable_touched. */
static inline bool
durable_is_replica(const struct durable *durable)
{
    /* acquire: who sees that it is none any more sees what was applied */
    return atomic_load_explicit(&durable->is_replica, memory_order_acquire);
}

/* True where clients' changes are refused, since it is a replica or is about to
 * become one (durable_cease). */
static inline bool
durable_refuses_clients(const struct durable *durable)
{
    /* acquire: as above */
    return atomic_load_explicit(
        &durable->is_refusing_clients, memory_order_acquire);
}

void durable_cease(struct durable *durable);

/* From now on it is a replica whose tables have all batches up to applied; or
 * it is none any more, where none is being applied. No edit is under way, nor
 * the other one of these. What the sink was about to tell the log of may still
 * come to it: durable_followed says what that has then, once no change is under
 * way and before anything is applied. */
void durable_follow(struct durable *durable, uint64_t applied);
void durable_followed(struct durable *durable, uint64_t applied);
void durable_lead(struct durable *durable);

/* A term begins behind all that a replica's log has: see store_begin_term. The
 * log is a primary's then. 0 or as wal_begin_term, or ERR_SYSTEM. While nobody
 * else adds to the log. */
int durable_begin_term(struct durable *durable, const char *name,
    size_t name_len, uint32_t least_term, uint64_t *seq);

/* Batch seq, behind all that were, is about to be applied, or it has been, in
 * all shards. The one thread that applies; of a replica. */
void durable_apply_begin(struct durable *durable, uint64_t seq);
void durable_apply_end(struct durable *durable, uint64_t seq);

/* Nothing more will be applied, to the end of the process: who waits for that
 * gives up. */
void durable_apply_fail(struct durable *durable);
bool durable__apply_is_over(const struct durable *durable);

#endif
