/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_H
#define ENGINE_READER_H

#include <stdbool.h>

/* Instruction sets that the lookup in a line is made for. */
#define READER_ISAS(X)                                                        \
    X(PORTABLE, portable, "plain C")                                          \
    X(SSE2, sse2, "x86-64")                                                   \
    X(AVX2, avx2, "x86-64 with AVX2")                                         \
    X(NEON, neon, "AArch64")

enum reader_isa {
    READER_BEST, /* the best that this machine has */
#define X(name, text, what) READER_##name,
    READER_ISAS(X)
#undef X
        READER_ISA_COUNT
};

/* True where this build and this machine have it: for tests and benchmarks,
 * which go through all of them. */
bool reader_has(enum reader_isa isa);

/* What READER_BEST stands for here. */
enum reader_isa reader_best(void);

/* "portable", "sse2" ..., for benchmarks; static storage. */
const char *reader_name(enum reader_isa isa);

#endif
