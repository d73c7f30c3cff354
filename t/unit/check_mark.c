/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/change_mark: what a mark becomes, whatever its source does, alone and
 * in batches, in rows that are covered, and by numbered changes. */
#include "engine/marks.h"
#include "unit/cover_help.h"

enum {
    MARK = 0,
    AT = 1,
    OTHER = 2
}; /* columns of the rig's counter; OTHER
                                       * has the default 5 */

static struct change
mark_of(struct rig *rig, enum change_op op, uint64_t id, uint64_t operand)
{
    struct change change = change_of(&rig->def, op, id, 1, operand);
    change.source = (struct change_source){.from = SOURCE_HERE,
        .column = rig->def.column[AT].slot,
        .serial = rig->def.column[AT].serial};
    return change;
}

static void
set_cell(struct rig *rig, unsigned column, uint64_t id, uint64_t value)
{
    struct change change = {.op = CHANGE_SET,
        .id = id,
        .counter = rig->def.slot,
        .n_columns = 1,
        .column = {rig->def.column[column].slot},
        .serial = {rig->def.column[column].serial},
        .operand = {value}};
    engine_change(rig->engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
}

/* One change of the mark of id 1: what comes of it. */
struct step {
    enum change_op op;
    uint64_t operand;
    int err;
    uint64_t after; /* the mark, also where it is refused */
};

static void
play_steps(struct rig *rig, const struct change *form, const struct step *step,
    size_t n)
{
    uint64_t before = step[0].after;
    set_cell(rig, MARK, 1, before);
    for (size_t i = 1; i < n; i++) {
        struct change change = *form;
        change.id = 1;
        change.op = step[i].op;
        change.operand[0] = step[i].operand;
        change.cas = step[i].operand >> 32;
        change.operand[0] &= UINT32_MAX;
        change.n_saturated = 9;
        engine_change(rig->engine, &change, 1);
        if (change.err != step[i].err) {
            ck_abort_msg("step %zu: %s", i, err_text(change.err));
        }
        expect_value(rig->engine, &rig->def, MARK, 1, step[i].after);
        ck_assert_uint_eq(change.n_saturated, 0);
        if (change.err == 0) {
            ck_assert_uint_eq(change.value[0],
                mark_position(step[i].after, 40, form->source.forget));
            ck_assert_int_eq(change.is_moved, step[i].after != before);
        }
        before = step[i].after;
    }
}

#define CAS(unique, value) ((uint64_t)(unique) << 32 | (value))

static const struct step steps[] = {
    {CHANGE_MARK_SET, 0, 0, 0}, /* the mark to begin with; source 40 */
    {CHANGE_MARK_REPLACE, 5, ERR_NOT_STORED, 0},
    {CHANGE_MARK_DELETE, 0, ERR_NOT_FOUND, 0},
    {CHANGE_MARK_SET, 0, 0, 0},
    {CHANGE_MARK_DECR, 3, 0, 0},
    {CHANGE_MARK_ADD, 10, 0, 10},
    {CHANGE_MARK_ADD, 20, ERR_NOT_STORED, 10},
    {CHANGE_MARK_SET, 9, 0, 10},
    {CHANGE_MARK_SET, 0, 0, 10},
    {CHANGE_MARK_REPLACE, 12, 0, 12},
    {CHANGE_MARK_CAS, CAS(12, 14), ERR_EXISTS, 12},
    {CHANGE_MARK_CAS, CAS(13, 11), 0, 12},
    {CHANGE_MARK_CAS, CAS(13, 14), 0, 14},
    {CHANGE_MARK_INCR, 3, 0, 17},
    {CHANGE_MARK_DECR, 2, 0, 15},
    {CHANGE_MARK_INCR, 0, 0, 15},
    {CHANGE_MARK_INCR, 100, 0, 40},
    {CHANGE_MARK_INCR, 1, 0, 40},
    {CHANGE_READ_ALL, 0, ERR_NOT_FOUND, 40},
    {CHANGE_MARK_DECR, 41, 0, 0},
    {CHANGE_READ_ALL, 0, 0, 40},
    {CHANGE_MARK_DELETE, 0, 0, 0},
    {CHANGE_MARK_SET, UINT32_MAX, 0, 40},
    {CHANGE_MARK_DECR, 1, 0, 39},
    {CHANGE_MARK_CAS, CAS(40, UINT32_MAX), 0, 40},
};

/* The source is above, then it goes below the mark, which stays. */
static const struct step sunk[] = {
    {CHANGE_MARK_SET, 0, 0, 50},
    {CHANGE_MARK_SET, 60, 0, 50},
    {CHANGE_MARK_INCR, 1, 0, 50},
    {CHANGE_READ_ALL, 0, ERR_NOT_FOUND, 50},
    {CHANGE_MARK_DECR, 5, 0, 45},
    {CHANGE_MARK_INCR, 9, 0, 45},
    {CHANGE_MARK_REPLACE, 41, 0, 45},
    {CHANGE_MARK_DECR, 15, 0, 30},
    {CHANGE_MARK_INCR, 100, 0, 40},
};

START_TEST(test_moves)
{
    struct rig rig;
    rig_init(&rig);
    struct change form = mark_of(&rig, CHANGE_MARK_SET, 1, 0);
    set_cell(&rig, AT, 1, 40);
    play_steps(&rig, &form, steps, COUNT_OF(steps));
    play_steps(&rig, &form, sunk, COUNT_OF(sunk));
    form.source = (struct change_source){.from = SOURCE_GIVEN, .value = 40};
    set_cell(&rig, AT, 1, 7); /* it does not count */
    play_steps(&rig, &form, steps, COUNT_OF(steps));
    play_steps(&rig, &form, sunk, COUNT_OF(sunk));
    /* a source with a default that nobody has set */
    form.source = (struct change_source){.from = SOURCE_HERE,
        .column = rig.def.column[OTHER].slot,
        .serial = rig.def.column[OTHER].serial};
    const struct step few[] = {
        {CHANGE_MARK_SET, 0, 0, 0},
        {CHANGE_MARK_INCR, 4, 0, 4},
        {CHANGE_MARK_SET, 9, 0, 5},
    };
    play_steps(&rig, &form, few, COUNT_OF(few));
    rig_fini(&rig);
}
END_TEST

/* A mark more than 10 below its source, which is 40, is none. */
START_TEST(test_forget)
{
    static const struct step forgotten[] = {
        {CHANGE_MARK_SET, 0, 0, 29},
        {CHANGE_MARK_INCR, 0, 0, 29}, /* nothing is moved */
        {CHANGE_MARK_DECR, 1, 0, 29},
        {CHANGE_MARK_SET, 0, 0, 29},
        {CHANGE_MARK_REPLACE, 35, ERR_NOT_STORED, 29},
        {CHANGE_MARK_CAS, CAS(30, 35), ERR_EXISTS, 29},
        {CHANGE_READ_ALL, 0, ERR_NOT_FOUND, 29},
        {CHANGE_MARK_SET, 7, 0, 29}, /* late: it goes not back */
        {CHANGE_MARK_INCR, 7, 0, 29},
        {CHANGE_MARK_DELETE, 0, 0, 0}, /* and comes not back */
        {CHANGE_MARK_DELETE, 0, ERR_NOT_FOUND, 0},
        {CHANGE_MARK_INCR, 32, 0, 32},
        {CHANGE_MARK_ADD, 35, ERR_NOT_STORED, 32},
        {CHANGE_READ_ALL, 0, 0, 40},
        {CHANGE_MARK_DECR, 10, 0, 30}, /* still one */
        {CHANGE_MARK_INCR, 1, 0, 31},
        {CHANGE_MARK_FORGET, 31, ERR_NOT_FOUND, 31}, /* it counts */
        {CHANGE_MARK_DECR, 2, 0, 29},
        {CHANGE_MARK_ADD, 20, 0, 29}, /* forgotten, and further than that */
        {CHANGE_MARK_FORGET, 28, ERR_NOT_FOUND, 29}, /* another one */
        {CHANGE_MARK_FORGET, 29, 0, 0},
        {CHANGE_MARK_FORGET, 0, ERR_NOT_FOUND, 0},
        {CHANGE_MARK_CAS, CAS(1, 38), 0, 38},
    };
    struct rig rig;
    rig_init(&rig);
    struct change form = mark_of(&rig, CHANGE_MARK_SET, 1, 0);
    form.source.forget = 10;
    form.source.unmarked_is_none = true;
    set_cell(&rig, AT, 1, 40);
    /* what moves nothing answers 0, which the play takes for the record's */
    for (size_t i = 1; i < 4; i++) {
        set_cell(&rig, MARK, 1, 29);
        struct change change = form;
        change.op = forgotten[i].op;
        change.operand[0] = forgotten[i].operand;
        engine_change(rig.engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
        ck_assert_uint_eq(change.value[0], 0);
        ck_assert_int_eq(change.is_moved, false);
        expect_value(rig.engine, &rig.def, MARK, 1, 29);
    }
    struct step rest[COUNT_OF(forgotten) - 3];
    rest[0] = forgotten[0];
    memcpy(&rest[1], &forgotten[4], sizeof rest - sizeof rest[0]);
    play_steps(&rig, &form, rest, COUNT_OF(rest));
    rig_fini(&rig);
}
END_TEST

/* What is at no mark, and under absent=miss absent: as of a number. */
START_TEST(test_absent)
{
    struct rig rig;
    rig_init(&rig);
    for (unsigned miss = 0; miss < 2; miss++) {
        rig.def.absent_is_miss = miss != 0;
        rig_define(&rig);
        set_cell(&rig, AT, 1, 40);
        struct change form = mark_of(&rig, CHANGE_MARK_SET, 1, 0);
        const struct step none[] = {
            {CHANGE_MARK_SET, 0, 0, 0},
            {CHANGE_MARK_CAS, CAS(1, 3), miss ? ERR_NOT_FOUND : 0,
                miss ? 0 : 3},
        };
        play_steps(&rig, &form, none, COUNT_OF(none));
        form.absent = CHANGE_NOT_ABSENT;
        const struct step existing[] = {
            {CHANGE_MARK_SET, 0, 0, 0},
            {CHANGE_MARK_DECR, 3, miss ? ERR_NOT_FOUND : 0, 0},
            {CHANGE_MARK_INCR, 3, miss ? ERR_NOT_FOUND : 0, miss ? 0 : 3},
        };
        play_steps(&rig, &form, existing, COUNT_OF(existing));
        form.absent = CHANGE_TO_INITIAL;
        form.initial = 99;
        const struct step initial[] = {
            {CHANGE_MARK_SET, 0, 0, 0},
            {CHANGE_MARK_INCR, 3, 0, 40},
        };
        play_steps(&rig, &form, initial, COUNT_OF(initial));
        form.compares = true; /* of what is unread */
        const struct step all[] = {
            {CHANGE_MARK_SET, 0, 0, 30},
            {CHANGE_READ_ALL, CAS(31, 0), ERR_EXISTS, 30},
            {CHANGE_READ_ALL, CAS(11, 0), 0, 40},
            {CHANGE_READ_ALL, CAS(1, 0), ERR_NOT_FOUND, 40},
            {CHANGE_MARK_DECR, CAS(40, 3), ERR_EXISTS, 40},
            {CHANGE_MARK_DECR, CAS(41, 3), 0, 37},
            {CHANGE_MARK_DELETE, CAS(38, 0), 0, 0},
        };
        play_steps(&rig, &form, all, COUNT_OF(all));
    }
    rig_fini(&rig);
}
END_TEST

/* No number is made up where the mark or its source is gone, or unreadable. */
START_TEST(test_gone)
{
    struct rig rig;
    rig_init(&rig);
    set_cell(&rig, MARK, 1, 3);
    struct change mark = mark_of(&rig, CHANGE_MARK_SET, 1, 5);
    struct change source = mark;
    struct change told[2] = {mark, mark};
    mark.serial[0] = 99;
    source.source.serial = 99;
    told[0].source.from = SOURCE_GONE;
    told[1].source.from = SOURCE_UNREADABLE;
    engine_change(rig.engine, &mark, 1);
    ck_assert_int_eq(mark.err, ERR_GONE);
    engine_change(rig.engine, &source, 1);
    ck_assert_int_eq(source.err, ERR_GONE);
    engine_change(rig.engine, told, 2);
    ck_assert_int_eq(told[0].err, ERR_GONE);
    ck_assert_int_eq(told[1].err, ERR_COLD_READ);
    expect_value(rig.engine, &rig.def, MARK, 1, 3);
    rig_fini(&rig);
}
END_TEST

/* The source as it is at that place of the batch. */
START_TEST(test_batch)
{
    struct rig rig;
    rig_init(&rig);
    struct change change[] = {mark_of(&rig, CHANGE_MARK_SET, 1, 9),
        {.op = CHANGE_INCR,
            .id = 1,
            .counter = rig.def.slot,
            .n_columns = 1,
            .column = {rig.def.column[AT].slot},
            .serial = {rig.def.column[AT].serial},
            .operand = {6}},
        mark_of(&rig, CHANGE_MARK_INCR, 1, 4),
        mark_of(&rig, CHANGE_MARK_SET, 1, 9), mark_of(&rig, 0, 1, 0)};
    change[4] = change[1];
    engine_change(rig.engine, change, COUNT_OF(change));
    ck_assert_uint_eq(change[0].value[0], 0);
    ck_assert_uint_eq(change[1].value[0], 6);
    ck_assert_uint_eq(change[2].value[0], 4);
    ck_assert_uint_eq(change[3].value[0], 6);
    ck_assert_uint_eq(change[4].value[0], 12);
    expect_value(rig.engine, &rig.def, MARK, 1, 6);
    rig_fini(&rig);
}
END_TEST

/* A cold record comes with the change, source and all: mark 10, source 20. */
START_TEST(test_cold)
{
    struct rig rig;
    rig_init(&rig);
    cover(&rig, 10, 19, VERSION);
    struct change change = mark_of(&rig, CHANGE_MARK_SET, 10, 99);
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_COLD);
    change.base = base_of(&rig, VERSION, true);
    rig.base.id = change.id;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 20);
    expect_here(&rig, 10, 20, 20, 30);
    change = mark_of(&rig, CHANGE_MARK_SET, 11, 5); /* behind */
    change.base = base_of(&rig, VERSION, true);
    rig.base.id = change.id;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 10);
    expect_absent(&rig, 11, VERSION);
    rig_fini(&rig);
}
END_TEST

