/* SPDX-License-Identifier: BSD-3-Clause */
/* Members in a store of which records and pairs are sealed, overlaid, merged
 * and made hot again all the time, and which stops. A plain model says what
 * there is; each count is that of the members. */
#include "unit/durable_help.h"

#include <errno.h>

enum {
    IDS = 30,
    MEMBERS = 5,
    BITS = 17,
    MOST = 3,
    BATCH = 12,
    BATCHES = 60, /* a round */
    ROUNDS = 14,
    WORLDS = 4,
    NUMBERS_MAX = 16384,
    RIG_SHARDS = 4
};

static const uint64_t MEMBER[MEMBERS] = {0, 3, 4, 1000, (1 << BITS) - 1};

static const char *const LINES[] = {"add counter p",
    "add column p pid primarykey", "add column p other", "add column p likes",
    "add column p m members=exact counts=likes max=2 member=17"};

struct world {
    struct rig rig;
    struct cell_key members, likes, other;
    uint32_t pairs_serial;
    uint8_t pairs_slot;
    /* what there is: */
    uint8_t value[IDS][MEMBERS];
    uint64_t number[IDS]; /* as it was found last */
    uint64_t plain[IDS];
    bool used[RIG_SHARDS * 64][NUMBERS_MAX]; /* by what ids have in common */
};

static uint64_t
id_of(unsigned i)
{
    return i * UINT64_C(3);
}

static uint64_t
below(struct world *world, uint64_t n)
{
    return random_below(&world->rig.random, n);
}

/* Looks up what the schema has, where it has members. */
static void
resolve(struct world *world)
{
    const struct schema *schema = quiet_schema(world->rig.store);
    struct schema_target target;
    if (!schema_find(schema, "m", 1, &target)) {
        return;
    }
    world->members = cell_of(schema, 0, "m");
    world->likes = cell_of(schema, 0, "likes");
    world->other = cell_of(schema, 0, "other");
    world->pairs_serial = schema_pairs_serial(target.column);
    world->pairs_slot = target.column->pairs;
}

/* ---- what is found ---- */

static struct cell_key
key_for(const struct cell_key *column, unsigned i)
{
    struct cell_key key = *column;
    key.id = id_of(i);
    return key;
}

static uint64_t
cell_in(struct world *world, const struct cell_key *key)
{
    uint64_t value;
    ck_assert_int_le(get_cell(world->rig.store, key, &value), CELL_SET);
    return value;
}

static uint64_t
number_in(struct world *world, unsigned i)
{
    struct cell_key key = key_for(&world->members, i);
    return cell_in(world, &key);
}

static struct cell_key
pair_key(struct world *world, unsigned i, uint64_t number, uint64_t member)
{
    return (struct cell_key){
        .id = store_pair(world->rig.store, id_of(i), number, BITS, member),
        .serial = world->pairs_serial,
        .counter = world->pairs_slot};
}

/* All of it, in gets that are answered together, as a page is. */
static void
judge(struct world *world)
{
    struct store_get first = {.n = 3 * IDS}, then = {.n = IDS * MEMBERS};
    for (unsigned i = 0; i < IDS; i++) {
        first.key[3 * i] = key_for(&world->members, i);
        first.key[3 * i + 1] = key_for(&world->likes, i);
        first.key[3 * i + 2] = key_for(&world->other, i);
    }
    rig_get(&world->rig, &first);
    for (unsigned k = 0; k < IDS * MEMBERS; k++) {
        then.key[k] = pair_key(world, k / MEMBERS,
            first.value[3 * (k / MEMBERS)], MEMBER[k % MEMBERS]);
    }
    rig_get(&world->rig, &then);
    for (unsigned i = 0; i < IDS; i++) {
        unsigned n = 0;
        for (unsigned m = 0; m < MEMBERS; m++) {
            EXPECT(then.state[i * MEMBERS + m] <= CELL_SET &&
                    then.value[i * MEMBERS + m] == world->value[i][m],
                "member %u of id %u is %u, not %u", m, i,
                (unsigned)then.value[i * MEMBERS + m], world->value[i][m]);
            n += world->value[i][m] != 0;
        }
        EXPECT(first.value[3 * i + 1] == n, "id %u counts %u, not %u", i,
            (unsigned)first.value[3 * i + 1], n);
        EXPECT(first.value[3 * i + 2] == world->plain[i], "other of %u", i);
    }
}

/* ---- changes ---- */

