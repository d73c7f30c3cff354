/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_KEEPER_H
#define STORE_KEEPER_H

#include "about/abouts.h"
#include "base/mutex.h"
#include "base/steps.h"
#include "call/call_queue.h"
#include "durable/durable.h"
#include "durable/producers.h"
#include "store/remover.h"
#include "store/store.h"

#include <pthread.h>
#include <stdbool.h>

/* The thread that edits the schema, one edit after the other. Part of the
 * store; nobody else calls it. */
enum { KEEPER_MAGIC = 0x6b656570 };

/* Its life; keeper.c draws it. */
enum keeper_life {
    KEEPER_IDLE, /* there is no thread */
    KEEPER_RUNS, /* edits are taken */
    KEEPER_ENDS, /* none is taken any more; those that are queued are done */
    KEEPER_LIVES_N
};

static const unsigned keeper_steps[KEEPER_LIVES_N] = {
    [KEEPER_IDLE] = STEP_TO(KEEPER_RUNS),
    [KEEPER_RUNS] = STEP_TO(KEEPER_ENDS),
    [KEEPER_ENDS] = STEP_TO(KEEPER_IDLE),
};

/* Returns the new state. */
static inline enum keeper_life
keeper__step(enum keeper_life from, enum keeper_life to)
{
    ASSERT_STEP(keeper_steps, from, to);
    return to;
}

struct keeper {
    uint32_t magic; /* KEEPER_MAGIC, while it runs */
    struct store *store;
    struct engine *engine;           /* the store's */
    struct producers *producers;     /* likewise */
    struct abouts *abouts;           /* likewise; NULL in tests */
    struct durable *durable;         /* the store's; NULL: nothing is logged */
    struct segment_map *segment_map; /* the store's; NULL: no cold tier */
    struct cold *cold;               /* likewise */
    struct remover *remover;         /* likewise; NULL in tests */
    struct moved_list unlogged;      /* without durable: the handovers; the
                                 * thread's */
    uint64_t n_moved; /* how often they were published; under edit_lock */
    bool is_missing;  /* no counter may be added: see data_config */
    pthread_t thread;
    struct mutex lock;      /* the fields below */
    pthread_cond_t changed; /* the queue, or life */
    struct call_queue queue;
    enum keeper_life life;
};

/* Starts the thread. The caller has filled store, engine, producers,
 * durable and is_missing, which must outlive it, and left the rest 0.
 * 0 or ERR_NO_THREAD. */
int keeper_start(struct keeper *keeper);

/* Does what is queued, then ends the thread. */
void keeper_stop(struct keeper *keeper);

/* Queues an edit; its done_fn is called on the keeper's thread. Any thread. */
void keeper_add(struct keeper *keeper, struct store_edit *edit);

#endif
