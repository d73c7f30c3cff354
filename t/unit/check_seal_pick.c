/* SPDX-License-Identifier: BSD-3-Clause */
/* tier/seal_pick on an engine whose tables are written as the test wants it,
 * under covers that it makes: which range is the next to be sealed. */
#include "tier/seal_pick.h"

#include "base/err.h"
#include "engine/cover.h"
#include "engine/engine_copy.h"
#include "engine/engine_extents.h"
#include "unit/seal_pick_help.h"

/* Which of the equal ranges of ids is picked (slot x 1000 more), by its middle
 * and its size; -1: none. */
static int
pick(struct world *world)
{
    struct seal_range out;
    if (!seal_pick__best(&world->seal, &world->aside, &out)) {
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
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, 0);
    ck_assert_uint_gt(out.last_id, CHUNK / 4);
    ck_assert_uint_lt(out.last_id, CHUNK / 4 * 3);
    add(&world, 0, CHUNK - 100, 3 * CHUNK, 1);
    const struct seal_range first = {.slot = 0, .last_id = CHUNK - 1};
    ck_assert(seal_aside_add(&world.aside, &first));
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
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
    /* from is 0 where the last table ends with the last id there is */
    ck_assert(from == 0 || !seal_pick_next(&world.seal, 0, from, &it));
    end(&world);
}

START_TEST(test_candidates)
{
    expect_candidates(CHUNK, 20, 50000);
    expect_candidates(1000, 200, 20000);
    expect_candidates(300, 20, 1000);
    expect_candidates(100, 50, 1500);
    expect_candidates(1, 20, 300); /* each has one, however far apart */
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
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
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
    int chosen = pick(&world); /* not the first, nor what is not covered */
    ck_assert(chosen >= 10 && chosen < 30);
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
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, 0);
    ck_assert_uint_gt(out.last_id, CHUNK);
    add(&world, 0, 1, CHUNK, 2);
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.first_id, 0);
    ck_assert_uint_lt(out.last_id, CHUNK);
    end(&world);
}
END_TEST

/* ---- figures ---- */

