/* SPDX-License-Identifier: BSD-3-Clause */
/* Which tables there are: for whoever plans what is done with ranges. */
#include "engine/engine_extents.h"

#include "engine/engine_priv.h"

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
            table->heat};
    }
    shard__unlock(&engine->shard[shard]);
    return table != NULL;
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
