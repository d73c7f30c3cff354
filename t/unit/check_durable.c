/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with a directory: whatever was done, after a stop and a start all of
 * it is there, cell by cell. Crashes are in check_durable_crash.c, failures of
 * the disk in check_durable_faults.c. */
#include "unit/durable_help.h"
#include "wal/manifest.h"

#include <sched.h>
#include <stdio.h>

static const enum wal_sync modes[] = {
    WAL_SYNC_NONE, WAL_SYNC_INTERVAL, WAL_SYNC_ALWAYS};

START_TEST(test_restarts)
{
    for (unsigned seed = 1; seed <= 12; seed += SWEEP_STEP == 1 ? 1 : 2) {
        struct rig rig;
        rig_init(&rig, modes[seed % COUNT_OF(modes)],
            (enum id_family)(seed % ID_FAMILY_COUNT), seed);
        ck_assert_int_eq(rig_open(&rig), 0);
        for (unsigned round = 0; round < 6; round++) {
            (void)rig_work(&rig, 300);
            rig_expect_all(&rig);
            if (round % 3 == 2) {
                store_want_last_checkpoint(rig.store);
            }
            ck_assert_int_eq(rig_close(&rig), 0);
            rig_expect_order(&rig);
            ck_assert_int_eq(rig_open(&rig), 0);
            rig_expect_all(&rig);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

/* 16 columns of 64 bits, ids from one end to the other. */
START_TEST(test_wide)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_NONE, ID_STRAY, 3);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    for (unsigned i = 1; i < SCHEMA_COLUMNS_MAX; i++) {
        char line[RIG_LINE_BYTES];
        (void)snprintf(line, sizeof(line),
            "add column a a%u max=64 hint=64 default=%u", i, i * 1000);
        ck_assert_int_eq(rig_edit(&rig, line), 0);
    }
    for (unsigned round = 0; round < 4; round++) {
        (void)rig_work(&rig, 400);
        if (round % 2 == 0) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_expect_all(&rig);
    }
    rig_end(&rig);
}
END_TEST

static int
set_one(struct rig *rig, const char *name, size_t i, uint64_t value)
{
    uint64_t seq;
    struct cell_key key =
        cell_of(quiet_schema(rig->store), rig->history.id[i], name);
    struct change change = change_of(&key, CHANGE_SET, value);
    ck_assert(rig_change(rig, &change, 1, &seq));
    ck_assert_int_eq(rig_commit(rig, seq), STORE_COMMITTED);
    return change.err;
}

/* What a start says of the log: records that changed, and their cells. */
START_TEST(test_replay_counts)
{
    struct rig rig;
    uint64_t seq;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 2);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    ck_assert_int_eq(rig_edit(&rig, "add column a ay max=64"), 0);
    (void)rig_set_all(&rig, 'a', 5);
    const struct schema *schema = quiet_schema(rig.store);
    struct cell_key x = cell_of(schema, rig.history.id[0], "ax");
    struct cell_key y = cell_of(schema, rig.history.id[0], "ay");
    struct change change = change_of(&x, CHANGE_INCR, 1);
    change.n_columns = 2;
    change.column[1] = y.column;
    change.serial[1] = y.serial;
    change.operand[1] = 1;
    ck_assert(rig_change(&rig, &change, 1, &seq));
    ck_assert_int_eq(rig_commit(&rig, seq), STORE_COMMITTED);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_expect_all(&rig);
    ck_assert_uint_eq(rig_stat(&rig, "replayed_changes"), RIG_IDS + 1);
    ck_assert_uint_eq(rig_stat(&rig, "replayed_cells"), RIG_IDS + 2);
    ck_assert_uint_le(rig_stat(&rig, "replay_ms"), rig_stat(&rig, "load_ms"));
    rig_end(&rig);
}
END_TEST

/* How far an id may be above the largest one is not forgotten, and does not
 * keep what is there from being loaded. */
