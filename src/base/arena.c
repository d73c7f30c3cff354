/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of a few sizes cut from chunks of 2 MB.
 *
 *   chunk:  | unit 0 | unit 1 | ...                    | unit 255 |
 *   unit:   8 KB: free, a piece of the largest class, or a slab
 *   slab:   | slot 0 | slot 1 | ...  | slot (64 >> class) - 1 |
 *           a slot is a piece of 128 << class bytes
 *
 * All that is known of a chunk lies outside it, about 500 bytes, so that whole
 * chunks are pieces; only the map of a slab's free slots lies in one of these
 * (with its complement behind it, against stray writes). A full slab needs no
 * map, and so giving back never needs memory and cannot fail.
 *
 *   state of a unit, one byte: 0 free, 1 a piece, else (64 >> class) + holder:
 *   a slab of that class whose map lies in slot holder. The highest bit set
 *   tells the class: the numbering of a heap.
 *
 * Invariants (arena_verify), beside those of arena_chunk.c:
 * - A unit's bit in its chunk's room[class] is set exactly while it is a slab
 *   of that class with a free slot, and for the largest class while the unit
 *   is free.
 * - A slab has a slot taken; one that falls empty is a free unit at once.
 *
 * Happy path: take a slot of the lowest slab with room, else make the lowest
 * free unit a slab, else add a chunk. Freed units of a live chunk stay
 * resident and are what take finds first.
 *
 * What can go wrong: memory is out for another chunk; take then returns NULL
 * and nothing has changed. A piece given twice, with another class or to
 * another arena stops the program. */
#include "base/arena_priv.h"

#include <stdlib.h>

enum {
    /* states of a unit; the others: a slab */
    UNIT_FREE = 0,
    UNIT_PIECE = 1
};

_Static_assert(ARENA_PIECE_BYTES_MIN << CLASS_MAX == ARENA_PIECE_BYTES_MAX,
    "the largest class is a unit");
_Static_assert(ARENA_PIECE_BYTES_MAX / ARENA_PIECE_BYTES_MIN == WORD_BITS,
    "the slots of the smallest class have a bit each in the map of a slab");

/* The map of a slab, in one of its free slots. */
struct map {
    uint64_t free;  /* bit i: slot i is free */
    uint64_t check; /* ~free */
};

_Static_assert(sizeof(struct map) <= ARENA_PIECE_BYTES_MIN, "fits a slot");

static size_t
class_bytes(unsigned class_)
{
    return (size_t)ARENA_PIECE_BYTES_MIN << class_;
}

static unsigned
class_slots(unsigned class_)
{
    return (unsigned)WORD_BITS >> class_;
}

/* The map of an empty slab. */
static uint64_t
all_slots(unsigned class_)
{
    return UINT64_MAX >> (WORD_BITS - class_slots(class_));
}

/* Units. */

static char *
unit_address(const struct chunk *chunk, unsigned unit)
{
    return chunk->base + (size_t)unit * ARENA_PIECE_BYTES_MAX;
}

/* The lowest unit of the chunk with room for the class. */
static unsigned
unit_first(const struct chunk *chunk, unsigned class_)
{
    unsigned word = 0;

    while (word < UNIT_WORDS - 1 && chunk->room[class_][word] == 0) {
        word++;
    }
    return word * WORD_BITS + lowest_bit(chunk->room[class_][word]);
}

static void
unit_has_room(
    struct arena *arena, struct chunk *chunk, unsigned unit, unsigned class_)
{
    bit_set(chunk->room[class_], unit);
    arena__room_set(arena, class_, chunk->number);
}

static void
unit_has_no_room(
    struct arena *arena, struct chunk *chunk, unsigned unit, unsigned class_)
{
    uint64_t left = 0;

    bit_clear(chunk->room[class_], unit);
    for (unsigned i = 0; i < UNIT_WORDS; i++) {
        left |= chunk->room[class_][i];
    }
    if (left == 0) {
        bit_clear(arena->room[class_], chunk->number);
    }
}

/* Takes a free unit: its number, and its chunk in *out; -1 when memory is
 * out. */
static int
unit_take(struct arena *arena, uint8_t state, struct chunk **out)
{
    mutex_assert_held(&arena->lock);
    int64_t number = arena__room_first(arena, CLASS_MAX);
    struct chunk *chunk =
        number < 0 ? arena__chunk_add(arena) : arena->chunk[number];
    unsigned unit;

    if (chunk == NULL) {
        return -1;
    }
    unit = unit_first(chunk, CLASS_MAX);
    ASSERT(chunk->state[unit] == UNIT_FREE);
    chunk->state[unit] = state;
    chunk->touched[unit / WORD_BITS] |= UINT64_C(1) << unit % WORD_BITS;
    chunk->free_units--;
    unit_has_no_room(arena, chunk, unit, CLASS_MAX);
    if (arena->spare == chunk->number) {
        arena->spare = NO_SPARE;
    }
    *out = chunk;
    return (int)unit;
}

