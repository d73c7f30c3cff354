/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/member and engine/members: what the change of a member makes of its
 * pair, of the count and of the record's number, alone and in batches, and
 * after a restart; random changes beside a slow model; tables of many pairs. */
#include "engine/cover.h"
#include "engine/engine_priv.h"
#include "engine/marks.h"
#include "unit/member_help.h"

enum { MEMBERS = 8, IDS = 1200, BATCH_MAX = 64, NUMBERS_MAX = 8192 };

/* One change of member 5 of id 1: what comes of it. */
struct step {
    enum change_op op;
    uint64_t operand, cas;
    int err;
    uint64_t after; /* also where it is refused */
    unsigned n_told;
};

static const struct step steps[] = {
    {CHANGE_MEMBER_REPLACE, 1, 0, ERR_NOT_STORED, 0, 0},
    {CHANGE_MEMBER_DELETE, 0, 0, ERR_NOT_FOUND, 0, 0},
    {CHANGE_MEMBER_CAS, 1, 2, ERR_EXISTS, 0, 0},
    {CHANGE_MEMBER_SET, 8, 0, ERR_OVER_MAX, 0, 0},
    {CHANGE_MEMBER_SET, 0, 0, 0, 0, 0},
    {CHANGE_MEMBER_INCR, 0, 0, 0, 0, 0},
    {CHANGE_MEMBER_DECR, 3, 0, 0, 0, 0},
    {CHANGE_MEMBER_ADD, 2, 0, 0, 2, 3}, /* and a reservation */
    {CHANGE_MEMBER_ADD, 3, 0, ERR_NOT_STORED, 2, 0},
    {CHANGE_MEMBER_REPLACE, 3, 0, 0, 3, 1},
    {CHANGE_MEMBER_CAS, 4, 3, ERR_EXISTS, 3, 0},
    {CHANGE_MEMBER_CAS, 4, 4, 0, 4, 1},
    {CHANGE_MEMBER_INCR, 2, 0, 0, 6, 1},
    {CHANGE_MEMBER_INCR, 2, 0, 0, 7, 1}, /* saturates */
    {CHANGE_MEMBER_INCR, 1, 0, 0, 7, 0},
    {CHANGE_MEMBER_DECR, 5, 0, 0, 2, 1},
    {CHANGE_MEMBER_DECR, 5, 0, 0, 0, 2},
    {CHANGE_MEMBER_SET, 1, 0, 0, 1, 2},
    {CHANGE_MEMBER_SET, 1, 0, 0, 1, 0},
    {CHANGE_MEMBER_SET, 0, 0, 0, 0, 2},
    {CHANGE_MEMBER_INCR, 1, 0, 0, 1, 2},
    {CHANGE_MEMBER_DELETE, 0, 0, 0, 0, 2},
};

