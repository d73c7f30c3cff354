/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_FEED_DRAW_H
#define BENCH_FEED_DRAW_H

#include "about/about.h"

#include <stdint.h>

/* Members of ids as a feed has them, by a seed: ids go up, one for each
 * FEED_DRAW_MEMBERS members on average, and most members are of the newest
 * ones. */

enum {
    FEED_DRAW_MEMBERS = 50,
    FEED_DRAW_LATE = 4096,    /* ids that still get members */
    FEED_DRAW_FRESH = 1 << 30 /* members that are added are below it; what is
                               * asked for and was not added is not */
};

struct feed_draw {
    uint64_t state; /* of random numbers: the seed */
    uint64_t id;    /* the newest one; 1 at first */
};

/* A random number. */
uint64_t feed_draw_number(struct feed_draw *draw);

/* The next member that is added. */
struct about_pair feed_draw_pair(struct feed_draw *draw);

/* One that is not, of an id from first to last. */
struct about_pair feed_draw_other(
    struct feed_draw *draw, uint64_t first, uint64_t last);

#endif
