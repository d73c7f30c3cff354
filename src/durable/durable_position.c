/* SPDX-License-Identifier: BSD-3-Clause */
/* Which batches the tables have.
 *
 * A batch is applied in this order: applying is stored, then shard after shard
 * is changed, each under its lock, then applied is stored. Who looks at
 * applying under a shard's lock may see an older one, but not while the shard
 * has anything of a later batch: that came under the same lock. */
#include "durable/durable_position.h"

#include "base/assert.h"
#include "base/err.h"
#include "wal/wal_replica.h"

uint64_t
durable_applied(struct durable *durable)
{
    ASSERT(durable->magic == DURABLE_MAGIC);
    /* acquire: what was applied is seen */
    return durable_is_replica(durable)
        ? atomic_load_explicit(&durable->applied, memory_order_acquire)
        : wal_last(durable->wal);
}

uint64_t
durable_touched(struct durable *durable)
{
    ASSERT(durable->magic == DURABLE_MAGIC);
    /* acquire: as above; of a later batch see the head of this file */
    return durable_is_replica(durable)
        ? atomic_load_explicit(&durable->applying, memory_order_acquire)
        : wal_last(durable->wal);
}

uint64_t
durable_cut(struct durable *durable)
{
    return durable_is_replica(durable) ? durable_applied(durable)
                                       : wal_cut(durable->wal);
}

void
durable_cease(struct durable *durable)
{
    /* release: as of durable_follow; who comes online later sees it */
    atomic_store_explicit(
        &durable->is_refusing_clients, true, memory_order_release);
}

void
durable_followed(struct durable *durable, uint64_t applied)
{
    /* release: nobody applies yet, so both are as one */
    atomic_store_explicit(&durable->applying, applied, memory_order_release);
    atomic_store_explicit(&durable->applied, applied, memory_order_release);
}

void
durable_follow(struct durable *durable, uint64_t applied)
{
    ASSERT(durable->magic == DURABLE_MAGIC && !durable_is_replica(durable));
    durable_cease(durable);
    durable_followed(durable, applied);
    /* release: see durable_is_replica */
    atomic_store_explicit(&durable->is_replica, true, memory_order_release);
}

void
durable_lead(struct durable *durable)
{
    ASSERT(durable_applied(durable) == durable_touched(durable));
    /* release: see durable_is_replica */
    atomic_store_explicit(&durable->is_replica, false, memory_order_release);
    atomic_store_explicit(
        &durable->is_refusing_clients, false, memory_order_release);
}

int
durable_begin_term(struct durable *durable, const char *name, size_t name_len,
    uint32_t least_term, uint64_t *seq)
{
    struct wal_position at;
    struct history terms;
    struct entry_term term = {.term = least_term};
    bool is_named = node_name_set(&term.node, name, name_len);
    ASSERT(is_named);
    int err = histories_draw(&term.branch);
    if (err != 0) {
        return err;
    }
    wal_position(durable->wal, &at); /* nobody adds to it now */
    wal_terms(durable->wal, &terms);
    uint64_t least = history_is_end(&terms, at.last)
        ? history_next_term(&terms, at.last)
        : 0;
    if (least == 0) {
        return ERR_LOG_ORDER;
    }
    term.term = term.term < least ? (uint32_t)least : term.term;
    return wal_begin_term(durable->wal, &term, seq);
}

void
durable_apply_begin(struct durable *durable, uint64_t seq)
{
    ASSERT(durable_is_replica(durable));
    /* relaxed: this thread stores them */
    uint64_t applied =
        atomic_load_explicit(&durable->applied, memory_order_relaxed);
    ASSERT(applied ==
        atomic_load_explicit(&durable->applying, memory_order_relaxed));
    ASSERT(seq > applied);
    /* release: who sees it sees that the one before has been applied */
    atomic_store_explicit(&durable->applying, seq, memory_order_release);
}

void
durable_apply_end(struct durable *durable, uint64_t seq)
{
    /* relaxed: this thread has stored it */
    ASSERT(
        seq == atomic_load_explicit(&durable->applying, memory_order_relaxed));
    /* release: pairs with durable_applied */
    atomic_store_explicit(&durable->applied, seq, memory_order_release);
}

void
durable_apply_fail(struct durable *durable)
{
    /* relaxed: it only has to be seen some time */
    atomic_store_explicit(&durable->is_apply_over, true, memory_order_relaxed);
}

bool
durable__apply_is_over(const struct durable *durable)
{
    /* relaxed: as above */
    return atomic_load_explicit(&durable->is_apply_over, memory_order_relaxed);
}
