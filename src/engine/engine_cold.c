/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine beside a colder store (cover.h): copies of ranges that are to
 * leave memory, and reads that say where a record is. */
#include "engine/cover.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine_columns.h"
#include "engine/engine_priv.h"
#include "engine/largest.h"
#include "engine/table_copy.h"

#include <string.h>

enum {
    SPARE_SHARE = 8,  /* of a block: room to grow */
    COUNT_TABLES = 64 /* under one hold of the lock */
};

void
engine_set_cover(struct engine *engine, const struct engine_cover *cover)
{
    engine->cover = cover;
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct counter *counter = engine__counter(engine, slot);
        for (unsigned i = 0; counter != NULL && i < engine->n_shards; i++) {
            counter->ranges[i].cover.cover = cover;
        }
    }
}

void
engine_raise(struct engine *engine, unsigned slot, uint64_t id)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    struct counter *counter = engine__counter(engine, slot);
    if (counter != NULL) {
        counter__raise(counter, id);
    }
}

void
engine_uncover(struct engine *engine, unsigned shard,
    void (*publish_fn)(void *context), void *context)
{
    ASSERT(shard < engine->n_shards);
    shard__lock(&engine->shard[shard]);
    publish_fn(context);
    shard__unlock(&engine->shard[shard]);
}

void
engine_add_covered(struct engine *engine, unsigned slot, uint64_t n_records)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    struct counter *counter = engine__counter(engine, slot);
    if (counter != NULL) { /* only the sum over all shards has a meaning */
        shard__lock(&engine->shard[0]);
        counter->ranges[0].n_live += (int64_t)n_records;
        shard__unlock(&engine->shard[0]);
    }
}

/* One cell. view: of nothing where there is no counter. */
static void
answer(const struct view *view, const struct cell_key *key,
    const uint64_t *code, uint64_t *value, uint8_t *state)
{
    const struct column *column = &view->column[key->column];
    /* relaxed: 0 where it is being dropped, and then it is gone */
    if (key->serial == 0 ||
        atomic_load_explicit(&column->serial, memory_order_relaxed) !=
            key->serial) {
        *value = 0;
        *state = CELL_GONE;
        return;
    }
    *value = column_decode(column, code[key->column]);
    *state = code[key->column] == 0 ? CELL_DEFAULT : CELL_SET;
}

void
engine_look(struct engine *engine, const struct cell_key *key, size_t n,
    uint64_t *value, uint8_t *state, struct engine_found *found)
{
    static const struct view nothing;
    struct engine_row at = engine__row(engine, key->id);
    struct ranges_look look;
    ASSERT(n > 0);
    *found = (struct engine_found){.is_here = false};
    memset(&look, 0, sizeof look);
    shard__lock(&engine->shard[at.shard]);
    struct counter *counter = engine__counter(engine, key->counter);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    if (view != NULL) {
        const struct ranges *ranges = &counter->ranges[at.shard];
        ranges_find(ranges, at.row, &look);
        found->is_here = look.spot.where != TABLE_NOWHERE;
        if (!found->is_here) {
            found->version = cover_version(&ranges->cover, at.row);
        }
    }
    for (size_t i = 0; i < n; i++) {
        ASSERT(key[i].id == key->id && key[i].counter == key->counter &&
            key[i].column < SCHEMA_COLUMNS_MAX);
        answer(view == NULL ? &nothing : view, &key[i], look.spot.record.code,
            &value[i], &state[i]);
    }
    shard__unlock(&engine->shard[at.shard]);
}

/* A copy of several tables, one behind the other. The numbers lie in the
 * block of rows, each array with room for so many: */
struct gathering {
    struct engine *engine;
    struct counter *counter;
    struct shard *shard;
    struct engine_rows *rows;
    size_t capacity;
    uint64_t from; /* the next row to look at */
    bool is_over;
    /* a table as it lies */
    void *copy_block;
    size_t copy_bytes;
};

/* The arrays of rows, with room for `capacity` each. */
static uint64_t *
array_at(const struct engine_rows *rows, unsigned i, size_t capacity)
{
    return (uint64_t *)rows->block + i * capacity;
}

/* Room for n records; what is there stays. */
static int
make_room(struct gathering *it, size_t n)
{
    struct engine_rows *rows = it->rows;
    size_t capacity = n + n / SPARE_SHARE;
    struct engine_rows made = *rows;
    if (n <= it->capacity) {
        return 0;
    }
    made.block_bytes =
        capacity * (1 + (size_t)rows->n_columns) * sizeof(uint64_t);
    made.block = alloc_zeroed(rows->alloc, made.block_bytes);
    if (made.block == NULL) {
        return ERR_NO_MEMORY;
    }
    ASSERT(rows->n <= it->capacity);
    for (unsigned i = 0; rows->n > 0 && i <= rows->n_columns; i++) {
        memcpy(array_at(&made, i, capacity), array_at(rows, i, it->capacity),
            rows->n * sizeof(uint64_t));
    }
    alloc_free(rows->alloc, rows->block, rows->block_bytes);
    rows->block = made.block;
    rows->block_bytes = made.block_bytes;
    it->capacity = capacity;
    return 0;
}

/* Room for a copy of that many bytes; what is there goes. */
static int
make_copy_room(struct gathering *it, size_t bytes)
{
    const struct alloc *alloc = it->rows->alloc;
    if (bytes <= it->copy_bytes) {
        return 0;
    }
    alloc_free(alloc, it->copy_block, it->copy_bytes);
    it->copy_bytes = bytes + bytes / SPARE_SHARE;
    it->copy_block = alloc_zeroed(alloc, it->copy_bytes);
    if (it->copy_block == NULL) {
        it->copy_bytes = 0;
        return ERR_NO_MEMORY;
    }
    return 0;
}

