/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are not as they were written: a bit is another, an end is
 * missing, a file is. A start refuses, or has all that it must have; the check
 * of a directory says the same. Never a wrong number. */
#include "offline/data_check.h"
#include "unit/durable_help.h"
#include "unit/files_help.h"

#include "base/buf.h"
#include "base/bytes.h"
#include "wal/image.h"
#include "wal/names.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

enum { STRIDE = 21 * SWEEP_STEP }; /* at most, of bytes */

/* A start on these files. n_steps of the history must be there if it works.
 * Returns its err. */
static int
try_start(struct rig *rig, const struct files *files, size_t n_steps)
{
    struct buf out = {0};
    struct fake_disk *whole = rig->fake;
    rig->fake = disk_of(files);
    rig->data.disk = fake_disk_as_disk(rig->fake);
    int found = data_check_disk(rig->data.disk, &rig->logger, &out);
    int err = rig_open(rig);
    EXPECT((err == 0) == (found == 0), "start: %s; check: %s", err_text(err),
        err_text(found));
    EXPECT(err == 0 || err == ERR_CORRUPT || err == ERR_NEWER_FORMAT,
        "start: %s", err_text(err));
    if (err == 0) {
        rig_judge(rig, n_steps, false);
        EXPECT(rig_close(rig) == 0, "no stop");
    }
    buf_fini(&out);
    fake_disk_destroy(&rig->fake);
    rig->fake = whole;
    rig->data.disk = fake_disk_as_disk(whole);
    return err;
}

/* A directory with all kinds of files. */
static void
make_directory(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 5);
    rig->data.checkpoint_step_bytes = 0;
    rig->data.checkpoint_file_bytes = 0;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    ck_assert_int_eq(rig_set_all(rig, 'a', 1), STORE_COMMITTED);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    rig_add_counter(rig, 'b');
    ck_assert_int_eq(rig_set_all(rig, 'b', 1), STORE_COMMITTED);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    (void)rig_work(rig, 60);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    ck_assert_int_eq(rig_set_all(rig, 'b', 2), STORE_COMMITTED);
}

/* A log file that is cut off, in what is in it or behind that, is refused. */
static void
cut_log(struct rig *rig, const struct files *files, struct file *file)
{
    uint64_t len = file->len;
    for (uint64_t at = random_below(&rig->random, STRIDE); at < len;
         at += 1 + random_below(&rig->random, 6 * STRIDE)) {
        file->len = at;
        ck_assert_int_eq(try_start(rig, files, 0), ERR_CORRUPT);
    }
    file->len = len - 1;
    ck_assert_int_eq(try_start(rig, files, 0), ERR_CORRUPT);
    file->len = len;
}

/* Each file with a bit changed here and there, cut off, and missing. How many
 * steps must be there where the last log file has another bit is n_flipped;
 * that a log file is cut off, or the last one missing, is noticed. */
static void
damage_all(struct rig *rig, size_t n_flipped)
{
    struct files files;
    unsigned n_refused = 0, n_tried = 0;
    read_files(rig->data.disk, &files);
    ck_assert_int_eq(try_start(rig, &files, rig->history.n_steps), 0);
    for (size_t i = 0; i < files.n; i++) {
        struct file *file = &files.file[i];
        bool is_last = is_last_log(&files, file);
        size_t n_all = rig->history.n_steps;
        unsigned n = 0;
        uint64_t len = file->len, used = used_bytes(file);
        uint8_t *bytes = file->bytes;
        for (uint64_t at = random_below(&rig->random, 3); at < used;
             at += 1 + random_below(&rig->random, STRIDE)) {
            uint8_t bit = (uint8_t)(1u << random_below(&rig->random, 8));
            bytes[at] ^= bit;
            n += try_start(rig, &files, is_last ? n_flipped : n_all) != 0;
            bytes[at] ^= bit;
            n_tried += !is_last;
            if (!is_log(file)) {
                file->len = at;
                n += try_start(rig, &files, n_all) != 0;
                file->len = len;
                n_tried++;
            }
        }
        if (is_log(file)) {
            cut_log(rig, &files, file);
        }
        file->bytes = NULL;
        int err = try_start(rig, &files, n_all);
        ck_assert(!is_last || err == ERR_CORRUPT);
        file->bytes = bytes;
        n_refused += is_last ? 0 : n;
    }
    /* what is dead in a checkpoint file may be as it likes */
    ck_assert_uint_gt(n_refused, n_tried / 2);
    free_files(&files);
}

/* After a clean stop nothing passes that is not as it was. */
START_TEST(test_closed)
{
    struct rig rig;
    make_directory(&rig);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    damage_all(&rig, 0);
    rig_fini(&rig);
}
END_TEST

/* After a crash the batches of the last file may end anywhere. */
START_TEST(test_crashed)
{
    struct rig rig;
    make_directory(&rig);
    rig.data.log_file_bytes = 6 << 10;
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    rig_add_counter(&rig, 'c');
    ck_assert_int_eq(rig_set_all(&rig, 'c', 1), STORE_COMMITTED);
    (void)rig_work(&rig, 20);
    ck_assert_int_eq(rig_set_all(&rig, 'c', 2), STORE_COMMITTED);
    fake_disk_die(rig.fake, 1);
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    damage_all(&rig, 0);
    rig_fini(&rig);
}
END_TEST

/* Starts, twice in a row, after the process was killed or has stopped, where
 * room can be given back or not: the log is never shorter than it was made, so
 * that the next start finds all. */