START_TEST(test_steps)
{
    struct rig rig;
    uint64_t before = 0;
    rig_init(&rig, 4, 33, 3);
    ck_assert_uint_eq(number_of(&rig, 1), 0);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        const struct step *step = &steps[i];
        struct change change = member_of(&rig, step->op, 1, 5, step->operand);
        change.cas = step->cas;
        size_t n_told = rig.journal.n;
        uint64_t calls = rig.journal.calls;
        engine_change(rig.engine, &change, 1);
        if (change.err != step->err ||
            rig.journal.n - n_told != step->n_told) {
            ck_abort_msg("step %zu: %s, %zu told", i, err_text(change.err),
                rig.journal.n - n_told);
        }
        ck_assert_uint_eq(rig.journal.calls - calls, change.err == 0);
        ck_assert_uint_eq(likes_of(&rig, 1), step->after != 0);
        ck_assert_uint_eq(value_of(&rig, 1, 5), step->after);
        ck_assert_int_eq(
            change.member.step, (step->after != 0) - (before != 0));
        ck_assert_uint_eq(change.n_saturated,
            step->op == CHANGE_MEMBER_INCR && i >= 13 && step->after == 7);
        if (change.err == 0) {
            ck_assert_uint_eq(change.value[0], step->after);
        }
        before = step->after;
    }
    ck_assert_uint_eq(number_of(&rig, 1), 1);
    ck_assert_uint_eq(value_of(&rig, 2, 5), 0);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_rules)
{
    struct rig rig;
    rig_form(&rig, 1, 16, 3);
    rig.pairs.absent_is_miss = true;
    rig.pairs.overflow_is_error = true;
    rig.def.column[LIKES].max_bits = 1;
    rig_make(&rig, NULL, NULL);
    struct change change = member_of(&rig, CHANGE_MEMBER_INCR, 1, 0, 5);
    change.absent = CHANGE_NOT_ABSENT;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_NOT_FOUND);
    ck_assert_uint_eq(number_of(&rig, 1), 0);
    change.absent = CHANGE_TO_INITIAL;
    change.initial = 6;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(value_of(&rig, 1, 0), 6);
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_OVERFLOW);
    ck_assert_int_eq(change.member.step, 0);
    ck_assert_uint_eq(value_of(&rig, 1, 0), 6);
    /* the count is at its max */
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_SET, 1, 1, 1), ERR_OVERFLOW);
    ck_assert_uint_eq(value_of(&rig, 1, 1), 0);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 1, 0, 7), 0);
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_CAS, 1, 65535, 1), ERR_NOT_FOUND);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_DELETE, 1, 0, 0), 0);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 1, 65535, 1), 0);
    ck_assert_uint_eq(likes_of(&rig, 1), 1);
    /* a column, a count or pairs that are not there any more */
    change = member_of(&rig, CHANGE_MEMBER_SET, 1, 2, 1);
    change.serial[0]++;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_GONE);
    change = member_of(&rig, CHANGE_MEMBER_SET, 1, 2, 1);
    change.member.counts_serial++;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_GONE);
    change = member_of(&rig, CHANGE_MEMBER_SET, 1, 2, 1);
    change.member.serial++;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_GONE);
    engine_undefine(rig.engine, PAIRS);
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_DELETE, 1, 65535, 0), ERR_GONE);
    rig_fini(&rig);
}
END_TEST

