/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef REPL_NODE_PRIV_H
#define REPL_NODE_PRIV_H

#include "base/mutex.h"
#include "net/alarm.h"
#include "net/bell.h"
#include "repl/forward_out.h"
#include "repl/link.h"
#include "repl/node.h"
#include "repl/node_control.h"
#include "repl/node_dial.h"
#include "repl/node_figures.h"
#include "repl/peers.h"
#include "repl/receiver.h"
#include "repl/sender.h"
#include "store/store_repl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

/* Inside a node: what its parts share. All is the node's thread's where nothing
 * else is said. */

enum { NODE_MAGIC = 0x65646f6e };

/* What it does. */
#define NODE_STATES(X)                                                        \
    X(STARTING, "it is not yet decided")                                      \
    X(LEADING, "it is a primary")                                             \
    X(FOLLOWING, "it is a replica, with or without a primary")                \
    X(RELOADING, "the directory is to be loaded anew; nothing is done")       \
    X(ENDING, "node_stop has been called")

enum node_state {
#define X(name, text) NODE_STATE_##name,
    NODE_STATES(X)
#undef X
        NODE_STATES_N
};

struct node {
    uint32_t magic; /* NODE_MAGIC */
    enum node_state state;
    struct node_config config; /* file is what is on the disk */
    const struct clock *clock;
    pthread_t thread;
    uv_loop_t loop;
    uv_prepare_t prepare; /* a turn before each poll */
    struct alarm alarm;
    struct bell bell;
    uint64_t now_us;  /* of this turn */
    uint64_t wake_us; /* when the next one is due at the latest */
    uint64_t end_us;  /* it is to end, by then at the latest; 0: it is not */

    struct mutex lock; /* of mail, leads, follows, and shown */
    struct store_call *orders, *waits, *failovers,
        *forwards; /* newest first */
    bool is_stopping;
    bool leads;                         /* see node_leads */
    char follows[NODE_ADDRESS_MAX + 1]; /* see node_follows */

    struct link_self self;
    struct link_directory directory; /* constant */
    struct store_position position;  /* of this turn */
    struct store_listener listener;
    uint64_t term;         /* of a primary: its own; of a replica: promised */
    uint64_t refused_term; /* highest that one had promised whom this node, as
                            * primary, has refused for it; 0: none */
    uint64_t committed;    /* that the store was told last */
    struct node_wait *waiting;
    struct store_call *due; /* orders that are not begun, the oldest first */
    struct node_order *parting; /* of a primary: it is to follow another one
                                 * when its replicas have all, or by */
    uint64_t part_by_us;

    struct node_dial dial;
    struct sender sender;
    struct receiver receiver;
    struct peers peers;
    struct forward_out forward;
    uint8_t *forward_frame; /* owned; for one REQUEST or REPLY */

    struct node_control control;

    struct node_figures figures;
    struct node_shown shown; /* under lock */

    /* any thread: */
    _Atomic bool
        hears_store;         /* of a replica: what is written goes into ACKs */
    _Atomic(char *) primary; /* for clients; owned; never NULL */
    _Atomic uint64_t fresh_until_us; /* what is read is fresh up to there */
    _Atomic uint64_t applied;        /* batch that is to be read here */
};

/* What a node says that has no batch, or whose directory is not to be built
 * upon: that it has none. */
static inline bool
node_has_log(const struct node *node)
{
    return node->position.written > 0 && !node->config.file.is_salvaged;
}

extern const struct history node_no_history; /* all zeroes */

/* True where candidates are answered. */
static inline bool
node_is_asked(const struct node *node)
{
    return node->peers.calls != NULL &&
        (node->state == NODE_STATE_LEADING ||
            node->state == NODE_STATE_FOLLOWING);
}

/* The next turn is to be no later. */
static inline void
node_wake_at(struct node *node, uint64_t us)
{
    if (us < node->wake_us) {
        node->wake_us = us;
    }
}

/* What the clock says. Any thread. */
static inline uint64_t
node_clock_us(const struct node *node)
{
    return clock_now_ns(node->clock) / 1000;
}

/* node->position is of this moment. */
void node_look(struct node *node);

/* Makes it durable that the term is promised. 0, or as replica_file_write. */
int node_promise(struct node *node, uint64_t term);

/* Writes the file as it is to be; *file is config.file then. 0, or as
 * replica_file_write, and config.file stays. */
int node_write_file(struct node *node, const struct replica_file *file);

/* The file as it is while the node runs. 0, or as replica_file_write. */
int node_begin_file(struct node *node);

/* node.c: the parts of node_start and node_stop: all but the thread, which runs
 * the loop. node->thread is the one that does before node__listen; the loop
 * ends by itself after node__want_end. */
int node__open(
    const struct node_config *config, struct node **out, struct buf *why);
void node__listen(struct node *node);
void node__want_end(struct node *node);
void node__close(struct node *node);

/* node.c: leaves a call there. Any thread. */
void node__add_mail(
    struct node *node, struct store_call **list, struct store_call *call);

/* node.c: takes a list out of the mail, the oldest first. */
struct store_call *node__take_mail(
    struct node *node, struct store_call **list);

/* node_role.c: */

/* Goes to another state, which has to be one that may follow. */
void node__move(struct node *node, enum node_state state);

/* What it is at first. 0, or why it is nothing; why says more. */
int node__begin_role(struct node *node, struct buf *why);

/* Of a node whose control has ordered it. A term that is promised begins:
 * *seq is its first batch. 0, or why it does not. */
int node__begin_term(struct node *node, uint64_t term, uint64_t *seq);

/* Likewise: it is no primary any more. */
void node__cede(struct node *node);

/* Does what was ordered, as far as that can be done now. */
void node__do_orders(struct node *node);

/* store_refuse_changes; a node that is to end refuses all, and goes on so. */
void node__refuse_changes(struct node *node, int err);

/* Has the process load the directory anew. */
void node_reload(struct node *node);

/* What clients are told of the primary; waits for their threads. "" where
 * nobody knows. */
void node_set_primary(struct node *node, const char *address, size_t len);

/* Tells the store what is committed, where that has moved on. */
void node_set_committed(struct node *node, uint64_t seq);

/* Why a link has ended, for a person. */
void node_end_text(const struct link_end *end, char *out, size_t size);

/* Counts what ended it. */
void node_count_end(struct node *node, const struct link_end *end);

#endif
