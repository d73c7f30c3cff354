/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of a directory, for who looks at it. */
#include "offline/data_names.h"

#include "engine/engine.h"
#include "names/names.h"

static void
row_fn(const void *context, uint64_t id, unsigned *shard, uint64_t *row)
{
    engine_row(context, id, shard, row);
}

static uint64_t
id_fn(const void *context, unsigned shard, uint64_t row)
{
    return engine_id(context, shard, row);
}

int
data_names_begin(struct data_names *it, const struct manifest *manifest,
    struct disk *disk, struct logger *logger, bool passes_damage)
{
    const struct engine_config engine = {.shards = manifest->shards,
        .seed = manifest->seed,
        .hot_bytes = ENGINE_HOT_BYTES_MIN};
    *it = (struct data_names){.naming = {
                                  .manifest = manifest,
                                  .disk = disk,
                                  .logger = logger,
                                  .passes_damage = passes_damage,
                              }};
    int err = engine_create(&engine, &it->engine);
    if (err == 0) {
        struct names_config config = {.shards = manifest->shards,
            .limit_bytes = UINT64_MAX,
            .row_fn = row_fn,
            .id_fn = id_fn,
            .context = it->engine};
        names_key(manifest->seed, config.key);
        err = names_create(&it->naming.names, &config);
    }
    if (err == 0) {
        err = durable_naming_load(&it->naming);
    }
    if (err != 0) {
        data_names_fini(it);
    }
    return err;
}

void
data_names_fini(struct data_names *it)
{
    names_destroy(&it->naming.names);
    engine_destroy(&it->engine);
}

uint64_t
data_names_count(const struct data_names *it)
{
    struct names_sums sums = {0};
    for (unsigned i = 0;
         it->naming.names != NULL && i < it->naming.manifest->shards; i++) {
        names_add_sums(it->naming.names, i, &sums);
    }
    return sums.names;
}
