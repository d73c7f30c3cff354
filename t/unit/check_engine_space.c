/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine: what its records take, the budget and what happens when it is
 * used up, and the figures it gives of itself. */
#include "engine/engine_copy.h"
#include "lib/dist.h"
#include "unit/engine_help.h"

enum { SLOT = 7, BATCH = 500, SHORT_BITS = 48, WIDER_BITS = 55 };

static const struct dist POSTS = {.seed = 1};

/* Does n changes of one column by operand, ids from id_fn(context, first). */
struct fill {
    struct engine *engine;
    struct schema_counter def;
    unsigned columns;
    uint64_t bits;  /* of the values that are set */
    uint64_t limit; /* of the budget; 0: not looked at */
    uint64_t now_ms;
};

static uint64_t
fill_id(uint64_t i)
{
    return dist_id(&POSTS, i);
}

/* What id number i is set to: never 0, and of fill->bits bits. */
static uint64_t
fill_value(const struct fill *fill, uint64_t i)
{
    return (UINT64_C(1) << (fill->bits - 1)) | (i & 1);
}

static uint64_t
bytes_of(struct engine *engine)
{
    uint64_t garbage = 0;
    uint64_t bytes = engine_hot_bytes(engine, &garbage);
    CHECK(garbage <= bytes);
    return bytes;
}

static void
check_budget(const struct fill *fill)
{
    uint64_t bytes = bytes_of(fill->engine);
    if (fill->limit > 0) {
        CHECK(bytes <= fill->limit + fill->limit / 20);
    }
}

/* Changes ids first, first + step ... (n of them) by op; returns how many were
 * done. Those that were not must say ERR_HOT_FULL. */
static uint64_t
fill_some(const struct fill *fill, enum change_op op, uint64_t first,
    uint64_t step, uint64_t n)
{
    static struct change change[BATCH];
    uint64_t done = 0;
    for (uint64_t at = 0; at < n; at += BATCH) {
        unsigned m = (unsigned)(n - at < BATCH ? n - at : BATCH);
        for (unsigned k = 0; k < m; k++) {
            uint64_t i = first + (at + k) * step;
            change[k] = change_of(&fill->def, op, fill_id(i), fill->columns,
                fill_value(fill, i));
        }
        engine_change(fill->engine, change, m);
        for (unsigned k = 0; k < m; k++) {
            CHECK(change[k].err == 0 || change[k].err == ERR_HOT_FULL);
            done += change[k].err == 0;
        }
        check_budget(fill);
    }
    return done;
}

static bool
is_stored(const struct fill *fill, uint64_t i)
{
    enum { COLUMNS = SCHEMA_COLUMNS_MAX };
    struct cell_key key[COLUMNS] = {0};
    uint64_t value[COLUMNS];
    uint8_t state[COLUMNS];
    for (unsigned k = 0; k < fill->columns; k++) {
        key[k] = key_of(&fill->def, k, fill_id(i));
    }
    engine_get(fill->engine, key, fill->columns, value, state);
    for (unsigned k = 0; k < fill->columns; k++) {
        CHECK(state[k] == state[0]);
        CHECK(state[k] == CELL_DEFAULT || state[k] == CELL_SET);
        CHECK(value[k] == (state[k] == CELL_SET ? fill_value(fill, i) : 0));
    }
    return state[0] == CELL_SET;
}

static uint64_t
count_stored(const struct fill *fill, uint64_t n)
{
    uint64_t stored = 0;
    for (uint64_t i = 0; i < n; i++) {
        stored += is_stored(fill, i);
    }
    return stored;
}

/* Until nearly all of a batch were refused. Returns the number of the first id
 * that was not tried any more. */
static uint64_t
fill_up(const struct fill *fill, uint64_t first)
{
    for (uint64_t i = first;; i += BATCH) {
        if (fill_some(fill, CHANGE_SET, i, 1, BATCH) < BATCH / 10) {
            return i + BATCH;
        }
    }
}

/* short_bits: of the values in a short run, where fewer records fill the
 * budget. */
