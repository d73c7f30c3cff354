/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_COPY_H
#define ENGINE_TABLE_COPY_H

#include "engine/table.h"

/* A table copied as it lies, to be read later without the shard's lock. */

/* Memory for a copy of a table, and for reading it out. Under the lock. */
size_t table_copy_bytes(const struct table *table);

/* Copies a table into block, which has table_copy_bytes and is aligned for any
 * scalar type. What is returned lies in block, and stays when the table goes.
 * Under the lock. */
const struct table *table_copy(const struct table *table, void *block);

/* Reads a copy out, once: writes to row[] the rows of its n_records records in
 * their order, and to code[i][] their codes in slot column[i]. Records that
 * have nothing in these slots are left out, unless with_empty. Returns how
 * many there are. */
uint32_t table_copy_read(const struct table *copy, const struct perm *perm,
    bool with_empty, unsigned n_columns, const uint8_t *column, uint64_t *row,
    uint64_t *const *code);

#endif
