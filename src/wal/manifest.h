/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WAL_MANIFEST_H
#define WAL_MANIFEST_H

#include "base/disk.h"
#include "base/flip.h"
#include "base/moved.h"
#include "schema/schema.h"
#include "wal/histories.h"
#include "wal/history.h"
#include "wal/images.h"
#include "wal/producers.h"
#include "wal/segments.h"

#include <stdbool.h>
#include <stdint.h>

/* The file that names all live files of a data directory and what is in them
 * (doc/format-manifest.md): replaced as a whole, by writing MANIFEST.new,
 * syncing it, renaming it to MANIFEST and syncing the directory. Small: some
 * 20 bytes an image, and for a segment 20 and one or two for each shard. */

enum { MANIFEST_VERSION_NEWEST = 10 /* that can be read */ };

struct manifest {
    uint64_t epoch; /* random, not 0; of the directory, for good */
    /* How many manifests of this directory were written before it, and with
     * it; 0: a tallyd has written it that gave log and checkpoint files no
     * suffix (wal/names_old.h). */
    uint64_t writes;
    uint64_t seed;       /* of the engine: which shard and row an id has */
    uint32_t shards;     /* for good */
    uint64_t log_number; /* replay begins with this log file */
    uint64_t next_file;  /* number of the next checkpoint file */
    uint64_t schema_seq; /* batches up to this one are in the schema below, and
                          * in the handovers */
    /* Of the last checkpoint that came through: the log batches up to this one
     * are in it, and when it ended, in seconds since 1970; 0: there is none. */
    uint64_t checkpoint_seq, checkpoint_time;
    uint32_t last_serial;
    uint32_t n_counters;
    struct schema_counter *counter; /* n_counters, owned */
    struct images images;           /* owned */
    /* The largest number that a segment file had in this manifest or in one
     * before it; 0: none ever was. A directory with 0 can be read by programs
     * that do not know of segments. */
    uint64_t last_segment;
    struct segments segments; /* owned; their shards are set where there are
                               * some */
    /* Owned. All marks of log batches up to that which ended before the images
     * and the segments above were named are in it, and perhaps more; the log
     * was synced past them. */
    struct producers_list producers;
    struct histories histories; /* of log files; owned. The last one is that of
                                 * who wrote the manifest, where writes > 0 */
    /* Whose the log was up to what the manifest has; empty: the directory never
     * was replicated, and programs that do not know of terms can read it. */
    struct history terms;
    uint64_t committed_seq; /* batches up to this one are known to be committed
                             * by the rules of those who have copies; 0: none,
                             * as where there are no terms */
    /* Which ids are at other groups; where there are none, programs that do not
     * know of handovers can read it. */
    struct moved_list handovers;
};

/* The first manifest is older than the first log file: its next_file is 1. From
 * then on it is at least this. */
enum { MANIFEST_NEXT_FILE_MIN = 2 };

/* Whether the file log_number must be there. */
bool manifest_names_log(const struct manifest *manifest);

void manifest_init(struct manifest *manifest);
void manifest_fini(struct manifest *manifest);

/* The history of who wrote it; 0: not known. */
uint64_t manifest_writer(const struct manifest *manifest);

/* A counter whose records may be in files: one of the manifest's, or the
 * counter of pairs that a column of members makes (schema/pairs.c), of which
 * nothing else is there. */
struct manifest_counter {
    uint32_t serial;
    uint8_t slot;
    bool cold_is_never;
};

/* Which one comes next; all zero: the first. */
struct manifest_counters {
    uint32_t counter;
    unsigned column;
};

/* The next one; false where there is none. */
bool manifest__next_counter(const struct manifest *manifest,
    struct manifest_counters *at, struct manifest_counter *out);

/* True where one of them has that serial. */
bool manifest_has_counter(const struct manifest *manifest, uint32_t serial);

enum { MANIFEST_TABLES_SLOT_SHIFT = 56 };

/* True of images of tables of members=about, which are in a shard of their own:
 * their rows are in that of a column << MANIFEST_TABLES_SLOT_SHIFT. */
