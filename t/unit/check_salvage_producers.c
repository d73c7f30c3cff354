/* SPDX-License-Identifier: BSD-3-Clause */
/* offline/salvage and producers: what says who one is, or that one is no more,
 * is among what is lost. A start works then, and so does the next one, behind a
 * checkpoint; and no number that was sent is taken for another producer's.
 * Where it is not known any more which shards numbers were of, that is said. */
#include "offline/data_check.h"
#include "unit/producers_help.h"
#include "unit/salvage_help.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "base/flip.h"
#include "offline/salvage.h"
#include "wal/entry.h"
#include "wal/frame.h"
#include "wal/manifest.h"

/* Made, dropped and made again: the one name is one producer. */
START_TEST(test_drop_lost)
{
    struct rig rig;
    struct files files;
    begin(&rig, WAL_SYNC_ALWAYS, 1);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), false, 5);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), false, 10);
    if (_i == 1) {
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
    }
    ck_assert_int_eq(drop(&rig, "p"), 0);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), false, 15);
    kill_it(&rig, &files);
    ck_assert_uint_eq(lose_batches(&files, ENTRY_PRODUCER_DROPPED), 1);
    salvage(&rig, &files, SALVAGE_LOSSY, "1 batches are lost");
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), true, 15);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), false, 20);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    crash(&rig, true);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 1), true, 20);
    EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 5, "p", 2), true, 20);
    end(&rig);
}
END_TEST

/* Whoever comes next does not get the serial of one that nobody describes: a
 * manifest with it would take the old numbers in the log for its. */
START_TEST(test_made_lost)
{
    enum { SENT = 6 };
    struct rig rig;
    struct files files;
    begin(&rig, WAL_SYNC_ALWAYS, 2);
    rig.seals = true;
    for (unsigned i = 1; i <= SENT; i++) {
        EXPECT_DONE(done(&rig, 0, CHANGE_INCR, 1, "p", i), false, i);
    }
    uint32_t serial = numbered(&rig, 0, CHANGE_INCR, 1, "p", 1).producer;
    if (_i == 1) { /* nothing but its end is left of it */
        ck_assert_int_eq(drop(&rig, "p"), 0);
    }
    kill_it(&rig, &files);
    ck_assert_uint_eq(lose_batches(&files, ENTRY_PRODUCER), 1);
    if (_i == 1) {
        (void)lose_batches(&files, ENTRY_NUMBER);
    }
    salvage(&rig, &files, SALVAGE_LOSSY,
        _i == 0 ? " numbers are of producers that nothing" : "are lost");
    struct change change = numbered(&rig, 1, CHANGE_INCR, 1, "q", 1);
    ck_assert_uint_gt(change.producer, serial);
    (void)send(&rig, &change, 1);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    crash(&rig, false);
    EXPECT_DONE(done(&rig, 1, CHANGE_INCR, 1, "q", 1), true, 1);
    for (unsigned i = 2; i <= SENT; i++) {
        EXPECT_DONE(done(&rig, 1, CHANGE_INCR, 1, "q", i), false, i);
    }
    end(&rig);
}
END_TEST

enum { PLACED = 20 };

static void
send_some(struct rig *rig)
{
    for (unsigned i = 0; i < PLACED; i++) {
        EXPECT_DONE(done(rig, i, CHANGE_INCR, 5, "p", i), false, 5);
    }
}

/* Each is done once more and then not again. */
static void
expect_they_may_come_twice(struct rig *rig)
{
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < PLACED; i++) {
            EXPECT_DONE(done(rig, i, CHANGE_INCR, 5, "p", i), round > 0, 10);
        }
        if (round == 1) {
            ck_assert_int_eq(rig_checkpoint(rig), 0);
        }
        crash(rig, true);
    }
}

/* A manifest that is made anew has another seed, and other shards (_i is 1). */
START_TEST(test_manifests_lost)
{
    struct rig rig;
    struct files files;
    begin(&rig, WAL_SYNC_ALWAYS, 3);
    send_some(&rig);
    kill_it(&rig, &files);
    for (size_t i = 0; i < files.n; i++) {
        if (strncmp(files.file[i].name, "MANIFEST", 8) == 0) {
            free(files.file[i].bytes);
            files.file[i].bytes = NULL;
        }
    }
    rig.config.shards = _i == 0 ? rig.config.shards : 2;
    salvage(&rig, &files, SALVAGE_LOSSY, "20 numbers of producers could not");
    expect_they_may_come_twice(&rig);
    end(&rig);
}
END_TEST

/* A number of a shard that there is not is refused by all, and mended. */
START_TEST(test_no_such_shard)
{
    struct rig rig;
    struct files files;
    struct manifest manifest;
    struct buf found = {0};
    int error;
    begin(&rig, WAL_SYNC_ALWAYS, 4);
    send_some(&rig);
    kill_it(&rig, &files);
    free_files(&files);
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig.data.disk, &manifest, &error), 0);
    manifest.shards = 1;
    ck_assert_int_eq(
        manifest_write(rig.data.disk, &manifest, NULL, &error), 0);
    manifest_fini(&manifest);
    ck_assert_int_eq(
        data_check_disk(rig.data.disk, &rig.logger, &found), ERR_CORRUPT);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    read_files(rig.data.disk, &files);
    salvage(&rig, &files, SALVAGE_LOSSY, "numbers of producers could not");
    for (unsigned i = 0; i < PLACED; i++) {
        expect(&rig, i, "ax", 5);
    }
    buf_fini(&found);
    end(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("salvage producers");
    tcase_add_loop_test(tcase, test_drop_lost, 0, 2);
    tcase_add_loop_test(tcase, test_made_lost, 0, 2);
    tcase_add_loop_test(tcase, test_manifests_lost, 0, 2);
    tcase_add_test(tcase, test_no_such_shard);
    return run_case("salvage producers", tcase);
}
