/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFFLINE_MEMBER_IDS_H
#define OFFLINE_MEMBER_IDS_H

#include "cold/segment_scan.h"
#include "durable/recover.h"
#include "engine/engine.h"
#include "offline/latest.h"

/* Whose the members of a data directory are. The records say under which
 * numbers their members are stored (schema.h, SCHEMA_MEMBERS); here each number
 * has its record, as the directory leaves it: what a segment, an image behind
 * it, and the log behind that said last. They are to be taken in this order.
 * Memory is 16 bytes for each record with members, and half as much again while
 * it is sorted; with counts, as much again for those, and 16 bytes for each
 * member of which the log has a change, or an image that is over a segment, and
 * for each such record. One thread at a time. */

struct member_ids_column {
    uint32_t serial, counts; /* of the column; of what counts, or 0 */
    uint8_t bits;
    struct latest number; /* by id */
    struct latest count;  /* by id; with_counts only */
    struct latest value; /* by the pair's id; with_counts only: of the log, and
                           * of images over a segment */
    struct latest here;  /* by id; with_counts only: 1 for what a segment does
                           * not answer for, though it covers it */
    struct latest mend;  /* by id, the caller's: counts to be made right */
    /* made by member_ids_sort: */
    struct latest owner; /* the id by the number and its shard */
    uint64_t *found;     /* owned; for the caller: one for each of owner */
    uint64_t *largest;   /* owned; by shard: the largest number of a record, or
                          * of a pair that the caller has seen */
    uint64_t n_numbers;  /* of records that have one; more than owner.n where
                           * two records have the same one */
};

struct member_ids {
    const struct engine *engine;     /* where ids are; it may hold none */
    const struct manifest *manifest; /* its images and segments say what the
                                      * log has done already */
    bool with_counts;
    struct member_ids_column *column; /* owned; n */
    size_t n;
};

void member_ids_fini(struct member_ids *members);

/* True where a counter has a column of members. Pure. */
bool member_ids_has(const struct schema *schema);

/* True where a segment covers that id of a counter. */
bool member_ids_is_covered(const struct member_ids *members,
    const struct schema_counter *counter, uint64_t id);

/* What a segment says of numbers, and counts, where it is of a counter with
 * members. 0, ERR_NO_MEMORY, or an error of segment_scan_next. */
int member_ids_take_segment(struct member_ids *members,
    const struct schema *schema, const struct segment *segment);

/* Calls record_fn with each record i of a segment of that counter that the
 * segment answers for, as the manifest says. 0, ERR_NO_MEMORY, an error of
 * segment_scan_next, or what record_fn returns that is not 0, which ends it. */
int member_ids_each_record(const struct member_ids *members,
    const struct schema_counter *counter, const struct segment *segment,
    int (*record_fn)(void *context, const struct segment_head *head,
        const struct segment_records *some, size_t i),
    void *context);

/* What an image says of numbers, and counts. counter: as the schema has it. 0
 * or ERR_NO_MEMORY. */
int member_ids_take_image(struct member_ids *members,
    const struct schema *schema, const struct schema_counter *counter,
    const struct images_entry *entry, const struct image *image);

/* What the log says in a batch, behind all images; recover: the schema as it is
 * there. 0 or ERR_NO_MEMORY. */
int member_ids_take_cells(struct member_ids *members,
    const struct recover_schema *recover, const struct entry_cells *cells,
    uint64_t seq);

/* All columns of members are known from now on, though nobody may have some
 * there. 0 or ERR_NO_MEMORY. */
int member_ids_know(struct member_ids *members, const struct schema *schema);

/* All has been taken: from now on owners are known. 0 or ERR_NO_MEMORY. */
int member_ids_sort(struct member_ids *members);

/* A column of members by its serial, or NULL: nothing was said of it. */
struct member_ids_column *member_ids_find(
    const struct member_ids *members, uint32_t serial);

/* Who has the number of one of column->number, which is not 0: that record
 * itself, or another one that says the same. */
uint64_t member_ids_id_of(const struct member_ids *members,
    const struct member_ids_column *column, const struct latest_one *number);

/* A pair of that number is there. */
void member_ids_raise(
    struct member_ids_column *column, unsigned shard, uint64_t number);

/* One pair of a counter of pairs. */
struct member_ids_pair {
    bool is_mark;  /* no member: it reserves numbers, or is a stored note */
    bool is_wrong; /* a note (engine/members_stored.c) that a number is given
                    * up which the record `id` has */
    bool is_ours;  /* a record has that number */
    unsigned shard;
    uint64_t number;
    uint64_t id; /* of that record, or of the one of is_wrong */
    uint64_t member;
    uint64_t *found; /* the caller's count of that record, or NULL */
};

/* What the record of a counter of pairs is. column: NULL where nothing is known
 * of it. pair_id: of the pair. Pure but for what found leads to. */
struct member_ids_pair member_ids_pair(const struct member_ids *members,
    const struct member_ids_column *column, uint8_t bits, uint64_t pair_id);

/* Reads all records' numbers of a directory: its segments, its images, and its
 * log, past damage, which others tell. reader: of manifest's images. 0,
 * ERR_NO_MEMORY, ERR_DISK, ERR_NEWER_FORMAT. */
int member_ids_read(struct member_ids *members, struct disk *disk,
    struct recover_reader *reader);

#endif