static inline bool
manifest_is_of_tables(
    const struct manifest *manifest, const struct images_entry *entry)
{
    return entry->shard == manifest->shards;
}

/* True of images of names: those of a shard's dictionary are in a shard of
 * their own behind that of tables, and in slot 0, whichever counter that
 * has. */
static inline bool
manifest_is_of_names(
    const struct manifest *manifest, const struct images_entry *entry)
{
    return entry->counter == 0 && entry->shard > manifest->shards &&
        entry->shard <= 2 * manifest->shards;
}

/* True where such an image is of a column that it has. */
bool manifest__has_column(
    const struct manifest *manifest, const struct images_entry *entry);

/* Lets go of segments of counters that it does not have, and of images of
 * tables of columns that it does not have. 0 or ERR_NO_MEMORY. */
int manifest_drop_gone(struct manifest *manifest);

/* Takes from the images the rows that a segment covers whose sequence number in
 * that shard is above the image's: they are in the segment as they became
 * later, or have been told anew. What an image has that is as new as the
 * segment stays, and counts. No loader may see the others: what was removed
 * before the segment was written is in neither, but still in them. *n_cut
 * images have fewer rows or are gone. Segments of counters that it does not
 * have take nothing. 0 or ERR_NO_MEMORY (some may have been done). */
int manifest_cut_images(struct manifest *manifest, size_t *n_cut);

/* Asserts what must hold of one that is about to be written, rows that segments
 * cover being cut from its images; last_seq: of the last batch of the log. */
void manifest_verify(const struct manifest *manifest, uint64_t last_seq);

#define MANIFEST_NAME "MANIFEST"
#define MANIFEST_COPY "MANIFEST.copy"

/* Reads it. 0, ERR_NOT_FOUND (there is none), ERR_CORRUPT, ERR_NEWER_FORMAT,
 * ERR_NO_MEMORY, ERR_DISK. *out is initialised by the caller and owned by it;
 * empty after an error. Whether its counters go together is for schema_restore
 * to see, and images and segments of counters that it does not have may be
 * there. *error (may be NULL): the errno value of what the disk refused, else
 * 0. */
int manifest_read(struct disk *disk, struct manifest *out, int *error);

/* Writes it durably. 0, or ERR_NO_MEMORY, ERR_DISK_FULL, ERR_FILE_SIZE,
 * ERR_DISK: then the old one may or may not have been replaced, but one of both
 * is there, whole; the caller must keep the files of both until a later write
 * succeeds. *file (may be NULL): which file it is now, inode 0 where that is
 * not known, as after an error. What a reader
 * would refuse is asserted: shards, epoch, images of files below next_file,
 * segments up to last_segment. *error as above. */
int manifest_write(struct disk *disk, const struct manifest *manifest,
    struct disk_file *file, int *error);

/* Writes it once more, as MANIFEST.copy, which only a salvage reads. Called
 * when manifest_write has returned 0, before files go that only the manifest
 * before names: then the copy, whatever becomes of it here, names files that
 * are there. Errors as above; they matter only where MANIFEST gets lost. */
int manifest_write_copy(struct disk *disk, const struct manifest *manifest);

/* As manifest_read, of the copy. */
int manifest_read_copy(struct disk *disk, struct manifest *out);

/* As manifest_read, of a MANIFEST that is damaged by one bit, which is turned
 * back; *at: the offset of its byte. */
int manifest_mend(struct disk *disk, struct flip_budget *budget,
    struct manifest *out, uint64_t *at);

/* What a segment file has in the place of its epoch that an entry names. */
uint64_t manifest_segment_epoch(
    const struct manifest *manifest, const struct manifest_segment *segment);

/* The same of bytes that are here. 0, ERR_CORRUPT, ERR_NEWER_FORMAT,
 * ERR_NO_MEMORY. */
int manifest_decode(const uint8_t *bytes, size_t len, struct manifest *out);

/* Its bytes, for tests and fuzzing: appends to out (0 or ERR_NO_MEMORY). */
struct buf;
int manifest__encode(const struct manifest *manifest, struct buf *out);

#endif
