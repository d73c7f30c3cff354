/* SPDX-License-Identifier: BSD-3-Clause */

/* Posts with ids and counters as a large social product has them.
 *
 * Every post has a random stream of its own, made from the seed and the
 * post's number, so any post's numbers can be computed alone and in any
 * order. The draws of a stream are always made in the same order: popularity,
 * then a normal and a Poisson number for each column. The id's place within
 * its slot comes from a second stream, so ids and numbers are independent. */

#include "lib/dist.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>

#define TWO_PI 6.283185307179586
#define VALUE_MAX 4294967295.0
#define POPULARITY_MAX 3e6
#define VIEWS_MEDIAN 100.0
#define VIEWS_SIGMA 1.5

/* From this mean on a Poisson number is drawn from the normal distribution of
 * the same mean and variance; the lognormal factor in front of it is far
 * wider than the error of that. */
#define POISSON_NORMAL_MIN 30.0

enum {
    SLOT_IDS = (1 << DIST_SECOND_BITS) / DIST_POSTS_A_SECOND,
    STREAM_IDS = 1,
    STREAM_VALUES = 2
};

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

static uint64_t
mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

void
dist_rng_init(struct dist_rng *rng, uint64_t seed, uint64_t stream)
{
    rng->state = mix(mix(seed + GOLDEN_GAMMA) + stream * GOLDEN_GAMMA);
}

uint64_t
dist_rng_u64(struct dist_rng *rng)
{
    rng->state += GOLDEN_GAMMA;
    return mix(rng->state);
}

double
dist_rng_unit(struct dist_rng *rng)
{
    return ((double)(dist_rng_u64(rng) >> 12) + 0.5) * 0x1p-52;
}

static void
post_stream(const struct dist *dist, uint64_t post, uint64_t purpose,
    struct dist_rng *rng)
{
    dist_rng_init(rng, mix(dist->seed) + purpose, post);
}

/* Box and Muller's method; the second number of the pair is not used. */
static double
normal(struct dist_rng *rng)
{
    double radius = sqrt(-2.0 * log(dist_rng_unit(rng)));
    return radius * cos(TWO_PI * dist_rng_unit(rng));
}

static double
poisson(struct dist_rng *rng, double mean)
{
    if (mean >= POISSON_NORMAL_MIN) {
        double value = floor(mean + sqrt(mean) * normal(rng) + 0.5);
        return fmin(fmax(value, 0.0), VALUE_MAX);
    }

    double limit = exp(-mean);
    double product = dist_rng_unit(rng);
    double value = 0.0;
    while (product > limit) {
        product *= dist_rng_unit(rng);
        value += 1.0;
    }
    return value;
}

static double
popularity(const struct dist *dist, struct dist_rng *rng)
{
    if (dist->kind == DIST_LOGNORMAL) {
        return exp(2.3 * normal(rng) - 0.5);
    }
    bool heavy = dist->kind == DIST_HEAVY;
    double scale = heavy ? 0.28 : 0.34;
    double exponent = heavy ? -1.0 / 0.85 : -1.0 / 1.05;
    return fmin(scale * pow(dist_rng_unit(rng), exponent), POPULARITY_MAX);
}

uint64_t
dist_id(const struct dist *dist, uint64_t post)
{
    uint64_t second = DIST_FIRST_SECOND + post / DIST_POSTS_A_SECOND;
    uint64_t slot = post % DIST_POSTS_A_SECOND;
    struct dist_rng rng;
    post_stream(dist, post, STREAM_IDS, &rng);
    uint64_t place = dist_rng_u64(&rng) % SLOT_IDS;
    return (second << DIST_SECOND_BITS) + slot * SLOT_IDS + place;
}

void
dist_values(
    const struct dist *dist, uint64_t post, size_t n_columns, uint64_t *value)
{
    static const double scale[DIST_COLUMNS] = {1.0, 0.6, 1.5};

    ASSERT(n_columns <= DIST_COLUMNS_MAX);
    struct dist_rng rng;
    post_stream(dist, post, STREAM_VALUES, &rng);
    double mean = popularity(dist, &rng);
    for (size_t i = 0; i < n_columns; i++) {
        double number;
        if (i < DIST_COLUMNS) {
            double factor = exp(normal(&rng) - 0.5);
            number = poisson(&rng, mean * scale[i] * factor);
        } else {
            number = VIEWS_MEDIAN * exp(VIEWS_SIGMA * normal(&rng));
            number = fmin(fmax(floor(number), 1.0), VALUE_MAX);
        }
        value[i] = (uint64_t)number;
    }
}

uint64_t
dist_pick(struct dist_rng *rng, enum dist_age age, uint64_t posts)
{
    ASSERT(posts >= 1);
    double n = (double)posts;
    double unit = dist_rng_unit(rng);
    double back = 0.0;
    switch (age) {
    case DIST_AGE_NEWEST:
        back = pow(n + 1.0, unit) - 1.0;
        break;
    case DIST_AGE_EXP:
        back = fmod(-log(unit) * n * 0.05, n);
        break;
    case DIST_AGE_FLAT:
        back = unit * n;
        break;
    case DIST_AGE_ONE:
        break;
    }
    uint64_t steps = (uint64_t)back;
    return posts - 1 - (steps < posts ? steps : posts - 1);
}
