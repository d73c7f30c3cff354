/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_COLD_COUNT_H
#define TIER_COLD_COUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Counts pairs behind a start, where segments have some (engine_count_rows).
 * Part of the store; nobody else calls it. */

struct cold;

/* The tending thread's. */
struct cold_counting {
    bool is_over;
    unsigned at;       /* of engine_each_pairs: where it goes on */
    uint32_t serial;   /* of the pairs under way; 0: none are */
    uint64_t next_row; /* of all shards, the first that is not counted */
};

/* Background work: reads some thousand pairs of segments, and counts the rows
 * up to them. A counter of which some cannot be read stays as it is, and as one
 * that is being counted. True where there may be more to do now. Waits for the
 * disk, under edit_lock. The thread of cold_take_out. */
bool cold_count(struct cold *cold);

#endif
