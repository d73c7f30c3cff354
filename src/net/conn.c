/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection: reads, runs turns, writes their replies.
 *
 *   socket --> read buffer --> session_run --> gate --> socket
 *                  |               ^                      |
 *                  +-- conn->in ---+                conn->queue
 *
 * Reading. Bytes arrive in the worker's one read buffer, and the turn runs on
 * them there. conn->in keeps what is left of an unfinished request. A small
 * rest is copied back in front of the next read. A large one (the data block
 * of a set) is read on into conn->in, which grows as bytes arrive and never
 * because a length was announced.
 *
 * Turns. A turn runs the session on what is there, at most requests_per_turn
 * requests, and ends with one write of all replies. The socket takes what it
 * can; the rest is queued (conn_send.c). From CONN_WRITE_MARK queued bytes on
 * no request is begun and nothing is read; nor while a large value is sent from
 * the memory of items.
 *
 *   reading --> turn --> READY: read on
 *                        YIELD: worker's ready list --> turn
 *                        FULL:  queue drained --> ready list --> turn
 *                        PARKED: store answers --> mailbox --> turn
 *                        CLOSE: queue drained --> closed
 *
 * Replies that acknowledge changes wait at the worker's gate for their commit
 * (gate.h), and the turn ends when they pass. No other turn runs until then,
 * unless this one has ended because of its budget: those that follow are held
 * behind it, as many as the gate takes.
 *
 * Reading goes on while the store or the gate is waited for: to stop it and to
 * begin it again would be two system calls a request. The first bytes that
 * arrive are kept, and stop it.
 *
 * The stage of a connection, from open to closed, is in conn_verify.c, with
 * what must hold between two turns. Closed while it is parked, it gives up its
 * socket at once, and its memory when the store has answered.
 *
 * TLS lies between the socket and all this (conn_tls.c): what is read comes to
 * conn__take, and what is sent goes through conn__tls_seal to conn__send. What
 * is queued is what the socket gets. */
#include "net/conn_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "net/worker.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert((int)HELD_BYTES_MAX <= (int)CONN_WRITE_MARK,
    "a turn behind held replies has room for some of its own");

static void
trim(struct buf *buf)
{
    buf_clear(buf);
    if (buf->capacity > CONN_IDLE_BYTES) {
        buf_fini(buf);
    }
}

static void
free_conn(struct conn *conn)
{
    /* libuv has given them back before */
    ASSERT(conn->sending == NULL && conn->lent == NULL);
    session_fini(&conn->session);
    conn__tls_free(conn);
    buf_fini(&conn->in);
    conn_room_note(&conn->worker->room, &conn->place, CONN_ROOM_REQUESTS, 0);
    buf_fini(&conn->queue);
    timing_destroy(conn);
    gate_drop(&conn->worker->gate, &conn->held);
    conn->magic = 0;
    free(conn);
}

static void
unlink_conn(struct conn *conn)
{
    struct worker *worker = conn->worker;
    if (conn->prev != NULL) {
        conn->prev->next = conn->next;
    } else {
        worker->conns = conn->next;
    }
    if (conn->next != NULL) {
        conn->next->prev = conn->prev;
    }
    if (!conn->session.is_inner) {
        conn_gauge_leave(worker->config.gauge);
    }
    worker__conn_gone(worker);
}

static void
on_close(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    ASSERT(conn->magic == CONN_MAGIC);
    conn__move(conn, CONN_CLOSED);
    if (!conn->is_parked) {
        unlink_conn(conn);
        free_conn(conn);
    }
}

void
conn_close(struct conn *conn)
{
    if (conn__is_tls(conn)) {
        conn__tls_end(conn); /* may fail to send, and be here again */
    }
    if (!conn_is_closing(conn)) {
        session_unwatch(&conn->session);
        worker__unwatch(conn->worker, conn);
        conn__notify_watchers(conn, WATCH_CONN_CLOSE);
        conn__move(conn, CONN_CLOSING);
        session_give_up(&conn->session);
        conn_list__remove(&conn->worker->conn_list, &conn->entry);
        conn__tls_cancel(conn);
        conn__drop_lent(conn);
        worker__unready(conn->worker, conn);
        /* requests only when they are freed, for they have a strict bound */
        conn_room_note(&conn->worker->room, &conn->place, CONN_ROOM_REQUESTS,
            conn->place.kind == CONN_ROOM_REQUESTS ? conn->place.bytes : 0);
        gate_drop(&conn->worker->gate, &conn->held);
        uv_close(&conn->uv.handle, on_close);
    }
}

