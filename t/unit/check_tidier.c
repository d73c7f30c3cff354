/* SPDX-License-Identifier: BSD-3-Clause */
/* Cold ranges that are joined, merged with their overlays, and become hot
 * again: each by itself, with a stop or a crash behind it. */
#include "cold/segment_head.h"
#include "unit/durable_help.h"

#include <time.h>

/* Step by step. */
static const struct seal_tidy_bounds slowly = {
    .step_records = 8, .fan_in = 2, .join_blocks = 16, .least_records = 4};

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

/* is_wide: ids from one end to the other. */
static void
begin_ids(struct rig *rig, uint64_t seed, uint64_t seal_records,
    const struct seal_tidy_bounds *tidy, bool is_wide)
{
    rig_init(rig, modes[seed % COUNT_OF(modes)],
        (enum id_family)(seed % ID_FAMILY_COUNT), seed);
    rig->seals = true;
    if (is_wide) {
        rig->history.id[0] = 0;
        rig->history.id[RIG_IDS - 1] = UINT64_MAX;
    }
    rig->data.seal_records = seal_records;
    rig->data.tidy = tidy;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    ck_assert_int_eq(rig_set_all(rig, 'a', 5), STORE_COMMITTED);
    ck_assert_int_eq(rig_seal_all(rig), 0);
}

static void
begin(struct rig *rig, uint64_t seed, uint64_t seal_records,
    const struct seal_tidy_bounds *tidy)
{
    begin_ids(rig, seed, seal_records, tidy, true);
}

static void
reopen(struct rig *rig, const struct seal_tidy_bounds *tidy)
{
    ck_assert_int_eq(rig_close(rig), 0);
    rig->data.tidy = tidy;
    ck_assert_int_eq(rig_open(rig), 0);
}

/* One change of each so-manieth id. */
static void
change_some(struct rig *rig, size_t first, size_t each, enum change_op op,
    uint64_t operand)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, "ax");
    uint64_t seq = 0;
    for (size_t i = first; i < rig->history.n_ids; i += each) {
        key.id = rig->history.id[i];
        struct change change = change_of(&key, op, operand);
        ck_assert(rig_change(rig, &change, 1, &seq));
        ck_assert_int_eq(change.err, 0);
    }
    ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
}

static void
note_segment(void *context, const char *name)
{
    uint64_t number;
    bool is_new;
    *(unsigned *)context += segment_name_parse(name, &number, &is_new);
}

/* So many files, and all is right: now, after a crash, after a stop. */
static void
expect_files(struct rig *rig, unsigned wanted, bool is_power_cut)
{
    struct disk *disk = rig->data.disk;
    unsigned n = 0;
    rig_expect_all(rig);
    ck_assert_uint_eq(rig_cold_stat(rig, "segments"), wanted);
    ck_assert_int_eq(disk->calls->list(disk, note_segment, &n), 0);
    ck_assert_uint_eq(n, wanted);
    rig_crash(rig, is_power_cut, 1);
    ck_assert_uint_eq(rig_cold_stat(rig, "segments"), wanted);
    reopen(rig, &never);
    rig_expect_all(rig);
    ck_assert_uint_eq(rig_cold_stat(rig, "segments"), wanted);
}

START_TEST(test_join)
{
    unsigned n_joined = 0;
    for (uint64_t seed = 0; seed < 2 * ID_FAMILY_COUNT; seed++) {
        struct rig rig;
        begin(&rig, seed, 16, &never);
        uint64_t before = rig_cold_stat(&rig, "segments");
        reopen(&rig, &at_once);
        ck_assert(rig_tidy_wait(&rig));
        uint64_t after = rig_cold_stat(&rig, "segments");
        ck_assert_uint_le(after, before > 4 ? before / 2 : before);
        ck_assert_uint_eq(
            rig_cold_stat(&rig, "range_joins") > 0, after < before);
        n_joined += after < before;
        ck_assert_uint_eq(rig_cold_stat(&rig, "reheats"), 0);
        ck_assert_uint_eq(rig_n_hot(&rig), 0);
        rig.data.tidy = &never;
        expect_files(&rig, (unsigned)after, seed % 2 == 0);
        rig_end(&rig);
    }
    ck_assert_uint_gt(n_joined, ID_FAMILY_COUNT);
}
END_TEST

