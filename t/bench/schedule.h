/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SCHEDULE_H
#define BENCH_SCHEDULE_H

#include "lib/dist.h"

#include <stdint.h>

/* When the commands of an open loop are to be sent: a Poisson process, as of
 * many clients that do not know of each other. Owned by one thread. */
struct schedule {
    uint64_t next_ns; /* clock_monotonic_ns of the next command */
    struct dist_rng rng;
    uint64_t begin_ns;
    double gap_ns;  /* mean */
    double past_ns; /* from begin to next; exact to below 1 ns for a day */
};

/* rate: commands a second, > 0. stream: schedules of one seed with different
 * streams are unrelated. */
void schedule_init(struct schedule *schedule, double rate, uint64_t seed,
    uint64_t stream, uint64_t begin_ns);

/* To the next command. */
void schedule_step(struct schedule *schedule);

#endif
