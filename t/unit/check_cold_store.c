/* SPDX-License-Identifier: BSD-3-Clause */
/* A store of which records are sealed, overlaid and merged all the time, while
 * cells are changed and read, the schema is edited, checkpoints are made, and
 * the machine stops. Each cell is what its history says. */
#include "base/sanitizer.h"
#include "unit/durable_help.h"

#include <stdlib.h>

/* Each test is run in each of these. */
static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

/* With a sanitizer each family of ids in one of them only. */
enum { FAMILY_STEP = SANITIZER_ADDRESS ? (int)COUNT_OF(modes) : 1 };

/* So it is in a short run. */
static uint64_t
family_step(void)
{
    return tests_are_long() ? FAMILY_STEP : COUNT_OF(modes);
}

/* The first family in mode number i. */
static uint64_t
first_family(int i)
{
    return (uint64_t)i % family_step();
}

enum { ROUNDS_FULL = 22, ROUNDS = SANITIZER_ADDRESS ? 8 : ROUNDS_FULL };

/* COLD_ROUNDS=N: so many rounds in each world. */
static unsigned
rounds_wanted(void)
{
    const char *text = getenv("COLD_ROUNDS");
    return text == NULL ? ROUNDS : (unsigned)strtoul(text, NULL, 10);
}

/* Work is always under way on ranges that are cold; here step by step, with
 * seals in between. */
static const struct seal_tidy_bounds slowly_tidy = {
    .step_records = 16, .fan_in = 2, .join_blocks = 16, .least_records = 4};

static void
begin(struct rig *rig, enum wal_sync sync, uint64_t seed)
{
    rig_init(rig, sync, (enum id_family)(seed % ID_FAMILY_COUNT), seed);
    rig->seals = true;
    rig->history.id[0] = 0;
    rig->history.id[RIG_IDS - 1] = UINT64_MAX;
    /* ranges that are cut elsewhere each time, and one that is all */
    rig->data.seal_records = seed % 4 == 0 ? 0 : 16u << seed % 4;
    rig->data.tidy = seed % 2 == 0 ? &at_once : &slowly_tidy;
    ck_assert_int_eq(rig_open(rig), 0);
}

/* What random edits change later. */
static void
add_counters(struct rig *rig)
{
    static const char *const lines[] = {"add counter c0",
        "add column c0 c0id primarykey",
        "add column c0 c0k0 max=64 hint=0 default=0 suffix=s0k0",
        "add column c0 c0k1 max=8 hint=0 default=1 suffix=s0k1",
        "add counter c1", "add column c1 c1id primarykey",
        "add column c1 c1k0 max=32 hint=0 default=0 suffix=s1k0"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        ck_assert_int_eq(rig_edit(rig, lines[i]), 0);
    }
}

/* ---- random work ---- */

/* What has been done of it. */
static const char *const tidy_names[] = {
    "range_joins", "overlay_merges", "reheats"};

struct tidy_counts {
    uint64_t n[COUNT_OF(tidy_names)];
};

static void
add_tidy_counts(struct rig *rig, struct tidy_counts *counts)
{
    for (size_t i = 0; i < COUNT_OF(tidy_names); i++) {
        counts->n[i] += rig_cold_stat(rig, tidy_names[i]);
    }
    ck_assert_uint_eq(rig_cold_stat(rig, "tidy_failures"), 0);
}

enum { WORLDS_MAX = 20 * ID_FAMILY_COUNT }; /* until each of it has been */

/* Each of it has been, or there are too few rounds for that. */
static bool
is_all_done(const struct tidy_counts *counts)
{
    for (size_t i = 0;
         rounds_wanted() >= ROUNDS_FULL && i < COUNT_OF(tidy_names); i++) {
        if (counts->n[i] == 0) {
            return false;
        }
    }
    return true;
}

/* No stops: all is read back again and again, also while a seal is under way.
 * What is tidied hangs on how threads run: so there are more worlds until all
 * of it has been. */
START_TEST(test_overlay)
{
    struct tidy_counts counts = {0};
    for (uint64_t seed = first_family(_i);
         seed < ID_FAMILY_COUNT || !is_all_done(&counts);
         seed += family_step()) {
        ck_assert_uint_lt(seed, WORLDS_MAX);
        struct rig rig;
        begin(&rig, modes[_i], seed + ID_FAMILY_COUNT * (unsigned)_i);
        add_counters(&rig);
        for (unsigned round = 0; round < rounds_wanted(); round++) {
            (void)rig_work(&rig, 150);
            if (round % 2 == 0) {
                (void)rig_seal_wait(&rig); /* may be gone */
                ck_assert(rig_tidy_wait(&rig));
            }
            rig_expect_all(&rig);
        }
        ck_assert_uint_gt(rig_cold_stat(&rig, "seals"), 0);
        add_tidy_counts(&rig, &counts);
        rig_end(&rig);
    }
}
END_TEST

