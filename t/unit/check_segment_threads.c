/* SPDX-License-Identifier: BSD-3-Clause */
/* cold/segment on a real disk, with threads: an open segment is asked, read in
 * order and checked by several at once, while another one is written. */
#include "unit/segment_help.h"

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

int
main(void)
{
    const TTest *const tests[] = {test_threads_ask_one_segment};

    return run_tests("segment_threads", tests, COUNT_OF(tests));
}
