/* SPDX-License-Identifier: BSD-3-Clause */

/* Draws by Zipf's law against its probabilities, which are summed here. */

#include "bench/zipf.h"

#include "unit/check_help.h"

#include <math.h>
#include <stdlib.h>

enum { RANKS = 1000, DRAWS = 400000 };

static const double exponents[] = {0.0, 0.5, 0.99, 1.0, 1.2, 3.0};

enum { N_EXPONENTS = sizeof(exponents) / sizeof(exponents[0]) };

/* Six standard deviations of a count, and one. */
static double
room(double wanted)
{
    return 6.0 * sqrt(wanted) + 1.0;
}

START_TEST(test_shares)
{
    static const uint64_t sizes[] = {1, 2, 10, RANKS};
    static uint64_t seen[RANKS + 1]; /* the last: beyond them */
    double exponent = exponents[_i];
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        uint64_t n = sizes[s];
        struct zipf zipf;
        struct dist_rng rng;
        double all = 0.0;
        for (uint64_t i = 0; i < n; i++) {
            seen[i] = 0;
            all += pow((double)(i + 1), -exponent);
        }
        zipf_init(&zipf, n, exponent);
        dist_rng_init(&rng, 7, n);
        for (int i = 0; i < DRAWS; i++) {
            uint64_t rank = zipf_draw(&zipf, &rng);
            seen[rank < n ? rank : RANKS]++;
        }
        ck_assert_uint_eq(seen[RANKS], 0);
        for (uint64_t i = 0; i < n; i++) {
            double share = pow((double)(i + 1), -exponent) / all;
            double wanted = share * DRAWS;
            if (fabs((double)seen[i] - wanted) <= room(wanted)) {
                continue;
            }
            ck_abort_msg("%g, rank %u of %u: %u instead of %g", exponent,
                (unsigned)i, (unsigned)n, (unsigned)seen[i], wanted);
        }
    }
}
END_TEST

/* Of very many: how often the first ranks come. */
START_TEST(test_very_many)
{
    enum { FIRST = 1000 };
    uint64_t n = 1000000000;
    double exponent = exponents[_i];
    struct zipf zipf;
    struct dist_rng rng;
    double first = 0.0;
    double seen = 0.0;
    for (int i = 1; i <= FIRST; i++) {
        first += pow(i, -exponent);
    }
    /* the rest as the area under the curve */
    double power = 1.0 - exponent;
    double rest = fabs(power) < 1e-9
        ? log(((double)n + 0.5) / (FIRST + 0.5))
        : (pow((double)n + 0.5, power) - pow(FIRST + 0.5, power)) / power;
    zipf_init(&zipf, n, exponent);
    dist_rng_init(&rng, 7, 0);
    for (int i = 0; i < DRAWS; i++) {
        seen += zipf_draw(&zipf, &rng) < FIRST;
    }
    double wanted = first / (first + rest) * DRAWS;
    ck_assert(fabs(seen - wanted) <= room(wanted));
}
END_TEST

static void
add(Suite *suite, const TTest *test)
{
    TCase *tcase = tcase_create(test->name);
    tcase_add_loop_test(tcase, test, 0, N_EXPONENTS);
    suite_add_tcase(suite, tcase);
}

int
main(void)
{
    Suite *suite = suite_create("zipf");
    add(suite, test_shares);
    add(suite, test_very_many);

    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
