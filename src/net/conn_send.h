/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_CONN_SEND_H
#define NET_CONN_SEND_H

#include "net/conn.h"
#include "net/worker.h"

/* Writing, for conn.c and the others. The worker's thread. */

/* Sends bytes as they are, or queues them. */
void conn__send(struct conn *conn, const char *bytes, size_t len);

/* Sends a turn's replies, with the value that it has lent: at once as far as
 * the socket takes them. */
void conn__send_out(struct conn *conn, struct buf *out);

/* Hands what is queued to libuv, if it has no write of ours. */
void conn__write_queue(struct conn *conn);

/* Goes on with the value that is being sent, if anything can be. */
void conn__go_on_lending(struct conn *conn);

/* Gives back what is being sent, unless libuv has it, which does that soon. */
void conn__drop_lent(struct conn *conn);

/* Bytes of that which libuv does not know of; and its memory. */
size_t conn__lent_bytes(const struct conn *conn);
size_t conn__lent_memory(const struct conn *conn);

/* How many reply bytes may be queued. */
static inline size_t
conn__write_mark(const struct conn *conn)
{
    return conn->worker->room.is_tight ? CONN_WRITE_TIGHT : CONN_WRITE_MARK;
}

/* Reply bytes that the socket has not taken. */
static inline size_t
conn__queued_bytes(const struct conn *conn)
{
    size_t lent = conn->lent == NULL ? 0 : conn__lent_bytes(conn);
    return uv_stream_get_write_queue_size(&conn->uv.stream) + conn->queue.len +
        lent;
}

/* True where another turn may be run, for all that is queued. */
static inline bool
conn__is_drained(const struct conn *conn)
{
    return conn->lent == NULL &&
        conn__queued_bytes(conn) < conn__write_mark(conn);
}

/* Says what the next turn may lend, so many bytes being queued or held. */
static inline void
conn__allow_loan(struct conn *conn, size_t queued)
{
    struct worker *worker = conn->worker;
    struct loan *loan = &worker->executor.loan;
    loan->use = queued == 0 && conn->held.n == 0 ? LOAN_NOW : LOAN_LATER;
    loan->bytes_min =
        worker->room.is_tight ? CONN_WRITE_TIGHT : LOAN_BYTES_MIN;
}

#endif
