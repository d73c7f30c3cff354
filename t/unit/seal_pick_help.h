/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_SEAL_PICK_HELP_H
#define UNIT_SEAL_PICK_HELP_H

/* An engine with two or three counters and covers made up, for the tests of
 * tier/seal_pick. */

#include "tier/seal_pick.h"

#include "lib/fake_disk.h"
#include "unit/edit_help.h"
#include "unit/segment_help.h"

#include <stdio.h>

enum {
    SHARDS = 4,
    TABLE_RECORDS = 512,
    CHUNK = 8192, /* records of a candidate, about */
    RANGES = 12,  /* as many ids as make so many of them */
    IDS = RANGES * CHUNK,
    BATCH = 64,
    ROUND_MS = 50,
    HEAVY_ROUNDS = 100
};

struct world {
    struct qsbr qsbr;
    struct engine *engine;
    struct fake_disk *fake;
    struct segment_map segment_map;
    struct durable durable; /* of which only the lock is used */
    struct schema *owned;
    _Atomic(const struct schema *) schema;
    struct seal seal;
    struct seal_aside aside;
    uint64_t now_ms;
};

static inline void
edit(struct world *world, const char *line)
{
    struct schema_edit edit = edit_of(line);
    struct schema *next;
    ck_assert_int_eq(schema_apply(world->owned, &edit, &next), 0);
    schema_destroy(&world->owned);
    world->owned = next;
    /* relaxed: one thread */
    atomic_store_explicit(&world->schema, next, memory_order_relaxed);
    const struct schema_counter *counter =
        schema_counter(next, edit.counter.name.text, edit.counter.name.len);
    ck_assert_int_eq(engine_define(world->engine, counter), 0);
}

/* options: of the first counter. The second one is "other". */
static inline void
begin_with(struct world *world, const char *options, uint32_t table_records)
{
    const struct engine_config engine = {.shards = SHARDS,
        .seed = 3,
        .hot_bytes = 4 * ENGINE_HOT_BYTES_MIN,
        .qsbr = &world->qsbr,
        .table_records_max = table_records};
    char line[100];
    *world = (struct world){
        .now_ms = 1000, .durable = {.config = {.clock = &clock_system}}};
    qsbr_init(&world->qsbr);
    ck_assert_int_eq(engine_create(&engine, &world->engine), 0);
    world->fake = fake_disk_create(1);
    segment_map__init(
        &world->segment_map, world->engine, SHARDS, &world->qsbr, NULL);
    segment_map__end_loading(&world->segment_map);
    mutex_init(&world->durable.edit_lock);
    world->seal = (struct seal){.durable = &world->durable,
        .segment_map = &world->segment_map,
        .engine = world->engine,
        .schema = &world->schema,
        .n_shards = SHARDS,
        .chunk = CHUNK};
    world->owned = schema_create();
    (void)snprintf(line, sizeof line, "add counter first %s", options);
    edit(world, line);
    edit(world, "add column first k primarykey");
    edit(world, "add column first n max=64");
    edit(world, "add counter other");
    edit(world, "add column other ok primarykey");
    edit(world, "add column other o max=64");
}

static inline void
begin(struct world *world, const char *options)
{
    begin_with(world, options, TABLE_RECORDS);
}

static inline void
end(struct world *world)
{
    mutex_fini(&world->durable.edit_lock);
    segment_map__fini(&world->segment_map);
    engine_destroy(&world->engine);
    fake_disk_destroy(&world->fake);
    schema_destroy(&world->owned);
    qsbr_fini(&world->qsbr);
}

/* Adds 1 to ids first, first + step, ... below end. */
static inline void
add(struct world *world, unsigned slot, uint64_t first, uint64_t end,
    uint64_t step)
{
    const struct schema_counter *counter =
        schema_counter_at(world->owned, slot);
    struct change change[BATCH];
    size_t n = 0;
    for (uint64_t id = first; id < end; id += step) {
        change[n++] = (struct change){.id = id,
            .op = CHANGE_INCR,
            .counter = (uint8_t)slot,
            .n_columns = 1,
            .column = {counter->column[0].slot},
            .serial = {counter->column[0].serial},
            .operand = {1}};
        if (n == BATCH || id + step >= end) {
            engine_change(world->engine, change, n);
            for (size_t i = 0; i < n; i++) {
                ck_assert_int_eq(change[i].err, 0);
            }
            n = 0;
        }
    }
}

static inline void
look(struct world *world)
{
    (void)engine_tend(world->engine, world->now_ms += ROUND_MS);
}

/* Has so many rounds find these ids changed, one of each hundred. */
static inline void
heat(struct world *world, unsigned slot, uint64_t first, uint64_t end,
    unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        add(world, slot, first, end, 100);
        look(world);
    }
}

/* Covers ids first..last by a segment with a record for every id below end. */
static inline void
cover_beyond(struct world *world, unsigned slot, uint64_t first, uint64_t end,
    uint64_t last)
{
    struct disk *disk = fake_disk_as_disk(world->fake);
    const struct segment_write_config write = {
        .disk = disk, .codec = BLOCK_AUTO, .level = 1};
    const struct segment_config read = {.disk = disk};
    struct segment_head head = make_head(1, 1);
    struct segment_writer *writer;
    struct segment *segment;
    head.counter = (uint8_t)slot;
    struct segment_map_change change;
    ck_assert_int_eq(segment_write_begin(&write, &head, &writer), 0);
    for (uint64_t id = first; id < end; id++) {
        ck_assert_int_eq(
            segment_write_add(writer, id, &(uint64_t){id + 1}), 0);
    }
    ck_assert_int_eq(segment_write_end(&writer, &head), 0);
    ck_assert_int_eq(segment_open(&read, SEGMENT_EPOCH, 1, &segment), 0);
    struct segment_map_entry entry = {
        first, last, segment_map__file_create(segment, NULL, NULL)};
    ck_assert_int_eq(segment_map__begin(&world->segment_map, slot, first, last,
                         &entry, 1, &change),
        0);
    segment_map__publish_all(&change);
    segment_map_file_release(entry.file);
}

/* The same with the last of them. */
static inline void
cover_slot(struct world *world, unsigned slot, uint64_t first, uint64_t end)
{
    cover_beyond(world, slot, first, end, end - 1);
}

static inline void
cover(struct world *world, uint64_t first, uint64_t end)
{
    cover_slot(world, 0, first, end);
}

#endif
