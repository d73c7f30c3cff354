/* SPDX-License-Identifier: BSD-3-Clause */

/* memcached's text protocol, its old commands and its meta commands.
 *
 *     get KEY KEY       VALUE KEY FLAGS BYTES, the number, ..., END
 *     mg KEY v k        VA BYTES kKEY, the number; or EN
 *     mg KEY v k q, mn  VA BYTES kKEY, the number, ..., MN
 *
 * The end of a long reply is found by the rarest letter of its last line,
 * which memchr passes many bytes an instruction for, and how many numbers it
 * holds by its line ends: two a number and one behind all. So a line too many
 * or too few is seen, wherever it stands; what the lines say is next_fn's
 * part, with --verify. */

#include "bench/wire.h"

#include "base/num.h"

#include <string.h>

enum { LANES = 16, LANE_MAX = 255 };

typedef uint8_t lanes __attribute__((vector_size(LANES)));

/* How many of the bytes are line ends. */
static size_t
count_lines(const char *bytes, size_t len)
{
    size_t n = 0;
    while (len >= LANES) {
        size_t blocks = len / LANES < LANE_MAX ? len / LANES : LANE_MAX;
        lanes sum = {0};
        for (size_t i = 0; i < blocks; i++) {
            lanes block;
            memcpy(&block, bytes + i * LANES, LANES);
            sum -= (lanes)(block == '\n'); /* -1 where it is one */
        }
        for (size_t i = 0; i < LANES; i++) {
            n += sum[i];
        }
        bytes += blocks * LANES;
        len -= blocks * LANES;
    }
    for (size_t i = 0; i < len; i++) {
        n += bytes[i] == '\n';
    }
    return n;
}

/* Whether bytes[0, len) may be the beginning of word. */
static bool
may_be(const char *bytes, size_t len, const char *word, size_t word_len)
{
    return memcmp(bytes, word, len < word_len ? len : word_len) == 0;
}

/* Where the line `last`, whose letter number i stands nowhere else as a rule,
 * ends in bytes[0, len); 0 where it has not come. */
static size_t
end_of(
    const char *bytes, size_t len, const char *last, size_t last_len, size_t i)
{
    for (size_t at = i; at < len; at++) {
        const char *found = memchr(bytes + at, last[i], len - at);
        if (found == NULL) {
            return 0;
        }
        at = (size_t)(found - bytes);
        size_t begin = at - i;
        if ((begin == 0 || bytes[begin - 1] == '\n') &&
            len - begin >= last_len &&
            memcmp(bytes + begin, last, last_len) == 0) {
            return begin + last_len;
        }
    }
    return 0;
}

/* Numbers, two lines each, that begin with V, and then the line `last`. */
static enum wire_state
frame_numbers(const char *bytes, size_t len, uint32_t n_keys, const char *last,
    size_t letter, struct wire_reply *reply)
{
    size_t last_len = strlen(last);
    if (bytes[0] != 'V' && !may_be(bytes, len, last, last_len)) {
        return WIRE_BAD;
    }
    reply->len = end_of(bytes, len, last, last_len, letter);
    if (reply->len == 0) {
        return WIRE_MORE;
    }
    if (bytes[0] != 'V') {
        reply->hits = 0;
        return WIRE_WHOLE;
    }
    if (n_keys == 1) {
        reply->hits = 1;
        return WIRE_WHOLE;
    }
    size_t lines = count_lines(bytes, reply->len);
    reply->hits = (uint32_t)(lines / 2);
    return lines % 2 == 1 && reply->hits <= n_keys ? WIRE_WHOLE : WIRE_BAD;
}

/* A reply of one line: one of two words, or where digits is true a number
 * instead of the first. */
static enum wire_state
frame_line(const char *bytes, size_t len, const char *hit, bool digits,
    const char *miss, struct wire_reply *reply)
{
    size_t at = 0;
    struct wire_text line;
    uint64_t value;
    if (!wire_line(bytes, len, &at, &line)) {
        return memchr(bytes, '\n', len) == NULL ? WIRE_MORE : WIRE_BAD;
    }
    bool is_hit =
        digits ? num_parse_u64(line.at, line.len, &value) : wire_is(line, hit);
    if (!is_hit && (miss == NULL || !wire_is(line, miss))) {
        return WIRE_BAD;
    }
    *reply = (struct wire_reply){.len = at, .hits = is_hit};
    return WIRE_WHOLE;
}