static void
become_ready(struct conn *conn)
{
    if (!conn_is_closing(conn)) {
        worker__ready(conn->worker, conn);
    }
}

static void on_read(
    uv_stream_t *stream, ssize_t n_read, const uv_buf_t *read_buf);

static inline uv_buf_t
room_of(struct conn *conn)
{
    struct worker *worker = conn->worker;
    size_t kept = conn->in.len - conn->in_at;
    if (kept <= CONN_KEEP_BYTES) {
        if (kept > 0) {
            memcpy(worker->read_buf, conn->in.data + conn->in_at, kept);
        }
        return uv_buf_init(
            worker->read_buf + kept, (unsigned)(WORKER_READ_BYTES - kept));
    }
    buf_consume(&conn->in, conn->in_at);
    conn->in_at = 0;
    char *room = buf_reserve(&conn->in, CONN_KEEP_BYTES);
    size_t size = conn->in.capacity - conn->in.len;
    if (size > WORKER_READ_BYTES) {
        size = WORKER_READ_BYTES;
    }
    return uv_buf_init(room, room == NULL ? 0 : (unsigned)size);
}

uv_buf_t
conn__room(struct conn *conn)
{
    return room_of(conn);
}

/* Where the next read goes to (see the head of this file). */
static void
on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct conn *conn = handle->data;
    (void)suggested;
    if (!conn__make_room(conn, CONN_KEEP_BYTES)) {
        *out = uv_buf_init(NULL, 0);
        return;
    }
    *out = room_of(conn);
    if (session_is_stranger(&conn->session)) {
        out->len = conn__room_of_stranger(conn);
    } else if (conn__is_shared(conn, out->base) &&
        out->len > conn->read_bytes_max) {
        out->len = conn->read_bytes_max;
    }
}

static int
start_reading(struct conn *conn)
{
    return conn__is_tls(conn)
        ? uv_read_start(&conn->uv.stream, conn__tls_alloc, conn__tls_read)
        : uv_read_start(&conn->uv.stream, on_alloc, on_read);
}

static void
set_reading(struct conn *conn, bool reading)
{
    if (reading == conn->is_reading || conn_is_closing(conn)) {
        return;
    }
    ASSERT(!reading || (conn->stage == CONN_OPEN && !conn->has_ended));
    conn->is_reading = reading;
    if (!reading) {
        uv_read_stop(&conn->uv.stream);
    } else if (start_reading(conn) != 0) {
        conn_close(conn);
    }
}

void
conn__stop_reading(struct conn *conn)
{
    set_reading(conn, false);
}

void
conn__has_written(struct conn *conn, int status)
{
    worker__enter(conn->worker);
    conn->active_ms = conn__now_ms(conn->worker);
    conn__note_progress(conn);
    if (status < 0 || conn_is_closing(conn)) {
        conn_close(conn);
        return;
    }
    conn__write_queue(conn);
    conn__go_on_lending(conn);
    conn__note_room(conn);
    if (!conn__is_drained(conn)) {
        return;
    }
    if (conn->blocked_since_ms != 0) {
        timing_read(conn, conn->blocked_ns);
    }
    conn->blocked_since_ms = 0;
    become_ready(conn);
}

/* Keeps what a turn has left over. bytes is in the worker's read buffer or in
 * conn->in; consumed of the len are done with. False where memory is out. */
static bool
keep_rest(struct conn *conn, const char *bytes, size_t len, size_t consumed)
{
    if (bytes == conn->worker->read_buf) {
        conn->in_at = 0;
        buf_clear(&conn->in);
        buf_add(&conn->in, bytes + consumed, len - consumed);
        if (conn->in.failed) {
            return false;
        }
    } else {
        conn->in_at += consumed;
    }
    if (conn->in_at == conn->in.len) {
        conn->in_at = 0;
        trim(&conn->in);
    }
    return true;
}

/* Notes since when the bytes of one command have been waited for. A turn that
 * has begun a command, or ended the skipping of one, starts the time anew. */
