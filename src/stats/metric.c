/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sums what workers count (stats/metric.h). A sum reads each cell
 * once while its owner goes on counting: every figure is one that the cell
 * had, but two figures need not be of the same moment. */
#include "stats/metric.h"

#include "base/assert.h"

static const char *const names[METRIC_COUNT] = {
#define X(name, text) #name,
    METRIC_GENERAL(X) METRIC_COUNTERS(X) METRIC_TIMES(X)
#undef X
};

void
metric_sum(const struct metric_set *set, uint64_t *sum)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        /* relaxed: a sum is no synchronisation */
        sum[i] += atomic_load_explicit(&set->cell[i], memory_order_relaxed);
    }
}

const char *
metric_name(enum metric metric)
{
    ASSERT((unsigned)metric < METRIC_COUNT);
    return names[metric];
}
