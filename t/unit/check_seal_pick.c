/* SPDX-License-Identifier: BSD-3-Clause */
/* store/seal_pick on an engine whose tables are written as the test wants it,
 * under covers that it makes: which range is the next to be sealed. */
#include "store/seal_pick.h"

#include "base/err.h"
#include "engine/engine_extents.h"
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
    struct covers covers;
    struct durable durable; /* of which only the lock is used */
    struct schema *owned;
    _Atomic(const struct schema *) schema;
    struct seal seal;
    struct seal_aside aside;
    uint64_t now_ms;
};

static void
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
static void
begin(struct world *world, const char *options)
{
    const struct engine_config engine = {.shards = SHARDS,
        .seed = 3,
        .hot_bytes = 4 * ENGINE_HOT_BYTES_MIN,
        .qsbr = &world->qsbr,
        .table_records_max = TABLE_RECORDS};
    char line[100];
    *world = (struct world){.now_ms = 1000};
    qsbr_init(&world->qsbr);
    ck_assert_int_eq(engine_create(&engine, &world->engine), 0);
    world->fake = fake_disk_create(1);
    covers_init(&world->covers, world->engine, SHARDS, &world->qsbr, NULL);
    covers_end_loading(&world->covers);
    pthread_mutex_init(&world->durable.edit_lock, NULL);
    world->seal = (struct seal){.durable = &world->durable,
        .covers = &world->covers,
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

static void
end(struct world *world)
{
    pthread_mutex_destroy(&world->durable.edit_lock);
    covers_fini(&world->covers);
    engine_destroy(&world->engine);
    fake_disk_destroy(&world->fake);
    schema_destroy(&world->owned);
    qsbr_fini(&world->qsbr);
}

/* Adds 1 to ids first, first + step, ... below end. */
static void
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

static void
look(struct world *world)
{
    (void)engine_tend(world->engine, world->now_ms += ROUND_MS);
}

/* Has so many rounds find these ids changed, one of each hundred. */
static void
heat(struct world *world, unsigned slot, uint64_t first, uint64_t end,
    unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        add(world, slot, first, end, 100);
        look(world);
    }
}

/* Covers ids first..end-1 by a segment with a record for every id. */
static void
cover_slot(struct world *world, unsigned slot, uint64_t first, uint64_t end)
{
    struct disk *disk = fake_disk_as_disk(world->fake);
    const struct segment_write_config write = {
        .disk = disk, .codec = BLOCK_AUTO, .level = 1};
    const struct segment_config read = {.disk = disk};
    struct segment_head head = make_head(1, 1);
    struct segment_writer *writer;
    struct segment *segment;
    struct covers_change change;
    ck_assert_int_eq(segment_write_begin(&write, &head, &writer), 0);
    for (uint64_t id = first; id < end; id++) {
        ck_assert_int_eq(
            segment_write_add(writer, id, &(uint64_t){id + 1}), 0);
    }
    ck_assert_int_eq(segment_write_end(&writer, &head), 0);
    ck_assert_int_eq(segment_open(&read, SEGMENT_EPOCH, 1, &segment), 0);
    struct covers_entry entry = {
        first, end - 1, covers_file_create(segment, NULL, NULL)};
    ck_assert_int_eq(
        covers_begin(&world->covers, slot, first, end - 1, &entry, 1, &change),
        0);
    covers_publish_all(&change);
    covers_file_release(entry.file);
}

static void
cover(struct world *world, uint64_t first, uint64_t end)
{
    cover_slot(world, 0, first, end);
}

/* Which of the equal ranges of ids is picked (slot x 1000 more), by its middle
 * and its size; -1: none. */
static int
pick(struct world *world)
{
    struct seal_range out;
    if (!seal_pick_best(&world->seal, &world->aside, &out)) {
        return -1;
    }
    ck_assert_uint_eq(out.first_id % SHARDS, 0);
    ck_assert_uint_eq((out.last_id + 1) % SHARDS, 0);
    return (int)(out.slot * 1000 +
        (out.first_id + (out.last_id - out.first_id) / 2) / CHUNK);
}

static uint64_t
n_heavy(struct world *world)
{
    /* relaxed: one thread */
    return atomic_load_explicit(
        &world->seal.stats.seal_heavy, memory_order_relaxed);
}

/* ---- cold=oldest ---- */

START_TEST(test_oldest)
{
    struct world world;
    begin(&world, "");
    ck_assert_int_eq(pick(&world), -1);
    add(&world, 0, 0, IDS, 1);
    ck_assert_int_eq(pick(&world), 0);
    look(&world);
    look(&world);
    /* what is young and quiet stays, whatever the others do */
    heat(&world, 0, 0, 8 * CHUNK, HEAVY_ROUNDS);
    ck_assert_int_eq(pick(&world), 0);
    ck_assert_uint_eq(n_heavy(&world), 0);
    end(&world);
}
END_TEST

/* A heavily written range is not taken before a quiet one that is nearly as
 * old; where both are written, the lower one is. */
START_TEST(test_heavy)
{
    struct world world;
    begin(&world, "");
    add(&world, 0, 0, IDS, 1);
    look(&world);
    heat(&world, 0, 0, CHUNK - 1000, 7);
    ck_assert_int_eq(pick(&world), 0); /* hardly */
    heat(&world, 0, 0, CHUNK - 1000, HEAVY_ROUNDS);
    ck_assert_int_eq(pick(&world), 1);
    ck_assert_uint_eq(n_heavy(&world), 1);
    heat(&world, 0, CHUNK + 1000, 2 * CHUNK - 1000, HEAVY_ROUNDS);
    ck_assert_int_eq(pick(&world), 0);
    /* it has cooled down, and the one above it has not */
    world.now_ms += 4 * 600000;
    look(&world);
    heat(&world, 0, CHUNK + 1000, 2 * CHUNK - 1000, HEAVY_ROUNDS);
    ck_assert_int_eq(pick(&world), 0);
    end(&world);
}
END_TEST

/* One id in one shard makes its range heavy, if that is all that is written. */
START_TEST(test_one_id)
{
    struct world world;
    begin(&world, "");
    add(&world, 0, 0, IDS, 1);
    look(&world);
    for (unsigned i = 0; i < 20 * HEAVY_ROUNDS; i++) {
        add(&world, 0, 77, 78, 1);
        look(&world);
    }
    ck_assert_int_eq(pick(&world), 1);
    end(&world);
}
END_TEST

/* The newest range is taken only where nothing else is left, and half of it. */
START_TEST(test_newest)
{
    struct world world;
    struct seal_range out;
    begin(&world, "");
    add(&world, 0, 0, CHUNK - 100, 1);
    ck_assert(seal_pick_best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, 0);
    ck_assert_uint_gt(out.last_id, CHUNK / 4);
    ck_assert_uint_lt(out.last_id, CHUNK / 4 * 3);
    add(&world, 0, CHUNK - 100, 3 * CHUNK, 1);
    const struct seal_range first = {.slot = 0, .last_id = CHUNK - 1};
    ck_assert(seal_aside_add(&world.aside, &first));
    ck_assert(seal_pick_best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, CHUNK);
    end(&world);
}
END_TEST

/* All candidates one after the other: each is at least half a chunk, as far as
 * there are records, and none is missed; also of a table that has more than
 * that, and in few of its rows. */
static void
expect_candidates(uint64_t chunk, uint64_t n_sparse, uint64_t n_dense)
{
    struct world world;
    struct seal_candidate it;
    uint64_t from = 0, next = 0, dense = 1000000, sum = 0;
    begin(&world, "");
    world.seal.chunk = chunk;
    add(&world, 0, 0, n_sparse * 1000, 1000);
    add(&world, 0, dense, dense + n_dense, 1);
    for (bool is_last = false; !is_last;) {
        ck_assert(seal_pick_next(&world.seal, 0, from, &it));
        ck_assert_uint_ge(it.range.first_id, next);
        ck_assert_uint_le(it.range.first_id, it.range.last_id);
        uint64_t first = it.range.first_id, last = it.range.last_id, n = 0;
        n += (last / 1000 < n_sparse - 1 ? last / 1000 : n_sparse - 1) + 1;
        n -= first > (n_sparse - 1) * 1000 ? n : (first + 999) / 1000;
        for (uint64_t id = dense; id < dense + n_dense; id++) {
            n += id >= first && id <= last;
        }
        sum += n;
        is_last = it.is_last;
        ck_assert_uint_le(n, chunk * 3 / 2 + 64);
        from = next = last + 1;
    }
    ck_assert_uint_eq(sum, n_sparse + n_dense);
    ck_assert(!seal_pick_next(&world.seal, 0, from, &it));
    end(&world);
}

START_TEST(test_candidates)
{
    expect_candidates(CHUNK, 20, 50000);
    expect_candidates(1000, 200, 20000);
    expect_candidates(300, 20, 1000);
    expect_candidates(100, 50, 1500);
}
END_TEST

/* ---- cold=quietest ---- */

START_TEST(test_quietest)
{
    struct world world;
    begin(&world, "cold=quietest");
    add(&world, 0, 0, IDS, 1);
    look(&world);
    heat(&world, 0, 0, 7 * CHUNK, 20);
    heat(&world, 0, 9 * CHUNK, IDS, 40);
    ck_assert_int_eq(pick(&world), 7);
    heat(&world, 0, 7 * CHUNK, 9 * CHUNK, 30);
    ck_assert_int_eq(pick(&world), 0);
    /* seldom, but lately, is more than often, but long ago */
    world.now_ms += 10 * 600000;
    look(&world);
    heat(&world, 0, 0, 9 * CHUNK, 3);
    ck_assert(pick(&world) >= 9);
    /* the newest too */
    heat(&world, 0, 0, 11 * CHUNK - 500, 3);
    ck_assert_int_eq(pick(&world), RANGES - 1);
    end(&world);
}
END_TEST

/* Nothing is known: by id. */
START_TEST(test_unknown)
{
    struct world world;
    begin(&world, "cold=quietest");
    add(&world, 0, 0, IDS, 1);
    ck_assert_int_eq(pick(&world), 0);
    end(&world);
}
END_TEST

/* Of counters, that one's choice that is written least. */
START_TEST(test_counters)
{
    struct world world;
    begin(&world, "");
    add(&world, 0, 0, IDS, 1);
    add(&world, 1, 0, IDS, 1);
    look(&world);
    ck_assert_int_eq(pick(&world), 0);
    heat(&world, 0, 0, 2 * CHUNK, 20);
    ck_assert_int_eq(pick(&world), 1000);
    heat(&world, 1, 0, 2 * CHUNK, 40);
    ck_assert_int_eq(pick(&world), 0);
    end(&world);
}
END_TEST

/* ---- over what is cold ---- */

/* An overlay is merged when it has enough records, unless it is written
 * heavily; and never together with what is not covered, though tables lie on
 * both sides. */
START_TEST(test_overlays)
{
    struct world world;
    struct seal_range out;
    uint64_t end_id = 10 * CHUNK + 52; /* of what is covered: in a table */
    begin(&world, "");
    cover(&world, 0, end_id);
    add(&world, 0, 0, end_id, 10); /* not worth it */
    add(&world, 0, end_id, 14 * CHUNK, 1);
    look(&world);
    ck_assert(seal_pick_best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, end_id);
    add(&world, 0, 2, end_id, 5); /* now it is */
    look(&world);
    int chosen = pick(&world);
    ck_assert(chosen >= 0 && chosen < 5);
    heat(&world, 0, 0, 2 * CHUNK, HEAVY_ROUNDS);
    ck_assert_int_gt(pick(&world), chosen);
    ck_assert_int_lt(pick(&world), 9);
    end(&world);
}
END_TEST

/* Where nothing is fair, that with the largest share of hot records. */
START_TEST(test_dense)
{
    struct world world;
    begin(&world, "");
    cover(&world, 0, 30 * CHUNK);
    add(&world, 0, 0, 10 * CHUNK, 15);
    add(&world, 0, 10 * CHUNK, 30 * CHUNK, 10);
    add(&world, 0, 30 * CHUNK, 30 * CHUNK + 2000, 1);
    ck_assert_int_ge(pick(&world), 10);
    end(&world);
}
END_TEST

/* A gap in what is covered goes by itself where it is worth a file, else with
 * what is behind it. */
START_TEST(test_gaps)
{
    struct world world;
    struct seal_range out;
    begin(&world, "");
    cover(&world, CHUNK, 2 * CHUNK);
    add(&world, 0, 0, 2 * CHUNK, 4);
    add(&world, 0, 2 * CHUNK, 6 * CHUNK, 1);
    ck_assert(seal_pick_best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, 0);
    ck_assert_uint_gt(out.last_id, CHUNK);
    add(&world, 0, 1, CHUNK, 2);
    ck_assert(seal_pick_best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, 0);
    ck_assert_uint_lt(out.last_id, CHUNK);
    end(&world);
}
END_TEST

/* ---- progress ---- */

enum {
    WIDE = 2, /* the slot of a counter of records that are in no line */
    WIDE_COLUMNS = 5,
    ROUNDS_MAX = 3000
};

static void
add_wide_counter(struct world *world)
{
    edit(world, "add counter wide");
    edit(world, "add column wide wk primarykey");
    for (unsigned i = 0; i < WIDE_COLUMNS; i++) {
        char line[100];
        (void)snprintf(line, sizeof line, "add column wide w%u max=64", i);
        edit(world, line);
    }
}

static void
add_wide(struct world *world, uint64_t first, uint64_t end, uint64_t step)
{
    const struct schema_counter *counter =
        schema_counter_at(world->owned, WIDE);
    for (uint64_t id = first; id < end; id += step) {
        struct change change = {.id = id,
            .op = CHANGE_SET,
            .counter = WIDE,
            .n_columns = WIDE_COLUMNS};
        for (unsigned i = 0; i < WIDE_COLUMNS; i++) {
            change.column[i] = counter->column[i].slot;
            change.serial[i] = counter->column[i].serial;
            change.operand[i] = UINT64_MAX - id;
        }
        engine_change(world->engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
}

static void
publish_nothing(void *context)
{
    (void)context;
}

/* Records in hot tables of a range, exactly; takes them out. */
static uint64_t
take_out(struct world *world, const struct seal_range *range, bool is_look)
{
    uint64_t n = 0;
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        struct engine_rows rows = {0};
        ck_assert_int_eq(
            engine_copy_range(world->engine, range->slot, shard,
                range->first_id / SHARDS, range->last_id / SHARDS, &rows),
            0);
        n += rows.n;
        if (!is_look) {
            ck_assert_int_eq(engine_evict(world->engine, range->slot, shard,
                                 &rows, publish_nothing, NULL),
                0);
        }
        engine_rows_fini(&rows);
    }
    return n;
}

static uint64_t
count_all(struct world *world)
{
    uint64_t n = 0;
    for (unsigned slot = 0; slot <= WIDE; slot++) {
        const struct seal_range all = {slot, 0, UINT64_MAX, 0};
        n += take_out(world, &all, true);
    }
    return n;
}

/* Ids of some density somewhere, and perhaps a part of them out again. */
static void
add_some(struct world *world, uint64_t *random)
{
    unsigned slot = (unsigned)random_below(random, WIDE + 1);
    uint64_t first = random_below(random, 4 * CHUNK);
    if (random_below(random, 4) == 0) { /* anywhere */
        first += random_below(random, UINT64_MAX - first) >>
            random_below(random, 64);
    }
    uint64_t n = UINT64_C(1) << random_below(random, 13);
    uint64_t step = UINT64_C(1) << random_below(random, 12);
    if (first > UINT64_MAX - n * step) {
        first -= n * step;
    }
    if (slot == WIDE) {
        add_wide(world, first, first + n * step, step);
    } else {
        add(world, slot, first, first + n * step, step);
    }
    if (random_below(random, 2) == 0) {
        uint64_t from = first + random_below(random, n * step);
        struct seal_range part = {slot, from / SHARDS * SHARDS, 0, 0};
        part.last_id = part.first_id +
            random_below(random, n * step / SHARDS + 1) * SHARDS +
            (SHARDS - 1);
        (void)take_out(world, &part, false);
    }
}

static bool
is_aside(const struct world *world, const struct seal_range *range)
{
    return seal_aside_find(&world->aside, range->slot, range->first_id,
               range->last_id) != NULL;
}

/* Whatever the tables are like: each pick has a record that is not set aside,
 * until there is none. */
static void
expect_progress(uint64_t seed)
{
    struct world world;
    uint64_t random = seed;
    struct seal_range out;
    uint64_t n_aside = 0;
    begin(&world, random_below(&random, 2) == 0 ? "" : "cold=quietest");
    add_wide_counter(&world);
    world.seal.chunk = UINT64_C(64) << random_below(&random, 8);
    if (random_below(&random, 2) == 0) {
        cover(&world, 0, (random_below(&random, 2 * CHUNK) + 1) * SHARDS);
    }
    for (uint64_t i = random_below(&random, 12) + 1; i > 0; i--) {
        add_some(&world, &random);
    }
    for (unsigned round = 0; seal_pick_best(&world.seal, &world.aside, &out);
         round++) {
        ck_assert_uint_lt(round, ROUNDS_MAX);
        ck_assert(!is_aside(&world, &out));
        bool is_damaged =
            random_below(&random, 8) == 0 && world.aside.n < SEAL_ASIDE_MAX;
        uint64_t n = take_out(&world, &out, is_damaged);
        ck_assert_uint_gt(n, 0);
        if (is_damaged) {
            ck_assert(seal_aside_add(&world.aside, &out));
            n_aside += n;
        }
    }
    ck_assert_uint_eq(count_all(&world), n_aside);
    world.aside.now_s +=
        SEAL_ASIDE_MOST_S; /* what is set aside has its turn */
    ck_assert_int_eq(
        seal_pick_best(&world.seal, &world.aside, &out), n_aside > 0);
    end(&world);
}

START_TEST(test_progress)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        expect_progress(seed);
    }
}
END_TEST