static void
note_command(struct conn *conn, enum session_state state, bool has_begun)
{
    bool was_inside = conn->is_inside;
    conn->is_inside =
        session_waits_for_bytes(&conn->session, conn->in.len - conn->in_at);
    if (conn->is_inside && (!was_inside || has_begun)) {
        conn__note_progress(conn);
    }
    if (state != SESSION_READY || !conn->is_inside) {
        conn->command_since_ms = 0;
    } else if (conn->command_since_ms == 0 || has_begun) {
        conn->command_since_ms = conn__now_ms(conn->worker);
    }
}

/* Nothing goes on before the client has read. */
static void
note_blocked(struct conn *conn)
{
    if (conn->blocked_since_ms == 0) {
        conn->blocked_since_ms = conn__now_ms(conn->worker);
        conn->blocked_ns = clock_monotonic_ns();
        conn->blocked_bytes = conn__queued_bytes(conn);
    }
}

/* Closes when the replies on their way are sent. */
static void
finish(struct conn *conn)
{
    if (conn->stage == CONN_OPEN) {
        conn__move(conn, CONN_FINISHING);
    }
    set_reading(conn, false);
    if (conn__is_tls(conn) && conn->lent == NULL) {
        conn__tls_end(conn);
    }
    if (conn__queued_bytes(conn) != 0) {
        note_blocked(conn);
    } else if (conn->session.unsaid == 0 || !conn__linger(conn)) {
        conn_close(conn);
    }
}

/* What follows from the state in which a turn has ended. */
static void
after_turn(struct conn *conn, enum session_state state)
{
    bool drained = conn__is_drained(conn);
    switch (state) {
    case SESSION_READY:
        if (conn->has_ended) {
            finish(conn);
        } else {
            set_reading(conn, drained);
        }
        return;
    case SESSION_YIELD:
        metric_add(&conn->worker->metrics, METRIC_conn_yields, 1);
        set_reading(conn, false);
        become_ready(conn);
        return;
    case SESSION_FULL:
        set_reading(conn, false);
        if (conn->awaits_loan && conn__queued_bytes(conn) > 0) {
            note_blocked(conn); /* it goes on when a write is done */
        } else if (drained) {
            become_ready(conn);
        }
        return;
    case SESSION_PARKED:
        conn->is_parked = true;
        if (conn->has_ended) {
            session_hurry(&conn->session);
        }
        if (session_is_stranger(&conn->session)) {
            set_reading(conn, false); /* it has had its share of memory */
        }
        return;
    case SESSION_CLOSE:
        break;
    }
    conn__note_fault(conn);
    finish(conn);
}

/* Sends a turn's replies and notes since when they are not read. */
static void
send_replies(struct conn *conn, struct buf *out)
{
    conn__send_out(conn, out);
    if (!conn__is_drained(conn)) {
        note_blocked(conn);
    }
}

/* True where the next turn need not wait for what is held. */
static bool
may_go_on(const struct conn *conn)
{
    return conn->held_state == SESSION_YIELD && !held_is_full(&conn->held);
}

void
conn__answer(struct conn *conn, enum session_state state, struct buf *out)
{
    send_replies(conn, out);
    note_command(conn, state, true);
    after_turn(conn, state);
}

/* Ends a turn whose replies must wait. n_bytes: see timing_sent. */
static void
hold_turn(struct conn *conn, enum session_state state, struct buf *out,
    struct session_acks *acks, const struct timing_turn *timed, size_t n_bytes)
{
    conn->command_since_ms = 0; /* it is us who are slow */
    conn->held_state = state;
    conn->must_turn = false;
    conn->is_parked = state == SESSION_PARKED;
    if (state == SESSION_YIELD) {
        metric_add(&conn->worker->metrics, METRIC_conn_yields, 1);
    }
    if (session_is_stranger(&conn->session)) {
        set_reading(conn, false); /* as in after_turn */
    }
    if (!gate_hold(&conn->worker->gate, &conn->held, out, acks)) {
        conn__answer_unheld(conn, state, out, acks);
        timing_sent(conn, timed, state, n_bytes);
        return;
    }
    timing_hold(
        conn, timed, state, n_bytes, &conn->held.part[conn->held.n - 1].times);
    if (may_go_on(conn)) {
        become_ready(conn);
    }
}

