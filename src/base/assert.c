/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what a failed assertion says, and aborts. */
#include "base/assert.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024 };

void
assert_failed(
    const char *condition, const char *file, int line, const char *function)
{
    char text[TEXT_BYTES];
    int n = snprintf(text, sizeof text,
        "tallyd: assertion failed: %s (%s:%d, %s)\n", condition, file, line,
        function);
    /* a full pipe that nobody reads must not keep it from ending */
    (void)log_write_now(STDERR_FILENO, text,
        n < TEXT_BYTES ? (size_t)n : (size_t)TEXT_BYTES - 1);
    abort();
}
