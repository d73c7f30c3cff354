/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches on their way from the log to a replica. They are gathered for one
 * frame at a time: on the node's thread where the replica is at the log's end,
 * for then what comes was written just now and is in memory; else by a thread
 * of libuv's pool, so that a replica that is far behind makes nobody else wait
 * for the disk.
 *
 * When a replica has gone, its place in the log is kept for SENDER_KEPT_MS, at
 * what it has acknowledged: that may be behind what was read for it.
 *
 * What can go wrong: the disk, memory; the replica is too far behind, and the
 * log has gone. */
#include "base/assert.h"
#include "base/err.h"
#include "repl/node_priv.h"
#include "repl/sender_priv.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAME_HEAD = STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES,
    FRAME_USUAL = FRAME_HEAD + STREAM_BATCHES_BYTES
};

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
        sender_release(stream);
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

void
sender_send_batches(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct link_view view;
    size_t len;

    stream->has_filled = false;
    if (stream->fill_err != 0) {
        sender_break(stream, err_file_text(stream->fill_err));
        return;
    }
    if (stream->n_bytes == 0) {
        return;
    }
    if (stream->last > node->position.written) {
        node_look(node);
    }
    view = sender_view(node);
    len = link_primary_seal(&stream->link, &view, stream->frame,
        stream->n_bytes, stream->last, node->now_us);
    wire_send(&stream->wire, stream->frame, len);
    node->figures.sent_bytes += len;
    node->figures.sent_batches++;
    shrink(stream);
}

bool
sender_begin_batches(struct sender_stream *stream, uint64_t behind)
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

/* ---- the place of one that has gone ---- */

/* Nobody asks a place for batches. */
static void
on_kept_more(struct wal_follow *follow)
{
    (void)follow;
}

static void
leave_log(uv_work_t *work)
{
    struct sender_stream *stream = work->data;

    if (stream->keeps_place) {
        stream->is_kept =
            store_follow(stream->node->config.store, &stream->kept,
                stream->link.ack.written + 1,
                stream->node->config.backlog_bytes, on_kept_more) == 0;
    }
    if (stream->is_leaving) {
        wal_follow_close(&stream->follow);
    }
}

static void
leave_place(uv_work_t *work)
{
    struct sender_stream *stream = work->data;

    wal_follow_close(&stream->kept);
}

static void
on_place_left(uv_work_t *work, int status)
{
    (void)status;
    sender_free(work->data);
}

void
sender_leave_place(struct sender_stream *stream)
{
    ASSERT(stream->is_over && stream->is_kept && !stream->is_working);
    stream->is_kept = stream->is_parked = false;
    stream->work.data = stream;
    uv_queue_work(
        &stream->node->loop, &stream->work, leave_place, on_place_left);
}

static void
on_log_left(uv_work_t *work, int status)
{
    struct sender_stream *stream = work->data;
    struct node *node = stream->node;

    (void)status;
    if (!stream->is_kept) {
        sender_free(stream);
    } else if (node->state != NODE_STATE_LEADING) {
        sender_leave_place(stream);
    } else {
        stream->is_parked = true;
        stream->parked_us = node_clock_us(node);
    }
}

void
sender_leave_log(struct sender_stream *stream)
{
    ASSERT(stream->is_over && !stream->is_working);
    free(stream->frame);
    stream->frame = NULL;
    stream->is_leaving = stream->is_followed;
    stream->is_followed = false;
    stream->work.data = stream;
    uv_queue_work(&stream->node->loop, &stream->work, leave_log, on_log_left);
}
