/* SPDX-License-Identifier: BSD-3-Clause */
/* What a feed is sent: first the counters and the producers that there are,
 * then what of the log is of its rule, up to a batch that is committed and
 * applied here.
 *
 *   log:    | 7 | 8 | 9 | 10 | 11 | 12     committed and applied: up to 11
 *   sent:     7       9         11         (of 8 and 10 nothing is of the rule)
 *
 * A feed that does not read holds up nobody: nothing is gathered for it then,
 * and the log is kept from where it is, up to --repl-backlog-size.
 *
 * Counters and producers are looked at once the log is kept from the position
 * on: what they become later is in the stream.
 *
 * What can go wrong: the disk, memory; the rule is none; the feed is too far
 * behind, and the log has gone. */
#include "repl/sender_feed.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/node_priv.h"
#include "repl/sender_priv.h"
#include "wal/entry.h"

#include <stdlib.h>
#include <string.h>

enum {
    SCANNED_MAX = 4 << 20,                  /* bytes of log for one frame */
    SCHEMA_BYTES = STREAM_BATCHES_BYTES / 2 /* of one batch of these */
};

void
sender_feed_begin(struct sender_stream *stream)
{
    struct link_primary *link = &stream->link;
    struct sender_feed *feed = calloc(1, sizeof *feed);
    int err = feed == NULL
        ? ERR_NO_MEMORY
        : owns_create_rule(link->rule, link->rule_len, &feed->owns);

    ASSERT(stream->feed == NULL);
    if (err != 0) {
        free(feed);
        if (err == ERR_BAD_RULE) {
            link_primary_refuse_rule(link);
        } else {
            sender_break(stream, err_file_text(err));
        }
        return;
    }
    feed->filter.owns = feed->owns;
    stream->feed = feed;
    stream->is_told = true;
    log_event(stream->node->config.logger, "repl_link", LOG_INFO,
        "feed %.*s at %s is sent %s from batch %llu on", (int)link->name_len,
        link->name, stream->address, owns_rule(feed->owns),
        (unsigned long long)link->verdict_seq);
}

void
sender_feed_end(struct sender_feed **feed)
{
    if (*feed != NULL) {
        feed_filter_fini(&(*feed)->filter);
        buf_fini(&(*feed)->schema);
        owns_destroy(&(*feed)->owns);
        free(*feed);
        *feed = NULL;
    }
}

/* ---- counters and producers ---- */

static void
add_counter(
    void *context, const struct schema_counter *counter, uint32_t last_serial)
{
    struct sender_feed *feed = context;
    uint8_t entry[ENTRY_COUNTER_BYTES_MAX];

    buf_add(
        &feed->schema, entry, entry_put_counter(entry, counter, last_serial));
    if (feed_filter_know(&feed->filter, counter) != 0) {
        feed->schema.failed = true;
    }
}

static void
add_producer(void *context, uint32_t serial, const struct producer_name *name)
{
    struct sender_feed *feed = context;
    uint8_t entry[ENTRY_PRODUCER_BYTES_MAX];

    buf_add(&feed->schema, entry, entry_put_producer(entry, serial, name));
}

/* The next of these for one frame: whole entries. */
static int
put_schema(struct sender_stream *stream)
{
    struct sender_feed *feed = stream->feed;
    const uint8_t *bytes = (const uint8_t *)feed->schema.data;
    struct entry_reader reader = {
        .at = bytes + feed->schema_at, .end = bytes + feed->schema.len};
    const uint8_t *begin = reader.at;
    size_t len;
    uint8_t *at;

    while (reader.at < reader.end && reader.at - begin < SCHEMA_BYTES) {
        struct entry entry;
        bool is_entry = entry_next(&reader, &entry);

        ASSERT(is_entry);
    }
    len = (size_t)(reader.at - begin);
    at = sender__make_room(stream, MESSAGE_BATCH_BYTES + len);
    if (at == NULL) {
        return ERR_NO_MEMORY;
    }
    if (len > 0) {
        message_put_batch(at, stream->behind, (uint32_t)len);
        memcpy(at + MESSAGE_BATCH_BYTES, begin, len);
        stream->n_bytes += MESSAGE_BATCH_BYTES + len;
    }
    feed->schema_at += len;
    feed->is_all_told = feed->schema_at == feed->schema.len;
    return 0;
}

static int
gather_schema(struct sender_stream *stream)
{
    struct sender_feed *feed = stream->feed;

    if (!feed->has_schema) {
        buf_clear(&feed->schema);
        store_each_named(
            stream->node->config.store, add_counter, add_producer, feed);
        if (feed->schema.failed) {
            return ERR_NO_MEMORY;
        }
        feed->has_schema = true;
    }
    return put_schema(stream);
}

/* ---- the log ---- */

/* What of the batch that is there is of the rule. */
static int
put_batch(struct sender_stream *stream)
{
    const struct wal_follow_batch *batch = &stream->batch;
    uint8_t *at = sender__make_room(
        stream, MESSAGE_BATCH_BYTES + batch->len + FEED_FILTER_MORE);
    size_t n;
    int err;

    if (at == NULL) {
        return ERR_NO_MEMORY;
    }
    err = feed_filter_run(&stream->feed->filter, batch->payload, batch->len,
        at + MESSAGE_BATCH_BYTES, &n);
    if (err == 0 && n > 0) {
        message_put_batch(at, batch->seq, (uint32_t)n);
        stream->n_bytes += MESSAGE_BATCH_BYTES + n;
    }
    return err;
}

static int
gather_log(struct sender_stream *stream)
{
    size_t scanned = 0;
    int err = 0;

    while (scanned < SCANNED_MAX) {
        err = sender__next_batch(stream);
        if (err != 0 || !stream->has_batch ||
            stream->batch.seq > stream->feed->most ||
            (stream->n_bytes > 0 &&
                stream->n_bytes + stream->batch.len > STREAM_BATCHES_BYTES)) {
            break;
        }
        err = put_batch(stream);
        if (err != 0) {
            break;
        }
        scanned += stream->batch.len;
        stream->last = stream->batch.seq;
        stream->has_batch = false;
    }
    return stream->last > stream->behind ? 0 : err;
}

int
sender__gather_feed(struct sender_stream *stream)
{
    stream->last = stream->behind;
    return stream->feed->is_all_told ? gather_log(stream)
                                     : gather_schema(stream);
}

void
sender_send_feed(struct sender_stream *stream)
{
    struct node *node = stream->node;
    struct link_primary *link = &stream->link;
    struct link_view view;
    size_t len;

    if (stream->fill_err == ERR_LOG_GONE) {
        link_primary_lost_log(link);
        return;
    }
    if (stream->fill_err != 0) {
        sender_break(stream, err_file_text(stream->fill_err));
        return;
    }
    view = sender_view(node);
    if (stream->last > view.fed) {
        sender_break(stream, "this node is about to load anew");
        return;
    }
    len = link->has_schema
        ? link_primary_seal_feed(link, &view, stream->frame, stream->n_bytes,
              stream->last, node->now_us)
        : link_primary_seal_schema(link, &view, stream->frame, stream->n_bytes,
              stream->feed->is_all_told, node->now_us);
    if (len > 0) {
        wire_send(&stream->wire, stream->frame, len);
        node->figures.sent_bytes += len;
        node->figures.sent_batches++;
    }
}
