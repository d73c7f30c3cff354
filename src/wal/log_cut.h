/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_LOG_CUT_H
#define WAL_LOG_CUT_H

#include "base/disk.h"
#include "base/log.h"
#include "wal/histories.h"
#include "wal/replay.h"

#include <stddef.h>
#include <stdint.h>

/* Cuts the log of a directory that no server runs on: what is behind a batch is
 * not what the other copies have. What goes is kept aside, up to a size, in
 * files of their own: cut-N.wal, each a log file as doc/format-log.md has it,
 * with a run of batches, which no start looks at. */

struct log_cut {
    struct disk *disk;
    struct logger *logger; /* NULL: nothing is told */
    uint64_t epoch;        /* as in struct replay, as the next two */
    const struct histories *histories;
    uint64_t number;
    uint64_t manifest_seq; /* the manifest has nothing of later batches */
    uint64_t seq;          /* the last batch that stays; not 0 */
    uint64_t keep_bytes;   /* of all cut files, with those that there are; the
                            * oldest go first; 0: none is kept */
};

/* Removes the files that begin behind that batch, the last one first. *end is
 * where the log ends then: who opens it (wal_open) gives that to the next file,
 * whose header says that the rest of the file before is void. Until that file
 * is there the cut is not done: after a crash it must be done again, which it
 * can be from any point. 0; ERR_LOG_GONE: the log does not have that batch, or
 * the manifest has what is behind it, and nothing has changed; what replay_run
 * says of the log up to that batch; ERR_DISK, ERR_DISK_FULL, ERR_FILE_SIZE,
 * ERR_NO_MEMORY: it may be tried again. */
int log_cut_run(const struct log_cut *cut, struct replay_end *end);

/* Gives out the batches of a cut file, as far as they are sound. 0, ERR_CORRUPT
 * (not all are), ERR_NEWER_FORMAT, ERR_DISK, ERR_NO_MEMORY, or what batch_fn
 * says. */
int log_cut_read(struct disk *disk, uint64_t number,
    int (*batch_fn)(
        void *context, uint64_t seq, const uint8_t *payload, size_t len),
    void *context);

#endif
