/* SPDX-License-Identifier: BSD-3-Clause */

/* The engine as the server runs it, in one process with the measuring thread:
 * every 50 ms, and soon after a round that had work, a second thread tends
 * it. Only that thread sleeps; the measuring thread's CPU time is its own. */

#include "bench/hot.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "bench/fail.h"
#include "bench/rounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    TEND_MS = 50,
    TEND_AGAIN_MS = 1,
    NS_PER_MS = 1000000,
    SETTLED_ROUNDS = 40,       /* 2 s */
    SETTLE_ROUNDS_MAX = 12000, /* 10 minutes */
    SERIAL = 10                /* of the first column */
};

static void
sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * NS_PER_MS}, NULL);
}

static void *
tend(void *argument)
{
    struct hot *hot = argument;
    while (!atomic_load(&hot->stop)) {
        bool worked =
            engine_tend(hot->engine, clock_monotonic_ns() / NS_PER_MS);
        atomic_store(&hot->idle, worked ? 0 : atomic_load(&hot->idle) + 1);
        atomic_store(&hot->tender_cpu_ns, rounds_cpu_ns());
        sleep_ms(worked ? TEND_AGAIN_MS : TEND_MS);
    }
    return NULL;
}

static void
make_counter(struct schema_counter *counter, unsigned columns)
{
    /* as in contrib/demo/weibo.schema */
    static const uint8_t hint[] = {16, 16, 8};
    *counter = (struct schema_counter){
        .name = {5, "weibo"}, .key_name = {2, "id"}, .serial = 1};
    counter->n_columns = (uint8_t)columns;
    for (unsigned i = 0; i < columns; i++) {
        struct schema_column *column = &counter->column[i];
        column->name.len = (uint8_t)snprintf(
            column->name.text, sizeof(column->name.text), "c%u", i);
        column->serial = SERIAL + i;
        column->slot = (uint8_t)i;
        column->hint_bits = hint[i % sizeof(hint)];
        column->max_bits = 64;
    }
}

void
hot_start(struct hot *hot, const struct hot_config *config)
{
    *hot = (struct hot){0};
    make_counter(&hot->counter, config->columns);
    qsbr_init(&hot->qsbr);
    struct engine_config engine = {.shards = config->shards,
        .seed = UINT64_C(0x7a11d),
        .hot_bytes = config->hot_bytes,
        .qsbr = &hot->qsbr,
        .isa = config->isa};
    int err = engine_create(&engine, &hot->engine);
    if (err == 0) {
        err = engine_define(hot->engine, &hot->counter);
    }
    if (err != 0) {
        fail("no engine: %s", err_text(err));
    }
    if (pthread_create(&hot->tender, NULL, tend, hot) != 0) {
        fail("no second thread");
    }
    qsbr_register(&hot->qsbr, &hot->reader);
    hot_pause(hot);
}

void
hot_stop(struct hot *hot)
{
    qsbr_offline(&hot->reader);
    qsbr_unregister(&hot->qsbr, &hot->reader);
    atomic_store(&hot->stop, true);
    pthread_join(hot->tender, NULL);
    engine_destroy(&hot->engine);
    qsbr_fini(&hot->qsbr);
}

void
hot_settle(struct hot *hot)
{
    qsbr_offline(&hot->reader);
    atomic_store(&hot->idle, 0);
    for (unsigned i = 0; atomic_load(&hot->idle) < SETTLED_ROUNDS; i++) {
        if (i == SETTLE_ROUNDS_MAX) {
            fail("the background work does not end");
        }
        sleep_ms(TEND_MS);
    }
    hot_pause(hot);
}

struct cell_key
hot_key(const struct hot *hot, uint64_t id, unsigned column)
{
    return (struct cell_key){.id = id,
        .serial = hot->counter.column[column].serial,
        .counter = hot->counter.slot,
        .column = hot->counter.column[column].slot};
}

struct change
hot_change(const struct hot *hot, enum change_op op)
{
    struct change change = {.op = op,
        .counter = hot->counter.slot,
        .n_columns = hot->counter.n_columns};
    for (unsigned i = 0; i < change.n_columns; i++) {
        change.column[i] = hot->counter.column[i].slot;
        change.serial[i] = hot->counter.column[i].serial;
    }
    return change;
}

void
hot_do(struct hot *hot, struct change *change, size_t n)
{
    engine_change(hot->engine, change, n);
    for (size_t i = 0; i < n; i++) {
        if (change[i].err != 0) {
            fail("id %" PRIu64 ": %s", change[i].id, err_text(change[i].err));
        }
    }
    hot_pause(hot);
}

void
hot_check(struct hot *hot, uint64_t id, const uint64_t *value)
{
    struct cell_key key[SCHEMA_COLUMNS_MAX] = {{0}};
    uint64_t got[SCHEMA_COLUMNS_MAX];
    uint8_t state[SCHEMA_COLUMNS_MAX];
    unsigned n = hot->counter.n_columns;
    for (unsigned i = 0; i < n; i++) {
        key[i] = hot_key(hot, id, i);
    }
    engine_get(hot->engine, key, n, got, state);
    for (unsigned i = 0; i < n; i++) {
        if (got[i] != value[i] ||
            state[i] != (value[i] == 0 ? CELL_DEFAULT : CELL_SET)) {
            fail("wrong number: id %" PRIu64 " column %u is %" PRIu64
                 " instead of %" PRIu64,
                id, i, got[i], value[i]);
        }
    }
    hot_pause(hot);
}

static double
ratio(uint64_t over, uint64_t under)
{
    return under == 0 ? 0.0 : (double)over / (double)under;
}

