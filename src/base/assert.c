/* SPDX-License-Identifier: BSD-3-Clause */
/* What a failed assertion does. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void
assert_failed(
    const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "tallyd: assertion failed: %s (%s:%d, %s)\n", condition,
        file, line, function);
    abort();
}
