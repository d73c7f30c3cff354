/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_MESSAGE_PRIV_H
#define REPL_MESSAGE_PRIV_H

#include "repl/message.h"

/* Reading a body from its beginning to its end. The first thing that is wrong
 * is remembered, and from then on all that is read is 0 or empty: so whoever
 * reads asks once, in the end. */
struct message_cursor {
    const uint8_t *start, *at, *end;
    struct stream_fault *fault;
    bool is_wrong;
    uint8_t type;
};

struct message_cursor message__begin(
    const struct stream_frame *frame, struct stream_fault *fault);

/* 0 where all was right and nothing is left, else ERR_CORRUPT. */
int message__end(struct message_cursor *cursor);

/* what: the field as a person knows it, a literal. */
uint8_t message__u8(struct message_cursor *cursor, const char *what);
uint16_t message__u16(struct message_cursor *cursor, const char *what);
uint32_t message__u32(struct message_cursor *cursor, const char *what);
uint64_t message__u64(struct message_cursor *cursor, const char *what);

/* n bytes; NULL where they are not there. */
const uint8_t *message__bytes(
    struct message_cursor *cursor, size_t n, const char *what);

/* A byte with the length, then the text. A name, or nothing where that is
 * allowed; printable characters. */
struct message_text message__name(
    struct message_cursor *cursor, bool may_be_empty, const char *what);
struct message_text message__words(
    struct message_cursor *cursor, bool may_have_spaces, const char *what);
void message__history(
    struct message_cursor *cursor, struct history *out, const char *what);

/* Says that what was read last, back bytes before where it stands now, is
 * wrong, if it is. */
void message__demand(struct message_cursor *cursor, bool is_right, size_t back,
    const char *what);

/* Return the length. */
size_t message__put_text(uint8_t *out, const struct message_text *text);

/* n words, each of 8 bytes. */
size_t message__put_u64s(uint8_t *out, const uint64_t *value, size_t n);

#endif
