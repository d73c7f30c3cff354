/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/engine: what the sink is told. One change and one batch at a time for
 * the rules; then random changes, also with memory that runs out, after which
 * what was told must be what is there, and nothing else. */
#include "engine/engine_priv.h"
#include "engine/marks.h"
#include "lib/fault_alloc.h"
#include "lib/id_family.h"
#include "lib/replica.h"
#include "unit/engine_help.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

enum {
    SLOT = 7,
    SHARDS = 4,
    IDS = 1500,
    BATCH_MAX = 100,
    STEPS = 1000,
    RECORDS_MAX = 64
};

struct rig {
    struct engine *engine;
    struct journal journal;
    struct schema_counter def;
};

static void
rig_init(struct rig *rig, unsigned columns, unsigned shards)
{
    rig->engine = small_engine(shards, RECORDS_MAX);
    rig->def = plain_counter(SLOT, columns);
    journal_init(&rig->journal);
    engine_set_sink(rig->engine, &rig->journal.sink);
}

static void
rig_define(struct rig *rig)
{
    ck_assert_int_eq(engine_define(rig->engine, &rig->def), 0);
}

static void
rig_fini(struct rig *rig)
{
    finish_engine(&rig->engine);
    journal_fini(&rig->journal);
}

/* Does one change; it must be answered so, and the sink be told of so many
 * cells (-1: not at all). */
static const struct engine_write *
expect_told(struct rig *rig, enum change_op op, uint64_t id, unsigned n,
    uint64_t operand, int err, int n_told)
{
    struct change change = change_of(&rig->def, op, id, n, operand);
    struct journal *journal = &rig->journal;
    uint64_t calls = journal->calls;
    size_t before = journal->n;
    uint64_t position = engine_change(rig->engine, &change, 1);
    ck_assert_int_eq(change.err, err);
    ck_assert_uint_eq(journal->calls - calls, n_told >= 0);
    ck_assert_uint_eq(journal->n - before, n_told > 0);
    ck_assert_uint_eq(position, n_told >= 0 ? journal->position : 0);
    if (n_told <= 0) {
        return NULL;
    }
    const struct engine_write *write = &journal->entry[before].write;
    ck_assert_uint_eq(write->id, id);
    ck_assert_uint_eq(write->counter, SLOT);
    ck_assert_int_eq(write->n, n_told);
    return write;
}

START_TEST(test_one)
{
    struct rig rig;
    const struct engine_write *write;
    rig_init(&rig, 3, 1);
    rig.def.column[0].default_value = 5;
    rig.def.column[1].max_bits = 4;
    rig_define(&rig);
    write = expect_told(&rig, CHANGE_SET, 9, 3, 7, 0, 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_uint_eq(write->serial[i], i + 1);
        ck_assert_uint_eq(write->value[i], 7);
    }
    (void)expect_told(&rig, CHANGE_SET, 9, 3, 7, 0, 0);
    write = expect_told(&rig, CHANGE_INCR, 9, 1, 1, 0, 1);
    ck_assert_uint_eq(write->value[0], 8);
    /* saturates in one column, goes on in the other */
    (void)expect_told(&rig, CHANGE_INCR, 9, 2, 8, 0, 2);
    write = expect_told(&rig, CHANGE_INCR, 9, 2, 1, 0, 1);
    ck_assert_uint_eq(write->serial[0], 1);
    ck_assert_uint_eq(write->value[0], 17);
    (void)expect_told(&rig, CHANGE_DECR, 9, 2, 100, 0, 2);
    (void)expect_told(&rig, CHANGE_DECR, 9, 2, 1, 0, 0);
    /* refused: nobody hears of it */
    (void)expect_told(&rig, CHANGE_ADD, 9, 3, 1, ERR_NOT_STORED, -1);
    (void)expect_told(&rig, CHANGE_SET, 9, 2, 16, ERR_OVER_MAX, -1);
    (void)expect_told(&rig, CHANGE_DELETE, 10, 3, 0, ERR_NOT_FOUND, -1);
    /* removed: at defaults */
    write = expect_told(&rig, CHANGE_DELETE, 9, 3, 0, 0, 2);
    ck_assert_uint_eq(write->serial[0], 1);
    ck_assert_uint_eq(write->value[0], 5);
    ck_assert_uint_eq(write->serial[1], 3);
    ck_assert_uint_eq(write->value[1], 0);
    /* at its default as soon as it is told of */
    (void)expect_told(&rig, CHANGE_SET, 9, 1, 5, 0, 0);
    engine_set_sink(rig.engine, NULL);
    ck_assert_int_eq(change_id(rig.engine, &rig.def, CHANGE_SET, 9, 1, 1), 0);
    ck_assert_uint_eq(sum_of(rig.engine, SLOT).records, 1);
    rig_fini(&rig);
}
END_TEST

