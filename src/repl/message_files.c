/* SPDX-License-Identifier: BSD-3-Clause */
/* Files on their way. Numbers and lengths of files are only bounded here by
 * what a file can have; that they fit the manifest is for who takes them. */
#include "repl/message_files.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "repl/message_priv.h"

#define FILE_BYTES_MAX ((uint64_t)INT64_MAX)

_Static_assert(4 + MESSAGE_HAVE_MAX * MESSAGE_HAVE_BYTES <= STREAM_BODY_MAX,
    "they have room");

size_t
message_put_snapshot(uint8_t *body, const struct message_snapshot *snapshot)
{
    size_t len = 24;

    ASSERT(snapshot->files > 0 && snapshot->files <= MESSAGE_FILES_MAX);
    ASSERT(snapshot->manifest_len > 0 &&
        snapshot->manifest_len <= MESSAGE_MANIFEST_MAX);
    ASSERT(message_is_name(snapshot->source.at, snapshot->source.len));
    bytes_put_u64(body, snapshot->first);
    bytes_put_u64(body + 8, snapshot->bytes);
    bytes_put_u32(body + 16, snapshot->files);
    bytes_put_u32(body + 20, snapshot->manifest_len);
    len += message__put_text(body + len, &snapshot->source);
    return len;
}

int
message_get_snapshot(const struct stream_frame *frame,
    struct message_snapshot *out, struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->first = message__u64(&cursor, "first batch");
    message__demand(&cursor, out->first > 0, 8, "first batch");
    out->bytes = message__u64(&cursor, "bytes");
    message__demand(&cursor, out->bytes <= FILE_BYTES_MAX, 8, "bytes");
    out->files = message__u32(&cursor, "files");
    message__demand(&cursor, out->files > 0 && out->files <= MESSAGE_FILES_MAX,
        4, "files");
    out->manifest_len = message__u32(&cursor, "length of the manifest");
    message__demand(&cursor,
        out->manifest_len > 0 && out->manifest_len <= MESSAGE_MANIFEST_MAX, 4,
        "length of the manifest");
    out->source = message__name(&cursor, false, "source");
    return message__end(&cursor);
}

size_t
message_put_have(uint8_t *body, uint32_t n)
{
    ASSERT(n <= MESSAGE_HAVE_MAX);
    bytes_put_u32(body, n);
    return 4;
}

size_t
message_put_have_file(
    uint8_t out[MESSAGE_HAVE_BYTES], const struct message_have_file *file)
{
    const uint64_t numbers[] = {file->number, file->bytes, file->sum};

    out[0] = (uint8_t)file->kind;
    return 1 + message__put_u64s(out + 1, numbers, 3);
}

/* Of a file that a directory can have. */
static bool
is_kind(uint32_t kind)
{
    return kind >= MESSAGE_LOG && kind <= MESSAGE_SEGMENT;
}

static void
demand_file(struct message_cursor *cursor, uint64_t number, uint64_t bytes)
{
    message__demand(cursor, number > 0, 16, "number of a file");
    message__demand(
        cursor, bytes > 0 && bytes <= FILE_BYTES_MAX, 8, "bytes of a file");
}

int
message_get_have(const struct stream_frame *frame, struct message_have *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->n = message__u32(&cursor, "files");
    message__demand(&cursor, out->n <= MESSAGE_HAVE_MAX, 4, "files");
    out->at = cursor.at;
    out->end = cursor.end;
    for (uint32_t i = 0; i < out->n && !cursor.is_wrong; i++) {
        uint64_t number, bytes;

        message__demand(&cursor,
            is_kind(message__u8(&cursor, "kind of a file")), 1,
            "kind of a file");
        number = message__u64(&cursor, "number of a file");
        bytes = message__u64(&cursor, "bytes of a file");
        demand_file(&cursor, number, bytes);
        (void)message__u64(&cursor, "checksum of a file");
    }
    return message__end(&cursor);
}

bool
message_next_have(struct message_have *have, struct message_have_file *out)
{
    if (have->at == have->end) {
        return false;
    }
    ASSERT(have->end - have->at >= MESSAGE_HAVE_BYTES);
    *out =
        (struct message_have_file){.kind = (enum message_file_kind)have->at[0],
            .number = bytes_get_u64(have->at + 1),
            .bytes = bytes_get_u64(have->at + 9),
            .sum = bytes_get_u64(have->at + 17)};
    have->at += MESSAGE_HAVE_BYTES;
    return true;
}

size_t
message_put_file(uint8_t *body, const struct message_file *file)
{
    bytes_put_u32(body, file->kind);
    bytes_put_u64(body + 4, file->number);
    bytes_put_u64(body + 12, file->bytes);
    return 20;
}

int
message_get_file(const struct stream_frame *frame, struct message_file *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    uint32_t kind = message__u32(&cursor, "kind of a file");

    message__demand(&cursor, is_kind(kind) || kind == MESSAGE_CONTENTS, 4,
        "kind of a file");
    out->kind = (enum message_file_kind)kind;
    out->number = message__u64(&cursor, "number of a file");
    message__demand(&cursor, kind != MESSAGE_CONTENTS || out->number == 1, 8,
        "number of a file");
    out->bytes = message__u64(&cursor, "bytes of a file");
    demand_file(&cursor, out->number, out->bytes);
    return message__end(&cursor);
}

void
message_put_listed(
    uint8_t out[MESSAGE_LISTED_BYTES], const struct message_file *file)
{
    const uint64_t numbers[] = {file->number, file->bytes};

    out[0] = (uint8_t)file->kind;
    (void)message__put_u64s(out + 1, numbers, 2);
}

bool
message_get_listed(
    const uint8_t bytes[MESSAGE_LISTED_BYTES], struct message_file *out)
{
    *out = (struct message_file){.kind = (enum message_file_kind)bytes[0],
        .number = bytes_get_u64(bytes + 1),
        .bytes = bytes_get_u64(bytes + 9)};
    return is_kind(bytes[0]) && out->number > 0 && out->bytes > 0 &&
        out->bytes <= FILE_BYTES_MAX;
}

void
message_put_data(uint8_t out[MESSAGE_DATA_BYTES], uint64_t offset)
{
    bytes_put_u64(out, offset);
}

int
message_get_data(const struct stream_frame *frame, struct message_data *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);

    out->offset = message__u64(&cursor, "offset");
    out->len = (uint32_t)(cursor.end - cursor.at);
    out->bytes = message__bytes(&cursor, out->len, "bytes");
    message__demand(
        &cursor, out->len > 0 && out->len <= STREAM_DATA_MAX, 0, "bytes");
    message__demand(&cursor, out->offset <= FILE_BYTES_MAX - out->len,
        MESSAGE_DATA_BYTES + (size_t)out->len, "offset");
    return message__end(&cursor);
}

size_t
message_put_end(uint8_t *body, const struct message_end *end)
{
    bytes_put_u32(body, end->of);
    bytes_put_u64(body + 4, end->value);
    return 12;
}

int
message_get_end(const struct stream_frame *frame, struct message_end *out,
    struct stream_fault *fault)
{
    struct message_cursor cursor = message__begin(frame, fault);
    uint32_t of = message__u32(&cursor, "what ends");

    message__demand(&cursor, of >= MESSAGE_END_FILE && of <= MESSAGE_END_FETCH,
        4, "what ends");
    out->of = (enum message_end_of)of;
    out->value = message__u64(&cursor, "value");
    message__demand(
        &cursor, of != MESSAGE_END_SNAPSHOT || out->value == 0, 8, "0");
    return message__end(&cursor);
}
