/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes out marks that are forgotten.
 *
 * A pass goes through the tables of each counter that has marks with forget=,
 * one table a step. A table's records are copied; a mark that counts as none by
 * its source is deleted, but only where it is still what was copied. A source
 * of a fixed id is read before the copy: it may be older then, and so forgets
 * less. Where it is in a segment, its marks wait for another pass. */
#include "store/forgetter.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "engine/cell.h"
#include "engine/cover.h"
#include "engine/engine_extents.h"

void
forgetter_init(
    struct forgetter *forgetter, const struct forgetter_config *config)
{
    ASSERT(config->engine != NULL && config->n_shards > 0);
    *forgetter =
        (struct forgetter){.magic = FORGETTER_MAGIC, .config = *config};
    qsbr_register(config->qsbr, &forgetter->reader);
}

void
forgetter_fini(struct forgetter *forgetter)
{
    ASSERT(forgetter->magic == FORGETTER_MAGIC);
    qsbr_unregister(forgetter->config.qsbr, &forgetter->reader);
    engine_rows_fini(&forgetter->rows);
    forgetter->magic = 0;
}

/* Takes over a mark with forget= of a counter. Sources that are members have no
 * value of their own. */
static void
take_mark(struct forgetter *it, const struct schema *schema,
    const struct schema_counter *counter, const struct schema_column *column)
{
    struct schema_target source;
    if (column->kind != SCHEMA_MARK || column->forget == 0 ||
        !schema_source(schema, counter, column, &source) ||
        source.column->kind != SCHEMA_NUMBER) {
        return;
    }
    ASSERT(it->n < SCHEMA_COLUMNS_MAX);
    it->mark[it->n] = (struct forgetter_mark){.serial = column->serial,
        .column = column->slot,
        .is_fixed = column->source.is_fixed,
        .source = column->source,
        .source_column = source.column->slot,
        .source_default = source.column->default_value,
        .forget = column->forget};
    it->mark[it->n++].source.counter = source.counter->slot;
}

/* Goes on to the next counter that has such marks, from it->slot on; false
 * where none follows. */
static bool
find_counter(struct forgetter *it)
{
    it->n = 0;
    qsbr_online(it->config.qsbr, &it->reader);
    /* seq_cst: see store_schema */
    const struct schema *schema =
        atomic_load_explicit(it->config.schema, memory_order_seq_cst);
    while (it->slot < SCHEMA_COUNTERS_MAX) {
        const struct schema_counter *counter =
            schema_counter_at(schema, it->slot);
        for (unsigned i = 0; counter != NULL && i < counter->n_columns; i++) {
            take_mark(it, schema, counter, &counter->column[i]);
        }
        if (it->n > 0) {
            break;
        }
        it->slot++;
    }
    qsbr_offline(&it->reader);
    it->shard = 0;
    it->row = 0;
    return it->n > 0;
}

static bool
pause_pass(struct forgetter *it, uint64_t now_ms)
{
    it->is_in_pass = false;
    it->pauses = true;
    it->paused_ms = now_ms;
    return false;
}

/* The next table of the pass; false where it has come to its end. */
static bool
find_table(struct forgetter *it, struct engine_extent *table)
{
    for (;;) {
        if (it->n == 0 && !find_counter(it)) {
            return false;
        }
        for (; it->shard < it->config.n_shards; it->shard++, it->row = 0) {
            if (engine_extent(
                    it->config.engine, it->slot, it->shard, it->row, table)) {
                return true;
            }
        }
        it->slot++;
        it->n = 0;
    }
}

/* What the source of a mark is, if it is one of a fixed id that is here; else
 * 0, of which nothing is far below. */
static uint64_t
fixed_source(const struct forgetter *it, const struct forgetter_mark *mark)
{
    const struct cell_key key = {mark->source.id, mark->source.serial,
        mark->source.counter, mark->source_column};
    struct engine_found found;
    uint64_t value;
    uint8_t state;
    engine_look(it->config.engine, &key, 1, &value, &state, &found);
    bool is_known = found.is_here || found.version == 0;
    return is_known && state != CELL_GONE ? value : 0;
}

/* The codes of a column in the copy, or NULL where it is not in it. */
static const uint64_t *
codes_of(const struct engine_rows *rows, uint32_t serial)
{
    for (unsigned i = 0; i < rows->n_columns; i++) {
        if (rows->serial[i] == serial) {
            return rows->code[i];
        }
    }
    return NULL;
}

/* Deletes a mark that is still what it was. It may be another one by now, or in
 * a segment, or the column may be gone: then it stays. */
static void
delete_mark(struct forgetter *it, uint64_t row,
    const struct forgetter_mark *mark, uint64_t value)
{
    struct change change = {.id = engine_id(it->config.engine, it->shard, row),
        .cas = cell_cas(value),
        .op = CHANGE_DELETE,
        .compares = true,
        .counter = (uint8_t)it->slot,
        .n_columns = 1,
        .column = {mark->column},
        .serial = {mark->serial}};
    (void)engine_change(it->config.engine, &change, 1);
    it->n_forgotten += change.err == 0;
}

/* Deletes what is forgotten of one mark, in all records of the copy. */
static void
forget(struct forgetter *it, const struct forgetter_mark *mark, uint64_t fixed)
{
    const struct engine_rows *rows = &it->rows;
    const uint64_t *stored = codes_of(rows, mark->serial);
    const uint64_t *own =
        mark->is_fixed ? NULL : codes_of(rows, mark->source.serial);
    for (uint32_t i = 0; stored != NULL && i < rows->n; i++) {
        uint64_t source = mark->is_fixed ? fixed
            : own == NULL                ? mark->source_default
                          : bytes_of_code(own[i], mark->source_default);
        if (stored[i] != 0 &&
            mark_position(stored[i], source, mark->forget) == 0) {
            delete_mark(it, rows->row[i], mark, stored[i]);
        }
    }
}

/* A table of the counter; without memory it is left to another pass. */
static void
look_through(struct forgetter *it, const struct engine_extent *table)
{
    uint64_t fixed[SCHEMA_COLUMNS_MAX];
    for (unsigned k = 0; k < it->n; k++) {
        fixed[k] = it->mark[k].is_fixed ? fixed_source(it, &it->mark[k]) : 0;
    }
    if (engine_copy_range(it->config.engine, it->slot, it->shard,
            table->first_row, table->last_row, &it->rows) != 0) {
        return;
    }
    for (unsigned k = 0; k < it->n; k++) {
        forget(it, &it->mark[k], fixed[k]);
    }
}

bool
forgetter_step(struct forgetter *it, uint64_t now_ms)
{
    struct engine_extent table;
    ASSERT(it->magic == FORGETTER_MAGIC);
    if (it->config.wal != NULL && wal_fault(it->config.wal) != 0) {
        return false;
    }
    if (!it->is_in_pass) {
        if (!it->pauses) {
            return pause_pass(it, now_ms);
        }
        if (now_ms - it->paused_ms < FORGETTER_PAUSE_MS) {
            return false;
        }
        it->is_in_pass = true;
        it->slot = 0;
        it->n = 0;
    }
    if (!find_table(it, &table)) {
        return pause_pass(it, now_ms);
    }
    ASSERT(table.last_row >= it->row);
    look_through(it, &table);
    if (table.last_row == UINT64_MAX) {
        it->shard++;
        it->row = 0;
    } else {
        it->row = table.last_row + 1;
    }
    return true;
}
