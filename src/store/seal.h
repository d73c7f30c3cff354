/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_SEAL_H
#define STORE_SEAL_H

#include "cold/fetch.h"
#include "store/covers.h"
#include "store/durable.h"

/* Ranges of ids from the engine to a segment. Part of the store; nobody else
 * calls it. */

#define SEAL_STATS(X)                                                         \
    X(seals, "ranges written to a segment")                                   \
    X(seal_records, "records in these segments")                              \
    X(seal_hot_records, "of these, from hot tables")                          \
    X(seal_bytes, "bytes of these segments")                                  \
    X(seal_failures, "ranges that could not be written")

struct seal_stats {
#define X(name, text) _Atomic uint64_t name; /* one writer; a figure */
    SEAL_STATS(X)
#undef X
};

struct seal {
    struct durable *durable;
    struct covers *covers;
    struct engine *engine;
    _Atomic(const struct schema *) *schema; /* the store's */
    unsigned n_shards;
    uint64_t epoch;      /* of the data directory; the durable's manifest is
                          * the checkpointer's alone */
    struct fetch *fetch; /* whose cache has blocks of segments that go */
    uint64_t copy_bytes; /* of the engine's records of one range, about */
    uint64_t chunk;      /* 0, or these records; for tests */
    enum block_codec codec;
    int level;
    _Atomic bool *is_stopping; /* gives up soon where it is true */
    struct seal_stats stats;
};

/* A range of ids: whole rows, see covers_entry. */
struct seal_range {
    unsigned slot; /* of the counter */
    uint64_t first_id, last_id;
    uint64_t n_rows;     /* out, of seal_run: what the engine had of it */
    uint64_t unreadable; /* out, of seal_run: the number of a segment that
                          * covers it and cannot be read, or 0 */
};

/* Merges what the engine has of a range with the segments that cover it, into
 * one new segment, and has that cover the range. What changes meanwhile stays
 * in the engine. Takes 8 bytes a record of the engine and (1 + columns), and
 * those of segment_write_begin. Waits for the disk, and for readers; one thread
 * at a time, not an online reader. In the manifest the segment is only later.
 * 0, ERR_GONE (the counter was dropped or its columns changed: try again),
 * ERR_CLOSED (stopping), ERR_NO_MEMORY, ERR_CORRUPT (range->unreadable is
 * damaged), ERR_COLD_READ (the disk does not read it), ERR_DISK, ERR_DISK_FULL,
 * ERR_FILE_SIZE (the new one cannot be written): then nothing has changed. The
 * first two are no failures. */
int seal_run(struct seal *seal, struct seal_range *range);

#endif