/* Begins the copy anew, with the columns that there are. */
static void
begin_anew(struct gathering *it, const struct view *view)
{
    struct engine *engine = it->engine;
    struct engine_rows *rows = it->rows;
    lock_assert_held(&it->shard->lock);
    engine__take_columns(view, rows);
    size_t column_bytes = (1 + (size_t)rows->n_columns) * sizeof(uint64_t);
    it->capacity = rows->block_bytes / column_bytes;
    it->from = rows->first_row;
    rows->n = 0;
    rows->number = ++it->shard->n_copies;
    rows->position = engine->sink == NULL
        ? 0
        : engine->sink->write_fn(engine->sink, NULL, 0);
}

/* How many records a table has, and the next ones that have rows up to
 * last_row; not all where these are very many. */
static size_t
count_ahead(
    struct ranges *ranges, const struct table *table, uint64_t last_row)
{
    size_t n = 0;
    table_owner_assert_held(ranges->owner);
    for (int i = 0; i < COUNT_TABLES && table != NULL; i++) {
        uint64_t last = table->base + table->mask;
        n += table->n_records;
        table = last < last_row ? ranges_from(ranges, last + 1) : NULL;
        if (table != NULL && table->base > last_row) {
            table = NULL;
        }
    }
    return n;
}

/* One look under the lock: a copy of the next table; or NULL where there is
 * none (is_over), and where more memory is needed: for *n records, those of
 * the tables behind it too, and a copy of *bytes. */
static const struct table *
gather_look(struct gathering *it, size_t *n, size_t *bytes)
{
    struct engine_rows *rows = it->rows;
    const struct table *copy = NULL;
    *n = 0;
    *bytes = 0;
    shard__lock(it->shard);
    const struct view *view =
        it->counter == NULL ? NULL : counter__view(it->counter);
    if (view != NULL &&
        (rows->number == 0 || !engine__has_columns(view, rows))) {
        begin_anew(it, view);
    }
    struct ranges *ranges = view == NULL
        ? NULL
        : &it->counter->ranges[it->shard - it->engine->shard];
    struct table *table =
        ranges == NULL ? NULL : ranges_from(ranges, it->from);
    if (table == NULL || table->base > rows->last_row) {
        it->is_over = true;
    } else {
        *n = rows->n + (size_t)table->n_records;
        *bytes = table_copy_bytes(table);
        if (*n > it->capacity) {
            *n = rows->n + count_ahead(ranges, table, rows->last_row);
        } else if (*bytes <= it->copy_bytes) {
            copy = table_copy(table, it->copy_block);
            /* not one that has been joined with what was copied before: that
             * may have changed since */
            if (table->base >= it->from &&
                table->base + table->mask <= rows->last_row) {
                table->copied = rows->number;
            }
        }
    }
    shard__unlock(it->shard);
    return copy;
}

/* Appends the records of a copy, as far as their rows are in the range and
 * were not in the tables before: one of those may have been joined to it. */
static void
append(struct gathering *it, const struct table *copy)
{
    struct engine_rows *rows = it->rows;
    uint64_t *row = array_at(rows, 0, it->capacity) + rows->n;
    uint64_t *code[SCHEMA_COLUMNS_MAX] = {NULL};
    for (unsigned i = 0; i < rows->n_columns; i++) {
        code[i] = array_at(rows, i + 1, it->capacity) + rows->n;
    }
    ASSERT(copy->n_records <= it->capacity - rows->n);
    uint32_t n = table_copy_read(copy, &it->engine->perm, true,
        rows->n_columns, rows->column, row, code);
    uint32_t first = 0;
    while (first < n && row[first] < it->from) {
        first++;
    }
    while (n > first && row[n - 1] > rows->last_row) {
        n--;
    }
    if (first > 0) {
        memmove(row, row + first, (n - first) * sizeof *row);
        for (unsigned i = 0; i < rows->n_columns; i++) {
            memmove(code[i], code[i] + first, (n - first) * sizeof *row);
        }
    }
    uint64_t last = copy->base + copy->mask;
    ASSERT(n == first ||
        (row[0] >= it->from && row[n - first - 1] <= rows->last_row));
    ASSERT(rows->n == 0 || n == first || row[-1] < row[0]);
    ASSERT(last >= it->from);
    rows->n += n - first;
    it->is_over = last >= rows->last_row;
    it->from = last + 1;
}

static int
gather(struct gathering *it)
{
    while (!it->is_over) {
        size_t n, bytes;
        const struct table *copy = gather_look(it, &n, &bytes);
        if (copy != NULL) {
            append(it, copy);
        } else if (!it->is_over) {
            int err = make_room(it, n);
            err = err == 0 ? make_copy_room(it, bytes) : err;
            if (err != 0) {
                return err;
            }
        }
    }
    return 0;
}

int
engine_copy_range(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row, struct engine_rows *rows)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX && shard < engine->n_shards);
    ASSERT(first_row <= last_row);
    struct gathering it = {.engine = engine,
        .counter = engine__counter(engine, slot),
        .shard = &engine->shard[shard],
        .rows = rows,
        .from = first_row};
    rows->first_row = first_row;
    rows->last_row = last_row;
    rows->position = 0;
    rows->number = 0;
    rows->has_empty = true;
    rows->n = 0;
    rows->n_columns = 0;
    int err = gather(&it);
    alloc_free(rows->alloc, it.copy_block, it.copy_bytes);
    rows->n = err == 0 ? rows->n : 0;
    rows->row = rows->n == 0 ? NULL : array_at(rows, 0, it.capacity);
    for (unsigned i = 0; i < rows->n_columns; i++) {
        rows->code[i] =
            rows->n == 0 ? NULL : array_at(rows, i + 1, it.capacity);
    }
    return err;
}