/* A table of which the lower rows are cold already: a candidate begins behind
 * them, and has a good part of the rest, though its records are in no line. */
START_TEST(test_lower_rows)
{
    for (uint64_t ids = 400; ids < 20000; ids *= 2) {
        struct world world;
        struct seal_range out;
        uint64_t half = ids / 2 / SHARDS * SHARDS;
        const struct seal_range lower = {WIDE, 0, half - 1, 0};
        begin(&world, "");
        add_wide_counter(&world);
        world.seal.chunk = 8 * ids;
        add_wide(&world, 0, ids, 1);
        cover_slot(&world, WIDE, 0, half);
        (void)take_out(&world, &lower, false);
        ck_assert(seal_pick_best(&world.seal, &world.aside, &out));
        ck_assert_uint_eq(out.slot, WIDE);
        ck_assert_uint_eq(out.first_id, half);
        ck_assert_uint_ge(take_out(&world, &out, false), (ids - half) / 8);
        end(&world);
    }
}
END_TEST

/* Few records, but wide ones: worth a file, where others are not. */
START_TEST(test_few_wide)
{
    struct world world;
    begin(&world, "");
    add_wide_counter(&world);
    add(&world, 0, 0, SEAL_LEAST_RECORDS - 100, 1);
    add_wide(&world, 0, SEAL_LEAST_RECORDS - 100, 1);
    ck_assert_int_eq(pick(&world), WIDE * 1000);
    end(&world);
}
END_TEST

