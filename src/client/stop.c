/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as a descriptor: no handler, and nothing that it would share. */
#include "client/stop.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int
stop_init(struct stop *stop, int other)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    if (other != 0) {
        (void)sigaddset(&set, other);
    }
    int err = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (err != 0) {
        return err;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    stop->is_asked = stop->is_told = false;
    stop->other = other;
    stop->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return stop->fd < 0 ? errno : 0;
}

void
stop_fini(struct stop *stop)
{
    if (stop->fd >= 0) {
        (void)close(stop->fd);
    }
    stop->fd = -1;
}

bool
stop_is_asked(struct stop *stop)
{
    struct signalfd_siginfo about;
    while (stop->fd >= 0 && !stop->is_asked &&
        read(stop->fd, &about, sizeof about) == (ssize_t)sizeof about) {
        if ((int)about.ssi_signo == stop->other) {
            stop->is_told = true;
        } else {
            stop->is_asked = true;
        }
    }
    return stop->is_asked;
}

void
stop_sleep(struct stop *stop, uint64_t ms)
{
    struct pollfd wait = {.fd = stop->fd, .events = POLLIN};
    if (!stop_is_asked(stop)) {
        (void)poll(&wait, 1, ms > 60000 ? 60000 : (int)ms);
    }
}