static void
fill_init(struct fill *fill, unsigned shards, unsigned short_bits)
{
    struct engine_config config = {
        .shards = shards, .seed = 3, .hot_bytes = ENGINE_HOT_BYTES_MIN};
    *fill = (struct fill){.engine = engine_of(&config),
        .def = plain_counter(SLOT, 2),
        .columns = 2,
        .bits = tests_are_long() ? 20 : short_bits,
        .limit = ENGINE_HOT_BYTES_MIN};
    ck_assert_int_eq(engine_define(fill->engine, &fill->def), 0);
}

/* Full: reads go on, and so do changes of what is there; every second record
 * deleted, and as many others find room. */
static void
budget_cycle(unsigned shards)
{
    struct fill fill;
    fill_init(&fill, shards, SHORT_BITS);
    uint64_t bits = fill.bits;
    uint64_t tried = fill_up(&fill, 0);
    uint64_t records = sum_of(fill.engine, SLOT).records;
    uint64_t bytes = bytes_of(fill.engine);
    ck_assert_uint_ge(bytes, fill.limit * 3 / 4);
    ck_assert_uint_eq(count_stored(&fill, tried), records);
    engine_verify(fill.engine);

    /* in place: the same widths */
    for (uint64_t i = 0; i < tried; i++) {
        if (is_stored(&fill, i)) {
            struct change change = change_of(&fill.def, CHANGE_REPLACE,
                fill_id(i), fill.columns, fill_value(&fill, i));
            engine_change(fill.engine, &change, 1);
            CHECK(change.err == 0);
        }
    }
    check_budget(&fill);

    /* wider, as far as it goes: nothing is lost on the way */
    fill.bits = WIDER_BITS;
    for (uint64_t i = 0; i < tried / 64; i++) {
        struct change change = change_of(&fill.def, CHANGE_REPLACE, fill_id(i),
            fill.columns, fill_value(&fill, i));
        engine_change(fill.engine, &change, 1);
        CHECK(change.err == 0 || change.err == ERR_NOT_STORED ||
            change.err == ERR_HOT_FULL);
        check_budget(&fill);
    }
    ck_assert_uint_eq(sum_of(fill.engine, SLOT).records, records);
    engine_verify(fill.engine);

    fill.bits = bits;
    for (uint64_t i = 0; i < tried; i += 2) {
        int err =
            change_id(fill.engine, &fill.def, CHANGE_DELETE, fill_id(i), 2, 0);
        CHECK(err == 0 || err == ERR_NOT_FOUND);
    }
    uint64_t left = sum_of(fill.engine, SLOT).records;
    ck_assert_uint_lt(left, records);
    tend_all(fill.engine, &fill.now_ms);
    check_budget(&fill);
    engine_verify(fill.engine);
    (void)fill_up(&fill, tried);
    uint64_t now = sum_of(fill.engine, SLOT).records;
    /* new records stop at the limit, while the wider ones may have taken the
     * reserve of 5 % above it; and new tables are not yet as full as old */
    ck_assert_uint_ge(now - left, (records - left) * 2 / 3);
    finish_engine(&fill.engine);
}

START_TEST(test_budget)
{
    budget_cycle(4);
}
END_TEST

/* With a full budget a column can still be dropped, which makes room. */
START_TEST(test_budget_drop)
{
    struct fill fill;
    fill_init(&fill, 4, SHORT_BITS);
    uint64_t tried = fill_up(&fill, 0);
    uint64_t records = sum_of(fill.engine, SLOT).records;
    fill.def.n_columns = 1;
    fill.columns = 1;
    ck_assert_int_eq(engine_define(fill.engine, &fill.def), 0);
    check_budget(&fill);
    ck_assert_uint_eq(count_stored(&fill, tried), records);
    tend_all(fill.engine, &fill.now_ms);
    (void)fill_up(&fill, tried);
    /* some 58 bits a record became some 38; in a short run, 114 and 66 */
    ck_assert_uint_ge(
        sum_of(fill.engine, SLOT).records, records + records / 3);
    engine_undefine(fill.engine, SLOT);
    tend_all(fill.engine, &fill.now_ms);
    ck_assert_uint_eq(sum_of(fill.engine, SLOT).tables, 0);
    ck_assert_uint_lt(bytes_of(fill.engine), fill.limit / 20);
    finish_engine(&fill.engine);
}
END_TEST

