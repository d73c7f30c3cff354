/* SPDX-License-Identifier: BSD-3-Clause */

/* A shard: for each counter what its columns are now, and a table of its
 * records, all under one lock. The table knows codes; here they get their
 * meaning: code 0 is the column's default, and what lies between a value and
 * its code is below (encode, decode).
 *
 * Invariants (shard_verify): a slot without a column holds no codes; every
 * stored value is within its column's max; the serials of a counter's columns
 * differ, and what names another serial than the one in the slot is gone.
 *
 * Happy path of a change: look the record up, work all new values out in
 * change->value, write them at once. Only the write can run out of memory, and
 * then it has changed nothing, so a change is all or nothing.
 *
 * The lock is held for the length of one call: for a get some 10 to 100 ns a
 * cell, for a change that lets a table grow as long as it takes to copy it. */

#include "engine/shard.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/table.h"

#include <pthread.h>
#include <stdbool.h>

enum {
    LINE_BYTES = 64, /* a cache line, or a multiple of one */
    GET_BATCH = 32   /* rows under way from memory at once */
};

_Static_assert((int)TABLE_CELLS_MAX == (int)SCHEMA_COLUMNS_MAX,
    "every column slot has its cell");

struct column {
    uint64_t default_value;
    uint64_t max;
    uint32_t serial; /* 0: no column in this slot */
};

struct counter {
    struct table table;
    struct column column[SCHEMA_COLUMNS_MAX];
    bool absent_is_miss;
    bool overflow_is_error;
};

struct shard {
    _Alignas(LINE_BYTES) pthread_mutex_t lock;
    const struct alloc *alloc; /* read-only */
    uint64_t key;              /* read-only: of the tables' hash */
    void *block;               /* read-only: what alloc gave */
    struct counter *counter[SCHEMA_COUNTERS_MAX]; /* under lock; owned */
};

static const size_t BLOCK_BYTES = sizeof(struct shard) + LINE_BYTES - 1;

static void
enter(struct shard *shard)
{
    ASSERT(pthread_mutex_lock(&shard->lock) == 0);
}

static void
leave(struct shard *shard)
{
    ASSERT(pthread_mutex_unlock(&shard->lock) == 0);
}

/* A column with default 0 stores its values as they are. Else zigzag of the
 * distance to the default, modulo 2^64: 0, -1, 1, -2 ... become 0, 1, 2, 3. */
static uint64_t
encode(const struct column *column, uint64_t value)
{
    uint64_t distance = value - column->default_value;
    if (column->default_value == 0) {
        return value;
    }
    return (distance << 1) ^ (0 - (distance >> 63));
}

static uint64_t
decode(const struct column *column, uint64_t code)
{
    if (column->default_value == 0) {
        return code;
    }
    return column->default_value + ((code >> 1) ^ (0 - (code & 1)));
}

static uint64_t
read_value(const struct counter *counter, const uint8_t *row, unsigned slot)
{
    const struct column *column = &counter->column[slot];
    if (row == NULL) {
        return column->default_value;
    }
    return decode(column, table_code(&counter->table, row, slot));
}

static bool
column_is_live(const struct counter *counter, unsigned slot, uint32_t serial)
{
    ASSERT(slot < SCHEMA_COLUMNS_MAX);
    return counter != NULL && serial != 0 &&
        counter->column[slot].serial == serial;
}

struct shard *
shard_create(const struct alloc *alloc, uint64_t key)
{
    void *block = alloc_zeroed(alloc, BLOCK_BYTES);
    if (block == NULL) {
        return NULL;
    }
    uintptr_t at = (uintptr_t)block + LINE_BYTES - 1;
    struct shard *shard = (void *)(at - at % LINE_BYTES);
    shard->alloc = alloc;
    shard->key = key;
    shard->block = block;
    if (pthread_mutex_init(&shard->lock, NULL) != 0) {
        alloc_free(alloc, block, BLOCK_BYTES);
        return NULL;
    }
    return shard;
}

void
shard_destroy(struct shard **shard)
{
    struct shard *it = *shard;
    if (it == NULL) {
        return;
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        shard_undefine(it, slot);
    }
    ASSERT(pthread_mutex_destroy(&it->lock) == 0);
    alloc_free(it->alloc, it->block, BLOCK_BYTES);
    *shard = NULL;
}

/* Fills column[] by slot from the schema's list. */
static void
read_columns(const struct schema_counter *from, struct column *column)
{
    for (unsigned i = 0; i < from->n_columns; i++) {
        const struct schema_column *it = &from->column[i];
        ASSERT(it->slot < SCHEMA_COLUMNS_MAX && column[it->slot].serial == 0);
        ASSERT(it->max_bits >= 1 && it->max_bits <= SCHEMA_BITS_MAX);
        ASSERT(it->hint_bits <= SCHEMA_BITS_MAX && it->serial != 0);
        ASSERT(it->default_value <= schema_column_max(it));
        column[it->slot] = (struct column){
            .default_value = it->default_value,
            .max = schema_column_max(it),
            .serial = it->serial,
        };
    }
}

