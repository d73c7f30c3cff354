/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/clock.h"
#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A lock for what is held for some hundred instructions and taken for every
 * change: one atomic read-modify-write to take and none to leave, where
 * struct mutex has one each and two calls. All zero: free. Nothing is to be
 * given back at its end; then nobody may be in any of these calls any more, not
 * even on the way out of lock_leave. Not recursive, no order among those who
 * wait. How it works, and what it rests on, is at the head of lock.c. */
struct lock {
    _Atomic uint32_t is_taken;  /* 1, or 0: free */
    _Atomic uint32_t n_waiting; /* who sleep, or are about to */
};

void lock__wait(struct lock *lock);
void lock__wake(struct lock *lock);

/* Any thread. */
static inline void
lock_take(struct lock *lock)
{
    /* acquire: what was done under the lock before is seen */
    if (__builtin_expect(atomic_exchange_explicit(
                             &lock->is_taken, 1, memory_order_acquire) != 0,
            0)) {
        lock__wait(lock);
    }
}

/* By who has taken it. */
static inline void
lock_leave(struct lock *lock)
{
    /* release: who takes it next sees what was done under it */
    atomic_store_explicit(&lock->is_taken, 0, memory_order_release);
    /* relaxed: may miss one that comes just now, which looks again */
    if (__builtin_expect(
            atomic_load_explicit(&lock->n_waiting, memory_order_relaxed) != 0,
            0)) {
        lock__wake(lock);
    }
}

/* A condition of what a lock guards. All zero: nobody waits. All of it with the
 * lock held. */
struct lock_cond {
    _Atomic uint32_t n_calls;
    uint32_t n_waiting;
};

#define LOCK_NEVER UINT64_MAX

/* Leaves the lock, waits for a call or until the clock says until_ns
 * (LOCK_NEVER: for a call only), and takes the lock again. May also return
 * without either. */
void lock_cond_wait(struct lock_cond *cond, struct lock *lock,
    const struct clock *clock, uint64_t until_ns);

/* Wakes all who wait. */
void lock_cond_call(struct lock_cond *cond);

#endif
