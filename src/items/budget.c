/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the memory of items.
 *
 * Every block (an item, a stripe's table, its bucket array) is charged before
 * it is allocated and refunded after it is freed, so the count is never below
 * what is really held. A removed item that is still pinned stays charged.
 * What the heap loses to fragmentation, and the rest of the last page of
 * blocks that it maps one by one, are not in the count. */
#include "items/budget.h"

#include "base/assert.h"

#include <stdatomic.h>

enum { HEAP_HEADER_BYTES = 8, HEAP_STEP_BYTES = 16, HEAP_BLOCK_MIN = 32 };

void
items__budget_init(
    struct budget *budget, const struct alloc *alloc, uint64_t limit_bytes)
{
    budget->alloc = alloc;
    atomic_init(&budget->limit_bytes, limit_bytes);
    atomic_init(&budget->bytes, 0);
}

uint64_t
items__budget_cost(size_t block_bytes)
{
    uint64_t steps = (block_bytes + HEAP_HEADER_BYTES + HEAP_STEP_BYTES - 1) /
        HEAP_STEP_BYTES;
    uint64_t cost = steps * HEAP_STEP_BYTES;

    return cost < HEAP_BLOCK_MIN ? HEAP_BLOCK_MIN : cost;
}

void
items__budget_charge(struct budget *budget, size_t block_bytes)
{
    atomic_fetch_add_explicit(
        &budget->bytes, items__budget_cost(block_bytes), memory_order_relaxed);
}

void
items__budget_refund(struct budget *budget, size_t block_bytes)
{
    uint64_t cost = items__budget_cost(block_bytes);
    uint64_t before =
        atomic_fetch_sub_explicit(&budget->bytes, cost, memory_order_relaxed);

    ASSERT(before >= cost);
}

void *
items__budget_take(struct budget *budget, size_t block_bytes)
{
    void *block;

    items__budget_charge(budget, block_bytes);
    block = alloc_zeroed(budget->alloc, block_bytes);
    if (block == NULL) {
        items__budget_refund(budget, block_bytes);
    }
    return block;
}

void
items__budget_give_back(struct budget *budget, void *block, size_t block_bytes)
{
    alloc_free(budget->alloc, block, block_bytes);
    items__budget_refund(budget, block_bytes);
}

bool
items__budget_could_fit(const struct budget *budget, size_t block_bytes)
{
    return items__budget_cost(block_bytes) <=
        atomic_load_explicit(&budget->limit_bytes, memory_order_relaxed);
}

bool
items__budget_is_over(const struct budget *budget)
{
    return atomic_load_explicit(&budget->bytes, memory_order_relaxed) >
        atomic_load_explicit(&budget->limit_bytes, memory_order_relaxed);
}
