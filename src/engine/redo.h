/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_REDO_H
#define ENGINE_REDO_H

#include "engine/engine_priv.h"

/* What the sink is going to get of the changes of a shard. Under its lock. */
struct redo {
    struct engine_write *write; /* room for one a change */
    unsigned n;
};

/* Adds to redo records what a column has become. */
static inline void
redo_column(struct redo *redo, const struct change *change, uint64_t value)
{
    struct engine_write *write = &redo->write[redo->n++];
    write->id = change->id;
    write->counter = change->counter;
    write->n = 1;
    write->producer = 0;
    write->serial[0] = change->serial[0];
    write->value[0] = value;
}

/* Adds to redo records that a numbered change was done: to what it changed,
 * which is the last write, unless there are only n_before. */
static inline void
redo_number(struct redo *redo, unsigned n_before, const struct change *change,
    const struct engine_row *at)
{
    struct engine_write *write = &redo->write[n_before];
    if (redo->n == n_before) {
        write->id = change->id;
        write->counter = change->counter;
        write->n = 0;
        redo->n++;
    }
    write->producer = change->producer;
    write->shard = (uint16_t)at->shard;
    write->number = change->number;
}

#endif