/* Drops what is not in column[], then takes column[] over. */
static int
take_columns(struct counter *counter, const struct schema_counter *from)
{
    struct column column[SCHEMA_COLUMNS_MAX] = {0};
    read_columns(from, column);
    unsigned dropped = 0;
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        if (column[i].serial != counter->column[i].serial) {
            dropped |= 1U << i;
        }
    }
    int err = table_drop(&counter->table, dropped);
    if (err != 0) {
        return err;
    }
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        counter->column[i] = column[i];
    }
    for (unsigned i = 0; i < from->n_columns; i++) {
        table_hint(&counter->table, from->column[i].slot,
            (from->column[i].hint_bits + 7U) / 8);
    }
    counter->absent_is_miss = from->absent_is_miss;
    counter->overflow_is_error = from->overflow_is_error;
    return 0;
}

static int
define(struct shard *shard, const struct schema_counter *from)
{
    struct counter *counter = shard->counter[from->slot];
    if (counter == NULL) {
        counter = alloc_zeroed(shard->alloc, sizeof(*counter));
        if (counter == NULL) {
            return ERR_NO_MEMORY;
        }
        table_init(&counter->table, shard->alloc, shard->key);
        shard->counter[from->slot] = counter;
    }
    return take_columns(counter, from);
}

int
shard_define(struct shard *shard, const struct schema_counter *counter)
{
    enter(shard);
    int err = define(shard, counter);
    leave(shard);
    return err;
}

void
shard_undefine(struct shard *shard, unsigned slot)
{
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    enter(shard);
    struct counter *counter = shard->counter[slot];
    if (counter != NULL) {
        table_fini(&counter->table);
        alloc_free(shard->alloc, counter, sizeof(*counter));
        shard->counter[slot] = NULL;
    }
    leave(shard);
}

static bool
is_same_record(const struct cell_key *a, const struct cell_key *b)
{
    return a->id == b->id && a->counter == b->counter;
}

static void
prefetch_rows(const struct shard *shard, const struct cell_key *key,
    const uint16_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct cell_key *it = &key[order[i]];
        const struct counter *counter = shard->counter[it->counter];
        if (i > 0 && is_same_record(it, &key[order[i - 1]])) {
            continue;
        }
        if (counter != NULL) {
            table_prefetch(&counter->table, it->id);
        }
    }
}

static void
read_cells(const struct shard *shard, const struct cell_key *key,
    const uint16_t *order, size_t n, uint64_t *value, uint8_t *state)
{
    const struct cell_key *found = NULL; /* the key that row was found by */
    const uint8_t *row = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct cell_key *it = &key[order[i]];
        const struct counter *counter = shard->counter[it->counter];
        if (!column_is_live(counter, it->column, it->serial)) {
            value[order[i]] = 0;
            state[order[i]] = CELL_GONE;
            continue;
        }
        if (found == NULL || !is_same_record(found, it)) {
            row = table_find(&counter->table, it->id);
            found = it;
        }
        uint64_t now = read_value(counter, row, it->column);
        bool is_set = now != counter->column[it->column].default_value;
        value[order[i]] = now;
        state[order[i]] = is_set ? CELL_SET : CELL_DEFAULT;
    }
}

void
shard_get(struct shard *shard, const struct cell_key *key,
    const uint16_t *order, size_t n, uint64_t *value, uint8_t *state)
{
    enter(shard);
    while (n > 0) {
        size_t batch = n < GET_BATCH ? n : GET_BATCH;
        prefetch_rows(shard, key, order, batch);
        read_cells(shard, key, order, batch, value, state);
        order += batch;
        n -= batch;
    }
    leave(shard);
}

/* Reads the values of the columns named into change->value; returns how many
 * of them differ from their defaults. */
static unsigned
read_record(const struct counter *counter, struct change *change)
{
    const uint8_t *row = table_find(&counter->table, change->id);
    unsigned n_set = 0;
    for (unsigned i = 0; i < change->n_columns; i++) {
        unsigned slot = change->column[i];
        change->value[i] = read_value(counter, row, slot);
        n_set += change->value[i] != counter->column[slot].default_value;
    }
    return n_set;
}

static int
assign(const struct counter *counter, struct change *change, unsigned n_set)
{
    for (unsigned i = 0; i < change->n_columns; i++) {
        if (change->operand[i] > counter->column[change->column[i]].max) {
            return ERR_OVER_MAX;
        }
    }
    if (change->op == CHANGE_ADD && n_set > 0) {
        return ERR_NOT_STORED;
    }
    if (change->op == CHANGE_REPLACE && n_set == 0) {
        return ERR_NOT_STORED;
    }
    if (change->op == CHANGE_CAS) {
        if (counter->absent_is_miss && n_set == 0) {
            return ERR_NOT_FOUND;
        }
        if (cell_cas(change->value[0]) != change->cas) {
            return ERR_EXISTS;
        }
    }
    for (unsigned i = 0; i < change->n_columns; i++) {
        change->value[i] = change->operand[i];
    }
    return 0;
}

