/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_LOCATE_H
#define ENGINE_READER_LOCATE_H

/* A group of records on its way to their lines, for the instruction set that
 * the including file has chosen; included for reader_body.h only. */
#include "engine/reader_group.h"
#include "engine/table_place.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* What stands for the table and the line of rows that have none. */
static const struct shapes no_shapes = {.columns = 0};
static const struct table no_table = {.form = {.shapes = &no_shapes}};
static const struct line no_line;
static const _Atomic uint32_t no_stripe;

/* A table that may have the row, or NULL. */
static inline const struct table *
table_of(const struct counter *counter, uint32_t shard, uint64_t row)
{
    if (counter == NULL) {
        return NULL;
    }
    const struct table *table = counter__table(counter, shard, row);
    if (table != NULL) {
        table_prefetch(table);
    }
    return table;
}

/* Round 1: the next records, and their tables. */
static inline void
resolve(struct part *part, struct group *group)
{
    const struct engine *engine = part->engine;
    group->n = 0;
    if (part->at == part->n) {
        return;
    }
    if (!take_single_keys(part, group)) {
        take_keys(part, group);
    }
    /* all places, used or not: a loop for vectors */
    for (uint32_t i = 0; i < READ_GROUP; i++) {
        struct engine_row row = engine__row(engine, group->id[i]);
        group->row[i] = row.row;
        group->shard[i] = row.shard;
    }
    for (uint32_t i = 0; i < group->n; i++) {
        group->table[i] =
            table_of(group->counter[i], group->shard[i], group->row[i]);
    }
}

/* Round 2: their lines. */
static inline void
locate(const struct engine *engine, struct group *group)
{
    const struct perm perm = engine->perm;
    const struct shard *shard = engine->shard;
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        const struct table *table = group->table[i];
        uint64_t row = group->row[i];
        if (table == NULL || !table_covers(table, row)) {
            group->table[i] = &no_table;
            group->line[i] = &no_line;
            group->stripe[i] = &no_stripe;
            group->remainder[i] = 0;
            continue;
        }
        uint32_t number = table_first(table, &perm, row, &group->remainder[i]);
        const struct line *line = table_line(table, number);
        __builtin_prefetch(line, 0, 2); /* the second level will do */
        group->number[i] = number;
        group->line[i] = line;
        group->stripe[i] =
            &shard[group->shard[i]].stripes.line[number % TABLE_STRIPES];
    }
}

LINE_TARGET_END

#endif
#endif
