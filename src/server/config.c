/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files.
 *
 *     # a comment
 *     port = 11211
 *     listen 127.0.0.1      # also without the equals sign
 *     daemon
 *
 * A line is a name, white space or '=' or both, and a value up to the end of
 * the line; white space around both does not count. A '#' at the start of a
 * line or behind white space begins a comment, so a value cannot hold " #".
 * There are no quotes and no continued lines.
 *
 * What can go wrong: the file cannot be read, is larger than any configuration
 * would be, or has a line of another form (no name, an '=' without a value, a
 * byte that is not text). The first such line ends the reading and is named. */
#include "server/config.h"

#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts a comment and the white space at the end off a line. */
static size_t
trimmed_len(const char *line, size_t len)
{
    size_t end = 0;
    while (end < len &&
        (line[end] != '#' || (end > 0 && !is_blank(line[end - 1])))) {
        end++;
    }
    while (end > 0 && is_blank(line[end - 1])) {
        end--;
    }
    return end;
}

static bool
is_text(const char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line[i];
        if ((c < ' ' && !is_blank(line[i])) || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Splits a line, with its NUL, into name and value: value NULL for a name
 * alone. False where it has neither form. */
static bool
split(char *line, char **name, char **value)
{
    char *at = line;
    while (is_blank(*at)) {
        at++;
    }
    *name = at;
    while (*at != '\0' && *at != '=' && !is_blank(*at)) {
        at++;
    }
    char *name_end = at;
    while (is_blank(*at)) {
        at++;
    }
    bool equals = *at == '=';
    if (equals) {
        at++;
    }
    while (is_blank(*at)) {
        at++;
    }
    *value = *at == '\0' ? NULL : at;
    bool good = name_end > *name && (*value != NULL || !equals);
    *name_end = '\0';
    return good;
}

/* One line without its newline. */
static int
take_line(const char *text, size_t len, struct config_line *out,
    config_line_fn line_fn, void *context, struct buf *message)
{
    char line[CONFIG_LINE_BYTES_MAX + 1];
    char *name;
    char *value;
    const char *wrong = NULL;

    len = trimmed_len(text, len);
    if (len == 0) {
        return 0;
    }
    if (len > CONFIG_LINE_BYTES_MAX) {
        wrong = "the line is too long";
    } else if (!is_text(text, len)) {
        wrong = "the line holds bytes that are not text";
    } else {
        memcpy(line, text, len);
        line[len] = '\0';
        if (!split(line, &name, &value)) {
            wrong = "a line is NAME, NAME VALUE or NAME = VALUE";
        }
    }
    if (wrong != NULL) {
        buf_addf(message, "tallyd: %s:%u: %s\n", out->file, out->line, wrong);
        return ERR_BAD_OPTION;
    }
    out->name = name;
    out->value = value;
    return line_fn(context, out, message);
}

int
config_parse(const char *file, const char *text, size_t len,
    config_line_fn line_fn, void *context, struct buf *message)
{
    struct config_line line = {.file = file};
    size_t at = 0;

    while (at < len) {
        const char *newline = memchr(text + at, '\n', len - at);
        size_t end = newline == NULL ? len : (size_t)(newline - text);
        line.line++;
        int err =
            take_line(text + at, end - at, &line, line_fn, context, message);
        if (err != 0) {
            return err;
        }
        at = end + 1;
    }
    return 0;
}

/* Appends the whole file to *out, at most one byte more than is allowed. */
static int
read_all(FILE *stream, struct buf *out)
{
    size_t room = CONFIG_FILE_BYTES_MAX + 1;
    char *bytes = buf_reserve(out, room);
    if (bytes == NULL) {
        return ERR_NO_MEMORY;
    }
    errno = 0;
    out->len += fread(bytes, 1, room, stream);
    if (ferror(stream)) {
        return ERR_SYSTEM;
    }
    return out->len == room ? ERR_TOO_LARGE : 0;
}

int
config_read(const char *file, config_line_fn line_fn, void *context,
    struct buf *message)
{
    struct buf text = {0};
    int err;

    FILE *stream = fopen(file, "re");
    if (stream == NULL) {
        buf_addf(message, "tallyd: cannot read the configuration %s: %s\n",
            file, strerror(errno));
        return ERR_SYSTEM;
    }
    err = read_all(stream, &text);
    if (err != 0) {
        const char *why = err == ERR_SYSTEM ? strerror(errno)
            : err == ERR_TOO_LARGE          ? "it is larger than 64 KiB"
                                            : err_text(err);
        buf_addf(message, "tallyd: cannot read the configuration %s: %s\n",
            file, why);
    } else {
        err =
            config_parse(file, text.data, text.len, line_fn, context, message);
    }
    buf_fini(&text);
    fclose(stream);
    return err;
}
