/* SPDX-License-Identifier: BSD-3-Clause */
/* durable/recover: what is said of a block of a checkpoint file that is not as
 * the manifest has it. A file may have blocks of several histories. */
#include "durable/recover.h"

#include "base/err.h"
#include "lib/fake_disk.h"
#include "unit/check_help.h"

#include <sys/mman.h>
#include <unistd.h>

enum { FILE_NUMBER = 3, BLOCKS = 3, RECORDS = 5, TEXT_BYTES = 4096 };

#define DAMAGED "is damaged; restore the data directory from a backup"
#define FOREIGN "is of another history"

/* A file of some blocks, and what a manifest says of them. */
struct bench {
    struct fake_disk *fake;
    struct disk *disk;
    struct logger logger; /* writes to a file in memory */
    struct images images;
    struct images_entry entry[BLOCKS];
    struct recover_reader reader;
};

static void
add_block(struct bench *bench, int fd, unsigned i, uint64_t history)
{
    uint64_t numbers[RECORDS] = {1, 2, 3, 4, 5};
    struct image image = {.counter_serial = 1,
        .shard = (uint16_t)i,
        .history = history,
        .seq = 7,
        .last_row = RECORDS,
        .n_columns = 1,
        .serial = {2},
        .n = RECORDS,
        .row = numbers,
        .code = {numbers}};
    struct buf block = {0};
    struct images_entry *entry = &bench->entry[i];
    ck_assert_int_eq(image_encode(&image, &block), 0);
    *entry = (struct images_entry){.last_row = RECORDS,
        .history = history,
        .seq = image.seq,
        .file = FILE_NUMBER,
        .offset = i == 0 ? 0 : entry[-1].offset + entry[-1].len,
        .len = (uint32_t)block.len,
        .n = RECORDS,
        .shard = image.shard};
    ck_assert_int_eq(bench->disk->calls->write(bench->disk, fd, block.data,
                         block.len, entry->offset),
        0);
    buf_fini(&block);
}

/* Block i is of history[i]; those of which bit i of live is set are named. */
static void
bench_init(struct bench *bench, const uint64_t *history, unsigned live)
{
    char name[NAMES_BYTES];
    int fd;
    *bench = (struct bench){.fake = fake_disk_create(1)};
    bench->disk = fake_disk_as_disk(bench->fake);
    bench->logger.is_unlimited = true;
    atomic_init(&bench->logger.fd, memfd_create("log", MFD_CLOEXEC));
    names_make(name, NAMES_CHECKPOINT, FILE_NUMBER);
    ck_assert_int_eq(
        bench->disk->calls->open(bench->disk, name, DISK_CREATE, &fd), 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        add_block(bench, fd, i, history[i]);
        if ((live >> i & 1) != 0) {
            ck_assert_int_eq(images_add(&bench->images, &bench->entry[i]), 0);
        }
    }
    bench->disk->calls->close(bench->disk, fd);
    bench->reader = (struct recover_reader){.disk = bench->disk,
        .logger = &bench->logger,
        .images = &bench->images};
}

static void
bench_fini(struct bench *bench)
{
    recover_reader_fini(&bench->reader);
    images_fini(&bench->images);
    close(atomic_load(&bench->logger.fd));
    fake_disk_destroy(&bench->fake);
}

/* Reads a block that is not what the entry says; that is said so. */
static void
expect_said(struct bench *bench, const struct images_entry *entry,
    const char *text, const char *not_text)
{
    int fd = atomic_load(&bench->logger.fd);
    char said[TEXT_BYTES];
    struct image image;
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq((int)lseek(fd, 0, SEEK_SET), 0);
    ck_assert_int_eq(recover_read(&bench->reader, entry, &image), ERR_CORRUPT);
    ssize_t n = pread(fd, said, sizeof said - 1, 0);
    said[n < 0 ? 0 : n] = '\0';
    ck_assert_msg(strstr(said, text) != NULL, "no '%s' in: %s", text, said);
    ck_assert_msg(
        strstr(said, not_text) == NULL, "'%s' in: %s", not_text, said);
}

static void
turn(struct bench *bench, uint64_t at, uint8_t bits)
{
    char name[NAMES_BYTES];
    uint8_t byte;
    size_t n;
    int fd;
    struct disk *disk = bench->disk;
    names_make(name, NAMES_CHECKPOINT, FILE_NUMBER);
    ck_assert_int_eq(disk->calls->open(disk, name, DISK_WRITE, &fd), 0);
    ck_assert_int_eq(disk->calls->read(disk, fd, &byte, 1, at, &n), 0);
    byte ^= bits;
    ck_assert_int_eq(disk->calls->write(disk, fd, &byte, 1, at), 0);
    disk->calls->close(disk, fd);
}

