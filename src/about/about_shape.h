/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ABOUT_ABOUT_SHAPE_H
#define ABOUT_ABOUT_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where in a table a member has its bits, and how many there are for an error.
 * A table is lines of 512 bits; a member has up to 7 bits, all in one line, so
 * that a look is one cache miss. Pure; any thread. */

enum {
    ABOUT_LINE_BYTES = 64,
    ABOUT_LINE_WORDS = ABOUT_LINE_BYTES / 8,
    ABOUT_LINE_BITS = 8 * ABOUT_LINE_BYTES,
    ABOUT_PLACE_BITS = 9, /* of the number of a bit in its line */
    ABOUT_BITS_MAX = 7,   /* of a member: 7 numbers are in 64 bits */
    ABOUT_KEY_WORDS = 5,
    ABOUT_ERROR_MIN = 20, /* one look in so many is wrong */
    ABOUT_ERROR_MAX = 1000
};

/* What all tables of one column have in common. */
struct about_shape {
    uint64_t key[ABOUT_KEY_WORDS];
    uint64_t lines;         /* of a table; >= 1 */
    uint64_t members_max;   /* in a table, for the error that was asked for */
    unsigned bits;          /* of a member, 1..ABOUT_BITS_MAX */
    unsigned bits_a_member; /* of memory, in hundredths of a bit */
};

/* Where a member's bits are. */
struct about_spot {
    uint64_t line;
    uint64_t places; /* ABOUT_PLACE_BITS for each bit, the first one lowest */
};

/* A shape for one wrong look in `error` (ABOUT_ERROR_MIN..MAX) and tables of
 * that many lines. Who knows neither seed nor serial cannot tell which members
 * share bits. */
void about_shape_init(struct about_shape *shape, uint64_t lines,
    unsigned error, uint64_t seed, uint32_t serial);

/* The same shape with tables of that many lines. */
void about_shape_resize(struct about_shape *shape, uint64_t lines);

/* Both halves of the product, folded. */
static inline uint64_t
about_shape__fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiplications of 128 bits with secret words, folded, as in wyhash (Wang
 * Yi): three for a look. */
static inline struct about_spot
about_shape_spot(const struct about_shape *shape, uint64_t id, uint64_t member)
{
    const uint64_t *key = shape->key;
    uint64_t hash = about_shape__fold(id ^ key[0], key[1]);
    hash = about_shape__fold(hash ^ member ^ key[2], key[3]);
    return (struct about_spot){
        .line = (uint64_t)(((unsigned __int128)hash * shape->lines) >> 64),
        .places = about_shape__fold(hash ^ key[0], key[4])};
}

/* The share of looks for what is no member that find all bits set, in 10^-9,
 * in a table of whose lines the n at line have been looked at. */
uint64_t about_shape_wrong(
    const struct about_shape *shape, const uint32_t *set_bits, size_t n);

#endif
