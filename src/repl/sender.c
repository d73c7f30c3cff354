/* SPDX-License-Identifier: BSD-3-Clause */
/* A primary's connections. Each has a link, which says what to do, and a place
 * in the log. For a frame batches are gathered from the log: on this thread
 * where the replica is at its end, for then what comes was written just now and
 * is in memory; else by a thread of libuv's pool, so that a replica that is far
 * behind makes nobody else wait for the disk.
 *
 *   accepted --> link says: SEND     --> the socket
 *                           BATCHES  --> gather --> seal --> the socket
 *                           WAIT     --> a frame, the log, the clock
 *                           CLOSE    --> the socket ends; its place is kept
 *
 * At most one frame of a stream waits to be written, and one is gathered. What
 * a slow replica has not had stays in the log, up to backlog_bytes; that of one
 * that has gone stays as long, for SENDER_KEPT_MS.
 *
 * What can go wrong: who connects; the disk that the log is read from. Each
 * ends the one connection. */
#include "repl/sender.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/node_priv.h"
#include "repl/semi_sync.h"

#include <errno.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    FRAME_HEAD = STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES,
    FRAME_USUAL = FRAME_HEAD + STREAM_BATCHES_BYTES
};

/* ---- the end of a stream ---- */

static void
free_stream(struct sender_stream *stream)
{
    struct sender_stream **at = &stream->node->sender.streams;

    while (*at != stream) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = stream->next;
    stream_reader_fini(&stream->reader);
    free(stream->frame);
    stream->magic = 0;
    free(stream);
}

static void
close_follow(uv_work_t *work)
{
    struct sender_stream *stream = work->data;

    wal_follow_close(&stream->follow);
}

static void
on_follow_closed(uv_work_t *work, int status)
{
    struct sender_stream *stream = work->data;

    (void)status;
    free_stream(stream);
}

/* Frees it when nobody uses it any more. */
static void
release(struct sender_stream *stream)
{
    ASSERT(stream->magic == SENDER_MAGIC);
    if (!stream->is_wire_closed || stream->is_working) {
        return;
    }
    ASSERT(stream->is_over);
    if (!stream->is_followed) {
        free_stream(stream);
        return;
    }
    stream->is_followed = false;
    stream->work.data = stream;
    uv_queue_work(
        &stream->node->loop, &stream->work, close_follow, on_follow_closed);
}

static void
on_wire_closed(struct wire *wire)
{
    struct sender_stream *stream = (struct sender_stream *)wire;

    stream->is_wire_closed = true;
    release(stream);
}

/* The stream is used no more. gently: the other end is to read what is on its
 * way. */
static void
end_stream(struct sender_stream *stream, bool gently)
{
    struct sender *sender = &stream->node->sender;

    if (!stream->is_over) {
        stream->is_over = true;
        if (stream->is_refused) {
            sender->n_refused--;
        } else {
            sender->n_streams--;
        }
    }
    if (gently) {
        wire_end(&stream->wire);
    } else {
        wire_close(&stream->wire);
    }
}

/* Says why a link has ended, and ends the stream. */
static void
end_link(struct sender_stream *stream)
{
    const struct link_end *end = &stream->link.end;
    char why[512];

    node_count_end(stream->node, end);
    stream->node->figures.behind += end->reason == LINK_BEHIND;
    node_end_text(end, why, sizeof why);
    log_line(stream->node->config.logger,
        end->reason == LINK_CUT ? LOG_INFO : LOG_WARNING,
        "replica %.*s at %s: %s", (int)stream->link.name_len,
        stream->link.name, stream->address, why);
    end_stream(stream, end->reason != LINK_TIMEOUT);
}

/* The same where it is the socket, or this node, that ends it. */
static void
break_link(struct sender_stream *stream, const char *why)
{
    log_line(stream->node->config.logger, LOG_INFO, "replica %.*s at %s: %s",
        (int)stream->link.name_len, stream->link.name, stream->address, why);
    end_stream(stream, false);
}

/* ---- what is so here ---- */

static struct link_view
view_of(struct node *node)
{
    const struct store_position *position = &node->position;
    bool is_alone = node->config.semi_sync == 0;

    return (struct link_view){.directory = node->directory,
        .term = node->term,
        .history = &position->history,
        .begin = position->begin,
        .written = position->written,
        .committed = is_alone
            ? position->written
            : link__earlier(node->committed, position->written),
        .has_authority = true};
}

