/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/shard: random changes and definitions against a slow model, also with
 * allocations that fail at random, and each allocation failing in turn. */
#include "base/err.h"
#include "base/fold.h"
#include "engine/shard.h"
#include "lib/fault_alloc.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    COLUMNS = SCHEMA_COLUMNS_MAX,
    COUNTERS = 2,
    IDS = 600, /* of each counter in the random test */
    GETS = 80, /* cells in one call, more than one batch of the shard */
    STEPS = 200000,
    SWEEP_STEPS = 1500,
    SWEEPS_MAX = 5000,
    PHASE_STEPS = 6000, /* growing and emptying take turns */
    VERIFY_STEPS = 2000
};

/* What the random test believes of one counter. slot_of() gives the slots 0
 * and 255. value[i] are those of id[i], by column slot. */
struct model {
    struct schema_counter def;
    uint64_t id[IDS];
    uint64_t value[IDS][COLUMNS];
    uint32_t old_serial; /* of some dropped column, 0: none */
    uint8_t old_slot;
};

struct world {
    struct fault_alloc fault;
    struct shard *shard;
    size_t shard_bytes; /* of the empty shard */
    uint64_t seed;
    uint32_t last_serial;
    bool faults_at_random;
    bool is_emptying;
    struct model model[COUNTERS];
};

static uint64_t
next_random(struct world *world)
{
    world->seed += UINT64_C(0x9e3779b97f4a7c15);
    return fold_id(world->seed);
}

static unsigned
below(struct world *world, unsigned n)
{
    return (unsigned)(next_random(world) % n);
}

static uint64_t
bits(struct world *world, unsigned n)
{
    return n == 0 ? 0 : next_random(world) >> (64 - n);
}

/* The id families that a store meets. */
static uint64_t
make_id(struct world *world, unsigned family, unsigned i)
{
    switch (family) {
    case 0:
        return i;
    case 1:
        return (400000000 + (uint64_t)i / 4) << 22 | (i % 4) * 3624;
    case 2:
        return (uint64_t)i << 22;
    case 3:
        return UINT64_MAX - i;
    case 4:
        return (uint64_t)i << 54;
    default:
        return i == 0 ? 0 : next_random(world);
    }
}

enum { FAMILIES = 6 };

static struct schema_column *
column_in_slot(struct model *model, unsigned slot)
{
    for (unsigned i = 0; i < model->def.n_columns; i++) {
        if (model->def.column[i].slot == slot) {
            return &model->def.column[i];
        }
    }
    return NULL;
}

static unsigned
free_slot(struct world *world, struct model *model)
{
    unsigned slot = below(world, COLUMNS);
    while (column_in_slot(model, slot) != NULL) {
        slot = (slot + 1) % COLUMNS;
    }
    return slot;
}

/* A column of random attributes in a free slot of a definition. */
static struct schema_column *
add_column(struct world *world, struct model *model)
{
    unsigned slot = free_slot(world, model);
    struct schema_column *column = &model->def.column[model->def.n_columns++];
    unsigned max_bits = 1 + below(world, 64);
    max_bits = below(world, 3) == 0 ? 64 : max_bits;
    *column = (struct schema_column){
        .serial = ++world->last_serial,
        .slot = (uint8_t)slot,
        .max_bits = (uint8_t)max_bits,
        .hint_bits = (uint8_t)below(world, max_bits + 1),
        .default_value = below(world, 2) * bits(world, max_bits),
    };
    for (unsigned i = 0; i < IDS; i++) {
        model->value[i][slot] = column->default_value;
    }
    return column;
}

static void
remove_column(struct world *world, struct model *model)
{
    unsigned i = below(world, model->def.n_columns);
    model->old_serial = model->def.column[i].serial;
    model->old_slot = model->def.column[i].slot;
    model->def.column[i] = model->def.column[--model->def.n_columns];
}

static bool
is_recorded(struct model *model, unsigned id)
{
    for (unsigned i = 0; i < model->def.n_columns; i++) {
        const struct schema_column *column = &model->def.column[i];
        if (model->value[id][column->slot] != column->default_value) {
            return true;
        }
    }
    return false;
}

/* Records, exact bytes and invariants. */
static void
check_sums(struct world *world)
{
    size_t bytes = world->shard_bytes;
    for (unsigned c = 0; c < COUNTERS; c++) {
        struct model *model = &world->model[c];
        uint64_t records = 0;
        for (unsigned i = 0; i < IDS; i++) {
            records += is_recorded(model, i);
        }
        struct shard_sum sum = shard_sum(world->shard, model->def.slot);
        ck_assert_uint_eq(sum.records, records);
        bytes += sum.bytes;
    }
    ck_assert_uint_eq(world->fault.live_bytes, bytes);
    shard_verify(world->shard);
}

