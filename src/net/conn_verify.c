/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of a connection: the steps it may go, and what it keeps
 * between two turns.
 *
 *   OPEN ----> FINISHING ----> LINGERING ----> CLOSING ----> CLOSED
 *     |            |                              ^
 *     +------------+------------------------------+
 *
 * OPEN:      turns are run. Whatever stops the reading begins it again.
 * FINISHING: the last turn is over and nothing is held. Nothing is read; what
 *            is queued is sent.
 * LINGERING: all is sent. What still comes is dropped, until the client closes
 *            or two seconds are over. Only where it was not told something.
 * CLOSING:   any of these, at a fault or a deadline: libuv has been asked.
 * CLOSED:    the socket is gone. The memory goes at once, or, while it is
 *            parked, with the answer.
 *
 * Whether it is parked, has replies held, or has had the client's last byte is
 * not part of that: a connection may be closed while it waits for the store.
 *
 * The worker looks at all of its connections when it looks at their deadlines;
 * in tests, before each poll. */
#include "net/conn_priv.h"

#include "base/assert.h"
#include "base/steps.h"

void
conn__move(struct conn *conn, enum conn_stage to)
{
    static const unsigned steps[] = {
        [CONN_OPEN] = STEP_TO(CONN_FINISHING) | STEP_TO(CONN_CLOSING),
        [CONN_FINISHING] = STEP_TO(CONN_LINGERING) | STEP_TO(CONN_CLOSING),
        [CONN_LINGERING] = STEP_TO(CONN_CLOSING),
        [CONN_CLOSING] = STEP_TO(CONN_CLOSED),
        [CONN_CLOSED] = 0,
    };
    ASSERT_STEP(steps, conn->stage, to);
    conn->stage = (uint8_t)to;
}

/* True where libuv is to call something, or the ready list has it. */
static bool
is_under_way(const struct conn *conn)
{
    return conn->is_ready || conn->sending != NULL || conn->lent != NULL ||
        conn__queued_bytes(conn) > 0;
}

/* Each open connection waits for something that will come. */
static void
verify_stage(const struct conn *conn)
{
    switch ((enum conn_stage)conn->stage) {
    case CONN_OPEN:
        ASSERT(conn->is_reading || conn->is_parked || conn__is_held(conn) ||
            is_under_way(conn));
        ASSERT(!conn->is_reading || !conn->has_ended);
        return;
    case CONN_FINISHING:
        ASSERT(!conn->is_reading && !conn__is_held(conn));
        ASSERT(is_under_way(conn));
        return;
    case CONN_LINGERING:
        ASSERT(!conn->is_reading && !conn__is_held(conn));
        ASSERT(conn->session.unsaid != 0 && !conn->has_ended);
        return;
    case CONN_CLOSED:
        ASSERT(conn->is_parked && conn->sending == NULL && conn->lent == NULL);
        /* fall through */
    case CONN_CLOSING:
        ASSERT(uv_is_closing(&conn->uv.handle));
        ASSERT(!conn->is_ready && !conn__is_held(conn));
        ASSERT(
            conn->place.bytes == 0 || conn->place.kind == CONN_ROOM_REQUESTS);
        return;
    }
    ASSERT(false);
}

/* Bytes that were read, and replies that were not. */
static void
verify_bytes(const struct conn *conn)
{
    const struct conn_place *place = &conn->place;
    size_t kept = conn->in.capacity;
    ASSERT(conn->in_at <= conn->in.len && conn->in.len <= kept);
    ASSERT(conn->in_at == 0 || conn->in_at < conn->in.len);
    ASSERT(conn->queue.len <= conn->queue.capacity);
    ASSERT(conn->read_bytes_max >= CONN_READ_LEAST &&
        conn->read_bytes_max <= WORKER_READ_BYTES);
    ASSERT(place->bytes == 0 || place->bytes >= CONN_ROOM_COUNTS);
    if (conn_is_closing(conn)) {
        return;
    }
    /* one write of libuv at a time; what is behind it waits */
    ASSERT(conn->queue.len == 0 || conn->sending != NULL);
    if (conn->worker->room.rooms != NULL &&
        place->kind == CONN_ROOM_REQUESTS && !conn->is_parked &&
        !conn__is_held(conn)) { /* else some is noted only by the next turn */
        ASSERT(kept < CONN_ROOM_COUNTS || kept <= place->bytes);
    }
}

void
conn_verify(const struct conn *conn)
{
    ASSERT(conn->magic == CONN_MAGIC);
    ASSERT(conn->session.magic == SESSION_MAGIC);
    ASSERT(conn->session.executor == &conn->worker->executor);
    ASSERT(conn->uv.handle.data == conn);
    ASSERT(conn->is_parked ==
        (session_is_parked(&conn->session) || conn__tls_is_away(conn)));
    verify_stage(conn);
    verify_bytes(conn);
    held_verify(&conn->held);
}

/* The list of those to go on with, which has all of them. */
static void
verify_ready(const struct worker *worker)
{
    const struct conn *last = NULL;
    unsigned n = 0;
    for (struct conn *conn = worker->first_ready;
         conn != NULL && n < worker->n_ready; conn = conn->next_ready) {
        ASSERT(conn->magic == CONN_MAGIC && conn->is_ready);
        last = conn;
        n++;
    }
    ASSERT(n == worker->n_ready && (n == 0 || worker->last_ready == last));
}

void
conn_verify_all(const struct worker *worker)
{
    const struct conn *before = NULL;
    unsigned n_ready = 0;
    unsigned n_held = 0;
    ASSERT(worker->magic == WORKER_MAGIC);
    for (const struct conn *conn = worker->conns; conn != NULL;
         conn = conn->next) {
        ASSERT(conn->worker == worker && conn->prev == before);
        conn_verify(conn);
        n_ready += conn->is_ready;
        n_held += conn__is_held(conn);
        before = conn;
    }
    ASSERT(n_ready == worker->n_ready);
    ASSERT(n_held == gate_verify(&worker->gate));
    verify_ready(worker);
    conn__tls_verify(worker);
    conn_room_verify(worker);
}
