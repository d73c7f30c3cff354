/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_EXTENTS_H
#define ENGINE_ENGINE_EXTENTS_H

#include "engine/engine.h"

/* One table, from outside. */
struct engine_extent {
    uint64_t first_row, last_row; /* its range */
    uint64_t n_records;
    unsigned n_columns; /* of the counter */
    bool is_clean;      /* it has not changed since engine_copy, or loading */
};

/* The first table of a counter in a shard that has rows from `row` on; false
 * where there is none. Any thread. */
bool engine_extent(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t row, struct engine_extent *out);

/* Records of a counter in rows first_row..last_row of a shard, tombstones too.
 * Exact, but for what changes meanwhile: a table that reaches over an end is
 * gone through, with the shard's lock held for some ns a record. Any thread. */
uint64_t engine_count(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row);

#endif