/* The demo's three columns with the numbers of lib/dist. */
static void
count_posts(struct engine *engine, const struct schema_counter *def,
    uint64_t first, uint64_t n)
{
    for (uint64_t i = first; i < first + n; i++) {
        uint64_t value[DIST_COLUMNS];
        struct change change =
            change_of(def, CHANGE_SET, dist_id(&POSTS, i), DIST_COLUMNS, 0);
        dist_values(&POSTS, i, DIST_COLUMNS, value);
        memcpy(change.operand, value, sizeof(value));
        engine_change(engine, &change, 1);
        CHECK(change.err == 0);
    }
}

static double
load_of(const struct engine_sum *sum)
{
    return (double)sum->used_bits / (double)sum->usable_bits;
}

/* All posts' records that differ from the default, of n posts. */
static uint64_t
count_nonzero(uint64_t n)
{
    uint64_t records = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value[DIST_COLUMNS];
        dist_values(&POSTS, i, DIST_COLUMNS, value);
        records += value[0] != 0 || value[1] != 0 || value[2] != 0;
    }
    return records;
}

/* A steady fill in the order of time keeps lines loaded, stashes small and
 * bytes few; what has stopped growing is packed. Bounds of the design, and
 * 6 bytes instead of 4.5 while there are few records. */
START_TEST(test_steady_fill)
{
    enum { STEP = 2000, POSTS_N = 200000, FROM = 40000 };
    struct schema_counter def = plain_counter(SLOT, DIST_COLUMNS);
    struct engine *engine = small_engine(1, 0);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    double loads = 0;
    unsigned n = 0;
    uint64_t now_ms = 0;
    for (uint64_t i = 0; i < POSTS_N; i += STEP) {
        count_posts(engine, &def, i, STEP);
        struct engine_sum sum = sum_of(engine, SLOT);
        ck_assert_uint_le(
            (sum.stash_records - sum.stash_wide) * 50, sum.records);
        if (i >= FROM) {
            loads += load_of(&sum);
            n++;
            ck_assert_double_lt(
                (double)sum_bytes(&sum), 6.0 * (double)sum.records);
        }
        (void)engine_tend(engine, now_ms += 10);
    }
    ck_assert_double_ge(loads / n, 0.85);
    tend_all(engine, &now_ms);
    struct engine_sum sum = sum_of(engine, SLOT);
    ck_assert_uint_eq(sum.records, count_nonzero(POSTS_N));
    ck_assert_double_ge(load_of(&sum), 0.93);
    ck_assert_double_lt((double)sum_bytes(&sum), 5.0 * (double)sum.records);
    ck_assert_uint_gt(sum.tightened, 0);
    ck_assert_uint_gt(sum.tables, 1);
    finish_engine(&engine);
}
END_TEST

/* Fills an engine with posts, takes most of them out again, and returns how
 * often tables were made anew for that. */
static uint64_t
rebuilds_of_replay(struct engine *engine, uint64_t n)
{
    struct schema_counter def = plain_counter(SLOT, DIST_COLUMNS);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    count_posts(engine, &def, 0, n);
    for (uint64_t i = 0; i < n; i++) {
        if (i % 8 != 0) {
            int err = change_id(engine, &def, CHANGE_DELETE,
                dist_id(&POSTS, i), DIST_COLUMNS, 0);
            CHECK(err == 0 || err == ERR_NOT_FOUND);
        }
    }
    engine_verify(engine);
    return sum_of(engine, SLOT).rebuilds;
}

/* While an engine loads, tables that changes fill are seldom made anew, and
 * not at all for being emptied; afterwards they are packed as any. */
START_TEST(test_replay)
{
    enum { POSTS_N = 200000 };
    struct engine *plain = small_engine(1, 8192);
    struct engine *loading = small_engine(1, 8192);
    uint64_t now_ms = 0;
    engine_begin_loading(loading);
    uint64_t few = rebuilds_of_replay(loading, POSTS_N);
    ck_assert_uint_lt(few * 20, rebuilds_of_replay(plain, POSTS_N));
    engine_end_loading(loading);
    tend_all(plain, &now_ms);
    tend_all(loading, &now_ms);
    struct engine_sum usual = sum_of(plain, SLOT);
    struct engine_sum sum = sum_of(loading, SLOT);
    ck_assert_uint_eq(sum.records, usual.records);
    ck_assert_uint_lt(sum_bytes(&sum) * 10, sum_bytes(&usual) * 11);
    finish_engine(&plain);
    finish_engine(&loading);
}
END_TEST

