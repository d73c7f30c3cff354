/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_LOG_MAKE_H
#define LIB_LOG_MAKE_H

#include "base/buf.h"
#include "wal/entry.h"
#include "wal/frame.h"

#include <stddef.h>
#include <stdint.h>

/* Makes the bytes of a log file, batch by batch, without the log's writer. */

enum { LOG_MAKE_BATCHES_MAX = 64 };

struct log_make {
    struct frame_file file;
    struct buf bytes;                      /* owned */
    unsigned n;                            /* batches */
    uint64_t at[LOG_MAKE_BATCHES_MAX + 1]; /* where each begins, and the end */
    struct frame_batch batch[LOG_MAKE_BATCHES_MAX];
};

/* A file with this header and no batch. Its bytes are set: the header always
 * says that the file was made as long as it is. */
void log_make_init(struct log_make *log, const struct frame_file *file);
void log_make_fini(struct log_make *log);

/* Adds a batch with the next sequence number. */
void log_make_add(struct log_make *log, const void *payload, size_t len,
    uint64_t synced_seq);

/* entry_put_columns of cells that lie together. */
static inline size_t
log_make_cells(
    uint8_t *out, const struct entry_cells *cells, const uint64_t *id_before)
{
    return entry_put_columns(
        out, cells->id, cells->n, cells->serial, cells->value, id_before);
}

/* entry_put_record of such; before: NULL, or of the record before. */
static inline size_t
log_make_record(uint8_t *out, const struct entry_cells *cells,
    const struct entry_cells *before)
{
    struct entry_before it = {0};

    if (before != NULL) {
        it = (struct entry_before){before->id, before->n, before->serial};
    }
    return entry_put_record(out, cells->id, cells->n, cells->serial,
        cells->value, before != NULL ? &it : NULL);
}

/* Adds len zeroes, as of a file that was preallocated. No batch may follow. */
void log_make_zeroes(struct log_make *log, size_t len);

#endif
