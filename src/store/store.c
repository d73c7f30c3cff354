/* SPDX-License-Identifier: BSD-3-Clause */
/* The store: shards for counters, the items, and the keeper of the schema.
 *
 * A cell belongs to shard fold_id(id) mod number of shards. A batch of reads is
 * sorted by shard (a counting sort that keeps the order inside a shard, so that
 * columns of one record stay side by side) and each shard is asked once.
 * Changes are done one after the other, in order. Both answer at once today;
 * the calls are built so that they need not (store.h). */
#include "store/store.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/fold.h"
#include "store/keeper.h"

#include <stdlib.h>
#include <string.h>

enum { SHARDS_MAX = 4096 };

struct real_store {
    struct store store; /* first: the seam */
    struct qsbr qsbr;
    _Atomic(const struct schema *) schema;
    struct keeper keeper;
    unsigned n_shards; /* a power of two */
    struct shard *shard[];
};

static struct real_store *
real_of(struct store *store)
{
    return (struct real_store *)store;
}

static unsigned
shard_of(const struct real_store *real, uint64_t id)
{
    return (unsigned)fold_id(id) & (real->n_shards - 1);
}

static enum store_answer
get_one(struct real_store *real, struct store_get *get)
{
    static const uint16_t only[1] = {0};
    unsigned at = shard_of(real, get->key[0].id);
    shard_get(real->shard[at], get->key, only, 1, get->value, get->state);
    return STORE_DONE;
}

static enum store_answer
real_get(struct store *store, struct store_get *get)
{
    struct real_store *real = real_of(store);
    uint16_t shard_at[STORE_GET_MAX];
    uint16_t order[STORE_GET_MAX];
    uint16_t end[SHARDS_MAX];
    ASSERT(get->n <= STORE_GET_MAX);
    if (get->n == 1) {
        return get_one(real, get);
    }
    memset(end, 0, real->n_shards * sizeof *end);
    for (uint32_t i = 0; i < get->n; i++) {
        shard_at[i] = (uint16_t)shard_of(real, get->key[i].id);
        end[shard_at[i]]++;
    }
    uint16_t sum = 0;
    for (unsigned s = 0; s < real->n_shards; s++) {
        uint16_t n = end[s];
        end[s] = sum; /* where the shard's part begins, for now */
        sum = (uint16_t)(sum + n);
    }
    for (uint32_t i = 0; i < get->n; i++) {
        order[end[shard_at[i]]++] = (uint16_t)i;
    }
    for (unsigned s = 0, begin = 0; s < real->n_shards; s++) {
        if (end[s] > begin) {
            shard_get(real->shard[s], get->key, order + begin, end[s] - begin,
                get->value, get->state);
        }
        begin = end[s];
    }
    return STORE_DONE;
}

static enum store_answer
real_change(struct store *store, struct store_change *change)
{
    struct real_store *real = real_of(store);
    for (uint32_t i = 0; i < change->n; i++) {
        struct change *one = &change->change[i];
        shard_change(real->shard[shard_of(real, one->id)], one);
    }
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
    struct real_store *real = real_of(store);
    struct store_sum sum = {0, 0};
    for (unsigned s = 0; s < real->n_shards; s++) {
        struct shard_sum part = shard_sum(real->shard[s], counter_slot);
        sum.records += part.records;
        sum.bytes += part.bytes;
    }
    return sum;
}

static const struct store_calls real_calls = {
    .get = real_get,
    .change = real_change,
    .edit = real_edit,
    .sum = real_sum,
};

static void
destroy_shards(struct real_store *real)
{
    for (unsigned s = 0; s < real->n_shards; s++) {
        shard_destroy(&real->shard[s]);
    }
}

static int
create_shards(struct real_store *real, const struct store_config *config)
{
    for (unsigned s = 0; s < real->n_shards; s++) {
        real->shard[s] = shard_create(NULL, config->seed);
        if (real->shard[s] == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    return 0;
}

int
store_create(const struct store_config *config, struct store **out)
{
    unsigned n = config->shards;
    ASSERT(n >= 1 && n <= SHARDS_MAX && (n & (n - 1)) == 0);
    int err = ERR_NO_MEMORY;
    struct real_store *real = calloc(1, sizeof *real + n * sizeof(void *));
    if (real == NULL) {
        return err;
    }
    real->n_shards = n;
    const struct schema *schema = schema_create();
    real->store.items = items_create(&config->items);
    if (schema == NULL || real->store.items == NULL ||
        create_shards(real, config) != 0) {
        goto err_after_parts;
    }
    atomic_init(&real->schema, schema);
    qsbr_init(&real->qsbr);
    real->store.calls = &real_calls;
    real->store.qsbr = &real->qsbr;
    real->store.schema = &real->schema;
    err =
        keeper_start(&real->keeper, &real->store, real->shard, real->n_shards);
    if (err != 0) {
        qsbr_fini(&real->qsbr);
        goto err_after_parts;
    }
    *out = &real->store;
    return 0;

err_after_parts:
    destroy_shards(real);
    items_destroy(&real->store.items);
    schema_destroy((struct schema **)&schema);
    free(real);
    return err;
}

void
store_destroy(struct store **store)
{
    struct real_store *real = real_of(*store);
    keeper_stop(&real->keeper);
    destroy_shards(real);
    items_destroy(&real->store.items);
    /* relaxed: the keeper, its only writer, has been joined */
    struct schema *schema = (struct schema *)atomic_load_explicit(
        &real->schema, memory_order_relaxed);
    schema_destroy(&schema);
    qsbr_fini(&real->qsbr);
    free(real);
    *store = NULL;
}

void
store_verify(struct store *store)
{
    struct real_store *real = real_of(store);
    for (unsigned s = 0; s < real->n_shards; s++) {
        shard_verify(real->shard[s]);
    }
    items_verify(store->items);
}
