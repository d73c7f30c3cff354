/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of a store that goes on: the copy is what it was. */
#include "unit/snapshot_help.h"

#include <errno.h>

enum { STEPS = 400, PIECE = 1 << 16 };

static void
begin(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, seed);
    rig->seals = true;
    rig->data.tidy = &at_once;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
}

/* Copies what was captured to a new directory, and looks at it there. */
static void
judge(struct rig *from, const struct captured *captured)
{
    struct rig to;
    rig_init(&to, WAL_SYNC_ALWAYS, ID_RANDOM, 77);
    to.seals = true; /* what it reads may be cold */
    ck_assert_int_eq(copy_all(&to, captured, PIECE), 0);
    ck_assert_int_eq(rig_open(&to), 0);
    expect_copy(&to, from, captured);
    ck_assert_uint_eq(folder_files(&to), 0);
    ck_assert_int_eq(rig_close(&to), 0);
    /* and goes on as any other */
    ck_assert_int_eq(rig_open(&to), 0);
    (void)rig_set_all(&to, 'a', 9);
    ck_assert_int_eq(rig_checkpoint(&to), 0);
    ck_assert_int_eq(rig_close(&to), 0);
    rig_fini(&to);
}

struct copier {
    struct rig *rig;
    struct captured captured;
};

static void *
capture_beside(void *context)
{
    struct copier *copier = context;
    capture(copier->rig, &copier->captured);
    return NULL;
}

/* Changes, edits, seals and checkpoints run beside the copying. */
START_TEST(test_copy_under_load)
{
    struct rig rig;
    begin(&rig, (uint64_t)_i + 1);
    for (int round = 0; round < 3; round++) {
        struct copier copier = {.rig = &rig};
        pthread_t thread;
        (void)rig_work(&rig, STEPS / 2);
        ck_assert_int_eq(
            pthread_create(&thread, NULL, capture_beside, &copier), 0);
        (void)rig_work(&rig, STEPS);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        judge(&rig, &copier.captured);
        captured_fini(&copier.captured);
    }
    ck_assert_int_eq(rig_seal_wait(&rig), 0);
    rig_end(&rig);
}
END_TEST

static void
remove_file(void *context, const char *name)
{
    struct disk *disk = context;
    ck_assert_int_eq(disk->calls->unlink(disk, name), 0);
}

/* The same to a real directory. */
START_TEST(test_copy_to_real_disk)
{
    char path[] = "check_snapshot.XXXXXX";
    struct rig rig, to;
    struct captured captured;
    struct disk *disk;
    begin(&rig, 5);
    (void)rig_work(&rig, STEPS);
    capture(&rig, &captured);
    ck_assert_ptr_nonnull(mkdtemp(path));
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(dir_fd, 0);
    ck_assert_int_eq(disk_real_create(dir_fd, &disk), 0);
    rig_init(&to, WAL_SYNC_ALWAYS, ID_RANDOM, 77);
    to.seals = true;
    to.data.disk = disk;
    for (int round = 0; round < 2; round++) { /* new, then old */
        ck_assert_int_eq(copy_all(&to, &captured, PIECE), 0);
        ck_assert_int_eq(rig_open(&to), 0);
        expect_copy(&to, &rig, &captured);
        ck_assert_uint_eq(folder_files(&to), 0);
        (void)rig_set_all(&to, 'a', 9);
        ck_assert_int_eq(rig_checkpoint(&to), 0);
        ck_assert_int_eq(rig_close(&to), 0);
    }
    ck_assert_int_eq(disk->calls->list(disk, remove_file, disk), 0);
    disk_real_destroy(&disk);
    ck_assert_int_eq(close(dir_fd), 0);
    ck_assert_int_eq(rmdir(path), 0);
    rig_fini(&to);
    captured_fini(&captured);
    ck_assert_int_eq(rig_seal_wait(&rig), 0);
    rig_end(&rig);
}
END_TEST

