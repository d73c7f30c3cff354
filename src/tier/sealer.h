/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEALER_H
#define TIER_SEALER_H

#include "base/delegate.h"
#include "base/mutex.h"
#include "call/call_queue.h"
#include "durable/checkpoint.h"
#include "tier/cold_call.h"
#include "tier/seal.h"
#include "tier/seal_pick.h"
#include "tier/tidier.h"

#include <pthread.h>

enum { SEALER_MAGIC = 0x1d70c5b4 };

/* How far `seal NAME all` is: figures, written by the sealer's thread, in an
 * order that nobody relies on. */
struct seal_progress {
    _Atomic uint64_t all;      /* records that it found in memory; 0: none is
                                * under way */
    _Atomic uint64_t before;   /* seal_hot_records when it began */
    _Atomic uint64_t begun_ns; /* of the clock of durable's configuration */
};

/* The same for who asks: all 0 where none is under way. */
struct seal_progress_now {
    uint64_t all, done; /* records; done is at most all */
    unsigned percent;   /* 0..100 */
    uint64_t left_ms;   /* as it went so far; 0: not known yet */
};

/* The thread that moves ranges to the cold tier: as the hot tables approach
 * their budget, and on command; and that sees to those that are there. Part of
 * the store; nobody else calls it. */
struct sealer {
    uint32_t magic; /* SEALER_MAGIC, while it is started */
    struct seal seal;
    struct checkpointer *checkpointer; /* the store's */
    struct cold *cold;                 /* who waits for room */
    uint64_t hot_bytes;                /* budget of the hot tables */
    bool is_told;                      /* seals on command only */
    uint64_t not_before_ns;            /* after a failure; the thread's */
    struct seal_aside aside;           /* the thread's */
    struct seal_rest rest;             /* in haste; the thread's */
    uint64_t haste_ns;                 /* its end; the thread's */
    struct delegate hasty;             /* seals then; the thread's */
    uint64_t due_ns; /* the next look at what is due; the thread's */
    const struct seal_tidy_bounds *tidy; /* NULL: the usual */
    struct tidier tidier;                /* the thread's */
    pthread_t thread;
    struct mutex lock;      /* queue */
    pthread_cond_t changed; /* that, or stopping */
    struct call_queue queue;
    _Atomic bool stopping;
    struct seal_progress progress;
    struct seal_said {
        uint64_t seals, records, hot_records, bytes; /* of seal.stats */
        uint64_t ns;                                 /* when it was said */
    } said; /* in the log; the thread's */
};

/* Any thread. */
void sealer_progress(
    const struct sealer *sealer, struct seal_progress_now *out);

/* Starts the thread; all that seal names must outlive it. The caller has filled
 * seal, checkpointer and hot_bytes. 0 or ERR_NO_THREAD. */
int sealer_start(struct sealer *sealer);

/* Gives up the range under way, answers who waits with ERR_CLOSED, and ends the
 * thread; what has been sealed stays so. The checkpointer still runs. Waits as
 * long as the disk takes to write and sync one range at most. May be called
 * again, by the same thread. */
void sealer_stop(struct sealer *sealer);

/* It was started and has been stopped, and no call comes any more. */
void sealer_fini(struct sealer *sealer);

/* Queues a call, whose done_fn is called on the sealer's or the checkpointer's
 * thread; after a stop with ERR_CLOSED, on this one. Any thread. */
void sealer_add(struct sealer *sealer, struct store_seal *call);

#endif
