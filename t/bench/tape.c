/* SPDX-License-Identifier: BSD-3-Clause */

/* Draws of posts by age, thinned to what --miss and --nonzero ask for: whether
 * a question is for an id with a record is decided first, then posts are
 * drawn by age until one fits, so the age distribution stays that of --age
 * among the posts that fit. */

#include "bench/tape.h"

#include "bench/fail.h"
#include "bench/wire.h"
#include "bench/zipf.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES_MAX = 100000, STREAM_TAPE = 3 };

/* How posts are picked. */
struct picker {
    struct dist_rng rng;
    uint64_t first, posts;   /* those of --from and --to */
    struct zipf zipf;        /* over ranks */
    struct posts_order rank; /* the post that has a rank */
};

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
picker_init(struct picker *picker, const struct options *options)
{
    *picker = (struct picker){.first = post_at(options, options->from)};
    picker->posts = post_at(options, options->to) - picker->first;
    dist_rng_init(&picker->rng, options->seed, STREAM_TAPE);
    if (options->age == AGE_ZIPF && picker->posts > 0) {
        zipf_init(&picker->zipf, picker->posts, options->zipf);
        posts_order_init(&picker->rank, picker->posts, options->seed);
    }
}

/* One of the first `posts` of those to ask for. */
static uint64_t
pick(struct picker *picker, const struct options *options, uint64_t posts)
{
    if (options->age != AGE_ZIPF) {
        return picker->first +
            dist_pick(&picker->rng, (enum dist_age)options->age, posts);
    }
    uint64_t rank = zipf_draw(&picker->zipf, &picker->rng);
    return picker->first + posts_order_at(&picker->rank, rank);
}

static void
draw_one(const struct options *options, struct picker *picker,
    struct tape_draw *draw)
{
    enum want want = draw_want(options, &picker->rng);
    unsigned tries = 0;
    uint64_t posts = picker->posts;
    do {
        if (tries++ == TRIES_MAX || posts == 0) {
            fail("no post fits --miss, --nonzero and --age together");
        }
        draw->post = (uint32_t)pick(picker, options, posts);
        posts -= options->age == DIST_AGE_ONE; /* else the one before it */
    } while (!fits(options, want, &picker->rng, draw));
    draw->id = posts_id(&options->posts, draw->post);
    draw->is_incr = draw_is_incr(options, &picker->rng);
}

size_t
tape_name(
    const struct options *options, uint64_t id, unsigned column, char *out)
{
    size_t len = num_format_u64(id, out);
    out[len++] = '.';
    memcpy(out + len, options->suffix[column], options->suffix_len[column]);
    return len + options->suffix_len[column];
}

const struct tape_draw *
tape_key(const struct tape *tape, const struct options *options, size_t draw,
    uint32_t i, unsigned *column)
{
    uint32_t columns = (uint32_t)options->columns;
    if (options->mode != MODE_MULTI || columns == 1) {
        const struct tape_draw *at = &tape->draw[(draw + i) % tape->n];
        *column = at->column;
        return at;
    }
    *column = i % columns;
    return &tape->draw[(draw + i / columns) % tape->n];
}

/* What is sent for one draw. */
static void
write_draw(struct tape *tape, const struct options *options, size_t draw)
{
    const struct wire *wire = wire_of((enum wire_protocol)options->protocol);
    char name[TAPE_KEY_BYTES_MAX];
    bool is_multi = options->mode == MODE_MULTI;
    for (uint32_t i = 0; i < (is_multi ? options->columns : 1); i++) {
        unsigned column;
        const struct tape_draw *at = tape_key(tape, options, draw, i, &column);
        struct wire_text key = {
            name, tape_name(options, at->id, column, name)};
        if (is_multi) {
            wire->key_fn(&tape->bytes, key);
        } else if (at->is_incr) {
            wire->add_fn(&tape->bytes, key, (struct wire_text){"1", 1});
        } else {
            wire->get_fn(&tape->bytes, key);
        }
    }
}

/* Writes the questions, which have been drawn, in their protocol. */
static void
write_all(struct tape *tape, const struct options *options)
{
    const struct wire *wire = wire_of((enum wire_protocol)options->protocol);
    tape->step = 1;
    if (options->mode == MODE_MULTI) {
        tape->step = options->keys / options->columns;
        wire->head_fn(&tape->head, (uint32_t)options->keys);
        wire->tail_fn(&tape->tail);
    }
    for (size_t i = 0; i < tape->n; i++) {
        tape->at[i] = tape->bytes.len;
        write_draw(tape, options, i);
    }
    tape->at[tape->n] = tape->bytes.len;
    if (tape->bytes.failed || tape->head.failed || tape->tail.failed) {
        fail("out of memory for --draws");
    }
}

void
tape_add(const struct tape *tape, size_t draw, struct buf *out)
{
    buf_add(out, tape->head.data, tape->head.len);
    for (size_t left = tape->step; left > 0;) {
        size_t n = tape->n - draw < left ? tape->n - draw : left;
        size_t begin = tape->at[draw];
        buf_add(out, tape->bytes.data + begin, tape->at[draw + n] - begin);
        left -= n;
        draw = 0;
    }
    buf_add(out, tape->tail.data, tape->tail.len);
}

void
tape_init(struct tape *tape, const struct options *options)
{
    tape->n = options->draws;
    tape->draw = calloc(tape->n, sizeof(tape->draw[0]));
    tape->at = calloc(tape->n + 1, sizeof(tape->at[0]));
    if (tape->draw == NULL || tape->at == NULL) {
        fail("out of memory for --draws");
    }
    struct picker picker;
    picker_init(&picker, options);
    for (size_t i = 0; i < tape->n; i++) {
        draw_one(options, &picker, &tape->draw[i]);
    }
    write_all(tape, options);
}

void
tape_fini(struct tape *tape)
{
    free(tape->draw);
    free(tape->at);
    buf_fini(&tape->bytes);
    buf_fini(&tape->head);
    buf_fini(&tape->tail);
    *tape = (struct tape){0};
}
