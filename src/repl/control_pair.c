/* SPDX-License-Identifier: BSD-3-Clause */
/* A packet goes whole or not at all; so what could not be sent was not asked.
 * Both ends are one program, yet what comes is looked at: a process that speaks
 * to the network must not be able to break the other one. */
#include "repl/control_pair.h"

#include "base/assert.h"
#include "repl/control_frame.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

static int
send_packet(int fd, const uint8_t *bytes, size_t len)
{
    ssize_t n;
    do {
        n = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n >= 0) {
        ASSERT((size_t)n == len);
        return 0;
    }
    return errno == EAGAIN || errno == ENOBUFS ? EAGAIN : EPIPE;
}

/* One byte more than any packet has: a longer one is seen to be that. */
static int
receive_packet(int fd, uint8_t bytes[CONTROL_FRAME_MAX + 1], size_t *len)
{
    ssize_t n;
    do {
        n = recv(fd, bytes, CONTROL_FRAME_MAX + 1, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) { /* nobody sends an empty packet */
        return n < 0 && errno == EAGAIN ? EAGAIN : EPIPE;
    }
    *len = (size_t)n;
    return 0;
}

static bool
pair_ask(struct control *control, const struct control_request *request)
{
    uint8_t bytes[CONTROL_FRAME_MAX];
    struct control_pair *pair = (struct control_pair *)control;
    size_t len = control_frame__put_request(request, bytes);
    return !pair->is_gone && send_packet(pair->fd, bytes, len) == 0;
}

static const struct control_calls pair_calls = {.ask = pair_ask};

void
control_pair__init(struct control_pair *pair, int fd,
    control_event_fn *event_fn, void *context)
{
    _Static_assert(offsetof(struct control_pair, control) == 0,
        "a control is the pair that it is of");
    *pair = (struct control_pair){.fd = fd,
        .control = {
            .calls = &pair_calls, .event_fn = event_fn, .context = context}};
}

void
control_pair__turn(struct control_pair *pair)
{
    uint8_t bytes[CONTROL_FRAME_MAX + 1];
    struct control_event event;
    size_t len = 0;
    while (!pair->is_gone) {
        int number = receive_packet(pair->fd, bytes, &len);
        if (number == EAGAIN) {
            return;
        }
        const struct control *control = &pair->control;
        if (number == 0 && control_frame__get_event(bytes, len, &event)) {
            control->event_fn(control->context, &event);
            continue;
        }
        pair->is_gone = true;
        control->event_fn(control->context, NULL);
    }
}

int
control_pair_say(int fd, const struct control_event *event)
{
    uint8_t bytes[CONTROL_FRAME_MAX];
    size_t len = control_frame__put_event(event, bytes);
    return send_packet(fd, bytes, len);
}

int
control_pair_hear(int fd, struct control_request *out)
{
    uint8_t bytes[CONTROL_FRAME_MAX + 1];
    size_t len = 0;
    int number = receive_packet(fd, bytes, &len);
    if (number != 0) {
        return number;
    }
    return control_frame__get_request(bytes, len, out) ? 0 : EBADMSG;
}
