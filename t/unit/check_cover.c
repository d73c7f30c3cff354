/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/cover: each rule of an engine beside a cold tier by itself. There is
 * one shard, so a row is an id, and a range of ids is covered or none. */
#include "engine/cover.h"

#include "lib/fault_alloc.h"
#include "lib/replica.h"
#include "unit/engine_help.h"

enum {
    SLOT = 7,
    COLUMNS = 3,
    VERSION = 5,
    MANY = 1000,
    TABLE_RECORDS = 64,
    SWEEPS_MAX = 5000
};

struct rig {
    struct engine_cover cover; /* first: the seam */
    uint64_t version;          /* of ids first..last; 0: none */
    uint64_t first, last;
    struct engine *engine;
    struct fault_alloc fault;
    struct journal journal;
    struct schema_counter def;
    struct engine_rows rows;
    struct engine_base base;
    /* what publish does: */
    uint64_t next_version;
    unsigned publications;
    size_t n_told; /* by then */
};

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    const struct rig *rig = (const struct rig *)cover;
    ck_assert(slot == SLOT && shard == 0);
    return row >= rig->first && row <= rig->last ? rig->version : 0;
}

static bool
is_any_covered(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    const struct rig *rig = (const struct rig *)cover;
    ck_assert(slot == SLOT && shard == 0);
    return rig->version != 0 && first_row <= rig->last &&
        last_row >= rig->first;
}

static void
rig_define(struct rig *rig)
{
    ck_assert_int_eq(engine_define(rig->engine, &rig->def), 0);
}

static void
rig_init_of(struct rig *rig, uint64_t hot_bytes, bool is_counted)
{
    memset(rig, 0, sizeof *rig);
    fault_alloc_init(&rig->fault);
    struct engine_config config = {.shards = 1,
        .seed = 1,
        .hot_bytes = hot_bytes,
        .alloc = is_counted ? &rig->fault.alloc : NULL,
        .table_records_max = TABLE_RECORDS};
    rig->engine = engine_of(&config);
    rig->rows.alloc = config.alloc;
    rig->cover = (struct engine_cover){version_of, is_any_covered};
    rig->next_version = VERSION + 1;
    rig->def = plain_counter(SLOT, COLUMNS);
    rig->def.column[2].default_value = 5;
    journal_init(&rig->journal);
    engine_set_sink(rig->engine, &rig->journal.sink);
    engine_set_cover(rig->engine, &rig->cover);
    rig_define(rig);
}

static void
rig_init(struct rig *rig)
{
    rig_init_of(rig, ROOMY_BYTES, false);
}

static void
rig_fini(struct rig *rig)
{
    engine_rows_fini(&rig->rows);
    finish_engine(&rig->engine);
    ck_assert_uint_eq(rig->fault.live_bytes, 0);
    journal_fini(&rig->journal);
}

static void
cover(struct rig *rig, uint64_t first, uint64_t last, uint64_t version)
{
    rig->first = first;
    rig->last = last;
    rig->version = version;
}

/* The record of the segment: values 10, 20 and, zigzag from 5, 30. */
static const struct engine_base *
base_of(struct rig *rig, uint64_t version, bool is_there)
{
    rig->base = (struct engine_base){.version = version,
        .is_there = is_there,
        .n_columns = 4,
        .serial = {3, 99, 1, 2}, /* in any order, one of them unknown */
        .code = {2 * (30 - 5), 77, 10, 20}};
    return &rig->base;
}

/* Does a change of the first n columns with a base; returns err. */
static int
change_with(struct rig *rig, enum change_op op, uint64_t id, unsigned n,
    uint64_t operand, const struct engine_base *base)
{
    struct change change = change_of(&rig->def, op, id, n, operand);
    change.base = base;
    engine_change(rig->engine, &change, 1);
    return change.err;
}

