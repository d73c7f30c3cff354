/* SPDX-License-Identifier: BSD-3-Clause */
/* store/digest: the same sum where the records are the same, wherever they
 * are; another one where anything is different; and whether something has
 * changed meanwhile. */
#include "store/digest.h"
#include "unit/digest_help.h"
#include "unit/members_help.h"

enum { IDS = 700, MEMBERS = 5 };

static void
begin(struct rig *rig, uint64_t seed)
{
    rig_init(rig, WAL_SYNC_NONE, ID_RANDOM, seed);
    ck_assert_int_eq(rig_open(rig), 0);
    members_add_cold_counter(rig);
}

/* The i-th record. */
static void
fill_one(struct rig *rig, uint64_t i)
{
    members_set_named(rig, i, "plain", i % 3 == 0 ? 0 : i * i);
    for (uint64_t k = 0; i % 7 == 0 && k < MEMBERS; k++) {
        members_change(rig, i, "liked", i + k, 1);
        members_change(rig, i, "s", 2 * i + k, 3);
    }
}

static void
expect_equal(struct rig *rig, const struct store_digest *wanted)
{
    struct store_digest digest = digest_of(rig->store, "m");
    ck_assert(!digest.has_changed);
    ck_assert_uint_eq(digest.records, wanted->records);
    ck_assert_uint_eq(digest.sum, wanted->sum);
}

static void
expect_other(struct rig *rig, const struct store_digest *wanted)
{
    ck_assert_uint_ne(digest_of(rig->store, "m").sum, wanted->sum);
}

/* Upwards and in memory; downwards, with numbers of members that are others,
 * in segments and over them; behind a restart. */
START_TEST(test_where)
{
    struct rig up, down;
    begin(&up, 1);
    begin(&down, 2);
    struct store_digest empty = digest_of(up.store, "m");
    ck_assert_uint_eq(empty.records, 0);
    ck_assert_uint_eq(empty.sum, 0);
    for (uint64_t i = 0; i < IDS; i++) {
        fill_one(&up, i);
        fill_one(&down, IDS - 1 - i);
        if (i == IDS / 2) {
            ck_assert_int_eq(rig_seal_all(&down), 0);
        }
    }
    struct store_digest wanted = digest_of(up.store, "m");
    ck_assert(!wanted.has_changed);
    ck_assert_uint_gt(wanted.seq, 0);
    /* those that hold something of their own, and members of both columns */
    ck_assert_uint_gt(wanted.records, IDS / 2 + 2 * (IDS / 7) * MEMBERS);
    expect_equal(&down, &wanted);
    ck_assert_int_eq(rig_seal_all(&down), 0);
    expect_equal(&down, &wanted);
    ck_assert_int_eq(rig_close(&down), 0);
    ck_assert_int_eq(rig_open(&down), 0);
    expect_equal(&down, &wanted);
    ck_assert_int_eq(rig_close(&up), 0);
    rig_fini(&up);
    ck_assert_int_eq(rig_close(&down), 0);
    rig_fini(&down);
}
END_TEST

/* One number, one member, one member's value, and one count make a difference,
 * which goes when they do. */
START_TEST(test_what)
{
    struct rig rig;
    begin(&rig, 3);
    for (uint64_t i = 0; i < 30; i++) {
        fill_one(&rig, i);
    }
    struct store_digest wanted = digest_of(rig.store, "m");
    uint64_t number = members_get(&rig, 7, "liked");
    members_set_named(&rig, 4, "plain", 17);
    expect_other(&rig, &wanted);
    members_set_named(&rig, 4, "plain", 16);
    expect_equal(&rig, &wanted);
    members_change(&rig, 7, "liked", 99, 1);
    expect_other(&rig, &wanted);
    members_change(&rig, 7, "liked", 99, 0);
    expect_equal(&rig, &wanted);
    members_change(&rig, 7, "s", 14, 4);
    expect_other(&rig, &wanted);
    members_change(&rig, 7, "s", 14, 3);
    expect_equal(&rig, &wanted);
    ck_assert_uint_eq(members_get(&rig, 7, "liked"), number);
    /* a count of a record that has nothing else but members */
    members_set_named(&rig, 21, "plain", 0);
    wanted = digest_of(rig.store, "m");
    members_set_named(&rig, 21, "likes", MEMBERS + 1);
    expect_other(&rig, &wanted);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* What changes after it has begun is told, and what came before is not. */
START_TEST(test_changes)
{
    struct rig rig;
    struct digest_call it;
    begin(&rig, 4);
    rig.config.dump_range_records = 16;
    for (uint64_t i = 0; i < IDS; i++) {
        fill_one(&rig, i);
    }
    uint64_t last = rig_stat(&rig, "last_seq");
    digest_call_begin(rig.store, "m", &it);
    ck_assert_int_eq(digest_call_step(rig.store, &it), 0);
    ck_assert(!it.dump.is_end); /* a piece is fewer */
    members_set_named(&rig, 1, "plain", 2);
    while (!it.dump.is_end) {
        ck_assert_int_eq(digest_call_step(rig.store, &it), 0);
    }
    ck_assert(it.digest.has_changed);
    ck_assert_uint_ge(it.digest.seq, last);
    digest_call_end(rig.store, &it);
    ck_assert(!digest_of(rig.store, "m").has_changed);
    ck_assert_int_eq(rig_close(&rig), 0);
    rig_fini(&rig);
}
END_TEST

/* Without a log nobody could say whether it is of one moment. */
START_TEST(test_memory_only)
{
    struct rig rig;
    struct digest_call it;
    rig_init(&rig, WAL_SYNC_NONE, ID_RANDOM, 5);
    rig.config.data = NULL;
    ck_assert_int_eq(store_create(&rig.config, &rig.store), 0);
    members_add_counter(&rig);
    digest_call_begin(rig.store, "m", &it);
    ck_assert_int_eq(digest_call_step(rig.store, &it), ERR_NO_DATA_DIR);
    digest_call_end(rig.store, &it);
    ck_assert_int_eq(store_destroy(&rig.store), 0);
    rig_fini(&rig);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_where, test_what, test_changes, test_memory_only};
    return run_tests("digest", tests, sizeof tests / sizeof tests[0]);
}
