/* SPDX-License-Identifier: BSD-3-Clause */
/* The child is forked before keys and users are read, so its memory has none of
 * them. It closes all descriptors but the pair, becomes the server's user,
 * gives up all capabilities and new privileges. Landlock takes all writing to
 * files, executing and listening; connecting stays. seccomp takes the calls
 * that it never makes (server/sandbox_child.c). It says nothing: its standard
 * streams go to /dev/null, so that whoever waits for their end does not wait
 * for it. */
#include "server/child.h"

#include "base/err.h"
#include "server/process.h"
#include "server/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Signals that are meant for the server reach its whole group from a terminal
 * or a service manager: the child ends when the server does. */
static void
ignore_signals(void)
{
    static const int signals[] = {
        SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)signal(signals[i], SIG_IGN);
    }
}

/* The child's whole life. */
static _Noreturn void
live(const struct child_config *config, int pair_fd)
{
    const struct sandbox_config sandbox = {
        .files = SANDBOX_ON, .may_connect = true};
    struct buf why = {0};
    char word = 0;
    ignore_signals();
    /* a look-up with a server that is not there takes 6 seconds, not 30 */
    (void)setenv("RES_OPTIONS", "timeout:2 attempts:1", 0);
    (void)prctl(PR_SET_NAME, config->name);
    int err = process_keep_only(&pair_fd, &why);
    if (err == 0) {
        err = process_drop_user(config->user, &why);
    }
    if (err == 0) {
        err = process_drop_capabilities(&why);
    }
    /* becoming another user has taken it back */
    if (err != 0 ||
        (!config->outlives && prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        _exit(EXIT_FAILURE);
    }
    if (config->holds_files) {
        (void)sandbox_hold_files(&sandbox, &why);
    }
    if (config->holds_calls) {
        (void)sandbox_hold_child_calls(&why);
    }
    buf_fini(&why);
    if (send(pair_fd, &word, 1, MSG_NOSIGNAL) != 1) {
        _exit(EXIT_SUCCESS);
    }
    config->live_fn(config->context, pair_fd);
    _exit(EXIT_SUCCESS);
}

/* The child has got where nothing can fail any more. */
static bool
has_begun(int pair_fd)
{
    char word;
    ssize_t n;
    do {
        n = recv(pair_fd, &word, 1, 0);
    } while (n < 0 && errno == EINTR);
    return n == 1;
}

int
child_start(
    const struct child_config *config, int *pair_fd, struct buf *message)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        buf_addf(
            message, "cannot make a pair of sockets: %s", strerror(errno));
        return ERR_SYSTEM;
    }
    fflush(NULL); /* else both would write what is in the streams */
    pid_t child = fork();
    if (child == 0) {
        live(config, fds[1]);
    }
    close(fds[1]);
    if (child < 0 || !has_begun(fds[0]) ||
        fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
        buf_addf(message, "no process that %s: %s", config->what,
            child < 0 ? strerror(errno) : "it has ended at once");
        close(fds[0]);
        return ERR_SYSTEM;
    }
    *pair_fd = fds[0];
    return 0;
}
