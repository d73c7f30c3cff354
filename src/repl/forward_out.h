/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_FORWARD_OUT_H
#define REPL_FORWARD_OUT_H

#include "repl/node.h"
#include "repl/stream.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes of a replica's clients on their way to the primary and back, by the
 * stream that the replica follows. Inside a node; its thread, but for
 * node_forward. */

struct node;

struct forward_out {
    struct node_forward *queued; /* not sent yet, the oldest first */
    struct node_forward *newest; /* of these; void while there are none */
    struct node_forward *sent;   /* of which no reply has come */
    unsigned n_sent;
    struct node_forward *replied; /* what they have done is to be applied */
    uint64_t next_id;
    /* any thread: of all that are under way */
    atomic_uint n;
    _Atomic size_t n_bytes;
};

/* 0 or ERR_NO_MEMORY. */
int forward_out_start(struct node *node);
void forward_out_fini(struct node *node);

/* Takes what others have asked for. */
void forward_out_begin(struct node *node);

/* Sends the next request, for which the wire has room. False: there is none
 * that may be sent now. */
bool forward_out_send(struct node *node);

/* A REPLY has come. False: it is wrong, and *fault says how. */
bool forward_out_take(struct node *node, const struct stream_frame *frame,
    struct stream_fault *fault);

/* Answers those whose time has come; all, where the link is over or the node
 * is. */
void forward_out_look(struct node *node);

#endif
