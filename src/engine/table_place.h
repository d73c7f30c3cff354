/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TABLE_PLACE_H
#define ENGINE_TABLE_PLACE_H

#include "engine/table.h"

/* Where in its table a row may lie. Pure; any thread. */

/* The start of a line's share of the permuted numbers. line * step is below
 * 2^64, so this never passes the exact share's start, and a remainder is never
 * negative. */
static inline uint64_t
table__start(const struct table *table, uint64_t line)
{
    return (line * table->step) >> (64 - table->width);
}

/* How far apart the two lines of a remainder are: 1..n_lines-1. */
static inline uint32_t
table__distance(const struct table *table, uint64_t hash)
{
    return (uint32_t)(1 +
        ((hash >> 20 & UINT32_MAX) * (uint64_t)(table->n_lines - 1) >> 32));
}

static inline uint64_t
table__hash(uint64_t remainder)
{
    return remainder * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint32_t
table__bit(uint64_t hash)
{
    return (uint32_t)(hash >> 60);
}

/* The places of row (within the table's range): permute, let the quotient by
 * the lines' share name the line and the rest be the remainder. Any thread. */
static inline struct table_place
table_place(const struct table *table, const struct perm *perm, uint64_t row)
{
    unsigned w = table->width;
    uint64_t y = perm_apply(perm, row & table->mask, w);
    uint32_t line =
        (uint32_t)((unsigned __int128)(y << (64 - w)) * table->n_lines >> 64);
    uint64_t remainder = y - table__start(table, line);
    uint64_t hash = table__hash(remainder);
    uint32_t other = line + table__distance(table, hash);
    return (struct table_place){.line_1 = line,
        .line_2 = other >= table->n_lines ? other - table->n_lines : other,
        .bit = table__bit(hash),
        .remainder = remainder};
}

#endif
