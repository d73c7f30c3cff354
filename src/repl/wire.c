/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a wire:
 *
 *   OPEN --> ENDING --> LINGERING --> CLOSED
 *     |        |                        ^
 *     +--------+------------------------+
 *
 * What is sent goes to the socket at once; what that does not take is kept, and
 * written when there is room. So at most what was given by one wire_send waits.
 *
 * With TLS a handshake comes first, of which nobody hears; what is read and
 * sent goes through a stream of it, and what waits are its records.
 *
 * What can go wrong: the other end is gone, or memory is out for what has to be
 * kept. Then has_failed is set: who has read or sent looks at it, and
 * closes. */
#include "repl/wire.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/steps.h"
#include "net/tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const unsigned may_lead[WIRE_STATES_N] = {
    [WIRE_OPEN] =
        STEP_TO(WIRE_ENDING) | STEP_TO(WIRE_LINGERING) | STEP_TO(WIRE_CLOSED),
    [WIRE_ENDING] = STEP_TO(WIRE_LINGERING) | STEP_TO(WIRE_CLOSED),
    [WIRE_LINGERING] = STEP_TO(WIRE_CLOSED),
    [WIRE_CLOSED] = 0};

static void
move_to(struct wire *wire, enum wire_state state)
{
    ASSERT_STEP(may_lead, wire->state, state);
    wire->state = state;
}

static void
fail(struct wire *wire, const char *why)
{
    if (!wire->has_failed) {
        wire->has_failed = true;
        wire->why = why;
    }
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* Waits for what it is to wait for. Of a wire that has failed nothing. */
static void
set_events(struct wire *wire)
{
    int events = 0;

    if (wire->state == WIRE_CLOSED) {
        return;
    }
    if (!wire->has_failed) {
        events |= wire->is_reading || wire->is_shaking ? UV_READABLE : 0;
        events |= wire->out.len > wire->out_at ? UV_WRITABLE : 0;
    }
    if (events == wire->events) {
        return;
    }
    wire->events = events;
    if (events == 0) {
        uv_poll_stop(&wire->poll);
    } else {
        uv_poll_start(&wire->poll, events, on_poll);
    }
}

/* How many of the bytes the socket takes. */
static size_t
write_some(struct wire *wire, const uint8_t *bytes, size_t len)
{
    size_t done = 0;

    while (done < len) {
        ssize_t n = send(wire->fd, bytes + done, len - done, MSG_NOSIGNAL);

        if (n > 0) {
            done += (size_t)n;
            wire->bytes_out += (uint64_t)n;
        } else if (n < 0 && errno != EINTR) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                fail(wire, "the connection is broken");
            }
            break;
        }
    }
    return done;
}

/* Goes on with what waits. */
static void
flush(struct wire *wire)
{
    wire->out_at +=
        write_some(wire, (const uint8_t *)wire->out.data + wire->out_at,
            wire->out.len - wire->out_at);
    if (wire->out_at < wire->out.len) {
        return;
    }
    buf_clear(&wire->out);
    wire->out_at = 0;
    if (wire->out.capacity > WIRE_KEPT_BYTES) {
        buf_fini(&wire->out);
    }
}

static void
on_closed(uv_handle_t *handle)
{
    struct wire *wire = handle->data;

    ASSERT(wire->magic == WIRE_MAGIC && wire->n_open > 0);
    if (--wire->n_open > 0) {
        return;
    }
    if (wire->fd >= 0) {
        close(wire->fd);
    }
    buf_fini(&wire->out);
    tls_stream_close(&wire->tls);
    free(wire->records);
    wire->records = NULL;
    wire->magic = 0;
    wire->closed_fn(wire);
}

void
wire_close(struct wire *wire)
{
    if (wire->state == WIRE_CLOSED) {
        return;
    }
    move_to(wire, WIRE_CLOSED);
    uv_close((uv_handle_t *)&wire->poll, on_closed);
    uv_close((uv_handle_t *)&wire->timer, on_closed);
}

