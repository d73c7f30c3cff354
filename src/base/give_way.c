/* SPDX-License-Identifier: BSD-3-Clause */
/* sched_yield is what the kernel has: the thread goes behind those of its
 * queue. Nothing can be done about an error, and Linux has none. */
#include "base/give_way.h"

#include <sched.h>

void
give_way(void)
{
    (void)sched_yield();
}
