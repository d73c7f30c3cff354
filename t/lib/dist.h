/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_DIST_H
#define LIB_DIST_H

#include <stddef.h>
#include <stdint.h>

/* The posts that benchmarks and tests run on: their ids, their numbers and
 * which of them are asked for. Everything follows from a seed and a post's
 * place in time (0 is the oldest), so no table of expected numbers is needed.
 * Pure; any thread. The same seed gives the same numbers wherever libm rounds
 * exp, log, pow, sqrt and cos alike. */

enum {
    DIST_COLUMNS = 3,     /* comment, repost, like */
    DIST_COLUMNS_MAX = 4, /* and views */
    DIST_POSTS_A_SECOND = 1157,
    DIST_SECOND_BITS = 22, /* id = second << 22 + a number in the second */
    DIST_FIRST_SECOND = 400000000 /* of post 0: ids of 16 digits */
};

enum dist_kind {
    DIST_MAIN,     /* popularity 0.34 u^(-1/1.05), capped at 3*10^6 */
    DIST_HEAVY,    /* 0.28 u^(-1/0.85), the same cap */
    DIST_LOGNORMAL /* e^(2.3 z - 0.5) */
};

struct dist {
    uint64_t seed;
    enum dist_kind kind;
};

/* Which posts are asked for. */
enum dist_age {
    DIST_AGE_NEWEST, /* newest hottest: P(age < a) = ln(a + 1) / ln(n + 1), a
                      * Zipf law of exponent 1 over age: every tenfold of age
                      * gets the same number of questions */
    DIST_AGE_EXP,    /* exponential over age, its mean 5 % of the posts */
    DIST_AGE_FLAT,   /* all posts alike */
    DIST_AGE_ONE     /* only the newest one */
};

/* A stream of random numbers: splitmix64 (Steele, Lea and Flood, "Fast
 * splittable pseudorandom number generators", 2014). */
struct dist_rng {
    uint64_t state;
};

/* Starts stream number `stream` of a seed; streams are unrelated. */
void dist_rng_init(struct dist_rng *rng, uint64_t seed, uint64_t stream);

/* The next 64 random bits. */
uint64_t dist_rng_u64(struct dist_rng *rng);

/* Uniform in (0,1), both ends excluded. */
double dist_rng_unit(struct dist_rng *rng);

/* The id of a post. Ids grow with post, one about every 3,624. */
uint64_t dist_id(const struct dist *dist, uint64_t post);

/* The numbers of a post: Poisson(L a e^(z - 1/2)) with a = 1.0, 0.6 and 1.5
 * for the first three columns, z standard normal and independent; the fourth,
 * views, is lognormal with median 100 (its sigma 1.5 is our choice) and never
 * 0. Writes value[0..n_columns), n_columns <= DIST_COLUMNS_MAX; the first
 * columns do not depend on n_columns. All are below 2^32. */
void dist_values(
    const struct dist *dist, uint64_t post, size_t n_columns, uint64_t *value);

/* Picks one of posts (>= 1) posts by its age. */
uint64_t dist_pick(struct dist_rng *rng, enum dist_age age, uint64_t posts);

#endif
