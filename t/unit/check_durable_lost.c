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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST_SEGMENT "segment-00000000000000000001.seg"

enum lost_file { MANIFEST_LOST, IMAGES_LOST, OLD_LOG_LOST, LOG_LOST, LOST };

/* What somebody does to it: takes it away, puts another one in its place with
 * the same bytes, cuts it off, or writes to it. */
enum harm { REMOVED, REPLACED, EMPTIED, WRITTEN, HARMS };

enum {
    FILES = LOST * (WAL_SYNC_ALWAYS + 1), /* each in each mode */
    CASES = FILES * HARMS
};

/* Whoever waits by the rig's clock has waited enough soon. */
static void
let_pass(struct rig *rig)
{
    enum { PASS_MS = 10 };
    fake_clock_pass(&rig->clock, PASS_MS);
    sched_yield();
}

static void
pick(void *context, const char *name)
{
    char *out = context;
    if (strncmp(name, "checkpoint-", strlen("checkpoint-")) == 0) {
        (void)snprintf(out, NAMES_BYTES, "%s", name);
    }
}

/* A server with images and some log files, and the name of one of its files:
 * case i of CASES, each FILES of which do the same harm. */
static void
pick_file(struct rig *rig, int i, char name[NAMES_BYTES])
{
    enum lost_file which = (enum lost_file)(i % LOST);
    (void)snprintf(name, NAMES_BYTES, "%s", MANIFEST_NAME);
    rig_init(rig, (enum wal_sync)(i % FILES / LOST), ID_RANDOM, 1);
    rig->data.log_file_bytes = 4096;
    rig_take_clock(rig);
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
        let_pass(rig);
    }
    if (which == IMAGES_LOST) {
        struct disk *disk = rig->data.disk;
        ck_assert_int_eq(disk->calls->list(disk, pick, name), 0);
    } else if (which != MANIFEST_LOST) {
        names_make(
            name, NAMES_LOG, rig_stat(rig, "file") - (which == OLD_LOG_LOST));
    }
}

/* Another file of that name with the same bytes. */
static void
replace_file(struct disk *disk, const char *name)
{
    uint64_t bytes = 0;
    size_t len = 0;
    int fd, copy;
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(disk->calls->size(disk, fd, &bytes), 0);
    /* as long as the writer lets it become: it may lag behind the changes */
    uint8_t *copied = malloc(bytes);
    ck_assert_ptr_nonnull(copied);
    ck_assert_int_eq(disk->calls->read(disk, fd, copied, bytes, 0, &len), 0);
    ck_assert_uint_eq(len, bytes);
    disk->calls->close(disk, fd);
    ck_assert_int_eq(disk->calls->open(disk, "copy", DISK_CREATE, &copy), 0);
    ck_assert_int_eq(disk->calls->write(disk, copy, copied, len, 0), 0);
    free(copied);
    ck_assert_int_eq(disk->calls->sync(disk, copy), 0);
    disk->calls->close(disk, copy);
    ck_assert_int_eq(disk->calls->rename(disk, "copy", name), 0);
    ck_assert_int_eq(disk->calls->sync_names(disk), 0);
}

static void
do_harm(struct rig *rig, enum harm harm, const char *name)
{
    struct disk *disk = rig->data.disk;
    uint64_t len;
    int fd;
    if (harm == REMOVED) {
        ck_assert_int_eq(disk->calls->unlink(disk, name), 0);
        return;
    }
    if (harm == REPLACED) {
        replace_file(disk, name);
        return;
    }
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_WRITE, &fd), 0);
    ck_assert_int_eq(disk->calls->size(disk, fd, &len), 0);
    if (harm == WRITTEN) {
        fake_disk_flip(rig->fake, name, 40, 0xff);
    }
    ck_assert_int_eq(
        disk->calls->truncate(disk, fd, harm == WRITTEN ? len : 0), 0);
    disk->calls->close(disk, fd);
}

