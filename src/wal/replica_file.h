/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_REPLICA_FILE_H
#define WAL_REPLICA_FILE_H

#include "base/disk.h"
#include "base/node.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* REPLICA: what a server must not forget about the others that have copies of
 * its directory (doc/format-replica.md). Only a directory that is one of
 * several copies has it; who leaves them removes it. Replaced as a whole and
 * durably, as MANIFEST is. One thread at a time. */

#define REPLICA_NAME "REPLICA"

enum { REPLICA_BYTES = 512, REPLICA_BOOT_BYTES = 16 };

/* When a batch counts as being on a copy. */
enum replica_level {
    REPLICA_WRITTEN = 1, /* in its log file */
    REPLICA_SYNCED,
    REPLICA_APPLIED, /* and to be seen by its readers */
    REPLICA_LEVELS
};

struct replica_file {
    uint64_t epoch;           /* of the directory; 0: it has none yet */
    struct node_name cluster; /* len 0, also of group: by hand */
    struct node_name group;
    struct node_name node; /* what this server is called; len not 0 */
    uint32_t promised;     /* nothing is taken of terms below; 0: of any */
    uint64_t cut_seq;      /* the log is to be cut behind that batch before it
                            * is loaded; 0: it is not */
    uint8_t boot_id[REPLICA_BOOT_BYTES]; /* of the kernel that it ran under */
    enum replica_level level;
    bool is_doubtful;   /* it may have lost what it has acknowledged */
    bool is_clean;      /* the last stop was a clean one */
    bool is_exchanging; /* a snapshot is about to take the directory's place */
    bool is_salvaged;   /* a salvage has changed the directory: what is in it
                         * need not be the others'; a snapshot comes first */
};

/* Reads it. 0, ERR_NOT_FOUND, ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_DISK; *out
 * only where it is 0. */
int replica_file_read(struct disk *disk, struct replica_file *out);

/* Writes it durably. 0, or ERR_DISK, ERR_DISK_FULL, ERR_FILE_SIZE: then the
 * one before or this one is there, whole. What a reader would refuse is
 * asserted. */
int replica_file_write(struct disk *disk, const struct replica_file *file);

/* Its bytes, for tests; decode is as replica_file_read. */
void replica_file__encode(
    const struct replica_file *file, uint8_t out[REPLICA_BYTES]);
int replica_file__decode(
    const uint8_t *bytes, size_t len, struct replica_file *out);

#endif
