/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_NODE_CONTROL_PRIV_H
#define REPL_NODE_CONTROL_PRIV_H

#include "repl/node_control.h"
#include "repl/peers.h"

/* Between the files of a node's control. */

/* CLOCK_BOOTTIME: as the machine's clock, it goes on while the computer
 * sleeps, and etcd's deadlines are of it. */
uint64_t control__now(struct node *node);

/* Numbers that streams, and the machine, mean are not given anew. To be said
 * before any may be. */
void control__hold_numbers(struct node *node);

/* The machine hears how far the log is: of a primary up to all that it was
 * given, for the first batch of a term may be on its way to a disk that fails,
 * and who is to lead next is to have what is. */
void control__tell_log(struct node *node);

/* node_control_heard.c: what other nodes say. */
extern const struct peers_calls control__peers_calls;

/* node_control_etcd.c: */

/* Does what is ordered of etcd. */
void control__ask_etcd(struct node *node, const struct role_order *order);

/* Beats, and says what is to be said unasked. */
void control__tell_etcd(struct node *node);

/* Something has come. */
void control__hear(void *context, const struct control_event *event);

/* node_control_stuck.c: */

/* Says once a minute what keeps this node from its part. */
void control__tell_stuck(struct node *node);

/* Where etcd has a node of this one's name; NULL: it has none, but this. */
const char *control__twin(const struct node *node);

/* True of one that has not begun to follow and has such a twin: who is meant by
 * its name is another one. */
bool control__has_to_wait(const struct node *node);

/* node_control_hand.c: */

/* Takes orders to hand over, and answers them. */
void control__do_failovers(struct node *node);

/* How the order came out: 0 or ERR_NOT_HANDED with why, or ERR_CLOSED. */
void control__end_handing(struct node *node, int err, const char *why);

#endif