static int
increment(const struct counter *counter, struct change *change)
{
    uint8_t n_saturated = 0;
    for (unsigned i = 0; i < change->n_columns; i++) {
        uint64_t max = counter->column[change->column[i]].max;
        if (change->operand[i] <= max - change->value[i]) {
            change->value[i] += change->operand[i];
        } else if (counter->overflow_is_error) {
            return ERR_OVERFLOW;
        } else {
            change->value[i] = max;
            n_saturated++;
        }
    }
    change->n_saturated = n_saturated;
    return 0;
}

static void
decrement(struct change *change)
{
    for (unsigned i = 0; i < change->n_columns; i++) {
        uint64_t value = change->value[i];
        uint64_t delta = change->operand[i];
        change->value[i] = delta < value ? value - delta : 0;
    }
}

static int
clear(const struct counter *counter, struct change *change, unsigned n_set)
{
    if (n_set == 0) {
        return ERR_NOT_FOUND;
    }
    for (unsigned i = 0; i < change->n_columns; i++) {
        change->value[i] = counter->column[change->column[i]].default_value;
    }
    return 0;
}

/* Turns the values now in change->value into those to be stored. */
static int
work_out(const struct counter *counter, struct change *change, unsigned n_set)
{
    switch (change->op) {
    case CHANGE_INCR:
        return increment(counter, change);
    case CHANGE_DECR:
        decrement(change);
        return 0;
    case CHANGE_DELETE:
        return clear(counter, change, n_set);
    case CHANGE_SET:
    case CHANGE_ADD:
    case CHANGE_REPLACE:
    case CHANGE_CAS:
        break;
    }
    return assign(counter, change, n_set);
}

static int
change_record(struct shard *shard, struct change *change)
{
    struct counter *counter = shard->counter[change->counter];
    for (unsigned i = 0; i < change->n_columns; i++) {
        if (!column_is_live(counter, change->column[i], change->serial[i])) {
            return ERR_GONE;
        }
    }
    unsigned n_set = read_record(counter, change);
    int err = work_out(counter, change, n_set);
    if (err != 0) {
        return err;
    }
    struct table_write write[SCHEMA_COLUMNS_MAX];
    for (unsigned i = 0; i < change->n_columns; i++) {
        unsigned slot = change->column[i];
        write[i].slot = slot;
        write[i].code = encode(&counter->column[slot], change->value[i]);
    }
    return table_write(&counter->table, change->id, write, change->n_columns);
}

static void
check_form(const struct change *change)
{
    ASSERT(change->n_columns >= 1 && change->n_columns <= SCHEMA_COLUMNS_MAX);
    ASSERT(change->op != CHANGE_CAS || change->n_columns == 1);
    unsigned seen = 0;
    for (unsigned i = 0; i < change->n_columns; i++) {
        ASSERT(change->column[i] < SCHEMA_COLUMNS_MAX);
        ASSERT((seen >> change->column[i] & 1) == 0);
        seen |= 1U << change->column[i];
    }
}

void
shard_change(struct shard *shard, struct change *change)
{
    check_form(change);
    change->n_saturated = 0;
    enter(shard);
    change->err = change_record(shard, change);
    leave(shard);
    if (change->err != 0) {
        change->n_saturated = 0;
    }
}

struct shard_sum
shard_sum(struct shard *shard, unsigned slot)
{
    struct shard_sum sum = {0};
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    enter(shard);
    const struct counter *counter = shard->counter[slot];
    if (counter != NULL) {
        sum.records = counter->table.count;
        sum.bytes = sizeof(*counter) + table_bytes(&counter->table);
    }
    leave(shard);
    return sum;
}

static void
verify_column(const struct counter *counter, unsigned slot)
{
    const struct column *column = &counter->column[slot];
    const struct table *table = &counter->table;
    if (column->serial == 0) {
        ASSERT(table->cell[slot].width == 0);
        return;
    }
    for (unsigned i = 0; i < slot; i++) {
        ASSERT(counter->column[i].serial != column->serial);
    }
    for (size_t i = 0; i < table->capacity; i++) {
        const uint8_t *row = table_row_at(table, i);
        if (row != NULL) {
            uint64_t value = read_value(counter, row, slot);
            ASSERT(value <= column->max);
            ASSERT(encode(column, value) == table_code(table, row, slot));
        }
    }
}

void
shard_verify(struct shard *shard)
{
    enter(shard);
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct counter *counter = shard->counter[i];
        if (counter != NULL) {
            table_verify(&counter->table);
            for (unsigned j = 0; j < SCHEMA_COLUMNS_MAX; j++) {
                verify_column(counter, j);
            }
        }
    }
    leave(shard);
}
