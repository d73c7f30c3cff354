/* SPDX-License-Identifier: BSD-3-Clause */
/* A store whose machine stops, at any call to the disk, with a power cut or
 * without, and again while it recovers. */
#include "unit/durable_help.h"

#include <errno.h>

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

static void
crash_often(enum wal_sync sync, unsigned seeds, unsigned rounds)
{
    for (unsigned seed = 1; seed <= seeds; seed++) {
        struct rig rig;
        rig_init(&rig, sync, (enum id_family)(seed % ID_FAMILY_COUNT), seed);
        ck_assert_int_eq(rig_open(&rig), 0);
        for (unsigned round = 0; round < rounds; round++) {
            (void)rig_work(&rig, (unsigned)random_below(&rig.random, 200));
            if (round % 4 != 0) {
                fake_disk_die(
                    rig.fake, 1 + (unsigned)random_below(&rig.random, 120));
            }
            (void)rig_work(&rig, 200);
            rig_crash(&rig, random_below(&rig.random, 3) > 0, 1 + round % 3);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}

START_TEST(test_crashes)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        crash_often(modes[i], SWEEP_PART(8), 12);
    }
}
END_TEST

/* A counter that is dropped after a pass has come by and before its manifest:
 * that names images of no counter, and their file must stay. */
START_TEST(test_drop_before_manifest)
{
    struct rig rig;
    struct rig_later later;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_SEQUENTIAL, 1);
    rig.data.checkpoint_step_bytes = 0;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    rig_set_all(&rig, 'a', 1);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    rig_add_counter(&rig, 'b');
    rig_set_all(&rig, 'b', 2);
    fake_disk_hold_name(rig.fake, FAKE_OPEN, "checkpoint-");
    rig_checkpoint_later(&rig, &later);
    fake_disk_wait_held(rig.fake);
    ck_assert_int_eq(rig_edit(&rig, "drop counter a a"), 0);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_wait(&later), 0);
    for (unsigned i = 0; i < 3; i++) {
        rig_crash(&rig, true, 1);
    }
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
}
END_TEST

/* A sync that failed has lost bytes which are still read back, and a later
 * sync says nothing of it. Who is killed then, reads them, builds on them and
 * loses power must have written them once more. */
START_TEST(test_failed_sync_then_both_crashes)
{
    for (uint64_t seed = 1; seed <= SWEEP_PART(20); seed++) {
        struct rig rig;
        rig_init(&rig, WAL_SYNC_ALWAYS, ID_SEQUENTIAL, seed);
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_add_counter(&rig, 'a');
        fake_disk_fail(rig.fake, 1 << FAKE_SYNC, 1, EIO, true);
        ck_assert_int_eq(rig_set_all(&rig, 'a', 1), STORE_COMMIT_FAILED);
        ck_assert_int_eq(store_fault(rig.store), ERR_DISK);
        rig_crash(&rig, false, 1);
        rig_set_all(&rig, 'a', 2);
        rig_crash(&rig, true, 1);
        rig_end(&rig);
    }
}
END_TEST

/* Numbers of batches that a power cut took back are not used again, however
 * few bytes the last file had. */
START_TEST(test_numbers_once)
{
    for (uint64_t seed = 1; seed <= SWEEP_PART(20); seed++) {
        struct rig rig;
        rig_init(&rig, WAL_SYNC_INTERVAL, ID_SEQUENTIAL, seed);
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_add_counter(&rig, 'a');
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        ck_assert_int_eq(rig_set_all(&rig, 'a', 1), STORE_COMMITTED);
        uint64_t last = rig_stat(&rig, "last_seq");
        rig_crash(&rig, true, 1);
        ck_assert_uint_ge(rig_stat(&rig, "last_seq"), last);
        rig_end(&rig);
    }
}
END_TEST

/* A checkpoint that is cut short at each of its calls, by a power cut, the end
 * of the process or a stop, costs nothing. */
static bool
cut_checkpoint(unsigned n)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, n);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    rig_add_counter(&rig, 'b');
    (void)rig_set_all(&rig, 'a', 1);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    (void)rig_set_all(&rig, 'b', 1);
    ck_assert_int_eq(rig_edit(&rig, "drop counter a a"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add counter c"), 0);
    fake_disk_die(rig.fake, n);
    bool is_cut = rig_checkpoint(&rig) != 0;
    rig_crash(&rig, n % 3 > 0, 1 + n % 2);
    (void)rig_set_all(&rig, 'b', 2);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
    return is_cut;
}

START_TEST(test_cut_checkpoint)
{
    unsigned n = 1;
    while (cut_checkpoint(n)) {
        n = sweep_next(n);
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

/* While a checkpoint waits for the disk, cells are read and changed. */
START_TEST(test_change_while_checkpoint)
{
    struct rig rig;
    struct rig_later later;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 1);
    for (unsigned i = 0; i < 4; i++) {
        fake_disk_hold_name(rig.fake, FAKE_OPEN, "checkpoint-");
        rig_checkpoint_later(&rig, &later);
        fake_disk_wait_held(rig.fake);
        ck_assert_int_eq(rig_set_all(&rig, 'a', 2 + i), STORE_COMMITTED);
        rig_judge(&rig, rig.history.n_steps, false);
        fake_disk_let_go(rig.fake);
        ck_assert_int_eq(rig_wait(&later), 0);
        rig_crash(&rig, true, 1);
    }
    rig_end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_crashes, test_drop_before_manifest,
        test_failed_sync_then_both_crashes, test_numbers_once,
        test_cut_checkpoint, test_change_while_checkpoint};
    return run_tests("durable crash", tests, COUNT_OF(tests));
}
