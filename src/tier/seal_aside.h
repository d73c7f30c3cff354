/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_ASIDE_H
#define TIER_SEAL_ASIDE_H

#include "tier/seal.h"

/* Ranges that could not be sealed for a reason of their own, damage first of
 * all: each waits, longer each time, while others are sealed. Pure. Part of
 * the store; nobody else calls it. The thread that seals. */

enum {
    SEAL_ASIDE_MAX = 64,     /* ranges that are known */
    SEAL_ASIDE_LEAST_S = 10, /* the first pause; each next is twice as long */
    SEAL_ASIDE_MOST_S = 10 * 60
};

struct seal_aside_range {
    unsigned slot;
    uint64_t first_id, last_id;
    uint64_t until_s, pause_s;
};

/* All 0: nothing is set aside. */
struct seal_aside {
    uint64_t now_s; /* monotonic; the caller's, before each other call */
    size_t n;
    struct seal_aside_range range[SEAL_ASIDE_MAX];
};

/* A range could not be sealed. Returns true where none that overlaps it is
 * known: it is news. One that overlaps it gives way to it. Where there are too
 * many, that which would wait the least is forgotten, and is news the next
 * time. */
bool seal_aside_add(struct seal_aside *aside, const struct seal_range *range);

/* A range has been sealed: what lies in it is forgotten. */
void seal_aside_drop(struct seal_aside *aside, const struct seal_range *range);

/* The lowest range that waits still and has ids of first_id..last_id; NULL:
 * none. Good until the next add or drop. */
const struct seal_aside_range *seal_aside_find(const struct seal_aside *aside,
    unsigned slot, uint64_t first_id, uint64_t last_id);

#endif
