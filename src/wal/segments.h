/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_SEGMENTS_H
#define WAL_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which segment files answer for which ids, as the manifest says it: by
 * counter and ids, of which no two entries have the same. One thread at a time.
 */

struct manifest_segment {
    uint64_t number;  /* of the file, from 1 on; several may be parts of one */
    uint64_t history; /* of the file (wal/histories.h) */
    uint32_t counter_serial; /* not 0 */
    uint8_t counter;         /* slot */
    /* What it covers: first_id and last_id + 1 (modulo 2^64) are multiples of
     * the number of shards, so that they are the same rows in each shard. */
    uint64_t first_id, last_id;
    uint64_t records; /* in the whole file */
    /* Of each shard: what the log has of the ids in batches up to that one is
     * in the file, or has been told anew behind it. Owned. */
    uint64_t *seq;
};

struct alloc; /* base/alloc.h */

/* All zero but for shards is empty. */
struct segments {
    const struct alloc *alloc;        /* NULL: the heap */
    uint32_t shards;                  /* length of each seq */
    struct manifest_segment *segment; /* owned; by serial and ids */
    size_t n, capacity;
};

/* Empties it; alloc and shards stay. */
void segments_fini(struct segments *segments);

/* True where an entry is one that there may be. */
bool segments_is_right(
    const struct segments *segments, const struct manifest_segment *segment);

/* Adds a copy, of seq too. It is right, and no other has some of its ids. 0 or
 * ERR_NO_MEMORY (nothing has changed). */
int segments_add(
    struct segments *segments, const struct manifest_segment *segment);

/* Takes those out of which is_gone_fn says so. */
void segments_drop(struct segments *segments,
    bool (*is_gone_fn)(
        const void *context, const struct manifest_segment *segment),
    const void *context);

/* Those of one counter, *n of them, by ids. */
const struct manifest_segment *segments_of(
    const struct segments *segments, uint32_t counter_serial, size_t *n);

/* The first of n of one counter that ends with that id or behind it; n where
 * there is none. */
size_t segments_place(
    const struct manifest_segment *segment, size_t n, uint64_t id);

/* What covers an id, or NULL. */
const struct manifest_segment *segments_find(
    const struct segments *segments, uint32_t counter_serial, uint64_t id);

/* True where some entry is of that file. */
bool segments_has_file(const struct segments *segments, uint64_t number);

/* The largest number of a file; 0: there is none. */
uint64_t segments_last_file(const struct segments *segments);

/* The largest sequence number of all of them; 0: there is none. */
uint64_t segments_last_seq(const struct segments *segments);

/* Asserts the invariants. */
void segments_verify(const struct segments *segments);

#endif
