/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks, and where they are.
 *
 *   top -> | chunk | chunk | ...     replaced by one of twice the size
 *             |
 *             v
 *          | block | block | ...     NULL where there is no name
 *
 * New names go to the open block, which has room at its end. When names come to
 * another one, what it has too much goes. A block that is changed elsewhere
 * than at its end is written anew, and the old one rests. Happy path: a name is
 * appended; one in 32 times a block is made and one is cut to its size.
 *
 * What can go wrong: memory is out or at its limit. All that a change needs is
 * taken before anything is changed; what only saves memory is left out. */
#include "names/name_heap.h"

#include "base/assert.h"

enum {
    OPEN_ROOM = 384, /* of a new block; it doubles */
    TOP_CHUNKS_MIN = 4,
    RESTS = 3 /* that a change may add: top, block, the block that was open */
};

void
name_heap_init(struct name_heap *heap, struct name_account *account,
    struct name_rest *rest)
{
    *heap = (struct name_heap){
        .account = account, .rest = rest, .open = NAME_HEAP_NO_BLOCK};
}

static size_t
top_bytes(uint32_t n_chunks)
{
    return sizeof(struct name_top) + n_chunks * sizeof(struct name_chunk *);
}

/* relaxed, here and below: only who holds the lock writes */
static struct name_top *
top_of(const struct name_heap *heap)
{
    return atomic_load_explicit(&heap->top, memory_order_relaxed);
}

static struct name_chunk *
chunk_of(const struct name_top *top, uint32_t which)
{
    return atomic_load_explicit(&top->chunk[which], memory_order_relaxed);
}

static void
give_block(struct name_heap *heap, struct name_block *block)
{
    if (block != NULL) {
        name_account_give(
            heap->account, block, name_block_bytes(block->room_bytes));
    }
}

void
name_heap_fini(struct name_heap *heap)
{
    struct name_top *top = top_of(heap);
    for (uint32_t i = 0; top != NULL && i < top->n_chunks; i++) {
        struct name_chunk *chunk = chunk_of(top, i);
        for (unsigned j = 0; chunk != NULL && j < NAME_CHUNK_BLOCKS; j++) {
            give_block(heap,
                atomic_load_explicit(&chunk->block[j], memory_order_relaxed));
        }
        name_account_give(heap->account, chunk, sizeof *chunk);
    }
    if (top != NULL) {
        name_account_give(heap->account, top, top_bytes(top->n_chunks));
    }
    atomic_store_explicit(&heap->top, NULL, memory_order_relaxed);
    heap->open = NAME_HEAP_NO_BLOCK;
}

static int
grow_top(struct name_heap *heap, uint32_t which)
{
    struct name_top *old = top_of(heap);
    uint32_t n = old == NULL ? TOP_CHUNKS_MIN : old->n_chunks;
    void *memory;
    while (n <= which) {
        n *= 2;
    }
    if (old != NULL && n == old->n_chunks) {
        return 0;
    }
    int err = name_account_take(heap->account, top_bytes(n), &memory);
    if (err != 0) {
        return err;
    }
    struct name_top *top = memory;
    top->n_chunks = n;
    for (uint32_t i = 0; old != NULL && i < old->n_chunks; i++) {
        atomic_store_explicit(
            &top->chunk[i], chunk_of(old, i), memory_order_relaxed);
    }
    /* release: see name_heap_block */
    atomic_store_explicit(&heap->top, top, memory_order_release);
    if (old != NULL) {
        name_rest_block(heap->rest, old, top_bytes(old->n_chunks));
    }
    return 0;
}

/* Makes the place of a block, *place. */
static int
make_place(struct name_heap *heap, uint32_t n_block,
    _Atomic(struct name_block *) **place)
{
    uint32_t which = n_block / NAME_CHUNK_BLOCKS;
    void *memory;
    int err = name_rest_reserve(heap->rest, RESTS);
    if (err == 0) {
        err = grow_top(heap, which);
    }
    if (err != 0) {
        return err;
    }
    struct name_top *top = top_of(heap);
    struct name_chunk *chunk = chunk_of(top, which);
    if (chunk == NULL) {
        err = name_account_take(heap->account, sizeof *chunk, &memory);
        if (err != 0) {
            return err;
        }
        chunk = memory;
        /* release: see name_heap_block */
        atomic_store_explicit(&top->chunk[which], chunk, memory_order_release);
    }
    *place = &chunk->block[n_block % NAME_CHUNK_BLOCKS];
    return 0;
}

static void
publish(struct name_heap *heap, _Atomic(struct name_block *) *place,
    struct name_block *block)
{
    struct name_block *old = atomic_load_explicit(place, memory_order_relaxed);
    /* release: see name_heap_block */
    atomic_store_explicit(place, block, memory_order_release);
    if (old != NULL) {
        name_rest_block(heap->rest, old, name_block_bytes(old->room_bytes));
    }
}

static int
make_block(struct name_heap *heap, size_t room_bytes, unsigned table,
    struct name_block **out)
{
    void *memory;
    int err = name_account_take(
        heap->account, name_block_bytes(room_bytes), &memory);
    if (err == 0) {
        *out = memory;
        (*out)->room_bytes = (uint16_t)room_bytes;
        (*out)->table = (uint8_t)table;
    }
    return err;
}

