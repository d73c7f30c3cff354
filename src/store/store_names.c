/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of a store: made with it, whether a counter has some or not, for
 * the log may have some before it has the counter. */
#include "store/store_names.h"

#include "engine/naming.h"
#include "store/store_real.h"

static void
row_of(const void *context, uint64_t id, unsigned *shard, uint64_t *row)
{
    engine_row(context, id, shard, row);
}

static uint64_t
id_of(const void *context, unsigned shard, uint64_t row)
{
    return engine_id(context, shard, row);
}

int
store_names__create(struct real_store *real, const struct store_config *config,
    unsigned shards, uint64_t seed)
{
    struct names_config of = {.shards = shards,
        .limit_bytes = config->hot_bytes,
        .alloc = config->alloc,
        .qsbr = &real->qsbr,
        .row_fn = row_of,
        .id_fn = id_of,
        .context = real->engine};
    names_key(real->is_durable ? real->durable.epoch : 0, seed, of.key);
    int err = names_create(&real->store.names, &of);
    if (err != 0) {
        return err;
    }
    engine_set_names(real->engine, &real->store.names->hook);
    real->store.names_rounds = &real->names_rounds;
    return 0;
}
