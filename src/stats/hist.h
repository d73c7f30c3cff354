/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_HIST_H
#define STATS_HIST_H

#include <stdatomic.h>
#include <stdint.h>

/* A histogram of times in nanoseconds, of figures of any kind if need be.
 * Every power of two is cut into 32 equal buckets (the idea of HdrHistogram, G.
 * Tene), and a bucket stands for its middle: so what is read of it is wrong by
 * less than 1.6 %. */

enum {
    HIST_SUB_BITS = 5,
    HIST_SUB = 1 << HIST_SUB_BITS,
    HIST_POWERS = 36, /* the last bucket begins below 2^36 ns, 68 s */
    HIST_BUCKETS = (HIST_POWERS - HIST_SUB_BITS + 1) * HIST_SUB
};

/* Written by one thread, read by any. All zero: empty. */
struct hist {
    _Atomic uint64_t sum_ns; /* modulo 2^64: some 500 years */
    _Atomic uint64_t max_ns;
    _Atomic uint64_t bucket[HIST_BUCKETS];
};

/* What one or several had when they were read: each bucket a figure that it
 * had, but not all of the same moment. All zero: nothing. */
struct hist_sum {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t bucket[HIST_BUCKETS];
};

/* In which bucket a time is; what is beyond the last one is in it. */
static inline unsigned
hist_bucket(uint64_t ns)
{
    if (ns < HIST_SUB) {
        return (unsigned)ns;
    }
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - HIST_SUB_BITS;
    uint64_t bucket = shift * HIST_SUB + (ns >> shift);
    return bucket < HIST_BUCKETS ? (unsigned)bucket : HIST_BUCKETS - 1;
}

/* Counts n times of ns each. The hist's own thread: a plain load and store, no
 * read-modify-write. */
static inline void
hist_add(struct hist *hist, uint64_t ns, uint64_t n)
{
    _Atomic uint64_t *bucket = &hist->bucket[hist_bucket(ns)];
    /* relaxed, all: figures; a sum is no synchronisation */
    atomic_store_explicit(bucket,
        atomic_load_explicit(bucket, memory_order_relaxed) + n,
        memory_order_relaxed);
    atomic_store_explicit(&hist->sum_ns,
        atomic_load_explicit(&hist->sum_ns, memory_order_relaxed) + ns * n,
        memory_order_relaxed);
    if (ns > atomic_load_explicit(&hist->max_ns, memory_order_relaxed)) {
        atomic_store_explicit(&hist->max_ns, ns, memory_order_relaxed);
    }
}

/* Adds what the histogram has now. Any thread. */
void hist_read(const struct hist *hist, struct hist_sum *sum);

/* Adds, and takes away again, what another sum has; where from was read of the
 * same histograms earlier. The largest time is then what the buckets know of
 * it. Pure. */
void hist_sum_add(struct hist_sum *sum, const struct hist_sum *from);
void hist_sum_forget(struct hist_sum *sum, const struct hist_sum *from);

/* The time in ns that permille (0 to 1000) of all times do not exceed: the
 * middle of its bucket, or the largest time where that is less. 0 when empty.
 * Pure. */
uint64_t hist_sum_quantile(const struct hist_sum *sum, unsigned permille);

/* below[i] becomes how many times were at most bound_us[i], for n bounds in
 * ascending order: cumulative buckets, as Prometheus has them. A bucket of the
 * histogram counts where its middle lies. Pure. */
void hist_sum_below(const struct hist_sum *sum, const uint64_t *bound_us,
    unsigned n, uint64_t *below);

#endif
