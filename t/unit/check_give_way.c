/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread in the background has its nice, and short turns where the kernel
 * knows them; other threads, and how it is scheduled, stay as they were. */
#include "base/give_way.h"

#include "unit/check_help.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NICE = 10 };

/* The first version of what sched_getattr(2) gives. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

/* What a thread finds; asserts are the main thread's. */
struct found {
    int policy; /* to begin with */
    bool is_set;
    bool knows_turns; /* the kernel keeps a length that is asked for */
    struct attr attr;
};

static bool
get(struct attr *attr)
{
    *attr = (struct attr){.size = sizeof *attr};
    return syscall(SYS_sched_getattr, 0, attr, sizeof *attr, 0) == 0;
}

static void *
in_background(void *arg)
{
    struct found *found = arg;
    struct sched_param none = {0};
    struct attr attr;

    if (pthread_setschedparam(pthread_self(), found->policy, &none) != 0 ||
        !get(&attr)) {
        return NULL;
    }
    attr.runtime_ns = UINT64_C(3000) * GIVE_WAY_US;
    found->knows_turns = syscall(SYS_sched_setattr, 0, &attr, 0) == 0 &&
        get(&attr) && attr.runtime_ns == UINT64_C(3000) * GIVE_WAY_US;
    give_way_begin(NICE);
    give_way();
    found->is_set = get(&found->attr);
    return NULL;
}

START_TEST(test_one_thread_is_in_the_background)
{
    static const int policies[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE};
    struct found found = {.policy = policies[_i]};
    struct attr before, after;
    pthread_t thread;

    if (!get(&before) || before.policy != SCHED_OTHER || before.nice > NICE) {
        return; /* a seccomp profile, or a test that is run in this way */
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, in_background, &found), 0);
    pthread_join(thread, NULL);
    ck_assert(found.is_set);
    ck_assert_int_eq(found.attr.nice, NICE);
    ck_assert_uint_eq(found.attr.policy, (unsigned)policies[_i]);
    if (found.knows_turns && policies[_i] != SCHED_IDLE) {
        ck_assert_uint_eq(found.attr.runtime_ns, UINT64_C(1000) * GIVE_WAY_US);
    }
    ck_assert(get(&after));
    ck_assert_mem_eq(&before, &after, sizeof before);
}
END_TEST

int
main(void)
{
    TCase *tcase = tcase_create("give_way");

    tcase_add_loop_test(tcase, test_one_thread_is_in_the_background, 0, 3);
    return run_case("give_way", tcase);
}
