/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises, and fetching the end of a log. A history and the last batch belong
 * together: neither is read without the other. */
#include "repl/message_term.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "repl/message_priv.h"

enum {
    PROMISED_FLAGS =
        PROMISED_DOUBTFUL | PROMISED_HEARS_NONE | PROMISED_HEARS_ONE,
    HEARS_BOTH = PROMISED_HEARS_NONE | PROMISED_HEARS_ONE
};

size_t
message_put_promise(uint8_t *body, const struct message_promise *promise)
{
    ASSERT(promise->term >= 1 && promise->term <= SEQ_TERM_MAX);
    bytes_put_u64(body, promise->term);
    bytes_put_u64(body + 8, promise->last);
    bytes_put_u32(body + 16, promise->flags);
    return 20 + message__put_text(body + 20, &promise->name);
}

int
message_get_promise(const struct stream_frame *frame,
    struct message_promise *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->term = message__u64(&cursor, "term");
    message__demand(
        &cursor, out->term >= 1 && out->term <= SEQ_TERM_MAX, 8, "term");
    out->last = message__u64(&cursor, "last");
    out->flags = message__u32(&cursor, "flags");
    message__demand(
        &cursor, (out->flags & ~(uint32_t)PROMISE_ASKS_ONLY) == 0, 4, "flags");
    out->name = message__name(&cursor, false, "name");
    return message__end(&cursor);
}

size_t
message_put_promised(uint8_t *body, const struct message_promised *promised)
{
    ASSERT(history_is_end(&promised->history, promised->last));
    bytes_put_u64(body, promised->last);
    bytes_put_u32(body + 8, promised->flags);
    return 12 + history_put(&promised->history, body + 12);
}

int
message_get_promised(const struct stream_frame *frame,
    struct message_promised *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->last = message__u64(&cursor, "last");
    out->flags = message__u32(&cursor, "flags");
    message__demand(&cursor,
        (out->flags & ~(uint32_t)PROMISED_FLAGS) == 0 &&
            (out->flags & HEARS_BOTH) != HEARS_BOTH,
        4, "flags");
    message__history(&cursor, &out->history, "history");
    message__demand(&cursor, history_is_end(&out->history, out->last), 0,
        "a history that ends with the last batch");
    return message__end(&cursor);
}

size_t
message_put_fetch(uint8_t *body, const struct message_fetch *fetch)
{
    ASSERT(history_is_end(&fetch->history, fetch->from));
    bytes_put_u64(body, fetch->from);
    return 8 + history_put(&fetch->history, body + 8);
}

int
message_get_fetch(const struct stream_frame *frame, struct message_fetch *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->from = message__u64(&cursor, "from");
    message__history(&cursor, &out->history, "history");
    message__demand(&cursor, history_is_end(&out->history, out->from), 0,
        "a history that ends with that batch");
    return message__end(&cursor);
}