static struct seal_states
states(struct world *world)
{
    struct seal_states states;
    seal_pick__states(&world->seal, &states);
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
    if (!seal_pick__due(&world->seal, &world->aside, &out)) {
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

/* New ids behind the last record of a file that answers for all above it:
 * nothing of them is cold. */
START_TEST(test_behind)
{
    struct world world;
    struct seal_states states;
    begin(&world, "");
    cover_beyond(&world, 0, 0, CHUNK, UINT64_MAX);
    add(&world, 0, 2 * CHUNK, 5 * CHUNK, 1);
    seal_pick__states(&world.seal, &states);
    ck_assert_uint_gt(states.ranges_hot, 1);
    ck_assert_uint_eq(states.ranges_overlaid, 0);
    add(&world, 0, 0, CHUNK, 100);
    seal_pick__states(&world.seal, &states);
    ck_assert_uint_gt(states.ranges_overlaid, 0);
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

/* ---- cold=never ---- */

/* Nothing of such a counter is picked, whatever the need. */
START_TEST(test_never)
{
    struct world world;
    struct seal_rest rest = {0};
    struct seal_range out;
    begin(&world, "cold=never");
    add(&world, 0, 0, IDS, 1);
    ck_assert_int_eq(pick(&world), -1);
    ck_assert(!seal_pick__soon(&world.seal, &world.aside, &rest, &out));
    ck_assert(!seal_pick__due(&world.seal, &world.aside, &out));
    add(&world, 1, 0, CHUNK, 40);
    ck_assert(seal_pick__best(&world.seal, &world.aside, &out));
    ck_assert_uint_eq(out.slot, 1);
    ck_assert(seal_pick__soon(&world.seal, &world.aside, &rest, &out));
    ck_assert_uint_eq(out.slot, 1);
    end(&world);
}
END_TEST

/* ---- in haste ---- */

static void
publish_nothing(void *context)
{
    (void)context;
}

/* What the engine has of a range leaves it, as by a seal; records. */
static uint64_t
take_out(struct world *world, const struct seal_range *range)
{
    uint64_t n = 0;
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        struct engine_rows rows = {.n = 0};
        ck_assert_int_eq(
            engine_copy_range(world->engine, range->slot, shard,
                range->first_id / SHARDS, range->last_id / SHARDS, &rows),
            0);
        ck_assert_int_eq(engine_evict(world->engine, range->slot, shard, &rows,
                             publish_nothing, NULL),
            0);
        n += rows.n;
        engine_rows_fini(&rows);
    }
    engine_drain(world->engine);
    return n;
}

enum {
    SOON_IDS = 8 * CHUNK, /* covered, all of them */
    DENSE_FIRST = 3 * CHUNK,
    DENSE_LAST = 6 * CHUNK - 1,
    PARTS = 3 /* of these, of one candidate */
};

/* Records that the engine has in a range. */
static uint64_t
n_hot_in(struct world *world, uint64_t first, uint64_t last)
{
    uint64_t n = 0;
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        n += engine_count(
            world->engine, 0, shard, first / SHARDS, last / SHARDS);
    }
    return n;
}

static struct seal_range
soon(struct world *world, struct seal_rest *rest)
{
    struct seal_range out;
    ck_assert(seal_pick__soon(&world->seal, &world->aside, rest, &out));
    ck_assert_uint_eq(out.first_id % SHARDS, 0);
    ck_assert_uint_eq((out.last_id + 1) % SHARDS, 0);
    ck_assert_uint_le(out.first_id, out.last_id);
    return out;
}

/* All is covered, every 20th id is in memory, and of some every second one. */
static void
begin_dense(struct world *world)
{
    begin(world, "");
    cover(world, 0, SOON_IDS);
    add(world, 0, 0, SOON_IDS, 20);
    add(world, 0, DENSE_FIRST, DENSE_LAST + 1, 2);
    add(world, 0, SOON_IDS, SOON_IDS + 20, 1); /* the newest are above */
}

/* What is dense goes first, though what is lower would do; in parts that write
 * few records, each behind the last one, until nothing dense is left. */
START_TEST(test_soon)
{
    struct world world;
    struct seal_rest rest = {0};
    begin_dense(&world);
    uint64_t n_dense = n_hot_in(&world, DENSE_FIRST, DENSE_LAST);
    uint64_t n_out = 0, last_id = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        struct seal_range it = soon(&world, &rest);
        uint64_t n_hot = n_hot_in(&world, it.first_id, it.last_id);
        uint64_t n_ids = it.last_id - it.first_id + 1;
        ck_assert_uint_gt(n_hot, n_ids / 4);
        ck_assert_uint_le(n_ids + n_hot, CHUNK * 5 / 4); /* by samples */
        ck_assert_uint_ge(n_ids + n_hot, CHUNK / 3);
        ck_assert(i == 0 || it.first_id > last_id);
        last_id = it.last_id;
        n_out += take_out(&world, &it);
    }
    ck_assert_uint_gt(n_out, n_dense / 3);
    end(&world);
}
END_TEST

/* What has just been sealed is in front of a range that is dense else: it is
 * passed over, by whoever does not remember it, too. */
START_TEST(test_soon_front)
{
    struct world world;
    begin_dense(&world);
    uint64_t last_id = 0;
    for (unsigned i = 0; i < PARTS; i++) {
        struct seal_rest nothing = {0};
        struct seal_range it = soon(&world, &nothing);
        uint64_t n_hot = n_hot_in(&world, it.first_id, it.last_id);
        ck_assert_uint_gt(n_hot, (it.last_id - it.first_id) / 4);
        ck_assert(i == 0 || it.first_id > last_id);
        last_id = it.last_id;
        take_out(&world, &it);
    }
    end(&world);
}
END_TEST

enum {
    RANDOM_IDS = 8 * CHUNK,
    RANDOM_HOT = RANDOM_IDS / 3,
    RANDOM_SEALS = 16
};

/* Adds 1 to ids at random, until so many are in memory. */
static void
add_at_random(struct world *world, uint64_t *random)
{
    const struct schema_column *column =
        &schema_counter_at(world->owned, 0)->column[0];
    while (n_hot_in(world, 0, RANDOM_IDS - 1) < RANDOM_HOT) {
        struct change change[8 * BATCH];
        for (unsigned i = 0; i < 8 * BATCH; i++) {
            change[i] = (struct change){.id = random_below(random, RANDOM_IDS),
                .op = CHANGE_INCR,
                .n_columns = 1,
                .column = {column->slot},
                .serial = {column->serial},
                .operand = {1}};
        }
        for (unsigned i = 0; i < 8 * BATCH; i += BATCH) {
            engine_change(world->engine, &change[i], BATCH);
            ck_assert_int_eq(change[i].err, 0);
        }
    }
}

