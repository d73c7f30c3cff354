/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine_copy: copies of tables, taken while records change all the
 * time in small tables, and loaded into other engines.
 *
 * The property: whatever a copy has, with all that the sink was told after its
 * position, is what is there in the end. A replica (lib/replica.h) is made so,
 * and compared cell by cell. A copier goes round a step at a time, as a
 * checkpoint does, and is judged at each: what has changed since it was copied
 * must never count as unchanged. */
#include "engine/engine_extents.h"
#include "lib/fault_alloc.h"
#include "lib/id_family.h"
#include "lib/replica.h"
#include "unit/engine_help.h"

enum {
    SLOT = 3,
    IDS = 2000,
    BATCH_MAX = 40,
    STEPS = 1200,
    DEFINE_EACH = 400,
    TEND_EACH = 50,
    CHECK_EACH = 300,
    RECORDS_MAX = 100,
    TABLES_MAX = 4096
};

struct world {
    struct engine *engine;
    unsigned shards;
    struct journal journal;
    struct cell_model model;
    struct replica replica;
    struct engine_rows rows;
    struct dist_rng rng;
    uint64_t now_ms;
    size_t noticed; /* entries of the journal */
    unsigned shard; /* where the copier is */
    uint64_t from;
};

static unsigned
below(struct world *world, size_t n)
{
    return (unsigned)(dist_rng_u64(&world->rng) % n);
}

static struct world *
world_create(enum id_family family, unsigned columns, unsigned shards)
{
    struct world *world = calloc(1, sizeof(*world));
    ck_assert_ptr_nonnull(world);
    world->shards = shards;
    world->engine = small_engine(shards, RECORDS_MAX);
    dist_rng_init(&world->rng, 2, family);
    journal_init(&world->journal);
    cell_model_init(&world->model, SLOT, family, 1, IDS);
    for (unsigned i = 0; i < columns; i++) {
        (void)cell_model_add_column(&world->model, &world->rng);
    }
    ck_assert_int_eq(engine_define(world->engine, &world->model.def), 0);
    engine_set_sink(world->engine, &world->journal.sink);
    replica_init(&world->replica, world->engine, &world->model.def,
        world->model.id, IDS);
    return world;
}

static void
world_destroy(struct world *world)
{
    engine_rows_fini(&world->rows);
    replica_fini(&world->replica);
    cell_model_fini(&world->model);
    finish_engine(&world->engine);
    journal_fini(&world->journal);
    free(world);
}

static void
notice(struct world *world)
{
    replica_notice(&world->replica, &world->journal, world->noticed);
    world->noticed = world->journal.n;
}

static void
change_some(struct world *world, const struct cell_mood *mood, size_t n_ids)
{
    struct change change[BATCH_MAX];
    size_t at[BATCH_MAX];
    unsigned n = 1 + below(world, BATCH_MAX);
    for (unsigned i = 0; i < n; i++) {
        at[i] = below(world, n_ids);
        cell_model_random_change(
            &world->model, &world->rng, mood, at[i], &change[i]);
    }
    engine_change(world->engine, change, n);
    for (unsigned i = 0; i < n; i++) {
        const char *wrong =
            cell_model_judge(&world->model, at[i], &change[i], false);
        if (wrong != NULL) {
            ck_abort_msg("%s", wrong);
        }
    }
    notice(world);
}

/* A step of the copier. */
static enum engine_copied
copy_step(struct world *world)
{
    enum engine_copied copied;
    struct engine_rows *rows = &world->rows;
    ck_assert_int_eq(engine_copy(world->engine, SLOT, world->shard,
                         world->from, rows, &copied),
        0);
    CHECK(rows->position == world->journal.position);
    size_t n_changed =
        replica_take(&world->replica, world->shard, world->from, rows, copied);
    CHECK(copied != ENGINE_COPY_CLEAN || n_changed == 0);
    world->from = rows->last_row + 1;
    if (copied == ENGINE_COPY_END ||
        rows->last_row == UINT64_MAX >> __builtin_ctz(world->shards)) {
        world->shard = (world->shard + 1) % world->shards;
        world->from = 0;
    }
    return copied;
}

static void
check_replica(struct world *world)
{
    struct replica copy = replica_copy(&world->replica);
    replica_replay(&copy, &world->journal);
    replica_check(&copy, world->engine);
    replica_fini(&copy);
}

