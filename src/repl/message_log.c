/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies while a log is followed: what a primary says of itself, with batches
 * or without; how far a replica is. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "repl/message.h"
#include "repl/message_priv.h"

enum { ACK_FLAGS = ACK_DOUBTFUL | ACK_DISK_FULL | ACK_HELD_UP };

size_t
message_put_news(
    uint8_t body[MESSAGE_NEWS_BYTES], const struct message_news *news)
{
    const uint64_t numbers[] = {news->committed, news->last, news->clock_us};
    size_t len = message__put_u64s(body, numbers, 3);

    ASSERT(news->committed <= news->last);
    bytes_put_u32(body + len, news->rtt_us);
    bytes_put_u32(body + len + 4, news->flags);
    return MESSAGE_NEWS_BYTES;
}

static void
get_news(struct message_cursor *cursor, struct message_news *out)
{
    out->committed = message__u64(cursor, "committed");
    out->last = message__u64(cursor, "last");
    message__demand(cursor, out->committed <= out->last, 8, "last");
    out->clock_us = message__u64(cursor, "clock");
    out->rtt_us = message__u32(cursor, "round trip");
    out->flags = message__u32(cursor, "flags");
    message__demand(
        cursor, (out->flags & ~(uint32_t)NEWS_AUTHORITY) == 0, 4, "flags");
}

int
message_get_heartbeat(const struct stream_frame *frame,
    struct message_news *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    get_news(&cursor, out);
    return message__end(&cursor);
}

void
message_put_batch(uint8_t out[MESSAGE_BATCH_BYTES], uint64_t seq, uint32_t len)
{
    ASSERT(len >= 1 && len <= FRAME_PAYLOAD_MAX);
    bytes_put_u64(out, seq);
    bytes_put_u32(out + 8, len);
}

int
message_get_batches(const struct stream_frame *frame,
    struct message_news *news, struct message_batches *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    get_news(&cursor, news);
    *out = (struct message_batches){.at = cursor.at, .end = cursor.end};
    do {
        uint64_t seq = message__u64(&cursor, "number of a batch");
        uint32_t len;

        message__demand(
            &cursor, seq > out->last, 8, "a number above the one before");
        message__demand(&cursor, seq <= news->last, 8,
            "a number up to that of the last batch");
        len = message__u32(&cursor, "length of a batch");
        message__demand(&cursor, len >= 1 && len <= FRAME_PAYLOAD_MAX, 4,
            "length of a batch");
        (void)message__bytes(&cursor, len, "a batch of its length");
        out->first = out->n == 0 ? seq : out->first;
        out->last = seq;
        out->n++;
    } while (!cursor.is_wrong && cursor.at < cursor.end);
    return message__end(&cursor);
}

bool
message_next_batch(struct message_batches *batches, struct message_batch *out)
{
    if (batches->at == batches->end) {
        return false;
    }
    ASSERT(batches->end - batches->at > MESSAGE_BATCH_BYTES);
    *out = (struct message_batch){.seq = bytes_get_u64(batches->at),
        .len = bytes_get_u32(batches->at + 8),
        .payload = batches->at + MESSAGE_BATCH_BYTES};
    ASSERT(out->len <= (size_t)(batches->end - out->payload));
    batches->at = out->payload + out->len;
    return true;
}

size_t
message_put_ack(uint8_t *body, const struct message_ack *ack)
{
    const uint64_t numbers[] = {
        ack->written, ack->synced, ack->applied, ack->echo_us};
    size_t len = message__put_u64s(body, numbers, 4);

    ASSERT(ack->synced <= ack->written && ack->applied <= ack->written);
    bytes_put_u32(body + len, ack->flags);
    return len + 4;
}

int
message_get_ack(const struct stream_frame *frame, struct message_ack *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->written = message__u64(&cursor, "written");
    out->synced = message__u64(&cursor, "synced");
    message__demand(&cursor, out->synced <= out->written, 8, "synced");
    out->applied = message__u64(&cursor, "applied");
    message__demand(&cursor, out->applied <= out->written, 8, "applied");
    out->echo_us = message__u64(&cursor, "clock");
    out->flags = message__u32(&cursor, "flags");
    message__demand(
        &cursor, (out->flags & ~(uint32_t)ACK_FLAGS) == 0, 4, "flags");
    return message__end(&cursor);
}

size_t
message_put_switch(uint8_t *body, uint64_t seq)
{
    return message__put_u64s(body, &seq, 1);
}

int
message_get_switch(const struct stream_frame *frame, uint64_t *seq,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    *seq = message__u64(&cursor, "seq");
    message__demand(
        &cursor, seq_is_of(*seq, frame->term), 8, "a number of the term");
    return message__end(&cursor);
}
