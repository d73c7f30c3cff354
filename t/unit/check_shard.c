/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/shard: the semantics of each change, line by line, and threads that
 * each count in bits of their own in shared cells. Random changes are in
 * check_shard_random.c. */
#include "base/err.h"
#include "base/fold.h"
#include "engine/shard.h"

#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SLOT = 3, SMALL = 0, LARGE = 5, ID = 1234 };

/* Counter in slot 3: a column of 8 bits with default 0, one of 64 bits with
 * default 100. Serials are 10 and 11. */
static struct schema_counter
two_columns(void)
{
    struct schema_counter def = {.slot = SLOT, .serial = 1, .n_columns = 2};
    def.column[0] = (struct schema_column){
        .serial = 10, .slot = SMALL, .hint_bits = 8, .max_bits = 8};
    def.column[1] = (struct schema_column){.serial = 11,
        .slot = LARGE,
        .hint_bits = 16,
        .max_bits = 64,
        .default_value = 100};
    return def;
}

static struct shard *
make_shard(const struct schema_counter *def)
{
    struct shard *shard = shard_create(NULL, 1);
    ck_assert_ptr_nonnull(shard);
    ck_assert_int_eq(shard_define(shard, def), 0);
    return shard;
}

static struct change
one(enum change_op op, unsigned slot, uint64_t operand)
{
    return (struct change){.id = ID,
        .op = op,
        .counter = SLOT,
        .n_columns = 1,
        .column = {(uint8_t)slot},
        .serial = {slot == SMALL ? 10 : 11},
        .operand = {operand}};
}

static struct change
both(enum change_op op, uint64_t small, uint64_t large)
{
    return (struct change){.id = ID,
        .op = op,
        .counter = SLOT,
        .n_columns = 2,
        .column = {LARGE, SMALL},
        .serial = {11, 10},
        .operand = {large, small}};
}

static void
check_cells(struct shard *shard, uint64_t small, uint64_t large)
{
    static const struct cell_key key[] = {
        {.id = ID, .serial = 10, .counter = SLOT, .column = SMALL},
        {.id = ID, .serial = 11, .counter = SLOT, .column = LARGE}};
    static const uint16_t order[] = {0, 1};
    uint64_t value[2];
    uint8_t state[2];
    shard_get(shard, key, order, 2, value, state);
    ck_assert_uint_eq(value[0], small);
    ck_assert_uint_eq(value[1], large);
    ck_assert_int_eq(state[0], small == 0 ? CELL_DEFAULT : CELL_SET);
    ck_assert_int_eq(state[1], large == 100 ? CELL_DEFAULT : CELL_SET);
    bool is_record = small != 0 || large != 100;
    ck_assert_uint_eq(shard_sum(shard, SLOT).records, is_record);
    shard_verify(shard);
}

/* A script: each line does one change, expects its err, and then the cells. */
struct line {
    struct change change;
    int err;
    uint8_t n_saturated;
    uint64_t small, large;
};

static void
play(struct shard *shard, const struct line *line, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct change change = line[i].change;
        shard_change(shard, &change);
        if (change.err != line[i].err) {
            ck_abort_msg("line %zu: %s", i, err_text(change.err));
        }
        ck_assert_uint_eq(change.n_saturated, line[i].n_saturated);
        for (unsigned k = 0; change.err == 0 && k < change.n_columns; k++) {
            bool is_small = change.column[k] == SMALL;
            ck_assert_uint_eq(
                change.value[k], is_small ? line[i].small : line[i].large);
        }
        check_cells(shard, line[i].small, line[i].large);
    }
}

#define PLAY(shard, lines) play(shard, lines, sizeof(lines) / sizeof(*(lines)))

