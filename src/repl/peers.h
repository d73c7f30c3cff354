/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_PEERS_H
#define REPL_PEERS_H

#include "base/node.h"

#include <stdbool.h>
#include <stdint.h>

/* Connections between nodes by which a candidate asks the others to promise its
 * term, or whether they hear a primary, and fetches what it lacks; and the
 * answers of a node that is asked. Inside a node; its thread. All nodes by
 * name. Nothing here decides: whoever does (repl/role.h) is told by
 * peers_calls, and asks again what was not answered. */

struct node;

enum {
    PEERS_MAX = 32, /* connections; a node more is not asked */
    PEERS_FETCH_BYTES = 64 << 20
};

/* What comes of it. Called in the node's turn, or in a socket's callback, which
 * a turn follows; peers_.. may be called from there. What they point to is good
 * until they return. */
struct peers_calls {
    /* That node asks for a promise of term, or (is_probe) only whether a
     * primary is heard here; its log ends with batch last. To be answered by
     * peers_answer, peers_refuse or peers_tell, at any time or never. */
    void (*asked_fn)(struct node *node, const struct node_name *name,
        uint64_t term, uint64_t last, bool is_probe);
    /* That node has promised term, and its log ends with batch last. */
    void (*answered_fn)(struct node *node, const struct node_name *name,
        uint64_t term, uint64_t last, bool is_doubtful);
    /* The answer to a probe. */
    void (*told_fn)(
        struct node *node, const struct node_name *name, bool is_heard);
    /* That node does not promise: this term is promised there. */
    void (*refused_fn)(
        struct node *node, const struct node_name *name, uint64_t promised);
    /* The fetch for term is over. is_done: all that the other one had is in
     * this node's log, written. Once for each peers_fetch that was not
     * stopped. */
    void (*fetched_fn)(struct node *node, uint64_t term, bool is_done);
};

struct peers_conn;

struct peers {
    /* Whoever decides sets it before the thread begins. NULL: nobody asks here,
     * and who asks is refused. */
    const struct peers_calls *calls;
    struct peers_conn *conns; /* to those who were asked; peers.c */
    unsigned n;
};

/* Asks the node of that name, at HOST:PORT of its replication ("": it is not
 * known, and nobody is asked): to promise term,
 * which this node has promised durably; is_probe: only whether it hears a
 * primary (term may be 0). It connects where there is no connection. A question
 * that was not sent yet is replaced; a connection that breaks loses it. */
void peers_ask(struct node *node, const struct node_name *name,
    const char *address, uint64_t term, bool is_probe);

/* Term is promised, durably, and no log is followed: tells who asked, with the
 * last batch and the history. Where more is promised by now it refuses. */
void peers_answer(
    struct node *node, const struct node_name *name, uint64_t term);

/* Tells who asked which term is promised, and which primary is known. */
void peers_refuse(struct node *node, const struct node_name *name);

/* The answer to a probe. */
void peers_tell(
    struct node *node, const struct node_name *name, bool is_heard);

/* Gets what the log of that node has and this one's has not, as a candidate of
 * term, which both have promised. This node follows nobody meanwhile, nor
 * afterwards. More than PEERS_FETCH_BYTES, and a log that this one would have
 * to be cut for, is not fetched: then what had come stays. address "": it is
 * not known, and the fetch fails. */
void peers_fetch(struct node *node, const struct node_name *name,
    const char *address, uint64_t term);

/* Gives the fetch up, if there is one: fetched_fn is not called any more. */
void peers_stop_fetch(struct node *node);

/* What is to be done now. */
void peers_turn(struct node *node);

/* Closes all connections; the loop has to run until that is done. */
void peers_end(struct node *node);

void peers_fini(struct node *node);

#endif