/* Told whole: all columns wherever one has changed, and nothing where none
 * has; in a line, in another shape, in the stash, new and removed. */
START_TEST(test_whole)
{
    struct rig rig;
    const struct engine_write *write;
    rig_init(&rig, 3, 1);
    rig.def.column[1].default_value = 5;
    rig_define(&rig);
    engine_set_whole(rig.engine, true);
    write = expect_told(&rig, CHANGE_SET, 9, 1, 7, 0, 3);
    ck_assert_uint_eq(write->serial[0], 1);
    ck_assert_uint_eq(write->value[0], 7);
    ck_assert_uint_eq(write->serial[1], 2);
    ck_assert_uint_eq(write->value[1], 5);
    ck_assert_uint_eq(write->value[2], 0);
    (void)expect_told(&rig, CHANGE_SET, 9, 3, 7, 0, 3);
    for (unsigned bits = 1; bits < 64; bits++) { /* up to the stash */
        write = expect_told(&rig, CHANGE_INCR, 9, 1,
            bits == 1 ? 1 : UINT64_C(1) << (bits - 1), 0, 3);
        ck_assert_uint_eq(write->value[0], (UINT64_C(1) << bits) + 6);
        ck_assert_uint_eq(write->value[1], 7);
        ck_assert_uint_eq(write->value[2], 7);
    }
    write = expect_told(&rig, CHANGE_INCR, 9, 1, 1, 0, 3);
    ck_assert_uint_eq(write->value[1], 7);
    (void)expect_told(&rig, CHANGE_INCR, 9, 1, 0, 0, 0);
    (void)expect_told(&rig, CHANGE_SET, 9, 1, write->value[0], 0, 0);
    write = expect_told(&rig, CHANGE_DELETE, 9, 1, 0, 0, 3);
    ck_assert_uint_eq(write->value[0], 0);
    ck_assert_uint_eq(write->value[2], 7);
    write = expect_told(&rig, CHANGE_DELETE, 9, 3, 0, 0, 3);
    ck_assert_uint_eq(write->value[1], 5);
    ck_assert_uint_eq(write->value[2], 0);
    engine_set_whole(rig.engine, false);
    (void)expect_told(&rig, CHANGE_SET, 9, 1, 7, 0, 1);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_batch)
{
    struct rig rig;
    struct change change[6];
    rig_init(&rig, 2, 1);
    rig_define(&rig);
    change[0] = change_of(&rig.def, CHANGE_SET, 1, 1, 4);
    change[1] = change_of(&rig.def, CHANGE_SET, 2, 2, 9);
    change[2] = change_of(&rig.def, CHANGE_INCR, 1, 1, 3);
    change[3] = change_of(&rig.def, CHANGE_ADD, 1, 2, 3);
    change[4] = change_of(&rig.def, CHANGE_SET, 3, 1, 1);
    change[5] = change_of(&rig.def, CHANGE_DECR, 3, 1, 1);
    ck_assert_uint_eq(engine_change(rig.engine, change, 6), 1);
    ck_assert_int_eq(change[3].err, ERR_NOT_STORED);
    ck_assert_uint_eq(rig.journal.calls, 1);
    ck_assert_uint_eq(rig.journal.n, 2);
    const struct engine_write *write = &rig.journal.entry[0].write;
    ck_assert_uint_eq(write->id, 1);
    ck_assert_uint_eq(write->n, 1);
    ck_assert_uint_eq(write->value[0], 7);
    /* nothing but refusals: not told */
    change[0] = change_of(&rig.def, CHANGE_ADD, 1, 1, 4);
    change[1] = change_of(&rig.def, CHANGE_ADD, 2, 1, 4);
    ck_assert_uint_eq(engine_change(rig.engine, change, 2), 0);
    ck_assert_uint_eq(rig.journal.calls, 1);
    /* one that changes nothing among them: told of nothing */
    change[1] = change_of(&rig.def, CHANGE_SET, 2, 1, 9);
    ck_assert_uint_eq(engine_change(rig.engine, change, 2), 1);
    ck_assert_uint_eq(rig.journal.empty_calls, 1);
    rig_fini(&rig);
}
END_TEST