/* ---- figures ---- */

static struct seal_states
states(struct world *world)
{
    struct seal_states states;
    seal_pick_states(&world->seal, &states);
    return states;
}

START_TEST(test_states)
{
    struct world world;
    begin(&world, "");
    ck_assert_uint_eq(states(&world).ranges_hot, 0);
    cover(&world, 0, 2 * CHUNK);
    add(&world, 0, 0, 2 * CHUNK, 2);
    ck_assert_uint_eq(states(&world).ranges_hot, 0);
    uint64_t n_overlaid = states(&world).ranges_overlaid;
    ck_assert(n_overlaid > 0 && n_overlaid < 4);
    add(&world, 1, 0, 5 * CHUNK, 1);
    look(&world);
    ck_assert_uint_eq(states(&world).ranges_overlaid, n_overlaid);
    uint64_t n_hot = states(&world).ranges_hot;
    ck_assert(n_hot >= 5 && n_hot < 8);
    ck_assert_uint_eq(states(&world).ranges_written, 0);
    heat(&world, 0, 0, 2 * CHUNK, 20);
    ck_assert_uint_eq(states(&world).ranges_written, n_overlaid);
    heat(&world, 1, 0, 100, 400);
    ck_assert_uint_eq(states(&world).ranges_written, n_overlaid + 1);
    ck_assert_uint_eq(states(&world).ranges_hot, n_hot);
    end(&world);
}
END_TEST

