/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/: what is asserted: the sums of a table, when it is handed over and
 * when it is read out; a plan; the lock of the shard. */
#include "engine/carry.h"
#include "engine/engine.h"
#include "engine/marks.h"
#include "engine/plan.h"
#include "engine/ranges.h"
#include "engine/table_copy.h"
#include "unit/survives.h"
#include "unit/table_help.h"

#include <stdio.h>

enum {
    COLUMNS = 0x7,
    ROW_BITS = 30,
    RECORDS = 3000,
    RECORDS_MAX = 4096,
    STEP = 5
};

struct rig {
    struct table_rig table;
    struct lock lock;
    struct ranges ranges;
};

static void
store(struct rig *rig, uint64_t row, uint64_t number)
{
    const uint64_t code[SHAPES_COLUMNS_MAX] = {number, number / 2};
    struct ranges_look look;
    ranges_find(&rig->ranges, row, &look);
    ck_assert_int_eq(ranges_store(&rig->ranges, &look, code), 0);
}

static void
rig_init(struct rig *rig)
{
    static const uint8_t hint_bits[SHAPES_COLUMNS_MAX] = {4, 4, 4};
    table_rig_init(&rig->table, 1, true);
    rig->ranges = (struct ranges){.owner = &rig->table.owner,
        .columns = COLUMNS,
        .n_records_max = RECORDS_MAX,
        .row_bits = ROW_BITS};
    rig->lock = (struct lock){0};
    ck_assert_int_eq(ranges_hint(&rig->ranges, hint_bits), 0);
    for (uint64_t i = 0; i < RECORDS; i++) {
        /* some too wide for the others' shapes: they are in the stash */
        store(rig, STEP * i, i % 100 == 7 ? UINT64_MAX - i : i % 13 + 1);
    }
    ranges_verify(&rig->ranges);
}

static void
rig_fini(struct rig *rig)
{
    ranges_verify(&rig->ranges);
    ranges_clear(&rig->ranges);
    table_rig_fini(&rig->table);
}

static struct table *
table_of(const struct rig *rig)
{
    struct table *table = ranges_from(&rig->ranges, 0);
    ck_assert_ptr_nonnull(table);
    return table;
}

/* What may be wrong with the sums of a table. */
enum wrong {
    NOTHING,
    RECORDS_FEW, /* fewer than in the stash */
    RECORDS_MANY,
    STASHED,
    FAR,
    EMPTY,
    BITS_FEW,
    BITS_MANY,
    MAGIC,
    WRONGS
};

struct broken {
    struct rig *rig;
    enum wrong wrong;
};

static struct table *
break_table(const struct broken *broken)
{
    struct table *table = table_of(broken->rig);
    switch (broken->wrong) {
    case RECORDS_FEW:
        table->n_records = table_n_stashed(table) - 1;
        break;
    case RECORDS_MANY:
        table->n_records = table->n_lines * (LINE_RECORDS_MAX + 1);
        break;
    case STASHED:
        table->n_stash[TABLE_WIDE]++;
        break;
    case FAR:
        table->n_far = table->n_records + 1;
        break;
    case EMPTY:
        table->n_empty = table->n_records + 1;
        break;
    case BITS_FEW:
        table->used_bits = table->n_records;
        break;
    case BITS_MANY:
        table->used_bits = (uint64_t)table->n_lines * 512;
        break;
    case MAGIC:
        table->magic = 0;
        break;
    case NOTHING:
    case WRONGS:
        break;
    }
    return table;
}

static void
verify_sums(void *context)
{
    table_verify_sums(break_table(context));
}

static void
tend(void *context)
{
    const struct broken *broken = context;
    bool worked = false;
    (void)break_table(broken);
    (void)ranges_tend(&broken->rig->ranges, 0, 1, &worked);
}

static void
copy(void *context)
{
    const struct broken *broken = context;
    const struct table *table = break_table(broken);
    void *block = calloc(1, 1 << 22);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_le(table_copy_bytes(table_of(broken->rig)), 1 << 22);
    (void)table_copy(table, block);
}

START_TEST(test_sums)
{
    static void (*const look_fn[])(void *context) = {verify_sums, tend, copy};
    struct rig rig;
    rig_init(&rig);
    ck_assert_uint_gt(table_n_stashed(table_of(&rig)), 0);
    for (unsigned i = 0; i < WRONGS; i++) {
        struct broken broken = {&rig, (enum wrong)i};
        for (unsigned j = 0; j < sizeof look_fn / sizeof look_fn[0]; j++) {
            ck_assert_msg(survives(look_fn[j], &broken) == (i == NOTHING),
                "%u, %u", i, j);
        }
    }
    rig_fini(&rig);
}
END_TEST

/* Sums that are wrong by one are found when the lines are read. */
static void
read_lines(void *context)
{
    const struct broken *broken = context;
    struct table *table = table_of(broken->rig);
    struct carry_place *place = calloc(RECORDS_MAX, sizeof *place);
    ck_assert_ptr_nonnull(place);
    ck_assert_uint_lt(table->n_records, RECORDS_MAX);
    table->n_records += broken->wrong == RECORDS_MANY;
    table->n_records -= broken->wrong == RECORDS_FEW;
    table->n_far += broken->wrong == FAR;
    table->used_bits += broken->wrong == BITS_MANY;
    table->used_bits -= broken->wrong == BITS_FEW;
    carry_places(&broken->rig->table.owner, table, place);
}

