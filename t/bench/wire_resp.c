/* SPDX-License-Identifier: BSD-3-Clause */

/* Redis's protocol, RESP2: commands are arrays of strings; a reply is one
 * line that says what it is, and a string's bytes behind that.
 *
 *     GET KEY        $BYTES, the number; or $-1
 *     MGET KEY KEY   *KEYS, then each as of GET
 *     INCRBY KEY N   :SUM
 *     SET KEY TEXT   +OK
 */

#include "bench/wire.h"

#include "base/num.h"

#include <string.h>

enum { LINE_MAX = 32 /* none that is asked for comes near it */ };

static void
add_word(struct buf *out, struct wire_text word)
{
    buf_add_text(out, "$");
    buf_add_u64(out, word.len);
    buf_add_text(out, "\r\n");
    buf_add(out, word.at, word.len);
    buf_add_text(out, "\r\n");
}

void
wire_resp_add(struct buf *out, const struct wire_text *word, size_t n)
{
    buf_add_text(out, "*");
    buf_add_u64(out, n);
    buf_add_text(out, "\r\n");
    for (size_t i = 0; i < n; i++) {
        add_word(out, word[i]);
    }
}

static void
resp_get(struct buf *out, struct wire_text key)
{
    wire_resp_add(out, (struct wire_text[]){{"GET", 3}, key}, 2);
}

static void
resp_add(struct buf *out, struct wire_text key, struct wire_text number)
{
    wire_resp_add(out, (struct wire_text[]){{"INCRBY", 6}, key, number}, 3);
}

static void
resp_set(struct buf *out, struct wire_text key, struct wire_text data)
{
    wire_resp_add(out, (struct wire_text[]){{"SET", 3}, key, data}, 3);
}

static void
resp_head(struct buf *out, uint32_t n_keys)
{
    buf_add_text(out, "*");
    buf_add_u64(out, (uint64_t)n_keys + 1);
    buf_add_text(out, "\r\n$4\r\nMGET\r\n");
}

static void
resp_tail(struct buf *out)
{
    (void)out;
}

/* The line of one reply behind *at: a letter and a number. "$-1" has no
 * number: is_nil. */
static enum wire_state
take_line(const char *bytes, size_t len, size_t *at, char letter,
    uint64_t *number, bool *is_nil)
{
    size_t from = *at;
    struct wire_text line;
    if (from < len && bytes[from] != letter) {
        return WIRE_BAD;
    }
    size_t left = len - from;
    size_t near = from + (left < LINE_MAX ? left : LINE_MAX);
    if (!wire_line(bytes, near, at, &line)) {
        return left >= LINE_MAX ||
                (left > 0 && memchr(bytes + from, '\n', left) != NULL)
            ? WIRE_BAD
            : WIRE_MORE;
    }
    *is_nil = letter == '$' && wire_is(line, "$-1");
    return *is_nil || num_parse_u64(line.at + 1, line.len - 1, number)
        ? WIRE_WHOLE
        : WIRE_BAD;
}

/* A string or nil. */
static enum wire_state
take_string(const char *bytes, size_t len, size_t *at, struct wire_text *text,
    bool *is_nil)
{
    uint64_t size;
    enum wire_state state = take_line(bytes, len, at, '$', &size, is_nil);
    if (state != WIRE_WHOLE || *is_nil) {
        return state;
    }
    if (size > NUM_U64_DIGITS_MAX) {
        return WIRE_BAD;
    }
    if (len - *at < size + 2) {
        return WIRE_MORE;
    }
    *text = (struct wire_text){bytes + *at, (size_t)size};
    *at += (size_t)size + 2;
    return memcmp(bytes + *at - 2, "\r\n", 2) == 0 ? WIRE_WHOLE : WIRE_BAD;
}

/* Bytes of a string of up to 9 bytes that has come whole, which all but a few
 * are; 0 where it is none: take_string then looks closer. */
