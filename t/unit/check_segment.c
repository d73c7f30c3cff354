/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/segment and its neighbours: what is written comes back, by lookup and in
 * order, whatever the records and the codec; what is not there is not found; a
 * file of version 1 can be read for good; memory that runs out is said. */
#include "unit/segment_help.h"

#include "base/checksum.h"
#include "lib/fake_disk.h"
#include "lib/fault_alloc.h"
#include "lib/still_disk.h"

#include <errno.h>
#include <stdio.h>

enum { GOLDEN_BYTES_MAX = 1 << 20 };

struct rig {
    struct records records;
    struct segment_room room;
    struct fake_disk *fake;
    struct segment_write_config write;
    struct segment_config read;
};

static struct rig *rig;

static void
setup(void)
{
    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    rig->fake = fake_disk_create(1);
    rig->write =
        (struct segment_write_config){.disk = fake_disk_as_disk(rig->fake),
            .codec = BLOCK_AUTO,
            .level = BLOCK_LEVEL_DEFAULT};
    rig->read = (struct segment_config){.disk = rig->write.disk};
}

static void
teardown(void)
{
    block_room_fini(&rig->room.room);
    fake_disk_destroy(&rig->fake);
    free(rig);
}

static struct segment *
open_segment(uint64_t number)
{
    struct segment *segment;

    ck_assert_int_eq(
        segment_open(&rig->read, SEGMENT_EPOCH, number, &segment), 0);
    return segment;
}

static struct segment *
write_and_open(void)
{
    struct segment_head head;

    ck_assert_int_eq(
        write_records(&rig->write, SEGMENT_NUMBER, &rig->records, &head), 0);
    check_head(&head, &rig->records);
    struct segment *segment = open_segment(SEGMENT_NUMBER);
    check_head(segment_head(segment), &rig->records);
    ck_assert_uint_eq(segment_head(segment)->n_blocks, head.n_blocks);
    ck_assert_uint_eq(segment_head(segment)->index_bytes, head.index_bytes);
    return segment;
}

/* Looks for one id; it must be there with these numbers, or not be there. */
static void
check_get(const struct segment *segment, uint64_t id, const uint64_t *code)
{
    uint64_t got[1][COLUMNS_MAX];
    bool found;

    ck_assert_int_eq(segment_get(segment, &rig->room, &id, 1, got, &found), 0);
    ck_assert(found == (code != NULL));
    for (unsigned c = 0; found && c < rig->records.n_columns; c++) {
        ck_assert_uint_eq(got[0][c], code[c]);
    }
}

/* Some of the ids, and those beside them that are not there. */
static void
check_gets(const struct segment *segment)
{
    const struct records *records = &rig->records;

    for (size_t i = 0; i < records->n; i += i < 5 ? 1 : 61) {
        uint64_t id = records->id[i];

        check_get(segment, id, records->code[i]);
        if (id > 0 && (i == 0 || records->id[i - 1] < id - 1)) {
            check_get(segment, id - 1, NULL);
        }
        if (id < UINT64_MAX &&
            (i + 1 == records->n || records->id[i + 1] > id + 1)) {
            check_get(segment, id + 1, NULL);
        }
    }
    check_get(
        segment, records->id[records->n - 1], records->code[records->n - 1]);
}

/* All blocks begin where the index says, and no id is looked for in another
 * block than its own. */
static void
check_find(const struct segment *segment)
{
    const struct records *records = &rig->records;
    const struct segment_head *head = segment_head(segment);
    uint32_t block = 0, got;

    for (size_t i = 0; i < records->n; i++) {
        uint64_t id = records->id[i];

        if (block + 1 < head->n_blocks &&
            id >= segment_first_id(segment, block + 1)) {
            block++;
            ck_assert_uint_eq(id, segment_first_id(segment, block));
        }
        ck_assert(segment_find(segment, id, &got));
        ck_assert_uint_eq(got, block);
    }
    ck_assert_uint_eq(block + 1, head->n_blocks);
    ck_assert(head->first_id == 0 ||
        !segment_find(segment, head->first_id - 1, &got));
    ck_assert(head->last_id == UINT64_MAX ||
        !segment_find(segment, head->last_id + 1, &got));
}

static void
check_all(void)
{
    struct segment *segment = write_and_open();

    ck_assert_int_eq(scan_records(segment, &rig->records, NULL), 0);
    ck_assert_int_eq(segment_check(segment, NULL), 0);
    check_find(segment);
    check_gets(segment);
    segment_close(&segment);
    ck_assert_ptr_null(segment);
}

