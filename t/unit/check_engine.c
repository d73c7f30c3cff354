/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine: the meaning of each change and read, line by line. How it
 * holds what it is given is in check_engine_space.c, random changes in
 * check_engine_random.c, threads in check_engine_threads.c; cas uniques and
 * cells at their defaults in check_change.c. */
#include "unit/play_help.h"

START_TEST(test_assign)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
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
    PLAY(engine, lines);
    finish_engine(&engine);
}
END_TEST

START_TEST(test_count)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
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
    PLAY(engine, lines);
    def.overflow_is_error = true;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    const struct line strict[] = {
        {both(CHANGE_INCR, 255, 1), 0, 0, 255, 101},
        {both(CHANGE_INCR, 1, 1), ERR_OVERFLOW, 0, 255, 101},
        {one(CHANGE_INCR, LARGE, UINT64_MAX), ERR_OVERFLOW, 0, 255, 101},
        {both(CHANGE_INCR, 0, 1), 0, 0, 255, 102},
    };
    PLAY(engine, strict);
    finish_engine(&engine);
}
END_TEST

/* Dropping and adding again, of a column and of the counter, never brings old
 * numbers back, and what names the old serials is gone. */
START_TEST(test_drop)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    struct change change = both(CHANGE_SET, 7, 700);
    engine_change(engine, &change, 1);
    check_cells(engine, 0, 7, 700);
    struct schema_counter other = def;
    other.column[0].serial = 12;
    ck_assert_int_eq(engine_define(engine, &other), 0);
    change = both(CHANGE_INCR, 1, 1);
    engine_change(engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_GONE);
    struct cell_key key = key_of(&def, 0, 0);
    uint64_t value = 1;
    uint8_t state = 0;
    engine_get(engine, &key, 1, &value, &state);
    ck_assert_uint_eq(value, 0);
    ck_assert_int_eq(state, CELL_GONE);
    ck_assert_int_eq(change_id(engine, &other, CHANGE_INCR, 0, 1, 6), 0);
    change = one(CHANGE_INCR, SMALL, 1); /* as wide as before it */
    engine_change(engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_GONE);
    expect_value(engine, &other, 0, 0, 6);
    expect_value(engine, &other, 1, 0, 700);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    check_cells(engine, 0, 0, 700);
    engine_undefine(engine, SLOT);
    engine_undefine(engine, SLOT);
    ck_assert_int_eq(change_id(engine, &def, CHANGE_INCR, 0, 1, 1), ERR_GONE);
    engine_get(engine, &key, 1, &value, &state);
    ck_assert_int_eq(state, CELL_GONE);
    struct engine_sum sum = sum_of(engine, SLOT);
    ck_assert_uint_eq(sum.records, 0);
    ck_assert_uint_eq(sum.line_bytes + sum.stash_bytes, 0);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    check_cells(engine, 0, 0, 100);
    finish_engine(&engine);
}
END_TEST

