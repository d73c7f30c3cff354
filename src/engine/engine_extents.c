/* SPDX-License-Identifier: BSD-3-Clause */
/* Says which tables there are, for the planning of ranges: what they have, how
 * large they are, how much they are written. */
#include "engine/engine_extents.h"

#include "engine/engine_priv.h"
#include "engine/table_each.h"

enum { SAMPLE_LINES = 128 };

static uint64_t
bytes_of(const struct table *table)
{
    return table_line_bytes(table) + table_other_bytes(table) +
        stash_bytes(table_stash(table));
}

bool
engine_extent(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t row, struct engine_extent *out)
{
    struct counter *counter = engine__counter(engine, slot);
    struct table *table = NULL;
    if (counter == NULL) {
        return false;
    }
    shard__lock(&engine->shard[shard]);
    const struct view *view = counter__view(counter);
    if (view != NULL) {
        table = ranges_from(&counter->ranges[shard], row);
    }
    if (table != NULL) {
        *out = (struct engine_extent){table->base, table->base + table->mask,
            table->n_records, bytes_of(table),
            (unsigned)__builtin_popcount(view->columns), table->heat,
            table->is_clean};
    }
    shard__unlock(&engine->shard[shard]);
    return table != NULL;
}

struct part {
    uint64_t first, last; /* rows */
    uint64_t n, n_inside; /* records */
};

static void
count_record(void *context, uint64_t row, const uint64_t *code)
{
    struct part *part = context;
    (void)code;
    part->n++;
    part->n_inside += row >= part->first && row <= part->last;
}

uint64_t
engine_extent_part(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    struct counter *counter = engine__counter(engine, slot);
    struct shard *it = &engine->shard[shard];
    struct part part = {first_row, last_row, 0, 0};
    uint64_t n = 0;
    if (counter == NULL) {
        return 0;
    }
    shard__lock(it);
    const struct table *table =
        ranges_from(&counter->ranges[shard], first_row);
    if (table != NULL && table->base >= first_row &&
        table->base + table->mask <= last_row) {
        n = table->n_records;
    } else if (table != NULL && table->base <= last_row) {
        uint64_t n_lined = table->n_records - table_n_stashed(table);
        table_each_line(&it->owner, table, table->n_lines / SAMPLE_LINES + 1,
            count_record, &part);
        n = part.n == 0 ? 0 : n_lined * part.n_inside / part.n;
        part.n_inside = 0;
        table_each_stashed(table, count_record, &part);
        n += part.n_inside;
    }
    shard__unlock(it);
    return n;
}

struct seek {
    uint64_t first, last; /* rows */
    uint64_t found;       /* the lowest of these that has a record */
    bool has_found;
};

static void
seek_record(void *context, uint64_t row, const uint64_t *code)
{
    struct seek *seek = context;
    (void)code;
    if (row >= seek->first && row <= seek->last &&
        (!seek->has_found || row < seek->found)) {
        seek->found = row;
        seek->has_found = true;
    }
}

bool
engine_extent_first(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row, uint64_t *row)
{
    struct counter *counter = engine__counter(engine, slot);
    struct shard *it = &engine->shard[shard];
    struct seek seek = {.first = first_row, .last = last_row};
    bool more = counter != NULL;
    while (more) {
        shard__lock(it);
        const struct table *table =
            ranges_from(&counter->ranges[shard], first_row);
        more = table != NULL && table->base <= last_row;
        if (more) {
            table_each(&it->owner, table, seek_record, &seek);
            first_row = table->base + table->mask + 1;
            more = !seek.has_found && first_row > table->base &&
                first_row <= last_row;
        }
        shard__unlock(it);
    }
    *row = seek.found;
    return seek.has_found;
}

bool
engine_largest(struct engine *engine, unsigned slot, uint64_t *id)
{
    struct counter *counter = engine__counter(engine, slot);
    /* acquire: an id is in largest_id where this is true */
    if (counter == NULL ||
        !atomic_load_explicit(&counter->has_largest, memory_order_acquire)) {
        return false;
    }
    /* relaxed: a figure of a moment */
    *id = atomic_load_explicit(&counter->largest_id, memory_order_relaxed);
    return true;
}

struct counting {
    uint64_t first_row, last_row, n;
};

static void
count_row(void *context, uint64_t row, const uint64_t *code)
{
    struct counting *it = context;
    (void)code;
    it->n += row >= it->first_row && row <= it->last_row;
}

/* The first table from row *from on, which moves behind it; false where there
 * are no more. */
static bool
count_table(struct engine *engine, struct counter *counter, unsigned shard,
    uint64_t *from, struct counting *it)
{
    bool is_over = true;
    shard__lock(&engine->shard[shard]);
    const struct ranges *ranges = &counter->ranges[shard];
    const struct table *table =
        counter__view(counter) == NULL ? NULL : ranges_from(ranges, *from);
    if (table != NULL && table->base <= it->last_row) {
        uint64_t last = table->base + table->mask;
        if (table->base >= it->first_row && last <= it->last_row) {
            it->n += table->n_records;
        } else {
            table_each(ranges->owner, table, count_row, it);
        }
        is_over = last >= it->last_row;
        *from = last + 1;
    }
    shard__unlock(&engine->shard[shard]);
    return !is_over;
}

uint64_t
engine_count(struct engine *engine, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    struct counter *counter = engine__counter(engine, slot);
    struct counting it = {first_row, last_row, 0};
    uint64_t from = first_row;
    while (
        counter != NULL && count_table(engine, counter, shard, &from, &it)) {
    }
    return it.n;
}
