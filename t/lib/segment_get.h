/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SEGMENT_GET_H
#define LIB_SEGMENT_GET_H

#include "cold/block.h"
#include "cold/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lookups in a segment without a cache, a pool of threads or a ring: what the
 * server's (cold/fetch.h) are compared with. */

/* Reads and checks block number `block`, which is where *out points into:
 * bytes has BLOCK_BYTES_MAX, the caller's. Errors as of segment__try_block, and
 * the logger has said what was wrong. */
int segment_read_block(const struct segment *segment, uint32_t block,
    uint8_t *bytes, struct block *out);

/* What segment_get takes room for. One thread at a time; all zero but
 * room.alloc is empty. */
struct segment_room {
    struct block_room room;
    uint8_t bytes[BLOCK_BYTES_MAX];
};

/* Looks for n ids, found[i] whether there is a record of id[i]; code[i][c] is
 * its number in column c then. Ids of one block that stand side by side cost
 * one read. 0, or errors as above and ERR_NO_MEMORY: found says nothing then.
 */
int segment_get(const struct segment *segment, struct segment_room *room,
    const uint64_t *id, size_t n, uint64_t (*code)[SCHEMA_COLUMNS_MAX],
    bool *found);

#endif
