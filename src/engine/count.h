/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_COUNT_H
#define ENGINE_COUNT_H

#include "base/err.h"
#include "engine/engine_priv.h"

/* The usual change, a count (count_record in engine_change.c); change.c has all
 * others. Inline: it is a few instructions a change. */

/* True for a count up or down of one column from whatever value it has. */
static inline bool
count_is_one(const struct change *change)
{
    return (change->op == CHANGE_INCR || change->op == CHANGE_DECR) &&
        change->n_columns == 1 && !change->compares;
}

/* change_apply for such a change, where the column is not at its default or it
 * counts from there: *code is of its column. False, and nothing done, where the
 * column is closed to it or gone. Under the lock. */
static inline bool
count_one(const struct view *view, struct change *change, uint64_t *code)
{
    const struct column *column = &view->column[change->column[0]];
    uint64_t value = column_decode(column, *code);
    uint64_t delta = change->operand[0];
    /* relaxed: 0 where it is being dropped, and then it is gone a moment
     * sooner or later */
    uint32_t serial =
        atomic_load_explicit(&column->open_serial, memory_order_relaxed);
    change->n_saturated = 0;
    if (serial == 0 || serial != change->serial[0]) {
        return false;
    }
    if (change->op == CHANGE_DECR) {
        value = delta < value ? value - delta : 0;
    } else if (delta <= column->max - value) {
        value += delta;
    } else if (view->overflow_is_error) {
        change->err = ERR_OVERFLOW;
        return true;
    } else {
        value = column->max;
        change->n_saturated = 1;
    }
    change->err = 0;
    change->value[0] = value;
    *code = column_encode(column, value);
    return true;
}

#endif
