/* SPDX-License-Identifier: BSD-3-Clause */
/* Which tables there are: for whoever plans what is done with ranges. */
#include "engine/engine_extents.h"

#include "engine/engine_priv.h"
#include "engine/table_each.h"

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
            table->n_records, (unsigned)__builtin_popcount(view->columns),
            table->is_clean};
    }
    shard__unlock(&engine->shard[shard]);
    return table != NULL;
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
