/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine: memory that runs out. One script makes tables grow, split,
 * merge and shrink, stashes grow, columns and counters come and go; it is run
 * again and again with the n-th allocation failing, n = 1, 2, 3 ..., and with
 * all from the n-th on failing, until there is no n-th any more. What fails
 * must say so and change nothing; then memory is back, and all must work.
 *
 * A fault names the n, the mode and the step; see check_engine_random.c for
 * debugging. */
#include "lib/fault_alloc.h"
#include "lib/id_family.h"
#include "unit/engine_help.h"

enum {
    SLOT = 9,
    OTHER_SLOT = 200,
    IDS = 320,
    RECORDS_MAX = 64,
    BATCH_MAX = 6,
    SWEEPS_MAX = 20000,
    SWEEPS_MIN = 100, /* fewer allocations would prove little */
    LOOKS = 4,        /* so many failures are followed by a look at all */
    LOOK_EACH = 64    /* and of the others one in so many */
};

struct world {
    struct fault_alloc fault;
    struct engine *engine;
    struct cell_model model;
    struct cell_model other;
    struct dist_rng rng;
    uint64_t now_ms;
    size_t n; /* of the sweep */
    bool for_ever;
    unsigned step;
    unsigned refusals;
};

static void
blame(const struct world *world, const char *what)
{
    ck_abort_msg("%s: allocation %zu fails%s, step %u", what, world->n,
        world->for_ever ? " and all after it" : "", world->step);
}

static unsigned
below(struct world *world, size_t n)
{
    return (unsigned)(dist_rng_u64(&world->rng) % n);
}

static void
check_record(struct world *world, const struct cell_model *model, uint64_t id)
{
    struct cell_key key[SCHEMA_COLUMNS_MAX] = {0};
    uint64_t value[SCHEMA_COLUMNS_MAX];
    uint8_t state[SCHEMA_COLUMNS_MAX];
    unsigned n = model->def.n_columns;
    for (unsigned k = 0; k < n; k++) {
        key[k] = key_of(&model->def, k, id);
    }
    engine_get(world->engine, key, n, value, state);
    for (unsigned k = 0; k < n; k++) {
        uint64_t want;
        enum cell_state want_state = cell_model_get(model, &key[k], &want);
        if (value[k] != want || state[k] != want_state) {
            blame(world, "a record has changed");
        }
    }
}

static void
check_model(struct world *world, const struct cell_model *model)
{
    for (size_t i = 0; i < model->n; i++) {
        check_record(world, model, model->id[i]);
        check_record(world, model, model->id[i] + 1);
    }
    if (sum_of(world->engine, model->def.slot).records != model->records) {
        blame(world, "wrong count of records");
    }
}

static void
check_all(struct world *world)
{
    check_model(world, &world->model);
    if (world->other.n > 0) {
        check_model(world, &world->other);
    }
    engine_verify(world->engine);
}

/* Something was refused. */
static void
refused(struct world *world)
{
    if (world->refusals < LOOKS || world->refusals % LOOK_EACH == 0) {
        check_all(world);
    }
    world->refusals++;
}

/* A batch of random changes, some of one id. Only what has seen a failing
 * allocation may be refused. */
static void
change_step(struct world *world, struct cell_model *model,
    const struct cell_mood *mood, size_t first, size_t n_ids)
{
    struct change change[BATCH_MAX];
    size_t at[BATCH_MAX];
    unsigned n = below(world, 2) == 0 ? 1 : 1 + below(world, BATCH_MAX);
    bool any_refused = false;
    for (unsigned i = 0; i < n; i++) {
        bool is_again = i > 0 && below(world, 3) == 0;
        at[i] = is_again ? at[0] : first + below(world, n_ids);
        cell_model_random_change(model, &world->rng, mood, at[i], &change[i]);
    }
    size_t failures = world->fault.failures;
    engine_change(world->engine, change, n);
    bool may_fail = world->fault.failures > failures;
    for (unsigned i = 0; i < n; i++) {
        const char *fault =
            cell_model_judge(model, at[i], &change[i], may_fail);
        if (fault != NULL) {
            fprintf(stderr, "change %u of %u, op %d: %s\n", i, n,
                (int)change[i].op, err_text(change[i].err));
            blame(world, fault);
        }
        any_refused = any_refused || change[i].err == ERR_NO_MEMORY;
        if (change[i].err == ERR_HOT_FULL) {
            blame(world, "full, but the budget is not");
        }
    }
    for (unsigned i = 0; i < n; i++) {
        check_record(world, model, model->id[at[i]]);
    }
    if (any_refused) {
        refused(world);
    }
    world->step++;
}