static struct change
member_change(
    struct world *world, enum change_op op, unsigned i, unsigned m, unsigned n)
{
    struct cell_key key = key_for(&world->members, i);
    struct change change = change_of(&key, op, n);
    change.member = (struct change_member){.counter = world->pairs_slot,
        .bits = BITS,
        .counts_column = world->likes.column,
        .counts = true,
        .serial = world->pairs_serial,
        .counts_serial = world->likes.serial,
        .member = MEMBER[m]};
    return change;
}

static struct change
forget_change(struct world *world, unsigned i, bool of_record)
{
    struct cell_key key = key_for(&world->members, i);
    struct change change = change_of(&key, CHANGE_DELETE, 0);
    change.column[1] = world->likes.column;
    change.serial[1] = world->likes.serial;
    change.column[2] = world->other.column;
    change.serial[2] = world->other.serial;
    change.n_columns = of_record ? 3 : 2;
    return change;
}

/* One change, and what it is about. */
struct step {
    unsigned i, m;
};

static struct change
random_change(struct world *world, struct step *step)
{
    static const enum change_op op[] = {CHANGE_MEMBER_SET, CHANGE_MEMBER_ADD,
        CHANGE_MEMBER_ADD, CHANGE_MEMBER_ADD, CHANGE_MEMBER_INCR,
        CHANGE_MEMBER_DECR, CHANGE_MEMBER_DELETE, CHANGE_MEMBER_DELETE};
    step->i = (unsigned)below(world, IDS);
    step->m = (unsigned)below(world, MEMBERS);
    struct cell_key other = key_for(&world->other, step->i);
    switch (below(world, 30)) {
    case 0:
        return forget_change(world, step->i, false);
    case 1:
        return forget_change(world, step->i, true);
    case 2:
        return change_of(&other, CHANGE_SET, below(world, 9));
    default:
        return member_change(world, op[below(world, COUNT_OF(op))], step->i,
            step->m, (unsigned)below(world, MOST + 1));
    }
}

static unsigned
n_members(const struct world *world, unsigned i)
{
    unsigned n = 0;
    for (unsigned m = 0; m < MEMBERS; m++) {
        n += world->value[i][m] != 0;
    }
    return n;
}

/* What becomes of a member; the err. */
static int
play_member(uint8_t *value, enum change_op op, unsigned n)
{
    unsigned was = *value;
    switch (op) {
    case CHANGE_MEMBER_ADD:
        *value = (uint8_t)(was == 0 ? n : was);
        return was == 0 ? 0 : ERR_NOT_STORED;
    case CHANGE_MEMBER_INCR:
        *value = (uint8_t)(was + n > MOST ? MOST : was + n);
        return 0;
    case CHANGE_MEMBER_DECR:
        *value = (uint8_t)(was < n ? 0 : was - n);
        return 0;
    case CHANGE_MEMBER_DELETE:
        *value = 0;
        return was == 0 ? ERR_NOT_FOUND : 0;
    default:
        *value = (uint8_t)n;
        return 0;
    }
}

/* The model does a change that the store has done, and says whether that has
 * answered as it must. Whether there was a number, and so something to be
 * forgotten, only the store knows where members have come and gone. */
static void
play(struct world *world, const struct change *change, const struct step *step)
{
    unsigned i = step->i;
    if (change_is_of_member(change)) {
        int err = play_member(&world->value[i][step->m], change->op,
            (unsigned)change->operand[0]);
        EXPECT(change->err == err, "op %d: %s, not %s", (int)change->op,
            err_text(change->err), err_text(err));
        EXPECT(err != 0 || change->value[0] == world->value[i][step->m],
            "another value");
        return;
    }
    if (change->op == CHANGE_SET) {
        ck_assert_int_eq(change->err, 0);
        world->plain[i] = change->operand[0];
        return;
    }
    EXPECT(change->err == 0 ||
            (change->err == ERR_NOT_FOUND && n_members(world, i) == 0),
        "forget: %s", err_text(change->err));
    memset(world->value[i], 0, sizeof world->value[i]);
    world->plain[i] = change->n_columns == 3 ? 0 : world->plain[i];
}

/* No number is given twice in a shard; ids that have a row's low bits in common
 * may be in one. */
