/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_DEMO_FEED_H
#define CLI_DEMO_FEED_H

#include <stdbool.h>
#include <stdint.h>

/* Posts of a feed that nobody has written: the same ones each time. Pure. */

enum {
    DEMO_NUMBERS = 3, /* comments, reposts, likes */
    DEMO_POSTS_MAX = 100000000
};

struct demo_post {
    uint64_t id;
    uint64_t number[DEMO_NUMBERS];
};

/* The post at a place of the feed, 0 is the oldest one. Ids grow with it; most
 * numbers are small, many are 0, a few are large. */
void demo_post(uint64_t place, struct demo_post *post);

/* True where a number is not 0. */
static inline bool
demo_is_record(const struct demo_post *post)
{
    return (post->number[0] | post->number[1] | post->number[2]) != 0;
}

/* A place that page `page` of a feed of n_posts shows in its row `row`: new
 * posts are shown far more often than old ones. n_posts is not 0. */
uint64_t demo_shown(uint64_t page, unsigned row, uint64_t n_posts);

#endif
