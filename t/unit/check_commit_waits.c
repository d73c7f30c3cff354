/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/commit_waits: how long what is written waits, and what is late. */
#include "repl/commit_waits.h"

#include "unit/check_help.h"

enum { LIMIT_US = 1000 };

START_TEST(test_waits)
{
    struct commit_waits waits = {0};
    struct commit_figures figures = {0};
    commit_waits_begin(&waits, 5);
    commit_waits_look(&waits, &figures, 5, 0, LIMIT_US, 100);
    ck_assert_uint_eq(waits.n, 0); /* nothing was written since */
    commit_waits_look(&waits, &figures, 7, 5, LIMIT_US, 200);
    commit_waits_look(&waits, &figures, 7, 6, LIMIT_US, 300);
    ck_assert_uint_eq(waits.n, 1); /* not all of it is committed */
    commit_waits_look(&waits, &figures, 9, 7, LIMIT_US, 330);
    ck_assert_uint_eq(figures.us[8], 1); /* 130: 128..255 */
    commit_waits_look(&waits, &figures, 9, 9, LIMIT_US, 330);
    ck_assert_uint_eq(figures.us[0], 1);
    ck_assert_uint_eq(figures.late, 0);
    ck_assert_uint_eq(waits.n, 0);
}
END_TEST

START_TEST(test_late)
{
    struct commit_waits waits = {0};
    struct commit_figures figures = {0};
    commit_waits_look(&waits, &figures, 1, 0, LIMIT_US, 1);
    commit_waits_look(&waits, &figures, 2, 0, LIMIT_US, 2);
    commit_waits_look(&waits, &figures, 2, 0, LIMIT_US, LIMIT_US);
    ck_assert_uint_eq(figures.late, 0);
    commit_waits_look(&waits, &figures, 2, 0, LIMIT_US, 1 + LIMIT_US);
    ck_assert_uint_eq(figures.late, 1);
    commit_waits_look(&waits, &figures, 2, 2, LIMIT_US, 9 * LIMIT_US);
    ck_assert_uint_eq(figures.late, 2); /* each of them once */
    ck_assert_uint_eq(figures.us[14], 2);
    /* one that is above all */
    commit_waits_look(&waits, &figures, 3, 2, LIMIT_US, 9 * LIMIT_US);
    commit_waits_look(&waits, &figures, 3, 3, LIMIT_US, UINT64_MAX);
    ck_assert_uint_eq(figures.us[COMMIT_WAITS_POWERS - 1], 1);
}
END_TEST

/* More than are kept are not measured; later ones are again. */
START_TEST(test_many)
{
    struct commit_waits waits = {0};
    struct commit_figures figures = {0};
    for (unsigned i = 1; i <= 2 * COMMIT_WAITS_KEPT; i++) {
        commit_waits_look(&waits, &figures, i, 0, LIMIT_US, i);
    }
    ck_assert_uint_eq(waits.n, COMMIT_WAITS_KEPT);
    commit_waits_look(&waits, &figures, 2 * COMMIT_WAITS_KEPT,
        2 * COMMIT_WAITS_KEPT, LIMIT_US, 2 * COMMIT_WAITS_KEPT);
    ck_assert_uint_eq(waits.n, 0);
    commit_waits_look(&waits, &figures, 2 * COMMIT_WAITS_KEPT + 1,
        2 * COMMIT_WAITS_KEPT, LIMIT_US, 3 * COMMIT_WAITS_KEPT);
    ck_assert_uint_eq(waits.n, 1);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_waits, test_late, test_many};
    return run_tests("commit_waits", tests, COUNT_OF(tests));
}