/* ---- batches ---- */

/* The log has more. Any thread. */
static void
on_more(struct wal_follow *follow)
{
    struct sender_stream *stream = (struct sender_stream *)((char *)follow -
        offsetof(struct sender_stream, follow));

    /* release, with the acquire of has_more: the log is looked at after */
    atomic_store_explicit(&stream->has_more, true, memory_order_release);
    bell_hold(&stream->node->bell);
    bell_ring(&stream->node->bell);
}

/* Room for so many more bytes in the frame. False: memory is out. */
static bool
make_room(struct sender_stream *stream, size_t more)
{
    size_t need = FRAME_HEAD + stream->n_bytes + more;
    uint8_t *frame;

    if (need <= stream->capacity) {
        return true;
    }
    need = need < FRAME_USUAL ? (size_t)FRAME_USUAL : need;
    frame = realloc(stream->frame, need);
    if (frame == NULL) {
        return false;
    }
    stream->frame = frame;
    stream->capacity = need;
    return true;
}

/* 0; or why there is no next batch, which is not an error at the end. */
static int
next_batch(struct sender_stream *stream)
{
    int err;

    if (stream->has_batch) {
        return 0;
    }
    /* relaxed: what is told from here on was not seen by the look to come */
    atomic_store_explicit(&stream->has_more, false, memory_order_relaxed);
    err = wal_follow_next(&stream->follow, &stream->batch);
    if (err == 0) {
        stream->has_batch = stream->batch.payload != NULL;
        stream->is_at_end = !stream->has_batch;
    }
    return err;
}

/* Gathers batches for one frame. The pool's thread, or the node's. */
static void
gather(struct sender_stream *stream)
{
    struct node *node = stream->node;
    int err = 0;

    stream->n_bytes = 0;
    if (!stream->is_followed) {
        err = store_follow(node->config.store, &stream->follow,
            stream->behind + 1, node->config.backlog_bytes, on_more);
        stream->is_followed = err == 0;
    }
    while (err == 0) {
        uint8_t *at;
        size_t len;

        err = next_batch(stream);
        if (err != 0 || !stream->has_batch) {
            break;
        }
        len = MESSAGE_BATCH_BYTES + (size_t)stream->batch.len;
        if (stream->n_bytes > 0 &&
            stream->n_bytes + len > STREAM_BATCHES_BYTES) {
            break;
        }
        if (!make_room(stream, len)) {
            err = ERR_NO_MEMORY;
            break;
        }
        at = stream->frame + FRAME_HEAD + stream->n_bytes;
        message_put_batch(at, stream->batch.seq, stream->batch.len);
        memcpy(at + MESSAGE_BATCH_BYTES, stream->batch.payload,
            stream->batch.len);
        stream->n_bytes += len;
        stream->last = stream->batch.seq;
        stream->has_batch = false;
    }
    stream->fill_err = stream->n_bytes > 0 ? 0 : err;
}

static void
on_work(uv_work_t *work)
{
    gather(work->data);
}

static void
on_worked(uv_work_t *work, int status)
{
    struct sender_stream *stream = work->data;

    (void)status;
    ASSERT(stream->magic == SENDER_MAGIC && stream->is_working);
    stream->is_working = false;
    stream->has_filled = true;
    if (stream->is_over) {
        release(stream);
    }
}

/* A frame that is much longer than others was sent: its memory goes. */
static void
shrink(struct sender_stream *stream)
{
    if (stream->capacity > FRAME_USUAL) {
        free(stream->frame);
        stream->frame = NULL;
        stream->capacity = 0;
    }
}

/* Sends what was gathered. */
static void
send_batches(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct link_view view;
    size_t len;

    stream->has_filled = false;
    if (stream->fill_err != 0) {
        break_link(stream, err_file_text(stream->fill_err));
        return;
    }
    if (stream->n_bytes == 0) {
        return;
    }
    if (stream->last > node->position.written) {
        node_look(node);
    }
    view = view_of(node);
    len = link_primary_seal(&stream->link, &view, stream->frame,
        stream->n_bytes, stream->last, node->now_us);
    wire_send(&stream->wire, stream->frame, len);
    node->figures.sent_bytes += len;
    node->figures.sent_batches++;
    shrink(stream);
}

