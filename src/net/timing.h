/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_TIMING_H
#define NET_TIMING_H

#include "session/session.h"
#include "stats/latency.h"
#include "stats/slow.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long the requests of a connection take: from the read of their last byte
 * to the moment at which their replies are handed to the socket, and what of
 * that they wait for. Requests that are answered by the same turn have the
 * same time. The worker's thread; times in ns of CLOCK_MONOTONIC. */

struct conn;
struct worker;

enum {
    TIMING_COMMAND_BYTES = 96, /* of a first command that is kept */
    TIMING_HELD_KEPT = 1024    /* by a worker */
};

/* Of requests that are under way; all zero: none are. */
struct timing {
    uint64_t since_ns; /* the oldest was read */
    uint64_t wait_ns;  /* since then they wait; 0: they do not */
    uint8_t path;      /* enum latency_path */
    uint8_t waits_for; /* enum slow_phase */
    bool has_waited;   /* else what follows is all zero, and wait_ns, path */
    uint32_t phase_us[SLOW_PHASE_COUNT]; /* waits that are over */
};

/* Of requests that are answered, whose replies have not been sent. Each is a
 * piece of the heap; the worker keeps some that are not in use. */
struct timing_held {
    struct timing_held *next; /* of those */
    struct timing timing;
    struct latency_tally tally; /* of these */
    uint64_t bytes;
    uint8_t len;                        /* of command */
    char command[TIMING_COMMAND_BYTES]; /* the first of them begins so */
};

/* A turn, between its two ends. */
struct timing_turn {
    const char
        *bytes; /* what it runs on, from its beginning; to be looked at */
    size_t len;
};

/* Bytes have come that no turn is run on yet, for what is waited for. */
void timing_arrive(struct conn *conn);

/* Frees what a connection has of it. */
void timing_destroy(struct conn *conn);

/* For conn_priv.h, which has timing_begin: a connection's first request has
 * come. */
void timing__create(struct conn *conn);

/* Likewise: the first turn in a round of the
 * loop is about to begin; what the connection has waited for is over. */
void timing__begin_round(struct worker *worker);
void timing__end_wait(struct conn *conn, uint64_t now_ns);

/* The turn has run on bytes that may go, as those in the worker's buffer do
 * not: they are kept so far as they may be wanted. */
void timing_keep(struct conn *conn, struct timing_turn *turn);

/* It ends in that state; its replies have been handed to the socket. bytes: of
 * the replies, and of the commands that they answer. */
void timing_sent(struct conn *conn, const struct timing_turn *turn,
    enum session_state state, size_t bytes);

/* The same, but they wait at the gate: that is noted in **held, behind what is
 * noted there already. Where *held is NULL it is made; without memory it stays
 * NULL, and they are not counted. */
void timing_hold(struct conn *conn, const struct timing_turn *turn,
    enum session_state state, size_t bytes, struct timing_held **held);

/* Replies that waited have been handed to the socket. Takes held, which may be
 * NULL. */
void timing_pass(struct conn *conn, struct timing_held *held);

/* Frees what the worker keeps. */
void timing_fini(struct worker *worker);

/* The client has not read for a while, and now has: since then. */
void timing_read(struct conn *conn, uint64_t since_ns);

/* The worker is about to poll, and there was a turn: the round of its loop is
 * over. */
void timing__note_round(struct worker *worker);

#endif
