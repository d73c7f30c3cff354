/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies tables for checkpoints, and loads them again.
 *
 * A table is copied as it lies under its shard's lock, and the sink says its
 * position in the same hold: so the copy has all that the sink got of this
 * shard up to there. The counter's columns are noted too. All memory, also that
 * for reading the copy out, is there before: where it does not suffice, the
 * lock is left, more is taken, and the look begins again. So nothing can fail
 * once a table counts as unchanged.
 *
 * A copy's records are counted against its head when they are read out, and
 * their rows ascend within its range (table_copy.c). */
#include "engine/engine_copy.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine_columns.h"
#include "engine/engine_priv.h"
#include "engine/largest.h"
#include "engine/members_priv.h"
#include "engine/table_copy.h"

#include <string.h>

enum {
    SPARE_SHARE = 8, /* of a block: room to grow */
    PACK_ROUNDS = 8,
    PACK_ROUND_MS = 2000
};

void
engine_rows_fini(struct engine_rows *rows)
{
    alloc_free(rows->alloc, rows->block, rows->block_bytes);
    rows->block = NULL;
    rows->block_bytes = 0;
    rows->row = NULL;
    rows->n = 0;
    rows->number = 0;
    memset(rows->code, 0, sizeof rows->code);
}

static int
reserve(struct engine_rows *rows, size_t bytes)
{
    engine_rows_fini(rows);
    bytes += bytes / SPARE_SHARE;
    rows->block = alloc_zeroed(rows->alloc, bytes);
    if (rows->block == NULL) {
        return ERR_NO_MEMORY;
    }
    rows->block_bytes = bytes;
    return 0;
}

void
engine__take_columns(const struct view *view, struct engine_rows *rows)
{
    rows->n_columns = 0;
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        /* relaxed: 0 where it is being dropped, and then it is gone */
        uint32_t serial = atomic_load_explicit(
            &view->column[i].serial, memory_order_relaxed);
        if (serial != 0) {
            rows->column[rows->n_columns] = (uint8_t)i;
            rows->serial[rows->n_columns] = serial;
            rows->n_columns++;
        }
    }
}

bool
engine__has_columns(const struct view *view, const struct engine_rows *rows)
{
    struct engine_rows now;
    engine__take_columns(view, &now);
    return now.n_columns == rows->n_columns &&
        memcmp(now.column, rows->column, now.n_columns) == 0 &&
        memcmp(now.serial, rows->serial,
            now.n_columns * sizeof now.serial[0]) == 0;
}

/* Of the rows and codes that a copy is read out to. */
static size_t
numbers_bytes(const struct table *table, uint32_t n_columns)
{
    return (size_t)table->n_records * (1 + n_columns) * sizeof(uint64_t);
}

/* The range of a table, and a copy of it if it has changed; NULL with
 * *bytes = 0 where it has not, and with the size of the block that is needed
 * where rows have a smaller one. */
static const struct table *
take_table(struct engine_rows *rows, const struct table_owner *owner,
    struct table *table, size_t *bytes)
{
    table_owner_assert_held(owner);
    *bytes = 0;
    rows->first_row = table->base;
    rows->last_row = table->base + table->mask;
    if (table->is_clean) {
        return NULL;
    }
    size_t numbers = numbers_bytes(table, rows->n_columns);
    size_t all = numbers + table_copy_bytes(table);
    if (all > rows->block_bytes) {
        *bytes = all;
        return NULL;
    }
    ASSERT(rows->block != NULL);
    table->is_clean = true;
    return table_copy(table, (char *)rows->block + numbers);
}

static void
read_out(const struct engine *engine, const struct table *copy,
    struct engine_rows *rows)
{
    uint64_t *row = rows->block;
    uint64_t *code[SCHEMA_COLUMNS_MAX] = {NULL};
    for (unsigned i = 0; i < rows->n_columns; i++) {
        code[i] = row + (size_t)(i + 1) * copy->n_records;
        rows->code[i] = code[i];
    }
    rows->row = row;
    rows->n = table_copy_read(copy, &engine->perm, rows->has_empty,
        rows->n_columns, rows->column, row, code);
    ASSERT(rows->n <= copy->n_records);
    ASSERT(rows->n == 0 ||
        (row[0] >= rows->first_row && row[rows->n - 1] <= rows->last_row));
}

/* One look under the lock. Returns the table's copy, or NULL and in *bytes
 * what take_table says; *copied is set where *bytes is 0. */
static const struct table *
look(struct engine *engine, struct counter *counter, struct shard *shard,
    uint64_t from_row, struct engine_rows *rows, size_t *bytes,
    enum engine_copied *copied)
{
    const struct table *copy = NULL;
    struct ranges *ranges = NULL;
    struct table *table = NULL;
    *bytes = 0;
    shard__lock(shard);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    if (view != NULL) {
        ranges = &counter->ranges[shard - engine->shard];
        table = ranges_from(ranges, from_row);
        engine__take_columns(view, rows);
    }
    if (table != NULL) {
        copy = take_table(rows, ranges->owner, table, bytes);
        rows->has_empty =
            cover_keeps_any(&ranges->cover, rows->first_row, rows->last_row);
        *copied = copy == NULL ? ENGINE_COPY_CLEAN : ENGINE_COPY_DONE;
    } else {
        rows->first_row = from_row;
        rows->last_row = UINT64_MAX >> engine->shard_bits;
        *copied = ENGINE_COPY_END;
    }
    /* what comes behind is not the same again */
    ASSERT(table == NULL || rows->last_row >= from_row);
    if (*bytes == 0) {
        rows->position = engine->sink == NULL
            ? 0
            : engine->sink->write_fn(engine->sink, NULL, 0);
    }
    shard__unlock(shard);
    return copy;
}

