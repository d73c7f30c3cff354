/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that calls one function at a time for another thread, which waits.
 * do_fn is both the order and the sign that it is done: NULL again. */
#include "base/errand.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/give_way.h"

#include <sys/resource.h>

static void *
run(void *arg)
{
    struct errand *errand = arg;
    give_way_begin(getpriority(PRIO_PROCESS, 0)); /* short turns only */
    mutex_lock(&errand->lock);
    while (!errand->stopping) {
        if (errand->do_fn == NULL) {
            mutex_wait(&errand->lock, &errand->changed);
            continue;
        }
        mutex_unlock(&errand->lock);
        errand->do_fn(errand->context); /* who waits leaves both as they are */
        mutex_lock(&errand->lock);
        errand->do_fn = NULL;
        pthread_cond_broadcast(&errand->changed);
    }
    mutex_unlock(&errand->lock);
    return NULL;
}

static void
destroy(struct errand *errand)
{
    pthread_cond_destroy(&errand->changed);
    mutex_fini(&errand->lock);
}

int
errand_start(struct errand *errand)
{
    errand->do_fn = NULL;
    errand->stopping = false;
    mutex_init(&errand->lock);
    pthread_cond_init(&errand->changed, NULL);
    if (pthread_create(&errand->thread, NULL, run, errand) != 0) {
        destroy(errand);
        return ERR_NO_THREAD;
    }
    return 0;
}

void
errand_do(struct errand *errand, void (*do_fn)(void *context), void *context)
{
    mutex_lock(&errand->lock);
    ASSERT(errand->do_fn == NULL && !errand->stopping);
    errand->context = context;
    errand->do_fn = do_fn;
    pthread_cond_broadcast(&errand->changed);
    while (errand->do_fn != NULL) {
        mutex_wait(&errand->lock, &errand->changed);
    }
    mutex_unlock(&errand->lock);
}

void
errand_stop(struct errand *errand)
{
    mutex_lock(&errand->lock);
    errand->stopping = true;
    pthread_cond_broadcast(&errand->changed);
    mutex_unlock(&errand->lock);
    pthread_join(errand->thread, NULL);
    destroy(errand);
}