/* False: there are no batches yet. */
static bool
begin_batches(struct sender_stream *stream, uint64_t behind)
{
    /* acquire: see on_more */
    bool has_more =
        atomic_load_explicit(&stream->has_more, memory_order_acquire);

    stream->behind = behind;
    if (stream->is_at_end && !has_more && !stream->has_batch) {
        node_wake_at(stream->node, stream->node->now_us + LINK_BEAT_US);
        return false;
    }
    if (stream->is_at_end) {
        stream->is_at_end = false;
        gather(stream);
        stream->has_filled = true;
        return true;
    }
    stream->is_working = true;
    stream->work.data = stream;
    uv_queue_work(&stream->node->loop, &stream->work, on_work, on_worked);
    return false;
}

/* ---- a turn of one stream ---- */

static void
tell_begin(struct sender_stream *stream)
{
    struct node *node = stream->node;
    const struct link_primary *link = &stream->link;

    if (stream->is_told || link->state != LINK_PRIMARY_STREAMING) {
        return;
    }
    stream->is_told = true;
    node->figures.sync_partial_ok++;
    log_line(node->config.logger, LOG_INFO,
        "replica %.*s at %s follows from batch %llu on", (int)link->name_len,
        link->name, stream->address, (unsigned long long)link->verdict_seq);
}

/* Does what the link orders. False: nothing is left to do now. */
static bool
do_next(struct sender_stream *stream, const struct link_view *view)
{
    struct node *node = stream->node;
    uint8_t out[LINK_SEND_MAX];
    struct link_order order;
    enum link_primary_state before = stream->link.state;

    link_primary_next(&stream->link, view, node->now_us, out, &order);
    if (before == LINK_PRIMARY_JUDGED) {
        node->figures.sync_full += stream->link.verdict == MESSAGE_SNAPSHOT;
        node->figures.sync_partial_err += stream->link.verdict == MESSAGE_CUT;
        tell_begin(stream);
    }
    switch (order.what) {
    case LINK_SEND:
        wire_send(&stream->wire, out, order.len);
        node->figures.sent_bytes += order.len;
        return true;
    case LINK_BATCHES:
        return begin_batches(stream, order.seq);
    case LINK_COPY:
        break_link(stream, "it needs a snapshot");
        return false;
    case LINK_CLOSE:
        end_link(stream);
        return false;
    default:
        node_wake_at(node, order.until_us);
        return false;
    }
}

/* An ERROR to who is not served. */
static void
refuse(struct sender_stream *stream)
{
    struct node *node = stream->node;
    const char *text = node->state == NODE_STATE_LEADING
        ? "too many replicas are connected"
        : "this node is no primary";
    struct message_error error = {.code = MESSAGE_BUSY,
        .text = {(const uint8_t *)text, (uint8_t)strlen(text)}};
    uint8_t out[LINK_SEND_MAX];
    size_t len;

    if (!wire_has_room(&stream->wire)) {
        return;
    }
    len = message_put_error(out + STREAM_HEAD_BYTES, &error);
    len = stream_seal(out, STREAM_ERROR, (uint32_t)len, node->term, 0);
    wire_send(&stream->wire, out, len);
    end_stream(stream, true);
}

static void
turn_stream(struct sender_stream *stream)
{
    unsigned n = 0;

    if (stream->is_refused) {
        refuse(stream);
        return;
    }
    while (!stream->is_over && !stream->is_working &&
        wire_has_room(&stream->wire)) {
        struct link_view view = view_of(stream->node);

        if (stream->has_filled) {
            if (stream->link.state == LINK_PRIMARY_STREAMING) {
                send_batches(stream);
                n++;
            }
            stream->has_filled = false;
            continue;
        }
        if (n == SENDER_TURN_FRAMES) { /* others have their turn first */
            node_wake_at(stream->node, stream->node->now_us);
            return;
        }
        if (!do_next(stream, &view)) {
            break;
        }
    }
    if (!stream->is_over && stream->wire.has_failed) {
        break_link(stream, stream->wire.why);
        return;
    }
    /* who does not read, or waits for the disk, may be dead as well */
    if (!stream->is_over) {
        node_wake_at(stream->node,
            stream->link.heard_us + stream->link.self->timeout_us);
        if (stream->node->now_us - stream->link.heard_us >=
            stream->link.self->timeout_us) {
            break_link(stream, link_reason_text(LINK_TIMEOUT));
        }
    }
}

