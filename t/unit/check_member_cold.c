/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/member beside a cold tier: changes where the record, the pair, or both
 * are covered; numbers after a restart; what is deleted. Random changes against
 * a plain model, with seals and restarts; and without memory. */
#include "engine/marks.h"
#include "lib/fault_alloc.h"
#include "unit/member_cold_help.h"

enum {
    IDS = 24,
    MEMBERS = 4,
    MOST = (1 << VALUE_BITS) - 1,
    STEPS = 6000,
    SEAL_EACH = 40,
    RESTART_EACH = 500,
    TEND_EACH = 90,
    CHECK_EACH = 200,
    NUMBERS_MAX = 8192,
    FAULT_STEPS = 500,
    SWEEPS_MAX = 4000
};

static const uint64_t MEMBER[MEMBERS] = {0, 1, 77, (1 << BITS) - 1};

static uint64_t
id_of(unsigned i)
{
    return i * UINT64_C(12);
}

/* ---- step by step ---- */

/* A change that is refused with a base, or without one: nothing is told. */
static void
expect_cold(struct world *world, struct change *change,
    const struct engine_base *record, const struct engine_base *pair)
{
    size_t n_told = world->rig.journal.n;
    change->base = record;
    change->member.base = pair;
    engine_change(world->rig.engine, change, 1);
    ck_assert_int_eq(change->err, ERR_COLD);
    ck_assert_int_eq(change->member.step, 0);
    ck_assert_uint_eq(world->rig.journal.n, n_told);
}

static void
expect_told(struct world *world, size_t i, unsigned counter, unsigned n)
{
    const struct engine_write *write = &world->rig.journal.entry[i].write;
    ck_assert_uint_lt(i, world->rig.journal.n);
    ck_assert_uint_eq(write->counter, counter);
    ck_assert_uint_eq(write->n, n);
}

/* The record is here, the pair is not. */
START_TEST(test_pair_cold)
{
    struct world world;
    struct engine_base base[TWO_BASES], other;
    world_init(&world, NULL);
    for (unsigned m = 0; m < 3; m++) {
        ck_assert_int_eq(
            member_cold(&world, CHANGE_MEMBER_SET, 5, m, m + 1), 0);
    }
    seal_part(&world, OF_PAIRS);
    struct change change =
        member_of(&world.rig, CHANGE_MEMBER_DELETE, 5, 1, 0);
    expect_cold(&world, &change, NULL, NULL);
    bring(&world, &change, base);
    ck_assert_ptr_null(change.base);
    ck_assert_ptr_eq(change.member.base, &base[1]);
    /* of another version, of another pair, of the record */
    other = base[1];
    other.version++;
    expect_cold(&world, &change, NULL, &other);
    other = base[1];
    other.id = pair_of(&world, 5, 2);
    expect_cold(&world, &change, NULL, &other);
    expect_cold(&world, &change, &base[1], NULL);
    ck_assert_uint_eq(cold_likes(&world, 5), 3);
    /* the right one */
    size_t n_told = world.rig.journal.n;
    change.member.base = &base[1];
    change.base = NULL;
    engine_change(world.rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_int_eq(change.member.step, -1);
    expect_told(&world, n_told, POSTS, 1);
    expect_told(&world, n_told + 1, PAIRS, 1);
    ck_assert_uint_eq(world.rig.journal.n, n_told + 2);
    ck_assert_uint_eq(cold_likes(&world, 5), 2);
    ck_assert_uint_eq(cold_value(&world, 5, 1), 0);
    /* it is a tombstone now, which needs no base, and may come back */
    change.member.base = NULL;
    engine_change(world.rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_NOT_FOUND);
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_ADD, 5, 1, 1), 0);
    /* the value of the segment counts */
    ck_assert_int_eq(
        member_cold(&world, CHANGE_MEMBER_ADD, 5, 2, 1), ERR_NOT_STORED);
    change = member_of(&world.rig, CHANGE_MEMBER_DECR, 5, 2, 1);
    n_told = world.rig.journal.n;
    ck_assert_int_eq(change_cold(&world, &change), 0);
    ck_assert_uint_eq(change.value[0], 2);
    ck_assert_int_eq(change.member.step, 0);
    expect_told(&world, n_told, PAIRS, 1);
    ck_assert_uint_eq(world.rig.journal.n, n_told + 1);
    ck_assert_uint_eq(cold_likes(&world, 5), 3);
    /* one that was none, and that is refused */
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_SET, 5, 9, 1), 0);
    ck_assert_int_eq(
        member_cold(&world, CHANGE_MEMBER_SET, 5, 8, 4), ERR_OVER_MAX);
    ck_assert_int_eq(
        member_cold(&world, CHANGE_MEMBER_DELETE, 5, 8, 0), ERR_NOT_FOUND);
    ck_assert_uint_eq(cold_likes(&world, 5), 4);
    engine_verify(world.rig.engine);
    world_fini(&world);
}
END_TEST

