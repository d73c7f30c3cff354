/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_SCHEMA_FILE_H
#define SERVER_SCHEMA_FILE_H

#include "base/buf.h"
#include "store/store.h"

enum { SCHEMA_FILE_BYTES_MAX = 4 << 20 };

/* Reads the file of --schema into text (appended; the caller's). 0 or an ERR_
 * with a line in *why. */
int schema_file_read(const char *path, struct buf *text, struct buf *why);

/* Looks whether schema_file_load can do all lines of text where there are no
 * counters yet; is_new: there are none. Else counters and columns that the
 * lines do not add may be there, and only the form of the lines is looked at.
 * 0 or an ERR_ with a line in *why. */
int schema_file_check(
    const char *path, const struct buf *text, bool is_new, struct buf *why);

/* Does the lines of a schema file's text in order: each adds or changes a
 * counter or a column; what exists identically is skipped, empty lines and
 * lines that begin with # too, and a column that has another hint by now: of
 * that a line, ended by LF, goes to *notes, and of a column that is added to a
 * counter that was there before. Stops at the first error, with
 * path, line and reason in *why.
 * Blocks; not on a worker's thread. 0 or an ERR_. */
int schema_file_load(struct store *store, const char *path,
    const struct buf *text, struct buf *notes, struct buf *why);

#endif