static void
define_step(struct world *world)
{
    cell_model_redefine(&world->model, &world->rng);
    ck_assert_int_eq(engine_define(world->engine, &world->model.def), 0);
    replica_redefine(&world->replica, &world->model.def);
}

static bool
has_record(struct world *world, uint64_t id)
{
    unsigned shard;
    uint64_t row;
    engine_row(world->engine, id, &shard, &row);
    return engine_count(world->engine, SLOT, shard, row, row) == 1;
}

/* Records between two rows, wherever tables end, beside those row by row. */
static void
check_count(struct world *world)
{
    uint64_t a = world->model.id[below(world, IDS)];
    uint64_t b = world->model.id[below(world, IDS)];
    uint64_t first = (a < b ? a : b) / world->shards;
    uint64_t last = (a < b ? b : a) / world->shards;
    for (unsigned shard = 0; shard < world->shards; shard++) {
        uint64_t n = 0;
        for (size_t i = 0; i < IDS; i++) {
            unsigned of;
            uint64_t row;
            engine_row(world->engine, world->model.id[i], &of, &row);
            n += of == shard && row >= first && row <= last &&
                has_record(world, world->model.id[i]);
        }
        CHECK(engine_count(world->engine, SLOT, shard, first, last) == n);
    }
    struct engine_sum sum = {0};
    uint64_t all = 0;
    engine_sum(world->engine, SLOT, -1, &sum);
    for (unsigned shard = 0; shard < world->shards; shard++) {
        all += engine_count(world->engine, SLOT, shard, 0, UINT64_MAX);
    }
    CHECK(all == sum.records);
}

static void
run_world(enum id_family family, unsigned columns, unsigned shards)
{
    struct world *world = world_create(family, columns, shards);
    struct cell_mood mood = {.value_bits = 6};
    size_t count[3] = {0};
    unsigned steps = long_part(STEPS);
    unsigned define_each = long_part(DEFINE_EACH);
    unsigned check_each = long_part(CHECK_EACH);
    for (unsigned step = 0; step < steps; step++) {
        size_t n_ids =
            below(world, 4) == 0 ? IDS : 1 + step * (IDS - 1) / steps;
        if (step % check_each == 0) {
            mood.value_bits = 1 + below(world, 64);
            mood.resets_of_16 = below(world, 2) * below(world, 16);
            mood.climbs_of_16 = below(world, 3);
        }
        change_some(world, &mood, n_ids);
        for (unsigned i = below(world, 4); i > 0; i--) {
            count[copy_step(world)]++;
        }
        if (step % TEND_EACH == 0) {
            (void)engine_tend(world->engine, world->now_ms += 600);
        }
        if (step % define_each == define_each - 1) {
            define_step(world);
        }
        if (step % check_each == check_each - 1) {
            check_replica(world);
            check_count(world);
        }
    }
    check_replica(world);
    CHECK(count[ENGINE_COPY_DONE] > 0 && count[ENGINE_COPY_CLEAN] > 0);
    world_destroy(world);
}

START_TEST(test_copies_and_changes)
{
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        run_world(family, 1 + family * 2, 1U << family % 4);
    }
}
END_TEST

/* Records of all kinds, in tables of all kinds. */
static struct world *
full_world(enum id_family family, unsigned columns, unsigned bits)
{
    struct world *world = world_create(family, columns, 4);
    const struct cell_mood mood = {.value_bits = bits, .climbs_of_16 = 1};
    for (unsigned step = 0; step < IDS / 8; step++) {
        change_some(world, &mood, IDS);
    }
    return world;
}

/* What has not changed is not copied again: not after tables have been packed
 * either; what has changed is, and nothing else. */
static void
run_clean(struct world *world)
{
    size_t count[3];
    const struct cell_mood mood = {.value_bits = 3};
    replica_pass(
        &world->replica, world->engine, world->shards, &world->rows, count);
    ck_assert_uint_eq(count[ENGINE_COPY_CLEAN], 0);
    size_t n = count[ENGINE_COPY_DONE];
    struct engine_sum before = sum_of(world->engine, SLOT);
    ck_assert_uint_eq(n, before.tables);
    tend_all(world->engine, &world->now_ms);
    struct engine_sum after = sum_of(world->engine, SLOT);
    replica_pass(
        &world->replica, world->engine, world->shards, &world->rows, count);
    ck_assert_uint_ge(after.merges - before.merges, count[ENGINE_COPY_DONE]);
    ck_assert_uint_eq(
        count[ENGINE_COPY_DONE] + count[ENGINE_COPY_CLEAN], after.tables);
    for (unsigned round = 0; round < 20; round++) {
        before = sum_of(world->engine, SLOT);
        change_some(world, &mood, IDS);
        after = sum_of(world->engine, SLOT);
        bool is_same = before.splits == after.splits;
        enum engine_copied copied;
        do {
            uint64_t from = world->from;
            unsigned shard = world->shard;
            struct replica copy = replica_copy(&world->replica);
            copied = copy_step(world);
            size_t n_changed =
                replica_take(&copy, shard, from, &world->rows, copied);
            CHECK(!is_same || copied != ENGINE_COPY_DONE || n_changed > 0);
            replica_fini(&copy);
        } while (world->shard != 0 || world->from != 0);
    }
    check_replica(world);
}

