/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_CONN_H
#define NET_CONN_H

#include "base/buf.h"
#include "net/conn_list.h"
#include "net/conn_room.h"
#include "net/gate.h"
#include "net/timing.h"
#include "net/tls.h"
#include "session/session.h"
#include "session/watch.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* One client's connection: a socket on a worker's loop, and its session. All
 * functions run on that worker's thread unless said otherwise. */

enum {
    CONN_WRITE_MARK = 64 << 10, /* queued reply bytes that stop reading */
    CONN_WRITE_TIGHT = 8 << 10, /* the same where much is queued by others */
    CONN_READ_FIRST = 16 << 10, /* one read takes at most this at first, */
    CONN_READ_LEAST = 4 << 10,  /* and this when replies are not read; more
                                 * and more where they are */
    CONN_KEEP_BYTES = 16 << 10, /* up to here an unfinished request is read on
                                 * in the worker's buffer */
    CONN_IDLE_BYTES = 512       /* a larger empty buffer is given back */
};

enum { CONN_MAGIC = 0x4e4e4f43 };

/* How far a connection is; conn_verify.c draws the steps. */
enum conn_stage {
    CONN_OPEN,      /* has its turns */
    CONN_FINISHING, /* no turn any more: closes when its replies are sent */
    CONN_LINGERING, /* they are, and the client knows: see conn__linger */
    CONN_CLOSING,   /* uv_close has been called */
    CONN_CLOSED     /* and is done; only the store or a helper still has it */
};

struct worker;
struct mail_fd; /* net/worker.h */

/* A write that the socket has not taken at once, until libuv has done it.
 * Few connections have one, so it is no part of them. */
struct sending {
    uv_write_t write;
    struct buf bytes;
};

struct lent; /* net/conn_send.c */

struct conn {
    uint32_t magic;       /* CONN_MAGIC */
    enum tls_use tls_use; /* read-only */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    struct worker *worker;
    struct conn *prev, *next; /* in worker->conns */
    struct conn *next_ready;  /* in worker->first_ready */
    struct conn *next_woken;  /* in worker->woken, under worker->lock, or in
                               * worker->answered */
    struct conn_entry entry;  /* in worker->conn_list, until it is closing */
    struct session session;
    struct watch_peer peer;        /* for who watches */
    enum session_state held_state; /* in which the last turn that the gate has
                                    * replies of ended */
    const char *reason;            /* of its end, likewise; static storage */
    struct tls_stream *tls;        /* NULL: plain, or nothing has come yet */
    struct tls_shake *shake;       /* while there is a handshake to be done */
    struct buf in;                 /* bytes of requests not yet done */
    size_t in_at;                  /* of these, already consumed */
    struct sending *sending;       /* being written by libuv; NULL: nothing */
    struct buf queue;              /* to be written after that */
    struct lent *lent; /* a large value that is being sent; no turn is run and
                        * nothing read meanwhile; NULL: none */
    struct held held;  /* replies of its last turns, while the gate has them */
    struct timing *timing;   /* of requests under way; NULL: none has come yet.
                            * Owned, but for worker->spare_timing */
    uint64_t blocked_ns;     /* as blocked_since_ms, by the other clock */
    struct conn_place place; /* in worker->room */
    uint64_t stranger_ms;    /* since when it was to log in; or opened */
    uint64_t progress;       /* the last one's number in its worker: a
                                    * request began, or a write was done */
    uint64_t active_ms;      /* last sign of life: opened, read, written */
    uint64_t command_since_ms; /* an unfinished request began; 0: none */
    uint64_t blocked_since_ms; /* the write mark was passed; 0: it is not */
    size_t blocked_bytes;      /* queued then */
    unsigned read_bytes_max;   /* of the next read */
    bool must_turn; /* something has happened while the gate had replies */
    bool is_reading;
    bool awaits_loan; /* its last turn has ended before a value that is to be
                        * lent, and that cannot be while anything is queued */
    bool is_ready;    /* in the ready list */
    bool is_parked;   /* the store will wake the session, or a helper has a
                        * step of its handshake: neither ends with the stage */
    bool is_inside;   /* a request has begun whose bytes are not all there */
    bool has_ended;   /* the client has sent its last byte */
    uint8_t stage;    /* enum conn_stage; conn__move sets it */
};

/* True from conn_close on. */
static inline bool
conn_is_closing(const struct conn *conn)
{
    return conn->stage >= CONN_CLOSING;
}

/* Takes over a connected socket. Where that fails the socket is closed. The
 * caller keeps *mail. */
void conn_open(struct worker *worker, const struct mail_fd *mail);

/* Goes on with a connection from the ready list. */
void conn_continue(struct conn *conn);

/* Some of what the gate held of a connection has passed. Looks at nothing that
 * the store publishes: the worker may be offline. */
void conn_pass(struct held *held, struct buf *out);

/* The store has answered (worker's mailbox). */
void conn_woken(struct conn *conn);

/* Lets the request under way be answered, begins no other, and closes it when
 * the replies are sent. */
void conn_end(struct conn *conn);

/* Closes it now. */
void conn_close(struct conn *conn);

/* Looks at its deadlines. */
void conn_sweep(struct conn *conn, uint64_t now_ms);

/* Asserts what must hold of a connection between two turns. */
void conn_verify(const struct conn *conn);

/* The same of all connections of a worker, and of the lists and sums that
 * they are in: of its ready list, its gate and its room. */
void conn_verify_all(const struct worker *worker);

#endif
