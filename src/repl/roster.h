/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_ROSTER_H
#define REPL_ROSTER_H

#include "repl/control.h"
#include "repl/role.h"

/* The nodes of a group: etcd knows them by name (repl/control.h), the machine
 * that decides what this node is by numbers (repl/role.h). What one says is put
 * into the other's words here. A name keeps its number while the process runs,
 * unless all are given out: then one goes that nobody names any more. Pure; one
 * thread at a time. */

enum { ROSTER_SELF = 0 /* this node's number */ };

struct roster {
    struct node_name name[QUORUM_NODES]; /* len 0: not given out */
    /* where its replication is; "": not known */
    struct control_address repl[QUORUM_NODES];
    uint32_t stated; /* nodes that the newest state names */
    uint32_t held;   /* nodes that the caller needs */
};

void roster_init(struct roster *roster, const struct node_name *self);

/* The number of the node of that name; ROLE_NOBODY: it has none. */
unsigned roster_find(
    const struct roster *roster, const struct node_name *name);

/* The same; where it has none it gets one. *fresh gets a bit more where that
 * number was another node's. ROLE_NOBODY: all are needed. */
unsigned roster_give(
    struct roster *roster, const struct node_name *name, uint32_t *fresh);

/* What the state says, by numbers. *fresh: numbers that were another node's
 * before. False: it cannot be so (a key of a term that was not given out; more
 * terms than there are); nothing is told by it. */
bool roster_look(struct roster *roster, const struct control_state *state,
    struct role_look *look, uint32_t *fresh);

/* The voters of etcd by numbers. */
struct quorum_voters roster_voters(struct roster *roster,
    const struct control_voters *voters, uint32_t *fresh);

/* What an order asks of etcd: TAKE, KEEP, SET, HAND, REVOKE. self: as the key
 * is to be; its revision and term do not count. seen_term: the last one that
 * etcd had given out. False: TAKE, and there is no further term. Its number is
 * the caller's. */
bool roster_request(const struct roster *roster,
    const struct role_order *order, const struct control_primary *self,
    uint64_t seen_term, struct control_request *out);

/* "a, b": the names of these nodes. */
void roster_names(
    const struct roster *roster, uint32_t nodes, char *out, size_t size);

#endif