/* Neither is here; the record first, since it says which pair. */
START_TEST(test_both_cold)
{
    struct world world;
    struct engine_base base[TWO_BASES];
    world_init(&world, NULL);
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_SET, 5, 1, 1), 0);
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_SET, 6, 1, 1), 0);
    seal_part(&world, OF_PAIRS);
    seal_part(&world, OF_RECORDS);
    struct change change = member_of(&world.rig, CHANGE_MEMBER_INCR, 5, 1, 1);
    expect_cold(&world, &change, NULL, NULL);
    bring(&world, &change, base);
    expect_cold(&world, &change, NULL, &base[1]);
    expect_cold(&world, &change, &base[0], NULL);
    /* no member comes or goes: the record stays where it is */
    size_t n_told = world.rig.journal.n;
    change.base = &base[0];
    change.member.base = &base[1];
    engine_change(world.rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 2);
    expect_told(&world, n_told, PAIRS, 1);
    ck_assert_uint_eq(sum_of(world.rig.engine, POSTS).records, 0);
    /* the record is made whole */
    n_told = world.rig.journal.n;
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_DELETE, 6, 1, 0), 0);
    expect_told(&world, n_told, POSTS, COLUMNS);
    expect_told(&world, n_told + 1, PAIRS, 1);
    ck_assert_uint_eq(cold_likes(&world, 6), 0);
    ck_assert_uint_eq(cold_likes(&world, 5), 1);
    /* a record of which there is none wants a base all the same, and then
     * nothing of pairs: its number is new */
    change = member_of(&world.rig, CHANGE_MEMBER_SET, 7, 1, 1);
    expect_cold(&world, &change, NULL, NULL);
    bring(&world, &change, base);
    ck_assert_ptr_null(change.member.base);
    engine_change(world.rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(cold_likes(&world, 7), 1);
    engine_verify(world.rig.engine);
    world_fini(&world);
}
END_TEST

/* Numbers go on behind those of pairs that are covered, also where all that is
 * here is below; and a new number wants no base, though its rows are covered,
 * those that are reserved as well. */
START_TEST(test_numbers)
{
    struct world world;
    struct engine_numbers numbers = {0};
    uint64_t used[WORLD_SHARDS] = {0};
    world_init(&world, NULL);
    for (unsigned round = 0; round < 4; round++) {
        for (uint64_t id = round * 300; id < (round + 1) * 300; id++) {
            unsigned shard;
            uint64_t row;
            struct change change =
                member_of(&world.rig, CHANGE_MEMBER_ADD, id, 3, 1);
            ck_assert_int_eq(change_cold(&world, &change), 0);
            engine_row(world.rig.engine, id, &shard, &row);
            uint64_t number = cold_number(&world, id);
            CHECK(number > used[shard] && number % 256 != 0);
            used[shard] = number;
            if (id % 300 == 20) { /* all is covered from here on */
                seal_part(&world, OF_PAIRS);
            }
        }
        if (round % 2 == 1) {
            seal_part(&world, OF_RECORDS);
            seal_part(&world, OF_PAIRS);
            ck_assert_uint_eq(sum_of(world.rig.engine, PAIRS).records, 0);
        }
        world_restart(&world);
        engine_verify(world.rig.engine);
    }
    for (unsigned shard = 0; shard < WORLD_SHARDS; shard++) {
        engine_numbers(world.rig.engine, PAIRS, BITS, shard, &numbers);
        ck_assert_uint_ge(numbers.given, used[shard]);
        ck_assert_uint_ge(
            numbers.marks * 256, used[shard]); /* none is missed */
        numbers = (struct engine_numbers){0};
    }
    world_fini(&world);
}
END_TEST