START_TEST(test_assign)
{
    struct schema_counter def = two_columns();
    struct shard *shard = make_shard(&def);
    const struct line lines[] = {
        {one(CHANGE_REPLACE, SMALL, 1), ERR_NOT_STORED, 0, 0, 100},
        {one(CHANGE_DELETE, LARGE, 0), ERR_NOT_FOUND, 0, 0, 100},
        {one(CHANGE_SET, SMALL, 256), ERR_OVER_MAX, 0, 0, 100},
        {one(CHANGE_ADD, SMALL, 255), 0, 0, 255, 100},
        {one(CHANGE_ADD, SMALL, 255), ERR_NOT_STORED, 0, 255, 100},
        {both(CHANGE_ADD, 1, 1), ERR_NOT_STORED, 0, 255, 100},
        {both(CHANGE_SET, 256, 7), ERR_OVER_MAX, 0, 255, 100},
        {both(CHANGE_REPLACE, 1, UINT64_MAX), 0, 0, 1, UINT64_MAX},
        {one(CHANGE_SET, LARGE, 0), 0, 0, 1, 0},
        {one(CHANGE_SET, LARGE, 100), 0, 0, 1, 100},
        {both(CHANGE_DELETE, 0, 0), 0, 0, 0, 100},
        {both(CHANGE_DELETE, 0, 0), ERR_NOT_FOUND, 0, 0, 100},
        {both(CHANGE_ADD, 0, 100), 0, 0, 0, 100},
        {both(CHANGE_SET, 3, 0), 0, 0, 3, 0},
        {one(CHANGE_DELETE, LARGE, 0), 0, 0, 3, 100},
    };
    PLAY(shard, lines);
    shard_destroy(&shard);
}
END_TEST

START_TEST(test_count)
{
    struct schema_counter def = two_columns();
    struct shard *shard = make_shard(&def);
    const struct line lines[] = {
        {one(CHANGE_INCR, SMALL, 0), 0, 0, 0, 100},
        {one(CHANGE_INCR, LARGE, 1), 0, 0, 0, 101},
        {one(CHANGE_DECR, LARGE, 2), 0, 0, 0, 99},
        {one(CHANGE_DECR, LARGE, UINT64_MAX), 0, 0, 0, 0},
        {both(CHANGE_INCR, 255, UINT64_MAX), 0, 0, 255, UINT64_MAX},
        {both(CHANGE_INCR, 0, 0), 0, 0, 255, UINT64_MAX},
        {both(CHANGE_INCR, 1, 1), 0, 2, 255, UINT64_MAX},
        {one(CHANGE_INCR, SMALL, UINT64_MAX), 0, 1, 255, UINT64_MAX},
        {both(CHANGE_DECR, 300, UINT64_MAX - 100), 0, 0, 0, 100},
        {one(CHANGE_DECR, SMALL, 1), 0, 0, 0, 100},
    };
    PLAY(shard, lines);
    def.overflow_is_error = true;
    ck_assert_int_eq(shard_define(shard, &def), 0);
    const struct line strict[] = {
        {both(CHANGE_INCR, 255, 1), 0, 0, 255, 101},
        {both(CHANGE_INCR, 1, 1), ERR_OVERFLOW, 0, 255, 101},
        {one(CHANGE_INCR, LARGE, UINT64_MAX), ERR_OVERFLOW, 0, 255, 101},
        {both(CHANGE_INCR, 0, 1), 0, 0, 255, 102},
    };
    PLAY(shard, strict);
    shard_destroy(&shard);
}
END_TEST

static struct change
cas(unsigned slot, uint64_t operand, uint64_t unique)
{
    struct change change = one(CHANGE_CAS, slot, operand);
    change.cas = unique;
    return change;
}

START_TEST(test_cas)
{
    struct schema_counter def = two_columns();
    struct shard *shard = make_shard(&def);
    const struct line lines[] = {
        {cas(SMALL, 5, 0), ERR_EXISTS, 0, 0, 100},
        {cas(SMALL, 256, 1), ERR_OVER_MAX, 0, 0, 100},
        {cas(SMALL, 5, 1), 0, 0, 5, 100},
        {cas(SMALL, 6, 5), ERR_EXISTS, 0, 5, 100},
        {cas(SMALL, 0, 6), 0, 0, 0, 100},
        {cas(LARGE, UINT64_MAX, 101), 0, 0, 0, UINT64_MAX},
        {cas(LARGE, 1, 0), ERR_EXISTS, 0, 0, UINT64_MAX},
        {cas(LARGE, UINT64_MAX - 1, UINT64_MAX), 0, 0, 0, UINT64_MAX - 1},
        {cas(LARGE, 100, UINT64_MAX), 0, 0, 0, 100},
    };
    PLAY(shard, lines);
    def.absent_is_miss = true;
    ck_assert_int_eq(shard_define(shard, &def), 0);
    const struct line miss[] = {
        {cas(LARGE, 1, 101), ERR_NOT_FOUND, 0, 0, 100},
        {one(CHANGE_SET, LARGE, 1), 0, 0, 0, 1},
        {cas(SMALL, 1, 1), ERR_NOT_FOUND, 0, 0, 1},
        {cas(LARGE, 2, 2), 0, 0, 0, 2},
    };
    PLAY(shard, miss);
    shard_destroy(&shard);
}
END_TEST

