/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/table_heat: what a look counts and how it fades; that changes, and
 * nothing else, heat the table they are made in; and that heat outlives what
 * becomes of tables. */
#include "engine/table_heat.h"

#include "engine/engine_extents.h"
#include "unit/cover_help.h"

#include <math.h>

enum {
    LOW = 0,        /* ids of one table begin here, */
    HIGH = 1 << 20, /* and of another one here */
    FEW = 40,       /* records: they fit into a table */
    ROUND_MS = 50,  /* between looks */
    ROUNDS = 30
};

/* ---- one table ---- */

START_TEST(test_looks)
{
    struct table table = {.is_quiet = true};
    uint64_t now_ms = 1000;
    table_heat_look(&table, now_ms);
    ck_assert_float_eq(table.heat, 0);
    for (int i = 1; i <= 3; i++) {
        table.is_quiet = false;
        table_heat_look(&table, now_ms += 1);
        ck_assert(table.is_quiet);
        ck_assert_float_eq(table.heat, (float)i);
        table_heat_look(&table, now_ms += 1);
        ck_assert_float_eq(table.heat, (float)i);
    }
}
END_TEST

/* Halved in each TABLE_HEAT_HALF_MS, whether it is looked at often or not. */
START_TEST(test_fades)
{
    struct table often = {.heat = 4096, .is_quiet = true, .heat_ms = 7};
    struct table seldom = often;
    for (int half = 1; half <= 12; half++) {
        uint64_t from_ms = 7 + (uint64_t)(half - 1) * TABLE_HEAT_HALF_MS;
        for (uint64_t ms = 0; ms < TABLE_HEAT_HALF_MS; ms += ROUND_MS) {
            table_heat_look(&often, from_ms + ms);
        }
        uint64_t now_ms = 7 + (uint64_t)half * TABLE_HEAT_HALF_MS;
        float wanted = 4096.0f / (float)(1 << half);
        table_heat_look(&often, now_ms);
        table_heat_look(&seldom, now_ms);
        ck_assert_float_eq_tol(often.heat, wanted, wanted / 1000);
        ck_assert_float_eq_tol(seldom.heat, wanted, wanted / 1000);
    }
    often.is_quiet = false;
    table_heat_look(&often, UINT64_MAX); /* after ages */
    ck_assert_float_eq(often.heat, 1);
}
END_TEST

/* ---- tables of an engine ---- */

static struct engine_extent
extent_at(struct rig *rig, uint64_t id)
{
    struct engine_extent extent;
    ck_assert(engine_extent(rig->engine, SLOT, 0, id, &extent));
    ck_assert(extent.first_row <= id && id <= extent.last_row);
    return extent;
}

static double
heat_at(struct rig *rig, uint64_t id)
{
    return (double)extent_at(rig, id).heat;
}

static void
fill(struct rig *rig, uint64_t first, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        set(rig, first + i, i + 1);
    }
}

/* Two tables that have not been written for some rounds. */
static void
begin(struct rig *rig, uint64_t *now_ms)
{
    rig_init(rig);
    fill(rig, LOW, FEW);
    fill(rig, HIGH, FEW);
    *now_ms = 5000;
    for (int i = 0; i < 40; i++) { /* it packs them, too */
        (void)engine_tend(rig->engine, *now_ms += ROUND_MS);
    }
    ck_assert(extent_at(rig, LOW).last_row < HIGH);
    ck_assert_float_eq(extent_at(rig, LOW).heat, 1);
    ck_assert_float_eq(extent_at(rig, HIGH).heat, 1);
}

enum kind { INCR, SET, SAME, NOTHING, REMOVED, ADDED, READ };

