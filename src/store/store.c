/* SPDX-License-Identifier: BSD-3-Clause */
/* The store makes and ends all that is stored: engine, items, producers,
 * keeper, gardener, dumper, sorter and remover; where there is a data
 * directory, also the log, the loader, the checkpointer and the cold tier. It
 * answers from memory at once and from the disk later (call/store_calls.h). Its
 * life has three states (store/store_life.h); the loader's thread ends the
 * first, store_begin opens it. */
#include "store/store.h"
#include "store/backup.h"

#include "base/err.h"
#include "durable/durable_about.h"
#include "durable/durable_commit.h"
#include "durable/durable_position.h"
#include "durable/snapshot.h"
#include "engine/members.h"
#include "engine/naming.h"
#include "schema/restore.h"
#include "store/store_about.h"
#include "store/store_names.h"
#include "store/store_real.h"

#include <stddef.h>
#include <stdlib.h>

/* Of a call for each request: nothing is checked. */
static struct real_store *
real_of(struct store *store)
{
    return (struct real_store *)store;
}

/* A get with sources: they are looked for in all places before the cells. */
static __attribute__((noinline)) enum store_answer
get_behind_sources(struct real_store *real, struct store_get *get)
{
    enum { AT = STORE_GET_MAX };
    ASSERT(get->n_sources <= STORE_SOURCES_MAX);
    if (real->has_tier) {
        return cold_get_sources(&real->tier.cold, get);
    }
    engine_get(real->engine, &get->key[AT], get->n_sources, &get->value[AT],
        &get->state[AT]);
    engine_get(real->engine, get->key, get->n, get->value, get->state);
    return STORE_DONE;
}

static enum store_answer
real_get(struct store *store, struct store_get *get)
{
    ASSERT(get->n <= STORE_GET_MAX);
    struct real_store *real = real_of(store);
    if (__builtin_expect(get->n_sources != 0, 0)) {
        return get_behind_sources(real, get);
    }
    engine_get(real->engine, get->key, get->n, get->value, get->state);
    return real->has_tier ? cold_get(&real->tier.cold, get) : STORE_DONE;
}

static enum store_answer
real_change(struct store *store, struct store_change *change)
{
    struct real_store *real = real_of(store);
    change->seq = engine_change(real->engine, change->change, change->n);
    return real->has_tier ? cold_change(&real->tier.cold, change) : STORE_DONE;
}

static enum store_answer
real_edit(struct store *store, struct store_edit *edit)
{
    keeper_add(&store__real(store)->keeper, edit);
    return STORE_LATER;
}

static int
real_fault(struct store *store)
{
    struct real_store *real = real_of(store);
    if (!real->is_durable) {
        return 0;
    }
    if (store__life(real) == STORE_LOADING) {
        return ERR_LOADING;
    }
    int refusal = durable_refusal(&real->durable);
    return refusal != 0 ? refusal : wal_fault(real->durable.wal);
}

static uint64_t
real_pair(struct store *store, uint64_t id, uint64_t number, unsigned bits,
    uint64_t member)
{
    return engine_pair(real_of(store)->engine, id, number, bits, member);
}

static void
real_numbers(struct store *store, unsigned pairs, unsigned bits,
    unsigned shard, struct engine_numbers *out)
{
    engine_numbers(real_of(store)->engine, pairs, bits, shard, out);
}

static enum store_answer
real_pin(struct store *store, struct store_pin *pin)
{
    return sorter_pin(&real_of(store)->sorter, pin);
}

static void
real_unpin(struct store *store, struct sorted_pin *pin)
{
    engine_unpin(real_of(store)->engine, pin);
}

static void
real_sorted_figures(struct store *store, struct sorted_figures *out)
{
    engine_sorted_figures(real_of(store)->engine, out);
}

static int
real_producer(struct store *store, const char *name, size_t len,
    struct store_producer *out)
{
    int fault = real_fault(store);
    return fault != 0
        ? fault
        : producers_find(&real_of(store)->producers, name, len, out);
}

static int
real_join_window(
    struct store *store, const struct store_window *window, uint64_t *seq)
{
    struct real_store *real = real_of(store);
    int fault = real_fault(store);
    return fault != 0 ? fault
                      : producers_join(&real->producers, real->engine,
                            &window->name, &window->seen, seq);
}