START_TEST(test_clean)
{
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        struct world *world = full_world(family, 3, 8);
        run_clean(world);
        world_destroy(world);
    }
}
END_TEST

/* Copies of all tables, with arrays of their own. */
struct shelf {
    size_t n;
    struct shelf_copy {
        unsigned shard;
        struct engine_rows rows;
    } copy[TABLES_MAX];
};

static struct shelf *
shelf_create(struct world *world)
{
    struct shelf *shelf = calloc(1, sizeof(*shelf));
    ck_assert_ptr_nonnull(shelf);
    engine_mark(world->engine, SLOT, 0, 0, UINT64_MAX);
    uint64_t most = UINT64_MAX >> __builtin_ctz(world->shards);
    for (unsigned shard = 0; shard < world->shards; shard++) {
        uint64_t from = 0;
        engine_mark(world->engine, SLOT, shard, 0, most);
        for (;;) {
            enum engine_copied copied;
            struct engine_rows rows = {0};
            ck_assert_int_eq(
                engine_copy(world->engine, SLOT, shard, from, &rows, &copied),
                0);
            ck_assert_int_ne(copied, ENGINE_COPY_CLEAN);
            if (copied == ENGINE_COPY_END) {
                engine_rows_fini(&rows);
                break;
            }
            ck_assert_uint_lt(shelf->n, TABLES_MAX);
            shelf->copy[shelf->n++] = (struct shelf_copy){shard, rows};
            if (rows.last_row == most) {
                break;
            }
            from = rows.last_row + 1;
        }
    }
    return shelf;
}

static void
shelf_destroy(struct shelf *shelf)
{
    for (size_t i = 0; i < shelf->n; i++) {
        engine_rows_fini(&shelf->copy[i].rows);
    }
    free(shelf);
}

/* Must have what the model has. */
static void
check_cells(struct engine *engine, const struct cell_model *model)
{
    for (size_t i = 0; i < model->n; i++) {
        for (unsigned k = 0; k < model->def.n_columns; k++) {
            expect_value(engine, &model->def, k, model->id[i],
                model->value[i][model->def.column[k].slot]);
        }
    }
    ck_assert_uint_eq(sum_of(engine, model->def.slot).records, model->records);
}

/* All is there, and each table is one that counts as unchanged. */
static void
run_load(struct world *world)
{
    struct shelf *shelf = shelf_create(world);
    struct engine *engine = small_engine(world->shards, RECORDS_MAX);
    size_t count[3];
    size_t n_tables = 0;
    ck_assert_int_eq(engine_define(engine, &world->model.def), 0);
    for (size_t i = 0; i < shelf->n; i++) {
        struct shelf_copy *copy = &shelf->copy[shelf->n - 1 - i];
        n_tables += copy->rows.n > 0;
        ck_assert_int_eq(
            engine_load(engine, SLOT, copy->shard, &copy->rows), 0);
    }
    engine_verify(engine);
    check_cells(engine, &world->model);
    ck_assert_uint_eq(sum_of(engine, SLOT).tables, n_tables);
    replica_pass(&world->replica, engine, world->shards, &world->rows, count);
    ck_assert_uint_eq(count[ENGINE_COPY_CLEAN], n_tables);
    ck_assert_uint_eq(count[ENGINE_COPY_DONE], 0);
    shelf_destroy(shelf);
    /* it lives on */
    struct engine *old = world->engine;
    world->engine = engine;
    world->now_ms = 0;
    engine_set_sink(engine, &world->journal.sink);
    const struct cell_mood mood = {.value_bits = 64, .resets_of_16 = 3};
    for (unsigned i = 0; i < 40; i++) {
        change_some(world, &mood, IDS);
    }
    (void)engine_tend(engine, world->now_ms += 700);
    check_cells(engine, &world->model);
    finish_engine(&old);
}

