/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_BLOCK_H
#define COLD_BLOCK_H

#include "base/alloc.h"
#include "cold/ids.h"
#include "cold/series.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block of a segment, read: sorted records, compressed column by column
 * (doc/format-segment.md). Codes are stored as the engine has them (the value
 * where the column's default is 0, else the zigzag of the distance to it);
 * which columns they are, the segment says. Pure: no I/O; what is told of
 * threads is told of the structures. */

enum {
    BLOCK_BYTES_MAX = 4096, /* on disk, all of it */
    BLOCK_RECORDS_MAX = SERIES_MAX,
    BLOCK_COLUMNS_ALL = (1 << SCHEMA_COLUMNS_MAX) - 1, /* a set of columns: bit
     * c is column c */
    BLOCK_VERSION = 1,
    BLOCK_HEAD_BYTES = 16,
    BLOCK_SUM_BYTES = 8
};

#define BLOCK_CODECS(X)                                                       \
    X(PLAIN, "plain", "numbers as bytes")                                     \
    X(ZSTD, "zstd", "the same, compressed by zstd")                           \
    X(PACKED, "packed", "Rice's code and trees of planes")

enum block_codec {
#define X(name, word, text) BLOCK_##name,
    BLOCK_CODECS(X)
#undef X
        BLOCK_CODEC_COUNT,
    BLOCK_AUTO = BLOCK_CODEC_COUNT /* the smallest of them; for writers */
};

/* The word of a codec, "auto" included, for what tests and benchmarks name by
 * it. Static storage. */
const char *block_codec_name(enum block_codec codec);

/* A block that has been checked. Points into the bytes, which stay the
 * caller's and must not change. Immutable: any number of threads. */
struct block {
    const uint8_t *bytes;
    size_t len; /* of the block: 4096 at most */
    enum block_codec codec;
    unsigned n_columns; /* 1..SCHEMA_COLUMNS_MAX */
    size_t n;           /* records: 1..BLOCK_RECORDS_MAX */
    uint64_t first_id;
    struct ids_shape shape;
    size_t payload, end; /* where it begins and ends, in bytes */
};

/* Checks the block at the front of bytes[0..len): checksum, seed and sizes.
 * Bytes behind its end do not matter. 0, ERR_CORRUPT, ERR_NEWER_FORMAT. */
int block_open(
    const uint8_t *bytes, size_t len, uint64_t seed, struct block *out);

/* What reading takes room for; it grows to what the largest block asked for
 * (2.5 MB at most) and stays until the end. One thread at a time; all zero but
 * alloc is empty. */
struct block_room {
    const struct alloc *alloc; /* of arrays; NULL: the heap */
    void *zstd;                /* owned; zstd has its own memory */
    uint8_t *raw;              /* owned: raw_bytes */
    size_t raw_bytes;
    uint64_t *spare; /* owned: n_spare */
    size_t n_spare;
};
void block_room_fini(struct block_room *room);

/* Decodes all records: id[0..n) ascending, code[c][0..n) for each column, the
 * caller's arrays. 0, ERR_CORRUPT (arrays may have been written to),
 * ERR_NO_MEMORY. The bytes are not believed, though their checksum is right. */
int block_decode(const struct block *block, struct block_room *room,
    uint64_t *id, uint64_t *const *code);

/* Looks for one record, decoding as little as is needed; code[0..n_columns) is
 * written where *found. 0, ERR_CORRUPT, ERR_NO_MEMORY (*found is false then).
 * In a block that decodes, it finds what block_decode shows, and nothing
 * else. */
int block_find(const struct block *block, struct block_room *room, uint64_t id,
    uint64_t *code, bool *found);

#endif