START_TEST(test_maxjump)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_SEQUENTIAL, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    ck_assert_int_eq(rig_edit(&rig, "add counter j maxjump=10"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column j jid primarykey"), 0);
    ck_assert_int_eq(rig_edit(&rig, "add column j jx max=64"), 0);
    for (size_t i = 0; i <= 50; i += 5) {
        ck_assert_int_eq(set_one(&rig, "jx", i, 1), 0);
    }
    for (unsigned round = 0; round < 6; round++) {
        size_t last = 50 + (size_t)round * 10;
        ck_assert_int_eq(set_one(&rig, "jx", last + 11, 1), ERR_JUMP);
        ck_assert_int_eq(set_one(&rig, "jx", last + 10, 1), 0);
        if (round % 2 == 1) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        rig_crash(&rig, true, 1);
    }
    rig_end(&rig);
}
END_TEST

/* Records that go leave nothing behind in older images. */
START_TEST(test_emptied)
{
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 1);
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    for (unsigned i = 0; i < 4; i++) {
        (void)rig_set_all(&rig, 'a', 1);
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        for (size_t id = 0; id < RIG_IDS; id++) {
            if (id / 60 != i) {
                (void)set_one(&rig, "ax", id, 0);
            }
        }
        if (i % 2 == 1) {
            (void)rig_set_all(&rig, 'a', 0);
        }
        ck_assert_int_eq(rig_checkpoint(&rig), 0);
        rig_crash(&rig, true, 1);
    }
    rig_end(&rig);
}
END_TEST

/* Numbers of counters and columns that were dropped never come back, whichever
 * of log and images they are in, also where names and slots are used again. */
START_TEST(test_dropped)
{
    static const char *const drops[][4] = {
        {"drop counter a a", "add counter a", "add column a aid primarykey",
            "add column a ax max=64"},
        {"drop counter a a", "add counter z", "add column z zid primarykey",
            "add column z ax max=32"},
        {"drop column a ax ax", "add column a ax max=16", NULL, NULL},
        {"drop column a ax ax", "add column a ay max=16",
            "add column a ax max=16", NULL}};
    for (unsigned i = 0; i < COUNT_OF(drops) * 16; i++) {
        struct rig rig;
        rig_init(&rig, WAL_SYNC_ALWAYS, ID_CLUSTERS, i + 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        rig_add_counter(&rig, 'a');
        (void)rig_set_all(&rig, 'a', 77);
        for (unsigned k = 0; k < 4; k++) {
            const char *line = drops[i / 16][k];
            if (k == 1 && (i & 1) != 0) {
                ck_assert_int_eq(rig_checkpoint(&rig), 0);
            }
            if (k == 1 && (i & 2) != 0) {
                rig_crash(&rig, true, 1);
            }
            if (k == 0 && (i & 4) != 0) {
                ck_assert_int_eq(rig_checkpoint(&rig), 0);
            }
            ck_assert_int_eq(line == NULL ? 0 : rig_edit(&rig, line), 0);
        }
        ck_assert_int_eq(set_one(&rig, "ax", 3, 5), 0);
        if ((i & 8) != 0) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        rig_crash(&rig, true, 1);
        rig_crash(&rig, true, 1);
        rig_end(&rig);
    }
}
END_TEST

/* More records than there is memory for. */
enum { FULL_MAX_LONG = 160000, FULL_MAX_SHORT = 80000, READ_BATCH = 50 };

static uint64_t
full_max(void)
{
    return tests_are_long() ? FULL_MAX_LONG : FULL_MAX_SHORT;
}

/* Fills the memory for counters, until it is full, or where older ones are
 * sealed until full_max() are there, however long that takes; returns how many
 * ids there are. */
static uint64_t
fill_memory(struct rig *rig)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct cell_key key = cell_of(schema, 0, "ax");
    const struct schema_counter *counter =
        schema_counter_at(schema, key.counter);
    uint64_t n = full_max();
    for (uint64_t id = 0; id < n; id++) {
        struct change change = change_of(&key, CHANGE_SET, ~id);
        change.id = id * 977;
        change.n_columns = counter->n_columns;
        for (unsigned i = 0; i < counter->n_columns; i++) {
            change.column[i] = counter->column[i].slot;
            change.serial[i] = counter->column[i].serial;
            change.operand[i] = ~id;
        }
        do {
            do_changes(rig->store, &change, 1);
        } while (change.err == ERR_HOT_FULL && rig->seals);
        if (change.err != 0) {
            EXPECT(change.err == ERR_HOT_FULL, "%s", err_text(change.err));
            return id;
        }
    }
    return n;
}

