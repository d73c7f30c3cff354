/* SPDX-License-Identifier: BSD-3-Clause */
/* What the process may do that others may not, and what it leaves to others.
 *
 * The kernel takes the effective and permitted capabilities away when root
 * becomes another user; the bounding set, which could give them back to a
 * program that is executed, and those that a service manager gave to a user,
 * it leaves. */
#include "server/process.h"

#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MASK = 022, /* nothing is writable for others */
    NO_CORE = 1 /* bytes: no file is so short, and the kernel starts no
                 * program that takes core files either; with 0 it would */
};

void
process_drop_bounding_set(void)
{
    /* EINVAL ends it: no capability has the number. Who is not allowed to do
     * this has nothing to be kept from. */
    for (unsigned long i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
        (void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
    }
}

int
process_drop_capabilities(struct buf *message)
{
    struct __user_cap_header_struct head = {
        .version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3];

    /* A service manager that leaves none may refuse capset as well. */
    if (syscall(SYS_capget, &head, now) == 0 &&
        memcmp(now, none, sizeof now) == 0) {
        return 0;
    }
    /* the ambient ones go with the permitted ones */
    if (syscall(SYS_capset, &head, none) != 0) {
        buf_addf(message, "cannot give up capabilities: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}

void
process_fill_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            (void)open("/dev/null", O_RDWR); /* the lowest number is free */
        }
    }
}

void
process_narrow_umask(void)
{
    mode_t given = umask(MASK);
    (void)umask(given | MASK);
}

int
process_forbid_core(struct buf *message)
{
    const struct rlimit limit = {NO_CORE, NO_CORE};
    struct rlimit now;

    if (getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_max < NO_CORE) {
        return 0; /* which it may not raise */
    }
    if (setrlimit(RLIMIT_CORE, &limit) != 0) {
        buf_addf(message, "cannot forbid core files: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}