static void
note_number(struct world *world, unsigned i)
{
    uint64_t number = number_in(world, i);
    if (number != 0 && number != world->number[i]) {
        uint64_t pair =
            store_pair(world->rig.store, id_of(i), number, BITS, 0);
        bool *used = &world->used[pair % RIG_SHARDS][number];
        EXPECT(number < NUMBERS_MAX && number % 256 != 0 && !*used,
            "number %u is given twice", (unsigned)number);
        *used = true;
    }
    world->number[i] = number;
}

/* Does changes, and waits until they may be acknowledged. */
static void
do_now(struct world *world, struct change *change, uint32_t n)
{
    uint64_t seq = do_changes(world->rig.store, change, n);
    for (uint32_t k = 0; k < n; k++) {
        ck_assert_ptr_null(change[k].base);
        ck_assert(
            !change_is_of_member(&change[k]) || change[k].member.base == NULL);
    }
    ck_assert_int_eq(rig_commit(&world->rig, seq), STORE_COMMITTED);
}

/* A batch of random ones. */
static void
change_some(struct world *world)
{
    struct change change[BATCH];
    struct step step[BATCH];
    uint32_t n = 1 + (uint32_t)below(world, BATCH);
    for (uint32_t k = 0; k < n; k++) {
        change[k] = random_change(world, &step[k]);
        if (k > 0 && below(world, 3) == 0) { /* of one id, in its order */
            step[k].i = step[k - 1].i;
            change[k].id = id_of(step[k].i);
        }
    }
    do_now(world, change, n);
    for (uint32_t k = 0; k < n; k++) {
        play(world, &change[k], &step[k]);
    }
    for (uint32_t k = 0; k < n; k++) {
        note_number(world, step[k].i);
    }
}

/* ---- worlds ---- */

static const struct seal_tidy_bounds slowly = {
    .step_records = 16, .fan_in = 2, .join_blocks = 16, .least_records = 4};

static struct world *
begin(uint64_t seed, const struct seal_tidy_bounds *tidy)
{
    struct world *world = calloc(1, sizeof *world);
    ck_assert_ptr_nonnull(world);
    rig_init(&world->rig, WAL_SYNC_ALWAYS, ID_SEQUENTIAL, seed);
    world->rig.seals = true;
    world->rig.data.tidy = tidy;
    world->rig.data.seal_records = seed % 2 == 0 ? 0 : 24;
    ck_assert_int_eq(rig_open(&world->rig), 0);
    edit_all(world->rig.store, LINES, COUNT_OF(LINES));
    resolve(world);
    return world;
}

static void
end(struct world *world)
{
    judge(world);
    store_verify(world->rig.store);
    ck_assert_int_eq(rig_close(&world->rig), 0);
    rig_expect_order(&world->rig);
    rig_fini(&world->rig);
    free(world);
}

/* A stop, a kill, or a power cut: all that was acknowledged is there. */
static void
restart(struct world *world, unsigned how)
{
    struct rig *rig = &world->rig;
    if (how > 0 && !fake_disk_is_dead(rig->fake)) {
        fake_disk_die(rig->fake, 1);
    }
    int err = rig_close(rig);
    ck_assert(how > 0 || err == 0);
    rig_expect_order(rig);
    if (how == 1) {
        fake_disk_revive(rig->fake);
    } else if (how == 2) {
        fake_disk_crash(rig->fake);
    }
    ck_assert_int_eq(rig_open(rig), 0);
    resolve(world);
}

/* Records and pairs. */
static void
seal_later(struct world *world)
{
    ck_assert(rig_seal_later(&world->rig, world->members.counter));
}

static unsigned
rounds(void)
{
    return tests_are_long() ? ROUNDS : ROUNDS / 2;
}

/* Seals and what is done with cold ranges, beside changes. */
START_TEST(test_overlay)
{
    struct world *world =
        begin((uint64_t)_i, _i % 2 == 0 ? &at_once : &slowly);
    struct rig *rig = &world->rig;
    for (unsigned round = 0; round < rounds(); round++) {
        for (unsigned k = 0; k < BATCHES; k++) {
            change_some(world);
            if (k % 20 == 19) {
                seal_later(world);
            }
        }
        if (round % 2 == 0) {
            ck_assert_int_eq(rig_seal_wait(rig), 0);
            ck_assert(rig_tidy_wait(rig));
        }
        if (round % 3 == 0) {
            ck_assert_int_eq(rig_checkpoint(rig), 0);
        }
        judge(world);
    }
    ck_assert_uint_gt(rig_cold_stat(rig, "seals"), rounds());
    ck_assert_uint_gt(rig_cold_stat(rig, "segments"), 0);
    end(world);
}
END_TEST