static void
unit_give(struct arena *arena, struct chunk *chunk, unsigned unit)
{
    mutex_assert_held(&arena->lock);
    chunk->state[unit] = UNIT_FREE;
    chunk->free_units++;
    unit_has_room(arena, chunk, unit, CLASS_MAX);
    if (chunk->free_units == UNITS) {
        arena__chunk_empty(arena, chunk);
    }
}

/* Slabs. */

static uint8_t
state_of_slab(unsigned class_, unsigned holder)
{
    return (uint8_t)(class_slots(class_) + holder);
}

/* True where the unit is a slab of that class. */
static bool
is_slab(const struct chunk *chunk, unsigned unit, unsigned class_)
{
    unsigned slots = class_slots(class_);

    return chunk->state[unit] >= slots && chunk->state[unit] < 2 * slots;
}

static struct map *
slab_map(const struct chunk *chunk, unsigned unit, unsigned class_)
{
    unsigned holder = chunk->state[unit] - class_slots(class_);

    return (struct map *)(void *)(unit_address(chunk, unit) +
        holder * class_bytes(class_));
}

/* The free slots of a slab; 0 where it is full. */
static uint64_t
slab_free(const struct chunk *chunk, unsigned unit, unsigned class_)
{
    struct map *map = slab_map(chunk, unit, class_);
    struct map copy;

    if (!bit_has(chunk->room[class_], unit)) {
        return 0;
    }
    ASAN_UNPOISON_MEMORY_REGION(map, sizeof *map);
    copy = *map;
    ASAN_POISON_MEMORY_REGION(map, sizeof *map);
    /* else somebody wrote to what he had given back */
    ASSERT(copy.free == ~copy.check);
    ASSERT(copy.free >> (chunk->state[unit] - class_slots(class_)) & 1);
    return copy.free;
}

/* Puts the map of a slab that is not full into its lowest free slot. */
static void
slab_set_free(
    struct chunk *chunk, unsigned unit, unsigned class_, uint64_t free_slots)
{
    struct map *map;

    chunk->state[unit] = state_of_slab(class_, lowest_bit(free_slots));
    map = slab_map(chunk, unit, class_);
    ASAN_UNPOISON_MEMORY_REGION(map, sizeof *map);
    *map = (struct map){.free = free_slots, .check = ~free_slots};
    ASAN_POISON_MEMORY_REGION(map, sizeof *map);
}

static char *
slot_take(struct arena *arena, unsigned class_)
{
    mutex_assert_held(&arena->lock);
    int64_t number = arena__room_first(arena, class_);
    struct chunk *chunk;
    uint64_t free_slots;
    unsigned slot;
    int unit;

    if (number >= 0) {
        chunk = arena->chunk[number];
        unit = (int)unit_first(chunk, class_);
        free_slots = slab_free(chunk, (unsigned)unit, class_);
    } else {
        unit = unit_take(arena, state_of_slab(class_, 0), &chunk);
        if (unit < 0) {
            return NULL;
        }
        unit_has_room(arena, chunk, (unsigned)unit, class_);
        free_slots = all_slots(class_);
    }
    slot = lowest_bit(free_slots);
    free_slots &= free_slots - 1;
    if (free_slots == 0) {
        unit_has_no_room(arena, chunk, (unsigned)unit, class_);
    } else {
        slab_set_free(chunk, (unsigned)unit, class_, free_slots);
    }
    return unit_address(chunk, (unsigned)unit) + slot * class_bytes(class_);
}

static void
slot_give(struct arena *arena, struct chunk *chunk, unsigned unit,
    unsigned class_, unsigned slot)
{
    mutex_assert_held(&arena->lock);
    uint64_t free_slots, bit = UINT64_C(1) << slot;

    ASSERT(is_slab(chunk, unit, class_));
    free_slots = slab_free(chunk, unit, class_);
    ASSERT((free_slots & bit) == 0);
    free_slots |= bit;
    if (free_slots == all_slots(class_)) {
        unit_has_no_room(arena, chunk, unit, class_);
        unit_give(arena, chunk, unit);
        return;
    }
    slab_set_free(chunk, unit, class_, free_slots);
    unit_has_room(arena, chunk, unit, class_);
}

/* What the header has. */

struct arena *
arena_create(const struct alloc *chunks)
{
    struct arena *arena = calloc(1, sizeof *arena);

    if (arena == NULL) {
        return NULL;
    }
    mutex_init(&arena->lock);
    arena->source = chunks;
    arena->spare = NO_SPARE;
    return arena;
}

void
arena_destroy(struct arena **arena)
{
    struct arena *it = *arena;

    if (it == NULL) {
        return;
    }
    ASSERT(it->used_bytes == 0);
    arena__chunks_fini(it);
    mutex_fini(&it->lock);
    free(it);
    *arena = NULL;
}

