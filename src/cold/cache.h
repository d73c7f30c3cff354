/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_CACHE_H
#define COLD_CACHE_H

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks of segments in memory, within a budget. What a block is, the cache
 * does not know: some bytes, which do not change once they are kept. Any
 * thread, but for create and destroy. */

enum {
    CACHE_BYTES_MIN = 64 << 10 /* a budget below that keeps nothing */
};

struct cache_key {
    uint64_t segment; /* its number, which no other one ever has */
    uint32_t block;
};

struct cache;

/* An empty cache. budget_bytes is what it may take from alloc (NULL: the heap)
 * at most, all of its own structures included; 0.5 % of it is taken at once. 0
 * or ERR_NO_MEMORY. */
int cache_create(
    uint64_t budget_bytes, const struct alloc *alloc, struct cache **out);

/* Frees it; NULL in it is fine. Nothing may be pinned. */
void cache_destroy(struct cache **cache);

/* The bytes kept under the key, which stay until cache_unpin; NULL where there
 * are none. */
void *cache_pin(struct cache *cache, struct cache_key key);

/* Asks for the memory that cache_pin will look at first. Any thread. */
void cache_prefetch(const struct cache *cache, struct cache_key key);

/* Gives back what cache_pin or cache_take has returned. */
void cache_unpin(struct cache *cache, void *bytes);

/* Memory for len (>= 1) bytes that are to be kept under the key, aligned for
 * 64-bit numbers, pinned; nobody else sees it yet. Makes room. NULL where
 * memory is out, or where they are too many, or all others pinned. */
void *cache_take(struct cache *cache, struct cache_key key, size_t len);

/* The bytes are complete: from now on cache_pin finds them, unless others are
 * kept under the key already. They are still pinned. */
void cache_keep(struct cache *cache, void *bytes);

/* Drops all blocks of a segment; those that are pinned stay in memory until
 * they are not. A block of it that is kept later ages like others. Goes through
 * all entries, some thousand under a lock at a time. */
void cache_forget(struct cache *cache, uint64_t segment);

/* Figures of one moment. */
#define CACHE_STATS(X)                                                        \
    X(budget_bytes, "memory that the cache may take")                         \
    X(bytes, "memory that it takes, its own structures included")             \
    X(blocks, "blocks kept")                                                  \
    X(main_blocks, "of these, those asked for again some time after")         \
    X(kept, "blocks that came in")                                            \
    X(evicted, "blocks dropped to make room")                                 \
    X(forgotten, "blocks dropped with their segment")                         \
    X(refused, "blocks not kept: no memory, too large, or all others in use")

struct cache_stats {
#define X(name, text) uint64_t name;
    CACHE_STATS(X)
#undef X
};

void cache_stats(struct cache *cache, struct cache_stats *out);

/* Asserts what must hold of its structures. For tests. */
void cache_verify(struct cache *cache);

#endif
