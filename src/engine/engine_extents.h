/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_EXTENTS_H
#define ENGINE_ENGINE_EXTENTS_H

#include "engine/engine.h"

/* One table, from outside. */
struct engine_extent {
    uint64_t first_row, last_row; /* its range */
    uint64_t n_records;
    unsigned n_columns; /* of the counter */
};

/* The first table of a counter in a shard that has rows from `row` on; false
 * where there is none. Any thread. */
bool engine_extent(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t row, struct engine_extent *out);

#endif
