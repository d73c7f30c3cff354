/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_EXTENTS_H
#define ENGINE_ENGINE_EXTENTS_H

#include "engine/engine.h"

/* One table, from outside. */
struct engine_extent {
    uint64_t first_row, last_row; /* its range */
    uint64_t n_records;
    uint64_t bytes;     /* of memory */
    unsigned n_columns; /* of the counter */
    float heat;    /* rounds of engine_tend that found it written, each halved
                 * every ten minutes (engine/table_heat.h); after a start 0 */
    bool is_clean; /* it has not changed since engine_copy, or loading */
};

/* The first table of a counter in a shard that has rows from `row` on; false
 * where there is none. Any thread. */
bool engine_extent(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t row, struct engine_extent *out);

/* About how many records the first table that has rows from first_row on has in
 * rows first_row..last_row: by a sample of its lines and by all of its stash,
 * where not all of its rows are in there. Holds the shard's lock for some
 * microseconds, and some nanoseconds for each record in the stash. Any
 * thread. */
uint64_t engine_extent_part(struct engine *engine, unsigned slot,
    unsigned shard, uint64_t first_row, uint64_t last_row);

/* The lowest row of first_row..last_row that has a record, exactly; false where
 * none has. Looks at tables until one has it, each under the shard's lock, for
 * some nanoseconds a record. Any thread. */
bool engine_extent_first(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row, uint64_t *row);

/* The largest id of a counter that has had a record, here or in what covers
 * it, since the start; false where none has. Any thread. */
bool engine_largest(struct engine *engine, unsigned slot, uint64_t *id);

/* Records of a counter in rows first_row..last_row of a shard, tombstones too.
 * Exact, but for what changes meanwhile: a table that reaches over an end is
 * gone through, with the shard's lock held for some ns a record. Any thread. */
uint64_t engine_count(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row);

#endif
