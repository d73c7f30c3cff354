/* SPDX-License-Identifier: BSD-3-Clause */

/* Draws of posts by age, thinned to what --miss and --nonzero ask for: whether
 * a question is for an id with a record is decided first, then posts are
 * drawn by age until one fits, so the age distribution stays that of --age
 * among the posts that fit. */

#include "bench/tape.h"

#include "bench/fail.h"

#include <stdlib.h>

enum { TRIES_MAX = 100000, STREAM_TAPE = 3 };

enum want { WANT_ANY, WANT_RECORD, WANT_NO_RECORD };

static enum want
draw_want(const struct options *options, struct dist_rng *rng)
{
    if (options->miss < 0.0) {
        return WANT_ANY;
    }
    return dist_rng_unit(rng) < options->miss ? WANT_NO_RECORD : WANT_RECORD;
}

/* Whether the post is one to ask for; sets the column to ask. */
static bool
fits(const struct options *options, enum want want, struct dist_rng *rng,
    struct tape_draw *draw)
{
    uint64_t value[DIST_COLUMNS_MAX];
    size_t nonzero[DIST_COLUMNS_MAX];
    size_t n_nonzero = 0;
    size_t leading = 0; /* of the columns asked together, those not 0 */
    posts_values(&options->posts, draw->post, value);
    for (size_t i = 0; i < options->n_suffixes; i++) {
        if (value[i] != 0) {
            nonzero[n_nonzero++] = i;
            leading += i < options->columns;
        }
    }

    bool has_record = n_nonzero > 0;
    if (want != WANT_ANY && has_record != (want == WANT_RECORD)) {
        return false;
    }
    uint64_t random = dist_rng_u64(rng);
    if (options->nonzero && has_record) {
        draw->column = (uint8_t)nonzero[random % n_nonzero];
        return options->columns == 1 || leading == options->columns;
    }
    draw->column = (uint8_t)(random % options->n_suffixes);
    return true;
}

static bool
draw_is_incr(const struct options *options, struct dist_rng *rng)
{
    if (options->mode == MODE_MIXED) {
        return dist_rng_unit(rng) >= options->mix;
    }
    return options->mode == MODE_INCR;
}

/* The post that a share of all posts is older than. */
static uint64_t
post_at(const struct options *options, double share)
{
    return (uint64_t)(share * (double)options->records);
}

static void
draw_one(const struct options *options, struct dist_rng *rng,
    struct tape_draw *draw)
{
    enum want want = draw_want(options, rng);
    unsigned tries = 0;
    uint64_t first = post_at(options, options->from);
    uint64_t posts = post_at(options, options->to) - first;
    do {
        if (tries++ == TRIES_MAX || posts == 0) {
            fail("no post fits --miss, --nonzero and --age together");
        }
        draw->post = (uint32_t)(first +
            dist_pick(rng, (enum dist_age)options->age, posts));
        posts -= options->age == DIST_AGE_ONE; /* else the one before it */
    } while (!fits(options, want, rng, draw));
    draw->id = posts_id(&options->posts, draw->post);
    draw->is_incr = draw_is_incr(options, rng);
}

void
tape_init(struct tape *tape, const struct options *options)
{
    tape->n = options->draws;
    tape->draw = calloc(tape->n, sizeof(tape->draw[0]));
    if (tape->draw == NULL) {
        fail("out of memory for --draws");
    }
    struct dist_rng rng;
    dist_rng_init(&rng, options->seed, STREAM_TAPE);
    for (size_t i = 0; i < tape->n; i++) {
        draw_one(options, &rng, &tape->draw[i]);
    }
}

void
tape_fini(struct tape *tape)
{
    free(tape->draw);
    *tape = (struct tape){0};
}
