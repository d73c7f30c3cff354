/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_TARGET_H
#define ENGINE_LINE_TARGET_H

/* Which instruction set line_read.h is for. A C file defines one of
 * LINE_READ_PORTABLE, _SSE2, _AVX2, _AVX512 and _NEON to 1 before it includes
 * either header (portable is meant where it defines none), and is then given:
 *
 *   LINE_READ_HAVE    1 where this compiler can make that variant; where it
 *                     is 0 line_read.h has no functions
 *   LINE_TARGET_RUNS  an expression: does this machine run it? Any thread
 *   LINE_TARGET_BEGIN, LINE_TARGET_END
 *                     at file level: all functions between them are for that
 *                     instruction set, and only they may call line_read_*.
 *                     Includes come before them. */

#include "base/sanitizer.h"

/* Vector loads of words that are being stored to are no C11: where
 * ThreadSanitizer looks, there is only the portable variant. */
#if !SANITIZER_THREAD && defined __x86_64__
#define LINE_TARGET_X86 1
#elif !SANITIZER_THREAD && defined __aarch64__ &&                             \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LINE_TARGET_ARM 1
#endif

#if LINE_READ_AVX512 && LINE_TARGET_X86
#define LINE_READ_HAVE 1
#define LINE_TARGET_RUNS                                                      \
    (__builtin_cpu_supports("avx512bw") &&                                    \
        __builtin_cpu_supports("avx512cd") &&                                 \
        __builtin_cpu_supports("avx512dq") &&                                 \
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2"))
#define LINE_TARGET "avx512bw,avx512cd,avx512dq,avx512vl,bmi,bmi2,popcnt"
#elif LINE_READ_AVX2 && LINE_TARGET_X86
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
#elif LINE_READ_AVX512 || LINE_READ_AVX2 || LINE_READ_SSE2 || LINE_READ_NEON
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

#endif
