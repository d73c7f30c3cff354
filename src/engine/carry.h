/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_CARRY_H
#define ENGINE_CARRY_H

#include "engine/cover_at.h"
#include "engine/table.h"

/* Records out of the lines of one table into the first lines of another that is
 * being built, which nobody else sees, as far as there is room: as bits, not
 * one by one. */

/* Records that are in no table. */
struct carry_rows {
    size_t n;
    const uint64_t *row; /* n, all different; ascending where they are looked
                          * for (stays_from) */
    unsigned n_columns;
    uint8_t column[SHAPES_COLUMNS_MAX];       /* slots, all different */
    const uint64_t *code[SHAPES_COLUMNS_MAX]; /* of column[i]: n */
    const struct cover_at *cover; /* who says what is a record though it has
                                   * nothing; NULL: nothing is */
};

/* The codes of record i, by slot; those of slots not named are left alone.
 * False where it is no record. */
static inline bool
carry_codes(const struct carry_rows *rows, size_t i, uint64_t *code)
{
    uint64_t any = 0;
    for (unsigned c = 0; c < rows->n_columns; c++) {
        code[rows->column[c]] = rows->code[c][i];
        any |= rows->code[c][i];
    }
    return any != 0 || cover_keeps(rows->cover, rows->row[i]);
}

struct carry {
    const struct table_owner *owner;
    struct table *table; /* new; nothing else is put in before carry_end */
    uint64_t n_records, used_bits;
    uint64_t n_empty; /* tombstones; counted where a source may have some */
    uint64_t any[SHAPES_N][SHAPES_BITS_MAX / 64 + 2]; /* values, or-ed */
};

/* table is new and has no records. */
void carry_begin(
    struct carry *carry, const struct table_owner *owner, struct table *table);

/* Puts the records in lines of source whose rows the table covers into their
 * first lines; not tombstones that cover does not keep. Calls late_fn for each
 * that has no room there, or no shape: it is record index of that line of
 * source. */
void carry_lines(struct carry *carry, const struct table *source,
    const struct cover_at *cover,
    void (*late_fn)(void *context, uint32_t line, unsigned index),
    void *context);

/* The same for records that are in no table, all of whose rows the table
 * covers; what carry_codes says to be no record is left out. */
void carry_in(struct carry *carry, const struct carry_rows *rows,
    void (*late_fn)(void *context, size_t i), void *context);

/* The table is whole then, without those that were late. */
void carry_end(struct carry *carry);

/* Where a record of a table lies. */
struct carry_place {
    uint64_t row;
    uint32_t line;
    uint16_t at;   /* the first bit of its values in the line */
    uint8_t shape; /* SHAPES_N: it is in the stash, line and at are void */
};

/* Writes the places of all n_records records of a table, in any order. Gives
 * way to others in between: for a table that is a copy, without a lock. */
void carry_places(const struct table_owner *owner, const struct table *table,
    struct carry_place *place);

/* Calls row_fn for the row of each record of a table, stash included. */
void carry_each(const struct table_owner *owner, const struct table *table,
    void (*row_fn)(void *context, uint64_t row), void *context);

/* The row of a record found in a line of a table. */
uint64_t carry_row(const struct table_owner *owner, const struct table *table,
    uint32_t line, const struct line_record *record);

#endif
