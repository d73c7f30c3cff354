/* SPDX-License-Identifier: BSD-3-Clause */
/* The names of a store: made with it, whether a counter has some or not, for
 * the log may have some before it has the counter. */
#include "store/store_names.h"

#include "engine/marks.h"
#include "engine/naming.h"
#include "store/store_real.h"

#include <inttypes.h>
#include <stdio.h>

enum { VALUE_BYTES = 32 };

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
    names_key(seed, of.key);
    int err = names_create(&real->store.names, &of);
    if (err != 0) {
        return err;
    }
    struct names *names = real->store.names;
    engine_set_names(real->engine, &names->hook);
    names->account.beside =
        engine_share_budget(real->engine, &names->account.used_bytes);
    real->store.names_rounds = &real->names_rounds;
    real->store.names_dropped = &real->names_dropped;
    return 0;
}

struct sums {
    const struct names *names;
    struct names_sums of;
};

/* Under the lock of the shard. */
static void
add_sums(void *context, unsigned shard)
{
    struct sums *sums = context;
    names_add_sums(sums->names, shard, &sums->of);
}

/* Where figures are told. */
struct told {
    void (*stat_fn)(void *context, const char *name, const char *value);
    void *context;
};

static void
tell(const struct told *told, const char *figure, uint64_t number)
{
    char value[VALUE_BYTES];
    snprintf(value, sizeof value, "%" PRIu64, number);
    told->stat_fn(told->context, figure, value);
}

void
store_names__stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct real_store *real = store__real(store);
    struct sums sums = {.names = store->names};
    const struct told told = {stat_fn, context};
    char value[VALUE_BYTES];
    if (store__life(real) == STORE_LOADING) {
        return; /* they are not all there */
    }
    for (unsigned i = 0; i < store->shards; i++) {
        engine_hold(real->engine, i, add_sums, &sums);
    }
    uint64_t bytes = names_bytes(store->names);
    tell(&told, "names", sums.of.names);
    tell(&told, "bytes", bytes);
    snprintf(value, sizeof value, "%.1f",
        sums.of.names == 0 ? 0.0 : (double)bytes / (double)sums.of.names);
    stat_fn(context, "bytes_a_name", value);
    tell(&told, "resting", sums.of.resting);
    tell(&told, "lost", sums.of.lost);
    /* relaxed, both: numbers that order nothing */
    tell(&told, "taken_out",
        atomic_load_explicit(&real->names_dropped, memory_order_relaxed));
    tell(&told, "rounds",
        atomic_load_explicit(&real->names_rounds, memory_order_relaxed));
}
