/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a job (session/exec_shared.h): each step that exec.c does not
 * draw aborts, and so does one from a stage in which the job is not. */
#include "session/exec_shared.h"
#include "unit/survives.h"

enum { STAGES = JOB_LOGIN + 2 /* and one that is none */ };

/* Where a job is, and the step that it takes. */
struct move {
    unsigned stage, from, to;
};

static void
go(void *context)
{
    const struct move *it = context;
    struct job job = {.stage = (enum job_stage)it->stage};
    exec__job_move(&job, (enum job_stage)it->from, (enum job_stage)it->to);
    ck_assert_uint_eq(job.stage, it->to);
}

START_TEST(test_steps)
{
    static const bool may[STAGES][STAGES] = {
        [JOB_GET_JOIN] = {[JOB_GET_CHECK] = true, [JOB_GET_ASK] = true},
        [JOB_GET_CHECK] = {[JOB_GET_GATHER] = true, [JOB_GET_ASK] = true},
        [JOB_GET_GATHER] = {[JOB_GET_ASK] = true},
        [JOB_GET_ASK] = {[JOB_GET_FORMAT] = true},
        [JOB_GET_FORMAT] = {[JOB_GET_GATHER] = true},
        [JOB_GATHER] = {[JOB_SOURCES] = true, [JOB_CHANGE] = true},
        [JOB_SOURCES] = {[JOB_CHANGE] = true},
    };
    for (unsigned from = 0; from < STAGES; from++) {
        for (unsigned to = 0; to < STAGES; to++) {
            struct move move = {from, from, to};
            ck_assert_msg(survives(go, &move) == may[from][to],
                "from %u to %u", from, to);
        }
    }
}
END_TEST

START_TEST(test_other_stage)
{
    for (unsigned stage = 0; stage < STAGES; stage++) {
        struct move move = {stage, JOB_GET_ASK, JOB_GET_FORMAT};
        ck_assert_msg(
            survives(go, &move) == (stage == JOB_GET_ASK), "in %u", stage);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_steps, test_other_stage};
    return run_tests("exec_stage", tests, COUNT_OF(tests));
}
