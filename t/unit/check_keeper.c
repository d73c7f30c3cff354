/* SPDX-License-Identifier: BSD-3-Clause */
/* store/keeper, on an engine of the test's own: when the engine learns and
 * forgets what the schema says, and what is left where memory is out. */
#include "unit/keeper_help.h"
#include "unit/steps_help.h"

#include <sched.h>

static void
declare(struct rig *rig)
{
    ck_assert_int_eq(edit_now(rig, "add counter w"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w id primarykey"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w a"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w b default=5"), 0);
}

static void
wait_for_publication(struct rig *rig, const struct schema *old)
{
    while (atomic_load(&rig->schema) == old) {
        sched_yield();
    }
}

/* The engine knows a column by the time that anybody can name it; the old
 * schema is there while a reader may look at it. That reader is the test's
 * thread. */
START_TEST(test_add)
{
    struct rig rig;
    struct qsbr_reader reader;
    struct pending pending;
    rig_init(&rig);
    declare(&rig);
    reader_begin(&rig.store, &reader);
    const struct schema *old = store_schema(&rig.store);
    begin(&rig, &pending, "add column w c");
    wait_for_publication(&rig, old);
    struct cell_key c = find(&rig, "c");
    expect_all(&rig, c, CELL_DEFAULT, 0);
    change_all(&rig, c, CHANGE_SET, 3, 0);
    expect_all(&rig, c, CELL_SET, 3);
    ck_assert_ptr_nonnull(schema_counter(old, "w", 1));
    ck_assert_uint_eq(schema_counter(old, "w", 1)->n_columns, 2);
    ck_assert_uint_eq(atomic_load(&pending.answer.n), 0);
    reader_end(&rig.store, &reader);
    ck_assert_int_eq(end(&pending), 0);
    rig_fini(&rig);
}
END_TEST

/* Numbers go when nobody can have the old schema any more, not before: a
 * request that began under it is done as if it had come before the drop. */
static void
expect_late_drop(struct rig *rig, const char *line, const char *name)
{
    struct qsbr_reader reader;
    struct pending pending;
    struct cell_key key = find(rig, name);
    reader_begin(&rig->store, &reader);
    const struct schema *old = store_schema(&rig->store);
    begin(rig, &pending, line);
    wait_for_publication(rig, old);
    change_all(rig, key, CHANGE_SET, 77, 0);
    expect_all(rig, key, CELL_SET, 77);
    ck_assert_uint_eq(atomic_load(&pending.answer.n), 0);
    reader_end(&rig->store, &reader);
    ck_assert_int_eq(end(&pending), 0);
    change_all(rig, key, CHANGE_INCR, 1, ERR_GONE);
    expect_now(rig, key, CELL_GONE, 0);
}

START_TEST(test_drop)
{
    struct rig rig;
    struct engine_sum sum = {0};
    uint64_t garbage_bytes;
    rig_init(&rig);
    declare(&rig);
    expect_late_drop(&rig, "drop column w a a", "a");
    expect_late_drop(&rig, "drop counter w w", "b");
    engine_sum(rig.engine, 0, -1, &sum);
    ck_assert_uint_eq(sum.records, 0);
    ck_assert_uint_eq(sum.tables, 0);
    /* all tables are freed once nobody can see them */
    while (engine_tend(rig.engine, 1)) {
    }
    (void)engine_hot_bytes(rig.engine, &garbage_bytes);
    ck_assert_uint_eq(garbage_bytes, 0);
    rig_fini(&rig);
}
END_TEST

/* An item that was set while the name was being taken goes. */
START_TEST(test_item_of_that_name)
{
    struct rig rig;
    struct qsbr_reader reader;
    struct pending pending;
    struct items_store item = {.op = ITEMS_SET,
        .key = "w",
        .key_len = 1,
        .value = "x",
        .value_len = 1};
    rig_init(&rig);
    reader_begin(&rig.store, &reader);
    const struct schema *old = store_schema(&rig.store);
    begin(&rig, &pending, "add counter w");
    wait_for_publication(&rig, old);
    uint64_t now_s = clock_monotonic_s();
    ck_assert_int_eq(store_item(rig.store.items, &item, now_s, NULL), 0);
    reader_end(&rig.store, &reader);
    ck_assert_int_eq(end(&pending), 0);
    ck_assert(!items_has(rig.store.items, "w", 1, now_s));
    rig_fini(&rig);
}
END_TEST

static const char *const adds[] = {"add counter w",
    "add column w id primarykey", "add column w a",
    "add column w b default=5"};

/* An add that was done: it is published, and its column works. */
static void
expect_added(struct rig *rig, size_t i)
{
    const struct schema *schema = atomic_load(&rig->schema);
    const struct schema_counter *counter = schema_counter(schema, "w", 1);
    ck_assert_ptr_nonnull(counter);
    ck_assert_uint_eq(counter->n_columns, i < 2 ? 0 : i - 1);
    if (i >= 2) {
        struct cell_key key = find(rig, i == 2 ? "a" : "b");
        uint64_t value = i == 2 ? 0 : 5;
        expect_now(rig, key, CELL_DEFAULT, value);
        change_all(rig, key, CHANGE_ADD, 7, 0);
        change_all(rig, key, CHANGE_CAS, 7, ERR_EXISTS);
        expect_now(rig, key, CELL_SET, 7);
    }
    if (i == 3) {
        expect_now(rig, find(rig, "a"), CELL_SET, 7);
    }
}

/* Does the adds, and fails the n-th allocation of number i: either nothing of
 * it is seen and it works later, or it was done all the same. True where that
 * allocation was asked for. */
static bool
fail_in_add(size_t i, size_t n)
{
    struct rig rig;
    rig_init(&rig);
    for (size_t k = 0; k < i; k++) {
        ck_assert_int_eq(edit_now(&rig, adds[k]), 0);
        expect_added(&rig, k);
    }
    const struct schema *old = atomic_load(&rig.schema);
    arm(&rig, n, n);
    int err = edit_now(&rig, adds[i]);
    disarm(&rig);
    bool has_failed = rig.fault.failures > 0;
    ck_assert(err == 0 || (has_failed && err == ERR_NO_MEMORY));
    ck_assert_int_eq(err != 0, atomic_load(&rig.schema) == old);
    /* the schema itself comes first */
    ck_assert(n > 1 || err != 0);
    if (err != 0) {
        ck_assert_int_eq(edit_now(&rig, adds[i]), 0);
    }
    expect_added(&rig, i);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_add_out_of_memory)
{
    for (size_t i = 0; i < COUNT_OF(adds); i++) {
        size_t n = 1;
        while (fail_in_add(i, n)) {
            n++;
        }
        /* a schema, and a view of the engine */
        ck_assert_uint_gt(n, 2);
    }
}
END_TEST

/* Fails the n-th allocation of a change: the max and the name are those of
 * before, and it works later, or they are the new ones. */
static bool
fail_in_change(size_t n)
{
    static const char line[] = "change column w a name=c max=40";
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    struct cell_key a = find(&rig, "a");
    const struct schema *old = atomic_load(&rig.schema);
    arm(&rig, n, n);
    int err = edit_now(&rig, line);
    disarm(&rig);
    bool has_failed = rig.fault.failures > 0;
    ck_assert(err == 0 || (has_failed && err == ERR_NO_MEMORY));
    ck_assert_int_eq(err != 0, atomic_load(&rig.schema) == old);
    change_all(
        &rig, a, CHANGE_SET, UINT64_C(1) << 39, err != 0 ? ERR_OVER_MAX : 0);
    if (err != 0) {
        (void)find(&rig, "a");
        ck_assert_int_eq(edit_now(&rig, line), 0);
    }
    change_all(&rig, find(&rig, "c"), CHANGE_SET, UINT64_C(1) << 39, 0);
    expect_now(&rig, a, CELL_SET, UINT64_C(1) << 39);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_change_out_of_memory)
{
    size_t n = 1;
    while (fail_in_change(n)) {
        n++;
    }
    /* a schema, and a view of the engine */
    ck_assert_uint_gt(n, 2);
}
END_TEST

/* An add that failed, then another column in its place: nothing is left of
 * what the engine has learned. */
START_TEST(test_another_after_failed_add)
{
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    change_all(&rig, find(&rig, "a"), CHANGE_SET, 7, 0);
    for (size_t n = 1; n <= 8; n++) {
        arm(&rig, n, n);
        int err = edit_now(&rig, "add column w c default=9");
        disarm(&rig);
        if (err == 0) {
            ck_assert_int_eq(edit_now(&rig, "drop column w c c"), 0);
        }
    }
    ck_assert_int_eq(edit_now(&rig, "add column w d default=1 max=1"), 0);
    struct cell_key d = find(&rig, "d");
    for (d.id = 0; d.id < IDS; d.id++) {
        struct change change = change_of(&d, CHANGE_INCR, 5);
        engine_change(rig.engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
        ck_assert_uint_eq(change.value[0], 1);
    }
    expect_now(&rig, find(&rig, "a"), CELL_SET, 7);
    rig_fini(&rig);
}
END_TEST

/* Drops column a with no memory from the n-th allocation on; true where one
 * has failed. The first is the schema's. */
static bool
fail_in_drop(size_t n)
{
    struct rig rig;
    struct schema_target target;
    rig_init(&rig);
    declare(&rig);
    struct cell_key a = find(&rig, "a");
    struct cell_key b = find(&rig, "b");
    change_all(&rig, a, CHANGE_SET, 7, 0);
    change_all(&rig, b, CHANGE_SET, 8, 0);
    arm(&rig, n, SIZE_MAX / 2);
    ck_assert_int_eq(edit_now(&rig, "drop column w a a"), 0);
    disarm(&rig);
    bool has_failed = rig.fault.failures > 0;
    ck_assert(!schema_find(atomic_load(&rig.schema), "a", 1, &target));
    expect_now(&rig, a, CELL_GONE, 0);
    expect_now(&rig, b, CELL_SET, 8);
    /* nothing that is added now can see the old numbers */
    ck_assert_int_eq(edit_now(&rig, "add column w a"), 0);
    struct cell_key now = find(&rig, "a");
    expect_now(&rig, now, CELL_DEFAULT, 0);
    change_all(&rig, now, CHANGE_DELETE, 0, ERR_NOT_FOUND);
    change_all(&rig, a, CHANGE_SET, 8, ERR_GONE);
    expect_now(&rig, a, CELL_GONE, 0);
    change_all(&rig, b, CHANGE_ADD, 8, ERR_NOT_STORED);
    rig_fini(&rig);
    return has_failed;
}

/* A drop that finds no memory to free memory with is a drop all the same. */
START_TEST(test_drop_out_of_memory)
{
    size_t n = 2;
    while (fail_in_drop(n)) {
        n++;
    }
    ck_assert_uint_gt(n, 2);
}
END_TEST

/* Dropping a counter asks for no memory but the new schema's. */
START_TEST(test_drop_counter_out_of_memory)
{
    struct rig rig;
    struct engine_sum sum = {0};
    rig_init(&rig);
    declare(&rig);
    struct cell_key b = find(&rig, "b");
    change_all(&rig, b, CHANGE_SET, 8, 0);
    arm(&rig, 2, SIZE_MAX / 2);
    ck_assert_int_eq(edit_now(&rig, "drop counter w w"), 0);
    disarm(&rig);
    expect_now(&rig, b, CELL_GONE, 0);
    engine_sum(rig.engine, b.counter, -1, &sum);
    ck_assert_uint_eq(sum.tables, 0);
    rig_fini(&rig);
}
END_TEST

/* ---- columns of members ---- */

static uint64_t
records_in(struct rig *rig, unsigned slot)
{
    struct engine_sum sum = {0};
    engine_sum(rig->engine, slot, -1, &sum);
    return sum.records;
}

/* Their pairs go with them, with all records, and another one in that slot
 * begins without any. */
START_TEST(test_members_come_and_go)
{
    static const char *const drops[] = {
        "drop column w m m", "drop counter w w"};
    for (size_t i = 0; i < COUNT_OF(drops); i++) {
        struct rig rig;
        rig_init(&rig);
        declare_members(&rig);
        ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0);
        ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0); /* the same */
        expect_members(&rig);
        struct cell_key pairs = pairs_of(&rig, "m");
        ck_assert_uint_eq(pairs.counter, 1);
        ck_assert_uint_eq(records_in(&rig, 1), IDS);
        ck_assert_int_eq(edit_now(&rig, drops[i]), 0);
        change_all(&rig, pairs, CHANGE_SET, 1, ERR_GONE);
        expect_now(&rig, pairs, CELL_GONE, 0);
        ck_assert_uint_eq(records_in(&rig, 1), 0);
        if (i == 0) {
            expect_now(&rig, find(&rig, "n"), CELL_SET, 7);
        } else {
            declare_members(&rig);
        }
        ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0);
        expect_members(&rig);
        ck_assert_uint_eq(pairs_of(&rig, "m").counter, 1);
        rig_fini(&rig);
    }
}
END_TEST

