/* SPDX-License-Identifier: BSD-3-Clause */

/* t/lib/dist against what doc/measurements.md says of the posts, and the
 * properties that tests and benchmarks rely on. */

#include "lib/dist.h"

#include "unit/check_help.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { POSTS = 300000, PICKS = 200000 };

static const struct dist main_dist = {.seed = 1, .kind = DIST_MAIN};

/* Shares over POSTS posts of one distribution. */
struct shares {
    double records; /* of the posts, those with a number that is not 0 */
    double nonzero; /* of the numbers */
    uint64_t large; /* numbers above 65,535 */
    uint64_t largest;
};

static struct shares
measure(const struct dist *dist)
{
    struct shares shares = {0};
    uint64_t records = 0;
    uint64_t nonzero = 0;
    for (uint64_t post = 0; post < POSTS; post++) {
        uint64_t value[DIST_COLUMNS];
        dist_values(dist, post, DIST_COLUMNS, value);
        bool any = false;
        for (size_t i = 0; i < DIST_COLUMNS; i++) {
            any = any || value[i] != 0;
            nonzero += value[i] != 0;
            shares.large += value[i] > 65535;
            if (value[i] > shares.largest) {
                shares.largest = value[i];
            }
        }
        records += any;
    }
    shares.records = (double)records / POSTS;
    shares.nonzero = (double)nonzero / ((double)POSTS * DIST_COLUMNS);
    return shares;
}

START_TEST(test_main_shares)
{
    struct shares shares = measure(&main_dist);
    ck_assert(fabs(shares.records - 0.78) < 0.01);
    ck_assert(fabs(shares.nonzero - 0.45) < 0.01);
    ck_assert(shares.large < POSTS * DIST_COLUMNS / 100000);
    ck_assert(shares.large > 0);
}
END_TEST

START_TEST(test_heavier_tails)
{
    struct shares plain = measure(&main_dist);
    struct shares heavy =
        measure(&(struct dist){.seed = 1, .kind = DIST_HEAVY});
    struct shares lognormal =
        measure(&(struct dist){.seed = 1, .kind = DIST_LOGNORMAL});
    ck_assert(heavy.large > plain.large);
    ck_assert(heavy.largest > plain.largest);
    ck_assert(lognormal.nonzero > 0.2 && lognormal.nonzero < 0.7);
}
END_TEST

START_TEST(test_numbers_follow_from_seed)
{
    struct dist other = {.seed = 2, .kind = DIST_MAIN};
    uint64_t differ = 0;
    for (uint64_t post = 0; post < 1000; post++) {
        uint64_t first[DIST_COLUMNS_MAX];
        uint64_t again[DIST_COLUMNS_MAX];
        dist_values(&main_dist, post, DIST_COLUMNS, first);
        dist_values(&main_dist, post, DIST_COLUMNS_MAX, again);
        ck_assert_mem_eq(first, again, sizeof(uint64_t) * DIST_COLUMNS);
        ck_assert(again[3] != 0);
        dist_values(&other, post, DIST_COLUMNS, again);
        differ += first[0] != again[0];
    }
    ck_assert(differ > 100);
}
END_TEST

START_TEST(test_ids)
{
    uint64_t last = 0;
    for (uint64_t post = 0; post < POSTS; post++) {
        uint64_t id = dist_id(&main_dist, post);
        ck_assert(id > last);
        ck_assert_uint_eq(id >> DIST_SECOND_BITS,
            DIST_FIRST_SECOND + post / DIST_POSTS_A_SECOND);
        last = id;
    }
    double step =
        (double)(last - dist_id(&main_dist, 0)) / (double)(POSTS - 1);
    ck_assert(fabs(step - 3625.0) < 5.0);
}
END_TEST

START_TEST(test_newest_is_hottest)
{
    struct dist_rng rng;
    dist_rng_init(&rng, 7, 0);
    uint64_t newest_thousand = 0;
    for (unsigned i = 0; i < PICKS; i++) {
        uint64_t post = dist_pick(&rng, DIST_AGE_NEWEST, 1000000);
        ck_assert(post < 1000000);
        newest_thousand += post >= 1000000 - 1000;
    }
    ck_assert(fabs((double)newest_thousand / PICKS - 0.5) < 0.01);
}
END_TEST

START_TEST(test_other_ages)
{
    struct dist_rng rng;
    dist_rng_init(&rng, 7, 0);
    uint64_t newest_tenth = 0;
    uint64_t flat_half = 0;
    for (unsigned i = 0; i < PICKS; i++) {
        newest_tenth += dist_pick(&rng, DIST_AGE_EXP, 1000) >= 900;
        flat_half += dist_pick(&rng, DIST_AGE_FLAT, 1000) >= 500;
        ck_assert_uint_eq(dist_pick(&rng, DIST_AGE_ONE, 1000), 999);
        ck_assert_uint_eq(dist_pick(&rng, DIST_AGE_NEWEST, 1), 0);
    }
    ck_assert(fabs((double)newest_tenth / PICKS - 0.8647) < 0.01);
    ck_assert(fabs((double)flat_half / PICKS - 0.5) < 0.01);
}
END_TEST

static void
add(Suite *suite, const TTest *test)
{
    TCase *tcase = tcase_create(test->name);
    tcase_add_test(tcase, test);
    suite_add_tcase(suite, tcase);
}

int
main(void)
{
    Suite *suite = suite_create("dist");
    add(suite, test_main_shares);
    add(suite, test_heavier_tails);
    add(suite, test_numbers_follow_from_seed);
    add(suite, test_ids);
    add(suite, test_newest_is_hottest);
    add(suite, test_other_ages);

    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