static void
change_steps(struct world *world, unsigned steps, unsigned value_bits,
    unsigned climbs, unsigned resets, size_t n_ids)
{
    const struct cell_mood mood = {.value_bits = value_bits,
        .climbs_of_16 = climbs,
        .resets_of_16 = resets,
        .has_stale = true};
    for (unsigned i = 0; i < steps; i++) {
        change_step(world, &world->model, &mood, 0, n_ids);
    }
}

/* Ids in their order, each once. */
static void
fill_steps(struct world *world)
{
    const struct cell_mood mood = {.value_bits = 3};
    for (size_t i = 0; i + 2 <= IDS; i += 2) {
        change_step(world, &world->model, &mood, i, 2);
    }
}

/* Puts back what the model has when memory runs out; a mere drop may not. */
static void
define_step(struct world *world, struct cell_model *model,
    struct cell_model *before, bool is_drop)
{
    size_t failures = world->fault.failures;
    int err = engine_define(world->engine, &model->def);
    if (err == 0) {
        cell_model_fini(before);
    } else {
        if (err != ERR_NO_MEMORY || world->fault.failures == failures) {
            blame(world, "a definition is refused");
        }
        if (is_drop) {
            blame(world, "a drop is refused");
        }
        cell_model_fini(model);
        *model = *before;
    }
    check_all(world);
    world->step++;
}

static struct cell_model
copy_of_model(const struct cell_model *model)
{
    struct cell_model copy = *model;
    copy.id = calloc(model->n, sizeof(*copy.id));
    copy.value = calloc(model->n, sizeof(*copy.value));
    ck_assert(copy.id != NULL && copy.value != NULL);
    memcpy(copy.id, model->id, model->n * sizeof(*copy.id));
    memcpy(copy.value, model->value, model->n * sizeof(*copy.value));
    return copy;
}

static void
add_step(struct world *world)
{
    struct cell_model before = copy_of_model(&world->model);
    (void)cell_model_add_column(&world->model, &world->rng);
    define_step(world, &world->model, &before, false);
}

static void
drop_step(struct world *world)
{
    struct cell_model before = copy_of_model(&world->model);
    cell_model_drop_column(
        &world->model, below(world, world->model.def.n_columns));
    define_step(world, &world->model, &before, true);
}

static void
renew_step(struct world *world)
{
    struct cell_model before = copy_of_model(&world->model);
    cell_model_renew_column(
        &world->model, below(world, world->model.def.n_columns), &world->rng);
    define_step(world, &world->model, &before, false);
}

static void
tend_steps(struct world *world, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        (void)engine_tend(world->engine, world->now_ms += 700);
    }
    check_all(world);
    world->step++;
}

/* A second counter comes, holds something, and goes. */
static void
other_counter(struct world *world)
{
    const struct cell_mood mood = {.value_bits = 40};
    enum { OTHER_IDS = 100, OTHER_STEPS = 60 };
    cell_model_init(&world->other, OTHER_SLOT, ID_RANDOM, 4, OTHER_IDS);
    (void)cell_model_add_column(&world->other, &world->rng);
    size_t failures = world->fault.failures;
    int err = engine_define(world->engine, &world->other.def);
    if (err == 0) {
        for (unsigned i = 0; i < OTHER_STEPS; i++) {
            change_step(world, &world->other, &mood, 0, world->other.n);
        }
    } else if (err != ERR_NO_MEMORY || world->fault.failures == failures) {
        blame(world, "a definition is refused");
    }
    engine_undefine(world->engine, OTHER_SLOT);
    if (sum_of(world->engine, OTHER_SLOT).records != 0) {
        blame(world, "records of a dropped counter");
    }
    cell_model_fini(&world->other);
    check_all(world);
}

static void
run_script(struct world *world)
{
    fill_steps(world);
    change_steps(world, 60, 5, 4, 0, IDS);
    tend_steps(world, 3);
    add_step(world);
    change_steps(world, 40, 12, 0, 2, IDS);
    change_steps(world, 60, 64, 14, 0, 40);
    renew_step(world);
    other_counter(world);
    change_steps(world, 60, 20, 0, 15, IDS);
    tend_steps(world, 6);
    drop_step(world);
    change_steps(world, 40, 64, 0, 15, IDS);
    tend_steps(world, 6);
    add_step(world);
    fill_steps(world);
    tend_steps(world, 3);
}