/* Each byte of each block, whatever histories the others are of. */
START_TEST(test_damaged)
{
    static const uint64_t history[][BLOCKS] = {{8, 8, 8}, {8, 9, 10}};
    struct bench bench;
    bench_init(&bench, history[_i], (1 << BLOCKS) - 1);
    for (unsigned i = 0; i < BLOCKS; i++) {
        const struct images_entry *entry = &bench.entry[i];
        for (uint32_t at = 0; at < entry->len; at++) {
            turn(&bench, entry->offset + at, 4);
            expect_said(&bench, entry, DAMAGED, FOREIGN);
            turn(&bench, entry->offset + at, 4);
        }
    }
    bench_fini(&bench);
}
END_TEST

/* Nothing else of the file counts any more: what its own head says is left. */
START_TEST(test_alone)
{
    static const uint64_t history[BLOCKS] = {8, 9, 10};
    struct bench bench;
    bench_init(&bench, history, 1 << (BLOCKS - 1));
    const struct images_entry *entry = &bench.entry[BLOCKS - 1];
    for (uint32_t at = IMAGE_HEAD_BYTES; at < entry->len; at++) {
        turn(&bench, entry->offset + at, 4);
        expect_said(&bench, entry, DAMAGED, FOREIGN);
        turn(&bench, entry->offset + at, 4);
    }
    bench_fini(&bench);
}
END_TEST

/* The manifest has another history for all that is in the file: blocks of the
 * same places, or of others (_i is 1). */
START_TEST(test_foreign)
{
    static const uint64_t history[BLOCKS] = {8, 8, 8};
    struct bench bench;
    bench_init(&bench, history, 0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        bench.entry[i].history = 11;
        bench.entry[i].offset += (uint64_t)_i;
        ck_assert_int_eq(images_add(&bench.images, &bench.entry[i]), 0);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        expect_said(&bench, &bench.entry[i], FOREIGN, DAMAGED);
    }
    bench_fini(&bench);
}
END_TEST

/* One block is sound and of another history, the others are as they should
 * be. */
START_TEST(test_strange_block)
{
    static const uint64_t history[BLOCKS] = {8, 8, 9};
    struct bench bench;
    bench_init(&bench, history, (1 << BLOCKS) - 1);
    for (unsigned i = 0; i < BLOCKS; i++) {
        struct images_entry entry = bench.entry[i];
        entry.history = 11;
        expect_said(&bench, &entry, FOREIGN, DAMAGED);
    }
    bench_fini(&bench);
}
END_TEST

/* A manifest with something newer than the log goes on with is refused. */
START_TEST(test_above_the_log)
{
    uint64_t of_shard[1] = {30};
    struct logger logger = {0};
    struct manifest manifest = {.shards = 1, .segments.shards = 1};
    struct images_entry image = {.last_row = 9, .seq = 20, .len = 1};
    struct manifest_segment segment = {.number = 1,
        .counter_serial = 1,
        .last_id = UINT64_MAX,
        .records = 1,
        .seq = of_shard};
    ck_assert_int_eq(recover__check_seq(&manifest, 1, &logger), 0);
    manifest.schema_seq = 10;
    ck_assert_int_eq(recover__check_seq(&manifest, 11, &logger), 0);
    ck_assert_int_eq(recover__check_seq(&manifest, 10, &logger), ERR_CORRUPT);
    ck_assert_int_eq(images_add(&manifest.images, &image), 0);
    ck_assert_int_eq(recover__check_seq(&manifest, 21, &logger), 0);
    ck_assert_int_eq(recover__check_seq(&manifest, 20, &logger), ERR_CORRUPT);
    ck_assert_int_eq(segments_add(&manifest.segments, &segment), 0);
    ck_assert_int_eq(recover__check_seq(&manifest, 31, &logger), 0);
    ck_assert_int_eq(recover__check_seq(&manifest, 30, &logger), ERR_CORRUPT);
    manifest.checkpoint_seq = 40;
    ck_assert_int_eq(recover__check_seq(&manifest, 41, &logger), 0);
    ck_assert_int_eq(recover__check_seq(&manifest, 40, &logger), ERR_CORRUPT);
    manifest_fini(&manifest);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("recover_read");
    tcase_add_test(tcase, test_above_the_log);
    tcase_add_loop_test(tcase, test_damaged, 0, 2);
    tcase_add_test(tcase, test_alone);
    tcase_add_loop_test(tcase, test_foreign, 0, 2);
    tcase_add_test(tcase, test_strange_block);
    return run_case("recover_read", tcase);
}
