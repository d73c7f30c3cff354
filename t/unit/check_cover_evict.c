/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/cover: what is copied and evicted, what stays and who is told, each
 * rule by itself; with a full budget, and with memory that runs out. */
#include "unit/cover_help.h"

enum { SWEEPS_MAX = 5000 };

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
        ck_assert_uint_eq(n_clean == 0, round == 0);
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

/* A table of which nothing goes stays, and counts as changed: its image is
 * older than what has been told. */
START_TEST(test_evict_nothing)
{
    struct rig rig;
    struct engine_rows rows = {0};
    enum engine_copied copied;
    rig_init(&rig);
    set(&rig, 5, 7);
    copy_range(&rig, 1000, 1999);
    ck_assert_uint_eq(rig.rows.n, 0);
    set(&rig, 1500, 7);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(
            engine_copy(rig.engine, SLOT, 0, 0, &rows, &copied), 0);
        ck_assert_int_eq(
            copied, round == 1 ? ENGINE_COPY_CLEAN : ENGINE_COPY_DONE);
        if (round == 1) {
            size_t before = rig.journal.n;
            ck_assert_int_eq(evict(&rig), 0);
            ck_assert_uint_eq(rig.journal.n, before + 1);
            ck_assert_uint_eq(rig.journal.entry[before].write.id, 1500);
        }
    }
    expect_here(&rig, 1500, 7, 7, 7);
    ck_assert_uint_eq(records(&rig), 2);
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

/* Memory that is asked for without the lock is a moment at which others may
 * have their turn: at the n-th call from now on, this happens. */
enum turn { TURN_CHANGE, TURN_REMOVE, TURN_ADD, TURN_RENEW, TURNS };

struct turn_alloc {
    struct rig rig; /* first; its memory is asked for by turn_zeroed */
    size_t n;       /* calls to go; 0: none */
    size_t n_fault; /* that one after the turn fails; 0: none */
    enum turn turn;
};

