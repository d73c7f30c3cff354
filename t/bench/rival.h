/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RIVAL_H
#define BENCH_RIVAL_H

#include "bench/posts.h"
#include "engine/cell.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Other tables with the same records, of the main distribution with three
 * columns, to be measured beside the engine. Reads only, after rival_fill. */

/* The classic layout: fixed items of a 32-bit low id and three numbers side by
 * side, a table for each range of 2^32 ids, double hashing at 95 % load.
 * Numbers that do not fit are stored as the largest that does, and paid for
 * in a side table that is counted but not there. */
enum {
    CLASSIC_ITEM_LARGE = 12, /* 32 + 16 + 16 + 16 + 16 (flags) bits */
    CLASSIC_ITEM_SMALL = 8,  /* 32 + 12 + 10 + 10 bits */
    CLASSIC_SIDE_BYTES = 20  /* id and three times 32 bits */
};

struct classic_table {
    uint64_t first; /* item */
    uint32_t slots; /* a prime */
};

struct classic {
    unsigned item_bytes;
    uint64_t first_range; /* id >> 32 of table[0] */
    size_t n_tables;
    struct classic_table *table; /* owned */
    unsigned char *item;         /* owned; all zero: free */
    size_t items;
    uint64_t records, wide;
};

/* mask as in struct hot_fill. Fails when memory is out. */
void classic_init(struct classic *classic, unsigned item_bytes,
    const struct posts *posts, const uint64_t *mask);
void classic_fini(struct classic *classic);

/* As engine_get; columns other than 0 to 2 do not exist. */
void classic_get(const struct classic *classic, const struct cell_key *key,
    size_t n, uint64_t *value);

/* A record, all counted. */
double classic_bytes(const struct classic *classic);

/* uthash, a hash table of linked nodes from the heap. Only where configure has
 * found it; else the rest may not be called. */
bool chained_is_there(void);

struct chained {
    struct chained_node *head;
    uint64_t records;
    double bytes; /* a record, of the heap */
};

void chained_init(
    struct chained *chained, const struct posts *posts, const uint64_t *mask);
void chained_fini(struct chained *chained);
void chained_get(const struct chained *chained, const struct cell_key *key,
    size_t n, uint64_t *value);

#endif
