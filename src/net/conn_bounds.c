/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounds of a connection: its deadlines, which the worker looks at once a
 * second; its bytes in the room that all connections share (conn_room.h); the
 * faults of its client; and the events that watchers are told of. */
#include "net/conn_priv.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINGER_MS = 2000 /* from the last reply on */ };

/* Why it ends, as memcached has it. */
static const char *
reason_of(const struct conn *conn)
{
    return conn->reason != NULL                 ? conn->reason
        : conn->session.has_quit                ? "normal"
        : conn->session.stage == SESSION_ENDING ? "shutdown"
                                                : "error";
}

void
conn__notify_watchers(const struct conn *conn, enum watch_event_type type)
{
    struct watch_ring *ring = conn->worker->config.watch;
    if (ring == NULL || (watch_wanted(ring->hub) & WATCH_CONNEVENTS) == 0) {
        return;
    }
    watch_report(ring,
        &(struct watch_event){.type = (uint8_t)type,
            .fd = conn->session.fd,
            .peer = conn->peer,
            .status = reason_of(conn)},
        NULL);
}

/* Of IPv6 the network: the other half is what its hosts choose themselves. */
uint64_t
conn__from(const struct watch_peer *peer)
{
    static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    uint32_t in = 0;
    uint64_t in6 = 0;
    switch (peer->family) {
    case AF_INET:
        memcpy(&in, peer->address, sizeof in);
        return in;
    case AF_INET6:
        if (memcmp(peer->address, mapped, sizeof mapped) == 0) {
            memcpy(&in, peer->address + sizeof mapped, sizeof in);
            return in;
        }
        memcpy(&in6, peer->address, sizeof in6);
        return in6;
    default:
        return 0;
    }
}

/* Most keep nothing. */
void
conn__note_room(struct conn *conn)
{
    size_t replies = conn->queue.capacity;
    if (conn->sending != NULL) {
        replies += sizeof *conn->sending + conn->sending->bytes.capacity;
    }
    if (conn->lent != NULL) {
        replies += conn__lent_memory(conn);
    }
    if (((replies | conn->in.capacity) < CONN_ROOM_COUNTS &&
            conn->place.bytes == 0) ||
        conn_is_closing(conn)) {
        return;
    }
    if (replies > 0) {
        replies += session_memory(&conn->session);
    }
    conn_room_note(&conn->worker->room, &conn->place,
        replies > 0 ? CONN_ROOM_REPLIES : CONN_ROOM_REQUESTS,
        replies + conn->in.capacity);
}

bool
conn__clear_room(struct conn *conn, size_t need)
{
    struct worker *worker = conn->worker;
    size_t has = conn->in.capacity;
    size_t then = need > has ? buf_capacity_for(has, need) : has;
    size_t more =
        conn->in.len - conn->in_at > CONN_KEEP_BYTES ? then - has : 0;
    return (more == 0 && !worker->room.is_over) ||
        conn_room_make(worker, conn, more);
}

void
conn__answer_unheld(struct conn *conn, enum session_state state,
    const struct buf *out, const struct session_acks *acks)
{
    struct buf said = {0};
    if (conn__is_held(conn)) {
        conn_close(conn); /* these would pass those before them */
        return;
    }
    int unsaid = gate_refuse(&conn->worker->gate, out, acks, &said);
    if (unsaid != 0) {
        session_leave_unsaid(&conn->session, unsaid, true);
        state = SESSION_CLOSE;
    }
    conn__answer(conn, state, &said);
    buf_fini(&said);
}

void
conn__turn_away(struct worker *worker, const struct mail_fd *mail)
{
    static const char line[] = "SERVER_ERROR out of memory\r\n";
    if (mail->tls_use == TLS_USE_NONE) {
        /* a fresh socket's buffer takes one line; if not, so be it */
        ssize_t ignored = write(mail->fd, line, sizeof line - 1);
        (void)ignored;
    }
    close(mail->fd);
    if (!mail->is_inner) {
        conn_gauge_leave(worker->config.gauge);
    }
}

enum session_state
conn__forget_rest(
    struct conn *conn, enum session_state state, const char *bytes, size_t len)
{
    if (state == SESSION_PARKED) {
        conn_close(conn); /* the answer that it waits for comes before */
        return state;
    }
    /* of packets that are gathered some may have been answered already */
    bool is_vague =
        conn->session.job != NULL && conn->session.binding == SESSION_BINARY;
    if (state != SESSION_CLOSE && !is_vague) {
        session_say_no_memory(bytes, len, &conn->worker->out);
    }
    return SESSION_CLOSE;
}

/* That there is none can be said where no other reply comes before it. */
void
conn__end_reading(struct conn *conn, ssize_t error)
{
    struct buf said = {0};
    if (error != UV_ENOBUFS || !conn->in.failed || conn__is_tls(conn) ||
        conn__is_held(conn) || conn->is_parked || conn_is_closing(conn)) {
        conn_close(conn);
        return;
    }
    session_say_no_memory(
        conn->in.data + conn->in_at, conn->in.len - conn->in_at, &said);
    conn__answer(conn, SESSION_CLOSE, &said);
    buf_fini(&said);
}