/* Reads all cells of one record and compares. */
static void
check_record(struct world *world, struct model *model, unsigned id)
{
    struct cell_key key[COLUMNS] = {0};
    uint16_t order[COLUMNS] = {0};
    uint64_t value[COLUMNS];
    uint8_t state[COLUMNS];
    unsigned n = model->def.n_columns;
    for (unsigned i = 0; i < n; i++) {
        const struct schema_column *column = &model->def.column[i];
        key[i] = (struct cell_key){.id = model->id[id],
            .serial = column->serial,
            .counter = model->def.slot,
            .column = column->slot};
        order[i] = (uint16_t)(n - 1 - i);
    }
    shard_get(world->shard, key, order, n, value, state);
    for (unsigned i = 0; i < n; i++) {
        const struct schema_column *column = &model->def.column[i];
        uint64_t want = model->value[id][column->slot];
        if (value[i] != want ||
            state[i] !=
                (want == column->default_value ? CELL_DEFAULT : CELL_SET)) {
            ck_abort_msg("id %u slot %u", id, column->slot);
        }
    }
}

static void
check_all(struct world *world)
{
    for (unsigned c = 0; c < COUNTERS; c++) {
        for (unsigned i = 0; i < IDS; i++) {
            check_record(world, &world->model[c], i);
        }
    }
    check_sums(world);
}

/* Gives the shard the definition; where memory is out the old one stays. */
static void
define_step(struct world *world, struct model *model)
{
    struct model before = *model;
    unsigned n = model->def.n_columns;
    unsigned what = below(world, 4);
    if (what == 0) {
        model->def.overflow_is_error = !model->def.overflow_is_error;
        model->def.absent_is_miss = below(world, 2) == 0;
    } else if (n == COLUMNS || (n > 1 && what == 1)) {
        remove_column(world, model);
    } else if (what == 2) { /* again in the slot that it had */
        remove_column(world, model);
        (void)add_column(world, model);
        model->def.column[n - 1].slot = model->old_slot;
        for (unsigned i = 0; i < IDS; i++) {
            model->value[i][model->old_slot] =
                model->def.column[n - 1].default_value;
        }
    } else {
        (void)add_column(world, model);
    }
    size_t failures = world->fault.failures;
    int err = shard_define(world->shard, &model->def);
    if (err != 0) {
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_uint_gt(world->fault.failures, failures);
        *model = before;
        check_all(world);
    }
}

/* Values near the borders, and of all sizes in bits. */
static uint64_t
make_value(struct world *world, const struct schema_column *column)
{
    uint64_t max = schema_column_max(column);
    switch (below(world, 10)) {
    case 0:
        return column->default_value;
    case 1:
        return column->default_value + 1;
    case 2:
        return column->default_value - 1;
    case 3:
        return max;
    case 4:
        return max + 1;
    case 5:
        return max - below(world, 3);
    case 6:
        return below(world, 3);
    default:
        return bits(world, 1 + below(world, column->max_bits));
    }
}

static void
make_change(struct world *world, struct model *model, unsigned id,
    struct change *change)
{
    unsigned first = below(world, model->def.n_columns);
    unsigned n = 1 + below(world, model->def.n_columns);
    *change = (struct change){.id = model->id[id],
        .op = (enum change_op)below(world, CHANGE_DELETE + 1),
        .counter = model->def.slot};
    if (world->is_emptying && below(world, 16) > 0) {
        change->op = CHANGE_DELETE;
        n = model->def.n_columns;
    }
    n = change->op == CHANGE_CAS ? 1 : n;
    for (unsigned i = 0; i < n; i++) {
        const struct schema_column *column =
            &model->def.column[(first + i) % model->def.n_columns];
        change->column[i] = column->slot;
        change->serial[i] = column->serial;
        change->operand[i] = make_value(world, column);
    }
    change->n_columns = (uint8_t)n;
    change->cas = cell_cas(model->value[id][change->column[0]]);
    change->cas += below(world, 4) == 0;
}

/* One column's incr or decr: false where overflow=error refuses. */
static bool
model_count(struct model *model, const struct schema_column *column,
    const struct change *change, unsigned i, uint64_t *value, bool *saturated)
{
    uint64_t delta = change->operand[i];
    uint64_t max = schema_column_max(column);
    if (change->op == CHANGE_DECR) {
        *value = *value < delta ? 0 : *value - delta;
        return true;
    }
    *saturated = *value + delta < delta || *value + delta > max;
    *value = *saturated ? max : *value + delta;
    return !*saturated || !model->def.overflow_is_error;
}

