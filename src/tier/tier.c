/* SPDX-License-Identifier: BSD-3-Clause */
/* Composes the cold tier: the maps of what is covered, the pool that reads
 * segments, and the sealer. They are made before anything is loaded, begin when
 * all is, and end before what they stand on. */
#include "tier/tier.h"

#include "base/assert.h"
#include "base/err.h"

#include "tier/seal_pick.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COPY_SHARE = 8 /* of the budget, beside it: what a seal copies */ };

int
tier_init(struct tier *tier, struct engine *engine, unsigned n_shards,
    struct qsbr *qsbr, struct durable *durable, uint64_t hot_bytes)
{
    const struct data_config *config = &durable->config;
    const struct fetch_config fetch = {.threads = config->cold_threads,
        .cache_bytes = config->cold_cache_bytes,
        .logger = config->logger,
        .clock = config->clock};
    *tier = (struct tier){.durable = durable};
    ASSERT(durable->segment_map == NULL); /* the durable has one cold tier */
    int err = fetch_start(&fetch, &tier->cold.fetch);
    if (err != 0) {
        return err;
    }
    tier->cold.magic = COLD_MAGIC;
    tier->cold.engine = engine;
    tier->cold.clock = config->clock;
    segment_map__init(
        &tier->cold.segment_map, engine, n_shards, qsbr, tier->cold.fetch);
    tier->cold.segment_map.edit_lock = &durable->edit_lock;
    durable->segment_map = segment_map__as_durable(&tier->cold.segment_map);
    engine_set_cover(engine, &tier->cold.segment_map.cover);
    mutex_init(&tier->cold.lock);
    qsbr_register(qsbr, &tier->cold.taking.reader);
    tier->sealer = (struct sealer){.cold = &tier->cold,
        .hot_bytes = hot_bytes,
        .is_told = config->seals_when_told,
        .tidy = config->tidy,
        .seal = {.durable = durable,
            .segment_map = &tier->cold.segment_map,
            .engine = engine,
            .n_shards = n_shards,
            .epoch = durable->history,
            .copy_bytes = hot_bytes / COPY_SHARE,
            .chunk = config->seal_records,
            .fetch = tier->cold.fetch,
            .codec = (enum block_codec)config->cold_codec,
            .level = config->cold_level}};
    return 0;
}

/* Says where what has been loaded takes more than there is to be. */
static void
tell_excess(struct tier *tier)
{
    const struct sealer *sealer = &tier->sealer;
    uint64_t garbage;
    uint64_t used = engine_hot_bytes(tier->cold.engine, &garbage);
    if (used > sealer->hot_bytes) {
        log_line(tier->durable->config.logger, LOG_WARNING,
            "what has been loaded takes %" PRIu64
            " bytes of memory, --hot-memory is %" PRIu64
            ": new records wait for a second, and are refused then, until "
            "the excess is in the cold tier",
            used, sealer->hot_bytes);
    }
}

int
tier_begin(struct tier *tier, _Atomic(const struct schema *) *schema,
    struct checkpointer *checkpointer)
{
    ASSERT(!tier->has_sealer && tier->durable->wal != NULL);
    segment_map__end_loading(&tier->cold.segment_map);
    tell_excess(tier);
    tier->sealer.seal.schema = schema;
    tier->sealer.checkpointer = checkpointer;
    int err = sealer_start(&tier->sealer);
    tier->has_sealer = err == 0;
    return err;
}

void
tier_end(struct tier *tier)
{
    if (tier->has_sealer) {
        sealer_stop(&tier->sealer);
    }
}

void
tier_fini(struct tier *tier)
{
    if (tier->has_sealer) {
        sealer_fini(&tier->sealer);
    }
    ASSERT(tier->cold.magic == COLD_MAGIC);
    ASSERT(tier->cold.waiting.first == NULL); /* all are answered */
    tier->durable->segment_map = NULL;
    segment_map__fini(&tier->cold.segment_map);
    qsbr_unregister(tier->cold.segment_map.qsbr, &tier->cold.taking.reader);
    mutex_fini(&tier->cold.lock);
    tier->cold.magic = 0;
    fetch_stop(&tier->cold.fetch);
}