/* Without a column that counts, and without a sink. */
START_TEST(test_uncounted)
{
    struct rig rig;
    rig_init(&rig, 1, 33, 1);
    for (unsigned i = 0; i < 3; i++) {
        struct change change = member_of(&rig, CHANGE_MEMBER_SET, 7, i, 1);
        change.member.counts = false;
        engine_set_sink(rig.engine, i == 2 ? NULL : &rig.journal.sink);
        engine_change(rig.engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
        ck_assert_int_eq(change.member.step, 1);
        ck_assert_uint_eq(rig.journal.n, i == 0 ? 3 : 4);
        ck_assert_uint_eq(value_of(&rig, 7, i), 1);
    }
    ck_assert_uint_eq(likes_of(&rig, 7), 0);
    rig_fini(&rig);
}
END_TEST

/* The reserved numbers are nobody's, and what does not fit is refused. */
START_TEST(test_numbers)
{
    static const struct {
        unsigned shards, bits;
        uint64_t n; /* records of a shard that get a number */
    } row[] = {{1, 33, 3000}, {1, 48, 3000}, {4096, 48, 0}, {256, 48, 0},
        {128, 48, 255}, {16, 48, 15 * 255}, {16, 28, 3000}, {16, 16, 3000}};
    for (size_t k = 0; k < COUNT_OF(row); k++) {
        struct rig rig;
        uint64_t n = 0, id = 0;
        rig_init(&rig, row[k].shards, row[k].bits, 1);
        ck_assert_int_eq(
            engine_has_numbers(rig.engine, row[k].bits), row[k].n > 0);
        for (; n <= row[k].n && n < 3000; id++) {
            unsigned shard;
            uint64_t at;
            engine_row(rig.engine, id, &shard, &at);
            if (shard != 0) {
                continue;
            }
            int err = change_member(&rig, CHANGE_MEMBER_SET, id, 9, 1);
            ck_assert_int_eq(err, n == row[k].n ? ERR_MANY_MEMBERS : 0);
            ck_assert_uint_eq(number_of(&rig, id),
                err == 0 ? n / 255 * 256 + n % 255 + 1 : 0);
            ck_assert_uint_eq(likes_of(&rig, id), err == 0);
            n++;
        }
        n = n > row[k].n ? row[k].n : n;
        ck_assert_uint_eq(
            sum_of(rig.engine, PAIRS).records, n + (n + 254) / 255);
        rig_fini(&rig);
    }
}
END_TEST

/* All of a member's writes are in one call, however many there are. */
START_TEST(test_batch)
{
    struct change change[3 * BATCH_MAX];
    for (unsigned mix = 1; mix <= 4; mix++) {
        struct rig rig;
        unsigned n = 0;
        rig_init(&rig, 1, 33, 1);
        for (unsigned i = 0; i < COUNT_OF(change); i++) {
            change[i] = i % mix == 0
                ? member_of(&rig, CHANGE_MEMBER_SET, i / 2, i, 1)
                : change_of(&rig.def, CHANGE_INCR, i / 2, 1, 1);
            change[i].column[0] = i % mix == 0 ? LIKED : NUMBER;
            change[i].serial[0] = rig.def.column[change[i].column[0]].serial;
        }
        uint64_t position =
            engine_change(rig.engine, change, COUNT_OF(change));
        ck_assert_uint_eq(position, rig.journal.position);
        for (unsigned i = 0; i < COUNT_OF(change); i++) {
            ck_assert_int_eq(change[i].err, 0);
        }
        for (size_t i = 0; i < rig.journal.n; i++) {
            const struct journal_entry *it = &rig.journal.entry[i];
            if (it->write.counter == PAIRS && it->write.id % (1ULL << 33)) {
                ck_assert_uint_eq(it[-1].write.counter, POSTS);
                ck_assert_uint_eq(it[-1].position, it->position);
                n++;
            }
        }
        ck_assert_uint_eq(n,
            (COUNT_OF(change) + mix - 1) / mix -
                1); /* member 0 looks like a reservation */
        rig_restart(&rig);
        for (unsigned i = 0; i < COUNT_OF(change); i += mix) {
            ck_assert_uint_eq(value_of(&rig, i / 2, i), 1);
        }
        rig_fini(&rig);
    }
}
END_TEST

/* What the ids of a test have: the slow model. */
struct world {
    struct rig rig;
    unsigned value_bits;
    uint64_t random;
    uint64_t id[IDS];
    uint64_t member[MEMBERS];
    uint8_t value[IDS][MEMBERS];
    uint64_t number[IDS]; /* value of the third column */
    /* which id has ever had a number, + 1 */
    uint32_t owner[16][NUMBERS_MAX];
};

static uint64_t
below(struct world *world, uint64_t n)
{
    return random_below(&world->random, n);
}

static unsigned
count_of(const struct world *world, unsigned at)
{
    unsigned n = 0;
    for (unsigned m = 0; m < MEMBERS; m++) {
        n += world->value[at][m] != 0;
    }
    return n;
}

/* What the change of a member comes to. */
static int
model_member(struct world *world, const struct change *change, uint8_t *value)
{
    uint64_t max = (1U << world->value_bits) - 1;
    uint64_t operand = change->operand[0];
    switch (change->op) {
    case CHANGE_MEMBER_ADD:
    case CHANGE_MEMBER_REPLACE:
    case CHANGE_MEMBER_SET:
    case CHANGE_MEMBER_CAS:
        if (operand > max) {
            return ERR_OVER_MAX;
        }
        if (change->op == CHANGE_MEMBER_CAS && change->cas != *value + 1U) {
            return ERR_EXISTS;
        }
        if ((change->op == CHANGE_MEMBER_ADD && *value != 0) ||
            (change->op == CHANGE_MEMBER_REPLACE && *value == 0)) {
            return ERR_NOT_STORED;
        }
        *value = (uint8_t)operand;
        return 0;
    case CHANGE_MEMBER_INCR:
        *value = (uint8_t)(operand > max - *value ? max : *value + operand);
        return 0;
    case CHANGE_MEMBER_DECR:
        *value = (uint8_t)(operand > *value ? 0 : *value - operand);
        return 0;
    default:
        if (*value == 0) {
            return ERR_NOT_FOUND;
        }
        *value = 0;
        return 0;
    }
}

/* A change, and what it must be answered. */
static struct change
random_change(struct world *world, unsigned at, int *err, uint64_t *value)
{
    struct rig *rig = &world->rig;
    uint64_t id = world->id[at];
    unsigned m = (unsigned)below(world, MEMBERS);
    uint64_t dice = below(world, 40);
    struct change change;
    *value = 0;
    if (dice == 0) { /* the whole record */
        change = change_of(&rig->def, CHANGE_DELETE, id, COLUMNS, 0);
    } else if (dice == 1) {
        change = forget_of(rig, id);
    } else if (dice < 6) {
        change = change_of(&rig->def, CHANGE_INCR, id, 1, dice);
        change.column[0] = NUMBER;
        change.serial[0] = rig->def.column[NUMBER].serial;
        *value = world->number[at] += dice;
        *err = 0;
        return change;
    } else {
        enum change_op op = CHANGE_MEMBER_SET +
            (unsigned)below(
                world, CHANGE_MEMBER_DELETE - CHANGE_MEMBER_SET + 1);
        change = member_of(rig, op, id, world->member[m], below(world, 3));
        change.cas = 1 + below(world, 2);
        *err = model_member(world, &change, &world->value[at][m]);
        *value = world->value[at][m];
        return change;
    }
    /* whether there is a number is the engine's to know: its answer is seen to
     * in what is there afterwards */
    *err = -1;
    memset(world->value[at], 0, sizeof world->value[at]);
    world->number[at] = dice == 0 ? 0 : world->number[at];
    return change;
}

static void
check_id(struct world *world, unsigned at)
{
    struct rig *rig = &world->rig;
    uint64_t id = world->id[at];
    uint64_t number = number_of(rig, id);
    unsigned shard, n = count_of(world, at);
    uint64_t row, member[MEMBERS + 1], value[MEMBERS + 1];
    engine_row(rig->engine, id, &shard, &row);
    CHECK(likes_of(rig, id) == n);
    CHECK(cell_of(rig, &rig->def, NUMBER, id) == world->number[at]);
    CHECK(number != 0 || n == 0);
    CHECK(number < NUMBERS_MAX && (number == 0 || number % 256 != 0));
    if (number != 0) {
        uint32_t *owner = &world->owner[shard][number];
        CHECK(*owner == 0 || *owner == at + 1);
        *owner = at + 1;
    }
    for (unsigned m = 0; m < MEMBERS; m++) {
        CHECK(value_of(rig, id, world->member[m]) == world->value[at][m]);
    }
    uint64_t from = world->member[at % MEMBERS];
    size_t found = engine_members(rig->engine, PAIRS, id, number, rig->bits,
        from, MEMBERS + 1, member, value);
    for (unsigned m = at % MEMBERS, i = 0; m < MEMBERS; m++) {
        if (world->value[at][m] != 0) {
            CHECK(i < found && member[i] == world->member[m] &&
                value[i] == world->value[at][m]);
            i++;
        }
        CHECK(m < MEMBERS - 1 || i == found);
    }
    if (n > 2) {
        CHECK(engine_members(rig->engine, PAIRS, id, number, rig->bits, 0, 2,
                  member, value) == 2);
    }
}

static void
random_batch(struct world *world)
{
    struct change change[BATCH_MAX];
    int err[BATCH_MAX];
    uint64_t value[BATCH_MAX];
    unsigned at[BATCH_MAX];
    unsigned n =
        below(world, 2) == 0 ? 1 : 1 + (unsigned)below(world, BATCH_MAX);
    unsigned span = below(world, 2) == 0 ? 3 : IDS;
    unsigned first = (unsigned)below(world, IDS - span + 1);
    for (unsigned i = 0; i < n; i++) {
        at[i] = first + (unsigned)below(world, span);
        change[i] = random_change(world, at[i], &err[i], &value[i]);
    }
    engine_change(world->rig.engine, change, n);
    for (unsigned i = 0; i < n; i++) {
        if (err[i] >= 0 && change[i].err != err[i]) {
            ck_abort_msg("op %d: %s, not %s", (int)change[i].op,
                err_text(change[i].err), err_text(err[i]));
        }
        CHECK(err[i] != 0 || change[i].value[0] == value[i]);
        CHECK(err[i] >= 0 || change[i].err == 0 ||
            change[i].err == ERR_NOT_FOUND);
    }
    for (unsigned i = 0; i < n; i++) {
        check_id(world, at[i]);
    }
}

/* Pairs that no record reaches are gone, all others are there. */
static void
check_taken_out(struct world *world)
{
    struct engine_given_up given;
    struct engine_sum sum;
    uint64_t now_ms = 0, n = 0;
    tend_all(world->rig.engine, &now_ms);
    engine_given_up(world->rig.engine, &given);
    ck_assert_uint_eq(given.waiting, 0);
    ck_assert_uint_eq(given.lost, 0);
    for (unsigned at = 0; at < IDS; at++) {
        check_id(world, at);
        n += count_of(world, at);
    }
    for (unsigned shard = 0; shard < world->rig.shards; shard++) {
        unsigned top = NUMBERS_MAX - 1;
        while (top > 0 && world->owner[shard][top] == 0) {
            top--;
        }
        n += (top + 255) / 256; /* what is reserved */
    }
    sum = sum_of(world->rig.engine, PAIRS);
    ck_assert_uint_eq(sum.records, n);
    engine_verify(world->rig.engine);
}

static void
play(unsigned shards, unsigned bits, unsigned value_bits)
{
    enum { ROUNDS = 4, BATCHES = 400 };
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    rig_init(&world->rig, shards, bits, value_bits);
    world->value_bits = value_bits;
    world->random = bits;
    for (unsigned i = 0; i < IDS; i++) {
        world->id[i] = i % 2 == 0 ? i : UINT64_MAX / 2 + 977 * i;
    }
    for (unsigned m = 0; m < MEMBERS; m++) {
        world->member[m] =
            m == MEMBERS - 1 ? (UINT64_C(1) << bits) - 1 : m * m;
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < BATCHES; i++) {
            random_batch(world);
        }
        if (round % 2 == 0) {
            check_taken_out(world);
        }
        rig_restart(&world->rig);
        check_taken_out(world);
    }
    rig_fini(&world->rig);
    free(world);
}

