/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_FLIP_H
#define BASE_FLIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes with a checksum of which one bit is not as it was written: which one
 * it is can be found, since with it turned back the checksum is right. Among n
 * bits a wrong one passes with the probability n / 2^64. Pure. */

/* How much may be tried yet, in bytes that is_right_fn looks at. One thread at
 * a time. */
struct flip_budget {
    uint64_t bytes;
};

/* Enough for some ten minutes of one core. */
#define FLIP_BUDGET (UINT64_C(1) << 42)

enum { FLIP_BYTES_MAX = 1 << 18 /* longer ones are not tried */ };

struct flip {
    uint8_t *bytes; /* the caller's; n of them may have the bit */
    size_t n;
    size_t cost; /* bytes that one call of is_right_fn looks at */
    bool (*is_right_fn)(void *context);
    void *context;
};

/* Turns back the one bit with which is_right_fn says true, and says which byte
 * had it; else false: the bytes are as they were. NULL as budget, or one that
 * does not suffice: nothing is tried. */
bool flip_find(
    const struct flip *flip, struct flip_budget *budget, size_t *at);

#endif
