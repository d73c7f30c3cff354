/* SPDX-License-Identifier: BSD-3-Clause */
/* server/sandbox_child: each forbidden thing ends a process that is held, and
 * what a child does for its living goes on. */
#include "server/sandbox.h"

#include "base/err.h"
#include "base/sanitizer.h"
#include "unit/check_help.h"

#if defined HAVE_SECCOMP && !SANITIZER_ADDRESS && !SANITIZER_THREAD

#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_HELD = 77, WRONG = 1 };

/* Ends the process, held, behind what it does. */
static _Noreturn void
do_held(void (*what)(void))
{
    const struct rlimit no_core = {0, 0};
    struct buf why = {0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (sandbox_hold_child_calls(&why) != 0) {
        _exit(NOT_HELD);
    }
    buf_fini(&why);
    what();
    _exit(EXIT_SUCCESS);
}

/* How a process that does that ends. */
static int
run_held(void (*what)(void))
{
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        do_held(what);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static void
do_execute(void)
{
    char *const argv[] = {(char[]){"true"}, NULL};
    (void)execv("/bin/true", argv);
}

static void
do_fork(void)
{
    if (fork() == 0) {
        _exit(EXIT_SUCCESS);
    }
}

static void
do_signal_parent(void)
{
    (void)kill(getppid(), 0);
}

static void
do_signal_all(void)
{
    (void)kill(-1, 0);
}

static void
do_trace(void)
{
    (void)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static void
do_become(void)
{
    if (setuid(getuid()) != 0) {
        _exit(WRONG);
    }
}

static void
do_accept(void)
{
    (void)listen(0, 1);
}

static void
do_rename(void)
{
    (void)rename("/nowhere/a", "/nowhere/b");
}

static void
do_chmod(void)
{
    (void)chmod("/nowhere/a", 0);
}

static void
do_ring(void)
{
    (void)syscall(SYS_io_uring_setup, 1, NULL);
}

START_TEST(test_forbidden)
{
    static void (*const things[])(void) = {do_execute, do_fork,
        do_signal_parent, do_signal_all, do_trace, do_become, do_accept,
        do_rename, do_chmod, do_ring};
    for (size_t i = 0; i < COUNT_OF(things); i++) {
        int status = run_held(things[i]);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS,
            "thing %zu: %d", i, status);
    }
}
END_TEST

static void *
do_look_up(void *context)
{
    struct addrinfo *found = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int *err = context;
    *err = getaddrinfo("localhost", "1", &hints, &found);
    if (*err == 0) {
        freeaddrinfo(found);
    }
    return NULL;
}

/* A thread, a look-up in it, a connection, a file that is read. */
static void
do_work(void)
{
    const struct sockaddr none = {.sa_family = AF_UNSPEC};
    pthread_t thread;
    int err = -1;
    if (pthread_create(&thread, NULL, do_look_up, &err) != 0 ||
        pthread_join(thread, NULL) != 0 || err != 0) {
        _exit(WRONG);
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, &none, sizeof none) != 0 || close(fd) != 0) {
        _exit(WRONG);
    }
    fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || close(fd) != 0 || kill(getpid(), 0) != 0) {
        _exit(WRONG);
    }
}

START_TEST(test_work)
{
    int status = run_held(do_work);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS,
        "%d", status);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_forbidden, test_work};
    return run_tests("sandbox_child", tests, COUNT_OF(tests));
}

#else

START_TEST(test_none)
{
    struct buf why = {0};
    ck_assert_int_eq(sandbox_hold_child_calls(&why), ERR_SYSTEM);
    ck_assert_uint_gt(why.len, 0);
    buf_fini(&why);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_none};
    return run_tests("sandbox_child", tests, COUNT_OF(tests));
}

#endif