static void
set(struct rig *rig, uint64_t id, uint64_t value)
{
    ck_assert_int_eq(
        change_with(rig, CHANGE_SET, id, COLUMNS, value, NULL), 0);
}

static struct engine_found
look(struct rig *rig, uint64_t id, uint64_t *value)
{
    struct cell_key key[COLUMNS];
    uint8_t state[COLUMNS];
    struct engine_found found;
    for (unsigned k = 0; k < COLUMNS; k++) {
        key[k] = key_of(&rig->def, k, id);
    }
    engine_look(rig->engine, key, COLUMNS, value, state, &found);
    for (unsigned k = 0; k < COLUMNS; k++) {
        expect_value(rig->engine, &rig->def, k, id, value[k]);
        ck_assert_int_eq(state[k],
            value[k] == rig->def.column[k].default_value ? CELL_DEFAULT
                                                         : CELL_SET);
    }
    return found;
}

static void
expect_here(struct rig *rig, uint64_t id, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t value[COLUMNS];
    struct engine_found found = look(rig, id, value);
    ck_assert_uint_eq(found.is_here, true);
    ck_assert_uint_eq(value[0], a);
    ck_assert_uint_eq(value[1], b);
    ck_assert_uint_eq(value[2], c);
}

static void
expect_absent(struct rig *rig, uint64_t id, uint64_t version)
{
    uint64_t value[COLUMNS];
    struct engine_found found = look(rig, id, value);
    ck_assert_uint_eq(found.is_here, false);
    ck_assert_uint_eq(found.version, version);
    ck_assert_uint_eq(value[0], 0);
    ck_assert_uint_eq(value[2], 5);
}

static uint64_t
records(struct rig *rig)
{
    return sum_of(rig->engine, SLOT).records;
}

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
    cas.cas = 10;
    cas.base = there;
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
    incr.base = there;
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
    /* the last one brings it for all */
    change[0].base = base_of(&rig, VERSION - 1, true);
    struct engine_base base = *base_of(&rig, VERSION, true);
    change[3].base = &base;
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
    /* a record that exists does not jump */
    ck_assert_int_eq(
        change_with(&rig, CHANGE_INCR, 50, 1, 1, base_of(&rig, VERSION, true)),
        0);
    ck_assert_int_eq(change_with(&rig, CHANGE_INCR, 59, 1, 1, &not_there), 0);
    ck_assert_int_eq(
        change_with(&rig, CHANGE_INCR, 100, 1, 1, NULL), ERR_JUMP);
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

static void
publish(void *context)
{
    struct rig *rig = context;
    rig->publications++;
    rig->n_told = rig->journal.n;
    cover(rig, rig->rows.first_row, rig->rows.last_row, rig->next_version++);
}

static void
copy_range(struct rig *rig, uint64_t first, uint64_t last)
{
    ck_assert_int_eq(
        engine_copy_range(rig->engine, SLOT, 0, first, last, &rig->rows), 0);
    ck_assert_uint_eq(rig->rows.first_row, first);
    ck_assert_uint_eq(rig->rows.last_row, last);
}

static int
evict(struct rig *rig)
{
    unsigned before = rig->publications;
    int err = engine_evict(rig->engine, SLOT, 0, &rig->rows, publish, rig);
    ck_assert_uint_eq(rig->publications, before + (err == 0));
    engine_verify(rig->engine);
    return err;
}