struct hot_state
hot_look(struct hot *hot)
{
    struct hot_state state = {0};
    struct engine_sum *sum = &state.sum;
    engine_sum(hot->engine, hot->counter.slot, -1, sum);
    state.records = (double)sum->records;
    state.bytes = ratio(
        sum->line_bytes + sum->stash_bytes + sum->other_bytes, sum->records);
    uint64_t garbage_bytes;
    state.held_bytes =
        ratio(engine_hot_bytes(hot->engine, &garbage_bytes), sum->records);
    state.load = ratio(sum->used_bits, sum->usable_bits);
    state.stash = ratio(sum->stash_records, sum->records);
    state.lines_hit =
        1.0 + ratio(sum->far_records + 2 * sum->stash_records, sum->records);
    double share = ratio(sum->mask_bits, 16 * sum->lines);
    state.lines_miss = 1.0 + share + share * share;
    return state;
}

/* The records to store next, made before the clock runs. */
struct chunk {
    size_t n;
    uint64_t id[1024];
    uint64_t value[1024][POSTS_COLUMNS_MAX];
};

enum { CHUNK = sizeof(((struct chunk *)0)->id) / sizeof(uint64_t) };

/* Takes posts from place *at of the order on; false at the end. column < 0:
 * whole records, else those where that column is not 0. */
static bool
next_chunk(
    struct chunk *chunk, const struct hot_fill *fill, int column, uint64_t *at)
{
    const struct posts *posts = fill->posts;
    for (chunk->n = 0; chunk->n < CHUNK && *at < posts->n; ++*at) {
        uint64_t post =
            fill->order != NULL ? posts_order_at(fill->order, *at) : *at;
        uint64_t *value = chunk->value[chunk->n];
        if (!posts_values(posts, post, value)) {
            continue;
        }
        if (fill->mask != NULL) {
            fill->mask[post / 64] |= UINT64_C(1) << post % 64;
        }
        if (column < 0 || value[column] != 0) {
            chunk->id[chunk->n++] = posts_id(posts, post);
        }
    }
    return chunk->n > 0;
}

/* Stores a chunk in batches, by the clock. */
static void
store(struct hot *hot, struct hot_fill *fill, const struct chunk *chunk,
    struct change *change, int column)
{
    unsigned columns = column < 0 ? fill->posts->columns : 1;
    uint64_t begin_ns = rounds_cpu_ns();
    for (size_t at = 0; at < chunk->n; at += HOT_BATCH) {
        size_t n = chunk->n - at < HOT_BATCH ? chunk->n - at : HOT_BATCH;
        for (size_t i = 0; i < n; i++) {
            change[i].id = chunk->id[at + i];
            memcpy(change[i].operand,
                chunk->value[at + i] + (column < 0 ? 0 : column),
                columns * sizeof(uint64_t));
        }
        hot_do(hot, change, n);
    }
    fill->cpu_ns += rounds_cpu_ns() - begin_ns;
    fill->changes += chunk->n;
}

/* When the engine is looked at during a fill. */
struct sampler {
    uint64_t from; /* changes */
    uint64_t step; /* places of the order */
    double load_sum;
    unsigned n;
};

static void
sample(struct hot *hot, struct hot_fill *fill, struct sampler *sampler)
{
    struct hot_state state = hot_look(hot);
    if (sampler->n == 0 || state.load < fill->load_min) {
        fill->load_min = state.load;
    }
    if (state.held_bytes > fill->bytes_worst) {
        fill->bytes_worst = state.held_bytes;
    }
    sampler->load_sum += state.load;
    sampler->n++;
}

static void
fill_pass(struct hot *hot, struct hot_fill *fill, struct chunk *chunk,
    int column, struct sampler *sampler)
{
    struct change change[HOT_BATCH];
    for (size_t i = 0; i < HOT_BATCH; i++) {
        change[i] = hot_change(hot, CHANGE_SET);
        if (column >= 0) {
            change[i].n_columns = 1;
            change[i].column[0] = change[i].column[column];
            change[i].serial[0] = change[i].serial[column];
        }
    }
    uint64_t at = 0;
    uint64_t next = 0;
    while (next_chunk(chunk, fill, column, &at)) {
        store(hot, fill, chunk, change, column);
        if (fill->changes >= sampler->from && at >= next) {
            sample(hot, fill, sampler);
            next = at + sampler->step;
            rounds_progress("filling, %.0f %%",
                100.0 * (double)at / (double)fill->posts->n);
        }
    }
}

void
hot_fill(struct hot *hot, struct hot_fill *fill)
{
    struct chunk *chunk = malloc(sizeof(*chunk));
    if (chunk == NULL) {
        fail("out of memory for the fill");
    }
    uint64_t tenth = fill->posts->n / 10;
    struct sampler sampler = {
        .from = tenth > HOT_SAMPLE_FROM ? HOT_SAMPLE_FROM : tenth,
        .step = fill->posts->n / 200};
    uint64_t tender_ns = atomic_load(&hot->tender_cpu_ns);
    if (fill->by_column) {
        for (unsigned i = 0; i < fill->posts->columns; i++) {
            fill_pass(hot, fill, chunk, (int)i, &sampler);
        }
    } else {
        fill_pass(hot, fill, chunk, -1, &sampler);
    }
    fill->load_mean = sampler.load_sum / (sampler.n > 0 ? sampler.n : 1);
    fill->tender_cpu_ns = atomic_load(&hot->tender_cpu_ns) - tender_ns;
    free(chunk);
}
