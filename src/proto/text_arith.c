/* SPDX-License-Identifier: BSD-3-Clause */
/* The one lane beside text_parse's table of commands: increments come a
 * hundred to a read, and half of what one cost was to look at its bytes again
 * and again: for the newline, for each word, for noreply.
 *
 * Here the line is passed once. The end of the key is found eight bytes at a
 * time (base/chunk.h). Whatever does not look as most of these lines do is left
 * to the long way, which knows what is wrong with it. A key that begins with a
 * digit is no counter's name, so that the line is not the dialect's. */
#include "proto/text_arith.h"

#include "base/chunk.h"
#include "proto/text.h"

#include <stdint.h>
#include <string.h>

enum {
    COMMAND_LEN = 4,
    KEY_AT = COMMAND_LEN + 1,
    LINE_LEN_LEAST = KEY_AT + 4, /* a key, a space, a digit, a newline */
    DIGITS_MAX = 19              /* any number of so many fits 64 bits */
};

static inline bool
is_digit(char c)
{
    return (unsigned char)(c - '0') <= 9;
}

/* The first byte from at on that is a space or a control character, limit
 * where none is before it. */
static inline size_t
word_end(const char *bytes, size_t at, size_t limit)
{
    while (at + CHUNK_BYTES <= limit) {
        unsigned n = chunk_count_printed(chunk_load(bytes + at));
        if (n < CHUNK_BYTES) {
            return at + n;
        }
        at += CHUNK_BYTES;
    }
    while (at < limit && (unsigned char)bytes[at] > ' ') {
        at++;
    }
    return at;
}

/* What follows the number, at the line's end: its length with the newline, or
 * 0 where it is something else or not there. */
static inline size_t
line_tail(const char *tail, size_t left, bool *noreply)
{
    static const char word[] = " noreply";
    enum { WORD_LEN = sizeof word - 1 };
    size_t at = 0;
    *noreply =
        left > WORD_LEN && tail[0] == ' ' && memcmp(tail, word, WORD_LEN) == 0;
    if (*noreply) {
        at = WORD_LEN;
    }
    if (at < left && tail[at] == '\r') {
        at++;
    }
    return at < left && tail[at] == '\n' ? at + 1 : 0;
}

bool
text__arith(const char *bytes, size_t len, struct request *out)
{
    if (len < LINE_LEN_LEAST || !is_digit(bytes[KEY_AT])) {
        return false;
    }
    bool is_incr = memcmp(bytes, "incr ", KEY_AT) == 0;
    if (!is_incr && memcmp(bytes, "decr ", KEY_AT) != 0) {
        return false;
    }
    size_t limit =
        len < KEY_AT + TEXT_KEY_MAX + 1 ? len : KEY_AT + TEXT_KEY_MAX + 1;
    size_t key_end = word_end(bytes, KEY_AT, limit);
    if (key_end == limit || bytes[key_end] != ' ') {
        return false;
    }
    uint64_t number = 0;
    size_t at = key_end + 1;
    size_t stop = len - at < DIGITS_MAX ? len : at + DIGITS_MAX;
    for (; at < stop && is_digit(bytes[at]); at++) {
        number = number * 10 + (uint64_t)(bytes[at] - '0');
    }
    bool noreply;
    size_t tail = line_tail(bytes + at, len - at, &noreply);
    if (at == key_end + 1 || tail == 0) {
        return false;
    }
    *out = (struct request){.op = is_incr ? REQUEST_INCR : REQUEST_DECR,
        .noreply = noreply,
        .len = (uint32_t)(at + tail),
        .key = {KEY_AT, (uint32_t)(key_end - KEY_AT)},
        .number = number};
    return true;
}