START_TEST(test_copy_range)
{
    struct rig rig;
    rig_init(&rig);
    copy_range(&rig, 0, UINT64_MAX);
    ck_assert_uint_eq(rig.rows.n, 0);
    for (uint64_t id = 0; id < MANY; id++) {
        set(&rig, 2 * id, id + 1);
    }
    copy_range(&rig, 301, 1400);
    ck_assert_uint_eq(rig.rows.n, 550);
    ck_assert_uint_eq(rig.rows.n_columns, COLUMNS);
    ck_assert_uint_eq(rig.rows.position, rig.journal.position);
    for (unsigned i = 0; i < rig.rows.n; i++) {
        uint64_t id = 302 + 2 * i;
        ck_assert_uint_eq(rig.rows.row[i], id);
        ck_assert_uint_eq(rig.rows.code[0][i], id / 2 + 1);
        ck_assert_uint_eq(rig.rows.code[1][i], id / 2 + 1);
        ck_assert_uint_eq(rig.rows.code[2][i], 2 * (id / 2 + 1 - 5));
    }
    copy_range(&rig, 2 * MANY, UINT64_MAX);
    ck_assert_uint_eq(rig.rows.n, 0);
    ck_assert_int_eq(
        engine_copy_range(rig.engine, SLOT + 1, 0, 0, 9, &rig.rows), 0);
    ck_assert_uint_eq(rig.rows.n, 0);
    /* tombstones come */
    cover(&rig, 0, 2 * MANY, VERSION);
    ck_assert_int_eq(
        change_id(rig.engine, &rig.def, CHANGE_DELETE, 4, COLUMNS, 0), 0);
    copy_range(&rig, 4, 4);
    ck_assert_uint_eq(rig.rows.n, 1);
    ck_assert_uint_eq(rig.rows.code[0][0] | rig.rows.code[1][0], 0);
    rig_fini(&rig);
}
END_TEST

/* A record of each kind, in one table and in many. */
START_TEST(test_evict)
{
    enum { FIRST = 1001, LAST = 1998 };
    struct rig rig;
    uint64_t n = 0;
    rig_init(&rig);
    for (uint64_t id = 900; id < 2100; id += 3, n++) {
        set(&rig, id, 7);
    }
    copy_range(&rig, FIRST, LAST);
    set(&rig, 1200, 8);                            /* changed */
    set(&rig, 1202, 9);                            /* new */
    for (uint64_t id = 1500; id < 1800; id += 3) { /* removed, whole tables */
        ck_assert_int_eq(
            change_id(rig.engine, &rig.def, CHANGE_DELETE, id, COLUMNS, 0), 0);
    }
    set(&rig, 1800, 8);
    set(&rig, 1800, 7); /* as it was */
    size_t before = rig.journal.n;
    ck_assert_int_eq(evict(&rig), 0);
    ck_assert_uint_eq(rig.n_told, before);
    for (uint64_t id = 900; id < 2100; id += 3) {
        if (id < FIRST || id > LAST) {
            expect_here(&rig, id, 7, 7, 7);
        } else if (id == 1200) {
            expect_here(&rig, id, 8, 8, 8);
        } else if (id >= 1500 && id < 1800) {
            expect_here(&rig, id, 0, 0, 5);
        } else {
            expect_absent(&rig, id, VERSION + 1);
        }
    }
    expect_here(&rig, 1202, 9, 9, 9);
    /* what stays is told whole, once each, in any order */
    ck_assert_uint_eq(rig.journal.n - before, 102);
    uint64_t sum = 0;
    for (size_t i = before; i < rig.journal.n; i++) {
        const struct engine_write *write = &rig.journal.entry[i].write;
        ck_assert_uint_eq(write->n, COLUMNS);
        ck_assert(write->id >= 1200 && write->id <= 1797);
        sum += write->id;
    }
    ck_assert_uint_eq(sum, 1200 + 1202 + 100 * (1500 + 1797) / 2);
    /* once more, now with tombstones in the copy: all go */
    copy_range(&rig, FIRST, LAST);
    ck_assert_uint_eq(rig.rows.n, 102);
    ck_assert_int_eq(evict(&rig), 0);
    ck_assert_uint_eq(rig.journal.n - before, 102);
    expect_absent(&rig, 1503, VERSION + 2);
    ck_assert_uint_eq(records(&rig), n - (LAST - FIRST) / 3 - 1 + 0);
    rig_fini(&rig);
}
END_TEST