/* Files that the server removes meanwhile stay open and are as they were. */
START_TEST(test_files_go_meanwhile)
{
    struct rig rig;
    struct snapshot snapshot;
    unsigned n_gone = 0;
    uint64_t xxh3[64];
    begin(&rig, 1);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    (void)rig_set_all(&rig, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(&rig), 0); /* what goes soon */
    ck_assert_int_eq(snapshot_take(&rig, &snapshot), 0);
    ck_assert_uint_le(snapshot.files.n, 64);
    for (size_t i = 0; i < snapshot.files.n; i++) {
        ck_assert_int_eq(snapshot_hash(&snapshot, i, &xxh3[i]), 0);
    }
    for (unsigned i = 0; i < 6; i++) {
        (void)rig_set_all(&rig, 'a', i);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
        ck_assert(rig_tidy_wait(&rig));
    }
    for (size_t i = 0; i < snapshot.files.n; i++) {
        char name[NAMES_BYTES];
        uint64_t now;
        snapshot__file_name(&snapshot.files.file[i], name);
        n_gone += !has_file(&rig, name);
        ck_assert_int_eq(snapshot_hash(&snapshot, i, &now), 0);
        ck_assert_uint_eq(now, xxh3[i]);
    }
    ck_assert_uint_gt(n_gone, 0);
    snapshot_close(&snapshot);
    rig_end(&rig);
}
END_TEST

/* The log behind a snapshot stays for who follows, up to a limit. */
START_TEST(test_log_is_pinned)
{
    struct rig rig;
    struct snapshot snapshot;
    begin(&rig, 2);
    ck_assert_int_eq(snapshot_take(&rig, &snapshot), 0);
    for (unsigned i = 0; i < 4; i++) {
        (void)rig_set_all(&rig, 'a', i);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
    }
    ck_assert_int_eq(wal_pin_check(snapshot.wal, &snapshot.pin), 0);
    ck_assert_uint_gt(rig_stat(&rig, "pinned_bytes"), 0);
    snapshot_close(&snapshot);
    ck_assert_uint_eq(rig_stat(&rig, "pinned_bytes"), 0);
    rig_end(&rig);
}
END_TEST

/* Each call that fails while a snapshot is opened is told, nothing stays
 * behind, and the next one works. */
START_TEST(test_calls_that_fail)
{
    struct rig rig;
    struct snapshot snapshot;
    unsigned n_failed = 0;
    begin(&rig, 3);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    for (unsigned n = 1; n < 40; n++) {
        fake_disk_fail(rig.fake,
            1 << FAKE_OPEN | 1 << FAKE_SIZE | 1 << FAKE_READ, n, EIO, false);
        int err = snapshot_take(&rig, &snapshot);
        bool has_failed = fake_disk_heal(rig.fake) > 0;
        ck_assert(err == 0 || has_failed);
        n_failed += err != 0;
        if (err == 0) {
            snapshot_close(&snapshot);
        }
        ck_assert_ptr_null(snapshot.fd);
        ck_assert_int_eq(snapshot_take(&rig, &snapshot), 0);
        snapshot_close(&snapshot);
    }
    ck_assert_uint_gt(n_failed, 3);
    rig_end(&rig);
}
END_TEST

/* There is none without a directory, and none at a stop. */
START_TEST(test_none)
{
    struct rig rig;
    struct snapshot snapshot;
    begin(&rig, 4);
    struct store *real = rig.store;
    rig.store = small_store(NULL);
    ck_assert_int_eq(snapshot_take(&rig, &snapshot), ERR_NO_DATA_DIR);
    ck_assert_int_eq(store_destroy(&rig.store), 0);
    rig.store = real;
    ck_assert_int_eq(snapshot_take(&rig, &snapshot), 0);
    snapshot_close(&snapshot);
    store_end_calls(rig.store);
    ck_assert_int_eq(snapshot_take(&rig, &snapshot), ERR_CLOSED);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("snapshot");
    tcase_add_loop_test(tcase, test_copy_under_load, 0, 12);
    tcase_add_test(tcase, test_copy_to_real_disk);
    tcase_add_test(tcase, test_files_go_meanwhile);
    tcase_add_test(tcase, test_log_is_pinned);
    tcase_add_test(tcase, test_calls_that_fail);
    tcase_add_test(tcase, test_none);
    return run_case("snapshot", tcase);
}
