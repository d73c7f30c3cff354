/* SPDX-License-Identifier: BSD-3-Clause */
/* What changes mean: the values a record has are turned into those it is to
 * have, or the change is refused. Codes are what is stored of values
 * (column_encode); code 0 is the column's default. */
#include "engine/engine_priv.h"

#include "base/assert.h"
#include "base/err.h"

static bool
column_is_live(const struct view *view, unsigned slot, uint32_t serial)
{
    ASSERT(slot < SCHEMA_COLUMNS_MAX);
    return serial != 0 && view->column[slot].serial == serial;
}

/* Reads the values of the columns named into change->value; returns how many
 * of them differ from their defaults. */
static unsigned
read_record(
    const struct view *view, struct change *change, const uint64_t *code)
{
    unsigned n_set = 0;
    for (unsigned i = 0; i < change->n_columns; i++) {
        unsigned slot = change->column[i];
        change->value[i] = column_decode(&view->column[slot], code[slot]);
        n_set += code[slot] != 0;
    }
    return n_set;
}

static int
assign(const struct view *view, struct change *change, unsigned n_set)
{
    for (unsigned i = 0; i < change->n_columns; i++) {
        if (change->operand[i] > view->column[change->column[i]].max) {
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
        if (view->absent_is_miss && n_set == 0) {
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
increment(const struct view *view, struct change *change)
{
    uint8_t n_saturated = 0;
    for (unsigned i = 0; i < change->n_columns; i++) {
        uint64_t max = view->column[change->column[i]].max;
        if (change->operand[i] <= max - change->value[i]) {
            change->value[i] += change->operand[i];
        } else if (view->overflow_is_error) {
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
clear(const struct view *view, struct change *change, unsigned n_set)
{
    if (n_set == 0) {
        return ERR_NOT_FOUND;
    }
    for (unsigned i = 0; i < change->n_columns; i++) {
        change->value[i] = view->column[change->column[i]].default_value;
    }
    return 0;
}

/* Turns the values now in change->value into those to be stored. */
static int
work_out(const struct view *view, struct change *change, unsigned n_set)
{
    switch (change->op) {
    case CHANGE_INCR:
        return increment(view, change);
    case CHANGE_DECR:
        decrement(change);
        return 0;
    case CHANGE_DELETE:
        return clear(view, change, n_set);
    case CHANGE_SET:
    case CHANGE_ADD:
    case CHANGE_REPLACE:
    case CHANGE_CAS:
        break;
    }
    return assign(view, change, n_set);
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

static int
change_record(const struct view *view, struct change *change, uint64_t *code)
{
    for (unsigned i = 0; i < change->n_columns; i++) {
        if (!column_is_live(view, change->column[i], change->serial[i])) {
            return ERR_GONE;
        }
    }
    unsigned n_set = read_record(view, change, code);
    int err = work_out(view, change, n_set);
    if (err != 0) {
        return err;
    }
    for (unsigned i = 0; i < change->n_columns; i++) {
        unsigned slot = change->column[i];
        code[slot] = column_encode(&view->column[slot], change->value[i]);
    }
    return 0;
}

void
change_apply(const struct view *view, struct change *change, uint64_t *code)
{
    check_form(change);
    change->n_saturated = 0;
    change->err = change_record(view, change, code);
    if (change->err != 0) {
        change->n_saturated = 0;
    }
}
