/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_DISK_COUNTED_H
#define BASE_DISK_COUNTED_H

#include "base/disk.h"

#include <stddef.h>

/* A disk in front of another one, that tells how much is read of it. */

struct disk_counted {
    /* After each read that went well, in its thread. */
    void (*read_fn)(void *context, size_t bytes);
    void *context;
};

/* Makes one; it has no ring, whose reads would not be told. *out is the
 * caller's, freed by disk_counted_destroy; under and counted must outlive it. 0
 * or ENOMEM. */
int disk_counted_create(
    struct disk *under, struct disk_counted *counted, struct disk **out);
/* NULL is fine. */
void disk_counted_destroy(struct disk **disk);

#endif
