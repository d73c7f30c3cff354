/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_CONTROL_PAIR_H
#define REPL_CONTROL_PAIR_H

#include "repl/control.h"

/* A control whose other side is a process of its own: a SOCK_SEQPACKET pair,
 * one packet a request or event (repl/control_frame.h). */

/* The node's end. On the node's thread. */
struct control_pair {
    struct control control; /* first */
    int fd;
    bool is_gone; /* the other end is, or speaks nonsense */
};

/* fd, which never blocks, stays the caller's. */
void control_pair__init(struct control_pair *pair, int fd,
    control_event_fn *event_fn, void *context);

/* Takes what has come: when fd can be read. */
void control_pair__turn(struct control_pair *pair);

/* The other end. They never wait. 0 or an errno value: EAGAIN where there is no
 * room, or nothing to read; EPIPE where the other end is gone; EBADMSG: a
 * packet that is no request. */
int control_pair_say(int fd, const struct control_event *event);
int control_pair_hear(int fd, struct control_request *out);

#endif
