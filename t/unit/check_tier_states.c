/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of the cold tier's states, against a list of those that there
 * are. */
#include "tier/states.h"

#include "unit/survives.h"

struct step {
    unsigned from, to;
};

/* Those of one machine, one of which is tried. */
struct machine {
    unsigned n_states;
    const struct step *legal;
    size_t n_legal;
    void (*step_fn)(struct step step);
    struct step tried;
};

static void
try_step(void *context)
{
    const struct machine *machine = context;
    machine->step_fn(machine->tried);
}

static bool
is_legal(const struct machine *machine)
{
    bool legal = false;
    for (size_t i = 0; i < machine->n_legal; i++) {
        legal = legal ||
            (machine->legal[i].from == machine->tried.from &&
                machine->legal[i].to == machine->tried.to);
    }
    return legal;
}

/* All steps from and to all states, and one beside them. */
static void
check(struct machine *machine)
{
    unsigned n = machine->n_states;
    for (unsigned from = 0; from <= n; from++) {
        for (unsigned to = 0; to <= n; to++) {
            machine->tried = (struct step){from, to};
            ck_assert_msg(survives(try_step, machine) == is_legal(machine),
                "from %u to %u", from, to);
        }
    }
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
    struct machine machine = {
        SEAL_STATES_N, legal, COUNT_OF(legal), step_seal, {0, 0}};
    check(&machine);
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
    struct machine machine = {
        REHEAT_STATES_N, legal, COUNT_OF(legal), step_reheat, {0, 0}};
    check(&machine);
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
    struct machine machine = {
        TIDIER_STATES_N, legal, COUNT_OF(legal), step_tidier, {0, 0}};
    check(&machine);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_seal, test_reheat, test_tidier};
    return run_tests("tier_states", tests, COUNT_OF(tests));
}
