/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/cover: changes of records that are elsewhere, looks, and tombstones,
 * each rule by itself. Those of evictions are in check_cover_evict.c. */
#include "engine/marks.h"
#include "unit/cover_help.h"

/* The sink was told last of all columns of id, and of nothing else since
 * `before` entries. */
static void
expect_told_whole(struct rig *rig, size_t before, uint64_t id, uint64_t a,
    uint64_t b, uint64_t c)
{
    ck_assert_uint_eq(rig->journal.n, before + 1);
    const struct engine_write *write = &rig->journal.entry[before].write;
    const uint64_t value[COLUMNS] = {a, b, c};
    ck_assert_uint_eq(write->id, id);
    ck_assert_uint_eq(write->n, COLUMNS);
    for (unsigned k = 0; k < COLUMNS; k++) {
        ck_assert_uint_eq(write->serial[k], k + 1);
        ck_assert_uint_eq(write->value[k], value[k]);
    }
}

/* Without the record nothing is done, whatever is asked. */
START_TEST(test_cold)
{
    struct rig rig;
    rig_init(&rig);
    cover(&rig, 10, 19, VERSION);
    for (int op = CHANGE_SET; op <= CHANGE_DELETE; op++) {
        ck_assert_int_eq(
            change_with(&rig, (enum change_op)op, 10, 1, 1, NULL), ERR_COLD);
        ck_assert_int_eq(change_with(&rig, (enum change_op)op, 19, 1, 1,
                             base_of(&rig, VERSION - 1, true)),
            ERR_COLD);
    }
    ck_assert_uint_eq(rig.journal.calls, 0);
    ck_assert_uint_eq(records(&rig), 0);
    expect_absent(&rig, 10, VERSION);
    expect_absent(&rig, 19, VERSION);
    /* outside nothing is special, and a base is not looked at */
    ck_assert_int_eq(
        change_with(&rig, CHANGE_INCR, 9, 1, 1, base_of(&rig, VERSION, true)),
        0);
    set(&rig, 20, 1);
    expect_here(&rig, 9, 1, 0, 5);
    expect_absent(&rig, 8, 0);
    expect_absent(&rig, 21, 0);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_base)
{
    struct rig rig;
    rig_init(&rig);
    rig.def.column[0].max_bits = 4;
    rig_define(&rig);
    cover(&rig, 0, 99, VERSION);
    const struct engine_base *there = base_of(&rig, VERSION, true);
    struct engine_base not_there = {.version = VERSION};
    /* the record of the segment counts */
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 1, 2, 1, there), 0);
    expect_here(&rig, 1, 11, 21, 30);
    expect_told_whole(&rig, 0, 1, 11, 21, 30);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_ADD, 2, 1, 1, there), ERR_NOT_STORED);
    ck_assert_int_eq(change_with(&rig, CHANGE_ADD, 2, 1, 1, &not_there), 0);
    expect_told_whole(&rig, 1, 2, 1, 0, 5);
    ck_assert_int_eq(change_with(&rig, CHANGE_REPLACE, 3, 1, 1, &not_there),
        ERR_NOT_STORED);
    ck_assert_int_eq(change_with(&rig, CHANGE_REPLACE, 3, 1, 1, there), 0);
    expect_told_whole(&rig, 2, 3, 1, 20, 30);
    struct change cas = change_of(&rig.def, CHANGE_CAS, 4, 1, 2);
    struct engine_base of_id = *there;
    of_id.id = 4;
    cas.cas = 10;
    cas.base = &of_id;
    engine_change(rig.engine, &cas, 1);
    ck_assert_int_eq(cas.err, ERR_EXISTS);
    cas.cas = 11;
    engine_change(rig.engine, &cas, 1);
    ck_assert_int_eq(cas.err, 0);
    expect_told_whole(&rig, 3, 4, 2, 20, 30);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_SET, 5, 1, 16, there), ERR_OVER_MAX);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_DELETE, 5, 1, 0, &not_there), ERR_NOT_FOUND);
    expect_absent(&rig, 5, VERSION);
    /* saturates from there */
    struct change incr = change_of(&rig.def, CHANGE_INCR, 6, 1, 100);
    of_id.id = 6;
    incr.base = &of_id;
    engine_change(rig.engine, &incr, 1);
    ck_assert_uint_eq(incr.n_saturated, 1);
    ck_assert_uint_eq(incr.value[0], 15);
    /* from now on it is here, and needs no base; told of what differs */
    size_t before = rig.journal.n;
    ck_assert_int_eq(change_with(&rig, CHANGE_DECR, 6, 1, 1, NULL), 0);
    ck_assert_uint_eq(rig.journal.entry[before].write.n, 1);
    expect_here(&rig, 6, 14, 20, 30);
    ck_assert_uint_eq(records(&rig), 5);
    rig_fini(&rig);
}
END_TEST

