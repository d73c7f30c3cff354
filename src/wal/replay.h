/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_REPLAY_H
#define WAL_REPLAY_H

#include "base/disk.h"
#include "base/log.h"
#include "wal/histories.h"
#include "wal/seq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the log from a file of the manifest to its end.
 *
 * Files follow each other by number. What a file holds before the offset that
 * its successor names must all be sound; beyond it nothing counts. In the last
 * file the first batch that is not sound is the end, if a crash can have made
 * it so: no sound batch behind it was sealed when that one was synced already.
 * Where nothing came for a while
 * after a sync, a mark says so; and a mark says of a file that another follows.
 * Everything else is damage, and is named by file and offset. */

/* Sequence numbers left out by a start: batches that a power cut took back may
 * have been given out to whoever follows the log. More than can be unsynced at
 * a time. */
#define REPLAY_SEQ_GAP SEQ_GAP

struct replay {
    struct disk *disk;
    struct logger *logger; /* damage, and a torn end, are told here; NULL:
                            * nowhere */
    uint64_t epoch;        /* of the directory, not 0 */
    const struct histories *histories; /* of log files; NULL: none is known */
    uint64_t number;   /* of the first file; it must exist, unless this is a
                      * directory without any log file yet */
    uint64_t from_seq; /* batches before it are checked, but not given out */
    uint64_t last_seq; /* nothing behind this batch is looked at; 0: all is. A
                        * log that is being written is read up to a batch that
                        * is synced (wal_stats), or may look damaged */
    /* Called with the payload of each batch, in order, marks among them
     * (entry.h). 0, or an ERR_ that ends
     * the replay. NULL: nothing is done with it. */
    int (*batch_fn)(
        void *context, uint64_t seq, const uint8_t *payload, size_t len);
    void *context;
    /* Told for each megabyte or so how many bytes of all have been read, and
     * at the end. NULL: not. */
    void (*progress_fn)(void *context, uint64_t read, uint64_t all);
};

/* Where the log ends. */
struct replay_end {
    uint64_t number;   /* of the last file; 0: there is no file */
    uint64_t epoch;    /* in its header */
    uint64_t end;      /* offset in it */
    uint64_t next_seq; /* of the next batch */
    uint64_t batches;
    uint64_t torn_bytes; /* from the end to the last that is not zero */
    uint64_t left_out;   /* sound batches in them */
};

/* Reads only; takes some 2 MB of memory whatever the size of the log. 0,
 * ERR_NO_MEMORY, ERR_DISK (a read failed), ERR_CORRUPT (told where to the
 * logger), ERR_NEWER_FORMAT, or what batch_fn returned; *out only where it is
 * 0. Damage may come to light after batches before it were given out. */
int replay_run(const struct replay *replay, struct replay_end *out);

#endif