static void
on_timer(uv_timer_t *timer)
{
    wire_close(timer->data);
}

/* All is written: the other end is told. */
static void
linger(struct wire *wire)
{
    if (wire->has_failed || shutdown(wire->fd, SHUT_WR) != 0) {
        wire_close(wire);
        return;
    }
    move_to(wire, WIRE_LINGERING);
    wire->is_reading = true;
}

void
wire_end(struct wire *wire)
{
    if (wire->state != WIRE_OPEN) {
        return;
    }
    wire->is_reading = wire->is_shaking = false;
    if (wire->tls != NULL && !wire->has_failed) {
        tls_stream_shut(wire->tls, &wire->out);
        flush(wire);
    }
    uv_timer_start(&wire->timer, on_timer, WIRE_LINGER_MS, 0);
    if (wire->has_failed || wire->out.len == wire->out_at) {
        linger(wire);
    } else {
        move_to(wire, WIRE_ENDING);
    }
    set_events(wire);
}

/* Goes on with the handshake. */
static void
shake(struct wire *wire)
{
    switch (tls_stream_shake(wire->tls, &wire->out)) {
    case TLS_STEP_MORE:
        break;
    case TLS_STEP_DONE:
        wire->is_shaking = false;
        break;
    default:
        fail(wire, tls_stream_why(wire->tls));
    }
    flush(wire);
}

/* 0, or ERR_NO_MEMORY. */
static int
open_tls(struct wire *wire, struct tls *tls, bool is_client)
{
    int err;

    if (tls == NULL) {
        return 0;
    }
    wire->records = malloc(WIRE_RECORD_BYTES);
    if (wire->records == NULL) {
        return ERR_NO_MEMORY;
    }
    err = is_client ? tls_stream_open_client(tls, &wire->tls)
                    : tls_stream_open(tls, TLS_USE_KNOWN, &wire->tls);
    wire->is_shaking = err == 0;
    return err;
}

/* A frame is sent at once: the next one of a primary is not to wait until the
 * replica has acknowledged the one before. Without it, and where it is no
 * socket of TCP, it is only slower. */