/* Records that hold nothing but a dropped column go with it. */
START_TEST(test_drop_takes_records)
{
    enum { RECORDS = 1000 };
    struct schema_counter def = plain_counter(SLOT, 3);
    struct engine *engine = make_engine(&def);
    for (uint64_t id = 0; id < RECORDS; id++) {
        struct change change = change_of(&def, CHANGE_SET, id, 3, 0);
        change.operand[id % 3] = id + 1;
        engine_change(engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
    ck_assert_uint_eq(sum_of(engine, SLOT).records, RECORDS);
    struct schema_counter fewer = def;
    fewer.column[1] = fewer.column[--fewer.n_columns];
    ck_assert_int_eq(engine_define(engine, &fewer), 0);
    ck_assert_uint_eq(
        sum_of(engine, SLOT).records, RECORDS - (RECORDS + 1) / 3);
    engine_verify(engine);
    def.column[1].serial = 77;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t id = 0; id < RECORDS; id++) {
        for (unsigned i = 0; i < 3; i++) {
            bool is_kept = i != 1 && id % 3 == i;
            expect_value(engine, &def, i, id, is_kept ? id + 1 : 0);
        }
    }
    finish_engine(&engine);
}
END_TEST

/* All or nothing, with a fault in each of 16 columns in turn. */
START_TEST(test_all_or_nothing)
{
    enum { COLUMNS = SCHEMA_COLUMNS_MAX, ID = 5 };
    struct schema_counter def = plain_counter(SLOT, COLUMNS);
    for (unsigned i = 0; i < COLUMNS; i++) {
        def.column[i].max_bits = (uint8_t)(4 * i + 4);
        def.column[i].slot = (uint8_t)(COLUMNS - 1 - i);
    }
    def.overflow_is_error = true;
    struct engine *engine = make_engine(&def);
    ck_assert_int_eq(change_id(engine, &def, CHANGE_SET, ID, COLUMNS, 9), 0);
    for (unsigned bad = 0; bad < COLUMNS; bad++) {
        uint64_t max = schema_column_max(&def.column[bad]);
        struct change set = change_of(&def, CHANGE_SET, ID, COLUMNS, 1);
        struct change incr = change_of(&def, CHANGE_INCR, ID, COLUMNS, 1);
        struct change gone = set;
        set.operand[bad] = max + 1;
        incr.operand[bad] = max - 8;
        gone.serial[bad] = 99;
        if (max < UINT64_MAX) {
            engine_change(engine, &set, 1);
            ck_assert_int_eq(set.err, ERR_OVER_MAX);
        }
        engine_change(engine, &incr, 1);
        ck_assert_int_eq(incr.err, ERR_OVERFLOW);
        engine_change(engine, &gone, 1);
        ck_assert_int_eq(gone.err, ERR_GONE);
        for (unsigned i = 0; i < COLUMNS; i++) {
            expect_value(engine, &def, i, ID, 9);
        }
    }
    struct change most = change_of(&def, CHANGE_SET, ID, COLUMNS, 0);
    for (unsigned i = 0; i < COLUMNS; i++) {
        most.operand[i] = schema_column_max(&def.column[i]);
    }
    engine_change(engine, &most, 1);
    ck_assert_int_eq(most.err, 0);
    for (unsigned i = 0; i < COLUMNS; i++) {
        expect_value(engine, &def, i, ID, most.operand[i]);
    }
    finish_engine(&engine);
}
END_TEST

/* Defaults at all places of the range, and values near and far from them, so
 * that a code is of every width and both signs. */
START_TEST(test_defaults)
{
    static const uint64_t mean[] = {1, 2, UINT64_C(1) << 31,
        (UINT64_C(1) << 63) - 1, UINT64_C(1) << 63, UINT64_MAX - 1,
        UINT64_MAX};
    enum { N = COUNT_OF(mean) };
    struct schema_counter def = plain_counter(SLOT, N);
    for (unsigned i = 0; i < N; i++) {
        def.column[i].default_value = mean[i];
    }
    struct engine *engine = make_engine(&def);
    for (unsigned k = 0; k <= 64; k++) {
        uint64_t distance = k == 64 ? 0 : UINT64_C(1) << k;
        for (uint64_t id = 0; id < 4; id++) {
            struct change change = change_of(&def, CHANGE_SET, id, N, 0);
            for (unsigned i = 0; i < N; i++) {
                change.operand[i] = id < 2 ? mean[i] + distance - id
                                           : mean[i] - distance + id - 2;
            }
            engine_change(engine, &change, 1);
            ck_assert_int_eq(change.err, 0);
            for (unsigned i = 0; i < N; i++) {
                expect_value(engine, &def, i, id, change.operand[i]);
            }
        }
        engine_verify(engine);
    }
    for (uint64_t id = 0; id < 4; id++) {
        (void)change_id(engine, &def, CHANGE_DELETE, id, N, 0);
        for (unsigned i = 0; i < N; i++) {
            expect_value(engine, &def, i, id, mean[i]);
        }
    }
    ck_assert_uint_eq(sum_of(engine, SLOT).records, 0);
    finish_engine(&engine);
}
END_TEST

/* A column that counts from 0 over every power of two to 2^64-1, beside n - 1
 * others that stay where the last one left them. */
static void
climb(struct engine *engine, const struct schema_counter *def, unsigned i,
    uint64_t id)
{
    struct schema_counter only = *def;
    only.column[0] = def->column[i];
    for (unsigned k = 0; k < 64; k++) {
        uint64_t power = UINT64_C(1) << k;
        uint64_t step = k == 0 ? 1 : power / 2;
        ck_assert_int_eq(
            change_id(engine, &only, CHANGE_INCR, id, 1, step), 0);
        expect_value(engine, def, i, id, power);
        ck_assert_int_eq(change_id(engine, &only, CHANGE_DECR, id, 1, 1), 0);
        expect_value(engine, def, i, id, power - 1);
        ck_assert_int_eq(change_id(engine, &only, CHANGE_INCR, id, 1, 1), 0);
    }
    ck_assert_int_eq(
        change_id(engine, &only, CHANGE_INCR, id, 1, UINT64_MAX), 0);
    expect_value(engine, def, i, id, UINT64_MAX);
}

START_TEST(test_climb)
{
    static const unsigned widths[] = {1, 2, 3, 5, 16};
    enum { NEIGHBOURS = 60 };
    for (unsigned w = 0; w < COUNT_OF(widths); w++) {
        unsigned n = widths[w];
        struct schema_counter def = plain_counter(SLOT, n);
        struct engine *engine = make_engine(&def);
        for (uint64_t id = 0; id < NEIGHBOURS; id++) {
            ck_assert_int_eq(
                change_id(engine, &def, CHANGE_SET, id * 4, n, id), 0);
        }
        for (unsigned i = 0; i < n; i++) {
            struct schema_counter only = def;
            only.column[0] = def.column[i];
            (void)change_id(engine, &only, CHANGE_DELETE, 80, 1, 0);
            climb(engine, &def, i, 80);
            engine_verify(engine);
        }
        for (uint64_t id = 0; id < NEIGHBOURS; id++) {
            for (unsigned i = 0; i < n; i++) {
                expect_value(
                    engine, &def, i, id * 4, id == 20 ? UINT64_MAX : id);
            }
        }
        finish_engine(&engine);
    }
}
END_TEST

/* Changes of one id in one call are done in their order, each with its own
 * answer; other ids and another counter between them. */
START_TEST(test_batch_order)
{
    struct schema_counter def = two_columns();
    struct schema_counter other = plain_counter(255, 1);
    struct engine *engine = make_engine(&def);
    ck_assert_int_eq(engine_define(engine, &other), 0);
    struct change change[] = {
        one(CHANGE_ADD, SMALL, 5),
        change_of(&other, CHANGE_INCR, 0, 1, 3),
        one(CHANGE_ADD, SMALL, 6),
        one(CHANGE_INCR, SMALL, 1),
        one(CHANGE_INCR, SMALL, 1),
        change_of(&other, CHANGE_INCR, 9, 1, 4),
        both(CHANGE_REPLACE, 250, 1),
        one(CHANGE_INCR, SMALL, 10),
        one(CHANGE_DECR, LARGE, 2),
        cas(SMALL, 9, 255),
        cas(SMALL, 9, 256),
        one(CHANGE_SET, SMALL, 256),
        change_of(&other, CHANGE_INCR, 0, 1, 4),
        both(CHANGE_DELETE, 0, 0),
        one(CHANGE_DELETE, SMALL, 0),
        one(CHANGE_INCR, SMALL, 2),
    };
    static const int err[] = {0, 0, ERR_NOT_STORED, 0, 0, 0, 0, 0, 0,
        ERR_EXISTS, 0, ERR_OVER_MAX, 0, 0, ERR_NOT_FOUND, 0};
    static const uint64_t value[] = {
        5, 3, 0, 6, 7, 4, 1, 255, 0, 0, 9, 0, 7, 100, 0, 2};
    engine_change(engine, change, COUNT_OF(change));
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        if (change[i].err != err[i]) {
            ck_abort_msg("change %u: %s", i, err_text(change[i].err));
        }
        ck_assert_uint_eq(change[i].n_saturated, i == 7);
        if (err[i] == 0) {
            ck_assert_uint_eq(change[i].value[0], value[i]);
        }
    }
    ck_assert_uint_eq(change[6].value[1], 250);
    check_cells(engine, 0, 2, 100);
    expect_value(engine, &other, 0, 0, 7);
    expect_value(engine, &other, 0, 9, 4);
    engine_change(engine, NULL, 0);
    finish_engine(&engine);
}
END_TEST

