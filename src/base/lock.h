/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/clock.h"
#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

_Static_assert(_Alignof(uint16_t) == 2, "a thread's number is odd");

/* A lock for what is held for some hundred instructions and taken for every
 * change: one atomic read-modify-write to take and none to leave, where
 * struct mutex has one each and two calls. All zero: free. Nothing is to be
 * given back at its end; then nobody may be in any of these calls any more, not
 * even on the way out of lock_leave. Not recursive, no order among those who
 * wait. How it works, and what it rests on, is at the head of lock.c.
 *
 * It knows which thread has it, as struct mutex does: the word that says that
 * it is taken is the thread's number. */
struct lock {
    _Atomic uint32_t owner;     /* lock__self of who has it; 0: free */
    _Atomic uint32_t n_waiting; /* who sleep, or are about to */
};

/* The number of this thread, not 0: the address of the second byte of a
 * variable of its own, which is odd. Threads whose variables are a multiple of
 * 4 GiB apart have the same one: then a check that a lock is held may miss an
 * error. There is none that it is not, which would be wrong then. */
static inline uint32_t
lock__self(void)
{
    return (uint32_t)(uintptr_t)((const char *)&mutex__self + 1);
}

/* True where this thread has it. */
static inline bool
lock_is_held(const struct lock *lock)
{
    /* relaxed: what others store meanwhile is not this thread's number */
    return atomic_load_explicit(&lock->owner, memory_order_relaxed) ==
        lock__self();
}

#define lock_assert_held(lock) ASSERT(lock_is_held(lock))

/* A figure of the thread, and no state: nothing is decided by it. As
 * mutex__self it is linked into programs only. */
extern _Thread_local uint64_t lock__waited_ns
    __attribute__((tls_model("local-exec")));

/* For how long this thread has slept for locks so far, in ns; what it has only
 * looked at some times, which takes less than 1 us, does not count. */
static inline uint64_t
lock_waited_ns(void)
{
    return lock__waited_ns;
}

void lock__wait(struct lock *lock);
void lock__wake(struct lock *lock);

/* Any thread. */
static inline void
lock_take(struct lock *lock)
{
    uint32_t owner = 0;
    /* acquire: what was done under the lock before is seen */
    if (__builtin_expect(
            !atomic_compare_exchange_strong_explicit(&lock->owner, &owner,
                lock__self(), memory_order_acquire, memory_order_relaxed),
            0)) {
        lock__wait(lock);
    }
}

/* By who has taken it. */
static inline void
lock_leave(struct lock *lock)
{
    /* release: who takes it next sees what was done under it */
    atomic_store_explicit(&lock->owner, 0, memory_order_release);
    /* relaxed: may miss one that comes just now, which looks again */
    if (__builtin_expect(
            atomic_load_explicit(&lock->n_waiting, memory_order_relaxed) != 0,
            0)) {
        lock__wake(lock);
    }
}

/* A condition of what a lock guards. All zero: nobody waits. */
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

/* Wakes all who wait with that lock, which this thread has: a call without it
 * might come between a waiter's look and its sleep. */
void lock_cond_call(struct lock_cond *cond, const struct lock *lock);

#endif
