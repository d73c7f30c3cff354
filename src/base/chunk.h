/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CHUNK_H
#define BASE_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Eight bytes of text in one word, the first of them lowest. Pure; any
 * thread. */

enum { CHUNK_BYTES = 8 };

/* Eight bytes from text on. */
static inline uint64_t
chunk_load(const char *text)
{
    uint64_t word;

    memcpy(&word, text, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Writes eight bytes to text: what chunk_load reads. */
static inline void
chunk_store(char *text, uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(text, &word, sizeof word);
}

/* True where all eight bytes are '0'..'9': the high half of each is 3, and
 * still is after adding 6. */
static inline bool
chunk_is_digits(uint64_t word)
{
    const uint64_t high = UINT64_C(0xf0f0f0f0f0f0f0f0);
    const uint64_t threes = UINT64_C(0x3030303030303030);
    const uint64_t sixes = UINT64_C(0x0606060606060606);

    return ((word & high) | (((word + sixes) & high) >> 4)) ==
        (threes | (threes >> 4));
}

/* The number of eight digits that are numbers 0..9. */
static inline uint64_t
chunk_join(uint64_t digits)
{
    const uint64_t mask = UINT64_C(0x000000ff000000ff);
    const uint64_t outer = 100 + (UINT64_C(1000000) << 32);
    const uint64_t inner = 1 + (UINT64_C(10000) << 32);

    digits = digits * 10 + (digits >> 8);
    return ((digits & mask) * outer + ((digits >> 16) & mask) * inner) >> 32;
}

/* The number that eight digits spell; a byte 0 counts as '0'. */
static inline uint64_t
chunk_value(uint64_t word)
{
    return chunk_join(word & UINT64_C(0x0f0f0f0f0f0f0f0f));
}

/* The digits of a number below 10^8, with zeros in front, as numbers 0..9: cut
 * into fours, these into pairs, and these into digits, side by side, by
 * products with 2^20 / 100 and 2^10 / 10, rounded up. */
static inline uint64_t
chunk_digits(uint32_t value)
{
    uint64_t word = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t part = (word * 10486 >> 20) & UINT64_C(0x0000007f0000007f);

    word = part | (word - part * 100) << 16;
    part = (word * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    return part | (word - part * 10) << 8;
}

/* How many bytes stand before the lowest one whose top bit is set in marks:
 * 0..8. */
static inline unsigned
chunk_before(uint64_t marks)
{
    return marks == 0 ? CHUNK_BYTES : (unsigned)__builtin_ctzll(marks) / 8;
}

/* The eight bytes with digits as numbers 0..9, and no others below 10. */
static inline uint64_t
chunk_off_digits(uint64_t word)
{
    return word ^ UINT64_C(0x3030303030303030);
}

/* A top bit for each byte that is not below 10, up to the first such at least:
 * these carry into those behind them only. */
static inline uint64_t
chunk_marks(uint64_t digits)
{
    return (digits | (digits + UINT64_C(0x7676767676767676))) &
        UINT64_C(0x8080808080808080);
}

/* How many of the first bytes are '0'..'9': 0..8. */
static inline unsigned
chunk_count_digits(uint64_t word)
{
    return chunk_before(chunk_marks(chunk_off_digits(word)));
}

/* How many of the first bytes are above the space, control characters and
 * spaces being what ends a word: 0..8. Such a byte borrows from those behind
 * it only. */
static inline unsigned
chunk_count_printed(uint64_t word)
{
    uint64_t marks = (word - UINT64_C(0x2121212121212121)) & ~word;

    return chunk_before(marks & UINT64_C(0x8080808080808080));
}

/* The first n bytes, 0..7, the others 0. */
static inline uint64_t
chunk_first(uint64_t word, unsigned n)
{
    return word & ((UINT64_C(1) << 8 * n) - 1);
}

/* The first n bytes, 0..8, moved behind bytes 0: as chunk_value wants fewer
 * than eight digits. */
static inline uint64_t
chunk_last(uint64_t word, unsigned n)
{
    unsigned half = 4 * (CHUNK_BYTES - n);

    return word << half << half; /* n = 0: 64 in two steps */
}

#endif