static void
stop(struct rig *rig, unsigned round)
{
    switch (random_below(&rig->random, 4)) {
    case 0:
        ck_assert_int_eq(rig_close(rig), 0);
        rig_expect_order(rig);
        ck_assert_int_eq(rig_open(rig), 0);
        rig_expect_all(rig);
        break;
    case 1:
        rig_crash(rig, false, 1 + round % 3);
        break;
    default:
        rig_crash(rig, true, 1 + round % 3);
        break;
    }
}

static void
stop_often(enum wal_sync sync, uint64_t first)
{
    for (uint64_t seed = 1 + first; seed <= ID_FAMILY_COUNT;
         seed += family_step()) {
        struct rig rig;
        begin(&rig, sync, seed * 31 + (uint64_t)sync);
        add_counters(&rig);
        for (unsigned round = 0; round < rounds_wanted(); round++) {
            rig.data.seal_records = random_below(&rig.random, 150);
            (void)rig_work(&rig, (unsigned)random_below(&rig.random, 200));
            if (round % 3 == 0) {
                (void)rig_tidy_wait(&rig);
            }
            if (round % 2 != 0) {
                fake_disk_die(
                    rig.fake, 1 + (unsigned)random_below(&rig.random, 150));
                (void)rig_work(&rig, 200);
                rig_crash(
                    &rig, random_below(&rig.random, 3) > 0, 1 + round % 3);
            } else {
                stop(&rig, round);
            }
        }
        rig_end(&rig);
    }
}

START_TEST(test_stops)
{
    stop_often(modes[_i], first_family(_i));
}
END_TEST

/* ---- one thing at a time ---- */

/* A seal takes all records, wherever they lie: however few they are, not all
 * shards have some. */
START_TEST(test_seal_takes_all)
{
    for (size_t n = 1; n <= 40; n += 1 + n / 4) {
        for (uint64_t seed = first_family(_i); seed < ID_FAMILY_COUNT;
             seed += family_step()) {
            struct rig rig;
            begin(&rig, modes[_i], seed);
            rig.history.n_ids = n;
            memmove(rig.history.id, rig.history.id + RIG_IDS / 2,
                n * sizeof(uint64_t));
            rig_add_counter(&rig, 'a');
            (void)rig_set_all(&rig, 'a', 5);
            ck_assert_uint_eq(rig_n_hot(&rig), n);
            ck_assert_int_eq(rig_seal_all(&rig), 0);
            ck_assert_uint_eq(rig_n_hot(&rig), 0);
            ck_assert_uint_eq(rig_cold_stat(&rig, "seal_hot_records"), n);
            rig_crash(&rig, true, 1);
            ck_assert_uint_eq(rig_n_hot(&rig), 0);
            rig_end(&rig);
        }
    }
}
END_TEST

/* How far new ids may go follows from what is in segments, too. */
START_TEST(test_max_jump)
{
    struct rig rig;
    begin(&rig, modes[_i], 1);
    ck_assert_int_eq(rig_edit(&rig, "add counter m maxjump=1000"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column m mid primarykey"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column m mx max=64"), 0);
    struct cell_key key = cell_of(quiet_schema(rig.store), 0, "mx");
    for (key.id = 1000; key.id <= 5000; key.id += 1000) {
        ck_assert_int_eq(change_cell(rig.store, &key, CHANGE_SET, 1), 0);
    }
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    key.id = 1000;
    ck_assert_int_eq(change_cell(rig.store, &key, CHANGE_INCR, 1), 0);
    for (unsigned i = 0; i < 2; i++) { /* the first of all, one that is hot */
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        key.id = 6002 + i * 1000;
        ck_assert_int_eq(
            change_cell(rig.store, &key, CHANGE_INCR, 1), ERR_JUMP);
        key.id = 6000 + i * 1000;
        ck_assert_int_eq(change_cell(rig.store, &key, CHANGE_INCR, 1), 0);
        ck_assert_int_eq(rig_seal_all(&rig), 0);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_max_jump, test_overlay, test_stops, test_seal_takes_all};
    return run_tests_often(
        "cold store", tests, COUNT_OF(tests), COUNT_OF(modes));
}
