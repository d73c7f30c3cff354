/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_FRESH_H
#define REPL_FRESH_H

#include <stdint.h>

/* How old what a replica shows may be. A frame of a primary with authority says
 * which batch was its last one when the frame left; once that is applied here,
 * what is shown is no older than the frame. When it left is known by this
 * node's clock alone: it came at a time that is known, and was under way for no
 * longer than a round trip. Pure; one thread at a time; all zero is: nothing is
 * known. Times in microseconds. */

enum { FRESH_KEPT = 64 /* frames whose batch is not applied yet */ };

struct fresh {
    unsigned n;
    struct {
        uint64_t last, left_us;
    } at[FRESH_KEPT]; /* last ascends */
    uint64_t left_us; /* of the newest frame that is applied; 0: none yet */
};

/* A frame with authority came. last is not below that of the frame before.
 * Where too many wait this one does not count: what is shown counts as older
 * than it is, never as newer. */
void fresh_add(
    struct fresh *fresh, uint64_t last, uint64_t came_us, uint64_t rtt_us);

/* Up to which batch all is applied. How old that may be at now_us; UINT64_MAX:
 * nothing is known. */
uint64_t fresh_age_us(struct fresh *fresh, uint64_t applied, uint64_t now_us);

#endif
