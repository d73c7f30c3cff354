/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_COLD_TAKE_OUT_H
#define TIER_COLD_TAKE_OUT_H

#include "base/qsbr.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes out pairs that nobody reaches any more of the segments that have them
 * (engine/members.h, engine_left). Part of the store; nobody else calls it. */

struct cold;

/* What is being taken out; the tending thread's. */
struct cold_taking {
    struct qsbr_reader reader; /* online while it changes records */
    bool is_begun;
    uint64_t first_row; /* with these two, they are no other rows */
    uint32_t serial;
    uint16_t shard;
    uint64_t from_id; /* the next pair to be looked at */
    uint64_t n_pairs; /* deleted so far */
    bool has_bad;     /* some cannot be read */
    /* behind a start, of stored notes that are looked for: */
    unsigned at;            /* of engine_each_pairs: where it goes on */
    uint32_t stored_serial; /* of the pairs under way; 0: none are */
    uint64_t next_row;      /* the next one to be looked at, of any shard */
};

/* Background work: deletes some thousand of these pairs, or reads on for them;
 * what cannot be read is left, and counted (engine_given_up). Behind a start
 * the stored notes come first that segments have. True where there may be more
 * to do now; false also where there is no memory for it. Waits for the disk,
 * but for no lock that is held meanwhile. One thread at a time, that of
 * engine_take_out, and offline. */
bool cold_take_out(struct cold *cold);

/* The engine looks as behind a start again (engine_follow), so this does, and
 * cold_count. As cold_take_out, or while that is not at work. */
void cold_look_anew(struct cold *cold);

/* Looks for stored notes in some blocks. As cold_take_out. */
bool cold__find_stored(struct cold *cold);

#endif
