/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_CHANGE_H
#define ENGINE_TABLE_CHANGE_H

#include "engine/table.h"

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

/* table_seek of one column where spot->row and spot->place are known. False
 * where there is no record, or where it is in the stash with code 0 there. */
bool table_seek_cell(
    const struct table *table, unsigned column, struct table_spot *spot);

/* Gives the record that table_seek_cell has found this code in that column,
 * where it stays in its line, which may get another shape for it, or in its
 * place in the stash. False, and nothing done, where it is for table_put. The
 * spot is void afterwards. */
bool table_rewrite_cell(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, unsigned column, uint64_t code);

#endif
