/* SPDX-License-Identifier: BSD-3-Clause */

/* The latency histogram of t/bench against sorted lists. */

#include "bench/hist.h"

#include "lib/dist.h"
#include "unit/check_help.h"

#include <math.h>
#include <stdlib.h>

enum { TIMES = 20000 };

static int
compare(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

/* Times over many powers of two, as a server's are. */
static void
make_times(uint64_t seed, uint64_t *ns)
{
    struct dist_rng rng;
    dist_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < TIMES; i++) {
        ns[i] = (uint64_t)exp(22.0 * dist_rng_unit(&rng));
    }
}

START_TEST(test_empty)
{
    struct hist hist = {0};
    ck_assert_uint_eq(hist_quantile(&hist, 0.5), 0);
}
END_TEST

START_TEST(test_error_is_small)
{
    static const double share[] = {0.0, 0.01, 0.5, 0.99, 0.999, 1.0};
    static uint64_t ns[TIMES];
    static struct hist hist;
    make_times(1, ns);
    for (size_t i = 0; i < TIMES; i++) {
        hist_add(&hist, ns[i]);
    }
    qsort(ns, TIMES, sizeof(ns[0]), compare);
    for (size_t i = 0; i < sizeof(share) / sizeof(share[0]); i++) {
        size_t rank = (size_t)ceil(share[i] * TIMES);
        uint64_t exact = ns[rank > 0 ? rank - 1 : 0];
        uint64_t found = hist_quantile(&hist, share[i]);
        ck_assert_uint_ge(found, exact);
        ck_assert_uint_le(found, exact + exact / HIST_SUB);
    }
    ck_assert_uint_eq(hist_quantile(&hist, 1.0), ns[TIMES - 1]);
}
END_TEST

START_TEST(test_merge_is_as_one)
{
    static uint64_t ns[TIMES];
    static struct hist whole;
    static struct hist half[2];
    make_times(2, ns);
    for (size_t i = 0; i < TIMES; i++) {
        hist_add(&whole, ns[i]);
        hist_add(&half[i % 2], ns[i]);
    }
    hist_merge(&half[0], &half[1]);
    ck_assert_mem_eq(&half[0], &whole, sizeof(whole));
}
END_TEST

START_TEST(test_longer_than_all_buckets)
{
    struct hist hist = {0};
    hist_add(&hist, UINT64_MAX);
    hist_add(&hist, 5);
    ck_assert_uint_eq(hist_quantile(&hist, 0.5), 5);
    ck_assert_uint_ge(hist_quantile(&hist, 1.0), UINT64_C(1) << 40);
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
    Suite *suite = suite_create("hist");
    add(suite, test_empty);
    add(suite, test_error_is_small);
    add(suite, test_merge_is_as_one);
    add(suite, test_longer_than_all_buckets);

    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
