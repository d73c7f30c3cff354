/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_SHEET_H
#define BENCH_SHEET_H

#include <stddef.h>
#include <stdio.h>

/* A table of figures, written as Markdown and as JSON. */

enum { SHEET_COLUMNS_MAX = 16, SHEET_ROWS_MAX = 64, SHEET_NAME_MAX = 64 };

struct sheet_column {
    const char *key;  /* in JSON */
    const char *head; /* in Markdown */
    int decimals;
};

struct sheet_row {
    char name[SHEET_NAME_MAX];
    double cell[SHEET_COLUMNS_MAX]; /* NAN: none */
};

struct sheet {
    const char *key;
    const char *head; /* of the column of names */
    const struct sheet_column *column;
    size_t n_columns;
    size_t n_rows;
    struct sheet_row row[SHEET_ROWS_MAX];
};

/* Adds a row without figures; its cells, to be filled in. */
double *sheet_add(struct sheet *sheet, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Nothing where there are no rows. */
void sheet_print(const struct sheet *sheet, FILE *out);

/* A member of an object, "key": [{"name": ..., column: ...}, ...]; rows whose
 * names need escapes are not for it. */
void sheet_json(const struct sheet *sheet, FILE *out);

/* An object of the sheets that have rows, as a file. Fails where it cannot. */
void sheet_write_json(
    const struct sheet *const *sheet, size_t n, const char *path);

#endif
