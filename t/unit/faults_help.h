/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_FAULTS_HELP_H
#define UNIT_FAULTS_HELP_H

/* A fault of the disk at each of a rig's calls in turn. */

#include "unit/durable_help.h"

#include <errno.h>

struct fault {
    enum fake_call call;
    int err;
    bool forever; /* all calls of the kind fail from then on */
};

/* The fault at the n-th call from now on. A disk that stays full is waited for
 * in vain: then time passes, until is_in_vain is false. */
static inline void
fail_nth(struct rig *rig, const struct fault *fault, unsigned n)
{
    fake_disk_fail(
        rig->fake, 1u << fault->call, n, fault->err, fault->forever);
    rig->is_in_vain = fault->forever && fault->err == ENOSPC;
}

/* Has fail_fn try a fault at the n-th call of a kind, for n = 1, 2, 3 ...
 * (sweep_next), once and forever. fail_fn gives false where there is no n-th
 * call any more. */
static inline void
fail_by_turns(bool (*fail_fn)(const struct fault *fault, unsigned n),
    enum fake_call call, int err)
{
    for (unsigned forever = 0; forever < 2; forever++) {
        struct fault fault = {call, err, forever == 1};
        unsigned n = 1;
        while (fail_fn(&fault, n)) {
            n = sweep_next(n);
        }
    }
}

/* Of four tries one ends with a power cut and one with a crash of the process;
 * false in the others. */
static inline bool
crash_by_turns(struct rig *rig, unsigned n)
{
    bool has_crashed = n % 4 < 2;
    if (has_crashed) {
        rig_crash(rig, n % 4 == 0, 1 + n % 2);
    }
    return has_crashed;
}

#endif