/* As many as a shard may be told of at once, and more; once a shard and
 * CHANGE_BATCH. */
START_TEST(test_large_batch)
{
    struct rig rig;
    struct change change[3 * ENGINE_WRITES_MAX];
    rig_init(&rig, 1, SHARDS);
    rig_define(&rig);
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        change[i] = change_of(&rig.def, CHANGE_SET, i, 1, i + 1);
    }
    uint64_t position = engine_change(rig.engine, change, COUNT_OF(change));
    ck_assert_uint_eq(position, rig.journal.position);
    ck_assert_uint_eq(rig.journal.n, COUNT_OF(change));
    ck_assert_uint_le(rig.journal.calls, 3 * SHARDS);
    rig_fini(&rig);
}
END_TEST

/* Ids in many shards, several of which share a bucket when the batch is
 * sorted: told of once a shard, each under the lock of its own. Ids in a row
 * would not do, their shards are in a row too. */
START_TEST(test_shared_buckets)
{
    enum { MANY_SHARDS = 4096 };
    static bool is_used[MANY_SHARDS];
    struct rig rig;
    struct change change[ENGINE_WRITES_MAX];
    uint64_t random = 1;
    unsigned n_shards = 0;
    rig_init(&rig, 1, MANY_SHARDS);
    rig_define(&rig);
    for (unsigned i = 0; i < COUNT_OF(change); i++) {
        uint64_t id = random_below(&random, UINT64_MAX), row;
        unsigned shard;
        change[i] = change_of(&rig.def, CHANGE_SET, id, 1, i + 1);
        engine_row(rig.engine, id, &shard, &row);
        n_shards += !is_used[shard];
        is_used[shard] = true;
    }
    (void)engine_change(rig.engine, change, COUNT_OF(change));
    ck_assert_uint_eq(rig.journal.n, COUNT_OF(change));
    ck_assert_uint_eq(rig.journal.calls, n_shards);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_row_and_id)
{
    struct engine *engine[] = {
        small_engine(1, RECORDS_MAX), small_engine(4096, RECORDS_MAX)};
    uint64_t state = 3;
    for (unsigned e = 0; e < COUNT_OF(engine); e++) {
        for (unsigned i = 0; i < 10000; i++) {
            uint64_t id = random_below(&state, UINT64_MAX);
            id = i < 5 ? i : i < 10 ? UINT64_MAX - i + 5 : id;
            unsigned shard;
            uint64_t row;
            engine_row(engine[e], id, &shard, &row);
            CHECK(shard < (e == 0 ? 1 : 4096));
            CHECK(row <= UINT64_MAX >> (e == 0 ? 0 : 12));
            CHECK(engine_id(engine[e], shard, row) == id);
        }
        finish_engine(&engine[e]);
    }
}
END_TEST

/* All that was told is of all columns. */
static void
expect_whole(const struct journal *journal, unsigned columns)
{
    ck_assert_uint_gt(journal->n, 0);
    for (size_t i = 0; i < journal->n; i++) {
        CHECK(journal->entry[i].write.n == columns);
    }
}

