/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the data directory that somebody removes under a server. */
#include "unit/durable_help.h"

#include "base/err.h"
#include "wal/manifest.h"
#include "wal/names.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum lost_file { MANIFEST_LOST, IMAGES_LOST, OLD_LOG_LOST, LOG_LOST, LOST };

enum { CASES = LOST * (WAL_SYNC_ALWAYS + 1) /* each in each mode */ };

static void
pick(void *context, const char *name)
{
    char *out = context;
    if (strncmp(name, "checkpoint-", strlen("checkpoint-")) == 0) {
        (void)snprintf(out, NAMES_BYTES, "%s", name);
    }
}

/* A server with images and some log files, one of whose files somebody removes:
 * case i of CASES. */
static void
lose_file(struct rig *rig, int i)
{
    enum lost_file which = (enum lost_file)(i % LOST);
    char name[NAMES_BYTES] = MANIFEST_NAME;
    rig_init(rig, (enum wal_sync)(i / LOST), ID_RANDOM, 1);
    rig->data.log_file_bytes = 4096;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    uint64_t number = rig_stat(rig, "file") + 2;
    for (uint64_t value = 7; rig_stat(rig, "file") < number; value++) {
        (void)rig_set_all(rig, 'a', value);
    }
    if (which == IMAGES_LOST) {
        struct disk *disk = rig->data.disk;
        ck_assert_int_eq(disk->calls->list(disk, pick, name), 0);
    } else if (which != MANIFEST_LOST) {
        names_make(
            name, NAMES_LOG, rig_stat(rig, "file") - (which == OLD_LOG_LOST));
    }
    ck_assert_int_eq(rig->data.disk->calls->unlink(rig->data.disk, name), 0);
}

/* Files that are removed under a server are made up for: when it stops, */
START_TEST(test_lost_then_stop)
{
    for (int i = 0; i < CASES; i++) {
        struct rig rig;
        lose_file(&rig, i);
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_end(&rig);
    }
}
END_TEST

/* at a checkpoint that somebody wants, */
START_TEST(test_lost_then_checkpoint)
{
    for (int i = 0; i < CASES; i++) {
        struct rig rig;
        lose_file(&rig, i);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        rig_crash(&rig, true, 1);
        rig_end(&rig);
    }
}
END_TEST

/* and without either, soon, though nothing is changed any more. */
START_TEST(test_lost_and_idle)
{
    for (int i = 0; i < CASES; i += CASES - LOST + 1) {
        struct rig rig;
        lose_file(&rig, i);
        uint64_t done = rig_stat(&rig, "checkpoints");
        while (rig_stat(&rig, "checkpoints") == done) {
            sched_yield();
        }
        /* a log file may be missed by the log itself */
        ck_assert_uint_ge(
            rig_stat(&rig, "missing_files") + rig_stat(&rig, "removed_files"),
            1);
        rig_crash(&rig, true, 1);
        rig_end(&rig);
    }
}
END_TEST

/* A stop that cannot make up for it does not end well. */
START_TEST(test_lost_for_good)
{
    for (int i = 0; i < CASES; i++) {
        struct rig rig;
        lose_file(&rig, i);
        fake_disk_fail(
            rig.fake, 1 << FAKE_OPEN | 1 << FAKE_RENAME, 1, EACCES, true);
        ck_assert_int_ne(rig_close(&rig), 0);
        (void)fake_disk_heal(rig.fake);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
        rig_fini(&rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_lost_then_stop,
        test_lost_then_checkpoint, test_lost_and_idle, test_lost_for_good};
    return run_tests("durable lost", tests, COUNT_OF(tests));
}
