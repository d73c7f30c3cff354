/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_RWLOCK_H
#define BASE_RWLOCK_H

#include "base/assert.h"

#include <pthread.h>

/* A lock that many read under, or one writes: for a list that is walked all the
 * time and hardly ever changed, by threads that wake others on the way. Who is
 * woken may run at once, on the core of its waker; with a mutex, which that one
 * still has, it would have to wait for it, and both were switched once more.
 * Who waits to write goes before those who come to read. Not recursive. */
struct rwlock {
    pthread_rwlock_t lock;
};

/* Before any thread uses it. Cannot fail, but for what is wrong here. */
static inline void
rwlock_init(struct rwlock *lock)
{
    pthread_rwlockattr_t attributes;
    int rv = pthread_rwlockattr_init(&attributes);
#ifdef __GLIBC__
    rv |= pthread_rwlockattr_setkind_np(
        &attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    rv |= pthread_rwlock_init(&lock->lock, &attributes);
    rv |= pthread_rwlockattr_destroy(&attributes);
    ASSERT(rv == 0);
}

/* Nobody has it, or will. */
static inline void
rwlock_fini(struct rwlock *lock)
{
    int rv = pthread_rwlock_destroy(&lock->lock);
    ASSERT(rv == 0);
}

/* Waits until nobody writes. */
static inline void
rwlock_read(struct rwlock *lock)
{
    int rv = pthread_rwlock_rdlock(&lock->lock);
    ASSERT(rv == 0);
}

/* Waits until nobody else has it. */
static inline void
rwlock_write(struct rwlock *lock)
{
    int rv = pthread_rwlock_wrlock(&lock->lock);
    ASSERT(rv == 0);
}

/* This thread has it, in either way. */
static inline void
rwlock_leave(struct rwlock *lock)
{
    int rv = pthread_rwlock_unlock(&lock->lock);
    ASSERT(rv == 0);
}

#endif
