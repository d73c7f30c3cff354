/* SPDX-License-Identifier: BSD-3-Clause */
/* engine/members_find: behind a start the pairs of numbers that no record has
 * go, and no others, whatever comes and goes meanwhile; and memory that runs
 * out. */
#include "engine/cover.h"
#include "lib/fault_alloc.h"
#include "unit/member_help.h"

enum { BITS = 20, IDS = 400, EACH = 3, LEFT = 30, ROUNDS_MAX = 100000 };

/* Records with members; and pairs of numbers that nobody was given, but which
 * lie before the next one of a start. */
static void
fill(struct rig *rig, unsigned shards)
{
    rig_init(rig, shards, BITS, 1);
    for (uint64_t id = 1; id <= IDS; id++) {
        for (uint64_t m = 0; m < EACH; m++) {
            ck_assert_int_eq(
                change_member(rig, CHANGE_MEMBER_SET, id, m * id, 1), 0);
        }
    }
}

static uint64_t
left_pair(const struct rig *rig, unsigned i)
{
    return engine_pair(rig->engine, 7 * i + 1, 250 - i / 2, BITS, i);
}

static void
leave_some(struct rig *rig)
{
    for (unsigned i = 0; i < LEFT; i++) {
        struct change change =
            change_of(&rig->pairs, CHANGE_SET, left_pair(rig, i), 1, 1);
        engine_change(rig->engine, &change, 1);
        ck_assert_int_eq(change.err, 0);
    }
}

static unsigned
count_left(struct rig *rig)
{
    unsigned n = 0;
    for (unsigned i = 0; i < LEFT; i++) {
        n += cell_of(rig, &rig->pairs, 0, left_pair(rig, i)) != 0;
    }
    return n;
}

static void
expect_all(struct rig *rig)
{
    for (uint64_t id = 1; id <= IDS; id++) {
        for (uint64_t m = 0; m < EACH; m++) {
            ck_assert_uint_eq(value_of(rig, id, m * id), 1);
        }
        ck_assert_uint_eq(likes_of(rig, id), EACH);
    }
}

static void
tend_to_the_end(struct rig *rig)
{
    unsigned n = 0;
    while (engine_tend(rig->engine, 1)) {
        ck_assert_uint_lt(n++, ROUNDS_MAX);
    }
}

START_TEST(test_found)
{
    struct engine_given_up out;
    struct rig rig;
    fill(&rig, 4);
    leave_some(&rig);
    tend_to_the_end(&rig);
    ck_assert_uint_eq(count_left(&rig), LEFT); /* only behind a start */
    rig_restart(&rig);
    tend_to_the_end(&rig);
    ck_assert_uint_eq(count_left(&rig), 0);
    expect_all(&rig);
    engine_given_up(rig.engine, &out);
    ck_assert_uint_eq(out.pairs, LEFT);
    ck_assert_uint_eq(out.waiting + out.lost, 0);
    rig_restart(&rig); /* the log has it */
    ck_assert_uint_eq(count_left(&rig), 0);
    tend_to_the_end(&rig);
    expect_all(&rig);
    rig_fini(&rig);
}
END_TEST

/* Between any two steps others get numbers, of the shards that have been looked
 * at and of those that have not, and some lose theirs. */
