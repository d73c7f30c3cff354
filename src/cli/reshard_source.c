/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes between a socket and the pure end of the link: what it orders is sent
 * as the socket takes it, which is little: hello, want, and how far all is. */
#include "cli/reshard_source.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

enum { US_PER_MS = 1000, NS_PER_US = 1000, OUT_BYTES_MAX = 1 << 16 };

static uint64_t
now_us(void)
{
    return clock_monotonic_ns() / NS_PER_US;
}

static bool
fail(struct reshard_source *source, const char *what)
{
    (void)snprintf(source->why, sizeof source->why, "%.80s: %.110s",
        source->talk.at.text, what);
    reshard_source_close(source);
    return false;
}

int
reshard_source_init(struct reshard_source *source)
{
    source->in = malloc(RESHARD_SOURCE_READ_BYTES);
    source->node.history = &source->history;
    source->talk.fd = -1;
    return source->in == NULL ? ERR_NO_MEMORY : 0;
}

void
reshard_source_fini(struct reshard_source *source)
{
    reshard_source_close(source);
    talk_fini(&source->talk);
    buf_fini(&source->out);
    free(source->in);
    source->in = NULL;
}

void
reshard_source_close(struct reshard_source *source)
{
    if (source->is_open) {
        stream_reader_fini(&source->reader);
    }
    source->is_open = false;
    talk_close(&source->talk);
    buf_clear(&source->out);
}

/* Why the link has ended, for people. */
static bool
fail_as_ended(struct reshard_source *source)
{
    const struct link_end *end = &source->link.call.end;
    char what[MESSAGE_TEXT_MAX + 40];
    if (end->reason == LINK_TOLD) {
        (void)snprintf(
            what, sizeof what, "it says: %.*s", (int)end->text_len, end->text);
    } else {
        (void)snprintf(what, sizeof what, "%s", link_reason_text(end->reason));
    }
    return fail(source, what);
}

/* Puts what the link wants to say to out. False: it has ended. */
static bool
take_orders(struct reshard_source *source)
{
    while (source->out.len < OUT_BYTES_MAX) {
        struct link_order order;
        uint8_t frame[LINK_SEND_MAX];
        link_feed_next(&source->link, &source->node, now_us(), frame, &order);
        if (order.what == LINK_WAIT) {
            return true;
        }
        if (order.what != LINK_SEND) {
            return false;
        }
        buf_add(&source->out, frame, order.len);
    }
    return true;
}

/* Sends what the socket takes of it. False: the connection is over. */
static bool
send_some(struct reshard_source *source)
{
    while (source->out.len > 0) {
        ssize_t n = send(
            source->talk.fd, source->out.data, source->out.len, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        buf_consume(&source->out, (size_t)n);
    }
    return true;
}

static bool
move(struct reshard_source *source)
{
    bool is_going = take_orders(source);
    if (source->out.failed) {
        return fail(source, "out of memory");
    }
    if (!send_some(source)) {
        return fail(source, strerror(errno));
    }
    return is_going || fail_as_ended(source);
}

void
reshard_source_tick(struct reshard_source *source)
{
    if (source->is_open) {
        source->node.is_paused = true;
        (void)take_orders(source);
        (void)send_some(source);
        source->node.is_paused = false;
    }
}

static bool
take_frame(struct reshard_source *source, const struct stream_frame *frame)
{
    struct link_feed *link = &source->link;
    enum link_step step = link_feed_take(link, &source->node, frame, now_us());
    if (frame->type == STREAM_WELCOME && link->verdict == MESSAGE_SNAPSHOT) {
        /* all begins there, which may be before what was had of another node */
        source->node.written = source->node.synced = source->node.applied =
            link->verdict_seq;
    }
    if (step == LINK_YOURS &&
        !source->batches_fn(
            source->context, &link->batches, link->is_schema)) {
        source->why[0] = '\0';
        reshard_source_close(source);
        return false;
    }
    source->is_told = source->is_told || frame->type == STREAM_HEARTBEAT ||
        (step == LINK_YOURS && !link->is_schema);
    source->reader.session = link->call.session;
    return move(source);
}

static bool
take_bytes(struct reshard_source *source, size_t len)
{
    const uint8_t *at = source->in;
    struct stream_frame frame;
    while (true) {
        switch (stream_read(&source->reader, &at, &len, &frame)) {
        case STREAM_MORE:
            return true;
        case STREAM_WRONG:
            link_feed_wrong(&source->link, &source->reader.fault);
            (void)move(source);
            return fail(source, "what it sends is no stream of tallyd");
        case STREAM_FRAME:
            if (!take_frame(source, &frame)) {
                return false;
            }
        }
    }
}

bool
reshard_source_read(struct reshard_source *source, unsigned wait_ms)
{
    ASSERT(source->is_open);
    if (!move(source)) {
        return false;
    }
    struct pollfd wait = {.fd = source->talk.fd,
        .events = (short)(POLLIN | (source->out.len > 0 ? POLLOUT : 0))};
    int n = poll(&wait, 1, (int)wait_ms);
    if (n < 0 && errno != EINTR) {
        return fail(source, strerror(errno));
    }
    if (n <= 0 || (wait.revents & ~POLLOUT) == 0) {
        return move(source);
    }
    ssize_t got =
        recv(source->talk.fd, source->in, RESHARD_SOURCE_READ_BYTES, 0);
    if (got == 0) {
        return fail(source, "it has ended the connection");
    }
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ||
            fail(source, strerror(errno));
    }
    link_feed_heard(&source->link, now_us());
    return take_bytes(source, (size_t)got);
}

static void
set_text(struct message_text *text, const char *from)
{
    *text =
        (struct message_text){(const uint8_t *)from, (uint8_t)strlen(from)};
}

static bool
begin(struct reshard_source *source)
{
    uint8_t nonce[STREAM_NONCE_BYTES];
    struct message_text rule;
    source->self = (struct link_self){.secret = &source->secret,
        .formats = {.entry = ENTRY_KIND_NEWEST, .manifest = 1, .segment = 1},
        .hello_flags = HELLO_NEVER_VOTES,
        .timeout_us = (uint64_t)RESHARD_SOURCE_TIMEOUT_MS * US_PER_MS};
    set_text(&source->self.group, source->group);
    set_text(&source->self.name, "tallyctl-reshard");
    set_text(&rule, source->rule);
    source->node.synced = source->node.applied = source->node.written;
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        return fail(source, "no random numbers");
    }
    if (stream_reader_init(&source->reader) != 0) {
        return fail(source, "out of memory");
    }
    source->is_open = true;
    source->is_told = false;
    link_feed_init(&source->link, &source->self, &rule, nonce, now_us());
    return true;
}

bool
reshard_source_open(struct reshard_source *source)
{
    ASSERT(!source->is_open);
    if (!talk_connect(&source->talk)) {
        memcpy(source->why, source->talk.why, sizeof source->why);
        return false;
    }
    if (!begin(source)) {
        return false;
    }
    while (source->link.directory.epoch == 0) {
        if (!reshard_source_read(source, TALK_TICK_MS)) {
            return false;
        }
    }
    return true;
}