START_TEST(test_random_16)
{
    play(16, 16, 1);
}
END_TEST

START_TEST(test_random_33)
{
    play(1, 33, 3);
}
END_TEST

START_TEST(test_random_48)
{
    play(2, 48, 8);
}
END_TEST

/* Many members of one id: they go a piece at a time, and the reserved number
 * stays. A note is void when its counter of pairs is another one. */
START_TEST(test_take_out)
{
    enum { MANY = 3000 };
    struct rig rig;
    struct engine_given_up given;
    uint64_t member[MANY + 1], value[MANY + 1];
    rig_init(&rig, 2, 33, 2);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert_int_eq(
            change_member(&rig, CHANGE_MEMBER_SET, 4, 3 * i, 1 + i % 3), 0);
        ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 6, i, 1), 0);
    }
    uint64_t number = number_of(&rig, 4);
    ck_assert_uint_eq(engine_members(rig.engine, PAIRS, 4, number, 33, 0,
                          MANY + 1, member, value),
        MANY);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK(member[i] == 3 * i && value[i] == 1 + i % 3);
    }
    struct change change = forget_of(&rig, 4);
    size_t n_told = rig.journal.n;
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, 0);
    ck_assert_uint_eq(rig.journal.n, n_told + 2); /* with the stored note */
    ck_assert_uint_eq(number_of(&rig, 4), 0);
    ck_assert_uint_eq(likes_of(&rig, 4), 0);
    engine_change(rig.engine, &change, 1);
    ck_assert_int_eq(change.err, ERR_NOT_FOUND);
    /* it comes back while the old ones are there */
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_ADD, 4, 0, 1), 0);
    ck_assert_uint_ne(number_of(&rig, 4), number);
    ck_assert_uint_eq(likes_of(&rig, 4), 1);
    uint64_t calls = rig.journal.calls;
    while (engine_take_out(rig.engine)) {
        ck_assert_uint_le(rig.journal.calls, ++calls);
    }
    engine_given_up(rig.engine, &given);
    ck_assert_uint_eq(given.pairs, MANY);
    ck_assert_uint_eq(given.waiting, 0);
    unsigned shard[2];
    uint64_t row;
    engine_row(rig.engine, 4, &shard[0], &row);
    engine_row(rig.engine, 6, &shard[1], &row);
    ck_assert_uint_eq(sum_of(rig.engine, PAIRS).records,
        MANY + 1 + 1 + (shard[0] != shard[1]));
    /* the record of 6 goes; its pairs do by themselves */
    change = change_of(&rig.def, CHANGE_DELETE, 6, COLUMNS, 0);
    engine_change(rig.engine, &change, 1);
    ck_assert(engine_take_out(rig.engine));
    engine_given_up(rig.engine, &given);
    uint64_t n_before = given.pairs;
    ck_assert_uint_gt(n_before, MANY);
    ck_assert_uint_lt(n_before, MANY + MANY);
    engine_undefine(rig.engine, PAIRS);
    rig.pairs.column[0].serial++;
    rig_define(&rig);
    while (engine_take_out(rig.engine)) {
    }
    engine_given_up(rig.engine, &given);
    ck_assert_uint_eq(given.pairs, n_before);
    ck_assert_uint_eq(given.waiting, 0);
    rig_fini(&rig);
}
END_TEST

