/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_SANDBOX_CALLS_H
#define SERVER_SANDBOX_CALLS_H

/* The system calls of a server that has started: X(name), as the kernel names
 * them. Whoever adds a call to the server, or a library that makes others,
 * adds its row; t/system/sandbox.test and every other test of the whole
 * process run with this list. A name that the machine has not got is passed
 * over, so those of other architectures may stand here too. */
#define SANDBOX_CALLS(X)                                                      \
    /* memory; mmap and mprotect are in the next table */                     \
    X(brk)                                                                    \
    X(munmap)                                                                 \
    X(mremap)                                                                 \
    X(madvise)                                                                \
    X(membarrier)                                                             \
    /* threads and their ends; clone is in the next table */                  \
    X(set_robust_list)                                                        \
    X(rseq)                                                                   \
    X(futex)                                                                  \
    X(sched_yield)                                                            \
    X(sched_getaffinity)                                                      \
    X(sched_getattr)                                                          \
    X(sched_setattr)                                                          \
    X(getpriority)                                                            \
    X(setpriority)                                                            \
    X(getpid)                                                                 \
    X(gettid)                                                                 \
    X(exit)                                                                   \
    X(exit_group)                                                             \
    /* signals; restart_syscall is what SIGCONT makes of a wait */            \
    X(rt_sigaction)                                                           \
    X(rt_sigprocmask)                                                         \
    X(rt_sigreturn)                                                           \
    X(sigaltstack)                                                            \
    X(restart_syscall)                                                        \
    /* time, where it does not come without a call */                         \
    X(clock_gettime)                                                          \
    X(clock_getres)                                                           \
    X(clock_nanosleep)                                                        \
    X(gettimeofday)                                                           \
    X(nanosleep)                                                              \
    X(time)                                                                   \
    /* files */                                                               \
    X(open)                                                                   \
    X(openat)                                                                 \
    X(close)                                                                  \
    X(read)                                                                   \
    X(readv)                                                                  \
    X(pread64)                                                                \
    X(write)                                                                  \
    X(writev)                                                                 \
    X(pwrite64)                                                               \
    X(lseek)                                                                  \
    X(stat)                                                                   \
    X(fstat)                                                                  \
    X(lstat)                                                                  \
    X(newfstatat)                                                             \
    X(statx)                                                                  \
    X(statfs)                                                                 \
    X(fstatfs)                                                                \
    X(access)                                                                 \
    X(faccessat)                                                              \
    X(faccessat2)                                                             \
    X(readlink)                                                               \
    X(readlinkat)                                                             \
    X(getdents64)                                                             \
    X(ftruncate)                                                              \
    X(fallocate)                                                              \
    X(fadvise64)                                                              \
    X(fsync)                                                                  \
    X(fdatasync)                                                              \
    X(sync_file_range)                                                        \
    X(linkat)                                                                 \
    X(rename)                                                                 \
    X(renameat)                                                               \
    X(renameat2)                                                              \
    X(unlink)                                                                 \
    X(unlinkat)                                                               \
    X(flock)                                                                  \
    X(fcntl)                                                                  \
    X(umask)                                                                  \
    /* descriptors; ioctl is in the next table */                             \
    X(dup)                                                                    \
    X(dup2)                                                                   \
    X(dup3)                                                                   \
    X(pipe2)                                                                  \
    X(eventfd2)                                                               \
    X(epoll_create1)                                                          \
    X(epoll_ctl)                                                              \
    X(epoll_wait)                                                             \
    X(epoll_pwait)                                                            \
    X(poll)                                                                   \
    X(ppoll)                                                                  \
    /* connections; bind and connect are nowhere */                           \
    X(listen)                                                                 \
    X(accept)                                                                 \
    X(accept4)                                                                \
    X(recvfrom)                                                               \
    X(recvmsg)                                                                \
    X(sendto)                                                                 \
    X(sendmsg)                                                                \
    X(shutdown)                                                               \
    X(getsockname)                                                            \
    X(getpeername)                                                            \
    X(getsockopt)                                                             \
    X(setsockopt)                                                             \
    /* what the machine has */                                                \
    X(getrandom)                                                              \
    X(getrusage)                                                              \
    X(sysinfo)                                                                \
    X(uname)                                                                  \
    X(getuid)                                                                 \
    X(geteuid)                                                                \
    X(getgid)                                                                 \
    X(getegid)

/* Calls that are made with some arguments only: X(name, argument counted from
 * 0, mask, what the argument has to be under the mask). Several rows of a call
 * are several ways to make it. pid stands for the process's own number. */
#define SANDBOX_CALLS_IF(X)                                                   \
    /* never memory that can be executed */                                   \
    X(mmap, 2, PROT_EXEC, 0)                                                  \
    X(mprotect, 2, PROT_EXEC, 0)                                              \
    /* a thread, never a process */                                           \
    X(clone, 0, CLONE_THREAD, CLONE_THREAD)                                   \
    /* itself: abort */                                                       \
    X(kill, 0, UINT32_MAX, pid)                                               \
    X(tgkill, 0, UINT32_MAX, pid)                                             \
    /* names of threads and of memory */                                      \
    X(prctl, 0, UINT32_MAX, PR_SET_NAME)                                      \
    X(prctl, 0, UINT32_MAX, 0x53564d41 /* PR_SET_VMA */)                      \
    /* limits are read, not set */                                            \
    X(prlimit64, 2, UINT64_MAX, 0)                                            \
    /* the service manager's socket */                                        \
    X(socket, 0, UINT32_MAX, AF_UNIX)                                         \
    /* changes of a replica's clients, within this process */                 \
    X(socketpair, 0, UINT32_MAX, AF_UNIX)                                     \
    /* what libuv and stdio ask of a descriptor */                            \
    X(ioctl, 1, UINT32_MAX, FIONBIO)                                          \
    X(ioctl, 1, UINT32_MAX, FIOCLEX)                                          \
    X(ioctl, 1, UINT32_MAX, FIONREAD)                                         \
    X(ioctl, 1, UINT32_MAX, TCGETS)

/* An io_uring of a worker. Without --cold-io=pool only; else the call is
 * answered as by a kernel that has none. */
#define SANDBOX_CALLS_RING(X)                                                 \
    X(io_uring_setup)                                                         \
    X(io_uring_enter)                                                         \
    X(io_uring_register)

#endif
