/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_COPY_RATE_H
#define REPL_COPY_RATE_H

#include <stdint.h>

/* A token bucket: so many bytes a second, and what was not used lately, up to
 * COPY_RATE_BURST_NS of it. Pure: the time, in ns of a clock that does not go
 * back, is handed in. One thread at a time. */

enum { COPY_RATE_BURST_NS = 100 * 1000 * 1000 };

struct copy_rate {
    uint64_t bytes_s; /* 0: any */
    uint64_t free_ns; /* from then on another byte may go */
};

/* A full bucket. */
void copy_rate_init(struct copy_rate *rate, uint64_t bytes_s, uint64_t now_ns);

/* Takes so many bytes (below 2^32): the time from which on they may go, now_ns
 * or later. Those that were taken count, whenever they go. */
uint64_t copy_rate_take(
    struct copy_rate *rate, uint64_t bytes, uint64_t now_ns);

#endif
