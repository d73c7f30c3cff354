/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "base/mutex.h"
#include "bench/conn.h"
#include "bench/fill.h"
#include "bench/hist.h"
#include "bench/options.h"
#include "bench/schedule.h"
#include "bench/tape.h"
#include "bench/verify.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* A thread of the load generator: its share of the connections, one epoll. */

enum phase { PHASE_WARMUP, PHASE_MEASURE, PHASE_STOP };

/* What all threads share. */
struct run {
    const struct options *options;
    const struct tape *tape; /* empty for fill */
    struct verify verify;
    _Atomic int phase; /* enum phase, set by the main thread */
    uint64_t start_ns; /* just before the workers started */

    /* When PHASE_MEASURE began and when PHASE_STOP; UINT64_MAX before. */
    _Atomic uint64_t begin_ns, end_ns;
    _Atomic uint64_t taken; /* commands begun, where --ops bounds them */
    struct mutex lock;      /* of n_done */
    pthread_cond_t done;    /* n_done has grown; CLOCK_MONOTONIC */
    uint64_t n_done;        /* threads that have ended */
};

/* Counted since the start; written by the worker, read by the main thread. */
struct tally {
    _Atomic uint64_t ops;     /* commands answered */
    _Atomic uint64_t keys;    /* numbers asked for or stored */
    _Atomic uint64_t hits;    /* numbers that came back */
    _Atomic uint64_t records; /* posts of which something is stored */
};

/* An open loop. A connection has room while less than its depth is under way.
 */
struct pace {
    struct schedule schedule;
    struct conn **asked; /* owned: those to be flushed */
    uint64_t n_asked;
    uint64_t n_room;        /* connections that have room */
    uint64_t next;          /* the connection to look at first */
    uint64_t room_since_ns; /* when the first of them got it */
};

/* What an open loop adds to the result. */
struct pace_tally {
    uint64_t sent;
    uint64_t late;   /* of these, those whose time came while no connection
                      * had room */
    uint64_t unsent; /* still waiting for room at the end; in worker.hist they
                      * count with the time that they had waited */
    struct hist lag; /* how long after its time, or after there was room, a
                      * command was sent: what the generator itself adds */
};

struct worker {
    struct run *run;
    pthread_t thread;
    uint64_t index;
    int epoll_fd;
    struct conn *conn; /* owned */
    uint64_t n_conns;
    size_t tape_at;
    struct fill_cursor cursor;
    struct tally tally;
    uint64_t under_way; /* commands asked and not answered */
    bool has_ended;     /* there is nothing more to ask */
    struct pace pace;   /* of an open loop */

    /* Of the measured phase; read after the join. */
    struct hist hist;
    struct pace_tally paced;
};

/* Opens its connections. The worker is all zero before. */
void worker_open(struct worker *worker, struct run *run, uint64_t index);

/* Starts the thread of an open worker. */
void worker_start(struct worker *worker);

/* Waits for its end: when its work is done, or soon after PHASE_STOP. Then
 * closes its connections. */
void worker_join(struct worker *worker);

#endif
