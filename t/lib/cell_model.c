/* SPDX-License-Identifier: BSD-3-Clause */

/* The model of one counter that engines are compared to. Values of a slot that
 * has no column are kept at 0 and mean nothing. */

#include "lib/cell_model.h"

#include "base/assert.h"
#include "base/err.h"
#include "lib/id_family.h"

#include <stdlib.h>
#include <string.h>

enum {
    COLUMNS = SCHEMA_COLUMNS_MAX,
    STALE_EACH = 256, /* of so many changes one names a dropped column */
    WIDE_EACH = 32    /* and one sets a value wider than usual */
};

static unsigned
below(struct dist_rng *rng, unsigned n)
{
    return (unsigned)(dist_rng_u64(rng) % n);
}

static uint64_t
bits(struct dist_rng *rng, unsigned n)
{
    return n == 0 ? 0 : dist_rng_u64(rng) >> (64 - n);
}

void
cell_model_init(struct cell_model *model, unsigned slot, unsigned family,
    uint64_t seed, size_t n)
{
    *model = (struct cell_model){.n = n,
        .def = {.slot = (uint8_t)slot, .serial = slot + 1},
        .last_serial = slot << 20};
    model->id = calloc(n, sizeof(*model->id));
    model->value = calloc(n, sizeof(*model->value));
    ASSERT(model->id != NULL && model->value != NULL);
    id_family_make((enum id_family)family, seed, n, model->id);
}

void
cell_model_fini(struct cell_model *model)
{
    free(model->id);
    free(model->value);
    *model = (struct cell_model){0};
}

