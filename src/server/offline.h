/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OFFLINE_H
#define SERVER_OFFLINE_H

#include "base/buf.h"
#include "base/log.h"
#include "server/options.h"

#include <stdbool.h>

/* What is done with a data directory that no server uses. */

enum { OFFLINE_LOSSY = 3 /* exit status: something is lost, or may be */ };

#define OFFLINE_ADVICE                                                        \
    "; --check says what is damaged, --salvage saves what is sound: see "     \
    "\"The server refuses to start\" in doc/incidents.md"

/* What --dump does, as the user that stays: prints what is in the directory,
 * and changes nothing there. 0 or ERR_. */
int offline_dump(
    const struct options *options, struct logger *logger, struct buf *why);

/* What --salvage does, as the user that stays; what there is to say goes to the
 * standard output, line by line, and to a file beside the old files. 0 and
 * *is_lossy, or ERR_. */
int offline_salvage(const struct options *options, struct logger *logger,
    bool *is_lossy, struct buf *why);

#endif