/* ---- what comes ---- */

static void
take_bytes(struct sender_stream *stream, const uint8_t *bytes, size_t len)
{
    struct node *node = stream->node;
    struct link_view view = view_of(node);
    struct stream_frame frame;

    link_primary_heard(&stream->link, node->now_us);
    for (;;) {
        enum stream_step step =
            stream_read(&stream->reader, &bytes, &len, &frame);

        if (step == STREAM_WRONG) {
            link_primary_wrong(&stream->link, &stream->reader.fault);
        }
        if (step != STREAM_FRAME) {
            return;
        }
        if (link_primary_take(&stream->link, &view, &frame, node->now_us) ==
            LINK_ENDING) {
            return;
        }
        stream->reader.session = stream->link.session;
    }
}

static void
on_moved(struct wire *wire)
{
    struct sender_stream *stream = (struct sender_stream *)wire;
    struct node *node = stream->node;
    uint8_t bytes[16 << 10];
    size_t len;

    ASSERT(stream->magic == SENDER_MAGIC);
    node->now_us = node_clock_us(node);
    if (stream->is_over || !wire->is_reading) {
        return;
    }
    if (!wire_read(wire, bytes, sizeof bytes, &len)) {
        if (stream->is_refused) {
            end_stream(stream, false);
        } else {
            break_link(stream, wire->why);
        }
        return;
    }
    if (len > 0 && !stream->is_refused) {
        take_bytes(stream, bytes, len);
    }
}

/* ---- who connects ---- */

static void
name_peer(int fd, char *out, size_t size)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    char host[48], port[8];

    if (getpeername(fd, (struct sockaddr *)&addr, &len) != 0 ||
        getnameinfo((const struct sockaddr *)&addr, len, host, sizeof host,
            port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        snprintf(out, size, "unknown");
        return;
    }
    snprintf(out, size, addr.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
        port);
}

/* Begins what there is of a stream besides its socket. False: memory is out. */
static bool
make_link(struct sender_stream *stream)
{
    uint8_t nonce[STREAM_NONCE_BYTES];

    if (stream->is_refused) {
        return true;
    }
    if (stream_reader_init(&stream->reader) != 0) {
        return false;
    }
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce) {
        stream_reader_fini(&stream->reader);
        return false;
    }
    link_primary_init(
        &stream->link, &stream->node->self, nonce, stream->node->now_us);
    return true;
}

/* Takes over a connection. */
static void
open_stream(struct node *node, int fd)
{
    struct sender *sender = &node->sender;
    struct sender_stream *stream = calloc(1, sizeof *stream);
    bool is_refused = node->state != NODE_STATE_LEADING ||
        sender->n_streams >= NODE_STREAMS_MAX;

    node->figures.refused += is_refused;
    if (stream == NULL ||
        (is_refused && sender->n_refused >= SENDER_REFUSED_MAX)) {
        free(stream);
        close(fd);
        return;
    }
    stream->magic = SENDER_MAGIC;
    stream->node = node;
    stream->is_refused = is_refused;
    stream->opened_us = node->now_us;
    stream->wire.moved_fn = on_moved;
    stream->wire.closed_fn = on_wire_closed;
    atomic_init(&stream->has_more, false);
    name_peer(fd, stream->address, sizeof stream->address);
    if (!make_link(stream)) {
        free(stream);
        close(fd);
        return;
    }
    if (wire_open(&stream->wire, &node->loop, fd) != 0) {
        stream_reader_fini(&stream->reader);
        free(stream);
        return;
    }
    stream->next = sender->streams;
    sender->streams = stream;
    sender->n_refused += is_refused;
    sender->n_streams += !is_refused;
    wire_read_on(&stream->wire, true);
}