/* The same with stops. */
START_TEST(test_stops)
{
    struct world *world = begin(10 + (uint64_t)_i, &slowly);
    struct rig *rig = &world->rig;
    for (unsigned round = 0; round < rounds(); round++) {
        rig->data.seal_records = below(world, 60);
        for (unsigned k = 0; k < BATCHES / 2; k++) {
            change_some(world);
            if (below(world, 12) == 0) {
                seal_later(world);
            }
        }
        if (round % 2 == 0) {
            ck_assert_int_eq(rig_seal_wait(rig), 0);
        }
        restart(world, (unsigned)below(world, 3));
        judge(world);
        store_verify(rig->store);
    }
    end(world);
}
END_TEST

/* ---- one thing at a time ---- */

static void
put(struct world *world, unsigned i, unsigned m, unsigned n)
{
    struct change change = member_change(world, CHANGE_MEMBER_SET, i, m, n);
    const struct step step = {.i = i, .m = m};
    do_now(world, &change, 1);
    play(world, &change, &step);
    note_number(world, i);
}

static void
put_all(struct world *world)
{
    for (unsigned k = 0; k < IDS * MEMBERS; k++) {
        put(world, k / MEMBERS, k % MEMBERS, 1 + k % MOST);
    }
}

/* A seal of the counter takes the pairs of its members along; what is sealed is
 * not read by a start, and numbers go on behind it. */
START_TEST(test_seal_takes_pairs)
{
    struct world *world = begin((uint64_t)_i, &never);
    struct rig *rig = &world->rig;
    put_all(world);
    ck_assert_uint_gt(rig_n_hot(rig), IDS * MEMBERS);
    seal_later(world);
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    for (unsigned round = 0; round < 3; round++) {
        ck_assert_uint_eq(rig_n_hot(rig), 0);
        judge(world);
        if (round < 2) {
            restart(world, _i == 0 ? 0 : 1 + round);
        }
    }
    for (unsigned i = 0; i < IDS; i++) { /* other numbers, for all of them */
        struct change change = forget_change(world, i, i % 2 == 0);
        const struct step step = {.i = i};
        uint64_t number = world->number[i];
        do_now(world, &change, 1);
        play(world, &change, &step);
        note_number(world, i);
        ck_assert_uint_eq(world->number[i], 0);
        put(world, i, 1, 2);
        ck_assert_uint_gt(world->number[i], number);
    }
    end(world);
}
END_TEST

/* Pairs of which most have changed are hot again, and then no segment says what
 * their numbers are. */
START_TEST(test_reheat)
{
    struct world *world = begin(2, &at_once);
    struct rig *rig = &world->rig;
    put_all(world);
    seal_later(world);
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    for (unsigned k = 0; k < IDS * MEMBERS; k++) {
        put(world, k / MEMBERS, k % MEMBERS,
            k % 2 == 0 ? 0 : 1 + (k + 1) % MOST);
    }
    ck_assert(rig_tidy_wait(rig));
    ck_assert_uint_ge(rig_cold_stat(rig, "reheats"), 2);
    ck_assert_uint_eq(rig_cold_stat(rig, "segments"), 0);
    judge(world);
    for (unsigned round = 0; round < 2; round++) {
        restart(world, 1 + round);
        judge(world);
        struct change change = forget_change(world, round, true);
        const struct step step = {.i = round};
        do_now(world, &change, 1);
        play(world, &change, &step);
        put(world, round, 1, 2);
        ck_assert_int_eq(rig_checkpoint(rig), 0);
    }
    end(world);
}
END_TEST

/* A column that is dropped takes its segments along, at once and in a replay:
 * one of the same name has no members, and files go. */