/* Only what is covered says how far numbers reach. */
START_TEST(test_numbers_covered)
{
    struct world world;
    world_init(&world, NULL);
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_ADD, 4, 1, 1), 0);
    uint64_t first = cold_number(&world, 4);
    seal_part(&world, OF_PAIRS);
    world_restart(&world);
    ck_assert_uint_eq(sum_of(world.rig.engine, PAIRS).records, 0);
    unsigned shard, other;
    uint64_t row, id = 5;
    engine_row(world.rig.engine, 4, &shard, &row);
    for (;; id++) {
        engine_row(world.rig.engine, id, &other, &row);
        if (other == shard) {
            break;
        }
    }
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_ADD, id, 1, 1), 0);
    ck_assert_uint_eq(first, 1);
    ck_assert_uint_eq(cold_number(&world, id), 257);
    ck_assert_uint_eq(cold_value(&world, 4, 1), 1);
    world_fini(&world);
}
END_TEST

static uint64_t
given_up(struct world *world)
{
    struct engine_given_up given;
    engine_given_up(world->rig.engine, &given);
    return given.waiting;
}

/* What a record that comes as a base gives up is noted as any. */
START_TEST(test_given_up)
{
    for (unsigned k = 0; k < 2; k++) {
        struct world world;
        world_init(&world, NULL);
        ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_SET, 5, 1, 1), 0);
        seal_part(&world, OF_PAIRS);
        seal_part(&world, OF_RECORDS);
        struct change change = k == 0
            ? forget_of(&world.rig, 5)
            : change_of(&world.rig.def, CHANGE_DELETE, 5, COLUMNS, 0);
        ck_assert_int_eq(change_cold(&world, &change), 0);
        ck_assert_uint_eq(world.n_cold, 1);
        ck_assert_uint_eq(given_up(&world), 1);
        ck_assert_uint_eq(cold_likes(&world, 5), 0);
        ck_assert_uint_eq(cold_value(&world, 5, 1), 0);
        ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_ADD, 5, 1, 1), 0);
        ck_assert_uint_eq(cold_number(&world, 5), 2);
        world_fini(&world);
    }
}
END_TEST

/* Whether a number has counted something else is not known of what is covered:
 * there a column that was never written is another one. */
START_TEST(test_is_covered)
{
    struct world world;
    world_init(&world, NULL);
    ck_assert_int_eq(
        change_id(world.rig.engine, &world.rig.def, CHANGE_SET, 5, COLUMNS, 0),
        0);
    ck_assert_int_eq(
        change_id(world.rig.engine, &world.rig.def, CHANGE_SET, 6, 1, 1), 0);
    ck_assert(!engine_is_covered(world.rig.engine, POSTS, NUMBER));
    seal_part(&world, OF_RECORDS);
    ck_assert(!engine_has_values(world.rig.engine, POSTS, NUMBER));
    ck_assert(engine_is_covered(world.rig.engine, POSTS, NUMBER));
    ck_assert(!engine_is_covered(world.rig.engine, POSTS, NUMBER + 1));
    struct schema_counter def = world.rig.def;
    def.column[NUMBER].serial = 90;
    ck_assert_int_eq(engine_define(world.rig.engine, &def), 0);
    ck_assert(!engine_is_covered(world.rig.engine, POSTS, NUMBER));
    world_fini(&world);
}
END_TEST

