/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_RAW_READS_H
#define BENCH_RAW_READS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads of 4 KB with nothing around them, as fio makes them: what a lookup in
 * the cold tier is compared with. */

enum { RAW_BYTES = 4096, RAW_DEPTH_MAX = 256 };

struct raw_reads {
    int fd;             /* with O_DIRECT or without */
    const uint64_t *at; /* offsets of the n reads, in this order */
    size_t n;
    unsigned depth; /* reads at a time: 1..RAW_DEPTH_MAX */
};

/* Threads, `depth` of them, each with one pread at a time. A read that fails
 * ends the program. */
void raw_reads_pool(const struct raw_reads *reads);

/* One thread and an io_uring. Submits each read by itself, or, is_batched, all
 * that there is room for in one system call, which also waits for the first.
 */
void raw_reads_ring(const struct raw_reads *reads, bool is_batched);

/* NULL where raw_reads_ring can be called; else why not: not built with
 * liburing, or refused by the kernel (kernel.io_uring_disabled, seccomp, memory
 * that may be locked). Static storage. */
const char *raw_reads_no_ring(void);

#endif
