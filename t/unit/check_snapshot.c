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
        snapshot_file_name(&snapshot.files.file[i], name);
        n_gone += !has_file(&rig, name);
        ck_assert_int_eq(snapshot_hash(&snapshot, i, &now), 0);
        ck_assert_uint_eq(now, xxh3[i]);
    }
    ck_assert_uint_gt(n_gone, 0);
    snapshot_close(&snapshot);
    rig_end(&rig);
}
END_TEST

/* Asks for a backup as a session does, and waits; its err. */
static int
backup_take(struct rig *rig, struct store_backup *backup)
{
    struct answer answer;
    answer_init(&answer);
    *backup = (struct store_backup){.call = call_of(&answer), .err = -1};
    if (store_backup(rig->store, backup) == STORE_LATER) {
        answer_wait(&answer);
    }
    answer_fini(&answer);
    return backup->err;
}

/* How many files of a list are not there. */
static size_t
count_gone(
    struct rig *rig, const struct store_backup_file *file, size_t n_files)
{
    size_t n = 0;
    for (size_t i = 0; i < n_files; i++) {
        n += !has_file(rig, file[i].name);
    }
    return n;
}

static void
turn_over(struct rig *rig, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        (void)rig_set_all(rig, 'a', i);
        ck_assert_int_eq(rig_checkpoint(rig), 0);
        ck_assert_int_eq(rig_seal_all(rig), 0);
        ck_assert(rig_tidy_wait(rig));
    }
}

/* For a backup files keep their names, beside a snapshot that is open; then
 * they go. There is one at a time. */
START_TEST(test_names_stay)
{
    struct rig rig;
    struct store_backup backup, other;
    struct store_backup_file file[256];
    struct snapshot snapshot;
    begin(&rig, 6);
    turn_over(&rig, 1);
    (void)rig_set_all(&rig, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(backup_take(&rig, &backup), 0);
    size_t n = backup.n_files;
    ck_assert_uint_gt(backup.manifest_bytes, 0);
    ck_assert_uint_ge(n, 2);
    ck_assert_uint_le(n, 256);
    memcpy(file, backup.file, n * sizeof file[0]);
    ck_assert_int_eq(backup_take(&rig, &other), ERR_BACKUP_BUSY);
    ck_assert_ptr_null(other.work);
    ck_assert_int_eq(snapshot_take(&rig, &snapshot), 0);
    turn_over(&rig, 4);
    snapshot_close(&snapshot);
    turn_over(&rig, 2);
    ck_assert_uint_eq(count_gone(&rig, file, n), 0);
    ck_assert_int_eq(store_end_backup(rig.store, &backup), 0);
    ck_assert_ptr_null(backup.work);
    turn_over(&rig, 2);
    ck_assert_uint_eq(count_gone(&rig, file, n), n);
    ck_assert_int_eq(store_end_backup(rig.store, &backup), 0);
    rig_end(&rig);
}
END_TEST

/* Log files that were kept for a backup and have gone are not waited for again:
 * the next checkpoint comes when the log has grown as ever. */
START_TEST(test_log_goes)
{
    enum { LIMIT = 20000 };
    struct rig rig;
    struct store_backup backup;
    uint64_t value = 0;
    begin(&rig, 8);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig.data.checkpoint_log_bytes = LIMIT;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(backup_take(&rig, &backup), 0);
    while (rig_stat(&rig, "live_bytes") < 8 * LIMIT) {
        (void)rig_set_all(&rig, 'a', value++);
    }
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(store_end_backup(rig.store, &backup), 0);
    while (rig_stat(&rig, "live_bytes") >= 8 * LIMIT) {
        sched_yield(); /* ends, or the test's time does */
    }
    uint64_t n = rig_stat(&rig, "checkpoints");
    uint64_t bytes = rig_stat(&rig, "bytes");
    while (rig_stat(&rig, "bytes") < bytes + 2 * LIMIT) {
        (void)rig_set_all(&rig, 'a', value++);
    }
    while (rig_stat(&rig, "checkpoints") == n) {
        sched_yield(); /* likewise */
    }
    rig_end(&rig);
}
END_TEST

/* Not at the price of changes that are refused: where the disk is full they are
 * let go, which is told. */
START_TEST(test_names_go_where_it_is_full)
{
    struct rig rig;
    struct store_backup backup;
    struct snapshot snapshot;
    struct answer answer;
    begin(&rig, 7);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    answer_init(&answer);
    snapshot =
        (struct snapshot){.call = call_of(&answer), .keeps_names = true};
    store_want_snapshot(rig.store, &snapshot);
    answer_wait(&answer);
    answer_fini(&answer);
    ck_assert_int_eq(snapshot.err, 0);
    ck_assert_int_eq(snapshot_check(&snapshot), 0);
    fake_disk_limit(rig.fake, 1);
    for (uint64_t value = 1; store_fault(rig.store) == 0; value++) {
        (void)rig_set_all(&rig, 'a', value);
    }
    while (snapshot_check(&snapshot) != ERR_BACKUP_GONE) {
        sched_yield();
    }
    fake_disk_limit(rig.fake, 0);
    rig_wait_writable(&rig);
    ck_assert_int_eq(backup_take(&rig, &backup), ERR_BACKUP_BUSY);
    snapshot_close(&snapshot);
    ck_assert_int_eq(backup_take(&rig, &backup), 0);
    ck_assert_int_eq(store_end_backup(rig.store, &backup), 0);
    ck_assert_int_eq(rig_set_all(&rig, 'a', 2), STORE_COMMITTED);
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
    tcase_add_test(tcase, test_names_stay);
    tcase_add_test(tcase, test_log_goes);
    tcase_add_test(tcase, test_names_go_where_it_is_full);
    tcase_add_test(tcase, test_log_is_pinned);
    tcase_add_test(tcase, test_calls_that_fail);
    tcase_add_test(tcase, test_none);
    return run_case("snapshot", tcase);
}
