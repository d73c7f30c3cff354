/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/sorted: arrays of members beside a plain set, which is gone through
 * from its end to its beginning for each question. */
#include "lib/fault_alloc.h"
#include "unit/sorted_help.h"

enum {
    IDS = 12,
    SPACE = 400, /* members of the small sets */
    PINS = 8,
    SWEEPS_MAX = 4000
};

/* A set of members below `space`. */
struct set {
    uint8_t *is_in;
    uint64_t space;
};

static struct set
set_of(uint64_t space)
{
    struct set set = {calloc(1, space), space};
    ck_assert_ptr_nonnull(set.is_in);
    return set;
}

/* What sorted_above says of it. */
static uint64_t
above(const struct set *set, uint64_t position)
{
    uint64_t n = 0;
    for (uint64_t m = set->space; m-- > 0 && m > position;) {
        n += set->is_in[m];
    }
    return n < SORTED_MAX ? n : (uint64_t)SORTED_MAX;
}

static uint64_t
largest(const struct set *set)
{
    uint64_t m = set->space;
    while (m-- > 0) {
        if (set->is_in[m] != 0) {
            return m;
        }
    }
    return 0;
}

static void
check_pin(const struct sorted_pin *pin, const struct set *set, uint64_t at)
{
    uint64_t first, last, n = above(set, at);
    ck_assert_uint_eq(sorted_largest(pin), largest(set));
    ck_assert_uint_eq(sorted_above(pin, at), n);
    CHECK(sorted_positions(pin, n, &first, &last));
    CHECK(first <= at && at <= last);
    CHECK(sorted_above(pin, first) == n && sorted_above(pin, last) == n);
    CHECK(first == 0 || sorted_above(pin, first - 1) > n);
    CHECK(last == UINT64_MAX || sorted_above(pin, last + 1) < n);
    CHECK(!sorted_positions(pin, (uint64_t)SORTED_MAX + 1, &first, &last));
}

static void
change_both(
    struct rig *rig, struct set *set, uint64_t id, uint64_t member, bool is_in)
{
    int err = change_member(
        rig, is_in ? CHANGE_MEMBER_SET : CHANGE_MEMBER_DELETE, id, member, 1);
    CHECK(err == 0 || (err == ERR_NOT_FOUND && !is_in));
    set->is_in[member] = is_in;
}

/* A pin that is kept, and what there was when it was taken. */
struct kept {
    struct sorted_pin pin;
    struct set set;
};

static void
let_go(struct rig *rig, struct kept *kept)
{
    check_pin(&kept->pin, &kept->set, SPACE / 2);
    check_pin(&kept->pin, &kept->set, 0);
    engine_unpin(rig->engine, &kept->pin);
}