/* What changes nothing makes no record, and is answered. */
START_TEST(test_base_unchanged)
{
    struct rig rig;
    rig_init(&rig);
    cover(&rig, 0, 99, VERSION);
    struct engine_base not_there = {.version = VERSION};
    const struct engine_base *there = base_of(&rig, VERSION, true);
    ck_assert_int_eq(change_with(&rig, CHANGE_SET, 1, 1, 10, there), 0);
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 1, 2, 0, there), 0);
    ck_assert_int_eq(change_with(&rig, CHANGE_SET, 1, 2, 0, &not_there), 0);
    ck_assert_uint_eq(rig.journal.n, 0);
    ck_assert_uint_eq(rig.journal.empty_calls, 3);
    ck_assert_uint_eq(records(&rig), 0);
    expect_absent(&rig, 1, VERSION);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_batch)
{
    struct rig rig;
    struct change change[4];
    rig_init(&rig);
    cover(&rig, 0, 99, VERSION);
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        change[i] = change_of(&rig.def, CHANGE_INCR, 1, 1, i + 1);
    }
    change[2].id = 100; /* not covered */
    engine_change(rig.engine, change, 4);
    ck_assert_int_eq(change[0].err, ERR_COLD);
    ck_assert_int_eq(change[1].err, ERR_COLD);
    ck_assert_int_eq(change[2].err, 0);
    ck_assert_int_eq(change[3].err, ERR_COLD);
    expect_absent(&rig, 1, VERSION);
    /* that of another id is none */
    change[0].base = base_of(&rig, VERSION - 1, true);
    struct engine_base base = *base_of(&rig, VERSION, true);
    base.id = 2;
    change[3].base = &base;
    engine_change(rig.engine, change, 4);
    ck_assert_int_eq(change[0].err, ERR_COLD);
    ck_assert_int_eq(change[3].err, ERR_COLD);
    expect_absent(&rig, 1, VERSION);
    /* the last one brings it for all */
    base.id = rig.base.id = 1;
    engine_change(rig.engine, change, 4);
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        ck_assert_int_eq(change[i].err, 0);
    }
    ck_assert_uint_eq(change[0].value[0], 11);
    ck_assert_uint_eq(change[3].value[0], 17);
    expect_here(&rig, 1, 17, 20, 30);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_jump)
{
    struct rig rig;
    rig_init(&rig);
    rig.def.max_jump = 10;
    rig_define(&rig);
    set(&rig, 1, 1);
    cover(&rig, 50, 59, VERSION);
    struct engine_base not_there = {.version = VERSION};
    ck_assert_int_eq(
        change_with(&rig, CHANGE_INCR, 50, 1, 1, &not_there), ERR_JUMP);
    engine_raise(rig.engine, SLOT, 50); /* it has a record there */
    ck_assert_int_eq(
        change_with(&rig, CHANGE_INCR, 50, 1, 1, base_of(&rig, VERSION, true)),
        0);
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 59, 1, 1, &not_there), 0);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_INCR, 100, 1, 1, NULL), ERR_JUMP);
    /* one that has to be looked for elsewhere first has its place in the
     * order all the same */
    cover(&rig, 69, 69, VERSION);
    struct change change[] = {change_of(&rig.def, CHANGE_INCR, 69, 1, 1),
        change_of(&rig.def, CHANGE_INCR, 79, 1, 1),
        change_of(&rig.def, CHANGE_INCR, 90, 1, 1)};
    engine_change(rig.engine, change, 3);
    ck_assert_int_eq(change[0].err, ERR_COLD);
    ck_assert_int_eq(change[1].err, 0);
    ck_assert_int_eq(change[2].err, ERR_JUMP);
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 69, 1, 1, &not_there), 0);
    engine_raise(rig.engine, SLOT, 90);
    engine_raise(rig.engine, SLOT + 1, 90); /* no such counter */
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 100, 1, 1, NULL), 0);
    rig_fini(&rig);
}
END_TEST

