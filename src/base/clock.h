/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Time that never jumps, in ns since some point in the past (CLOCK_MONOTONIC).
 * Any thread. */
uint64_t clock_monotonic_ns(void);

/* The same in whole seconds. */
uint64_t clock_monotonic_s(void);

/* Wall-clock seconds since 1970. Any thread; may jump. */
int64_t clock_unix_s(void);

/* The same in microseconds and milliseconds. */
int64_t clock_unix_us(void);
int64_t clock_unix_ms(void);

/* A clock that can be stopped and moved, for tests of what expires: memcached's
 * debugtime. All zero: the system's. Written and read by any thread. */
struct clock_shift {
    _Atomic int64_t shift_s;
    _Atomic uint64_t stopped_s; /* what it says while it stands; 0: it goes */
    int64_t anchor_ns;          /* the wall clock's time when the other one was
                                 * 0, see clock_shift_anchor; 0: as it is now */
};

/* As clock_monotonic_s and clock_unix_s, but of that clock; at least 1. */
uint64_t clock_shifted_s(const struct clock_shift *shift);
int64_t clock_shifted_unix_s(const struct clock_shift *shift);

/* From now on clock_shifted_unix_s follows the clock that never jumps, from
 * what the wall clock says now: what is to expire at a time of the wall clock
 * does so when that time has passed, whatever the wall clock does meanwhile.
 * Before other threads use it. */
void clock_shift_anchor(struct clock_shift *shift);

/* It stands, or goes on as if it had not stood. */
void clock_shift_stop(struct clock_shift *shift);
void clock_shift_go(struct clock_shift *shift);

/* It is by_s further on, or back. */
void clock_shift_by(struct clock_shift *shift, int64_t by_s);

/* A condition whose waits end by the clock that never jumps. Ended by
 * pthread_cond_destroy. */
void clock_cond_init(pthread_cond_t *cond);

/* Waits, with the lock held, until somebody signals or clock_monotonic_ns is
 * until_ns; false where it is so late. */
bool clock_cond_wait(
    pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
