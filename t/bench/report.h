/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/hist.h"
#include "bench/options.h"
#include "bench/proc.h"
#include "bench/worker.h"

#include <stdint.h>

/* What was counted at one moment of a run. */
struct sample {
    uint64_t at_ns; /* clock_monotonic_ns */
    uint64_t ops, keys, hits, records;
    uint64_t server_cpu_us, own_cpu_us; /* the first: 0 without --pid */
    struct proc_memory memory;          /* of the server, likewise */
};

/* Writes what lies between two samples to stdout: a table of one line with
 * its heading, or one JSON object. hist: the latencies. paced: of an open
 * loop. */
void report(const struct options *options, const struct sample *begin,
    const struct sample *end, const struct hist *hist,
    const struct pace_tally *paced);

#endif
