/* SPDX-License-Identifier: BSD-3-Clause */
/* The chunks of an arena: where they come from, which of them has room, and
 * which has an address.
 *
 * A chunk has a number, the lowest that was vacant when it came. Which chunk
 * has room for what is kept in bitmaps over the numbers, one a class, each
 * with the first word that may have a bit set. Take looks for the lowest
 * number, so upper chunks fall empty and go back to the system; give lowers
 * the hint. 5,000 chunks are 79 words.
 *
 * Invariants (arena__chunks_verify):
 * - A chunk's bit in room[class] is set exactly while one of the chunk's own
 *   bitmaps of that class is; in room[ROOM_VACANT], while no chunk has that
 *   number.
 * - by_address holds every chunk, highest first.
 * - A chunk has a unit taken, but for the one spare there may be.
 *
 * Huge pages: the first touch of a huge page makes 2 MB resident, so the part
 * of the newest chunk that is not used yet costs memory. Chunks below
 * CHUNKS_SMALL are therefore kept to small pages, and the first huge one can
 * waste 2 MB of 66, 3 %, at most. An empty chunk is kept as a spare, so that
 * one at its boundary is not mapped and cleared over and over, only from
 * CHUNKS_SPARE on, where it is 1.5 %. From CHUNKS_LARGE on the small pages are
 * made huge too, a chunk at a time (a copy of 2 MB under the lock): what is
 * read at random from a large arena waits for its addresses as much as for
 * the memory.
 *
 * What can go wrong: no memory for a chunk, or for what is known of it; then
 * nothing has changed. */
#include "base/arena_priv.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1, newer than this C library */
#endif

enum {
    CHUNKS_SMALL = 32, /* chunks with lower numbers: small pages */
    CHUNKS_SPARE = 64, /* with more chunks than this one spare may be kept */
    CHUNKS_LARGE = 96, /* with as many, none needs small pages any more */
    BLOCK_ALIGN = 64,
    /* of another source: a chunk and what alignment may take */
    BLOCK_BYTES = ARENA_CHUNK_BYTES + BLOCK_ALIGN
};

/* The bitmaps over chunks. */

void
arena__room_set(struct arena *arena, unsigned room, uint32_t number)
{
    mutex_assert_held(&arena->lock);
    bit_set(arena->room[room], number);
    if (number / WORD_BITS < arena->hint[room]) {
        arena->hint[room] = number / WORD_BITS;
    }
}

/* The lowest number with its bit set, or -1. */
int64_t
arena__room_first(struct arena *arena, unsigned room)
{
    mutex_assert_held(&arena->lock);
    uint32_t words = arena->capacity / WORD_BITS;
    uint32_t word = arena->hint[room];

    while (word < words && arena->room[room][word] == 0) {
        word++;
    }
    arena->hint[room] = word;
    if (word == words) {
        return -1;
    }
    return (int64_t)word * WORD_BITS + lowest_bit(arena->room[room][word]);
}

/* Makes room for more chunk numbers. False when memory is out; then some
 * arrays may be longer than capacity says, which does no harm. */
static bool
raise_capacity(struct arena *arena)
{
    const size_t old = arena->capacity, new = old == 0 ? WORD_BITS : 2 * old;
    void *block;

    block = realloc(arena->chunk, new * sizeof *arena->chunk);
    if (block == NULL) {
        return false;
    }
    arena->chunk = block;
    block = realloc(arena->by_address, new * sizeof *arena->by_address);
    if (block == NULL) {
        return false;
    }
    arena->by_address = block;
    for (unsigned room = 0; room < ROOMS; room++) {
        block = realloc(arena->room[room], new / CHAR_BIT);
        if (block == NULL) {
            return false;
        }
        arena->room[room] = block;
        /* all old numbers are in use; the new ones are vacant */
        memset((char *)block + old / CHAR_BIT, room == ROOM_VACANT ? 0xff : 0,
            (new - old) / CHAR_BIT);
    }
    for (size_t number = old; number < new; number++) {
        arena->chunk[number] = NULL;
    }
    arena->capacity = (uint32_t) new;
    return true;
}

/* Where chunks come from and go to. */

/* Where the system has no room to note the hole, only the pages go back. */
static void
unmap(char *address, size_t bytes)
{
    if (bytes > 0 && munmap(address, bytes) != 0) {
        (void)madvise(address, bytes, MADV_DONTNEED);
    }
}

static char *
map_bytes(size_t bytes)
{
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return address == MAP_FAILED ? NULL : address;
}

