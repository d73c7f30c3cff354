/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DURABLE_RECOVER_H
#define DURABLE_RECOVER_H

#include "durable/durable.h"
#include "wal/entry.h"
#include "wal/image.h"
#include "wal/images.h"
#include "wal/names.h"
#include "wal/replay.h"

/* The two halves of loading; part of durable_load. */

/* Where the cells of a column are; counter is NULL where there is none. */
struct recover_place {
    const struct schema_counter *counter;
    uint8_t column; /* slot */
};

/* What entries say about a schema, applied to it, with the places of all
 * serials. One thread at a time changes it. */
struct recover_schema {
    struct schema *schema;       /* owned */
    struct recover_place *place; /* owned; by serial */
    uint32_t n_places;
};

/* Makes place anew, of schema; where it fails it is as it was. 0 or
 * ERR_NO_MEMORY. */
int recover_map_places(struct recover_schema *recover);

/* Takes *schema over. 0 or ERR_NO_MEMORY. */
int recover_schema_init(
    struct recover_schema *recover, struct schema **schema);
void recover_schema_fini(struct recover_schema *recover);

/* The slot of the counter with that serial, or -1. */
int recover_slot_of(const struct schema *schema, uint32_t serial);

/* What an ENTRY_COUNTER or ENTRY_DROPPED makes of a schema; *next is the
 * caller's. 0; ERR_NO_MEMORY; ERR_CORRUPT: it does not fit, as where the one
 * that was dropped is not there. Pure. */
int recover_schema_after(
    const struct schema *now, const struct entry *entry, struct schema **next);

/* Applies an ENTRY_COUNTER or ENTRY_DROPPED; the engine (NULL: none) learns of
 * it. 0 or ERR_. */
int recover_schema_apply(struct recover_schema *recover,
    const struct entry *entry, struct engine *engine);

/* As durable_schema. */
int recover_manifest_schema(
    const struct manifest *manifest, struct schema **schema);

/* Reads one block of a checkpoint file and decodes it. */
struct recover_reader {
    struct disk *disk;
    struct logger *logger;
    const struct images *images; /* all that the manifest names; while they do
                                  * not change. NULL: nobody knows */
    uint64_t file;               /* that fd is open on; 0: none */
    int fd;
    uint8_t *block; /* owned */
    size_t block_bytes;
    struct image_room room;
};

void recover_reader_fini(struct recover_reader *reader);
int recover_read(struct recover_reader *reader,
    const struct images_entry *entry, struct image *out);
/* What the manifest says of a block and what the block says of itself. */
bool recover_agrees(
    const struct images_entry *entry, const struct image *image);
/* The same without decoding; *block is valid until the next call. */
int recover_read_raw(struct recover_reader *reader,
    const struct images_entry *entry, const uint8_t **block);

/* Gets the segment files of a manifest open, those of its own counters. */
struct recover_segments {
    const struct manifest *manifest;
    struct disk *disk;
    bool is_direct; /* of struct segment_config */
    struct logger *logger;
    /* Takes an open file over, whatever it returns; part: its n (>= 1) entries,
     * which stay with the manifest. 0 or ERR_. */
    int (*file_fn)(void *context, struct segment *segment,
        const struct manifest_segment *const *part, size_t n);
    void *context;
};

/* Goes on where a file is damaged or missing, so that all are told. 0, or the
 * first ERR_. */
int recover_each_segment(const struct recover_segments *recover);

/* Reads all of the segment file of that number, and compares it to what the
 * manifest says; logs nothing. 0, or an error of segment_open or segment_check;
 * ERR_NOT_FOUND: the manifest does not name it. */
int recover__check_segment(
    const struct manifest *manifest, struct disk *disk, uint64_t number);

/* Hands all segments to durable->covers, and takes from the map of images what
 * is theirs. Segments of no counter stay in the manifest, unopened: their files
 * are named by the one on the disk. */
int recover__segments(struct durable *durable);

/* Loads all live images; those that are of no counter any more leave the
 * manifest's map. */
int recover__images(struct durable *durable, const struct schema *schema);

/* Says that the manifest cannot be read; error as of manifest_read. */
void recover_log_manifest_error(struct logger *logger, int err, int error);

/* An older tallyd's manifest goes with names of its time only; today: of
 * struct names_old_found. 0, or ERR_CORRUPT, and told. */
int recover_check_names(
    const struct manifest *manifest, const char *today, struct logger *logger);

/* The number of the first batch that is logged behind that end. Batches behind
 * it may have been given out (to whoever follows the log) and lost with a power
 * cut, also where the last file is empty: their numbers are not used again.
 * Pure. */
uint64_t recover__next_seq(const struct replay_end *end);

/* ERR_CORRUPT, and told, where there is no log although there must be one, or
 * where recover__check_seq says so. */
int recover_check_end(const struct manifest *manifest,
    const struct replay_end *end, struct logger *logger);

/* The manifest has nothing of a later batch. Pure. */
uint64_t recover_newest(const struct manifest *manifest);

/* ERR_CORRUPT, and told, where the manifest has what is of a later batch than
 * the log goes on with: what is logged then would be taken for older. */
int recover__check_seq(
    const struct manifest *manifest, uint64_t next_seq, struct logger *logger);

/* Appends what a start will do about a torn end (torn_bytes not 0), without a
 * newline. */
void recover_say_torn(const struct replay_end *end, struct buf *out);

/* ERR_CORRUPT, and told, where a number in batch seq is of a shard that there
 * is not. Any thread. */
int recover_check_shard(const struct manifest *manifest,
    const struct entry *entry, uint64_t seq, struct logger *logger);

/* Adds a term to those so far. ERR_CORRUPT, and told, where it stands elsewhere
 * than first in its first batch (is_first: of batch seq), or cannot follow
 * them. */
int recover_add_term(struct history *terms, const struct entry_term *term,
    uint64_t seq, bool is_first, struct logger *logger);

/* Puts a handover to those so far, unless the manifest, from which these come,
 * has it already. ERR_CORRUPT, and told, where there are too many. */
int recover_add_moved(struct moved_list *handovers,
    const struct moved_one *moved, uint64_t seq,
    const struct manifest *manifest, struct logger *logger);

/* Replays the log behind the images; *schema grows with it. */
int recover__log(
    struct durable *durable, struct schema **schema, struct replay_end *end);

#endif