/* A number that goes and comes back in a replay, as that begins in the middle
 * of a batch, is taken out of nothing. */
START_TEST(test_replay)
{
    struct rig rig;
    struct engine_given_up given;
    uint64_t now_ms = 0;
    rig_init(&rig, 1, 33, 1);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 4, 7, 1), 0);
    engine_set_sink(rig.engine, NULL);
    engine_begin_loading(rig.engine);
    for (uint64_t number = 0; number <= 1; number++) {
        ck_assert_int_eq(
            change_id(rig.engine, &rig.def, CHANGE_SET, 4, 1, number), 0);
    }
    engine_end_loading(rig.engine);
    engine_given_up(rig.engine, &given);
    ck_assert_uint_eq(given.waiting, 0);
    tend_all(rig.engine, &now_ms);
    ck_assert_uint_eq(value_of(&rig, 4, 7), 1);
    rig_fini(&rig);
}
END_TEST

static uint64_t
pairs_of(struct rig *rig)
{
    return sum_of(rig->engine, PAIRS).records;
}

/* What is given up is known behind a start, by its stored note, at whatever
 * point of it the crash was; and in the end nothing is left of it. */
START_TEST(test_crash)
{
    enum { MANY = 600, STEPS_MAX = 40 };
    unsigned n_calls = 0;
    bool is_over = false;
    for (; !is_over && n_calls < STEPS_MAX; n_calls++) {
        struct rig rig;
        struct engine_given_up given;
        uint64_t now_ms = 0;
        rig_init(&rig, 1, 33, 1);
        for (unsigned i = 0; i < MANY; i++) {
            uint64_t id = i < MANY / 2 ? 4 : 7 + i;
            ck_assert_int_eq(
                change_member(&rig, CHANGE_MEMBER_SET, id, i, 1), 0);
        }
        for (uint64_t id = 4; id < 7 + MANY; id += 503) {
            struct change change =
                change_of(&rig.def, CHANGE_DELETE, id, COLUMNS, 0);
            engine_change(rig.engine, &change, 1);
            ck_assert_int_eq(change.err, 0);
        }
        for (unsigned i = 0; i < n_calls && !is_over; i++) {
            is_over = !engine_take_out(rig.engine);
        }
        rig_restart(&rig);
        engine_given_up(rig.engine, &given);
        ck_assert(given.is_looking);
        tend_all(rig.engine, &now_ms);
        engine_given_up(rig.engine, &given);
        ck_assert(!given.is_looking);
        ck_assert_uint_eq(given.waiting + given.lost, 0);
        /* two blocks of numbers are reserved */
        ck_assert_uint_eq(pairs_of(&rig), MANY / 2 - 1 + 2);
        rig_restart(&rig);
        ck_assert_uint_eq(pairs_of(&rig), MANY / 2 - 1 + 2);
        rig_fini(&rig);
    }
    ck_assert(is_over);
    ck_assert_uint_gt(n_calls, 4);
}
END_TEST

