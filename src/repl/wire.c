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
 * What can go wrong: the other end is gone, or memory is out for what has to be
 * kept. Then has_failed is set, and moved_fn is called once more at least: the
 * owner closes. */
#include "repl/wire.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/steps.h"

#include <errno.h>
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
        events |= wire->is_reading ? UV_READABLE : 0;
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
    wire->is_reading = false;
    uv_timer_start(&wire->timer, on_timer, WIRE_LINGER_MS, 0);
    if (wire->has_failed || wire->out.len == wire->out_at) {
        linger(wire);
    } else {
        move_to(wire, WIRE_ENDING);
    }
    set_events(wire);
}

int
wire_open(struct wire *wire, uv_loop_t *loop, int fd)
{
    wire->fd = fd;
    wire->state = WIRE_OPEN;
    wire->events = 0;
    if (uv_poll_init(loop, &wire->poll, fd) != 0) {
        close(fd);
        return ERR_SYSTEM;
    }
    uv_timer_init(loop, &wire->timer);
    wire->poll.data = wire->timer.data = wire;
    wire->n_open = 2;
    wire->magic = WIRE_MAGIC;
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

bool
wire_read(struct wire *wire, uint8_t *bytes, size_t size, size_t *len)
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
    set_events(wire);
    return false;
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

void
wire_send(struct wire *wire, const uint8_t *bytes, size_t len)
{
    size_t done;

    ASSERT(wire_has_room(wire));
    buf_clear(&wire->out);
    wire->out_at = 0;
    done = write_some(wire, bytes, len);
    if (done < len && !wire->has_failed) {
        buf_add(&wire->out, bytes + done, len - done);
        if (wire->out.failed) {
            fail(wire, "memory is out");
        }
    }
    set_events(wire);
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

/* Drops what comes. */
static void
drop(struct wire *wire)
{
    uint8_t bytes[4096];
    size_t len;

    if (!wire_read(wire, bytes, sizeof bytes, &len)) {
        wire_close(wire);
    }
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
    if (wire->state == WIRE_LINGERING) {
        drop(wire);
    } else if (wire->state == WIRE_ENDING) {
        if (wire->has_failed) {
            wire_close(wire);
        } else if (wire->out.len == wire->out_at) {
            linger(wire);
        }
    } else {
        wire->moved_fn(wire);
    }
    set_events(wire);
}
