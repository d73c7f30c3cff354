/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_TALE_H
#define ENGINE_TALE_H

#include "engine/engine_priv.h"

/* What the sink is going to get of the changes of a shard. Under its lock. */
struct tale {
    struct engine_write *write; /* room for one a change */
    unsigned n;
};

/* Adds to a tale what a column has become. */
static inline void
tale_column(struct tale *tale, const struct change *change, uint64_t value)
{
    struct engine_write *write = &tale->write[tale->n++];
    write->id = change->id;
    write->counter = change->counter;
    write->n = 1;
    write->producer = 0;
    write->serial[0] = change->serial[0];
    write->value[0] = value;
}

/* Adds to a tale that a numbered change was done: to what it changed, which is
 * the last write, unless there are only n_before. */
static inline void
tale_number(struct tale *tale, unsigned n_before, const struct change *change,
    const struct engine_row *at)
{
    struct engine_write *write = &tale->write[n_before];
    if (tale->n == n_before) {
        write->id = change->id;
        write->counter = change->counter;
        write->n = 0;
        tale->n++;
    }
    write->producer = change->producer;
    write->shard = (uint16_t)at->shard;
    write->number = change->number;
}

#endif
