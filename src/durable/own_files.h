/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_OWN_FILES_H
#define DURABLE_OWN_FILES_H

#include "base/disk.h"
#include "base/numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the files of the data directory were when the server made or first saw
 * them, so that one that somebody has replaced or changed is told from its own.
 * Part of the checkpointer, whose thread calls it. All zero is empty. */

enum own_kind { OWN_LOGS, OWN_CHECKPOINTS, OWN_SEGMENTS, OWN_KINDS };

struct own_file {
    uint64_t number;
    struct disk_file is;
    bool is_closed;  /* a log file to which nothing more is written */
    bool is_unsound; /* a segment: not what the manifest names, or gone */
};

struct own_files {
    struct own_file *file; /* owned; n of capacity, numbers ascend */
    size_t n, capacity;
};

void own_files_fini(struct own_files *files);

/* NULL where it is not known. Valid until the next change. */
struct own_file *own_files_find(
    const struct own_files *files, uint64_t number);

/* From now on file number is this one. 0 or ERR_NO_MEMORY: it is not known
 * then. */
int own_files_note(
    struct own_files *files, uint64_t number, const struct disk_file *is);

/* The same of a file that the server has open, as well as that goes. */
void own_files_note_open(
    struct own_files *files, struct disk *disk, uint64_t number, int fd);

/* Forgets all that are not among numbers, which are sorted. */
void own_files_keep(struct own_files *files, const struct numbers *numbers);

#endif
