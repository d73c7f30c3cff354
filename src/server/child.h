/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_CHILD_H
#define SERVER_CHILD_H

#include "base/buf.h"

#include <stdbool.h>

/* A process that does one thing for the server that the server has given up the
 * right to do, connecting to others, and has nothing of it but a pair. */

struct child_config {
    const char *name; /* of the process, at most 15 bytes */
    const char *what; /* "connects to ...", for a message */
    const char *user; /* it becomes, as process_drop_user */
    bool holds_files; /* Landlock takes all that it can, but connecting */
    bool holds_calls; /* seccomp takes what it never calls */
    bool outlives; /* the server, to tidy up: it ends by itself when the other
                    * end of the pair is closed. Else the kernel kills it when
                    * the server's first thread ends */
    /* Its life, once it has given up its rights; when that returns it ends.
     * pair_fd blocks. */
    void (*live_fn)(const void *context, int pair_fd);
    const void *context;
};

/* Forks it; by a process with one thread, before anything secret is read.
 * *pair_fd, SOCK_SEQPACKET, which never blocks, is the caller's. 0 or
 * ERR_SYSTEM, and message says why. */
int child_start(
    const struct child_config *config, int *pair_fd, struct buf *message);

#endif
