/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_BLOCK_BUILD_H
#define COLD_BLOCK_BUILD_H

#include "cold/block.h"

/* Records into blocks that are as full as can be. Pure: no I/O. One thread at a
 * time. */

enum { BLOCK_LEVEL_DEFAULT = 3 /* of zstd */ };

struct block_options {
    enum block_codec codec; /* BLOCK_AUTO: the smallest for each block */
    int level;              /* of zstd */
    unsigned n_columns;     /* 1..SCHEMA_COLUMNS_MAX */
};

struct block_builder;

/* A builder without records. Takes 0.8 MB and 128 KB a column from alloc (NULL:
 * the heap), and what zstd takes for itself. 0 or ERR_NO_MEMORY. */
int block_builder_create(const struct block_options *options,
    const struct alloc *alloc, struct block_builder **out);

/* Frees it with the records in it; NULL is fine. */
void block_builder_destroy(struct block_builder **builder);

/* Whether it has records enough to try a block, so that block_builder_cut comes
 * next and nothing is to be added before. */
bool block_builder_is_full(const struct block_builder *builder);

/* Adds a record: id above all before it, a code for each column. The builder is
 * not full. */
void block_builder_add(
    struct block_builder *builder, uint64_t id, const uint64_t *code);

/* How many records it has. */
size_t block_builder_count(const struct block_builder *builder);

/* The first id of those that it has, one at least: the one that the next block
 * begins with. */
uint64_t block_builder_first_id(const struct block_builder *builder);

/* Writes the first records as a block to out (BLOCK_BYTES_MAX; 0 behind the
 * block's end) and drops them: as many as fit, so that with one more the block
 * would be too long. *len is its length, *n how many they were. *len is 0 and
 * nothing dropped where it had no record, or, unless is_end, where more than
 * those that it has would fit: it is not full any more then. seed as for
 * block_open. 0 or ERR_NO_MEMORY (nothing dropped). */
int block_builder_cut(struct block_builder *builder, bool is_end,
    uint64_t seed, uint8_t *out, size_t *len, size_t *n);

#endif
