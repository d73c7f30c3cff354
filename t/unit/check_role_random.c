/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/role and repl/quorum in worlds of faults: nothing that was acknowledged
 * is lost, but what a node lacks that leads by force; nothing is done twice, no
 * two nodes acknowledge in one another's term, and in the end all logs are the
 * same and all is answered. Then with one rule taken out, where that has to be
 * seen. ROLE_SEED=N is the first seed, ROLE_SEEDS=N how many there are.
 * ROLE_RECOUNT=N: also says how many of N seeds find each rule. */
#include "repl/role_rules.h"
#include "unit/check_help.h"
#include "unit/role_found.h"
#include "unit/role_world.h"

#include <stdio.h>

enum { PARTS = 16, SEEDS = 2000 };

static uint64_t
number_in(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

START_TEST(test_seeds)
{
    uint64_t first = number_in("ROLE_SEED", 1);
    uint64_t n = number_in("ROLE_SEEDS", SWEEP_PART(long_part(SEEDS)));
    struct world_result result, sum = {.n_acked = 0};

    /* side by side: what a world has goes by the last bits of its seed */
    for (uint64_t i = n * (uint64_t)_i / PARTS;
         i < n * (uint64_t)(_i + 1) / PARTS; i++) {
        world_run(first + i, &result);
        ck_assert_msg(result.wrong[0] == '\0', "ROLE_SEED=%llu: %s",
            (unsigned long long)(first + i), result.wrong);
        sum.n_acked += result.n_acked;
        sum.n_terms += result.n_terms;
        sum.n_sets += result.n_sets;
        sum.n_faults += result.n_faults;
        sum.n_forced += result.n_forced;
        sum.n_reloads += result.n_reloads;
    }
    if (n >= (uint64_t)PARTS * 10) { /* and something has happened */
        ck_assert_uint_gt(sum.n_acked, n);
        ck_assert_uint_gt(sum.n_terms, n / PARTS);
        ck_assert_uint_gt(sum.n_sets, n / PARTS);
        ck_assert_uint_gt(sum.n_faults, n / PARTS);
    }
    if (n >= (uint64_t)PARTS * 80) { /* of a quarter of the worlds each */
        ck_assert_uint_gt(sum.n_reloads + sum.n_forced, 0);
    }
}
END_TEST

START_TEST(test_rules)
{
    struct world_result result;

    for (size_t i = 0; i < COUNT_OF(role_found); i++) {
        world_without(0);
        world_run(role_found[i].seed, &result);
        ck_assert_str_eq(result.wrong, "");
        world_without(UINT64_C(1) << role_found[i].rule);
        world_run(role_found[i].seed, &result);
        ck_assert_msg(result.wrong[0] != '\0', "rule %d, seed %u",
            (int)role_found[i].rule, role_found[i].seed);
    }
    world_without(0);
}
END_TEST

/* What each rule is worth: of how many seeds, and the first of them. Who
 * changes the worlds sees whether they still find what they found. */
START_TEST(test_recount)
{
    static const char *const names[] = {
#define X(name, text) #name,
        ROLE_RULES(X)
#undef X
    };
    uint64_t first = number_in("ROLE_SEED", 1);
    uint64_t n = number_in("ROLE_RECOUNT", 0), n_found = 0, first_found = 0;
    struct world_result result;

    world_without(UINT64_C(1) << _i);
    for (uint64_t seed = first; seed < first + n; seed++) {
        world_run(seed, &result);
        if (result.wrong[0] != '\0') {
            first_found = n_found == 0 ? seed : first_found;
            n_found++;
        }
    }
    world_without(0);
    printf("# without %s: found by %llu of %llu seeds", names[_i],
        (unsigned long long)n_found, (unsigned long long)n);
    printf(n_found > 0 ? ", the first is %llu\n" : "\n",
        (unsigned long long)first_found);
    for (size_t i = 0; i < COUNT_OF(role_found); i++) {
        uint64_t seed = role_found[i].seed;

        if ((int)role_found[i].rule == _i && first <= seed &&
            seed < first + n) {
            ck_assert_uint_gt(n_found, 0);
        }
    }
}
END_TEST

/* An etcd that does not compare the term when voters are written. */
START_TEST(test_etcd)
{
    struct world_result result;

    world_etcd_forgets(true);
    world_run(83, &result);
    ck_assert(result.wrong[0] != '\0');
}
END_TEST

/* Where a group had no primary for most of a world many changes wait for it: it
 * is well soon, and then they have their turns. */
static const unsigned many_wait[] = {5141446, 5175618, 5178906, 5247058};

START_TEST(test_many_wait)
{
    struct world_result result;

    world_run(many_wait[_i], &result);
    ck_assert_str_eq(result.wrong, "");
}
END_TEST

/* But it is found where nobody reaches anybody in the end. */
START_TEST(test_never_well)
{
    static const char wrong[] = "all is not well";
    struct world_result result;

    world_stays_parted(true);
    world_run(many_wait[_i], &result);
    ck_assert_int_eq(strncmp(result.wrong, wrong, sizeof wrong - 1), 0);
    world_stays_parted(false);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("role_random");
    TCase *tcase = tcase_create("role_random");

    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    tcase_add_loop_test(tcase, test_seeds, 0, PARTS);
    tcase_add_test(tcase, test_rules);
    if (number_in("ROLE_RECOUNT", 0) > 0) {
        tcase_add_loop_test(tcase, test_recount, 0, ROLE_RULES_N);
    }
    tcase_add_test(tcase, test_etcd);
    tcase_add_loop_test(tcase, test_many_wait, 0, (int)COUNT_OF(many_wait));
    tcase_add_loop_test(tcase, test_never_well, 0, (int)COUNT_OF(many_wait));
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
