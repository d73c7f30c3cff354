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

/* table_seek where spot->place is known, and only in lines: false where the
 * record is in none. spot->row is not looked at. */
bool table_seek_line(
    const struct table *table, uint32_t columns, struct table_spot *spot);

/* Where the record is in a line and its codes in the slots of columns are as
 * many bits as before, its shape stays: rewrites them in place. Other codes
 * are not looked at. False, and nothing done, where it is for table_put. */
bool table_rewrite(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code, uint32_t columns);

#endif
