/* SPDX-License-Identifier: BSD-3-Clause */
/* The sealer where writers are faster than it: above 90 % of the budget what
 * frees most goes first, until memory has been below that for 30 s; above 85 %
 * another thread does it; and a round ends, though more ranges cannot be read
 * than are known to be set aside. After a start with too much in memory changes
 * wait for the first round. Time stands still, but for what the test lets
 * pass; so the sealer does a round when it is called, and else none. */
#include "base/delegate.h"
#include "cold/segment_head.h"
#include "lib/fake_clock.h"
#include "tier/seal_aside.h"
#include "unit/durable_help.h"

#include <errno.h>

enum {
    CHUNK = 4096, /* records of a range, about */
    BATCH = 64,
    COLUMNS = 3,
    BLOCK_BYTES = 4096,
    RETRY_MS = 2000, /* after a failure */
    CALM_MS = 30000,
    LOG_FILE_BYTES = 1 << 24,
    FAR = 1 << 30 /* an id without neighbours */
};

#define FIRST_SEGMENT "segment-00000000000000000001.seg"

static struct fake_clock clock_of_test; /* stands */

/* ---- the other thread ---- */

static _Atomic unsigned n_errands;

void __real_delegate_do(
    struct delegate *delegate, void (*do_fn)(void *context), void *context);
void __wrap_delegate_do(
    struct delegate *delegate, void (*do_fn)(void *context), void *context);

void
__wrap_delegate_do(
    struct delegate *delegate, void (*do_fn)(void *context), void *context)
{
    /* relaxed: a number by itself */
    atomic_fetch_add_explicit(&n_errands, 1, memory_order_relaxed);
    __real_delegate_do(delegate, do_fn, context);
}

/* ---- records ---- */

/* No codec and no line makes it smaller. */
static uint64_t
number_of(uint64_t id, unsigned column)
{
    uint64_t state = id * COLUMNS + column;
    return UINT64_MAX / 2 + random_below(&state, UINT64_MAX / 2);
}

/* Sets records of counter a to their numbers, less so many bits. */
static void
set_some(struct rig *rig, uint64_t first, unsigned less)
{
    static const char *const names[COLUMNS] = {"a0", "a1", "a2"};
    struct change change[BATCH];
    const struct schema *schema = quiet_schema(rig->store);
    for (unsigned i = 0; i < BATCH; i++) {
        struct cell_key key = cell_of(schema, first + i, names[0]);
        change[i] = change_of(&key, CHANGE_SET, 0);
        change[i].n_columns = COLUMNS;
        for (unsigned k = 0; k < COLUMNS; k++) {
            key = cell_of(schema, first + i, names[k]);
            change[i].column[k] = key.column;
            change[i].serial[k] = key.serial;
            change[i].operand[k] = number_of(first + i, k) >> less;
        }
    }
    do_changes(rig->store, change, BATCH);
    for (unsigned i = 0; i < BATCH; i++) {
        EXPECT(change[i].err == 0, "id %lu: err %d", first + i, change[i].err);
    }
}

/* All records below `end` are there. */
static void
expect_all(struct rig *rig, uint64_t end)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, "a1");
    for (uint64_t id = 0; id < end; id += BATCH) {
        struct store_get get = {.n = BATCH};
        for (unsigned i = 0; i < BATCH; i++) {
            get.key[i] = key;
            get.key[i].id = id + i;
        }
        rig_get(rig, &get);
        for (unsigned i = 0; i < BATCH; i++) {
            EXPECT(get.state[i] == CELL_SET &&
                    get.value[i] == number_of(id + i, 1),
                "id %lu reads as %lu", id + i, get.value[i]);
        }
    }
}

/* ---- memory ---- */

static bool
is_above(struct rig *rig, unsigned percent)
{
    uint64_t garbage = 0;
    uint64_t used = store_hot_bytes(rig->store, &garbage);
    return used > garbage + rig->config.hot_bytes / 100 * percent;
}

