/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers: a stack of chores that workers push, a queue, and threads that take
 * from it.
 *
 *   helpers_give --> inbox (latest first) --> queue (first first) --> do_fn
 *                                    worker__chore_done --> done_fn
 *
 * A worker never waits for a helper, not even while that one holds a lock: a
 * helper has a lower priority, and on a busy core it may hold the lock until
 * all others have had their turns. (libuv's pool does so, and a condition
 * variable: who signals it waits for those that leave it; 14 ms were seen.) So
 * a worker pushes by compare and swap and posts a semaphore, which never waits.
 * The helpers turn the stack over behind their queue, under a lock of their
 * own.
 *
 * Each post follows its chore's push, and each helper that passes the semaphore
 * takes one chore, so there is one for it. The posts of helpers_stop come when
 * nothing is left. */
#include "net/helpers.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/give_way.h"
#include "base/mutex.h"
#include "net/worker.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

enum { HELPERS_NICE = 10 };

struct helpers {
    _Atomic(struct chore *) inbox; /* the latest first */
    sem_t given;                   /* chores in the inbox and the queue */
    struct mutex lock;             /* the helpers' own */
    struct chore *first, *last;    /* under lock */
    unsigned n;
    pthread_t thread[HELPERS_MAX];
};

/* Puts what has been given behind the queue, in its order. */
static void
empty_inbox(struct helpers *helpers)
{
    mutex_assert_held(&helpers->lock);
    ASSERT(helpers->first == NULL);
    /* acquire: what is in the chores, by helpers_give's release */
    struct chore *latest =
        atomic_exchange_explicit(&helpers->inbox, NULL, memory_order_acquire);
    struct chore *first = NULL;
    struct chore *last = latest;
    while (latest != NULL) {
        struct chore *before = latest->next;
        latest->next = first;
        first = latest;
        latest = before;
    }
    helpers->first = first;
    helpers->last = last;
}

/* NULL: it is time to end. */
static struct chore *
take(struct helpers *helpers)
{
    while (sem_wait(&helpers->given) != 0) {
        ASSERT(errno == EINTR);
    }
    mutex_lock(&helpers->lock);
    if (helpers->first == NULL) {
        empty_inbox(helpers);
    }
    struct chore *chore = helpers->first;
    if (chore != NULL) {
        ASSERT(chore->magic == CHORE_MAGIC);
        helpers->first = chore->next;
    }
    mutex_unlock(&helpers->lock);
    return chore;
}

static void *
run(void *arg)
{
    struct helpers *helpers = arg;
    struct chore *chore;
    give_way_begin(HELPERS_NICE);
    while ((chore = take(helpers)) != NULL) {
        /* relaxed: where it is seen late it is done in vain */
        if (!atomic_load_explicit(&chore->is_unwanted, memory_order_relaxed)) {
            chore->do_fn(chore);
        }
        worker__chore_done(chore->worker, chore);
    }
    return NULL;
}

int
helpers_start(struct helpers **out)
{
    unsigned wanted = uv_available_parallelism();
    struct helpers *helpers = calloc(1, sizeof *helpers);
    *out = NULL;
    if (helpers == NULL) {
        return ERR_NO_MEMORY;
    }
    wanted = wanted > HELPERS_MAX ? HELPERS_MAX : wanted;
    sem_init(&helpers->given, 0, 0);
    mutex_init(&helpers->lock);
    while (helpers->n < wanted &&
        pthread_create(&helpers->thread[helpers->n], NULL, run, helpers) ==
            0) {
        helpers->n++;
    }
    if (helpers->n == 0) {
        helpers_stop(&helpers);
        return ERR_NO_THREAD;
    }
    *out = helpers;
    return 0;
}

void
helpers_give(struct helpers *helpers, struct chore *chore)
{
    ASSERT(chore->magic == 0); /* it is given once */
    chore->magic = CHORE_MAGIC;
    /* relaxed: the exchange below says whether it is still true */
    struct chore *latest =
        atomic_load_explicit(&helpers->inbox, memory_order_relaxed);
    do {
        chore->next = latest;
        /* release: the helper sees the chore; relaxed: as above */
    } while (!atomic_compare_exchange_weak_explicit(&helpers->inbox, &latest,
        chore, memory_order_release, memory_order_relaxed));
    sem_post(&helpers->given);
}

void
helpers_stop(struct helpers **helpers)
{
    struct helpers *old = *helpers;
    if (old == NULL) {
        return;
    }
    for (unsigned i = 0; i < old->n; i++) {
        sem_post(&old->given);
    }
    for (unsigned i = 0; i < old->n; i++) {
        pthread_join(old->thread[i], NULL);
    }
    sem_destroy(&old->given);
    mutex_fini(&old->lock);
    free(old);
    *helpers = NULL;
}
