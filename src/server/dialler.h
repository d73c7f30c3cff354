/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_DIALLER_H
#define SERVER_DIALLER_H

#include "base/buf.h"

#include <stdbool.h>

/* The process that connects to other servers (repl/dial.h): a child that has
 * nothing of the server's but the pair and its text. */

enum {
    DIALLER_TIMEOUT_MS = 5000, /* of one request's connecting, without the
                                * look-up of the name */
    DIALLER_AT_ONCE = 32 /* requests; one more is answered before the next is
                          * read */
};

/* Forks it; by a process with one thread, before anything secret is read. It
 * becomes user (as process_drop_user), gives up its rights and, with
 * holds_files, all that Landlock takes but connecting. With loopback_only it
 * connects to no other address. It ends when the other
 * end of the pair is closed or the caller has died. *pair_fd, which never
 * blocks, is the caller's. 0 or ERR_SYSTEM, ERR_BAD_OPTION, and message says
 * why. */
int dialler_start(const char *user, bool holds_files, bool loopback_only,
    int *pair_fd, struct buf *message);

#endif
