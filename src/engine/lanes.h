/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LANES_H
#define ENGINE_LANES_H

/* The first of eight headers that a get passes through, for the one instruction
 * set that the including file has chosen; in the order they build on each
 * other:
 *
 *   lanes.h          the instruction set; a few numbers side by side
 *   line_read.h      one line, for one record
 *   line_look.h      many lines at once, step by step
 *   reader_keys.h    keys of a request become groups of records
 *   reader_locate.h  a group finds its tables and its lines
 *   reader_answer.h  codes become values, keys are answered
 *   reader_look.h    first lines, second lines, the stash; everywhere
 *   reader_body.h    the get itself: a group follows the other
 *
 * What a line is stands in line.h. A C file defines one of LINE_READ_PORTABLE,
 * _SSE2, _AVX2 and _NEON to 1 before it includes any of them (portable is meant
 * where it defines none), and is then given:
 *
 *   LINE_READ_HAVE    1 where this compiler can make that variant; where it
 *                     is 0 the headers have no functions
 *   LINE_TARGET_RUNS  an expression: does this machine run it? Any thread
 *   LINE_TARGET_BEGIN, LINE_TARGET_END
 *                     at file level: all functions between them are for that
 *                     instruction set, and only they may call line_read_*.
 *                     Includes come before them. */

#include "base/sanitizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

/* Vector loads of words that are being stored to are no C11: where
 * ThreadSanitizer looks, there is only the portable variant. */
#if !SANITIZER_THREAD && defined __x86_64__
#define LINE_TARGET_X86 1
#elif !SANITIZER_THREAD && defined __aarch64__ &&                             \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LINE_TARGET_ARM 1
#endif

#if LINE_READ_AVX2 && LINE_TARGET_X86
#define LINE_READ_HAVE 1
#define LINE_TARGET_RUNS                                                      \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
#define LINE_TARGET "avx2,bmi,bmi2,popcnt"
#elif LINE_READ_SSE2 && LINE_TARGET_X86
#define LINE_READ_HAVE 1
#define LINE_TARGET_RUNS 1
#elif LINE_READ_NEON && LINE_TARGET_ARM
#define LINE_READ_HAVE 1
#define LINE_TARGET_RUNS 1
#elif LINE_READ_AVX2 || LINE_READ_SSE2 || LINE_READ_NEON
#define LINE_READ_HAVE 0
#define LINE_TARGET_RUNS 0
#else
#undef LINE_READ_PORTABLE
#define LINE_READ_PORTABLE 1
#define LINE_READ_HAVE 1
#define LINE_TARGET_RUNS 1
#endif

/* Before a loop: several of its rounds at a time. */
#if defined __clang__
#define LINE_TARGET_UNROLL _Pragma("clang loop unroll_count(4)")
#else
#define LINE_TARGET_UNROLL _Pragma("GCC unroll 4")
#endif

#define LINE_TARGET_PRAGMA(text) _Pragma(#text)
#define LINE_TARGET_DO(...) LINE_TARGET_PRAGMA(__VA_ARGS__)
#if defined LINE_TARGET && defined __clang__
#define LINE_TARGET_BEGIN                                                     \
    LINE_TARGET_DO(clang attribute push(                                      \
        __attribute__((target(LINE_TARGET))), apply_to = function))
#define LINE_TARGET_END LINE_TARGET_DO(clang attribute pop)
#elif defined LINE_TARGET
#define LINE_TARGET_BEGIN                                                     \
    LINE_TARGET_DO(GCC push_options)                                          \
    LINE_TARGET_DO(GCC target(LINE_TARGET))
#define LINE_TARGET_END LINE_TARGET_DO(GCC pop_options)
#else
#define LINE_TARGET_BEGIN
#define LINE_TARGET_END
#endif

/* Lanes: a few 64-bit numbers side by side. Operators work lane by lane
 * (vectors of GCC and clang); comparing makes a lane all ones, or 0. Loops over
 * arrays of numbers, LANES at a time, say so what a compiler does not find
 * out. */

#if LINE_READ_AVX2
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
#if LINE_READ_AVX2
    return (lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif LINE_READ_SSE2
    return (lanes)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
    return (a & UINT32_MAX) * (b & UINT32_MAX);
#endif
}

/* of_fn(from, 0), of_fn(from, 1) ... */
#if LINE_READ_AVX2
#define LANES_EACH(of_fn, from)                                               \
    ((lanes){of_fn(from, 0), of_fn(from, 1), of_fn(from, 2), of_fn(from, 3)})
#else
#define LANES_EACH(of_fn, from) ((lanes){of_fn(from, 0), of_fn(from, 1)})
#endif

/* Each is its right neighbour, the last one what it was; and which the last
 * one is. */
#if LINE_READ_AVX2
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
#if LINE_READ_AVX2
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
#if LINE_READ_AVX2
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd((__m256i)them));
#elif LINE_READ_SSE2
    return (uint32_t)_mm_movemask_pd(_mm_castsi128_pd((__m128i)them));
#else
    return (uint32_t)(them[0] & 1) | (uint32_t)(them[1] & 2);
#endif
}

/* The or of all. */
LANES_INLINE uint64_t
lanes_or(lanes them)
{
    uint64_t number[LANES];
    uint64_t any = 0;
    lanes_store(number, them);
    for (unsigned i = 0; i < LANES; i++) {
        any |= number[i];
    }
    return any;
}

/* Is any bit set in any of them? */
LANES_INLINE bool
lanes_any(lanes them)
{
    return lanes_or(them) != 0;
}

LINE_TARGET_END

#endif
#endif
