/* SPDX-License-Identifier: BSD-3-Clause */

/* The simple hot table: open addressing with linear probing over rows of one
 * fixed size (Knuth, TAOCP vol. 3, 6.4, algorithms L and R).
 *
 *   row:   0        8       8 + w0   ...        row_bytes
 *          | id     | cell  | cell   | ... cell |
 *   rows:  | row 0 | row 1 | ... | row capacity-1 | 8 bytes of padding |
 *
 * Integers are little-endian. Each column has one width in the whole table,
 * 0 to 8 bytes; a column that was never written takes none.
 *
 * Invariants (table_verify):
 * - A free place is all zero bytes. A row has a cell other than 0, so that id
 *   0 needs no special case: only where the id reads 0 are the cells asked.
 * - From the home of an id to its row there is no free place, and an id has
 *   one row at most. Removal shifts rows back, there are no tombstones.
 * - count <= LOAD_NUMERATOR/LOAD_DENOMINATOR of capacity, so that every search
 *   ends at a free place. rows is NULL exactly while count is 0.
 *
 * The home of an id grows with its hash, so rows stand nearly in the order of
 * their hashes, and a rebuild reads the old rows and writes the new ones from
 * front to back.
 *
 * Happy path of a write: find the row or take the free place where the search
 * ended, store the cells. A code that does not fit its column, and a full
 * table, make a new set of rows aside first; when memory is out there, the old
 * one still stands untouched. A shrink that finds no memory is left for the
 * next removal. Ids chosen to collide in the high half of their fold make
 * searches long. */

#include "engine/table.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdbool.h>
#include <string.h>

enum {
    ROWS_MIN = 8,
    LOAD_NUMERATOR = 5, /* at most 5/6 of the places hold a row */
    LOAD_DENOMINATOR = 6,
    GROW_DIVISOR = 4,  /* grows by a quarter: load 0.67 to 0.83 */
    SHRINK_DIVISOR = 4 /* shrinks below a quarter */
};

static const size_t ROWS_MAX = UINT32_MAX;

static uint64_t
width_mask(unsigned bytes)
{
    return bytes == 0 ? 0 : UINT64_MAX >> (64 - 8 * bytes);
}

static uint8_t
bytes_of(uint64_t code)
{
    unsigned bytes = 0;
    while (code > width_mask(bytes)) {
        bytes++;
    }
    return (uint8_t)bytes;
}

static void
store(uint8_t *to, uint64_t word)
{
    for (unsigned i = 0; i < 8; i++) {
        to[i] = (uint8_t)(word >> (8 * i));
    }
}

static void
set_code(struct table *table, uint8_t *row, unsigned slot, uint64_t code)
{
    const struct table_cell *cell = &table->cell[slot];
    uint8_t *at = row + cell->offset;
    ASSERT((code & ~cell->mask) == 0);
    store(at, (table__load(at) & ~cell->mask) | code);
}

static uint8_t *
row_at(const struct table *table, size_t place)
{
    return table->rows + place * table->row_bytes;
}

static bool
cells_are_zero(const struct table *table, const uint8_t *row)
{
    size_t at = TABLE_ID_BYTES;
    for (; at + 8 <= table->row_bytes; at += 8) {
        if (table__load(row + at) != 0) {
            return false;
        }
    }
    uint64_t rest = width_mask((unsigned)(table->row_bytes - at));
    return (table__load(row + at) & rest) == 0;
}

static bool
is_free(const struct table *table, const uint8_t *row)
{
    return table__load(row) == 0 && cells_are_zero(table, row);
}

static size_t
next_place(const struct table *table, size_t place)
{
    return place + 1 == table->capacity ? 0 : place + 1;
}

/* The place of id's row, or the free one where the search for it ends. */
static size_t
search(const struct table *table, uint64_t id)
{
    size_t place = table__home(table, id);
    for (;;) {
        const uint8_t *row = row_at(table, place);
        uint64_t found = table__load(row);
        if (found == id || (found == 0 && cells_are_zero(table, row))) {
            return place;
        }
        place = next_place(table, place);
    }
}

/* The bytes of a set of rows. */
static size_t
rows_bytes(size_t capacity, size_t row_bytes)
{
    return capacity * row_bytes + TABLE_PAD_BYTES;
}

