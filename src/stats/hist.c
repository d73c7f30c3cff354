/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets: the first HIST_SUB hold one nanosecond each. From there on, times
 * in [2^p, 2^(p+1)) share HIST_SUB buckets of 2^(p - HIST_SUB_BITS) ns.
 *
 *   0 1 .. 31 | 32 .. 63 | 64,65  66,67 .. | 128-131 .. |    the last: all
 *    1 ns each     1 ns       2 ns              4 ns          above, too */
#include "stats/hist.h"

#include "base/assert.h"

enum { NS_PER_US = 1000 };

/* The middle of a bucket, which is in it. */
static uint64_t
middle_of(unsigned bucket)
{
    ASSERT(bucket < HIST_BUCKETS);
    if (bucket < 2 * HIST_SUB) {
        return bucket;
    }
    unsigned shift = bucket / HIST_SUB - 1;
    uint64_t sub = bucket % HIST_SUB + HIST_SUB;
    return (sub << shift) + (UINT64_C(1) << (shift - 1));
}

void
hist_read(const struct hist *hist, struct hist_sum *sum)
{
    /* relaxed, all: figures */
    sum->sum_ns += atomic_load_explicit(&hist->sum_ns, memory_order_relaxed);
    uint64_t max = atomic_load_explicit(&hist->max_ns, memory_order_relaxed);
    sum->max_ns = max > sum->max_ns ? max : sum->max_ns;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        uint64_t n =
            atomic_load_explicit(&hist->bucket[i], memory_order_relaxed);
        sum->bucket[i] += n;
        sum->count += n;
    }
}

void
hist_sum_add(struct hist_sum *sum, const struct hist_sum *from)
{
    sum->count += from->count;
    sum->sum_ns += from->sum_ns;
    sum->max_ns = from->max_ns > sum->max_ns ? from->max_ns : sum->max_ns;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        sum->bucket[i] += from->bucket[i];
    }
}

void
hist_sum_forget(struct hist_sum *sum, const struct hist_sum *from)
{
    uint64_t known = 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        ASSERT(sum->bucket[i] >= from->bucket[i]);
        sum->bucket[i] -= from->bucket[i];
        known = sum->bucket[i] > 0 ? middle_of(i) : known;
    }
    ASSERT(sum->count >= from->count);
    sum->count -= from->count;
    sum->sum_ns -= from->sum_ns;
    /* it may be one of those that are forgotten */
    if (sum->max_ns == from->max_ns) {
        sum->max_ns = known < sum->max_ns ? known : sum->max_ns;
    }
}

uint64_t
hist_sum_quantile(const struct hist_sum *sum, unsigned permille)
{
    ASSERT(permille <= 1000);
    uint64_t rest = sum->count % 1000 * permille;
    uint64_t wanted =
        sum->count / 1000 * permille + rest / 1000 + (rest % 1000 > 0);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += sum->bucket[i];
        if (seen > 0 && seen >= wanted) {
            uint64_t middle =
                i < HIST_BUCKETS - 1 ? middle_of(i) : sum->max_ns;
            return middle < sum->max_ns ? middle : sum->max_ns;
        }
    }
    return 0;
}

void
hist_sum_below(const struct hist_sum *sum, const uint64_t *bound_us,
    unsigned n, uint64_t *below)
{
    uint64_t seen = 0;
    unsigned at = 0;
    for (unsigned i = 0; i < n; i++) {
        ASSERT(i == 0 || bound_us[i] >= bound_us[i - 1]);
        /* all beyond the last bucket is in it, so no bound has it below */
        while (at < HIST_BUCKETS - 1 &&
            middle_of(at) <= bound_us[i] * NS_PER_US) {
            seen += sum->bucket[at++];
        }
        below[i] = seen;
    }
}
