/* SPDX-License-Identifier: BSD-3-Clause */

/* The protocols by their names, and what they share. */

#include "bench/wire.h"

#include <string.h>

const char *const wire_protocol_words[] = {
#define X(name, word) word,
    WIRE_PROTOCOLS(X)
#undef X
        NULL};

const struct wire *
wire_of(enum wire_protocol protocol)
{
    switch (protocol) {
    case WIRE_META:
        return &wire_meta;
    case WIRE_BINARY:
        return &wire_binary;
    case WIRE_RESP:
        return &wire_resp;
    case WIRE_TEXT:
        break;
    }
    return &wire_text;
}

bool
wire_line(const char *bytes, size_t len, size_t *at, struct wire_text *line)
{
    const char *begin = bytes + *at;
    const char *end = *at < len ? memchr(begin, '\n', len - *at) : NULL;
    if (end == NULL || end == begin || end[-1] != '\r') {
        return false;
    }
    *line = (struct wire_text){begin, (size_t)(end - begin) - 1};
    *at += (size_t)(end - begin) + 1;
    return true;
}

bool
wire_is(struct wire_text text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.at, word, text.len) == 0;
}
