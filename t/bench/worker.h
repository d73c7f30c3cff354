/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include "bench/conn.h"
#include "bench/fill.h"
#include "bench/hist.h"
#include "bench/options.h"
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
    _Atomic int phase;      /* enum phase, set by the main thread */
    _Atomic uint64_t taken; /* commands begun, where --ops bounds them */
    pthread_mutex_t lock;   /* of n_done */
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
    struct hist hist; /* of the measured phase; read after the join */
};

/* Opens its connections. The worker is all zero before. */
void worker_open(struct worker *worker, struct run *run, uint64_t index);

/* Starts the thread of an open worker. */
void worker_start(struct worker *worker);

/* Waits for its end: when its work is done, or soon after PHASE_STOP. Then
 * closes its connections. */
void worker_join(struct worker *worker);

#endif
