/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_BOUND_H
#define BENCH_BOUND_H

#include "bench/posts.h"

/* What a record must take at least, whoever stores it, when ids lie anywhere
 * among the places that there are for them and columns do not depend on each
 * other. Bits a record. */
struct bound {
    double records;    /* how many of the posts have a record */
    double id_bits;    /* H(p) / p with p the share of places taken; for ids
                        * far apart that is log2(mean gap) + 1.44 */
    double value_bits; /* the sum of the columns' entropies */
    double width_bits; /* for comparison: the sum of the lengths of the numbers
                        * written in binary, 0 bits for 0 */
};

/* Looks at all posts, or at BOUND_SAMPLE of them, evenly spread. Fails when
 * memory is out. */
enum { BOUND_SAMPLE = 1 << 20 };
struct bound bound_of(const struct posts *posts);

/* Both parts in bytes. */
double bound_bytes(const struct bound *bound);

#endif
