/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_PROC_H
#define BENCH_PROC_H

#include <stdint.h>

/* What the kernel says of a process. Any thread. */

/* CPU time used so far by all threads of a process, living and dead, user and
 * system, in microseconds, by the process's CPU clock, which is exact to less
 * than that. Fails where there is no such process. */
uint64_t proc_cpu_us(uint64_t pid);

/* Resident memory now, in bytes, of /proc/PID/status. Fails likewise. */
struct proc_memory {
    uint64_t rss_bytes;  /* VmRSS */
    uint64_t anon_bytes; /* RssAnon: of these, not the program's file */
};
struct proc_memory proc_memory(uint64_t pid);

/* CPU time used so far by this process, in microseconds. */
uint64_t proc_own_cpu_us(void);

#endif