/* A short run: each family and each width, but not with each other. */
START_TEST(test_load)
{
    static const unsigned BITS[] = {2, 8, 20, 64};
    unsigned step = tests_are_long() ? 1 : 3;
    for (unsigned n = 0; n < ID_FAMILY_COUNT * COUNT_OF(BITS); n += step) {
        unsigned family = n / COUNT_OF(BITS), i = n % COUNT_OF(BITS);
        struct world *world =
            full_world(family, 1 + (family * 5 + i * 7) % 16, BITS[i]);
        run_load(world);
        world_destroy(world);
    }
}
END_TEST

/* A copy may be loaded by ranges of any kind, under other limits, with other
 * columns; and where there are records already. */
static void
load_in_parts(struct world *world, const struct shelf *shelf,
    struct engine *engine, uint64_t cut)
{
    for (size_t i = 0; i < shelf->n; i++) {
        struct engine_rows rows = shelf->copy[i].rows;
        uint64_t first = rows.first_row;
        uint64_t last = rows.last_row;
        uint64_t at = first + cut % (last - first);
        rows.block = NULL;
        rows.last_row = at;
        ck_assert_int_eq(
            engine_load(engine, SLOT, shelf->copy[i].shard, &rows), 0);
        rows.first_row = at + 1;
        rows.last_row = last;
        ck_assert_int_eq(
            engine_load(engine, SLOT, shelf->copy[i].shard, &rows), 0);
    }
    engine_verify(engine);
    check_cells(engine, &world->model);
}

START_TEST(test_load_parts)
{
    static const uint64_t CUT[] = {
        0, 1, 6, 1000, UINT64_C(1) << 40, UINT64_MAX / 3, UINT64_MAX - 1};
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        struct world *world = full_world(family, 3, 12);
        struct shelf *shelf = shelf_create(world);
        for (unsigned i = 0; i < COUNT_OF(CUT); i++) {
            struct engine *engine = small_engine(world->shards, 64);
            ck_assert_int_eq(engine_define(engine, &world->model.def), 0);
            load_in_parts(world, shelf, engine, CUT[i]);
            finish_engine(&engine);
        }
        shelf_destroy(shelf);
        world_destroy(world);
    }
}
END_TEST

/* All of a shard as one range, far too many records for a table. */
START_TEST(test_load_crowd)
{
    enum { N = 20000 };
    struct engine *engine = small_engine(1, 64);
    struct schema_counter def = plain_counter(SLOT, 1);
    struct engine_rows rows = {
        .last_row = UINT64_MAX, .n_columns = 1, .serial = {1}, .n = N};
    static uint64_t row[N], code[N];
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t i = 0; i < N; i++) {
        row[i] = i < N / 2 ? i * 3 : (i << 40) + (i * i % 1000 << 20);
        code[i] = i % 10;
    }
    rows.row = row;
    rows.code[0] = code;
    ck_assert_int_eq(engine_load(engine, SLOT, 0, &rows), 0);
    engine_verify(engine);
    ck_assert_uint_eq(sum_of(engine, SLOT).records, N - N / 10);
    ck_assert_uint_gt(sum_of(engine, SLOT).tables, N / 256);
    for (uint64_t i = 0; i < N; i++) {
        expect_value(engine, &def, 0, engine_id(engine, 0, row[i]), code[i]);
        expect_value(engine, &def, 0, engine_id(engine, 0, row[i] + 1), 0);
    }
    enum engine_copied copied;
    struct engine_rows copy = {0};
    ck_assert_int_eq(engine_copy(engine, SLOT, 0, 0, &copy, &copied), 0);
    ck_assert_int_eq(copied, ENGINE_COPY_DONE);
    engine_rows_fini(&copy);
    finish_engine(&engine);
}
END_TEST

/* One range that is much too wide for what is in it, in one row at the end
 * even; columns that are not there any more; records of nothing; the largest
 * id. */
