/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_COLD_MISSES_H
#define BENCH_COLD_MISSES_H

#include "bench/cold_worlds.h"
#include "bench/sheet.h"
#include "cold/segment.h"

/* Lookups of ids that have no record, in a segment: how many of them need a
 * block, and how many would with more in memory. */

enum { COLD_MISSES_COLUMNS = 9 };

extern const struct sheet_column cold_misses_columns[COLD_MISSES_COLUMNS];

/* Adds the row of one world, whose records the segment has. Asked for are ids
 * of its posts without a number. */
void cold_misses(const struct cold_world *world,
    const struct cold_choice *choice, const struct cold_records *records,
    const struct segment *segment, struct sheet *sheet);

#endif