START_TEST(test_random)
{
    struct rig rig;
    struct set set[IDS];
    struct kept kept[PINS];
    uint64_t random = 11;
    struct sorted_figures figures;
    rig_init(&rig, 4, 33, 1);
    struct walk walk = walk_of(&rig);
    for (unsigned i = 0; i < IDS; i++) {
        set[i] = set_of(SPACE);
    }
    for (unsigned i = 0; i < PINS; i++) {
        kept[i] = (struct kept){.set = set_of(SPACE)};
    }
    for (unsigned n = 0; n < long_part(60000); n++) {
        uint64_t id = random_below(&random, IDS);
        uint64_t member = random_below(&random, SPACE);
        uint64_t what = random_below(&random, 1000);
        struct sorted_pin pin;
        if (what == 0) {
            struct change change = forget_of(&rig, id);
            engine_change(rig.engine, &change, 1);
            memset(set[id].is_in, 0, SPACE);
        } else if (what < 700) {
            change_both(
                &rig, &set[id], id, member, random_below(&random, 2) == 0);
        } else {
            ck_assert_int_eq(pin_of(&rig, &walk, id, &pin), 0);
            check_pin(&pin, &set[id], member);
            struct kept *it = &kept[random_below(&random, PINS)];
            let_go(&rig, it);
            it->pin = pin;
            memcpy(it->set.is_in, set[id].is_in, SPACE);
        }
    }
    engine_sorted_figures(rig.engine, &figures);
    CHECK(figures.arrays > 0 && figures.arrays <= IDS);
    /* made once each, and again after all went */
    ck_assert_uint_eq(figures.made, figures.dropped + figures.arrays);
    ck_assert_uint_le(figures.made, IDS + 90);
    for (unsigned i = 0; i < PINS; i++) {
        let_go(&rig, &kept[i]);
        free(kept[i].set.is_in);
    }
    for (unsigned i = 0; i < IDS; i++) {
        free(set[i].is_in);
    }
    /* what is not a counter of pairs any more */
    struct sorted_key key = sorted_key_of(&rig, 1);
    struct sorted_pin pin;
    engine_undefine(rig.engine, PAIRS);
    engine_sorted_figures(rig.engine, &figures);
    ck_assert_uint_eq(figures.arrays, 0);
    ck_assert_uint_eq(figures.bytes, 0);
    ck_assert_int_eq(
        engine_make_sorted(rig.engine, &key, &walk.walk, &pin), ERR_GONE);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_none)
{
    struct rig rig;
    struct sorted_pin pin;
    uint64_t first, last;
    rig_init(&rig, 1, 33, 1);
    struct walk walk = walk_of(&rig);
    ck_assert_int_eq(pin_of(&rig, &walk, 5, &pin), 0);
    ck_assert_uint_eq(walk.n_calls, 0);
    ck_assert_uint_eq(sorted_largest(&pin), 0);
    ck_assert_uint_eq(sorted_above(&pin, 0), 0);
    CHECK(sorted_positions(&pin, 0, &first, &last));
    CHECK(first == 0 && last == UINT64_MAX);
    CHECK(!sorted_positions(&pin, 1, &first, &last));
    /* 0 is a member that is above no position */
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 5, 0, 1), 0);
    ck_assert_int_eq(pin_of(&rig, &walk, 5, &pin), 0);
    ck_assert_uint_eq(sorted_above(&pin, 0), 0);
    CHECK(!sorted_positions(&pin, 1, &first, &last));
    engine_unpin(rig.engine, &pin);
    ck_assert_int_eq(
        change_member(&rig, CHANGE_MEMBER_SET, 5, (1ULL << 33) - 1, 1), 0);
    ck_assert_int_eq(pin_of(&rig, &walk, 5, &pin), 0);
    ck_assert_uint_eq(sorted_largest(&pin), (1ULL << 33) - 1);
    ck_assert_uint_eq(sorted_above(&pin, 0), 1);
    engine_unpin(rig.engine, &pin);
    rig_fini(&rig);
}
END_TEST

/* More members than are counted: at the end, in the middle, taken away from
 * everywhere, and the array made anew. */
