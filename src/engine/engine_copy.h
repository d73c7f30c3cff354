/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_ENGINE_COPY_H
#define ENGINE_ENGINE_COPY_H

#include "engine/engine.h"

/* Ranges of records out of the engine and back into it: for checkpoints. */

/* What one range of a counter in one shard holds. engine_copy's arrays lie in
 * block and are good until its next use; engine_load only reads, wherever they
 * are. All zero is empty. */
struct engine_rows {
    uint64_t first_row, last_row; /* an aligned range of 2^w rows, or a part */
    /* What the sink last answered: all that it had been told by then of this
     * shard is in here, and nothing else. Where one position stands for all
     * that is told in some time (a batch), more may be told under this one
     * later, which is not in here: whoever replays begins with this position,
     * not behind it. */
    uint64_t position;
    uint64_t number; /* of the copy (engine_copy_range), counted by shard */
    bool has_empty;  /* records that have nothing are in it (engine/cover.h) */
    uint32_t n_columns;
    uint8_t column[SCHEMA_COLUMNS_MAX]; /* slots, ascending */
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint32_t n;                               /* records */
    const uint64_t *row;                      /* ascending */
    const uint64_t *code[SCHEMA_COLUMNS_MAX]; /* of column[i]: n; the value as
                                               * stored */
    const struct alloc *alloc; /* of block; set before the first use; NULL:
                                * the heap */
    void *block;               /* owned */
    size_t block_bytes;
};

/* Frees the block; what else there is stays the caller's. */
void engine_rows_fini(struct engine_rows *rows);

enum engine_copied {
    ENGINE_COPY_END,   /* no table has rows from there on */
    ENGINE_COPY_CLEAN, /* the next table has not changed; nothing was copied */
    ENGINE_COPY_DONE
};

/* Copies the first table of the counter that has rows from from_row on: range,
 * position and, where it has changed since it was last copied or loaded,
 * records; those that have nothing in any column are left out, unless some of
 * its rows are covered (engine/cover.h). There are no
 * records between from_row and its first row (ENGINE_COPY_END: from from_row
 * on) at that position. A table made by a split, a merge or a change
 * counts as changed. It counts as unchanged from then on; where the copy comes
 * to nothing, the caller says engine_mark. Holds the shard's lock while lines
 * are copied, not while they are decoded and sorted. *copied only where 0 is
 * returned; else ERR_NO_MEMORY (nothing has changed). Any thread. The row to
 * go on from is last_row + 1, unless last_row is the last there is. */
int engine_copy(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t from_row, struct engine_rows *rows, enum engine_copied *copied);

/* Tables that have rows of this range count as changed. */
void engine_mark(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row);

/* While it loads, an engine has no budget: what has been acknowledged must find
 * room, also where the budget has become smaller, where it lay closer before,
 * or where somebody had taken it out already and that did not last. Garbage is
 * the caller's to bound (engine_drain now and then). While less than a quarter
 * of the budget is in use, tables that changes fill are made twice as large as
 * they need be. Columns that count members take what has been acknowledged,
 * too. At the end tables are packed, if they take more than the
 * budget; if they still do then, new records are refused until others have
 * gone. No other call may be under way at the end. */
void engine_begin_loading(struct engine *engine);
void engine_end_loading(struct engine *engine);

/* Frees what readers may have been looking at, and waits for them. The calling
 * thread is not an online reader. */
void engine_drain(struct engine *engine);

/* The same, but only where that is more than a 40th of the budget. Between one
 * eviction and the next: what one leaves counts until it is freed. */
void engine_drain_excess(struct engine *engine);

/* Puts a copied range back, where the counter has no record yet: rows[i]
 * outside first_row..last_row are left out, columns whose serial the counter
 * does not have, and records that have nothing in the others and are not
 * covered, too. An aligned
 * range with records becomes one table that counts as unchanged, unless the
 * records are more than twice what a table may have or another table covers
 * some of its rows; any other becomes several that count as changed. The sink
 * is not told. Threads may load different shards at a time. 0, ERR_NO_MEMORY,
 * ERR_HOT_FULL, but that not while it loads (part of it may be there). */
int engine_load(struct engine *engine, unsigned slot, unsigned shard,
    const struct engine_rows *rows);

#endif
