/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_TAPE_H
#define BENCH_TAPE_H

#include "bench/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The questions of a run, drawn before it, so that drawing them costs the
 * measured phase nothing. Immutable once made; any thread may read. */

struct tape_draw {
    uint64_t id;
    uint32_t post;
    uint8_t column; /* of a question for one number */
    bool is_incr;   /* else a get */
};

struct tape {
    struct tape_draw *draw; /* owned */
    size_t n;
};

/* Draws options->draws questions. Fails where the distribution has no post
 * such as the options ask for. */
void tape_init(struct tape *tape, const struct options *options);
void tape_fini(struct tape *tape);

#endif
