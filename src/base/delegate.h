/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_DELEGATE_H
#define BASE_DELEGATE_H

#include "base/mutex.h"

#include <pthread.h>
#include <stdbool.h>

/* A thread that does something for another one, which waits for it: what that
 * one cannot do with the priority that it has. A thread may lower its own
 * without being allowed anything, but not raise it again. Part of the store;
 * nobody else calls it. */
struct delegate {
    pthread_t thread;
    struct mutex lock;            /* all below */
    pthread_cond_t changed;       /* any of it */
    void (*do_fn)(void *context); /* NULL: nothing is to be done */
    void *context;                /* its argument */
    bool stopping;
};

/* Starts the thread, with the priority of who calls this and short turns
 * (base/give_way.h). 0 or ERR_NO_THREAD. */
int delegate_start(struct delegate *delegate);

/* Has the thread call do_fn(context), and returns when that has returned. One
 * thread at a time, not the delegate's. */
void delegate_do(
    struct delegate *delegate, void (*do_fn)(void *context), void *context);

/* Ends the thread and frees what it has. No delegate_do is under way. */
void delegate_stop(struct delegate *delegate);

#endif
