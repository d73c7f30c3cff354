/* SPDX-License-Identifier: BSD-3-Clause */
/* The archive of log files: copies are whole, or not there; what fails is tried
 * again; files from before the first one go when they have been copied. */
#include "base/disk_whole.h"
#include "durable/archive.h"
#include "lib/fake_disk.h"
#include "wal/frame.h"
#include "wal/names.h"

#include "unit/check_help.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HISTORY UINT64_C(0xfedcba9876543210)
#define LONG_NS UINT64_C(3600000000000)

enum { FIRST = 7, END = 10, LOG_BYTES = 3 << 20, HOLE_AT = 1 << 20 };

struct rig {
    struct fake_disk *data, *aside;
    struct disk *from, *to;
    struct logger logger;
    struct archive archive;
    uint64_t now_ns;
};

/* A log file with something at its beginning and its end. */
static void
make_log(struct disk *disk, uint64_t number)
{
    const struct frame_file head = {.epoch = HISTORY + number,
        .number = number,
        .first_seq = number,
        .bytes = LOG_BYTES,
        .before_end = FRAME_FILE_BYTES};
    uint8_t bytes[FRAME_FILE_BYTES];
    char name[NAMES_BYTES];
    int fd;
    frame_file_put(&head, bytes);
    names_make(name, NAMES_LOG, number);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, bytes, sizeof bytes, 0), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, "end", 3, LOG_BYTES - 3), 0);
    ck_assert_int_eq(disk->calls->sync(disk, fd), 0);
    disk->calls->close(disk, fd);
    ck_assert_int_eq(disk->calls->sync_names(disk), 0);
}

static void
init(struct rig *rig, uint64_t lowest)
{
    *rig = (struct rig){.data = fake_disk_create(1),
        .aside = fake_disk_create(2),
        .logger = {.is_unlimited = true},
        .now_ns = LONG_NS};
    rig->from = fake_disk_as_disk(rig->data);
    rig->to = fake_disk_as_disk(rig->aside);
    for (uint64_t number = lowest; number < END; number++) {
        make_log(rig->from, number);
    }
    archive__begin(&rig->archive, rig->to, rig->from, &rig->logger, FIRST);
}

static void
fini(struct rig *rig)
{
    fake_disk_destroy(&rig->data);
    fake_disk_destroy(&rig->aside);
}

static bool
is_there(struct disk *disk, const char *name)
{
    struct disk_file file;
    return disk->calls->look(disk, name, -1, &file) == 0;
}

/* True where a copy has its name; then it is whole. */
static bool
has_copy(struct rig *rig, uint64_t number)
{
    char name[ARCHIVE_NAME_BYTES], log[NAMES_BYTES];
    uint8_t *copy, *is;
    size_t copy_len, len;
    archive_name(name, number, HISTORY + number);
    if (!is_there(rig->to, name)) {
        return false;
    }
    names_make(log, NAMES_LOG, number);
    ck_assert_int_eq(
        disk_whole_read(rig->to, name, LOG_BYTES, &copy, &copy_len), 0);
    ck_assert_uint_eq(copy_len, LOG_BYTES);
    ck_assert_mem_eq(copy + LOG_BYTES - 3, "end", 3);
    if (is_there(rig->from, log)) {
        ck_assert_int_eq(
            disk_whole_read(rig->from, log, LOG_BYTES, &is, &len), 0);
        ck_assert_uint_eq(len, copy_len);
        ck_assert_mem_eq(is, copy, len);
        free(is);
    }
    free(copy);
    return true;
}

START_TEST(test_names)
{
    char name[ARCHIVE_NAME_BYTES];
    uint64_t number, history;
    archive_name(name, UINT64_C(1) << 62, UINT64_MAX);
    ck_assert(archive_name_parse(name, &number, &history));
    ck_assert_uint_eq(number, UINT64_C(1) << 62);
    ck_assert_uint_eq(history, UINT64_MAX);
    ck_assert_str_eq(name, "log-04611686018427387904-ffffffffffffffff.wal");
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++) {
        char wrong[ARCHIVE_NAME_BYTES];
        memcpy(wrong, name, sizeof wrong);
        wrong[i] = '_';
        ck_assert_msg(
            !archive_name_parse(wrong, &number, &history), "%s", wrong);
        memcpy(wrong, name, sizeof wrong);
        wrong[i] = '\0';
        ck_assert_msg(
            !archive_name_parse(wrong, &number, &history), "%s", wrong);
    }
    memcpy(name + len, ".new", 5);
    ck_assert(!archive_name_parse(name, &number, &history));
}
END_TEST

