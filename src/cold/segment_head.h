/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_SEGMENT_HEAD_H
#define COLD_SEGMENT_HEAD_H

#include "cold/block.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a segment file has around its blocks, as bytes: the head, the index,
 * and the names of the files (doc/format-segment.md). Pure; any thread. */

enum {
    SEGMENT_VERSION = 1,
    SEGMENT_NAME_BYTES = 40,
    SEGMENT_HEAD_BYTES = BLOCK_BYTES_MAX,
    SEGMENT_SUM_BYTES = 8,
    SEGMENT_BLOCKS_MAX = 1 << 22 /* 16 GB */
};

struct segment_column {
    uint32_t serial;        /* not 0 */
    uint8_t slot;           /* 0..15 */
    uint64_t default_value; /* what a code is the distance to */
};

struct segment_head {
    uint64_t epoch;  /* the history of the file, or, where it is older than
                     * these, the epoch of the data directory; not 0 */
    uint64_t number; /* of the file; no other has had it */
    uint64_t seq;    /* log batches up to this one are in it */
    uint32_t counter_serial;                          /* not 0 */
    uint8_t counter;                                  /* slot */
    uint8_t n_columns;                                /* 1..16 */
    struct segment_column column[SCHEMA_COLUMNS_MAX]; /* by slot, ascending */
    /* what follows is known when all records are */
    uint64_t records;           /* 1.. */
    uint64_t first_id, last_id; /* of records */
    uint32_t n_blocks;          /* 1..SEGMENT_BLOCKS_MAX */
    uint32_t index_bytes;       /* with its checksum */
};

/* The seeds of a file's checksums: no part of a file has that of another part
 * or of another file, so what is read from a wrong place is found out. */
uint64_t segment_seed_block(const struct segment_head *head, uint32_t block);

/* Where block number `block` begins in the file; that of n_blocks: the index.
 */
uint64_t segment_block_at(uint32_t block);

/* How long the file is. */
uint64_t segment_file_bytes(const struct segment_head *head);

/* True where a head may have these epoch, number, counter and columns. */
bool segment_head__is_sound(const struct segment_head *head);

/* Writes the head, which is sound and complete, to out (SEGMENT_HEAD_BYTES). */
void segment_head__put(const struct segment_head *head, uint8_t *out);

/* Checks and reads one (SEGMENT_HEAD_BYTES) of that epoch and number. 0,
 * ERR_CORRUPT, ERR_NEWER_FORMAT. */
int segment_head_get(const uint8_t *in, uint64_t epoch, uint64_t number,
    struct segment_head *out);

/* True where it is a whole head, but of another epoch or number. */
bool segment_head_is_foreign(
    const uint8_t *in, uint64_t epoch, uint64_t number);

/* Writes what the index has of a block that begins with id, above the one
 * before that begins with `before` (room for BYTES_VARINT_MAX); how many bytes.
 * The first block has nothing there: its id is in the head. */
size_t segment__index_put(uint8_t *out, uint64_t before, uint64_t id);

/* Writes the checksum behind the len bytes of all blocks. */
void segment__index_end(
    const struct segment_head *head, uint8_t *index, size_t len);

/* Checks the index of a sound head (head->index_bytes) and writes the first id
 * of each block to first[0..n_blocks). 0 or ERR_CORRUPT. */
int segment_index_get(
    const struct segment_head *head, const uint8_t *in, uint64_t *first);

/* Writes the name of the file, or the one it has while it is written. */
void segment_name(char out[SEGMENT_NAME_BYTES], uint64_t number, bool is_new);

/* True where name is one that segment_name makes. */
bool segment_name_parse(const char *name, uint64_t *number, bool *is_new);

#endif