/* Makes the copy of a block that has code in slot (len 0: nothing). */
static int
copy_block(struct name_heap *heap, const struct name_block *old, unsigned slot,
    const uint8_t *code, size_t len, size_t room_bytes,
    struct name_block **out)
{
    int err = make_block(heap, room_bytes, old->table, out);
    if (err == 0) {
        name_block_fill(*out, old, slot, code, len);
    }
    return err;
}

/* The same without anything new, and no larger than it need be. */
static int
cut_block(struct name_heap *heap, const struct name_block *old,
    struct name_block **out)
{
    return copy_block(heap, old, NAME_BLOCK_SLOTS, NULL, 0,
        name_block_rest(old, NAME_BLOCK_SLOTS), out);
}

/* Cuts the open block to its size, where there is memory for that. It has a
 * place. */
static void
close_open(struct name_heap *heap)
{
    _Atomic(struct name_block *) *place;
    struct name_block *block;
    uint32_t n_block = heap->open;
    heap->open = NAME_HEAP_NO_BLOCK;
    if (n_block == NAME_HEAP_NO_BLOCK) {
        return;
    }
    struct name_block *old = name_heap_block(heap, n_block);
    if (old == NULL || make_place(heap, n_block, &place) != 0) {
        return;
    }
    if (name_block_live(old) == 0) {
        publish(heap, place, NULL);
    } else if (cut_block(heap, old, &block) == 0) {
        publish(heap, place, block);
    }
}

unsigned
name_heap_table(const struct name_heap *heap, uint32_t number, unsigned table)
{
    const struct name_block *block =
        name_heap_block(heap, number / NAME_BLOCK_SLOTS);
    return block == NULL ? table : block->table;
}

/* A block for a name whose slot the one that is there cannot take. */
static int
put_anew(struct name_heap *heap, uint32_t number, unsigned table,
    const uint8_t *code, size_t len)
{
    uint32_t n_block = number / NAME_BLOCK_SLOTS;
    unsigned slot = number % NAME_BLOCK_SLOTS;
    _Atomic(struct name_block *) *place;
    struct name_block *block;
    int err = make_place(heap, n_block, &place);
    if (err != 0) {
        return err;
    }
    struct name_block *old = atomic_load_explicit(place, memory_order_relaxed);
    bool opens = old == NULL &&
        (heap->open == NAME_HEAP_NO_BLOCK || n_block > heap->open);
    if (old == NULL) {
        size_t room = opens && len < OPEN_ROOM ? OPEN_ROOM : len;
        err = make_block(heap, room, table, &block);
    } else {
        size_t bytes = name_block_rest(old, slot) + len;
        err = copy_block(heap, old, slot, code, len,
            n_block == heap->open ? 2 * bytes : bytes, &block);
    }
    if (err != 0) {
        return err;
    }
    if (old == NULL) {
        bool is_good = name_block_append(block, slot, code, len);
        ASSERT(is_good);
    }
    publish(heap, place, block);
    if (opens) {
        close_open(heap);
        heap->open = n_block;
    }
    return 0;
}

int
name_heap_put(struct name_heap *heap, uint32_t number, unsigned table,
    const uint8_t *code, size_t len)
{
    uint32_t n_block = number / NAME_BLOCK_SLOTS;
    unsigned slot = number % NAME_BLOCK_SLOTS;
    struct name_block *block = name_heap_block(heap, n_block);
    ASSERT(block == NULL ||
        (!name_block_has(block, slot) && block->table == table));
    if (block != NULL && name_block_append(block, slot, code, len)) {
        return 0;
    }
    return put_anew(heap, number, table, code, len);
}

bool
name_heap_cut(struct name_heap *heap, uint32_t n_block)
{
    struct name_block *old = name_heap_block(heap, n_block), *block = NULL;
    _Atomic(struct name_block *) *place;
    if (old == NULL || n_block == heap->open ||
        old->room_bytes == name_block_rest(old, NAME_BLOCK_SLOTS)) {
        return true;
    }
    if (make_place(heap, n_block, &place) != 0 ||
        (name_block_live(old) != 0 && cut_block(heap, old, &block) != 0)) {
        return false;
    }
    publish(heap, place, block);
    return true;
}

bool
name_heap_take_out(struct name_heap *heap, uint32_t number)
{
    uint32_t n_block = number / NAME_BLOCK_SLOTS;
    struct name_block *block = name_heap_block(heap, n_block);
    ASSERT(block != NULL);
    name_block_clear(block, number % NAME_BLOCK_SLOTS);
    return name_heap_cut(heap, n_block);
}

int
name_heap_load(
    struct name_heap *heap, uint32_t n_block, struct name_block *block)
{
    _Atomic(struct name_block *) *place;
    int err = make_place(heap, n_block, &place);
    if (err == 0) {
        ASSERT(name_heap_block(heap, n_block) == NULL);
        publish(heap, place, block);
    }
    return err;
}
