/* SPDX-License-Identifier: BSD-3-Clause */
/* The usual change of a range table: finds a record and gives it other codes in
 * its place. table_put (table.c) does what this does not.
 *
 * A record keeps its shape as long as no code gets shorter and all are within
 * the shape's fields: a cheaper shape was too narrow for the old codes, so it
 * is for the new ones, and the shape is still the cheapest that is wide enough,
 * as it must be (table_verify). A code that has outgrown its field gives the
 * record the next shape that is wide enough, in the same line if that has room.
 *
 * In the stash a code may become any other of as many bits: the record's need
 * stays, so its reason to be there does. A record that only waits for room in
 * its lines is tried there again when a code gets longer. */
#include "engine/table_change.h"
#include "engine/table_place.h"
#include "engine/table_priv.h"

#include "base/assert.h"
#include "engine/hook.h"

#include <string.h>

/* In the lines of spot->place; *is_elsewhere: it may be in the stash. */
static inline bool
seek_lines(const struct table *table, uint32_t columns,
    struct table_spot *spot, bool *is_elsewhere)
{
    const struct table_place *place = &spot->place;
    uint32_t number = place->line_1;
    for (bool is_far = false;; is_far = true) {
        const struct line *line = table_line(table, number);
        int index = line_seek(line, &table->form, place->remainder, is_far,
            columns, &spot->record);
        if (index >= 0) {
            spot->where = TABLE_LINE;
            spot->line = number;
            spot->index = (uint8_t)index;
            return true;
        }
        *is_elsewhere = line_may_lack(line, place->bit);
        if (is_far || !*is_elsewhere) {
            return false;
        }
        number = place->line_2;
    }
}

static inline void
seek(const struct table_owner *owner, const struct table *table, uint64_t row,
    uint32_t columns, struct table_spot *spot)
{
    bool is_elsewhere;
    spot->row = row;
    spot->place = table_place(table, owner->perm, row);
    if (seek_lines(table, columns, spot, &is_elsewhere)) {
        return;
    }
    const struct stash *stash = table_stash(table);
    memset(&spot->record, 0, sizeof spot->record);
    spot->where = is_elsewhere && stash != NULL &&
            stash_find(stash, row & table->mask, spot->record.code)
        ? TABLE_STASH
        : TABLE_NOWHERE;
}

void
table_seek(const struct table_owner *owner, const struct table *table,
    uint64_t row, uint32_t columns, struct table_spot *spot)
{
    seek(owner, table, row, columns, spot);
}

void
table_find(const struct table_owner *owner, const struct table *table,
    uint64_t row, struct table_spot *spot)
{
    memset(spot->record.code, 0, sizeof spot->record.code);
    seek(owner, table, row, table->form.shapes->columns, spot);
}

bool
table__seek_stash(const struct table *table, uint64_t row, unsigned column,
    struct table_cell *cell)
{
    const struct stash *stash = table_stash(table);
    if (stash == NULL ||
        !stash_seek(stash, row & table->mask, column, &cell->stashed)) {
        return false;
    }
    cell->is_stashed = true;
    cell->code = cell->stashed.code;
    return true;
}

/* All codes of a record that is in a line. */
static void
read_codes(
    const struct table *table, uint32_t line, struct line_record *record)
{
    /* In two halves: see line.c. */
    memset(record->code, 0, sizeof record->code / 2);
    memset(record->code + SHAPES_COLUMNS_MAX / 2, 0, sizeof record->code / 2);
    line_codes(table_line(table, line), &table->form, UINT16_MAX, record);
}

void
table_fill(const struct table *table, struct table_spot *spot)
{
    if (spot->where == TABLE_LINE) {
        read_codes(table, spot->line, &spot->record);
    }
}

void
table_cell_stashed(const struct table *table, uint64_t row, uint64_t *code)
{
    bool is_there = stash_find(table_stash(table), row & table->mask, code);
    ASSERT(is_there);
}

/* A code of a record in the table has become longer. */
static inline void
widen(struct table *table, unsigned column, uint64_t code)
{
    uint64_t *widest = &table->widest.packed[column / 8];
    unsigned shift = column % 8 * 8;
    unsigned bits = shapes_bits(code);
    if (bits > (*widest >> shift & 0xff)) {
        *widest =
            (*widest & ~(UINT64_C(0xff) << shift)) | (uint64_t)bits << shift;
    }
}

