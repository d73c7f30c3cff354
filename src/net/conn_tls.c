/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS between a connection and its socket.
 *
 *   socket --> cipher_buf --> stream --> read_buf, or conn->in --> turn
 *   socket <-- conn__send <-- sealed <-- stream <-- the turn's replies
 *
 * All bytes of a read are deciphered at once, so nothing is kept but plain
 * bytes, as without TLS, and OpenSSL's part of a record. A read takes
 * WORKER_CIPHER_BYTES, so that what comes of it fits into the worker's buffer
 * behind what is kept. What is queued is ciphered: the marks and deadlines of
 * conn.c hold for it.
 *
 * A handshake costs a signature, a millisecond with RSA, and making a stream a
 * tenth of that: too long for the loop where others wait. So its steps, from
 * the making on, run on the helpers (helpers.h), of a lower priority than the
 * workers; the connection is parked meanwhile, and does not read. At most one
 * step of a connection waits there, in the order of their coming. Nothing is
 * made for a connection until its first bytes are those of a handshake. It has
 * to be over within shake_timeout_ms, and where WORKER_SHAKES_MAX are under
 * way the oldest that waits for its client makes room: who means it is through
 * in a few milliseconds. */
#include "net/conn_priv.h"

#include "base/assert.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

static_assert(
    WORKER_CIPHER_BYTES + TLS_RECORD_MAX + CONN_KEEP_BYTES < WORKER_READ_BYTES,
    "what one read brings fits behind what is kept");

/* A handshake that is not over. */
struct tls_shake {
    struct conn *conn;
    struct tls_shake *prev, *next; /* in the worker's list */
    uint64_t since_ms;
    struct chore chore;
    bool is_away;   /* a step is queued or runs: in, out, step and conn->tls
                   * are that thread's */
    struct buf in;  /* what the client has sent */
    struct buf out; /* what it is to get */
    enum tls_step step;
};

static void
link_shake(struct worker *worker, struct tls_shake *shake)
{
    shake->prev = worker->last_shake;
    if (shake->prev != NULL) {
        shake->prev->next = shake;
    } else {
        worker->first_shake = shake;
    }
    worker->last_shake = shake;
    worker->n_shakes++;
}

/* Takes it out of the list and frees it. */
static void
drop_shake(struct conn *conn)
{
    struct worker *worker = conn->worker;
    struct tls_shake *shake = conn->shake;
    ASSERT(!shake->is_away && worker->n_shakes > 0);
    if (shake->prev != NULL) {
        shake->prev->next = shake->next;
    } else {
        worker->first_shake = shake->next;
    }
    if (shake->next != NULL) {
        shake->next->prev = shake->prev;
    } else {
        worker->last_shake = shake->prev;
    }
    worker->n_shakes--;
    buf_fini(&shake->in);
    buf_fini(&shake->out);
    free(shake);
    conn->shake = NULL;
}

/* Closes the oldest that only waits for its client. */
static void
make_room(struct worker *worker)
{
    struct tls_shake *shake = worker->first_shake;
    while (shake != NULL && (shake->is_away || conn_is_closing(shake->conn))) {
        shake = shake->next;
    }
    if (shake != NULL) {
        metric_add(&worker->metrics, METRIC_tls_crowded_out, 1);
        conn_close(shake->conn);
    }
}

bool
conn__tls_begin(struct conn *conn)
{
    struct worker *worker = conn->worker;
    ASSERT(worker->config.tls != NULL);
    if (worker->n_shakes >= WORKER_SHAKES_MAX) {
        make_room(worker);
    }
    conn->shake = calloc(1, sizeof *conn->shake);
    if (conn->shake == NULL) {
        return false;
    }
    conn->shake->conn = conn;
    conn->shake->since_ms = conn__now_ms(worker);
    link_shake(worker, conn->shake);
    return true;
}

void
conn__tls_free(struct conn *conn)
{
    if (conn->shake != NULL) {
        drop_shake(conn);
    }
    tls_stream_close(&conn->tls);
}

void
conn__tls_cancel(struct conn *conn)
{
    if (conn->shake != NULL && conn->shake->is_away) {
        /* relaxed: a step that is done all the same does no harm, and on_step
         * comes either way */
        atomic_store_explicit(
            &conn->shake->chore.is_unwanted, true, memory_order_relaxed);
    }
}

