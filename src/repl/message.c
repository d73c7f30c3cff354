/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies: parts of fixed length first, then texts with their length before
 * them, then a history. What is read is checked in itself: numbers that have an
 * order are in it, a bit that nobody knows is 0, nothing is left behind the
 * last part. What it means at that moment is repl/link's to judge. */
#include "repl/message.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "repl/message_priv.h"

#include <string.h>

enum {
    HELLO_FIXED = 104,
    WELCOME_FIXED = 64,
    HELLO_FLAGS = HELLO_DOUBTFUL | HELLO_NEVER_VOTES | HELLO_FORWARDS
};

_Static_assert(HELLO_FIXED + 2 * (1 + MESSAGE_NAME_MAX) +
            2 * (1 + MESSAGE_ADDRESS_MAX) + HISTORY_BYTES_MAX <=
        MESSAGE_SMALL_MAX,
    "the longest HELLO has room");
_Static_assert(MESSAGE_NEWS_BYTES + MESSAGE_BATCH_BYTES + FRAME_PAYLOAD_MAX <=
        STREAM_BODY_MAX,
    "the largest batch has room");

void
message_put_challenge(uint8_t *body, const uint8_t nonce[STREAM_NONCE_BYTES])
{
    memcpy(body, nonce, STREAM_NONCE_BYTES);
}

int
message_get_challenge(const struct stream_frame *frame,
    uint8_t nonce[STREAM_NONCE_BYTES], struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    const uint8_t *at = message__bytes(&cursor, STREAM_NONCE_BYTES, "nonce");

    if (at != NULL) {
        memcpy(nonce, at, STREAM_NONCE_BYTES);
    }
    return message__end(&cursor);
}

size_t
message_put_hello(uint8_t *body, const struct message_hello *hello)
{
    const uint64_t numbers[] = {hello->epoch, hello->seed, hello->promised,
        hello->written, hello->synced};
    size_t len = 64;

    ASSERT(hello->synced <= hello->written);
    ASSERT(history_is_end(&hello->history, hello->written));
    ASSERT(message_is_name(hello->group.at, hello->group.len));
    ASSERT(message_is_name(hello->name.at, hello->name.len));
    memcpy(body, hello->nonce, STREAM_NONCE_BYTES);
    memcpy(body + 16, hello->proof, PROOF_BYTES);
    body[48] = (uint8_t)hello->purpose;
    body[49] = hello->least;
    body[50] = hello->most;
    body[51] = (uint8_t)hello->level;
    bytes_put_u16(body + 52, hello->flags);
    bytes_put_u16(body + 54, hello->priority);
    body[56] = hello->formats.entry;
    body[57] = hello->formats.manifest;
    body[58] = hello->formats.segment;
    body[59] = 0;
    bytes_put_u32(body + 60, hello->shards);
    len += message__put_u64s(body + len, numbers, 5);
    ASSERT(len == HELLO_FIXED);
    len += message__put_text(body + len, &hello->group);
    len += message__put_text(body + len, &hello->name);
    len += message__put_text(body + len, &hello->client);
    len += message__put_text(body + len, &hello->repl);
    return len + history_put(&hello->history, body + len);
}

/* The parts of one or two bytes. */
static void
get_hello_kind(struct message_cursor *cursor, struct message_hello *out)
{
    uint8_t purpose = message__u8(cursor, "purpose"), level;

    message__demand(cursor,
        purpose >= MESSAGE_FOLLOW && purpose <= MESSAGE_FEED, 1, "purpose");
    out->purpose = (enum message_purpose)purpose;
    out->least = message__u8(cursor, "least protocol");
    message__demand(cursor, out->least >= 1, 1, "least protocol");
    out->most = message__u8(cursor, "most protocol");
    message__demand(cursor, out->most >= out->least, 1, "most protocol");
    level = message__u8(cursor, "level");
    message__demand(cursor, level <= MESSAGE_APPLIED, 1, "level");
    out->level = (enum message_level)level;
    out->flags = message__u16(cursor, "flags");
    message__demand(cursor, (out->flags & ~HELLO_FLAGS) == 0, 2, "flags");
    out->priority = message__u16(cursor, "priority");
    out->formats.entry = message__u8(cursor, "kind of entry");
    out->formats.manifest = message__u8(cursor, "version of the manifest");
    out->formats.segment = message__u8(cursor, "version of segments");
    message__demand(cursor, message__u8(cursor, "0") == 0, 1, "0");
}

static void
get_hello_numbers(struct message_cursor *cursor, struct message_hello *out)
{
    bool is_empty;

    out->shards = message__u32(cursor, "shards");
    out->epoch = message__u64(cursor, "epoch");
    is_empty = out->epoch == 0;
    message__demand(cursor, is_empty == (out->shards == 0), 12, "shards");
    out->seed = message__u64(cursor, "seed");
    message__demand(cursor, !is_empty || out->seed == 0, 8, "seed");
    out->promised = message__u64(cursor, "promised");
    message__demand(cursor, out->promised <= SEQ_TERM_MAX, 8, "promised");
    out->written = message__u64(cursor, "last written");
    message__demand(cursor, !is_empty || out->written == 0, 8, "last written");
    out->synced = message__u64(cursor, "last synced");
    message__demand(cursor, out->synced <= out->written, 8, "last synced");
}

