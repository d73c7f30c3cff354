/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_SNAPSHOT_FILES_H
#define DURABLE_SNAPSHOT_FILES_H

#include "wal/manifest.h"
#include "wal/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which files a snapshot of a data directory consists of, besides its manifest.
 * One thread at a time. */

/* As on the disk and on the wire. */
enum snapshot_kind {
    SNAPSHOT_LOG = 1,
    SNAPSHOT_CHECKPOINT = 2,
    SNAPSHOT_SEGMENT = 3
};

struct snapshot_file {
    uint32_t kind;   /* enum snapshot_kind */
    uint64_t number; /* 1 and more */
    uint64_t bytes;  /* from the start of the file on; of a log file those that
                      * were synced, or that its successor does not void */
};

enum { SNAPSHOT_FILES_MAX = 1 << 20 };

/* All zero is empty. */
struct snapshot_files {
    struct snapshot_file *file; /* owned; n of capacity, by kind and number */
    size_t n, capacity;
};

void snapshot_files_fini(struct snapshot_files *files);

/* Adds the files that a manifest names to *files, which is empty: with the log
 * up to the file last_log, and 0 bytes each. 0, ERR_NO_MEMORY, or ERR_CORRUPT:
 * there is no such log, there are more than SNAPSHOT_FILES_MAX files, or an
 * older tallyd has written the manifest. *files is the caller's in any case. */
int snapshot_files__of(const struct manifest *manifest, uint64_t last_log,
    struct snapshot_files *files);

/* Whether others are just those that the manifest names, with a log that
 * ends with one of them, and none is empty: 0, ERR_NO_MEMORY, ERR_CORRUPT. */
int snapshot_files__agree(
    const struct manifest *manifest, const struct snapshot_files *others);

/* The place of a file, or files->n. */
size_t snapshot_files_find(
    const struct snapshot_files *files, uint32_t kind, uint64_t number);

/* True of the name of a file that a snapshot may have; file: its kind and
 * number, no bytes. Pure. */
bool snapshot__file_parse(const char *name, struct snapshot_file *file);

/* Writes the name that it has in a data directory. */
void snapshot_file_name(
    const struct snapshot_file *file, char out[NAMES_BYTES]);

#endif
