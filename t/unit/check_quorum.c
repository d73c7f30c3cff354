/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/quorum: what is committed, who may lead, how voters change. */
#include "repl/quorum.h"

#include "unit/check_help.h"

static const struct quorum_voters three = {7, 2};

START_TEST(test_nth)
{
    uint64_t position[] = {5, 9, 1, 7};

    ck_assert_uint_eq(quorum_nth(position, 4, 1), 9);
    ck_assert_uint_eq(quorum_nth(position, 4, 2), 7);
    ck_assert_uint_eq(quorum_nth(position, 4, 4), 1);
    ck_assert_uint_eq(quorum_nth(position, 3, 4), 0);
}
END_TEST

START_TEST(test_need)
{
    static const struct {
        unsigned n, copies, least, need;
    } of[] = {{3, 1, 1, 2}, {2, 1, 1, 2}, {1, 1, 1, 2}, {1, 1, 0, 1},
        {2, 1, 0, 2}, {3, 2, 1, 3}, {2, 2, 1, 2}, {1, 2, 1, 2}, {5, 2, 2, 3},
        {1, 0, 0, 1}, {5, 0, 0, 1}, {0, 1, 0, 1}};

    for (size_t i = 0; i < COUNT_OF(of); i++) {
        ck_assert_uint_eq(
            quorum_need(of[i].n, of[i].copies, of[i].least), of[i].need);
    }
}
END_TEST

START_TEST(test_committed)
{
    uint64_t position[QUORUM_NODES] = {9, 6, 4, 20, 30};
    struct quorum_rule rule = {.now = three};

    ck_assert_uint_eq(quorum_position(&three, position), 6);
    ck_assert_uint_eq(quorum_committed(&rule, position, 6), 6);
    ck_assert_uint_eq(quorum_committed(&rule, position, 7), 0);
    rule.is_changing = true;
    rule.next = (struct quorum_voters){5, 2};
    ck_assert_uint_eq(quorum_committed(&rule, position, 1), 4);
    ck_assert(quorum_may_change(&rule, position, 1, 4));
    ck_assert(!quorum_may_change(&rule, position, 1, 5));
    /* nothing was acknowledged in this term yet, but before it */
    ck_assert(!quorum_may_change(&rule, position, 5, 0));
    rule.next = (struct quorum_voters){1, 2};
    ck_assert_uint_eq(quorum_committed(&rule, position, 1), 0);
    rule.next = (struct quorum_voters){1, 1};
    ck_assert_uint_eq(quorum_committed(&rule, position, 1), 6);
}
END_TEST

START_TEST(test_may_lead)
{
    static const struct {
        struct quorum_voters voters;
        uint32_t sure, doubtful;
        bool may;
    } of[] = {{{7, 2}, 3, 0, true}, {{7, 2}, 1, 0, false},
        {{7, 2}, 1, 2, false}, {{7, 2}, 1, 6, true}, {{7, 2}, 0, 7, true},
        {{7, 2}, 0, 3, false}, {{7, 2}, 1 | 8, 0, false}, {{7, 3}, 4, 0, true},
        {{7, 1}, 3, 0, false}, {{7, 1}, 7, 0, true}, {{3, 2}, 2, 0, true},
        {{3, 2}, 0, 2, false}, {{1, 1}, 2, 0, false}, {{1, 2}, 0, 0, false},
        {{1, 2}, 1, 0, true}, {{0, 1}, 0, 0, false}};

    for (size_t i = 0; i < COUNT_OF(of); i++) {
        ck_assert_msg(quorum_may_lead(&of[i].voters, of[i].sure,
                          of[i].doubtful) == of[i].may,
            "case %zu", i);
    }
}
END_TEST

/* Of all voters, all needs, all who have a change and all who promise: where
 * enough have it and enough promise, one of those who promise has it, and has
 * lost nothing unless all have promised. */
START_TEST(test_meets)
{
    for (uint32_t all = 1; all < 32; all++) {
        for (unsigned need = 1; need <= quorum_count(all); need++) {
            struct quorum_voters voters = {all, need};

            for (uint32_t have = 0; have < 32; have++) {
                uint64_t position[QUORUM_NODES] = {0};
                bool is_committed;

                for (unsigned i = 0; i < QUORUM_VOTERS_MAX; i++) {
                    position[i] = quorum_has(have, i);
                }
                is_committed = quorum_position(&voters, position) == 1;
                ck_assert(is_committed == quorum_is_heard(&voters, have));
                for (uint32_t sure = 0; sure < 32 && is_committed; sure++) {
                    ck_assert(!quorum_may_lead(&voters, sure, 0) ||
                        (sure & have & all) != 0);
                }
            }
        }
    }
}
END_TEST

START_TEST(test_next)
{
    static const struct {
        struct quorum_voters voters;
        struct quorum_wish wish;
        struct quorum_voters next; /* 0 nodes: none */
    } of[] = {
        {{7, 2}, {1, 1, 0, 7}, {0, 0}}, {{7, 2}, {1, 1, 4, 3}, {3, 2}},
        {{7, 2}, {1, 1, 6, 1}, {5, 2}}, /* one at a time */
        {{3, 2}, {1, 1, 2, 1}, {0, 0}}, /* as many have to stay */
        {{3, 2}, {1, 0, 2, 1}, {1, 1}},
        {{3, 2}, {1, 1, 2, 5}, {7, 2}}, /* first one joins */
        {{1, 2}, {1, 1, 0, 3}, {3, 2}}, {{1, 2}, {1, 1, 2, 3}, {0, 0}},
        {{3, 2}, {2, 1, 0, 7}, {7, 3}}, {{7, 3}, {2, 1, 2, 5}, {5, 2}},
        {{31, 2}, {1, 1, 0, 63}, {0, 0}}, /* there are enough */
        {{3, 1}, {1, 1, 0, 3}, {3, 2}},   /* another need is wanted */
    };

    for (size_t i = 0; i < COUNT_OF(of); i++) {
        struct quorum_voters next = {0, 0};
        bool is_there = quorum_next(&of[i].voters, &of[i].wish, &next);

        ck_assert_msg(is_there == (of[i].next.nodes != 0), "case %zu", i);
        ck_assert_msg(
            !is_there || quorum_is_same(&next, &of[i].next), "case %zu", i);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_nth, test_need, test_committed,
        test_may_lead, test_meets, test_next};

    return run_tests("quorum", tests, COUNT_OF(tests));
}