/* Not each time: whoever sends garbage must not fill the log. */
void
conn__note_fault(struct conn *conn)
{
    struct worker *worker = conn->worker;
    uint64_t now_ms = conn__now_ms(worker);
    int fault = conn->session.fault;
    if (fault == 0) {
        return;
    }
    conn->session.fault = 0;
    metric_add(&worker->metrics,
        fault == ERR_HTTP ? METRIC_http_kicks : METRIC_garbage_kicks, 1);
    if (worker->fault_said_ms == 0 ||
        now_ms - worker->fault_said_ms >= WORKER_FAULT_MS) {
        worker->fault_said_ms = now_ms;
        log_line(worker->config.logger, LOG_WARNING,
            "closed a connection: %s; more such in the next minute are only "
            "counted, see http_kicks and garbage_kicks of stats counters",
            err_text(fault));
    }
}

static void
on_linger_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    const struct conn *conn = handle->data;
    (void)suggested;
    *out = uv_buf_init(conn->worker->read_buf, WORKER_READ_BYTES);
}

static void
on_linger_read(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *bytes)
{
    struct conn *conn = stream->data;
    (void)bytes;
    ASSERT(conn->magic == CONN_MAGIC);
    worker__enter(conn->worker);
    if (n_read < 0) {
        conn_close(conn);
    }
}

bool
conn__linger(struct conn *conn)
{
    uv_os_fd_t fd;
    if (conn->stage != CONN_FINISHING || conn->has_ended) {
        return false;
    }
    ASSERT(!conn->is_reading && conn__queued_bytes(conn) == 0);
    if (uv_fileno(&conn->uv.handle, &fd) != 0 || shutdown(fd, SHUT_WR) != 0 ||
        uv_read_start(&conn->uv.stream, on_linger_room, on_linger_read) != 0) {
        return false;
    }
    conn__move(conn, CONN_LINGERING);
    conn->active_ms = conn__now_ms(conn->worker);
    return true;
}

static bool
is_idle(const struct conn *conn, uint64_t now_ms)
{
    uint64_t timeout_ms = conn->worker->config.idle_timeout_ms;
    return timeout_ms != 0 && now_ms - conn->active_ms > timeout_ms &&
        !conn->is_parked && !conn__is_held(conn) && !conn->is_ready &&
        conn->session.watcher == NULL && !conn->session.is_inner &&
        conn__queued_bytes(conn) == 0;
}

/* True where the rest of a refused request is waited for, after which it is
 * closed, and no more of that has come for a while. */
static bool
has_stopped(const struct conn *conn, uint64_t now_ms)
{
    enum { STOPPED_MS = 2000 };
    return conn->session.stage == SESSION_LAST &&
        conn->command_since_ms != 0 && now_ms - conn->active_ms >= STOPPED_MS;
}

void
conn_sweep(struct conn *conn, uint64_t now_ms)
{
    const struct worker_config *config = &conn->worker->config;
    if (conn_is_closing(conn) ||
        (conn__is_tls(conn) && conn__tls_sweep(conn, now_ms))) {
        return;
    }
    if (conn->stage == CONN_LINGERING) {
        if (now_ms - conn->active_ms >= LINGER_MS) {
            conn_close(conn);
        }
        return;
    }
    if (is_idle(conn, now_ms)) {
        metric_add(&conn->worker->metrics, METRIC_idle_kicks, 1);
        conn->reason = "idle_timeout";
        conn_close(conn);
        return;
    }
    if (session_is_stranger(&conn->session) &&
        now_ms - conn->stranger_ms >= config->login_timeout_ms) {
        metric_add(&conn->worker->metrics, METRIC_slow_logins, 1);
        conn_close(conn);
        return;
    }
    if (has_stopped(conn, now_ms)) {
        conn__note_fault(conn);
        conn_close(conn);
        return;
    }
    if (conn->command_since_ms != 0 &&
        now_ms - conn->command_since_ms >= config->command_timeout_ms) {
        metric_add(&conn->worker->metrics, METRIC_slow_commands, 1);
        conn_close(conn);
        return;
    }
    size_t queued = conn__queued_bytes(conn);
    if (conn->blocked_since_ms == 0 || queued == 0) {
        return;
    }
    if (queued + CONN_WRITE_MARK <= conn->blocked_bytes) {
        conn->blocked_bytes = queued; /* it does read */
        conn->blocked_since_ms = now_ms;
    } else if (now_ms - conn->blocked_since_ms >= config->write_timeout_ms) {
        metric_add(&conn->worker->metrics, METRIC_slow_readers, 1);
        conn_close(conn);
    }
}