static size_t
count_max(size_t capacity)
{
    return capacity * LOAD_NUMERATOR / LOAD_DENOMINATOR;
}

/* A capacity in which count rows have room to grow by a quarter. */
static size_t
capacity_for(size_t count)
{
    size_t capacity = count + count / 2;
    return capacity < ROWS_MIN ? ROWS_MIN : capacity;
}

static void
lay_out(struct table *table)
{
    size_t at = TABLE_ID_BYTES;
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        struct table_cell *cell = &table->cell[i];
        cell->offset = (uint8_t)at;
        cell->mask = width_mask(cell->width);
        at += cell->width;
    }
    table->row_bytes = at;
}

static void
release_rows(struct table *table)
{
    alloc_free(table->alloc, table->rows, table_bytes(table));
    table->rows = NULL;
    table->capacity = 0;
    table->count = 0;
}

/* Nothing stored: gives all memory and all widths back. */
static void
reset(struct table *table)
{
    release_rows(table);
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        table->cell[i].width = 0;
    }
    lay_out(table);
}

/* Copies the codes that *to has columns for. */
static void
copy_row(struct table *to, const struct table *from, const uint8_t *row)
{
    uint64_t id = table__load(row);
    uint8_t *copy = row_at(to, search(to, id));
    store(copy, id);
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        if (to->cell[i].width != 0) {
            set_code(to, copy, i, table_code(from, row, i));
        }
    }
    to->count++;
}

/* True where a row holds something in a column that wanted still has. */
static bool
row_is_kept(
    const struct table *table, const struct table *wanted, const uint8_t *row)
{
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        if (wanted->cell[i].width != 0 && table_code(table, row, i) != 0) {
            return true;
        }
    }
    return false;
}

/* Replaces the rows by ones of the layout of *wanted and that capacity. */
static int
rebuild(struct table *table, const struct table *wanted, size_t capacity)
{
    struct table made = *wanted;
    if (capacity > ROWS_MAX) {
        return ERR_NO_MEMORY;
    }
    made.rows = alloc_zeroed(made.alloc, rows_bytes(capacity, made.row_bytes));
    if (made.rows == NULL) {
        return ERR_NO_MEMORY;
    }
    made.capacity = capacity;
    made.count = 0;
    for (size_t i = 0; i < table->capacity; i++) {
        const uint8_t *row = row_at(table, i);
        if (!is_free(table, row) && row_is_kept(table, wanted, row)) {
            copy_row(&made, table, row);
        }
    }
    release_rows(table);
    *table = made;
    return 0;
}

static size_t
count_kept(const struct table *table, const struct table *wanted)
{
    size_t n = 0;
    for (size_t i = 0; i < table->capacity; i++) {
        const uint8_t *row = row_at(table, i);
        n += !is_free(table, row) && row_is_kept(table, wanted, row);
    }
    return n;
}

static void
shrink_if_sparse(struct table *table)
{
    if (table->capacity > ROWS_MIN &&
        table->count < table->capacity / SHRINK_DIVISOR) {
        (void)rebuild(table, table, capacity_for(table->count));
    }
}

/* Frees a place and moves the rows behind it back, each as far as its home
 * allows. */
static void
remove_row(struct table *table, size_t place)
{
    size_t hole = place;
    size_t at = place;
    for (;;) {
        at = next_place(table, at);
        const uint8_t *row = row_at(table, at);
        if (is_free(table, row)) {
            break;
        }
        size_t home = table__home(table, table__load(row));
        bool stays =
            hole <= at ? hole < home && home <= at : hole < home || home <= at;
        if (!stays) {
            memcpy(row_at(table, hole), row, table->row_bytes);
            hole = at;
        }
    }
    memset(row_at(table, hole), 0, table->row_bytes);
    table->count--;
}

