/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the log's file. Until then lines go to stderr; so does the reason why
 * a server ends, since whoever has started it looks there. In the background
 * stderr leads nowhere once the server is ready; the file stays. */
#include "server/logging.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>

int
logging_open(struct logger *logger, const char *path, struct buf *why)
{
    if (path[0] == '\0' || log_open(logger, path) == 0) {
        return 0;
    }
    buf_addf(why, "cannot open the log file %s: %s", path, strerror(errno));
    return ERR_SYSTEM;
}

void
logging_reload(struct logger *logger, const char *signal)
{
    if (log_reopen(logger) != 0) {
        log_line(logger, LOG_ERROR,
            "%s: cannot open the log file %s anew: %s; the old one "
            "stays",
            signal, logger->path, strerror(errno));
    } else if (logger->path != NULL) {
        log_line(logger, LOG_NOTICE, "%s: the log file has been opened anew",
            signal);
    }
}

static void
say(struct logger *logger, const struct buf *why)
{
    log_line(logger, LOG_ERROR, "%.*s", (int)why->len,
        why->len == 0 ? "" : why->data);
}

void
logging_end(struct logger *logger, int err, const struct buf *why)
{
    bool has_file = logger->path != NULL;
    if (err != 0) {
        say(logger, why);
    }
    log_close(logger);
    if (err != 0 && has_file) {
        say(logger, why);
    }
}
