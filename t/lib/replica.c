/* SPDX-License-Identifier: BSD-3-Clause */

/* A replica knows of each id what it has and up to which position that holds.
 * A copy says it for all ids of a table, also of those that are not in it; a
 * table that counts as unchanged moves the position and leaves the values, so
 * that a change which was overlooked is missing in the end. */

#include "lib/replica.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

static uint64_t
write_down(
    struct engine_sink *sink, const struct engine_write *write, size_t n)
{
    struct journal *journal = (struct journal *)sink;
    ASSERT(n <= ENGINE_WRITES_MAX);
    mutex_lock(&journal->lock);
    journal->calls++;
    journal->empty_calls += n == 0;
    journal->position +=
        journal->group == 0 ? n > 0 : journal->calls % journal->group == 0;
    if (journal->n + n > journal->capacity) {
        journal->capacity = 2 * journal->capacity + ENGINE_WRITES_MAX;
        journal->entry = realloc(
            journal->entry, journal->capacity * sizeof(*journal->entry));
        ASSERT(journal->entry != NULL);
    }
    for (size_t i = 0; i < n; i++) {
        ASSERT(write[i].n <= SCHEMA_COLUMNS_MAX);
        ASSERT(write[i].n >= 1 || write[i].producer != 0);
        struct journal_entry *entry = &journal->entry[journal->n++];
        entry->position = journal->position;
        entry->write.id = write[i].id;
        entry->write.counter = write[i].counter;
        entry->write.producer = write[i].producer;
        entry->write.shard = write[i].shard;
        entry->write.number = write[i].number;
        entry->write.n = write[i].n;
        for (unsigned k = 0; k < write[i].n; k++) {
            entry->write.serial[k] = write[i].serial[k];
            entry->write.value[k] = write[i].value[k];
        }
    }
    uint64_t position = journal->position;
    mutex_unlock(&journal->lock);
    return position;
}

void
journal_init(struct journal *journal)
{
    memset(journal, 0, sizeof(*journal));
    journal->sink.write_fn = write_down;
    mutex_init(&journal->lock);
}

void
journal_fini(struct journal *journal)
{
    mutex_fini(&journal->lock);
    free(journal->entry);
}

void
replica_init(struct replica *replica, const struct engine *engine,
    const struct schema_counter *def, const uint64_t *id, size_t n)
{
    replica->def = *def;
    replica->n = n;
    replica->id = calloc(n, sizeof(*replica->id));
    ASSERT(replica->id != NULL);
    for (size_t i = 0; i < n; i++) {
        struct replica_id *it = &replica->id[i];
        it->id = id[i];
        engine_row(engine, id[i], &it->shard, &it->row);
        for (unsigned k = 0; k < def->n_columns; k++) {
            it->value[def->column[k].slot] = def->column[k].default_value;
        }
    }
}

void
replica_fini(struct replica *replica)
{
    free(replica->id);
}

void
replica_redefine(struct replica *replica, const struct schema_counter *def)
{
    uint32_t serial[SCHEMA_COLUMNS_MAX] = {0};
    for (unsigned k = 0; k < replica->def.n_columns; k++) {
        serial[replica->def.column[k].slot] = replica->def.column[k].serial;
    }
    for (unsigned k = 0; k < def->n_columns; k++) {
        const struct schema_column *column = &def->column[k];
        for (size_t i = 0;
             serial[column->slot] != column->serial && i < replica->n; i++) {
            replica->id[i].value[column->slot] = column->default_value;
        }
    }
    replica->def = *def;
}

static struct replica_id *
find_id(const struct replica *replica, uint64_t id)
{
    size_t first = 0;
    size_t end = replica->n;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (replica->id[middle].id < id) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < replica->n && replica->id[first].id == id
        ? &replica->id[first]
        : NULL;
}

static const struct schema_column *
find_column(const struct replica *replica, uint32_t serial)
{
    for (unsigned k = 0; k < replica->def.n_columns; k++) {
        if (replica->def.column[k].serial == serial) {
            return &replica->def.column[k];
        }
    }
    return NULL;
}

static void
apply(const struct replica *replica, struct replica_id *it,
    const struct engine_write *write)
{
    for (unsigned k = 0; k < write->n; k++) {
        const struct schema_column *column =
            find_column(replica, write->serial[k]);
        if (column != NULL) {
            it->value[column->slot] = write->value[k];
        }
    }
}

void
replica_notice(
    struct replica *replica, const struct journal *journal, size_t from)
{
    for (size_t i = from; i < journal->n; i++) {
        const struct engine_write *write = &journal->entry[i].write;
        if (write->counter == replica->def.slot) {
            struct replica_id *it = find_id(replica, write->id);
            ASSERT(it != NULL);
            it->is_changed = true;
        }
    }
}

