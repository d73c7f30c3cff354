/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns the values of a record into those that a change makes of them, or
 * refuses the change. A code is the stored form of a value (column_encode);
 * code 0 is the column's default. */
#include "engine/engine_priv.h"

#include "base/assert.h"
#include "base/err.h"

/* Reads the values of the columns named into change->value; returns how many
 * of them differ from their defaults, or all bits of that inverted, so less
 * than 0, where one is closed to the change or no column any more. */
static int
read_record(
    const struct view *view, struct change *change, const uint64_t *code)
{
    int n_set = 0;
    unsigned seen = 0;
    bool is_closed = false;
    ASSERT(change->n_columns >= 1 && change->n_columns <= SCHEMA_COLUMNS_MAX);
    for (unsigned i = 0; i < change->n_columns; i++) {
        unsigned slot = change->column[i];
        ASSERT(slot < SCHEMA_COLUMNS_MAX && (seen >> slot & 1) == 0);
        const struct column *column = &view->column[slot];
        uint32_t serial = change->serial[i];
        seen |= 1U << slot;
        is_closed |= serial == 0 || column->open_serial != serial;
        change->value[i] = column_decode(column, code[slot]);
        n_set += code[slot] != 0;
    }
    return is_closed ? ~n_set : n_set;
}

/* True where the change names the column of members that this one counts. */
static bool
names_members(
    const struct view *view, const struct change *change, unsigned counted)
{
    unsigned slot = view->counted_by[counted];
    /* relaxed: 0 where it is being dropped, and then nothing is counted any
     * more a moment sooner or later */
    uint32_t serial =
        atomic_load_explicit(&view->column[slot].serial, memory_order_relaxed);
    for (unsigned i = 0; serial != 0 && i < change->n_columns; i++) {
        if (change->column[i] == slot && change->serial[i] == serial) {
            return true;
        }
    }
    return false;
}

/* What is wrong with the change of column i, which is not open to it: nothing
 * where it leaves a count of members as it is, or names the members too, and so
 * knows of them. */
static int
check_one(const struct view *view, const struct change *change, unsigned i)
{
    unsigned slot = change->column[i];
    /* relaxed: as above */
    uint32_t serial =
        atomic_load_explicit(&view->column[slot].serial, memory_order_relaxed);
    if (serial == 0 || serial != change->serial[i]) {
        return ERR_GONE;
    }
    bool adds = change->op == CHANGE_INCR || change->op == CHANGE_DECR;
    bool stays = adds
        ? change->operand[i] == 0 && change->absent == CHANGE_FROM_DEFAULT
        : change->op != CHANGE_DELETE && (change->kept >> i & 1) != 0;
    return stays || change->is_redo || names_members(view, change, slot)
        ? 0
        : ERR_COUNTED;
}

/* What is wrong with a change of columns some of which are closed or gone. */
static __attribute__((noinline)) int
check_closed(const struct view *view, const struct change *change)
{
    int err = 0;
    for (unsigned i = 0; err == 0 && i < change->n_columns; i++) {
        const struct column *column = &view->column[change->column[i]];
        if (change->serial[i] == 0 ||
            column->open_serial != change->serial[i]) {
            err = check_one(view, change, i);
        }
    }
    return err;
}

/* Columns of the record that differ from their defaults, named or not. */
static int
count_set(const struct view *view, const uint64_t *code)
{
    int n_set = 0;
    for (uint32_t left = view->columns; left != 0; left &= left - 1) {
        n_set += code[__builtin_ctz(left)] != 0;
    }
    return n_set;
}

/* The cas unique of the columns that are not kept. */
static uint64_t
cas_of_some(const struct change *change)
{
    uint32_t serial[SCHEMA_COLUMNS_MAX];
    uint64_t value[SCHEMA_COLUMNS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < change->n_columns; i++) {
        if ((change->kept >> i & 1) == 0) {
            serial[n] = change->serial[i];
            value[n++] = change->value[i];
        }
    }
    return record_cas(serial, value, n);
}

