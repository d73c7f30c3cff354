/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_CARRY_H
#define ENGINE_CARRY_H

#include "engine/table.h"

/* Records out of the lines of one table into the first lines of another that is
 * being built, as far as there is room: as bits, not one by one. Under the
 * shard's lock; nobody else sees the new table. */

struct carry {
    const struct table_owner *owner;
    struct table *table; /* new; nothing else is put in before carry_end */
    uint64_t n_records, used_bits;
    uint64_t any[SHAPES_N][SHAPES_BITS_MAX / 64 + 2]; /* values, or-ed */
};

/* table is new and has no records. */
void carry_begin(
    struct carry *carry, const struct table_owner *owner, struct table *table);

/* Puts the records in lines of source whose rows the table covers into their
 * first lines. Calls late_fn for each that has no room there, or no shape: it
 * is record index of that line of source. */
void carry_lines(struct carry *carry, const struct table *source,
    void (*late_fn)(void *context, uint32_t line, unsigned index),
    void *context);

/* The table is whole then, without those that were late. */
void carry_end(struct carry *carry);

/* Calls row_fn for the row of each record of a table, stash included. */
void carry_rows(const struct table_owner *owner, const struct table *table,
    void (*row_fn)(void *context, uint64_t row), void *context);

/* The row of a record found in a line of a table. */
uint64_t carry_row(const struct table_owner *owner, const struct table *table,
    uint32_t line, const struct line_record *record);

#endif
