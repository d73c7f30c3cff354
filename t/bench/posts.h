/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_POSTS_H
#define BENCH_POSTS_H

#include "lib/dist.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The posts of lib/dist.h under other ids and with up to 16 columns, and the
 * orders in which they may be stored. Pure but for posts_read; any thread. */

/* How ids are given out; all but FILE grow with the post, RANDOM apart. */
#define POSTS_IDS(X)                                                          \
    X(MAIN, "main")             /* second << 22 + a place in the second */    \
    X(RANDOM, "random")         /* 64 random bits */                          \
    X(SEQUENTIAL, "sequential") /* 1, 2, 3 ... */                             \
    X(MILLISECOND,                                                            \
        "millisecond")        /* ms << 22 | worker << 12 | seq: a post a  \
                                   * ms on average, 32 workers, seq mostly 0  \
                                   */   \
    X(MULTIPLE, "multiple")   /* multiples of 2^22 */                         \
    X(DENSE, "dense")         /* second << 22 | 0, 1, 2 ... in the second */  \
    X(SNOWFLAKE, "snowflake") /* as millisecond, with 64 workers */

enum posts_ids {
#define X(name, word) POSTS_##name,
    POSTS_IDS(X)
#undef X
        POSTS_FILE /* as read by posts_read */
};

enum { POSTS_COLUMNS_MAX = 16, POSTS_WORKERS = 32, POSTS_MORE_WORKERS = 64 };

struct posts_row {
    uint64_t id;
    uint64_t value[DIST_COLUMNS];
};

struct posts {
    struct dist dist;
    int ids;          /* enum posts_ids */
    unsigned columns; /* 1..16; of a file at most 3 */
    uint64_t n;
    struct posts_row *row; /* owned; of a file, else NULL */
};

/* The words of POSTS_IDS, then NULL. Static storage. */
extern const char *const posts_ids_words[];

/* Reads lines of an id and three numbers with tabs between them. Fails where
 * it cannot. */
void posts_read(struct posts *posts, const char *path);
void posts_fini(struct posts *posts);

/* The id of a post (0..n-1); different posts have different ids. */
uint64_t posts_id(const struct posts *posts, uint64_t post);

/* Writes value[0..columns); false where all are 0, so there is no record.
 * Columns 0 to 3 are those of lib/dist.h; with more than four, each three are
 * those of another draw. */
bool posts_values(const struct posts *posts, uint64_t post, uint64_t *value);

/* How many ids could have been given out in the time of n posts, for the
 * information that it takes to say which were. */
double posts_places(const struct posts *posts);

/* A random order of 0..n-1 that takes no memory: a Feistel network on the
 * smallest even number of bits that n fits in, walked on until it hits. */
struct posts_order {
    uint64_t n;
    uint64_t key[4];
    unsigned half_bits;
};

void posts_order_init(struct posts_order *order, uint64_t n, uint64_t seed);
uint64_t posts_order_at(const struct posts_order *order, uint64_t i);

#endif
