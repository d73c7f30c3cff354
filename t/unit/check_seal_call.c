/* SPDX-License-Identifier: BSD-3-Clause */
/* `seal NAME all` of a counter with several ranges: what it has done by the
 * time of a crash, a stop, a fault. */
#include "unit/durable_help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    CHUNK = 16, /* records of a range, about */
    THIRD = 3,  /* the number of a segment */
    PROBES = 10000
};

static const char third[] = "segment-00000000000000000003";

/* A counter with a record of each id, all of them hot; their ids make many
 * ranges. */
static void
begin(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    rig->seals = true;
    rig->data.seal_records = CHUNK;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    (void)rig_set_all(rig, 'a', 5);
    ck_assert_uint_eq(rig_n_hot(rig), RIG_IDS);
}

static void
pause_ms(void)
{
    const struct timespec ms = {.tv_nsec = 1000 * 1000};
    (void)nanosleep(&ms, NULL);
}

/* Begins to seal, until the third range is being written and a manifest has the
 * others. */
static void
seal_two(struct rig *rig)
{
    fake_disk_hold_name(rig->fake, FAKE_OPEN, third);
    ck_assert(rig_seal_later(rig, 0));
    fake_disk_wait_held(rig->fake);
    ck_assert_uint_eq(rig_cold_stat(rig, "seals"), THIRD - 1);
    ck_assert_uint_eq(rig_cold_stat(rig, "ranges_sealing"), 1);
    while (rig_stat(rig, "live_segments") < THIRD - 1) {
        pause_ms();
    }
}

/* The ranges that a seal has done are in a manifest while it goes on: a crash
 * leaves them cold. */
START_TEST(test_crash)
{
    struct rig rig;
    begin(&rig);
    seal_two(&rig);
    fake_disk_die(rig.fake, 1);
    fake_disk_let_go(rig.fake);
    rig_crash(&rig, true, 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "segments"), THIRD - 1);
    ck_assert_uint_lt(rig_n_hot(&rig), RIG_IDS);
    rig_expect_all(&rig);
    rig_end(&rig);
}
END_TEST

struct stop {
    struct store *store;
    struct answer answer;
    struct store_seal probe[PROBES];
    unsigned n;
};

static void *
run_stop(void *arg)
{
    struct stop *stop = arg;
    store_end_calls(stop->store);
    return NULL;
}

/* Asks for seals until one is answered at once: the stop has begun. */
static void
wait_for_stop(struct stop *stop)
{
    do {
        ck_assert_uint_lt(stop->n, PROBES);
        pause_ms();
        stop->probe[stop->n] =
            (struct store_seal){.call = call_of(&stop->answer), .err = -1};
        ck_assert_int_eq(
            store_seal(stop->store, &stop->probe[stop->n++]), STORE_LATER);
    } while (atomic_load(&stop->answer.n) == 0);
}

/* A stop ends a seal behind the range that is being written, and answers who
 * waits, and who comes later; what was sealed is cold after the start. */
START_TEST(test_stop)
{
    struct rig rig;
    struct stop *stop = calloc(1, sizeof *stop);
    pthread_t thread;
    ck_assert_ptr_nonnull(stop);
    begin(&rig);
    seal_two(&rig);
    stop->store = rig.store;
    answer_init(&stop->answer);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_stop, stop), 0);
    wait_for_stop(stop);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(rig_seal_wait(&rig), ERR_CLOSED);
    for (unsigned i = 0; i < stop->n; i++) {
        answer_wait(&stop->answer);
        ck_assert_int_eq(stop->probe[i].err, ERR_CLOSED);
    }
    answer_fini(&stop->answer);
    free(stop);
    ck_assert_uint_le(rig_cold_stat(&rig, "seals"), THIRD);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_failures"), 0);
    uint64_t left = rig_n_hot(&rig);
    ck_assert_uint_gt(left, 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_ge(rig_cold_stat(&rig, "segments"), THIRD - 1);
    ck_assert_uint_eq(rig_n_hot(&rig), left);
    rig_expect_all(&rig);
    rig_end(&rig);
}
END_TEST