/* A mark makes a record as a number does, where its source lets it. */
START_TEST(test_maxjump)
{
    struct rig rig;
    rig_init(&rig);
    rig.def.max_jump = 10;
    rig_define(&rig);
    set_cell(&rig, AT, 1, 5);
    struct change change = mark_of(&rig, CHANGE_MARK_SET, 50, 3);
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0); /* the source is 0, and no record made */
    ck_assert_uint_eq(change.value[0], 0);
    change.source = (struct change_source){.from = SOURCE_GIVEN, .value = 9};
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_JUMP);
    change.id = 11;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 3);
    rig_fini(&rig);
}
END_TEST

static enum engine_mark number_is = ENGINE_MARK_NEW;

static enum engine_mark
look_at(
    struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)marks, (void)shard, (void)change;
    return number_is;
}

static void
note(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)marks, (void)shard, (void)change;
    number_is = ENGINE_MARK_SEEN;
}

/* A repeat tells the mark now, and moves nothing. */
START_TEST(test_numbered)
{
    struct engine_marks marks = {look_at, note};
    struct rig rig;
    rig_init(&rig);
    number_is = ENGINE_MARK_NEW;
    engine_set_marks(rig.engine, &marks);
    set_cell(&rig, AT, 1, 40);
    struct change change = mark_of(&rig, CHANGE_MARK_INCR, 1, 30);
    change.producer = 1;
    change.source.forget = 20;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 30);
    ck_assert_int_eq(change.is_repeat, false);
    ck_assert_int_eq(change.is_moved, true);
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(change.value[0], 30);
    ck_assert_int_eq(change.is_repeat, true);
    ck_assert_int_eq(change.is_moved, false);
    set_cell(&rig, AT, 1, 51); /* it is forgotten */
    engine_change(rig.engine, &change, 1);
    ck_assert_uint_eq(change.value[0], 0);
    ck_assert_int_eq(change.is_repeat, true);
    expect_value(rig.engine, &rig.def, MARK, 1, 30);
    rig_fini(&rig);
}
END_TEST

