/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include "base/buf.h"
#include "base/num.h"
#include "bench/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The questions of a run, drawn before it and written in the protocol, so that
 * asking one costs the measured phase a copy. Immutable once made; any thread
 * may read. */

struct tape_draw {
    uint64_t id;
    uint32_t post;
    uint8_t column; /* of a question for one number */
    bool is_incr;   /* else a get */
};

struct tape {
    struct tape_draw *draw; /* owned */
    size_t n;

    /* What is sent: for each draw the command, or of a multi-get its keys;
     * those of draw i are bytes[at[i], at[i + 1]), so that many draws are one
     * copy. Of a multi-get head and tail stand around them. */
    struct buf bytes, head, tail;
    size_t *at;  /* owned; n + 1 */
    size_t step; /* draws of a command */
};

/* Draws options->draws questions. Fails where the distribution has no post
 * such as the options ask for. */
void tape_init(struct tape *tape, const struct options *options);
void tape_fini(struct tape *tape);

/* Appends the command that begins with a draw. */
void tape_add(const struct tape *tape, size_t draw, struct buf *out);

/* Key number i of the command that begins with a draw: its draw and column. */
const struct tape_draw *tape_key(const struct tape *tape,
    const struct options *options, size_t draw, uint32_t i, unsigned *column);

/* Writes the name of a number, ID.SUFFIX, to out; returns its length. */
enum { TAPE_KEY_BYTES_MAX = NUM_U64_DIGITS_MAX + 1 + OPTIONS_SUFFIX_MAX };
size_t tape_name(
    const struct options *options, uint64_t id, unsigned column, char *out);

#endif
