/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines for the operator. A line is formatted on the stack and written by one
 * write(2), so that lines of different threads never mix; what does not fit is
 * cut, the end of line never. Where stderr cannot be written there is nobody
 * left to tell, so that failure is dropped. errno is left as it was. */
#include "base/log.h"

#include "base/assert.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 1024 };

static const char *const level_names[] = {"error", "warning", "info", "debug"};

static bool
is_wanted(struct logger *logger, enum log_level level)
{
    /* relaxed: a new verbosity may take effect a line later */
    int verbosity =
        atomic_load_explicit(&logger->verbosity, memory_order_relaxed);

    return level <= LOG_WARNING || (int)level - LOG_WARNING <= verbosity;
}

void
log_line(struct logger *logger, enum log_level level, const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    int saved_errno = errno;
    va_list args;
    int len, more;
    ssize_t written;

    if (!is_wanted(logger, level)) {
        return;
    }
    len = snprintf(line, sizeof line, "tallyd: %s: ", level_names[level]);
    ASSERT(len > 0 && len < LINE_BYTES_MAX);
    va_start(args, format);
    more = vsnprintf(line + len, sizeof line - (size_t)len, format, args);
    va_end(args);
    if (more > 0) {
        len = more < LINE_BYTES_MAX - len ? len + more : LINE_BYTES_MAX - 1;
    }
    /* in the place of the NUL */
    line[len] = '\n';
    do {
        written = write(STDERR_FILENO, line, (size_t)len + 1);
    } while (written < 0 && errno == EINTR);
    errno = saved_errno;
}