/* Of columns that are not there, and of no counter. */
START_TEST(test_look_gone)
{
    struct rig rig;
    struct engine_found found;
    uint64_t value[3];
    uint8_t state[3];
    rig_init(&rig);
    set(&rig, 3, 9);
    struct cell_key key[3] = {key_of(&rig.def, 0, 3), key_of(&rig.def, 1, 3),
        key_of(&rig.def, 1, 3)};
    key[1].serial = 99;
    key[2].serial = 0;
    engine_look(rig.engine, key, 3, value, state, &found);
    ck_assert(found.is_here);
    ck_assert(state[0] == CELL_SET && value[0] == 9);
    ck_assert(state[1] == CELL_GONE && value[1] == 0);
    ck_assert(state[2] == CELL_GONE && value[2] == 0);
    engine_undefine(rig.engine, SLOT);
    engine_look(rig.engine, key, 1, value, state, &found);
    ck_assert(!found.is_here && found.version == 0 && state[0] == CELL_GONE);
    key[0].counter = SLOT + 1;
    engine_look(rig.engine, key, 1, value, state, &found);
    ck_assert(!found.is_here && found.version == 0 && state[0] == CELL_GONE);
    rig_fini(&rig);
}
END_TEST

/* Records that become empty: kept where something covers them. */
START_TEST(test_tombstone)
{
    struct rig rig;
    rig_init(&rig);
    cover(&rig, 10, 19, VERSION);
    const struct engine_base *there = base_of(&rig, VERSION, true);
    set(&rig, 9, 1);
    ck_assert_int_eq(
        change_id(rig.engine, &rig.def, CHANGE_DELETE, 9, 3, 0), 0);
    expect_absent(&rig, 9, 0);
    size_t before = rig.journal.n;
    ck_assert_int_eq(
        change_with(&rig, CHANGE_DELETE, 10, COLUMNS, 0, there), 0);
    expect_told_whole(&rig, before, 10, 0, 0, 5);
    expect_here(&rig, 10, 0, 0, 5);
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 11, 1, 1, there), 0);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_DELETE, 11, COLUMNS, 0, NULL), 0);
    expect_here(&rig, 11, 0, 0, 5);
    ck_assert_uint_eq(records(&rig), 2);
    /* a tombstone is a default as any */
    ck_assert_int_eq(
        change_with(&rig, CHANGE_DELETE, 11, 1, 0, NULL), ERR_NOT_FOUND);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_REPLACE, 11, 1, 0, NULL), ERR_NOT_STORED);
    ck_assert_int_eq(change_with(&rig, CHANGE_ADD, 11, 1, 3, NULL), 0);
    expect_here(&rig, 11, 3, 0, 5);
    engine_verify(rig.engine);
    /* one that nothing covers any more goes when it is touched */
    cover(&rig, 0, 0, 0);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_DELETE, 11, COLUMNS, 0, NULL), 0);
    expect_absent(&rig, 11, 0);
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 10, 1, 1, NULL), 0);
    ck_assert_int_eq(change_with(&rig, CHANGE_DECR, 10, 1, 1, NULL), 0);
    expect_absent(&rig, 10, 0);
    ck_assert_uint_eq(records(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Many of them, alone and between records: through growth, splits, joins,
 * packing, drops, copies and loading; wide ones go to stashes first. */
static void
bury_many(struct rig *rig, bool is_wide)
{
    cover(rig, 0, 10 * MANY, VERSION);
    const struct engine_base *there = base_of(rig, VERSION, true);
    for (uint64_t id = 0; id < MANY; id++) {
        uint64_t value = is_wide && id % 2 == 0 ? UINT64_MAX : 1;
        ck_assert_int_eq(change_with(rig, CHANGE_SET, 3 * id,
                             id % 5 == 4 ? COLUMNS : 1, value, there),
            0);
    }
    for (uint64_t id = 0; id < MANY; id++) {
        if (id % 4 != 0) {
            ck_assert_int_eq(
                change_with(rig, CHANGE_DELETE, 3 * id, COLUMNS, 0, NULL), 0);
        }
    }
}

static void
expect_many(struct rig *rig, bool is_wide)
{
    for (uint64_t id = 0; id < MANY; id++) {
        uint64_t value = is_wide && id % 2 == 0 ? UINT64_MAX : 1;
        if (id % 4 != 0) {
            expect_here(rig, 3 * id, 0, 0, 5);
        } else if (id % 5 == 4) {
            expect_here(rig, 3 * id, value, value, value);
        } else {
            expect_here(rig, 3 * id, value, 20, 30);
        }
        expect_absent(rig, 3 * id + 1, rig->version);
    }
    ck_assert_uint_eq(records(rig), MANY);
    engine_verify(rig->engine);
}

START_TEST(test_tombstones_stay)
{
    struct rig rig;
    bool is_wide = _i == 1;
    uint64_t now_ms = 0;
    rig_init(&rig);
    bury_many(&rig, is_wide);
    expect_many(&rig, is_wide);
    tend_all(rig.engine, &now_ms);
    expect_many(&rig, is_wide);
    ck_assert_uint_gt(sum_of(rig.engine, SLOT).splits, 0);
    /* a column comes and goes, and records with it */
    ck_assert_uint_eq(rig.def.n_columns, COLUMNS);
    rig.def.column[3] = (struct schema_column){
        .serial = 4, .slot = 3, .hint_bits = 4, .max_bits = 64};
    rig.def.n_columns = 4;
    rig_define(&rig);
    struct change change = {.op = CHANGE_SET,
        .counter = SLOT,
        .n_columns = 1,
        .column = {3},
        .serial = {4},
        .operand = {1000}};
    for (uint64_t id = 0; id < MANY; id += 2) {
        change.id = 3 * id;
        engine_change(rig.engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
    rig.def.n_columns = COLUMNS;
    rig_define(&rig);
    expect_many(&rig, is_wide);
    tend_all(rig.engine, &now_ms);
    /* and once nothing covers them, tables that are made have none */
    cover(&rig, 0, 0, 0);
    ck_assert_int_eq(change_id(rig.engine, &rig.def, CHANGE_SET, 1, 1, 1), 0);
    for (uint64_t id = 0; id < 3 * MANY; id++) {
        if (id % 3 != 0) {
            set(&rig, id, 1);
        }
    }
    ck_assert_uint_lt(records(&rig), 3 * MANY - MANY / 2);
    engine_verify(rig.engine);
    rig_fini(&rig);
}
END_TEST

/* Tables as they lie into another engine, where the rows are covered, or some
 * of them, or none. */
START_TEST(test_tombstones_are_copied)
{
    struct rig rig;
    struct rig other;
    bool is_wide = _i == 1;
    enum engine_copied copied = ENGINE_COPY_DONE;
    rig_init(&rig);
    bury_many(&rig, is_wide);
    for (int covered = 0; covered < 3; covered++) {
        rig_init(&other);
        cover(&other, covered == 2 ? MANY : 0, covered == 0 ? 0 : UINT64_MAX,
            covered == 0 ? 0 : VERSION);
        for (uint64_t from = 0;; from = rig.rows.last_row + 1) {
            engine_mark(rig.engine, SLOT, 0, from, UINT64_MAX);
            ck_assert_int_eq(
                engine_copy(rig.engine, SLOT, 0, from, &rig.rows, &copied), 0);
            if (copied == ENGINE_COPY_END) {
                break;
            }
            ck_assert_int_eq(engine_load(other.engine, SLOT, 0, &rig.rows), 0);
        }
        if (covered == 1) {
            expect_many(&other, is_wide);
        } else {
            ck_assert_uint_eq(records(&other) == MANY / 4, covered == 0);
            expect_absent(&other, 3, 0);
        }
        if (covered == 2) {
            expect_absent(&other, MANY - 1, 0);
            expect_here(&other, MANY + 2, 0, 0, 5);
        }
        rig_fini(&other);
    }
    rig_fini(&rig);
}
END_TEST

/* A replay: what is told is here afterwards, whatever it is. */
START_TEST(test_loading)
{
    struct rig rig;
    rig_init(&rig);
    cover(&rig, 0, 99, ENGINE_COVER_LOADING);
    set(&rig, 1, 4);
    ck_assert_int_eq(change_id(rig.engine, &rig.def, CHANGE_SET, 2, 2, 0), 0);
    ck_assert_int_eq(
        change_id(rig.engine, &rig.def, CHANGE_SET, 100, 2, 0), 0);
    expect_here(&rig, 1, 4, 4, 4);
    expect_here(&rig, 2, 0, 0, 5);
    expect_absent(&rig, 3, ENGINE_COVER_LOADING);
    expect_absent(&rig, 100, 0);
    /* a refusal makes nothing */
    ck_assert_int_eq(change_id(rig.engine, &rig.def, CHANGE_DELETE, 4, 2, 0),
        ERR_NOT_FOUND);
    expect_absent(&rig, 4, ENGINE_COVER_LOADING);
    ck_assert_uint_eq(records(&rig), 2);
    rig_fini(&rig);
}
END_TEST

static enum engine_mark
is_new(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)marks, (void)shard, (void)change;
    return ENGINE_MARK_NEW;
}

static void
no_mark(
    struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)marks, (void)shard, (void)change;
    ck_abort_msg("nothing that was done has a number");
}

/* Fills the budget; the first id that finds no room. */
static uint64_t
fill(struct rig *rig)
{
    uint64_t id = 0;
    while (change_id(rig->engine, &rig->def, CHANGE_SET, id, COLUMNS,
               UINT64_MAX - id) == 0) {
        id++;
    }
    return id;
}

/* A batch where the budget is full: changes of a record that find no room, with
 * others that need none before and behind them, and in between one of a record
 * that is there. */
static void
change_full(struct rig *rig, uint64_t id, bool is_numbered, int behind)
{
    static const struct {
        enum change_op op;
        uint64_t operand;
    } row[] = {{CHANGE_DELETE, 0}, {CHANGE_INCR, 1}, {CHANGE_SET, 0},
        {CHANGE_INCR, 1}, {CHANGE_DELETE, 0}, {CHANGE_SET, 0}};
    struct change change[COUNT_OF(row) + 1];
    for (unsigned i = 0; i < COUNT_OF(row); i++) {
        change[i] =
            change_of(&rig->def, row[i].op, id, COLUMNS, row[i].operand);
        change[i].operand[2] = 5; /* the default */
        change[i].producer = is_numbered && i > 0;
        change[i].number = i;
    }
    change[COUNT_OF(row)] = change[3];
    change[3] = change_of(&rig->def, CHANGE_DECR, 0, 1, 1);
    engine_change(rig->engine, change, COUNT_OF(change));
    ck_assert_int_eq(change[0].err, ERR_NOT_FOUND);
    ck_assert_int_eq(change[1].err, ERR_HOT_FULL);
    ck_assert_int_eq(change[2].err, behind);
    ck_assert_int_eq(change[3].err, 0);
    ck_assert_int_eq(change[4].err, behind == 0 ? ERR_NOT_FOUND : behind);
    ck_assert_int_eq(change[5].err, behind);
    ck_assert_int_eq(change[COUNT_OF(row)].err, ERR_HOT_FULL);
    expect_absent(rig, id, 0);
}

/* What comes behind a change that has found no room waits with it, where others
 * can leave memory: else each is done or refused by itself. */
START_TEST(test_full_batch)
{
    struct rig rig;
    struct engine_marks marks = {.look_fn = is_new, .mark_fn = no_mark};
    rig_init_of(&rig, ENGINE_HOT_BYTES_MIN, false);
    engine_set_sink(rig.engine, NULL);
    engine_set_marks(rig.engine, &marks);
    uint64_t id = fill(&rig);
    change_full(&rig, id, false, ERR_HOT_FULL);
    change_full(&rig, id, true, ERR_HOT_FULL);
    engine_set_cover(rig.engine, NULL);
    change_full(&rig, id, false, 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_cold, test_base, test_base_unchanged,
        test_batch, test_jump, test_look_gone, test_tombstone,
        test_tombstones_stay, test_tombstones_are_copied, test_loading,
        test_full_batch};
    return run_tests_often("cover", tests, COUNT_OF(tests), 2);
}
