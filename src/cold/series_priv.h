/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_SERIES_PRIV_H
#define COLD_SERIES_PRIV_H

#include "cold/series.h"

/* What writer and reader of a series agree on; see the head of series.c. */

enum {
    SERIES_K_BITS = 6,     /* Rice's k */
    SERIES_CLASS_BITS = 7, /* the first class, and how many there are */
    SERIES_PLACE_K_BITS = 4
};

/* The classes that occur, ascending: those between first and last are said by
 * one bit each. */
struct series_classes {
    unsigned n;
    uint8_t of[SERIES_CLASSES];
};

/* Bits for which of the `leaves` - 1 places between leaves divides them. */
static inline unsigned
series__split_bits(unsigned leaves)
{
    return bits_width(leaves - 2);
}

/* Numbers of that class and above are at least this; class >= 1. */
static inline uint64_t
series__least(unsigned class)
{
    return UINT64_C(1) << (class - 1);
}

/* Bits of a number of that class that the class does not say. */
static inline unsigned
series__rest_bits(unsigned class)
{
    return class < 2 ? 0 : class - 1;
}

#endif
