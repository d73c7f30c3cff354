/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of the log as text. Whatever a message holds, file names above all,
 * the line is one line of printable ASCII: a quote and a backslash have a
 * backslash before them, other bytes are \n, \r, \t or \xNN. So it can be
 * shown on a terminal, and be taken apart again. */
#include "base/log.h"

#include "base/assert.h"

#include <stdio.h>
#include <time.h>

enum {
    TIME_BYTES = 32,
    END_BYTES = 40, /* the quote, " suppressed=N", the end of line */
    ESCAPE_BYTES = 4,
    MS_PER_S = 1000
};

static const char *const level_names[] = {
    "error", "warning", "notice", "info", "debug"};

/* Appends one byte of a message; returns how many bytes that makes. */
static size_t
put_byte(char *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    char letter = c == '\n' ? 'n'
        : c == '\r'         ? 'r'
        : c == '\t'         ? 't'
        : c == '"'          ? '"'
        : c == '\\'         ? '\\'
                            : '\0';
    if (letter == '\0' && c >= ' ' && c <= '~') {
        out[0] = (char)c;
        return 1;
    }
    out[0] = '\\';
    if (letter != '\0') {
        out[1] = letter;
        return 2;
    }
    out[1] = 'x';
    out[2] = digits[c >> 4];
    out[3] = digits[c & 15];
    return ESCAPE_BYTES;
}

size_t
log_escape(const char *text, size_t len, char *out, size_t room)
{
    size_t at = 0;
    for (size_t i = 0; i < len && at + ESCAPE_BYTES <= room; i++) {
        at += put_byte(out + at, (unsigned char)text[i]);
    }
    return at;
}

size_t
log__format(char out[LOG_LINE_BYTES], int64_t unix_ms, enum log_level level,
    const char *text, size_t len, unsigned suppressed)
{
    char when[TIME_BYTES] = "";
    struct tm parts;
    int64_t ms = unix_ms % MS_PER_S;
    time_t second = (time_t)(unix_ms / MS_PER_S - (ms < 0));
    ms += ms < 0 ? MS_PER_S : 0;
    if (gmtime_r(&second, &parts) != NULL) {
        (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &parts);
    }
    int n = snprintf(out, LOG_LINE_BYTES, "ts=%s.%03dZ level=%s msg=\"", when,
        (int)ms, level_names[level]);
    ASSERT(n > 0 && n < LOG_LINE_BYTES / 2);
    size_t at = (size_t)n;
    at += log_escape(text, len, out + at, LOG_LINE_BYTES - END_BYTES - at);
    n = suppressed == 0
        ? snprintf(out + at, END_BYTES, "\"\n")
        : snprintf(out + at, END_BYTES, "\" suppressed=%u\n", suppressed);
    ASSERT(n > 0 && n < END_BYTES);
    return at + (size_t)n;
}
