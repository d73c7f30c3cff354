/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that calls one function at a time for another thread, which waits.
 * do_fn is both the order and the sign that it is done: NULL again. */
#include "base/delegate.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/give_way.h"

#include <sys/resource.h>

static void *
run(void *arg)
{
    struct delegate *delegate = arg;
    give_way_begin(getpriority(PRIO_PROCESS, 0)); /* short turns only */
    mutex_lock(&delegate->lock);
    while (!delegate->stopping) {
        if (delegate->do_fn == NULL) {
            mutex_wait(&delegate->lock, &delegate->changed);
            continue;
        }
        mutex_unlock(&delegate->lock);
        delegate->do_fn(
            delegate->context); /* who waits leaves both as they are */
        mutex_lock(&delegate->lock);
        delegate->do_fn = NULL;
        pthread_cond_broadcast(&delegate->changed);
    }
    mutex_unlock(&delegate->lock);
    return NULL;
}

static void
destroy(struct delegate *delegate)
{
    pthread_cond_destroy(&delegate->changed);
    mutex_fini(&delegate->lock);
}

int
delegate_start(struct delegate *delegate)
{
    delegate->do_fn = NULL;
    delegate->stopping = false;
    mutex_init(&delegate->lock);
    pthread_cond_init(&delegate->changed, NULL);
    if (pthread_create(&delegate->thread, NULL, run, delegate) != 0) {
        destroy(delegate);
        return ERR_NO_THREAD;
    }
    return 0;
}

void
delegate_do(
    struct delegate *delegate, void (*do_fn)(void *context), void *context)
{
    mutex_lock(&delegate->lock);
    ASSERT(delegate->do_fn == NULL && !delegate->stopping);
    delegate->context = context;
    delegate->do_fn = do_fn;
    pthread_cond_broadcast(&delegate->changed);
    while (delegate->do_fn != NULL) {
        mutex_wait(&delegate->lock, &delegate->changed);
    }
    mutex_unlock(&delegate->lock);
}

void
delegate_stop(struct delegate *delegate)
{
    mutex_lock(&delegate->lock);
    delegate->stopping = true;
    pthread_cond_broadcast(&delegate->changed);
    mutex_unlock(&delegate->lock);
    pthread_join(delegate->thread, NULL);
    destroy(delegate);
}
