/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_CONN_H
#define BENCH_CONN_H

#include "base/buf.h"
#include "bench/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One connection to the server: bytes out, bytes in, and the commands whose
 * answers are still to come, in order. Owned by one thread. */

struct conn_op {
    uint64_t due_ns;   /* when it was to be sent: latency begins here */
    enum wire_ask ask; /* what its reply is */
    uint32_t draw;     /* the first of its draws; of a store, the post */
    uint32_t acked;    /* see verify.h */
    uint32_t n_keys;   /* numbers asked for or stored */
    bool is_store;     /* of fill */
    bool is_first;     /* store: the first number of its post */
};

struct conn {
    int fd;
    bool is_writing; /* bytes are left in out; wait for EPOLLOUT */
    bool is_asked;   /* in the worker's list of those to flush */
    struct buf out;  /* from out_at on still to be sent */
    size_t out_at;
    struct buf in; /* from in_at on still to be read */
    size_t in_at;
    struct conn_op *ring; /* owned; depth entries */
    uint32_t depth, head, n;
};

/* Connects; fails where it cannot. */
void conn_open(
    struct conn *conn, const char *host, uint64_t port, uint64_t depth);
void conn_close(struct conn *conn);

/* The entry behind the last command under way; n must be below depth. */
struct conn_op *conn_push(struct conn *conn);

/* The oldest command under way, NULL where there is none. */
struct conn_op *conn_oldest(struct conn *conn);
void conn_pop(struct conn *conn);

/* Sends what it can of out; sets is_writing. */
void conn_flush(struct conn *conn);

/* Reads what is there (at most CONN_READ_BYTES). Fails at end of stream. */
void conn_receive(struct conn *conn);

enum { CONN_READ_BYTES = 128 * 1024 };

#endif
