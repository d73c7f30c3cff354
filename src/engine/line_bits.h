/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_BITS_H
#define ENGINE_LINE_BITS_H

#include <stdint.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

/* Arithmetic on 64-bit words that the writers' and the readers' side of a line
 * share. Pure; defined for every argument, since readers may hold garbage. */

/* The low width bits set, width 0..64. */
static inline uint64_t
line_bits_mask(unsigned width)
{
    return ((UINT64_C(1) << (width & 63)) - 1) | (0 - (uint64_t)(width >> 6));
}

/* 64 bits from bit shift (0..63) of low on; what lacks comes from high. */
static inline uint64_t
line_bits_join(uint64_t low, uint64_t high, unsigned shift)
{
    return low >> (shift & 63) | high << (~shift & 63) << 1;
}

/* Bit i (0..3) is set where 16-bit lane i of word is equal to tag. Exact in
 * every lane: no carry leaves one (Warren, Hacker's Delight, 6-1). */
static inline unsigned
line_bits_lanes(uint64_t word, uint16_t tag)
{
    const uint64_t low = UINT64_C(0x7fff7fff7fff7fff);
    uint64_t other = word ^ tag * UINT64_C(0x0001000100010001);
    uint64_t zero = ~(((other & low) + low) | other | low);
    /* Gathers bits 15, 31, 47, 63 at the top: all other products lie apart
     * below. */
    return (unsigned)((zero >> 15) * UINT64_C(0x0001000200040008) >> 48) & 15;
}

/* Bit i (0..23) is set where lane i of the words is equal to tag; others may
 * be. */
static inline uint32_t
line_bits_match(const uint64_t word[6], uint16_t tag)
{
#if defined __x86_64__
    /* By 8 bytes each: they may just have been stored so. */
    __m128i pair[3];
    for (int i = 0; i < 3; i++) {
        pair[i] = _mm_unpacklo_epi64(
            _mm_loadl_epi64((const __m128i *)(const void *)&word[2 * i]),
            _mm_loadl_epi64((const __m128i *)(const void *)&word[2 * i + 1]));
        pair[i] = _mm_cmpeq_epi16(pair[i], _mm_set1_epi16((short)tag));
    }
    int low = _mm_movemask_epi8(_mm_packs_epi16(pair[0], pair[1]));
    int high = _mm_movemask_epi8(_mm_packs_epi16(pair[2], pair[2]));
    return (uint32_t)low | (uint32_t)high << 16;
#else
    uint32_t match = 0;
    for (unsigned i = 0; i < 6; i++) {
        match |= (uint32_t)line_bits_lanes(word[i], tag) << 4 * i;
    }
    return match;
#endif
}

/* The sum of total[] over the first n (0..32) of the nibbles in low, high. */
static inline unsigned
line_bits_total(
    const uint8_t total[16], uint64_t low, uint64_t high, unsigned n)
{
    unsigned sum = 0;
    if (n > 16) {
        for (unsigned i = 0; i < 16; i++) {
            sum += total[low >> (4 * i) & 15];
        }
        low = high;
        n -= 16;
    }
    for (; n != 0; n--, low >>= 4) {
        sum += total[low & 15];
    }
    return sum;
}

#if defined __x86_64__
/* The same for the nibbles in a vector, n from 0 to 31. Bytes of it are looked
 * up in total at once, and summed by the instruction for sums of absolute
 * differences (Mula, SSSE3: fast popcount). */
__attribute__((target("ssse3"), always_inline)) static inline unsigned
line_bits_total_ssse3(const uint8_t total[16], __m128i nibbles, unsigned n)
{
    const __m128i zero = _mm_setzero_si128();
    const __m128i low = _mm_set1_epi8(15);
    const __m128i even_place = _mm_setr_epi8(
        0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m128i odd_place = _mm_setr_epi8(
        1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    __m128i table = _mm_loadu_si128((const __m128i *)(const void *)total);
    __m128i end = _mm_shuffle_epi8(_mm_cvtsi32_si128((int)n), zero);
    __m128i even = _mm_shuffle_epi8(table, _mm_and_si128(nibbles, low));
    __m128i odd = _mm_shuffle_epi8(
        table, _mm_and_si128(_mm_srli_epi16(nibbles, 4), low));
    even = _mm_and_si128(even, _mm_cmpgt_epi8(end, even_place));
    odd = _mm_and_si128(odd, _mm_cmpgt_epi8(end, odd_place));
    __m128i sum =
        _mm_add_epi64(_mm_sad_epu8(even, zero), _mm_sad_epu8(odd, zero));
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    return (unsigned)_mm_cvtsi128_si32(sum);
}
#endif

#endif
