/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_PLACE_H
#define ENGINE_TABLE_PLACE_H

#include "engine/table.h"

/* Where in its table a row may lie. Pure; any thread. */

/* The same as table->mask, from what a look needs anyway. */
static inline uint64_t
table_mask(const struct table *table)
{
    return UINT64_MAX >> table->shift;
}

static inline bool
table_covers(const struct table *table, uint64_t row)
{
    return ((row ^ table->base) & ~table_mask(table)) == 0;
}

/* The start of a line's share of the permuted numbers. line * step is below
 * 2^64, so this never passes the exact share's start, and a remainder is never
 * negative. */
static inline uint64_t
table__start(const struct table *table, uint64_t line)
{
    return (line * table->step) >> table->shift;
}

/* How far apart the two lines of a remainder are: 1..n_lines-1. */
static inline uint32_t
table__distance(const struct table *table, uint64_t hash)
{
    return (uint32_t)(1 +
        ((hash >> 20 & UINT32_MAX) * (uint64_t)(table->n_lines - 1) >> 32));
}

#define TABLE__HASH_ODD UINT64_C(0x9e3779b97f4a7c15)
enum { TABLE__BIT_SHIFT = 60 };

static inline uint64_t
table__hash(uint64_t remainder)
{
    return remainder * TABLE__HASH_ODD;
}

static inline uint32_t
table__bit(uint64_t hash)
{
    return (uint32_t)(hash >> TABLE__BIT_SHIFT);
}

/* The line whose share a permuted number is in: the quotient. */
static inline uint32_t
table__line(const struct table *table, uint64_t y)
{
    uint64_t share = y << table->shift;
    return (uint32_t)((unsigned __int128)share * table->n_lines >> 64);
}

/* The first line of row (within the table's range), and its remainder there:
 * permute, let the quotient by the lines' share name the line and the rest be
 * the remainder. */
static inline uint32_t
table_first(const struct table *table, const struct perm *perm, uint64_t row,
    uint64_t *remainder)
{
    uint64_t y = perm__apply(perm, row, table_mask(table), table->fold);
    uint32_t line = table__line(table, y);
    *remainder = y - table__start(table, line);
    return line;
}

/* The second one of a record from its first. */
static inline uint32_t
table_second(const struct table *table, uint32_t line_1, uint64_t remainder)
{
    uint32_t line = line_1 + table__distance(table, table__hash(remainder));
    return line >= table->n_lines ? line - table->n_lines : line;
}

/* All about the places of row. */
static inline struct table_place
table_place(const struct table *table, const struct perm *perm, uint64_t row)
{
    uint64_t remainder;
    uint32_t line = table_first(table, perm, row, &remainder);
    return (struct table_place){.line_1 = line,
        .line_2 = table_second(table, line, remainder),
        .bit = table__bit(table__hash(remainder)),
        .remainder = remainder};
}

/* Asks for the marks that a change looks at, and mostly leaves as they are:
 * they are apart from what a look needs. */
static inline void
table_prefetch_marks(const struct table *table)
{
    __builtin_prefetch(&table->is_clean, 0, 2);
}

/* Asks for what table_first and table_line will read, but for pieces beyond
 * the eighth: of a table of thirteen that costs more than it gains. */
static inline void
table_prefetch(const struct table *table)
{
    const char *head = (const char *)&table->base;
    for (int i = 0; i < 2; i++) {
        /* the second level of the cache will do */
        __builtin_prefetch(head + i * LINE_BYTES, 0, 2);
    }
}

#endif