int
engine_copy(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t from_row, struct engine_rows *rows, enum engine_copied *copied)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX && shard < engine->n_shards);
    struct counter *counter = engine__counter(engine, slot);
    size_t bytes;
    rows->n = 0;
    rows->n_columns = 0;
    rows->has_empty = false;
    for (;;) {
        const struct table *copy = look(engine, counter, &engine->shard[shard],
            from_row, rows, &bytes, copied);
        if (copy != NULL) {
            read_out(engine, copy, rows);
        }
        if (bytes == 0) {
            return 0;
        }
        int err = reserve(rows, bytes);
        if (err != 0) {
            return err;
        }
    }
}

void
engine_mark(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX && shard < engine->n_shards);
    struct counter *counter = engine__counter(engine, slot);
    bool more = counter != NULL;
    while (more) {
        shard__lock(&engine->shard[shard]);
        struct table *table = ranges_from(&counter->ranges[shard], first_row);
        more = table != NULL && table->base <= last_row;
        if (more) {
            table->is_clean = false;
            first_row = table->base + table->mask + 1;
            more = first_row > table->base && first_row <= last_row;
        }
        shard__unlock(&engine->shard[shard]);
    }
}

static void
set_loading(struct engine *engine, bool is_loading)
{
    /* relaxed: threads that load are started and joined in between */
    atomic_store_explicit(
        &engine->pool.is_loading, is_loading, memory_order_relaxed);
}

void
engine_begin_loading(struct engine *engine)
{
    set_loading(engine, true);
    engine__open_counted(engine, true);
}

void
engine_end_loading(struct engine *engine)
{
    uint64_t now_ms = 0;
    /* a table is packed when it has not grown for a while: so time passes */
    engine_drain(engine);
    for (unsigned i = 0; i < PACK_ROUNDS &&
         pool_used_bytes(&engine->pool) > engine->pool.limit_bytes;
         i++) {
        (void)engine_tend(engine, now_ms);
        now_ms += PACK_ROUND_MS;
    }
    set_loading(engine, false);
    engine__open_counted(engine, false);
    members__find_begin(engine);
}

void
engine_drain(struct engine *engine)
{
    pool_drain(&engine->pool);
}

void
engine_drain_excess(struct engine *engine)
{
    pool_drain_excess(&engine->pool);
}

struct carry_rows
engine__choose_columns(const struct view *view, const struct engine_rows *from)
{
    struct carry_rows rows = {.n = from->n, .row = from->row};
    for (unsigned i = 0; i < from->n_columns; i++) {
        unsigned slot = from->column[i];
        ASSERT(slot < SCHEMA_COLUMNS_MAX && from->serial[i] != 0);
        /* relaxed: as engine__take_columns */
        if (atomic_load_explicit(&view->column[slot].serial,
                memory_order_relaxed) == from->serial[i]) {
            rows.column[rows.n_columns] = (uint8_t)slot;
            rows.code[rows.n_columns] = from->code[i];
            rows.n_columns++;
        }
    }
    return rows;
}

/* The last record there is, for maxjump. */
static void
raise_last(const struct engine *engine, struct counter *counter,
    unsigned shard, const struct engine_rows *from,
    const struct carry_rows *rows)
{
    uint64_t code[SCHEMA_COLUMNS_MAX];
    for (size_t i = rows->n; i-- > 0;) {
        uint64_t row = rows->row[i];
        if (row < from->first_row) {
            return;
        }
        if (row <= from->last_row && row <= UINT64_MAX >> engine->shard_bits &&
            carry_codes(rows, i, code)) {
            counter__raise(counter, engine__id(engine, shard, row));
            return;
        }
    }
}

/* How many more records there are with these rows. Of those that are covered it
 * is not known whether the cover has them: it is taken that it has. */
static int64_t
count_live(const struct ranges *ranges, const struct engine_rows *rows,
    const struct carry_rows *records, uint64_t n_added)
{
    uint64_t code[SCHEMA_COLUMNS_MAX] = {0};
    int64_t n = 0;
    if (!cover_keeps_any(&ranges->cover, rows->first_row, rows->last_row)) {
        return (int64_t)n_added;
    }
    for (size_t i = 0; i < records->n; i++) {
        uint64_t row = records->row[i];
        if (row >= rows->first_row && row <= rows->last_row) {
            (void)carry_codes(records, i, code);
            n += !table_is_nothing(code) -
                (cover_version(&ranges->cover, row) != 0);
        }
    }
    return n;
}

int
engine_load(struct engine *engine, unsigned slot, unsigned shard,
    const struct engine_rows *rows)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX && shard < engine->n_shards);
    struct counter *counter = engine__counter(engine, slot);
    int err = 0;
    if (counter == NULL) {
        return 0;
    }
    shard__lock(&engine->shard[shard]);
    const struct view *view = counter__view(counter);
    if (view != NULL) {
        struct carry_rows records = engine__choose_columns(view, rows);
        struct ranges *ranges = &counter->ranges[shard];
        uint64_t n_before = ranges->n_records;
        records.cover = &ranges->cover;
        err = ranges_load(ranges, &records, rows->first_row, rows->last_row);
        if (err == 0) {
            ranges->n_live += count_live(
                ranges, rows, &records, ranges->n_records - n_before);
            raise_last(engine, counter, shard, rows, &records);
        }
    }
    shard__unlock(&engine->shard[shard]);
    return err;
}
