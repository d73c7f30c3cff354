/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_DURABLE_H
#define DURABLE_DURABLE_H

#include "base/moved.h"
#include "base/mutex.h"
#include "durable/data.h"
#include "durable/durable_stats.h"
#include "engine/engine.h"
#include "schema/schema.h"
#include "wal/log_end.h"
#include "wal/manifest.h"
#include "wal/names.h"
#include "wal/replica_file.h"
#include "wal/wal.h"

#include <stdatomic.h>

struct abouts; /* about/abouts.h */
struct names;  /* names/names.h */

/* What keeps counters on disk: directory, log, manifest, checkpoints. Part of
 * the store; nobody else calls it.
 *
 *   durable_open     reads the manifest, or makes the first one
 *   durable_schema   the counters in it
 *   durable_load     images and log into the engine; opens the log for
 *                    writing; from then on the engine's changes are logged
 *   durable_close    syncs the log; with a checkpoint before it if wanted */

struct segment;       /* cold/segment.h */
struct producers;     /* durable/producers.h */
struct producer_name; /* base/producer.h */
struct seen_window;   /* base/seen.h */

/* Who knows which segments cover what; a seam that the store fills. */
struct durable_segments {
    /* At the start, before anything is loaded: takes over an open segment,
     * unless it fails; n ranges of ids, those that it covers. Of those that the
     * engine does not have a record of, what it is told of while it loads is
     * whole. part stays only for the call. 0 or ERR_NO_MEMORY, ERR_CORRUPT (and
     * told). */
    int (*take_fn)(struct durable_segments *segment_map,
        struct segment *segment, const struct manifest_segment *const *part,
        size_t n);
    /* Later in the start: the counter in that slot is gone. No change is under
     * way. */
    void (*drop_fn)(struct durable_segments *segment_map, unsigned slot);
    /* Adds to *out, which is empty, what is covered now, for a manifest: as
     * history what a file has in the place of its epoch. Called
     * with edit_lock held, and whoever takes records out of the engine in
     * favour of a segment holds that too, from the first one until what is said
     * here has the segment: see checkpoint.c. What was covered once may be
     * covered by nothing only if all its records are in the engine or the log
     * has been told that they are default. 0 or ERR_NO_MEMORY. */
    int (*list_fn)(struct durable_segments *segment_map, struct segments *out);
};

enum { DURABLE_MAGIC = 0x0d04ab1e };

struct durable {
    struct engine_sink sink; /* first: the engine's seam */
    uint32_t magic;          /* DURABLE_MAGIC */
    struct data_config config;
    struct disk *disk;
    struct disk *under; /* NULL, or what disk is in front of: some files have
                         * names of an older tallyd (wal/names_old.h) */
    bool is_old;        /* the loader's: the manifest is an older tallyd's */
    char today[NAMES_BYTES]; /* the loader's: a file has this name, which is
                              * one of today's; "": there is none */
    struct engine *engine;
    struct qsbr *qsbr;
    struct wal *wal; /* NULL until all is loaded */
    /* Schema edits, and the copying of a table together with the serials that
     * its columns have. */
    struct mutex edit_lock;
    uint64_t epoch;   /* of the directory; constant, for any thread */
    uint64_t seed;    /* likewise */
    uint64_t history; /* of this process (wal/histories.h); likewise */
    uint64_t writes;  /* manifests of the directory so far; the loader's, then
                      * that of who has manifest_lock */
    struct manifest manifest; /* the loader's, then the checkpointer's */
    struct history terms;     /* the loader's: of the manifest and the log */
    struct moved_list handovers; /* the loader's, then under edit_lock: as the
                                  * log has them */
    /* Held while the manifest is written and changed, since the log may have it
     * written before its first file: prepare_log. */
    struct mutex manifest_lock;
    bool is_history_named;   /* under it: by the manifest on disk */
    bool is_unnamed_told;    /* under it: that it cannot be has been said */
    struct mutex owner_lock; /* the next three (durable_owner.c) */
    struct disk_file
        manifest_file;            /* what was last read or put in its place */
    struct disk_file judged_file; /* another one that was found there, and */
    int judged;                   /* an enum durable_manifest, whose it is */
    uint64_t read_writes; /* manifests before the start; constant then */
    bool names_orphans;   /* the loader's: the manifest on disk names more
                               * images than this one */
    bool is_copied;       /* the loader's: so is the copy of it */
    bool is_refusing;     /* see durable__refuse; likewise */
    struct durable_segments
        *segment_map;              /* the store's; NULL: no segments. Set after
                                    * durable_open, before durable_load */
    struct producers *producers;   /* the store's; set likewise */
    struct abouts *abouts;         /* likewise; NULL: there are none */
    struct names *names;           /* likewise */
    struct naming_log *naming_log; /* owned; see durable_naming.c */
    _Atomic uint64_t last_segment; /* the last number that was given out */
    _Atomic uint64_t spared_segment; /* see durable_spare_segment */
    struct log_end log_end;          /* the log's, while it is open */
    uint64_t loaded_seq;     /* of the last batch that was loaded; 0: there was
                          * none. Constant once all is loaded */
    _Atomic bool is_replica; /* these four: durable_position.h */
    _Atomic int refusal;     /* ERR_: of clients' changes; 0: there is none */
    int wished_refusal; /* the same once it is a primary; of who takes roles */
    _Atomic uint64_t applying, applied; /* void where it is none */
    _Atomic bool is_apply_over; /* likewise: nothing more will be applied */
    /* durable_commit.h: what those who have copies have. */
    _Atomic uint64_t committed;
    _Atomic uint64_t failed_from, failed_to;
    struct replica_file replica; /* the loader's, like the next three */
    bool has_replica_file;
    bool is_leaving;  /* the others that have copies */
    bool ends_clean;  /* see durable_replica__close; of who ends it */
    uint64_t cut_seq; /* the log is cut behind this batch; 0: it is not */
    struct durable_stats stats;
    _Atomic bool is_cancelled; /* give up loading */
};

