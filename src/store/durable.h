/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_DURABLE_H
#define STORE_DURABLE_H

#include "engine/engine.h"
#include "schema/schema.h"
#include "store/data.h"
#include "wal/log_end.h"
#include "wal/manifest.h"
#include "wal/wal.h"

#include <pthread.h>
#include <stdatomic.h>

/* What keeps counters on disk: directory, log, manifest, checkpoints. Part of
 * the store; nobody else calls it.
 *
 *   durable_open     reads the manifest, or makes the first one
 *   durable_schema   the counters in it
 *   durable_load     images and log into the engine; opens the log for
 *                    writing; from then on the engine's changes are logged
 *   durable_close    syncs the log; with a checkpoint before it if wanted */

#define DURABLE_STATS(X)                                                      \
    X(checkpoints, "checkpoints completed")                                   \
    X(checkpoint_failures, "checkpoints given up")                            \
    X(checkpoint_images, "images written")                                    \
    X(checkpoint_records, "records in them")                                  \
    X(checkpoint_bytes, "bytes written to checkpoint files")                  \
    X(checkpoint_moved_bytes, "of these, moved out of sparse files")          \
    X(manifest_bytes, "bytes written to manifests")                           \
    X(manifests, "manifests written")                                         \
    X(last_checkpoint_seq, "batches up to it are in the last checkpoint")     \
    X(last_checkpoint_ms, "how long the last checkpoint took")                \
    X(last_checkpoint_time, "when it ended, in seconds since 1970")           \
    X(missing_files, "files found missing that a start would need")           \
    X(live_images, "images in the manifest")                                  \
    X(replay_seq, "last batch read at the start")                             \
    X(replayed_batches, "batches replayed at the start")                      \
    X(replayed_changes, "changes of records in them")                         \
    X(replayed_cells, "cells that these changed")                             \
    X(loaded_records, "records loaded from images at the start")              \
    X(load_ms, "how long loading took")                                       \
    X(replay_ms, "of this, the log")

struct durable_stats {
#define X(name, text) _Atomic uint64_t name; /* one writer; a figure */
    DURABLE_STATS(X)
#undef X
};

struct durable {
    struct engine_sink sink; /* first: the engine's seam */
    struct data_config config;
    struct disk *disk;
    struct engine *engine;
    struct qsbr *qsbr;
    struct wal *wal; /* NULL until all is loaded */
    /* Schema edits, and the copying of a table together with the serials that
     * its columns have. */
    pthread_mutex_t edit_lock;
    struct manifest manifest; /* the loader's, then the checkpointer's */
    bool names_orphans;       /* the loader's: the manifest on disk names more
                               * images than this one, of no counter */
    struct log_end log_end;   /* the log's, while it is open */
    struct durable_stats stats;
    _Atomic bool is_cancelled; /* give up loading */
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

/* shards and seed: what a new directory gets; they become what the directory
 * has. The directory stays the caller's where this fails. 0 or ERR_ (the
 * logger has been told more). */
int durable_open(struct durable *durable, const struct data_config *config,
    unsigned *shards, uint64_t *seed);

/* A schema of the counters in the manifest, in place of *schema, which is
 * empty. */
int durable_schema(struct durable *durable, struct schema **schema);

/* The engine knows no counter yet. *schema becomes what it was at the end of
 * the log; the engine knows its counters. Blocks for as long as it takes. */
int durable_load(struct durable *durable, struct engine *engine,
    struct qsbr *qsbr, struct schema **schema);

/* Has durable_load give up soon. Any thread. */
void durable_cancel(struct durable *durable);
bool durable_is_cancelled(struct durable *durable);

/* Has the manifest say that there is a log, if it does not and there is: its
 * first file is missed then. A failure is only told. The thread that has the
 * manifest. */
void durable_name_log(struct durable *durable);

/* A file that is given up where the disk is full, so that there is room for a
 * start, a manifest or a small checkpoint. To have none matters only then. */
void durable_keep_ballast(struct durable *durable);
/* False where there is none. */
bool durable_drop_ballast(struct durable *durable);

/* Calls stat_fn for each line of `stats wal` but the state; of the log only
 * where it is open. */
void durable_each_stat(struct durable *durable, bool is_open,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

/* No change is under way any more. 0, or why something may be lost. */
int durable_close(struct durable *durable);

/* Logs what a counter is now, or that it is gone, and returns its batch. Under
 * edit_lock. */
uint64_t durable_log_counter(struct durable *durable,
    const struct schema_counter *counter, uint32_t last_serial);
uint64_t durable_log_dropped(
    struct durable *durable, uint32_t counter_serial, uint32_t last_serial);

#endif
