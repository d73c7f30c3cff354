/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_GIVEN_FILES_H
#define SERVER_GIVEN_FILES_H

#include "base/buf.h"
#include "server/data_option.h"
#include "server/options.h"

/* Reads the file of --schema into schema_text (appended; the caller's), and
 * looks whether its lines, those of --auth-file and the rule of --owns or
 * --owns-file can be used, and --log-file be written. Before the data directory
 * is made, so that a start that fails by them leaves none. The schema is read
 * with the rights that the process was started with, all else with those of the
 * server's user. 0 or an ERR_ with a line in *why. */
int given_files_read(const struct options *options,
    const struct data_option *data_option, struct buf *schema_text,
    struct buf *why);

#endif
