/* SPDX-License-Identifier: BSD-3-Clause */
/* Eviction (cover.h), in two parts.
 *
 * First part, table by table: a table that has changed since it was copied is
 * copied once more, as it lies, under the lock. Without the lock it is compared
 * with the first copy; the result is the records that stay. The table is marked
 * with the number of the second copy.
 *
 * Second part, in one hold of the lock: ranges_evict. Tables that still bear
 * one of the two numbers need no look. Only those that have changed since the
 * first part are compared under the lock: a few, unless somebody writes all
 * over the range.
 *
 * The first part notes the columns. If they are others in the second, the first
 * was in vain. */
#include "engine/cover.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine_columns.h"
#include "engine/engine_priv.h"
#include "engine/stays.h"
#include "engine/table_copy.h"
#include "engine/table_each.h"

#include <string.h>

enum {
    SPARE_SHARE = 8,  /* of a block: room to grow */
    LOOK_TABLES = 64, /* looked at under one hold of the lock */
    READY_FIRST = 16  /* tables that there is room for at first */
};

struct leaving {
    struct engine *engine;
    struct counter *counter;
    struct shard *shard;
    const struct engine_rows *copied;
    struct engine_rows columns; /* of the view in the first part, no more */
    struct ranges_leaving ranges;
    struct stays stays;         /* ranges.ready_rows */
    struct ranges_ready *ready; /* owned: ranges.ready */
    size_t ready_capacity;
    uint64_t from; /* the next row to look at */
    bool is_over;
    void *block; /* owned: numbers of a table, then the table as it lies */
    size_t block_bytes;
};

/* Tells the sink of records, some at a time. */
struct redo_writer {
    struct engine *engine;
    const struct view *view;
    const struct engine_rows *copied;
    unsigned slot, shard;
    size_t n;
    struct engine_write write[ENGINE_WRITES_MAX];
};

static void
append_batch(struct redo_writer *it)
{
    if (it->n > 0) {
        (void)it->engine->sink->write_fn(it->engine->sink, it->write, it->n);
        it->n = 0;
    }
}

/* All of a record. */
static void
append_record(void *context, uint64_t row, const uint64_t *code)
{
    struct redo_writer *it = context;
    struct engine_write *write = &it->write[it->n];
    ASSERT(it->n < ENGINE_WRITES_MAX);
    if (row < it->copied->first_row || row > it->copied->last_row) {
        return;
    }
    write->n = 0;
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        const struct column *column = &it->view->column[i];
        /* relaxed: 0 where it is being dropped, and then it is gone */
        uint32_t serial =
            atomic_load_explicit(&column->serial, memory_order_relaxed);
        if (serial != 0) {
            write->serial[write->n] = serial;
            write->value[write->n++] = column_decode(column, code[i]);
        }
    }
    if (write->n == 0) {
        return;
    }
    write->id = engine__id(it->engine, it->shard, row);
    write->counter = (uint8_t)it->slot;
    write->is_pair = false;
    write->producer = 0;
    if (++it->n == ENGINE_WRITES_MAX) {
        append_batch(it);
    }
}

static void
append_rest(struct redo_writer *it, const struct ranges *ranges)
{
    uint64_t from = it->copied->first_row;
    const struct table *table = ranges_from(ranges, from);
    while (table != NULL && table->base <= it->copied->last_row) {
        uint64_t last = table->base + table->mask;
        table_each(ranges->owner, table, append_record, it);
        table = last >= it->copied->last_row ? NULL
                                             : ranges_from(ranges, last + 1);
    }
    append_batch(it);
}

/* The columns of a view, and what they mean for the copy. */
static void
take_view(struct leaving *it, const struct view *view)
{
    engine__take_columns(view, &it->columns);
    it->ranges.rows = engine__choose_columns(view, it->copied);
    it->ranges.columns = 0;
    for (unsigned i = 0; i < it->columns.n_columns; i++) {
        it->ranges.columns |= 1U << it->columns.column[i];
    }
}

static struct ranges *
ranges_of(const struct leaving *it)
{
    return &it->counter->ranges[it->shard - it->engine->shard];
}

static size_t
numbers_bytes(const struct leaving *it, const struct table *table)
{
    return (size_t)table->n_records * (1 + (size_t)it->columns.n_columns) *
        sizeof(uint64_t);
}

/* One look under the lock: a copy of the next table that has changed, or NULL:
 * where the block is too small (*bytes is what it takes), where there is no
 * more (is_over), or where the lock has been held long enough. */