START_TEST(test_many)
{
    enum { LARGE = 120000, STEPS = 160 };
    struct rig rig;
    struct set set = set_of(LARGE);
    struct sorted_pin pin, old;
    uint64_t random = 3;
    rig_form(&rig, 1, 33, 1);
    struct engine_config config = {
        .shards = 1, .seed = 3, .hot_bytes = ROOMY_BYTES};
    rig.engine = engine_of(&config);
    rig_define(&rig);
    journal_init(&rig.journal);
    struct walk walk = walk_of(&rig);
    change_both(&rig, &set, 7, 3, true);
    ck_assert_int_eq(pin_of(&rig, &walk, 7, &pin), 0);
    engine_unpin(rig.engine, &pin);
    unsigned n_calls = walk.n_calls;
    for (uint64_t m = 4; m < 100000; m++) {
        change_both(&rig, &set, 7, m, true);
        if (m % 9973 == 0) {
            ck_assert_int_eq(pin_of(&rig, &walk, 7, &pin), 0);
            check_pin(&pin, &set, m / 2);
            check_pin(&pin, &set, m - 9);
            engine_unpin(rig.engine, &pin);
        }
    }
    ck_assert_uint_eq(walk.n_calls, n_calls); /* it has followed */
    ck_assert_int_eq(pin_of(&rig, &walk, 7, &old), 0);
    struct set was = set_of(LARGE);
    memcpy(was.is_in, set.is_in, LARGE);
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t m = random_below(&random, LARGE);
        change_both(&rig, &set, 7, m, i % 3 != 0);
        ck_assert_int_eq(pin_of(&rig, &walk, 7, &pin), 0);
        check_pin(&pin, &set, random_below(&random, LARGE));
        engine_unpin(rig.engine, &pin);
    }
    ck_assert_uint_eq(walk.n_calls, n_calls);
    check_pin(&old, &was, 50000);
    engine_unpin(rig.engine, &old);
    /* from the top down, until what is below is not known */
    for (uint64_t m = LARGE; m-- > 70000;) {
        if (set.is_in[m] != 0) {
            change_both(&rig, &set, 7, m, false);
        }
    }
    for (uint64_t m = 70000; m-- > 60000;) {
        change_both(&rig, &set, 7, m, false);
    }
    ck_assert_int_eq(pin_of(&rig, &walk, 7, &pin), 0);
    ck_assert_uint_gt(walk.n_calls, n_calls);
    check_pin(&pin, &set, 0);
    check_pin(&pin, &set, 59000);
    engine_unpin(rig.engine, &pin);
    /* and one that is made when there are too many */
    for (uint64_t m = 60000; m < LARGE; m++) {
        change_both(&rig, &set, 7, m, true);
    }
    engine_undefine(rig.engine, 9); /* nothing */
    ck_assert_int_eq(pin_of(&rig, &walk, 7, &pin), 0);
    check_pin(&pin, &set, 1);
    check_pin(&pin, &set, LARGE - SORTED_MAX - 2);
    check_pin(&pin, &set, LARGE - 5);
    engine_unpin(rig.engine, &pin);
    free(set.is_in);
    free(was.is_in);
    rig_fini(&rig);
}
END_TEST

/* An array that has no room more, and one that comes below those it keeps. */
START_TEST(test_full_array)
{
    enum { FULL = SORTED_MAX + SORTED_MAX / 4 };
    static const uint64_t later[] = {3, 2 * SORTED_MAX / 4 + 1,
        2 * SORTED_MAX / 4 - 1, SORTED_MAX, FULL + 1, 2 * FULL - 1};
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        struct rig rig;
        struct sorted_pin pin;
        struct set set = set_of(2 * FULL + 10);
        rig_form(&rig, 1, 33, 1);
        struct engine_config config = {
            .shards = 1, .seed = 3, .hot_bytes = ROOMY_BYTES};
        rig.engine = engine_of(&config);
        rig_define(&rig);
        journal_init(&rig.journal);
        struct walk walk = walk_of(&rig);
        for (uint64_t m = 1; m <= FULL; m++) {
            change_both(&rig, &set, 1, 2 * m, true);
        }
        ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
        ck_assert_uint_eq(pin.n, FULL);
        engine_unpin(rig.engine, &pin);
        unsigned n_calls = walk.n_calls;
        change_both(&rig, &set, 1, later[i] | 1, true);
        ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
        ck_assert_uint_eq(walk.n_calls, n_calls);
        check_pin(&pin, &set, 0);
        check_pin(&pin, &set, FULL);
        engine_unpin(rig.engine, &pin);
        free(set.is_in);
        rig_fini(&rig);
    }
}
END_TEST

/* ---- changes while an array is made ---- */

static struct set being_made;
static uint64_t hook_random;
static unsigned hook_changes;

static void
change_some(struct walk *walk)
{
    for (unsigned i = 0; i < hook_changes; i++) {
        change_both(walk->rig, &being_made, 1,
            random_below(&hook_random, being_made.space),
            random_below(&hook_random, 2) == 0);
    }
}

