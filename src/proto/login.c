/* SPDX-License-Identifier: BSD-3-Clause */
/* Logins. Answers are memcached 1.6.45's, byte for byte, and so is what is
 * looked at: of the line of a login only the command and the length; a noreply
 * is not heeded. A line that is no login is answered without a look at what it
 * says, so that a data block behind it is answered line by line. Narrower than
 * memcached: a request has 1 KiB, its line and its value together. */
#include "proto/login.h"

#include "base/err.h"
#include "proto/text_line.h"
#include "proto/words.h"

#include <string.h>

enum {
    LINE_LEN_MIN = 7, /* with its newline; shorter ones close, as there */
    WORDS_BEFORE_LEN = 3
};

/* The length of the value in "set <any> <any> <any> <length>". */
static bool
take_len(struct line *line, uint32_t *out)
{
    struct span word;
    if (!words_next(&line->words, &word) || word.at != 0 ||
        !span_is(line->bytes, word, "set")) {
        return false;
    }
    for (unsigned i = 0; i < WORDS_BEFORE_LEN; i++) {
        if (!words_next(&line->words, &word)) {
            return false;
        }
    }
    return text__take_u32(line, out);
}

/* The value of a login, behind its line. */
static enum parse_status
take_value(struct line *line, uint32_t value_len)
{
    struct request *out = line->out;
    uint64_t whole = (uint64_t)line->line_len + value_len + 2;
    out->op = REQUEST_LOGIN;
    if (whole > LOGIN_BYTES_MAX) {
        out->error = "CLIENT_ERROR auth token too long";
        return PARSE_REQUEST;
    }
    if (line->len < whole) {
        line->scan->need = (size_t)whole;
        return PARSE_MORE;
    }
    out->len = (uint32_t)whole;
    out->value = (struct span){line->line_len, value_len};
    const char *value = line->bytes + line->line_len;
    if (memcmp(value + value_len, "\r\n", 2) != 0) {
        out->error = "CLIENT_ERROR bad command line termination";
    } else if (memchr(value, ' ', value_len) == NULL) {
        out->error = "CLIENT_ERROR bad authentication token format";
    }
    return PARSE_REQUEST;
}

enum parse_status
login_parse(const char *bytes, size_t len, struct parse_scan *scan,
    struct request *out)
{
    uint32_t value_len;
    if (len < scan->need) {
        return PARSE_MORE;
    }
    const char *newline = memchr(bytes, '\n', len);
    if (newline == NULL && len < LOGIN_BYTES_MAX) {
        return PARSE_MORE;
    }
    size_t line_len = newline == NULL ? len : (size_t)(newline - bytes) + 1;
    if (line_len < LINE_LEN_MIN || line_len > LOGIN_BYTES_MAX ||
        newline == NULL) {
        out->err = line_len < LINE_LEN_MIN ? 0 : ERR_LONG_LINE;
        return PARSE_CLOSE;
    }
    uint32_t end = (uint32_t)line_len - 1;
    if (bytes[end - 1] == '\r') {
        end--;
    }
    request_clear(out);
    out->op = REQUEST_UNREAD;
    out->len = (uint32_t)line_len;
    struct line line = {.bytes = bytes,
        .len = len,
        .line_len = (uint32_t)line_len,
        .words = {bytes, 0, end},
        .scan = scan,
        .out = out};
    return take_len(&line, &value_len) ? take_value(&line, value_len)
                                       : PARSE_REQUEST;
}

static bool
fits(const struct login_words *words)
{
    return words->user_len >= 1 && words->user_len <= LOGIN_WORD_MAX &&
        words->password_len >= 1 && words->password_len <= LOGIN_WORD_MAX &&
        memchr(words->password, '\0', words->password_len) == NULL;
}

/* What is before and behind the first byte that is `between`. */
static bool
split(const char *value, size_t len, char between, struct login_words *out)
{
    const char *at = len == 0 ? NULL : memchr(value, between, len);
    if (at == NULL) {
        return false;
    }
    out->user = value;
    out->user_len = (size_t)(at - value);
    out->password = at + 1;
    out->password_len = len - out->user_len - 1;
    return true;
}

bool
login_read_text(const char *value, size_t len, struct login_words *out)
{
    return split(value, len, ' ', out) && fits(out);
}

bool
login_read_plain(const char *value, size_t len, struct login_words *out)
{
    struct login_words as; /* on whose behalf: nobody's but the user's */
    if (!split(value, len, '\0', &as) ||
        !split(as.password, as.password_len, '\0', out) || !fits(out)) {
        return false;
    }
    bool for_itself = as.user_len == 0 ||
        (as.user_len == out->user_len &&
            memcmp(as.user, out->user, as.user_len) == 0);
    return for_itself;
}
