/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TIER_SEAL_H
#define TIER_SEAL_H

#include "cold/fetch.h"
#include "durable/durable.h"
#include "tier/segment_map.h"

/* Ranges of ids from the engine to a segment. Part of the store; nobody else
 * calls it. */

#define SEAL_STATS(X)                                                         \
    X(seals, "ranges written to a segment")                                   \
    X(seal_records, "records in these segments")                              \
    X(seal_hot_records, "of these, from hot tables")                          \
    X(seal_bytes, "bytes of these segments")                                  \
    X(seal_forgotten, "forgotten marks taken out before that (forget=)")      \
    X(seals_pressed, "ranges written in haste: memory was short")             \
    X(seals_after, "ranges written for their age alone (cold_after)")         \
    X(seal_heavy, "times an older range was passed over, which is written")   \
    X(seal_asides, "times a range was set aside, since it could not be read") \
    X(seal_failures, "ranges that could not be written")                      \
    X(range_joins, "of the ranges written, those that join cold ones")        \
    X(overlay_merges, "those with an overlay that was large and quiet")       \
    X(file_saves, "those moved out of a file that was mostly dead")           \
    X(reheats, "ranges that are hot again")                                   \
    X(reheat_records, "records read for these")                               \
    X(tidy_idle, "looks for such work that found none")                       \
    X(tidy_failures, "of all that, what could not be done")

struct seal_stats {
#define X(name, text) _Atomic uint64_t name; /* one writer; a figure */
    SEAL_STATS(X)
#undef X
};

struct seal {
    struct durable *durable;
    struct segment_map *segment_map;
    struct engine *engine;
    _Atomic(const struct schema *) *schema; /* the store's */
    unsigned n_shards;
    uint64_t epoch;      /* of the data directory; the durable's manifest is
                          * the checkpointer's alone */
    struct fetch *fetch; /* whose cache has blocks of segments that go */
    uint64_t copy_bytes; /* of the engine's records of one range, about */
    uint64_t chunk;      /* 0, or these records; for tests */
    uint64_t room_bytes; /* hot bytes above which room is made, and no cold
                          * record is brought in for its marks */
    enum block_codec codec;
    int level;
    _Atomic bool *is_stopping; /* gives up soon where it is true */
    _Atomic bool is_running;   /* seal_run; a figure */
    struct seal_stats stats;
};

/* A range of ids: whole rows, see segment_map_entry. */
struct seal_range {
    unsigned slot; /* of the counter */
    uint64_t first_id, last_id;
    bool is_urgent;      /* in: memory is short, and forgotten marks stay */
    uint64_t n_rows;     /* out, of seal_run: what the engine had of it */
    uint64_t unreadable; /* out, of seal_run: the number of a segment that
                          * covers it and cannot be read, or 0 */
};

/* Merges what the engine has of a range with the segments that cover it, into
 * one new segment, and has that cover the range. What changes meanwhile stays
 * in the engine. Of a counter that has marks with forget=, those of the range
 * that count as none are deleted first (tier/seal_forget.h). Takes 8 bytes a
 * record of the engine and (1 + columns), and those of segment_write_begin.
 * Waits for the disk, and for readers; one thread at a time, not an online
 * reader. In the manifest the segment is only later. 0, ERR_GONE (the counter
 * was dropped or its columns changed: try again), ERR_CLOSED (stopping),
 * ERR_NO_MEMORY, ERR_CORRUPT (range->unreadable is damaged), ERR_COLD_READ (the
 * disk does not read it), ERR_DISK, ERR_DISK_FULL, ERR_FILE_SIZE (the new one
 * cannot be written): then nothing has changed but for such marks. The first
 * two are no failures. */
int seal_run(struct seal *seal, struct seal_range *range);

/* The same in steps, on the same thread. is_slow: other ranges may be sealed
 * between them, and then also ids of this one, which has it end with ERR_GONE.
 * Its file is spared from removal though later ones are named
 * (durable_spare_segment): one at a time, and the next only when a manifest has
 * been written with this one, or it was given up. *out is NULL on an error. */
struct seal_work;
int seal_begin(struct seal *seal, struct seal_range *range, bool is_slow,
    struct seal_work **out);

/* Writes up to n records more; *is_end: that was the last. On an error the
 * caller gives it up. */
int seal_step(struct seal_work *work, uint64_t n, bool *is_end);

/* Ends and publishes it, and frees the work, also on an error. */
int seal_end(struct seal_work **work);

/* Gives up and frees it; NULL in it is fine. */
void seal_abort(struct seal_work **work);

#endif
