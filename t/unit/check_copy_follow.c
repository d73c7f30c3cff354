/* SPDX-License-Identifier: BSD-3-Clause */
/* A replica is made of a copy of a primary that goes on: it loads what has come
 * and follows the log behind; in the end both have the same. */
#include "unit/copy_help.h"
#include "unit/replicas_help.h"

static void
set_some(struct rig *rig, const char *name, uint64_t value)
{
    enum { IDS = 36, AT_ONCE = 12 };
    struct change change[AT_ONCE];
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, name);

    for (key.id = 0; key.id < IDS;) {
        for (unsigned n = 0; n < AT_ONCE; n++, key.id++) {
            change[n] = change_of(&key, CHANGE_SET, value + key.id);
        }
        (void)do_changes(rig->store, change, AT_ONCE);
    }
}

static void
begin(struct rig *a, struct rig *b, uint64_t seed)
{
    copy_init(a, WAL_SYNC_ALWAYS, seed);
    copy_init(b, WAL_SYNC_ALWAYS, seed + 1);
    copy_open(a);
    ck_assert_uint_eq(copy_lead(a, "a"), seq_first(1));
    rig_add_counter(a, 'a');
    set_some(a, "ax", 5);
}

static void
end(struct rig *a, struct rig *b)
{
    ck_assert_int_eq(rig_close(a), 0);
    ck_assert_int_eq(rig_close(b), 0);
    rig_fini(a);
    rig_fini(b);
}

/* The primary makes changes and checkpoints while the copy is under way, and
 * then until the replica has loaded it: without the copy's pin the log behind
 * the snapshot would be gone. */
START_TEST(test_log_behind)
{
    struct rig a, b;
    struct join join;
    const struct join_config config = {
        .from = &a, .to = &b, .seed = (uint64_t)_i + 1};

    begin(&a, &b, (uint64_t)_i + 1);
    ck_assert_int_eq(rig_checkpoint(&a), 0);
    ck_assert_int_eq(join_start(&join, &config), 0);
    for (unsigned i = 0; !join_is_over(&join); i++) {
        bool any = join_send(&join);

        any |= join_bring(&join, &join.down, true);
        any |= join_bring(&join, &join.up, false);
        set_some(&a, "ax", i);
        if (!any && !join_is_over(&join)) {
            ck_assert_int_eq(sem_wait(&join.wake), 0);
        }
    }
    ck_assert_int_eq(join.is_in, COPY_DONE);
    for (unsigned i = 0; i < 20; i++) {
        set_some(&a, "ax", 1000 * i);
        if (i % 5 == 0) {
            ck_assert_int_eq(rig_checkpoint(&a), 0);
        }
    }
    ck_assert_int_eq(rig_checkpoint(&a), 0);
    copy_open(&b);
    ck_assert_uint_eq(position_of(&b).written, join.last_seq);
    ck_assert_uint_eq(position_of(&b).applied, join.last_seq);
    store_set_committed(b.store, UINT64_MAX);
    feed(&a, &b);
    join_end(&join); /* what only the copy kept of the log goes */
    set_some(&a, "ax", 3);
    feed(&a, &b);
    expect_same(&a, &b);
    end(&a, &b);
}
END_TEST

/* A primary whose changes wait for a replica has a snapshot for it, also where
 * a checkpoint waits for the same. */
START_TEST(test_nothing_committed)
{
    struct rig a, b;
    struct rig_later later;
    struct join join;
    uint64_t seq;
    const struct join_config config = {.from = &a, .to = &b, .seed = 5};

    begin(&a, &b, 5);
    (void)copy_written(&a);
    ck_assert_int_eq(rig_close(&a), 0);
    copy_open(&a);
    ck_assert_int_eq(store_begin_term(a.store, "a", 1, 0, &seq), 0);
    set_some(&a, "ax", 6);
    ck_assert_int_eq(store_outcome(a.store, seq), STORE_COMMIT_WAITS);
    if (_i == 1) {
        rig_checkpoint_later(&a, &later);
    }
    ck_assert_int_eq(join_start(&join, &config), 0);
    join_run(&join);
    ck_assert_int_eq(join.is_in, COPY_DONE);
    ck_assert_uint_ge(join.last_seq, seq);
    copy_open(&b);
    ck_assert_uint_eq(position_of(&b).written, join.last_seq);
    store_set_committed(b.store, UINT64_MAX);
    feed(&a, &b);
    expect_same(&a, &b);
    /* a's checkpoint has waited: it takes away files that were compared */
    store_set_committed(a.store, UINT64_MAX);
    if (_i == 1) {
        ck_assert_int_eq(rig_wait(&later), 0);
    }
    join_end(&join);
    end(&a, &b);
}
END_TEST

/* A stop does not wait for a snapshot that nobody can give. */
START_TEST(test_stop_while_waiting)
{
    struct rig a, b;
    struct join join;
    const struct join_config config = {.from = &a, .to = &b};

    begin(&a, &b, 7);
    (void)copy_written(&a);
    ck_assert_int_eq(rig_close(&a), 0);
    copy_open(&a);
    ck_assert_int_eq(join_start(&join, &config), 0);
    join_end(&join);
    ck_assert_int_eq(rig_close(&a), 0);
    rig_fini(&a);
    rig_fini(&b);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("copy follow");
    tcase_add_loop_test(tcase, test_log_behind, 0, 6);
    tcase_add_loop_test(tcase, test_nothing_committed, 0, 2);
    tcase_add_test(tcase, test_stop_while_waiting);
    return run_case("copy follow", tcase);
}
