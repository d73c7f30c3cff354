/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/segment on a disk that fails, fills up or stops: each call of writing
 * and of reading in turn. What has a segment's name is whole and synced, what
 * was written without an error is there after a crash, an error is said as what
 * it is, and the next try goes well. */
#include "unit/segment_help.h"

#include "lib/fake_disk.h"

#include <errno.h>

struct rig {
    struct records records;
    struct fake_disk *fake;
    struct disk *disk;
    struct segment_write_config write;
    struct segment_config read;
};

static struct rig *rig;

/* A disk whose losses hang on the seed, and a segment of two writes of blocks.
 */
static void
rig_init(uint64_t seed)
{
    rig->fake = fake_disk_create(seed);
    rig->disk = fake_disk_as_disk(rig->fake);
    rig->write = (struct segment_write_config){
        .disk = rig->disk, .codec = BLOCK_PLAIN, .level = BLOCK_LEVEL_DEFAULT};
    rig->read = (struct segment_config){.disk = rig->disk};
}

static void
setup(void)
{
    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    make_records(&rig->records, ID_CLUSTERS, LOOK_WIDE, 2101, COLUMNS_MAX);
}

static void
teardown(void)
{
    free(rig);
}

static int
write_segment(void)
{
    struct segment_head head;

    return write_records(&rig->write, SEGMENT_NUMBER, &rig->records, &head);
}

static bool
is_there(bool is_new)
{
    char name[SEGMENT_NAME_BYTES];
    int fd;

    segment_name(name, SEGMENT_NUMBER, is_new);
    int error = rig->disk->calls->open(rig->disk, name, DISK_READ, &fd);
    ck_assert(error == 0 || error == ENOENT);
    if (error == 0) {
        rig->disk->calls->close(rig->disk, fd);
    }
    return error == 0;
}

static void
check_whole(void)
{
    struct segment *segment;

    ck_assert_int_eq(
        segment_open(&rig->read, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment), 0);
    check_head(segment_head(segment), &rig->records);
    ck_assert_int_eq(scan_records(segment, &rig->records, NULL), 0);
    segment_close(&segment);
}

/* All calls of a writer, removing what it has written apart. */
enum {
    WRITER_CALLS = 1 << FAKE_OPEN | 1 << FAKE_WRITE | 1 << FAKE_SYNC |
        1 << FAKE_RENAME | 1 << FAKE_SYNC_NAMES | 1 << FAKE_UNLINK
};

/* One call fails, or from it on all: false where all went well. */
static bool
pass_with_fault(unsigned n, int error, int want, bool forever)
{
    rig_init(n);
    fake_disk_fail(rig->fake, WRITER_CALLS, n, error, forever);
    int err = write_segment();
    bool failed = fake_disk_heal(rig->fake) > 0;
    ck_assert_int_eq(err, failed ? want : 0);
    if (failed && !forever) {
        /* the disk was well enough to remove it; the name that is there while
         * it is written may be left where that was what failed */
        ck_assert(!is_there(false));
    }
    if (is_there(false)) {
        check_whole();
    }
    fake_disk_crash(rig->fake);
    ck_assert(failed || is_there(false));
    if (is_there(false)) {
        check_whole();
    }
    ck_assert_int_eq(write_segment(), 0);
    ck_assert(!is_there(true));
    fake_disk_crash(rig->fake);
    check_whole();
    fake_disk_destroy(&rig->fake);
    return failed;
}

START_TEST(test_each_call_fails)
{
    static const struct {
        int error, want;
    } kinds[] = {
        {EIO, ERR_DISK}, {ENOSPC, ERR_DISK_FULL}, {EFBIG, ERR_FILE_SIZE}};
    unsigned n = 1;

    while (pass_with_fault(
        n, kinds[_i / 2].error, kinds[_i / 2].want, _i % 2 == 1)) {
        n++;
    }
    /* unlink, open, two writes of blocks, index, head, sync, rename, sync */
    ck_assert_uint_eq(n, 10);
}
END_TEST