/* One call over many ids, each many times, all mixed up. */
START_TEST(test_batch_large)
{
    enum { N = 20000, N_IDS = 700 };
    struct schema_counter def = plain_counter(SLOT, 1);
    struct engine *engine = make_engine(&def);
    struct change *change = calloc(N, sizeof(*change));
    static uint64_t want[N_IDS];
    uint64_t seed = 5;
    ck_assert_ptr_nonnull(change);
    for (unsigned i = 0; i < N; i++) {
        uint64_t id = random_below(&seed, N_IDS);
        change[i] = change_of(&def, CHANGE_INCR, id * 977, 1, 1 + i % 7);
    }
    engine_change(engine, change, N);
    for (unsigned i = 0; i < N; i++) {
        want[change[i].id / 977] += 1 + i % 7;
        ck_assert(change[i].err == 0);
        ck_assert(change[i].value[0] == want[change[i].id / 977]);
    }
    for (unsigned id = 0; id < N_IDS; id++) {
        expect_value(engine, &def, 0, id * 977, want[id]);
    }
    free(change);
    finish_engine(&engine);
}
END_TEST

/* Many cells in one read: of the same record apart and together, absent ones,
 * dropped ones, unknown counters, the same cell again. */
START_TEST(test_read_batch)
{
    enum { N = 6000, N_IDS = 500, COLUMNS = 4 };
    static struct cell_key key[N];
    static uint64_t value[N];
    static uint8_t state[N];
    struct schema_counter def = plain_counter(SLOT, COLUMNS);
    struct engine *engine = make_engine(&def);
    uint64_t seed = 6;
    for (uint64_t id = 0; id < N_IDS; id++) {
        struct change change = change_of(&def, CHANGE_SET, id * 3, COLUMNS, 0);
        for (unsigned i = 0; i < COLUMNS; i++) {
            change.operand[i] = id * COLUMNS + i + 1;
        }
        engine_change(engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
    for (unsigned i = 0; i < N; i++) {
        uint64_t id =
            i % 3 > 0 ? key[i - 1].id : random_below(&seed, 3 * N_IDS + 100);
        key[i] = key_of(&def, (unsigned)random_below(&seed, COLUMNS), id);
        key[i].serial += random_below(&seed, 9) == 0 ? COLUMNS : 0;
        key[i].counter = (uint8_t)(SLOT + (random_below(&seed, 9) == 0));
        value[i] = 12345;
        state[i] = UINT8_MAX;
    }
    engine_get(engine, key, N, value, state);
    for (unsigned i = 0; i < N; i++) {
        bool is_gone =
            key[i].serial != key[i].column + 1U || key[i].counter != SLOT;
        bool is_set = !is_gone && key[i].id % 3 == 0 && key[i].id < 3 * N_IDS;
        uint64_t want = key[i].id / 3 * COLUMNS + key[i].column + 1;
        ck_assert(state[i] ==
            (is_gone         ? CELL_GONE
                    : is_set ? CELL_SET
                             : CELL_DEFAULT));
        ck_assert(value[i] == (is_set ? want : 0));
    }
    engine_get(engine, NULL, 0, NULL, NULL);
    finish_engine(&engine);
}
END_TEST

/* Counters know nothing of each other, nor do ids of other shards. */
START_TEST(test_counters)
{
    static const unsigned shards[] = {1, 2, 16, ENGINE_SHARDS_MAX};
    enum { N_IDS = 300, COUNTERS = 3 };
    for (unsigned s = 0; s < COUNT_OF(shards); s++) {
        struct engine *engine = small_engine(shards[s], RECORDS_MAX);
        struct schema_counter def[COUNTERS];
        for (unsigned c = 0; c < COUNTERS; c++) {
            def[c] = plain_counter(c * 127, 2);
            ck_assert_int_eq(engine_define(engine, &def[c]), 0);
        }
        for (uint64_t id = 0; id < COUNTERS * N_IDS; id++) {
            ck_assert_int_eq(change_id(engine, &def[id % COUNTERS], CHANGE_SET,
                                 id / 2, 2, id + 1),
                0);
        }
        engine_undefine(engine, def[1].slot);
        for (uint64_t id = 0; id < COUNTERS * N_IDS; id++) {
            if (id % COUNTERS != 1) {
                expect_value(engine, &def[id % COUNTERS], 1, id / 2, id + 1);
            }
        }
        ck_assert_uint_eq(sum_of(engine, def[0].slot).records, N_IDS);
        ck_assert_uint_eq(sum_of(engine, def[1].slot).records, 0);
        ck_assert_uint_eq(sum_of(engine, def[2].slot).records, N_IDS);
        finish_engine(&engine);
    }
}
END_TEST

/* A column that is added touches nothing stored, reads as its default at once
 * and counts. */
START_TEST(test_add_columns)
{
    enum { COLUMNS = SCHEMA_COLUMNS_MAX, N_IDS = 400 };
    struct schema_counter def = plain_counter(SLOT, COLUMNS);
    struct engine *engine = make_engine(&def);
    engine_undefine(engine, SLOT);
    for (unsigned n = 1; n <= COLUMNS; n++) {
        def.n_columns = (uint8_t)n;
        def.column[n - 1].default_value = n % 3 * 1000;
        ck_assert_int_eq(engine_define(engine, &def), 0);
        expect_value(engine, &def, n - 1, 7, n % 3 * 1000);
        struct schema_counter only = def;
        only.column[0] = def.column[n - 1];
        for (uint64_t id = n % 2; id < N_IDS; id += 2) {
            ck_assert_int_eq(
                change_id(engine, &only, CHANGE_INCR, id, 1, id), 0);
        }
        engine_verify(engine);
    }
    for (uint64_t id = 0; id < N_IDS; id++) {
        for (unsigned i = 0; i < COLUMNS; i++) {
            uint64_t counted = (i + 1) % 2 == id % 2 ? id : 0;
            expect_value(
                engine, &def, i, id, def.column[i].default_value + counted);
        }
    }
    finish_engine(&engine);
}
END_TEST

static int
jump_to(struct engine *engine, const struct schema_counter *def, uint64_t id)
{
    int err = change_id(engine, def, CHANGE_INCR, id, 1, 1);
    expect_value(engine, def, 0, id, err == 0);
    return err;
}

START_TEST(test_max_jump)
{
    static const unsigned shards[] = {1, 16};
    for (unsigned s = 0; s < COUNT_OF(shards); s++) {
        struct schema_counter def = plain_counter(SLOT, 2);
        struct engine *engine = small_engine(shards[s], RECORDS_MAX);
        def.max_jump = 1000;
        ck_assert_int_eq(engine_define(engine, &def), 0);
        uint64_t first = UINT64_C(1) << 60;
        ck_assert_int_eq(jump_to(engine, &def, first), 0);
        ck_assert_int_eq(jump_to(engine, &def, first + 1001), ERR_JUMP);
        ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX), ERR_JUMP);
        ck_assert_int_eq(jump_to(engine, &def, first + 1000), 0);
        ck_assert_int_eq(jump_to(engine, &def, first + 2001), ERR_JUMP);
        ck_assert_int_eq(jump_to(engine, &def, 0), 0);
        ck_assert_int_eq(jump_to(engine, &def, first + 2000), 0);
        ck_assert_uint_eq(sum_of(engine, SLOT).records, 4);
        /* what has been counts, also when it is gone */
        ck_assert_int_eq(
            change_id(engine, &def, CHANGE_DELETE, first + 2000, 1, 0), 0);
        ck_assert_int_eq(jump_to(engine, &def, first + 3000), 0);
        /* a drop and a new counter begin anew */
        engine_undefine(engine, SLOT);
        ck_assert_int_eq(engine_define(engine, &def), 0);
        ck_assert_int_eq(jump_to(engine, &def, 5), 0);
        ck_assert_int_eq(jump_to(engine, &def, 1006), ERR_JUMP);
        ck_assert_int_eq(jump_to(engine, &def, 1005), 0);
        ck_assert_int_eq(jump_to(engine, &def, 1), 0);
        finish_engine(&engine);
    }
}
END_TEST

