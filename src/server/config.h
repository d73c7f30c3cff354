/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include "base/buf.h"

#include <stddef.h>

/* Configuration files: one option a line, by its long name. Knows the form of
 * the lines and no option. */

enum { CONFIG_FILE_BYTES_MAX = 64 * 1024, CONFIG_LINE_BYTES_MAX = 2048 };

/* A line that sets something. Valid during the callback. */
struct config_line {
    const char *file;
    unsigned line; /* counted from 1 */
    const char *name;
    const char *value; /* NULL: a name alone */
};

/* Takes one line. 0, or an ERR_ with a line in message, which ends it. */
typedef int (*config_line_fn)(
    void *context, const struct config_line *line, struct buf *message);

/* Reads text[0..len) and calls line_fn for each line that sets something, in
 * order. file is a name for messages. 0, what line_fn returned, or
 * ERR_BAD_OPTION (not a line of this form) with a line in message. */
int config_parse(const char *file, const char *text, size_t len,
    config_line_fn line_fn, void *context, struct buf *message);

/* The same with the text of a file. Also ERR_SYSTEM, ERR_TOO_LARGE,
 * ERR_NO_MEMORY. */
int config_read(const char *file, config_line_fn line_fn, void *context,
    struct buf *message);

#endif
