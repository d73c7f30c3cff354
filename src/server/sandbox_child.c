/* SPDX-License-Identifier: BSD-3-Clause */
/* seccomp for a child that connects for the server (server/child.h): calls that
 * it never makes end it, all others are let through.
 *
 * The server's own list says what is let through. Here it cannot: looking up a
 * name is the C library's and its modules' business, and what these call
 * differs from machine to machine; with a list of our own a name that was found
 * yesterday might not be found today. So this one says what no look-up, no TLS
 * and no HTTP does: become another program or user, start processes, reach into
 * others, change what a name stands for, wait for connections, and the parts of
 * the kernel that have been used to take it over.
 *
 * The kernel kills the child and says so in its audit log: its standard streams
 * lead nowhere. */
#include "server/sandbox.h"

#include "base/err.h"
#include "base/sanitizer.h"

/* As in server/sandbox_calls.c. */
#if defined HAVE_SECCOMP && !SANITIZER_ADDRESS && !SANITIZER_THREAD

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* As the kernel names them; one that the machine has not got is passed over. */
static const char *const forbidden[] = {
    /* another program, another process; clone is below */
    "execve", "execveat", "fork", "vfork",
    /* into another process; kill and tgkill are below */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
    "kcmp", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "tkill",
    "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    /* another user, other rights, keys */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
    "setfsuid", "setfsgid", "setgroups", "capset", "keyctl", "add_key",
    "request_key",
    /* names of files and their rights, which Landlock does not hold all */
    "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat",
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr",
    "fremovexattr", "link", "linkat", "symlink", "symlinkat", "unlink",
    "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir",
    "mknod", "mknodat", "truncate", "ftruncate", "name_to_handle_at",
    "open_by_handle_at",
    /* somebody else's connections */
    "listen", "accept", "accept4",
    /* the machine */
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare",
    "setns", "swapon", "swapoff", "reboot", "sethostname", "setdomainname",
    "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "acct", "quotactl", "settimeofday", "clock_settime",
    "adjtimex", "clock_adjtime", "iopl", "ioperm", "syslog",
    /* the kernel */
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup",
    "io_uring_enter", "io_uring_register", "modify_ldt", "vmsplice",
    "fanotify_init", "lookup_dcookie", "memfd_secret"};

static int
forbid(scmp_filter_ctx filter, const char *name, unsigned n,
    const struct scmp_arg_cmp *compare)
{
    int number = seccomp_syscall_resolve_name(name);
    return number < 0 ? 0
                      : seccomp_rule_add_array(
                            filter, SCMP_ACT_KILL_PROCESS, number, n, compare);
}

/* A thread is started by clone, whose flags a filter sees; clone3's it does
 * not, and the C library does without. */
static int
forbid_some(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp process = {.arg = 0,
        .op = SCMP_CMP_MASKED_EQ,
        .datum_a = CLONE_THREAD,
        .datum_b = 0};
    const struct scmp_arg_cmp other = {
        .arg = 0, .op = SCMP_CMP_NE, .datum_a = (uint64_t)getpid()};
    int clone3 = seccomp_syscall_resolve_name("clone3");
    int err = forbid(filter, "clone", 1, &process);
    err = err != 0 ? err : forbid(filter, "kill", 1, &other);
    err = err != 0 ? err : forbid(filter, "tgkill", 1, &other);
    return err != 0 || clone3 < 0
        ? err
        : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), clone3, 0);
}

int
sandbox_hold_child_calls(struct buf *message)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) {
        buf_add_text(message, "no filter of system calls: no memory");
        return ERR_NO_MEMORY;
    }
    (void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    /* calls of another word size pass no list of this one's numbers */
    int err = seccomp_attr_set(
        filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    for (size_t i = 0; err == 0 && i < sizeof forbidden / sizeof forbidden[0];
         i++) {
        err = forbid(filter, forbidden[i], 0, NULL);
    }
    if (err == 0) {
        err = forbid_some(filter);
    }
    if (err == 0) {
        err = seccomp_load(filter);
    }
    seccomp_release(filter);
    if (err != 0) {
        buf_addf(message, "no filter of system calls: %s", strerror(-err));
        return ERR_SYSTEM;
    }
    return 0;
}

#else

int
sandbox_hold_child_calls(struct buf *message)
{
    buf_add_text(message,
        SANITIZER_ADDRESS || SANITIZER_THREAD
            ? "a build with a sanitizer makes calls of the sanitizer's"
            : "built without libseccomp");
    return ERR_SYSTEM;
}

#endif