/* What a copy does not have stays, also a tombstone: the segment may have the
 * record from an older one. */
START_TEST(test_evict_late_tombstone)
{
    struct rig rig;
    rig_init(&rig);
    cover(&rig, 0, 99, VERSION);
    set(&rig, 200, 1);
    copy_range(&rig, 0, 99);
    ck_assert_int_eq(change_with(&rig, CHANGE_DELETE, 7, COLUMNS, 0,
                         base_of(&rig, VERSION, true)),
        0);
    ck_assert_int_eq(evict(&rig), 0);
    expect_here(&rig, 7, 0, 0, 5);
    expect_absent(&rig, 8, VERSION + 1);
    ck_assert_uint_eq(records(&rig), 2);
    rig_fini(&rig);
}
END_TEST

/* A table that says it is as copied goes as it is: what the copy has is not
 * looked at. One that has changed is compared, also with an older copy. */
START_TEST(test_evict_untouched)
{
    struct rig rig;
    struct engine_rows old;
    rig_init(&rig);
    for (int round = 0; round < 3; round++) {
        cover(&rig, 0, 0, 0);
        for (uint64_t id = 0; id < 40; id++) {
            set(&rig, id, 7);
        }
        copy_range(&rig, 0, UINT64_MAX);
        for (unsigned i = 0; i < rig.rows.n; i++) {
            ((uint64_t *)rig.rows.block)[0] = rig.rows.row[0];
            *(uint64_t *)(uintptr_t)&rig.rows.code[0][i] = 1; /* a lie */
        }
        if (round == 1) {
            set(&rig, 3, 8);
        } else if (round == 2) { /* the table is another copy's now */
            old = rig.rows;
            memset(&rig.rows, 0, sizeof rig.rows);
            copy_range(&rig, 0, UINT64_MAX);
            engine_rows_fini(&rig.rows);
            rig.rows = old;
        }
        ck_assert_int_eq(evict(&rig), 0);
        ck_assert_uint_eq(records(&rig), round == 0 ? 0 : 40);
    }
    rig_fini(&rig);
}
END_TEST

/* What is unchanged for checkpoints, and what not. */
START_TEST(test_evict_and_copies)
{
    struct rig rig;
    struct engine_rows rows = {0};
    enum engine_copied copied = ENGINE_COPY_DONE;
    size_t n_clean = 0, n_done = 0;
    rig_init(&rig);
    for (uint64_t id = 0; id < MANY; id++) {
        set(&rig, id, 7);
    }
    for (int round = 0; round < 2; round++) {
        n_clean = n_done = 0;
        copied = ENGINE_COPY_DONE;
        for (uint64_t from = 0; copied != ENGINE_COPY_END;
             from = rows.last_row + 1) {
            ck_assert_int_eq(
                engine_copy(rig.engine, SLOT, 0, from, &rows, &copied), 0);
            n_clean += copied == ENGINE_COPY_CLEAN;
            n_done += copied == ENGINE_COPY_DONE;
            if (rows.last_row == UINT64_MAX) {
                break;
            }
        }
        ck_assert_uint_eq(n_done == 0, round == 1);
        copy_range(&rig, 0, 399); /* touches no mark */
    }
    set(&rig, 100, 8);
    ck_assert_int_eq(engine_copy(rig.engine, SLOT, 0, 0, &rows, &copied), 0);
    engine_mark(rig.engine, SLOT, 0, 100, 100);
    ck_assert_int_eq(engine_copy(rig.engine, SLOT, 0, 100, &rows, &copied), 0);
    ck_assert_int_eq(copied, ENGINE_COPY_DONE);
    ck_assert_int_eq(evict(&rig), 0);
    /* that of 100, that about 399, and all else */
    ck_assert_int_eq(engine_copy(rig.engine, SLOT, 0, 0, &rows, &copied), 0);
    ck_assert_int_eq(copied, ENGINE_COPY_DONE);
    ck_assert_uint_eq(rows.n, 1);
    ck_assert_int_eq(engine_copy(rig.engine, SLOT, 0, 400, &rows, &copied), 0);
    ck_assert_int_eq(copied, ENGINE_COPY_DONE);
    ck_assert_int_eq(engine_copy(rig.engine, SLOT, 0, 900, &rows, &copied), 0);
    ck_assert_int_eq(copied, ENGINE_COPY_CLEAN);
    engine_rows_fini(&rows);
    rig_fini(&rig);
}
END_TEST