/* True where a code of a record in a line may become that without a look at
 * the other ones, if its field has room: it gets no shorter, and the record
 * was no tombstone. */
static inline bool
may_become(const struct table *table, uint64_t was, uint64_t code)
{
    return table__is_as_wide(was, code) ||
        (code > was && (was != 0 || table->n_empty == 0));
}

static inline bool
has_field_for(const struct line_form *form, unsigned shape, unsigned column,
    uint64_t code)
{
    return shapes_bits(code) <= form->shapes->field[column][shape].width;
}

bool
table_rewrite(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code, uint32_t columns)
{
    if (spot->where != TABLE_LINE) {
        return false;
    }
    uint64_t differ = 0;
    for (uint32_t left = columns; left != 0; left &= left - 1) {
        unsigned column = (unsigned)__builtin_ctz(left);
        uint64_t was = spot->record.code[column];
        differ |= was ^ code[column];
        if (!may_become(table, was, code[column]) ||
            !has_field_for(
                &table->form, spot->record.shape, column, code[column])) {
            return false;
        }
    }
    if (differ != 0) {
        table__put_in_place(owner, table, spot, code, columns);
        for (uint32_t left = columns; left != 0; left &= left - 1) {
            unsigned column = (unsigned)__builtin_ctz(left);
            widen(table, column, code[column]);
        }
        table__mark_changed(table);
    }
    return true;
}

void
table__put_in_place(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code, uint32_t columns)
{
    table__begin(owner, spot->line % TABLE_STRIPES);
    ENGINE_HOOK("line store");
    line_flip(table_line(table, spot->line), &table->form, &spot->record, code,
        columns);
    table__end(owner, spot->line % TABLE_STRIPES);
}

/* Gives a record that is in a line another shape there, for a code that has
 * outgrown its field. */
static bool
reshape(struct table_owner *owner, struct table *table, uint32_t line,
    const struct line_cell *cell, unsigned column, uint64_t code)
{
    const struct line_form *form = &table->form;
    unsigned was = cell->shape;
    struct line_record record = {.shape = (uint8_t)was, .at = cell->at};
    struct line_copy copy;
    read_codes(table, line, &record);
    record.code[column] = code;
    struct shapes_need need =
        shapes_need_of(record.code, form->shapes->columns | 1U << column);
    int shape = shapes_fit(form->shapes, &need);
    if (shape < 0) {
        return false;
    }
    ASSERT(form->single == 0); /* one field has been too narrow: all are */
    line_load(table_line(table, line), &copy);
    if (!line_rewrite(
            &copy, form, cell->index, (unsigned)shape, record.code)) {
        return false;
    }
    table__store_line(owner, table, line, &copy);
    table->used_bits += (uint64_t)form->total[shape] - form->total[was];
    return true;
}

static bool
rewrite_stashed(struct table_owner *owner, struct table *table,
    const struct stash_code *stashed, uint64_t code)
{
    if (!table__is_as_wide(stashed->code, code)) {
        return false;
    }
    table__begin(owner, TABLE__STRIPE_STASH);
    ENGINE_HOOK("stash put");
    stash_flip(table_stash(table), stashed, code);
    table__end(owner, TABLE__STRIPE_STASH);
    return true;
}

bool
table__rewrite_other(struct table_owner *owner, struct table *table,
    const struct line_pair *pair, const struct table_cell *cell,
    unsigned column, uint64_t code)
{
    const struct line_cell *in_line = &cell->in_line;
    if (cell->is_stashed) {
        if (!rewrite_stashed(owner, table, &cell->stashed, code)) {
            return false;
        }
    } else if (!may_become(table, cell->code, code)) {
        return false;
    } else if (shapes_bits(code) <= in_line->width) {
        table__put_cell(owner, pair, in_line, code);
        widen(table, column, code);
    } else if (reshape(owner, table, pair->number[in_line->is_far], in_line,
                   column, code)) {
        widen(table, column, code);
    } else {
        return false;
    }
    table__mark_changed(table);
    return true;
}
