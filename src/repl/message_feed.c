/* SPDX-License-Identifier: BSD-3-Clause */
/* What a feed asks for, and which directory it is of. */
#include "repl/message_feed.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "repl/message_priv.h"

size_t
message_put_want(uint8_t *body, const struct message_want *want)
{
    ASSERT(want->rule.len >= 1 && want->rule.len <= MESSAGE_RULE_MAX);
    return message__put_text(body, &want->rule);
}

int
message_get_want(const struct stream_frame *frame, struct message_want *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->rule = message__words(&cursor, false, "rule");
    message__demand(&cursor,
        out->rule.len >= 1 && out->rule.len <= MESSAGE_RULE_MAX, out->rule.len,
        "rule");
    return message__end(&cursor);
}

size_t
message_put_source(uint8_t *body, const struct message_source *source)
{
    ASSERT(source->epoch != 0 && source->shards != 0);
    bytes_put_u64(body, source->epoch);
    bytes_put_u64(body + 8, source->seed);
    bytes_put_u32(body + 16, source->shards);
    return 20;
}

int
message_get_source(const struct stream_frame *frame,
    struct message_source *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->epoch = message__u64(&cursor, "epoch");
    message__demand(&cursor, out->epoch != 0, 8, "epoch");
    out->seed = message__u64(&cursor, "seed");
    out->shards = message__u32(&cursor, "shards");
    message__demand(&cursor, out->shards != 0, 4, "shards");
    return message__end(&cursor);
}