/* Columns that come, go and are renewed between copy and eviction. */
START_TEST(test_evict_columns)
{
    struct rig rig;
    rig_init(&rig);
    for (uint64_t id = 0; id < MANY; id++) {
        ck_assert_int_eq(change_id(rig.engine, &rig.def, CHANGE_SET, id,
                             id % 2 == 0 ? 2 : 1, 9),
            0);
    }
    copy_range(&rig, 0, MANY);
    rig.def.column[1] = (struct schema_column){
        .serial = 9, .slot = 1, .hint_bits = 4, .max_bits = 64};
    rig_define(&rig);
    struct change change = {.id = 10,
        .op = CHANGE_SET,
        .counter = SLOT,
        .n_columns = 1,
        .column = {1},
        .serial = {9},
        .operand = {9}}; /* what the old column had */
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(evict(&rig), 0);
    expect_here(&rig, 10, 9, 9, 5);
    ck_assert_uint_eq(records(&rig), 1);
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

/* A full budget refuses new records, and lets go of old ones. */
START_TEST(test_full)
{
    struct rig rig;
    uint64_t n = 0;
    int err = 0;
    rig_init_of(&rig, ENGINE_HOT_BYTES_MIN, false);
    engine_set_sink(rig.engine, NULL);
    for (; err == 0; n += err == 0) {
        err = change_id(
            rig.engine, &rig.def, CHANGE_SET, n, COLUMNS, UINT64_MAX - n);
    }
    ck_assert_int_eq(err, ERR_HOT_FULL);
    copy_range(&rig, 0, n / 2);
    for (uint64_t id = 0; id < n / 2; id += 50) { /* many tables differ */
        (void)change_id(rig.engine, &rig.def, CHANGE_SET, id, COLUMNS, 1);
    }
    ck_assert_int_eq(evict(&rig), 0);
    ck_assert_uint_lt(records(&rig), n / 2 + n / 90);
    for (uint64_t id = n; id < n + n / 4; id++) {
        ck_assert_int_eq(
            change_id(rig.engine, &rig.def, CHANGE_SET, id, COLUMNS, id), 0);
    }
    rig_fini(&rig);
}
END_TEST

/* All that is in the engine, to be compared. */
struct snapshot {
    uint64_t value[400][COLUMNS];
    bool is_here[400];
    uint64_t records;
};

static void
take(struct rig *rig, struct snapshot *snapshot)
{
    memset(snapshot, 0, sizeof *snapshot);
    for (uint64_t id = 0; id < COUNT_OF(snapshot->is_here); id++) {
        struct engine_found found = look(rig, id, snapshot->value[id]);
        snapshot->is_here[id] = found.is_here;
    }
    snapshot->records = records(rig);
}

/* An engine with all kinds of records of a copy, of which the n-th allocation
 * fails while they are evicted. False where none failed any more. */
static bool
evict_with_fault(size_t n)
{
    struct rig rig;
    struct snapshot before, after;
    rig_init_of(&rig, ROOMY_BYTES, true);
    for (uint64_t id = 0; id < 400; id++) {
        set(&rig, id, id % 10 == 0 ? UINT64_MAX : 7);
    }
    copy_range(&rig, 50, 390);
    for (uint64_t id = 100; id < 300; id++) {
        if (id % 3 == 0 || (id > 150 && id < 260)) {
            ck_assert_int_eq(
                change_id(rig.engine, &rig.def, CHANGE_DELETE, id, COLUMNS, 0),
                0);
        } else if (id % 5 == 0) {
            set(&rig, id, id);
        }
    }
    take(&rig, &before);
    size_t told = rig.journal.n;
    rig.fault.fail_from = rig.fault.calls + n;
    rig.fault.fail_to = rig.fault.calls + n;
    size_t failures = rig.fault.failures;
    int err = evict(&rig);
    bool has_failed = rig.fault.failures > failures;
    rig.fault.fail_from = rig.fault.fail_to = 0;
    ck_assert_int_eq(err, has_failed ? ERR_NO_MEMORY : 0);
    if (has_failed) {
        take(&rig, &after);
        ck_assert_int_eq(memcmp(&before, &after, sizeof before), 0);
        ck_assert_uint_eq(rig.journal.n, told);
        ck_assert_uint_eq(rig.version, 0);
        ck_assert_int_eq(evict(&rig), 0);
    }
    expect_absent(&rig, 60, VERSION + 1);
    expect_here(&rig, 102, 0, 0, 5);
    expect_here(&rig, 200, 0, 0, 5);
    expect_here(&rig, 395, 7, 7, 7);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_evict_faults)
{
    size_t n = 1;
    while (evict_with_fault(n)) {
        ck_assert_uint_lt(++n, SWEEPS_MAX);
    }
    ck_assert_uint_gt(n, 20);
}
END_TEST

/* The same for a copy of a range, and for records made from bases. */
START_TEST(test_other_faults)
{
    struct rig rig;
    size_t n_refused = 0;
    rig_init_of(&rig, ROOMY_BYTES, true);
    cover(&rig, 0, UINT64_MAX, VERSION);
    const struct engine_base *there = base_of(&rig, VERSION, true);
    for (uint64_t id = 0; id < MANY; id++) {
        enum change_op op = id % 3 == 0 ? CHANGE_DELETE : CHANGE_INCR;
        int err = ERR_NO_MEMORY;
        for (size_t n = 1; err != 0; n++) {
            size_t told = rig.journal.n;
            rig.fault.fail_from = rig.fault.fail_to = rig.fault.calls + n;
            err = change_with(&rig, op, id, COLUMNS, 1, there);
            rig.fault.fail_from = rig.fault.fail_to = 0;
            ck_assert(err == 0 || err == ERR_NO_MEMORY);
            ck_assert_uint_eq(rig.journal.n - told, err == 0);
            n_refused += err != 0;
            if (err != 0) {
                expect_absent(&rig, id, VERSION);
            }
        }
        if (op == CHANGE_DELETE) {
            expect_here(&rig, id, 0, 0, 5);
        } else {
            expect_here(&rig, id, 11, 21, 31);
        }
    }
    ck_assert_uint_gt(n_refused, 20);
    int err = ERR_NO_MEMORY;
    for (size_t n = 1; err != 0; n++) {
        rig.fault.fail_from = rig.fault.fail_to = rig.fault.calls + n;
        err = engine_copy_range(rig.engine, SLOT, 0, 0, MANY, &rig.rows);
        rig.fault.fail_from = rig.fault.fail_to = 0;
        ck_assert(err == 0 || (err == ERR_NO_MEMORY && rig.rows.n == 0));
        ck_assert(n < 2 || err == 0 || n < 50);
    }
    ck_assert_uint_eq(rig.rows.n, MANY);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_cold, test_base, test_base_unchanged,
        test_batch, test_jump, test_look_gone, test_tombstone,
        test_tombstones_stay, test_tombstones_are_copied, test_copy_range,
        test_evict, test_evict_late_tombstone, test_evict_untouched,
        test_evict_and_copies, test_evict_columns, test_loading, test_full,
        test_evict_faults, test_other_faults};
    return run_tests_often("cover", tests, COUNT_OF(tests), 2);
}
