/* SPDX-License-Identifier: BSD-3-Clause */

/* Buckets: the first HIST_SUB hold one nanosecond each. From there on, times
 * in [2^p, 2^(p+1)) share HIST_SUB buckets of 2^(p - HIST_SUB_BITS) ns. */

#include "bench/hist.h"

#include "base/assert.h"

#include <math.h>

static unsigned
bucket_of(uint64_t ns)
{
    if (ns < HIST_SUB) {
        return (unsigned)ns;
    }
    unsigned power = 63 - (unsigned)__builtin_clzll(ns);
    unsigned shift = power - HIST_SUB_BITS;
    unsigned sub = (unsigned)(ns >> shift) - HIST_SUB;
    unsigned bucket = (shift + 1) * HIST_SUB + sub;
    return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

/* The largest time of a bucket; the last one has none. */
static uint64_t
bucket_end(unsigned bucket)
{
    if (bucket < HIST_SUB) {
        return bucket;
    }
    if (bucket == HIST_BUCKETS - 1) {
        return UINT64_MAX;
    }
    unsigned shift = bucket / HIST_SUB - 1;
    uint64_t sub = bucket % HIST_SUB + HIST_SUB;
    return ((sub + 1) << shift) - 1;
}

void
hist_add(struct hist *hist, uint64_t ns)
{
    hist->bucket[bucket_of(ns)]++;
    hist->count++;
    if (ns > hist->max_ns) {
        hist->max_ns = ns;
    }
}

void
hist_merge(struct hist *hist, const struct hist *from)
{
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        hist->bucket[i] += from->bucket[i];
    }
    hist->count += from->count;
    if (from->max_ns > hist->max_ns) {
        hist->max_ns = from->max_ns;
    }
}

uint64_t
hist_quantile(const struct hist *hist, double share)
{
    ASSERT(share >= 0.0 && share <= 1.0);
    uint64_t wanted = (uint64_t)ceil(share * (double)hist->count);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += hist->bucket[i];
        if (seen >= wanted && seen > 0) {
            uint64_t end = bucket_end(i);
            return end < hist->max_ns ? end : hist->max_ns;
        }
    }
    return 0;
}