/* ---- random changes, and a slow model ---- */

enum { IDS = 40, ROUNDS = 4000, BATCH = 24 };

struct world {
    uint64_t mark[IDS], at[IDS];
    uint64_t forget;
    bool is_none;
    bool is_moved; /* by the last change: what counts, whatever is stored */
};

static uint64_t
below(struct dist_rng *rng, uint64_t n)
{
    return dist_rng_u64(rng) % n;
}

static uint64_t
model_unread(const struct world *world, size_t i, uint64_t position)
{
    if (position == 0 && world->is_none) {
        return 0;
    }
    return world->at[i] > position ? world->at[i] - position : 0;
}

/* Does a change of id i as the words of the language have it: its err. */
static int
model_change(struct world *world, size_t i, const struct change *change)
{
    uint64_t at = world->at[i];
    uint64_t old = world->mark[i];
    uint64_t n = change->operand[0];
    bool is_old = world->forget != 0 && old + world->forget < at;
    uint64_t position = is_old ? 0 : old;
    uint64_t top = position > at ? position : at;
    uint64_t to = n < top ? n : top;
    bool is_cas = change->op == CHANGE_MARK_CAS;
    to = to < position ? position : to;
    if (is_cas && change->cas != position + 1) {
        return ERR_EXISTS;
    }
    switch (change->op) {
    case CHANGE_MARK_ADD:
        if (position != 0) {
            return ERR_NOT_STORED;
        }
        break;
    case CHANGE_MARK_REPLACE:
        if (position == 0) {
            return ERR_NOT_STORED;
        }
        break;
    case CHANGE_MARK_INCR:
        to = position + n < top ? position + n : top;
        break;
    case CHANGE_MARK_DECR:
        to = n > position ? 0 : position - n;
        break;
    case CHANGE_MARK_DELETE:
        if (old == 0) {
            return ERR_NOT_FOUND;
        }
        to = 0;
        break;
    case CHANGE_MARK_FORGET:
        if (!is_old || old == 0 || old != n) {
            return ERR_NOT_FOUND;
        }
        world->is_moved = true;
        world->mark[i] = 0;
        return 0;
    case CHANGE_READ_ALL:
        if (model_unread(world, i, position) == 0) {
            return ERR_NOT_FOUND;
        }
        to = top;
        break;
    default:
        break;
    }
    if (is_old && change->op != CHANGE_MARK_DELETE && to < old) {
        to = old; /* it may count again */
    }
    world->is_moved = to != old;
    world->mark[i] = to;
    return 0;
}

