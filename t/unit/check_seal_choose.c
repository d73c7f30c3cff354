/* SPDX-License-Identifier: BSD-3-Clause */
/* tier/seal_choose on made-up candidates. */
#include "tier/seal_choose.h"

#include "unit/check_help.h"

enum { N_MAX = SEAL_PEERS_MAX, MANY = 100000 };

/* Which of candidates with such heats is taken. */
static size_t
choose(size_t n, const double *heat)
{
    struct seal_candidate peer[N_MAX];
    for (size_t i = 0; i < n; i++) {
        peer[i] = (struct seal_candidate){
            .n_hot = MANY, .range = {.first_id = i}, .heat = heat[i]};
    }
    return seal_choose(peer, n);
}

#define CHOOSE(...)                                                           \
    choose(sizeof(double[]){__VA_ARGS__} / sizeof(double),                    \
        (const double[]){__VA_ARGS__})

START_TEST(test_choice)
{
    ck_assert_uint_eq(CHOOSE(0), 0);
    ck_assert_uint_eq(CHOOSE(9000), 0);
    /* all alike: the lowest */
    ck_assert_uint_eq(CHOOSE(0, 0, 0), 0);
    ck_assert_uint_eq(CHOOSE(500, 500, 500), 0);
    ck_assert_uint_eq(CHOOSE(500, 200, 130), 0);
    /* hardly written is not written */
    ck_assert_uint_eq(CHOOSE(8, 0, 0), 0);
    ck_assert_uint_eq(CHOOSE(2, 1, 0), 0);
    /* heavily written beside a quiet one, which is not the quietest */
    ck_assert_uint_eq(CHOOSE(9, 0), 1);
    ck_assert_uint_eq(CHOOSE(500, 100, 90), 1);
    ck_assert_uint_eq(CHOOSE(500, 130, 90), 1);
    ck_assert_uint_eq(CHOOSE(17000, 400, 3, 0), 2);
    ck_assert_uint_eq(CHOOSE(17000, 17000, 17000, 0), 3);
    ck_assert_uint_eq(CHOOSE(17000, 17000, 17000, 16999), 0);
}
END_TEST

/* Whatever the heats, what is taken is not heavy beside any other, and all
 * before it are. */
START_TEST(test_never_a_heavy_one)
{
    uint64_t random = 7;
    for (int round = 0; round < 20000; round++) {
        double heat[N_MAX], least = 1e9;
        size_t n = 1 + random_below(&random, N_MAX);
        for (size_t i = 0; i < n; i++) {
            heat[i] = (double)(random_below(&random, 1 << 20) >>
                random_below(&random, 24));
            least = heat[i] < least ? heat[i] : least;
        }
        size_t chosen = choose(n, heat);
        ck_assert(chosen < n);
        ck_assert(heat[chosen] <= 8 || heat[chosen] <= 4 * least);
        for (size_t i = 0; i < chosen; i++) {
            ck_assert(heat[i] > 8 && heat[i] > 4 * least);
        }
    }
}
END_TEST

static bool
is_fair(uint64_t n_hot, uint64_t n_cold)
{
    const struct seal_candidate it = {.n_hot = n_hot, .n_cold = n_cold};
    return seal_is_fair(&it);
}

START_TEST(test_fair)
{
    ck_assert(is_fair(4096, 0));
    ck_assert(!is_fair(4095, 0));
    ck_assert(is_fair(5000, 40000));
    ck_assert(!is_fair(5000, 40001));
    ck_assert(!is_fair(0, 0));
}
END_TEST

/* Wide records are worth a file by what they take. */
START_TEST(test_worth)
{
    struct seal_candidate it = {
        .n_hot = 10, .hot_bytes = SEAL_LEAST_BYTES - 1};
    ck_assert(!seal_is_worth(&it));
    it.hot_bytes++;
    ck_assert(seal_is_worth(&it));
    ck_assert(seal_is_fair(&it));
    it.n_cold = 8 * it.n_hot + 1;
    ck_assert(!seal_is_fair(&it));
}
END_TEST

static double
score(uint64_t n_hot, uint64_t hot_bytes, uint64_t n_cold)
{
    const struct seal_candidate it = {
        .n_hot = n_hot, .hot_bytes = hot_bytes, .n_cold = n_cold};
    return seal_score(&it, false);
}

START_TEST(test_score)
{
    const struct seal_candidate it = {.n_hot = 9000, .hot_bytes = 90000};
    ck_assert(score(9000, 90000, 1000) > score(9000, 90000, 2000));
    ck_assert(score(9000, 90000, 1000) < score(9000, 180000, 1000));
    ck_assert(score(100, 1000, 0) < score(9000, 90000, 9000));
    ck_assert(score(1, 1, UINT64_MAX / 2) > 0);
    ck_assert(!(score(0, 0, 1000) > 0));
    /* newest: after what is fair, before what is much less so */
    ck_assert(seal_score(&it, true) < score(9000, 90000, 8 * 9000));
    ck_assert(seal_score(&it, true) > score(9000, 90000, 20 * 9000));
}
END_TEST

START_TEST(test_busy)
{
    struct seal_candidate it = {.heat = 4096};
    ck_assert(!seal_is_busy(&it));
    it.heat = 4097;
    ck_assert(seal_is_busy(&it));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_choice, test_never_a_heavy_one,
        test_fair, test_worth, test_score, test_busy};
    return run_tests("seal_choose", tests, COUNT_OF(tests));
}