/* ---- cold_after= ---- */

static struct seal_range
due(struct world *world)
{
    struct seal_range out = {0};
    if (!seal_pick_due(&world->seal, &world->aside, &out)) {
        return (struct seal_range){0};
    }
    ck_assert_uint_eq(out.slot, 0);
    ck_assert_uint_eq(out.first_id % SHARDS, 0);
    ck_assert_uint_eq((out.last_id + 1) % SHARDS, 0);
    return out;
}

START_TEST(test_due)
{
    struct world world;
    uint64_t n = CHUNK / 2, after = 20000;
    begin(&world, "cold_after=20000");
    ck_assert_uint_eq(due(&world).last_id, 0);
    add(&world, 1, 0, IDS, 1); /* has no such option */
    /* too few of them are so far below the largest */
    add(&world, 0, 0, after + n - SHARDS, 1);
    ck_assert_uint_eq(due(&world).last_id, 0);
    add(&world, 0, after + n - SHARDS, after + n + 200, 1);
    struct seal_range range = due(&world);
    ck_assert_uint_eq(range.first_id, 0);
    ck_assert_uint_ge(range.last_id, n - SHARDS);
    ck_assert_uint_lt(range.last_id, n + 200);
    end(&world);
}
END_TEST

/* Whole rows of ids that are due, and no more. */
START_TEST(test_due_border)
{
    struct world world;
    begin(&world, "cold_after=1000000");
    add(&world, 0, 0, CHUNK, 1);
    for (uint64_t ids = CHUNK / 2 + 400; ids < CHUNK / 2 + 412; ids++) {
        uint64_t largest = 1000000 + ids; /* so 0..ids-1 are due */
        add(&world, 0, largest, largest + 1, 1);
        ck_assert_uint_eq(due(&world).first_id, 0);
        ck_assert_uint_eq(due(&world).last_id, ids / SHARDS * SHARDS - 1);
    }
    end(&world);
}
END_TEST

