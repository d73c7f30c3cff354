/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_SERIES_H
#define COLD_SERIES_H

#include "cold/bits.h"

/* A column of a block, or the gaps between its ids, as bits: by Rice's code
 * (cold/rice.h) or by a tree of planes (series.c), whichever is shorter. The
 * bits are described in doc/format-segment.md. Pure; any thread. */

enum {
    SERIES_MAX = 1 << 14, /* numbers in one */
    SERIES_CLASSES = 65   /* a number's class is its length in bits */
};

/* What a writer needs room for: some 350 KB. One thread at a time; nothing in
 * it lasts from call to call. */
struct series_work {
    uint64_t part[2][SERIES_MAX];
    uint16_t place[SERIES_MAX];
    uint64_t gap[SERIES_MAX];
    uint32_t cost[SERIES_CLASSES + 1][SERIES_CLASSES + 1];
    uint8_t split[SERIES_CLASSES + 1][SERIES_CLASSES + 1];
};

/* What n (0..SERIES_MAX) numbers will take, in bits: what is estimated in
 * order to choose the code, within a few in a hundred. */
uint64_t series_cost(
    struct series_work *work, const uint64_t *value, size_t n);

/* Appends n (0..SERIES_MAX) numbers. Rice's code is taken where it costs at
 * most favour percent more than the tree: sums are found quickly in it. */
void series_put(struct series_work *work, struct bits_out *out,
    const uint64_t *value, size_t n, unsigned favour);

/* Takes n (0..SERIES_MAX) numbers, moving in behind them; spare has room for n
 * too. False where the bits do not make a series of n; value and spare may have
 * been written to then. */
bool series_get(
    struct bits_in *in, uint64_t *value, uint64_t *spare, size_t n);

/* Number i of n; in stays. False where the bits up to it make no series. */
bool series_at(const struct bits_in *in, size_t n, size_t i, uint64_t *out);

/* Whether it is Rice's code, whose k (0..63) is told then, with in moved behind
 * it. */
bool series_is_rice(struct bits_in *in, unsigned *k);

#endif
