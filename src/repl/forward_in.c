/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections inside a primary by which workers do what a replica asks for:
 *
 *   REQUEST --> commands, then one that only answers --> socket pair --> worker
 *   REPLY   <-- all before that answer               <--
 *
 *   IDLE --> ASKED --> ANSWERED --> IDLE
 *              +--------> the worker has closed it --> UNSURE, and it is closed
 *
 * Each has one request at a time, and its commands are of one protocol; so all
 * that comes up to the last answer is the reply, whatever of the commands has a
 * reply. That answer is held by the worker until the changes before it are
 * committed, as theirs are: when it is here the batches up to the committed one
 * have all that was done.
 *
 * There are as many as a replica has requests under way, NODE_FORWARD_WINDOW at
 * most; who has more breaks the protocol. */
#include "repl/forward_in.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "repl/message_forward.h"
#include "repl/node_priv.h"
#include "repl/sender_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FORWARD_MAGIC = 0x66776463,
    READ_BYTES = 16 << 10,
    PACKET_HEAD = 24, /* of the binary protocol */
    PACKET_NOOP = 0x0a
};

enum forward_state { FORWARD_IDLE, FORWARD_ASKED, FORWARD_ANSWERED };

struct forward_conn {
    uv_poll_t poll;
    uint32_t magic;
    enum forward_state state;
    struct sender_stream *stream; /* NULL: it is being closed */
    struct forward_conn *next;    /* in stream->forwards */
    int fd;                       /* -1: it only has something to say */
    bool is_binary;
    bool has_failed; /* of no more use than to say what it has to */
    uint64_t id;
    enum message_outcome outcome; /* of ANSWERED */
    struct buf out;               /* for the worker, from out_at on */
    size_t out_at;
    struct buf in; /* of the worker, without the last answer when ANSWERED */
    size_t in_at;  /* BINARY: packets before it are whole */
};

/* ---- what only answers ---- */

static const char text_end[] = "mn\r\n", text_ended[] = "MN\r\n";
static const uint8_t binary_end[PACKET_HEAD] = {0x80, PACKET_NOOP};

enum { TEXT_ENDED = sizeof text_ended - 1 };

/* True where all is there; it is taken off then. No reply to a change has such
 * a line or packet, and it stands at the end, for nothing was asked behind
 * it. */
static bool
take_end(struct forward_conn *conn)
{
    struct buf *in = &conn->in;

    if (!conn->is_binary) {
        size_t at = in->len - TEXT_ENDED;

        if (in->len < TEXT_ENDED ||
            memcmp(in->data + at, text_ended, TEXT_ENDED) != 0 ||
            (at > 0 && in->data[at - 1] != '\n')) {
            return false;
        }
        in->len = at;
        return true;
    }
    while (in->len - conn->in_at >= PACKET_HEAD) {
        const uint8_t *packet = (const uint8_t *)in->data + conn->in_at;

        if (packet[1] == PACKET_NOOP) {
            in->len = conn->in_at;
            return true;
        }
        if (in->len - conn->in_at - PACKET_HEAD < bytes_get_be32(packet + 8)) {
            return false;
        }
        conn->in_at += PACKET_HEAD + bytes_get_be32(packet + 8);
    }
    return false;
}

/* ---- one connection ---- */

static void
free_conn(struct forward_conn *conn)
{
    buf_fini(&conn->out);
    buf_fini(&conn->in);
    conn->magic = 0;
    free(conn);
}

static void
on_closed(uv_handle_t *handle)
{
    struct forward_conn *conn = handle->data;

    ASSERT(conn->magic == FORWARD_MAGIC);
    close(conn->fd);
    free_conn(conn);
}

static void
close_conn(struct forward_conn *conn)
{
    struct forward_conn **at = &conn->stream->forwards;

    while (*at != conn) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = conn->next;
    conn->stream->n_forwards--;
    conn->stream = NULL;
    if (conn->fd < 0) {
        free_conn(conn);
    } else {
        uv_close((uv_handle_t *)&conn->poll, on_closed);
    }
}

static void
end_request(struct forward_conn *conn, enum message_outcome outcome)
{
    ASSERT(conn->state == FORWARD_ASKED);
    conn->state = FORWARD_ANSWERED;
    conn->outcome = outcome;
    if (outcome != MESSAGE_ANSWERED) {
        buf_clear(&conn->in);
    }
}