static enum wire_state
text_frame(enum wire_ask ask, uint32_t n_keys, const char *bytes, size_t len,
    struct wire_reply *reply)
{
    if (len == 0) {
        return WIRE_MORE;
    }
    switch (ask) {
    case WIRE_ADD:
        return frame_line(bytes, len, NULL, true, "NOT_FOUND", reply);
    case WIRE_SET:
        return frame_line(bytes, len, "STORED", false, NULL, reply);
    case WIRE_GET:
    case WIRE_MULTI:
        break;
    }
    return frame_numbers(bytes, len, n_keys, "END\r\n", 2, reply);
}

/* A line that begins with VA and the one behind it, or a line of the word miss,
 * to which memcached up to 1.6.18 adds the flags that were asked for. */
static enum wire_state
frame_va(
    const char *bytes, size_t len, const char *miss, struct wire_reply *reply)
{
    size_t at = 0;
    struct wire_text line;
    if (bytes[0] != 'V') {
        size_t miss_len = strlen(miss);
        if (!may_be(bytes, len, miss, miss_len)) {
            return WIRE_BAD;
        }
        if (!wire_line(bytes, len, &at, &line)) {
            return memchr(bytes, '\n', len) == NULL ? WIRE_MORE : WIRE_BAD;
        }
        *reply = (struct wire_reply){.len = at};
        return line.len == miss_len || line.at[miss_len] == ' ' ? WIRE_WHOLE
                                                                : WIRE_BAD;
    }
    if (!wire_line(bytes, len, &at, &line) ||
        !wire_line(bytes, len, &at, &line)) {
        return count_lines(bytes, len) < 2 ? WIRE_MORE : WIRE_BAD;
    }
    *reply = (struct wire_reply){.len = at, .hits = 1};
    return WIRE_WHOLE;
}

static enum wire_state
meta_frame(enum wire_ask ask, uint32_t n_keys, const char *bytes, size_t len,
    struct wire_reply *reply)
{
    if (len == 0) {
        return WIRE_MORE;
    }
    switch (ask) {
    case WIRE_GET:
        return frame_va(bytes, len, "EN", reply);
    case WIRE_ADD:
        return frame_va(bytes, len, "NF", reply);
    case WIRE_SET:
        return frame_line(bytes, len, "HD", false, NULL, reply);
    case WIRE_MULTI:
        break;
    }
    return frame_numbers(bytes, len, n_keys, "MN\r\n", 1, reply);
}

/* The next word of a line behind *at, without the spaces. */
static struct wire_text
next_word(struct wire_text line, size_t *at)
{
    while (*at < line.len && line.at[*at] == ' ') {
        (*at)++;
    }
    struct wire_text word = {line.at + *at, 0};
    while (*at < line.len && line.at[*at] != ' ') {
        (*at)++;
        word.len++;
    }
    return word;
}

/* The number behind its line, of as many bytes as that says. */
static enum wire_found
take_number(const char *bytes, size_t len, size_t *at, struct wire_text size,
    struct wire_value *value)
{
    uint64_t wanted;
    struct wire_text data;
    if (!num_parse_u64(size.at, size.len, &wanted) ||
        !wire_line(bytes, len, at, &data) || data.len != wanted ||
        !num_parse_u64(data.at, data.len, &value->number)) {
        return WIRE_WRONG;
    }
    return WIRE_VALUE;
}

static enum wire_found
text_next(enum wire_ask ask, const char *bytes, size_t len, size_t *at,
    struct wire_value *value)
{
    struct wire_text line;
    *value = (struct wire_value){0};
    if (*at == len) {
        return WIRE_END;
    }
    if (!wire_line(bytes, len, at, &line)) {
        return WIRE_WRONG;
    }
    if (ask == WIRE_ADD) {
        value->is_absent = !num_parse_u64(line.at, line.len, &value->number);
        return WIRE_VALUE;
    }
    if (wire_is(line, "END")) {
        return *at == len ? WIRE_END : WIRE_WRONG;
    }
    size_t place = 0;
    uint64_t flags;
    if (!wire_is(next_word(line, &place), "VALUE")) {
        return WIRE_WRONG;
    }
    value->key = next_word(line, &place);
    struct wire_text word = next_word(line, &place);
    struct wire_text size = next_word(line, &place);
    if (!num_parse_u64(word.at, word.len, &flags) || place != line.len) {
        return WIRE_WRONG;
    }
    return take_number(bytes, len, at, size, value);
}