START_TEST(test_change_meanwhile)
{
    for (unsigned round = 0; round < 20; round++) {
        struct rig rig;
        struct sorted_pin pin;
        rig_init(&rig, 1, 33, 1);
        struct walk walk = walk_of(&rig);
        being_made = set_of(2500);
        hook_random = round;
        hook_changes = 600;
        for (uint64_t m = 0; m < being_made.space; m++) {
            change_both(&rig, &being_made, 1, m, true);
        }
        change_some(&walk);
        hook_changes = 1 + 20 * round;
        walk.hook_fn = change_some;
        ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
        ck_assert_uint_gt(walk.n_calls, 3);
        check_pin(&pin, &being_made, 1000);
        check_pin(&pin, &being_made, 0);
        engine_unpin(rig.engine, &pin);
        walk.hook_fn = NULL;
        walk.n_calls = 0;
        hook_changes = 300;
        change_some(&walk);
        ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
        ck_assert_uint_eq(walk.n_calls, 0);
        check_pin(&pin, &being_made, 1200);
        engine_unpin(rig.engine, &pin);
        free(being_made.is_in);
        rig_fini(&rig);
    }
}
END_TEST

static void
forget_all(struct walk *walk)
{
    struct change change = forget_of(walk->rig, 1);
    if (walk->n_calls == 1) {
        engine_change(walk->rig->engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
        while (engine_take_out(walk->rig->engine)) {
        }
    }
}

/* All members go while they are read: then there are none, not some. */
START_TEST(test_forget_meanwhile)
{
    struct rig rig;
    struct sorted_pin pin;
    struct sorted_figures figures;
    rig_init(&rig, 1, 33, 1);
    struct walk walk = walk_of(&rig);
    walk.hook_fn = forget_all;
    for (uint64_t m = 0; m < 2000; m++) {
        ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 1, m, 1), 0);
    }
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
    ck_assert_uint_gt(walk.n_calls, 1);
    ck_assert_uint_eq(sorted_above(&pin, 0), 0);
    engine_sorted_figures(rig.engine, &figures);
    ck_assert_uint_eq(figures.arrays, 0);
    ck_assert_uint_eq(figures.bytes, 0);
    rig_fini(&rig);
}
END_TEST

START_TEST(test_walk_fails)
{
    struct rig rig;
    struct sorted_pin pin;
    struct sorted_figures figures;
    rig_init(&rig, 1, 33, 1);
    struct walk walk = walk_of(&rig);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 1, 4, 1), 0);
    walk.err = ERR_COLD_READ;
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), ERR_COLD_READ);
    CHECK(pin.array == NULL);
    engine_sorted_figures(rig.engine, &figures);
    ck_assert_uint_eq(figures.bytes, 0);
    walk.err = 0;
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
    ck_assert_uint_eq(sorted_above(&pin, 3), 1);
    engine_unpin(rig.engine, &pin);
    rig_fini(&rig);
}
END_TEST

/* Notes for which there is no room, time and again. */
static void
change_much(struct walk *walk)
{
    for (unsigned i = 0; i < 20000; i++) {
        ck_assert_int_eq(
            change_member(walk->rig,
                i % 2 == 0 ? CHANGE_MEMBER_SET : CHANGE_MEMBER_DELETE, 1, 9,
                1),
            0);
    }
}

START_TEST(test_too_many_changes)
{
    struct rig rig;
    struct sorted_pin pin;
    rig_init(&rig, 1, 33, 1);
    struct walk walk = walk_of(&rig);
    walk.hook_fn = change_much;
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, 1, 4, 1), 0);
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), ERR_NO_MEMORY);
    ck_assert_uint_eq(walk.n_calls, 3);
    walk.hook_fn = NULL;
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
    ck_assert_uint_eq(sorted_above(&pin, 0), 1);
    engine_unpin(rig.engine, &pin);
    rig_fini(&rig);
}
END_TEST

/* ---- memory ---- */

/* Changes and questions of which the n-th allocation fails, and with for_ever
 * all behind it: what is answered is right. */
