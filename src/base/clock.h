/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/mutex.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Time that never jumps, in ns since some point in the past (CLOCK_MONOTONIC).
 * Any thread. */
uint64_t clock_monotonic_ns(void);

/* The same in whole seconds. */
uint64_t clock_monotonic_s(void);

/* The same of CLOCK_BOOTTIME, which goes on while the machine sleeps. */
uint64_t clock_boottime_ns(void);

/* Wall-clock seconds since 1970. Any thread; may jump. */
int64_t clock_unix_s(void);

/* The same in microseconds and milliseconds. */
int64_t clock_unix_us(void);
int64_t clock__unix_ms(void);

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

/* ---- the clock that is handed in ---- */

/* Who decides by the time, or waits for one, does so by the clock that it was
 * handed; a seam: t/lib/fake_clock has one that a test moves. Both calls from
 * any thread; they never fail and never wait. */
struct clock;

struct clock_calls {
    /* What the clock says at that moment of CLOCK_MONOTONIC, which is not one
     * to come; in ns, since some point in the past. It never goes back: asked
     * again, or of a later moment, it says as much or more. */
    uint64_t (*at)(const struct clock *clock, uint64_t monotonic_ns);
    /* The moment of CLOCK_MONOTONIC at which who waits until the clock says
     * until_ns must look again: at the latest when it does, perhaps before.
     * While it does not say so the moment is one to come, so that who looks
     * and waits anew does not spin. */
    uint64_t (*wake)(const struct clock *clock, uint64_t until_ns);
};

/* What every implementation begins with. */
struct clock {
    const struct clock_calls *calls;
};

/* The system's: CLOCK_MONOTONIC. */
extern const struct clock clock_system;

/* The clock of a config: where that is NULL, the system's. */
static inline const struct clock *
clock_or_system(const struct clock *clock)
{
    return clock != NULL ? clock : &clock_system;
}

/* What the clock says now, in ns; on requests' way, so the system's is not
 * called through its pointer. Any thread. */
static inline uint64_t
clock_now_ns(const struct clock *clock)
{
    uint64_t ns = clock_monotonic_ns();
    return clock == &clock_system ? ns : clock->calls->at(clock, ns);
}

/* What it says at a moment of CLOCK_MONOTONIC that is given in ms, as event
 * loops have it; in ms. Any thread. */
static inline uint64_t
clock_at_ms(const struct clock *clock, uint64_t monotonic_ms)
{
    return clock == &clock_system
        ? monotonic_ms
        : clock->calls->at(clock, monotonic_ms * 1000000) / 1000000;
}

/* Returns when the clock says until_ns. Any thread. */
void clock_sleep_until(const struct clock *clock, uint64_t until_ns);

/* A condition for clock_cond_wait. Ended by pthread_cond_destroy. */
void clock_cond_init(pthread_cond_t *cond);

/* Waits until somebody signals or the clock says until_ns; the lock, which this
 * thread has, is let go of meanwhile. False where it is so late. May also
 * return true without either. */
bool clock_cond_wait(const struct clock *clock, pthread_cond_t *cond,
    struct mutex *lock, uint64_t until_ns);

#endif
