/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_APPLIER_H
#define STORE_APPLIER_H

#include "base/qsbr.h"
#include "durable/durable.h"
#include "durable/producers.h"
#include "durable/recover.h"
#include "store/keeper.h"
#include "tier/cold_call.h"

#include <semaphore.h>

/* Applies the batches of a primary's log to the tables of a replica, in their
 * order, beside readers, seals and checkpoints: a thread of its own with a
 * queue. Entries of records must name all their columns
 * (data_config.has_whole_records). Part of the store; nobody else calls it. */

enum {
    APPLIER_QUEUE_BYTES = 32 << 20, /* of batches that wait, at most */
    APPLIER_MAGIC = 0x6170706c
};

struct applier_batch; /* applier.c */

/* The caller has filled those above the line, which must outlive it, and left
 * the rest 0. */
struct applier {
    struct engine *engine;
    struct qsbr *qsbr;
    struct durable *durable;
    struct producers *producers;
    struct keeper *keeper; /* edits are made as its own */
    struct cold *cold;
    _Atomic uint64_t *names_dropped, *names_rounds; /* struct store's; see
                                                     * take_out */
    /* ---- */
    uint32_t magic; /* APPLIER_MAGIC, while it runs */
    pthread_t thread;
    struct mutex lock; /* up to err */
    pthread_cond_t changed;
    struct applier_batch *first, *last; /* owned; last: where first is */
    uint64_t n_bytes;                   /* of them, and of the one under way */
    uint64_t last_seq;                  /* that was put */
    int err;
    bool is_resting; /* the thread waits, and nobody has woken it */
    _Atomic bool is_stopping;
    sem_t wake; /* what the resting thread waits for */
    /* the thread's: */
    struct qsbr_reader reader;
    uint64_t gone_at; /* shard and number of the last name that went, + 1 */
    struct recover_schema places; /* schema is the published one, not owned */
    uint8_t pair_bits[SCHEMA_COUNTERS_MAX]; /* by slot: of counters of pairs,
                                             * else 0 */
    sem_t come;                             /* the answer to a call */
    struct store_change call;
    struct change change[ENGINE_WRITES_MAX]; /* call.n of them are gathered */
};

/* Starts the thread, of a replica of which all is loaded; batches come from
 * behind durable_applied on. 0, ERR_NO_MEMORY, ERR_NO_THREAD. */
int applier_start(struct applier *applier);

/* Ends the thread; what is still in the queue is not applied: the log has it.
 */
void applier_stop(struct applier *applier);

/* A batch of that payload, to be queued once the log has it: who has room here
 * first never has one in the log that is not applied. 0, and *out is owned, or
 * NULL where it has been put before; ERR_LOG_FULL where the queue has no room
 * or memory is out: to be tried again later; else why nothing is applied any
 * more: ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_MANY_PRODUCERS. One thread at a time
 * for this and applier_put. */
int applier_make(struct applier *applier, uint64_t seq, const uint8_t *payload,
    size_t len, struct applier_batch **out);

/* Frees one that is not queued; NULL is fine. */
void applier_unmake(struct applier_batch *batch);

/* Queues it, the last one that was made; the log has it. Takes it over. */
void applier_put(struct applier *applier, struct applier_batch *batch);

/* Waits until all that was put has been applied. 0, or why it is not, as of
 * applier_make. */
int applier_drain(struct applier *applier);

#endif
