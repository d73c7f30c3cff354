/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages of a job (session/exec_shared.h): each step that exec.c does not
 * draw aborts, and so does one from a stage in which the job is not. */
#include "session/exec_shared.h"
#include "unit/steps_help.h"

enum { STAGES = JOB_LOGIN + 2 /* and one that is none */ };

static void
take_step(struct step it)
{
    struct job job = {.stage = (enum job_stage)it.from};
    exec__job_move(&job, (enum job_stage)it.from, (enum job_stage)it.to);
    ck_assert_uint_eq(job.stage, it.to);
}

/* A step that is legal, by a job in that stage. */
static void
go_on(void *context)
{
    struct job job = {.stage = *(const enum job_stage *)context};
    exec__job_move(&job, JOB_GET_ASK, JOB_GET_FORMAT);
}

START_TEST(test_steps)
{
    static const bool may[STAGES][STAGES] = {
        [JOB_GET_JOIN] = {[JOB_GET_CHECK] = true, [JOB_GET_ASK] = true},
        [JOB_GET_CHECK] = {[JOB_GET_GATHER] = true, [JOB_GET_ASK] = true},
        [JOB_GET_GATHER] = {[JOB_GET_ASK] = true},
        [JOB_GET_ASK] = {[JOB_GET_PAIRS] = true, [JOB_GET_FORMAT] = true},
        [JOB_GET_PAIRS] = {[JOB_GET_PINS] = true, [JOB_GET_FORMAT] = true},
        [JOB_GET_PINS] = {[JOB_GET_FORMAT] = true},
        [JOB_GET_FORMAT] = {[JOB_GET_GATHER] = true},
        [JOB_GATHER] = {[JOB_SOURCES] = true, [JOB_CHANGE] = true},
        [JOB_SOURCES] = {[JOB_PINS] = true, [JOB_CHANGE] = true},
        [JOB_PINS] = {[JOB_CHANGE] = true},
        [JOB_FORWARD_JOIN] = {[JOB_FORWARD] = true},
    };
    expect_steps(take_step, &may[0][0], STAGES);
}
END_TEST

START_TEST(test_other_stage)
{
    for (unsigned stage = 0; stage < STAGES; stage++) {
        enum job_stage is_in = (enum job_stage)stage;
        ck_assert_msg(
            survives(go_on, &is_in) == (stage == JOB_GET_ASK), "in %u", stage);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_steps, test_other_stage};
    return run_tests("exec_stage", tests, COUNT_OF(tests));
}
