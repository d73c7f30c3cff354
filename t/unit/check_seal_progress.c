/* SPDX-License-Identifier: BSD-3-Clause */
/* tier/seal_pick: while a record is hot there is something to be sealed,
 * whatever the tables are like and what the samples say. */
#include "tier/seal_pick.h"

#include "engine/cover.h"
#include "engine/engine_copy.h"
#include "engine/engine_extents.h"
#include "unit/seal_pick_help.h"

enum { ROUNDS_MAX = 3000 };

enum {
    WIDE = 2, /* the slot of a counter of records that are in no line */
    WIDE_COLUMNS = 5
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
            change.operand[i] = UINT64_MAX / 3 - id;
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
        const struct seal_range all = {
            .slot = slot, .first_id = 0, .last_id = UINT64_MAX};
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
        struct seal_range part = {
            .slot = slot, .first_id = from / SHARDS * SHARDS};
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
    for (unsigned round = 0; seal_pick__best(&world.seal, &world.aside, &out);
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
        seal_pick__best(&world.seal, &world.aside, &out), n_aside > 0);
    end(&world);
}

START_TEST(test_progress)
{
    for (uint64_t seed = 1; seed <= long_part(20); seed++) {
        expect_progress(seed);
    }
}
END_TEST

/* A table of which the lower rows are cold already: a candidate begins behind
 * them, and is as large as it is to be, though its records are in no line. */
static void
expect_upper_rows(uint64_t ids, uint64_t chunk)
{
    struct world world;
    struct seal_range out;
    uint64_t half = ids / 2 / SHARDS * SHARDS;
    uint64_t n_left = ids - half;
    uint64_t n_least = chunk < n_left ? chunk / 8 : n_left / 8;
    const struct seal_range lower = {
        .slot = WIDE, .first_id = 0, .last_id = half - 1};
    begin_with(&world, "", 1 << 16);
    add_wide_counter(&world);
    world.seal.chunk = chunk;
    add_wide(&world, 0, ids, 1);
    cover_slot(&world, WIDE, 0, half);
    (void)take_out(&world, &lower, false);
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.slot, WIDE);
    if (chunk > n_left) {
        ck_assert_uint_eq(out.first_id, half);
    } /* else one of several, all alike */
    ck_assert_uint_ge(out.first_id, half);
    uint64_t n = take_out(&world, &out, false);
    ck_assert_uint_ge(n, n_least);
    ck_assert_uint_le(n, chunk * 3 / 2 + 64);
    end(&world);
}

START_TEST(test_upper_rows)
{
    unsigned factor = tests_are_long() ? 2 : 4;
    for (uint64_t ids = 400; ids < 20000; ids *= factor) {
        expect_upper_rows(ids, 8 * ids);
        expect_upper_rows(ids, 64);
    }
}
END_TEST

/* One record in each of some large tables, which a sample does not see; and
 * what is cold before it, with nothing hot over it, is not written anew. */
START_TEST(test_not_in_sample)
{
    const uint64_t ids = 200000 / SHARDS * SHARDS;
    struct world world;
    struct seal_range out;
    const struct seal_range lower = {
        .slot = 0, .first_id = 0, .last_id = ids - CHUNK - 1};
    const struct seal_range upper = {
        .slot = 0, .first_id = ids - CHUNK, .last_id = ids - SHARDS - 1};
    begin_with(&world, "", 1 << 16);
    world.seal.chunk = ids;
    add(&world, 0, 0, ids, 1);
    cover(&world, 0, ids - SHARDS);
    (void)take_out(&world, &upper, false);
    ck_assert(seal_aside_add(&world.aside, &lower));
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        ck_assert_uint_eq(engine_extent_part(world.engine, 0, shard,
                              ids / SHARDS - 1, UINT64_MAX / SHARDS),
            0);
    }
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, ids - SHARDS);
    ck_assert_uint_eq(take_out(&world, &out, false), SHARDS);
    ck_assert(!seal_pick__best(&world.seal, &world.aside, &out));
    end(&world);
}
END_TEST

/* Few records, but wide ones: worth a file, where others are not. */
START_TEST(test_few_wide)
{
    struct world world;
    struct seal_range out;
    begin(&world, "");
    add_wide_counter(&world);
    add(&world, 0, 0, SEAL_LEAST_RECORDS - 100, 1);
    add_wide(&world, 0, SEAL_LEAST_RECORDS - 100, 1);
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.slot, WIDE);
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_progress, test_upper_rows, test_not_in_sample, test_few_wide};
    return run_tests("seal_progress", tests, COUNT_OF(tests));
}