/* Of a batch each one that goes is told with its note, whatever the room. */
START_TEST(test_many_go)
{
    enum { MANY = 130 };
    struct rig rig;
    struct change change[MANY];
    uint64_t now_ms = 0;
    rig_init(&rig, 1, 33, 1);
    for (uint64_t id = 0; id < MANY; id++) {
        ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, id, 3, 1), 0);
        change[id] = change_of(&rig.def, CHANGE_DELETE, id, COLUMNS, 0);
    }
    size_t n_told = rig.journal.n;
    engine_change(rig.engine, change, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK(change[i].err == 0);
    }
    ck_assert_uint_eq(rig.journal.n, n_told + 2 * (size_t)MANY);
    rig_restart(&rig);
    ck_assert_uint_eq(pairs_of(&rig), 2 * MANY + 1);
    tend_all(rig.engine, &now_ms);
    ck_assert_uint_eq(pairs_of(&rig), 1);
    rig_fini(&rig);
}
END_TEST

/* Numbered changes: which of them are new is as told. */
struct fake_marks {
    struct engine_marks marks; /* first */
    enum engine_mark answer;
    unsigned n_marked;
};

static enum engine_mark
look_at(
    struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)shard, (void)change;
    return ((struct fake_marks *)marks)->answer;
}

static void
note(struct engine_marks *marks, unsigned shard, const struct change *change)
{
    (void)shard, (void)change;
    ((struct fake_marks *)marks)->n_marked++;
}