START_TEST(test_meanwhile)
{
    struct rig rig;
    uint64_t id = IDS;
    unsigned n = 0;
    fill(&rig, 2);
    leave_some(&rig);
    rig_restart(&rig);
    ck_assert_int_eq(change_member(&rig, CHANGE_MEMBER_SET, ++id, 5, 1), 0);
    bool more = true;
    while (more) {
        ck_assert_uint_lt(n++, ROUNDS_MAX);
        more = engine_tend(rig.engine, 1);
        for (unsigned i = 0; more && i < 3; i++) {
            ck_assert_int_eq(
                change_member(&rig, CHANGE_MEMBER_SET, ++id, 5, 1), 0);
        }
        if (more && n % 4 == 0 && id > IDS + 9) {
            struct change change = forget_of(&rig, id - 8);
            engine_change(rig.engine, &change, 1);
            ck_assert_int_eq(
                change_member(&rig, CHANGE_MEMBER_SET, id - 8, 5, 1), 0);
        }
        more = more && n < 60;
    }
    tend_to_the_end(&rig);
    ck_assert_uint_eq(count_left(&rig), 0);
    expect_all(&rig);
    for (uint64_t more_id = IDS + 1; more_id <= id; more_id++) {
        ck_assert_uint_eq(value_of(&rig, more_id, 5), 1);
    }
    rig_fini(&rig);
}
END_TEST

static uint64_t
no_version(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t row)
{
    (void)cover;
    (void)slot;
    (void)shard;
    (void)row;
    return 0;
}

static bool
covers_posts(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t first_row, uint64_t last_row)
{
    (void)cover;
    (void)first_row;
    (void)last_row;
    return slot == POSTS && shard == 1;
}

static bool
no_row(const struct engine_cover *cover, unsigned slot, unsigned shard,
    uint64_t *row)
{
    (void)cover;
    (void)slot;
    (void)shard;
    (void)row;
    return false;
}

/* Where rows of the records are covered, what they have is not known here: that
 * shard is left alone. */
START_TEST(test_covered)
{
    static const struct engine_cover cover = {.version_fn = no_version,
        .any_fn = covers_posts,
        .last_row_fn = no_row};
    struct rig rig;
    unsigned n = 0;
    fill(&rig, 4);
    leave_some(&rig);
    for (unsigned i = 0; i < LEFT; i++) {
        unsigned shard;
        uint64_t row;
        engine_row(rig.engine, left_pair(&rig, i), &shard, &row);
        n += shard == 1;
    }
    rig_restart(&rig);
    engine_set_cover(rig.engine, &cover);
    tend_to_the_end(&rig);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_lt(n, LEFT);
    ck_assert_uint_eq(count_left(&rig), n);
    expect_all(&rig);
    rig_fini(&rig);
}
END_TEST

/* While they are looked for and taken out the n-th call for memory fails, and
 * with for_ever all behind it: false where it never came. What was not found
 * stays, and the next start finds it. */
static bool
find_short(size_t n, bool for_ever)
{
    struct engine_given_up out;
    struct fault_alloc fault;
    struct rig rig;
    fault_alloc_init(&fault);
    fill(&rig, 2);
    leave_some(&rig);
    rig_restart_with(&rig, &fault.alloc);
    fault.fail_from = fault.calls + n;
    fault.fail_to = for_ever ? SIZE_MAX : fault.fail_from;
    tend_to_the_end(&rig);
    expect_all(&rig);
    engine_given_up(rig.engine, &out);
    bool has_failed = fault.failures > 0;
    ck_assert_uint_eq(out.pairs + count_left(&rig), LEFT);
    ck_assert(has_failed || out.pairs == LEFT);
    ck_assert(out.lost == 0 || has_failed);
    fault.fail_from = fault.fail_to = 0;
    rig_restart(&rig);
    ck_assert_uint_eq(fault.live_bytes, 0);
    tend_to_the_end(&rig);
    ck_assert_uint_eq(count_left(&rig), 0);
    expect_all(&rig);
    rig_fini(&rig);
    return has_failed;
}

START_TEST(test_no_memory)
{
    size_t n = 1;
    while (find_short(n, _i == 1)) {
        n++;
    }
    ck_assert_uint_gt(n, 2); /* the bit map, and notes */
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("members_find");
    tcase_add_loop_test(tcase, test_no_memory, 0, 2);
    tcase_add_test(tcase, test_found);
    tcase_add_test(tcase, test_meanwhile);
    tcase_add_test(tcase, test_covered);
    return run_case("members_find", tcase);
}
