/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots that are sent (repl/copy_out.h). One at a time: another replica is
 * told to come again. When all was sent the replica goes away, to load it; the
 * log behind it is kept until it is there again and follows.
 *
 * What can go wrong: the disk, memory, what the replica says that it has. It
 * ends the connection; at its next visit the replica goes on. */
#include "base/assert.h"
#include "base/err.h"
#include "repl/copy_out.h"
#include "repl/node_priv.h"
#include "repl/sender_priv.h"

#include <stdlib.h>
#include <string.h>

/* Something is next. Any thread. */
static void
on_wake(void *context)
{
    struct node *node = context;

    bell_hold(&node->bell);
    bell_ring(&node->bell);
}

static void
free_copy(struct node *node, struct sender_copy *copy)
{
    struct sender_copy **at = &node->sender.copies;

    while (*at != copy) {
        ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = copy->next;
    if (copy->stream != NULL) {
        copy->stream->copy = NULL;
    }
    copy_out_destroy(&copy->out);
    free(copy);
}

static bool
is_of(const struct sender_copy *copy, const struct sender_stream *stream)
{
    return copy->name_len == stream->link.name_len &&
        memcmp(copy->name, stream->link.name, copy->name_len) == 0;
}

bool
sender_may_take(struct sender_stream *stream)
{
    return stream->copy == NULL || copy_out_may_take(stream->copy->out);
}

void
sender_take_have(
    struct sender_stream *stream, const struct stream_frame *frame)
{
    if (stream->copy == NULL) {
        sender_break(stream, "it says what it has before it was asked");
        return;
    }
    copy_out_take(stream->copy->out, frame);
}

/* False: another one is under way, and that the replica was told. */
static bool
is_free(struct sender_stream *stream)
{
    struct sender *sender = &stream->node->sender;

    for (struct sender_copy *it = sender->copies; it != NULL; it = it->next) {
        if (is_of(it, stream)) {
            copy_out_stop(it->out); /* of an earlier visit */
        }
        if (copy_out_is_reading(it->out)) {
            sender_refuse(stream, MESSAGE_BUSY,
                "a snapshot is sent to another replica, come again");
            return false;
        }
    }
    return true;
}

/* False: it cannot begin, and the stream is over. */
static bool
begin(struct sender_stream *stream)
{
    struct node *node = stream->node;
    const struct node_config *config = &node->config;
    struct sender_copy *copy;
    struct copy_out_config out = {.store = config->store,
        .logger = config->logger,
        .clock = config->clock,
        .source = node->self.name,
        .rate = config->snapshot_rate,
        .pin_bytes_max = config->backlog_bytes < UINT64_MAX / 4
            ? config->backlog_bytes * 4
            : UINT64_MAX,
        .hold_ms = SENDER_KEPT_MS,
        .wake_fn = on_wake,
        .context = node};

    if (!is_free(stream)) {
        return false;
    }
    copy = calloc(1, sizeof *copy);
    if (copy == NULL || copy_out_start(&out, &copy->out) != 0) {
        free(copy);
        sender_refuse(stream, MESSAGE_BUSY,
            "there is no memory, or no thread, for a snapshot");
        return false;
    }
    copy->stream = stream;
    copy->name_len = stream->link.name_len;
    memcpy(copy->name, stream->link.name, copy->name_len);
    copy->next = node->sender.copies;
    node->sender.copies = copy;
    stream->copy = copy;
    log_event(config->logger, "repl_snapshot", LOG_WARNING,
        "replica %.*s at %s is sent a snapshot", (int)copy->name_len,
        copy->name, stream->address);
    return true;
}

bool
sender_send_copy(struct sender_stream *stream, uint64_t until_us)
{
    struct node *node = stream->node;
    struct copy_figures figures;
    struct copy_piece piece;
    size_t len;

    if (stream->copy == NULL && !begin(stream)) {
        return false;
    }
    if (stream->copy->is_done) { /* it goes away by itself */
        node_wake_at(node, until_us);
        return false;
    }
    switch (copy_out_next(stream->copy->out, &piece)) {
    case COPY_FRAME:
        len = link_primary_copy(
            &stream->link, piece.type, piece.frame, piece.len, node->now_us);
        wire_send(&stream->wire, piece.frame, len);
        node->figures.sent_bytes += len;
        node->figures.sync_bytes += len;
        return true;
    case COPY_DONE:
        stream->copy->is_done = true;
        log_event(node->config.logger, "repl_snapshot", LOG_WARNING,
            "replica %.*s at %s has been sent a snapshot",
            (int)stream->link.name_len, stream->link.name, stream->address);
        return true;
    case COPY_FAILED:
        copy_out_figures(stream->copy->out, &figures);
        sender_refuse(stream, MESSAGE_LATE,
            figures.what != NULL ? figures.what : err_text(figures.err));
        return false;
    default:
        node_wake_at(node, until_us);
        return false;
    }
}

void
sender_leave_copy(struct sender_stream *stream)
{
    if (stream->copy == NULL) {
        return;
    }
    if (!stream->copy->is_done) {
        copy_out_stop(stream->copy->out);
    }
    stream->copy->stream = NULL;
    stream->copy = NULL;
}

void
sender_end_copies_of(const struct sender_stream *stream)
{
    for (struct sender_copy *it = stream->node->sender.copies; it != NULL;
         it = it->next) {
        if (is_of(it, stream)) {
            copy_out_stop(it->out);
        }
    }
}

void
sender_look_at_copies(struct node *node)
{
    struct sender_copy *next;

    for (struct sender_copy *it = node->sender.copies; it != NULL; it = next) {
        next = it->next;
        if (it->stream == NULL && copy_out_is_over(it->out)) {
            free_copy(node, it);
        }
    }
}

void
sender_stop_copies(struct node *node)
{
    for (struct sender_copy *it = node->sender.copies; it != NULL;
         it = it->next) {
        copy_out_stop(it->out);
    }
}

void
sender_fini(struct node *node)
{
    while (node->sender.copies != NULL) {
        free_copy(node, node->sender.copies);
    }
    free(node->sender.listen);
    node->sender.listen = NULL;
}