/* Random batches; one allocation in `fail_each` fails. */
static void
run_random(
    enum id_family family, unsigned columns, unsigned fail_each, bool is_whole)
{
    const struct cell_mood mood = {
        .value_bits = 20, .resets_of_16 = 4, .climbs_of_16 = 1};
    struct cell_model model;
    struct fault_alloc fault;
    struct journal journal;
    struct replica replica;
    struct dist_rng rng;
    struct change change[BATCH_MAX];
    size_t at[BATCH_MAX];
    size_t refused = 0;
    dist_rng_init(&rng, 1, family);
    fault_alloc_init(&fault);
    journal_init(&journal);
    struct engine_config config = {.shards = SHARDS,
        .seed = 1,
        .hot_bytes = ROOMY_BYTES,
        .alloc = &fault.alloc,
        .table_records_max = RECORDS_MAX};
    struct engine *engine = engine_of(&config);
    cell_model_init(&model, SLOT, family, 1, IDS);
    for (unsigned i = 0; i < columns; i++) {
        (void)cell_model_add_column(&model, &rng);
    }
    ck_assert_int_eq(engine_define(engine, &model.def), 0);
    engine_set_sink(engine, &journal.sink);
    engine_set_whole(engine, is_whole);
    for (unsigned step = 0; step < long_part(STEPS); step++) {
        unsigned n = step % 2 == 0 ? 1 : 1 + step % BATCH_MAX;
        for (unsigned i = 0; i < n; i++) {
            bool is_again = i > 0 && dist_rng_u64(&rng) % 3 == 0;
            at[i] = is_again ? at[0] : dist_rng_u64(&rng) % IDS;
            cell_model_random_change(&model, &rng, &mood, at[i], &change[i]);
        }
        if (fail_each > 0 && step % fail_each == 0) {
            fault.fail_from = fault.calls + 1;
            fault.fail_to = fault.calls + 1 + step % 8;
        }
        engine_change(engine, change, n);
        fault.fail_from = fault.fail_to = 0;
        for (unsigned i = 0; i < n; i++) {
            const char *wrong =
                cell_model_judge(&model, at[i], &change[i], fail_each > 0);
            if (wrong != NULL) {
                ck_abort_msg("step %u: %s", step, wrong);
            }
            refused += change[i].err == ERR_NO_MEMORY;
        }
    }
    ck_assert(fail_each == 0 || refused > 0);
    if (is_whole) {
        expect_whole(&journal, columns);
    }
    replica_init(&replica, engine, &model.def, model.id, IDS);
    replica_replay(&replica, &journal);
    replica_check(&replica, engine);
    replica_fini(&replica);
    finish_engine(&engine);
    ck_assert_uint_eq(fault.live_bytes, 0);
    cell_model_fini(&model);
    journal_fini(&journal);
}

START_TEST(test_random)
{
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        run_random(family, 1 + family * 2, 0, false);
        run_random(family, 1 + family * 2, 0, true);
    }
}
END_TEST

START_TEST(test_random_faults)
{
    for (unsigned family = 0; family < ID_FAMILY_COUNT; family++) {
        run_random(family, 16 - family * 2, 1 + family % 3, family % 2 == 0);
    }
}
END_TEST

/* The id beyond maxjump is refused, and not told of. */
START_TEST(test_jump)
{
    struct rig rig;
    rig_init(&rig, 1, 1);
    rig.def.max_jump = 10;
    rig_define(&rig);
    (void)expect_told(&rig, CHANGE_SET, 1, 1, 1, 0, 1);
    (void)expect_told(&rig, CHANGE_SET, 12, 1, 1, ERR_JUMP, -1);
    (void)expect_told(&rig, CHANGE_SET, 11, 1, 1, 0, 1);
    rig_fini(&rig);
}
END_TEST

/* Marks of one shard: numbers up to 63. */
struct marks {
    struct engine_marks marks;
    uint64_t seen;
    struct journal *journal;
    size_t told_before; /* how many the sink knew of at the last mark */
};

static enum engine_mark
look_at(
    struct engine_marks *marks, unsigned shard, const struct change *change)
{
    const struct marks *it = (const struct marks *)marks;
    ck_assert_uint_lt(shard, SHARDS);
    if (change->number >= 62) {
        return change->number == 62 ? ENGINE_MARK_BELOW : ENGINE_MARK_GONE;
    }
    return (it->seen >> change->number & 1) != 0 ? ENGINE_MARK_SEEN
                                                 : ENGINE_MARK_NEW;
}

static void
mark(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    struct marks *it = (struct marks *)marks;
    (void)shard;
    ck_assert_uint_eq(it->seen >> change->number & 1, 0);
    it->seen |= UINT64_C(1) << change->number;
    it->told_before = it->journal->n;
}

