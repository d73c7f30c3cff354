/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_SURVIVES_H
#define UNIT_SURVIVES_H

/* Asserts that are to fail: what is called runs in a process of its own. */

#include "unit/check_help.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* False where call_fn aborts. */
static inline bool
survives(void (*call_fn)(void *context), void *context)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        (void)!freopen("/dev/null", "w", stderr);
        call_fn(context);
        _exit(EXIT_SUCCESS);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        ck_assert_int_eq(WTERMSIG(status), SIGABRT);
        return false;
    }
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    return true;
}

#endif