/* Others are sealed, and manifests written, while ranges are joined or become
 * hot: the file that has an earlier number then is not lost. */
START_TEST(test_seal_between)
{
    unsigned n_done = 0;
    for (uint64_t seed = 0; seed < long_part(4 * ID_FAMILY_COUNT); seed++) {
        struct rig rig;
        begin(&rig, seed, 16, &never);
        rig_add_counter(&rig, 'b');
        if (seed % 4 == 0) {
            change_some(&rig, 0, 2, CHANGE_INCR, 2);
            change_some(&rig, 1, 4, CHANGE_DELETE, 0);
        }
        reopen(&rig, &slowly);
        for (uint64_t i = 1; i < 8; i++) {
            ck_assert_int_eq(rig_set_all(&rig, 'b', i), STORE_COMMITTED);
            ck_assert(rig_seal_later(&rig, 1));
            ck_assert_int_eq(rig_seal_wait(&rig), 0);
        }
        rig_expect_all(&rig);
        n_done += rig_cold_stat(&rig, "range_joins") > 0;
        n_done += rig_cold_stat(&rig, "reheats") > 0;
        reopen(&rig, &never);
        rig_expect_all(&rig);
        rig_end(&rig);
    }
    ck_assert_uint_gt(n_done, 0);
}
END_TEST

/* A large overlay is merged once it has been quiet since a checkpoint. */
START_TEST(test_merge)
{
    for (uint64_t seed = 0; seed < ID_FAMILY_COUNT; seed++) {
        struct rig rig;
        begin(&rig, seed, 0, &at_once);
        /* or a join that is under way would take what has changed so far */
        ck_assert(rig_tidy_wait(&rig));
        change_some(&rig, 0, 3, CHANGE_INCR, 2);
        ck_assert(rig_tidy_wait(&rig));
        ck_assert_uint_eq(rig_cold_stat(&rig, "overlay_merges"), 0);
        ck_assert_uint_eq(rig_n_hot(&rig), RIG_IDS / 3);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        ck_assert(rig_tidy_wait(&rig));
        ck_assert_uint_gt(rig_cold_stat(&rig, "overlay_merges"), 0);
        ck_assert_uint_eq(rig_n_hot(&rig), 0);
        rig.data.tidy = &never;
        expect_files(&rig, 1, seed % 2 == 0);
        rig_end(&rig);
    }
}
END_TEST

/* A range of which more than half has changed becomes hot, with the rest of it,
 * and with what was deleted gone. */
START_TEST(test_heat)
{
    unsigned seeds = plain_part(SWEEP_PART(2 * ID_FAMILY_COUNT));
    for (uint64_t seed = 0; seed < seeds; seed++) {
        struct rig rig;
        begin(&rig, seed, seed % 3 == 0 ? 16 : 0, &never);
        change_some(&rig, 0, 1, CHANGE_INCR, 2); /* of each range */
        change_some(&rig, 1, 4, CHANGE_DELETE, 0);
        if (seed % 2 != 0) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        reopen(&rig, &at_once);
        ck_assert(rig_tidy_wait(&rig));
        ck_assert_uint_gt(rig_cold_stat(&rig, "reheats"), 0);
        ck_assert_uint_eq(rig_cold_stat(&rig, "records"), 0);
        rig.data.tidy = &never;
        expect_files(&rig, 0, seed % 2 == 0);
        ck_assert_uint_eq(rig_cold_stat(&rig, "lookups"), 0);
        /* it is as any range that is hot */
        change_some(&rig, 0, 2, CHANGE_DELETE, 0);
        change_some(&rig, 1, 4, CHANGE_INCR, 9);
        rig_crash(&rig, true, 2);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
        rig_end(&rig);
    }
}
END_TEST

/* The machine stops at each call that changes the directory while ranges are
 * joined, or one becomes hot, and until a manifest says so. */
