/* SPDX-License-Identifier: BSD-3-Clause */
/* The store: the engine for counters, the items, the keeper of the schema and
 * the gardener of the tables. Reads and changes answer at once today; the
 * calls are built so that they need not (store.h). */
#include "store/store.h"

#include "base/assert.h"
#include "base/err.h"
#include "store/gardener.h"
#include "store/keeper.h"

#include <stdlib.h>

struct real_store {
    struct store store; /* first: the seam */
    struct qsbr qsbr;
    _Atomic(const struct schema *) schema;
    struct engine *engine;
    struct keeper keeper;
    struct gardener gardener;
};

static struct real_store *
real_of(struct store *store)
{
    return (struct real_store *)store;
}

static enum store_answer
real_get(struct store *store, struct store_get *get)
{
    ASSERT(get->n <= STORE_GET_MAX);
    engine_get(
        real_of(store)->engine, get->key, get->n, get->value, get->state);
    return STORE_DONE;
}

static enum store_answer
real_change(struct store *store, struct store_change *change)
{
    engine_change(real_of(store)->engine, change->change, change->n);
    return STORE_DONE;
}

static enum store_answer
real_edit(struct store *store, struct store_edit *edit)
{
    keeper_add(&real_of(store)->keeper, edit);
    return STORE_LATER;
}

static struct store_sum
real_sum(struct store *store, unsigned counter_slot)
{
    struct store_sum sum;
    engine_size(
        real_of(store)->engine, counter_slot, &sum.records, &sum.bytes);
    return sum;
}

static void
real_tables(struct store *store, unsigned counter_slot, int shard,
    struct engine_sum *sum)
{
    engine_sum(real_of(store)->engine, counter_slot, shard, sum);
}

static void
real_widths(struct store *store, unsigned counter_slot,
    uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS])
{
    engine_widths(real_of(store)->engine, counter_slot, width);
}

static uint64_t
real_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return engine_hot_bytes(real_of(store)->engine, garbage_bytes);
}

static const struct store_calls real_calls = {
    .get = real_get,
    .change = real_change,
    .edit = real_edit,
    .sum = real_sum,
    .tables = real_tables,
    .widths = real_widths,
    .hot_bytes = real_hot_bytes,
};

/* Schema, items and engine; 0 or an error, with nothing left behind. */
static int
make_parts(struct real_store *real, const struct store_config *config)
{
    const struct engine_config engine = {.shards = config->shards,
        .seed = config->seed,
        .hot_bytes = config->hot_bytes,
        .qsbr = &real->qsbr};
    struct schema *schema = schema_create();
    int err = ERR_NO_MEMORY;
    if (schema == NULL) {
        return err;
    }
    real->store.items = items_create(&config->items);
    if (real->store.items == NULL) {
        goto err_after_schema;
    }
    err = engine_create(&engine, &real->engine);
    if (err != 0) {
        goto err_after_items;
    }
    atomic_init(&real->schema, schema);
    return 0;

err_after_items:
    items_destroy(&real->store.items);
err_after_schema:
    schema_destroy(&schema);
    return err;
}

static void
destroy_parts(struct real_store *real)
{
    /* relaxed: the keeper, its only writer, has been joined or never ran */
    struct schema *schema = (struct schema *)atomic_load_explicit(
        &real->schema, memory_order_relaxed);
    engine_destroy(&real->engine);
    items_destroy(&real->store.items);
    schema_destroy(&schema);
}

int
store_create(const struct store_config *config, struct store **out)
{
    struct real_store *real = calloc(1, sizeof *real);
    if (real == NULL) {
        return ERR_NO_MEMORY;
    }
    qsbr_init(&real->qsbr);
    int err = make_parts(real, config);
    if (err != 0) {
        goto err_after_qsbr;
    }
    real->store.calls = &real_calls;
    real->store.qsbr = &real->qsbr;
    real->store.schema = &real->schema;
    err = keeper_start(&real->keeper, &real->store, real->engine);
    if (err != 0) {
        goto err_after_parts;
    }
    err = gardener_start(&real->gardener, real->engine);
    if (err != 0) {
        goto err_after_keeper;
    }
    *out = &real->store;
    return 0;

err_after_keeper:
    keeper_stop(&real->keeper);
err_after_parts:
    destroy_parts(real);
err_after_qsbr:
    qsbr_fini(&real->qsbr);
    free(real);
    return err;
}

void
store_destroy(struct store **store)
{
    struct real_store *real = real_of(*store);
    gardener_stop(&real->gardener);
    keeper_stop(&real->keeper);
    destroy_parts(real);
    qsbr_fini(&real->qsbr);
    free(real);
    *store = NULL;
}

void
store_verify(struct store *store)
{
    engine_verify(real_of(store)->engine);
    items_verify(store->items);
}
