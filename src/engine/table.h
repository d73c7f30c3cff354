/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_H
#define ENGINE_TABLE_H

#include "base/alloc.h"
#include "base/fold.h"

#include <stddef.h>
#include <stdint.h>

/* The rows of one counter in one shard: a map from id to up to 16 codes. A
 * code is a number whose 0 means "nothing here"; a row whose codes are all 0
 * does not exist. No locks: the caller keeps writers alone. */

enum {
    TABLE_CELLS_MAX = 16,
    TABLE_CELL_BYTES_MAX = 8,
    TABLE_ID_BYTES = 8,
    TABLE_PAD_BYTES = 8, /* behind the last row: cells are read 8 bytes wide */
    TABLE_LINE_BYTES = 64
};

struct table_cell {
    uint64_t mask;      /* of the width; 0 where the width is 0 */
    uint8_t offset;     /* in the row */
    uint8_t width;      /* 0..8 bytes */
    uint8_t width_hint; /* 0..8: what it gets when it first needs any */
};

struct table {
    const struct alloc *alloc;
    uint64_t key;  /* of the hash; random where clients choose the ids */
    uint8_t *rows; /* owned; NULL while there is no row */
    size_t capacity;
    size_t count;
    size_t row_bytes;
    struct table_cell cell[TABLE_CELLS_MAX];
};

/* One cell to be written. */
struct table_write {
    uint64_t code;
    unsigned slot;
};

/* An empty table without columns in use. */
void table_init(struct table *table, const struct alloc *alloc, uint64_t key);
void table_fini(struct table *table);

/* The width (0..8 bytes) that a slot starts with at its first code other than
 * 0; it may be wider when that code is. */
void table_hint(struct table *table, unsigned slot, unsigned bytes);

/* The row of id, or NULL. Valid until the next write. */
const uint8_t *table_find(const struct table *table, uint64_t id);

/* Writes cells of one row, each slot at most once: makes the row, widens
 * columns or removes the row as needed. 0 or ERR_NO_MEMORY (then nothing has
 * changed). */
int table_write(struct table *table, uint64_t id,
    const struct table_write *write, size_t n);

/* Forgets all codes of the slots whose bits are set in slots, and the rows
 * that hold nothing else. 0 or ERR_NO_MEMORY (then nothing has changed). */
int table_drop(struct table *table, unsigned slots);

/* The row at a place 0..capacity-1, or NULL where that place is free. */
const uint8_t *table_row_at(const struct table *table, size_t place);

/* Bytes allocated now. */
size_t table_bytes(const struct table *table);

/* Asserts the invariants (see table.c); for tests. */
void table_verify(const struct table *table);

static inline uint64_t
table__load(const uint8_t *from)
{
    return (uint64_t)from[0] | (uint64_t)from[1] << 8 |
        (uint64_t)from[2] << 16 | (uint64_t)from[3] << 24 |
        (uint64_t)from[4] << 32 | (uint64_t)from[5] << 40 |
        (uint64_t)from[6] << 48 | (uint64_t)from[7] << 56;
}

/* Where the search for id starts: in the order of the high half of the keyed
 * fold; capacity is below 2^32. Without the key nobody can choose ids that
 * meet in one place. */
static inline size_t
table__home(const struct table *table, uint64_t id)
{
    return (
        size_t)(((fold_id(id ^ table->key) >> 32) * table->capacity) >> 32);
}

/* Brings the place of id near; for many searches at once. */
static inline void
table_prefetch(const struct table *table, uint64_t id)
{
    if (table->rows != NULL) {
        const uint8_t *row =
            table->rows + table__home(table, id) * table->row_bytes;
        __builtin_prefetch(row);
        __builtin_prefetch(row + TABLE_LINE_BYTES);
    }
}

/* The code in a slot of a row of this table. */
static inline uint64_t
table_code(const struct table *table, const uint8_t *row, unsigned slot)
{
    const struct table_cell *cell = &table->cell[slot];
    return table__load(row + cell->offset) & cell->mask;
}

#endif
