/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_JOIN_H
#define COLD_JOIN_H

#include "cold/bits.h"

/* Numbers back into the order of a plane: what decoding a block spends most of
 * its time with. Pure; any thread. */

/* Writes to[0..n): for each of the n bits from bit at on the next of the first
 * zeros numbers of from, or of those behind them. from has n numbers, and
 * there are that many bits of 0. With AVX-512 where the machine has it. */
void join_by_plane(const uint8_t *in, size_t at, size_t n,
    const uint64_t *from, size_t zeros, uint64_t *to);

/* The same without. */
void join_by_plane_portable(const uint8_t *in, size_t at, size_t n,
    const uint64_t *from, size_t zeros, uint64_t *to);

#endif
