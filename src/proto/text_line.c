/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of a command line, taken one by one into a request. */
#include "proto/text_line.h"

#include "base/err.h"
#include "base/num.h"

#include <string.h>

/* Longer words are no numbers, however many zeros they begin with. */
enum { U32_WORD_MAX = 11, U64_WORD_MAX = 22 };

/* What numbers a change. */
static const char tx[] = "tx=";
enum { TX_LEN = sizeof tx - 1 };

enum parse_status
text__fail(struct line *line, const char *error)
{
    line->out->op = REQUEST_ERROR;
    line->out->error = error;
    return PARSE_REQUEST;
}

static const char *
text_of(const struct line *line, struct span span)
{
    return line->bytes + span.at;
}

bool
text__has_word(const struct line *line)
{
    struct words words = line->words;
    struct span word;
    return words_next(&words, &word);
}

bool
text__ends_with_noreply(const struct line *line)
{
    static const char noreply[] = "noreply";
    enum { LEN = sizeof noreply - 1 };
    const char *begin = line->bytes + line->words.at;
    const char *end = line->bytes + line->words.end;
    while (end > begin && end[-1] == ' ') {
        end--;
    }
    if (end - begin < LEN || memcmp(end - LEN, noreply, LEN) != 0) {
        return false;
    }
    return end - begin == LEN || end[-LEN - 1] == ' ';
}

/* Takes the key; where it is missing or too long the reply is made and false
 * returned. */
bool
text__take_key(struct line *line)
{
    struct request *out = line->out;
    if (!words_next(&line->words, &out->key) || out->key.len > TEXT_KEY_MAX) {
        text__fail(line, TEXT__BAD_FORMAT);
        return false;
    }
    return true;
}

/* The same for a command that may end with noreply, which then holds for
 * errors too. */
bool
text__take_key_and_noreply(struct line *line)
{
    bool fits = text__take_key(line);
    if (line->out->key.len > 0) { /* there was one, however long */
        line->out->noreply = text__ends_with_noreply(line);
    }
    return fits;
}

bool
text__take_u64(struct line *line, uint64_t *out)
{
    struct span word;
    return words_next(&line->words, &word) && word.len <= U64_WORD_MAX &&
        num_parse_u64(text_of(line, word), word.len, out);
}

bool
text__take_u32(struct line *line, uint32_t *out)
{
    struct span word;
    return words_next(&line->words, &word) && word.len <= U32_WORD_MAX &&
        num_parse_u32(text_of(line, word), word.len, out);
}

bool
text__take_i32(struct line *line, int64_t *out)
{
    struct span word;
    int64_t number = 0;
    if (!words_next(&line->words, &word) || word.len > U32_WORD_MAX ||
        line->bytes[word.at] == '+') {
        return false;
    }
    bool is_minus = span_is(line->bytes, word, "-");
    if (!is_minus && !num_parse_i64(text_of(line, word), word.len, &number)) {
        return false;
    }
    if (number < INT32_MIN || number > INT32_MAX) {
        return false;
    }
    *out = number;
    return true;
}

/* Behind a length that is a number but none of ours comes a block whose end
 * nobody can tell. at: where the word is looked for. False. */
static __attribute__((noinline)) bool
refuse_len(struct line *line, uint32_t at)
{
    struct span word;
    line->words.at = at;
    if (!words_next(&line->words, &word)) {
        return false;
    }
    if (line->bytes[word.at] == '+') {
        word = (struct span){word.at + 1, word.len - 1};
    }
    if (span_is_digits(line->bytes, word)) {
        line->out->closes = true;
        line->out->err = ERR_LONG_BLOCK;
    }
    return false;
}

bool
text__take_len(struct line *line, uint32_t *out)
{
    uint32_t at = line->words.at;
    int64_t number;
    if (!text__take_i32(line, &number) || number < 0 ||
        number > TEXT__VALUE_LEN_MAX) {
        return refuse_len(line, at);
    }
    *out = (uint32_t)number;
    return true;
}

bool
text__take_stored_flags(struct line *line, uint32_t *out)
{
    struct span word;
    uint64_t number;
    if (!words_next(&line->words, &word)) {
        return false;
    }
    if (word.len > 1 && line->bytes[word.at] == '+') {
        word = (struct span){word.at + 1, word.len - 1};
    }
    if (!num_parse_u64(text_of(line, word), word.len, &number)) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

bool
text__take_stored_exptime(struct line *line, int64_t *out)
{
    struct span word;
    int64_t number;
    if (!words_next(&line->words, &word) ||
        !num_parse_i64(text_of(line, word), word.len, &number)) {
        return false;
    }
    *out = (int32_t)(uint32_t)(uint64_t)number;
    return true;
}

bool
text__is_tx(const struct line *line, struct span word)
{
    return word.len >= TX_LEN && memcmp(text_of(line, word), tx, TX_LEN) == 0;
}

void
text__take_rest(struct line *line)
{
    struct request *out = line->out;
    struct span word;
    while (words_next(&line->words, &word)) {
        bool is_tx = text__is_tx(line, word);
        out->has_tx |= is_tx;
        if (out->has_more) {
            continue;
        }
        if (is_tx && out->tx.at == 0) {
            out->tx = (struct span){word.at + TX_LEN, word.len - TX_LEN};
        } else if (!out->noreply || text__has_word(line)) {
            out->tx = word;
            out->has_more = true;
        }
    }
}

enum parse_status
text__take_value(struct line *line, uint32_t len_bytes)
{
    struct request *out = line->out;
    uint64_t whole = (uint64_t)line->line_len + len_bytes + 2;
    if (len_bytes > line->value_bytes_max) {
        out->stored_as = out->op;
        out->op = REQUEST_TOO_LARGE;
        out->swallow_bytes = (uint64_t)len_bytes + 2;
        return PARSE_REQUEST;
    }
    if (line->len < whole) {
        line->scan->need = whole;
        return PARSE_MORE;
    }
    out->value = (struct span){line->line_len, len_bytes};
    out->len = (uint32_t)whole;
    const char *tail = line->bytes + whole - 2;
    if (tail[0] != '\r' || tail[1] != '\n') {
        out->swallow_line = tail[1] != '\n';
        return text__fail(line, "CLIENT_ERROR bad data chunk");
    }
    return PARSE_REQUEST;
}

enum parse_status
text__fail_and_skip(struct line *line, uint32_t len_bytes, const char *error)
{
    line->out->swallow_bytes = (uint64_t)len_bytes + 2;
    return text__fail(line, error);
}