void
conn__tls_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    enum { MORE = WORKER_CIPHER_BYTES + TLS_RECORD_MAX + CONN_KEEP_BYTES };
    struct conn *conn = handle->data;
    (void)suggested;
    static_assert((int)MORE <= (int)WORKER_READ_BYTES,
        "no more than conn_room.c has a buffer grow beyond a request");
    if (!conn__make_room(conn, MORE)) {
        *out = uv_buf_init(NULL, 0);
        return;
    }
    *out = uv_buf_init(conn->worker->cipher_buf,
        conn->read_bytes_max < WORKER_CIPHER_BYTES ? conn->read_bytes_max
                                                   : WORKER_CIPHER_BYTES);
    if (session_is_stranger(&conn->session) &&
        conn__room_of_stranger(conn) == 0) {
        out->len = 0; /* one record was more than a login */
    }
}

/* Sends what the stream has written by itself. */
static void
send_sealed(struct conn *conn, struct buf *sealed)
{
    if (sealed->failed) {
        conn_close(conn);
    } else if (sealed->len > 0 && !conn_is_closing(conn)) {
        conn__send(conn, sealed->data, sealed->len);
    }
}

/* Says why, to who debugs. The alert, if any, has been sent. */
static void
give_up(struct conn *conn, enum metric metric)
{
    metric_add(&conn->worker->metrics, metric, 1);
    log_line(conn->worker->config.logger, LOG_DEBUG, "TLS: %s",
        conn->tls == NULL ? "no handshake" : tls_stream_why(conn->tls));
    conn_close(conn);
}

/* Reads all there is in the stream; *shared and *len are for conn__take. */
static enum tls_step
decipher(struct conn *conn, struct buf *sealed, bool *shared, size_t *len)
{
    uv_buf_t room = conn__room(conn);
    enum tls_step step;
    size_t n;
    *shared = conn__is_shared(conn, room.base);
    *len = *shared ? (size_t)(room.base - conn->worker->read_buf) : 0;
    do {
        if (room.len == 0) {
            return TLS_STEP_FAILED; /* memory is out */
        }
        step = tls_stream_read(conn->tls, room.base, room.len, &n, sealed);
        metric_add(&conn->worker->metrics, METRIC_bytes_read, n);
        if (*shared) {
            *len += n;
            room.base += n;
            room.len -= n;
        } else {
            conn->in.len += n;
            room = conn__room(conn);
        }
    } while (step == TLS_STEP_DONE);
    return step;
}

/* Goes on with what was put into the stream. */
static void
read_stream(struct conn *conn)
{
    struct buf *sealed = &conn->worker->sealed;
    bool shared;
    size_t len;
    size_t before = conn->in.len - conn->in_at;
    buf_clear(sealed);
    enum tls_step step = decipher(conn, sealed, &shared, &len);
    bool has_said = sealed->len > 0;
    send_sealed(conn, sealed);
    if (step == TLS_STEP_FAILED) {
        if (!conn_is_closing(conn)) {
            give_up(conn, METRIC_ssl_proto_errors);
        }
        return;
    }
    bool has_come = (shared ? len : conn->in.len - conn->in_at) > before;
    if (has_come && !conn_is_closing(conn)) {
        conn__take(conn, shared, len);
    } else if (!conn_is_closing(conn)) {
        conn__note_room(conn); /* its buffer may have grown for nothing */
        if (!conn->is_reading || has_said) {
            worker__ready(conn->worker, conn); /* reads on, if not full */
        }
    }
    if (step == TLS_STEP_ENDED && !conn_is_closing(conn)) {
        conn__ended(conn);
    }
}

/* The handshake is over: what came behind it is the first of the commands. */
static void
begin_session(struct conn *conn)
{
    struct buf in = conn->shake->in;
    metric_add(&conn->worker->metrics, METRIC_ssl_new_sessions,
        tls_stream__new_sessions(conn->tls));
    conn->shake->in = (struct buf){0}; /* the stream still reads from it */
    drop_shake(conn);
    read_stream(conn);
    buf_fini(&in);
}

static struct tls_shake *
shake_of(struct chore *chore)
{
    return (
        struct tls_shake *)((char *)chore - offsetof(struct tls_shake, chore));
}