START_TEST(test_starts)
{
    for (unsigned i = 0; i < 8; i++) {
        struct rig rig;
        struct buf out = {0};
        make_directory(&rig);
        for (unsigned round = 0; round < 3; round++) {
            rig_expect_all(&rig);
            ck_assert_int_eq(
                rig_set_all(&rig, 'b', 10 + round), STORE_COMMITTED);
            if (i % 2 == 0) {
                ck_assert_int_eq(rig_close(&rig), 0);
            } else {
                fake_disk_die(rig.fake, 1);
                (void)rig_close(&rig);
            }
            if ((i & 2) != 0) {
                fake_disk_crash(rig.fake);
            } else {
                fake_disk_revive(rig.fake);
            }
            ck_assert_int_eq(
                data_check_disk(rig.data.disk, &rig.logger, &out), 0);
            if ((i & 4) != 0) {
                fake_disk_fail(rig.fake, 1 << FAKE_PUNCH, 1, EOPNOTSUPP, true);
            }
            ck_assert_int_eq(rig_open(&rig), 0);
        }
        rig_expect_all(&rig);
        ck_assert_int_eq(rig_close(&rig), 0);
        if ((i & 4) != 0) {
            ck_assert_uint_gt(fake_disk_heal(rig.fake), 0);
        }
        buf_fini(&out);
        rig_fini(&rig);
    }
}
END_TEST

/* Once a mark is in the last file no flipped bit passes: not one change is
 * missing. */
START_TEST(test_idle)
{
    struct rig rig;
    make_directory(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig.data.sync = WAL_SYNC_INTERVAL;
    rig.data.interval_ms = 10;
    rig.data.idle_ms = 1;
    rig.data.log_file_bytes = 6 << 10;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    (void)rig_work(&rig, 20);
    ck_assert_int_eq(rig_set_all(&rig, 'b', 3), STORE_COMMITTED);
    while (rig_stat(&rig, "mark_seq") <= rig_stat(&rig, "last_seq")) {
        sched_yield();
    }
    fake_disk_die(rig.fake, 1);
    (void)rig_close(&rig);
    fake_disk_revive(rig.fake);
    rig.data.idle_ms = 1 << 30;
    damage_all(&rig, rig.history.n_steps);
    rig_fini(&rig);
}
END_TEST

/* No log file at all, but a manifest that says there was one. */
START_TEST(test_no_log)
{
    struct rig rig;
    struct files files;
    make_directory(&rig);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    read_files(rig.data.disk, &files);
    for (size_t i = 0; i < files.n; i++) {
        if (strncmp(files.file[i].name, "log-", 4) == 0) {
            free(files.file[i].bytes);
            files.file[i].bytes = NULL;
        }
    }
    ck_assert_int_eq(try_start(&rig, &files, 0), ERR_CORRUPT);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

/* The first log file is missed also before the first checkpoint; a directory
 * whose first start got no further than the manifest is a new one. */
START_TEST(test_no_first_log)
{
    struct rig rig;
    struct files files;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, 5);
    for (unsigned n = 1;; n++) {
        bool has_log = false;
        fake_disk_die(rig.fake, n);
        int err = rig_open(&rig);
        if (err == 0) {
            (void)rig_close(&rig);
        }
        bool is_enough = !fake_disk_is_dead(rig.fake);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(rig_open(&rig), 0);
        read_files(rig.data.disk, &files);
        for (size_t i = 0; i < files.n; i++) {
            if (strncmp(files.file[i].name, "log-", 4) == 0) {
                has_log = true;
                free(files.file[i].bytes);
                files.file[i].bytes = NULL;
            }
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert(has_log);
        ck_assert_int_eq(try_start(&rig, &files, 0), ERR_CORRUPT);
        free_files(&files);
        fake_disk_destroy(&rig.fake);
        rig.fake = fake_disk_create(n);
        rig.data.disk = fake_disk_as_disk(rig.fake);
        if (is_enough) {
            break;
        }
    }
    rig_fini(&rig);
}
END_TEST

/* Images that are right in everything but for whose they are. */
START_TEST(test_images_of_another)
{
    struct rig rig;
    struct files files;
    make_directory(&rig);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    read_files(rig.data.disk, &files);
    ck_assert_int_eq(try_start(&rig, &files, 0), 0);
    unsigned n = 0;
    for (size_t i = 0; i < files.n; i++) {
        struct file *file = &files.file[i];
        if (strncmp(file->name, "checkpoint-", 11) != 0) {
            continue;
        }
        for (uint64_t at = 0; at < file->len;) {
            uint8_t *block = file->bytes + at;
            size_t len = bytes_get_u32(block + 8);
            uint64_t own;
            uint32_t says;
            ck_assert(image_peek(block, &says, &own));
            ck_assert_uint_eq(says, len);
            ck_assert(image_put_history(block, len, own, own + 1));
            /* those that nothing names are not read */
            n += try_start(&rig, &files, 0) == ERR_CORRUPT;
            ck_assert(image_put_history(block, len, own + 1, own));
            at += len;
        }
    }
    ck_assert_uint_gt(n, 1);
    ck_assert_int_eq(try_start(&rig, &files, 0), 0);
    free_files(&files);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_closed, test_crashed, test_starts,
        test_idle, test_no_log, test_no_first_log, test_images_of_another};
    return run_tests("durable damage", tests, COUNT_OF(tests));
}
