/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns are as wide as what stands in them, and two spaces apart. */
#include "cli/table.h"

#include "base/assert.h"

#include <string.h>

enum { GAP = 2 };

void
table_begin(struct table *table, const char *const head[], unsigned n_columns)
{
    ASSERT(n_columns > 0 && n_columns <= TABLE_COLUMNS_MAX);
    buf_clear(&table->text);
    table->n_columns = n_columns;
    for (unsigned i = 0; i < n_columns; i++) {
        table_cell(table, head[i]);
    }
    table->n_cells = 0;
}

void
table_cell(struct table *table, const char *text)
{
    buf_add(&table->text, text, strlen(text) + 1);
    table->n_cells++;
}

static size_t
shown(const char *cell)
{
    size_t len = strlen(cell);
    return len > TABLE_CELL_MAX ? TABLE_CELL_MAX : len;
}

/* Widths, and which columns are numbers. */
static void
look(const struct table *table, unsigned n_rows,
    size_t width[TABLE_COLUMNS_MAX], bool is_number[TABLE_COLUMNS_MAX])
{
    const char *cell = table->text.data;
    memset(width, 0, TABLE_COLUMNS_MAX * sizeof width[0]);
    memset(is_number, 0, TABLE_COLUMNS_MAX * sizeof is_number[0]);
    for (unsigned i = 0; i < (n_rows + 1) * table->n_columns; i++) {
        unsigned column = i % table->n_columns;
        size_t len = shown(cell);
        width[column] = len > width[column] ? len : width[column];
        if (i / table->n_columns == 1) {
            is_number[column] = cell[0] >= '0' && cell[0] <= '9';
        }
        cell += strlen(cell) + 1;
    }
}

/* Without the spaces of cells that are empty. */
static void
end_line(struct buf *out)
{
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->len--;
    }
    buf_add_text(out, "\n");
}

void
table_print(const struct table *table, unsigned rows_max, struct buf *out)
{
    size_t width[TABLE_COLUMNS_MAX];
    bool is_number[TABLE_COLUMNS_MAX];
    const char *cell = table->text.data;
    unsigned n_rows = table->n_cells / table->n_columns;
    n_rows = n_rows > rows_max ? rows_max : n_rows;
    if (table->text.failed) {
        out->failed = true;
        return;
    }
    look(table, n_rows, width, is_number);
    for (unsigned i = 0; i < (n_rows + 1) * table->n_columns; i++) {
        unsigned column = i % table->n_columns;
        int len = (int)shown(cell), pad = (int)width[column] - len;
        bool is_last = column + 1 == table->n_columns;
        buf_addf(out, "%*s%.*s", is_number[column] ? pad : 0, "", len, cell);
        buf_addf(out, "%*s", is_number[column] || is_last ? 0 : pad, "");
        if (is_last) {
            end_line(out);
        } else {
            buf_addf(out, "%*s", GAP, "");
        }
        cell += strlen(cell) + 1;
    }
}

void
table_fini(struct table *table)
{
    buf_fini(&table->text);
}
