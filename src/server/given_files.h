/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_GIVEN_FILES_H
#define SERVER_GIVEN_FILES_H

#include "base/buf.h"
#include "server/keeping.h"
#include "server/options.h"

/* Reads the file of --schema into schema_text (appended; the caller's), and
 * looks whether its lines, and those of --auth-file, can be used. Before the
 * data directory is made, so that a start that fails by them leaves none; with
 * the rights that the process was started with, but for --auth-file, which the
 * server's user must be able to read. 0 or an ERR_ with a line in *why. */
int given_files_read(const struct options *options,
    const struct keeping *keeping, struct buf *schema_text, struct buf *why);

#endif
