/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of the process.
 *
 * They are raised while it may still be root: what its user has after that is
 * what it was given here. What the operator has asked for and cannot have is
 * either an error, or, where memcached goes on too, a text for a warning. */
#include "server/process.h"

#include "base/err.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* Linux 4.4; what C libraries name only with _GNU_SOURCE. */
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

int
process_raise_fd_limit(unsigned long n, struct buf *message)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        buf_addf(message, "cannot read the limit of open files: %s",
            strerror(errno));
        return ERR_SYSTEM;
    }
    rlim_t allowed = limit.rlim_max;
    if (limit.rlim_cur >= n) {
        return 0;
    }
    limit.rlim_cur = n;
    if (limit.rlim_max < n) {
        limit.rlim_max = n;
    }
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        buf_addf(message,
            "needs %lu open files and may have %llu: lower -c, or "
            "raise the limit (ulimit -Hn %lu as root; LimitNOFILE=%lu in a "
            "systemd unit)",
            n, (unsigned long long)allowed, n, n);
        return ERR_SYSTEM;
    }
    return 0;
}

/* Raises a limit as far as the process may; what it is then. */
static rlim_t
raise_limit(int resource)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

    if (setrlimit((__rlimit_resource_t)resource, &limit) == 0) {
        return RLIM_INFINITY;
    }
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0) {
        return 0;
    }
    limit.rlim_cur = limit.rlim_max;
    return setrlimit((__rlimit_resource_t)resource, &limit) == 0
        ? limit.rlim_cur
        : 0;
}

int
process_raise_core_limit(struct buf *message)
{
    if (raise_limit(RLIMIT_CORE) == 0) {
        buf_add_text(message,
            "-r: core files are not allowed: raise the limit (ulimit -Hc; "
            "LimitCORE= in a systemd unit)");
        return ERR_SYSTEM;
    }
    return 0;
}

int
process_allow_core(struct buf *message)
{
    if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) {
        buf_addf(message, "-r: cannot allow core files: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}

int
process_lock_memory(struct buf *message)
{
    /* with any limit an allocation fails when the lock reaches it */
    if (raise_limit(RLIMIT_MEMLOCK) != RLIM_INFINITY) {
        buf_add_text(message,
            "-k: memory is not locked: the limit of locked memory is not "
            "infinite (ulimit -Hl; LimitMEMLOCK=infinity in a systemd unit)");
        return ERR_SYSTEM;
    }
    /* on fault: what is never touched, as most of a thread's stack, stays
     * away */
    if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
        buf_addf(message, "-k: memory is not locked: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}