/* A number that has values is no count of members, until they have gone. */
START_TEST(test_members_not_counted_before)
{
    struct rig rig;
    rig_init(&rig);
    declare_members(&rig);
    const struct schema *old = atomic_load(&rig.schema);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            edit_now(&rig, "add column w m members=exact counts=n"),
            ERR_COUNTS_VALUES);
        ck_assert_ptr_eq(atomic_load(&rig.schema), old);
    }
    change_all(&rig, find(&rig, "n"), CHANGE_DELETE, 0, 0);
    ck_assert_int_eq(
        edit_now(&rig, "add column w m members=exact counts=n"), 0);
    rig_fini(&rig);
}
END_TEST

/* A default is another one once nothing is stored; what knew the column of
 * before is gone then. */
START_TEST(test_default)
{
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    ck_assert_int_eq(edit_now(&rig, "add column w c"), 0);
    struct cell_key a = find(&rig, "a"), b = find(&rig, "b"),
                    c = find(&rig, "c");
    change_all(&rig, a, CHANGE_SET, 3, 0);
    const struct schema *old = atomic_load(&rig.schema);
    ck_assert_int_eq(
        edit_now(&rig, "change column w b default=6"), ERR_CHANGE_DEFAULT);
    ck_assert_ptr_eq(atomic_load(&rig.schema), old);
    expect_now(&rig, a, CELL_SET, 3);
    change_all(&rig, b, CHANGE_SET, 9, 0);
    expect_now(&rig, b, CELL_SET, 9);
    change_all(&rig, a, CHANGE_DELETE, 0, 0);
    change_all(&rig, b, CHANGE_SET, 5, 0); /* its default */
    ck_assert_int_eq(edit_now(&rig, "change column w b default=6"), 0);
    expect_now(&rig, b, CELL_GONE, 0);
    change_all(&rig, c, CHANGE_SET, 1, ERR_GONE);
    expect_now(&rig, a, CELL_DEFAULT, 0);
    b = find(&rig, "b");
    expect_now(&rig, b, CELL_DEFAULT, 6);
    expect_now(&rig, find(&rig, "c"), CELL_DEFAULT, 0);
    change_all(&rig, b, CHANGE_INCR, 2, 0);
    expect_now(&rig, b, CELL_SET, 8);
    ck_assert_int_eq(edit_now(&rig, "change column w b default=6"), 0);
    expect_now(&rig, b, CELL_SET, 8);
    rig_fini(&rig);
}
END_TEST