/* What a budget held can be replayed into it, and is within it again. */
START_TEST(test_replay_budget)
{
    struct fill fill;
    fill_init(&fill, 4, 64);
    uint64_t n = fill_up(&fill, 0) * 9 / 10;
    finish_engine(&fill.engine);
    fill_init(&fill, 4, 64);
    fill.limit = 0; /* for now */
    engine_begin_loading(fill.engine);
    ck_assert_uint_eq(fill_some(&fill, CHANGE_SET, 0, 1, n), n);
    fill.limit = ENGINE_HOT_BYTES_MIN;
    ck_assert_uint_lt(bytes_of(fill.engine), fill.limit + fill.limit / 8);
    engine_end_loading(fill.engine);
    check_budget(&fill);
    ck_assert_uint_eq(count_stored(&fill, n), n);
    finish_engine(&fill.engine);
}
END_TEST

/* More than a budget holds can be replayed into it, whatever the factor; then
 * what exists can be read and set back, and nothing new comes in until there is
 * room again. */
START_TEST(test_replay_excess)
{
    enum { TRIED = 5000 };
    unsigned times = tests_are_long() ? 4 : 3;
    struct fill fill;
    fill_init(&fill, 4, 64);
    uint64_t n = fill_up(&fill, 0) * times;
    finish_engine(&fill.engine);
    fill_init(&fill, 4, 64);
    fill.limit = 0;
    engine_begin_loading(fill.engine);
    ck_assert_uint_eq(fill_some(&fill, CHANGE_SET, 0, 1, n), n);
    engine_end_loading(fill.engine);
    ck_assert_uint_gt(bytes_of(fill.engine), 2 * ENGINE_HOT_BYTES_MIN);
    ck_assert_uint_eq(count_stored(&fill, n), n);
    uint64_t full = bytes_of(fill.engine);
    /* some find a place that is free in their table */
    ck_assert_uint_lt(fill_some(&fill, CHANGE_SET, n, 1, TRIED), TRIED);
    ck_assert_uint_le(bytes_of(fill.engine), full);
    engine_undefine(fill.engine, SLOT);
    ck_assert_int_eq(engine_define(fill.engine, &fill.def), 0);
    ck_assert_uint_eq(fill_some(&fill, CHANGE_SET, 0, 1, TRIED), TRIED);
    finish_engine(&fill.engine);
}
END_TEST

/* Emptied tables shrink, sparse neighbours are joined, and nothing is left in
 * the end. */
START_TEST(test_shrinks)
{
    enum { POSTS_N = 60000, KEPT_EACH = 50 };
    struct schema_counter def = plain_counter(SLOT, DIST_COLUMNS);
    struct engine *engine = small_engine(2, 1000);
    uint64_t now_ms = 0;
    ck_assert_int_eq(engine_define(engine, &def), 0);
    count_posts(engine, &def, 0, POSTS_N);
    tend_all(engine, &now_ms);
    struct engine_sum full = sum_of(engine, SLOT);
    for (uint64_t i = 0; i < POSTS_N; i++) {
        if (i % KEPT_EACH > 0) {
            int err = change_id(engine, &def, CHANGE_DELETE,
                dist_id(&POSTS, i), DIST_COLUMNS, 0);
            CHECK(err == 0 || err == ERR_NOT_FOUND);
        }
    }
    tend_all(engine, &now_ms);
    struct engine_sum few = sum_of(engine, SLOT);
    ck_assert_uint_gt(few.records, 0);
    ck_assert_uint_lt(few.tables * 8, full.tables);
    ck_assert_uint_lt(sum_bytes(&few) * 16, sum_bytes(&full));
    ck_assert_uint_gt(few.merges, full.merges);
    engine_verify(engine);
    for (uint64_t i = 0; i < POSTS_N; i++) {
        (void)change_id(
            engine, &def, CHANGE_DELETE, dist_id(&POSTS, i), DIST_COLUMNS, 0);
    }
    tend_all(engine, &now_ms);
    struct engine_sum none = sum_of(engine, SLOT);
    ck_assert_uint_eq(none.records, 0);
    ck_assert_uint_eq(none.used_bits, 0);
    ck_assert_uint_lt(sum_bytes(&none) * 16, sum_bytes(&full));
    finish_engine(&engine);
}
END_TEST

