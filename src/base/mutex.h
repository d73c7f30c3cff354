/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_MUTEX_H
#define BASE_MUTEX_H

#include "base/assert.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* A mutex that knows which thread has it, in every build: a function that is
 * to be called under a lock asserts so in its first line, instead of saying so
 * in a comment. Knowing costs two stores a locking.
 *
 * A thread is the address of a variable of its own. Others read the owner while
 * it changes: whatever they see is not their own address. */
struct mutex {
    pthread_mutex_t mutex;
    _Atomic(const void *) owner; /* NULL: nobody has it */
};

#define MUTEX_INITIALIZER                                                     \
    {                                                                         \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                    \
    }

/* Two bytes at an even address; see lock__self. All that includes this is
 * linked into programs, never a shared library: so its address is one addition
 * to the thread's. */
extern _Thread_local const uint16_t mutex__self
    __attribute__((tls_model("local-exec")));

/* Before any thread uses it. Cannot fail: the attributes are the default. */
static inline void
mutex_init(struct mutex *mutex)
{
    int rv = pthread_mutex_init(&mutex->mutex, NULL);
    ASSERT(rv == 0);
    atomic_init(&mutex->owner, NULL);
}

/* True where this thread has it. */
static inline bool
mutex_is_held(const struct mutex *mutex)
{
    return atomic_load_explicit(&mutex->owner, memory_order_relaxed) ==
        &mutex__self;
}

#define mutex_assert_held(mutex) ASSERT(mutex_is_held(mutex))
#define mutex_assert_not_held(mutex) ASSERT(!mutex_is_held(mutex))

static inline void
mutex__own(struct mutex *mutex, const void *owner)
{
    atomic_store_explicit(&mutex->owner, owner, memory_order_relaxed);
}

/* Nobody has it, or will. */
static inline void
mutex_fini(struct mutex *mutex)
{
    int rv = pthread_mutex_destroy(&mutex->mutex);
    ASSERT(rv == 0);
}

/* Waits for it. This thread does not have it yet. */
static inline void
mutex_lock(struct mutex *mutex)
{
    int rv = pthread_mutex_lock(&mutex->mutex);
    ASSERT(rv == 0);
    mutex__own(mutex, &mutex__self);
}

/* This thread has it. */
static inline void
mutex_unlock(struct mutex *mutex)
{
    mutex_assert_held(mutex);
    mutex__own(mutex, NULL);
    int rv = pthread_mutex_unlock(&mutex->mutex);
    ASSERT(rv == 0);
}

/* Lets go of it, waits for the condition and takes it again. May return
 * without a signal. */
static inline void
mutex_wait(struct mutex *mutex, pthread_cond_t *condition)
{
    mutex_assert_held(mutex);
    mutex__own(mutex, NULL);
    int rv = pthread_cond_wait(condition, &mutex->mutex);
    ASSERT(rv == 0);
    mutex__own(mutex, &mutex__self);
}

/* The same until a moment of the condition's clock at the latest: 0, or
 * ETIMEDOUT. For clock_cond_wait (base/clock.h), which others call. */
static inline int
mutex_timedwait(struct mutex *mutex, pthread_cond_t *condition,
    const struct timespec *until)
{
    mutex_assert_held(mutex);
    mutex__own(mutex, NULL);
    int rv = pthread_cond_timedwait(condition, &mutex->mutex, until);
    mutex__own(mutex, &mutex__self);
    return rv;
}

#endif
