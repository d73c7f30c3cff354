/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_DIAL_H
#define REPL_DIAL_H

#include "base/address.h"

#include <stdbool.h>
#include <stdint.h>

/* A server gives up the right to connect to anybody before its first thread
 * (server/sandbox.h). A process of its own, forked before that, connects for
 * it, and hands the sockets over: the messages between both, each one packet of
 * a SOCK_SEQPACKET pair. */

enum { DIAL_ADDRESS_MAX = ADDRESS_MAX, DIAL_WHY_MAX = 160 };

struct dial_request {
    uint32_t number; /* the reply has the same */
    char address[DIAL_ADDRESS_MAX + 1];
};

struct dial_reply {
    uint32_t number;
    int fd; /* a connected socket that never blocks, TCP_NODELAY, keepalive and
             * close-on-exec set; the receiver's. -1: there is none, and why
             * says why, in one line */
    char why[DIAL_WHY_MAX + 1];
};

/* False where nobody connects any more: the other end of the pair is gone, or
 * there is none (-1). */
bool dial__is_there(int pair_fd);

/* One packet; they never wait. 0 or an errno value: EAGAIN where there is no
 * room, or nothing to read; EPIPE where the other end is gone; EBADMSG: a
 * packet that is none of these. fd of a reply stays the sender's. */
int dial__send_request(int pair_fd, const struct dial_request *request);
int dial_receive_request(int pair_fd, struct dial_request *out);
int dial_send_reply(int pair_fd, const struct dial_reply *reply);
int dial__receive_reply(int pair_fd, struct dial_reply *out);

#endif