/* ---- numbered changes ---- */

struct some_marks {
    struct engine_marks marks; /* first */
    unsigned n_marked;
};

static enum engine_mark
look(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)shard, (void)change;
    return ((struct some_marks *)marks)->n_marked == 0 ? ENGINE_MARK_NEW
                                                       : ENGINE_MARK_SEEN;
}

static void
note(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)shard, (void)change;
    ((struct some_marks *)marks)->n_marked++;
}

/* A number is used up when the change is done, not when it waits for bases; and
 * what was done is answered, wherever it lies by then. */
START_TEST(test_numbered)
{
    struct some_marks marks = {{look, note}, 0};
    struct world world;
    world_init(&world, NULL);
    engine_set_marks(world.rig.engine, &marks.marks);
    ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_SET, 5, 1, 1), 0);
    seal_part(&world, OF_PAIRS);
    seal_part(&world, OF_RECORDS);
    struct change change = member_of(&world.rig, CHANGE_MEMBER_INCR, 5, 1, 1);
    change.producer = 3;
    change.number = 9;
    expect_cold(&world, &change, NULL, NULL);
    ck_assert_uint_eq(marks.n_marked, 0);
    for (unsigned k = 0; k < 3; k++) {
        ck_assert_int_eq(change_cold(&world, &change), 0);
        ck_assert_int_eq(change.is_repeat, k > 0);
        ck_assert_uint_eq(change.value[0], 2);
        ck_assert_uint_eq(marks.n_marked, 1);
        seal_part(&world, OF_PAIRS);
        seal_part(&world, OF_RECORDS);
    }
    ck_assert_uint_eq(cold_value(&world, 5, 1), 2);
    ck_assert_uint_eq(cold_likes(&world, 5), 1);
    world_fini(&world);
}
END_TEST

/* A number of a member whose pair is cold, and one behind it that takes all
 * members of the same record, which is here: the second waits for the first. */
START_TEST(test_numbered_order)
{
    struct some_marks marks = {{look, note}, 0};
    struct world world;
    world_init(&world, NULL);
    engine_set_marks(world.rig.engine, &marks.marks);
    for (unsigned m = 0; m < 2; m++) {
        ck_assert_int_eq(member_cold(&world, CHANGE_MEMBER_SET, 5, m, 1), 0);
    }
    seal_part(&world, OF_PAIRS);
    struct change change[] = {
        member_of(&world.rig, CHANGE_MEMBER_SET, 5, 1, 2),
        member_of(&world.rig, CHANGE_MEMBER_SET, 6, 1, 1), /* another one */
        forget_of(&world.rig, 5)};
    change[0].producer = change[2].producer = 3;
    change[0].number = 9;
    change[2].number = 10;
    engine_change(world.rig.engine, change, COUNT_OF(change));
    ck_assert_int_eq(change[0].err, ERR_COLD);
    ck_assert_int_eq(change[1].err, 0);
    ck_assert_int_eq(change[2].err, ERR_COLD);
    ck_assert_uint_eq(marks.n_marked, 0);
    ck_assert_uint_eq(cold_likes(&world, 5), 2);
    world_fini(&world);
}
END_TEST

/* ---- random changes ---- */

struct model {
    uint8_t value[IDS][MEMBERS];
    uint64_t other[IDS];
    uint64_t number[IDS]; /* as it was found last */
    bool used[WORLD_SHARDS][NUMBERS_MAX];
};

/* No number is anybody's twice. */
static void
note_number(struct world *world, struct model *model, unsigned i)
{
    unsigned shard;
    uint64_t row, number = cold_number(world, id_of(i));
    engine_row(world->rig.engine, id_of(i), &shard, &row);
    if (number != 0 && number != model->number[i]) {
        CHECK(number < NUMBERS_MAX && number % 256 != 0);
        CHECK(!model->used[shard][number]);
        model->used[shard][number] = true;
    }
    model->number[i] = number;
}

