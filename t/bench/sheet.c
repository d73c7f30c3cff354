/* SPDX-License-Identifier: BSD-3-Clause */

/* Tables of figures. Cells without a figure are "-" and null. */

#include "bench/sheet.h"

#include "base/assert.h"
#include "bench/fail.h"

#include <math.h>
#include <stdarg.h>

double *
sheet_add(struct sheet *sheet, const char *format, ...)
{
    ASSERT(sheet->n_rows < SHEET_ROWS_MAX);
    ASSERT(sheet->n_columns <= SHEET_COLUMNS_MAX);
    struct sheet_row *row = &sheet->row[sheet->n_rows++];
    va_list args;
    va_start(args, format);
    vsnprintf(row->name, sizeof(row->name), format, args);
    va_end(args);
    for (size_t i = 0; i < SHEET_COLUMNS_MAX; i++) {
        row->cell[i] = NAN;
    }
    return row->cell;
}

void
sheet_print(const struct sheet *sheet, FILE *out)
{
    if (sheet->n_rows == 0) {
        return;
    }
    fprintf(out, "| %s |", sheet->head);
    for (size_t i = 0; i < sheet->n_columns; i++) {
        fprintf(out, " %s |", sheet->column[i].head);
    }
    fprintf(out, "\n|---|");
    for (size_t i = 0; i < sheet->n_columns; i++) {
        fprintf(out, "---:|");
    }
    for (size_t r = 0; r < sheet->n_rows; r++) {
        fprintf(out, "\n| %s |", sheet->row[r].name);
        for (size_t i = 0; i < sheet->n_columns; i++) {
            double cell = sheet->row[r].cell[i];
            if (isnan(cell)) {
                fprintf(out, " - |");
            } else {
                fprintf(out, " %.*f |", sheet->column[i].decimals, cell);
            }
        }
    }
    fprintf(out, "\n\n");
    fflush(out);
}

void
sheet_json(const struct sheet *sheet, FILE *out)
{
    fprintf(out, "\"%s\": [", sheet->key);
    for (size_t r = 0; r < sheet->n_rows; r++) {
        fprintf(out, "%s\n  {\"name\": \"%s\"", r == 0 ? "" : ",",
            sheet->row[r].name);
        for (size_t i = 0; i < sheet->n_columns; i++) {
            double cell = sheet->row[r].cell[i];
            fprintf(out, ", \"%s\": ", sheet->column[i].key);
            if (isnan(cell)) {
                fprintf(out, "null");
            } else {
                fprintf(out, "%.9g", cell);
            }
        }
        fprintf(out, "}");
    }
    fprintf(out, "]");
}

void
sheet_write_json(const struct sheet *const *sheet, size_t n, const char *path)
{
    FILE *out = fopen(path, "w");
    const char *before = "{";
    if (out == NULL) {
        fail_errno(path);
    }
    for (size_t i = 0; i < n; i++) {
        if (sheet[i]->n_rows > 0) {
            fprintf(out, "%s", before);
            sheet_json(sheet[i], out);
            before = ",\n ";
        }
    }
    fprintf(out, "}\n");
    if (fclose(out) != 0) {
        fail_errno(path);
    }
}
