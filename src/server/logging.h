/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_LOGGING_H
#define SERVER_LOGGING_H

#include "base/buf.h"
#include "base/log.h"

/* Where the server's log goes. The main thread. */

/* Writes to that file from now on; "": stderr stays. path outlives the logger.
 * To be called as the user who will open it anew. 0, or ERR_SYSTEM with a text
 * for one line appended to why. */
int logging_open(struct logger *logger, const char *path, struct buf *why);

/* At a signal of that name: opens the file anew, and says so. */
void logging_reload(struct logger *logger, const char *signal);

/* The server ends, for that reason where err is not 0: says it in the log, and
 * on stderr too; then the file is closed. */
void logging_end(struct logger *logger, int err, const struct buf *why);

#endif