static void
touch(struct rig *rig, enum kind kind, unsigned round)
{
    uint64_t id = LOW + 3, value;
    struct cell_key key = key_of(&rig->def, 0, id);
    uint8_t state;
    switch (kind) {
    case INCR:
        (void)change_id(rig->engine, &rig->def, CHANGE_INCR, id, 1, 1);
        break;
    case SET:
        set(rig, id, UINT64_C(1) << round % 60);
        break;
    case SAME:
        set(rig, id, 4);
        break;
    case NOTHING:
        (void)change_id(rig->engine, &rig->def, CHANGE_INCR, id, 1, 0);
        break;
    case REMOVED:
        (void)change_id(
            rig->engine, &rig->def, CHANGE_DELETE, LOW + round, COLUMNS, 0);
        break;
    case ADDED:
        set(rig, LOW + FEW + round % 8, round + 1);
        break;
    case READ:
        engine_get(rig->engine, &key, 1, &value, &state);
        break;
    }
}

static void
expect_heat(enum kind kind, bool heats)
{
    struct rig rig;
    uint64_t now_ms;
    begin(&rig, &now_ms);
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (int often = 0; often < 3; often++) { /* counts once */
            touch(&rig, kind, i);
        }
        (void)engine_tend(rig.engine, now_ms += ROUND_MS);
    }
    ck_assert_double_eq_tol(
        heat_at(&rig, LOW + FEW - 1), heats ? 1 + ROUNDS : 1, 1e-6);
    ck_assert_double_eq_tol(heat_at(&rig, HIGH), 1, 1e-6);
    rig_fini(&rig);
}

START_TEST(test_what_heats)
{
    expect_heat(INCR, true);
    expect_heat(SET, true);
    expect_heat(REMOVED, true);
    expect_heat(ADDED, true);
    expect_heat(SAME, false);
    expect_heat(NOTHING, false);
    expect_heat(READ, false);
}
END_TEST

static void
make_hot(struct rig *rig, uint64_t *now_ms)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        touch(rig, INCR, i);
        (void)engine_tend(rig->engine, *now_ms += ROUND_MS);
    }
    ck_assert_double_eq_tol(heat_at(rig, LOW), 1 + ROUNDS, 1e-6);
}

/* A table that grows is made anew, and then cut: its parts have its heat by
 * records, and have all of it again when they are joined; what comes beside it
 * has none. */
START_TEST(test_split_and_joined)
{
    struct rig rig;
    uint64_t now_ms, merges, n = 3 * TABLE_RECORDS;
    double sum = 0;
    begin(&rig, &now_ms);
    make_hot(&rig, &now_ms);
    fill(&rig, LOW + FEW, n);
    ck_assert_uint_gt(sum_of(rig.engine, SLOT).splits, 0);
    for (uint64_t row = LOW; row < LOW + FEW + n;) {
        struct engine_extent extent = extent_at(&rig, row);
        sum += (double)extent.heat;
        ck_assert(extent.heat <= 1 + ROUNDS);
        row = extent.last_row + 1;
    }
    ck_assert(sum > ROUNDS * 0.7 && sum < ROUNDS * 1.3);
    ck_assert(heat_at(&rig, LOW) > ROUNDS * 0.2);
    ck_assert(heat_at(&rig, LOW + FEW + n - 1) < ROUNDS * 0.2);
    merges = sum_of(rig.engine, SLOT).merges;
    for (uint64_t id = LOW; id < LOW + FEW + n; id++) {
        if (id % 16 != 0) {
            (void)change_id(
                rig.engine, &rig.def, CHANGE_DELETE, id, COLUMNS, 0);
        }
    }
    for (int i = 0; i < 4; i++) {
        (void)engine_tend(rig.engine, now_ms += ROUND_MS);
    }
    ck_assert_uint_gt(sum_of(rig.engine, SLOT).merges, merges);
    ck_assert(extent_at(&rig, LOW).last_row >= LOW + FEW);
    ck_assert(heat_at(&rig, LOW) > 2 && heat_at(&rig, LOW) < ROUNDS);
    ck_assert(heat_at(&rig, HIGH) < 2);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_mean)
{
    struct table table = {.n_records = 40};
    const struct table one = {.heat = 10, .heat_ms = 7, .n_records = 30};
    const struct table other = {.heat = 50, .heat_ms = 5, .n_records = 10};
    const struct table empty = {.heat = 99};
    const struct table *const both[] = {&one, &other};
    const struct table *const single[] = {&one, NULL};
    const struct table *const none[] = {&empty, NULL};
    table_heat_inherit(&table, none, 2);
    ck_assert_float_eq(table.heat, 0);
    table_heat_inherit(&table, single, 2);
    ck_assert_float_eq(table.heat, 10); /* has not more for having grown */
    ck_assert_uint_eq(table.heat_ms, 7);
    table_heat_inherit(&table, both, 2);
    ck_assert_float_eq(table.heat, 20);
    ck_assert_uint_eq(table.heat_ms, 7);
    table.n_records = 6;
    table_heat_inherit(&table, single, 2);
    ck_assert_float_eq(table.heat, 2);
}
END_TEST

