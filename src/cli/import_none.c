/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for import_redis.c in a build without hiredis. */
#include "cli/import_priv.h"

bool
import__redis(struct import *job)
{
    return import__fail(job,
        "this tallyctl was built without hiredis (Debian: libhiredis-dev): "
        "--format=rdb reads a file of Redis without it");
}