/* Shards' sums add up to the whole, and memory to what is used. */
START_TEST(test_sums)
{
    enum { SHARDS = 8, POSTS_N = 30000 };
    struct schema_counter def = plain_counter(SLOT, DIST_COLUMNS);
    struct engine *engine = small_engine(SHARDS, 500);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    count_posts(engine, &def, 0, POSTS_N);
    struct engine_sum all = sum_of(engine, SLOT), parts = {0}, none = {0};
    for (int s = 0; s < SHARDS; s++) {
        struct engine_sum part = {0};
        engine_sum(engine, SLOT, s, &part);
        ck_assert_uint_gt(part.records, POSTS_N / SHARDS / 4);
        engine_sum(engine, SLOT, s, &parts);
    }
    ck_assert_mem_eq(&all, &parts, sizeof(all));
    engine_sum(engine, SLOT + 1, -1, &none);
    ck_assert_uint_eq(none.tables, 0);
    ck_assert_uint_eq(none.records, 0);
    ck_assert_uint_ge(all.line_bytes, all.lines * 64);
    ck_assert_ptr_null(sum_fault(&all, count_nonzero(POSTS_N)));
    uint64_t records, size;
    engine_size(engine, SLOT, &records, &size);
    ck_assert_uint_eq(records, all.records);
    ck_assert_uint_eq(size, sum_bytes(&all));
    engine_size(engine, SLOT + 1, &records, &size);
    ck_assert_uint_eq(records + size, 0);
    uint64_t garbage = 0;
    uint64_t bytes = engine_hot_bytes(engine, &garbage);
    ck_assert_uint_ge(bytes - garbage, sum_bytes(&all));
    ck_assert_uint_le(bytes - garbage, sum_bytes(&all) * 21 / 20);
    finish_engine(&engine);
}
END_TEST

/* Surveys all shards, a table or an end a call. */
static void
survey(struct engine *engine, uint64_t width[][ENGINE_WIDTHS])
{
    enum { SHARDS = 2 };
    struct engine_sum sum = {0}, whole = {0};
    unsigned n_calls = 0;
    for (unsigned shard = 0; shard < SHARDS; shard++) {
        unsigned n_left = 1;
        size_t at = 0;
        for (; !engine_survey(engine, SLOT, shard, &at, &n_left, &sum, width);
             n_left = 1) {
            n_calls++;
            ck_assert_uint_eq(n_left, 0);
            ck_assert_uint_gt(at, 0);
        }
        ck_assert_uint_eq(at, 0);
    }
    engine_sum(engine, SLOT, -1, &whole);
    ck_assert_uint_eq(n_calls, whole.tables);
    ck_assert_mem_eq(&sum, &whole, sizeof sum);
}

/* Values of known widths, and of no others. */
START_TEST(test_widths)
{
    enum { IDS = 5000 };
    static uint64_t width[SCHEMA_COLUMNS_MAX][ENGINE_WIDTHS];
    struct schema_counter def = plain_counter(SLOT, 3);
    struct engine *engine = small_engine(2, 0);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t id = 0; id < IDS; id++) {
        struct change change = change_of(&def, CHANGE_SET, id, 3, 0);
        change.operand[0] = 16 + id % 16;
        change.operand[1] = id % 2 == 0 ? 0 : 1;
        change.operand[2] = UINT64_MAX - id;
        engine_change(engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
    survey(engine, width);
    uint64_t sampled = width[0][5];
    ck_assert_uint_gt(sampled, 0);
    ck_assert_uint_eq(width[1][0] + width[1][1], sampled);
    ck_assert_uint_gt(width[1][0], 0);
    ck_assert_uint_gt(width[1][1], 0);
    ck_assert_uint_eq(width[2][64], sampled);
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        for (unsigned bits = 0; bits < ENGINE_WIDTHS; bits++) {
            bool is_known = (i == 0 && bits == 5) || (i == 1 && bits < 2) ||
                (i == 2 && bits == 64);
            ck_assert(is_known || i > 2 || width[i][bits] == 0);
            ck_assert(i <= 2 || bits == 0 || width[i][bits] == 0);
        }
    }
    finish_engine(&engine);
}
END_TEST