/* Dropping and adding again, of a column and of the counter, never brings old
 * numbers back, and what names the old serials is gone. */
START_TEST(test_drop)
{
    struct schema_counter def = two_columns();
    struct shard *shard = make_shard(&def);
    struct change change = both(CHANGE_SET, 7, 700);
    shard_change(shard, &change);
    check_cells(shard, 7, 700);
    struct schema_counter other = def;
    other.column[0].serial = 12;
    ck_assert_int_eq(shard_define(shard, &other), 0);
    change = both(CHANGE_INCR, 1, 1);
    shard_change(shard, &change);
    ck_assert_int_eq(change.err, ERR_GONE);
    change = one(CHANGE_INCR, SMALL, 1);
    change.serial[0] = 12;
    shard_change(shard, &change);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 1);
    change = one(CHANGE_INCR, LARGE, 1);
    shard_change(shard, &change);
    ck_assert_uint_eq(change.value[0], 701);
    ck_assert_int_eq(shard_define(shard, &def), 0);
    check_cells(shard, 0, 701);
    shard_undefine(shard, SLOT);
    shard_undefine(shard, SLOT);
    shard_change(shard, &change);
    ck_assert_int_eq(change.err, ERR_GONE);
    ck_assert_uint_eq(shard_sum(shard, SLOT).records, 0);
    ck_assert_uint_eq(shard_sum(shard, SLOT).bytes, 0);
    ck_assert_int_eq(shard_define(shard, &def), 0);
    check_cells(shard, 0, 100);
    shard_destroy(&shard);
}
END_TEST

/* The demo's columns on the demo's numbers stay within the bytes a record
 * that this table is meant for. */
START_TEST(test_bytes_a_record)
{
    enum { RECORDS = 100000 };
    struct schema_counter def = two_columns();
    def.column[1].default_value = 0;
    def.column[2] = (struct schema_column){
        .serial = 12, .slot = 6, .hint_bits = 16, .max_bits = 32};
    def.n_columns = 3;
    struct shard *shard = make_shard(&def);
    for (uint64_t i = 0; i < RECORDS; i++) {
        struct change change = both(CHANGE_SET, i % 9, i % 5000 + 1);
        change.id = (UINT64_C(400000000) << 22) + i * 3624;
        change.n_columns = 3;
        change.column[2] = 6;
        change.serial[2] = 12;
        change.operand[2] = i % 70;
        shard_change(shard, &change);
        ck_assert(change.err == 0);
        if (i > 100) {
            struct shard_sum sum = shard_sum(shard, SLOT);
            ck_assert(sum.records == i + 1);
            ck_assert(i < 1000 || sum.bytes < 24 * sum.records);
        }
    }
    shard_destroy(&shard);
}
END_TEST

enum {
    THREADS = 4,
    LANE_BITS = 64 / THREADS,
    SHARED = 50,  /* cells in which all threads count */
    ADDS = 40000, /* of each thread; fits a lane even in one cell */
    OWN = 3000,   /* records that one thread makes and deletes */
    DEFINES = 400
};

struct threads {
    struct shard *shard;
    _Atomic uint32_t
        serial; /* of the column in slot 9, which comes and goes */
    atomic_uint wrong;
};

struct lane {
    struct threads *threads;
    unsigned number;
    uint64_t added[SHARED]; /* by this thread */
};

static uint64_t
lane_of(uint64_t value, unsigned number)
{
    return value >> (LANE_BITS * number) & (UINT64_MAX >> (64 - LANE_BITS));
}

/* Nobody else counts in this lane, so it is exact at any time. */
static void
check_lane(struct lane *lane)
{
    struct cell_key key[SHARED];
    uint16_t order[SHARED];
    uint64_t value[SHARED];
    uint8_t state[SHARED];
    for (uint16_t i = 0; i < SHARED; i++) {
        key[i] = (struct cell_key){
            .id = i, .serial = 11, .counter = SLOT, .column = LARGE};
        order[i] = i;
    }
    shard_get(lane->threads->shard, key, order, SHARED, value, state);
    for (unsigned i = 0; i < SHARED; i++) {
        lane->threads->wrong +=
            lane_of(value[i], lane->number) != lane->added[i];
    }
}