START_TEST(test_records_come_back)
{
    rig->write.codec = (enum block_codec)_i;
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        for (unsigned look = 0; look < LOOK_COUNT; look++) {
            unsigned n_columns =
                1 + (ID_FAMILY_COUNT * look + family) % COLUMNS_MAX;

            make_records(&rig->records, (enum id_family)family,
                (enum look)look, 400 + 4000 / n_columns, n_columns);
            check_all();
        }
    }
}
END_TEST

START_TEST(test_few_records)
{
    struct records *records = &rig->records;

    for (int codec = 0; codec <= BLOCK_AUTO; codec++) {
        rig->write.codec = (enum block_codec)codec;
        make_records(records, ID_RANDOM, LOOK_EXTREME, 3, 2);
        records->id[0] = 0;
        records->id[2] = UINT64_MAX;
        check_all();
        records->n = 1;
        check_all();
        records->id[0] = UINT64_MAX;
        check_all();
    }
}
END_TEST

/* More blocks than are written or read at once. */
static void
make_many_blocks(void)
{
    make_records(&rig->records, ID_RANDOM, LOOK_WIDE, 6000, COLUMNS_MAX);
    rig->write.codec = BLOCK_PACKED;
}

START_TEST(test_many_blocks)
{
    make_many_blocks();
    check_all();
    struct segment *segment = open_segment(SEGMENT_NUMBER);
    const struct segment_head *head = segment_head(segment);
    ck_assert_uint_gt(head->n_blocks, 150);
    /* 8 bytes a block, and what one segment takes */
    ck_assert_uint_le(segment_memory(segment), 8 * head->n_blocks + 1024);
    for (uint32_t block = 0; block <= head->n_blocks; block += 50) {
        struct segment_scan *scan;
        struct segment_records batch;
        size_t at = 0;

        ck_assert_int_eq(segment_scan_create(segment, block, NULL, &scan), 0);
        while (block < head->n_blocks &&
            rig->records.id[at] < segment_first_id(segment, block)) {
            at++;
        }
        for (uint32_t i = block; i < head->n_blocks; i++) {
            ck_assert_int_eq(segment_scan_next(scan, &batch), 0);
            ck_assert_uint_gt(batch.n, 0);
            check_batch(&batch, &rig->records, at);
            at += batch.n;
        }
        ck_assert_uint_eq(at, block < head->n_blocks ? rig->records.n : 0);
        ck_assert_int_eq(segment_scan_next(scan, &batch), 0);
        ck_assert_uint_eq(batch.n, 0);
        segment_scan_destroy(&scan);
    }
    segment_close(&segment);
}
END_TEST

static size_t
count_reads(void)
{
    return fake_disk_count(rig->fake, FAKE_READ);
}

/* A lookup is one read, those of neighbours are one together, and a miss
 * outside of the segment's ids none. */
START_TEST(test_reads_are_few)
{
    enum { N = 5 };
    struct records *records = &rig->records;
    uint64_t code[N][COLUMNS_MAX];
    uint64_t outside[2];
    bool found[N];

    make_records(records, ID_SECONDS, LOOK_POSTS, 3000, 3);
    struct segment *segment = write_and_open();
    size_t before = count_reads();
    ck_assert_int_eq(
        segment_get(segment, &rig->room, records->id + 7, N, code, found), 0);
    ck_assert_uint_eq(count_reads(), before + 1);
    for (size_t i = 0; i < N; i++) {
        ck_assert(found[i]);
        ck_assert_uint_eq(code[i][2], records->code[7 + i][2]);
    }
    outside[0] = records->id[0] - 1;
    outside[1] = records->id[records->n - 1] + 1;
    ck_assert_int_eq(
        segment_get(segment, &rig->room, outside, 2, code, found), 0);
    ck_assert(!found[0] && !found[1]);
    ck_assert_uint_eq(count_reads(), before + 1);
    segment_close(&segment);
}
END_TEST

static bool
is_there(uint64_t number, bool is_new)
{
    struct disk *disk = rig->write.disk;
    char name[SEGMENT_NAME_BYTES];
    int fd;

    segment_name(name, number, is_new);
    if (disk->calls->open(disk, name, DISK_READ, &fd) != 0) {
        return false;
    }
    disk->calls->close(disk, fd);
    return true;
}

/* What a try left that did not end, goes; one that is given up leaves nothing.
 */