struct lines {
    void (*stat_fn)(void *context, const char *name, const char *value);
    void *context;
};

static void
put(const struct lines *lines, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    lines->stat_fn(lines->context, name, text);
}

/* One number over another; 0 where that is 0. */
static void
put_ratio(const struct lines *lines, const char *name, uint64_t above,
    uint64_t below)
{
    char text[32];
    double ratio = below == 0 ? 0 : (double)above / (double)below;
    (void)snprintf(text, sizeof text, "%.4f", ratio);
    lines->stat_fn(lines->context, name, text);
}

/* What the segments hold, by the maps. */
static void
put_segments(struct tier *tier, const struct lines *lines)
{
    struct segment_map_sum sum;
    segment_map__sum(&tier->cold.segment_map, &sum);
    put(lines, "segments", sum.files);
    put(lines, "ranges", sum.entries);
    put(lines, "blocks", sum.blocks);
    put(lines, "records", sum.records);
    put(lines, "bytes", sum.bytes);
    put(lines, "memory", sum.memory);
    put_ratio(lines, "bytes_a_record", sum.bytes, sum.records);
    put_ratio(lines, "memory_a_record", sum.memory, sum.records);
}

/* What hot tables hold, by what would be sealed at a time; and which ranges are
 * between two states, one at most. */
static void
put_states(struct tier *tier, const struct lines *lines)
{
    struct seal_states states;
    struct seal_progress_now progress;
    enum tidier_state state = tidier_state(&tier->sealer.tidier);
    seal_pick__states(&tier->sealer.seal, &states);
#define X(name, text) put(lines, #name, states.name);
    SEAL_STATES(X)
#undef X
    /* relaxed: a figure */
    put(lines, "ranges_sealing",
        atomic_load_explicit(
            &tier->sealer.seal.is_running, memory_order_relaxed));
    sealer_progress(&tier->sealer, &progress);
    put(lines, "seal_all_records", progress.all);
    put(lines, "seal_done_records", progress.done);
    put(lines, "seal_percent", progress.percent);
    put(lines, "seal_left_ms", progress.left_ms);
    put(lines, "ranges_merging", state == TIDIER_SEALING);
    put(lines, "ranges_heating", state == TIDIER_HEATING);
}

static void
put_latencies(const struct fetch_stats *stats, const struct lines *lines)
{
    for (unsigned i = 0; i < FETCH_LATENCIES; i++) {
        char name[32];
        if (stats->read_us[i] > 0) {
            (void)snprintf(
                name, sizeof name, "read_us_below_%" PRIu64, UINT64_C(1) << i);
            put(lines, name, stats->read_us[i]);
        }
    }
}

void
tier_each_stat(struct tier *tier,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    const struct lines lines = {stat_fn, context};
    const struct seal_stats *seal = &tier->sealer.seal.stats;
    struct fetch_stats fetch;
    put_segments(tier, &lines);
    put_states(tier, &lines);
    /* relaxed, all of them: figures */
#define X(name, text)                                                         \
    put(&lines, #name,                                                        \
        atomic_load_explicit(&seal->name, memory_order_relaxed));
    SEAL_STATS(X)
#undef X
    put_ratio(&lines, "write_amplification",
        atomic_load_explicit(&seal->seal_records, memory_order_relaxed),
        atomic_load_explicit(&seal->seal_hot_records, memory_order_relaxed));
    put(&lines, "room_waits",
        atomic_load_explicit(&tier->cold.room_waits, memory_order_relaxed));
    fetch_stats(tier->cold.fetch, &fetch);
#define X(name, text) put(&lines, #name, fetch.name);
    FETCH_STATS(X)
#undef X
#define X(name, text) put(&lines, "cache_" #name, fetch.cache.name);
    CACHE_STATS(X)
#undef X
    put_latencies(&fetch, &lines);
}

uint64_t
tier_file_bytes(struct tier *tier, unsigned slot)
{
    struct segment_map_sum sum = {0};
    if (slot < SCHEMA_COUNTERS_MAX) {
        segment_map__sum_of(&tier->cold.segment_map, slot, &sum);
    }
    return sum.bytes;
}
