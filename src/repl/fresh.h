/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_FRESH_H
#define REPL_FRESH_H

#include <stdbool.h>
#include <stdint.h>

/* How old what a replica shows may be. A frame of a primary with authority says
 * which batch was its last one when the frame left; once that is applied here,
 * what is shown is no older than the frame. When it left is known from when it
 * came and from how long it was under way at most (fresh_way_us). Pure; one
 * thread at a time; all zero is: nothing is known. Times in microseconds. */

enum { FRESH_KEPT = 64 /* frames whose batch is not applied yet */ };

struct fresh {
    unsigned n;
    struct {
        uint64_t last, left_us;
    } at[FRESH_KEPT]; /* last ascends */
    uint64_t left_us; /* of the newest frame that is applied; 0: none yet */
};

enum { FRESH_DRIFT = 1000 /* clocks differ by 1 us in so many, or less */ };

/* Of a link: how much this node's clock was ahead of the primary's when a frame
 * came, less the time that it was under way, at the least; and the shortest
 * round trip. All zero: no frame has come. */
struct fresh_way {
    bool is_known;
    uint64_t shift_us; /* modulo 2^64 */
    uint64_t at_us;    /* up to when shift_us allows for the drift of clocks */
    uint64_t rtt_us;   /* 0: none yet */
};

/* A frame came that left at clock_us, as the primary's clock says, and tells of
 * that round trip (0: of none). Returns for how long it was under way at most:
 * the fastest frame was under way for the shortest round trip at most, and this
 * one as much longer as it came later than that one did by the primary's clock.
 * So what waits in a queue on the way counts, which a round trip of an earlier
 * frame does not know of. Never less than rtt_us; UINT64_MAX: not known. */
uint64_t fresh_way_us(struct fresh_way *way, uint64_t clock_us,
    uint64_t came_us, uint64_t rtt_us);

/* A frame with authority came, which was under way for way_us at most
 * (UINT64_MAX: it does not count). last is not below that of the frame before.
 * Where too many wait this one does not count: what is shown counts as older
 * than it is, never as newer. */
void fresh_add(
    struct fresh *fresh, uint64_t last, uint64_t came_us, uint64_t way_us);

/* Up to which batch all is applied. How old that may be at now_us; UINT64_MAX:
 * nothing is known. */
uint64_t fresh_age_us(struct fresh *fresh, uint64_t applied, uint64_t now_us);

#endif
