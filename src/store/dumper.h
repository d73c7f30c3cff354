/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_DUMPER_H
#define STORE_DUMPER_H

#include "base/mutex.h"
#include "call/call_queue.h"
#include "call/store_calls.h"
#include "store/dump_work.h"

#include <pthread.h>

/* The thread that dumps counters for clients while the server runs, a piece a
 * call (store_dump). Part of the store; nobody else calls it. The command
 * line's --dump is offline/dump.h. */

enum {
    DUMPER_WORKS_MAX = 4, /* at a time; each holds some 8 MB, or 12 */
    DUMPER_MAGIC = 0x64756d72
};

struct dumper {
    uint32_t magic; /* DUMPER_MAGIC, while it runs */
    struct dump_source source;
    struct qsbr_reader reader; /* the thread's */
    pthread_t thread;
    struct mutex lock;      /* what follows */
    pthread_cond_t changed; /* that, or stopping */
    struct call_queue queue;
    struct dump_work *ended; /* to be freed by the thread */
    unsigned n_works;
    _Atomic bool stopping;
};

/* Starts the thread; all that source names must outlive it (is_stopping and
 * reader are the dumper's). The caller has filled source. 0 or
 * ERR_NO_THREAD. */
int dumper_start(struct dumper *dumper);

/* Gives up the piece under way, answers who waits with ERR_CLOSED, and ends the
 * thread. Waits as long as one read of the disk takes. May be called again, by
 * the same thread. */
void dumper_stop(struct dumper *dumper);

/* It was started and has been stopped, no call comes any more and every dump
 * has been ended. */
void dumper_fini(struct dumper *dumper);

/* Queues a call, whose done_fn is called on the dumper's thread; after a stop
 * with ERR_CLOSED, on this one. Any thread. */
void dumper_add(struct dumper *dumper, struct store_dump *call);

/* Frees what a dump holds; no call of it is under way. Any thread. */
void dumper_end(struct dumper *dumper, struct store_dump *call);

/* True while dumps are under way, those that wait for their clients too:
 * counted before the first record is copied. Any thread; waits for no dump. */
bool dumper_has_works(struct dumper *dumper);

#endif