static void
send_at_once(int fd)
{
    const int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int
wire_open(struct wire *wire, uv_loop_t *loop, int fd, struct tls *tls,
    bool is_client)
{
    int err = open_tls(wire, tls, is_client);

    send_at_once(fd);

    if (err == 0 && uv_poll_init(loop, &wire->poll, fd) != 0) {
        err = ERR_SYSTEM;
    }
    if (err != 0) {
        tls_stream_close(&wire->tls);
        free(wire->records);
        close(fd);
        return err;
    }
    wire->fd = fd;
    wire->state = WIRE_OPEN;
    uv_timer_init(loop, &wire->timer);
    wire->poll.data = wire->timer.data = wire;
    wire->n_open = 2;
    wire->magic = WIRE_MAGIC;
    if (wire->is_shaking && is_client) {
        shake(wire);
    }
    set_events(wire);
    return 0;
}

void
wire_read_on(struct wire *wire, bool is_reading)
{
    if (wire->state == WIRE_OPEN) {
        wire->is_reading = is_reading;
        set_events(wire);
    }
}

/* Takes bytes from the socket; *len is 0 where there are none. */
static bool
take(struct wire *wire, void *bytes, size_t size, size_t *len)
{
    ssize_t n;

    *len = 0;
    if (wire->has_failed) {
        return false;
    }
    do {
        n = recv(wire->fd, bytes, size, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        *len = (size_t)n;
        wire->bytes_in += (uint64_t)n;
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        return true;
    }
    fail(wire, n == 0 ? "it has closed" : "the connection is broken");
    return false;
}

/* Reads what the records that were taken have. False: no more will come. */
static bool
open_records(struct wire *wire, uint8_t *bytes, size_t size, size_t *len)
{
    enum tls_step step = TLS_STEP_DONE;

    while (step == TLS_STEP_DONE && *len < size) {
        size_t n;

        step = tls_stream_read(
            wire->tls, (char *)bytes + *len, size - *len, &n, &wire->out);
        *len += n;
    }
    if (step == TLS_STEP_ENDED) {
        fail(wire, "it has closed");
    } else if (step == TLS_STEP_FAILED) {
        fail(wire, tls_stream_why(wire->tls));
    }
    return step == TLS_STEP_MORE;
}

/* No more is taken from the socket than there is room for when it is plain: so
 * nothing stays in the stream, of which the loop would not tell. */
static bool
read_records(struct wire *wire, uint8_t *bytes, size_t size, size_t *len)
{
    while (open_records(wire, bytes, size, len) &&
        size - *len >= WIRE_RECORD_BYTES + TLS_RECORD_MAX) {
        size_t n;

        if (!take(wire, wire->records, WIRE_RECORD_BYTES, &n)) {
            return false;
        }
        if (n == 0) {
            break;
        }
        tls_stream_put(wire->tls, wire->records, n);
    }
    return !wire->has_failed;
}

bool
wire_read(struct wire *wire, uint8_t *bytes, size_t size, size_t *len)
{
    bool is_more;

    ASSERT(size >= WIRE_READ_LEAST);
    *len = 0;
    if (wire->has_failed) {
        return false;
    }
    if (wire->tls == NULL) {
        is_more = take(wire, bytes, size, len);
    } else {
        is_more = read_records(wire, bytes, size, len);
        if (wire->out.len > wire->out_at && !wire->has_failed) {
            flush(wire);
        }
    }
    set_events(wire);
    return is_more;
}

void
wire_send(struct wire *wire, const uint8_t *bytes, size_t len)
{
    size_t done;

    ASSERT(wire_has_room(wire));
    buf_clear(&wire->out);
    wire->out_at = 0;
    if (wire->tls != NULL) {
        if (!tls_stream_write(
                wire->tls, (const char *)bytes, len, &wire->out)) {
            fail(wire, tls_stream_why(wire->tls));
        }
        flush(wire);
        set_events(wire);
        return;
    }
    done = write_some(wire, bytes, len);
    if (done < len && !wire->has_failed) {
        buf_add(&wire->out, bytes + done, len - done);
        if (wire->out.failed) {
            fail(wire, "memory is out");
        }
    }
    set_events(wire);
}

/* Drops what comes. */
static void
drop(struct wire *wire)
{
    uint8_t bytes[4096];
    size_t len;

    if (!take(wire, bytes, sizeof bytes, &len)) {
        wire_close(wire);
    }
}

/* Takes the records of a handshake. */
static void
take_handshake(struct wire *wire)
{
    size_t len;

    if (!take(wire, wire->records, WIRE_RECORD_BYTES, &len) || len == 0) {
        return;
    }
    tls_stream_put(wire->tls, wire->records, len);
    shake(wire);
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct wire *wire = poll->data;

    ASSERT(wire->magic == WIRE_MAGIC);
    if (wire->state == WIRE_CLOSED) {
        return;
    }
    if (status < 0) {
        fail(wire, "the connection is broken");
    } else if ((events & UV_WRITABLE) != 0 && wire->out.len > wire->out_at) {
        flush(wire);
    }
    if (wire->is_shaking && (events & UV_READABLE) != 0) {
        take_handshake(wire);
    }
    if (wire->state == WIRE_LINGERING) {
        drop(wire);
    } else if (wire->state == WIRE_ENDING) {
        if (wire->has_failed) {
            wire_close(wire);
        } else if (wire->out.len == wire->out_at) {
            linger(wire);
        }
    } else if (!wire->is_shaking || wire->has_failed) {
        wire->moved_fn(wire);
    }
    set_events(wire);
}