/* Fails the n-th allocation of a change of a default. */
static bool
fail_in_default(size_t n)
{
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    struct cell_key b = find(&rig, "b");
    change_all(&rig, b, CHANGE_SET, 9, 0);
    change_all(&rig, b, CHANGE_DELETE, 0, 0);
    arm(&rig, n, n);
    int err = edit_now(&rig, "change column w b default=6");
    disarm(&rig);
    bool has_failed = rig.fault.failures > 0;
    ck_assert(err == 0 || (has_failed && err == ERR_NO_MEMORY));
    if (err != 0) {
        expect_now(&rig, b, CELL_DEFAULT, 5);
        change_all(&rig, b, CHANGE_SET, 9, 0);
        expect_now(&rig, b, CELL_SET, 9);
        change_all(&rig, b, CHANGE_DELETE, 0, 0);
        ck_assert_int_eq(edit_now(&rig, "change column w b default=6"), 0);
    }
    expect_now(&rig, find(&rig, "b"), CELL_DEFAULT, 6);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_default_out_of_memory)
{
    size_t n = 1;
    while (fail_in_default(n)) {
        n++;
    }
    /* a schema, three views */
    ck_assert_uint_gt(n, 4);
}
END_TEST

/* Fails the n-th allocation of an edit that adds members. */
static bool
fail_in_members(size_t n)
{
    struct rig rig;
    rig_init(&rig);
    declare_members(&rig);
    const struct schema *old = atomic_load(&rig.schema);
    /* as schema_apply is going to give them out */
    struct cell_key pairs = {
        .serial = schema_last_serial(old) + 3, .counter = 1};
    arm(&rig, n, n);
    int err = edit_now(&rig, ADD_MEMBERS);
    disarm(&rig);
    bool has_failed = rig.fault.failures > 0;
    ck_assert(err == 0 || (has_failed && err == ERR_NO_MEMORY));
    ck_assert_int_eq(err != 0, atomic_load(&rig.schema) == old);
    if (err != 0) {
        change_all(&rig, pairs, CHANGE_SET, 1, ERR_GONE);
        expect_now(&rig, pairs, CELL_GONE, 0);
        ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0);
    }
    ck_assert_uint_eq(pairs_of(&rig, "m").serial, pairs.serial);
    expect_members(&rig);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_members_out_of_memory)
{
    size_t n = 1;
    while (fail_in_members(n)) {
        n++;
    }
    /* a schema, a counter of pairs with its view, a view */
    ck_assert_uint_gt(n, 4);
}
END_TEST

