/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_NODE_DIAL_H
#define REPL_NODE_DIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* A node's end of the pair to the process that connects (repl/dial.h): who
 * wants a connection asks here, and each reply goes to who asked for it. Inside
 * a node; its thread. */

enum { NODE_DIAL_MS = 15000 /* that who connects may take */ };

struct node;

/* A wish; the caller's memory, zeroes at first. */
struct node_dial_call {
    struct node_dial_call *next;
    uint32_t number; /* of the request */
    bool is_open;    /* there is no reply yet */
    uint64_t until_us;
    /* fd: as of dial_reply, the callee's. -1: there is none, and why, which is
     * good until it returns, says why. Never called within node_dial. */
    void (*done_fn)(struct node_dial_call *call, int fd, const char *why);
};

struct node_dial {
    uv_poll_t poll;
    bool is_polled;               /* poll is to be closed */
    bool is_lost;                 /* who connects is gone */
    uint32_t number;              /* of the last request */
    struct node_dial_call *calls; /* that are open */
};

/* 0 or ERR_SYSTEM. */
int node_dial_start(struct node *node);

/* Closes it; the loop has to run until that is done. No call is open. */
void node_dial_end(struct node *node);

/* Asks for a connection to HOST:PORT, for a call that is not open. NULL; or why
 * nobody can be asked, which is good until the next call. */
const char *node_dial(
    struct node *node, struct node_dial_call *call, const char *address);

/* Nobody waits for it any more: what comes is closed. Once more is fine. */
void node_dial_forget(struct node *node, struct node_dial_call *call);

/* What is late has failed. */
void node_dial_turn(struct node *node);

#endif