START_TEST(test_load_odd)
{
    struct engine *engine = small_engine(2, RECORDS_MAX);
    struct schema_counter def = plain_counter(SLOT, 2);
    def.max_jump = 100;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    uint64_t row[] = {2, 7, 9, 500, 501, UINT64_MAX / 2};
    uint64_t code[3][6] = {
        {1, 0, 3, 0, 0, 0}, {0, 0, 4, 5, 0, 0}, {7, 7, 7, 7, 7, 7}};
    struct engine_rows rows = {.last_row = UINT64_MAX / 2,
        .n_columns = 3,
        .column = {0, 1, 2},
        .serial = {1, 2, 99},
        .n = 6,
        .row = row,
        .code = {code[0], code[1], code[2]}};
    ck_assert_int_eq(engine_load(engine, SLOT, 1, &rows), 0);
    engine_verify(engine);
    struct engine_sum sum = sum_of(engine, SLOT);
    ck_assert_uint_eq(sum.records, 3);
    ck_assert_uint_eq(sum.tables, 1);
    expect_value(engine, &def, 1, engine_id(engine, 1, 9), 4);
    uint64_t largest = engine_id(engine, 1, 500);
    ck_assert_int_eq(
        change_id(engine, &def, CHANGE_SET, largest + 101, 1, 1), ERR_JUMP);
    ck_assert_int_eq(
        change_id(engine, &def, CHANGE_SET, largest + 100, 1, 1), 0);
    /* a single row; and a counter that is not */
    code[0][5] = 1;
    rows.first_row = rows.last_row;
    ck_assert_int_eq(engine_load(engine, SLOT, 0, &rows), 0);
    expect_value(engine, &def, 0, engine_id(engine, 0, UINT64_MAX / 2), 1);
    ck_assert_int_eq(engine_load(engine, SLOT + 1, 0, &rows), 0);
    /* what no table can tell */
    enum engine_copied copied;
    struct engine_rows copy = {0};
    ck_assert_int_eq(engine_copy(engine, SLOT + 1, 0, 5, &copy, &copied), 0);
    ck_assert_int_eq(copied, ENGINE_COPY_END);
    ck_assert_uint_eq(copy.first_row, 5);
    ck_assert_uint_eq(copy.last_row, UINT64_MAX / 2);
    engine_rows_fini(&copy);
    finish_engine(&engine);
}
END_TEST

/* What was there when no more would go in, finds room again. */
static void
load_full(uint64_t seed)
{
    enum { COLUMNS = 3, VALUE_BITS = 50, BATCH = 16 };
    struct engine_config config = {
        .shards = 2, .seed = 1, .hot_bytes = ENGINE_HOT_BYTES_MIN};
    struct engine *from = engine_of(&config);
    struct engine *to = engine_of(&config);
    struct schema_counter def = plain_counter(SLOT, COLUMNS);
    struct change change[BATCH];
    struct dist_rng rng;
    uint64_t now_ms = 0;
    size_t refused = 0;
    dist_rng_init(&rng, seed, 1);
    ck_assert_int_eq(engine_define(from, &def), 0);
    ck_assert_int_eq(engine_define(to, &def), 0);
    engine_begin_loading(to);
    while (refused < 1000) {
        for (unsigned i = 0; i < BATCH; i++) {
            change[i] = change_of(&def, CHANGE_SET,
                dist_rng_u64(&rng) % (UINT64_C(1) << 24), COLUMNS,
                dist_rng_u64(&rng) >> (64 - VALUE_BITS));
        }
        engine_change(from, change, BATCH);
        for (unsigned i = 0; i < BATCH; i++) {
            refused += change[i].err == ERR_HOT_FULL;
        }
    }
    tend_all(from, &now_ms);
    struct engine_rows rows = {0};
    for (unsigned shard = 0; shard < config.shards; shard++) {
        enum engine_copied copied = ENGINE_COPY_DONE;
        for (uint64_t at = 0; copied != ENGINE_COPY_END;
             at = rows.last_row + 1) {
            ck_assert_int_eq(
                engine_copy(from, SLOT, shard, at, &rows, &copied), 0);
            ck_assert_int_eq(engine_load(to, SLOT, shard, &rows), 0);
            if (rows.last_row == UINT64_MAX / 2) {
                break;
            }
        }
    }
    engine_end_loading(to);
    ck_assert_uint_eq(sum_of(to, SLOT).records, sum_of(from, SLOT).records);
    engine_rows_fini(&rows);
    finish_engine(&from);
    finish_engine(&to);
}

START_TEST(test_load_full)
{
    for (uint64_t seed = 1; seed <= long_part(3); seed++) {
        load_full(seed);
    }
}
END_TEST