START_TEST(test_all)
{
    struct rig rig;
    char name[NAMES_BYTES];
    init(&rig, FIRST - 2);
    ck_assert_uint_eq(rig.archive.next, FIRST - 2);
    archive__up_to(&rig.archive, END - 1, rig.now_ns);
    for (uint64_t number = FIRST - 2; number < END; number++) {
        ck_assert_int_eq(has_copy(&rig, number), number < END - 1);
        names_make(name, NAMES_LOG, number);
        ck_assert_int_eq(is_there(rig.from, name), number >= FIRST);
    }
    ck_assert_uint_eq(rig.archive.next, END - 1);
    ck_assert_uint_eq(rig.archive.n_files, END - 1 - (FIRST - 2));

    /* another life finds what is there */
    unsigned n = fake_disk_heal(rig.aside);
    archive__begin(&rig.archive, rig.to, rig.from, &rig.logger, FIRST);
    fake_disk_fail(rig.aside, 1 << FAKE_WRITE, 1, EIO, true);
    archive__up_to(&rig.archive, END - 1, rig.now_ns);
    ck_assert(!rig.archive.is_failing);
    archive__up_to(&rig.archive, END, rig.now_ns);
    ck_assert(rig.archive.is_failing);
    ck_assert_uint_eq(n, 0);
    fini(&rig);
}
END_TEST

/* A gap is passed over: what is gone cannot be copied by waiting. */
START_TEST(test_removed)
{
    struct rig rig;
    char name[NAMES_BYTES];
    init(&rig, FIRST);
    names_make(name, NAMES_LOG, FIRST);
    ck_assert_int_eq(rig.from->calls->unlink(rig.from, name), 0);
    archive__up_to(&rig.archive, END, rig.now_ns);
    ck_assert(!has_copy(&rig, FIRST));
    ck_assert(has_copy(&rig, END - 1));
    ck_assert_uint_eq(rig.archive.next, END);
    fini(&rig);
}
END_TEST

/* Each call of either disk fails once, and the archive's disk loses what was
 * not synced: what counts as copied is there, and the rest comes later. */
START_TEST(test_faults)
{
    const bool is_aside = _i == 1;
    bool has_failed = true;
    for (unsigned n = 1; has_failed; n++) {
        struct rig rig;
        init(&rig, FIRST - 1);
        struct fake_disk *fake = is_aside ? rig.aside : rig.data;
        fake_disk_fail(fake, ~0U, n, ENOSPC, false);
        archive__up_to(&rig.archive, END, rig.now_ns);
        has_failed = fake_disk_heal(fake) > 0;
        ck_assert_int_eq(rig.archive.is_failing, rig.archive.next < END);
        fake_disk_crash(rig.aside);
        fake_disk_revive(rig.aside);
        for (uint64_t number = FIRST - 1; number < END; number++) {
            bool has = has_copy(&rig, number);
            ck_assert(has || number >= rig.archive.next);
        }
        uint64_t next = rig.archive.next;
        archive__up_to(&rig.archive, END, rig.now_ns + 1); /* too early */
        ck_assert_uint_eq(rig.archive.next, next);
        archive__up_to(&rig.archive, END, rig.now_ns + LONG_NS);
        ck_assert_uint_eq(rig.archive.next, END);
        ck_assert(!rig.archive.is_failing);
        ck_assert(has_copy(&rig, END - 1) && has_copy(&rig, FIRST - 1));
        fini(&rig);
        ck_assert_uint_lt(n, 1000);
    }
}
END_TEST

int
main(void)
{
    TCase *tests = tcase_create("archive");
    tcase_add_test(tests, test_names);
    tcase_add_test(tests, test_all);
    tcase_add_test(tests, test_removed);
    tcase_add_loop_test(tests, test_faults, 0, 2);
    return run_case("archive", tests);
}
