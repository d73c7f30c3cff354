/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_ID_FAMILY_H
#define LIB_ID_FAMILY_H

#include <stddef.h>
#include <stdint.h>

/* The kinds of ids that a store of counters meets, for tests. Pure. */
#define ID_FAMILIES(X)                                                        \
    X(SEQUENTIAL, "1, 2, 3 ...")                                              \
    X(SECONDS, "a second and a number in it, as lib/dist has them")           \
    X(MILLIS, "a millisecond, one of 8 workers and a number")                 \
    X(RANDOM, "uniformly random 64 bits")                                     \
    X(MULTIPLES, "multiples of 2^22")                                         \
    X(STRAY, "sequential, and a few near 0, 2^63 and 2^64")                   \
    X(CLUSTERS, "runs of neighbours at random places")                        \
    X(SPREAD, "evenly over all 64 bits, low bits alike")

enum id_family {
#define X(name, text) ID_##name,
    ID_FAMILIES(X)
#undef X
        ID_FAMILY_COUNT
};

/* Its name, in lower case; static storage. */
const char *id_family_name(enum id_family family);

/* Writes n (1..2^24) different ids of the family, ascending. The same seed
 * gives the same ids. */
void id_family_make(
    enum id_family family, uint64_t seed, size_t n, uint64_t *id);

#endif
