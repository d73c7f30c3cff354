/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_RICE_H
#define COLD_RICE_H

#include "cold/bits.h"

/* Numbers whose chance falls off evenly, as gaps between random places do:
 * the low k bits of each as they are, the rest in unary (Rice, "Some practical
 * universal noiseless coding techniques", JPL 79-22, 1979). All low parts stand
 * first, so number i is one load once the ones before it have been counted.
 * Pure; any thread. */

enum { RICE_COST_MAX = 1 << 30 };

/* The k (0..63) that is cheapest for n (>= 1) numbers, and what they cost with
 * it in bits; RICE_COST_MAX where that is more. */
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

#endif
