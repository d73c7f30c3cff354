/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_COLD_TAKE_OUT_H
#define TIER_COLD_TAKE_OUT_H

#include <stdbool.h>
#include <stdint.h>

/* Takes out pairs that nobody reaches any more of the segments that have them
 * (engine/members.h, engine_left). Part of the store; nobody else calls it. */

struct cold;

/* Of the number whose pairs are being taken out; the tending thread's. */
struct cold_taking {
    uint64_t number; /* 0: none */
    uint32_t serial; /* with that of its pairs, it is no other one */
    uint16_t shard;
    uint64_t from_id; /* the next pair to be looked at */
    uint64_t n_pairs; /* deleted so far */
    bool has_bad;     /* some cannot be read */
};

/* Background work: deletes some 64 of these pairs, or reads on for them; what
 * cannot be read is left, and counted (engine_given_up). True where there may
 * be more to do now; false also where there is no memory for it. Waits for the
 * disk, but for no lock that is held meanwhile. One thread at a time, that of
 * engine_take_out. */
bool cold_take_out(struct cold *cold);

#endif
