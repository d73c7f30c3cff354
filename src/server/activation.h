/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_ACTIVATION_H
#define SERVER_ACTIVATION_H

#include "base/buf.h"

/* Sockets that a service manager hands over (systemd's sd_listen_fds
 * protocol). */

enum {
    ACTIVATION_SOCKETS_MAX = 64,
    ACTIVATION_FD_FIRST = 3 /* the first one's descriptor, by the protocol */
};

struct activation {
    unsigned n;
    struct {
        int fd;
        int protocol; /* as of --protocol; by the socket's name */
    } socket[ACTIVATION_SOCKETS_MAX];
};

/* Reads $LISTEN_PID, $LISTEN_FDS and $LISTEN_FDNAMES into *out and removes
 * them from the environment. None of them, or those of another process: no
 * sockets. A socket named ascii or binary has that protocol. 0, or
 * ERR_BAD_OPTION where they make no sense, with a text for one line appended
 * to message. To be called before the process forks. */
int activation_take(struct activation *out, struct buf *message);

#endif
