/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

#include "engine/line_target.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

/* A few 64-bit numbers side by side, for the instruction set that the
 * including file has chosen. Operators work lane by lane (vectors of GCC and
 * clang); comparing makes a lane all ones, or 0. Loops over arrays of
 * numbers, LANES at a time, say so what a compiler does not find out. */

#if LINE_READ_AVX512 || LINE_READ_AVX2
enum { LANES = 4 };
#else
enum { LANES = 2 };
#endif

typedef uint64_t lanes __attribute__((vector_size(8 * LANES)));

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

#define LANES_INLINE static inline __attribute__((always_inline))

LANES_INLINE lanes
lanes_load(const uint64_t *number)
{
    lanes them;
    memcpy(&them, number, sizeof them);
    return them;
}

LANES_INLINE void
lanes_store(uint64_t *number, lanes them)
{
    memcpy(number, &them, sizeof them);
}

/* The same number in all. */
LANES_INLINE lanes
lanes_all(uint64_t number)
{
    return number - (lanes){0};
}

/* The products of the low halves. */
LANES_INLINE lanes
lanes_mul_low(lanes a, lanes b)
{
#if LINE_READ_AVX512 || LINE_READ_AVX2
    return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif LINE_READ_SSE2
    return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & UINT32_MAX) * (b & UINT32_MAX);
#endif
}

/* of_fn(from, 0), of_fn(from, 1) ... */
#if LINE_READ_AVX512 || LINE_READ_AVX2
#define LANES_EACH(of_fn, from)                                               \
    ((lanes){of_fn(from, 0), of_fn(from, 1), of_fn(from, 2), of_fn(from, 3)})
#else
#define LANES_EACH(of_fn, from) ((lanes){of_fn(from, 0), of_fn(from, 1)})
#endif

/* Each is its right neighbour, the last one what it was; and which the last
 * one is. */
#if LINE_READ_AVX512 || LINE_READ_AVX2
#define LANES_LAST ((lanes){0, 0, 0, UINT64_MAX})
#define LANES_NEXT(them)                                                      \
    ((lanes)_mm256_permute4x64_epi64((__m256i)(them), 0xf9))
#else
#define LANES_LAST ((lanes){0, UINT64_MAX})
#define LANES_NEXT(them) ((lanes){(them)[1], (them)[1]})
#endif

/* The places of their lowest bits set; all are 1..2^31 - 1. Without an
 * instruction for it: a power of two has its place in the exponent of the same
 * number as a float. */
LANES_INLINE lanes
lanes_ctz(lanes them)
{
#if LINE_READ_AVX512
    return 63 - (lanes)_mm256_lzcnt_epi64((__m256i)(them & (0 - them)));
#elif LINE_READ_AVX2
    __m256 lowest = _mm256_cvtepi32_ps((__m256i)(them & (0 - them)));
    return ((lanes)_mm256_castps_si256(lowest) >> 23) - 127;
#elif LINE_READ_SSE2
    __m128 lowest = _mm_cvtepi32_ps((__m128i)(them & (0 - them)));
    return ((lanes)_mm_castps_si128(lowest) >> 23) - 127;
#else
    for (unsigned i = 0; i < LANES; i++) {
        them[i] = (uint64_t)__builtin_ctz((uint32_t)them[i]);
    }
    return them;
#endif
}

/* Bit i: is number i all ones? All are that or 0. */
LANES_INLINE uint32_t
lanes_bits(lanes them)
{
#if LINE_READ_AVX512 || LINE_READ_AVX2
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd((__m256i)them));
#elif LINE_READ_SSE2
    return (uint32_t)_mm_movemask_pd(_mm_castsi128_pd((__m128i)them));
#else
    return (uint32_t)(them[0] & 1) | (uint32_t)(them[1] & 2);
#endif
}

/* Is any bit set in any of them? */
LANES_INLINE bool
lanes_any(lanes them)
{
    uint64_t number[LANES];
    uint64_t any = 0;
    lanes_store(number, them);
    for (unsigned i = 0; i < LANES; i++) {
        any |= number[i];
    }
    return any != 0;
}

LINE_TARGET_END

#endif
#endif
