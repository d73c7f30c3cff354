/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_TIME_HELP_H
#define UNIT_TIME_HELP_H

/* For tests of workers whose deadlines come: the time of a rig passes. */

#include "unit/worker_help.h"

#include <poll.h>

/* Time passes until there are such events of poll at fd: that the worker has
 * closed it, or sent something, for want of time. */
static inline void
pass_until(struct rig *rig, int fd, short events)
{
    struct pollfd poll_fd = {.fd = fd, .events = events};
    while (poll(&poll_fd, 1, 1) != 1) {
        fake_clock_pass(&rig->clock, WORKER_SWEEP_MS);
    }
}

/* As expect_end, where that is because time passes. */
static inline void
expect_end_in_time(struct rig *rig, int fd)
{
    pass_until(rig, fd, POLLIN);
    expect_end(fd);
}

#endif
