/* SPDX-License-Identifier: BSD-3-Clause */
/* Which batches those who have copies have.
 *
 *   ... committed | has not come to enough copies ... last of the log
 *
 * committed only grows, and who sees it a moment late is told again (wal_tell).
 * When a primary becomes a replica what is behind committed is nobody's any
 * more: it may be cut off, or the next primary may have it. Numbers do not
 * tell, for those of later terms are larger. So these batches are put down as
 * failed, and stay so to the end of the process: who waits for them is told
 * that their fate is unknown. Only those of the last such time are known, which
 * is enough: they were all told then.
 *
 * In a directory without copies committed is UINT64_MAX, and nowhere else. */
#include "durable/durable_commit.h"

#include "base/assert.h"
#include "wal/wal_replica.h"

/* The log alone decides. */
#define BY_LOG_ALONE (UINT64_MAX - 1)

void
durable_commit__init(struct durable *durable)
{
    atomic_init(
        &durable->committed, durable->config.is_replicated ? 0 : UINT64_MAX);
    atomic_init(&durable->failed_from, 0);
    atomic_init(&durable->failed_to, 0);
}

void
durable_set_committed(struct durable *durable, uint64_t seq)
{
    uint64_t to = seq > BY_LOG_ALONE ? BY_LOG_ALONE : seq;
    /* relaxed, all: a number that tells nothing else */
    uint64_t now =
        atomic_load_explicit(&durable->committed, memory_order_relaxed);
    ASSERT(now != UINT64_MAX && durable->wal != NULL);
    while (now < to) {
        if (atomic_compare_exchange_weak_explicit(&durable->committed, &now,
                to, memory_order_relaxed, memory_order_relaxed)) {
            wal_tell(durable->wal);
            return;
        }
    }
}

void
durable_fail_uncommitted(struct durable *durable, uint64_t last)
{
    /* relaxed: as above; one thread takes roles at a time */
    uint64_t from =
        atomic_load_explicit(&durable->committed, memory_order_relaxed);
    from = from < last ? from : last;
    /* release, in this order: who sees a higher committed sees both */
    atomic_store_explicit(&durable->failed_to, last, memory_order_release);
    atomic_store_explicit(&durable->failed_from, from, memory_order_release);
    atomic_store_explicit(&durable->committed, from, memory_order_release);
    wal_tell(durable->wal);
}

enum wal_outcome
durable__outcome(
    const struct durable *durable, enum wal_outcome of_log, uint64_t seq)
{
    /* acquire: what has failed before is seen */
    uint64_t committed =
        atomic_load_explicit(&durable->committed, memory_order_acquire);
    uint64_t from =
        atomic_load_explicit(&durable->failed_from, memory_order_relaxed);
    uint64_t to =
        atomic_load_explicit(&durable->failed_to, memory_order_relaxed);
    if (seq > from && seq <= to) {
        return WAL_FAILED;
    }
    return of_log == WAL_COMMITTED && seq > committed ? WAL_WAITS : of_log;
}

bool
durable__is_committed(const struct durable *durable, uint64_t seq)
{
    /* relaxed: a number that tells nothing else */
    return seq <=
        atomic_load_explicit(&durable->committed, memory_order_relaxed);
}
