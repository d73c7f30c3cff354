/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_REWIND_H
#define OFFLINE_REWIND_H

#include "base/buf.h"
#include "base/disk.h"
#include "base/log.h"
#include "wal/manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* What makes a data directory of the files of a backup: the log is cut behind a
 * batch, and a directory that others have copies of becomes another one. One
 * thread; no server has the directory, and no manifest is in it yet. */

struct rewind {
    struct disk *disk;
    struct logger *logger;
    const struct manifest *manifest; /* of the files */
    bool is_followed; /* the last log file may say that another follows it */
    uint64_t until;   /* the last batch that is to stay; 0: all do */
};

/* The log as it is then. */
struct rewound {
    uint64_t last_seq; /* of its last batch */
    bool has_terms; /* a term begins in it: others had copies from then on */
};

/* Removes what the log has behind that batch. 0; ERR_LOG_GONE with why: the
 * manifest has later batches, or the log ends before; what replay_run says;
 * ERR_DISK, ERR_DISK_FULL, ERR_NO_MEMORY. */
int rewind_log(
    const struct rewind *rewind, struct rewound *out, struct buf *why);

/* Makes the manifest of a directory that is or was one of several copies that
 * of another directory, with another epoch: it cannot follow the others as if
 * it had never had what was cut, and they take a snapshot of it. Of others
 * nothing changes. 0, ERR_NO_MEMORY, ERR_SYSTEM. */
int rewind_part(struct manifest *manifest, const struct rewound *log);

#endif
