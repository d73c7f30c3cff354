/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes out marks that are forgotten.
 *
 * A pass goes through the tables of each counter that has marks with forget=,
 * one table a step. A table's records are copied, and a mark that counts as
 * none by its source is deleted (tier/forgotten.h). A source of a fixed id is
 * read again for each few records of the copy, members of the own id for each.
 * Where the source is not in memory, its marks wait for another pass. */
#include "store/forgetter.h"

#include "base/assert.h"
#include "engine/cover.h"
#include "engine/engine_extents.h"

enum { LOOK_EVERY = 64 }; /* records between looks at fixed sources */

void
forgetter_init(
    struct forgetter *forgetter, const struct forgetter_config *config)
{
    ASSERT(config->engine != NULL && config->n_shards > 0);
    *forgetter =
        (struct forgetter){.magic = FORGETTER_MAGIC, .config = *config};
    forgetter->marks = (struct forgotten){.engine = config->engine,
        .qsbr = config->qsbr,
        .reader = &forgetter->reader};
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

/* Goes on to the next counter that has such marks, from it->slot on; false
 * where none follows. */
static bool
find_counter(struct forgetter *it)
{
    it->marks.n = 0;
    qsbr_online(it->config.qsbr, &it->reader);
    /* seq_cst: see store_schema */
    const struct schema *schema =
        atomic_load_explicit(it->config.schema, memory_order_seq_cst);
    while (it->slot < SCHEMA_COUNTERS_MAX) {
        forgotten_take(
            &it->marks, schema, schema_counter_at(schema, it->slot));
        if (it->marks.n > 0) {
            break;
        }
        it->slot++;
    }
    qsbr_offline(&it->reader);
    it->shard = 0;
    it->row = 0;
    return it->marks.n > 0;
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
        if (it->marks.n == 0 && !find_counter(it)) {
            return false;
        }
        for (; it->shard < it->config.n_shards; it->shard++, it->row = 0) {
            if (engine_extent(
                    it->config.engine, it->slot, it->shard, it->row, table)) {
                return true;
            }
        }
        it->slot++;
        it->marks.n = 0;
    }
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

/* Deletes what is forgotten of one mark, in all records of the copy. */
static void
forget(struct forgetter *it, const struct forgotten_mark *mark)
{
    const struct engine_rows *rows = &it->rows;
    const uint64_t *stored = codes_of(rows, mark->serial);
    const uint64_t *own =
        mark->is_fixed ? NULL : codes_of(rows, mark->source.serial);
    for (uint32_t i = 0; stored != NULL && i < rows->n; i++) {
        if (mark->is_fixed && i % LOOK_EVERY == 0) {
            forgotten_look(&it->marks);
        }
        const struct forgotten_found found = {
            .id = engine_id(it->config.engine, it->shard, rows->row[i]),
            .stored = stored[i],
            .own = own == NULL ? 0 : own[i]};
        if (forgotten_is(&it->marks, mark, &found)) {
            it->n_forgotten +=
                forgotten_delete(&it->marks, mark, &found, NULL) == 0;
        }
    }
}

/* A table of the counter; without memory it is left to another pass. */
static void
look_through(struct forgetter *it, const struct engine_extent *table)
{
    if (engine_copy_range(it->config.engine, it->slot, it->shard,
            table->first_row, table->last_row, &it->rows) != 0) {
        return;
    }
    for (unsigned k = 0; k < it->marks.n; k++) {
        forget(it, &it->marks.mark[k]);
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
        it->marks.n = 0;
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
