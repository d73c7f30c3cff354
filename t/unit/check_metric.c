/* SPDX-License-Identifier: BSD-3-Clause */
/* stats/metric: names as memcached has them, sums over sets. */
#include "stats/metric.h"

#include "unit/check_help.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ADDITIONS = 100000 };

START_TEST(test_names)
{
    static const char *const texts[METRIC_COUNT] = {
#define X(name, text) text,
        METRIC_GENERAL(X) METRIC_COUNTERS(X) METRIC_TIMES(X)
#undef X
    };
    ck_assert_str_eq(metric_name(METRIC_cmd_get), "cmd_get");
    ck_assert_str_eq(metric_name(METRIC_conn_yields), "conn_yields");
    ck_assert_str_eq(metric_name(METRIC_slow_readers), "slow_readers");
    for (int i = 0; i < METRIC_COUNT; i++) {
        ck_assert_uint_gt(strlen(metric_name((enum metric)i)), 0);
        ck_assert_uint_gt(strlen(texts[i]), 0);
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(
                metric_name((enum metric)i), metric_name((enum metric)j));
        }
    }
}
END_TEST

START_TEST(test_sum)
{
    static struct metric_set one, two;
    uint64_t sum[METRIC_COUNT] = {0};

    for (int i = 0; i < METRIC_COUNT; i++) {
        metric_add(&one, (enum metric)i, (uint64_t)i + 1);
        metric_add(&one, (enum metric)i, 1);
        metric_add(&two, (enum metric)i, 1000);
    }
    metric_sum(&one, sum);
    metric_sum(&two, sum);
    for (int i = 0; i < METRIC_COUNT; i++) {
        ck_assert_uint_eq(sum[i], (uint64_t)i + 1002);
    }
}
END_TEST

START_TEST(test_alignment)
{
    ck_assert_uint_eq(_Alignof(struct metric_set), 64);
    ck_assert_uint_eq(sizeof(struct metric_set) % 64, 0);
}
END_TEST

static void *
count(void *arg)
{
    struct metric_set *set = arg;

    for (int i = 0; i < ADDITIONS; i++) {
        metric_add(set, METRIC_get_hits, 2);
    }
    return NULL;
}

/* Threads count on their own sets while another sums: every sum is between
 * its predecessor and the end. */
START_TEST(test_threads)
{
    static struct metric_set sets[THREADS];
    pthread_t threads[THREADS];
    const uint64_t end = UINT64_C(2) * THREADS * ADDITIONS;
    uint64_t last = 0;

    memset(sets, 0, sizeof sets);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, count, &sets[i]), 0);
    }
    while (last < end) {
        uint64_t sum[METRIC_COUNT] = {0};

        for (int i = 0; i < THREADS; i++) {
            metric_sum(&sets[i], sum);
        }
        ck_assert_uint_ge(sum[METRIC_get_hits], last);
        ck_assert_uint_le(sum[METRIC_get_hits], end);
        ck_assert_uint_eq(sum[METRIC_get_misses], 0);
        last = sum[METRIC_get_hits];
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("metric");
    TCase *tcase = tcase_create("metric");
    SRunner *sr = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_test(tcase, test_names);
    tcase_add_test(tcase, test_sum);
    tcase_add_test(tcase, test_alignment);
    tcase_add_test(tcase, test_threads);
    suite_add_tcase(suite, tcase);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