static bool
sweep(size_t n, bool for_ever)
{
    enum { MEMBERS = 60, STEPS = 400, NUMBERS = 3 };
    struct rig rig;
    struct fault_alloc fault;
    struct set set[NUMBERS];
    uint64_t random = 5;
    fault_alloc_init(&fault);
    rig_form(&rig, 2, 33, 1);
    rig_make(&rig, &fault.alloc, NULL);
    struct walk walk = walk_of(&rig);
    for (unsigned i = 0; i < NUMBERS; i++) {
        set[i] = set_of(MEMBERS);
    }
    fault.fail_from = fault.calls + n;
    fault.fail_to = for_ever ? SIZE_MAX : fault.fail_from;
    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t id = random_below(&random, NUMBERS);
        uint64_t member = random_below(&random, MEMBERS);
        struct sorted_pin pin;
        if (random_below(&random, 3) != 0) {
            bool is_in = random_below(&random, 3) != 0;
            int err = change_member(&rig,
                is_in ? CHANGE_MEMBER_SET : CHANGE_MEMBER_DELETE, id, member,
                1);
            if (err == 0) {
                set[id].is_in[member] = is_in;
            }
            CHECK(err == 0 || err == ERR_NOT_FOUND || fault.failures > 0);
            continue;
        }
        int err = pin_of(&rig, &walk, id, &pin);
        if (err == 0) {
            check_pin(&pin, &set[id], member);
            engine_unpin(rig.engine, &pin);
        } else {
            ck_assert_int_eq(err, ERR_NO_MEMORY);
            ck_assert_uint_gt(fault.failures, 0);
        }
    }
    bool has_failed = fault.failures > 0;
    fault.fail_from = fault.fail_to = 0;
    for (unsigned i = 0; i < NUMBERS; i++) {
        struct sorted_pin pin;
        ck_assert_int_eq(pin_of(&rig, &walk, i, &pin), 0);
        check_pin(&pin, &set[i], MEMBERS / 2);
        engine_unpin(rig.engine, &pin);
        free(set[i].is_in);
    }
    rig_fini(&rig);
    ck_assert_uint_eq(fault.live_bytes, 0);
    return has_failed;
}

START_TEST(test_one_fails)
{
    size_t n = 1;
    while (sweep(n, false)) {
        n += 1 + n / 24;
        ck_assert_uint_lt(n, SWEEPS_MAX);
    }
    ck_assert_uint_gt(n, 60); /* fewer would prove little */
}
END_TEST

START_TEST(test_all_fail)
{
    size_t n = 1;
    while (sweep(n, true)) {
        n += 1 + n / 24;
        ck_assert_uint_lt(n, SWEEPS_MAX);
    }
}
END_TEST

/* With the least hot memory there may be, so that arrays have little, too. */
static void
rig_little(struct rig *rig, struct qsbr *qsbr)
{
    const struct engine_config config = {.shards = 2,
        .seed = 3,
        .hot_bytes = ENGINE_HOT_BYTES_MIN,
        .qsbr = qsbr};
    rig_form(rig, 2, 33, 1);
    rig->engine = engine_of(&config);
    rig_define(rig);
    journal_init(&rig->journal);
}

/* The record 1 has the members 1..n. */
static void
fill_one(struct rig *rig, uint64_t n)
{
    for (uint64_t m = 1; m <= n; m++) {
        CHECK(change_member(rig, CHANGE_MEMBER_SET, 1, m, 1) == 0);
    }
}