/* Sets records from *end on until memory is so full. */
static void
fill(struct rig *rig, uint64_t *end, unsigned percent)
{
    while (!is_above(rig, percent)) {
        set_some(rig, *end, 0);
        *end += BATCH;
    }
}

static void
begin(struct rig *rig)
{
    rig_init(rig, WAL_SYNC_NONE, ID_SEQUENTIAL, 2);
    fake_clock_init(&clock_of_test);
    fake_clock_stand(&clock_of_test);
    rig->config.clock = &clock_of_test.clock;
    rig->seals = true;
    rig->data.seal_records = CHUNK;
    rig->data.log_file_bytes = LOG_FILE_BYTES;
    rig->data.checkpoint_step_bytes = 1 << 20;
    rig->data.checkpoint_file_bytes = 1 << 24;
    rig->config.table_records_max = 512;
    ck_assert_int_eq(rig_open(rig), 0);
    ck_assert_int_eq(edit(rig->store, "add counter a"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a aid primarykey"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a a0 max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a a1 max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add column a a2 max=64"), 0);
    ck_assert_int_eq(edit(rig->store, "add counter b"), 0);
    ck_assert_int_eq(edit(rig->store, "add column b bid primarykey"), 0);
    ck_assert_int_eq(edit(rig->store, "add column b bx max=8"), 0);
}

static void
finish(struct rig *rig)
{
    store_verify(rig->store);
    ck_assert_int_eq(rig_close(rig), 0);
    rig_fini(rig);
}

/* Returns when the sealer is between two rounds: it has heard a call. */
static void
wait_round(struct rig *rig)
{
    ck_assert(rig_seal_later(rig, 1));
    ck_assert_int_eq(rig_seal_wait(rig), 0);
}

/* ---- a round ---- */

/* What a round did. */
struct round {
    uint64_t seals, pressed;
    unsigned delegates;
};

static struct round
count(struct rig *rig)
{
    /* relaxed: a number by itself */
    return (struct round){.seals = rig_cold_stat(rig, "seals"),
        .pressed = rig_cold_stat(rig, "seals_pressed"),
        .delegates = atomic_load_explicit(&n_errands, memory_order_relaxed)};
}

/* Memory grows to so much while the sealer stands still, which a write that
 * fails makes it do; then the round that makes room again. */
static struct round
do_round(struct rig *rig, uint64_t *end, unsigned percent)
{
    uint64_t failures = rig_cold_stat(rig, "seal_failures");
    fake_disk_fail_name(rig->fake, FAKE_OPEN, ENOSPC, "segment-");
    fill(rig, end, 81);
    while (rig_cold_stat(rig, "seal_failures") == failures) {
        wait_round(rig);
    }
    wait_round(rig); /* so it knows by now when it may try again */
    fill(rig, end, percent);
    struct round before = count(rig);
    fake_clock_pass(&clock_of_test, RETRY_MS + 1);
    while (is_above(rig, 75)) {
        wait_round(rig);
    }
    wait_round(rig);
    struct round after = count(rig);
    return (struct round){.seals = after.seals - before.seals,
        .pressed = after.pressed - before.pressed,
        .delegates = after.delegates - before.delegates};
}

START_TEST(test_haste)
{
    struct rig rig;
    uint64_t end = 0;
    begin(&rig);

    struct round round = do_round(&rig, &end, 83);
    ck_assert_uint_gt(round.seals, 0);
    ck_assert_uint_eq(round.pressed, 0);
    ck_assert_uint_eq(round.delegates, 0);

    /* above 85 % the other thread, as long as it is so */
    round = do_round(&rig, &end, 88);
    ck_assert_uint_eq(round.pressed, 0);
    ck_assert_uint_gt(round.delegates, 0);
    ck_assert_uint_lt(round.delegates, round.seals);

    /* above 90 % what frees most, to the end of the round, and in the next */
    round = do_round(&rig, &end, 92);
    ck_assert_uint_gt(round.seals, 0);
    ck_assert_uint_eq(round.pressed, round.seals);
    ck_assert_uint_eq(round.delegates, round.seals);
    round = do_round(&rig, &end, 83);
    ck_assert_uint_gt(round.seals, 0);
    ck_assert_uint_eq(round.pressed, round.seals);
    ck_assert_uint_eq(round.delegates, round.seals);

    /* until it has been less for 30 s */
    fake_clock_pass(&clock_of_test, CALM_MS);
    round = do_round(&rig, &end, 83);
    ck_assert_uint_gt(round.seals, 0);
    ck_assert_uint_eq(round.pressed, 0);
    ck_assert_uint_eq(round.delegates, 0);

    expect_all(&rig, end);
    finish(&rig);
}
END_TEST