/* What a member becomes; the err. */
static int
play_member(const struct change *change, uint8_t *value)
{
    unsigned operand = (unsigned)change->operand[0];
    switch (change->op) {
    case CHANGE_MEMBER_ADD:
        if (*value != 0) {
            return ERR_NOT_STORED;
        }
        *value = (uint8_t)operand;
        return 0;
    case CHANGE_MEMBER_INCR:
        *value = (uint8_t)(*value + operand > MOST ? MOST : *value + operand);
        return 0;
    case CHANGE_MEMBER_DECR:
        *value = (uint8_t)(*value < operand ? 0 : *value - operand);
        return 0;
    case CHANGE_MEMBER_DELETE:
        if (*value == 0) {
            return ERR_NOT_FOUND;
        }
        *value = 0;
        return 0;
    default:
        *value = (uint8_t)operand;
        return 0;
    }
}

static struct change
random_change(
    const struct world *world, uint64_t *random, unsigned i, unsigned m)
{
    static const enum change_op op[] = {CHANGE_MEMBER_SET, CHANGE_MEMBER_ADD,
        CHANGE_MEMBER_ADD, CHANGE_MEMBER_INCR, CHANGE_MEMBER_DECR,
        CHANGE_MEMBER_DELETE, CHANGE_MEMBER_DELETE};
    const struct rig *rig = &world->rig;
    struct change change;
    switch (random_below(random, 20)) {
    case 0:
        return forget_of(rig, id_of(i));
    case 1:
        return change_of(&rig->def, CHANGE_DELETE, id_of(i), COLUMNS, 0);
    case 2:
        change = change_of(
            &rig->def, CHANGE_SET, id_of(i), 1, random_below(random, 9));
        change.column[0] = rig->def.column[NUMBER].slot;
        change.serial[0] = rig->def.column[NUMBER].serial;
        return change;
    default:
        return member_of(rig, op[random_below(random, COUNT_OF(op))], id_of(i),
            MEMBER[m], random_below(random, MOST + 1));
    }
}

/* The model does the change; the err that there is to be. had_number: of the
 * record, before it. */
static int
play(struct model *model, const struct change *change, unsigned i, unsigned m,
    bool had_number)
{
    if (change_is_of_member(change)) {
        return play_member(change, &model->value[i][m]);
    }
    if (change->op == CHANGE_SET) {
        model->other[i] = change->operand[0];
        return 0;
    }
    bool is_there = had_number;
    if (change->n_columns == COLUMNS) {
        is_there = is_there || model->other[i] != 0;
        model->other[i] = 0;
    }
    memset(model->value[i], 0, sizeof model->value[i]);
    return is_there ? 0 : ERR_NOT_FOUND;
}

/* All is as the model has it, and counts are those of the members. */
static void
judge(struct world *world, const struct model *model)
{
    for (unsigned i = 0; i < IDS; i++) {
        unsigned n = 0;
        for (unsigned m = 0; m < MEMBERS; m++) {
            CHECK(
                cold_value(world, id_of(i), MEMBER[m]) == model->value[i][m]);
            n += model->value[i][m] != 0;
        }
        CHECK(cold_likes(world, id_of(i)) == n);
        CHECK(cold_cell(world, &world->rig.def, NUMBER, id_of(i)) ==
            model->other[i]);
    }
}

static void
seal_some(struct world *world, uint64_t *random)
{
    unsigned part = (unsigned)random_below(random, PARTS);
    unsigned shard = (unsigned)random_below(random, WORLD_SHARDS);
    unsigned first = (unsigned)random_below(random, CELLS);
    unsigned last = first + (unsigned)random_below(random, CELLS - first);
    ck_assert_int_eq(seal_cells(world, part, shard, first, last, NULL), 0);
}