/* More arrays than there is room for: those that are used stay. */
START_TEST(test_limit)
{
    enum { MANY = 6000, MEMBERS = 5 };
    struct rig rig;
    struct sorted_figures figures;
    struct sorted_pin pin;
    uint64_t now_ms = 0;
    rig_little(&rig, NULL);
    struct walk walk = walk_of(&rig);
    for (uint64_t id = 1; id <= MANY; id++) {
        for (uint64_t m = 1; m <= MEMBERS; m++) {
            ck_assert_int_eq(
                change_member(&rig, CHANGE_MEMBER_SET, id, 3 * m + id, 1), 0);
        }
    }
    for (uint64_t id = 1; id <= MANY; id++) {
        unsigned n_calls = walk.n_calls;
        ck_assert_int_eq(pin_of(&rig, &walk, id, &pin), 0);
        ck_assert_uint_eq(sorted_above(&pin, id + 3), MEMBERS - 1);
        engine_unpin(rig.engine, &pin);
        CHECK(walk.n_calls > n_calls);
        n_calls = walk.n_calls;
        ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
        ck_assert_uint_eq(sorted_above(&pin, 0), MEMBERS);
        engine_unpin(rig.engine, &pin);
        ck_assert_uint_eq(walk.n_calls, n_calls); /* it has stayed */
        engine_sorted_figures(rig.engine, &figures);
        CHECK(figures.bytes <= figures.limit_bytes);
    }
    ck_assert_uint_eq(figures.limit_bytes, ENGINE_HOT_BYTES_MIN / 32);
    ck_assert_uint_gt(figures.dropped, MANY / 2);
    ck_assert_uint_gt(figures.arrays, 1000);
    ck_assert_uint_eq(figures.made, figures.dropped + figures.arrays);
    tend_all(rig.engine, &now_ms);
    rig_fini(&rig);
}
END_TEST

/* An array that alone is above the limit stays while it is asked for. */
START_TEST(test_large)
{
    enum { MEMBERS = 70000, ROUNDS = 3 };
    struct rig rig;
    struct sorted_figures figures;
    struct sorted_pin pin;
    uint64_t now_ms = 0;
    rig_little(&rig, NULL);
    struct walk walk = walk_of(&rig);
    fill_one(&rig, MEMBERS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned n_calls = walk.n_calls;
        ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
        engine_unpin(rig.engine, &pin);
        ck_assert(i == 0 || walk.n_calls == n_calls);
        engine_sorted_figures(rig.engine, &figures);
        ck_assert_uint_gt(figures.bytes, figures.limit_bytes);
        (void)engine_tend(rig.engine, now_ms += 50);
    }
    (void)engine_tend(rig.engine, now_ms += 50);
    engine_sorted_figures(rig.engine, &figures);
    ck_assert_uint_eq(figures.arrays, 0);
    rig_fini(&rig);
}
END_TEST

/* Changes in the midst of a large array make copies of it. While no reader has
 * let go of these, they do not pile up. */
START_TEST(test_copies)
{
    enum { MEMBERS = 70000, CHANGES = 200, COPIES = 4 };
    struct rig rig;
    struct sorted_pin pin;
    struct qsbr qsbr;
    struct qsbr_reader reader;
    uint64_t garbage;
    qsbr_init(&qsbr);
    qsbr_register(&qsbr, &reader);
    rig_little(&rig, &qsbr);
    struct walk walk = walk_of(&rig);
    fill_one(&rig, MEMBERS);
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
    engine_unpin(rig.engine, &pin);
    engine_drain(rig.engine);
    qsbr_online(&qsbr, &reader);
    for (uint64_t m = 1; m <= CHANGES; m++) {
        CHECK(change_member(
                  &rig, CHANGE_MEMBER_DELETE, 1, MEMBERS / 2 + m, 0) == 0);
    }
    (void)engine_hot_bytes(rig.engine, &garbage);
    ck_assert_uint_lt(
        garbage, ENGINE_HOT_BYTES_MIN / 32 + COPIES * MEMBERS * 8);
    qsbr_offline(&reader);
    ck_assert_int_eq(pin_of(&rig, &walk, 1, &pin), 0);
    ck_assert_uint_eq(sorted_above(&pin, MEMBERS / 2), MEMBERS / 2 - CHANGES);
    engine_unpin(rig.engine, &pin);
    rig_fini(&rig);
    qsbr_unregister(&qsbr, &reader);
    qsbr_fini(&qsbr);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_random, test_none, test_many,
        test_full_array, test_change_meanwhile, test_forget_meanwhile,
        test_walk_fails, test_too_many_changes, test_one_fails, test_all_fail,
        test_limit, test_large, test_copies};
    return run_tests("sorted", tests, COUNT_OF(tests));
}