/* A range that is written heavily waits until that has ended. */
START_TEST(test_due_later)
{
    struct world world;
    begin(&world, "cold_after=1000000");
    add(&world, 0, 0, CHUNK, 1);
    add(&world, 0, 2000000, 2000001, 1);
    for (unsigned i = 0; i < 6000; i++) {
        add(&world, 0, i % 40, CHUNK, 40);
        look(&world);
    }
    ck_assert_uint_eq(due(&world).last_id, 0);
    world.now_ms += 2 * 600000;
    look(&world);
    ck_assert_uint_gt(due(&world).last_id, 0);
    end(&world);
}
END_TEST

/* Where nearly all is cold already, it waits for more. */
START_TEST(test_due_overlays)
{
    struct world world;
    begin(&world, "cold_after=1000000");
    cover(&world, 0, 10 * CHUNK);
    add(&world, 0, 2000000, 2000001, 1);
    add(&world, 0, 0, 10 * CHUNK, 10);
    ck_assert_uint_eq(due(&world).last_id, 0);
    add(&world, 0, 2, 10 * CHUNK, 5);
    ck_assert_uint_gt(due(&world).last_id, 0);
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_oldest, test_heavy, test_one_id,
        test_newest, test_candidates, test_quietest, test_unknown,
        test_counters, test_overlays, test_dense, test_gaps, test_progress,
        test_lower_rows, test_few_wide, test_states, test_due, test_due_border,
        test_due_later, test_due_overlays};
    return run_tests("seal_pick", tests, COUNT_OF(tests));
}
