/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of bodies. Whatever is read has been bounded by the end of the body
 * first. */
#include "base/assert.h"
#include "base/bytes.h"
#include "base/err.h"
#include "repl/message_priv.h"

#include <string.h>

struct message_cursor
message__begin(const struct stream_frame *frame, struct stream_fault *fault)
{
    return (struct message_cursor){.start = frame->body,
        .at = frame->body,
        .end = frame->body + frame->len,
        .fault = fault,
        .type = (uint8_t)frame->type};
}

static void
say_wrong(struct message_cursor *cursor, const uint8_t *at, const char *what)
{
    if (cursor->is_wrong) {
        return;
    }
    cursor->is_wrong = true;
    *cursor->fault = (struct stream_fault){.what = what,
        .offset = STREAM_HEAD_BYTES + (uint32_t)(at - cursor->start),
        .type = cursor->type};
}

int
message__end(struct message_cursor *cursor)
{
    if (cursor->at != cursor->end) {
        say_wrong(cursor, cursor->at, "the end");
    }
    return cursor->is_wrong ? ERR_CORRUPT : 0;
}

void
message__demand(struct message_cursor *cursor, bool is_right, size_t back,
    const char *what)
{
    ASSERT(cursor->is_wrong || back <= (size_t)(cursor->at - cursor->start));
    if (!is_right) {
        say_wrong(
            cursor, cursor->is_wrong ? cursor->at : cursor->at - back, what);
    }
}

const uint8_t *
message__bytes(struct message_cursor *cursor, size_t n, const char *what)
{
    const uint8_t *at = cursor->at;

    if (cursor->is_wrong || (size_t)(cursor->end - at) < n) {
        say_wrong(cursor, at, what);
        return NULL;
    }
    cursor->at += n;
    return at;
}

uint8_t
message__u8(struct message_cursor *cursor, const char *what)
{
    const uint8_t *at = message__bytes(cursor, 1, what);

    return at == NULL ? 0 : *at;
}

uint16_t
message__u16(struct message_cursor *cursor, const char *what)
{
    const uint8_t *at = message__bytes(cursor, 2, what);

    return at == NULL ? 0 : bytes_get_u16(at);
}

uint32_t
message__u32(struct message_cursor *cursor, const char *what)
{
    const uint8_t *at = message__bytes(cursor, 4, what);

    return at == NULL ? 0 : bytes_get_u32(at);
}

uint64_t
message__u64(struct message_cursor *cursor, const char *what)
{
    const uint8_t *at = message__bytes(cursor, 8, what);

    return at == NULL ? 0 : bytes_get_u64(at);
}

static struct message_text
text(struct message_cursor *cursor, const char *what)
{
    uint8_t len = message__u8(cursor, what);
    const uint8_t *at = message__bytes(cursor, len, what);

    return (struct message_text){.at = at, .len = at == NULL ? 0 : len};
}

bool
message_is_name(const uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t c = at[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool is_digit = c >= '0' && c <= '9';

        if (!is_letter && !is_digit && c != '.' && c != '_' && c != '-' &&
            c != '/') {
            return false;
        }
    }
    return len >= 1 && len <= MESSAGE_NAME_MAX;
}

struct message_text
message__name(
    struct message_cursor *cursor, bool may_be_empty, const char *what)
{
    struct message_text out = text(cursor, what);

    message__demand(cursor,
        (may_be_empty && out.len == 0) || message_is_name(out.at, out.len),
        out.len, what);
    return out;
}

struct message_text
message__words(
    struct message_cursor *cursor, bool may_have_spaces, const char *what)
{
    struct message_text out = text(cursor, what);

    for (size_t i = 0; i < out.len; i++) {
        bool is_right = out.at[i] > ' ' && out.at[i] <= '~';

        message__demand(cursor,
            is_right || (may_have_spaces && out.at[i] == ' '), out.len - i,
            what);
    }
    return out;
}

void
message__history(
    struct message_cursor *cursor, struct history *out, const char *what)
{
    if (cursor->is_wrong) {
        *out = (struct history){0};
        return;
    }
    message__demand(
        cursor, history_get(&cursor->at, cursor->end, out), 0, what);
}

size_t
message__put_text(uint8_t *out, const struct message_text *text)
{
    out[0] = text->len;
    if (text->len > 0) {
        memcpy(out + 1, text->at, text->len);
    }
    return 1 + (size_t)text->len;
}

size_t
message__put_u64s(uint8_t *out, const uint64_t *value, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes_put_u64(out + 8 * i, value[i]);
    }
    return 8 * n;
}
