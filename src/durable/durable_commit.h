/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_COMMIT_H
#define DURABLE_DURABLE_COMMIT_H

#include "durable/durable.h"

/* What is committed in a directory that others have copies of. The log says
 * what it has itself, by its own rules; who knows of the copies says here up to
 * which batch they have it as well. Both together decide what is acknowledged,
 * and what a manifest may have. Any thread. */

/* Nothing is committed yet; of a directory that nobody else has a copy of the
 * log alone decides, always. */
void durable_commit__init(struct durable *durable);

/* Nothing behind batch seq is committed; UINT64_MAX: the log alone decides. A
 * number that is not above the last one changes nothing. Tells the log's
 * listeners otherwise. All is loaded. */
void durable_set_committed(struct durable *durable, uint64_t seq);

/* What a primary has up to batch last and is not committed fails from now on,
 * whatever is committed later: others may have decided that it never was. What
 * comes is committed only when durable_set_committed says so. */
void durable_fail_uncommitted(struct durable *durable, uint64_t last);

enum wal_outcome durable__outcome(
    const struct durable *durable, enum wal_outcome of_log, uint64_t seq);

/* Where batch seq stands, of which the log says of_log. */
static inline enum wal_outcome
durable_outcome(
    const struct durable *durable, enum wal_outcome of_log, uint64_t seq)
{
    /* relaxed: as wal_outcome; who waits is told afterwards */
    return atomic_load_explicit(&durable->committed, memory_order_relaxed) ==
            UINT64_MAX
        ? of_log
        : durable__outcome(durable, of_log, seq);
}

/* True where what is up to batch seq can be put into a manifest, as far as
 * others are concerned. */
bool durable__is_committed(const struct durable *durable, uint64_t seq);

#endif