static const struct table *
look(struct leaving *it, size_t *bytes)
{
    const struct table *copy = NULL;
    *bytes = 0;
    shard__lock(it->shard);
    const struct view *view = counter__view(it->counter);
    it->is_over = view == NULL || !engine__has_columns(view, &it->columns);
    for (int i = 0; i < LOOK_TABLES && !it->is_over && copy == NULL; i++) {
        struct table *table = ranges_from(ranges_of(it), it->from);
        if (table == NULL || table->base > it->ranges.last) {
            it->is_over = true;
            break;
        }
        if (!ranges_is_untouched(&it->ranges, table)) {
            size_t numbers = numbers_bytes(it, table);
            *bytes = numbers + table_copy_bytes(table);
            if (*bytes > it->block_bytes) {
                break;
            }
            table->copied = it->ranges.ready_number;
            copy = table_copy(table, (char *)it->block + numbers);
        }
        uint64_t last = table->base + table->mask;
        it->from = last + 1;
        it->is_over = last >= it->ranges.last;
    }
    shard__unlock(it->shard);
    return copy;
}

static int
reserve(struct leaving *it, size_t bytes)
{
    const struct alloc *alloc = it->engine->alloc;
    alloc_free(alloc, it->block, it->block_bytes);
    it->block_bytes = bytes + bytes / SPARE_SHARE;
    it->block = alloc_zeroed(alloc, it->block_bytes);
    if (it->block == NULL) {
        it->block_bytes = 0;
        return ERR_NO_MEMORY;
    }
    return 0;
}

/* Room for one more table. */
static int
grow_ready(struct leaving *it)
{
    const struct alloc *alloc = it->engine->alloc;
    size_t n = it->ready_capacity;
    size_t more = n == 0 ? READY_FIRST : 2 * n;
    if (it->ranges.n_ready < n) {
        return 0;
    }
    struct ranges_ready *made = alloc_zeroed(alloc, more * sizeof *made);
    if (made == NULL) {
        return ERR_NO_MEMORY;
    }
    if (n > 0) {
        memcpy(made, it->ready, n * sizeof *made);
    }
    alloc_free(alloc, it->ready, n * sizeof *made);
    it->ready = made;
    it->ready_capacity = more;
    return 0;
}

/* A record that was copied and is not there any more leaves a tombstone. */
static int
add_removed(struct leaving *it, size_t i, struct ranges_ready *ready)
{
    static const uint64_t nothing[SCHEMA_COLUMNS_MAX];
    uint64_t code[SCHEMA_COLUMNS_MAX] = {0};
    if (!carry_codes(&it->ranges.rows, i, code)) {
        return 0;
    }
    ready->is_all = false;
    return stays_add(&it->stays, it->ranges.rows.row[i], nothing);
}

/* A record that is there stays, unless it is as it was copied: record i of
 * the copy, where is_copied. */
static int
add_present(struct leaving *it, const struct carry_rows *now, size_t k,
    bool is_copied, size_t i, struct ranges_ready *ready)
{
    uint64_t code[SCHEMA_COLUMNS_MAX] = {0};
    uint64_t was[SCHEMA_COLUMNS_MAX] = {0};
    (void)carry_codes(now, k, code);
    if (is_copied) {
        (void)carry_codes(&it->ranges.rows, i, was);
        if (memcmp(was, code, sizeof was) == 0) {
            ready->is_all = false;
            return 0;
        }
    }
    return stays_add(&it->stays, now->row[k], code);
}

/* Forgets tables that have been joined since, to one that is looked at now: so
 * what is left ascends. */
static void
drop_joined(struct leaving *it, const struct table *table)
{
    size_t *n = &it->ranges.n_ready;
    while (*n > 0 && it->ready[*n - 1].base >= table->base) {
        --*n;
    }
}

