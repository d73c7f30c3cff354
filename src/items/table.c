/* SPDX-License-Identifier: BSD-3-Clause */
/* Linear hashing (Litwin, 1980). With n_whole <= n_buckets < 2 n_whole, the
 * buckets from 0 to n_buckets - n_whole have been split: what hashes to them
 * is there or n_whole further. Adding an entry to a table that has as many as
 * buckets splits the next one: the work of a change never depends on the size
 * of the table.
 *
 * Buckets are in chunks, chunks in an array that doubles: that copies a
 * pointer for each ITEMS__CHUNK entries, 10 KB in the stripes of a cache of
 * 10^7 items. The hash is not kept but made from the key where a bucket is
 * split: 4 to 8 bytes an entry less. Tables do not shrink. */
#include "items/table.h"

#include "base/assert.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t
items__hash(const char *text, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(text, len, seed);
}

void
items__table_init(struct table *table, struct pool *pool, uint64_t seed)
{
    *table = (struct table){
        .pool = pool, .seed = seed, .n_buckets = 1, .n_whole = 1};
}

static uint64_t
n_chunks(const struct table *table)
{
    return (table->n_buckets + ITEMS__CHUNK - 1) / ITEMS__CHUNK;
}

void
items__table_fini(struct table *table)
{
    ASSERT(table->n == 0);
    if (table->chunks != NULL) {
        for (uint64_t i = 1; i < n_chunks(table); i++) {
            items__pool_block_free(table->pool, table->chunks[i],
                ITEMS__CHUNK * sizeof(struct entry *));
        }
        items__pool_block_free(table->pool, table->chunks,
            table->chunks_cap * sizeof *table->chunks);
    }
}

static struct entry **
place(struct table *table, uint64_t bucket)
{
    if (bucket < ITEMS__CHUNK) {
        return &table->first[bucket];
    }
    return &table->chunks[bucket / ITEMS__CHUNK][bucket % ITEMS__CHUNK];
}

static uint64_t
bucket_of(const struct table *table, uint64_t hash)
{
    uint64_t bucket = hash & (2 * table->n_whole - 1);

    return bucket < table->n_buckets ? bucket : bucket - table->n_whole;
}

struct entry *
items__table_bucket(struct table *table, uint64_t bucket)
{
    ASSERT(bucket < table->n_buckets);
    return *place(table, bucket);
}

struct entry *
items__table_find(struct table *table, const struct items_key *key)
{
    struct entry *at = *place(table, bucket_of(table, key->hash));

    while (at != NULL &&
        (at->key_len != key->len ||
            memcmp(at->bytes, key->text, key->len) != 0 ||
            at->is_hidden != key->is_hidden)) {
        at = at->next;
    }
    return at;
}

/* Room in the array for one chunk more. */
static bool
widen(struct table *table)
{
    uint64_t cap = table->chunks_cap == 0 ? 2 : 2 * table->chunks_cap;
    struct entry ***chunks;

    if (n_chunks(table) < table->chunks_cap) {
        return true;
    }
    chunks = items__pool_block(table->pool, cap * sizeof *chunks);
    if (chunks == NULL) {
        return false;
    }
    if (table->chunks == NULL) {
        chunks[0] = table->first;
    } else {
        memcpy(chunks, table->chunks, table->chunks_cap * sizeof *chunks);
        items__pool_block_free(
            table->pool, table->chunks, table->chunks_cap * sizeof *chunks);
    }
    table->chunks = chunks;
    table->chunks_cap = cap;
    return true;
}

/* Memory for the bucket behind the last one. */
static bool
has_next(struct table *table)
{
    struct entry **chunk;

    if (table->n_buckets % ITEMS__CHUNK != 0) {
        return true;
    }
    if (!widen(table)) {
        return false;
    }
    ASSERT(table->n_buckets / ITEMS__CHUNK < table->chunks_cap);
    chunk =
        items__pool_block(table->pool, ITEMS__CHUNK * sizeof(struct entry *));
    table->chunks[table->n_buckets / ITEMS__CHUNK] = chunk;
    return chunk != NULL;
}

static void
split(struct table *table)
{
    struct entry **from = place(table, table->n_buckets - table->n_whole);
    struct entry **to;

    ASSERT(table->n_whole <= table->n_buckets);
    ASSERT(table->n_buckets < 2 * table->n_whole);
    if (!has_next(table)) {
        return;
    }
    to = place(table, table->n_buckets);
    ASSERT(*to == NULL);
    while (*from != NULL) {
        struct entry *entry = *from;
        uint64_t hash = items__hash(entry->bytes, entry->key_len, table->seed);

        if ((hash & table->n_whole) != 0) {
            *from = entry->next;
            entry->next = *to;
            *to = entry;
        } else {
            from = &entry->next;
        }
    }
    table->n_buckets++;
    if (table->n_buckets == 2 * table->n_whole) {
        table->n_whole = table->n_buckets;
    }
}

void
items__table_add(struct table *table, struct entry *entry, uint64_t hash)
{
    struct entry **at = place(table, bucket_of(table, hash));

    entry->next = *at;
    *at = entry;
    table->n++;
    if (table->n > table->n_buckets) {
        split(table);
    }
}

void
items__table_replace(
    struct table *table, struct entry *old, struct entry *entry, uint64_t hash)
{
    struct entry **at = place(table, bucket_of(table, hash));

    while (*at != old) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    if (entry != NULL) {
        entry->next = old->next;
        *at = entry;
    } else {
        *at = old->next;
        ASSERT(table->n > 0);
        table->n--;
    }
    old->next = NULL;
}

uint64_t
items__table_bytes(const struct table *table)
{
    if (table->chunks == NULL) {
        return 0;
    }
    return (n_chunks(table) - 1) * ITEMS__CHUNK * sizeof(struct entry *) +
        table->chunks_cap * sizeof *table->chunks;
}

void
items__table_verify(struct table *table)
{
    uint64_t n = 0;

    ASSERT(table->n_whole <= table->n_buckets);
    ASSERT(table->n_buckets < 2 * table->n_whole);
    for (uint64_t b = 0; b < table->n_buckets; b++) {
        for (struct entry *at = *place(table, b); at != NULL; at = at->next) {
            uint64_t hash = items__hash(at->bytes, at->key_len, table->seed);

            ASSERT(bucket_of(table, hash) == b);
            n++;
        }
    }
    ASSERT(n == table->n);
}
