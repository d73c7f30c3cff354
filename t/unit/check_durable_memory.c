/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with a directory, where memory runs out at each point of a start in
 * turn: while the manifest is read, images are loaded, the log is replayed and
 * opened anew, threads are made. The start says so and leaves nothing behind,
 * or does without; and the next one has everything.
 *
 * The engine takes its tables from the heap piece by piece. The disk's own
 * memory is spared: it stands for the machine's. */
#include "base/sanitizer.h"
#include "unit/durable_help.h"
#include "unit/heap_help.h"

#include "store/store.h"
#include "store/store_repl.h"

#include <limits.h>

/* A directory with images, a log behind them, and edits in it. */
static void
begin(struct rig *rig, struct spared_disk *disk)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_SPREAD, 5);
    spared_disk_init(disk, rig->data.disk);
    rig->data.disk = &disk->disk;
    rig->config.alloc = &heap_alloc;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    rig_add_counter(rig, 'b');
    (void)rig_work(rig, 40);
    (void)rig_set_all(rig, 'a', 5);
    (void)rig_set_all(rig, 'b', 6);
    ck_assert_int_eq(rig_edit(rig, "add counter m cold=never"), 0);
    ck_assert_int_eq(rig_edit(rig, "add column m mk primarykey"), 0);
    ck_assert_int_eq(rig_edit(rig, "add column m mx members=exact"), 0);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_edit(rig, "add column m my members=exact"), 0);
    ck_assert_int_eq(rig_edit(rig, "drop column m mx mx"), 0);
    ck_assert_int_eq(rig_edit(rig, "drop counter b b"), 0);
    (void)rig_set_all(rig, 'a', UINT64_C(1) << 40);
    ck_assert_int_eq(rig_edit(rig, "add column a ay max=64 default=3"), 0);
    rig_add_counter(rig, 'c');
    (void)rig_set_all(rig, 'c', UINT64_C(1) << 20);
    ck_assert_int_eq(rig_close(rig), 0);
}

/* What the test library takes, in here, is not the store's. */
static void
expect_all(struct rig *rig)
{
    heap_spare();
    rig_expect_all(rig);
    heap_unspare();
}

/* A start in which the calls for memory from number `from` to `to` fail.
 * Returns how many did. */
static unsigned
start_short(struct rig *rig, unsigned from, unsigned to)
{
    int live = heap_live();
    heap_fail(from, to);
    int err = rig_open(rig);
    unsigned failures = heap_heal();
    int last_err = 0;
    if (err == 0) {
        expect_all(rig);
        last_err = rig_close(rig);
    }
    live = heap_live() - live;
    EXPECT(err == 0 || (err == ERR_NO_MEMORY && failures > 0),
        "calls %u to %u fail: err %d", from, to, err);
    EXPECT(last_err == 0, "calls %u to %u fail: err %d at the end", from, to,
        last_err);
    EXPECT(live == 0, "calls %u to %u fail: err %d, %d blocks are left", from,
        to, err, live);
    return failures;
}

/* Calls from one that fails to the next: a start takes long with a sanitizer,
 * to which each third shows the same ways out. */
enum { STEP = SANITIZER_THREAD || SANITIZER_ADDRESS ? 3 : 1 };

/* n_threads load. Each call in turn fails, or all from it on do. */
static void
sweep(unsigned n_threads, bool forever)
{
    struct rig rig;
    struct spared_disk disk;
    begin(&rig, &disk);
    rig.data.threads = n_threads;
    unsigned n_failed = 0;
    for (unsigned n = 1; start_short(&rig, n, forever ? UINT_MAX : n) > 0;
         n += STEP) {
        n_failed++;
        if (n_failed % 8 == 0) {
            ck_assert_uint_eq(start_short(&rig, 0, 0), 0);
        }
    }
    ck_assert_uint_gt(n_failed * STEP, 100); /* tables' pieces among them */
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    rig_end(&rig);
}

START_TEST(test_one_fails)
{
    sweep(1, false);
}
END_TEST

START_TEST(test_one_fails_threads)
{
    sweep(3, false);
}
END_TEST

START_TEST(test_all_fail)
{
    sweep(2, true);
}
END_TEST

/* A store that cannot begin to follow is a replica that takes nothing, until it
 * can, or leads anew. */
START_TEST(test_replica)
{
    enum { FAILURES = 6, TRIES = 10000 };
    struct rig rig;
    struct spared_disk disk;
    unsigned n_failed = 0;
    uint64_t seq;
    begin(&rig, &disk);
    rig.data.is_replicated = true;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(store_begin_term(rig.store, "a", 1, 0, &seq), 0);
    /* another thread may take the call that fails */
    for (unsigned n = 0; n_failed < FAILURES; n++) {
        ck_assert_uint_lt(n, TRIES);
        heap_fail(n % 2 + 1, n % 2 + 1);
        int err = store_set_replica(rig.store);
        (void)heap_heal();
        ck_assert_int_eq(store_fault(rig.store), ERR_NOT_PRIMARY);
        ck_assert(err == 0 || err == ERR_NO_MEMORY);
        n_failed += err != 0;
        if (n_failed % 2 == 0) {
            ck_assert_int_eq(store_set_replica(rig.store), 0);
        }
        ck_assert_int_eq(store_begin_term(rig.store, "a", 1, 0, &seq), 0);
        store_set_committed(rig.store, UINT64_MAX);
        ck_assert_int_eq(store_fault(rig.store), 0);
    }
    rig_expect_all(&rig);
    (void)rig_set_all(&rig, 'a', 7);
    rig_end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_one_fails, test_one_fails_threads, test_all_fail, test_replica};
    return run_tests("durable_memory", tests, COUNT_OF(tests));
}