static void
on_connection(uv_poll_t *poll, int status, int events)
{
    struct node *node = poll->data;
    int listen_fd = -1;

    (void)status;
    (void)events;
    ASSERT(node->magic == NODE_MAGIC);
    node->now_us = node_clock_us(node);
    if (uv_fileno((const uv_handle_t *)poll, &listen_fd) != 0) {
        return;
    }
    for (unsigned n = 0; n < NODE_STREAMS_MAX; n++) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && errno != EINTR && errno != ECONNABORTED) {
            return;
        }
        if (fd >= 0) {
            open_stream(node, fd);
        }
    }
}

int
sender_start(struct node *node)
{
    struct sender *sender = &node->sender;
    unsigned n = node->config.n_listen;

    sender->listen = calloc(n == 0 ? 1 : n, sizeof *sender->listen);
    if (sender->listen == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned i = 0; i < n; i++) {
        if (uv_poll_init(&node->loop, &sender->listen[i],
                node->config.listen_fd[i]) != 0) {
            return ERR_SYSTEM;
        }
        sender->n_listen++;
        sender->listen[i].data = node;
        uv_poll_start(&sender->listen[i], UV_READABLE, on_connection);
    }
    return 0;
}

/* ---- what is committed ---- */

static void
move_committed(struct node *node)
{
    uint64_t position[NODE_STREAMS_MAX];
    unsigned n = 0;
    uint64_t seq;

    if (node->config.semi_sync == 0) {
        return;
    }
    for (struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        if (sender_is_streaming(it)) {
            position[n++] = semi_sync_position(&it->link);
        }
    }
    seq = semi_sync_nth(position, n, node->config.semi_sync);
    if (seq >= node->sender.term_seq) {
        node_set_committed(node, seq);
    }
}

/* Refuses changes where too few replicas are heard, or takes them again. */
static void
look_for_replicas(struct node *node)
{
    struct sender *sender = &node->sender;
    uint64_t lag_us = node->config.max_lag_ms * 1000;
    unsigned n = 0;
    bool is_few;

    if (node->config.min_replicas == 0) {
        return;
    }
    for (struct sender_stream *it = sender->streams; it != NULL;
         it = it->next) {
        if (sender_is_streaming(it) &&
            node->now_us - it->link.heard_us <= lag_us) {
            n++;
            node_wake_at(node, it->link.heard_us + lag_us + 1);
        }
    }
    is_few = n < node->config.min_replicas;
    if (is_few != sender->refuses_changes) {
        sender->refuses_changes = is_few;
        store_refuse_changes(
            node->config.store, is_few ? ERR_FEW_REPLICAS : 0);
        log_line(node->config.logger, LOG_WARNING,
            is_few ? "%u replicas are heard: changes are refused"
                   : "%u replicas are heard: changes are taken again",
            n);
    }
}

void
sender_begin(struct node *node, uint64_t seq)
{
    struct sender *sender = &node->sender;

    sender->term_seq = seq;
    sender->refuses_changes = node->config.min_replicas > 0;
    store_refuse_changes(
        node->config.store, sender->refuses_changes ? ERR_FEW_REPLICAS : 0);
    node_set_committed(node, node->config.semi_sync == 0 ? UINT64_MAX : 0);
}

void
sender_end(struct node *node, bool in_full)
{
    struct sender *sender = &node->sender;

    for (struct sender_stream *it = sender->streams; it != NULL;
         it = it->next) {
        if (!it->is_over) {
            end_stream(it, false);
        }
    }
    if (!in_full) {
        return;
    }
    for (unsigned i = 0; i < sender->n_listen; i++) {
        uv_close((uv_handle_t *)&sender->listen[i], NULL);
    }
}

void
sender_turn(struct node *node)
{
    struct sender_stream *next;

    if (node->state == NODE_STATE_LEADING) {
        move_committed(node);
    }
    for (struct sender_stream *it = node->sender.streams; it != NULL;
         it = next) {
        next = it->next;
        if (!it->is_over) {
            turn_stream(it);
        }
    }
    if (node->state == NODE_STATE_LEADING) {
        look_for_replicas(node);
    }
}

unsigned
sender_n_applied(const struct node *node, uint64_t seq)
{
    unsigned n = 0;

    for (const struct sender_stream *it = node->sender.streams; it != NULL;
         it = it->next) {
        n += sender_is_streaming(it) && it->link.ack.applied >= seq;
    }
    return n;
}