ptrdiff_t
cell_model_find(const struct cell_model *model, uint64_t id)
{
    size_t low = 0, high = model->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (model->id[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool is_here = low < model->n && model->id[low] == id;
    return is_here ? (ptrdiff_t)low : CELL_MODEL_NONE;
}

const struct schema_column *
cell_model_column(const struct cell_model *model, unsigned slot)
{
    for (unsigned i = 0; i < model->def.n_columns; i++) {
        if (model->def.column[i].slot == slot) {
            return &model->def.column[i];
        }
    }
    return NULL;
}

static bool
is_record(const struct cell_model *model, size_t i)
{
    for (unsigned k = 0; k < model->def.n_columns; k++) {
        const struct schema_column *column = &model->def.column[k];
        if (model->value[i][column->slot] != column->default_value) {
            return true;
        }
    }
    return false;
}

static void
count_records(struct cell_model *model)
{
    model->records = 0;
    for (size_t i = 0; i < model->n; i++) {
        model->records += is_record(model, i);
    }
}

static void
fill_slot(struct cell_model *model, unsigned slot, uint64_t value)
{
    for (size_t i = 0; i < model->n; i++) {
        model->value[i][slot] = value;
    }
}

void
cell_model_clear(struct cell_model *model)
{
    for (unsigned i = 0; i < model->def.n_columns; i++) {
        const struct schema_column *column = &model->def.column[i];
        fill_slot(model, column->slot, column->default_value);
    }
    model->records = 0;
    model->has_largest = false;
}

/* Attributes and serial; the slot stays. */
static void
make_column(struct cell_model *model, struct schema_column *column,
    struct dist_rng *rng)
{
    unsigned max_bits = below(rng, 2) == 0 ? 64 : 1 + below(rng, 64);
    unsigned default_bits = below(rng, 3) == 0 ? below(rng, max_bits + 1) : 0;
    column->serial = ++model->last_serial;
    column->max_bits = (uint8_t)max_bits;
    column->hint_bits = (uint8_t)below(rng, max_bits + 1);
    column->default_value = bits(rng, default_bits);
    fill_slot(model, column->slot, column->default_value);
}

struct schema_column *
cell_model_add_column(struct cell_model *model, struct dist_rng *rng)
{
    ASSERT(model->def.n_columns < COLUMNS);
    unsigned slot = below(rng, COLUMNS);
    while (cell_model_column(model, slot) != NULL) {
        slot = (slot + 1) % COLUMNS;
    }
    struct schema_column *column = &model->def.column[model->def.n_columns++];
    *column = (struct schema_column){.slot = (uint8_t)slot};
    make_column(model, column, rng);
    return column;
}

void
cell_model_drop_column(struct cell_model *model, unsigned i)
{
    model->old_serial = model->def.column[i].serial;
    model->old_slot = model->def.column[i].slot;
    fill_slot(model, model->old_slot, 0);
    model->def.column[i] = model->def.column[--model->def.n_columns];
    count_records(model);
}

void
cell_model_renew_column(
    struct cell_model *model, unsigned i, struct dist_rng *rng)
{
    model->old_serial = model->def.column[i].serial;
    model->old_slot = model->def.column[i].slot;
    make_column(model, &model->def.column[i], rng);
    count_records(model);
}

void
cell_model_redefine(struct cell_model *model, struct dist_rng *rng)
{
    unsigned n = model->def.n_columns;
    unsigned i = (unsigned)(dist_rng_u64(rng) % n);
    if (n > 2 && dist_rng_u64(rng) % 2 == 0) {
        cell_model_drop_column(model, i);
    } else if (n < SCHEMA_COLUMNS_MAX && dist_rng_u64(rng) % 2 == 0) {
        (void)cell_model_add_column(model, rng);
    } else {
        cell_model_renew_column(model, i, rng);
    }
}

enum cell_state
cell_model_get(const struct cell_model *model, const struct cell_key *key,
    uint64_t *value_out)
{
    const struct schema_column *column = cell_model_column(model, key->column);
    *value_out = 0;
    if (column == NULL || column->serial != key->serial) {
        return CELL_GONE;
    }
    ptrdiff_t i = cell_model_find(model, key->id);
    *value_out = i == CELL_MODEL_NONE ? column->default_value
                                      : model->value[i][column->slot];
    return *value_out == column->default_value ? CELL_DEFAULT : CELL_SET;
}

/* Around the borders and of all widths, but mostly as the mood has it. */
static uint64_t
random_operand(const struct schema_column *column, struct dist_rng *rng,
    const struct cell_mood *mood)
{
    uint64_t max = schema_column_max(column);
    unsigned width = mood->value_bits < column->max_bits ? mood->value_bits
                                                         : column->max_bits;
    if (below(rng, WIDE_EACH) > 0) {
        return bits(rng, 1 + below(rng, width));
    }
    switch (below(rng, 8)) {
    case 0:
        return column->default_value;
    case 1:
        return column->default_value + 1;
    case 2:
        return column->default_value - 1;
    case 3:
        return max - below(rng, 2);
    case 4:
        return max + 1;
    default:
        return bits(rng, 1 + below(rng, column->max_bits));
    }
}

static uint64_t
random_climb(
    const struct schema_column *column, struct dist_rng *rng, uint64_t value)
{
    uint64_t max = schema_column_max(column);
    switch (below(rng, 16)) {
    case 0:
        return max - value;
    case 1:
        return max - value + 1;
    case 2:
        return UINT64_MAX;
    case 3:
        return bits(rng, 1 + below(rng, column->max_bits));
    default:
        return value == 0 ? 1 : value;
    }
}

static enum change_op
random_op(struct dist_rng *rng)
{
    unsigned dice = below(rng, 24);
    return dice <= CHANGE_DELETE ? (enum change_op)dice : CHANGE_INCR;
}

static void
make_stale(const struct cell_model *model, struct dist_rng *rng,
    struct change *change)
{
    if (below(rng, 2) == 0 || model->old_serial == 0) {
        unsigned i = below(rng, change->n_columns);
        change->serial[i] = below(rng, 2) * (model->last_serial + 1);
        return;
    }
    change->op = CHANGE_SET;
    change->n_columns = 1;
    change->column[0] = model->old_slot;
    change->serial[0] = model->old_serial;
}

/* The unique of the columns that the change names. */
static uint64_t
cas_now(const struct cell_model *model, size_t i, const struct change *change)
{
    uint64_t value[SCHEMA_COLUMNS_MAX];
    for (unsigned k = 0; k < change->n_columns; k++) {
        value[k] = model->value[i][change->column[k]];
    }
    return record_cas(change->serial, value, change->n_columns);
}

void
cell_model_random_change(const struct cell_model *model, struct dist_rng *rng,
    const struct cell_mood *mood, size_t i, struct change *out)
{
    unsigned n_columns = model->def.n_columns;
    unsigned first = below(rng, n_columns);
    unsigned n = below(rng, 4) == 0 ? 1 + below(rng, n_columns) : 1;
    bool is_climb = below(rng, 16) < mood->climbs_of_16;
    *out = (struct change){.id = model->id[i],
        .op = is_climb ? CHANGE_INCR : random_op(rng),
        .counter = model->def.slot,
        .err = -1};
    if (below(rng, 16) < mood->resets_of_16) {
        out->op = CHANGE_DELETE;
        n = n_columns;
    }
    for (unsigned k = 0; k < n; k++) {
        const struct schema_column *column =
            &model->def.column[(first + k) % n_columns];
        uint64_t value = model->value[i][column->slot];
        bool is_count = out->op == CHANGE_INCR && below(rng, 8) > 0;
        out->column[k] = column->slot;
        out->serial[k] = column->serial;
        out->operand[k] = is_climb ? random_climb(column, rng, value)
            : is_count             ? below(rng, 3)
                                   : random_operand(column, rng, mood);
    }
    out->n_columns = (uint8_t)n;
    out->cas = cas_now(model, i, out);
    out->cas += below(rng, 4) == 0;
    if (mood->has_stale && below(rng, STALE_EACH) == 0) {
        make_stale(model, rng, out);
    }
}

/* One column's incr or decr; *value is the old one, then the new one. False
 * where overflow=error refuses. */
static bool
count_one(const struct cell_model *model, const struct schema_column *column,
    const struct change *change, unsigned k, uint64_t *value,
    unsigned *n_saturated)
{
    uint64_t delta = change->operand[k];
    uint64_t max = schema_column_max(column);
    if (change->op == CHANGE_DECR) {
        *value = *value < delta ? 0 : *value - delta;
        return true;
    }
    bool is_over = *value + delta < delta || *value + delta > max;
    *value = is_over ? max : *value + delta;
    *n_saturated += is_over;
    return !is_over || !model->def.overflow_is_error;
}

static int
may_assign(
    const struct cell_model *model, size_t i, const struct change *change)
{
    bool any_set = false;
    for (unsigned k = 0; k < change->n_columns; k++) {
        const struct schema_column *column =
            cell_model_column(model, change->column[k]);
        uint64_t value = model->value[i][column->slot];
        any_set = any_set || value != column->default_value;
        if (change->op != CHANGE_DELETE &&
            change->operand[k] > schema_column_max(column)) {
            return ERR_OVER_MAX;
        }
    }
    switch (change->op) {
    case CHANGE_ADD:
        return any_set ? ERR_NOT_STORED : 0;
    case CHANGE_REPLACE:
        return any_set ? 0 : ERR_NOT_STORED;
    case CHANGE_DELETE:
        return any_set ? 0 : ERR_NOT_FOUND;
    case CHANGE_CAS:
        if (!any_set && model->def.absent_is_miss) {
            return ERR_NOT_FOUND;
        }
        if (change->cas != cas_now(model, i, change)) {
            return ERR_EXISTS;
        }
        return 0;
    default:
        return 0;
    }
}

/* What a change must answer, and into value[] what it must leave. */
static int
answer(const struct cell_model *model, size_t i, const struct change *change,
    uint64_t *value, unsigned *n_saturated)
{
    bool counts = change->op == CHANGE_INCR || change->op == CHANGE_DECR;
    for (unsigned k = 0; k < change->n_columns; k++) {
        const struct schema_column *column =
            cell_model_column(model, change->column[k]);
        if (column == NULL || column->serial != change->serial[k]) {
            return ERR_GONE;
        }
    }
    int err = counts ? 0 : may_assign(model, i, change);
    for (unsigned k = 0; err == 0 && k < change->n_columns; k++) {
        const struct schema_column *column =
            cell_model_column(model, change->column[k]);
        value[k] = model->value[i][column->slot];
        if (!counts) {
            value[k] = change->op == CHANGE_DELETE ? column->default_value
                                                   : change->operand[k];
        } else if (!count_one(
                       model, column, change, k, &value[k], n_saturated)) {
            err = ERR_OVERFLOW;
        }
    }
    *n_saturated = err == 0 ? *n_saturated : 0;
    return err;
}

static void
raise_largest(struct cell_model *model, uint64_t id)
{
    if (!model->has_largest || id > model->largest) {
        model->largest = id;
        model->has_largest = true;
    }
}

static void
apply(struct cell_model *model, size_t i, const struct change *change,
    const uint64_t *value)
{
    bool was_record = is_record(model, i);
    for (unsigned k = 0; k < change->n_columns; k++) {
        model->value[i][change->column[k]] = value[k];
    }
    bool is_now = is_record(model, i);
    model->records += (size_t)is_now - (size_t)was_record;
    if (is_now) {
        raise_largest(model, model->id[i]);
    }
}

static bool
makes_record(const struct cell_model *model, size_t i,
    const struct change *change, const uint64_t *value)
{
    for (unsigned k = 0; k < change->n_columns; k++) {
        if (value[k] !=
            cell_model_column(model, change->column[k])->default_value) {
            return !is_record(model, i);
        }
    }
    return false;
}

static bool
is_jump(const struct cell_model *model, uint64_t id)
{
    return model->def.max_jump != 0 && model->has_largest &&
        id > model->largest && id - model->largest > model->def.max_jump;
}

const char *
cell_model_judge(struct cell_model *model, size_t i, const struct change *done,
    bool may_fail)
{
    uint64_t value[COLUMNS];
    unsigned n_saturated = 0;
    int err = answer(model, i, done, value, &n_saturated);
    bool is_full = done->err == ERR_NO_MEMORY || done->err == ERR_HOT_FULL;
    ASSERT(done->id == model->id[i]);
    if (done->err != 0 && done->n_saturated != 0) {
        return "an error, and n_saturated is not 0";
    }
    if (may_fail && err == 0 && is_full && done->op != CHANGE_DELETE) {
        if (model->def.max_jump != 0 && makes_record(model, i, done, value)) {
            raise_largest(model, done->id); /* it was let in */
        }
        return NULL;
    }
    if (is_jump(model, done->id)) {
        if (done->err == ERR_JUMP && err != ERR_GONE) {
            return NULL;
        }
        if (err == 0 && makes_record(model, i, done, value)) {
            return "maxjump let it pass";
        }
    }
    if (done->err != err) {
        return err == 0 ? "an error where there is none" : "wrong error";
    }
    if (err != 0) {
        return NULL;
    }
    if (done->n_saturated != n_saturated) {
        return "wrong n_saturated";
    }
    if (memcmp(done->value, value, done->n_columns * sizeof(*value)) != 0) {
        return "wrong value";
    }
    apply(model, i, done, value);
    return NULL;
}