START_TEST(test_lines)
{
    static const enum wrong wrong[] = {
        RECORDS_FEW, RECORDS_MANY, FAR, BITS_FEW, BITS_MANY};
    struct rig rig;
    struct broken broken = {&rig, NOTHING};
    rig_init(&rig);
    ck_assert(survives(read_lines, &broken));
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        broken.wrong = wrong[i];
        ck_assert_msg(!survives(read_lines, &broken), "%u", i);
    }
    rig_fini(&rig);
}
END_TEST

/* What ranges say of all their tables. */
static void
clear_with_one_more(void *context)
{
    struct rig *rig = context;
    rig->ranges.n_records++;
    ranges_clear(&rig->ranges);
}

START_TEST(test_ranges)
{
    struct rig rig;
    rig_init(&rig);
    ck_assert(!survives(clear_with_one_more, &rig));
    rig_fini(&rig);
}
END_TEST

/* Plans */

static void
verify_plan(void *context)
{
    plan_verify(context, 0x1000, 12);
}

START_TEST(test_plan)
{
    static const struct plan sound = {.n = 2,
        .range = {{.base = 0x1000, .width = 4, .n = 9},
            {.base = 0x1010, .width = 4, .n = 1}}};
    struct plan plan = sound;
    ck_assert(survives(verify_plan, &plan));
    plan.n = 0;
    ck_assert(!survives(verify_plan, &plan));
    plan.n = PLAN_MAX + 1;
    ck_assert(!survives(verify_plan, &plan));
    plan = sound;
    plan.range[1].base = 0x1000; /* over the first */
    ck_assert(!survives(verify_plan, &plan));
    plan = sound;
    plan.range[1].base = 0x1018; /* not aligned */
    ck_assert(!survives(verify_plan, &plan));
    plan = sound;
    plan.range[1].base = 0x2000; /* outside */
    ck_assert(!survives(verify_plan, &plan));
    plan = sound;
    plan.range[0].width = 13; /* wider than all */
    ck_assert(!survives(verify_plan, &plan));
    plan = sound;
    plan.range[1].n = 0;
    ck_assert(!survives(verify_plan, &plan));
}
END_TEST

/* The shard's lock */

static void
clear_ranges(void *context)
{
    struct rig *rig = context;
    ranges_clear(&rig->ranges);
}

static void
verify_ranges(void *context)
{
    const struct rig *rig = context;
    ranges_verify(&rig->ranges);
}

static void
tend_ranges(void *context)
{
    struct rig *rig = context;
    bool worked = false;
    (void)ranges_tend(&rig->ranges, 0, 1, &worked);
}

static void
drop_columns(void *context)
{
    struct rig *rig = context;
    uint64_t row = 0;
    int err = 0;
    (void)ranges_drop_columns(&rig->ranges, &row, 1, &err);
}

static void
load_rows(void *context)
{
    struct rig *rig = context;
    const struct carry_rows none = {0};
    (void)ranges_load(&rig->ranges, &none, 0, 1);
}

static void
remove_record(void *context)
{
    struct rig *rig = context;
    const uint64_t none[SHAPES_COLUMNS_MAX] = {0};
    struct ranges_look look;
    ranges_find(&rig->ranges, STEP, &look);
    (void)ranges_store(&rig->ranges, &look, none);
}

START_TEST(test_lock)
{
    static void (*const call_fn[])(void *context) = {clear_ranges,
        verify_ranges, tend_ranges, drop_columns, load_rows, remove_record};
    struct rig rig;
    rig_init(&rig);
    rig.table.owner.lock = &rig.lock;
    for (unsigned i = 0; i < sizeof call_fn / sizeof call_fn[0]; i++) {
        ck_assert_msg(!survives(call_fn[i], &rig), "%u", i);
        lock_take(&rig.lock);
        ck_assert_msg(survives(call_fn[i], &rig), "%u", i);
        lock_leave(&rig.lock);
    }
    rig.table.owner.lock = NULL;
    rig_fini(&rig);
}
END_TEST

/* The lock of a shard, for what the engine calls under it. */
struct shard_of {
    struct engine *engine;
    unsigned shard;
};

static void
look_at_lock(void *context)
{
    const struct shard_of *it = context;
    engine_assert_held(it->engine, it->shard);
}

static void
look_inside(void *context, unsigned shard)
{
    struct shard_of *it = context;
    ck_assert_uint_eq(shard, 1);
    for (it->shard = 0; it->shard < 3; it->shard++) { /* the last is none */
        ck_assert(survives(look_at_lock, it) == (it->shard == 1));
    }
}

START_TEST(test_shard_lock)
{
    struct qsbr qsbr;
    struct shard_of it;
    struct engine_config config = {
        .shards = 2, .seed = 7, .hot_bytes = 16 << 20, .qsbr = &qsbr};
    qsbr_init(&qsbr);
    ck_assert_int_eq(engine_create(&config, &it.engine), 0);
    it.shard = 1;
    ck_assert(!survives(look_at_lock, &it));
    engine_hold(it.engine, 1, look_inside, &it);
    engine_destroy(&it.engine);
    qsbr_fini(&qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_sums, test_lines, test_ranges,
        test_plan, test_lock, test_shard_lock};
    return run_tests("engine_asserts", tests, COUNT_OF(tests));
}
