/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine: shards with their locks, and the columns of counters.
 * engine_change.c makes changes.
 *
 * An id belongs to one shard. There, each counter has its tables (ranges.h). A
 * view holds the counter's columns; one pointer publishes it. A published view
 * does not change, but for the serials of dropped columns, which the old view
 * loses too. So readers and writers agree on the meaning of a serial: a writer
 * loads the view under its shard's lock, and the thread that exchanges the view
 * takes every lock once before it relies on nobody using the old one. */
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/members_priv.h"
#include "engine/naming.h"
#include "engine/reader_priv.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>

enum { LINE_ALIGN = 64, WORD_BITS = 64 };

static size_t
shards_bytes(unsigned n)
{
    return n * sizeof(struct shard) + LINE_ALIGN;
}

static int
make_shards(struct engine *engine)
{
    size_t bytes = shards_bytes(engine->n_shards);
    engine->shard_block = alloc_zeroed(engine->alloc, bytes);
    if (engine->shard_block == NULL) {
        return ERR_NO_MEMORY;
    }
    uintptr_t at = (uintptr_t)engine->shard_block + LINE_ALIGN - 1;
    engine->shard = (void *)(at - at % LINE_ALIGN);
    for (unsigned i = 0; i < engine->n_shards; i++) {
        struct shard *shard = &engine->shard[i];
        shard->owner = (struct table_owner){.lock = &shard->lock,
            .pool = &engine->pool,
            .perm = &engine->perm,
            .stripes = &shard->stripes};
    }
    return 0;
}

/* The limit of a table: what was asked for, and small enough that a budget
 * holds eight tables a shard. */
static uint32_t
records_max(const struct engine_config *config)
{
    uint64_t most = config->table_records_max == 0 ? ENGINE_TABLE_RECORDS_MAX
                                                   : config->table_records_max;
    uint64_t share = config->hot_bytes / (8 * (uint64_t)config->shards) / 5;
    uint64_t least = 64;
    if (share < most) {
        most = share < least ? least : share;
    }
    return (uint32_t)most;
}

int
engine_create(const struct engine_config *config, struct engine **out)
{
    unsigned n = config->shards;
    ASSERT(n >= 1 && n <= ENGINE_SHARDS_MAX && (n & (n - 1)) == 0);
    ASSERT(config->hot_bytes >= ENGINE_HOT_BYTES_MIN);
    struct engine *engine = alloc_zeroed(config->alloc, sizeof *engine);
    if (engine == NULL) {
        return ERR_NO_MEMORY;
    }
    engine->n_shards = n;
    engine->shard_bits = (unsigned)__builtin_ctz(n);
    engine->shard_odd = fold_id(config->seed) | 1;
    engine->perm = perm_make(config->seed);
    engine->alloc = config->alloc;
    engine->n_records_max = records_max(config);
    engine->get_fn = reader_fn(config->isa);
    int err = pool_init(
        &engine->pool, config->alloc, config->qsbr, config->hot_bytes);
    if (err != 0) {
        goto err_after_engine;
    }
    err = make_shards(engine);
    if (err != 0) {
        goto err_after_pool;
    }
    err = sorted__init(engine, config->hot_bytes);
    if (err != 0) {
        goto err_after_shards;
    }
    mutex_init(&engine->members.lock);
    *out = engine;
    return 0;

err_after_shards:
    alloc_free(config->alloc, engine->shard_block, shards_bytes(n));
err_after_pool:
    pool_fini(&engine->pool);
err_after_engine:
    alloc_free(config->alloc, engine, sizeof *engine);
    return err;
}

void
engine_assert_held(const struct engine *engine, unsigned shard)
{
    ASSERT(shard < engine->n_shards);
    lock_assert_held(&engine->shard[shard].lock);
}

void
engine_destroy(struct engine **engine)
{
    struct engine *it = *engine;
    if (it == NULL) {
        return;
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        struct counter *counter = engine__counter(it, slot);
        engine_undefine(it, slot);
        if (counter != NULL) {
            pool_give_block(&it->pool, counter, counter__bytes(it));
        }
    }
    members__fini(it);
    sorted__fini(it);
    pool_fini(&it->pool);
    alloc_free(it->alloc, it->shard_block, shards_bytes(it->n_shards));
    alloc_free(it->alloc, it, sizeof *it);
    *engine = NULL;
}

void
engine_get(struct engine *engine, const struct cell_key *key, size_t n,
    uint64_t *value, uint8_t *state)
{
    engine->get_fn(engine, key, n, value, state);
}

void
engine_settle(struct engine *engine, const struct cell_key *key, size_t n)
{
    uint64_t done[ENGINE_SHARDS_MAX / WORD_BITS];
    memset(done, 0,
        (engine->n_shards + WORD_BITS - 1) / WORD_BITS * sizeof *done);
    for (size_t i = 0; i < n; i++) {
        uint32_t shard = engine__row(engine, key[i].id).shard;
        uint64_t bit = UINT64_C(1) << shard % WORD_BITS;
        if ((done[shard / WORD_BITS] & bit) == 0) {
            done[shard / WORD_BITS] |= bit;
            shard__lock(&engine->shard[shard]);
            shard__unlock(&engine->shard[shard]);
        }
    }
}

void
engine_settle_all(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        shard__unlock(&engine->shard[i]);
    }
}

void
engine_set_sink(struct engine *engine, struct engine_sink *sink)
{
    engine->sink = sink;
}

void
engine_set_whole(struct engine *engine, bool is_whole)
{
    engine->whole = is_whole ? UINT32_MAX : 0;
}

void
engine_set_marks(struct engine *engine, struct engine_marks *marks)
{
    engine->marks = marks;
}

void
engine_set_names(struct engine *engine, struct engine_names *names)
{
    engine->names = names;
}

void
engine_hold(struct engine *engine, unsigned shard,
    void (*fn)(void *context, unsigned shard), void *context)
{
    ASSERT(shard < engine->n_shards);
    shard__lock(&engine->shard[shard]);
    fn(context, shard);
    shard__unlock(&engine->shard[shard]);
}

void
engine_row(
    const struct engine *engine, uint64_t id, unsigned *shard, uint64_t *row)
{
    struct engine_row at = engine__row(engine, id);
    *shard = at.shard;
    *row = at.row;
}

uint64_t
engine_id(const struct engine *engine, unsigned shard, uint64_t row)
{
    return engine__id(engine, shard, row);
}

uint64_t
engine_pair(const struct engine *engine, uint64_t id, uint64_t number,
    unsigned bits, uint64_t member)
{
    ASSERT(bits < 64 && member >> bits == 0);
    uint64_t row = number << bits | member;
    ASSERT(row >> bits == number &&
        row << engine->shard_bits >> engine->shard_bits == row);
    return engine__id(engine, engine__row(engine, id).shard, row);
}

const _Atomic uint64_t *
engine_share_budget(struct engine *engine, const _Atomic uint64_t *beside)
{
    engine->pool.beside = beside;
    return &engine->pool.used_bytes;
}

uint64_t
engine_hot_bytes(struct engine *engine, uint64_t *garbage_bytes)
{
    *garbage_bytes = pool_garbage_bytes(&engine->pool);
    return pool_used_bytes(&engine->pool);
}