/* Whether the columns have the values that the change is for. */
static int
compare(const struct view *view, const struct change *change, int n_set)
{
    if (view->absent_is_miss && n_set == 0) {
        return ERR_NOT_FOUND;
    }
    uint64_t cas =
        record_cas(change->serial, change->value, change->n_columns);
    if (change->op == CHANGE_DELETE && change->kept != 0) {
        cas = cas_of_some(change);
    }
    return cas == change->cas ? 0 : ERR_EXISTS;
}

/* True for INCR and DECR of a column at its default, where that does not count
 * from there. */
static bool
starts(const struct view *view, const struct change *change)
{
    uint64_t value = change->value[0];
    switch (change->absent) {
    case CHANGE_FROM_DEFAULT:
        return false;
    case CHANGE_TO_INITIAL:
        return view->absent_is_miss || change->initial > value;
    case CHANGE_NOT_ABSENT:
        return view->absent_is_miss;
    }
    return false;
}

/* Such a change. */
static int
start(const struct view *view, struct change *change)
{
    if (change->absent == CHANGE_NOT_ABSENT) {
        return ERR_NOT_FOUND;
    }
    if (change->initial > view->column[change->column[0]].max) {
        return ERR_OVER_MAX;
    }
    change->value[0] = change->initial;
    return 0;
}

static int
check_operands(const struct view *view, const struct change *change)
{
    for (unsigned i = 0; i < change->n_columns; i++) {
        if (change->operand[i] > view->column[change->column[i]].max) {
            return ERR_OVER_MAX;
        }
    }
    return 0;
}

/* The same as assign where some columns are kept. */
static __attribute__((noinline)) void
assign_some(struct change *change)
{
    for (unsigned i = 0; i < change->n_columns; i++) {
        if ((change->kept >> i & 1) == 0) {
            change->value[i] = change->operand[i];
        }
    }
}

static int
assign(struct change *change, int n_set)
{
    if (change->op == CHANGE_ADD && n_set > 0) {
        return ERR_NOT_STORED;
    }
    if (change->op == CHANGE_REPLACE && n_set == 0) {
        return ERR_NOT_STORED;
    }
    if (__builtin_expect(change->kept != 0, 0)) {
        assign_some(change);
        return 0;
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
clear(const struct view *view, struct change *change, int n_set)
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
work_out(const struct view *view, struct change *change, int n_set)
{
    bool counts = change->op == CHANGE_INCR || change->op == CHANGE_DECR;
    int err = 0;
    if (!counts && change->op != CHANGE_DELETE) {
        err = check_operands(view, change);
    }
    if (err == 0 && (change->op == CHANGE_CAS || change->compares)) {
        err = compare(view, change, n_set);
    }
    if (err != 0) {
        return err;
    }
    if (counts && n_set == 0 && starts(view, change)) {
        return start(view, change);
    }
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
    default: /* neither a mark's nor a member's come here */
        break;
    }
    return assign(change, n_set);
}

void
change_apply(const struct view *view, struct change *change, uint64_t *code)
{
    ASSERT(change->absent == CHANGE_FROM_DEFAULT || change->n_columns == 1);
    change->n_saturated = 0;
    if (change->op > CHANGE_DELETE) { /* a member's do not come here */
        change__mark(view, change, code);
        return;
    }
    int n_set = read_record(view, change, code);
    if (__builtin_expect(n_set < 0, 0)) {
        change->err = check_closed(view, change);
        if (change->err != 0) {
            return;
        }
        n_set = ~n_set;
    }
    if (change_is_of_record(change)) {
        n_set = count_set(view, code);
    }
    change->err = work_out(view, change, n_set);
    if (change->err != 0) {
        return;
    }
    for (unsigned i = 0; i < change->n_columns; i++) {
        unsigned slot = change->column[i];
        code[slot] = column_encode(&view->column[slot], change->value[i]);
    }
}
