/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_STATS_H
#define DURABLE_DURABLE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

/* Figures of what keeps counters on disk, in the order of `stats wal`. */

#define DURABLE_STATS(X)                                                      \
    X(checkpoints, "checkpoints completed")                                   \
    X(checkpoint_failures, "checkpoints given up")                            \
    X(checkpoint_all_records, "of one under way, in memory; 0: none is")      \
    X(checkpoint_percent, "of these, in shards that it has been through")     \
    X(checkpoint_left_ms, "how long it will take, as it went; 0: unknown")    \
    X(checkpoint_images, "images written")                                    \
    X(checkpoint_records, "records in them")                                  \
    X(checkpoint_bytes, "bytes written to checkpoint files")                  \
    X(checkpoint_moved_bytes, "of these, moved out of sparse files")          \
    X(manifest_bytes, "bytes written to manifests")                           \
    X(manifests, "manifests written")                                         \
    X(last_checkpoint_seq, "batches up to it are in the last checkpoint")     \
    X(last_checkpoint_ms, "how long the last checkpoint took")                \
    X(last_checkpoint_time, "when it ended, in seconds since 1970")           \
    X(archived_files, "log files copied to --wal-archive since the start")    \
    X(archive_failures, "times that one could not be copied")                 \
    X(archive_failing, "1: the last one could not, and log files are kept")   \
    X(missing_files, "files found gone or changed that a start would need")   \
    X(foreign_manifest, "1: another server has written MANIFEST")             \
    X(live_images, "images in the manifest")                                  \
    X(live_segments, "ranges of ids in it that segments cover")               \
    X(cut_images, "images that lost rows to a newer segment")                 \
    X(replay_seq, "last batch read at the start")                             \
    X(replayed_batches, "batches replayed at the start")                      \
    X(replayed_changes, "changes of records in them")                         \
    X(replayed_cells, "cells that these changed")                             \
    X(loaded_records, "records loaded from images at the start")              \
    X(load_all_bytes, "bytes of images to be read then, or, later, of log")   \
    X(load_done_bytes, "of these, bytes that have been read")                 \
    X(load_is_log, "1: the images have been read, and these are of the log")  \
    X(load_ms, "how long loading took")                                       \
    X(replay_ms, "of this, the log")

struct durable_stats {
#define X(name, text) _Atomic uint64_t name; /* one writer; a figure */
    DURABLE_STATS(X)
#undef X
};

static inline void
durable_count(_Atomic uint64_t *stat, uint64_t n)
{
    /* relaxed: a figure */
    atomic_fetch_add_explicit(stat, n, memory_order_relaxed);
}

static inline void
durable_note(_Atomic uint64_t *stat, uint64_t n)
{
    /* relaxed: a figure */
    atomic_store_explicit(stat, n, memory_order_relaxed);
}

#endif
