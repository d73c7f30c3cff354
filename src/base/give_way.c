/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the core away by sched_yield, which puts the thread behind those of
 * its queue. Newer kernels (6.18) charge it for the rest of its turn then,
 * usually some 3 ms: on a busy core one of nice 10 that yields after 100 us
 * has 1 % of it, in place of 10 %. With turns as short as the pieces it has 5
 * %. Linux lets a thread set their length since 6.12; older ones ignore it.
 *
 * Nothing can be done about an error; what failed stays as it was. */
#include "base/give_way.h"

#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first version of the kernel's struct sched_attr, whose header and the C
 * library's exclude each other: sched_setattr(2). */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* the length of a turn */
    uint64_t deadline_ns, period_ns;
};
_Static_assert(sizeof(struct attr) == 48, "the kernel's first version");

static void
shorten_turns(void)
{
    struct attr attr = {.size = sizeof attr};
    if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0) == 0 &&
        (attr.policy == SCHED_OTHER || attr.policy == SCHED_BATCH)) {
        attr.runtime_ns = UINT64_C(1000) * GIVE_WAY_US;
        (void)syscall(SYS_sched_setattr, 0, &attr, 0);
    }
}

void
give_way_begin(int nice)
{
    /* on Linux that is the thread, not the process */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), nice);
    shorten_turns();
}

void
give_way(void)
{
    (void)sched_yield();
}
