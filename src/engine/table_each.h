/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_EACH_H
#define ENGINE_TABLE_EACH_H

#include "engine/cover_at.h"
#include "engine/table.h"

/* All records of a table. The shard's lock is held, and that is asserted. */

/* Calls record_fn for each record in lines 0, stride, 2 stride ... It must not
 * change the table. */
void table_each_line(const struct table_owner *owner,
    const struct table *table, uint32_t stride,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context);

/* Calls record_fn for each record in the stash; it must not either. */
void table_each_stashed(const struct table *table,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context);

/* Calls record_fn for each record. It must not change the table. */
void table_each(const struct table_owner *owner, const struct table *table,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context);

/* Sets the columns of a mask to 0 in all records and removes those that hold
 * nothing else, but for rows where they are to be kept (cover_keeps). 0, or
 * ERR_HOT_FULL, ERR_NO_MEMORY where a stash had to grow for it: then some are
 * left. */
int table_clear(struct table_owner *owner, struct table *table,
    uint32_t columns, const struct cover_at *cover);

#endif