static struct change
random_change(
    struct rig *rig, struct dist_rng *rng, const struct world *world, size_t i)
{
    uint64_t dice = below(rng, 3);
    if (dice == 0) { /* the source goes up or down */
        struct change change = {.op = CHANGE_INCR,
            .id = i * 7,
            .counter = rig->def.slot,
            .n_columns = 1,
            .column = {rig->def.column[AT].slot},
            .serial = {rig->def.column[AT].serial},
            .operand = {below(rng, 30)}};
        change.op = below(rng, 3) == 0 ? CHANGE_DECR : CHANGE_INCR;
        return change;
    }
    struct change change =
        mark_of(rig, (enum change_op)(CHANGE_MARK_SET + below(rng, 9)), i * 7,
            below(rng, 120));
    if (change.op == CHANGE_MARK_FORGET && below(rng, 4) != 0) {
        change.operand[0] = world->mark[i];
    }
    change.cas = below(rng, 2) == 0 ? world->mark[i] + 1 : below(rng, 100);
    change.source.forget = world->forget;
    change.source.unmarked_is_none = world->is_none;
    return change;
}

/* What the model says of one change, done or refused by the engine. */
static void
judge(struct world *world, const struct change *change)
{
    size_t i = change->id / 7;
    uint64_t n = change->operand[0];
    if (!change_is_of_mark(change)) {
        uint64_t at = world->at[i];
        world->at[i] =
            change->op == CHANGE_INCR ? at + n : (n < at ? at - n : 0);
        CHECK(change->value[0] == world->at[i]);
        return;
    }
    int err = model_change(world, i, change);
    CHECK(change->err == err);
    CHECK(err != 0 || change->is_moved == world->is_moved);
    CHECK(err != 0 || !change->is_moved ||
        change->value[0] ==
            mark_position(world->mark[i], world->at[i], world->forget));
}

