/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_CHANGE_H
#define ENGINE_TABLE_CHANGE_H

#include "engine/line_cell.h"
#include "engine/table_place.h"
#include "engine/table_priv.h"

/* The usual change: a record that is in a line stays where it is. Under the
 * shard's lock. */

/* table_find, but of a record in a line only the codes of the slots in columns
 * are read; table_fill reads the others too. */
void table_seek(const struct table_owner *owner, const struct table *table,
    uint64_t row, uint32_t columns, struct table_spot *spot);
void table_fill(const struct table *table, struct table_spot *spot);

/* Where the record is in a line, its codes in the slots of columns get no
 * shorter and are within the fields of its shape, that stays: rewrites them in
 * place. Other codes are not looked at. False, and nothing done, where it is
 * for table_put. */
bool table_rewrite(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code, uint32_t columns);

/* One code of one record, and where it is. */
struct table_cell {
    uint64_t code;
    bool is_stashed;           /* which of these it is: */
    struct line_cell in_line;  /* ... */
    struct stash_code stashed; /* ... */
};

/* The lines where a row of the table may be. Pure; any thread. */
static inline struct line_pair
table_pair(const struct table *table, const struct perm *perm, uint64_t row)
{
    struct table_place place = table_place(table, perm, row);
    return (struct line_pair){.line = {table_line(table, place.line_1),
                                  table_line(table, place.line_2)},
        .remainder = place.remainder,
        .number = {place.line_1, place.line_2},
        .bit = place.bit};
}

/* table_seek_cell, for a record that is in no line. */
bool table__seek_stash(const struct table *table, uint64_t row,
    unsigned column, struct table_cell *cell);

/* table_rewrite_cell, where a code gets longer or is in the stash. */
bool table__rewrite_other(struct table_owner *owner, struct table *table,
    const struct line_pair *pair, const struct table_cell *cell,
    unsigned column, uint64_t code);

/* Looks for a column's code of a row's record, whose lines are known. False
 * where there is no record, or where it is in the stash with code 0 there. */
static inline __attribute__((always_inline)) bool
table_seek_cell(const struct table *table, uint64_t row,
    const struct line_pair *pair, unsigned column, struct table_cell *cell)
{
    enum line_found found =
        line_seek_cell(pair, &table->form, column, &cell->in_line);
    if (found == LINE_FOUND) {
        cell->is_stashed = false;
        cell->code = cell->in_line.code;
        return true;
    }
    return found == LINE_ELSEWHERE &&
        table__seek_stash(table, row, column, cell);
}

/* Reads all codes of a record that table_seek_cell has found in the stash, with
 * no change since. */
void table_cell_stashed(
    const struct table *table, uint64_t row, uint64_t *code);

/* True where the highest bit set is the same: it is in the conjunction only. */
static inline bool
table__is_as_wide(uint64_t a, uint64_t b)
{
    return (a ^ b) <= (a & b);
}

/* The code where it lies in its line gets another one. */
static inline __attribute__((always_inline)) void
table__put_cell(const struct table_owner *owner, const struct line_pair *pair,
    const struct line_cell *cell, uint64_t code)
{
    unsigned stripe = pair->number[cell->is_far] % TABLE_STRIPES;
    table__begin(owner, stripe);
    ENGINE_HOOK("line store");
    line_cell_put(pair->line[cell->is_far], cell, code);
    table__end(owner, stripe);
}

/* Gives the cell that table_seek_cell has found this code, where its record
 * stays in its line, which may get another shape for it, or in its place in
 * the stash. False, and nothing done, where it is for table_put. The cell is
 * void afterwards. */
static inline __attribute__((always_inline)) bool
table_rewrite_cell(struct table_owner *owner, struct table *table,
    const struct line_pair *pair, const struct table_cell *cell,
    unsigned column, uint64_t code)
{
    if (code == cell->code) {
        return true;
    }
    if (cell->is_stashed || !table__is_as_wide(cell->code, code)) {
        return table__rewrite_other(owner, table, pair, cell, column, code);
    }
    table__put_cell(owner, pair, &cell->in_line, code);
    table__mark_changed(table);
    return true;
}

#endif