/* False where memory was out before there was an engine. */
static bool
make_engine(struct world *world)
{
    struct engine_config config = {.shards = 2,
        .seed = 5,
        .hot_bytes = ROOMY_BYTES,
        .alloc = &world->fault.alloc,
        .table_records_max = RECORDS_MAX};
    int err = engine_create(&config, &world->engine);
    if (err == 0) {
        err = engine_define(world->engine, &world->model.def);
        if (err == 0) {
            return true;
        }
        engine_verify(world->engine);
        engine_destroy(&world->engine);
    }
    if (err != ERR_NO_MEMORY || world->fault.failures == 0) {
        blame(world, "no engine");
    }
    return false;
}

/* One run of the script; false where the n-th allocation never came. */
static bool
sweep(size_t n, bool for_ever, enum id_family family, unsigned columns)
{
    struct world *world = calloc(1, sizeof(*world));
    ck_assert_ptr_nonnull(world);
    world->n = n;
    world->for_ever = for_ever;
    fault_alloc_init(&world->fault);
    world->fault.fail_from = n;
    world->fault.fail_to = for_ever ? SIZE_MAX : n;
    dist_rng_init(&world->rng, 8, columns);
    cell_model_init(&world->model, SLOT, family, 1, IDS);
    for (unsigned i = 0; i < columns; i++) {
        (void)cell_model_add_column(&world->model, &world->rng);
    }
    bool is_made = make_engine(world);
    if (is_made) {
        run_script(world);
    }
    bool has_failed = world->fault.failures > 0;
    world->fault.fail_from = 0;
    world->fault.fail_to = 0;
    if (!is_made) {
        ck_assert_uint_eq(world->fault.live_bytes, 0);
        ck_assert(make_engine(world));
        fill_steps(world);
    }
    /* memory is back */
    check_all(world);
    change_steps(world, 30, 10, 0, 0, IDS);
    renew_step(world);
    tend_steps(world, 3);
    change_steps(world, 30, 64, 8, 0, IDS);
    check_all(world);
    engine_destroy(&world->engine);
    ck_assert_uint_eq(world->fault.live_bytes, 0);
    cell_model_fini(&world->model);
    free(world);
    return has_failed;
}

static void
sweep_all(bool for_ever, enum id_family family, unsigned columns)
{
    size_t n = 1;
    while (n < SWEEPS_MAX && sweep(n, for_ever, family, columns)) {
        n = sweep_next((unsigned)n);
    }
    ck_assert_uint_gt(n, SWEEPS_MIN);
    ck_assert_uint_lt(n, SWEEPS_MAX);
}

START_TEST(test_one_fails)
{
    sweep_all(false, ID_SEQUENTIAL, 3);
}
END_TEST

START_TEST(test_one_fails_wide_ids)
{
    sweep_all(false, ID_RANDOM, 5);
}
END_TEST

START_TEST(test_all_fail)
{
    sweep_all(true, ID_SECONDS, 3);
}
END_TEST

/* Reading, undefining and verifying need no memory. */
START_TEST(test_no_memory_for_reads)
{
    struct fault_alloc fault;
    struct schema_counter def = plain_counter(SLOT, 2);
    fault_alloc_init(&fault);
    struct engine_config config = {.shards = 1,
        .hot_bytes = ROOMY_BYTES,
        .alloc = &fault.alloc,
        .table_records_max = RECORDS_MAX};
    struct engine *engine = engine_of(&config);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t id = 0; id < IDS; id++) {
        ck_assert_int_eq(change_id(engine, &def, CHANGE_SET, id, 2, id), 0);
    }
    fault_alloc_arm(&fault, SIZE_MAX / 2);
    size_t calls = fault.calls;
    for (uint64_t id = 0; id < IDS; id++) {
        expect_value(engine, &def, 1, id, id);
        ck_assert_int_eq(change_id(engine, &def, CHANGE_REPLACE, id, 2, id),
            id == 0 ? ERR_NOT_STORED : 0);
    }
    ck_assert_uint_eq(sum_of(engine, SLOT).records, IDS - 1);
    engine_verify(engine);
    ck_assert_uint_eq(fault.calls, calls);
    for (uint64_t id = 1; id < IDS; id++) {
        ck_assert_int_eq(change_id(engine, &def, CHANGE_DELETE, id, 2, 0), 0);
    }
    ck_assert_uint_eq(sum_of(engine, SLOT).records, 0);
    engine_undefine(engine, SLOT);
    finish_engine(&engine);
    ck_assert_uint_eq(fault.live_bytes, 0);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_one_fails, test_one_fails_wide_ids,
        test_all_fail, test_no_memory_for_reads};
    return run_tests("engine_faults", tests, COUNT_OF(tests));
}
