/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of the data directory that need a disk which waits, or a look at what
 * is in it (doc/durability-tests.md names the test of each). */
#include "unit/durable_help.h"

#include "wal/manifest.h"
#include "wal/names.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void
begin(struct rig *rig, enum wal_sync sync)
{
    rig_init(rig, sync, ID_RANDOM, 1);
    rig->data.interval_ms = 10;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
}

/* Sets one cell; what it is committed with. */
static uint64_t
set_one(struct rig *rig, uint64_t value)
{
    uint64_t seq = 0;
    struct cell_key key =
        cell_of(quiet_schema(rig->store), rig->history.id[0], "ax");
    struct change change = change_of(&key, CHANGE_SET, value);
    ck_assert(rig_change(rig, &change, 1, &seq));
    ck_assert_int_eq(change.err, 0);
    return seq;
}

/* A write may be acknowledged only with all that it could have seen, though it
 * changes nothing itself. */
START_TEST(test_seen_is_durable)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS);
    fake_disk_hold(rig.fake, FAKE_SYNC);
    uint64_t first = set_one(&rig, 5);
    ck_assert_int_eq(store_commit(rig.store, first), STORE_COMMIT_WAITS);
    uint64_t second = set_one(&rig, 5);
    ck_assert_uint_ge(second, first);
    ck_assert_int_eq(store_commit(rig.store, second), STORE_COMMIT_WAITS);
    fake_disk_wait_held(rig.fake);
    rig_judge(&rig, rig.history.n_steps, false); /* it shows already */
    ck_assert_int_eq(store_outcome(rig.store, second), STORE_COMMIT_WAITS);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, second), STORE_COMMITTED);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
}
END_TEST

/* With `interval` changes are acknowledged unsynced, but not while a sync is
 * late. */
START_TEST(test_late_sync)
{
    struct rig rig;
    uint64_t value = 0, seq;
    begin(&rig, WAL_SYNC_INTERVAL);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig.data.unsynced_bytes_max = 1 << 30; /* not for that reason, */
    rig.data.log_file_bytes = 16 << 20;    /* nor for a file's beginning */
    ck_assert_int_eq(rig_open(&rig), 0);
    fake_disk_hold(rig.fake, FAKE_SYNC);
    (void)store_commit(rig.store, set_one(&rig, ++value));
    fake_disk_wait_held(rig.fake); /* so its thread is nowhere else */
    do {
        sched_yield();
        seq = set_one(&rig, ++value);
    } while (store_commit(rig.store, seq) == STORE_COMMITTED);
    ck_assert_int_eq(store_outcome(rig.store, seq), STORE_COMMIT_WAITS);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_commit(&rig, seq), STORE_COMMITTED);
    rig_end(&rig);
}
END_TEST

struct seen {
    struct rig *rig;
    struct manifest *manifest;
    unsigned n_files, n_named;
};

static void
look_at_name(void *context, const char *name)
{
    struct seen *seen = context;
    enum names_kind kind;
    uint64_t number;
    if (names_parse(name, &kind, &number) && kind == NAMES_CHECKPOINT) {
        seen->n_files++;
        seen->n_named +=
            images_file_bytes(&seen->manifest->images, number) > 0;
    }
}

/* After a checkpoint the live images partition rows, and there is no file
 * that holds none. */
static void
expect_images(struct rig *rig)
{
    struct manifest manifest;
    struct seen seen = {.rig = rig, .manifest = &manifest};
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    images_verify(&manifest.images);
    ck_assert_int_eq(
        rig->data.disk->calls->list(rig->data.disk, look_at_name, &seen), 0);
    ck_assert_uint_gt(manifest.images.n, 0);
    ck_assert_uint_eq(seen.n_files, seen.n_named);
    manifest_fini(&manifest);
}

/* What did not change is not written again; what is left of sparse files is
 * moved; tables that split get images of their own. */
START_TEST(test_incremental)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_NONE);
    rig.data.checkpoint_step_bytes = 0;
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    (void)rig_set_all(&rig, 'a', 1);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    uint64_t images = rig_stat(&rig, "checkpoint_images");
    ck_assert_uint_ge(images, 4);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "checkpoint_images"), images);
    (void)set_one(&rig, 2);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "checkpoint_images"), images + 1);
    expect_images(&rig);
    rig_crash(&rig, true, 1);
    /* what was loaded counts as written */
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "checkpoint_images"), 0);
    rig_add_counter(&rig, 'b');
    rig_add_counter(&rig, 'c');
    (void)rig_set_all(&rig, 'a', 9);
    for (unsigned i = 1; i < 8; i++) {
        (void)rig_set_all(&rig, 'b', i);
        (void)rig_set_all(&rig, 'c', i);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        expect_images(&rig);
    }
    ck_assert_uint_gt(rig_stat(&rig, "checkpoint_moved_bytes"), 0);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
}
END_TEST

