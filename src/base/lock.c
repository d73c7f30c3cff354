/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock's rare ways: somebody else has it.
 *
 * Who finds it taken looks for a moment whether it becomes free, for the
 * holder mostly runs, and has some hundred instructions to go. Where it does
 * not (its core was taken away; perhaps it is this one) the waiter sleeps by
 * futex until it is woken.
 *
 * Leaving is a store, and then a look whether somebody waits. Between the two
 * there is no fence, so in theory the look may come before others see the
 * store: then who begins to wait just now finds the lock taken, and is not
 * seen itself. For that it must have said so, tried once more and gone to sleep
 * in the kernel, which looks once more, all while one store was on its way to
 * the cache. A fence for every leave, which is what costs in the usual way,
 * would rule that out; here nobody sleeps for longer than WAIT_NS without
 * another look, so that it would be a short delay, and nothing else.
 *
 * Who has the lock is in the word that is waited for. Where it goes from one
 * thread to another meanwhile the kernel does not put the waiter to sleep: it
 * looks again.
 *
 * A condition is a number that goes up with each call, under the lock; who
 * waits has read it under the lock, and so does not sleep through a call. */
#include "base/lock.h"

#include "base/assert.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOKS = 50, /* before who waits sleeps: a microsecond or two */
    WAIT_NS = 1000000,
    NS_PER_S = 1000000000
};

/* Sleeps while *word is value, until woken; at most until the time, by
 * CLOCK_MONOTONIC or, with FUTEX_WAIT, from now on. errno stays. */
static void
sleep_on(_Atomic uint32_t *word, int how, uint32_t value,
    const struct timespec *time)
{
    int saved = errno;
    long rv = syscall(SYS_futex, word, how | FUTEX_PRIVATE_FLAG, value, time,
        NULL, FUTEX_BITSET_MATCH_ANY);
    ASSERT(rv == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
    errno = saved;
}

static void
wake(_Atomic uint32_t *word, int n)
{
    long rv = syscall(
        SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n, NULL, NULL, 0);
    ASSERT(rv >= 0);
}

static inline void
pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/* Takes the lock where it is free: 0; else who has it. */
static inline uint32_t
try(struct lock *lock)
{
    uint32_t owner = 0;
    /* acquire: see lock_take */
    (void)atomic_compare_exchange_strong_explicit(&lock->owner, &owner,
        lock__self(), memory_order_acquire, memory_order_relaxed);
    return owner;
}

_Thread_local uint64_t lock__waited_ns;

static void
sleep_for(struct lock *lock)
{
    uint32_t owner;
    uint64_t since_ns = clock_monotonic_ns();
    /* seq_cst: before the next try, as far as that can be said; see the head */
    atomic_fetch_add_explicit(&lock->n_waiting, 1, memory_order_seq_cst);
    while ((owner = try(lock)) != 0) {
        const struct timespec time = {.tv_nsec = WAIT_NS};
        sleep_on(&lock->owner, FUTEX_WAIT, owner, &time);
    }
    /* relaxed: seen late it is a vain call of the kernel */
    atomic_fetch_sub_explicit(&lock->n_waiting, 1, memory_order_relaxed);
    lock__waited_ns += clock_monotonic_ns() - since_ns;
}

__attribute__((noinline)) void
lock__wait(struct lock *lock)
{
    for (int i = 0; i < LOOKS; i++) {
        pause_core();
        /* relaxed: try decides */
        if (atomic_load_explicit(&lock->owner, memory_order_relaxed) == 0 &&
            try(lock) == 0) {
            return;
        }
    }
    sleep_for(lock);
}

__attribute__((noinline)) void
lock__wake(struct lock *lock)
{
    wake(&lock->owner, 1);
}

void
lock_cond_wait(struct lock_cond *cond, struct lock *lock,
    const struct clock *clock, uint64_t until_ns)
{
    lock_assert_held(lock);
    uint64_t wake_ns =
        until_ns == LOCK_NEVER ? 0 : clock->calls->wake(clock, until_ns);
    /* relaxed: changed under the lock only */
    uint32_t n_calls =
        atomic_load_explicit(&cond->n_calls, memory_order_relaxed);
    const struct timespec time = {.tv_sec = (time_t)(wake_ns / NS_PER_S),
        .tv_nsec = (long)(wake_ns % NS_PER_S)};
    cond->n_waiting++;
    lock_leave(lock);
    sleep_on(&cond->n_calls, FUTEX_WAIT_BITSET, n_calls,
        until_ns == LOCK_NEVER ? NULL : &time);
    lock_take(lock);
    cond->n_waiting--;
}

void
lock_cond_call(struct lock_cond *cond, const struct lock *lock)
{
    lock_assert_held(lock);
    if (cond->n_waiting == 0) {
        return;
    }
    /* relaxed, both: only under the lock, and the kernel's own locks order it
     * with the look of one that goes to sleep */
    atomic_store_explicit(&cond->n_calls,
        atomic_load_explicit(&cond->n_calls, memory_order_relaxed) + 1,
        memory_order_relaxed);
    wake(&cond->n_calls, INT_MAX);
}