static void
publish(void *context)
{
    struct rig *rig = context;
    cover(rig, LOW, LOW + FEW, rig->next_version++);
}

/* What stays of a table when its records go has its heat. */
START_TEST(test_evicted)
{
    struct rig rig;
    uint64_t now_ms;
    begin(&rig, &now_ms);
    make_hot(&rig, &now_ms);
    ck_assert_int_eq(
        engine_copy_range(rig.engine, SLOT, 0, LOW, LOW + FEW, &rig.rows), 0);
    touch(&rig, INCR, 0);
    ck_assert_int_eq(
        engine_evict(rig.engine, SLOT, 0, &rig.rows, publish, &rig), 0);
    ck_assert_uint_eq(records(&rig), 1 + FEW);
    ck_assert_double_eq_tol(heat_at(&rig, LOW + 3), 1 + ROUNDS, 1e-6);
    (void)engine_tend(rig.engine, now_ms += ROUND_MS); /* the last touch */
    ck_assert_double_eq_tol(heat_at(&rig, LOW + 3), 2 + ROUNDS, 1e-6);
    (void)engine_tend(rig.engine, now_ms += ROUND_MS);
    ck_assert_double_eq_tol(heat_at(&rig, LOW + 3), 2 + ROUNDS, 1e-6);
    rig_fini(&rig);
}
END_TEST

/* What lies over a segment is not joined with what does not. */
START_TEST(test_apart)
{
    struct rig rig;
    uint64_t now_ms = 1000, n[2];
    for (int any = 0; any < 2; any++) {
        rig_init(&rig);
        for (uint64_t i = 0; i < 16; i++) {
            fill(&rig, i * 16, 16);
        }
        for (uint64_t id = 0; id < 256; id++) {
            if (id % 32 != 0) {
                (void)change_id(
                    rig.engine, &rig.def, CHANGE_DELETE, id, COLUMNS, 0);
            }
        }
        if (any) {
            cover(&rig, 0, 127, VERSION);
        }
        for (int i = 0; i < 8; i++) {
            (void)engine_tend(rig.engine, now_ms += ROUND_MS);
        }
        n[any] = sum_of(rig.engine, SLOT).tables;
        ck_assert_uint_eq(records(&rig), 8);
        rig_fini(&rig);
    }
    ck_assert_uint_eq(n[0], 1);
    ck_assert_uint_eq(n[1], 2);
}
END_TEST

/* What is loaded is as if it had never been written. */
START_TEST(test_loaded)
{
    struct rig rig, copy;
    uint64_t now_ms;
    begin(&rig, &now_ms);
    make_hot(&rig, &now_ms);
    ck_assert_int_eq(engine_copy_range(rig.engine, SLOT, 0, 0,
                         extent_at(&rig, LOW).last_row, &rig.rows),
        0);
    rig_init(&copy);
    ck_assert_int_eq(engine_load(copy.engine, SLOT, 0, &rig.rows), 0);
    for (int i = 0; i < 3; i++) {
        (void)engine_tend(copy.engine, now_ms += ROUND_MS);
        ck_assert_double_eq(heat_at(&copy, LOW), 0);
    }
    touch(&copy, INCR, 0);
    (void)engine_tend(copy.engine, now_ms += ROUND_MS);
    ck_assert_double_eq(heat_at(&copy, LOW), 1);
    rig_fini(&copy);
    rig_fini(&rig);
}
END_TEST

