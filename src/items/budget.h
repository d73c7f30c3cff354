/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_BUDGET_H
#define ITEMS_BUDGET_H

#include "base/alloc.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes that items and their hash tables take, against a limit. Inside
 * src/items only. Any thread; the two numbers are sums, so their accesses are
 * relaxed: nothing is published through them. */
struct budget {
    const struct alloc *alloc; /* read-only; NULL: the heap */
    _Atomic uint64_t limit_bytes;
    _Atomic uint64_t bytes;
};

void items__budget_init(
    struct budget *budget, const struct alloc *alloc, uint64_t limit_bytes);

/* What a block of that many bytes costs: with the heap's header, rounded as
 * the heap rounds (glibc: 8 bytes a block, multiples of 16). */
uint64_t items__budget_cost(size_t block_bytes);

/* Counts a block before it is there, so that room can be made for it. */
void items__budget_charge(struct budget *budget, size_t block_bytes);
void items__budget_refund(struct budget *budget, size_t block_bytes);

/* A charged block of zero bytes, or NULL and no charge. */
void *items__budget_take(struct budget *budget, size_t block_bytes);
void items__budget_give_back(
    struct budget *budget, void *block, size_t block_bytes);

/* Whether a block would fit if it were the only one. */
bool items__budget_could_fit(const struct budget *budget, size_t block_bytes);

bool items__budget_is_over(const struct budget *budget);

#endif