/* All is sealed, and in memory again with other values. */
static void
begin_overlaid(struct rig *rig)
{
    begin(rig);
    ck_assert_int_eq(rig_seal_all(rig), 0);
    ck_assert_uint_gt(rig_cold_stat(rig, "segments"), THIRD);
    (void)rig_set_all(rig, 'a', 7);
    ck_assert_uint_eq(rig_n_hot(rig), RIG_IDS);
}

/* What cannot be read keeps its own range in memory and no other one; the
 * answer says so. */
static void
expect_left(struct rig *rig)
{
    ck_assert(rig_seal_later(rig, 0));
    ck_assert_int_eq(rig_seal_wait(rig), ERR_COLD_READ);
    ck_assert_uint_gt(rig->seal.n_left, 0);
    ck_assert_uint_eq(rig_cold_stat(rig, "seal_failures"), rig->seal.n_left);
    ck_assert_uint_gt(rig_n_hot(rig), 0);
    ck_assert_uint_lt(rig_n_hot(rig), RIG_IDS / 2);
}

START_TEST(test_damage)
{
    struct rig rig;
    char name[48];
    begin_overlaid(&rig);
    (void)snprintf(name, sizeof name, "%s.seg", third);
    fake_disk_flip(rig.fake, name, 4096 + 50, 4);
    expect_left(&rig);
    ck_assert_str_eq(rig.seal.file, name);
    ck_assert_uint_gt(rig_cold_stat(&rig, "damaged"), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "read_failures"), 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_no_read)
{
    struct rig rig;
    begin_overlaid(&rig);
    fake_disk_fail_name(rig.fake, FAKE_READ, EIO, "segment");
    expect_left(&rig);
    ck_assert_uint_eq(rig.seal.n_left, 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "read_failures"), 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "damaged"), 0);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(rig_n_hot(&rig), 0);
    rig_end(&rig);
}
END_TEST

/* What cannot be written ends it, and is counted; what came before stays. */
START_TEST(test_no_write)
{
    struct rig rig;
    begin(&rig);
    seal_two(&rig);
    fake_disk_fail(rig.fake, 1 << FAKE_RENAME, 1, EIO, false);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_seal_wait(&rig), ERR_DISK);
    ck_assert_uint_eq(fake_disk_heal(rig.fake), 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_failures"), 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seals"), THIRD - 1);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    rig_end(&rig);
}
END_TEST

/* A column that comes meanwhile has a range begun anew: that is no failure. */
START_TEST(test_schema)
{
    struct rig rig;
    begin(&rig);
    seal_two(&rig);
    ck_assert_int_eq(rig_edit(&rig, "add column a ay max=64"), 0);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_seal_wait(&rig), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "ranges_sealing"), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_failures"), 0);
    ck_assert_uint_eq(rig_n_hot(&rig), 0);
    rig_end(&rig);
}
END_TEST

/* What is told of how far it is, while it goes on and no longer. */
START_TEST(test_progress)
{
    struct rig rig;
    begin(&rig);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_all_records"), 0);
    seal_two(&rig);
    uint64_t done = rig_cold_stat(&rig, "seal_hot_records");
    ck_assert_uint_gt(done, 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_all_records"), RIG_IDS);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_done_records"), done);
    ck_assert_uint_eq(
        rig_cold_stat(&rig, "seal_percent"), done * 100 / RIG_IDS);
    fake_disk_let_go(rig.fake);
    ck_assert_int_eq(rig_seal_wait(&rig), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_all_records"), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_done_records"), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_percent"), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_left_ms"), 0);
    /* the next one begins at 0, and has nothing to do */
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_all_records"), 0);
    rig_end(&rig);
}
END_TEST

/* With cold=never nothing is sealed, whoever asks for it. */
START_TEST(test_never)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    rig.seals = true;
    rig.data.seal_records = CHUNK;
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_edit(&rig, "add counter a cold=never"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column a aid primarykey"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column a ax max=64"), 0);
    (void)rig_set_all(&rig, 'a', 5);
    ck_assert_int_eq(rig_seal_all(&rig), ERR_NEVER_COLD);
    ck_assert_uint_eq(rig_n_hot(&rig), RIG_IDS);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seals"), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_failures"), 0);
    rig_end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_crash, test_stop, test_damage,
        test_no_read, test_no_write, test_schema, test_progress, test_never};
    return run_tests("seal call", tests, COUNT_OF(tests));
}
