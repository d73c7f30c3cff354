/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_REDO_H
#define ENGINE_REDO_H

#include "engine/change_store.h"

/* What the sink is going to get of the changes of a shard. Under its lock. */
struct redo {
    struct engine_write *write; /* room for one a change, and at the least
                                 * GIVE_UP_WRITES_MAX (members_priv.h) */
    unsigned n;
    uint64_t todo;  /* a bit a change of the shard; those of members that have
                    * been made take one out, other changes none */
    uint32_t whole; /* see engine.whole */
};

/* Adds to redo records what a column has become. */
static inline void
redo_column(struct redo *redo, const struct change *change, uint64_t value)
{
    struct engine_write *write = &redo->write[redo->n++];
    write->id = change->id;
    write->counter = change->counter;
    write->n = 1;
    write->is_pair = false;
    write->producer = 0;
    write->serial[0] = change->serial[0];
    write->value[0] = value;
}

/* True where any code differs, of those in the slots of columns. */
static inline bool
redo_differs(uint32_t columns, const uint64_t *before, const uint64_t *code)
{
    uint64_t any = 0;
    for (; columns != 0; columns &= columns - 1) {
        unsigned i = (unsigned)__builtin_ctz(columns);
        any |= before[i] ^ code[i];
    }
    return any != 0;
}

/* Adds to redo records what the columns of a record have become: of those in
 * columns, and differ from before, where that is not NULL. */
static inline void
redo__columns(struct redo *redo, const struct view *view,
    const struct change *change, uint32_t columns, const uint64_t *before,
    const uint64_t *code)
{
    struct engine_write *write = &redo->write[redo->n];
    unsigned n = 0;
    for (; columns != 0; columns &= columns - 1) {
        unsigned i = (unsigned)__builtin_ctz(columns);
        /* relaxed: 0 where it is being dropped, and then it does not matter */
        uint32_t serial = atomic_load_explicit(
            &view->column[i].serial, memory_order_relaxed);
        if ((before == NULL || before[i] != code[i]) && serial != 0) {
            write->serial[n] = serial;
            write->value[n] = column_decode(&view->column[i], code[i]);
            n++;
        }
    }
    if (n > 0) {
        write->id = change->id;
        write->producer = 0;
        write->counter = change->counter;
        write->n = (uint8_t)n;
        write->is_pair = false;
        redo->n++;
    }
}

/* Adds to redo records what the columns of a record have become that differ;
 * all of one that has come from elsewhere, and where records are told whole:
 * then columns are all that view has. */
static inline void
redo_record(struct redo *redo, const struct view *view,
    const struct change *change, uint32_t columns, const uint64_t *before,
    const uint64_t *code, enum origin origin)
{
    bool is_whole = origin_is_to_stay(origin) ||
        (origin == ORIGIN_BASE && !codes_are_same(before, code)) ||
        (redo->whole != 0 && redo_differs(columns, before, code));
    columns = is_whole ? view->columns : columns;
    redo__columns(redo, view, change, columns, is_whole ? NULL : before, code);
}

/* Adds to redo records what all columns of a record are, whether they have
 * changed or not. */
static inline void
redo_as_it_is(struct redo *redo, const struct view *view,
    const struct change *change, const uint64_t *code)
{
    redo__columns(redo, view, change, view->columns, NULL, code);
}

/* Adds to redo records that a numbered change was done: to what it changed,
 * the write behind n_before others, unless there are only those. */
static inline void
redo_number(struct redo *redo, unsigned n_before, const struct change *change,
    const struct engine_row *at)
{
    struct engine_write *write = &redo->write[n_before];
    if (redo->n == n_before) {
        write->id = change->id;
        write->counter = change->counter;
        write->n = 0;
        write->is_pair = false;
        redo->n++;
    }
    write->producer = change->producer;
    write->shard = (uint16_t)at->shard;
    write->number = change->number;
}

#endif