/* On a helper's thread. */
static void
do_step(struct chore *chore)
{
    struct tls_shake *shake = shake_of(chore);
    struct conn *conn = shake->conn;
    ASSERT(shake->is_away && conn->magic == CONN_MAGIC);
    if (conn->tls == NULL &&
        tls_stream_open(conn->worker->config.tls, conn->tls_use, &conn->tls) !=
            0) {
        shake->step = TLS_STEP_FAILED;
        return;
    }
    tls_stream_put(conn->tls, shake->in.data, shake->in.len);
    shake->step = tls_stream_shake(conn->tls, &shake->out);
}

static void
on_step(struct chore *chore)
{
    struct tls_shake *shake = shake_of(chore);
    struct conn *conn = shake->conn;
    ASSERT(shake->is_away && conn->shake == shake);
    shake->is_away = false;
    if (!conn__unpark(conn)) { /* so it is where the step was left out */
        return;
    }
    send_sealed(conn, &shake->out);
    if (conn_is_closing(conn)) {
        return;
    }
    buf_clear(&shake->out);
    switch (shake->step) {
    case TLS_STEP_MORE:
        buf_clear(&shake->in);
        worker__ready(conn->worker, conn); /* its turn reads on, or ends */
        break;
    case TLS_STEP_DONE:
        begin_session(conn);
        break;
    case TLS_STEP_ENDED:
    case TLS_STEP_FAILED:
        give_up(conn, METRIC_ssl_handshake_errors);
        break;
    }
}

/* Has the step done for which bytes have come. */
static void
go_on(struct conn *conn)
{
    struct tls_shake *shake = conn->shake;
    struct worker *worker = conn->worker;
    if (conn->tls == NULL) {
        if (!tls__may_be_hello(shake->in.data, shake->in.len)) {
            give_up(conn, METRIC_ssl_handshake_errors);
            return;
        }
        if (shake->in.len < TLS_HELLO_HEAD) {
            return;
        }
    }
    ASSERT(!shake->is_away && !conn->is_parked);
    conn__stop_reading(conn);
    conn->is_parked = true;
    shake->is_away = true;
    shake->chore.worker = worker;
    shake->chore.do_fn = do_step;
    shake->chore.done_fn = on_step;
    helpers_give(worker->config.helpers, &shake->chore);
}

void
conn__tls_read(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *read_buf)
{
    struct conn *conn = stream->data;
    if (!conn__has_read(conn, n_read)) {
        return;
    }
    if (conn->shake == NULL) {
        tls_stream_put(conn->tls, read_buf->base, (size_t)n_read);
        read_stream(conn);
        return;
    }
    buf_add(&conn->shake->in, read_buf->base, (size_t)n_read);
    if (conn->shake->in.failed) {
        conn_close(conn);
    } else {
        go_on(conn);
    }
}

struct buf *
conn__tls_seal(struct conn *conn, const struct buf *plain)
{
    struct buf *sealed = &conn->worker->sealed;
    buf_clear(sealed);
    return conn->tls != NULL &&
            tls_stream_write(conn->tls, plain->data, plain->len, sealed)
        ? sealed
        : NULL;
}

void
conn__tls_end(struct conn *conn)
{
    struct buf *sealed = &conn->worker->sealed;
    /* tls is the step's thread's while there is a handshake */
    if (conn->shake == NULL && conn->tls != NULL && !conn_is_closing(conn)) {
        buf_clear(sealed);
        tls_stream_shut(conn->tls, sealed);
        send_sealed(conn, sealed);
    }
}

void
conn__tls_verify(const struct worker *worker)
{
    const struct tls_shake *last = NULL;
    unsigned n = 0;
    for (const struct tls_shake *shake = worker->first_shake; shake != NULL;
         shake = shake->next) {
        ASSERT(shake->prev == last && shake->conn->shake == shake);
        ASSERT(shake->conn->worker == worker);
        last = shake;
        n++;
    }
    ASSERT(n == worker->n_shakes && worker->last_shake == last);
}

bool
conn__tls_is_away(const struct conn *conn)
{
    return conn->shake != NULL && conn->shake->is_away;
}

bool
conn__tls_sweep(struct conn *conn, uint64_t now_ms)
{
    struct tls_shake *shake = conn->shake;
    if (shake == NULL || shake->is_away ||
        now_ms - shake->since_ms < conn->worker->config.shake_timeout_ms) {
        return false;
    }
    metric_add(&conn->worker->metrics, METRIC_tls_slow_handshakes, 1);
    conn_close(conn);
    return true;
}