void
replica_replay(struct replica *replica, const struct journal *journal)
{
    for (size_t i = 0; i < journal->n; i++) {
        const struct journal_entry *entry = &journal->entry[i];
        if (entry->write.counter != replica->def.slot) {
            continue;
        }
        struct replica_id *it = find_id(replica, entry->write.id);
        ASSERT(it != NULL);
        if (entry->position > it->position ||
            (journal->group > 0 && entry->position == it->position)) {
            apply(replica, it, &entry->write);
        }
    }
}

/* The codes of a copy are zigzag of the distance to the default. */
static uint64_t
value_of(const struct schema_column *column, uint64_t code)
{
    uint64_t half = code / 2;
    if (column->default_value == 0) {
        return code;
    }
    return code % 2 == 0 ? column->default_value + half
                         : column->default_value - half - 1;
}

/* The index of a row in a copy, or -1. */
static ptrdiff_t
index_of(const struct engine_rows *rows, uint64_t row)
{
    size_t first = 0;
    size_t end = rows->n;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (rows->row[middle] < row) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first < rows->n && rows->row[first] == row ? (ptrdiff_t)first : -1;
}

static void
set(const struct replica *replica, struct replica_id *it,
    const struct engine_rows *rows, ptrdiff_t at)
{
    for (unsigned k = 0; k < replica->def.n_columns; k++) {
        const struct schema_column *column = &replica->def.column[k];
        it->value[column->slot] = column->default_value;
    }
    for (unsigned k = 0; at >= 0 && k < rows->n_columns; k++) {
        const struct schema_column *column =
            find_column(replica, rows->serial[k]);
        if (column != NULL) {
            ASSERT(column->slot == rows->column[k]);
            it->value[column->slot] = value_of(column, rows->code[k][at]);
        }
    }
    it->position = rows->position;
    it->is_changed = false;
}

/* What must be true of every copy. */
static void
check_rows(const struct engine_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        uint64_t any = 0;
        ASSERT(rows->row[i] >= rows->first_row);
        ASSERT(rows->row[i] <= rows->last_row);
        ASSERT(i == 0 || rows->row[i - 1] < rows->row[i]);
        for (unsigned k = 0; k < rows->n_columns; k++) {
            any |= rows->code[k][i];
        }
        ASSERT(any != 0);
    }
    for (unsigned k = 1; k < rows->n_columns; k++) {
        ASSERT(rows->column[k - 1] < rows->column[k]);
    }
}

size_t
replica_take(struct replica *replica, unsigned shard, uint64_t from_row,
    const struct engine_rows *rows, enum engine_copied copied)
{
    size_t n_changed = 0;
    size_t n_found = 0;
    check_rows(rows);
    for (size_t i = 0; i < replica->n; i++) {
        struct replica_id *it = &replica->id[i];
        if (it->shard != shard) {
            continue;
        }
        if (copied == ENGINE_COPY_END || it->row < rows->first_row) {
            if (it->row >= from_row) {
                set(replica, it, rows, -1);
            }
        } else if (it->row <= rows->last_row) {
            n_changed += it->is_changed;
            if (copied == ENGINE_COPY_DONE) {
                ptrdiff_t at = index_of(rows, it->row);
                set(replica, it, rows, at);
                n_found += at >= 0;
            }
            /* else it has not changed up to there */
            it->position = rows->position;
        }
    }
    ASSERT(n_found == rows->n);
    return n_changed;
}

void
replica_check(const struct replica *replica, struct engine *engine)
{
    for (size_t i = 0; i < replica->n; i++) {
        const struct replica_id *it = &replica->id[i];
        for (unsigned k = 0; k < replica->def.n_columns; k++) {
            const struct schema_column *column = &replica->def.column[k];
            struct cell_key key = {.id = it->id,
                .serial = column->serial,
                .counter = replica->def.slot,
                .column = column->slot};
            uint64_t value;
            uint8_t state;
            engine_get(engine, &key, 1, &value, &state);
            ASSERT(state != CELL_GONE);
            ASSERT(value == it->value[column->slot]);
        }
    }
}

struct replica
replica_copy(const struct replica *replica)
{
    struct replica copy = *replica;
    copy.id = calloc(replica->n, sizeof(*copy.id));
    ASSERT(copy.id != NULL);
    memcpy(copy.id, replica->id, replica->n * sizeof(*copy.id));
    return copy;
}

void
replica_pass(struct replica *replica, struct engine *engine, unsigned shards,
    struct engine_rows *rows, size_t count[3])
{
    memset(count, 0, 3 * sizeof(*count));
    for (unsigned shard = 0; shard < shards; shard++) {
        enum engine_copied copied = ENGINE_COPY_DONE;
        uint64_t from = 0;
        uint64_t most = UINT64_MAX >> __builtin_ctz(shards);
        while (copied != ENGINE_COPY_END && from <= most) {
            ASSERT(engine_copy(engine, replica->def.slot, shard, from, rows,
                       &copied) == 0);
            (void)replica_take(replica, shard, from, rows, copied);
            count[copied]++;
            if (copied != ENGINE_COPY_END) {
                ASSERT(rows->last_row >= from);
                from = rows->last_row + 1;
                if (from == 0) {
                    break;
                }
            }
        }
    }
}
