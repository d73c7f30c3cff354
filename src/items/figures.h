/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_FIGURES_H
#define ITEMS_FIGURES_H

#include <stddef.h>
#include <stdint.h>

/* The figures of the items, by memcached's names. Any thread. */

struct items; /* items/items.h */

/* What is held now, and sums since the start or the last items_stats_reset.
 * One X-macro table each; the names are memcached's. */
#define ITEMS_STATS_HELD(X)                                                   \
    X(curr_items, "items held now")                                           \
    X(bytes, "memory of the items held now, their overhead included")

#define ITEMS_STATS_SUMS(X)                                                   \
    X(total_items, "items ever stored")                                       \
    X(evictions, "live items given up for room")                              \
    X(evicted_unfetched, "of these, never read")                              \
    X(evicted_active,                                                         \
        "of these, read often enough to stay, had it not been "               \
        "urgent")                                                             \
    X(expired_unfetched, "of the reclaimed items, never read")                \
    X(reclaimed, "expired and flushed items met and given up")                \
    X(get_expired, "reads that met an expired item")                          \
    X(get_flushed, "reads that met a flushed item")                           \
    X(crawler_reclaimed, "expired and flushed items found by items_tend")     \
    X(crawler_items_checked, "items that items_tend looked at")               \
    X(moves_to_warm, "items that were moved to stay: used while fresh")       \
    X(moves_within_lru, "items moved again: used since, or out of a gap")     \
    X(direct_reclaims, "segments that a store cleaned to have room")

#define ITEMS_STATS_SYSTEM(X)                                                 \
    X(held_bytes, "all memory that the limit is for")                         \
    X(hash_bytes, "of this, hash tables")                                     \
    X(hash_power_level, "log2 of their buckets, rounded down")                \
    X(limit_bytes, "the limit")

#define ITEMS_STATS(X) ITEMS_STATS_HELD(X) ITEMS_STATS_SUMS(X)

struct items_stats {
#define X(name, text) uint64_t name;
    ITEMS_STATS(X)
    ITEMS_STATS_SYSTEM(X)
#undef X
};

enum { ITEMS_CLASSES = 64 /* memcached's slab classes: 1 to 63 */ };

#define ITEMS_CLASS_HELD(X)                                                   \
    X(number, "items of the class")                                           \
    X(mem_requested, "their bytes, as memcached counts them")

#define ITEMS_CLASS_SUMS(X)                                                   \
    X(evicted, "live items given up for room")                                \
    X(evicted_nonzero, "of these, with an expiry")                            \
    X(evicted_unfetched, "of these, never read")                              \
    X(evicted_active, "of these, read often")                                 \
    X(outofmemory, "stores that failed for want of memory")                   \
    X(reclaimed, "expired and flushed items given up")                        \
    X(expired_unfetched, "of these, never read")                              \
    X(crawler_reclaimed, "of these, found by items_tend")                     \
    X(crawler_items_checked, "items that items_tend looked at")               \
    X(moves_to_warm, "items that were moved to stay")                         \
    X(moves_within_lru, "items moved again")                                  \
    X(get_hits, "reads")                                                      \
    X(cmd_set, "stores that were tried")                                      \
    X(delete_hits, "deletes")                                                 \
    X(incr_hits, "incr")                                                      \
    X(decr_hits, "decr")                                                      \
    X(cas_hits, "stores whose cas was right")                                 \
    X(cas_badval, "stores whose cas was wrong")                               \
    X(touch_hits, "reads and touches that set an expiry")

struct items_class {
    uint64_t chunk_bytes;    /* memcached's chunk; 0: there is no such class */
    uint64_t oldest_s;       /* no item of it is older; 0: it has none */
    uint64_t evicted_time_s; /* how long the last evicted was unused */
#define X(name, text) uint64_t name;
    ITEMS_CLASS_HELD(X)
    ITEMS_CLASS_SUMS(X)
#undef X
};

void items_stats(struct items *items, struct items_stats *out);

/* The figures by size class; out[0] is all 0. Walks over the segments of
 * memory, some hundreds in a small cache: for stats. */
void items_classes(struct items *items, struct items_class out[ITEMS_CLASSES]);

/* Takes all sums back to 0. */
void items_stats_reset(struct items *items);

/* The class of an item. */
unsigned items_class_of(
    const struct items *items, size_t key_len, size_t value_len);

#endif
