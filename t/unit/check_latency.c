/* SPDX-License-Identifier: BSD-3-Clause */
/* stats/hist and stats/latency against sorted lists. */
#include "stats/latency.h"

#include "lib/dist.h"
#include "unit/check_help.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 20000 };

static int
compare(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
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

/* Buckets follow one another without a gap, and none is wider than a 32nd. */
START_TEST(test_buckets)
{
    uint64_t first = 0; /* of the bucket */
    unsigned bucket = 0;
    for (uint64_t ns = 0; ns < 1 << 16; ns++) {
        unsigned at = hist_bucket(ns);
        ck_assert(at == bucket || at == bucket + 1);
        first = at != bucket ? ns : first;
        bucket = at;
        ck_assert_uint_le(ns - first, first / HIST_SUB);
    }
    ck_assert_uint_lt(
        hist_bucket((UINT64_C(1) << HIST_POWERS) - 1), HIST_BUCKETS);
    ck_assert_uint_eq(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
    ck_assert_uint_eq(
        hist_bucket(UINT64_C(1) << HIST_POWERS), HIST_BUCKETS - 1);
}
END_TEST

START_TEST(test_quantiles)
{
    static const unsigned permille[] = {0, 10, 500, 900, 990, 999, 1000};
    static uint64_t ns[TIMES];
    static struct hist hist;
    static struct hist_sum sum;
    uint64_t total = 0;
    ck_assert_uint_eq(hist_sum_quantile(&sum, 500), 0);
    make_times(1, ns);
    for (size_t i = 0; i < TIMES; i++) {
        hist_add(&hist, ns[i], 1);
        total += ns[i];
    }
    hist_read(&hist, &sum);
    ck_assert_uint_eq(sum.count, TIMES);
    ck_assert_uint_eq(sum.sum_ns, total);
    qsort(ns, TIMES, sizeof ns[0], compare);
    ck_assert_uint_eq(sum.max_ns, ns[TIMES - 1]);
    for (size_t i = 0; i < sizeof permille / sizeof permille[0]; i++) {
        size_t rank = (permille[i] * (size_t)TIMES + 999) / 1000;
        double exact = (double)ns[rank > 0 ? rank - 1 : 0];
        double found = (double)hist_sum_quantile(&sum, permille[i]);
        ck_assert(fabs(found - exact) <= exact / 60); /* 1.7 % */
    }
}
END_TEST

START_TEST(test_below)
{
    static const uint64_t bound[] = {0, 1, 1, 10, 1000, 100000, UINT32_MAX};
    static uint64_t ns[TIMES];
    static struct hist hist;
    static struct hist_sum sum;
    uint64_t below[7];
    make_times(2, ns);
    for (size_t i = 0; i < TIMES; i++) {
        hist_add(&hist, ns[i], 3);
    }
    hist_read(&hist, &sum);
    hist_sum_below(&sum, bound, 7, below);
    for (unsigned i = 0; i < 7; i++) {
        uint64_t least = 0, most = 0; /* of a bound that is 1.7 % off */
        for (size_t k = 0; k < TIMES; k++) {
            uint64_t limit = bound[i] * 1000;
            least += ns[k] + ns[k] / 60 <= limit ? 3 : 0;
            most += ns[k] - ns[k] / 60 <= limit ? 3 : 0;
        }
        ck_assert_uint_ge(below[i], least);
        ck_assert_uint_le(below[i], most);
    }
    ck_assert_uint_eq(below[6], 3 * TIMES);
    hist_add(&hist, UINT64_MAX, 1); /* is below no bound */
    memset(&sum, 0, sizeof sum);
    hist_read(&hist, &sum);
    hist_sum_below(&sum, bound, 7, below);
    ck_assert_uint_eq(below[6], sum.count - 1);
    ck_assert_uint_eq(hist_sum_quantile(&sum, 1000), UINT64_MAX);
}
END_TEST

/* What stats reset does. */
START_TEST(test_forget)
{
    static struct hist hist;
    static struct hist_sum before, both, after, sum;
    hist_add(&hist, 5000000, 2);
    hist_read(&hist, &before);
    hist_add(&hist, 1000, 3);
    hist_read(&hist, &both);
    after = both;
    hist_sum_forget(&after, &before);
    ck_assert_uint_eq(after.count, 3);
    ck_assert_uint_eq(after.sum_ns, 3000);
    ck_assert_uint_le(after.max_ns, 1016);
    ck_assert_uint_ge(after.max_ns, 984);
    sum = before;
    hist_sum_add(&sum, &after);
    ck_assert_mem_eq(&sum, &both, sizeof sum);
    hist_add(&hist, 9000000, 1);
    memset(&sum, 0, sizeof sum);
    hist_read(&hist, &sum);
    hist_sum_forget(&sum, &before);
    ck_assert_uint_eq(sum.max_ns, 9000000); /* is none that is forgotten */
}
END_TEST

START_TEST(test_set)
{
    static struct latency_set set;
    static struct hist_sum sum;
    unsigned n = 0;
    for (unsigned verb = 0; verb < LATENCY_VERB_COUNT; verb++) {
        for (unsigned path = 0; path < LATENCY_PATH_COUNT; path++) {
            hist_add(&set.request[verb][path], 1000, ++n);
        }
    }
    latency_read(&set, LATENCY_get, LATENCY_PATH_cold, &sum);
    ck_assert_uint_eq(sum.count, 2);
    latency_read(&set, LATENCY_set, LATENCY_PATH_COUNT, &sum);
    ck_assert_uint_eq(sum.count, 2 + 5 + 6 + 7 + 8);
    ck_assert_str_eq(latency_verb_name(LATENCY_other), "other");
    ck_assert_str_eq(latency_path_name(LATENCY_PATH_room), "room");
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("latency");
    tcase_add_test(tcase, test_buckets);
    tcase_add_test(tcase, test_quantiles);
    tcase_add_test(tcase, test_below);
    tcase_add_test(tcase, test_forget);
    tcase_add_test(tcase, test_set);
    return run_case("latency", tcase);
}