void *
arena_take(struct arena *arena, unsigned class_)
{
    struct chunk *chunk;
    char *piece = NULL;
    int unit;

    ASSERT(class_ < ARENA_CLASSES);
    mutex_lock(&arena->lock);
    if (class_ == CLASS_MAX) {
        unit = unit_take(arena, UNIT_PIECE, &chunk);
        if (unit >= 0) {
            piece = unit_address(chunk, (unsigned)unit);
        }
    } else {
        piece = slot_take(arena, class_);
    }
    if (piece != NULL) {
        arena->used_bytes += class_bytes(class_);
        ASAN_UNPOISON_MEMORY_REGION(piece, class_bytes(class_));
    }
    mutex_unlock(&arena->lock);
    return piece;
}

void
arena_give(struct arena *arena, void *piece, unsigned class_)
{
    struct chunk *chunk;
    size_t offset;
    unsigned unit;

    ASSERT(class_ < ARENA_CLASSES);
    mutex_lock(&arena->lock);
    chunk = arena__chunk_of(arena, piece);
    offset = (size_t)((char *)piece - chunk->base);
    ASSERT(offset % class_bytes(class_) == 0);
    ASSERT(arena->used_bytes >= class_bytes(class_));
    arena->used_bytes -= class_bytes(class_);
    ASAN_POISON_MEMORY_REGION(piece, class_bytes(class_));
    unit = (unsigned)(offset / ARENA_PIECE_BYTES_MAX);
    if (class_ == CLASS_MAX) {
        ASSERT(chunk->state[unit] == UNIT_PIECE);
        unit_give(arena, chunk, unit);
    } else {
        slot_give(arena, chunk, unit, class_,
            (unsigned)(offset % ARENA_PIECE_BYTES_MAX / class_bytes(class_)));
    }
    mutex_unlock(&arena->lock);
}

void
arena_trim(struct arena *arena)
{
    mutex_lock(&arena->lock);
    for (uint32_t i = 0; i < arena->capacity; i++) {
        if (arena->chunk[i] != NULL) {
            arena__chunk_trim(arena->chunk[i]);
        }
    }
    arena__chunks_enlarge(arena);
    mutex_unlock(&arena->lock);
}

struct arena_sum
arena_sum(struct arena *arena)
{
    struct arena_sum sum;

    mutex_lock(&arena->lock);
    sum.used_bytes = arena->used_bytes;
    sum.mapped_bytes = (uint64_t)arena->n_chunks * ARENA_CHUNK_BYTES;
    mutex_unlock(&arena->lock);
    return sum;
}

/* Bytes taken in the unit; asserts what is said of it. */
static size_t
verify_unit(const struct chunk *chunk, unsigned unit)
{
    size_t used = 0;
    unsigned rooms = 0, slabs = 0, taken;
    uint64_t free_slots;

    for (unsigned class_ = 0; class_ < ARENA_CLASSES; class_++) {
        rooms += bit_has(chunk->room[class_], unit);
    }
    ASSERT(rooms <= 1);
    ASSERT(bit_has(chunk->room[CLASS_MAX], unit) ==
        (chunk->state[unit] == UNIT_FREE));
    if (chunk->state[unit] == UNIT_FREE) {
        return 0;
    }
    if (chunk->state[unit] == UNIT_PIECE) {
        ASSERT(rooms == 0);
        return ARENA_PIECE_BYTES_MAX;
    }
    for (unsigned class_ = 0; class_ < CLASS_MAX; class_++) {
        if (!is_slab(chunk, unit, class_)) {
            ASSERT(!bit_has(chunk->room[class_], unit));
            continue;
        }
        slabs++;
        free_slots = slab_free(chunk, unit, class_);
        ASSERT((free_slots & ~all_slots(class_)) == 0);
        ASSERT((free_slots != 0) == bit_has(chunk->room[class_], unit));
        taken =
            class_slots(class_) - (unsigned)__builtin_popcountll(free_slots);
        ASSERT(taken > 0);
        used += taken * class_bytes(class_);
    }
    ASSERT(slabs == 1);
    return used;
}

void
arena_verify(struct arena *arena)
{
    uint64_t used = 0;

    mutex_lock(&arena->lock);
    arena__chunks_verify(arena);
    for (uint32_t number = 0; number < arena->capacity; number++) {
        const struct chunk *chunk = arena->chunk[number];
        unsigned free_units = 0;

        for (unsigned unit = 0; chunk != NULL && unit < UNITS; unit++) {
            used += verify_unit(chunk, unit);
            free_units += chunk->state[unit] == UNIT_FREE;
        }
        ASSERT(chunk == NULL || free_units == chunk->free_units);
    }
    ASSERT(used == arena->used_bytes);
    mutex_unlock(&arena->lock);
}