/* A drop is one without memory, too. */
START_TEST(test_drop_members_out_of_memory)
{
    struct rig rig;
    rig_init(&rig);
    declare_members(&rig);
    ck_assert_int_eq(edit_now(&rig, ADD_MEMBERS), 0);
    expect_members(&rig);
    struct cell_key pairs = pairs_of(&rig, "m");
    struct cell_key numbers = find(&rig, "m");
    arm(&rig, 2, SIZE_MAX / 2);
    ck_assert_int_eq(edit_now(&rig, "drop column w m m"), 0);
    disarm(&rig);
    expect_now(&rig, numbers, CELL_GONE, 0);
    expect_now(&rig, pairs, CELL_GONE, 0);
    ck_assert_uint_eq(records_in(&rig, pairs.counter), 0);
    expect_now(&rig, find(&rig, "n"), CELL_SET, 7);
    rig_fini(&rig);
}
END_TEST

/* Stopping does what is queued first. */
START_TEST(test_stop)
{
    struct rig rig;
    struct pending pending[3];
    rig_init(&rig);
    begin(&rig, &pending[0], "add counter w");
    begin(&rig, &pending[1], "add counter w absent=miss");
    begin(&rig, &pending[2], "drop counter w w");
    rig_fini(&rig);
    ck_assert_int_eq(end(&pending[0]), 0);
    ck_assert_int_eq(end(&pending[1]), ERR_NAME_TAKEN);
    ck_assert_int_eq(end(&pending[2]), 0);
}
END_TEST