/* Tables that split between checkpoints. */
START_TEST(test_splits)
{
    struct rig rig;
    struct engine_sum sum = {0};
    begin(&rig, WAL_SYNC_NONE);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig.config.table_records_max = 64;
    ck_assert_int_eq(rig_open(&rig), 0);
    struct cell_key key = cell_of(quiet_schema(rig.store), 0, "ax");
    for (uint64_t i = 0; i < 12; i++) {
        for (uint64_t id = i; id < 3000; id += 12) {
            key.id = id << 40;
            ck_assert_int_eq(
                change_cell(rig.store, &key, CHANGE_SET, id + 1), 0);
        }
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        expect_images(&rig);
    }
    store_tables(rig.store, key.counter, -1, &sum);
    ck_assert_uint_gt(sum.splits, 0);
    rig_crash(&rig, true, 1);
    for (uint64_t id = 0; id < 3000; id++) {
        key.id = id << 40;
        expect_cell(rig.store, &key, CELL_SET, id + 1);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Where nothing has changed a checkpoint touches no file. */
START_TEST(test_nothing_new)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS);
    (void)set_one(&rig, 5);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    unsigned syncs = fake_disk_count(rig.fake, FAKE_SYNC);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "manifests"), 1);
    ck_assert_uint_eq(fake_disk_count(rig.fake, FAKE_SYNC), syncs);
    (void)set_one(&rig, 6);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "manifests"), 2);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A checkpoint that fails is none of the log's failures; the next one is made
 * although nothing has changed since. */
START_TEST(test_only_checkpoint_fails)
{
    struct rig rig;
    begin(&rig, WAL_SYNC_ALWAYS);
    (void)set_one(&rig, 5);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    (void)set_one(&rig, 6);
    fake_disk_hold_name(rig.fake, FAKE_OPEN, "checkpoint-");
    struct rig_later later;
    rig_checkpoint_later(&rig, &later);
    fake_disk_wait_held(rig.fake);
    fake_disk_fail(rig.fake, 1u << FAKE_OPEN, 1, EACCES, true);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_wait(&later), ERR_NO_CHECKPOINT);
    ck_assert_int_eq(store_fault(rig.store), 0);
    ck_assert_uint_gt(fake_disk_heal(rig.fake), 0);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "checkpoints"), 2);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Somebody removes the log file under way: that is seen, and a checkpoint makes
 * up for what it had. */
