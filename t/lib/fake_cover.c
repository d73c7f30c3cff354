/* SPDX-License-Identifier: BSD-3-Clause */

#include "lib/fake_cover.h"

#include "base/assert.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

static const struct fake_segment **
cell_at(const struct fake_cover *fake, unsigned shard, unsigned cell)
{
    ASSERT(shard < fake->shards && cell < fake->cells);
    return &fake->cell[shard * fake->cells + cell];
}

static uint64_t
bound_at(const struct fake_cover *fake, unsigned shard, unsigned cell)
{
    return fake->bound[shard * (fake->cells + 1) + cell];
}

unsigned
fake_cover_cell(const struct fake_cover *fake, unsigned shard, uint64_t row)
{
    unsigned cell = 0;
    while (cell + 1 < fake->cells && bound_at(fake, shard, cell + 1) <= row) {
        cell++;
    }
    return cell;
}

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct fake_cover *fake = (const struct fake_cover *)cover;
    if (slot != fake->slot) {
        return 0;
    }
    const struct fake_segment *segment =
        *cell_at(fake, shard, fake_cover_cell(fake, shard, row));
    return segment == NULL ? 0
        : fake->is_loading ? ENGINE_COVER_LOADING
                           : segment->version;
}

static bool
is_any_covered(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    const struct fake_cover *fake = (const struct fake_cover *)cover;
    ASSERT(first_row <= last_row);
    if (slot != fake->slot) {
        return false;
    }
    unsigned last = fake_cover_cell(fake, shard, last_row);
    for (unsigned i = fake_cover_cell(fake, shard, first_row); i <= last;
         i++) {
        if (*cell_at(fake, shard, i) != NULL) {
            return true;
        }
    }
    return false;
}

/* Exact: a real cold tier may say more. */
static bool
last_row_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    const struct fake_cover *fake = (const struct fake_cover *)cover;
    bool any = false;
    for (unsigned i = 0; slot == fake->slot && i < fake->cells; i++) {
        const struct fake_segment *segment = *cell_at(fake, shard, i);
        for (size_t k = 0; segment != NULL && k < segment->n; k++) {
            uint64_t at = segment->record[k].row;
            if (at >= bound_at(fake, shard, i) &&
                fake_cover_cell(fake, shard, at) == i) {
                *row = any && *row > at ? *row : at;
                any = true;
            }
        }
    }
    return any;
}

static bool
column_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint32_t serial)
{
    const struct fake_cover *fake = (const struct fake_cover *)cover;
    bool any = false;
    for (unsigned i = 0; slot == fake->slot && i < fake->cells; i++) {
        const struct fake_segment *segment = *cell_at(fake, shard, i);
        for (size_t k = 0; segment != NULL && k < segment->n; k++) {
            const struct engine_base *base = &segment->record[k].base;
            for (unsigned c = 0; c < base->n_columns; c++) {
                any = any || base->serial[c] == serial;
            }
        }
    }
    return any;
}

/* The bounds of one shard: of its rows, every so many-th, and one more. */
static void
cut(struct fake_cover *fake, const struct engine *engine, unsigned shard,
    const uint64_t *id, size_t n)
{
    uint64_t *bound = &fake->bound[shard * (fake->cells + 1)];
    size_t n_here = 0;
    unsigned at_shard, cell = 1;
    uint64_t row;
    for (size_t i = 0; i < n; i++) {
        engine_row(engine, id[i], &at_shard, &row);
        n_here += at_shard == shard;
    }
    size_t step = n_here / fake->cells + 1;
    for (size_t i = 0, at = 0; i < n && cell < fake->cells; i++) {
        engine_row(engine, id[i], &at_shard, &row);
        if (at_shard == shard && ++at % step == 0) {
            bound[cell] = row + cell % 3;
            cell++;
        }
    }
    for (; cell <= fake->cells; cell++) { /* empty but for the last row */
        bound[cell] = UINT64_MAX >> __builtin_ctz(fake->shards);
    }
}

void
fake_cover_init(struct fake_cover *fake, const struct engine *engine,
    unsigned slot, unsigned shards, unsigned cells, const uint64_t *id,
    size_t n)
{
    *fake = (struct fake_cover){.cover = {.version_fn = version_of,
                                    .any_fn = is_any_covered,
                                    .last_row_fn = last_row_of,
                                    .column_fn = column_of},
        .slot = slot,
        .shards = shards,
        .cells = cells};
    fake->bound = calloc(shards * (cells + 1), sizeof *fake->bound);
    fake->cell = calloc(shards * cells, sizeof *fake->cell);
    ASSERT(fake->bound != NULL && fake->cell != NULL);
    mutex_init(&fake->lock);
    for (unsigned i = 0; i < shards; i++) {
        cut(fake, engine, i, id, n);
    }
}

void
fake_cover_fini(struct fake_cover *fake)
{
    for (size_t i = 0; i < fake->n; i++) {
        free(fake->segment[i]->record);
        free(fake->segment[i]);
    }
    mutex_fini(&fake->lock);
    free(fake->segment);
    free(fake->bound);
    free(fake->cell);
}

void
fake_cover_clear(struct fake_cover *fake)
{
    for (unsigned i = 0; i < fake->shards * fake->cells; i++) {
        fake->cell[i] = NULL;
    }
}

static const struct fake_record *
find(const struct fake_segment *segment, uint64_t row)
{
    size_t first = 0;
    size_t end = segment->n;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (segment->record[middle].row < row) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < segment->n && segment->record[first].row == row
        ? &segment->record[first]
        : NULL;
}