START_TEST(test_random)
{
    static struct model model;
    struct world world;
    uint64_t random = 11 + (uint64_t)_i, now_ms = 0;
    memset(&model, 0, sizeof model);
    world_init(&world, NULL);
    for (unsigned step = 1; step <= STEPS; step++) {
        unsigned i = (unsigned)random_below(&random, IDS);
        unsigned m = (unsigned)random_below(&random, MEMBERS);
        struct change change = random_change(&world, &random, i, m);
        int err =
            play(&model, &change, i, m, cold_number(&world, id_of(i)) != 0);
        CHECK(change_cold(&world, &change) == err);
        note_number(&world, &model, i);
        if (step % SEAL_EACH == 0) {
            seal_some(&world, &random);
        }
        if (step % TEND_EACH == 0) {
            (void)engine_tend(world.rig.engine, now_ms += 400);
        }
        if (step % RESTART_EACH == 0) {
            world_restart(&world);
        }
        if (step % CHECK_EACH == 0 || step % RESTART_EACH == 0) {
            judge(&world, &model);
            engine_verify(world.rig.engine);
        }
    }
    ck_assert_uint_gt(world.n_cold, STEPS / 20);
    world_fini(&world);
}
END_TEST

/* ---- memory ---- */

/* Its allocations do not count. */
static void
seal_with_memory(struct world *world, struct fault_alloc *fault, unsigned part)
{
    size_t from = fault->fail_from, to = fault->fail_to;
    size_t n_calls = fault->calls;
    fault->fail_from = fault->fail_to = 0;
    seal_part(world, part);
    fault->fail_from = from;
    fault->fail_to = to;
    if (n_calls < from) {
        fault->fail_from += fault->calls - n_calls;
        fault->fail_to += to == SIZE_MAX ? 0 : fault->calls - n_calls;
    }
}

/* One run of changes, each of them with its bases, of which the n-th allocation
 * fails, and with for_ever all behind it: false where it never came. What is
 * refused leaves all as it was, and the sink is not told. */
static bool
sweep(size_t n, bool for_ever)
{
    static struct model model;
    struct world world;
    struct fault_alloc fault;
    uint64_t random = 7;
    fault_alloc_init(&fault);
    memset(&model, 0, sizeof model);
    world_init(&world, &fault.alloc);
    fault.fail_from = fault.calls + n;
    fault.fail_to = for_ever ? SIZE_MAX : fault.fail_from;
    for (unsigned step = 0; step < FAULT_STEPS; step++) {
        unsigned i = (unsigned)random_below(&random, IDS);
        unsigned m = (unsigned)random_below(&random, MEMBERS);
        struct change change = random_change(&world, &random, i, m);
        bool had_number = cold_number(&world, id_of(i)) != 0;
        size_t n_told = world.rig.journal.n, n_failed = fault.failures;
        int err = change_cold(&world, &change);
        if (err == ERR_NO_MEMORY) {
            CHECK(fault.failures > n_failed);
            CHECK(world.rig.journal.n == n_told);
            judge(&world, &model);
        } else {
            CHECK(err == play(&model, &change, i, m, had_number));
        }
        note_number(&world, &model, i);
        if (step % 20 == 19) {
            seal_with_memory(
                &world, &fault, step % 40 == 19 ? OF_PAIRS : OF_RECORDS);
        }
    }
    bool has_failed = fault.failures > 0;
    fault.fail_from = fault.fail_to = 0;
    judge(&world, &model);
    engine_verify(world.rig.engine);
    if (n % 8 == 1) {
        world_restart(&world);
        judge(&world, &model);
    }
    world_fini(&world);
    ck_assert_uint_eq(fault.live_bytes, 0);
    return has_failed;
}

START_TEST(test_no_memory)
{
    size_t n = 1;
    while (sweep(n, _i == 1)) {
        n++;
        ck_assert_uint_lt(n, SWEEPS_MAX);
    }
    ck_assert_uint_gt(n, 40); /* fewer would prove little */
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_pair_cold, test_both_cold, test_numbers,
        test_numbers_covered, test_given_up, test_is_covered, test_numbered,
        test_numbered_order};
    TCase *tcase = tcase_create("member cold");
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, test_random, 0, 4);
    tcase_add_loop_test(tcase, test_no_memory, 0, 2);
    return run_case("member cold", tcase);
}