enum { JUMP_BATCH = 201 };

/* Adds 1 to a cell of each of these ids, in one call; how many are refused. */
static unsigned
jump_through(struct engine *engine, const struct schema_counter *def,
    const uint64_t *id, unsigned n, const int *err)
{
    struct change change[JUMP_BATCH];
    unsigned n_refused = 0;
    ck_assert_uint_le(n, JUMP_BATCH);
    for (unsigned i = 0; i < n; i++) {
        change[i] = change_of(def, CHANGE_INCR, id[i], 1, 1);
    }
    engine_change(engine, change, n);
    for (unsigned i = 0; i < n; i++) {
        ck_assert_int_eq(change[i].err, err == NULL ? 0 : err[i]);
        expect_value(engine, def, 0, id[i], change[i].err == 0);
        n_refused += change[i].err != 0;
    }
    return n_refused;
}

/* Ids of one batch are judged in its order, whichever shards they are of: one
 * that is refused is not measured by what comes behind it, and one that may
 * come is measured by what came before. */
START_TEST(test_jump_batch)
{
    static const unsigned shards[] = {1, 2, 16, 128};
    static const uint64_t stray[] = {
        5000, 6001, 6000, 7000, 8001, 1, 8000, UINT64_MAX, 9000};
    static const int stray_err[] = {
        0, ERR_JUMP, 0, 0, ERR_JUMP, 0, 0, ERR_JUMP, 0};
    for (unsigned s = 0; s < COUNT_OF(shards); s++) {
        struct schema_counter def = plain_counter(SLOT, 2);
        struct engine *engine = small_engine(shards[s], RECORDS_MAX);
        uint64_t id[JUMP_BATCH];
        def.max_jump = 1000;
        ck_assert_int_eq(engine_define(engine, &def), 0);
        for (unsigned i = 0; i < JUMP_BATCH; i++) {
            id[i] = 100 * i;
        }
        ck_assert_uint_eq(jump_through(engine, &def, id, JUMP_BATCH, NULL), 0);
        engine_undefine(engine, SLOT);
        ck_assert_int_eq(engine_define(engine, &def), 0);
        for (unsigned i = 0; i < JUMP_BATCH; i++) { /* the highest first */
            id[i] = 1000000000 - 5000 * i;
        }
        ck_assert_uint_eq(jump_through(engine, &def, id, JUMP_BATCH, NULL), 0);
        engine_undefine(engine, SLOT);
        ck_assert_int_eq(engine_define(engine, &def), 0);
        ck_assert_uint_eq(
            jump_through(engine, &def, stray, COUNT_OF(stray), stray_err), 3);
        ck_assert_uint_eq(sum_of(engine, SLOT).records, 6);
        finish_engine(&engine);
    }
}
END_TEST

