/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_TABLE_H
#define ITEMS_TABLE_H

#include "items/pool.h"

/* The hash table of a stripe: linear hashing, so that it grows by one bucket
 * at a time. Inside src/items only; all functions want the stripe's lock. */

enum { ITEMS__CHUNK = 128 /* buckets that are allocated together */ };

struct items_key {
    const char *text;
    size_t len;
    bool is_hidden; /* items_terms.is_hidden */
    uint64_t hash;  /* high bits: the stripe; low ones: the bucket */
};

struct table {
    struct pool *pool; /* read-only, as the next: memory is charged to it */
    uint64_t seed;
    uint64_t n; /* entries */
    uint64_t n_buckets;
    uint64_t n_whole;       /* the power of two at or below n_buckets */
    struct entry ***chunks; /* [0] is first; NULL: that is the only one */
    uint64_t chunks_cap;    /* a power of two */
    struct entry *first[ITEMS__CHUNK];
};

uint64_t items__hash(const char *text, size_t len, uint64_t seed);

void items__table_init(struct table *table, struct pool *pool, uint64_t seed);
void items__table_fini(struct table *table); /* must be empty */

struct entry *items__table_find(
    struct table *table, const struct items_key *key);

/* Puts in what is not there yet. Cannot fail: where there is no memory for
 * another bucket, chains grow longer until there is. */
void items__table_add(struct table *table, struct entry *entry, uint64_t hash);

/* Puts entry (NULL: nothing) where old is. */
void items__table_replace(struct table *table, struct entry *old,
    struct entry *entry, uint64_t hash);

/* The first entry of a bucket below n_buckets. While the table grows entries
 * only move to a bucket of a higher number, the newest. */
struct entry *items__table_bucket(struct table *table, uint64_t bucket);

/* Bytes charged beside the struct. */
uint64_t items__table_bytes(const struct table *table);

void items__table_verify(struct table *table);

#endif
