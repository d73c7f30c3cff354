/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_RICE_H
#define COLD_RICE_H

#include "cold/bits.h"

/* Numbers whose chance falls off evenly, as gaps between random places do:
 * the low k bits of each as they are, the rest in unary (Rice, "Some practical
 * universal noiseless coding techniques", JPL 79-22, 1979). All low parts stand
 * first, so number i is one load once the ones before it have been counted.
 * Pure; any thread. */

enum { RICE_MAX = 1 << 14 }; /* numbers whose code is chosen */

/* A k (0..63) that is cheapest for n (1..RICE_MAX) numbers, or next to it, and
 * what they cost with it in bits: fewer than 2^31. */
unsigned rice_choose(const uint64_t *value, size_t n, uint64_t *cost_bits);

void rice_put(
    struct bits_out *out, const uint64_t *value, size_t n, unsigned k);

/* n numbers; false where they are cut off or one passes 2^64-1. */
bool rice_get(struct bits_in *in, uint64_t *value, size_t n, unsigned k);

/* Moves behind n numbers. */
bool rice_skip(struct bits_in *in, size_t n, unsigned k);

/* Number i of n; in stays. */
bool rice_at(
    const struct bits_in *in, size_t n, unsigned k, size_t i, uint64_t *out);

/* The least i with (x_0 + 1) + ... + (x_i + 1) >= target, and that sum; i is n
 * where there is none. Sums that pass 2^64-1 are none. in stays. */
bool rice_seek(const struct bits_in *in, size_t n, unsigned k, uint64_t target,
    size_t *i, uint64_t *sum);

/* Where a search may begin: behind some of the numbers. */
struct rice_mark {
    uint64_t sum; /* of these and one each */
    uint32_t at;  /* bits of their upper parts */
};

/* Writes mark[0..n / RICE_MARK): mark j is behind (j + 1) * RICE_MARK numbers.
 * False where the numbers are cut off or a sum passes 2^64-1. */
enum { RICE_MARK = 64 };
bool rice_marks(
    const struct bits_in *in, size_t n, unsigned k, struct rice_mark *mark);

/* As rice_seek, with the marks of these numbers: looks at RICE_MARK of them at
 * most. */
bool rice_seek_marked(const struct bits_in *in, size_t n, unsigned k,
    const struct rice_mark *mark, uint64_t target, size_t *i, uint64_t *sum);

#endif
