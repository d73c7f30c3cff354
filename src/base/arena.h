/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/alloc.h"

#include <stddef.h>
#include <stdint.h>

/* Memory for tables: pieces of a few sizes cut from large aligned chunks.
 * Every table is made of such pieces, so memory given back fits whoever asks
 * next and nothing is lost between blocks of odd sizes. */

enum {
    ARENA_CHUNK_BYTES = 2 << 20,
    ARENA_PIECE_BYTES_MAX = 8192, /* the largest piece, and what a chunk is cut
                                   * into */
    ARENA_PIECE_BYTES_MIN = 128,
    ARENA_CLASSES = 7 /* 128 << class */
};

struct arena; /* opaque; its functions lock it themselves: any thread */

struct arena_sum {
    uint64_t used_bytes;   /* pieces handed out */
    uint64_t mapped_bytes; /* chunks held, whole */
};

/* An empty arena, NULL when memory is out. chunks is where 2 MB chunks come
 * from (NULL: mmap, aligned, with advice for huge pages once there are many
 * chunks; blocks of another source are used from their first 64-byte boundary
 * on). It must outlive the arena. */
struct arena *arena_create(const struct alloc *chunks);

/* Frees *arena and nulls it; all pieces must have been given back. */
void arena_destroy(struct arena **arena);

/* A piece of 128 << class bytes (class 0..6), aligned to 64 bytes (and to its
 * size with mmap), contents undefined; NULL when memory is out. Lower chunks
 * first, so that upper ones fall empty and go back to the system. */
void *arena_take(struct arena *arena, unsigned class_);

/* Takes a piece back; class is what it was taken with. */
void arena_give(struct arena *arena, void *piece, unsigned class_);

/* Gives pages of free pieces back to the system in chunks of small pages, some
 * microseconds for what has become free since the last time; in a large arena
 * makes one such chunk's pages huge, about half a millisecond each time while
 * there is one. */
void arena_trim(struct arena *arena);

/* For tests, which look whether memory is given back. */
struct arena_sum arena_sum(struct arena *arena);

/* Asserts the invariants; for tests. */
void arena_verify(struct arena *arena);

#endif
