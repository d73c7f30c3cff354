/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NAMES_NAME_HEAP_H
#define NAMES_NAME_HEAP_H

#include "names/name_account.h"
#include "names/name_block.h"
#include "names/name_rest.h"

#include <stdbool.h>

/* The blocks of a dictionary by number: number n is slot n % 32 of block
 * n / 32. Readers find a block without a lock, between two quiescent points of
 * theirs; the other functions are under the dictionary's lock. */

enum {
    NAME_CHUNK_BLOCKS = 256, /* pointers that are taken at a time */
    NAME_HEAP_NO_BLOCK = 0x7fffffff
};

struct name_chunk {
    _Atomic(struct name_block *) block[NAME_CHUNK_BLOCKS];
};

struct name_top {
    uint32_t n_chunks; /* constant */
    _Atomic(struct name_chunk *) chunk[];
};

struct name_heap {
    _Atomic(struct name_top *) top; /* NULL: nothing yet */
    struct name_account *account;   /* not owned */
    struct name_rest *rest;         /* not owned */
    uint32_t open; /* the block that names are added to, which has room; or
                    * NAME_HEAP_NO_BLOCK */
};

void name_heap_init(struct name_heap *heap, struct name_account *account,
    struct name_rest *rest);
/* No reader may be left. */
void name_heap_fini(struct name_heap *heap);

/* Block n / 32, or NULL. Two cache misses at most. */
static inline struct name_block *
name_heap_block(const struct name_heap *heap, uint32_t n_block)
{
    /* acquire, all three: what it points to has been written before */
    const struct name_top *top =
        atomic_load_explicit(&heap->top, memory_order_acquire);
    uint32_t which = n_block / NAME_CHUNK_BLOCKS;
    if (top == NULL || which >= top->n_chunks) {
        return NULL;
    }
    struct name_chunk *chunk =
        atomic_load_explicit(&top->chunk[which], memory_order_acquire);
    return chunk == NULL
        ? NULL
        : atomic_load_explicit(&chunk->block[n_block % NAME_CHUNK_BLOCKS],
              memory_order_acquire);
}

/* The table that a name with that number is to be coded with, where table is
 * the newest. */
unsigned name_heap_table(
    const struct name_heap *heap, uint32_t number, unsigned table);

/* Number, which has none, gets a name of that code. 0, ERR_HOT_FULL or
 * ERR_NO_MEMORY with nothing changed. */
int name_heap_put(struct name_heap *heap, uint32_t number, unsigned table,
    const uint8_t *code, size_t len);

/* Number, which has one, has none any more. Its bytes go, too; false: there was
 * no memory for that, and they go with another change of the block or
 * name_heap_cut. */
bool name_heap_take_out(struct name_heap *heap, uint32_t number);

/* Gives back what a block has too much, unless it is the one that is open.
 * False: there is no memory for that now. */
bool name_heap_cut(struct name_heap *heap, uint32_t n_block);

/* Puts a whole block, whose memory (of the account, without more room than it
 * needs) the heap owns from then on, where there is none. Errors as above,
 * then the caller still owns it. */
int name_heap_load(
    struct name_heap *heap, uint32_t n_block, struct name_block *block);

#endif