START_TEST(test_removed_log)
{
    struct rig rig;
    char name[NAMES_BYTES];
    begin(&rig, WAL_SYNC_ALWAYS);
    (void)set_one(&rig, 5);
    names_make(name, NAMES_LOG, rig_stat(&rig, "file"));
    ck_assert_int_eq(rig.data.disk->calls->unlink(rig.data.disk, name), 0);
    for (uint64_t value = 6; rig_stat(&rig, "removed_files") == 0; value++) {
        (void)rig_commit(&rig, set_one(&rig, value));
    }
    rig_wait_writable(&rig);
    while (rig_stat(&rig, "checkpoints") == 0) {
        sched_yield();
    }
    uint64_t last = 1000000;
    ck_assert_int_eq(rig_commit(&rig, set_one(&rig, last)), STORE_COMMITTED);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    struct cell_key key =
        cell_of(quiet_schema(rig.store), rig.history.id[0], "ax");
    expect_cell(rig.store, &key, CELL_SET, last);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* A real directory, and why it was refused. */
struct place {
    char path[32];
    struct buf why;
};

static void
make_place(struct place *place)
{
    *place = (struct place){.path = "/tmp/check_durable_XXXXXX"};
    ck_assert_ptr_nonnull(mkdtemp(place->path));
}

static int
take_place(struct place *place, struct data_dir *dir)
{
    const struct data_dir_terms terms = {.user = "", .log_fd = -1};
    bool is_made;
    int fd;
    buf_clear(&place->why);
    ck_assert_int_eq(
        data_dir_make(place->path, &terms, &fd, &is_made, &place->why), 0);
    int err = data_dir_lock(fd, place->path, &terms, dir, &place->why);
    buf_add(&place->why, "", 1);
    return err;
}

static int
look_at_place(struct place *place, struct data_dir *dir)
{
    struct logger logger = {0};
    buf_clear(&place->why);
    int err = data_dir_look(place->path, dir, &logger, &place->why);
    buf_add(&place->why, "", 1);
    return err;
}

static void
make_file(const struct data_dir *dir, const char *name)
{
    int fd = openat(dir->dir_fd, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
remove_place(struct place *place)
{
    ck_assert_int_eq(rmdir(place->path), 0);
    buf_fini(&place->why);
}

/* One process a directory, whatever becomes of the lock file. */
START_TEST(test_one_process)
{
    struct place place;
    struct data_dir first, second;
    char pid[32];
    make_place(&place);
    (void)snprintf(pid, sizeof pid, "(%ld)", (long)getpid());
    ck_assert_int_eq(take_place(&place, &first), 0);
    ck_assert_int_eq(take_place(&place, &second), ERR_DIR_IN_USE);
    ck_assert_ptr_nonnull(strstr((char *)place.why.data, pid));
    ck_assert_int_eq(look_at_place(&place, &second), ERR_DIR_IN_USE);
    ck_assert_int_eq(unlinkat(first.dir_fd, "lock", 0), 0);
    ck_assert_int_eq(take_place(&place, &second), ERR_DIR_IN_USE);
    ck_assert_int_eq(faccessat(first.dir_fd, "lock", F_OK, 0), -1);
    data_dir_close(&first);
    ck_assert_int_eq(take_place(&place, &second), 0);
    ck_assert_int_eq(unlinkat(second.dir_fd, "lock", 0), 0);
    data_dir_close(&second);
    remove_place(&place);
}
END_TEST

/* Looking makes nothing, and keeps a server away, but nobody who looks. */
START_TEST(test_look)
{
    struct place place;
    struct data_dir first, second;
    make_place(&place);
    ck_assert_int_eq(look_at_place(&place, &first), 0);
    ck_assert_int_eq(faccessat(first.dir_fd, "lock", F_OK, 0), -1);
    ck_assert_int_eq(take_place(&place, &second), ERR_DIR_IN_USE);
    ck_assert_int_eq(look_at_place(&place, &second), 0);
    data_dir_close(&second);
    data_dir_close(&first);
    remove_place(&place);
    ck_assert_int_eq(look_at_place(&place, &second), ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr((char *)place.why.data, "No such file"));
    buf_fini(&place.why);
}
END_TEST

/* A directory of others is refused and stays as it is. */
START_TEST(test_foreign)
{
    struct place place;
    struct data_dir dir, taken;
    struct stat stat;
    make_place(&place);
    ck_assert_int_eq(look_at_place(&place, &dir), 0);
    make_file(&dir, "report.txt");
    ck_assert_int_eq(fchmod(dir.dir_fd, 0755), 0);
    data_dir_close(&dir);
    ck_assert_int_eq(take_place(&place, &taken), ERR_SYSTEM);
    ck_assert_ptr_nonnull(strstr((char *)place.why.data, "report.txt"));
    ck_assert_int_eq(look_at_place(&place, &dir), 0);
    ck_assert_int_eq(fstat(dir.dir_fd, &stat), 0);
    ck_assert_int_eq(stat.st_mode & 0777, 0755);
    ck_assert_int_eq(faccessat(dir.dir_fd, "lock", F_OK, 0), -1);
    make_file(&dir, "MANIFEST");
    int copy = dup(dir.dir_fd);
    ck_assert_int_eq(flock(copy, LOCK_UN), 0);
    ck_assert_int_eq(take_place(&place, &taken), 0);
    ck_assert_int_eq(fstat(dir.dir_fd, &stat), 0);
    ck_assert_int_eq(stat.st_mode & 0777, 0700);
    ck_assert_int_eq(unlinkat(copy, "lock", 0), 0);
    ck_assert_int_eq(unlinkat(copy, "MANIFEST", 0), 0);
    ck_assert_int_eq(unlinkat(copy, "report.txt", 0), 0);
    close(copy);
    data_dir_close(&taken);
    data_dir_close(&dir);
    remove_place(&place);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_seen_is_durable, test_late_sync,
        test_incremental, test_splits, test_nothing_new,
        test_only_checkpoint_fails, test_removed_log, test_one_process,
        test_look, test_foreign};
    return run_tests("durable rules", tests, COUNT_OF(tests));
}