/* The change with a number, told with it; and what is told of it. */
START_TEST(test_numbered)
{
    struct rig rig;
    struct marks marks = {.marks = {.look_fn = look_at, .mark_fn = mark}};
    rig_init(&rig, 2, SHARDS);
    rig_define(&rig);
    marks.journal = &rig.journal;
    engine_set_marks(rig.engine, &marks.marks);
    struct {
        uint64_t number;
        enum change_op op;
        uint64_t operand;
        int err;
        bool is_repeat;
        uint64_t value;
        int told; /* cells; -1: nothing */
    } row[] = {{1, CHANGE_INCR, 5, 0, false, 5, 2},
        {1, CHANGE_INCR, 5, 0, true, 5, -1},
        {2, CHANGE_INCR, 0, 0, false, 5, 0},
        {2, CHANGE_INCR, 9, 0, true, 5, -1},
        {3, CHANGE_ADD, 9, ERR_NOT_STORED, false, 0, -1},
        {3, CHANGE_DECR, 9, 0, false, 0, 2},
        {4, CHANGE_DELETE, 0, ERR_NOT_FOUND, false, 0, -1},
        {4, CHANGE_SET, 8, 0, false, 8, 2},
        {4, CHANGE_DELETE, 0, 0, true, 8, -1},
        {62, CHANGE_SET, 9, ERR_OLD_TX, false, 0, -1},
        {63, CHANGE_SET, 9, ERR_PRODUCER_GONE, false, 0, -1},
        {5, CHANGE_INCR, 1, 0, false, 9, 2}};
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        struct change change =
            change_of(&rig.def, row[i].op, 9, 2, row[i].operand);
        size_t before = rig.journal.n;
        change.producer = 7;
        change.number = row[i].number;
        (void)engine_change(rig.engine, &change, 1);
        ck_assert_int_eq(change.err, row[i].err);
        ck_assert(change.err != 0 || change.is_repeat == row[i].is_repeat);
        ck_assert(change.err != 0 || change.value[1] == row[i].value);
        ck_assert_uint_eq(rig.journal.n - before, row[i].told >= 0);
        if (row[i].told >= 0) {
            const struct engine_write *write =
                &rig.journal.entry[before].write;
            ck_assert_uint_eq(marks.told_before, before);
            ck_assert_uint_eq(write->producer, 7);
            ck_assert_uint_eq(write->number, row[i].number);
            ck_assert_uint_lt(write->shard, SHARDS);
            ck_assert_int_eq(write->n, row[i].told);
        }
    }
    rig_fini(&rig);
}
END_TEST

/* What was seen before is no new record, whatever has become of its id since;
 * and what is refused uses no number up. */
START_TEST(test_numbered_jump)
{
    static const struct {
        uint64_t id, number;
        int err;
        bool is_repeat;
    } row[] = {{5, 1, 0, false}, {100, 3, 0, true}, {100, 4, ERR_JUMP, false},
        {100, 62, ERR_OLD_TX, false}, {15, 5, 0, false},
        {26, 6, ERR_JUMP, false}, {25, 6, 0, false}};
    struct change change[COUNT_OF(row)];
    for (size_t at_once = 1; at_once <= COUNT_OF(row); at_once++) {
        struct rig rig;
        struct marks marks = {
            .marks = {.look_fn = look_at, .mark_fn = mark}, .seen = 1 << 3};
        rig_init(&rig, 1, SHARDS);
        rig.def.max_jump = 10;
        rig_define(&rig);
        marks.journal = &rig.journal;
        engine_set_marks(rig.engine, &marks.marks);
        for (size_t i = 0; i < COUNT_OF(row); i++) {
            change[i] = change_of(&rig.def, CHANGE_INCR, row[i].id, 1, 1);
            change[i].producer = 7;
            change[i].number = row[i].number;
        }
        for (size_t i = 0; i < COUNT_OF(row); i += at_once) {
            size_t left = COUNT_OF(row) - i;
            (void)engine_change(
                rig.engine, &change[i], left < at_once ? left : at_once);
        }
        for (size_t i = 0; i < COUNT_OF(row); i++) {
            ck_assert_int_eq(change[i].err, row[i].err);
            ck_assert(change[i].is_repeat == row[i].is_repeat);
        }
        ck_assert_uint_eq(marks.seen, 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6);
        rig_fini(&rig);
    }
}
END_TEST