/* Another counter without a maxjump is in the same batch; and what makes no
 * record neither jumps nor is measured by. */
START_TEST(test_jump_beside)
{
    struct schema_counter def = plain_counter(SLOT, 1);
    struct schema_counter open = plain_counter(SLOT + 1, 1);
    struct engine *engine = small_engine(16, RECORDS_MAX);
    def.max_jump = 10;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    ck_assert_int_eq(engine_define(engine, &open), 0);
    struct change change[] = {
        change_of(&def, CHANGE_INCR, 100, 1, 1),
        change_of(&open, CHANGE_INCR, 5000, 1, 1),
        change_of(&def, CHANGE_SET, 110, 1, 0), /* no record */
        change_of(&def, CHANGE_REPLACE, 5000, 1, 1),
        change_of(&def, CHANGE_DELETE, 5000, 1, 0),
        change_of(&def, CHANGE_INCR, 111, 1, 1),
        change_of(&open, CHANGE_INCR, 1, 1, 1),
        change_of(&def, CHANGE_INCR, 110, 1, 1),
        change_of(&def, CHANGE_INCR, 111, 1, 1),
        change_of(&def, CHANGE_INCR, 111, 1, 1),
    };
    static const int err[] = {
        0, 0, 0, ERR_NOT_STORED, ERR_NOT_FOUND, ERR_JUMP, 0, 0, 0, 0};
    engine_change(engine, change, COUNT_OF(change));
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        ck_assert_int_eq(change[i].err, err[i]);
    }
    expect_value(engine, &def, 0, 111, 2);
    engine_undefine(engine, SLOT);
    ck_assert_int_eq(jump_to(engine, &open, UINT64_MAX), 0);
    finish_engine(&engine);
}
END_TEST