START_TEST(test_drop)
{
    struct world *world = begin((uint64_t)_i, &never);
    struct rig *rig = &world->rig;
    put_all(world);
    seal_later(world);
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    uint64_t n_before = rig_cold_stat(rig, "segments");
    ck_assert_int_eq(
        edit(rig->store, _i < 2 ? "drop column p m m" : "drop counter p p"),
        0);
    ck_assert_uint_lt(rig_cold_stat(rig, "segments"), n_before);
    if (_i % 2 == 1) { /* the log has it, the manifest not yet */
        restart(world, 1);
        ck_assert_uint_lt(rig_cold_stat(rig, "segments"), n_before);
    }
    ck_assert_int_eq(rig_checkpoint(rig), 0);
    uint64_t n_left = rig_cold_stat(rig, "segments");
    ck_assert_uint_eq(rig_stat(rig, "live_segments"), n_left);
    memset(world->value, 0, sizeof world->value);
    memset(world->number, 0, sizeof world->number);
    memset(world->used, 0, sizeof world->used);
    if (_i < 2) { /* what counted them has the old numbers still */
        ck_assert_int_eq(
            edit(rig->store, LINES[COUNT_OF(LINES) - 1]), ERR_COUNTS_COLD);
        ck_assert_int_eq(edit(rig->store, "drop column p likes likes"), 0);
        ck_assert_int_eq(edit(rig->store, LINES[3]), 0);
        ck_assert_int_eq(edit(rig->store, LINES[4]), 0);
    } else {
        edit_all(rig->store, LINES, COUNT_OF(LINES));
    }
    resolve(world);
    judge(world);
    put(world, 3, 3, 2);
    ck_assert_uint_eq(world->number[3], 1);
    restart(world, 2);
    end(world);
}
END_TEST

/* All changes of one record in one call, of which record and pairs are cold:
 * each sees what came before it. */
START_TEST(test_order)
{
    struct world *world = begin(1, &never);
    struct rig *rig = &world->rig;
    put_all(world);
    seal_later(world);
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    restart(world, 1); /* nothing is in the cache */
    struct change change[] = {
        member_change(world, CHANGE_MEMBER_INCR, 5, 2, 1),
        member_change(world, CHANGE_MEMBER_DELETE, 5, 2, 0),
        member_change(world, CHANGE_MEMBER_DELETE, 5, 2, 0),
        member_change(world, CHANGE_MEMBER_SET, 6, 2, 3),
        forget_change(world, 5, false),
        member_change(world, CHANGE_MEMBER_ADD, 5, 3, 1),
        member_change(world, CHANGE_MEMBER_ADD, 5, 3, 2),
        member_change(world, CHANGE_MEMBER_DELETE, 5, 1, 0)};
    static const struct step step[] = {
        {5, 2}, {5, 2}, {5, 2}, {6, 2}, {5, 0}, {5, 3}, {5, 3}, {5, 1}};
    do_now(world, change, COUNT_OF(change));
    for (unsigned k = 0; k < COUNT_OF(change); k++) {
        play(world, &change[k], &step[k]);
    }
    ck_assert_int_eq(change[4].err, 0);
    ck_assert_uint_eq(n_members(world, 5), 1);
    end(world);
}
END_TEST

/* Each read in turn fails: the change that needed it is refused and has done
 * nothing. */
START_TEST(test_no_read)
{
    struct world *world = begin(1, &never);
    struct rig *rig = &world->rig;
    unsigned n_refused = 0;
    put_all(world);
    seal_later(world);
    ck_assert_int_eq(rig_seal_wait(rig), 0);
    rig->data.cold_io = COLD_IO_POOL;
    restart(world, 0);
    for (unsigned n = 1; n <= 2; n++) { /* the record's, and the pair's */
        for (unsigned i = 0; i < 6; i++) {
            struct change change = member_change(
                world, CHANGE_MEMBER_DELETE, i, (i + n) % MEMBERS, 0);
            const struct step step = {.i = i, .m = (i + n) % MEMBERS};
            restart(world, 0); /* nothing is in the cache */
            fake_disk_fail(rig->fake, 1 << FAKE_READ, n, EIO, false);
            do_now(world, &change, 1);
            bool has_failed = fake_disk_heal(rig->fake) > 0;
            if (change.err == ERR_COLD_READ) {
                ck_assert(has_failed);
                n_refused++;
            } else {
                play(world, &change, &step);
            }
            judge(world);
        }
    }
    ck_assert_uint_ge(n_refused, 6);
    end(world);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("member store");
    tcase_add_loop_test(tcase, test_overlay, 0, WORLDS);
    tcase_add_loop_test(tcase, test_stops, 0, WORLDS);
    tcase_add_loop_test(tcase, test_seal_takes_pairs, 0, 2);
    tcase_add_loop_test(tcase, test_drop, 0, 4);
    tcase_add_test(tcase, test_reheat);
    tcase_add_test(tcase, test_order);
    tcase_add_test(tcase, test_no_read);
    return run_case("member store", tcase);
}