START_TEST(test_what_is_left_over_goes)
{
    struct records *records = &rig->records;
    struct segment_head head = make_head(SEGMENT_NUMBER, 1);
    struct segment_writer *writer = NULL;
    struct disk *disk = rig->write.disk;
    char name[SEGMENT_NAME_BYTES];
    int fd;

    segment_write_abort(&writer);
    make_records(records, ID_RANDOM, LOOK_WIDE, 2000, 1);
    segment_name(name, SEGMENT_NUMBER, true);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_CREATE, &fd), 0);
    ck_assert_int_eq(disk->calls->write(disk, fd, "left over", 9, 100000), 0);
    disk->calls->close(disk, fd);
    check_all();
    ck_assert(!is_there(SEGMENT_NUMBER, true));

    head.number++;
    ck_assert_int_eq(segment_write_begin(&rig->write, &head, &writer), 0);
    for (size_t i = 0; i < records->n; i++) {
        ck_assert_int_eq(
            segment_write_add(writer, records->id[i], records->code[i]), 0);
    }
    ck_assert(is_there(head.number, true) && !is_there(head.number, false));
    segment_write_abort(&writer);
    ck_assert_ptr_null(writer);
    ck_assert(!is_there(head.number, true) && !is_there(head.number, false));
}
END_TEST

START_TEST(test_names)
{
    static const char *const wrong[] = {"", "segment-",
        "segment-00000000000000000001", "segment-00000000000000000001.new",
        "segment-0000000000000000001.seg", "segment-99999999999999999999.seg",
        "segment-00000000000000000001.seg.new2",
        "checkpoint-00000000000000000001.ckpt",
        "segment-0000000000000000000a.seg"};
    static const uint64_t numbers[] = {0, 1, 12345, UINT64_MAX};
    char name[SEGMENT_NAME_BYTES];
    uint64_t number;
    bool is_new;

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        for (int flag = 0; flag < 2; flag++) {
            segment_name(name, numbers[i], flag != 0);
            ck_assert(segment_name_parse(name, &number, &is_new));
            ck_assert(number == numbers[i] && is_new == (flag != 0));
        }
    }
    segment_name(name, 7, false);
    ck_assert_str_eq(name, "segment-00000000000000000007.seg");
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        ck_assert(!segment_name_parse(wrong[i], &number, &is_new));
    }
}
END_TEST

/* One pass with the n-th allocation failing; false where none did. */
static bool
pass_with_fault(size_t fail)
{
    struct fault_alloc fault;
    struct segment_head head;
    struct segment *segment;

    fault_alloc_init(&fault);
    fault.fail_from = fault.fail_to = fail;
    rig->write.alloc = rig->read.alloc = &fault.alloc;
    int err = write_records(&rig->write, SEGMENT_NUMBER, &rig->records, &head);
    ck_assert_int_eq(err, fault.failures > 0 ? ERR_NO_MEMORY : 0);
    ck_assert_uint_eq(fault.live_bytes, 0);
    if (err != 0) {
        ck_assert(!is_there(SEGMENT_NUMBER, true));
        ck_assert(!is_there(SEGMENT_NUMBER, false));
        return true;
    }
    err = segment_open(&rig->read, SEGMENT_EPOCH, SEGMENT_NUMBER, &segment);
    ck_assert_int_eq(err, fault.failures > 0 ? ERR_NO_MEMORY : 0);
    if (err == 0) {
        ck_assert_uint_eq(fault.live_bytes, segment_memory(segment));
        err = scan_records(segment, &rig->records, &fault.alloc);
        ck_assert_int_eq(err, fault.failures > 0 ? ERR_NO_MEMORY : 0);
    }
    segment_close(&segment);
    ck_assert_uint_eq(fault.live_bytes, 0);
    return fault.failures > 0;
}

START_TEST(test_memory_that_runs_out)
{
    size_t fail = 1;

    make_records(&rig->records, ID_MILLIS, LOOK_WIDE, 5000, 5);
    rig->write.codec = BLOCK_ZSTD;
    while (pass_with_fault(fail)) {
        struct disk *disk = rig->write.disk;
        char name[SEGMENT_NAME_BYTES];

        segment_name(name, SEGMENT_NUMBER, false);
        (void)disk->calls->unlink(disk, name);
        fail++;
    }
    /* writer, its buffers and its index; segment; scan; and what blocks need */
    ck_assert_uint_gt(fail, 20);
}
END_TEST

/* t/data has a file of each codec, written by: check_segment --make DIRECTORY
 */
static void
make_golden(struct records *records)
{
    records->n = 1500;
    records->n_columns = 3;
    for (size_t i = 0; i < records->n; i++) {
        records->id[i] = (1000 + 3 * i) << 22 | (i * 5 % 8) << 12 | i % 2;
        records->code[i][0] = i % 7;
        records->code[i][1] = i % 50 == 3 ? 70000 * i : i % 2;
        records->code[i][2] = i == 1499 ? UINT64_MAX : 0;
    }
    records->id[0] = 0;
    records->id[1499] = UINT64_MAX;
}