START_TEST(test_numbered)
{
    struct rig rig;
    struct fake_marks marks = {{look_at, note}, ENGINE_MARK_NEW, 0};
    struct change change[BATCH_MAX];
    rig_init(&rig, 1, 33, 2);
    engine_set_marks(rig.engine, &marks.marks);
    for (unsigned i = 0; i < BATCH_MAX; i++) {
        change[i] = member_of(&rig, CHANGE_MEMBER_INCR, i, 5, 2);
        change[i].producer = 4;
        change[i].number = i;
    }
    engine_change(rig.engine, change, BATCH_MAX);
    ck_assert_uint_eq(marks.n_marked, BATCH_MAX);
    unsigned n = 0;
    for (size_t i = 0; i < rig.journal.n; i++) {
        const struct journal_entry *it = &rig.journal.entry[i];
        if (it->write.producer != 0) {
            ck_assert_uint_eq(it->write.number, n);
            size_t pair = i + 1 + (n == 0); /* a reservation comes first */
            ck_assert_uint_eq(it[pair - i].position, it->position);
            n++;
        }
    }
    ck_assert_uint_eq(n, BATCH_MAX);
    marks.answer = ENGINE_MARK_SEEN;
    size_t n_told = rig.journal.n;
    engine_change(rig.engine, change, BATCH_MAX);
    for (unsigned i = 0; i < BATCH_MAX; i++) {
        ck_assert_int_eq(change[i].err, 0);
        ck_assert(change[i].is_repeat);
        ck_assert_int_eq(change[i].member.step, 0);
        ck_assert_uint_eq(change[i].value[0], 2);
        ck_assert_uint_eq(likes_of(&rig, i), 1);
    }
    ck_assert_uint_eq(rig.journal.n, n_told);
    marks.answer = ENGINE_MARK_BELOW;
    engine_change(rig.engine, change, 1);
    ck_assert_int_eq(change[0].err, ERR_OLD_TX);
    rig_fini(&rig);
}
END_TEST

/* What would make a record is held back, and nothing else is. */
START_TEST(test_maxjump)
{
    struct rig rig;
    struct change change[3];
    rig_form(&rig, 1, 33, 1);
    rig.def.max_jump = 10;
    rig_make(&rig, NULL, NULL);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 100, 1, 1), 0);
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_SET, 111, 1, 1), ERR_JUMP);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 111, 1, 0), 0);
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_DELETE, 111, 1, 0), ERR_NOT_FOUND);
    ck_assert_uint_eq(number_of(&rig, 111), 0);
    change[0] = member_of(&rig, CHANGE_MEMBER_ADD, 121, 1, 1);
    change[1] = member_of(&rig, CHANGE_MEMBER_ADD, 110, 1, 1);
    change[2] = member_of(&rig, CHANGE_MEMBER_INCR, 120, 1, 1);
    engine_change(rig.engine, change, 3);
    ck_assert_int_eq(change[0].err, ERR_JUMP);
    ck_assert_int_eq(change[1].err, 0);
    ck_assert_int_eq(change[2].err, 0);
    rig_fini(&rig);
}
END_TEST

/* A record that is elsewhere still: refused with all behind it, until it comes
 * along. */
enum { COVER_VERSION = 5 };

static uint64_t
version_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    (void)cover, (void)shard, (void)row;
    return slot == POSTS ? COVER_VERSION : 0;
}

static bool
is_any_covered(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    (void)cover, (void)shard, (void)first_row, (void)last_row;
    return slot == POSTS;
}

static bool
last_row_of(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    (void)cover, (void)slot, (void)shard, (void)row;
    return false;
}