/* Records written for 100 that leave memory, where ids come in random order. */
static uint64_t
written_at_random(bool is_soon)
{
    struct world world;
    struct seal_rest rest = {0};
    uint64_t random = 5, n_written = 0, n_out = 0;
    begin(&world, "");
    cover(&world, 0, RANDOM_IDS);
    for (unsigned i = 0; i < RANDOM_SEALS; i++) {
        struct seal_range it;
        add_at_random(&world, &random);
        ck_assert(is_soon
                ? seal_pick__soon(&world.seal, &world.aside, &rest, &it)
                : seal_pick__best(&world.seal, &world.aside, &it));
        n_written += it.last_id < RANDOM_IDS ? it.last_id - it.first_id + 1
                                             : RANDOM_IDS - it.first_id;
        uint64_t n = take_out(&world, &it);
        ck_assert_uint_gt(n, 0);
        n_out += n;
    }
    end(&world);
    return n_written * 100 / n_out;
}

/* What frees most goes first: less is written for it than with what is lowest
 * and fair. */
START_TEST(test_soon_at_random)
{
    uint64_t soon = written_at_random(true);
    uint64_t best = written_at_random(false);
    ck_assert_uint_lt(soon, best * 3 / 4);
}
END_TEST

/* Of ranges that free alike: the lowest, but one that is written much later,
 * and the newest last; half of that at most. */
START_TEST(test_soon_alike)
{
    struct world world;
    struct seal_rest rest = {0};
    begin(&world, "");
    add(&world, 0, 0, IDS, 1);
    look(&world);
    struct seal_range it = soon(&world, &rest);
    ck_assert_uint_eq(it.first_id, 0);
    heat(&world, 0, 0, CHUNK - 1000, HEAVY_ROUNDS);
    rest = (struct seal_rest){0};
    it = soon(&world, &rest);
    ck_assert_uint_gt(it.first_id, CHUNK / 2);
    ck_assert_uint_lt(it.first_id, 2 * CHUNK);
    end(&world);

    begin(&world, "");
    add(&world, 0, 0, CHUNK - 100, 1);
    rest = (struct seal_rest){0};
    it = soon(&world, &rest);
    ck_assert_uint_eq(it.first_id, 0);
    ck_assert_uint_lt(it.last_id, CHUNK / 4 * 3);
    end(&world);
}
END_TEST

/* What could not be sealed is not picked again, as long as it is known to be
 * set aside; nor is what is picked where nothing goes out. */
START_TEST(test_soon_aside)
{
    struct world world;
    struct seal_rest rest = {0};
    struct seal_range seen[SEAL_ASIDE_MAX];
    begin(&world, "");
    world.seal.chunk = CHUNK / 8;
    cover(&world, 0, SOON_IDS);
    add(&world, 0, 0, SOON_IDS, 4);
    for (unsigned i = 0; i < SEAL_ASIDE_MAX; i++) {
        struct seal_range it = soon(&world, &rest);
        for (unsigned k = 0; k < i; k++) {
            ck_assert(it.first_id > seen[k].last_id ||
                it.last_id < seen[k].first_id);
        }
        ck_assert(seal_aside_add(&world.aside, &it));
        seen[i] = it;
    }
    end(&world);
}
END_TEST

/* Nothing is left where all is set aside, nor where nothing is in memory. */
START_TEST(test_soon_nothing)
{
    struct world world;
    struct seal_rest rest = {0};
    struct seal_range it;
    begin(&world, "");
    ck_assert(!seal_pick__soon(&world.seal, &world.aside, &rest, &it));
    add(&world, 0, 0, CHUNK, 1);
    while (seal_pick__soon(&world.seal, &world.aside, &rest, &it)) {
        ck_assert_uint_gt(take_out(&world, &it), 0);
    }
    ck_assert_uint_eq(n_hot_in(&world, 0, CHUNK), 0);
    add(&world, 0, 0, CHUNK, 1);
    rest.is_open = false;
    const struct seal_range all = {.slot = 0, .last_id = UINT64_MAX};
    ck_assert(seal_aside_add(&world.aside, &all));
    ck_assert(!seal_pick__soon(&world.seal, &world.aside, &rest, &it));
    end(&world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_oldest, test_heavy, test_one_id,
        test_newest, test_candidates, test_quietest, test_unknown,
        test_counters, test_overlays, test_dense, test_gaps, test_states,
        test_never, test_due, test_due_border, test_due_later,
        test_due_overlays, test_behind, test_soon, test_soon_front,
        test_soon_at_random, test_soon_alike, test_soon_aside,
        test_soon_nothing};
    return run_tests("seal_pick", tests, COUNT_OF(tests));
}