static uint32_t
real_windows(
    struct store *store, uint32_t *at, struct store_window *out, uint32_t n)
{
    struct real_store *real = real_of(store);
    _Static_assert((int)STORE_WINDOWS_MAX == (int)PRODUCERS_JOINED_MAX,
        "they are asked for together");
    return producers_joined(&real->producers, real->engine, at, out, n);
}

static void
real_producer_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct real_store *real = real_of(store);
    if (real_fault(store) == ERR_LOADING) {
        return; /* they are not all there */
    }
    producers_each_stat(&real->producers, real->engine, stat_fn, context);
}

static struct store_sum
real_sum(struct store *store, unsigned counter_slot)
{
    struct real_store *real = real_of(store);
    struct store_sum sum;
    engine_size(real->engine, counter_slot, &sum.records, &sum.bytes);
    sum.cold_bytes =
        real->has_tier ? tier_file_bytes(&real->tier, counter_slot) : 0;
    return sum;
}

static void
real_tables(struct store *store, unsigned counter_slot, int shard,
    struct engine_sum *sum)
{
    engine_sum(real_of(store)->engine, counter_slot, shard, sum);
}

static bool
real_survey(struct store *store, unsigned counter_slot, unsigned shard,
    size_t *at, unsigned *n_left, struct engine_sum *sum,
    uint64_t (*width)[ENGINE_WIDTHS])
{
    return engine_survey(
        real_of(store)->engine, counter_slot, shard, at, n_left, sum, width);
}

static uint64_t
real_hot_bytes(struct store *store, uint64_t *garbage_bytes)
{
    return engine_hot_bytes(real_of(store)->engine, garbage_bytes);
}

/* What the log says of a batch, and those who have copies. */
static enum store_commit
commit_of(
    const struct real_store *real, enum wal_outcome outcome, uint64_t seq)
{
    switch (durable_outcome(&real->durable, outcome, seq)) {
    case WAL_COMMITTED:
        return STORE_COMMITTED;
    case WAL_WAITS:
        return STORE_COMMIT_WAITS;
    case WAL_FAILED:
        break;
    }
    return STORE_COMMIT_FAILED;
}

static enum store_commit
real_commit(struct store *store, uint64_t seq)
{
    struct real_store *real = real_of(store);
    return seq == 0 || !real->is_durable
        ? STORE_COMMITTED
        : commit_of(real, wal_commit(real->durable.wal, seq), seq);
}

static enum store_commit
real_outcome(struct store *store, uint64_t seq)
{
    struct real_store *real = real_of(store);
    return seq == 0 || !real->is_durable
        ? STORE_COMMITTED
        : commit_of(real, wal_outcome(real->durable.wal, seq), seq);
}

static uint64_t
real_seen(struct store *store, const struct cell_key *key, uint32_t n)
{
    struct real_store *real = real_of(store);
    if (!real->is_durable) {
        return 0;
    }
    engine_settle(real->engine, key, n);
    uint64_t seq = durable_touched(&real->durable);
    return real_outcome(store, seq) == STORE_COMMITTED ? 0 : seq;
}

/* The log's listener: tells all of ours. They are told under the lock, so that
 * one that has been taken off is not being told. */
static void
on_log_moved(struct wal_listener *listener)
{
    struct real_store *real = (struct real_store *)((char *)listener -
        offsetof(struct real_store, log_listener));
    ASSERT(real->magic == REAL_MAGIC);
    rwlock_read(&real->listeners_lock);
    for (struct store_listener *it = real->listeners; it != NULL;
         it = it->next) {
        it->moved_fn(it);
    }
    rwlock_leave(&real->listeners_lock);
}

static void
real_listen(struct store *store, struct store_listener *listener)
{
    struct real_store *real = store__real(store);
    ASSERT(listener->moved_fn != NULL);
    rwlock_write(&real->listeners_lock);
    listener->next = real->listeners;
    real->listeners = listener;
    rwlock_leave(&real->listeners_lock);
}