/* The column in slot 1 is another one now, and id 3 has a number there. */
static void
renew_column(struct rig *rig)
{
    rig->def.column[1] = (struct schema_column){
        .serial = 9, .slot = 1, .hint_bits = 4, .max_bits = 64};
    rig_define(rig);
    struct change change = {.id = 3,
        .op = CHANGE_SET,
        .counter = SLOT,
        .n_columns = 1,
        .column = {1},
        .serial = {9},
        .operand = {9}};
    engine_change(rig->engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
}

static void *
turn_zeroed(void *context, size_t bytes)
{
    struct fault_alloc *fault = context;
    struct turn_alloc *it =
        (struct turn_alloc *)((char *)context - offsetof(struct rig, fault));
    if (it->n > 0 && --it->n == 0) {
        switch (it->turn) {
        case TURN_CHANGE:
            set(&it->rig, 3, 8);
            break;
        case TURN_REMOVE:
            ck_assert_int_eq(change_id(it->rig.engine, &it->rig.def,
                                 CHANGE_DELETE, 3, COLUMNS, 0),
                0);
            break;
        case TURN_ADD:
            set(&it->rig, 4000, 8);
            break;
        case TURN_RENEW:
        case TURNS:
            renew_column(&it->rig);
        }
        if (it->n_fault > 0) {
            fault->fail_from = fault->fail_to = fault->calls + it->n_fault;
        }
    }
    return fault_alloc__zeroed(fault, bytes);
}

static void
turn_init(struct turn_alloc *it, enum turn turn)
{
    rig_init_of(&it->rig, ROOMY_BYTES, true);
    it->rig.fault.alloc.zeroed_fn = turn_zeroed;
    it->n = it->n_fault = 0;
    it->turn = turn;
    for (uint64_t id = 0; id < MANY; id++) {
        set(&it->rig, 3 * id, 7);
    }
}

/* Columns that change while a range is copied: it has the new ones only. */
START_TEST(test_copy_range_columns)
{
    struct turn_alloc it;
    for (size_t n = 1; n < 6; n++) {
        turn_init(&it, TURN_RENEW);
        it.n = n;
        copy_range(&it.rig, 0, 3 * MANY);
        bool had_turn = it.n == 0;
        ck_assert(had_turn || n > 2);
        ck_assert_uint_eq(it.rig.rows.n, MANY);
        ck_assert_uint_eq(it.rig.rows.serial[1], had_turn ? 9 : 2);
        ck_assert_uint_eq(it.rig.rows.code[1][1], had_turn ? 9 : 7);
        ck_assert_uint_eq(it.rig.rows.code[1][2], had_turn ? 0 : 7);
        it.n = 0;
        rig_fini(&it.rig);
    }
}
END_TEST

/* Something happens between the two parts of an eviction, and then the n-th
 * allocation fails. False where none failed any more. */
static bool
evict_with_turn(enum turn turn, size_t n, size_t n_fault)
{
    struct turn_alloc it;
    struct rig *rig = &it.rig;
    turn_init(&it, turn);
    copy_range(rig, 0, 5000);
    set(rig, 6, 9); /* in the first table */
    it.n = n;
    it.n_fault = n_fault;
    int err = evict(rig);
    ck_assert_uint_eq(it.n, 0);
    bool has_failed = rig->fault.failures > 0;
    ck_assert_int_eq(err, has_failed ? ERR_NO_MEMORY : 0);
    rig->fault.fail_from = rig->fault.fail_to = 0;
    if (has_failed) {
        ck_assert_int_eq((int)records(rig),
            MANY + (turn == TURN_ADD) - (turn == TURN_REMOVE));
        ck_assert_int_eq(evict(rig), 0);
    }
    switch (turn) {
    case TURN_CHANGE:
        expect_here(rig, 3, 8, 8, 8);
        break;
    case TURN_REMOVE:
        expect_here(rig, 3, 0, 0, 5);
        break;
    case TURN_ADD:
        expect_here(rig, 4000, 8, 8, 8);
        break;
    case TURN_RENEW:
    case TURNS:
        expect_here(rig, 3, 7, 9, 7);
    }
    expect_here(rig, 6, 9, turn == TURN_RENEW ? 0 : 9, 9);
    expect_absent(rig, 0, VERSION + 1);
    ck_assert_uint_eq(records(rig), 2);
    rig_fini(rig);
    return has_failed;
}

/* At its first three calls for memory, the first before a table is copied. */
START_TEST(test_evict_turns)
{
    for (int turn = 0; turn < TURNS; turn++) {
        for (size_t n = 1; n <= 3; n++) {
            size_t n_fault = 0;
            while (
                evict_with_turn((enum turn)turn, n, n_fault) || n_fault == 0) {
                ck_assert_uint_lt(++n_fault, SWEEPS_MAX);
            }
            ck_assert_uint_gt(n_fault, 3);
        }
    }
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

/* An allocation that finds its engine packed when it returns, once, after n. */
static struct {
    struct engine *engine;
    unsigned n;
} packing;

static void *
pack_and_allocate(void *context, size_t bytes)
{
    if (packing.n > 0 && --packing.n == 0) {
        (void)engine_tend(packing.engine, SWEEPS_MAX);
    }
    return fault_alloc__zeroed(context, bytes);
}

/* A table that stays as it is has tombstones that nothing covers any more, and
 * is packed, which lets go of them, between the look at it and the eviction. */
START_TEST(test_evict_packed_meanwhile)
{
    enum { FIRST = 1000, N = 500, BEFORE = 499, WIDE = 1 << 20 };
    struct rig rig;
    rig_init_tables(&rig, ROOMY_BYTES, true, WIDE);
    for (uint64_t id = FIRST; id < FIRST + N; id++) {
        set(&rig, id, 7);
    }
    cover(&rig, 0, 9999, VERSION);
    for (uint64_t id = FIRST; id < FIRST + N; id += 2) {
        ck_assert_int_eq(
            change_id(rig.engine, &rig.def, CHANGE_DELETE, id, COLUMNS, 0), 0);
    }
    cover(&rig, 0, 0, 0);
    (void)engine_tend(rig.engine, FIRST);
    copy_range(&rig, 0, BEFORE);
    rig.fault.alloc.zeroed_fn = pack_and_allocate;
    packing.engine = rig.engine;
    packing.n = 2; /* the table that was looked at is remembered */
    ck_assert_int_eq(evict(&rig), 0);
    ck_assert_uint_eq(packing.n, 0);
    ck_assert_uint_eq(records(&rig), N / 2);
    for (uint64_t id = FIRST + 1; id < FIRST + N; id += 2) {
        expect_here(&rig, id, 7, 7, 7);
    }
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_copy_range, test_evict,
        test_evict_late_tombstone, test_evict_untouched, test_evict_and_copies,
        test_evict_nothing, test_evict_columns, test_copy_range_columns,
        test_evict_turns, test_full, test_evict_faults, test_other_faults,
        test_evict_packed_meanwhile};
    return run_tests("cover_evict", tests, COUNT_OF(tests));
}
