/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_LOG_END_H
#define WAL_LOG_END_H

#include "base/disk.h"

#include <stdbool.h>
#include <stdint.h>

/* The end of the log that a start has found, made durable before anything is
 * built on it. */

struct log_end {
    struct disk *disk; /* the caller's */
    uint64_t epoch;
    uint64_t number; /* of the last file; 0: there is none */
    uint64_t end;    /* offset behind its last batch */
    /* log_end_keep's own, 0 at first */
    bool is_suspect; /* the inode failed: it is not synced any more */
    bool is_synced;  /* what has the name is, its name perhaps not */
};

/* Sees to it that what was found lasts. 0 or an errno value; then it may be
 * called again, and after a failed write or sync it makes a new file of the
 * old one's sound batches. Where these are not all there any more it says EIO.
 * One thread at a time, without a lock: it syncs. */
int log_end_keep(struct log_end *end);

#endif
