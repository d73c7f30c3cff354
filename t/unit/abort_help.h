/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_ABORT_HELP_H
#define UNIT_ABORT_HELP_H

/* Assertions that are to fail. */

#include "unit/check_help.h"

#include <stdio.h>
#include <sys/wait.h>

/* True where the call aborts; it is tried in a process of its own. */
static inline bool
aborts(void (*call_fn)(void *context), void *context)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)!freopen("/dev/null", "w", stderr);
        call_fn(context);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#endif
