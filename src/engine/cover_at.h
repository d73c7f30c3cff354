/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_COVER_AT_H
#define ENGINE_COVER_AT_H

#include "engine/cover.h"

/* The cover, for one counter's tables in one shard: it says which records
 * without a number they have to keep. Under the shard's lock. */

struct cover_at {
    const struct engine_cover *cover; /* not owned; NULL: nothing is covered */
    unsigned slot, shard;
    bool is_held; /* all rows count as covered: an eviction is under way */
};

/* See engine_cover.version_fn. */
static inline uint64_t
cover_version(const struct cover_at *at, uint64_t row)
{
    return at->cover == NULL
        ? 0
        : at->cover->version_fn(at->cover, at->slot, at->shard, row);
}

/* True where a record of that row stays when it holds nothing. at may be
 * NULL: nothing is covered. */
static inline bool
cover_keeps(const struct cover_at *at, uint64_t row)
{
    return at != NULL && (at->is_held || cover_version(at, row) != 0);
}

/* True where that may be so for some of these rows. */
static inline bool
cover_keeps_any(const struct cover_at *at, uint64_t first, uint64_t last)
{
    return at->cover != NULL &&
        (at->is_held ||
            at->cover->any_fn(at->cover, at->slot, at->shard, first, last));
}

/* See engine_cover.last_row_fn; of a counter of pairs. */
static inline bool
cover_last_row(const struct cover_at *at, uint64_t *row)
{
    return at->cover != NULL &&
        at->cover->last_row_fn(at->cover, at->slot, at->shard, row);
}

#endif