static void
take_step(struct step it)
{
    (void)keeper__step((enum keeper_life)it.from, (enum keeper_life)it.to);
}

/* Its life: each step that keeper.c does not draw aborts. */
START_TEST(test_life)
{
    enum { N = KEEPER_LIVES_N + 1 /* and one that is none */ };
    static const bool may[N][N] = {
        [KEEPER_IDLE] = {[KEEPER_RUNS] = true},
        [KEEPER_RUNS] = {[KEEPER_ENDS] = true},
        [KEEPER_ENDS] = {[KEEPER_IDLE] = true},
    };
    expect_steps(take_step, &may[0][0], N);
}
END_TEST

static void
start_again(void *context)
{
    (void)keeper_start(context);
}

static void
stop_again(void *context)
{
    keeper_stop(context);
}

static void
add_late(void *context)
{
    struct rig *rig = context;
    struct pending pending;
    rig->keeper.life = KEEPER_ENDS;
    begin(rig, &pending, "add counter w");
}

/* One that runs is not started, one that does not run is not stopped, and no
 * edit is taken any more at its end. */
START_TEST(test_misused)
{
    struct rig rig;
    rig_init(&rig);
    ck_assert(!survives(start_again, &rig.keeper));
    ck_assert(!survives(add_late, &rig));
    rig_fini(&rig);
    ck_assert_uint_eq(rig.keeper.life, KEEPER_IDLE);
    ck_assert(!survives(stop_again, &rig.keeper));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_add, test_drop, test_default,
        test_default_out_of_memory, test_item_of_that_name,
        test_add_out_of_memory, test_change_out_of_memory,
        test_another_after_failed_add, test_drop_out_of_memory,
        test_drop_counter_out_of_memory, test_members_not_counted_before,
        test_members_come_and_go, test_members_out_of_memory,
        test_drop_members_out_of_memory, test_stop, test_life, test_misused};
    return run_tests("keeper", tests, COUNT_OF(tests));
}