static void
expect_memory(struct rig *rig, uint64_t n)
{
    struct cell_key key = cell_of(quiet_schema(rig->store), 0, "ax");
    struct store_get get = {.n = 0};
    for (uint64_t id = 0; id < n; id++) {
        key.id = id * 977;
        get.key[get.n++] = key;
        if (get.n < READ_BATCH && id + 1 < n) {
            continue;
        }
        rig_get(rig, &get);
        for (uint32_t i = 0; i < get.n; i++) {
            EXPECT(get.value[i] == ~(get.key[i].id / 977), "a wrong number");
        }
        get.n = 0;
    }
}

static void
begin_full(struct rig *rig, bool seals_when_told)
{
    rig_init(rig, WAL_SYNC_NONE, ID_SEQUENTIAL, 1);
    rig->data.log_file_bytes = 8 << 20;
    rig->data.checkpoint_step_bytes = 0;
    rig->data.unsynced_bytes_max = 64 << 20;
    rig->data.seals_when_told = seals_when_told;
    rig->seals = !seals_when_told; /* answers may come later */
    rig->config.table_records_max = 0;
    ck_assert_int_eq(rig_open(rig), 0);
    rig_add_counter(rig, 'a');
    for (unsigned i = 1; i < SCHEMA_COLUMNS_MAX; i++) {
        char line[RIG_LINE_BYTES];
        (void)snprintf(line, sizeof(line), "add column a a%u max=64", i);
        ck_assert_int_eq(rig_edit(rig, line), 0);
    }
}

