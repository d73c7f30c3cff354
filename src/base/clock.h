/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Time that never jumps, in ns since some point in the past (CLOCK_MONOTONIC).
 * Any thread. */
uint64_t clock_monotonic_ns(void);

/* The same in whole seconds. */
uint64_t clock_monotonic_s(void);

/* Wall-clock seconds since 1970. Any thread; may jump. */
int64_t clock_unix_s(void);

/* A condition whose waits end by the clock that never jumps. Ended by
 * pthread_cond_destroy. */
void clock_cond_init(pthread_cond_t *cond);

/* Waits, with the lock held, until somebody signals or clock_monotonic_ns is
 * until_ns; false where it is so late. */
bool clock_cond_wait(
    pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
