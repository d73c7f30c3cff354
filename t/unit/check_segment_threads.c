/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/segment on a real disk, with threads: an open segment is asked, read in
 * order and checked by several at once, while another one is written. And a
 * block that has come is looked into by several from the beginning, while one
 * of them makes its marks. */
#include "unit/segment_help.h"

#include "base/sanitizer.h"
#include "cold/rice.h"
#include "cold/warm.h"
#include "lib/fake_disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, GETS = 2000, SEGMENTS = 3 };

struct rig {
    struct records records;
    struct segment_write_config write;
    struct segment_config read;
    struct segment *segment;
};

static struct rig *rig;

struct asker {
    pthread_t thread;
    unsigned number;
    bool is_right;
};

/* Looks for ids that are there, and for some beside them. */
static bool
ask(const struct segment *segment, unsigned number)
{
    static const uint64_t step = 7919; /* a prime, so that all come */
    struct records *records = &rig->records;
    struct segment_room *room = calloc(1, sizeof *room);
    bool is_right = room != NULL;

    for (uint64_t i = 0; is_right && i < GETS; i++) {
        uint64_t code[1][COLUMNS_MAX];
        size_t at = (i * step + number) % records->n;
        uint64_t id = records->id[at];
        bool found;

        is_right = segment_get(segment, room, &id, 1, code, &found) == 0 &&
            found &&
            memcmp(code[0], records->code[at],
                records->n_columns * sizeof **code) == 0;
    }
    if (room != NULL) {
        block_room_fini(&room->room);
    }
    free(room);
    return is_right;
}

static void *
run_asker(void *context)
{
    struct asker *asker = context;

    asker->is_right = ask(rig->segment, asker->number) &&
        segment_check(rig->segment, NULL) == 0;
    return NULL;
}

static void
remove_file(uint64_t number)
{
    struct disk *disk = rig->write.disk;
    char name[SEGMENT_NAME_BYTES];

    segment_name(name, number, false);
    ck_assert_int_eq(disk->calls->unlink(disk, name), 0);
}

START_TEST(test_threads_ask_one_segment)
{
    char path[] = "check_segment.XXXXXX";
    struct asker asker[THREADS];
    struct segment_head head;

    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    ck_assert_ptr_nonnull(mkdtemp(path));
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dir_fd, 0);
    ck_assert_int_eq(disk_real_create(dir_fd, &rig->write.disk), 0);
    rig->read.disk = rig->write.disk;
    rig->write.codec = BLOCK_AUTO;
    rig->write.level = BLOCK_LEVEL_DEFAULT;
    make_records(
        &rig->records, ID_SECONDS, LOOK_POSTS, SEGMENT_RECORDS_MAX, 3);
    ck_assert_int_eq(write_records(&rig->write, 1, &rig->records, &head), 0);
    ck_assert_uint_gt(head.n_blocks, 10);
    ck_assert_int_eq(
        segment_open(&rig->read, SEGMENT_EPOCH, 1, &rig->segment), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        asker[i].number = i;
        ck_assert_int_eq(
            pthread_create(&asker[i].thread, NULL, run_asker, &asker[i]), 0);
    }
    for (uint64_t number = 2; number <= SEGMENTS; number++) {
        ck_assert_int_eq(
            write_records(&rig->write, number, &rig->records, &head), 0);
        remove_file(number);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(asker[i].thread, NULL);
        ck_assert(asker[i].is_right);
    }
    /* a name that is gone does not matter to who has the file open */
    remove_file(1);
    ck_assert_int_eq(scan_records(rig->segment, &rig->records, NULL), 0);
    segment_close(&rig->segment);
    disk_real_destroy(&rig->write.disk);
    close(dir_fd);
    ck_assert_int_eq(rmdir(path), 0);
    free(rig);
}
END_TEST

enum { BLOCKS = SANITIZER_THREAD ? 20 : 60, LOOKS = 60 };

/* One thread's looks into blocks, each of which all of them begin at once. */
struct looker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    struct warm **warm; /* BLOCKS */
    size_t *first;      /* record of each; BLOCKS and one */
    unsigned number;
    bool is_right;
};

static void *
run_looker(void *context)
{
    static const size_t step = 7919;
    struct looker *looker = context;
    const struct records *records = &rig->records;

    looker->is_right = true;
    for (size_t b = 0; b < BLOCKS; b++) {
        size_t n = looker->first[b + 1] - looker->first[b];

        pthread_barrier_wait(looker->barrier);
        for (size_t i = 0; i < LOOKS; i++) {
            size_t at =
                looker->first[b] + (i * step + looker->number * 31) % n;
            uint64_t code[COLUMNS_MAX];
            bool found;

            looker->is_right = looker->is_right &&
                warm_find(looker->warm[b], records->id[at], BLOCK_COLUMNS_ALL,
                    code, &found) == 0 &&
                found &&
                memcmp(code, records->code[at],
                    records->n_columns * sizeof *code) == 0;
        }
    }
    return NULL;
}

static void *
take_memory(void *context, size_t bytes)
{
    (void)context;
    return malloc(bytes);
}

/* Makes the first blocks of the segment warm. */
static void
warm_up(struct warm **warm, size_t *first)
{
    struct block_room room = {0};
    uint8_t bytes[BLOCK_BYTES_MAX];
    struct block block;

    for (uint32_t b = 0; b < BLOCKS; b++) {
        ck_assert_int_eq(
            segment_read_block(rig->segment, b, bytes, &block), 0);
        ck_assert_int_eq(
            warm_make(&block, &room, take_memory, NULL, &warm[b]), 0);
        first[b + 1] = first[b] + block.n;
    }
    block_room_fini(&room);
}

START_TEST(test_threads_look_into_one_block)
{
    struct fake_disk *fake = fake_disk_create(1);
    struct looker looker[THREADS];
    struct warm *warm[BLOCKS];
    size_t first[BLOCKS + 1] = {0};
    pthread_barrier_t barrier;
    struct segment_head head;

    rig = calloc(1, sizeof *rig);
    ck_assert_ptr_nonnull(rig);
    rig->read.disk = rig->write.disk = fake_disk_as_disk(fake);
    rig->write.codec = BLOCK_PACKED;
    make_records(&rig->records, ID_RANDOM, LOOK_WIDE, SEGMENT_RECORDS_MAX, 2);
    ck_assert_int_eq(write_records(&rig->write, 1, &rig->records, &head), 0);
    ck_assert_uint_gt(head.n_blocks, BLOCKS);
    ck_assert_int_eq(
        segment_open(&rig->read, SEGMENT_EPOCH, 1, &rig->segment), 0);
    warm_up(warm, first);
    ck_assert_uint_ge(first[1], 2 * RICE_MARK); /* there are marks */
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        looker[i] = (struct looker){
            .barrier = &barrier, .warm = warm, .first = first, .number = i};
        ck_assert_int_eq(
            pthread_create(&looker[i].thread, NULL, run_looker, &looker[i]),
            0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(looker[i].thread, NULL);
        ck_assert(looker[i].is_right);
    }
    pthread_barrier_destroy(&barrier);
    for (size_t b = 0; b < BLOCKS; b++) {
        free(warm[b]);
    }
    segment_close(&rig->segment);
    fake_disk_destroy(&fake);
    free(rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_threads_ask_one_segment, test_threads_look_into_one_block};

    return run_tests("segment_threads", tests, COUNT_OF(tests));
}