static void
real_unlisten(struct store *store, struct store_listener *listener)
{
    struct real_store *real = store__real(store);
    rwlock_write(&real->listeners_lock);
    struct store_listener **link = &real->listeners;
    while (*link != listener) {
        ASSERT(*link != NULL); /* it listens */
        link = &(*link)->next;
    }
    *link = listener->next;
    rwlock_leave(&real->listeners_lock);
}

static enum store_answer
real_checkpoint(struct store *store, struct store_checkpoint *checkpoint)
{
    struct real_store *real = store__real(store);
    if (!real->is_durable) {
        checkpoint->err = ERR_NO_DATA_DIR;
        return STORE_DONE;
    }
    checkpointer_want(&real->checkpointer, checkpoint);
    return STORE_LATER;
}

static enum store_answer
real_seal(struct store *store, struct store_seal *seal)
{
    struct real_store *real = store__real(store);
    if (!real->has_tier) {
        seal->err = ERR_NO_DATA_DIR;
        return STORE_DONE;
    }
    sealer_add(&real->tier.sealer, seal);
    return STORE_LATER;
}

static enum store_answer
real_dump(struct store *store, struct store_dump *dump)
{
    dumper_add(&store__real(store)->dumper, dump);
    return STORE_LATER;
}

static void
real_end_dump(struct store *store, struct store_dump *dump)
{
    dumper_end(&store__real(store)->dumper, dump);
}

static enum store_answer
real_backup(struct store *store, struct store_backup *backup)
{
    return backup_begin(
        store, store__real(store)->durable.config.path, backup);
}

static int
real_end_backup(struct store *store, struct store_backup *backup)
{
    (void)store;
    return backup_end(backup);
}

static int
real_forget(struct store *store, struct owns **owns)
{
    int fault = real_fault(store);
    return fault != 0 ? fault : remover_begin(&real_of(store)->remover, owns);
}

static void
real_forget_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    remover_each_stat(&real_of(store)->remover, stat_fn, context);
}

static int
real_open_ring(struct store *store, struct store_ring **out)
{
    struct real_store *real = real_of(store);
    return real->has_tier ? tier_open_ring(&real->tier, out) : ERR_NOT_FOUND;
}

static void
real_cold_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct real_store *real = real_of(store);
    if (real->has_tier) {
        tier_each_stat(&real->tier, stat_fn, context);
    } else {
        stat_fn(context, "state", "none");
    }
}

static void
real_data_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    struct real_store *real = real_of(store);
    if (!real->is_durable) {
        stat_fn(context, "state",
            real->keeper.is_missing ? err_text(ERR_NO_DATA_DIR)
                                    : "memory only");
        return;
    }
    int fault = real_fault(store);
    stat_fn(context, "state", fault == 0 ? "writable" : err_text(fault));
    durable_each_stat(&real->durable, fault != ERR_LOADING, stat_fn, context);
}

static const struct store_calls real_calls = {
    .get = real_get,
    .change = real_change,
    .edit = real_edit,
    .producer = real_producer,
    .join_window = real_join_window,
    .windows = real_windows,
    .producer_stats = real_producer_stats,
    .sum = real_sum,
    .tables = real_tables,
    .survey = real_survey,
    .hot_bytes = real_hot_bytes,
    .commit = real_commit,
    .outcome = real_outcome,
    .seen = real_seen,
    .fault = real_fault,
    .pair = real_pair,
    .about_get = store_about__get,
    .about_add = store_about__add,
    .about_stats = store_about__stats,
    .names_stats = store_names__stats,
    .numbers = real_numbers,
    .pin = real_pin,
    .unpin = real_unpin,
    .sorted_figures = real_sorted_figures,
    .listen = real_listen,
    .unlisten = real_unlisten,
    .checkpoint = real_checkpoint,
    .seal = real_seal,
    .dump = real_dump,
    .end_dump = real_end_dump,
    .backup = real_backup,
    .end_backup = real_end_backup,
    .forget = real_forget,
    .forget_stats = real_forget_stats,
    .open_ring = real_open_ring,
    .data_stats = real_data_stats,
    .cold_stats = real_cold_stats,
};

