/* SPDX-License-Identifier: BSD-3-Clause */
/* `seal NAME all` of a counter with several ranges: what it has done by the
 * time of a crash, a stop, a fault. */
#include "unit/durable_help.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
    CHUNK = 16, /* records of a range, about */
    THIRD = 3,  /* the number of a segment */
    PROBES = 10000
};

static const char third[] = "segment-00000000000000000003";

struct cold_wanted {
    const char *name;
    uint64_t value;
};

static void
note_cold(void *context, const char *name, const char *value)
{
    struct cold_wanted *stat = context;
    if (strcmp(name, stat->name) == 0) {
        stat->value = strtoull(value, NULL, 10);
    }
}

/* A number in the lines of `stats cold`. */
static uint64_t
cold_stat(struct rig *rig, const char *name)
{
    struct cold_wanted stat = {.name = name, .value = UINT64_MAX};
    store_cold_stats(rig->store, note_cold, &stat);
    ck_assert_uint_ne(stat.value, UINT64_MAX);
    return stat.value;
}

static uint64_t
n_hot(struct rig *rig)
{
    struct engine_sum sum = {0};
    store_tables(rig->store, 0, -1, &sum);
    return sum.records;
}

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
    ck_assert_uint_eq(n_hot(rig), RIG_IDS);
}

/* Begins to seal, until the third range is being written. */
static void
seal_two(struct rig *rig)
{
    fake_disk_hold_name(rig->fake, FAKE_OPEN, third);
    ck_assert(rig_seal_later(rig, 0));
    fake_disk_wait_held(rig->fake);
    ck_assert_uint_eq(cold_stat(rig, "seals"), THIRD - 1);
}

static void
pause_ms(void)
{
    const struct timespec ms = {.tv_nsec = 1000 * 1000};
    (void)nanosleep(&ms, NULL);
}

/* The ranges that a seal has done are in a manifest while it goes on: a crash
 * leaves them cold. */
START_TEST(test_crash)
{
    struct rig rig;
    begin(&rig);
    seal_two(&rig);
    while (rig_stat(&rig, "live_segments") < THIRD - 1) {
        pause_ms();
    }
    fake_disk_die(rig.fake, 1);
    fake_disk_let_go(rig.fake);
    rig_crash(&rig, true, 1);
    ck_assert_uint_eq(cold_stat(&rig, "segments"), THIRD - 1);
    ck_assert_uint_lt(n_hot(&rig), RIG_IDS);
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
    ck_assert_uint_le(cold_stat(&rig, "seals"), THIRD);
    uint64_t left = n_hot(&rig);
    ck_assert_uint_gt(left, 0);
    rig_expect_all(&rig);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_uint_ge(cold_stat(&rig, "segments"), THIRD - 1);
    ck_assert_uint_eq(n_hot(&rig), left);
    rig_expect_all(&rig);
    rig_end(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_crash, test_stop};
    return run_tests("seal call", tests, COUNT_OF(tests));
}
