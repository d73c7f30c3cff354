/* SPDX-License-Identifier: BSD-3-Clause */
/* A post is made of its place alone, so that whoever reads it knows what it has
 * to be. How popular it is follows a power law, 0.34 u^(-1/1.05), at most 3e6;
 * each number is Poisson around that, times the column's share, times a
 * lognormal factor: as in contrib/demo/load-feed and t/bench. An id is a second
 * since 2020, << 22, and a place in that second, of which there are 1157. */
#include "cli/demo_feed.h"

#include "base/assert.h"

#include <math.h>

enum {
    POSTS_A_SECOND = 1157,
    BETWEEN = 3625, /* two ids of one second */
    SECOND_SHIFT = 22,
    ROWS_MAX = 1000,
    POISSON_SMALL = 50 /* above it is as good as normal */
};

static const uint64_t first_second = 180000000;
static const uint64_t post_stream = 0x706f7374, page_stream = 0x70616765;
static const double popularity_most = 3e6, two_pi = 6.283185307179586;

/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t
next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* What begins at number n of one of several streams. */
static uint64_t
seeded(uint64_t stream, uint64_t n)
{
    uint64_t state = (stream << 32) ^ n;
    return next(&state);
}

/* Above 0, to 1. */
static double
uniform(uint64_t *state)
{
    return (double)((next(state) >> 11) + 1) * 0x1p-53;
}

static double
normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(uniform(state)));
    return radius * cos(two_pi * uniform(state));
}

static uint64_t
poisson(uint64_t *state, double mean)
{
    if (mean > POISSON_SMALL) {
        double value = floor(mean + sqrt(mean) * normal(state) + 0.5);
        return value < 0 ? 0 : (uint64_t)value;
    }
    uint64_t n = 0;
    double limit = exp(-mean);
    for (double p = uniform(state); p > limit; p *= uniform(state)) {
        n++;
    }
    return n;
}

void
demo_post(uint64_t place, struct demo_post *post)
{
    static const double share[DEMO_NUMBERS] = {1.0, 0.6, 1.5};
    uint64_t state = seeded(post_stream, place);
    double popularity = 0.34 * exp(-log(uniform(&state)) / 1.05);
    ASSERT(place < DEMO_POSTS_MAX);
    if (popularity > popularity_most) {
        popularity = popularity_most;
    }
    post->id = ((first_second + place / POSTS_A_SECOND) << SECOND_SHIFT) +
        place % POSTS_A_SECOND * BETWEEN;
    for (unsigned i = 0; i < DEMO_NUMBERS; i++) {
        post->number[i] =
            poisson(&state, popularity * share[i] * exp(normal(&state) - 0.5));
    }
}

uint64_t
demo_shown(uint64_t page, unsigned row, uint64_t n_posts)
{
    ASSERT(row < ROWS_MAX && n_posts > 0);
    uint64_t state = seeded(page_stream, page * ROWS_MAX + row);
    double u = uniform(&state);
    uint64_t back = (uint64_t)((double)n_posts * u * u * u);
    return back >= n_posts ? 0 : n_posts - 1 - back;
}
