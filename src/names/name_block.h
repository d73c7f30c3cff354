/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_BLOCK_H
#define NAMES_NAME_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The codes of 32 names whose numbers follow each other. Readers look at it
 * without a lock: one that is in use grows at its end only, and names of it are
 * taken out, but neither moved nor replaced.
 *
 *   | live | room | table | | lens, a byte each | codes, in order |  room   |
 */

enum { NAME_BLOCK_SLOTS = 32, NAME_BLOCK_LENS = NAME_BLOCK_SLOTS / 8 };

struct name_block {
    _Atomic uint32_t live; /* bit i: slot i has a name */
    uint16_t room_bytes;   /* of code */
    uint8_t table;         /* of symbols; 0: none */
    uint8_t unused;
    _Atomic uint64_t lens[NAME_BLOCK_LENS]; /* slot i: byte i % 8 of i / 8, the
                                             * first lowest; 0: nothing. One
                                             * that is not live may have bytes
                                             * still */
    uint8_t code[];
};

_Static_assert(
    sizeof(struct name_block) == 40, "what the benchmark counts with");

/* All bytes of a block with that much room. */
static inline size_t
name_block_bytes(size_t room_bytes)
{
    return sizeof(struct name_block) + room_bytes;
}

static inline uint64_t
name_block_lens(const struct name_block *block, unsigned i)
{
    /* relaxed: who reads a slot has seen its live bit by acquire */
    return atomic_load_explicit(&block->lens[i], memory_order_relaxed);
}

static inline unsigned
name_block_len(const struct name_block *block, unsigned slot)
{
    return name_block_lens(block, slot / 8) >> 8 * (slot % 8) & 0xff;
}

/* The sum of eight bytes. */
static inline unsigned
name_block_sum(uint64_t lens)
{
    const uint64_t evens = UINT64_C(0x00ff00ff00ff00ff);
    uint64_t pairs = (lens & evens) + (lens >> 8 & evens);
    return (unsigned)(pairs * UINT64_C(0x0001000100010001) >> 48);
}

/* Where the code of a slot begins (0..32: the last is where the next would). */
static inline unsigned
name_block_at(const struct name_block *block, unsigned slot)
{
    unsigned at = 0;
    for (unsigned i = 0; i < slot / 8; i++) {
        at += name_block_sum(name_block_lens(block, i));
    }
    if (slot % 8 > 0) {
        uint64_t before = (UINT64_C(1) << 8 * (slot % 8)) - 1;
        at += name_block_sum(name_block_lens(block, slot / 8) & before);
    }
    return at;
}

static inline uint32_t
name_block_live(const struct name_block *block)
{
    /* acquire: what a live slot's name was written with is seen as well */
    return atomic_load_explicit(&block->live, memory_order_acquire);
}

static inline bool
name_block_has(const struct name_block *block, unsigned slot)
{
    return name_block_live(block) >> slot & 1;
}

/* The other functions change a block, under the lock of its dictionary. */

/* Adds a code of len bytes (> 0) behind all others; false, with nothing
 * changed, where it has no room or slot is not behind all that have bytes. */
bool name_block_append(
    struct name_block *block, unsigned slot, const uint8_t *code, size_t len);

/* Slot has no name any more; its bytes stay. */
void name_block_clear(struct name_block *block, unsigned slot);

/* Bytes of the codes of what is live, without slot's. */
size_t name_block_rest(const struct name_block *block, unsigned slot);

/* Fills *block, zeros with its room and table set, with what is live in old
 * but for slot, which gets code (len 0: nothing). There must be room. */
void name_block_fill(struct name_block *block, const struct name_block *old,
    unsigned slot, const uint8_t *code, size_t len);

#endif
