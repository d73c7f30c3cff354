/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_NAMES_H
#define WAL_NAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Names of the files in a data directory. Pure; any thread. */

enum { NAMES_BYTES = 40 };

/* No file that a server or a salvage makes gets a number that far up: where
 * numbers of files that are there tell which is the next, others do not
 * count. */
#define NAMES_NUMBER_MAX (UINT64_C(1) << 62)

enum names_kind {
    NAMES_LOG,        /* log-00000000000000000001.wal */
    NAMES_LOG_NEW,    /* the same with .new: not yet in its place */
    NAMES_CHECKPOINT, /* checkpoint-00000000000000000001.ckpt */
    NAMES_CUT,        /* cut-00000000000000000001.wal: see log_cut.h */
    NAMES_CUT_NEW,    /* the same with .new */
    NAMES_KINDS
};

/* Writes the name of file number to out. */
void names_make(char out[NAMES_BYTES], enum names_kind kind, uint64_t number);

/* True where name is one that names_make makes. */
bool names_parse(const char *name, enum names_kind *kind, uint64_t *number);

#endif