static uint8_t *
read_file(const char *path, size_t *len)
{
    uint8_t *bytes = malloc(GOLDEN_BYTES_MAX);
    FILE *file = fopen(path, "rb");

    ck_assert(bytes != NULL && file != NULL);
    *len = fread(bytes, 1, GOLDEN_BYTES_MAX, file);
    fclose(file);
    return bytes;
}

START_TEST(test_version_1_can_be_read_for_good)
{
    struct still_disk still;
    char name[SEGMENT_NAME_BYTES], path[512];
    size_t len;

    (void)snprintf(path, sizeof path, "%s/segment-v1-%s", DATA_DIR,
        block_codec_name((enum block_codec)_i));
    uint8_t *bytes = read_file(path, &len);
    make_golden(&rig->records);
    segment_name(name, SEGMENT_NUMBER, false);
    still_disk_init(&still);
    still_disk_add(&still, name, bytes, len);
    rig->read.disk = &still.disk;
    struct segment *segment = open_segment(SEGMENT_NUMBER);
    check_head(segment_head(segment), &rig->records);
    ck_assert_uint_gt(segment_head(segment)->n_blocks, 0);
    ck_assert_int_eq(scan_records(segment, &rig->records, NULL), 0);
    ck_assert_int_eq(segment_check(segment, NULL), 0);
    check_gets(segment);
    segment_close(&segment);
    ck_assert_uint_eq(still.n_open, 0);
    free(bytes);
}
END_TEST

/* What is written today is what was written then; of zstd's frames every
 * version of the library has its own. */
START_TEST(test_version_1_is_what_is_written)
{
    struct disk *disk = rig->write.disk;
    struct segment_head head;
    char name[SEGMENT_NAME_BYTES], path[512];
    size_t len, n;
    int fd;

    (void)snprintf(path, sizeof path, "%s/segment-v1-packed", DATA_DIR);
    uint8_t *bytes = read_file(path, &len);
    uint8_t *made = malloc(len + 1);
    make_golden(&rig->records);
    rig->write.codec = BLOCK_PACKED;
    ck_assert_int_eq(
        write_records(&rig->write, SEGMENT_NUMBER, &rig->records, &head), 0);
    segment_name(name, SEGMENT_NUMBER, false);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(disk->calls->read(disk, fd, made, len + 1, 0, &n), 0);
    disk->calls->close(disk, fd);
    ck_assert_uint_eq(n, len);
    ck_assert_mem_eq(made, bytes, len);
    free(made);
    free(bytes);
}
END_TEST

/* For --make. */
static const char *make_directory;

START_TEST(make_version_1)
{
    struct disk *disk = rig->write.disk;
    struct segment_head head;
    char name[SEGMENT_NAME_BYTES], path[512];
    uint8_t *bytes = malloc(GOLDEN_BYTES_MAX);
    size_t n;
    int fd;

    rig->write.codec = (enum block_codec)_i;
    (void)snprintf(path, sizeof path, "%s/segment-v1-%s", make_directory,
        block_codec_name(rig->write.codec));
    make_golden(&rig->records);
    ck_assert_int_eq(
        write_records(&rig->write, SEGMENT_NUMBER, &rig->records, &head), 0);
    segment_name(name, SEGMENT_NUMBER, false);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_READ, &fd), 0);
    ck_assert_int_eq(
        disk->calls->read(disk, fd, bytes, GOLDEN_BYTES_MAX, 0, &n), 0);
    disk->calls->close(disk, fd);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    ck_assert_int_eq(fclose(file), 0);
    free(bytes);
}
END_TEST

static void
add_tests(TCase *tcase)
{
    tcase_add_loop_test(tcase, test_records_come_back, 0, BLOCK_AUTO + 1);
    tcase_add_test(tcase, test_few_records);
    tcase_add_test(tcase, test_many_blocks);
    tcase_add_test(tcase, test_reads_are_few);
    tcase_add_test(tcase, test_what_is_left_over_goes);
    tcase_add_test(tcase, test_names);
    tcase_add_test(tcase, test_memory_that_runs_out);
    tcase_add_loop_test(
        tcase, test_version_1_can_be_read_for_good, 0, BLOCK_CODEC_COUNT);
    tcase_add_test(tcase, test_version_1_is_what_is_written);
}

int
main(int argc, char **argv)
{
    TCase *tcase = tcase_create("segment");

    tcase_add_checked_fixture(tcase, setup, teardown);
    if (argc == 3 && strcmp(argv[1], "--make") == 0) {
        make_directory = argv[2];
        tcase_add_loop_test(tcase, make_version_1, 0, BLOCK_CODEC_COUNT);
    } else {
        add_tests(tcase);
    }
    return run_case("segment", tcase);
}