/* More ranges than are known to be set aside lie over a file that cannot be
 * read, and memory is full of them (_i is 1: so that there is haste). The round
 * ends, and calls are heard. */
START_TEST(test_all_aside)
{
    struct rig rig;
    unsigned most = _i == 0 ? 84 : 92;
    uint64_t end = 0, n = 0;
    begin(&rig);
    rig.data.seal_records = 1 << 22; /* all in one file */
    rig.data.seals_when_told = true;
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    fill(&rig, &end, 95);
    ck_assert_int_eq(rig_seal_all(&rig), 0);
    ck_assert_uint_eq(rig_cold_stat(&rig, "segments"), 1);
    uint64_t n_blocks = rig_cold_stat(&rig, "blocks");
    for (uint64_t id = 0; id < end; id += BATCH) {
        set_some(&rig, id, 32);
    }
    rig.data.seal_records = CHUNK;
    rig.data.seals_when_told = false;
    ck_assert_int_eq(rig_close(&rig), 0);
    for (uint64_t i = 0; i < n_blocks; i++) {
        fake_disk_flip(rig.fake, FIRST_SEGMENT,
            SEGMENT_HEAD_BYTES + i * BLOCK_BYTES + 50, 4);
    }
    ck_assert_int_eq(rig_open(&rig), 0);

    /* they grow, where they are in memory */
    for (uint64_t id = 0; id < end && !is_above(&rig, most); id += BATCH) {
        set_some(&rig, id, 0);
        n = id + BATCH;
    }
    ck_assert(is_above(&rig, most));
    for (uint64_t i = 1; i <= 2; i++) { /* rounds */
        while (rig_cold_stat(&rig, "seal_asides") < i * SEAL_ASIDE_MAX) {
            wait_round(&rig);
        }
        wait_round(&rig);
    }
    ck_assert_uint_eq(rig_cold_stat(&rig, "seals"), 0);
    ck_assert(is_above(&rig, 80));
    expect_all(&rig, n);
    finish(&rig);
}
END_TEST

/* What has been loaded takes more than there is to be: a new record waits for
 * the first round, which makes room for it. */
START_TEST(test_start)
{
    struct rig rig;
    struct answer answer;
    struct qsbr_reader reader;
    uint64_t end = 0;
    begin(&rig);
    uint64_t hot_bytes = rig.config.hot_bytes;
    rig.config.hot_bytes = 4 * hot_bytes;
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    fill(&rig, &end, 30);
    rig.config.hot_bytes = hot_bytes;
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert(is_above(&rig, 110));

    struct cell_key key = cell_of(quiet_schema(rig.store), FAR, "a1");
    struct change change = change_of(&key, CHANGE_SET, 1);
    struct store_change call = {.n = 1, .change = &change};
    answer_init(&answer);
    call.call = call_of(&answer);
    reader_begin(rig.store, &reader);
    ck_assert_int_eq(store_change(rig.store, &call), STORE_LATER);
    reader_end(rig.store, &reader);
    wait_round(&rig);
    answer_wait(&answer);
    answer_fini(&answer);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_gt(rig_cold_stat(&rig, "seals"), 0);
    expect_all(&rig, end);
    finish(&rig);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("sealer_haste");
    tcase_add_test(tcase, test_haste);
    tcase_add_loop_test(tcase, test_all_aside, 0, 2);
    tcase_add_test(tcase, test_start);
    return run_case("sealer_haste", tcase);
}
