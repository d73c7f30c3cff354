/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_SALVAGE_H
#define OFFLINE_SALVAGE_H

#include "base/buf.h"
#include "base/disk.h"
#include "base/flip.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

/* tallyd --salvage: a directory on which a start is refused becomes one on
 * which it is not, with all that is sound. */

enum salvage_outcome {
    SALVAGE_SOUND, /* there was nothing to do, and nothing was done */
    SALVAGE_WHOLE, /* nothing is lost */
    SALVAGE_LOSSY  /* something is lost, or may be */
};

/* A bits_budget for some minutes of one core. */
#define SALVAGE_BITS_BUDGET FLIP_BUDGET

struct salvage_config {
    struct disk *disk;     /* also one with names of an older tallyd */
    struct logger *logger; /* damage is told here, too, by who finds it */
    uint64_t free_bytes;   /* on the disk; UINT64_MAX: nobody knows */
    uint64_t bits_budget;  /* of struct flip_budget; 0: none is turned back */
    unsigned codec;        /* enum block_codec, of segments made anew */
    int level;             /* of zstd in them */
    unsigned shards;       /* of a directory whose manifest is made anew */
    uint64_t seed;         /* likewise: random */
    /* Told each line of the report when it is made. NULL: nobody is. */
    void (*say_fn)(void *context, const char *line);
    /* Sees to it that a file of that name stays, under another name, durably,
     * though this one goes. 0 or an errno value. NULL: in tests; names that
     * nothing refers to are the next start's to remove then. */
    int (*keep_fn)(void *context, const char *name);
    void *context;
};

/* Changes nothing where all is sound. Writes new files under numbers that no
 * file has; then has all files kept that will not count any more; then replaces
 * the manifest; then removes them. It may be interrupted anywhere and begun
 * again. report: lines for the operator are appended, of what was found and
 * done. 0 and *out; ERR_CORRUPT (what would be needed is not there),
 * ERR_NEWER_FORMAT, ERR_DISK, ERR_DISK_FULL, ERR_FILE_SIZE, ERR_NO_MEMORY: the
 * directory is then as it was, or as it will be. */
int salvage_run(const struct salvage_config *config, struct buf *report,
    enum salvage_outcome *out);

#endif
