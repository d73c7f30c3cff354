/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads numbers byte by byte: first the lowest byte of each, then
 * the next. Bytes that are alike stand side by side, as a byte-wise compressor
 * wants it, and any number is one load a byte away. */
#include "cold/planes.h"

#include "base/assert.h"
#include "cold/bits.h"

#include <string.h>

unsigned
planes_width(const uint64_t *value, size_t n)
{
    uint64_t any = 0;

    for (size_t i = 0; i < n; i++) {
        any |= value[i];
    }
    return (bits_width(any) + 7) / 8;
}

void
planes_put(uint8_t *out, const uint64_t *value, size_t n, unsigned width)
{
    ASSERT(width <= 8);
    for (unsigned b = 0; b < width; b++, out += n) {
        for (size_t i = 0; i < n; i++) {
            out[i] = (uint8_t)(value[i] >> 8 * b);
        }
    }
}

void
planes_get(const uint8_t *in, uint64_t *value, size_t n, unsigned width)
{
    ASSERT(width <= 8);
    if (width == 0) {
        memset(value, 0, n * sizeof *value);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        value[i] = in[i];
    }
    for (unsigned b = 1; b < width; b++) {
        in += n;
        for (size_t i = 0; i < n; i++) {
            value[i] |= (uint64_t)in[i] << 8 * b;
        }
    }
}

uint64_t
planes_at(const uint8_t *in, size_t n, unsigned width, size_t i)
{
    uint64_t value = 0;

    for (unsigned b = 0; b < width; b++) {
        value |= (uint64_t)in[b * n + i] << 8 * b;
    }
    return value;
}
