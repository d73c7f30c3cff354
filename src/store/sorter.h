/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_SORTER_H
#define STORE_SORTER_H

#include "base/mutex.h"
#include "call/call_queue.h"
#include "engine/sorted.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* The thread that makes sorted arrays of members (engine/sorted.h) for calls
 * that need one which is not there (store_pin). Part of the store; nobody else
 * calls it. */

enum { SORTER_MAGIC = 0x736f7274 };

struct segment_map; /* tier/segment_map.h */

struct sorter {
    uint32_t magic; /* SORTER_MAGIC, while it runs */
    struct engine *engine;
    struct segment_map *segment_map; /* NULL: all members are in the engine */
    struct sorted_walk walk;         /* reads members; of these two */
    pthread_t thread;
    struct mutex lock;      /* what follows */
    pthread_cond_t changed; /* that */
    struct call_queue queue;
    _Atomic bool is_stopping; /* stored under it; a walk looks without */
};

/* Starts the thread; engine and segment_map, which may be NULL, must outlive
 * it. 0 or ERR_NO_THREAD. */
int sorter_start(struct sorter *sorter, struct engine *engine,
    struct segment_map *segment_map);

/* Ends the walk under way, answers what has been asked for and is not there
 * with ERR_CLOSED, and ends the thread. May be called again, by the same
 * thread. */
void sorter_stop(struct sorter *sorter);

/* It was started and has been stopped, and no call comes any more. */
void sorter_fini(struct sorter *sorter);

/* Pins what the call asks for: what is there at once; else the rest later, on
 * the sorter's thread, and after a stop with ERR_CLOSED. The calling thread is
 * an online reader. */
enum store_answer sorter_pin(struct sorter *sorter, struct store_pin *pin);

#endif