void
conn_pass(struct held *held, struct buf *out)
{
    struct conn *conn =
        (struct conn *)((char *)held - offsetof(struct conn, held));
    enum session_state state = conn->held_state;
    ASSERT(conn->magic == CONN_MAGIC && conn->stage == CONN_OPEN);
    if (held->unsaid != 0) { /* while there is a connection to tell of */
        session_leave_unsaid(&conn->session, held->unsaid, true);
    }
    send_replies(conn, out);
    timing_pass(conn, held->passed);
    held->passed = NULL;
    conn__note_room(conn);
    if (held->unsaid != 0) {
        gate_drop(&conn->worker->gate, held);
        finish(conn);
        return;
    }
    if (conn__is_held(conn)) {
        if (may_go_on(conn)) {
            become_ready(conn);
        }
        return;
    }
    note_command(conn, state, true);
    if (state == SESSION_YIELD) {
        set_reading(conn, false);
        become_ready(conn);
    } else if ((state == SESSION_PARKED && !conn->is_parked) ||
        (state == SESSION_READY && conn->must_turn)) {
        become_ready(conn); /* there is something to go on with */
    } else {
        after_turn(conn, state);
    }
}

/* What the connection does until its next turn, for who looks at it. */
static void
show_state(struct conn *conn)
{
    enum conn_state state = CONN_STATE_READ;
    if (conn->stage != CONN_OPEN) {
        state = CONN_STATE_CLOSING;
    } else if (conn->is_parked || conn__is_held(conn)) {
        state = CONN_STATE_IO_QUEUE;
    } else if (conn->blocked_since_ms != 0) {
        state = CONN_STATE_MWRITE;
    } else if (session_is_skipping(&conn->session)) {
        state = CONN_STATE_SWALLOW;
    } else if (conn->command_since_ms != 0) {
        state = CONN_STATE_NREAD;
    }
    conn_entry_note(&conn->entry, state);
}

/* How much the next read may bring, after a turn on len bytes: less than there
 * is room for where the client does not read what it asks for, since what is
 * read and not done has to be kept. */
static void
choose_read(struct conn *conn, enum session_state state, size_t len)
{
    if (state == SESSION_FULL) {
        conn->read_bytes_max = CONN_READ_LEAST;
    } else if (len >= conn->read_bytes_max && len < WORKER_READ_BYTES) {
        conn->read_bytes_max *= 2; /* ends at WORKER_READ_BYTES */
    }
}

/* One huge value must not stay for good. */
static void
shrink(struct buf *buf)
{
    if (buf->capacity > 4 * (size_t)CONN_WRITE_MARK) {
        buf_clear(buf);
        buf_shrink(buf, WORKER_OUT_BYTES);
    }
}

static void
turn(struct conn *conn, const char *bytes, size_t len)
{
    struct session_acks *acks = &conn->worker->executor.acks;
    struct worker *worker = conn->worker;
    unsigned budget = worker->config.requests_per_turn;
    bool was_skipping = session_is_skipping(&conn->session);
    bool was_stranger = session_is_stranger(&conn->session);
    /* what is skipped is a value, and none of anybody's business */
    struct timing_turn timed = {bytes, was_skipping ? 0 : len};
    size_t consumed = 0;
    size_t queued = conn__queued_bytes(conn) + held_bytes(&conn->held);
    size_t mark_max = conn__write_mark(conn);
    size_t mark = queued < mark_max ? mark_max - queued : 0;
    if (worker->room.is_over) {
        mark = 0; /* what there is goes first, see conn_room.c */
    }
    conn__allow_loan(conn, queued);
    buf_clear(&worker->out);
    conn_entry_note(&conn->entry, CONN_STATE_PARSE_CMD);
    timing_begin(conn);
    enum session_state state = session_run(
        &conn->session, bytes, len, mark, &budget, &worker->out, &consumed);
    conn->awaits_loan = worker->executor.loan.is_awaited;
    if (bytes != worker->read_buf) {
        timing_keep(conn, &timed);
    }
    if (!keep_rest(conn, bytes, len, consumed)) {
        state =
            conn__forget_rest(conn, state, bytes + consumed, len - consumed);
    }
    if (!was_stranger && session_is_stranger(&conn->session)) {
        conn->stranger_ms = conn__now_ms(worker); /* it logs in anew */
    }
    if (conn->session.watcher != NULL) {
        worker__watches(worker, conn);
    }
    bool has_begun = budget < worker->config.requests_per_turn ||
        (was_skipping && !session_is_skipping(&conn->session));
    note_command(conn, state, has_begun);
    if (budget < worker->config.requests_per_turn) {
        conn_entry_note_command(&conn->entry, conn__loop_ns(worker));
        conn__note_progress(conn);
    }
    if (len >= CONN_READ_LEAST) {
        choose_read(conn, state, len);
    }
    size_t n_bytes = consumed + worker->out.len;
    conn_entry_note_bytes(&conn->entry, consumed, worker->out.len);
    if (conn_is_closing(conn) || worker->out.failed ||
        (!conn__is_held(conn) && gate_is_open(&worker->gate, acks))) {
        send_replies(conn, &worker->out);
        timing_sent(conn, &timed, state, n_bytes);
        after_turn(conn, state);
    } else {
        hold_turn(conn, state, &worker->out, acks, &timed, n_bytes);
    }
    if (worker->executor.loan.item != NULL) { /* it was not sent */
        loan_take_back(&worker->executor);
    }
    show_state(conn);
    if (conn__has_room(conn)) {
        conn__note_room(conn);
    }
    shrink(&worker->out);
    shrink(&worker->sealed);
}