/* A sink that takes its time, and who settles meanwhile. */
struct slow_sink {
    struct engine_sink sink;
    struct engine *engine;
    struct schema_counter def;
    sem_t entered, may_end;
    atomic_bool has_told, has_settled, was_told;
};

static uint64_t
tell_slowly(
    struct engine_sink *sink, const struct engine_write *write, size_t n)
{
    struct slow_sink *slow = (struct slow_sink *)sink;
    (void)write, (void)n;
    sem_post(&slow->entered);
    sem_wait(&slow->may_end);
    atomic_store(&slow->has_told, true);
    return 1;
}

static void *
change_slowly(void *arg)
{
    struct slow_sink *slow = arg;
    struct change change = change_of(&slow->def, CHANGE_SET, 9, 1, 5);
    (void)engine_change(slow->engine, &change, 1);
    return NULL;
}

static void *
settle(void *arg)
{
    struct slow_sink *slow = arg;
    const struct cell_key key[] = {{.id = 1, .counter = SLOT, .serial = 1},
        {.id = 9, .counter = SLOT, .serial = 1},
        {.id = 9, .counter = SLOT, .serial = 1}};
    engine_settle(slow->engine, key, COUNT_OF(key));
    atomic_store(&slow->was_told, atomic_load(&slow->has_told));
    atomic_store(&slow->has_settled, true);
    return NULL;
}

/* Of any number of shards, whichever they are. */
START_TEST(test_settle_shards)
{
    static const unsigned shards[] = {1, 2, 64, 128, ENGINE_SHARDS_MAX};
    struct cell_key key[256];
    for (size_t i = 0; i < COUNT_OF(shards); i++) {
        struct engine *engine = small_engine(shards[i], RECORDS_MAX);
        for (size_t k = 0; k < COUNT_OF(key); k++) {
            key[k] = (struct cell_key){.id = k * shards[i] / COUNT_OF(key)};
        }
        engine_settle(engine, key, COUNT_OF(key));
        finish_engine(&engine);
    }
}
END_TEST

/* What is seen may not be told yet; when it is settled it is. */
START_TEST(test_settle)
{
    static const struct cell_key key = {.id = 9, .counter = SLOT, .serial = 1};
    struct slow_sink slow = {.sink = {.write_fn = tell_slowly},
        .engine = small_engine(SHARDS, RECORDS_MAX),
        .def = plain_counter(SLOT, 1)};
    struct lock *lock =
        &slow.engine->shard[engine__row(slow.engine, 9).shard].lock;
    pthread_t writer, settler;
    uint64_t value;
    uint8_t state;
    ck_assert_int_eq(engine_define(slow.engine, &slow.def), 0);
    engine_set_sink(slow.engine, &slow.sink);
    sem_init(&slow.entered, 0, 0);
    sem_init(&slow.may_end, 0, 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, change_slowly, &slow), 0);
    sem_wait(&slow.entered);
    engine_get(slow.engine, &key, 1, &value, &state);
    ck_assert_uint_eq(value, 5);
    ck_assert(!atomic_load(&slow.has_told));
    ck_assert_int_eq(pthread_create(&settler, NULL, settle, &slow), 0);
    while (atomic_load(&lock->n_waiting) == 0 &&
        !atomic_load(&slow.has_settled)) {
        sched_yield();
    }
    sem_post(&slow.may_end);
    pthread_join(writer, NULL);
    pthread_join(settler, NULL);
    ck_assert(atomic_load(&slow.was_told));
    engine_settle(slow.engine, NULL, 0);
    sem_destroy(&slow.entered);
    sem_destroy(&slow.may_end);
    finish_engine(&slow.engine);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_one, test_whole, test_batch,
        test_large_batch, test_shared_buckets, test_row_and_id, test_random,
        test_random_faults, test_jump, test_numbered, test_numbered_jump,
        test_settle, test_settle_shards};
    return run_tests("engine_sink", tests, COUNT_OF(tests));
}