START_TEST(test_cold)
{
    static const struct engine_cover cover = {.version_fn = version_of,
        .any_fn = is_any_covered,
        .last_row_fn = last_row_of};
    struct engine_base base = {.id = 9,
        .version = COVER_VERSION,
        .is_there = true,
        .n_columns = 1,
        .code = {40}};
    struct rig rig;
    struct change change[2];
    rig_init(&rig, 1, 33, 1);
    engine_set_cover(rig.engine, &cover);
    base.serial[0] = rig.def.column[NUMBER].serial;
    for (unsigned i = 0; i < 2; i++) {
        change[i] = member_of(&rig, CHANGE_MEMBER_SET, 9, i, 1);
    }
    change[1].base = &base;
    engine_change(rig.engine, change, 2);
    ck_assert_int_eq(change[0].err, ERR_COLD);
    ck_assert_int_eq(change[1].err, ERR_COLD);
    ck_assert_uint_eq(rig.journal.n, 0);
    change[0].base = &base;
    engine_change(rig.engine, change, 2);
    ck_assert_int_eq(change[0].err, 0);
    ck_assert_int_eq(change[1].err, 0);
    ck_assert_uint_eq(likes_of(&rig, 9), 2);
    ck_assert_uint_eq(cell_of(&rig, &rig.def, NUMBER, 9), 40);
    ck_assert_uint_eq(rig.journal.entry[1].write.n, COLUMNS); /* whole */
    rig_fini(&rig);
}
END_TEST

enum { MANY_POSTS = 3, MANY_USERS = 3000 };

/* User number n of a post; others are between these. */
static uint64_t
many_user(unsigned post, unsigned n)
{
    return (post + 1) * 1000 + 5000 * (uint64_t)n;
}

/* Pairs are what they should be: of post 1 those of users n with n % 3 == 0 are
 * not there any more, of post 2 none is. Tables of pairs are single: their
 * codes are 1. */
static void
expect_many(struct rig *rig, bool is_changed)
{
    const struct counter *counter = engine__counter(rig->engine, PAIRS);
    for (unsigned post = 0; post < MANY_POSTS; post++) {
        uint64_t n_likes = 0;
        for (unsigned n = 0; n < MANY_USERS; n++) {
            uint64_t is_there =
                !is_changed || post == 0 || (post == 1 && n % 3 != 0);
            uint64_t user = many_user(post, n);
            if (value_of(rig, post + 7, user) != is_there ||
                value_of(rig, post + 7, user + 1) != 0) {
                ck_abort_msg("post %u, user %u", post, n);
            }
            n_likes += is_there;
        }
        ck_assert_uint_eq(likes_of(rig, post + 7), n_likes);
    }
    unsigned n_large = 0;
    for (unsigned i = 0; i < rig->shards; i++) {
        const struct ranges *ranges = &counter->ranges[i];
        bool is_large = ranges->n_records >= 1000;
        ck_assert(!is_large || ranges->set->shapes.is_single);
        n_large += is_large;
    }
    ck_assert_uint_gt(n_large, 0);
}

START_TEST(test_many)
{
    struct rig rig;
    rig_form(&rig, 2, 30, 1);
    rig.table_records = 2000;
    rig_make(&rig, NULL, NULL);
    for (unsigned post = 0; post < MANY_POSTS; post++) {
        for (unsigned n = 0; n < MANY_USERS; n++) {
            ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_ADD, post + 7,
                                 many_user(post, n), 1),
                0);
        }
    }
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_ADD, 7, many_user(0, 9), 1),
        ERR_NOT_STORED);
    expect_many(&rig, false);
    rig_restart(&rig);
    expect_many(&rig, false);
    for (unsigned n = 0; n < MANY_USERS; n += 3) {
        ck_assert_int_eq(
            change_member(&rig, CHANGE_MEMBER_DELETE, 8, many_user(1, n), 0),
            0);
    }
    struct change forget = forget_of(&rig, 9);
    engine_change(rig.engine, &forget, 1);
    ck_assert_int_eq(forget.err, 0);
    for (uint64_t ms = 1000; ms < 20000; ms += 1100) {
        (void)engine_tend(rig.engine, ms);
    }
    expect_many(&rig, true);
    rig_restart(&rig);
    expect_many(&rig, true);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_steps, test_rules, test_uncounted,
        test_numbers, test_batch, test_random_16, test_random_33,
        test_random_48, test_take_out, test_replay, test_crash, test_many_go,
        test_numbered, test_maxjump, test_cold, test_many};
    return run_tests("member", tests, COUNT_OF(tests));
}
