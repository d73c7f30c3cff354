/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SMALL_FILE_H
#define BASE_SMALL_FILE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* Reads a file that the operator gives and that is kept in memory whole: a
 * secret, a key, a certificate. Perhaps as root. */

struct small_file {
    const char *option; /* "--repl-secret-file", for messages */
    const char *what;   /* "the secret", likewise */
    const char *path;   /* "": there is none */
    size_t least, most; /* bytes, without line ends behind them */
    bool is_private;    /* others must not be able to read it */
};

/* bytes[0..most + 1): *n of them are the file's without line ends behind them;
 * 0 where there is no path. The caller wipes what is secret, also where it
 * fails. 0, or an ERR_ with a line in *why. */
int small_file_read(
    const struct small_file *file, char *bytes, size_t *n, struct buf *why);

#endif
