/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_WORDS_H
#define PROTO_WORDS_H

#include "proto/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Words of a line: separated by one or more spaces, as in memcached. */

struct words {
    const char *bytes; /* the request's first byte */
    uint32_t at;       /* next byte to look at */
    uint32_t end;      /* end of the line, without its CR and LF */
};

/* The next word to *out; false at the end of the line. */
static inline bool
words_next(struct words *words, struct span *out)
{
    const char *p = words->bytes;
    uint32_t at = words->at;
    while (at < words->end && p[at] == ' ') {
        at++;
    }
    if (at == words->end) {
        words->at = at;
        return false;
    }
    const char *space = memchr(p + at, ' ', words->end - at);
    uint32_t stop = space == NULL ? words->end : (uint32_t)(space - p);
    *out = (struct span){at, stop - at};
    words->at = stop;
    return true;
}

/* The words of a span of the request. */
static inline struct words
words_of(const char *bytes, struct span span)
{
    return (struct words){bytes, span.at, span.at + span.len};
}

/* What is left behind the last word taken. */
static inline struct span
words_rest(const struct words *words)
{
    return (struct span){words->at, words->end - words->at};
}

/* True where the span is digits and nothing else, however many. */
static inline bool
span_is_digits(const char *bytes, struct span span)
{
    for (uint32_t i = 0; i < span.len; i++) {
        if (bytes[span.at + i] < '0' || bytes[span.at + i] > '9') {
            return false;
        }
    }
    return span.len > 0;
}

/* True where the span holds just this text. */
static inline bool
span_is(const char *bytes, struct span span, const char *text)
{
    return span.len == strlen(text) &&
        memcmp(bytes + span.at, text, span.len) == 0;
}

/* True where text begins with the span. */
static inline bool
span_begins(const char *bytes, struct span span, const char *text)
{
    return span.len <= strlen(text) &&
        memcmp(bytes + span.at, text, span.len) == 0;
}

#endif
