/* SPDX-License-Identifier: BSD-3-Clause */
/* store/keeper, on shards of the test's own: when the shards learn and forget
 * what the schema says, and what is left where memory is out. */
#include "store/keeper.h"

#include "base/clock.h"
#include "lib/fault_alloc.h"
#include "unit/store_help.h"

#include <pthread.h>
#include <sched.h>

enum { SHARDS = 3 };

/* What a store is to its keeper. Its shards and its schemas take their memory
 * from fault, which is the keeper's thread's while an edit is under way and
 * the test's otherwise. */
struct rig {
    struct fault_alloc fault;
    struct qsbr qsbr;
    _Atomic(const struct schema *) schema;
    struct store store;
    struct shard *shard[SHARDS];
    struct keeper keeper;
};

static void
rig_init(struct rig *rig)
{
    struct items_config items = {.limit_bytes = SMALL_STORE_BYTES,
        .item_bytes_max = SMALL_STORE_ITEM_BYTES,
        .seed = SMALL_STORE_SEED};
    fault_alloc_init(&rig->fault);
    qsbr_init(&rig->qsbr);
    atomic_init(&rig->schema, schema_create_from(&rig->fault.alloc));
    ck_assert_ptr_nonnull(atomic_load(&rig->schema));
    rig->store = (struct store){.items = items_create(&items),
        .qsbr = &rig->qsbr,
        .schema = &rig->schema};
    ck_assert_ptr_nonnull(rig->store.items);
    for (int s = 0; s < SHARDS; s++) {
        rig->shard[s] = shard_create(&rig->fault.alloc, 0);
        ck_assert_ptr_nonnull(rig->shard[s]);
    }
    ck_assert_int_eq(
        keeper_start(&rig->keeper, &rig->store, rig->shard, SHARDS), 0);
}

static void
rig_fini(struct rig *rig)
{
    struct schema *schema;
    keeper_stop(&rig->keeper);
    schema = (struct schema *)atomic_load(&rig->schema);
    schema_destroy(&schema);
    for (int s = 0; s < SHARDS; s++) {
        shard_verify(rig->shard[s]);
        shard_destroy(&rig->shard[s]);
    }
    items_destroy(&rig->store.items);
    qsbr_fini(&rig->qsbr);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
}

/* An edit under way. */
struct pending {
    struct store_edit edit;
    struct answer answer;
};

static void
begin(struct rig *rig, struct pending *pending, const char *line)
{
    answer_init(&pending->answer);
    pending->edit = (struct store_edit){
        .call = call_of(&pending->answer), .edit = edit_of(line), .err = -1};
    keeper_add(&rig->keeper, &pending->edit);
}

static int
end(struct pending *pending)
{
    answer_wait(&pending->answer);
    ck_assert_uint_eq(atomic_load(&pending->answer.n), 1);
    answer_fini(&pending->answer);
    return pending->edit.err;
}

static int
edit_now(struct rig *rig, const char *line)
{
    struct pending pending;
    begin(rig, &pending, line);
    return end(&pending);
}

static struct cell_key
find(struct rig *rig, const char *name)
{
    return cell_of(atomic_load(&rig->schema), 1, name);
}

static int
change_in(struct rig *rig, int shard, const struct cell_key *key,
    enum change_op op, uint64_t operand)
{
    struct change change = change_of(key, op, operand);
    shard_change(rig->shard[shard], &change);
    return change.err;
}

static void
declare(struct rig *rig)
{
    ck_assert_int_eq(edit_now(rig, "add counter w"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w id primarykey"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w a"), 0);
    ck_assert_int_eq(edit_now(rig, "add column w b default=5"), 0);
}

/* A reader that is online while an edit wants to finish. The reader's part is
 * played by the test's thread. */
static void
go_online(struct rig *rig, struct qsbr_reader *reader)
{
    qsbr_register(&rig->qsbr, reader);
    qsbr_online(&rig->qsbr, reader);
}

static void
go_offline(struct rig *rig, struct qsbr_reader *reader)
{
    qsbr_offline(reader);
    qsbr_unregister(&rig->qsbr, reader);
}

/* Makes the n-th allocation from now on fail, and those up to the m-th. */
static void
arm(struct rig *rig, size_t n, size_t m)
{
    rig->fault.fail_from = rig->fault.calls + n;
    rig->fault.fail_to = rig->fault.calls + m;
}

static void
disarm(struct rig *rig)
{
    rig->fault.fail_from = 0;
    rig->fault.fail_to = 0;
}

static void
wait_for_publication(struct rig *rig, const struct schema *old)
{
    while (atomic_load(&rig->schema) == old) {
        sched_yield();
    }
}

/* The shards know a column by the time that anybody can name it; the old
 * schema is there while a reader may look at it. */