/* shards and seed: what a new directory gets; they become what the directory
 * has. The directory stays the caller's where this fails. 0 or ERR_ (the
 * logger has been told more). */
int durable_open(struct durable *durable, const struct data_config *config,
    unsigned *shards, uint64_t *seed);

/* A schema of the counters in the manifest, in place of *schema, which is
 * empty. */
int durable_schema(struct durable *durable, struct schema **schema);

/* The engine knows no counter yet, and the cover that it asks, if there is one,
 * says ENGINE_COVER_LOADING of what durable_segments has been given. *schema
 * becomes what it was at the end of the log; the engine knows its counters.
 * Blocks for as long as it takes. */
int durable_load(struct durable *durable, struct engine *engine,
    struct qsbr *qsbr, struct schema **schema);

/* Has durable_load give up soon. Any thread. */
void durable_cancel(struct durable *durable);
bool durable__is_cancelled(struct durable *durable);

/* Has the manifest say that there is a log, if it does not and there is: its
 * first file is missed then. A failure is only told. The thread that has the
 * manifest. */
void durable__name_log(struct durable *durable);

/* A number for a segment file, which no file of the directory had before. Who
 * asks for one publishes it, or removes its file, before the next is asked for;
 * but see durable_spare_segment. Any thread, once all is loaded. */
uint64_t durable_next_segment(struct durable *durable);

/* The file of that number is not removed where no manifest names it, though
 * later numbers are published: it takes long to write. One at a time: the next
 * one only when the manifest has this one, or it is given up. */
void durable_spare_segment(struct durable *durable, uint64_t number);

#define DURABLE_BALLAST "ballast"

enum { DURABLE_BALLAST_BYTES = 1 << 20 };

/* A file that is given up where the disk is full, so that there is room for the
 * log's next file and a small checkpoint. Makes it, or what is missing of it;
 * where there is no room for the whole, and takes_part, as much as there is.
 * 0: nothing is missing, or this file system cannot do it; ERR_DISK_FULL. The
 * thread that has the manifest, like the next two. */
int durable__keep_ballast(struct durable *durable, bool takes_part);
/* False where there is none. */
bool durable__drop_ballast(struct durable *durable);

/* Refuses changes with ERR_DISK_FULL though the log may be written, or takes
 * them again (wal_refuse.h). */
void durable__refuse(struct durable *durable, bool is_refusing);

/* Calls stat_fn for each line of `stats wal` but the state; of the log only
 * where it is open. */
void durable_each_stat(struct durable *durable, bool is_open,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context);

/* No change is under way any more. 0, or why something may be lost. */
int durable_close(struct durable *durable);

/* Logs what a counter is now, or that it is gone, and returns its batch. The
 * caller has edit_lock. */
uint64_t durable_log_counter(struct durable *durable,
    const struct schema_counter *counter, uint32_t last_serial);
uint64_t durable_log_dropped(
    struct durable *durable, uint32_t counter_serial, uint32_t last_serial);

/* Logs a handover, or with the address "" that it has ended, and returns its
 * batch: handovers has it from now on, for which there is room. All changes of
 * its ids that have begun are in the log before it. The caller has
 * edit_lock. */
uint64_t durable_log_moved(
    struct durable *durable, const struct moved_one *moved);

/* Logs a producer, what it has seen elsewhere (not empty), or that it is gone,
 * and returns its batch. The caller has the lock of the producers. */
uint64_t durable__log_producer(struct durable *durable, uint32_t serial,
    const struct producer_name *name);
uint64_t durable__log_producer_joined(
    struct durable *durable, uint32_t serial, const struct seen_window *seen);
uint64_t durable__log_producer_dropped(
    struct durable *durable, uint32_t serial);

#endif