/* As pick_file, and somebody does the harm of case i to it. */
static void
lose_file(struct rig *rig, int i)
{
    char name[NAMES_BYTES];
    pick_file(rig, i, name);
    do_harm(rig, (enum harm)(i / FILES), name);
}

/* Removals are tried in each mode, of other harm a third: in one mode. */
static bool
is_tried(int i)
{
    int mode = i % FILES / LOST;
    return i < FILES || (i / FILES + i % LOST) % (WAL_SYNC_ALWAYS + 1) == mode;
}

/* Files that are removed or changed under a server are made up for: when it
 * stops, */
START_TEST(test_lost_then_stop)
{
    for (int i = 0; i < CASES; i++) {
        struct rig rig;
        if (!is_tried(i)) {
            continue;
        }
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
        if (!is_tried(i)) {
            continue;
        }
        lose_file(&rig, i);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        rig_crash(&rig, true, 1);
        rig_end(&rig);
    }
}
END_TEST

/* and without either, soon, though nothing is changed any more: a file of each
 * kind, each with other harm, at the same time. */
START_TEST(test_lost_and_idle)
{
    static struct rig rig[LOST];
    for (int i = 0; i < LOST; i++) {
        int mode = i % (WAL_SYNC_ALWAYS + 1);
        lose_file(&rig[i], i + LOST * mode + FILES * ((i + 1) % HARMS));
    }
    for (int i = 0; i < LOST; i++) {
        while (rig_stat(&rig[i], "checkpoints") < 2) {
            let_pass(&rig[i]);
        }
        /* a log file may be missed by the log itself */
        ck_assert_uint_ge(rig_stat(&rig[i], "missing_files") +
                rig_stat(&rig[i], "removed_files"),
            1);
        rig_crash(&rig[i], true, 1);
        rig_end(&rig[i]);
    }
}
END_TEST

/* A log file that becomes what it was a while ago has its length and its header
 * still: it is seen by what the look before has read. */
START_TEST(test_log_written_back)
{
    enum { READS = 8 /* of two looks at least */ };
    struct rig rig;
    char name[NAMES_BYTES];
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    rig_take_clock(&rig);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 3);
    unsigned reads = fake_disk_count(rig.fake, FAKE_READ);
    while (fake_disk_count(rig.fake, FAKE_READ) < reads + READS) {
        let_pass(&rig);
    }
    names_make(name, NAMES_LOG, rig_stat(&rig, "file"));
    for (uint64_t at = rig_stat(&rig, "file_bytes"); at-- > 64;) {
        fake_disk_flip(rig.fake, name, at, 0xff);
    }
    while (rig_stat(&rig, "checkpoints") == 0) {
        let_pass(&rig);
    }
    ck_assert_uint_ge(rig_stat(&rig, "removed_files"), 1);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
}
END_TEST

/* Log files that cannot be opened or read for a while are not taken for ones
 * that somebody has removed or changed. */
START_TEST(test_unreadable)
{
    enum { LOOKS = 2 /* the first is done then */ };
    static const struct {
        enum fake_call call;
        int err;
    } faults[] = {{FAKE_READ, EIO}, {FAKE_OPEN, EMFILE}, {FAKE_OPEN, EACCES}};
    static struct rig rig[COUNT_OF(faults)];
    unsigned lists[COUNT_OF(faults)];
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        char name[NAMES_BYTES];
        pick_file(&rig[i], LOG_LOST + LOST * (int)i, name);
        fake_disk_fail(
            rig[i].fake, 1u << faults[i].call, 1, faults[i].err, true);
        lists[i] = fake_disk_count(rig[i].fake, FAKE_LIST);
    }
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        while (fake_disk_count(rig[i].fake, FAKE_LIST) < lists[i] + LOOKS) {
            let_pass(&rig[i]);
        }
        ck_assert_uint_eq(rig_stat(&rig[i], "missing_files"), 0);
        ck_assert_uint_eq(rig_stat(&rig[i], "removed_files"), 0);
        ck_assert_uint_gt(fake_disk_heal(rig[i].fake), 0);
        rig_end(&rig[i]);
    }
}
END_TEST

