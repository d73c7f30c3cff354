/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a block. A name that is added is published by its live bit, which
 * is set last; the length beside it is stored in a word with lengths of names
 * that are read meanwhile, and these do not change. */
#include "names/name_block.h"

#include "base/assert.h"

#include <string.h>

static void
set_len(struct name_block *block, unsigned slot, size_t len)
{
    uint64_t lens = name_block_lens(block, slot / 8);
    unsigned shift = 8 * (slot % 8);
    ASSERT(len <= UINT8_MAX && (lens >> shift & 0xff) == 0);
    /* relaxed: the live bit publishes it */
    atomic_store_explicit(&block->lens[slot / 8],
        lens | (uint64_t)len << shift, memory_order_relaxed);
}

bool
name_block_append(
    struct name_block *block, unsigned slot, const uint8_t *code, size_t len)
{
    unsigned at = name_block_at(block, slot);
    ASSERT(slot < NAME_BLOCK_SLOTS && len > 0);
    if (at + len > block->room_bytes ||
        name_block_at(block, NAME_BLOCK_SLOTS) != at) {
        return false;
    }
    memcpy(block->code + at, code, len);
    set_len(block, slot, len);
    /* release: see name_block_live */
    atomic_fetch_or_explicit(
        &block->live, UINT32_C(1) << slot, memory_order_release);
    return true;
}

void
name_block_clear(struct name_block *block, unsigned slot)
{
    ASSERT(name_block_has(block, slot));
    /* relaxed: who still sees it may */
    atomic_fetch_and_explicit(
        &block->live, ~(UINT32_C(1) << slot), memory_order_relaxed);
}

size_t
name_block_rest(const struct name_block *block, unsigned slot)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < NAME_BLOCK_SLOTS; i++) {
        if (i != slot && name_block_has(block, i)) {
            bytes += name_block_len(block, i);
        }
    }
    return bytes;
}

void
name_block_fill(struct name_block *block, const struct name_block *old,
    unsigned slot, const uint8_t *code, size_t len)
{
    bool is_good = true;
    for (unsigned i = 0; i < NAME_BLOCK_SLOTS; i++) {
        if (i == slot && len > 0) {
            is_good &= name_block_append(block, i, code, len);
        } else if (i != slot && name_block_has(old, i)) {
            is_good &= name_block_append(block, i,
                old->code + name_block_at(old, i), name_block_len(old, i));
        }
    }
    ASSERT(is_good);
}