static void
cut_often(bool heats)
{
    bool died = true;
    for (unsigned n = 1; died; n++) {
        struct rig rig;
        begin_ids(&rig, n, heats ? 0 : 16, &never, !heats);
        if (heats) {
            change_some(&rig, 0, 2, CHANGE_INCR, 2);
            change_some(&rig, 1, 4, CHANGE_DELETE, 0);
        }
        reopen(&rig, &at_once);
        fake_disk_die(rig.fake, n);
        died = !rig_tidy_wait(&rig);
        if (!died) {
            ck_assert_uint_gt(
                rig_cold_stat(&rig, heats ? "reheats" : "range_joins"), 0);
        }
        rig_crash(&rig, n % 2 == 0, 1 + n % 3);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
        rig_expect_all(&rig);
        rig_end(&rig);
    }
}

START_TEST(test_cut)
{
    cut_often(false);
    cut_often(true);
}
END_TEST

/* What is in memory beside a cold range, in tables that reach over both, is not
 * taken for its overlay: the last id, far from the others, has not changed. */
START_TEST(test_beside)
{
    unsigned n_left = 0;
    for (uint64_t seed = 0; seed < 2 * ID_FAMILY_COUNT; seed++) {
        struct rig rig;
        begin(&rig, seed, 0, &never);
        rig.history.n_ids--;
        change_some(&rig, 0, 1, CHANGE_INCR, 2);
        rig.history.n_ids++;
        reopen(&rig, &at_once);
        ck_assert(rig_tidy_wait(&rig));
        n_left += rig_cold_stat(&rig, "records") == 1;
        rig_end(&rig);
    }
    ck_assert_uint_gt(n_left, 0);
}
END_TEST

/* A reader that has not found a record in the engine goes on to ask whether it
 * is covered: until it has, it is. */
START_TEST(test_heat_and_readers)
{
    struct rig rig;
    struct qsbr_reader reader;
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    begin_ids(&rig, ID_SEQUENTIAL, 0, &never, false);
    change_some(&rig, 0, 2, CHANGE_INCR, 2);
    change_some(&rig, 1, 4, CHANGE_INCR, 2);
    ck_assert_uint_eq(rig_cold_stat(&rig, "segments"), 1);
    reopen(&rig, &slowly);
    reader_begin(rig.store, &reader);
    while (rig_cold_stat(&rig, "reheat_records") <
        rig_cold_stat(&rig, "records")) {
        (void)nanosleep(&pause, NULL);
    }
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_uint_eq(rig_cold_stat(&rig, "reheats"), 0);
        ck_assert_uint_gt(rig_cold_stat(&rig, "records"), 0);
        (void)nanosleep(&pause, NULL);
    }
    reader_end(rig.store, &reader);
    ck_assert(rig_tidy_wait(&rig));
    ck_assert_uint_eq(rig_cold_stat(&rig, "records"), 0);
    rig_end(&rig);
}
END_TEST

/* What becomes hot while a column comes and another one goes. */
START_TEST(test_heat_and_columns)
{
    for (uint64_t seed = 0; seed < ID_FAMILY_COUNT; seed++) {
        struct rig rig;
        begin(&rig, seed, 0, &never);
        ck_assert_int_eq(
            rig_edit(&rig, "add column a ay max=64 default=3"), 0);
        change_some(&rig, 0, 1, CHANGE_INCR, 2);
        if (seed % 2 == 0) {
            ck_assert_int_eq(rig_edit(&rig, "drop column a ax ax"), 0);
        }
        reopen(&rig, &at_once);
        ck_assert(rig_tidy_wait(&rig));
        ck_assert_uint_gt(rig_cold_stat(&rig, "reheats"), 0);
        rig.data.tidy = &never;
        expect_files(&rig, 0, seed % 2 == 0);
        rig_end(&rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_join, test_seal_between, test_merge,
        test_heat, test_beside, test_cut, test_heat_and_readers,
        test_heat_and_columns};
    return run_tests("tidier", tests, COUNT_OF(tests));
}