/* A stop that cannot make up for it does not end well. The disk fails before
 * the server can see what is missing: it would make up for it at once. */
START_TEST(test_lost_for_good)
{
    for (int i = 0; i < FILES; i++) {
        struct rig rig;
        char name[NAMES_BYTES];
        pick_file(&rig, i, name);
        fake_disk_fail(
            rig.fake, 1 << FAKE_OPEN | 1 << FAKE_RENAME, 1, EACCES, true);
        do_harm(&rig, REMOVED, name);
        ck_assert_int_ne(rig_close(&rig), 0);
        (void)fake_disk_heal(rig.fake);
        fake_disk_revive(rig.fake);
        ck_assert_int_eq(rig_open(&rig), ERR_CORRUPT);
        rig_fini(&rig);
    }
}
END_TEST

/* The log itself finds that its file is gone, when all in that was synced and
 * acknowledged, and can make no other. Nobody looks at the directory then, for
 * the log cannot be written; the stop does not end well all the same. */
START_TEST(test_full_file_lost)
{
    struct rig rig;
    char name[NAMES_BYTES];
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    rig.data.log_file_bytes = 4096;
    rig.data.retry_ms = 1 << 20; /* a file that is synced is not looked at */
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 3);
    while (rig_stat(&rig, "file_bytes") >= rig.data.log_file_bytes) {
        sched_yield();
    }
    names_make(name, NAMES_LOG, rig_stat(&rig, "file"));
    fake_disk_fail(rig.fake, 1 << FAKE_OPEN, 1, EACCES, true);
    do_harm(&rig, REMOVED, name);
    for (uint64_t value = 7; store_fault(rig.store) == 0; value++) {
        (void)rig_set_all(&rig, 'a', value);
    }
    ck_assert_int_ne(rig_close(&rig), 0);
    rig_fini(&rig);
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

/* A pass of several steps whose n-th call of that kind fails. False where there
 * is none. */
static bool
fail_in_pass(enum fake_call call, int err, unsigned n)
{
    struct rig rig;
    int log = catch_log();
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, n);
    rig.data.checkpoint_file_bytes = 0; /* all steps write to one file */
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    (void)rig_set_all(&rig, 'a', 3);
    fake_disk_fail(rig.fake, 1u << call, n, err, false);
    (void)rig_checkpoint(&rig);
    bool any = fake_disk_heal(rig.fake) > 0;
    ck_assert_uint_eq(rig_stat(&rig, "missing_files"), 0);
    fake_disk_fail_name(rig.fake, FAKE_OPEN, EIO, "checkpoint-");
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_uint_eq(count_told(log, "replaced or changed"), 0);
    (void)fake_disk_heal(rig.fake);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_end(&rig);
    close(log);
    return any;
}

/* A file that the server could not write all of is its own as it is then: it is
 * not taken for one that somebody has changed. */
START_TEST(test_own_half_written)
{
    static const struct {
        enum fake_call call;
        int err;
    } faults[] = {{FAKE_WRITE, ENOSPC}, {FAKE_WRITE, EFBIG}, {FAKE_SYNC, EIO},
        {FAKE_SYNC_NAMES, EIO}};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        unsigned n = 1;
        while (fail_in_pass(faults[i].call, faults[i].err, n)) {
            n = sweep_next(n);
        }
    }
}
END_TEST

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
        count_told(log,
            "segments of the data directory were removed or changed: put"),
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

/* Returns when the directory has been looked at since. */
static void
wait_for_look(struct rig *rig)
{
    enum { LISTS = 5 /* the end of a pass may make two */ };
    unsigned lists = fake_disk_count(rig->fake, FAKE_LIST);
    while (fake_disk_count(rig->fake, FAKE_LIST) < lists + LISTS) {
        let_pass(rig);
    }
}

