/* SPDX-License-Identifier: BSD-3-Clause */

/* Gaps between commands are exponential. The times follow from the seed alone:
 * how late one was sent moves none of those behind it. */

#include "bench/schedule.h"

#include "base/assert.h"

#include <math.h>

enum { STREAM_SCHEDULE = 1000 };

#define NS_PER_S 1e9

void
schedule_init(struct schedule *schedule, double rate, uint64_t seed,
    uint64_t stream, uint64_t begin_ns)
{
    ASSERT(rate > 0.0);
    *schedule =
        (struct schedule){.begin_ns = begin_ns, .gap_ns = NS_PER_S / rate};
    dist_rng_init(&schedule->rng, seed, STREAM_SCHEDULE + stream);
    schedule_step(schedule);
}

void
schedule_step(struct schedule *schedule)
{
    schedule->past_ns -= log(dist_rng_unit(&schedule->rng)) * schedule->gap_ns;
    schedule->next_ns = schedule->begin_ns + (uint64_t)schedule->past_ns;
}
