/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches on their way from the log to a replica. They are gathered for one
 * frame at a time: on the node's thread where the replica is at the log's end,
 * for then what comes was written just now and is in memory; else by a thread
 * of libuv's pool, so that a replica that is far behind makes nobody else wait
 * for the disk.
 *
 * When a replica has gone, its place in the log is kept for SENDER_KEPT_MS, at
 * what it has acknowledged: that may be behind what was read for it. One that
 * led before has no place, since it has never followed: in a group that etcd
 * decides the end of its term is kept for as long.
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
    FRAME_USUAL = FRAME_HEAD + STREAM_BATCHES_BYTES,
    PAUSE_US = 1000 /* see is_too_soon */
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

uint8_t *
sender__make_room(struct sender_stream *stream, size_t more)
{
    size_t need = FRAME_HEAD + stream->n_bytes + more;
    uint8_t *frame;

    if (need > stream->capacity) {
        need = need < FRAME_USUAL ? (size_t)FRAME_USUAL : need;
        frame = realloc(stream->frame, need);
        if (frame == NULL) {
            return NULL;
        }
        stream->frame = frame;
        stream->capacity = need;
    }
    return stream->frame + FRAME_HEAD + stream->n_bytes;
}

int
sender__next_batch(struct sender_stream *stream)
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

/* All batches that there are, as far as they go into one frame. */
static int
gather_all(struct sender_stream *stream)
{
    int err = 0;

    while (err == 0) {
        uint8_t *at;
        size_t len;

        err = sender__next_batch(stream);
        if (err != 0 || !stream->has_batch) {
            break;
        }
        len = MESSAGE_BATCH_BYTES + (size_t)stream->batch.len;
        if (stream->n_bytes > 0 &&
            stream->n_bytes + len > STREAM_BATCHES_BYTES) {
            break;
        }
        at = sender__make_room(stream, len);
        if (at == NULL) {
            err = ERR_NO_MEMORY;
            break;
        }
        message_put_batch(at, stream->batch.seq, stream->batch.len);
        memcpy(at + MESSAGE_BATCH_BYTES, stream->batch.payload,
            stream->batch.len);
        stream->n_bytes += len;
        stream->last = stream->batch.seq;
        stream->has_batch = false;
    }
    return stream->n_bytes > 0 ? 0 : err;
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
    if (err == 0) {
        err = stream->feed != NULL ? sender__gather_feed(stream)
                                   : gather_all(stream);
    }
    stream->fill_err = err;
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
    if (stream->feed != NULL) {
        sender_send_feed(stream);
        shrink(stream);
        return;
    }
    if (stream->fill_err != 0) {
        sender_break(stream, err_file_text(stream->fill_err));
        return;
    }
    if (stream->n_bytes == 0) {
        return;
    }
    if (stream->link.switch_seq != 0 &&
        stream->last > stream->link.switch_seq) {
        sender_break(stream, "this node hands over"); /* it was far behind */
        return;
    }
    if (stream->last > node->position.written) {
        node_look(node);
    }
    view = sender_view(node);
    len = link_primary_seal(&stream->link, &view, stream->frame,
        stream->n_bytes, stream->last, node->now_us);
    wire_send(&stream->wire, stream->frame, len);
    stream->sent_us = node->now_us;
    node->figures.sent_bytes += len;
    node->figures.sent_batches++;
    shrink(stream);
}

static void
begin_work(struct sender_stream *stream)
{
    stream->is_working = true;
    stream->work.data = stream;
    uv_queue_work(&stream->node->loop, &stream->work, on_work, on_worked);
}

/* What a feed is sent is looked through: never on the node's thread. Where it
 * is behind there is a batch up to `most`, so it is not asked in vain again and
 * again; where the log is just being written anew it is, once a while. */
static void
begin_feed(struct sender_stream *stream)
{
    struct node *node = stream->node;
    bool is_vain = stream->feed->is_all_told && stream->is_followed &&
        stream->last == stream->behind;

    if (is_vain && node->now_us - stream->feed->asked_us < LINK_NEWS_US) {
        node_wake_at(node, stream->feed->asked_us + LINK_NEWS_US);
        return;
    }
    stream->feed->asked_us = node->now_us;
    stream->feed->most = sender_view(node).fed;
    begin_work(stream);
}

/* A frame takes both ends some turns and system calls, whatever is in it. Where
 * nobody waits for what it brings, what comes within PAUSE_US of the last one
 * goes together; but a node that is to end sends it. */
static bool
is_too_soon(const struct sender_stream *stream)
{
    const struct node *node = stream->node;

    return node->config.semi_sync == 0 && node->waiting == NULL &&
        node->end_us == 0 && stream->link.purpose == MESSAGE_FOLLOW &&
        stream->link.switch_seq == 0 &&
        node->now_us - stream->sent_us < PAUSE_US;
}

bool
sender_begin_batches(struct sender_stream *stream, uint64_t behind)
{
    /* acquire: see on_more */
    bool has_more =
        atomic_load_explicit(&stream->has_more, memory_order_acquire);

    stream->behind = behind;
    if (stream->feed != NULL) {
        begin_feed(stream);
        return false;
    }
    if (stream->is_at_end && !has_more && !stream->has_batch) {
        node_wake_at(stream->node, stream->node->now_us + LINK_BEAT_US);
        return false;
    }
    if (stream->is_at_end && is_too_soon(stream)) {
        node_wake_at(stream->node, stream->sent_us + PAUSE_US);
        return false;
    }
    if (stream->is_at_end) {
        stream->is_at_end = false;
        gather(stream);
        stream->has_filled = true;
        return true;
    }
    begin_work(stream);
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
    } else if (!sender_keeps_places(stream)) {
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
    sender_feed_end(&stream->feed); /* a place needs none of it */
    stream->is_leaving = stream->is_followed;
    stream->is_followed = false;
    stream->work.data = stream;
    uv_queue_work(&stream->node->loop, &stream->work, leave_log, on_log_left);
}

/* ---- the end of the term before ---- */

/* The thread may wait for the disk where a term begins. */
void
sender_keep_before(struct node *node)
{
    const struct history *history = &node->position.history;
    struct store *store = node->config.store;
    uint64_t bytes_max = node->config.backlog_bytes;
    struct sender_before *before;
    uint64_t last;

    ASSERT(node->sender.before == NULL);
    if (history->n < 2) {
        return; /* nobody has led before */
    }
    before = calloc(1, sizeof *before);
    if (before == NULL) {
        return; /* who led may have to take a snapshot */
    }
    last = history->at[history->n - 2].last;
    /* a checkpoint may need nothing of that term any more */
    if (store_follow(store, &before->kept, last, bytes_max, on_kept_more) !=
            0 &&
        store_follow(store, &before->kept, node->sender.term_seq, bytes_max,
            on_kept_more) != 0) {
        free(before);
        return;
    }
    before->since_us = node->now_us;
    node->sender.before = before;
}

static void
leave_before(uv_work_t *work)
{
    struct sender_before *before = work->data;

    wal_follow_close(&before->kept);
}

static void
on_before_left(uv_work_t *work, int status)
{
    (void)status;
    free(work->data);
}

void
sender_leave_before(struct node *node)
{
    struct sender_before *before = node->sender.before;

    if (before != NULL) {
        node->sender.before = NULL;
        before->work.data = before;
        uv_queue_work(
            &node->loop, &before->work, leave_before, on_before_left);
    }
}
