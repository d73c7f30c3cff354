/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_DEMO_PRIV_H
#define CLI_DEMO_PRIV_H

#include "base/buf.h"
#include "cli/ask.h"
#include "cli/demo_feed.h"
#include "cli/shown.h"

#include <stdbool.h>
#include <stdint.h>

/* Inside of demo. One thread. */

enum { DEMO_PAGE_POSTS = 20, DEMO_WHY_MAX = 300 };

/* What other servers take for posts like these, as the growth of the process
 * by t/bench/memory with 10^6 posts in id order (doc/measurements.md): id,
 * text, bytes, and whether they are of a number that is not 0 or of a post that
 * has one. It counted 1.7099 such numbers a post. */
#define DEMO_OTHERS(X)                                                        \
    X(redis_hash, "Redis, a hash a post", 125.62, false)                      \
    X(redis_string, "Redis, a string a number", 137.93 / 1.7099, true)        \
    X(memcached, "memcached, an item a number", 169.34 / 1.7099, true)

struct demo {
    struct ask ask;
    const char *counter;
    uint64_t posts, pages; /* pages 0: none is read */
    bool is_removal;
    struct shown shown;
    char why[DEMO_WHY_MAX]; /* "": see ask.talk.why */
    /* What was found. */
    uint64_t records, numbers;          /* posts and numbers that are not 0 */
    uint64_t newest;                    /* id */
    uint64_t tables_bytes;              /* memory of the counter's tables */
    uint64_t before_bytes, after_bytes; /* of the whole process */
    double load_s, read_s;
};

/* "comments" ...: what a column's name ends with. */
extern const char *const demo__columns[DEMO_NUMBERS];

/* Appends the page, or JSON. */
void demo__say(const struct demo *demo, struct buf *out);

#endif
