/* SPDX-License-Identifier: BSD-3-Clause */
/* The sealer works by itself, for cold_after, and the disk fails: a range over
 * a file that cannot be read is set aside, the others go, and it has its turn
 * again later; what cannot be written stays, and is tried again. Time
 * passes as the test says. */
#include "cold/segment_head.h"
#include "lib/fake_clock.h"
#include "unit/durable_help.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNK = 8192, /* records of a range, about */
    IDS = 3 * CHUNK,
    BATCH = 64,
    TABLE_RECORDS = 512,
    LEFT = CHUNK / 2, /* at most: too few for a file, or not due */
    SEALS = 3,        /* ranges that make the others */
    LOG_BYTES = 1 << 14
};

#define FIRST_SEGMENT "segment-00000000000000000001.seg"

static struct fake_clock clock_of_test;

/* ---- a counter ---- */

static void
wait_a_little(void)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    (void)nanosleep(&pause, NULL);
}

/* Returns when that figure of `stats cold` is so large; time passes meanwhile,
 * whatever it is that is waited for. */
static void
wait_for(struct rig *rig, const char *name, uint64_t value)
{
    while (rig_cold_stat(rig, name) < value) {
        wait_a_little();
        fake_clock_pass(&clock_of_test, 1000);
    }
}

static void
wait_for_cold(struct rig *rig)
{
    while (rig_n_hot(rig) > LEFT) {
        wait_a_little();
        fake_clock_pass(&clock_of_test, 1000);
    }
}

/* What a cell is after that round; no codec makes it smaller. */
static uint64_t
number_of(uint64_t id, uint64_t round)
{
    uint64_t state = IDS * round + id;
    return 1 + random_below(&state, UINT64_MAX);
}

/* Sets the ids from one on. */
static void
set_from(struct rig *rig, uint64_t first, uint64_t round)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, "ax");
    for (uint64_t id = first; id < IDS; id += BATCH) {
        struct change change[BATCH];
        for (unsigned i = 0; i < BATCH; i++) {
            key.id = id + i;
            change[i] = change_of(&key, CHANGE_SET, number_of(id + i, round));
        }
        do_changes(rig->store, change, BATCH);
        for (unsigned i = 0; i < BATCH; i++) {
            ck_assert_int_eq(change[i].err, 0);
        }
    }
}

/* All are as of that round, but those below first: as of the first round. */
static void
expect_from(struct rig *rig, uint64_t first, uint64_t round)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, "ax");
    for (uint64_t id = 0; id < IDS; id += BATCH) {
        struct store_get get = {.n = BATCH};
        for (unsigned i = 0; i < BATCH; i++) {
            get.key[i] = key;
            get.key[i].id = id + i;
        }
        rig_get(rig, &get);
        for (unsigned i = 0; i < BATCH; i++) {
            EXPECT(get.state[i] == CELL_SET &&
                    get.value[i] ==
                        number_of(id + i, id + i < first ? 1 : round),
                "id %lu reads as %lu", id + i, get.value[i]);
        }
    }
}

static void
begin(struct rig *rig, bool is_told)
{
    rig_init(rig, WAL_SYNC_NONE, ID_SEQUENTIAL, 2);
    fake_clock_init(&clock_of_test);
    rig->config.clock = &clock_of_test.clock;
    rig->seals = true;
    rig->data.seal_records = CHUNK;
    rig->data.seals_when_told = is_told;
    rig->config.table_records_max = TABLE_RECORDS;
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(edit(rig->store, "add counter a cold_after=1"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a aid primarykey"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a ax max=64"), 0);
    set_from(rig, 0, 1);
}

static void
finish(struct rig *rig, uint64_t first)
{
    expect_from(rig, first, 2);
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
    expect_from(rig, first, 2);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* ---- what is told ---- */

/* From now on stderr is a file; its descriptor. */
static int
catch_log(void)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(dup2(fd, STDERR_FILENO), 0);
    return fd;
}

/* How often the log has that text. */
static unsigned
count_log(int fd, const char *text)
{
    static char log[LOG_BYTES];
    unsigned n = 0;
    ssize_t len = pread(fd, log, sizeof log - 1, 0);
    ck_assert_int_ge(len, 0);
    log[len] = '\0';
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    return n;
}

