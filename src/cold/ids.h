/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_IDS_H
#define COLD_IDS_H

#include "cold/series.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the ids of a block have in common, so that only the rest is written:
 * a stride, and low bits that have few values (workers of a snowflake). Pure;
 * any thread. */

enum {
    IDS_LOWS_MAX = 256,
    /* stride, low bits, how many lows, the lows */
    IDS_HEAD_BYTES_MAX = 2 + BYTES_VARINT_MAX + IDS_LOWS_MAX * BYTES_VARINT_MAX
};

/* An id is first written as a rank: itself, or, where there are lows, the bits
 * above low_bits times n_lows plus the place of the low bits among the lows.
 * Ranks ascend as ids do. */
struct ids_shape {
    uint64_t stride;   /* >= 1; of the distances between ranks */
    unsigned low_bits; /* 0: no lows; at most 63 */
    unsigned n_lows;
    uint64_t low[IDS_LOWS_MAX]; /* ascending, below 2^low_bits */
};

/* What of a shape is used: ids_of_gaps and ids_distance look at no more, so a
 * copy may end there. */
static inline size_t
ids_shape_bytes(const struct ids_shape *shape)
{
    return offsetof(struct ids_shape, low) +
        shape->n_lows * sizeof *shape->low;
}

/* What a writer needs room for. One thread at a time; nothing in it lasts from
 * call to call. */
struct ids_work {
    uint64_t gap[SERIES_MAX];
    struct series_work *series; /* the caller's */
};

/* Finds the shape that n (1..SERIES_MAX) ids take least room in, ascending;
 * gap[0..n-1) become the distances of their ranks in strides, less one. */
void ids_plan(struct ids_work *work, const uint64_t *id, size_t n,
    struct ids_shape *shape, uint64_t *gap);

/* Writes a shape (room for IDS_HEAD_BYTES_MAX); its length. */
size_t ids_put_shape(const struct ids_shape *shape, uint8_t *out);

/* Reads one at *in, which ends before end, and moves *in behind it. */
bool ids_get_shape(
    const uint8_t **in, const uint8_t *end, struct ids_shape *shape);

/* Makes n ids of the first one and n - 1 gaps, which may be at id + 1. False
 * where they leave 64 bits or the first one has low bits that there are not. */
bool ids_of_gaps(const struct ids_shape *shape, uint64_t first, size_t n,
    const uint64_t *gap, uint64_t *id);

/* How many strides id is behind first (both ids, id >= first); false where no
 * number of strides leads there. */
bool ids_distance(const struct ids_shape *shape, uint64_t first, uint64_t id,
    uint64_t *strides);

#endif