static size_t
short_string(const char *bytes, size_t len)
{
    enum { HEAD = 4, END = 2 };
    if (len < HEAD || bytes[0] != '$' || bytes[1] < '0' || bytes[1] > '9' ||
        bytes[2] != '\r' || bytes[3] != '\n') {
        return 0;
    }
    size_t want = HEAD + (size_t)(bytes[1] - '0') + END;
    return len >= want && bytes[want - 2] == '\r' && bytes[want - 1] == '\n'
        ? want
        : 0;
}

static enum wire_state
frame_strings(const char *bytes, size_t len, size_t at, uint32_t n,
    struct wire_reply *reply)
{
    uint32_t hits = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t quick = short_string(bytes + at, len - at);
        if (quick > 0) {
            at += quick;
            hits++;
            continue;
        }
        struct wire_text text;
        bool is_nil;
        enum wire_state state = take_string(bytes, len, &at, &text, &is_nil);
        if (state != WIRE_WHOLE) {
            return state;
        }
        hits += !is_nil;
    }
    *reply = (struct wire_reply){.len = at, .hits = hits};
    return WIRE_WHOLE;
}

/* +OK, and nothing else. */
static enum wire_state
frame_ok(const char *bytes, size_t len, struct wire_reply *reply)
{
    static const char ok[] = "+OK\r\n";
    size_t want = sizeof(ok) - 1;
    if (memcmp(bytes, ok, len < want ? len : want) != 0) {
        return WIRE_BAD;
    }
    *reply = (struct wire_reply){.len = want, .hits = 1};
    return len < want ? WIRE_MORE : WIRE_WHOLE;
}

static enum wire_state
resp_frame(enum wire_ask ask, uint32_t n_keys, const char *bytes, size_t len,
    struct wire_reply *reply)
{
    size_t at = 0;
    uint64_t number;
    bool is_nil;
    enum wire_state state;
    if (len == 0) {
        return WIRE_MORE;
    }
    switch (ask) {
    case WIRE_SET:
        return frame_ok(bytes, len, reply);
    case WIRE_GET:
        return frame_strings(bytes, len, 0, 1, reply);
    case WIRE_ADD:
        state = take_line(bytes, len, &at, ':', &number, &is_nil);
        *reply = (struct wire_reply){.len = at, .hits = 1};
        return state;
    case WIRE_MULTI:
        break;
    }
    state = take_line(bytes, len, &at, '*', &number, &is_nil);
    if (state != WIRE_WHOLE) {
        return state;
    }
    return number == n_keys ? frame_strings(bytes, len, at, n_keys, reply)
                            : WIRE_BAD;
}

static enum wire_found
resp_next(enum wire_ask ask, const char *bytes, size_t len, size_t *at,
    struct wire_value *value)
{
    uint64_t number;
    bool is_nil;
    struct wire_text text;
    *value = (struct wire_value){0};
    if (ask == WIRE_MULTI && *at == 0 &&
        take_line(bytes, len, at, '*', &number, &is_nil) != WIRE_WHOLE) {
        return WIRE_WRONG;
    }
    if (*at == len) {
        return WIRE_END;
    }
    if (ask == WIRE_ADD) {
        return take_line(bytes, len, at, ':', &value->number, &is_nil) ==
                WIRE_WHOLE
            ? WIRE_VALUE
            : WIRE_WRONG;
    }
    if (take_string(bytes, len, at, &text, &value->is_absent) != WIRE_WHOLE) {
        return WIRE_WRONG;
    }
    return value->is_absent || num_parse_u64(text.at, text.len, &value->number)
        ? WIRE_VALUE
        : WIRE_WRONG;
}

const struct wire wire_resp = {.get_fn = resp_get,
    .add_fn = resp_add,
    .set_fn = resp_set,
    .head_fn = resp_head,
    .key_fn = add_word,
    .tail_fn = resp_tail,
    .frame_fn = resp_frame,
    .next_fn = resp_next};
