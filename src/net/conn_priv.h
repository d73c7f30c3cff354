/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_CONN_PRIV_H
#define NET_CONN_PRIV_H

#include "net/conn.h"
#include "net/conn_send.h"
#include "net/worker.h"

#include <sys/types.h>

/* Between conn.c, which has the turns, and conn_tls.c, which has TLS. The
 * worker's thread. */

/* conn.c: */

/* Where plain bytes that arrive go to: behind those kept, in the worker's
 * buffer or in conn->in (len 0: memory is out). The next call may say another
 * place. */
uv_buf_t conn__room(struct conn *conn);

/* True where that is in the worker's buffer. */
static inline bool
conn__is_shared(const struct conn *conn, const char *room)
{
    const char *read_buf = conn->worker->read_buf;
    return room >= read_buf && room < read_buf + WORKER_READ_BYTES;
}

/* How much the next read may bring of a client that is not yet known: none, and
 * libuv fails the read, where it has sent more than a login takes. */
static inline size_t
conn__room_of_stranger(const struct conn *conn)
{
    size_t kept = conn->in.len - conn->in_at;
    return kept < LOGIN_BYTES_MAX ? LOGIN_BYTES_MAX - kept : 0;
}

/* What every read begins with: true where bytes have come. */
bool conn__has_read(struct conn *conn, ssize_t n_read);

/* Goes on with what has arrived: shared, the first len bytes of the worker's
 * buffer; else what has been put into conn->in. */
void conn__take(struct conn *conn, bool shared, size_t len);

/* The client sends no more. */
void conn__ended(struct conn *conn);

/* Sends what a turn has to say, and goes on as after one that ended so. */
void conn__answer(
    struct conn *conn, enum session_state state, struct buf *out);

/* Reads no more until a turn begins it again. */
void conn__stop_reading(struct conn *conn);

/* What it was parked for is there. False where it is closing; it may be freed
 * then. */
bool conn__unpark(struct conn *conn);

/* All has been sent, and reading has stopped: tells the client that nothing
 * more comes, and drops what it still sends, for some seconds at most. To close
 * at once where it has sent what was not read would take replies from it that
 * are on their way. False where there is nothing to wait for. */
bool conn__linger(struct conn *conn);

/* Something has been written: goes on. */
void conn__has_written(struct conn *conn, int status);

/* conn_verify.c: */

/* Goes to another stage, which has to be one that may follow. */
void conn__move(struct conn *conn, enum conn_stage to);

/* Of conn.c and the others: */

#define CONN_NS_PER_MS UINT64_C(1000000)

/* What the worker's clock says in this round of its loop, in ms: by it all
 * that times out is. */
static inline uint64_t
conn__now_ms(const struct worker *worker)
{
    return clock_at_ms(worker->config.clock, uv_now(&worker->loop));
}

/* It has begun a request, or written: others are to make room first. Numbers,
 * so that of two in the same round one is the older. */
static inline void
conn__note_progress(struct conn *conn)
{
    conn->progress = ++conn->worker->n_progress;
}

/* The loop's time, for figures: when its callbacks began. */
static inline uint64_t
conn__loop_ns(const struct worker *worker)
{
    return uv_now(&worker->loop) * CONN_NS_PER_MS;
}

static inline bool
conn__is_tls(const struct conn *conn)
{
    return conn->tls_use != TLS_USE_NONE;
}

/* A turn begins: its requests, if they are new, were read about now. */
static inline void
timing_begin(struct conn *conn)
{
    struct worker *worker = conn->worker;
    if (worker->now_ns == 0) {
        timing__begin_round(worker);
    }
    if (conn->timing == NULL) {
        timing__create(conn);
    }
    if (conn->timing->since_ns == 0) {
        conn->timing->since_ns = worker->now_ns;
    } else if (conn->timing->wait_ns != 0) {
        timing__end_wait(conn, worker->now_ns);
    }
}

