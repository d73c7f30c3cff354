/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_DIRECTORY_H
#define ENGINE_DIRECTORY_H

#include "engine/pool.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The directory of one counter in one shard: which table has a row number. A
 * tree of arrays in one block, whose steps follow the density of the tables,
 * so that a stray table far away costs one step and the rest stays flat.
 * Immutable but for its leaves, which may be exchanged. Whoever makes one,
 * exchanges a leaf or goes through the entries holds the shard's lock:
 * ranges*.c, which assert so. directory_find is for readers, too. */

struct table; /* directory.c knows of a table only what entries say */

/* A table and the aligned range it covers: base is a multiple of 2^width,
 * width 1..64. The pointer is even. */
struct directory_entry {
    uint64_t base;
    unsigned width;
    struct table *table;
};

/* An array of steps of 2^shift rows each. Whoever is not of this module leaves
 * it to directory_find. */
struct directory__node {
    uint64_t base;             /* first row of slot 0, a multiple of a step */
    uint32_t n_slots;          /* they end at 2^64 or before */
    uint32_t shift;            /* 0..63 */
    _Atomic(uintptr_t) slot[]; /* 0, a table, or a node + DIRECTORY__NODE */
};

enum { DIRECTORY__NODE = 1 };

/* The root node follows right behind. */
struct directory {
    struct pool_garbage garbage;   /* first: for pool_retire */
    size_t bytes;                  /* of the whole block */
    size_t n;                      /* entries */
    struct directory_entry *entry; /* in the block */
};

/* A directory of n (>= 0) entries in ascending order that do not overlap. 0,
 * ERR_HOT_FULL, ERR_NO_MEMORY. *out is the caller's. */
int directory_create(struct pool *pool, const struct directory_entry *entry,
    size_t n, enum pool_purpose purpose, struct directory **out);

/* Frees it at once (nobody can see it); NULL is fine. */
void directory_destroy(struct pool *pool, struct directory **directory);

/* Retires it; NULL is fine. The tables are not touched. */
void directory_retire(struct pool *pool, struct directory *directory);

/* The slot of a row; 0 where it is not in the node. */
static inline uintptr_t
directory__slot(const struct directory__node *node, uint64_t row)
{
    /* a row below base wraps round, and ends up beyond the last slot */
    uint64_t at = (row - node->base) >> node->shift;
    if (at >= node->n_slots) {
        return 0;
    }
    /* acquire: with the release of directory_replace */
    return atomic_load_explicit(&node->slot[at], memory_order_acquire);
}

/* A table that may have row, or NULL where none has: the caller compares row
 * with the table's own range. Any thread, at any time; acquire: what was
 * written to the table before it was published is seen. */
static inline struct table *
directory_find(const struct directory *directory, uint64_t row)
{
    uintptr_t slot =
        directory__slot((const struct directory__node *)(directory + 1), row);
    while (__builtin_expect((slot & DIRECTORY__NODE) != 0, 0)) {
        slot = directory__slot(
            (const struct directory__node *)(slot - DIRECTORY__NODE), row);
    }
    return (struct table *)slot;
}

/* Puts another table with the same range in the place of entry i; release. A
 * reader may get either until it returns. */
void directory_replace(
    struct directory *directory, size_t i, struct table *table);

/* The entries, ascending. */
size_t directory_count(const struct directory *directory);
const struct directory_entry *directory_entries(
    const struct directory *directory);

/* The index of the first entry whose base is above row, minus one: the entry
 * at or before row; -1 where all lie above. */
ptrdiff_t directory_before(const struct directory *directory, uint64_t row);

/* Of the block; 0 for NULL. */
size_t directory_bytes(const struct directory *directory);

/* Asserts the invariants; for tests. */
void directory_verify(const struct directory *directory);

#endif
