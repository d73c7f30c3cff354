/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the cold tier's states, against a list of those that there
 * are. */
#include "tier/states.h"

#include "unit/steps_help.h"

enum { STATES_MAX = 8 };

/* All steps from and to n states, and one beside them. */
static void
check(void (*step_fn)(struct step step), unsigned n, const struct step *legal,
    size_t n_legal)
{
    bool may[STATES_MAX * STATES_MAX] = {false};
    ck_assert_uint_lt(n, STATES_MAX);
    for (size_t i = 0; i < n_legal; i++) {
        may[legal[i].from * (n + 1) + legal[i].to] = true;
    }
    expect_steps(step_fn, may, n + 1);
}

static void
step_seal(struct step it)
{
    (void)seal__step((enum seal_state)it.from, (enum seal_state)it.to);
}

START_TEST(test_seal)
{
    static const struct step legal[] = {{SEAL_HOT, SEAL_COPIED},
        {SEAL_COPIED, SEAL_MERGED}, {SEAL_MERGED, SEAL_WRITTEN},
        {SEAL_WRITTEN, SEAL_COLD},
        /* given up */
        {SEAL_HOT, SEAL_HOT}, {SEAL_COPIED, SEAL_HOT}, {SEAL_MERGED, SEAL_HOT},
        {SEAL_WRITTEN, SEAL_HOT}};
    check(step_seal, SEAL_STATES_N, legal, COUNT_OF(legal));
}
END_TEST

static void
step_reheat(struct step it)
{
    (void)reheat__step((enum reheat_state)it.from, (enum reheat_state)it.to);
}

START_TEST(test_reheat)
{
    static const struct step legal[] = {
        {REHEAT_COLD, REHEAT_FULL}, {REHEAT_FULL, REHEAT_HOT}};
    check(step_reheat, REHEAT_STATES_N, legal, COUNT_OF(legal));
}
END_TEST

static void
step_tidier(struct step it)
{
    (void)tidier__step((enum tidier_state)it.from, (enum tidier_state)it.to);
}

START_TEST(test_tidier)
{
    static const struct step legal[] = {{TIDIER_IDLE, TIDIER_SEALING},
        {TIDIER_SEALING, TIDIER_SETTLING}, {TIDIER_IDLE, TIDIER_HEATING},
        {TIDIER_HEATING, TIDIER_SETTLING}, {TIDIER_SETTLING, TIDIER_IDLE},
        /* given up */
        {TIDIER_SEALING, TIDIER_IDLE}, {TIDIER_HEATING, TIDIER_IDLE}};
    check(step_tidier, TIDIER_STATES_N, legal, COUNT_OF(legal));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_seal, test_reheat, test_tidier};
    return run_tests("tier_states", tests, COUNT_OF(tests));
}
