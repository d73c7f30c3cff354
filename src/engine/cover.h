/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_COVER_H
#define ENGINE_COVER_H

#include "engine/engine_copy.h"

/* The engine beside a colder store. A row is *covered* where something else,
 * a segment, answers for it as long as the engine has no record. What the
 * engine has there is the overlay: a record that is here counts, whatever the
 * segment says; one that is not here is as the segment says; and one that is
 * here with all its columns at their defaults is a tombstone, which says that
 * the segment's record is no more. The engine keeps tombstones where rows are
 * covered, and lets go of them elsewhere, sooner or later. */

/* A version: the row is covered, but a record that is not here counts as
 * default, for what has been logged since is told whole (while a log is
 * replayed). */
#define ENGINE_COVER_LOADING UINT64_MAX

/* Who says what is covered; a seam. All functions are called under the lock
 * of that shard and by many threads, must not call the engine, and should take
 * nanoseconds (column_fn: a segment). What they say of a shard's rows may
 * change only in engine_evict's publish_fn, or in a way that the caller answers
 * for. */
struct engine_cover {
    /* The version of what covers that row: 0 where nothing does. A version is
     * not used again for other contents of the row. Asked only where a record
     * is not found or becomes empty, or where there are tombstones in a table
     * that is made. */
    uint64_t (*version_fn)(const struct engine_cover *cover, unsigned slot,
        unsigned shard, uint64_t row);
    /* True where any of the rows first_row..last_row is covered. */
    bool (*any_fn)(const struct engine_cover *cover, unsigned slot,
        unsigned shard, uint64_t first_row, uint64_t last_row);
    /* No record of the shard that what covers it has, is in a row above *row;
     * false where nothing covers any. Asked of counters of pairs only. */
    bool (*last_row_fn)(const struct engine_cover *cover, unsigned slot,
        unsigned shard, uint64_t *row);
    /* True where what covers some row may have a value of the column with that
     * serial. Asked by engine_is_covered only. */
    bool (*column_fn)(const struct engine_cover *cover, unsigned slot,
        unsigned shard, uint32_t serial);
};

/* A record as it is in the segment (struct change, which only reads it). */
struct engine_base {
    uint64_t id;      /* whose it is; another one's is ignored */
    uint64_t version; /* of the cover it was read under */
    bool is_there;    /* else all is default, and what follows is void */
    bool is_to_stay;  /* the record is to be in the engine afterwards, also
                       * where the change leaves it as it is; the sink is told
                       * all of it. Not for the change of a member */
    uint32_t n_columns;
    uint32_t serial[SCHEMA_COLUMNS_MAX]; /* those that the counter does not
                                          * have are left out */
    uint64_t code[SCHEMA_COLUMNS_MAX];   /* as stored (engine_rows.code) */
};

/* Where what engine_look has read is. */
struct engine_found {
    bool is_here;     /* in the engine: it counts */
    uint64_t version; /* where it is not here: of the cover; 0: there is none,
                       * and the record is default */
};

/* From now on that cover is asked; it is the caller's and outlives the engine.
 * No other call may be under way, and no tombstone there. */
void engine_set_cover(struct engine *engine, const struct engine_cover *cover);

/* Reads n >= 1 cells of one record: value[i] and state[i] as engine_get does
 * (the default where it is not here), and where the record is, all at one
 * moment: under the shard's lock. Any thread, online or not. */
void engine_look(struct engine *engine, const struct cell_key *key, size_t n,
    uint64_t *value, uint8_t *state, struct engine_found *found);

/* An id of that counter has a record that was never here, or counts as if it
 * had one: for maxjump and cold_after. Any thread. */
void engine_raise(struct engine *engine, unsigned slot, uint64_t id);

/* That many records of that counter, about, are covered; before anything of it
 * is loaded (engine_size). */
void engine_add_covered(
    struct engine *engine, unsigned slot, uint64_t n_records);

/* Counters of pairs of which some were loaded and some are covered are counted
 * anew behind a start, by whoever can read what covers them: shard by shard,
 * rows from 0 on. row[0..n-1], ascending: those up to last_row, and above the
 * last_row of the call before, that what covers the shard has now, and has
 * until the call returns. Looks through whole tables, one under each hold of
 * the shard's lock (some 0.3 ms). One thread at a time. */
struct engine_pairs; /* engine/members.h */
void engine_count_rows(struct engine *engine, const struct engine_pairs *pairs,
    unsigned shard, uint64_t last_row, const uint64_t *row, size_t n);

/* True where a counter is still to be counted so. Any thread. */
bool engine_is_counting(struct engine *engine, unsigned slot);

/* All rows of all shards have been: from now on engine_size is exact. */
void engine_count_end(struct engine *engine, unsigned slot);

/* Copies the records of rows first_row..last_row, tombstones too (all codes
 * 0), into rows, whose block grows as needed: some 8 bytes a record and column
 * more than it has, and a table's size. The lock is held for one table at a
 * time, so what changes meanwhile may be in it or not; engine_evict sees to
 * that. Whether tables count as unchanged for engine_copy stays. rows->position
 * is that of the first moment. 0 or ERR_NO_MEMORY (rows are void then). Any
 * thread. */
int engine_copy_range(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row, struct engine_rows *rows);

/* Calls publish_fn(context) under the lock of a shard; it has version_fn say
 * that nothing covers some of its rows any more, and must not call the engine.
 * Of all records that these rows have the engine has all by then, or a
 * tombstone, which it lets go of some time. So that no reader is between having
 * missed a record and asking for the cover, a grace period lies between the
 * last record that came in and this call. Any thread. */
void engine_uncover(struct engine *engine, unsigned shard,
    void (*publish_fn)(void *context), void *context);

/* Takes out of the engine what is in copied (by engine_copy_range) and has not
 * changed since, in favour of what now covers copied's rows. Under one hold of
 * the shard's lock, in this order:
 *
 *   all that needs memory is made aside, which does not count against the
 *   budget; here it can fail, and then nothing has changed;
 *   publish_fn(context) is called, after which version_fn gives a new version
 *   for these rows. It must not call the engine;
 *   the tables without those records are published. What stays is what has
 *   changed or is new since, and a tombstone for each record that is in copied
 *   and has been removed. Tables that have something left count as changed;
 *   the sink is told all columns of each record that stays.
 *
 * So a reader without the lock that finds no record, and then sees the old
 * cover (by acquire, with a release in publish_fn), has been right about both.
 * The lock is held for the making of what stays; a table that changes during
 * the call takes some 0.5 us a record. Needs heap for that of copied's tables
 * that have changed. 0 or ERR_NO_MEMORY: publish_fn has not been called. Any
 * thread. */
int engine_evict(struct engine *engine, unsigned slot, unsigned shard,
    const struct engine_rows *copied, void (*publish_fn)(void *context),
    void *context);

#endif