/* A start finds room for all that there was room for. */
START_TEST(test_memory_full)
{
    struct rig rig;
    begin_full(&rig, true);
    uint64_t n = fill_memory(&rig);
    ck_assert_uint_lt(n, full_max());
    for (unsigned round = 0; round < long_part(4); round++) {
        if (round == 1) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
        expect_memory(&rig, n);
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Where records are sealed, more find room than fit into memory, however large
 * they are; else this does not end. */
START_TEST(test_memory_sealed)
{
    struct rig rig;
    begin_full(&rig, false);
    uint64_t n = full_max();
    ck_assert_uint_eq(fill_memory(&rig), n);
    expect_memory(&rig, n);
    ck_assert_int_eq(rig_close(&rig), 0);
    ck_assert_int_eq(rig_open(&rig), 0);
    expect_memory(&rig, n);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* As if the last checkpoint had ended so many seconds ago. */
static void
make_older(struct rig *rig, uint64_t seconds)
{
    struct manifest manifest;
    manifest_init(&manifest);
    ck_assert_int_eq(manifest_read(rig->data.disk, &manifest, NULL), 0);
    ck_assert_uint_ge(manifest.checkpoint_time, seconds);
    manifest.checkpoint_time -= seconds;
    ck_assert_int_eq(manifest_write(rig->data.disk, &manifest, NULL, NULL), 0);
    manifest_fini(&manifest);
}

/* The time between checkpoints goes on over a restart: a server that is
 * restarted more often than that makes them all the same. */
START_TEST(test_interval_goes_on)
{
    enum { HOUR_S = 3600 };
    struct rig rig;
    uint64_t seq;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 5);
    rig.data.checkpoint_ms = UINT64_C(1000) * HOUR_S;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    ck_assert_int_eq(set_one(&rig, "ax", 0, 1), 0);
    ck_assert_int_eq(rig_checkpoint(&rig), 0);
    ck_assert_int_eq(set_one(&rig, "ax", 0, 2), 0);
    ck_assert_int_eq(rig_close(&rig), 0);
    make_older(&rig, 2 * HOUR_S);
    ck_assert_int_eq(rig_open(&rig), 0);
    seq = rig_stat(&rig, "last_seq");
    while (rig_stat(&rig, "last_checkpoint_seq") < seq) {
        sched_yield(); /* ends, or the test's time does */
    }
    ck_assert_uint_eq(rig_stat(&rig, "checkpoints"), 1);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Each start begins a log file; a server that is started again and again gets
 * rid of them. */
START_TEST(test_many_starts)
{
    enum { STARTS = 90, LENGTHS = 8, FILES_MAX = 64 + LENGTHS + 1 };
    struct rig rig;
    rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, 6);
    rig.data.checkpoint_log_bytes = LENGTHS * rig.data.log_file_bytes;
    ck_assert_int_eq(rig_open(&rig), 0);
    rig_add_counter(&rig, 'a');
    uint64_t made = rig_stat(&rig, "file");
    for (unsigned i = 0; i < STARTS; i++) {
        ck_assert_int_eq(rig_close(&rig), 0);
        ck_assert_int_eq(rig_open(&rig), 0);
    }
    ck_assert_uint_ge(rig_stat(&rig, "file"), made + STARTS);
    while (
        rig_stat(&rig, "file") - rig_stat(&rig, "first_file") >= FILES_MAX) {
        sched_yield(); /* ends, or the test's time does */
    }
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* ---- counters of pairs ---- */

enum { PAIRS = 60 };

static struct cell_key
pairs_of(struct rig *rig, const char *name)
{
    const struct schema *schema = quiet_schema(rig->store);
    struct schema_target target;
    ck_assert(schema_find(schema, name, strlen(name), &target));
    const struct schema_counter *pairs = schema_pairs(schema, target.column);
    ck_assert_ptr_nonnull(pairs);
    ck_assert_uint_eq(pairs->members_of, target.column->serial);
    return (struct cell_key){
        .serial = pairs->column[0].serial, .counter = pairs->slot};
}

static void
set_pairs(struct rig *rig, struct cell_key key, uint64_t from, uint64_t to)
{
    for (key.id = from; key.id < to; key.id++) {
        ck_assert_int_eq(change_cell(rig->store, &key, CHANGE_SET, 1), 0);
    }
}

static void
expect_pairs(struct rig *rig, struct cell_key key, enum cell_state state,
    uint64_t value)
{
    for (key.id = 0; key.id < PAIRS; key.id++) {
        expect_cell(rig->store, &key, state, value);
    }
}

static void
start_again(struct rig *rig, bool is_crash)
{
    if (is_crash) {
        rig_crash(rig, true, 1);
    } else {
        ck_assert_int_eq(rig_close(rig), 0);
        ck_assert_int_eq(rig_open(rig), 0);
    }
}

/* What a restart finds of a counter of pairs, of which nothing is stored but
 * its records: they come back with the column of members, and never without
 * it, whichever of log and images have what. */
START_TEST(test_members)
{
    static const char *const lines[] = {"add counter w cold=never",
        "add column w id primarykey", "add column w n",
        "add column w m members=exact counts=n"};
    for (unsigned i = 0; i < 16; i++) {
        struct rig rig;
        rig_init(&rig, WAL_SYNC_ALWAYS, ID_RANDOM, i + 1);
        ck_assert_int_eq(rig_open(&rig), 0);
        for (size_t k = 0; k < COUNT_OF(lines); k++) {
            ck_assert_int_eq(rig_edit(&rig, lines[k]), 0);
        }
        struct cell_key pairs = pairs_of(&rig, "m");
        set_pairs(&rig, pairs, 0, 2 * PAIRS / 3);
        if ((i & 1) != 0) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        set_pairs(&rig, pairs, PAIRS / 3, PAIRS);
        /* an edit is durable with all before it */
        ck_assert_int_eq(rig_edit(&rig, "add counter last"), 0);
        start_again(&rig, (i & 2) != 0);
        ck_assert_uint_eq(pairs_of(&rig, "m").serial, pairs.serial);
        ck_assert_uint_eq(pairs_of(&rig, "m").counter, pairs.counter);
        expect_pairs(&rig, pairs, CELL_SET, 1);
        ck_assert_int_eq(rig_edit(&rig, "drop column w m m"), 0);
        if ((i & 4) != 0) {
            ck_assert_int_eq(rig_checkpoint(&rig), 0);
        }
        if ((i & 8) != 0) {
            start_again(&rig, (i & 2) != 0);
        }
        ck_assert_uint_eq(store_sum(rig.store, pairs.counter).records, 0);
        ck_assert_int_eq(
            rig_edit(&rig, "add column w again members=exact"), 0);
        struct cell_key again = pairs_of(&rig, "again");
        ck_assert_uint_eq(again.counter, pairs.counter);
        for (unsigned turn = 0; turn < 2; turn++) {
            expect_pairs(&rig, pairs, CELL_GONE, 0);
            expect_pairs(&rig, again, CELL_DEFAULT, 0);
            start_again(&rig, (i & 2) != 0);
        }
        ck_assert_int_eq(rig_close(&rig), 0);
        rig_fini(&rig);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_restarts, test_wide, test_replay_counts,
        test_maxjump, test_emptied, test_dropped, test_memory_full,
        test_memory_sealed, test_interval_goes_on, test_many_starts,
        test_members};
    return run_tests("durable", tests, COUNT_OF(tests));
}