START_TEST(test_the_machine_stops)
{
    unsigned died = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (unsigned n = 1;; n++) {
            rig_init(1000 * seed + n);
            fake_disk_die(rig->fake, n);
            int err = write_segment();
            bool is_dead = fake_disk_is_dead(rig->fake);
            ck_assert_int_eq(err, is_dead ? ERR_DISK : 0);
            fake_disk_crash(rig->fake);
            ck_assert(is_dead || is_there(false));
            if (is_there(false)) {
                check_whole();
            }
            ck_assert_int_eq(write_segment(), 0);
            ck_assert(!is_there(true));
            fake_disk_crash(rig->fake);
            check_whole();
            fake_disk_destroy(&rig->fake);
            died += is_dead;
            if (!is_dead) {
                break;
            }
        }
    }
    ck_assert_uint_eq(died, 20 * 8);
}
END_TEST

/* The file is whole and named, and the power goes before that is durable. */
START_TEST(test_what_was_acknowledged_stays)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rig_init(seed);
        ck_assert_int_eq(write_segment(), 0);
        fake_disk_crash(rig->fake);
        check_whole();
        fake_disk_destroy(&rig->fake);
    }
}
END_TEST

START_TEST(test_a_disk_that_is_full)
{
    rig_init(1);
    ck_assert_int_eq(write_segment(), 0);
    struct segment *segment;
    ck_assert_int_eq(
        segment_open(&rig->read, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment), 0);
    uint64_t bytes = segment_file_bytes(segment_head(segment));
    segment_close(&segment);
    fake_disk_destroy(&rig->fake);
    for (uint64_t room = 1; room < bytes; room += bytes / 16) {
        rig_init(room);
        fake_disk_limit(rig->fake, room);
        ck_assert_int_eq(write_segment(), ERR_DISK_FULL);
        ck_assert(!is_there(true) && !is_there(false));
        fake_disk_destroy(&rig->fake);
    }
}
END_TEST

/* Each call of opening, and each read, fails: it is said, nothing is wrong, and
 * the next one goes well. */
START_TEST(test_each_read_fails)
{
    static struct segment_room room;
    uint64_t id = rig->records.id[100];
    uint64_t code[1][COLUMNS_MAX];
    struct segment *segment;
    bool found;
    unsigned n = 1;

    rig_init(1);
    ck_assert_int_eq(write_segment(), 0);
    for (bool failed = true; failed; n++) {
        fake_disk_fail(rig->fake, FAKE_ALL, n, EIO, false);
        int err =
            segment_open(&rig->read, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment);
        failed = fake_disk_heal(rig->fake) > 0;
        ck_assert_int_eq(err, failed ? ERR_DISK : 0);
    }
    ck_assert_uint_eq(n, 1 + 5); /* open, head, size, index */
    for (n = 1; n <= 3; n++) {
        fake_disk_fail(rig->fake, FAKE_ALL, n, EIO, false);
        ck_assert_int_eq(
            scan_records(segment, &rig->records, NULL), n < 3 ? ERR_DISK : 0);
        (void)fake_disk_heal(rig->fake);
    }
    fake_disk_fail(rig->fake, FAKE_ALL, 1, EIO, false);
    ck_assert_int_eq(
        segment_get(segment, &room, &id, 1, code, &found), ERR_DISK);
    ck_assert_int_eq(segment_get(segment, &room, &id, 1, code, &found), 0);
    ck_assert(found && code[0][3] == rig->records.code[100][3]);
    segment_close(&segment);
    block_room_fini(&room.room);
    fake_disk_destroy(&rig->fake);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("segment_faults");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_each_call_fails, 0, 6);
    tcase_add_test(tcase, test_the_machine_stops);
    tcase_add_test(tcase, test_what_was_acknowledged_stays);
    tcase_add_test(tcase, test_a_disk_that_is_full);
    tcase_add_test(tcase, test_each_read_fails);
    return run_case("segment_faults", tcase);
}
