/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_ARENA_PRIV_H
#define BASE_ARENA_PRIV_H

/* What the two files of the arena share: arena_chunk.c knows where chunks come
 * from and which has room, arena.c what lies in them. Nobody else includes
 * this. What is done to an arena is done with its lock held, which they assert.
 */

#include "base/arena.h"
#include "base/assert.h"
#include "base/mutex.h"
#include "base/sanitizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Under AddressSanitizer all that is free is poisoned, so that whoever reads
 * too late is seen as he would be with malloc. */

enum {
    UNITS = ARENA_CHUNK_BYTES / ARENA_PIECE_BYTES_MAX,
    WORD_BITS = 64,
    UNIT_WORDS = UNITS / WORD_BITS,
    CLASS_MAX = ARENA_CLASSES - 1, /* its pieces are units */
    ROOM_VACANT = ARENA_CLASSES,   /* after the classes: unused numbers */
    ROOMS,
    NO_SPARE = -1
};

struct chunk {
    char *base;  /* of unit 0 */
    void *block; /* what the source gave; NULL: mmap */
    uint32_t number;
    uint32_t free_units;
    bool is_small; /* its pages are */
    /* bit i of room[class]: unit i is a slab of class with a free slot, and
     * for the largest class: it is free */
    uint64_t room[ARENA_CLASSES][UNIT_WORDS];
    uint64_t touched[UNIT_WORDS]; /* units that may have pages */
    uint8_t state[UNITS];
};

_Static_assert(sizeof(struct chunk) * 1000 < ARENA_CHUNK_BYTES,
    "a chunk's head is below 0.1 % of it");

struct arena {
    const struct alloc *source; /* read-only */
    struct mutex lock;          /* what follows: */
    uint64_t used_bytes;
    uint32_t n_chunks;
    uint32_t capacity;         /* numbers, a multiple of WORD_BITS */
    struct chunk **chunk;      /* by number; NULL: vacant */
    struct chunk **by_address; /* n_chunks, highest base first */
    uint64_t *room[ROOMS];     /* bitmaps of capacity bits */
    uint32_t hint[ROOMS];      /* no bit is set in words before it */
    int64_t spare;             /* number of the empty chunk, or NO_SPARE */
};

static inline unsigned
lowest_bit(uint64_t word)
{
    ASSERT(word != 0);
    return (unsigned)__builtin_ctzll(word);
}

static inline bool
bit_has(const uint64_t *bits, size_t i)
{
    return (bits[i / WORD_BITS] >> i % WORD_BITS & 1) != 0;
}

static inline void
bit_set(uint64_t *bits, size_t i)
{
    bits[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
}

static inline void
bit_clear(uint64_t *bits, size_t i)
{
    bits[i / WORD_BITS] &= ~(UINT64_C(1) << i % WORD_BITS);
}

/* Sets the chunk's bit in room[room]; clearing it is bit_clear. */
void arena__room_set(struct arena *arena, unsigned room, uint32_t number);

/* The lowest number with its bit set, or -1. */
int64_t arena__room_first(struct arena *arena, unsigned room);

/* Another chunk, all free; NULL when memory is out. */
struct chunk *arena__chunk_add(struct arena *arena);

/* Keeps a chunk that fell empty as the spare, or lets it go. */
void arena__chunk_empty(struct arena *arena, struct chunk *chunk);

/* The chunk that has the piece; asserts that there is one. */
struct chunk *arena__chunk_of(const struct arena *arena, const void *piece);

/* Gives the pages of free units of a chunk back to the system, where that
 * costs no huge page. */
void arena__chunk_trim(struct chunk *chunk);

/* Makes the pages of one chunk with small ones huge, if there are many chunks
 * and there is one left. */
void arena__chunks_enlarge(struct arena *arena);

/* Frees the arrays; no chunk may be left. */
void arena__chunks_fini(struct arena *arena);

/* Asserts what arena_chunk.c promises. */
void arena__chunks_verify(const struct arena *arena);

#endif