static void
play_random(uint64_t seed, uint64_t forget, bool is_none)
{
    struct rig rig;
    struct world world = {.forget = forget, .is_none = is_none};
    struct dist_rng rng;
    struct change change[BATCH];
    rig_init(&rig);
    dist_rng_init(&rng, seed, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t n = 1 + below(&rng, BATCH);
        for (size_t k = 0; k < n; k++) {
            change[k] = random_change(&rig, &rng, &world, below(&rng, IDS));
        }
        engine_change(rig.engine, change, n);
        for (size_t k = 0; k < n; k++) {
            judge(&world, &change[k]);
        }
        size_t i = below(&rng, IDS);
        expect_value(rig.engine, &rig.def, MARK, i * 7, world.mark[i]);
        expect_value(rig.engine, &rig.def, AT, i * 7, world.at[i]);
        uint64_t position = mark_position(world.mark[i], world.at[i], forget);
        CHECK(mark_unread(position, world.at[i], is_none) ==
            model_unread(&world, i, position));
    }
    rig_fini(&rig);
}

START_TEST(test_random)
{
    play_random(1, 0, false);
    play_random(2, 0, true);
    play_random(3, 25, true);
    play_random(4, 1, true);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_moves, test_forget, test_absent,
        test_gone, test_batch, test_cold, test_maxjump, test_numbered,
        test_random};
    return run_tests("mark", tests, COUNT_OF(tests));
}
