/* SPDX-License-Identifier: BSD-3-Clause */
/* A text that is no UTF-8 (a key may have any bytes) is told byte by byte, as
 * Latin-1 would have it, so that what is written is JSON in any case. */
#include "cli/json.h"

#include "base/assert.h"

#include <stddef.h>
#include <string.h>

enum { INDENT = 2, DIGITS_MAX = 15 /* below 2^53 */ };

/* Bytes of the character that text begins with; 0: it is no UTF-8, or one of
 * those few that would need a closer look. */
static size_t
character(const unsigned char *text)
{
    size_t n = text[0] < 0x80               ? 1
        : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
        : text[0] >= 0xe1 && text[0] < 0xed ? 3
                                            : 0;
    for (size_t i = 1; i < n; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return n;
}

static void
add_quoted(struct buf *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    buf_add_text(out, "\"");
    while (*at != '\0') {
        size_t n = character(at);
        if (*at == '"' || *at == '\\') {
            buf_addf(out, "\\%c", *at);
        } else if (*at < ' ' || *at == 0x7f || n == 0) {
            buf_addf(out, "\\u%04x", *at);
        } else {
            buf_add(out, at, n);
        }
        at += n == 0 ? 1 : n;
    }
    buf_add_text(out, "\"");
}

/* What stands before a value. */
static void
begin(struct json *json, const char *name)
{
    if (json->depth > 0) {
        bool *has_some = &json->has_some[json->depth - 1];
        buf_addf(json->out, "%s\n%*s", *has_some ? "," : "",
            (int)(json->depth * INDENT), "");
        *has_some = true;
    }
    if (name != NULL) {
        add_quoted(json->out, name);
        buf_add_text(json->out, ": ");
    }
}

void
json_open(struct json *json, const char *name, char bracket)
{
    ASSERT(json->depth < JSON_DEPTH_MAX);
    ASSERT(bracket == '{' || bracket == '[');
    begin(json, name);
    buf_add(json->out, &bracket, 1);
    json->close[json->depth] = bracket == '{' ? '}' : ']';
    json->has_some[json->depth++] = false;
}

void
json_close(struct json *json)
{
    ASSERT(json->depth > 0);
    json->depth--;
    if (json->has_some[json->depth]) {
        buf_addf(json->out, "\n%*s", (int)(json->depth * INDENT), "");
    }
    buf_add(json->out, &json->close[json->depth], 1);
    if (json->depth == 0) {
        buf_add_text(json->out, "\n");
    }
}

void
json_text(struct json *json, const char *name, const char *text)
{
    begin(json, name);
    add_quoted(json->out, text);
}

void
json_u64(struct json *json, const char *name, uint64_t value)
{
    begin(json, name);
    buf_add_u64(json->out, value);
}

void
json_bool(struct json *json, const char *name, bool value)
{
    begin(json, name);
    buf_add_text(json->out, value ? "true" : "false");
}

static bool
is_number(const char *text)
{
    static const char digits[] = "0123456789";
    size_t whole = strspn(text, digits), part = 0;
    const char *end = text + whole;
    if (whole == 0 || (whole > 1 && text[0] == '0')) {
        return false;
    }
    if (*end == '.') {
        part = strspn(end + 1, digits);
        end += 1 + part;
    }
    return *end == '\0' && whole + part <= DIGITS_MAX && end[-1] != '.';
}

void
json_figure(struct json *json, const char *name, const char *text)
{
    begin(json, name);
    if (is_number(text)) {
        buf_add_text(json->out, text);
    } else {
        add_quoted(json->out, text);
    }
}