static enum wire_found
meta_next(enum wire_ask ask, const char *bytes, size_t len, size_t *at,
    struct wire_value *value)
{
    struct wire_text line;
    *value = (struct wire_value){0};
    if (*at == len) {
        return WIRE_END;
    }
    if (!wire_line(bytes, len, at, &line)) {
        return WIRE_WRONG;
    }
    if (ask != WIRE_MULTI && line.at[0] != 'V') {
        value->is_absent = true; /* frame_fn has seen EN or NF */
        return WIRE_VALUE;
    }
    if (wire_is(line, "MN")) {
        return *at == len ? WIRE_END : WIRE_WRONG;
    }
    size_t place = 0;
    if (!wire_is(next_word(line, &place), "VA")) {
        return WIRE_WRONG;
    }
    struct wire_text size = next_word(line, &place);
    struct wire_text key = next_word(line, &place);
    if (ask != WIRE_ADD) {
        if (key.len == 0 || key.at[0] != 'k') {
            return WIRE_WRONG;
        }
        value->key = (struct wire_text){key.at + 1, key.len - 1};
    }
    return take_number(bytes, len, at, size, value);
}

static void
add(struct buf *out, struct wire_text text)
{
    buf_add(out, text.at, text.len);
}

static void
text_head(struct buf *out, uint32_t n_keys)
{
    (void)n_keys;
    buf_add_text(out, "get");
}

static void
text_key(struct buf *out, struct wire_text key)
{
    buf_add_text(out, " ");
    add(out, key);
}

static void
text_tail(struct buf *out)
{
    buf_add_text(out, "\r\n");
}

static void
text_get(struct buf *out, struct wire_text key)
{
    text_head(out, 1);
    text_key(out, key);
    text_tail(out);
}

static void
text_add(struct buf *out, struct wire_text key, struct wire_text number)
{
    buf_add_text(out, "incr ");
    add(out, key);
    buf_add_text(out, " ");
    add(out, number);
    buf_add_text(out, "\r\n");
}

static void
text_set(struct buf *out, struct wire_text key, struct wire_text data)
{
    buf_add_text(out, "set ");
    add(out, key);
    buf_add_text(out, " 0 0 ");
    buf_add_u64(out, data.len);
    buf_add_text(out, "\r\n");
    add(out, data);
    buf_add_text(out, "\r\n");
}

static void
meta_head(struct buf *out, uint32_t n_keys)
{
    (void)out;
    (void)n_keys;
}

static void
meta_key(struct buf *out, struct wire_text key)
{
    buf_add_text(out, "mg ");
    add(out, key);
    buf_add_text(out, " v k q\r\n");
}

static void
meta_tail(struct buf *out)
{
    buf_add_text(out, "mn\r\n");
}

static void
meta_get(struct buf *out, struct wire_text key)
{
    buf_add_text(out, "mg ");
    add(out, key);
    buf_add_text(out, " v k\r\n");
}

/* With v, so that the sum comes back as incr's does. */
static void
meta_add(struct buf *out, struct wire_text key, struct wire_text number)
{
    buf_add_text(out, "ma ");
    add(out, key);
    if (!wire_is(number, "1")) {
        buf_add_text(out, " D");
        add(out, number);
    }
    buf_add_text(out, " v\r\n");
}

static void
meta_set(struct buf *out, struct wire_text key, struct wire_text data)
{
    buf_add_text(out, "ms ");
    add(out, key);
    buf_add_text(out, " ");
    buf_add_u64(out, data.len);
    buf_add_text(out, "\r\n");
    add(out, data);
    buf_add_text(out, "\r\n");
}

const struct wire wire_text = {.get_fn = text_get,
    .add_fn = text_add,
    .set_fn = text_set,
    .head_fn = text_head,
    .key_fn = text_key,
    .tail_fn = text_tail,
    .frame_fn = text_frame,
    .next_fn = text_next};

const struct wire wire_meta = {.get_fn = meta_get,
    .add_fn = meta_add,
    .set_fn = meta_set,
    .head_fn = meta_head,
    .key_fn = meta_key,
    .tail_fn = meta_tail,
    .frame_fn = meta_frame,
    .next_fn = meta_next};
