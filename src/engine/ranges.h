/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RANGES_H
#define ENGINE_RANGES_H

#include "engine/build.h"
#include "engine/directory.h"
#include "engine/table.h"

/* The tables of one counter in one shard: which ranges they cover, and how
 * they grow, split, shrink and join. Under the shard's lock, but for what
 * readers load from directory. */

struct ranges {
    struct table_owner *owner;             /* the shard's */
    _Atomic(struct directory *) directory; /* owned; NULL: no records */
    struct shapes_set *set;                /* a reference; NULL at first */
    struct build_trained trained;          /* of set */
    uint32_t columns;                      /* slots in use */
    uint32_t n_records_max;                /* a table with more is split */
    unsigned row_bits;                     /* rows are below 2^row_bits */
    struct cover_at cover;                 /* which rows are covered */
    uint64_t n_records;                    /* in all tables */
    int64_t n_live; /* the engine's: records that hold something, those that
                     * a cover has included (engine_size); 0 by clear */
    bool
        is_counting; /* so is what follows; false by clear (engine_count.c): */
    uint64_t counted_to;  /* rows below it are in n_counted */
    int64_t n_counted;    /* as n_live, exact */
    int64_t n_marks;      /* of these, pairs that are no members, */
    bool knows_marks;     /* ... now of all rows */
    uint64_t next_number; /* the engine's, of a counter of pairs: what the next
                           * record with members gets; 0: to be found out; so
                           * by clear */
    uint64_t n_rebuilds, n_splits, n_merges, n_tightened;
};

/* Where a row's record is: table is NULL where no table covers it. */
struct ranges_look {
    struct table *table;
    struct table_spot spot; /* codes are 0 where there is no record */
};

/* Frees all tables when no reader can see them. */
void ranges_clear(struct ranges *ranges);

/* Takes shapes from hints for a counter without records. 0, ERR_HOT_FULL,
 * ERR_NO_MEMORY. */
int ranges_hint(struct ranges *ranges, const uint8_t *hint_bits);

void ranges_find(
    const struct ranges *ranges, uint64_t row, struct ranges_look *look);

/* The same, but of a record in a line only the codes of these columns are read
 * (table_change.h). */
void ranges_seek(const struct ranges *ranges, uint64_t row, uint32_t columns,
    struct ranges_look *look);

/* Gives the record looked at these codes; all 0 removes it, unless its row is
 * covered: then it is a tombstone. 0, ERR_HOT_FULL,
 * ERR_NO_MEMORY: then nothing has changed. The look is void afterwards. */
int ranges_store(struct ranges *ranges, const struct ranges_look *look,
    const uint64_t *code);

/* Puts records into rows first..last, where there were none; others are left
 * out, and those without a number where nothing covers their row. An aligned
 * range becomes one table that counts as unchanged, where it can be; else all
 * count as changed. 0, ERR_HOT_FULL, ERR_NO_MEMORY (part of it may be there).
 */
int ranges_load(struct ranges *ranges, const struct carry_rows *rows,
    uint64_t first, uint64_t last);

/* The first table that has rows from `row` on, or NULL. */
struct table *ranges_from(const struct ranges *ranges, uint64_t row);

/* What stays of a table that has changed since the copy, as worked out
 * without the lock: records first..first+n-1 of an array. */
struct ranges_ready {
    uint64_t base; /* the table's */
    size_t first, n;
    bool is_all; /* all of it stays, and nothing comes to it */
};

/* What is to go: the records in rows first..last that are as they were in a
 * copy (engine_evict). */
struct ranges_leaving {
    uint64_t first, last;
    uint64_t number;        /* the copy's; tables may say that they are it */
    struct carry_rows rows; /* the copy; its cover is void */
    uint32_t columns;       /* slots to compare: those that the counter has */
    const struct alloc *alloc; /* for what is held meanwhile */
    /* tables that say they are ready_number are in here: */
    uint64_t ready_number;
    const struct ranges_ready *ready; /* n_ready, ascending */
    size_t n_ready;
    const struct carry_rows *ready_rows;
};

/* True where all that a table has is in the copy, as it is. */
bool ranges_is_untouched(
    const struct ranges_leaving *leaving, const struct table *table);

/* See engine_evict. 0, ERR_NO_MEMORY: nothing has changed, and publish_fn has
 * not been called. */
int ranges_evict(struct ranges *ranges, const struct ranges_leaving *leaving,
    void (*publish_fn)(void *context), void *context);

/* Forgets the columns of a mask in the first table that has rows from *row on,
 * and moves *row behind it; so tables that are built between two calls are not
 * missed. False when there was nothing left to do. *err is set where something
 * could not be forgotten. */
bool ranges_drop_columns(
    struct ranges *ranges, uint64_t *row, uint32_t columns, int *err);

/* Background work on the table at index `at`: packs it if it has not grown
 * for a second, joins it with the next one if both together are cheaper.
 * Returns the index to go on with, or -1 at the end; sets *worked. */
ptrdiff_t ranges_tend(
    struct ranges *ranges, ptrdiff_t at, uint64_t now_ms, bool *worked);

/* Asserts the invariants. */
void ranges_verify(const struct ranges *ranges);

#endif