/* Opens a store with one segment, which has been looked at. */
static void
begin_sealed(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_INTERVAL, ID_RANDOM, 2);
    rig->seals = true;
    rig_take_clock(rig);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    wait_for_look(rig);
}

/* Writes so many bytes from byte 0 on to the first segment, whose length that
 * becomes. */
static void
write_segment(struct rig *rig, const uint8_t *bytes, size_t len)
{
    struct disk *disk = rig->data.disk;
    int fd;
    ck_assert_int_eq(
        disk->calls->open(disk, FIRST_SEGMENT, DISK_WRITE, &fd), 0);
    ck_assert_int_eq(disk->calls->truncate(disk, fd, len), 0);
    if (len > 0) {
        ck_assert_int_eq(disk->calls->write(disk, fd, bytes, len, 0), 0);
    }
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    disk->calls->close(disk, fd);
}

static size_t
read_segment(struct rig *rig, uint8_t *bytes, size_t size)
{
    struct disk *disk = rig->data.disk;
    size_t len = 0;
    int fd;
    ck_assert_int_eq(
        disk->calls->open(disk, FIRST_SEGMENT, DISK_READ, &fd), 0);
    ck_assert_int_eq(disk->calls->read(disk, fd, bytes, size, 0, &len), 0);
    ck_assert_uint_lt(len, size);
    disk->calls->close(disk, fd);
    return len;
}

/* A segment is what is in it: times that somebody sets are no loss, nor is a
 * copy in its place. */
START_TEST(test_segment_touched)
{
    static uint8_t bytes[1 << 16];
    for (int i = 0; i < 2; i++) {
        struct rig rig;
        begin_sealed(&rig);
        if (i == 0) {
            size_t len = read_segment(&rig, bytes, sizeof bytes);
            write_segment(&rig, bytes, len);
        } else {
            replace_file(rig.data.disk, FIRST_SEGMENT);
        }
        wait_for_look(&rig);
        ck_assert_uint_eq(rig_stat(&rig, "missing_files"), 0);
        rig_end(&rig);
    }
}
END_TEST

/* One that was cut, changed within its length, or removed is lost, until the
 * bytes are there again, in the same file or another one; not when there are
 * other bytes. */
START_TEST(test_segment_put_back)
{
    static uint8_t bytes[1 << 16], other[1 << 16];
    static const enum harm harms[] = {EMPTIED, WRITTEN, REMOVED};
    for (size_t i = 0; i < COUNT_OF(harms); i++) {
        struct rig rig;
        int fd, log = catch_log();
        begin_sealed(&rig);
        struct disk *disk = rig.data.disk;
        size_t len = read_segment(&rig, bytes, sizeof bytes);
        do_harm(&rig, harms[i], FIRST_SEGMENT);
        wait_for_look(&rig);
        ck_assert_uint_eq(rig_stat(&rig, "missing_files"), 1);
        if (harms[i] == REMOVED) {
            ck_assert_int_eq(
                disk->calls->open(disk, FIRST_SEGMENT, DISK_CREATE, &fd), 0);
            disk->calls->close(disk, fd);
        }
        memcpy(other, bytes, len);
        other[len - 1] ^= 1;
        write_segment(&rig, other, len);
        wait_for_look(&rig);
        ck_assert_uint_eq(count_told(log, "there again"), 0);
        write_segment(&rig, bytes, len);
        wait_for_look(&rig);
        ck_assert_uint_eq(count_told(log, "all segments are there again"), 1);
        ck_assert_uint_eq(rig_stat(&rig, "missing_files"), 1);
        ck_assert_int_eq(disk->calls->sync_names(disk), 0);
        rig_end(&rig);
        close(log);
    }
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
        test_lost_then_checkpoint, test_lost_and_idle, test_log_written_back,
        test_unreadable, test_lost_for_good, test_full_file_lost,
        test_own_half_written, test_segment_lost, test_segment_touched,
        test_segment_put_back, test_no_last_checkpoint};
    return run_tests("durable lost", tests, COUNT_OF(tests));
}