static int
model_may_assign(struct model *model, unsigned id, const struct change *change)
{
    bool any_set = false;
    for (unsigned i = 0; i < change->n_columns; i++) {
        struct schema_column *column =
            column_in_slot(model, change->column[i]);
        any_set =
            any_set || model->value[id][column->slot] != column->default_value;
        if (change->op != CHANGE_DELETE &&
            change->operand[i] > schema_column_max(column)) {
            return ERR_OVER_MAX;
        }
    }
    switch (change->op) {
    case CHANGE_ADD:
        return any_set ? ERR_NOT_STORED : 0;
    case CHANGE_REPLACE:
        return any_set ? 0 : ERR_NOT_STORED;
    case CHANGE_DELETE:
        return any_set ? 0 : ERR_NOT_FOUND;
    case CHANGE_CAS:
        if (!any_set && model->def.absent_is_miss) {
            return ERR_NOT_FOUND;
        }
        if (change->cas != cell_cas(model->value[id][change->column[0]])) {
            return ERR_EXISTS;
        }
        return 0;
    default:
        return 0;
    }
}

/* What a change must answer, and into value[] what it must leave. */
static int
model_change(struct model *model, unsigned id, const struct change *change,
    uint64_t *value, unsigned *n_saturated)
{
    bool counts = change->op == CHANGE_INCR || change->op == CHANGE_DECR;
    int err = counts ? 0 : model_may_assign(model, id, change);
    *n_saturated = 0;
    for (unsigned i = 0; err == 0 && i < change->n_columns; i++) {
        struct schema_column *column =
            column_in_slot(model, change->column[i]);
        bool saturated = false;
        value[i] = model->value[id][column->slot];
        if (!counts) {
            value[i] = change->op == CHANGE_DELETE ? column->default_value
                                                   : change->operand[i];
        } else if (!model_count(
                       model, column, change, i, &value[i], &saturated)) {
            err = ERR_OVERFLOW;
        }
        *n_saturated += saturated;
    }
    return err;
}

static void
change_step(struct world *world, struct model *model)
{
    struct change change;
    uint64_t value[COLUMNS];
    unsigned n_saturated;
    unsigned id = below(world, IDS);
    make_change(world, model, id, &change);
    int err = model_change(model, id, &change, value, &n_saturated);
    size_t failures = world->fault.failures;
    shard_change(world->shard, &change);
    if (change.err == ERR_NO_MEMORY && err == 0) {
        ck_assert_uint_gt(world->fault.failures, failures);
        ck_assert_uint_eq(change.n_saturated, 0);
        check_all(world);
        return;
    }
    if (change.err != err) {
        ck_abort_msg("op %d: %d, not %d", change.op, change.err, err);
    }
    for (unsigned i = 0; err == 0 && i < change.n_columns; i++) {
        if (change.value[i] != value[i]) {
            ck_abort_msg("op %d: wrong value", change.op);
        }
        model->value[id][change.column[i]] = value[i];
    }
    if (change.n_saturated != (err == 0 ? n_saturated : 0)) {
        ck_abort_msg("n_saturated is %d", change.n_saturated);
    }
}

/* Cells of both counters in one call, some of ids that were never used, some
 * dropped, some left out of the order. */
static void
get_step(struct world *world)
{
    struct cell_key key[GETS];
    uint16_t order[GETS] = {0};
    uint64_t value[GETS], want[GETS];
    uint8_t state[GETS], want_state[GETS];
    size_t n = 0;
    for (unsigned i = 0; i < GETS; i++) {
        struct model *model = &world->model[below(world, COUNTERS)];
        const struct schema_column *column =
            &model->def.column[below(world, model->def.n_columns)];
        unsigned id = below(world, IDS);
        bool is_known = below(world, 8) > 0;
        bool is_live = below(world, 16) > 0;
        uint64_t now =
            is_known ? model->value[id][column->slot] : column->default_value;
        key[i] = (struct cell_key){
            .id = is_known ? model->id[id] : UINT64_C(0x5555) << 32 | id,
            .serial = is_live ? column->serial : model->old_serial,
            .counter = model->def.slot,
            .column = is_live ? column->slot : model->old_slot};
        want[i] = is_live ? now : 0;
        want_state[i] = now == column->default_value ? CELL_DEFAULT : CELL_SET;
        want_state[i] = is_live ? want_state[i] : CELL_GONE;
        value[i] = ~want[i];
        if (below(world, 8) > 0) {
            order[n++] = (uint16_t)i;
        } else {
            want[i] = value[i];
            state[i] = want_state[i] = UINT8_MAX;
        }
    }
    shard_get(world->shard, key, order, n, value, state);
    for (unsigned i = 0; i < GETS; i++) {
        if (value[i] != want[i] || state[i] != want_state[i]) {
            ck_abort_msg("cell %u", i);
        }
    }
}