/* Returns when the log has that text: it is told after it is counted. */
static void
wait_for_log(int fd, const char *text)
{
    while (count_log(fd, text) == 0) {
        wait_a_little();
    }
}

/* ---- tests ---- */

/* A range that the first file covers is set aside, twice, and then sealed. */
START_TEST(test_set_aside)
{
    struct rig rig;
    int log = catch_log();
    begin(&rig, true);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_ge(rig_cold_stat(&rig, "segments"), 2);
    set_from(&rig, 0, 2);
    ck_assert_int_eq(rig_close(&rig), 0);

    fake_disk_flip(rig.fake, FIRST_SEGMENT, SEGMENT_HEAD_BYTES + 50, 4);
    rig.data.seals_when_told = false;
    ck_assert_int_eq(rig_open(&rig), 0);
    wait_for(&rig, "seals_after", SEALS - 1);
    wait_for(&rig, "seal_asides", 2); /* its second turn is no news */
    ck_assert_uint_gt(rig_n_hot(&rig), LEFT);
    wait_for_log(log, "cannot be moved to the cold tier now");
    ck_assert_uint_eq(count_log(log, "\"a, ids 0 to "), 1);
    ck_assert_uint_eq(
        count_log(log, "cannot be moved to the cold tier now"), 1);
    expect_from(&rig, 0, 2);

    fake_disk_flip(rig.fake, FIRST_SEGMENT, SEGMENT_HEAD_BYTES + 50, 4);
    wait_for_cold(&rig);
    wait_for(&rig, "seals_after", SEALS);
    finish(&rig, 0);
    close(log);
}
END_TEST

/* A file that cannot be made, or not be written (_i is 1): all stays in memory,
 * until the disk is well again. */
START_TEST(test_not_written)
{
    struct rig rig;
    int log = catch_log();
    begin(&rig, true);
    set_from(&rig, 0, 2);
    ck_assert_int_eq(rig_close(&rig), 0);

    fake_disk_fail_name(
        rig.fake, _i == 0 ? FAKE_OPEN : FAKE_WRITE, ENOSPC, "segment-");
    rig.data.seals_when_told = false;
    ck_assert_int_eq(rig_open(&rig), 0);
    wait_for(&rig, "seal_failures", 1);
    expect_from(&rig, 0, 2);
    wait_for_log(log, "records could not be moved to the cold tier");
    wait_for_cold(&rig);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_failures"), 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "seal_asides"), 0);
    ck_assert_uint_eq(
        count_log(log, "records could not be moved to the cold tier"), 1);
    finish(&rig, 0);
    close(log);
}
END_TEST

static void
reopen(struct rig *rig)
{
    ck_assert_int_eq(rig_close(rig), 0);
    ck_assert_int_eq(rig_open(rig), 0);
}

/* A file of which most is dead, since others answer for those ids, is given up
 * for a small one with the rest, where nothing better is to be done. */
START_TEST(test_save)
{
    /* so few ranges are not joined */
    static const struct seal_tidy_bounds saves = {.slice_ms = 1,
        .step_records = 256,
        .fan_in = 64,
        .join_blocks = 128,
        .least_records = 4};
    enum { LOWER = IDS / 8 };
    struct rig rig;
    begin(&rig, true);
    rig.data.seal_records = 0;
    reopen(&rig);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "segments"), 1);
    rig.data.seal_records = CHUNK;
    reopen(&rig);
    set_from(&rig, LOWER, 2);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    uint64_t files = rig_cold_stat(&rig, "segments");
    uint64_t blocks = rig_cold_stat(&rig, "blocks");
    ck_assert_uint_gt(files, 1);
    rig.data.seals_when_told = false;
    rig.data.tidy = &saves;
    reopen(&rig);
    wait_for(&rig, "file_saves", 1);
    ck_assert(rig_tidy_wait(&rig));
    ck_assert_uint_eq(rig_cold_stat(&rig, "file_saves"), 1);
    ck_assert_uint_eq(rig_cold_stat(&rig, "segments"), files);
    ck_assert_uint_lt(rig_cold_stat(&rig, "blocks"), blocks);
    finish(&rig, LOWER);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("sealer");
    tcase_add_test(tcase, test_set_aside);
    tcase_add_loop_test(tcase, test_not_written, 0, 2);
    tcase_add_test(tcase, test_save);
    return run_case("sealer", tcase);
}
