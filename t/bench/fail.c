/* SPDX-License-Identifier: BSD-3-Clause */

/* The one way out of a benchmark when something is wrong. _exit and not
 * exit: other threads may be running. */

#include "bench/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 512 };

_Noreturn void
fail(const char *format, ...)
{
    char line[LINE_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, line);
    _exit(EXIT_FAILURE);
}

_Noreturn void
fail_errno(const char *what)
{
    fail("%s: %s", what, strerror(errno));
}