/* Near 2^64 there is nothing to overflow into, and without maxjump any id
 * will do. */
START_TEST(test_jump_borders)
{
    struct schema_counter def = plain_counter(SLOT, 1);
    struct engine *engine = make_engine(&def);
    ck_assert_int_eq(jump_to(engine, &def, 1), 0);
    ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX), 0);
    engine_undefine(engine, SLOT);
    def.max_jump = UINT64_MAX;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    ck_assert_int_eq(jump_to(engine, &def, 0), 0);
    ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX), 0);
    engine_undefine(engine, SLOT);
    def.max_jump = 2;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX - 4), 0);
    ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX - 1), ERR_JUMP);
    ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX - 2), 0);
    ck_assert_int_eq(jump_to(engine, &def, UINT64_MAX), 0);
    finish_engine(&engine);
}
END_TEST

static void
change_column_twice(void)
{
    struct schema_counter def = two_columns();
    struct engine *engine = make_engine(&def);
    struct change change = both(CHANGE_SET, 1, 1);
    change.column[1] = change.column[0];
    change.serial[1] = change.serial[0];
    engine_change(engine, &change, 1);
}

static void
define_slot_twice(void)
{
    struct schema_counter def = two_columns();
    def.column[1].slot = def.column[0].slot;
    (void)make_engine(&def);
}

START_TEST(test_misuse_aborts)
{
    expect_abort(change_column_twice);
    expect_abort(define_slot_twice);
}
END_TEST

START_TEST(test_destroy_null)
{
    struct engine *engine = NULL;
    engine_destroy(&engine);
    engine = small_engine(1, 0);
    finish_engine(&engine);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_assign, test_count, test_drop,
        test_drop_takes_records, test_all_or_nothing, test_defaults,
        test_climb, test_batch_order, test_batch_large, test_read_batch,
        test_counters, test_add_columns, test_max_jump, test_jump_batch,
        test_jump_beside, test_jump_borders, test_misuse_aborts,
        test_destroy_null};
    return run_tests("engine", tests, COUNT_OF(tests));
}