/* The worker is gone, or cannot be understood: it is of no more use. */
static void
fail(struct forward_conn *conn)
{
    if (conn->state == FORWARD_IDLE) {
        close_conn(conn);
        return;
    }
    uv_poll_stop(&conn->poll);
    conn->has_failed = true;
    if (conn->state == FORWARD_ASKED) {
        end_request(conn, MESSAGE_UNSURE);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void
poll_on(struct forward_conn *conn)
{
    bool has_more = conn->out_at < conn->out.len;

    uv_poll_start(
        &conn->poll, UV_READABLE | (has_more ? UV_WRITABLE : 0), on_poll);
}

/* Writes what the socket takes. False: it has failed. */
static bool
write_out(struct forward_conn *conn)
{
    while (conn->out_at < conn->out.len) {
        ssize_t n = send(conn->fd, conn->out.data + conn->out_at,
            conn->out.len - conn->out_at, MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            break;
        }
        if (n <= 0) {
            fail(conn);
            return false;
        }
        conn->out_at += (size_t)n;
    }
    poll_on(conn);
    return true;
}

/* Reads what there is. */
static void
read_in(struct forward_conn *conn)
{
    char *room = buf_reserve(&conn->in, READ_BYTES);
    ssize_t n = room == NULL ? 0 : recv(conn->fd, room, READ_BYTES, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0 || conn->state != FORWARD_ASKED) {
        fail(conn);
        return;
    }
    conn->in.len += (size_t)n;
    if (take_end(conn)) {
        end_request(conn,
            conn->in.len <= STREAM_REPLY_MAX ? MESSAGE_ANSWERED
                                             : MESSAGE_UNSURE);
    } else if (conn->in.len > STREAM_REPLY_MAX + READ_BYTES) {
        fail(conn);
    }
}

static void
on_poll(uv_poll_t *poll, int status, int events)
{
    struct forward_conn *conn = poll->data;

    ASSERT(conn->magic == FORWARD_MAGIC);
    if (status < 0) {
        fail(conn);
        return;
    }
    if ((events & UV_WRITABLE) != 0 && !write_out(conn)) {
        return;
    }
    if ((events & UV_READABLE) != 0) {
        read_in(conn);
    }
}

/* Makes the pair of it, of which a worker gets the other end. False: nobody
 * has. */
static bool
open_pair(struct forward_conn *conn)
{
    struct node *node = conn->stream->node;
    const struct node_config *config = &node->config;
    int fds[2];

    if (!config->forwards || config->serve_fn == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
            fds) != 0) {
        return false;
    }
    if (uv_poll_init(&node->loop, &conn->poll, fds[0]) != 0) {
        close(fds[0]);
        close(fds[1]);
        return false;
    }
    conn->poll.data = conn;
    conn->fd = fds[0];
    if (!config->serve_fn(config->context, fds[1], conn->is_binary)) {
        close(fds[1]);
        return false;
    }
    return true;
}

/* ---- those of a stream ---- */

/* One that is idle, of that protocol; NULL: there is none. */
static struct forward_conn *
find_idle(struct sender_stream *stream, bool is_binary)
{
    struct forward_conn *it = stream->forwards;

    while (it != NULL &&
        (it->state != FORWARD_IDLE || it->is_binary != is_binary)) {
        it = it->next;
    }
    return it;
}

/* NULL: there are too many, or memory is out. */
static struct forward_conn *
make_conn(struct sender_stream *stream, bool is_binary)
{
    struct forward_conn *conn;

    if (stream->n_forwards == NODE_FORWARD_WINDOW) {
        struct forward_conn *other = find_idle(stream, !is_binary);

        if (other == NULL) {
            return NULL;
        }
        close_conn(other);
    }
    conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        return NULL;
    }
    conn->magic = FORWARD_MAGIC;
    conn->stream = stream;
    conn->fd = -1;
    conn->is_binary = is_binary;
    conn->next = stream->forwards;
    stream->forwards = conn;
    stream->n_forwards++;
    return conn;
}

/* Gives it what was asked for. */
static void
ask(struct forward_conn *conn, const struct message_request *request)
{
    buf_clear(&conn->out);
    buf_clear(&conn->in);
    conn->out_at = conn->in_at = 0;
    buf_add(&conn->out, (const char *)request->bytes, request->len);
    if (conn->is_binary) {
        buf_add(&conn->out, (const char *)binary_end, sizeof binary_end);
    } else {
        buf_add_text(&conn->out, text_end);
    }
    conn->id = request->id;
    conn->state = FORWARD_ASKED;
    if (conn->out.failed || (conn->fd < 0 && !open_pair(conn))) {
        end_request(conn, MESSAGE_NOT_TAKEN);
        return;
    }
    (void)write_out(conn);
}

bool
forward_in_take(struct sender_stream *stream, const struct stream_frame *frame,
    struct stream_fault *fault)
{
    struct message_request request;
    struct forward_conn *conn;

    if (message_get_request(frame, &request, fault) != 0) {
        return false;
    }
    conn = find_idle(stream, request.is_binary);
    if (conn == NULL) {
        conn = make_conn(stream, request.is_binary);
    }
    if (conn == NULL) {
        *fault = (struct stream_fault){
            .what = "no more requests than may be under way",
            .offset = STREAM_HEAD_BYTES,
            .type = STREAM_REQUEST};
        return false;
    }
    ask(conn, &request);
    return true;
}

/* It has said what it had to. */
static void
be_idle(struct forward_conn *conn)
{
    if (conn->fd < 0 || conn->has_failed ||
        conn->outcome != MESSAGE_ANSWERED) {
        close_conn(conn);
        return;
    }
    conn->state = FORWARD_IDLE;
    buf_fini(&conn->in);
    buf_fini(&conn->out);
    conn->out_at = 0;
}

bool
forward_in_send(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct forward_conn *conn = stream->forwards;
    uint8_t *frame = node->forward_frame;
    uint8_t room[STREAM_HEAD_BYTES + MESSAGE_REPLY_HEAD];
    struct message_reply reply;
    size_t len;

    while (conn != NULL && conn->state != FORWARD_ANSWERED) {
        conn = conn->next;
    }
    if (conn == NULL) {
        return false;
    }
    frame = frame == NULL ? room : frame;
    reply = (struct message_reply){.id = conn->id,
        .seq = sender_view(node).committed,
        .outcome = conn->outcome,
        .len = (uint32_t)conn->in.len};
    len = message_put_reply(frame + STREAM_HEAD_BYTES, &reply);
    if (conn->in.len > 0) {
        memcpy(frame + STREAM_HEAD_BYTES + len, conn->in.data, conn->in.len);
    }
    len = link_primary_reply(
        &stream->link, frame, (uint32_t)(len + conn->in.len));
    wire_send(&stream->wire, frame, len);
    node->figures.sent_bytes += len;
    be_idle(conn);
    return true;
}

void
forward_in_end(struct sender_stream *stream)
{
    while (stream->forwards != NULL) {
        close_conn(stream->forwards);
    }
}
