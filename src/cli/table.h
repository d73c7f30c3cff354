/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/buf.h"

/* A table of texts, for people: heads, then cells row by row. What begins with
 * a digit in the first row is a number, and stands to the right. One thread. */

enum {
    TABLE_COLUMNS_MAX = 16,
    TABLE_CELL_MAX = 48 /* bytes that are shown */
};

struct table {
    struct buf text; /* "CELL\0" for each, heads first; owned */
    unsigned n_columns;
    unsigned n_cells; /* heads not counted */
};

/* An empty one, in place of what was in it. 1..TABLE_COLUMNS_MAX columns. */
void table_begin(
    struct table *table, const char *const head[], unsigned n_columns);

/* The next cell, from left to right, row by row. */
void table_cell(struct table *table, const char *text);

/* Appends the head and at most rows_max rows; whole rows only are there. */
void table_print(
    const struct table *table, unsigned rows_max, struct buf *out);

void table_fini(struct table *table);

#endif
