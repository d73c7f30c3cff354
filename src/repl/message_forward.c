/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes that are handed on: a head of fixed length, then the bytes, of which
 * nothing is known here. */
#include "repl/message_forward.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "repl/message_priv.h"

size_t
message_put_request(
    uint8_t body[MESSAGE_REQUEST_HEAD], uint64_t id, bool is_binary)
{
    bytes_put_u64(body, id);
    body[8] = is_binary;
    return MESSAGE_REQUEST_HEAD;
}

/* All that is left of the body, least bytes or more. */
static const uint8_t *
rest_of(struct message_cursor *cursor, size_t least, uint32_t *len)
{
    size_t left = (size_t)(cursor->end - cursor->at);

    *len = (uint32_t)left;
    return message__bytes(cursor, left < least ? least : left, "bytes");
}

int
message_get_request(const struct stream_frame *frame,
    struct message_request *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    uint8_t is_binary;

    out->id = message__u64(&cursor, "id");
    is_binary = message__u8(&cursor, "protocol");
    message__demand(&cursor, is_binary <= 1, 1, "protocol");
    out->is_binary = is_binary == 1;
    out->bytes = rest_of(&cursor, 1, &out->len);
    return message__end(&cursor);
}

size_t
message_put_reply(
    uint8_t body[MESSAGE_REPLY_HEAD], const struct message_reply *reply)
{
    ASSERT(reply->len == 0 || reply->outcome == MESSAGE_ANSWERED);
    bytes_put_u64(body, reply->id);
    bytes_put_u64(body + 8, reply->seq);
    body[16] = (uint8_t)reply->outcome;
    return MESSAGE_REPLY_HEAD;
}

int
message_get_reply(const struct stream_frame *frame, struct message_reply *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    uint8_t outcome;

    out->id = message__u64(&cursor, "id");
    out->seq = message__u64(&cursor, "seq");
    outcome = message__u8(&cursor, "outcome");
    message__demand(&cursor,
        outcome == MESSAGE_ANSWERED ||
            (outcome <= MESSAGE_UNSURE && frame->len == MESSAGE_REPLY_HEAD),
        1, "outcome");
    out->outcome = (enum message_outcome)outcome;
    out->bytes = rest_of(&cursor, 0, &out->len);
    return message__end(&cursor);
}