/* Tables with rows of the range, and no others. */
START_TEST(test_mark)
{
    struct world *world = full_world(ID_SEQUENTIAL, 2, 5);
    size_t count[3];
    struct shelf *shelf = shelf_create(world);
    ck_assert_uint_gt(shelf->n, 12);
    for (size_t i = 1; i + 1 < shelf->n; i++) {
        const struct shelf_copy *copy = &shelf->copy[i];
        const struct shelf_copy *next = &shelf->copy[i + 1];
        engine_mark(world->engine, SLOT, copy->shard, copy->rows.first_row,
            copy->rows.first_row);
        replica_pass(&world->replica, world->engine, world->shards,
            &world->rows, count);
        ck_assert_uint_eq(count[ENGINE_COPY_DONE], 1);
        engine_mark(world->engine, SLOT, copy->shard, copy->rows.last_row,
            copy->rows.last_row + 1);
        replica_pass(&world->replica, world->engine, world->shards,
            &world->rows, count);
        bool is_two = next->shard == copy->shard &&
            next->rows.first_row == copy->rows.last_row + 1;
        ck_assert_uint_eq(count[ENGINE_COPY_DONE], is_two ? 2 : 1);
    }
    engine_mark(world->engine, SLOT + 1, 0, 0, UINT64_MAX);
    shelf_destroy(shelf);
    world_destroy(world);
}
END_TEST

/* Nothing has changed where a copy finds no memory. */
START_TEST(test_copy_faults)
{
    struct world *world = full_world(ID_CLUSTERS, 4, 40);
    struct fault_alloc fault;
    size_t count[3];
    fault_alloc_init(&fault);
    world->rows.alloc = &fault.alloc;
    for (unsigned i = 0; i < 3; i++) {
        enum engine_copied copied;
        fault_alloc_arm(&fault, 1);
        ck_assert_int_eq(
            engine_copy(world->engine, SLOT, 1, 0, &world->rows, &copied),
            ERR_NO_MEMORY);
    }
    replica_pass(
        &world->replica, world->engine, world->shards, &world->rows, count);
    ck_assert_uint_eq(count[ENGINE_COPY_CLEAN], 0);
    ck_assert_uint_gt(count[ENGINE_COPY_DONE], 0);
    check_replica(world);
    engine_rows_fini(&world->rows);
    ck_assert_uint_eq(fault.live_bytes, 0);
    world_destroy(world);
}
END_TEST

/* False where the n-th allocation never came. */
static bool
load_fault(
    const struct world *world, const struct shelf *shelf, size_t n, bool all)
{
    struct fault_alloc fault;
    fault_alloc_init(&fault);
    struct engine_config config = {.shards = world->shards,
        .seed = 1,
        .hot_bytes = ROOMY_BYTES,
        .alloc = &fault.alloc,
        .table_records_max = RECORDS_MAX};
    struct engine *engine = engine_of(&config);
    int err = engine_define(engine, &world->model.def);
    ck_assert_int_eq(err, 0);
    fault.fail_from = fault.calls + n;
    fault.fail_to = all ? SIZE_MAX : fault.fail_from;
    for (size_t i = 0; i < shelf->n && err == 0; i++) {
        const struct shelf_copy *copy = &shelf->copy[i];
        err = engine_load(engine, SLOT, copy->shard, &copy->rows);
        ck_assert(err == 0 || err == ERR_NO_MEMORY);
        if (err != 0) {
            ck_assert_uint_gt(fault.failures, 0);
            fault.fail_from = fault.fail_to = 0;
            engine_verify(engine);
            err = engine_load(engine, SLOT, copy->shard, &copy->rows);
            ck_assert_int_eq(err, 0);
        }
    }
    engine_verify(engine);
    check_cells(engine, &world->model);
    engine_destroy(&engine);
    ck_assert_uint_eq(fault.live_bytes, 0);
    return fault.failures > 0;
}

START_TEST(test_load_faults)
{
    struct world *world = full_world(ID_CLUSTERS, 6, 50);
    struct shelf *shelf = shelf_create(world);
    unsigned n = 1;
    while (load_fault(world, shelf, n, n % 2 == 0)) {
        n = long_next(n) + n / 64;
    }
    ck_assert_uint_gt(n, 100);
    shelf_destroy(shelf);
    world_destroy(world);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_copies_and_changes, test_clean,
        test_load, test_load_full, test_load_parts, test_load_crowd,
        test_load_odd, test_mark, test_copy_faults, test_load_faults};
    return run_tests("engine_copy", tests, COUNT_OF(tests));
}
