/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_BITS_H
#define COLD_BITS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits, from the lowest of the first byte on. Pure; any thread. */

enum {
    /* Reading touches up to so many bytes behind the last one that is used:
     * the caller has them there (in a block, its checksum). */
    BITS_SLACK = 8
};

static inline uint64_t
bits_mask(unsigned width)
{
    return width == 0 ? 0 : UINT64_MAX >> (64 - width);
}

/* How many bits the number has without leading zeros; 0 for 0. */
static inline unsigned
bits_width(uint64_t value)
{
    return value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);
}

/* Writes; behind the room it only counts, so that what does not fit is
 * measured and not written. */
struct bits_out {
    uint8_t *out;
    size_t room; /* bytes, a multiple of 8 */
    size_t at;   /* bits so far */
    uint64_t word;
};

static inline void
bits_out_init(struct bits_out *out, uint8_t *bytes, size_t room)
{
    *out = (struct bits_out){.out = bytes, .room = room & ~(size_t)7};
}

static inline void
bits__flush(struct bits_out *out, size_t word)
{
    if (8 * word < out->room) {
        bytes_put_u64(out->out + 8 * word, out->word);
    }
}

/* Appends the width (0..64) bits of value, which has no others. */
static inline void
bits_put(struct bits_out *out, uint64_t value, unsigned width)
{
    unsigned used = out->at % 64;

    if (width == 0) {
        return;
    }
    out->word |= value << used;
    out->at += width;
    if (used + width >= 64) {
        bits__flush(out, out->at / 64 - 1);
        out->word = used == 0 ? 0 : value >> (64 - used);
    }
}

/* Appends that many zeros and a one. */
static inline void
bits_put_unary(struct bits_out *out, uint64_t zeros)
{
    while (zeros >= 63) {
        bits_put(out, 0, 63);
        zeros -= 63;
    }
    bits_put(out, UINT64_C(1) << zeros, (unsigned)zeros + 1);
}

/* Writes what is pending; the length in bytes. Nothing may be put later. */
static inline size_t
bits_out_end(struct bits_out *out)
{
    if (out->at % 64 != 0) {
        bits__flush(out, out->at / 64);
    }
    return (out->at + 7) / 8;
}

/* Reads; whoever takes bits looks first whether so many are left. */
struct bits_in {
    const uint8_t *in;
    size_t at, end; /* bits */
};

/* The 64 bits from bit at on, which is one of those to be read. */
static inline uint64_t
bits_peek(const uint8_t *in, size_t at)
{
    const uint8_t *byte = in + at / 8;
    unsigned shift = at % 8;
    uint64_t low = bytes_get_u64(byte) >> shift;

    return shift == 0 ? low : low | (uint64_t)byte[8] << (64 - shift);
}

static inline bool
bits_left(const struct bits_in *in, uint64_t bits)
{
    return bits <= in->end - in->at;
}

/* Takes width (0..64) bits; false where there are not so many. */
static inline bool
bits_get(struct bits_in *in, unsigned width, uint64_t *out)
{
    if (!bits_left(in, width)) {
        return false;
    }
    *out = width == 0 ? 0 : bits_peek(in->in, in->at) & bits_mask(width);
    in->at += width;
    return true;
}

/* Number i of an array of numbers of width (0..64) bits that begins at bit
 * at. */
static inline uint64_t
bits_number(const uint8_t *in, size_t at, unsigned width, size_t i)
{
    return width == 0 ? 0 : bits_peek(in, at + i * width) & bits_mask(width);
}

/* Ones of a word, but for the last step; the sum of up to 31 such is finished
 * by bits__ones_sum. The counting by halves of Wilkes, Wheeler and Gill,
 * 1957. */
static inline uint64_t
bits__ones_bytes(uint64_t word)
{
    word -= word >> 1 & UINT64_C(0x5555555555555555);
    word = (word & UINT64_C(0x3333333333333333)) +
        (word >> 2 & UINT64_C(0x3333333333333333));
    return (word + (word >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

static inline unsigned
bits__ones_sum(uint64_t bytes)
{
    uint64_t pairs = (bytes & UINT64_C(0x00ff00ff00ff00ff)) +
        (bytes >> 8 & UINT64_C(0x00ff00ff00ff00ff));
    return (unsigned)(pairs * UINT64_C(0x0001000100010001) >> 48);
}

static inline unsigned
bits_ones(uint64_t word)
{
    return (
        unsigned)(bits__ones_bytes(word) * UINT64_C(0x0101010101010101) >> 56);
}

/* Ones among n bits from bit at on. */
static inline size_t
bits_rank(const uint8_t *in, size_t at, size_t n)
{
    enum { WORDS_AT_ONCE = 30 };
    size_t ones = 0;

    while (n >= 64) {
        size_t words = n / 64 < WORDS_AT_ONCE ? n / 64 : WORDS_AT_ONCE;
        uint64_t bytes = 0;

        for (size_t i = 0; i < words; i++, at += 64) {
            bytes += bits__ones_bytes(bits_peek(in, at));
        }
        n -= 64 * words;
        ones += bits__ones_sum(bytes);
    }
    if (n > 0) {
        ones += bits_ones(bits_peek(in, at) & bits_mask((unsigned)n));
    }
    return ones;
}

#endif