/* A change that names a dropped column beside a live one changes nothing. */
static void
stale_step(struct world *world, struct model *model)
{
    struct change change;
    unsigned id = below(world, IDS);
    make_change(world, model, id, &change);
    unsigned i = below(world, change.n_columns);
    if (below(world, 2) == 0) {
        change.serial[i] = below(world, 2) * (world->last_serial + 1);
    } else {
        change.op = CHANGE_SET;
        change.n_columns = 1;
        change.column[0] = model->old_slot;
        change.serial[0] = model->old_serial;
    }
    shard_change(world->shard, &change);
    ck_assert_int_eq(change.err, ERR_GONE);
    check_record(world, model, id);
}

static void
step(struct world *world)
{
    struct model *model = &world->model[below(world, COUNTERS)];
    if (world->faults_at_random && below(world, 50) == 0) {
        fault_alloc_arm(&world->fault, 1 + below(world, 2));
    }
    switch (below(world, 1000)) {
    case 0:
        define_step(world, model);
        break;
    case 1:
    case 2:
        stale_step(world, model);
        break;
    default:
        change_step(world, model);
    }
    if (below(world, 32) == 0) {
        get_step(world);
    }
}

/* False where memory was out before there was a shard to test. */
static bool
world_init(struct world *world, unsigned family, unsigned n_columns)
{
    world->shard = shard_create(&world->fault.alloc, 2);
    if (world->shard == NULL) {
        return false;
    }
    world->shard_bytes = world->fault.live_bytes;
    for (unsigned c = 0; c < COUNTERS; c++) {
        struct model *model = &world->model[c];
        model->def.slot = c == 0 ? 0 : 255;
        model->def.serial = c + 1;
        for (unsigned i = 0; i < IDS; i++) {
            model->id[i] = make_id(world, family, i);
        }
        for (unsigned i = 0; i < n_columns; i++) {
            (void)add_column(world, model);
        }
        if (shard_define(world->shard, &model->def) != 0) {
            ck_assert_uint_gt(world->fault.failures, 0);
            shard_destroy(&world->shard);
            return false;
        }
    }
    return true;
}

static void
world_run(struct world *world, unsigned steps)
{
    for (unsigned i = 1; i <= steps; i++) {
        world->is_emptying = i / PHASE_STEPS % 2 == 1;
        step(world);
        if (i % VERIFY_STEPS == 0) {
            check_sums(world);
        }
    }
    check_all(world);
}

static void
world_fini(struct world *world)
{
    shard_destroy(&world->shard);
    ck_assert_ptr_null(world->shard);
    ck_assert_uint_eq(world->fault.live_bytes, 0);
    free(world);
}

static struct world *
world_create(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    ck_assert_ptr_nonnull(world);
    fault_alloc_init(&world->fault);
    world->seed = seed;
    return world;
}

/* _i: the family and, in the second half, failing allocations. */
START_TEST(test_random)
{
    static const unsigned n_columns[FAMILIES] = {1, 3, 16, 4, 2, 8};
    unsigned family = (unsigned)_i % FAMILIES;
    struct world *world = world_create((unsigned)_i + 1);
    ck_assert(world_init(world, family, n_columns[family]));
    world->faults_at_random = _i >= FAMILIES;
    world_run(world, STEPS);
    ck_assert_int_eq(world->fault.failures > 0, _i >= FAMILIES);
    world_fini(world);
}
END_TEST

/* The same steps again and again, the n-th allocation failing, until there
 * is no n-th any more. */
START_TEST(test_no_memory)
{
    size_t n = 1;
    for (; n < SWEEPS_MAX; n++) {
        struct world *world = world_create(99);
        world->fault.fail_from = n;
        world->fault.fail_to = n;
        if (world_init(world, 1, 2)) {
            world_run(world, SWEEP_STEPS);
        }
        size_t failures = world->fault.failures;
        world_fini(world);
        if (failures == 0) {
            break;
        }
    }
    ck_assert_uint_gt(n, 20);
    ck_assert_uint_lt(n, SWEEPS_MAX);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("shard_random");
    TCase *tcase = tcase_create("shard_random");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, test_random, 0, 2 * FAMILIES);
    tcase_add_test(tcase, test_no_memory);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