/* Makes columns wide enough and, for a new row, room for it. */
static int
make_room(struct table *table, const struct table_write *write, size_t n,
    bool is_new)
{
    struct table wanted = *table;
    bool wider = false;
    for (size_t i = 0; i < n; i++) {
        struct table_cell *cell = &wanted.cell[write[i].slot];
        uint8_t bytes = bytes_of(write[i].code);
        if (bytes > cell->width) {
            cell->width = bytes > cell->width_hint ? bytes : cell->width_hint;
            wider = true;
        }
    }
    size_t capacity = table->capacity;
    if (is_new && table->count + 1 > count_max(capacity)) {
        capacity += capacity / GROW_DIVISOR;
        capacity = capacity < ROWS_MIN ? ROWS_MIN : capacity;
    } else if (!wider) {
        return 0;
    }
    lay_out(&wanted);
    return rebuild(table, &wanted, capacity);
}

static bool
all_codes_zero(const struct table_write *write, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (write[i].code != 0) {
            return false;
        }
    }
    return true;
}

void
table_init(struct table *table, const struct alloc *alloc, uint64_t key)
{
    *table = (struct table){.alloc = alloc, .key = key};
    lay_out(table);
}

void
table_fini(struct table *table)
{
    release_rows(table);
}

void
table_hint(struct table *table, unsigned slot, unsigned bytes)
{
    ASSERT(slot < TABLE_CELLS_MAX && bytes <= TABLE_CELL_BYTES_MAX);
    table->cell[slot].width_hint = (uint8_t)bytes;
}

const uint8_t *
table_find(const struct table *table, uint64_t id)
{
    if (table->rows == NULL) {
        return NULL;
    }
    return table_row_at(table, search(table, id));
}

int
table_write(struct table *table, uint64_t id, const struct table_write *write,
    size_t n)
{
    bool is_new = table_find(table, id) == NULL;
    if (is_new && all_codes_zero(write, n)) {
        return 0;
    }
    int err = make_room(table, write, n, is_new);
    if (err != 0) {
        return err;
    }
    size_t place = search(table, id);
    uint8_t *row = row_at(table, place);
    if (is_new) {
        store(row, id);
        table->count++;
    }
    for (size_t i = 0; i < n; i++) {
        set_code(table, row, write[i].slot, write[i].code);
    }
    if (!cells_are_zero(table, row)) {
        return 0;
    }
    if (table->count == 1) {
        reset(table);
        return 0;
    }
    remove_row(table, place);
    shrink_if_sparse(table);
    return 0;
}

int
table_drop(struct table *table, unsigned slots)
{
    struct table wanted = *table;
    bool in_use = false;
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        if ((slots >> i & 1) != 0) {
            in_use = in_use || wanted.cell[i].width != 0;
            wanted.cell[i].width = 0;
        }
    }
    if (!in_use) {
        return 0;
    }
    lay_out(&wanted);
    size_t kept = count_kept(table, &wanted);
    if (kept == 0) {
        reset(table);
        return 0;
    }
    return rebuild(table, &wanted, capacity_for(kept));
}

const uint8_t *
table_row_at(const struct table *table, size_t place)
{
    const uint8_t *row = row_at(table, place);
    return is_free(table, row) ? NULL : row;
}

size_t
table_bytes(const struct table *table)
{
    if (table->rows == NULL) {
        return 0;
    }
    return rows_bytes(table->capacity, table->row_bytes);
}

static void
verify_layout(const struct table *table)
{
    size_t at = TABLE_ID_BYTES;
    for (unsigned i = 0; i < TABLE_CELLS_MAX; i++) {
        const struct table_cell *cell = &table->cell[i];
        ASSERT(cell->width <= TABLE_CELL_BYTES_MAX);
        ASSERT(cell->offset == at);
        ASSERT(cell->mask == width_mask(cell->width));
        at += cell->width;
    }
    ASSERT(table->row_bytes == at);
}

void
table_verify(const struct table *table)
{
    verify_layout(table);
    ASSERT((table->rows == NULL) == (table->count == 0));
    ASSERT((table->rows == NULL) == (table->capacity == 0));
    ASSERT(table->count <= count_max(table->capacity));
    size_t n = 0;
    for (size_t i = 0; i < table->capacity; i++) {
        const uint8_t *row = table_row_at(table, i);
        if (row != NULL) {
            ASSERT(!cells_are_zero(table, row));
            ASSERT(search(table, table__load(row)) == i);
            n++;
        }
    }
    ASSERT(n == table->count);
    if (table->rows != NULL) {
        ASSERT(table__load(row_at(table, table->capacity)) == 0);
    }
}