/* One record of this thread's own comes or goes, and the column that other
 * threads drop is counted in. */
static void
churn(struct lane *lane, unsigned i)
{
    struct change change = one(CHANGE_SET, SMALL, 1 + i % 200);
    change.id = (uint64_t)(lane->number + 1) << 32 | i % OWN;
    change.op = i / OWN % 2 == 0 ? CHANGE_SET : CHANGE_DELETE;
    shard_change(lane->threads->shard, &change);
    lane->threads->wrong += change.err != 0;
    change = one(CHANGE_INCR, 9, 1);
    change.id = i % OWN;
    change.serial[0] = lane->threads->serial;
    shard_change(lane->threads->shard, &change);
    lane->threads->wrong += change.err != 0 && change.err != ERR_GONE;
}

static void *
count_in_lane(void *arg)
{
    struct lane *lane = arg;
    for (unsigned i = 0; i < ADDS; i++) {
        unsigned cell = (unsigned)(fold_id(i + lane->number) % SHARED);
        struct change change =
            one(CHANGE_INCR, LARGE, UINT64_C(1) << (LANE_BITS * lane->number));
        change.id = cell;
        shard_change(lane->threads->shard, &change);
        lane->added[cell]++;
        lane->threads->wrong += change.err != 0 ||
            lane_of(change.value[0], lane->number) != lane->added[cell];
        churn(lane, i);
        if (i % 64 == 0) {
            check_lane(lane);
        }
    }
    check_lane(lane);
    return NULL;
}

static void *
define_often(void *arg)
{
    struct threads *threads = arg;
    struct schema_counter def = two_columns();
    def.column[1].default_value = 0;
    for (unsigned i = 0; i < DEFINES; i++) {
        def.n_columns = 2 + i % 2;
        def.column[2] = (struct schema_column){
            .serial = 100 + i, .slot = 9, .hint_bits = 4, .max_bits = 20};
        threads->wrong += shard_define(threads->shard, &def) != 0;
        threads->serial = 100 + i;
        (void)shard_sum(threads->shard, SLOT);
    }
    return NULL;
}

START_TEST(test_threads)
{
    struct schema_counter def = two_columns();
    def.column[1].default_value = 0;
    struct threads threads = {.shard = make_shard(&def), .serial = 1};
    struct lane lane[THREADS] = {0};
    pthread_t thread[THREADS + 1];
    for (unsigned i = 0; i < THREADS; i++) {
        lane[i].threads = &threads;
        lane[i].number = i;
        ck_assert_int_eq(
            pthread_create(&thread[i], NULL, count_in_lane, &lane[i]), 0);
    }
    ck_assert_int_eq(
        pthread_create(&thread[THREADS], NULL, define_often, &threads), 0);
    for (unsigned i = 0; i <= THREADS; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    ck_assert(threads.wrong == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        check_lane(&lane[i]);
    }
    ck_assert(threads.wrong == 0);
    shard_verify(threads.shard);
    shard_destroy(&threads.shard);
}
END_TEST

START_TEST(test_column_twice)
{
    struct schema_counter def = two_columns();
    struct shard *shard = make_shard(&def);
    struct change change = both(CHANGE_SET, 1, 1);
    change.column[1] = change.column[0];
    change.serial[1] = change.serial[0];
    shard_change(shard, &change);
}
END_TEST

START_TEST(test_slot_twice)
{
    struct schema_counter def = two_columns();
    def.column[1].slot = def.column[0].slot;
    struct shard *shard = make_shard(&def);
    (void)shard;
}
END_TEST

static TCase *
make_aborts(void)
{
    TCase *tcase = tcase_create("aborts");
    tcase_add_test_raise_signal(tcase, test_column_twice, SIGABRT);
    tcase_add_test_raise_signal(tcase, test_slot_twice, SIGABRT);
    return tcase;
}

int
main(void)
{
    Suite *suite = suite_create("shard");
    TCase *tcase = tcase_create("shard");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, test_assign);
    tcase_add_test(tcase, test_count);
    tcase_add_test(tcase, test_cas);
    tcase_add_test(tcase, test_drop);
    tcase_add_test(tcase, test_bytes_a_record);
    tcase_add_test(tcase, test_threads);
    suite_add_tcase(suite, tcase);
    if (srunner_fork_status(sr) == CK_FORK) {
        suite_add_tcase(suite, make_aborts());
    }
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