static int
make_abouts(struct real_store *real, uint64_t seed)
{
    const struct abouts_config abouts = {.qsbr = &real->qsbr,
        .seed = seed,
        .sink_fn = real->is_durable ? durable_about_sink : NULL,
        .sink_end_fn = durable_about_sink_end,
        .context = &real->durable};
    return abouts_create(&abouts, &real->abouts);
}

/* Schema, items and engine; 0 or an error, with nothing left behind. */
static int
make_parts(struct real_store *real, const struct store_config *config,
    unsigned shards, uint64_t seed)
{
    ASSERT(shards > 0 && (shards & (shards - 1)) == 0);
    const struct engine_config engine = {.shards = shards,
        .seed = seed,
        .hot_bytes = config->hot_bytes,
        .table_records_max = config->table_records_max,
        .qsbr = &real->qsbr,
        .alloc = config->alloc};
    struct schema *schema = NULL;
    real->clock = clock_or_system(config->clock);
    /* of a data directory what is known of it: lines are parsed by it while
     * the rest is loaded, only to be refused */
    if (real->loading == NULL) {
        schema = schema_create();
    } else {
        (void)schema_restore_serial(real->loading, 0, &schema);
    }
    int err = ERR_NO_MEMORY;
    if (schema == NULL) { /* the only reason of both */
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
    err = producers_init(&real->producers, shards,
        config->producers_max == 0 ? (uint32_t)PRODUCERS_MAX_DEFAULT
                                   : config->producers_max,
        real->is_durable ? &real->durable : NULL);
    if (err != 0) {
        goto err_after_engine;
    }
    err = make_abouts(real, seed);
    if (err != 0) {
        goto err_after_producers;
    }
    err = store_names__create(real, config, shards, seed);
    if (err != 0) {
        goto err_after_abouts;
    }
    real->durable.abouts = real->abouts;
    real->durable.names = real->store.names;
    engine_set_marks(real->engine, &real->producers.marks);
    real->durable.producers = &real->producers;
    atomic_init(&real->schema, schema);
    return 0;

err_after_abouts:
    abouts_destroy(&real->abouts);
err_after_producers:
    producers_fini(&real->producers);
err_after_engine:
    engine_destroy(&real->engine);
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
    struct moved *moved = (struct moved *)atomic_load_explicit(
        &real->moved, memory_order_relaxed);
    names_destroy(&real->store.names); /* first: it shares a budget with */
    engine_destroy(&real->engine);
    abouts_destroy(&real->abouts);
    producers_fini(&real->producers);
    items_destroy(&real->store.items);
    schema_destroy(&schema);
    moved_destroy(&moved);
}

/* Makes the schema that has been loaded everybody's, and the handovers. 0 or
 * ERR_NO_MEMORY. */
static int
publish(struct real_store *real)
{
    const struct moved_list *handovers = &real->durable.handovers;
    struct moved *moved = NULL;
    int err = abouts_follow(real->abouts, real->loading);
    if (err != 0) {
        return err;
    }
    if (handovers->n > 0 && moved_create(handovers, &moved) != 0) {
        return ERR_NO_MEMORY;
    }
    /* seq_cst: see store_schema */
    atomic_store_explicit(&real->moved, moved, memory_order_seq_cst);
    ASSERT(real->loading != NULL);
    /* relaxed: nobody else stores it while loading */
    struct schema *old = (struct schema *)atomic_load_explicit(
        &real->schema, memory_order_relaxed);
    /* seq_cst: see store_schema */
    atomic_store_explicit(&real->schema, real->loading, memory_order_seq_cst);
    real->loading = NULL;
    qsbr_wait(&real->qsbr);
    schema_destroy(&old);
    return 0;
}

static int
start_gardener(struct real_store *real)
{
    const struct forgetter_config forgetter = {.engine = real->engine,
        .qsbr = &real->qsbr,
        .schema = &real->schema,
        .wal = real->durable.wal, /* NULL without a directory */
        .n_shards = real->store.shards};
    const struct name_walk_config name_walk = {.engine = real->engine,
        .names = real->store.names,
        .qsbr = &real->qsbr,
        .schema = &real->schema,
        .cover = real->has_tier ? &real->tier.cold.segment_map.cover : NULL,
        .dumper = &real->dumper,
        .wal = real->durable.wal,
        .rounds = &real->names_rounds,
        .dropped = &real->names_dropped,
        .n_shards = real->store.shards};
    int err = gardener_start(&real->gardener, &forgetter, &name_walk,
        real->store.items, real->has_tier ? &real->tier.cold : NULL,
        real->clock, real->is_replica);
    real->has_gardener = err == 0;
    return err;
}

/* The loader's thread. */
static void *
load(void *arg)
{
    struct real_store *real = arg;
    ASSERT(real->magic == REAL_MAGIC);
    const struct data_config *config = &real->durable.config;
    int err = durable_load(
        &real->durable, real->engine, &real->qsbr, &real->loading);
    if (real->durable.wal != NULL) {
        wal_listen(real->durable.wal, &real->log_listener);
    }
    if (err == 0) {
        ASSERT(real->durable.wal != NULL);
        err = publish(real);
    }
    if (err == 0) {
        if (real->is_replica) { /* before anything works in the background */
            durable_follow(&real->durable, real->durable.loaded_seq);
        }
        err = checkpointer_start(
            &real->checkpointer, &real->durable, &real->schema);
        real->has_loaded = err == 0;
    }
    if (err == 0) {
        err = tier_begin(&real->tier, &real->schema, &real->checkpointer);
    }
    if (err == 0) {
        err = start_gardener(real);
    }
    if (err == 0 && real->is_replica) {
        err = store__begin_to_follow(real);
    }
    if (config->loaded_fn != NULL) {
        config->loaded_fn(config->context, err);
    }
    return NULL;
}

/* The directory's shards and seed take the place of those given. */
static int
open_data(struct real_store *real, const struct store_config *config,
    unsigned *shards, uint64_t *seed)
{
    struct data_config data = *config->data;
    if (data.is_missing) {
        return 0;
    }
    data.clock = config->clock;
    int err = durable_open(&real->durable, &data, shards, seed);
    if (err != 0) {
        data_dir_close(&data.dir);
        return err;
    }
    real->is_durable = true;
    real->log_listener.moved_fn = on_log_moved;
    atomic_init(&real->life, STORE_LOADING);
    real->loading = schema_create();
    err = real->loading == NULL
        ? ERR_NO_MEMORY
        : durable_schema(&real->durable, &real->loading);
    if (err != 0) {
        schema_destroy(&real->loading);
        (void)durable_close(&real->durable);
    }
    return err;
}

static int
start_loading(struct real_store *real)
{
    if (!real->is_durable) {
        return start_gardener(real);
    }
    return pthread_create(&real->loader, NULL, load, real) == 0
        ? 0
        : ERR_NO_THREAD;
}

static int
start_remover(struct real_store *real)
{
    real->remover = (struct remover){.store = &real->store,
        .source = real->dumper.source,
        .clock = real->clock,
        .logger = real->is_durable ? real->durable.config.logger : NULL};
    return remover_start(&real->remover);
}

/* Dumper, sorter and remover; behind the keeper, whose parts they read. */
static int
start_walkers(struct real_store *real, const struct store_config *config,
    unsigned shards)
{
    real->dumper.source = (struct dump_source){.engine = real->engine,
        .qsbr = &real->qsbr,
        .schema = &real->schema,
        .n_shards = shards,
        .names = real->store.names,
        .durable = real->keeper.durable,
        .segment_map = real->keeper.segment_map,
        .range_records = config->dump_range_records,
        .range_blocks = config->dump_range_blocks,
        .members_found = config->dump_members_found,
        .alloc = config->dump_alloc};
    int err = dumper_start(&real->dumper);
    if (err != 0) {
        return err;
    }
    err = sorter_start(&real->sorter, real->engine, real->keeper.segment_map);
    if (err != 0) {
        goto err_after_dumper;
    }
    err = start_remover(real);
    if (err != 0) {
        goto err_after_sorter;
    }
    return 0;

err_after_sorter:
    sorter_stop(&real->sorter);
    sorter_fini(&real->sorter);
err_after_dumper:
    dumper_stop(&real->dumper);
    dumper_fini(&real->dumper);
    return err;
}

/* May be called again. */
static void
stop_walkers(struct real_store *real)
{
    remover_stop(&real->remover);
    dumper_stop(&real->dumper);
    sorter_stop(&real->sorter);
}

static void
fini_walkers(struct real_store *real)
{
    stop_walkers(real);
    remover_fini(&real->remover);
    dumper_fini(&real->dumper);
    sorter_fini(&real->sorter);
}

static int
start_keeper(struct real_store *real, const struct store_config *config)
{
    real->keeper = (struct keeper){.store = &real->store,
        .engine = real->engine,
        .producers = &real->producers,
        .abouts = real->abouts,
        .durable = real->is_durable ? &real->durable : NULL,
        .segment_map = real->has_tier ? &real->tier.cold.segment_map : NULL,
        .cold = real->has_tier ? &real->tier.cold : NULL,
        .remover = &real->remover,
        .is_missing = config->data != NULL && config->data->is_missing};
    return keeper_start(&real->keeper);
}

/* Of a directory it is to load, open_data says so. NULL: no memory. */
static struct real_store *
make_real(void)
{
    struct real_store *real = calloc(1, sizeof *real);
    if (real != NULL) {
        real->magic = REAL_MAGIC;
        atomic_init(&real->life, STORE_OPEN);
        qsbr_init(&real->qsbr);
        rwlock_init(&real->listeners_lock);
    }
    return real;
}

static void
destroy_real(struct real_store *real)
{
    ASSERT(real->listeners == NULL);
    rwlock_fini(&real->listeners_lock);
    qsbr_fini(&real->qsbr);
    real->magic = 0;
    free(real);
}

int
store_create(const struct store_config *config, struct store **out)
{
    struct real_store *real = make_real();
    unsigned shards = config->shards;
    uint64_t seed = config->seed;
    int err = 0;
    if (real == NULL) {
        return ERR_NO_MEMORY;
    }
    if (config->data != NULL) {
        err = open_data(real, config, &shards, &seed);
    }
    if (err != 0) {
        goto err_after_real;
    }
    err = make_parts(real, config, shards, seed);
    if (err != 0) {
        goto err_after_data;
    }
    if (real->is_durable) {
        err = tier_init(&real->tier, real->engine, shards, &real->qsbr,
            &real->durable, config->hot_bytes);
        real->has_tier = err == 0;
    }
    if (err != 0) {
        goto err_after_parts;
    }
    real->store.calls = &real_calls;
    real->store.qsbr = &real->qsbr;
    real->store.schema = &real->schema;
    real->store.moved = &real->moved;
    real->store.shards = shards;
    real->is_replica = real->is_durable && real->durable.config.is_replicated;
    err = start_keeper(real, config);
    if (err != 0) {
        goto err_after_parts;
    }
    err = start_walkers(real, config, shards);
    if (err != 0) {
        goto err_after_keeper;
    }
    err = start_loading(real);
    if (err != 0) {
        goto err_after_walkers;
    }
    *out = &real->store;
    return 0;

err_after_walkers:
    fini_walkers(real);
err_after_keeper:
    keeper_stop(&real->keeper);
err_after_parts:
    destroy_parts(real);
    if (real->has_tier) {
        tier_fini(&real->tier);
    }
err_after_data:
    if (real->is_durable) {
        schema_destroy(&real->loading);
        (void)durable_close(&real->durable);
    }
err_after_real:
    destroy_real(real);
    return err;
}

void
store_begin(struct store *store)
{
    struct real_store *real = store__real(store);
    if (real->is_durable) {
        ASSERT(real->has_loaded && real->loading == NULL);
        store_life_move(&real->life, STORE_OPEN);
    }
    if (atomic_exchange_explicit(
            &real->wants_checkpoint, false, memory_order_seq_cst)) {
        checkpointer_want(&real->checkpointer, NULL);
    }
}

void
store_want_checkpoint(struct store *store)
{
    struct real_store *real = store__real(store);
    if (!real->is_durable) {
        return;
    }
    /* seq_cst, as in store_begin: of a wish and the end of loading one sees
     * the other, and the exchange takes care that only one does something */
    atomic_store_explicit(&real->wants_checkpoint, true, memory_order_seq_cst);
    if (atomic_load_explicit(&real->life, memory_order_seq_cst) !=
            STORE_LOADING &&
        atomic_exchange_explicit(
            &real->wants_checkpoint, false, memory_order_seq_cst)) {
        checkpointer_want(&real->checkpointer, NULL);
    }
}

void
store_want_snapshot(struct store *store, struct snapshot *snapshot)
{
    struct real_store *real = store__real(store);
    enum store_life life = store__life(real);
    if (real->is_durable && life == STORE_OPEN) {
        checkpointer_want_snapshot(&real->checkpointer, snapshot);
        return;
    }
    *snapshot = (struct snapshot){.call = snapshot->call,
        .pin_bytes_max = snapshot->pin_bytes_max,
        .keeps_names = snapshot->keeps_names,
        .err = !real->is_durable    ? ERR_NO_DATA_DIR
            : life == STORE_LOADING ? ERR_LOADING
                                    : ERR_CLOSED};
    snapshot->call.done_fn(&snapshot->call);
}

void
store_end_calls(struct store *store)
{
    struct real_store *real = store__real(store);
    stop_walkers(real);
    if (store__life(real) != STORE_OPEN) { /* what loads goes on refusing */
        return;
    }
    store_life_move(&real->life, STORE_ENDING);
    if (real->is_durable) {
        tier_end(&real->tier); /* first: the checkpointer names what it did */
        checkpointer_end(&real->checkpointer, real->wants_last_checkpoint);
    }
}

void
store_want_last_checkpoint(struct store *store)
{
    store__real(store)->wants_last_checkpoint = true;
}

int
store_destroy(struct store **store)
{
    struct real_store *real = store__real(*store);
    int err = 0;
    if (real->is_durable) {
        durable_cancel(&real->durable);
        pthread_join(real->loader, NULL);
    }
    if (store__life(real) != STORE_ENDING) {
        store_life_move(&real->life, STORE_ENDING);
    }
    store__cease_to_follow(real);
    remover_stop(&real->remover); /* first: the gardener ends its waits */
    if (real->has_gardener) {
        gardener_stop(&real->gardener);
    }
    keeper_stop(&real->keeper);
    fini_walkers(real);
    if (real->has_tier) {
        tier_end(&real->tier);
    }
    bool has_last = !real->has_loaded ||
        checkpointer_stop(&real->checkpointer, real->wants_last_checkpoint) ==
            0;
    if (real->is_durable) {
        schema_destroy(&real->loading);
        engine_set_sink(real->engine, NULL);
        if (real->durable.wal != NULL) {
            wal_unlisten(real->durable.wal, &real->log_listener);
        }
    }
    destroy_parts(real); /* the engine asks the maps to its end */
    if (real->has_tier) {
        tier_fini(&real->tier); /* closes files, while there is a disk */
    }
    if (real->is_durable) {
        struct logger *logger = real->durable.config.logger;
        err = durable_close(&real->durable);
        if (real->has_loaded && real->checkpointer.is_foreign) {
            log_line(logger, LOG_ERROR,
                "stopped while another server has the data directory: what "
                "this one had taken since that one began is not in it");
            err = ERR_DIR_TAKEN;
        } else if (!has_last && real->checkpointer.n_missing > 0) {
            log_line(logger, LOG_ERROR,
                "files of the data directory were removed or changed, and no "
                "checkpoint could make up for them: restore the directory "
                "from a copy");
            err = err == 0 ? ERR_CORRUPT : err;
        } else if (real->has_loaded && real->checkpointer.n_lost > 0) {
            log_line(logger, LOG_ERROR,
                "segments of the data directory were removed or changed: put "
                "the files back from a backup that has them, or restore the "
                "directory");
            err = err == 0 ? ERR_CORRUPT : err;
        } else if (err == 0 && !has_last) {
            log_line(logger, LOG_WARNING,
                "stopped without a last checkpoint; the log has all changes, "
                "the next start replays it");
        }
    }
    destroy_real(real);
    *store = NULL;
    return err;
}

void
store_verify(struct store *store)
{
    engine_verify(store__real(store)->engine);
    items_verify(store->items);
}
