/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/fresh: the age of what is applied, against a list of all frames: never
 * less than it is, and exactly that while not too many frames wait. */
#include "repl/fresh.h"

#include "unit/check_help.h"

enum { SEEDS = 40, STEPS = 3000 };

START_TEST(test_rules)
{
    struct fresh fresh = {0};

    ck_assert_uint_eq(fresh_age_us(&fresh, 9, 100), UINT64_MAX);
    fresh_add(&fresh, 5, 1000, 100);
    ck_assert_uint_eq(fresh_age_us(&fresh, 4, 1000), UINT64_MAX);
    ck_assert_uint_eq(fresh_age_us(&fresh, 5, 1000), 100);
    ck_assert_uint_eq(fresh_age_us(&fresh, 5, 1700), 800);
    /* a slower way does not make it older */
    fresh_add(&fresh, 5, 1700, 1500);
    ck_assert_uint_eq(fresh_age_us(&fresh, 5, 1700), 800);
    fresh_add(&fresh, 6, 2000, 0);
    ck_assert_uint_eq(fresh_age_us(&fresh, 5, 2000), 1100);
    ck_assert_uint_eq(fresh_age_us(&fresh, 6, 2000), 0);
    fresh_add(&fresh, 7, 100, 5000);
    ck_assert_uint_eq(fresh_age_us(&fresh, 7, 2001), 1);
}
END_TEST

/* A frame waits in a queue that grows: the round trips that it tells of are
 * those of earlier ones. */
START_TEST(test_way)
{
    struct fresh_way way = {0};
    struct fresh fresh = {0};
    uint64_t ahead = UINT64_MAX - 5000; /* of the primary's clock */
    uint64_t slow;

    ck_assert_uint_eq(fresh_way_us(&way, ahead + 1000, 1100, 0), UINT64_MAX);
    fresh_add(&fresh, 1, 1100, UINT64_MAX);
    ck_assert_uint_eq(fresh_age_us(&fresh, 1, 1100), UINT64_MAX);
    ck_assert_uint_eq(fresh_way_us(&way, ahead + 2000, 2100, 250), 250);
    ck_assert_uint_eq(fresh_way_us(&way, ahead + 3000, 3050, 400), 400);
    ck_assert_uint_eq(fresh_way_us(&way, ahead + 4000, 4750, 300), 949);
    /* over the end of its numbers */
    ck_assert_uint_eq(fresh_way_us(&way, ahead + 9000, 12050, 300), 3241);
    /* a clock that is slow is not taken for a queue for ever */
    way = (struct fresh_way){0};
    for (uint64_t us = 0; us < 100000000; us += 100000) {
        slow = us - us / 2000;
        ck_assert_uint_le(fresh_way_us(&way, slow, us + 100, 200), 300);
    }
}
END_TEST

/* Whatever the way and the clocks are: never less than it was. */
START_TEST(test_way_random)
{
    struct fresh_way way = {0};
    uint64_t state = (uint64_t)_i + 1000, left = 1, came = 0, rtt = 0;
    uint64_t queue = 0, ahead = random_below(&state, UINT64_MAX);

    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t was, found;

        left += 1 + random_below(&state, 5000);
        queue = random_below(&state, 50) == 0
            ? 0
            : queue + random_below(&state, 4000);
        came = left + 10 + queue > came ? left + 10 + queue : came;
        was = came - left;
        found = fresh_way_us(&way, left + ahead, came, rtt);
        /* less what is allowed for clocks */
        ck_assert(
            found == UINT64_MAX || found + came / FRESH_DRIFT + 1 >= was);
        if (random_below(&state, 10) == 0) {
            rtt = was + 1 + random_below(&state, 30);
        }
    }
}
END_TEST

START_TEST(test_model)
{
    static uint64_t last_of[STEPS], left_of[STEPS];
    struct fresh fresh = {0};
    uint64_t state = (uint64_t)_i, last = 0, applied = 0, now = 100000;
    size_t n = 0;
    bool was_full = false;

    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t rtt = random_below(&state, 300), age, right = UINT64_MAX;

        now += random_below(&state, 1000);
        if (random_below(&state, 2) == 0) {
            last += random_below(&state, 3);
            was_full = was_full || fresh.n == FRESH_KEPT;
            fresh_add(&fresh, last, now, rtt);
            last_of[n] = last;
            left_of[n++] = now - rtt;
        } else if (random_below(&state, _i % 2 == 0 ? 3 : 60) == 0) {
            applied += random_below(&state, last - applied + 1);
        }
        for (size_t k = 0; k < n; k++) {
            if (last_of[k] <= applied && now - left_of[k] < right) {
                right = now - left_of[k];
            }
        }
        age = fresh_age_us(&fresh, applied, now);
        ck_assert_uint_ge(age, right);
        ck_assert(was_full || age == right);
    }
    ck_assert(_i % 2 == 0 || was_full);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("fresh");

    tcase_add_test(tcase, test_rules);
    tcase_add_test(tcase, test_way);
    tcase_add_loop_test(tcase, test_way_random, 0, SEEDS);
    tcase_add_loop_test(tcase, test_model, 0, SEEDS);
    return run_case("fresh", tcase);
}
