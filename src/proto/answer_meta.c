/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers in the words of the meta protocol: a code of two letters, the return
 * flags in the order in which they were asked for, and, behind VA, the value.
 * The flags are read once more from the request's line: what is asked for by a
 * letter is not worth a place in every request. */
#include "proto/answer.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "proto/reply.h"
#include "proto/words.h"

#include <string.h>

enum {
    CODE_MAX = 64,                           /* code, size, W X Z, two CRLF */
    RETURN_FLAG_MAX = NUM_U64_DIGITS_MAX + 2 /* a space, a letter, a number */
};

/* What is left out where the client wants to be told of trouble only. */
static bool
is_hidden(enum answer_kind kind)
{
    return kind == ANSWER_STORED || kind == ANSWER_DELETED ||
        kind == ANSWER_NUMBER || kind == ANSWER_MISS;
}

static const char *
code_of(enum answer_kind kind)
{
    switch (kind) {
    case ANSWER_NOT_STORED:
        return "NS";
    case ANSWER_EXISTS:
        return "EX";
    case ANSWER_NOT_FOUND:
        return "NF";
    case ANSWER_MISS:
        return "EN";
    default:
        return "HD";
    }
}

/* The flags that such an answer gives back; each is in a request once, but for
 * what me ignores. */
static const char *
flags_of(const struct echo *echo, enum answer_kind kind)
{
    if (echo->op == REQUEST_INSPECT) {
        return "";
    }
    if (request_is_storage(echo->op)) {
        return "Okcs";
    }
    switch (kind) {
    case ANSWER_VALUE:
        return "Okcfhlst";
    case ANSWER_NUMBER:
        return "Okct";
    default:
        return "Ok";
    }
}

static char *
put(char *at, const char *bytes, size_t len)
{
    memcpy(at, bytes, len);
    return at + len;
}

static char *
put_number(char *at, char letter, uint64_t number)
{
    *at++ = ' ';
    *at++ = letter;
    return at + num_format_u64(number, at);
}

static char *
put_key(char *at, const struct echo *echo, const char *bytes)
{
    at = put(at, " k", 2);
    at = put(at, bytes + echo->key.at, echo->key.len);
    return echo->key_is_base64 ? put(at, " b", 2) : at;
}

static char *
put_ttl(char *at, int64_t ttl_s)
{
    return ttl_s == ANSWER_NEVER ? put(at, " t-1", 4)
                                 : put_number(at, 't', (uint64_t)ttl_s);
}

/* True where T, or N of what is new, stands before the flag: flags do what they
 * do one after the other. */
static bool
is_set_before(struct span flag, const struct echo *echo, const char *bytes,
    const struct answer *answer)
{
    struct words words = words_of(bytes, echo->meta);
    struct span word;
    while (words_next(&words, &word) && word.at < flag.at) {
        if (bytes[word.at] == 'T' ||
            (bytes[word.at] == 'N' && answer->is_new)) {
            return true;
        }
    }
    return false;
}

/* One flag that the answer gives back. */
static char *
put_flag(char *at, const struct echo *echo, const char *bytes,
    struct span flag, const struct answer *answer)
{
    char letter = bytes[flag.at];
    switch (letter) {
    case 'O':
        *at++ = ' ';
        return put(at, bytes + flag.at, flag.len);
    case 'k':
        return put_key(at, echo, bytes);
    case 'c':
        return put_number(at, letter, answer->cas);
    case 'f':
        return put_number(at, letter, answer->flags);
    case 'h':
        return put_number(at, letter, answer->was_fetched);
    case 'l':
        return put_number(at, letter, answer->idle_s);
    case 's':
        return put_number(at, letter,
            answer->kind == ANSWER_VALUE || answer->kind == ANSWER_STORED
                ? answer->value_len
                : echo->value_len);
    default:
        return put_ttl(at,
            is_set_before(flag, echo, bytes, answer) ? answer->ttl_s
                                                     : answer->old_ttl_s);
    }
}

static char *
put_flags(char *at, const struct echo *echo, const char *bytes,
    const struct answer *answer)
{
    const char *shown = flags_of(echo, answer->kind);
    struct words words = words_of(bytes, echo->meta);
    struct span flag;
    while (words_next(&words, &flag)) {
        if (strchr(shown, bytes[flag.at]) != NULL) {
            at = put_flag(at, echo, bytes, flag, answer);
        }
    }
    if (answer->was_won) {
        at = put(at, " Z", 2);
    }
    if (answer->is_stale) {
        at = put(at, " X", 2);
    }
    return answer->has_won ? put(at, " W", 2) : at;
}

