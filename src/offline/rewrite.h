/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_REWRITE_H
#define OFFLINE_REWRITE_H

#include "base/buf.h"
#include "base/disk.h"

#include <stdint.h>

/* A log made anew of batches of an old one, which keep their sequence numbers:
 * images and segments go by them. It begins with a file that follows nobody,
 * and which counts only once a manifest names it. Calls wait for the disk. One
 * thread at a time. */

struct rewrite {
    struct disk *disk;
    uint64_t epoch;      /* not 0 */
    uint64_t number;     /* of the first file; no file has it or a later one */
    uint64_t file_bytes; /* of a file, about */
    int error;           /* errno value of what failed */
    /* rewrite's own, 0 at first */
    uint64_t at_number;  /* of the file under way */
    uint64_t first_seq;  /* of it */
    uint64_t next_seq;   /* 0: no file is under way */
    uint64_t before_end; /* of the file before it */
    uint64_t written;    /* bytes of it on the disk */
    int fd;
    struct buf bytes; /* owned; behind them */
};

/* Adds a batch, above all before it. Numbers that are left out are filled with
 * marks, which say nothing; from REPLAY_SEQ_GAP on a file begins there. payload
 * is as of frame.h. 0, ERR_NO_MEMORY, ERR_DISK, ERR_DISK_FULL,
 * ERR_FILE_SIZE. */
int rewrite_add(struct rewrite *rewrite, uint64_t seq, uint64_t synced_seq,
    const uint8_t *payload, uint32_t len);

/* Sees to it that what comes behind this log is above seq, writes the rest, and
 * gives all files their names, durably. An empty log has one file. Frees all.
 * Errors as above. */
int rewrite_end(struct rewrite *rewrite, uint64_t seq);

/* Frees all and removes what has no name yet. */
void rewrite_abort(struct rewrite *rewrite);

#endif