/* An aligned chunk, or NULL. Beside another chunk (and on new kernels anywhere)
 * the system has an aligned place at once; else twice as much is mapped and
 * trimmed. That alone would do, but leave holes between chunks, so that each
 * were a mapping of its own, of which a process has some 65,000 at most. */
static char *
map_chunk(void)
{
    const size_t bytes = ARENA_CHUNK_BYTES;
    char *start = map_bytes(bytes);
    size_t before;

    if (start == NULL || (uintptr_t)start % bytes == 0) {
        return start;
    }
    unmap(start, bytes);
    start = map_bytes(2 * bytes);
    if (start == NULL) {
        return NULL;
    }
    before = (bytes - (uintptr_t)start % bytes) % bytes;
    unmap(start, before);
    unmap(start + before + bytes, bytes - before);
    return start + before;
}

/* Fills base and block; false when memory is out. */
static bool
chunk_open(const struct arena *arena, struct chunk *chunk)
{
    size_t over;

    if (arena->source == NULL) {
        chunk->base = map_chunk();
        if (chunk->base == NULL) {
            return false;
        }
        /* advice only: a system without huge pages refuses it */
        chunk->is_small = chunk->number < CHUNKS_SMALL;
        (void)madvise(chunk->base, ARENA_CHUNK_BYTES,
            chunk->is_small ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    } else {
        chunk->block = alloc_zeroed(arena->source, BLOCK_BYTES);
        if (chunk->block == NULL) {
            return false;
        }
        over = (uintptr_t)chunk->block % BLOCK_ALIGN;
        chunk->base =
            (char *)chunk->block + (BLOCK_ALIGN - over) % BLOCK_ALIGN;
    }
    ASAN_POISON_MEMORY_REGION(chunk->base, ARENA_CHUNK_BYTES);
    return true;
}

static void
chunk_close(const struct arena *arena, struct chunk *chunk)
{
    ASAN_UNPOISON_MEMORY_REGION(chunk->base, ARENA_CHUNK_BYTES);
    if (arena->source == NULL) {
        unmap(chunk->base, ARENA_CHUNK_BYTES);
    } else {
        alloc_free(arena->source, chunk->block, BLOCK_BYTES);
    }
}

/* The chunks in the order of their addresses. */

/* The index of the first chunk whose base is at or below address: the one that
 * has it, where one has; n_chunks where all lie above. */
static uint32_t
place_of(const struct arena *arena, uintptr_t address)
{
    uint32_t low = 0, high = arena->n_chunks, middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if ((uintptr_t)arena->by_address[middle]->base <= address) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

struct chunk *
arena__chunk_of(const struct arena *arena, const void *piece)
{
    mutex_assert_held(&arena->lock);
    uintptr_t address = (uintptr_t)piece;
    uint32_t i = place_of(arena, address);

    ASSERT(i < arena->n_chunks);
    ASSERT(
        address - (uintptr_t)arena->by_address[i]->base < ARENA_CHUNK_BYTES);
    return arena->by_address[i];
}

/* Highest first, because mmap goes downward: a new chunk is mostly put at the
 * end, and nothing moves. */
static void
place_add(struct arena *arena, struct chunk *chunk)
{
    uint32_t i = place_of(arena, (uintptr_t)chunk->base);

    memmove(&arena->by_address[i + 1], &arena->by_address[i],
        (arena->n_chunks - i) * sizeof *arena->by_address);
    arena->by_address[i] = chunk;
    arena->n_chunks++;
}

static void
place_remove(struct arena *arena, const struct chunk *chunk)
{
    uint32_t i = place_of(arena, (uintptr_t)chunk->base);

    ASSERT(arena->by_address[i] == chunk);
    arena->n_chunks--;
    memmove(&arena->by_address[i], &arena->by_address[i + 1],
        (arena->n_chunks - i) * sizeof *arena->by_address);
}

/* Another chunk, all free; NULL when memory is out. */
struct chunk *
arena__chunk_add(struct arena *arena)
{
    mutex_assert_held(&arena->lock);
    int64_t number = arena__room_first(arena, ROOM_VACANT);
    struct chunk *chunk;

    if (number < 0) {
        if (!raise_capacity(arena)) {
            return NULL;
        }
        number = arena__room_first(arena, ROOM_VACANT);
        ASSERT(number >= 0);
    }
    chunk = calloc(1, sizeof *chunk);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->number = (uint32_t)number;
    if (!chunk_open(arena, chunk)) {
        free(chunk);
        return NULL;
    }
    chunk->free_units = UNITS;
    memset(chunk->room[CLASS_MAX], 0xff, sizeof chunk->room[CLASS_MAX]);
    bit_clear(arena->room[ROOM_VACANT], chunk->number);
    arena__room_set(arena, CLASS_MAX, chunk->number);
    arena->chunk[number] = chunk;
    place_add(arena, chunk);
    return chunk;
}

static void
remove_chunk(struct arena *arena, struct chunk *chunk)
{
    ASSERT(chunk->free_units == UNITS);
    place_remove(arena, chunk);
    arena->chunk[chunk->number] = NULL;
    bit_clear(arena->room[CLASS_MAX], chunk->number);
    arena__room_set(arena, ROOM_VACANT, chunk->number);
    chunk_close(arena, chunk);
    free(chunk);
}

void
arena__chunk_trim(struct chunk *chunk)
{
    if (!chunk->is_small) {
        return;
    }
    for (unsigned i = 0; i < UNIT_WORDS; i++) {
        uint64_t left = chunk->room[CLASS_MAX][i] & chunk->touched[i];

        chunk->touched[i] &= ~left;
        for (; left != 0; left &= left - 1) {
            size_t unit = i * WORD_BITS + lowest_bit(left);

            /* advice: where it is not taken the pages stay */
            (void)madvise(chunk->base + unit * ARENA_PIECE_BYTES_MAX,
                ARENA_PIECE_BYTES_MAX, MADV_DONTNEED);
        }
    }
}

void
arena__chunks_enlarge(struct arena *arena)
{
    mutex_assert_held(&arena->lock);
    for (uint32_t i = 0; i < CHUNKS_SMALL && arena->n_chunks >= CHUNKS_LARGE;
         i++) {
        struct chunk *chunk = arena->chunk[i];
        if (chunk != NULL && chunk->is_small) {
            chunk->is_small = false;
            (void)madvise(chunk->base, ARENA_CHUNK_BYTES, MADV_HUGEPAGE);
            /* where a kernel cannot do it at once it will do it later */
            (void)madvise(chunk->base, ARENA_CHUNK_BYTES, MADV_COLLAPSE);
            return;
        }
    }
}

/* Keeps an empty chunk as the spare, or lets it go; of two the lower stays. */
void
arena__chunk_empty(struct arena *arena, struct chunk *chunk)
{
    mutex_assert_held(&arena->lock);
    struct chunk *spare =
        arena->spare == NO_SPARE ? NULL : arena->chunk[arena->spare];

    if (arena->n_chunks <= CHUNKS_SPARE) {
        remove_chunk(arena, chunk);
        if (spare != NULL) {
            remove_chunk(arena, spare);
        }
        arena->spare = NO_SPARE;
    } else if (spare == NULL || chunk->number < spare->number) {
        arena->spare = chunk->number;
        if (spare != NULL) {
            remove_chunk(arena, spare);
        }
    } else {
        remove_chunk(arena, chunk);
    }
}

void
arena__chunks_fini(struct arena *arena)
{
    ASSERT(arena->n_chunks == 0); /* a spare is not kept so long */
    for (unsigned room = 0; room < ROOMS; room++) {
        free(arena->room[room]);
    }
    free(arena->by_address);
    free(arena->chunk);
}

static void
verify_rooms(const struct arena *arena, uint32_t number)
{
    const struct chunk *chunk = arena->chunk[number];

    for (unsigned room = 0; room < ROOMS; room++) {
        bool has = room == ROOM_VACANT && chunk == NULL;

        for (unsigned i = 0;
             chunk != NULL && room < ROOM_VACANT && i < UNIT_WORDS; i++) {
            has = has || chunk->room[room][i] != 0;
        }
        ASSERT(bit_has(arena->room[room], number) == has);
        ASSERT(!has || number / WORD_BITS >= arena->hint[room]);
    }
}

void
arena__chunks_verify(const struct arena *arena)
{
    uint32_t n = 0;

    for (uint32_t number = 0; number < arena->capacity; number++) {
        const struct chunk *chunk = arena->chunk[number];

        verify_rooms(arena, number);
        if (chunk != NULL) {
            ASSERT(chunk->number == number);
            ASSERT((uintptr_t)chunk->base % BLOCK_ALIGN == 0);
            ASSERT(arena__chunk_of(arena, chunk->base) == chunk);
            ASSERT((chunk->free_units == UNITS) == (arena->spare == number));
            n++;
        }
    }
    ASSERT(n == arena->n_chunks);
    ASSERT(arena->spare == NO_SPARE || n >= CHUNKS_SPARE);
    for (uint32_t i = 1; i < n; i++) {
        ASSERT((uintptr_t)arena->by_address[i - 1]->base >=
            (uintptr_t)arena->by_address[i]->base + ARENA_CHUNK_BYTES);
    }
}
