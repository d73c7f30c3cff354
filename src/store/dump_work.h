/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_DUMP_WORK_H
#define STORE_DUMP_WORK_H

#include "base/owns.h"
#include "call/call.h"
#include "durable/durable.h"
#include "names/names.h"
#include "store/dump_members.h"
#include "tier/seal_merge.h"
#include "tier/segment_map.h"

/* A dump that a client asks a running server for reads the records of a
 * counter, range by range, while others change them. Part of the store; nobody
 * else calls it. The command line's --dump, which reads the files of a stopped
 * server, is offline/dump.h. */

enum {
    DUMP_WORK_RECORDS = 512,    /* of one piece, at most */
    DUMP_RANGE_BYTES = 8 << 20, /* of the engine's records in a range, about */
    DUMP_RANGE_MIN = 4096,      /* these records at least, */
    DUMP_RANGE_BLOCKS = 1024,   /* and blocks of a segment at most */
    DUMP_WORK_PASSED = 4096     /* records that are not wanted, of a piece */
};

/* Where the records are; all of it outlives the works. */
struct dump_source {
    struct engine *engine;
    struct qsbr *qsbr;
    _Atomic(const struct schema *) *schema; /* the published one */
    unsigned n_shards;
    const struct names *names;       /* NULL: no ids are names */
    struct durable *durable;         /* NULL: counters live in memory only */
    struct segment_map *segment_map; /* NULL: there is no cold tier */
    uint64_t range_records;     /* 0, or instead of DUMP_RANGE_BYTES, and */
    uint32_t range_blocks;      /* 0, or of DUMP_RANGE_BLOCKS: for tests */
    uint32_t members_found;     /* 0, or of DUMP_MEMBERS_FOUND: for tests */
    const struct alloc *alloc;  /* of what is copied; NULL: the heap */
    _Atomic bool *is_stopping;  /* gives up soon where it is true */
    struct qsbr_reader *reader; /* the calling thread's, offline */
};

enum { DUMP_WORK_MAGIC = 0x64756d70 };

/* Drawn at the head of dump_work.c. */
enum dump_work_state {
    DUMP_WORK_NEW,      /* head is not known yet */
    DUMP_WORK_BETWEEN,  /* a range is to be begun at from_id */
    DUMP_WORK_IN_RANGE, /* merge is under way, up to range_last_id */
    DUMP_WORK_OVER      /* nothing is left to be looked at */
};

/* What a column of the head is to the lines of a dump. */
enum dump_column {
    DUMP_COLUMN_SHOWN,
    DUMP_COLUMN_COUNTS,  /* shown, but it is not what makes a line: it is the
                         * number of members */
    DUMP_COLUMN_MEMBERS, /* not shown: the number of the record's members */
    DUMP_COLUMN_NOTHING  /* not shown: of members=about, always 0 */
};

/* True for one that has a place in a line. */
static inline bool
dump_column_is_shown(enum dump_column column)
{
    return column == DUMP_COLUMN_SHOWN || column == DUMP_COLUMN_COUNTS;
}

/* Of a counter with members: records whose lines, and those of their members,
 * are still to come. */
struct dump_batch {
    uint32_t n;
    uint32_t next_record; /* the first one whose line is still to come */
    uint32_t next_found;  /* of the members that were found last */
    struct dump_members members;
    uint64_t id[DUMP_MEMBERS_RECORDS];
    uint64_t value[DUMP_MEMBERS_RECORDS * SCHEMA_COLUMNS_MAX]; /* as shown */
    uint64_t number[DUMP_MEMBERS_RECORDS * SCHEMA_COLUMNS_MAX];
    bool is_shown[DUMP_MEMBERS_RECORDS]; /* it has a line of its own */
    struct store_dump_member one[DUMP_WORK_RECORDS]; /* a piece, out */
};

/* Which part of a counter, how far it is, and what it has found. */
struct dump_work {
    uint32_t magic; /* DUMP_WORK_MAGIC */
    enum dump_work_state state;
    struct dump_work *next; /* of whoever has it */
    unsigned slot;
    uint32_t serial;
    uint64_t from_id, last_id; /* still to be looked at */
    const struct owns *owns;   /* NULL, or only its ids are wanted; not owned,
                                * and set before the first piece */
    bool is_of_names; /* the counter's ids are names, which the rule takes */
    bool is_of_ids; /* pieces are ids only, of all records that there are; set
                     * before the first piece */
    bool shows_counts; /* a record is shown that has nothing but members; set
                        * before the first piece */
    uint64_t range_last_id;
    bool has_largest; /* whoever shows the records has been told */
    uint64_t largest_id;
    struct segment_head head; /* the counter's columns, in its order */
    enum dump_column column[SCHEMA_COLUMNS_MAX]; /* of these */
    unsigned n_shown;                            /* columns of a line */
    uint32_t shown[SCHEMA_COLUMNS_MAX];          /* their serials */
    struct dump_batch *batch;      /* owned; NULL: there are no members */
    struct engine_rows *rows;      /* owned; n_shards */
    struct segment_map_list *list; /* owned */
    struct seal_merge merge;
    /* A piece, out: */
    uint32_t n;
    uint32_t n_passed;            /* records that were not wanted */
    uint64_t bad_first, bad_last; /* see dump_work_next */
    uint64_t id[DUMP_WORK_RECORDS];
    uint64_t value[DUMP_WORK_RECORDS * SCHEMA_COLUMNS_MAX]; /* a record's,
                                                             * n_shown, side
                                                             * by side */
};

/* Ids first_id..last_id of a counter. NULL: no memory. */
struct dump_work *dump_work_create(const struct dump_source *source,
    unsigned slot, uint32_t serial, uint64_t first_id, uint64_t last_id);
void dump_work_destroy(
    const struct dump_source *source, struct dump_work **work);

/* True where a batch has nothing that is still to come. */
static inline bool
dump_batch_is_out(const struct dump_batch *batch)
{
    return batch == NULL ||
        (batch->next_record == batch->n &&
            batch->next_found == batch->members.n_found &&
            dump_members_is_over(&batch->members));
}

/* True where nothing comes any more. */
static inline bool
dump_work_is_end(const struct dump_work *work)
{
    return work->state == DUMP_WORK_OVER && dump_batch_is_out(work->batch);
}

/* The next n records, or members behind their record (batch->one), with none
 * left out that has been there all the time, and none twice; n = 0 where those
 * that were looked at were not wanted, or at its end. What a range has in a
 * table is of one moment; members are read behind that. Waits for the disk and
 * for edit_lock. 0; or
 * ERR_GONE (the counter has been dropped), ERR_OTHER_COLUMNS, ERR_NO_MEMORY,
 * ERR_CLOSED, and it has ended; or ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_DISK: the
 * segments' records of ids bad_first..bad_last cannot be read, n have come
 * before these, and it goes on behind them. */
int dump_work_next(const struct dump_source *source, struct dump_work *work);

/* Takes a step to another state, which must be a legal one. Inside dump_work.c,
 * and for its test. */
void dump_work__move(struct dump_work *work, enum dump_work_state to);

#endif