/* Removals among records of two widths; returns how many tables were made anew
 * for the first of them. */
static uint64_t
rebuilds_of_removals(
    unsigned narrow, unsigned wide, uint32_t table_records_max)
{
    enum { IDS = 6000, REMOVED = 100, COLUMNS = 4 };
    struct schema_counter def = plain_counter(SLOT, COLUMNS);
    struct engine *engine = small_engine(1, table_records_max);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t id = 0; id < IDS; id++) {
        unsigned bits = id % 2 == 0 ? narrow : wide;
        uint64_t value = UINT64_C(1) << (bits - 1) | id;
        ck_assert_int_eq(
            change_id(engine, &def, CHANGE_SET, id, COLUMNS, value), 0);
    }
    struct engine_sum before = sum_of(engine, SLOT);
    for (uint64_t id = 0; id < REMOVED; id++) {
        ck_assert_int_eq(
            change_id(engine, &def, CHANGE_DELETE, id, COLUMNS, 0), 0);
    }
    struct engine_sum after = sum_of(engine, SLOT);
    ck_assert_uint_eq(after.records, IDS - REMOVED);
    ck_assert_uint_le(
        after.records, (uint64_t)after.tables * table_records_max * 3 / 2);
    finish_engine(&engine);
    return after.rebuilds - before.rebuilds;
}

/* However records fill lines, or only a stash, few removals make few tables
 * anew, and too large tables are split. */
START_TEST(test_large_records)
{
    ck_assert_uint_le(rebuilds_of_removals(34, 38, 100000), 4);
    ck_assert_uint_le(rebuilds_of_removals(13, 44, 100000), 4);
    ck_assert_uint_le(rebuilds_of_removals(44, 62, 100000), 4);
    ck_assert_uint_le(rebuilds_of_removals(62, 62, 100000), 4);
    ck_assert_uint_le(rebuilds_of_removals(62, 62, 1000), 8);
}
END_TEST

/* However few records a line has room for, tables that are packed become no
 * larger than they were; the joining of small ones may cost a little. */
START_TEST(test_packing)
{
    enum { COLUMNS = 3, IDS = 20000 };
    static const unsigned bits[] = {2, 13, 34, 44, 52, 60, 64};
    for (unsigned i = 0; i < COUNT_OF(bits); i++) {
        struct schema_counter def = plain_counter(SLOT, COLUMNS);
        struct engine *engine = small_engine(4, 512);
        uint64_t now_ms = 0, random = i + 1;
        ck_assert_int_eq(engine_define(engine, &def), 0);
        for (uint64_t id = 0; id < IDS; id++) {
            uint64_t value = UINT64_MAX >> (64 - bits[i]);
            value -= random_below(&random, value / 2);
            ck_assert_int_eq(
                change_id(engine, &def, CHANGE_SET, id, COLUMNS, value), 0);
        }
        struct engine_sum before = sum_of(engine, SLOT);
        tend_all(engine, &now_ms);
        struct engine_sum after = sum_of(engine, SLOT);
        ck_assert_uint_eq(after.records, before.records);
        ck_assert_msg(sum_bytes(&after) <= sum_bytes(&before) / 20 * 21,
            "%u bits: %lu bytes became %lu", bits[i], sum_bytes(&before),
            sum_bytes(&after));
        finish_engine(&engine);
    }
}
END_TEST

/* Ids of which half have a record: in[0..n) do, out[0..n) do not. */
enum { HALF = 30000 };
struct half {
    struct engine *engine;
    struct schema_counter def;
    uint64_t random;
    uint64_t in[HALF], out[HALF];
};

static void
half_put(struct half *half, uint64_t id)
{
    uint64_t value = 1 + random_below(&half->random, 7);
    ck_assert_int_eq(
        change_id(half->engine, &half->def, CHANGE_SET, id, 2, value), 0);
}

