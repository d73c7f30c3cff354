/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_REMOVER_H
#define STORE_REMOVER_H

#include "base/mutex.h"
#include "base/owns.h"
#include "base/steps.h"
#include "call/store_calls.h"
#include "store/dump_work.h"

#include <pthread.h>

/* The thread that removes the records of ids which have been handed over to
 * another server (forget ids). Part of the store; nobody else calls it. */

enum {
    REMOVER_BATCH = 32,   /* records that are removed together */
    REMOVER_REST_MS = 50, /* until something is tried again */
    REMOVER_MAGIC = 0x72656d76
};

/* State; the word for it; what it means. remover.c draws them. */
#define REMOVER_STATES(X)                                                     \
    X(IDLE, "none", "none has been asked for since the start")                \
    X(WANTED, "running", "the thread has not begun yet")                      \
    X(RUNS, "running", "records are being removed")                           \
    X(ENDED, "ended", "all have been looked at")                              \
    X(STOPPED, "stopped", "it was ended early: reason says why")

enum remover_state {
#define X(name, word, text) REMOVER_##name,
    REMOVER_STATES(X)
#undef X
        REMOVER_STATES_N
};

static const unsigned remover_steps[REMOVER_STATES_N] = {
    [REMOVER_IDLE] = STEP_TO(REMOVER_WANTED),
    [REMOVER_WANTED] = STEP_TO(REMOVER_RUNS) | STEP_TO(REMOVER_STOPPED),
    [REMOVER_RUNS] = STEP_TO(REMOVER_ENDED) | STEP_TO(REMOVER_STOPPED),
    [REMOVER_ENDED] = STEP_TO(REMOVER_WANTED),
    [REMOVER_STOPPED] = STEP_TO(REMOVER_WANTED),
};

struct remover {
    uint32_t magic; /* REMOVER_MAGIC, while there is a thread */
    struct store *store;
    struct dump_source source;
    const struct clock *clock;
    struct logger *logger; /* NULL: there is none */
    /* The thread's: */
    pthread_t thread;
    struct qsbr_reader reader;
    struct change change[REMOVER_BATCH];
    struct engine_name name[REMOVER_BATCH]; /* of these, and their bytes */
    char name_bytes[REMOVER_BATCH][NAME_ROOM_BYTES];

    _Atomic bool stopping;  /* stored under the lock; dumps look without */
    struct mutex lock;      /* what follows */
    pthread_cond_t changed; /* any of it */
    enum remover_state state;
    struct owns *owns;  /* of this or the last one; NULL: IDLE */
    int why;            /* WANTED, RUNS: to be ended, for that reason; STOPPED:
                        * it; else 0 */
    int trouble;        /* RUNS: it waits for that to pass; else 0 */
    bool is_at_batch;   /* changes are being made, or are not answered yet */
    bool is_answered;   /* those of the batch are */
    unsigned n_holds;   /* remover_hold without its remover_release */
    uint64_t total;     /* records that were there when it began, about */
    uint64_t scanned;   /* of which these have been looked at */
    uint64_t forgotten; /* removed */
    uint64_t unread;    /* blocks or records that cannot be read */
    uint64_t began_s, end_s; /* of the monotonic clock */
};

/* Starts the thread. The caller has filled store, source, clock and logger,
 * which outlive it, and left the rest 0. 0 or ERR_NO_THREAD. */
int remover_start(struct remover *remover);

/* Ends what is under way, which waits for one batch of changes and one read of
 * the disk, and the thread. While changes that wait for room are still
 * answered. May be called again, by the same thread. */
void remover_stop(struct remover *remover);

/* It was started and has been stopped, and no call comes any more. */
void remover_fini(struct remover *remover);

/* Has the records of these ids removed, of all counters. 0, and *owns is the
 * remover's and NULL; ERR_NOT_MOVED, ERR_FORGETS (another one is under way, or
 * one is held), ERR_CLOSED. An online reader. */
int remover_begin(struct remover *remover, struct owns **owns);

/* Until as many calls of remover_release no removal begins, and the one of
 * that rule, with NULL any, with "" none, has been ended, for reason why: when
 * this returns no change of it is under way. Waits for a batch of changes, a
 * second at most where they wait for room. Without edit_lock. Any thread that
 * is no online reader. */
void remover_hold(struct remover *remover, const char *rule, int why);
void remover_release(struct remover *remover);

/* Calls stat_fn for each line of `stats forget`. Any thread. */
void remover_each_stat(struct remover *remover,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

/* Takes a step to another state, which must be a legal one. Inside remover.c,
 * and for its test. */
void remover__move(struct remover *remover, enum remover_state to);

#endif
