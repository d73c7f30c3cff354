/* SPDX-License-Identifier: BSD-3-Clause */
/* A MANIFEST that this server has not put there: whose it is, and what the
 * server does then. */
#include "unit/durable_help.h"

#include "base/err.h"
#include "wal/manifest.h"

#include <sched.h>
#include <string.h>

static void
begin(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 3);
    ck_assert_int_eq(rig_checkpoint(rig), 0);
}

static void
read_own(struct rig *rig, struct manifest *manifest)
{
    manifest_init(manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, manifest, NULL), 0);
}

/* As another server writes it next. */
static void
make_foreign(struct manifest *manifest)
{
    struct histories *histories = &manifest->histories;
    uint64_t from = histories->entry[histories->n - 1].from;
    ck_assert_int_eq(
        histories_add(histories, from + 1000, manifest_writer(manifest) + 1),
        0);
    manifest->writes++;
}

static void
put(struct rig *rig, const struct manifest *manifest)
{
    ck_assert_int_eq(manifest_write(rig->data.disk, manifest, NULL, NULL), 0);
}

/* True for what moved or removed a file. */
static bool
is_change(const struct fake_event *event)
{
    return event->call == FAKE_RENAME ||
        (event->call == FAKE_UNLINK && event->err == 0);
}

/* Another server's: nothing is changed any more, and all goes on when that is
 * over. */
START_TEST(test_foreign)
{
    struct rig rig;
    struct manifest own, other;
    size_t n_events;
    begin(&rig);
    read_own(&rig, &own);
    read_own(&rig, &other);
    make_foreign(&other);
    put(&rig, &other);
    while (store_fault(rig.store) != ERR_DIR_TAKEN ||
        rig_stat(&rig, "foreign_manifest") != 1) {
        sched_yield();
    }
    n_events = fake_disk_count_events(rig.fake, 0, NULL);
    ck_assert_int_eq(rig_checkpoint(&rig), ERR_DIR_TAKEN);
    ck_assert_uint_eq(
        fake_disk_count_events(rig.fake, n_events, is_change), 0);
    put(&rig, &own);
    rig_wait_writable(&rig);
    (void)rig_set_all(&rig, 'a', 4);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_uint_eq(rig_stat(&rig, "foreign_manifest"), 0);
    manifest_fini(&own);
    manifest_fini(&other);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
}
END_TEST

/* It stays so until the stop, which says it and leaves all as it is. */
START_TEST(test_foreign_until_the_stop)
{
    struct rig rig;
    struct manifest other;
    size_t n_events;
    begin(&rig);
    read_own(&rig, &other);
    make_foreign(&other);
    put(&rig, &other);
    n_events = fake_disk_count_events(rig.fake, 0, NULL);
    ck_assert_int_eq(rig_close(&rig), ERR_DIR_TAKEN);
    ck_assert_uint_eq(
        fake_disk_count_events(rig.fake, n_events, is_change), 0);
    manifest_fini(&other);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* True for what made a checkpoint file or wrote to one. */
static bool
is_of_image(const struct fake_event *event)
{
    return strncmp(event->name, "checkpoint-", strlen("checkpoint-")) == 0 &&
        (event->call == FAKE_OPEN || event->call == FAKE_WRITE);
}

/* Another server's, which comes between two steps of a checkpoint: no image is
 * written any more. */
START_TEST(test_foreign_in_checkpoint)
{
    struct rig rig;
    struct rig_later later;
    struct manifest own, other;
    size_t n_events;
    begin(&rig);
    (void)rig_set_all(&rig, 'a', 4);
    read_own(&rig, &own);
    read_own(&rig, &other);
    make_foreign(&other);
    fake_disk_hold_name(rig.fake, FAKE_OPEN, MANIFEST_COPY);
    rig_checkpoint_later(&rig, &later);
    fake_disk_wait_held(rig.fake);
    put(&rig, &other);
    n_events = fake_disk_count_events(rig.fake, 0, NULL);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_wait(&later), ERR_DIR_TAKEN);
    ck_assert_uint_eq(
        fake_disk_count_events(rig.fake, n_events, is_of_image), 0);
    put(&rig, &own);
    rig_wait_writable(&rig);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    manifest_fini(&own);
    manifest_fini(&other);
    rig_crash(&rig, true, 1);
    rig_end(&rig);
}
END_TEST

static void *
open_again(void *arg)
{
    struct rig *rig = arg;
    ck_assert_int_eq(rig_open(rig), ERR_DIR_TAKEN);
    return NULL;
}

/* Another server begins while this one is loading: it does not start, and has
 * changed nothing. */
START_TEST(test_foreign_while_loading)
{
    struct rig rig;
    struct manifest other;
    pthread_t thread;
    size_t n_events;
    begin(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    fake_disk_hold_name(rig.fake, FAKE_OPEN, "log-");
    ck_assert_int_eq(pthread_create(&thread, NULL, open_again, &rig), 0);
    fake_disk_wait_held(rig.fake);
    read_own(&rig, &other);
    make_foreign(&other);
    put(&rig, &other);
    n_events = fake_disk_count_events(rig.fake, 0, NULL);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(
        fake_disk_count_events(rig.fake, n_events, is_change), 0);
    manifest_fini(&other);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* One from before this start, and an older one of its own, are put back: a
 * checkpoint makes up for it. */
START_TEST(test_put_back)
{
    for (int i = 0; i < 2; i++) {
        struct rig rig;
        struct manifest old;
        begin(&rig);
        read_own(&rig, &old);
        if (i == 0) {
            ck_assert_int_eq(rig_close(&rig), 0);
            ck_assert_int_eq(rig_open(&rig), 0);
        }
        (void)rig_set_all(&rig, 'a', 5);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        uint64_t done = rig_stat(&rig, "checkpoints");
        put(&rig, &old);
        while (rig_stat(&rig, "checkpoints") == done) {
            sched_yield();
        }
        ck_assert_int_eq(store_fault(rig.store), 0);
        ck_assert_uint_ge(rig_stat(&rig, "missing_files"), 1);
        manifest_fini(&old);
        rig_crash(&rig, true, 1);
        rig_end(&rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_foreign, test_foreign_until_the_stop,
        test_foreign_in_checkpoint, test_foreign_while_loading, test_put_back};
    return run_tests("durable owner", tests, COUNT_OF(tests));
}
