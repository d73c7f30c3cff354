/* SPDX-License-Identifier: BSD-3-Clause */
/* A column, or its whole counter, is dropped in the middle of a get, at each
 * place where the engine says that it is (engine/hook.h): the get answers the
 * number that was there or that it is gone, never the default in its place.
 * What stays is not touched. And a drop does so much work for each record, not
 * more where a stash has many. */
#include "engine/hook.h"
#include "unit/engine_help.h"

enum {
    SLOT = 3,
    COLUMNS = 2, /* of which the second is dropped */
    IDS = 300,   /* in tables so small that there are several */
    TABLE_RECORDS = 64,
    PLACES_MAX = 1000
};

enum what { DROP_COLUMN, DROP_COUNTER };

/* What is to be done at the n-th place from now on. */
struct due {
    struct engine *engine;
    const struct schema_counter *left; /* NULL: the counter goes */
    unsigned n;
};

static struct due *due;
static size_t n_cleared; /* looks at records of stashes by drops */

void
engine_hook(const char *name)
{
    struct due *it = due;
    n_cleared += strcmp(name, "stash clear") == 0;
    if (it == NULL || it->n-- > 0) {
        return;
    }
    due = NULL; /* dropping calls it, too */
    if (it->left == NULL) {
        engine_undefine(it->engine, SLOT);
    } else {
        ck_assert_int_eq(engine_define(it->engine, it->left), 0);
    }
}

/* Some are too wide for a line, and so in a stash. */
static uint64_t
value_of(uint64_t id, unsigned column)
{
    return id % 16 == 0 ? UINT64_MAX - id - column : 1 + (id + column) % 9;
}

static struct engine *
make_engine(const struct schema_counter *def, struct qsbr *qsbr)
{
    struct engine_config config = {.shards = 1,
        .seed = 1,
        .hot_bytes = ROOMY_BYTES,
        .qsbr = qsbr,
        .table_records_max = TABLE_RECORDS};
    struct engine *engine = engine_of(&config);
    ck_assert_int_eq(engine_define(engine, def), 0);
    for (uint64_t id = 0; id < IDS; id++) {
        struct change change = change_of(def, CHANGE_SET, id, COLUMNS, 0);
        for (unsigned i = 0; i < COLUMNS; i++) {
            change.operand[i] = value_of(id, i);
        }
        engine_change(engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
    return engine;
}

/* Keys of n ids from `first` on: of the second column, or of both. */
static size_t
make_keys(const struct schema_counter *def, uint64_t first, unsigned n,
    bool both, struct cell_key *key)
{
    size_t n_keys = 0;
    for (uint64_t id = first; id < first + n; id++) {
        if (both) {
            key[n_keys++] = key_of(def, 0, id);
        }
        key[n_keys++] = key_of(def, 1, id);
    }
    return n_keys;
}

static void
expect_answer(
    const struct cell_key *key, enum what what, uint64_t value, uint8_t state)
{
    bool may_be_gone = key->column == 1 || what == DROP_COUNTER;
    bool is_right = state == CELL_SET
        ? value == value_of(key->id, key->column)
        : state == CELL_GONE && value == 0 && may_be_gone;
    if (!is_right) {
        ck_abort_msg("column %u of id %llu: %llu, state %d", key->column,
            (unsigned long long)key->id, (unsigned long long)value, state);
    }
}

/* One get; false where it passed fewer than n places. */
static bool
drop_at(enum what what, unsigned n, uint64_t first, unsigned n_ids, bool both)
{
    struct schema_counter def = plain_counter(SLOT, COLUMNS);
    struct schema_counter left = plain_counter(SLOT, COLUMNS - 1);
    struct qsbr qsbr;
    struct qsbr_reader reader = {0};
    qsbr_init(&qsbr);
    struct engine *engine = make_engine(&def, &qsbr);
    struct cell_key key[COLUMNS * IDS] = {{0}};
    uint64_t value[COLUMNS * IDS];
    uint8_t state[COLUMNS * IDS];
    size_t n_keys = make_keys(&def, first, n_ids, both, key);
    struct due it = {engine, what == DROP_COUNTER ? NULL : &left, n};
    qsbr_register(&qsbr, &reader);
    qsbr_online(&qsbr, &reader); /* what it reads is kept */
    due = &it;
    engine_get(engine, key, n_keys, value, state);
    bool was_done = due == NULL;
    due = NULL;
    qsbr_offline(&reader);
    qsbr_unregister(&qsbr, &reader);
    for (size_t i = 0; i < n_keys; i++) {
        expect_answer(&key[i], what, value[i], state[i]);
    }
    finish_engine(&engine);
    qsbr_fini(&qsbr);
    return was_done;
}

/* At all places of a get. */
static void
sweep(enum what what, uint64_t first, unsigned n_ids, bool both)
{
    unsigned n = 0;
    while (drop_at(what, n, first, n_ids, both)) {
        n++;
        ck_assert_uint_lt(n, PLACES_MAX);
    }
    ck_assert_uint_gt(n, 0);
}

START_TEST(test_one_record)
{
    for (int what = DROP_COLUMN; what <= DROP_COUNTER; what++) {
        for (uint64_t id = 0; id < 32; id++) {
            sweep((enum what)what, id, 1, id % 2 == 0);
        }
    }
}
END_TEST

START_TEST(test_many_records)
{
    for (int what = DROP_COLUMN; what <= DROP_COUNTER; what++) {
        sweep((enum what)what, 0, IDS, false);
        sweep((enum what)what, 0, IDS, true);
        sweep((enum what)what, 17, 40, true);
    }
}
END_TEST

/* All records of one large table are in its stash: columns are dropped until
 * none is left, and each record is looked at twice a time at most. */
START_TEST(test_work)
{
    enum { MANY = 20000, WIDE = 10 };
    struct schema_counter def = plain_counter(SLOT, WIDE);
    struct engine *engine = small_engine(1, 0);
    ck_assert_int_eq(engine_define(engine, &def), 0);
    for (uint64_t id = 0; id < MANY; id++) {
        CHECK(change_id(engine, &def, CHANGE_SET, id, WIDE, UINT64_MAX) == 0);
    }
    struct engine_sum sum = {0};
    engine_sum(engine, SLOT, -1, &sum);
    ck_assert_uint_eq(sum.tables, 1);
    ck_assert_uint_eq(sum.stash_records, MANY);
    static const unsigned left[] = {9, 4, 1, 0};
    for (size_t i = 0; i < COUNT_OF(left); i++) {
        struct schema_counter then = plain_counter(SLOT, left[i]);
        n_cleared = 0;
        ck_assert_int_eq(engine_define(engine, &then), 0);
        ck_assert_uint_ge(n_cleared, MANY);
        ck_assert_uint_le(n_cleared, 2 * (size_t)MANY);
        for (uint64_t id = 0; left[i] > 0 && id < MANY; id += 999) {
            expect_value(engine, &then, left[i] - 1, id, UINT64_MAX);
        }
    }
    struct engine_sum after = {0};
    engine_sum(engine, SLOT, -1, &after);
    ck_assert_uint_eq(after.records, 0);
    finish_engine(&engine);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_one_record, test_many_records, test_work};
    return run_tests("engine_drop", tests, COUNT_OF(tests));
}
