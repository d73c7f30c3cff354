/* SPDX-License-Identifier: BSD-3-Clause */
/* Growing arrays in one block, which is exchanged for one of twice the size. */
#include "engine/stays.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>

enum { FIRST = 256 /* records that there is room for at first */ };

static size_t
block_bytes(const struct stays *stays, size_t capacity)
{
    return capacity * (1 + (size_t)stays->rows.n_columns) * sizeof(uint64_t);
}

void
stays_init(struct stays *stays, const struct alloc *alloc, uint32_t columns)
{
    *stays = (struct stays){.alloc = alloc};
    for (; columns != 0; columns &= columns - 1) {
        stays->rows.column[stays->rows.n_columns++] =
            (uint8_t)__builtin_ctz(columns);
    }
}

void
stays_fini(struct stays *stays)
{
    alloc_free(
        stays->alloc, stays->block, block_bytes(stays, stays->capacity));
    stays->block = NULL;
    stays->capacity = 0;
    stays->rows.n = 0;
}

static int
grow(struct stays *stays)
{
    struct carry_rows *rows = &stays->rows;
    size_t n = rows->n;
    size_t capacity = stays->capacity == 0 ? FIRST : 2 * stays->capacity;
    uint64_t *block = alloc_zeroed(stays->alloc, block_bytes(stays, capacity));
    if (block == NULL) {
        return ERR_NO_MEMORY;
    }
    for (unsigned i = 0; n > 0 && i <= rows->n_columns; i++) {
        memcpy(block + i * capacity, stays->block + i * stays->capacity,
            n * sizeof *block);
    }
    stays_fini(stays);
    for (unsigned i = 0; i < rows->n_columns; i++) {
        rows->code[i] = block + (i + 1) * capacity;
    }
    rows->row = block;
    rows->n = n;
    stays->block = block;
    stays->capacity = capacity;
    return 0;
}

int
stays_add(struct stays *stays, uint64_t row, const uint64_t *code)
{
    struct carry_rows *rows = &stays->rows;
    ASSERT(rows->n <= stays->capacity);
    if (rows->n == stays->capacity) {
        int err = grow(stays);
        if (err != 0) {
            return err;
        }
    }
    stays->block[rows->n] = row;
    for (unsigned i = 0; i < rows->n_columns; i++) {
        stays->block[(i + 1) * stays->capacity + rows->n] =
            code[rows->column[i]];
    }
    rows->n++;
    return 0;
}

size_t
stays_from(
    const struct carry_rows *rows, uint64_t row, size_t first, size_t end)
{
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (rows->row[middle] < row) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

size_t
stays_behind(const struct carry_rows *rows, uint64_t row, size_t first)
{
    return row == UINT64_MAX ? rows->n
                             : stays_from(rows, row + 1, first, rows->n);
}

struct carry_rows
stays_slice(const struct carry_rows *rows, size_t first, size_t end)
{
    struct carry_rows part = *rows;
    ASSERT(first <= end && end <= rows->n);
    part.n = end - first;
    if (first == 0) { /* there may be no arrays */
        return part;
    }
    part.row += first;
    for (unsigned i = 0; i < rows->n_columns; i++) {
        part.code[i] += first;
    }
    return part;
}