void
fake_cover_base(struct fake_cover *fake, uint64_t version, uint64_t row,
    struct engine_base *base)
{
    mutex_lock(&fake->lock);
    ASSERT(version >= 1 && version <= fake->n);
    const struct fake_segment *segment = fake->segment[version - 1];
    mutex_unlock(&fake->lock);
    const struct fake_record *record = find(segment, row);
    memset(base, 0xa5, sizeof *base);
    base->is_there = false;
    base->is_to_stay = false;
    if (record != NULL) {
        *base = record->base;
    }
    base->version = version;
}

uint64_t
fake_cover_value(
    const struct engine_base *base, const struct schema_column *column)
{
    uint64_t code = 0;
    for (unsigned i = 0; base->is_there && i < base->n_columns; i++) {
        code = base->serial[i] == column->serial ? base->code[i] : code;
    }
    return column->default_value == 0
        ? code
        : column->default_value + bytes_unzigzag(code);
}

static struct fake_record
record_of(const struct engine_rows *rows, size_t i)
{
    struct fake_record record = {.row = rows->row[i]};
    for (unsigned c = 0; c < rows->n_columns; c++) {
        record.base.serial[c] = rows->serial[c];
        record.base.code[c] = rows->code[c][i];
        record.base.is_there |= rows->code[c][i] != 0;
    }
    record.base.n_columns = rows->n_columns;
    return record;
}

static void
add(struct fake_segment *segment, const struct fake_record *record)
{
    if (segment->n % 64 == 0) {
        segment->record = realloc(
            segment->record, (segment->n + 64) * sizeof *segment->record);
        ASSERT(segment->record != NULL);
    }
    ASSERT(
        segment->n == 0 || segment->record[segment->n - 1].row < record->row);
    segment->record[segment->n++] = *record;
}

/* What a cell's segment has that rows (from *at on) do not, and those. */
static void
merge_cell(const struct fake_cover *fake, const struct engine_rows *rows,
    unsigned shard, unsigned cell, size_t *at, struct fake_segment *out)
{
    const struct fake_segment *old = *cell_at(fake, shard, cell);
    uint64_t first = bound_at(fake, shard, cell);
    uint64_t last = bound_at(fake, shard, cell + 1);
    last -= cell + 1 < fake->cells;
    for (size_t i = 0; old != NULL && i < old->n; i++) {
        if (old->record[i].row < first || old->record[i].row > last) {
            continue;
        }
        for (; *at < rows->n && rows->row[*at] < old->record[i].row; ++*at) {
            struct fake_record record = record_of(rows, *at);
            if (record.base.is_there) {
                add(out, &record);
            }
        }
        if (*at == rows->n || rows->row[*at] != old->record[i].row) {
            add(out, &old->record[i]);
        }
    }
    for (; *at < rows->n && rows->row[*at] <= last; ++*at) {
        struct fake_record record = record_of(rows, *at);
        if (record.base.is_there) {
            add(out, &record);
        }
    }
}

/* A segment of its own of what is in rows and in the segments of the cells. */
static struct fake_segment *
merge(struct fake_cover *fake, const struct engine_rows *rows, unsigned shard,
    unsigned first, unsigned last)
{
    struct fake_segment *made = calloc(1, sizeof *made);
    size_t at = 0;
    ASSERT(made != NULL);
    for (unsigned cell = first; cell <= last; cell++) {
        merge_cell(fake, rows, shard, cell, &at, made);
    }
    ASSERT(at == rows->n);
    mutex_lock(&fake->lock);
    fake->segment =
        realloc(fake->segment, (fake->n + 1) * sizeof(*fake->segment));
    ASSERT(fake->segment != NULL);
    fake->segment[fake->n++] = made;
    made->version = fake->n;
    mutex_unlock(&fake->lock);
    return made;
}

struct publication {
    struct fake_cover *fake;
    const struct fake_sealing *sealing;
    const struct fake_segment *made;
    unsigned shard, first, last;
    unsigned calls;
};

static void
publish(void *context)
{
    struct publication *it = context;
    for (unsigned i = it->first; i <= it->last; i++) {
        *cell_at(it->fake, it->shard, i) = it->made;
    }
    it->calls++;
    if (it->sealing->published_fn != NULL) {
        it->sealing->published_fn(it->sealing->context);
    }
}

int
fake_cover_seal(struct fake_cover *fake, struct engine *engine, unsigned shard,
    unsigned first, unsigned last, const struct alloc *alloc,
    const struct fake_sealing *sealing)
{
    struct engine_rows rows = {.alloc = alloc};
    uint64_t from = bound_at(fake, shard, first);
    uint64_t to = bound_at(fake, shard, last + 1) - (last + 1 < fake->cells);
    if (from > to) { /* too few ids for so many cells */
        return 0;
    }
    int err = engine_copy_range(engine, fake->slot, shard, from, to, &rows);
    if (err == 0) {
        struct publication it = {.fake = fake,
            .sealing = sealing,
            .made = merge(fake, &rows, shard, first, last),
            .shard = shard,
            .first = first,
            .last = last};
        if (sealing->meanwhile_fn != NULL) {
            sealing->meanwhile_fn(sealing->context);
        }
        err = engine_evict(engine, fake->slot, shard, &rows, publish, &it);
        ASSERT(it.calls == (err == 0));
    }
    engine_rows_fini(&rows);
    return err;
}
