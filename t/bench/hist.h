/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

/* A histogram of times in nanoseconds with a relative error below 1/64: every
 * power of two is cut into 64 equal buckets (the idea of HdrHistogram). One
 * thread at a time. All zero is a valid empty histogram. */

enum {
    HIST_SUB_BITS = 6,
    HIST_SUB = 1 << HIST_SUB_BITS,
    HIST_POWERS = 40 - HIST_SUB_BITS + 1, /* up to 2^40 ns, 18 minutes */
    HIST_BUCKETS = HIST_POWERS * HIST_SUB
};

struct hist {
    uint64_t count;
    uint64_t max_ns;
    uint64_t bucket[HIST_BUCKETS];
};

/* Counts one time; what is beyond the last bucket goes into it. */
void hist_add(struct hist *hist, uint64_t ns);

/* Adds all of from to hist. */
void hist_merge(struct hist *hist, const struct hist *from);

/* The time that a share (0..1) of all times does not exceed: the upper end of
 * its bucket, or the largest time seen where that is less. 0 when empty. */
uint64_t hist_quantile(const struct hist *hist, double share);

#endif
