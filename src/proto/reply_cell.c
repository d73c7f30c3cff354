/* SPDX-License-Identifier: BSD-3-Clause */
/* The ends of replies to cells: those of small numbers, as most are, made
 * beforehand. */
#include "proto/reply_cell.h"

#include <assert.h>

static_assert(sizeof(struct reply_short) == 16, "one store");

/* " 0 0\r\n" as chunk_load has it: no flags, and a length to be added. */
#define NO_FLAGS UINT64_C(0x00000a0d30203020)

#define ONE(a)                                                                \
    {                                                                         \
        " 0 1\r\n" #a "\r\n", 9                                               \
    }
#define TWO(a, b)                                                             \
    {                                                                         \
        " 0 2\r\n" #a #b "\r\n", 10                                           \
    }
#define THREE(a, b, c)                                                        \
    {                                                                         \
        " 0 3\r\n" #a #b #c "\r\n", 11                                        \
    }
#define TEN_OF_TWO(a)                                                         \
    TWO(a, 0), TWO(a, 1), TWO(a, 2), TWO(a, 3), TWO(a, 4), TWO(a, 5),         \
        TWO(a, 6), TWO(a, 7), TWO(a, 8), TWO(a, 9)
#define TEN(a, b)                                                             \
    THREE(a, b, 0), THREE(a, b, 1), THREE(a, b, 2), THREE(a, b, 3),           \
        THREE(a, b, 4), THREE(a, b, 5), THREE(a, b, 6), THREE(a, b, 7),       \
        THREE(a, b, 8), THREE(a, b, 9)
#define HUNDRED(a)                                                            \
    TEN(a, 0), TEN(a, 1), TEN(a, 2), TEN(a, 3), TEN(a, 4), TEN(a, 5),         \
        TEN(a, 6), TEN(a, 7), TEN(a, 8), TEN(a, 9)

const struct reply_short reply_short[NUM_SHORT_END] = {ONE(0), ONE(1), ONE(2),
    ONE(3), ONE(4), ONE(5), ONE(6), ONE(7), ONE(8), ONE(9), TEN_OF_TWO(1),
    TEN_OF_TWO(2), TEN_OF_TWO(3), TEN_OF_TWO(4), TEN_OF_TWO(5), TEN_OF_TWO(6),
    TEN_OF_TWO(7), TEN_OF_TWO(8), TEN_OF_TWO(9), HUNDRED(1), HUNDRED(2),
    HUNDRED(3), HUNDRED(4), HUNDRED(5), HUNDRED(6), HUNDRED(7), HUNDRED(8),
    HUNDRED(9)};

static __attribute__((noinline)) char *
put_any(char *at, uint32_t flags, uint64_t value, uint64_t cas)
{
    char number[NUM_U64_DIGITS_MAX];
    size_t n = num_put_u64(value, number);
    *at++ = ' ';
    at += num_put_u64(flags, at);
    *at++ = ' ';
    at += num_put_u64(n, at);
    if (cas != 0) {
        *at++ = ' ';
        at += num_put_u64(cas, at);
    }
    memcpy(at, "\r\n", 2);
    memcpy(at + 2, number, sizeof number);
    memcpy(at + 2 + n, "\r\n", 2);
    return at + 2 + n + 2;
}

/* Of up to eight digits, which is not 0, without flags and without a cas. */
static inline char *
put_eight(char *at, uint32_t value)
{
    uint64_t digits = chunk_digits(value);
    unsigned zeros = (unsigned)__builtin_ctzll(digits) / 8;
    unsigned n = CHUNK_BYTES - zeros;
    chunk_store(at, NO_FLAGS + ((uint64_t)n << 24));
    at += sizeof " 0 0\r\n" - 1;
    chunk_store(at, chunk_off_digits(digits) >> 8 * zeros);
    memcpy(at + n, "\r\n", 2);
    return at + n + 2;
}

char *
reply__put_any(char *at, uint32_t flags, uint64_t value, uint64_t cas)
{
    const uint64_t eight_end = 100000000;
    return flags == 0 && cas == 0 && value != 0 && value < eight_end
        ? put_eight(at, (uint32_t)value)
        : put_any(at, flags, value, cas);
}
