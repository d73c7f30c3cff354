/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of the data directory that somebody removes under a server. */
#include "unit/durable_help.h"
#include "unit/files_help.h"

#include "base/err.h"
#include "wal/manifest.h"
#include "wal/names.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_SEGMENT "segment-00000000000000000001.seg"

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

/* A server with images and some log files, and the name of one of its files:
 * case i of CASES. */
static void
pick_file(struct rig *rig, int i, char name[NAMES_BYTES])
{
    enum lost_file which = (enum lost_file)(i % LOST);
    (void)snprintf(name, NAMES_BYTES, "%s", MANIFEST_NAME);
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
    /* no other file is being begun: that would fail, and not the stop */
    while (rig_stat(rig, "written_seq") < rig_stat(rig, "last_seq") ||
        rig_stat(rig, "file_bytes") >= rig->data.log_file_bytes) {
        sched_yield();
    }
    if (which == IMAGES_LOST) {
        struct disk *disk = rig->data.disk;
        ck_assert_int_eq(disk->calls->list(disk, pick, name), 0);
    } else if (which != MANIFEST_LOST) {
        names_make(
            name, NAMES_LOG, rig_stat(rig, "file") - (which == OLD_LOG_LOST));
    }
}

static void
remove_file(struct rig *rig, const char *name)
{
    ck_assert_int_eq(rig->data.disk->calls->unlink(rig->data.disk, name), 0);
}

/* As pick_file, and somebody removes it. */
static void
lose_file(struct rig *rig, int i)
{
    char name[NAMES_BYTES];
    pick_file(rig, i, name);
    remove_file(rig, name);
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
        char name[NAMES_BYTES];
        pick_file(&rig, i, name);
        uint64_t done = rig_stat(&rig, "checkpoints");
        remove_file(&rig, name);
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

/* A stop that cannot make up for it does not end well. The disk fails before
 * the server can see what is missing: it would make up for it at once. */
START_TEST(test_lost_for_good)
{
    for (int i = 0; i < CASES; i++) {
        struct rig rig;
        char name[NAMES_BYTES];
        pick_file(&rig, i, name);
        fake_disk_fail(
            rig.fake, 1 << FAKE_OPEN | 1 << FAKE_RENAME, 1, EACCES, true);
        remove_file(&rig, name);
        ck_assert_int_ne(rig_close(&rig), 0);
        (void)fake_disk_heal(rig.fake);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
        rig_fini(&rig);
    }
}
END_TEST

/* How often what has been written to log has that text. */
static unsigned
count_told(int log, const char *text)
{
    static char told[1 << 14];
    unsigned n = 0;
    ssize_t len = pread(log, told, sizeof told - 1, 0);
    ck_assert_int_ge(len, 0);
    told[len] = '\0';
    for (const char *at = told; (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    return n;
}

static int
catch_log(void)
{
    int log = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
    return log;
}

/* No checkpoint makes up for a segment: the stop says so, and the next start
 * when the file is back has all. */
START_TEST(test_segment_lost)
{
    struct rig rig;
    struct files files;
    int log = catch_log();
    rig_init(&rig, WAL_SYNC_INTERVAL, ID_RANDOM, 2);
    rig.seals = true;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 3);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    read_files(rig.data.disk, &files);
    struct disk *disk = rig.data.disk;
    ck_assert_int_eq(disk->calls->unlink(disk, FIRST_SEGMENT), 0);
    ck_assert_int_eq(rig_close(&rig), ERR_CORRUPT);
    ck_assert_uint_eq(
        count_told(log, "segments of the data directory were removed: put"),
        1);
    ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
    fake_disk_destroy(&rig.fake);
    rig.fake = disk_of(&files);
    rig.data.disk = fake_disk_as_disk(rig.fake);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
    free_files(&files);
    close(log);
}
END_TEST

/* A last checkpoint that fails is no loss, and the stop ends well. */
START_TEST(test_no_last_checkpoint)
{
    struct rig rig;
    int log = catch_log();
    rig_init(&rig, WAL_SYNC_INTERVAL, ID_RANDOM, 2);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 3);
    fake_disk_fail_name(rig.fake, FAKE_OPEN, EIO, "checkpoint-");
    store_want_last_checkpoint(rig.store);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_uint_eq(count_told(log, "stopped without a last checkpoint"), 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_end(&rig);
    close(log);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_lost_then_stop,
        test_lost_then_checkpoint, test_lost_and_idle, test_lost_for_good,
        test_segment_lost, test_no_last_checkpoint};
    return run_tests("durable lost", tests, COUNT_OF(tests));
}