/* A turn on what conn->in holds. */
static void
turn_on_kept(struct conn *conn)
{
    size_t len = conn->in.len - conn->in_at;
    turn(conn, len == 0 ? "" : conn->in.data + conn->in_at, len);
    conn__give_back(conn);
}

/* Keeps bytes that have arrived while replies are held or the store is waited
 * for: len of them in the worker's buffer, or they are in conn->in already. */
static void
keep_unread(struct conn *conn, size_t len)
{
    conn->must_turn = true;
    timing_arrive(conn);
    set_reading(conn, false);
    if (len > 0 && !keep_rest(conn, conn->worker->read_buf, len, 0)) {
        conn_close(conn);
        return;
    }
    conn__note_room(conn); /* before another one reads */
}

void
conn__ended(struct conn *conn)
{
    conn->reason = "normal";
    conn->has_ended = true;
    session_hurry(&conn->session);
    set_reading(conn, false);
    become_ready(conn);
}

static inline void
take(struct conn *conn, bool shared, size_t len)
{
    if (conn__is_held(conn) || conn->is_parked) {
        keep_unread(conn, shared ? len : 0);
    } else if (shared) {
        turn(conn, conn->worker->read_buf, len);
    } else {
        turn_on_kept(conn);
    }
}

void
conn__take(struct conn *conn, bool shared, size_t len)
{
    take(conn, shared, len);
}

static inline bool
has_read(struct conn *conn, ssize_t n_read)
{
    ASSERT(conn->magic == CONN_MAGIC);
    worker__enter(conn->worker);
    if (n_read == UV_EOF) {
        conn__ended(conn);
    } else if (n_read < 0) {
        conn__end_reading(conn, n_read);
        conn__give_back(conn);
    }
    if (n_read <= 0) {
        conn__note_room(conn); /* its buffer may have grown for nothing */
        return false;
    }
    conn->active_ms = conn__now_ms(conn->worker);
    return true;
}

bool
conn__has_read(struct conn *conn, ssize_t n_read)
{
    return has_read(conn, n_read);
}

static void
on_read(uv_stream_t *stream, ssize_t n_read, const uv_buf_t *read_buf)
{
    struct conn *conn = stream->data;
    struct worker *worker = conn->worker;
    if (!has_read(conn, n_read)) {
        return;
    }
    size_t n = (size_t)n_read;
    metric_add(&worker->metrics, METRIC_bytes_read, n);
    bool shared = conn__is_shared(conn, read_buf->base);
    size_t len = n;
    if (shared) {
        len += (size_t)(read_buf->base - worker->read_buf);
    } else {
        conn->in.len += n;
    }
    take(conn, shared, len);
}

void
conn_continue(struct conn *conn)
{
    ASSERT(conn->magic == CONN_MAGIC);
    if (conn__is_held(conn) && !may_go_on(conn)) {
        conn->must_turn = true;
        return;
    }
    if (conn_is_closing(conn) || conn->lent != NULL) {
        return;
    }
    if (conn->stage == CONN_LINGERING &&
        conn->session.stage != SESSION_ENDING) {
        return; /* until the client closes, or the sweep does */
    }
    if (conn->stage != CONN_OPEN) {
        finish(conn);
    } else if (!conn->is_parked) {
        turn_on_kept(conn);
    }
}