/* How many records of a table are in part of its rows. */
START_TEST(test_part)
{
    struct rig rig;
    rig_init(&rig);
    for (uint64_t i = 0; i < 40; i++) {
        set(&rig, 128 + 3 * i, i + 1);
    }
    struct engine_extent extent = extent_at(&rig, 128);
    ck_assert_uint_ge(extent.last_row, 128 + 3 * 39);
    for (uint64_t first = 0; first < 255; first++) {
        uint64_t wanted = 0;
        for (uint64_t last = first; last < 256; last++) {
            wanted += last >= 128 && last <= 245 && (last - 128) % 3 == 0;
            ck_assert_uint_eq(
                engine_extent_part(rig.engine, SLOT, 0, first, last), wanted);
        }
        ck_assert_uint_eq(
            engine_extent_part(rig.engine, SLOT, 0, first, UINT64_MAX),
            wanted);
    }
    ck_assert_uint_eq(
        engine_extent_part(rig.engine, SLOT + 1, 0, 0, UINT64_MAX), 0);
    rig_fini(&rig);
}
END_TEST

/* An engine with large tables. */
static struct engine *
large_engine(void)
{
    struct engine_config config = {
        .shards = 1, .seed = 1, .hot_bytes = ROOMY_BYTES};
    struct engine *engine = engine_of(&config);
    struct schema_counter def = plain_counter(SLOT, 1);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t id = 0; id < 40000; id++) {
        (void)change_id(engine, &def, CHANGE_SET, id, 1, id + 1);
    }
    return engine;
}

/* To be packed is not to be written. */
START_TEST(test_packed)
{
    struct engine *engine = large_engine();
    struct engine_extent extent;
    for (uint64_t now_ms = 1000; now_ms < 5000; now_ms += ROUND_MS) {
        (void)engine_tend(engine, now_ms);
    }
    ck_assert_uint_gt(sum_of(engine, SLOT).tightened, 0);
    for (uint64_t row = 0; row < 40000; row = extent.last_row + 1) {
        ck_assert(engine_extent(engine, SLOT, 0, row, &extent));
        ck_assert_double_eq_tol((double)extent.heat, 1, 1e-3);
    }
    finish_engine(&engine);
}
END_TEST

/* Of a large one, about. */
START_TEST(test_part_of_many)
{
    struct engine *engine = large_engine();
    struct engine_extent extent;
    ck_assert(engine_extent(engine, SLOT, 0, 0, &extent));
    uint64_t all = extent.n_records;
    ck_assert_uint_gt(all, 8192);
    for (uint64_t tenth = 1; tenth < 10; tenth++) {
        uint64_t wanted = all * tenth / 10;
        uint64_t n =
            engine_extent_part(engine, SLOT, 0, 0, all * tenth / 10 - 1);
        ck_assert_uint_ge(n + all / 16, wanted);
        ck_assert_uint_le(n, wanted + all / 16);
    }
    finish_engine(&engine);
}
END_TEST

START_TEST(test_largest)
{
    struct rig rig;
    uint64_t id = 0;
    rig_init(&rig);
    ck_assert(!engine_largest(rig.engine, SLOT, &id));
    ck_assert(!engine_largest(rig.engine, SLOT + 1, &id));
    set(&rig, 77, 1);
    set(&rig, 70, 1);
    ck_assert(engine_largest(rig.engine, SLOT, &id));
    ck_assert_uint_eq(id, 77);
    engine_raise(rig.engine, SLOT, 90); /* in a segment */
    ck_assert(engine_largest(rig.engine, SLOT, &id));
    ck_assert_uint_eq(id, 90);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_looks, test_fades, test_what_heats,
        test_split_and_joined, test_mean, test_apart, test_evicted,
        test_loaded, test_packed, test_part, test_part_of_many, test_largest};
    return run_tests("table_heat", tests, COUNT_OF(tests));
}