/* True where the client has sent the cas of what it asks for: it has the value
 * already. */
static bool
is_known(
    const struct echo *echo, const char *bytes, const struct answer *answer)
{
    struct words words = words_of(bytes, echo->meta);
    struct span flag;
    uint64_t cas;
    if (answer->kind != ANSWER_VALUE) {
        return false;
    }
    while (words_next(&words, &flag)) {
        if (bytes[flag.at] == 'C' &&
            num_parse_u64(bytes + flag.at + 1, flag.len - 1, &cas)) {
            return cas == answer->cas;
        }
    }
    return false;
}

/* A line with its code, and the value of value_len bytes where there is one to
 * be sent (else NULL). */
static void
put_line(const struct echo *echo, const char *bytes,
    const struct answer *answer, const char *value, size_t value_len,
    struct buf *out)
{
    /* each flag is at least a letter and a space in the request */
    size_t flags_max =
        (echo->meta.len + 1) / 2 * RETURN_FLAG_MAX + echo->meta.len;
    bool is_around = value != NULL && answer->value_at != NULL;
    size_t room = CODE_MAX + flags_max + echo->key.len;
    room += is_around ? 0 : value_len;
    char *start = buf_reserve(out, room);
    if (start == NULL) {
        return;
    }
    char *at = start;
    if (value != NULL) {
        at = put(at, "VA ", 3);
        at += num_format_u64(value_len, at);
    } else {
        at = put(at, code_of(answer->kind), 2);
    }
    at = put_flags(at, echo, bytes, answer);
    at = put(at, "\r\n", 2);
    if (is_around) {
        *answer->value_at = out->len + (size_t)(at - start);
    } else if (value != NULL) {
        at = put(at, value, value_len);
    }
    if (value != NULL) {
        at = put(at, "\r\n", 2);
    }
    ASSERT((size_t)(at - start) <= room);
    out->len += (size_t)(at - start);
}

/* The line that mg and ma answer with, with the value if it is wanted. */
static void
put_value(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    char number[NUM_U64_DIGITS_MAX];
    const char *value = answer->value;
    size_t value_len = answer->value_len;
    if (answer->kind == ANSWER_NUMBER) {
        value = number;
        value_len = num_format_u64(answer->number, number);
    }
    if (!echo->wants_value || is_known(echo, bytes, answer)) {
        put_line(echo, bytes, answer, NULL, 0, out);
    } else {
        put_line(echo, bytes, answer, value, value_len, out);
    }
}

static void
put_pair(struct buf *out, const char *name, uint64_t number)
{
    char text[NUM_U64_DIGITS_MAX];
    buf_add_text(out, name);
    buf_add(out, text, num_format_u64(number, text));
}

/* me: for people to read. */
static void
put_about(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    buf_add_text(out, "ME ");
    buf_add(out, bytes + echo->key.at, echo->key.len);
    if (answer->ttl_s == ANSWER_NEVER) {
        buf_add_text(out, " exp=-1");
    } else {
        put_pair(out, " exp=", (uint64_t)answer->ttl_s);
    }
    put_pair(out, " la=", answer->idle_s);
    put_pair(out, " cas=", answer->cas);
    buf_add_text(out, answer->was_fetched ? " fetch=yes" : " fetch=no");
    put_pair(out, " cls=", answer->item_class);
    put_pair(out, " size=", answer->item_bytes);
    buf_add(out, "\r\n", 2);
}

void
answer__meta(const struct echo *echo, const char *bytes,
    const struct answer *answer, struct buf *out)
{
    if (echo->is_quiet && is_hidden(answer->kind)) {
        return;
    }
    switch (answer->kind) {
    case ANSWER_OK:
        reply_line(out, "MN");
        return;
    case ANSWER_REFUSED:
        answer__refuse(echo, answer, out);
        return;
    case ANSWER_ABOUT:
        put_about(echo, bytes, answer, out);
        return;
    case ANSWER_VALUE:
    case ANSWER_NUMBER:
        put_value(echo, bytes, answer, out);
        return;
    default:
        put_line(echo, bytes, answer, NULL, 0, out);
        return;
    }
}
