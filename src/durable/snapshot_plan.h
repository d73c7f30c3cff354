/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_SNAPSHOT_PLAN_H
#define DURABLE_SNAPSHOT_PLAN_H

#include "base/disk.h"
#include "durable/snapshot_files.h"

#include <stdbool.h>
#include <stdint.h>

/* What a snapshot that is being copied consists of, and which of it is here:
 * a small file (doc/format-manifest.md), replaced as a whole. One thread at a
 * time. */

enum { SNAPSHOT_SOURCE_MAX = 64 };

/* Whether a file is here, and what its bytes are. */
struct snapshot_here {
    bool is_whole; /* all its bytes, synced, as its source has them */
    uint64_t xxh3; /* then: of its bytes, XXH3 with 64 bits and seed 0 */
};

/* All zero is empty. */
struct snapshot_plan {
    char source[SNAPSHOT_SOURCE_MAX + 1]; /* name of whoever has it */
    uint64_t epoch;                       /* of the directory */
    struct snapshot_files files;          /* owned */
    struct snapshot_here *here;           /* owned; one a file */
};

void snapshot_plan_fini(struct snapshot_plan *plan);

/* As many files as another list has, none of them here yet. 0 or
 * ERR_NO_MEMORY; *plan is empty before, and after an error. */
int snapshot_plan_init(struct snapshot_plan *plan, const char *source,
    uint64_t epoch, const struct snapshot_files *files);

/* Reads the file of that name. *error: the errno value of what the disk
 * refused, else 0. 0, ERR_NOT_FOUND, ERR_CORRUPT, ERR_NEWER_FORMAT,
 * ERR_NO_MEMORY, ERR_DISK; *plan is empty before, and after an error. */
int snapshot_plan_read(struct disk *disk, const char *name,
    struct snapshot_plan *plan, int *error);

/* Puts it in the place of SNAPSHOT_PLAN, durably; folder: of
 * snapshot_folder.h. 0 or an errno value: then the old one may be there. */
int snapshot_plan_write(struct disk *folder, const struct snapshot_plan *plan);

#endif