/* True where replies of a turn wait for the log. */
static inline bool
conn__is_held(const struct conn *conn)
{
    return conn->held.n != 0;
}

/* conn_bounds.c: */

/* Tells who watches that it comes or goes. */
void conn__notify_watchers(
    const struct conn *conn, enum watch_event_type type);

/* A peer's address as session's `from` has it. Pure. */
uint64_t conn__from(const struct watch_peer *peer);

/* Notes what the connection keeps for its client. */
void conn__note_room(struct conn *conn);

/* Frees what a connection that is closing has of requests, which others may
 * have from then on: libuv is through with it only at the end of its round. Not
 * in its turn; what a parked one has is the store's until it is woken. */
static inline void
conn__give_back(struct conn *conn)
{
    if (conn_is_closing(conn) && !conn->is_parked) {
        buf_fini(&conn->in);
        conn->in_at = 0;
        conn_room_note(
            &conn->worker->room, &conn->place, CONN_ROOM_REQUESTS, 0);
    }
}

/* True where that may be worth a note: most keep nothing. */
static inline bool
conn__has_room(const struct conn *conn)
{
    return conn->sending != NULL || conn->lent != NULL ||
        conn->place.bytes != 0 ||
        (conn->queue.capacity | conn->in.capacity) >= CONN_ROOM_COUNTS;
}

/* The same as conn__make_room where something is to be done. */
bool conn__clear_room(struct conn *conn, size_t need);

/* Before a read: makes room where the reads before have left too much, or where
 * conn->in is read into, which is made to hold more bytes than it has. False:
 * there is none, and nothing may be read; a read that fails for want of a
 * buffer closes the connection. */
static inline bool
conn__make_room(struct conn *conn, size_t more)
{
    size_t kept = conn->in.len - conn->in_at;
    if (conn->worker->room.is_over || kept > CONN_KEEP_BYTES) {
        return conn__clear_room(conn, kept + more);
    }
    return true;
}

/* What a turn has to say cannot wait for its changes, for want of memory. */
void conn__answer_unheld(struct conn *conn, enum session_state state,
    const struct buf *out, const struct session_acks *acks);

/* There is no memory for a connection: closes the socket. */
void conn__turn_away(struct worker *worker, const struct mail_fd *mail);

/* There is no memory to keep len bytes behind a turn that ended in that state:
 * what its end is instead. */
enum session_state conn__forget_rest(struct conn *conn,
    enum session_state state, const char *bytes, size_t len);

/* A read has failed, or there was no memory for it. */
void conn__end_reading(struct conn *conn, ssize_t error);

/* Counts why a client is not listened to any more, and logs it. */
void conn__note_fault(struct conn *conn);

/* conn_tls.c, for connections with TLS: */

/* Prepares one. False where memory is out. */
bool conn__tls_begin(struct conn *conn);

/* Gives back what it has; of plain ones, too. */
void conn__tls_free(struct conn *conn);

/* A step that waits for a thread need not be done any more; of plain ones,
 * too. */
void conn__tls_cancel(struct conn *conn);

/* The callbacks of its reads. */
void conn__tls_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out);
void conn__tls_read(
    uv_stream_t *stream, ssize_t n_read, const uv_buf_t *read_buf);

/* The bytes to send for plain ones: the worker's, until the next call. NULL
 * where memory is out. */
struct buf *conn__tls_seal(struct conn *conn, const struct buf *plain);

/* Tells the client that nothing more comes, once. */
void conn__tls_end(struct conn *conn);

/* Asserts that the worker's list of handshakes is whole. */
void conn__tls_verify(const struct worker *worker);

/* True while a helper has a step of its handshake. */
bool conn__tls_is_away(const struct conn *conn);

/* True where it had to be closed: its handshake is too slow. */
bool conn__tls_sweep(struct conn *conn, uint64_t now_ms);

#endif