/* Compares a table, whose records are these, with the copy; both ascend. */
static int
compare(struct leaving *it, const struct table *table,
    const struct carry_rows *now)
{
    const struct carry_rows *was = &it->ranges.rows;
    size_t i = stays_from(was, table->base, 0, was->n);
    size_t end = stays_behind(was, table->base + table->mask, i);
    struct ranges_ready ready = {
        .base = table->base, .first = it->stays.rows.n, .is_all = true};
    drop_joined(it, table);
    int err = grow_ready(it);
    for (size_t k = 0; k < now->n && err == 0; k++) {
        for (; i < end && was->row[i] < now->row[k] && err == 0; i++) {
            err = add_removed(it, i, &ready);
        }
        bool is_copied = i < end && was->row[i] == now->row[k];
        if (err == 0) {
            err = add_present(it, now, k, is_copied, i, &ready);
        }
        i += is_copied;
    }
    for (; i < end && err == 0; i++) {
        err = add_removed(it, i, &ready);
    }
    if (err == 0) {
        ready.n = it->stays.rows.n - ready.first;
        ASSERT(!ready.is_all || ready.n == now->n);
        ASSERT(it->ranges.n_ready < it->ready_capacity);
        it->ready[it->ranges.n_ready++] = ready;
    }
    return err;
}

/* Reads a copied table out and compares it. */
static int
read_and_compare(struct leaving *it, const struct table *copy)
{
    const struct engine_rows *columns = &it->columns;
    uint64_t *row = it->block;
    uint64_t *code[SCHEMA_COLUMNS_MAX] = {NULL};
    struct carry_rows now = {.row = row, .n_columns = columns->n_columns};
    for (unsigned i = 0; i < columns->n_columns; i++) {
        code[i] = row + (size_t)(i + 1) * copy->n_records;
        now.code[i] = code[i];
        now.column[i] = columns->column[i];
    }
    now.n = table_copy_read(copy, &it->engine->perm, true, columns->n_columns,
        columns->column, row, code);
    return compare(it, copy, &now);
}

/* The first part. 0 or ERR_NO_MEMORY. */
static int
get_ready(struct leaving *it)
{
    shard__lock(it->shard);
    const struct view *view = counter__view(it->counter);
    if (view != NULL) {
        take_view(it, view);
        it->ranges.ready_number = ++it->shard->n_copies;
    }
    shard__unlock(it->shard);
    stays_init(&it->stays, it->engine->alloc, it->ranges.columns);
    it->is_over = view == NULL;
    while (!it->is_over) {
        size_t bytes;
        const struct table *copy = look(it, &bytes);
        int err = 0;
        if (copy != NULL) {
            err = read_and_compare(it, copy);
        } else if (bytes > it->block_bytes) {
            err = reserve(it, bytes);
        }
        if (err != 0) {
            return err;
        }
    }
    it->ranges.ready = it->ready;
    it->ranges.ready_rows = &it->stays.rows;
    return 0;
}

/* The second part. */
static int
evict(struct leaving *it, unsigned slot, void (*publish_fn)(void *context),
    void *context)
{
    const struct view *view = counter__view(it->counter);
    lock_assert_held(&it->shard->lock);
    if (view == NULL) {
        publish_fn(context);
        return 0;
    }
    if (!engine__has_columns(view, &it->columns)) {
        it->ranges.n_ready = 0;
        take_view(it, view);
    }
    int err = ranges_evict(ranges_of(it), &it->ranges, publish_fn, context);
    if (err == 0 && it->engine->sink != NULL) {
        struct redo_writer redo_writer = {.engine = it->engine,
            .view = view,
            .copied = it->copied,
            .slot = slot,
            .shard = (unsigned)(it->shard - it->engine->shard)};
        append_rest(&redo_writer, ranges_of(it));
    }
    return err;
}

int
engine_evict(struct engine *engine, unsigned slot, unsigned shard,
    const struct engine_rows *copied, void (*publish_fn)(void *context),
    void *context)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX && shard < engine->n_shards);
    ASSERT(copied->first_row <= copied->last_row);
    struct leaving it = {.engine = engine,
        .counter = engine__counter(engine, slot),
        .shard = &engine->shard[shard],
        .copied = copied,
        .from = copied->first_row,
        .ranges = {.first = copied->first_row,
            .last = copied->last_row,
            .number = copied->number,
            .alloc = engine->alloc}};
    int err = it.counter == NULL ? 0 : get_ready(&it);
    if (err == 0) {
        shard__lock(it.shard);
        it.shard->n_evictions++;
        if (it.counter == NULL) {
            publish_fn(context);
        } else {
            err = evict(&it, slot, publish_fn, context);
        }
        shard__unlock(it.shard);
    }
    stays_fini(&it.stays);
    alloc_free(engine->alloc, it.ready, it.ready_capacity * sizeof *it.ready);
    alloc_free(engine->alloc, it.block, it.block_bytes);
    return err;
}
