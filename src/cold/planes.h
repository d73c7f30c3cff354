/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_PLANES_H
#define COLD_PLANES_H

#include <stddef.h>
#include <stdint.h>

/* Arrays of numbers as bytes: all lowest bytes, then all second bytes and so
 * on, as many as the largest number has. What stands in plain blocks as it is,
 * and in others compressed by zstd. Pure; any thread. */

/* Bytes (0..8) that the largest of n numbers has. */
unsigned planes_width(const uint64_t *value, size_t n);

/* Writes width * n bytes. */
void planes_put(uint8_t *out, const uint64_t *value, size_t n, unsigned width);

/* Reads width * n bytes. */
void planes_get(const uint8_t *in, uint64_t *value, size_t n, unsigned width);

/* Number i of n. */
uint64_t planes_at(const uint8_t *in, size_t n, unsigned width, size_t i);

#endif
