/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_FORWARD_IN_H
#define REPL_FORWARD_IN_H

#include "repl/sender.h"
#include "repl/stream.h"

#include <stdbool.h>

/* Requests of a replica at its primary: each goes to a worker by a connection
 * of its own inside the process, a pair of sockets, and what comes back is the
 * reply. Inside a node; its thread. */

/* A REQUEST has come. False: it is wrong, and *fault says how. */
bool forward_in_take(struct sender_stream *stream,
    const struct stream_frame *frame, struct stream_fault *fault);

/* Sends a reply, for which the wire has room. False: there is none yet. */
bool forward_in_send(struct sender_stream *stream);

/* The stream is over: closes its connections, and what is under way there comes
 * to whatever it does. */
void forward_in_end(struct sender_stream *stream);

#endif