int
message_get_hello(const struct stream_frame *frame, struct message_hello *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    const uint8_t *at;

    *out = (struct message_hello){0};
    at = message__bytes(&cursor, STREAM_NONCE_BYTES + PROOF_BYTES, "nonce");
    if (at != NULL) {
        memcpy(out->nonce, at, STREAM_NONCE_BYTES);
        memcpy(out->proof, at + STREAM_NONCE_BYTES, PROOF_BYTES);
    }
    get_hello_kind(&cursor, out);
    get_hello_numbers(&cursor, out);
    out->group = message__name(&cursor, false, "group");
    out->name = message__name(&cursor, false, "name");
    out->client = message__words(&cursor, false, "address for clients");
    out->repl = message__words(&cursor, false, "address for replicas");
    message__history(&cursor, &out->history, "history");
    message__demand(&cursor, history_is_end(&out->history, out->written), 0,
        "a history that ends with the last batch");
    return message__end(&cursor);
}

size_t
message_put_welcome(uint8_t *body, const struct message_welcome *welcome)
{
    const uint64_t numbers[] = {
        welcome->seq, welcome->last, welcome->committed};
    size_t len = 40;

    ASSERT(welcome->committed <= welcome->last);
    ASSERT(welcome->seq <= welcome->last);
    ASSERT(history_is_end(&welcome->history, welcome->last));
    ASSERT(message_is_name(welcome->name.at, welcome->name.len));
    memcpy(body, welcome->proof, PROOF_BYTES);
    body[32] = welcome->protocol;
    body[33] = (uint8_t)welcome->verdict;
    memset(body + 34, 0, 6);
    len += message__put_u64s(body + len, numbers, 3);
    ASSERT(len == WELCOME_FIXED);
    len += message__put_text(body + len, &welcome->name);
    len += message__put_text(body + len, &welcome->client);
    return len + history_put(&welcome->history, body + len);
}

int
message_get_welcome(const struct stream_frame *frame,
    struct message_welcome *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    const uint8_t *at = message__bytes(&cursor, PROOF_BYTES, "proof");
    uint8_t verdict;

    *out = (struct message_welcome){0};
    if (at != NULL) {
        memcpy(out->proof, at, PROOF_BYTES);
    }
    out->protocol = message__u8(&cursor, "protocol");
    message__demand(&cursor, out->protocol >= 1, 1, "protocol");
    verdict = message__u8(&cursor, "verdict");
    message__demand(&cursor,
        verdict >= MESSAGE_CONTINUE && verdict <= MESSAGE_SNAPSHOT, 1,
        "verdict");
    out->verdict = (enum message_verdict)verdict;
    message__demand(&cursor, message__u16(&cursor, "0") == 0, 2, "0");
    message__demand(&cursor, message__u32(&cursor, "0") == 0, 4, "0");
    out->seq = message__u64(&cursor, "seq");
    out->last = message__u64(&cursor, "last");
    message__demand(&cursor, out->seq <= out->last, 8, "last");
    out->committed = message__u64(&cursor, "committed");
    message__demand(&cursor, out->committed <= out->last, 8, "committed");
    out->name = message__name(&cursor, false, "name");
    out->client = message__words(&cursor, false, "address for clients");
    message__history(&cursor, &out->history, "history");
    message__demand(&cursor, history_is_end(&out->history, out->last), 0,
        "a history that ends with the last batch");
    return message__end(&cursor);
}

size_t
message_put_refused(uint8_t *body, const struct message_refused *refused)
{
    size_t len = 8;

    bytes_put_u64(body, refused->promised);
    len += message__put_text(body + len, &refused->primary);
    return len + message__put_text(body + len, &refused->address);
}

int
message_get_refused(const struct stream_frame *frame,
    struct message_refused *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->promised = message__u64(&cursor, "promised");
    message__demand(&cursor, out->promised <= SEQ_TERM_MAX, 8, "promised");
    out->primary = message__name(&cursor, true, "name");
    out->address = message__words(&cursor, false, "address for clients");
    return message__end(&cursor);
}

size_t
message_put_error(uint8_t *body, const struct message_error *error)
{
    bytes_put_u32(body, error->code);
    return 4 + message__put_text(body + 4, &error->text);
}

int
message_get_error(const struct stream_frame *frame, struct message_error *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->code = message__u32(&cursor, "code");
    message__demand(&cursor, out->code > 0, 4, "code");
    out->text = message__words(&cursor, true, "text");
    return message__end(&cursor);
}