START_TEST(test_add)
{
    struct rig rig;
    struct qsbr_reader reader;
    struct pending pending;
    rig_init(&rig);
    declare(&rig);
    go_online(&rig, &reader);
    const struct schema *old = store_schema(&rig.store);
    begin(&rig, &pending, "add column w c");
    wait_for_publication(&rig, old);
    struct cell_key c = find(&rig, "c");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(&rig, s, &c, CHANGE_SET, 3), 0);
    }
    ck_assert_ptr_nonnull(schema_counter(old, "w", 1));
    ck_assert_uint_eq(schema_counter(old, "w", 1)->n_columns, 2);
    ck_assert_uint_eq(atomic_load(&pending.answer.n), 0);
    go_offline(&rig, &reader);
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
    go_online(rig, &reader);
    const struct schema *old = store_schema(&rig->store);
    begin(rig, &pending, line);
    wait_for_publication(rig, old);
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(rig, s, &key, CHANGE_INCR, 1), 0);
    }
    ck_assert_uint_eq(atomic_load(&pending.answer.n), 0);
    go_offline(rig, &reader);
    ck_assert_int_eq(end(&pending), 0);
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(rig, s, &key, CHANGE_INCR, 1), ERR_GONE);
    }
}

START_TEST(test_drop)
{
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    expect_late_drop(&rig, "drop column w a a", "a");
    expect_late_drop(&rig, "drop counter w w", "b");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_uint_eq(shard_sum(rig.shard[s], 0).bytes, 0);
    }
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
    go_online(&rig, &reader);
    const struct schema *old = store_schema(&rig.store);
    begin(&rig, &pending, "add counter w");
    wait_for_publication(&rig, old);
    uint64_t now_s = clock_monotonic_s();
    ck_assert_int_eq(items_store(rig.store.items, &item, now_s, NULL), 0);
    go_offline(&rig, &reader);
    ck_assert_int_eq(end(&pending), 0);
    ck_assert(!items_has(rig.store.items, "w", 1, now_s));
    rig_fini(&rig);
}
END_TEST

/* Fails the n-th allocation of an add for n = 1, 2, 3, ...: nothing of it is
 * seen, and the next one works. */
static void
sweep_add(struct rig *rig, const char *line)
{
    const struct schema *old = atomic_load(&rig->schema);
    for (size_t n = 1;; n++) {
        size_t failures = rig->fault.failures;
        arm(rig, n, n);
        int err = edit_now(rig, line);
        disarm(rig);
        if (rig->fault.failures == failures) {
            ck_assert_int_eq(err, 0);
            ck_assert_uint_gt(n, 1);
            return;
        }
        ck_assert_int_eq(err, ERR_NO_MEMORY);
        ck_assert_ptr_eq(atomic_load(&rig->schema), old);
    }
}

START_TEST(test_add_out_of_memory)
{
    struct rig rig;
    rig_init(&rig);
    sweep_add(&rig, "add counter w");
    sweep_add(&rig, "add column w id primarykey");
    sweep_add(&rig, "add column w a");
    struct cell_key a = find(&rig, "a");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(&rig, s, &a, CHANGE_SET, 7), 0);
    }
    sweep_add(&rig, "add column w b default=5");
    struct cell_key b = find(&rig, "b");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(&rig, s, &a, CHANGE_CAS, 7), ERR_EXISTS);
        ck_assert_int_eq(
            change_in(&rig, s, &b, CHANGE_DELETE, 0), ERR_NOT_FOUND);
    }
    rig_fini(&rig);
}
END_TEST

/* An add that failed, then another column in its place: nothing is left of
 * what the first of the shards have learned. */
START_TEST(test_another_after_failed_add)
{
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    struct cell_key a = find(&rig, "a");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(&rig, s, &a, CHANGE_SET, 7), 0);
    }
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
    for (int s = 0; s < SHARDS; s++) {
        struct change change = change_of(&d, CHANGE_INCR, 5);
        shard_change(rig.shard[s], &change);
        ck_assert_int_eq(change.err, 0);
        ck_assert_uint_eq(change.value[0], 1);
    }
    rig_fini(&rig);
}
END_TEST

/* A drop that finds no memory to free memory with is a drop all the same. */
START_TEST(test_drop_out_of_memory)
{
    struct rig rig;
    rig_init(&rig);
    declare(&rig);
    struct cell_key a = find(&rig, "a");
    struct cell_key b = find(&rig, "b");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(change_in(&rig, s, &a, CHANGE_SET, 7), 0);
        ck_assert_int_eq(change_in(&rig, s, &b, CHANGE_SET, 8), 0);
    }
    /* the first allocation is the schema's; those of the shards fail */
    arm(&rig, 2, 1000);
    ck_assert_int_eq(edit_now(&rig, "drop column w a a"), 0);
    disarm(&rig);
    ck_assert_uint_gt(rig.fault.failures, 0);
    struct schema_target target;
    ck_assert(!schema_find(atomic_load(&rig.schema), "a", 1, &target));
    ck_assert_int_eq(edit_now(&rig, "add column w a"), 0);
    struct cell_key now = find(&rig, "a");
    for (int s = 0; s < SHARDS; s++) {
        ck_assert_int_eq(
            change_in(&rig, s, &now, CHANGE_DELETE, 0), ERR_NOT_FOUND);
        ck_assert_int_eq(change_in(&rig, s, &a, CHANGE_SET, 8), ERR_GONE);
        ck_assert_int_eq(
            change_in(&rig, s, &b, CHANGE_ADD, 8), ERR_NOT_STORED);
    }
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

int
main(void)
{
    const TTest *const tests[] = {test_add, test_drop, test_item_of_that_name,
        test_add_out_of_memory, test_another_after_failed_add,
        test_drop_out_of_memory, test_stop};
    return run_tests("keeper", tests, COUNT_OF(tests));
}