bool
conn__unpark(struct conn *conn)
{
    ASSERT(conn->magic == CONN_MAGIC && conn->is_parked);
    conn->is_parked = false;
    conn->active_ms = conn__now_ms(conn->worker);
    if (conn->stage == CONN_CLOSED) {
        unlink_conn(conn);
        free_conn(conn);
        return false;
    }
    return !conn_is_closing(conn);
}

void
conn_woken(struct conn *conn)
{
    ASSERT(conn->magic == CONN_MAGIC);
    session_wake(&conn->session);
    if (conn__unpark(conn) && !conn__is_held(conn) &&
        conn->stage == CONN_OPEN) {
        turn_on_kept(conn);
    }
}

void
conn_end(struct conn *conn)
{
    session_end(&conn->session);
    set_reading(conn, false);
    become_ready(conn);
}

/* The store's answer to the session's call: any thread. */
static void
on_wake(struct session *session)
{
    struct conn *conn =
        (struct conn *)((char *)session - offsetof(struct conn, session));
    struct worker *worker = conn->worker;
    ASSERT(conn->magic == CONN_MAGIC);
    if (!worker__wakes(worker, conn)) {
        worker__mail_woken(worker, conn);
    }
}

/* A watcher's lines: the hub's thread. */
static void
on_lines(struct session *session)
{
    struct conn *conn =
        (struct conn *)((char *)session - offsetof(struct conn, session));
    ASSERT(conn->magic == CONN_MAGIC);
    worker__mail_lines(conn->worker);
}

static int
open_handle(struct conn *conn, int fd, bool is_unix)
{
    uv_loop_t *loop = &conn->worker->loop;
    int err;
    if (is_unix) {
        uv_pipe_init(loop, &conn->uv.pipe, 0);
        err = uv_pipe_open(&conn->uv.pipe, fd);
    } else {
        uv_tcp_init(loop, &conn->uv.tcp);
        err = uv_tcp_open(&conn->uv.tcp, fd);
    }
    conn->uv.handle.data = conn;
    return err;
}

void
conn_open(struct worker *worker, const struct mail_fd *mail)
{
    int one = 1;
    int fd = mail->fd;
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        conn__turn_away(worker, mail);
        return;
    }
    conn->magic = CONN_MAGIC;
    conn->worker = worker;
    conn->stranger_ms = conn__now_ms(worker);
    conn->active_ms = conn->stranger_ms;
    conn__note_progress(conn);
    conn->read_bytes_max = CONN_READ_FIRST;
    session_init(&conn->session, &worker->executor, on_wake);
    conn->session.lines_fn = on_lines;
    if (mail->is_inner) {
        conn->session.is_inner = true;
        conn->session.rank = ACCESS_WRITER;
    }
    conn->session.fd = fd;
    conn->peer = mail->peer;
    conn->session.from = conn__from(&conn->peer);
    conn->peer.is_unix = mail->is_unix;
    conn->session.peer = &conn->peer;
    conn->session.shown_pass = &conn->entry.pass;
    conn__notify_watchers(conn, WATCH_CONN_NEW);
    if (mail->binding != SESSION_AUTO) {
        conn->session.binding = mail->binding;
    }
    conn->tls_use = mail->tls_use;
    conn->next = worker->conns;
    if (conn->next != NULL) {
        conn->next->prev = conn;
    }
    worker->conns = conn;
    conn->entry.is_tls = conn__is_tls(conn);
    conn_list__add(
        &worker->conn_list, &conn->entry, fd, conn__loop_ns(worker));
    if (open_handle(conn, fd, mail->is_unix) != 0) {
        conn_close(conn);
        close(fd); /* libuv has not taken it */
        return;
    }
    if (!mail->is_unix) {
        (void)uv_tcp_nodelay(&conn->uv.tcp, 1); /* without it: only slower */
        /* finds out about peers that vanished, in the system's time */
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    }
    if (conn__is_tls(conn) && !conn__tls_begin(conn)) {
        conn_close(conn);
        return;
    }
    set_reading(conn, true);
}