static void
half_fill(struct half *half)
{
    half->engine = small_engine(1, 100000);
    half->def = plain_counter(SLOT, 2);
    ck_assert_int_eq(engine_define(half->engine, &half->def), 0);
    for (uint64_t i = 0; i < HALF; i++) {
        half->in[i] = fill_id(2 * i);
        half->out[i] = fill_id(2 * i + 1);
        half_put(half, half->in[i]);
    }
}

/* One record goes and one comes, n times. */
static void
half_exchange(struct half *half, unsigned n)
{
    for (; n > 0; n--) {
        uint64_t i = random_below(&half->random, HALF);
        uint64_t j = random_below(&half->random, HALF);
        uint64_t goes = half->in[i];
        ck_assert_int_eq(
            change_id(half->engine, &half->def, CHANGE_DELETE, goes, 2, 0), 0);
        half_put(half, half->out[j]);
        half->in[i] = half->out[j];
        half->out[j] = goes;
    }
}

/* A table that was packed has little to spare while as many records come as
 * go: 92 % of it were asked for when it was made anew, and its last piece may
 * add 1 line in 20. When more come than go it is not made anew at each few. */
START_TEST(test_steady)
{
    enum { MOMENTS = 60, LOAD_LEAST = 86, REBUILDS_MAX = 8 };
    struct half *half = calloc(1, sizeof *half);
    CHECK(half != NULL);
    for (unsigned seed = 1; seed <= 2; seed++) {
        uint64_t now_ms = 0;
        half->random = seed;
        half_fill(half);
        tend_all(half->engine, &now_ms);
        half_exchange(half, HALF);
        for (unsigned i = 0; i < MOMENTS; i++) {
            half_exchange(half, HALF / MOMENTS * 2);
            struct engine_sum sum = sum_of(half->engine, SLOT);
            ck_assert_uint_eq(sum.records, HALF);
            ck_assert_msg(sum.used_bits * 100 >= sum.usable_bits * LOAD_LEAST,
                "load %.3f at moment %u",
                (double)sum.used_bits / (double)sum.usable_bits, i);
        }
        tend_all(half->engine, &now_ms);
        struct engine_sum before = sum_of(half->engine, SLOT);
        for (uint64_t i = 0; i < HALF; i++) {
            half_put(half, half->out[i]);
        }
        struct engine_sum after = sum_of(half->engine, SLOT);
        ck_assert_uint_eq(after.records, 2 * HALF);
        ck_assert_uint_le(
            after.rebuilds - before.rebuilds, REBUILDS_MAX * before.tables);
        engine_verify(half->engine);
        finish_engine(&half->engine);
    }
    free(half);
}
END_TEST

/* Where few come and go it is not made anew, and packed again, for each of
 * them, but once nothing has come for long. Two moments are longer than what
 * tending takes for standing still. */
START_TEST(test_trickle)
{
    enum {
        MOMENTS = 400,
        FEW = 25,
        MOMENT_MS = 600,
        REBUILDS_MAX = 10,
        LONG_MS = 3600000
    };
    struct half *half = calloc(1, sizeof *half);
    CHECK(half != NULL);
    uint64_t now_ms = 0;
    half->random = 7;
    half_fill(half);
    tend_all(half->engine, &now_ms);
    struct engine_sum before = sum_of(half->engine, SLOT);
    for (unsigned i = 0; i < MOMENTS; i++) {
        half_exchange(half, FEW);
        (void)engine_tend(half->engine, now_ms += MOMENT_MS);
    }
    struct engine_sum after = sum_of(half->engine, SLOT);
    ck_assert_uint_eq(after.records, HALF);
    ck_assert_uint_le(
        after.rebuilds - before.rebuilds, REBUILDS_MAX * before.tables);
    half_exchange(half, HALF);
    tend_all(half->engine, &now_ms);
    now_ms += LONG_MS;
    tend_all(half->engine, &now_ms);
    struct engine_sum rested = sum_of(half->engine, SLOT);
    ck_assert_double_ge(load_of(&rested), 0.93);
    finish_engine(&half->engine);
    free(half);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_large_records, test_budget,
        test_budget_drop, test_steady_fill, test_replay, test_replay_budget,
        test_replay_excess, test_shrinks, test_sums, test_widths, test_packing,
        test_steady, test_trickle};
    return run_tests("engine_space", tests, COUNT_OF(tests));
}
