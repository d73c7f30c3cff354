/* SPDX-License-Identifier: BSD-3-Clause */
/* What sessions ask goes to the node, in an object of its own for each order:
 * the node answers on its thread, and the session's caller hears there. Where
 * there is no node, the store is being loaded anew. */
#include "server/replication_group.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/dial.h"
#include "server/own_address.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)GROUP_WHY_MAX == (int)NODE_WHY_MAX,
    "why there was no failover goes from the node to a client");
_Static_assert((int)GROUP_FORWARD_BYTES == (int)NODE_FORWARD_BYTES,
    "what clients change goes to the primary");
_Static_assert((int)GROUP_ADDRESS_MAX == (int)NODE_ADDRESS_MAX &&
        (int)NODE_ADDRESS_MAX == (int)DIAL_ADDRESS_MAX,
    "an address goes from a client to the process that connects");

static struct replication *
of(struct group *group)
{
    struct replication *replication = (struct replication *)group;
    ASSERT(replication->magic == REPLICATION_MAGIC);
    return replication;
}

struct node *
replication__node(struct replication *replication)
{
    /* seq_cst: with the exchange of replication_end and its qsbr_wait */
    return atomic_load(&replication->node);
}

static const char *
primary_of(struct group *group)
{
    struct node *node = replication__node(of(group));
    return node == NULL ? "" : node_primary(node);
}

static bool
is_fresh(struct group *group)
{
    struct node *node = replication__node(of(group));
    return node == NULL || node_is_fresh(node);
}

/* 0, or what is wrong with the address that is to be followed. */
static int
address_fault(const struct replication *replication, const char *address)
{
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    if (!address_split(address, host, port)) {
        return ERR_BAD_ADDRESS;
    }
    return own_address_is(
               replication->fd, replication->listener.n_sockets, host, port)
        ? ERR_OWN_ADDRESS
        : 0;
}

/* An order on its way to the node. */
struct order {
    struct node_order at_node;
    struct group_order *from;
};

static void
on_order_done(struct store_call *call)
{
    struct order *order = call->owner;
    struct group_order *from = order->from;
    from->err = order->at_node.err;
    free(order);
    from->call.done_fn(&from->call);
}

static enum store_answer
give_order(struct group *group, struct group_order *from)
{
    struct node *node = replication__node(of(group));
    from->err =
        from->address[0] == '\0' ? 0 : address_fault(of(group), from->address);
    if (from->err == 0 && node == NULL) {
        from->err = ERR_LOADING;
    }
    if (from->err != 0) {
        return STORE_DONE;
    }
    struct order *order = calloc(1, sizeof *order);
    if (order == NULL) {
        from->err = ERR_NO_MEMORY;
        return STORE_DONE;
    }
    order->from = from;
    order->at_node.call =
        (struct store_call){.done_fn = on_order_done, .owner = order};
    memcpy(order->at_node.address, from->address, sizeof from->address);
    node_replicaof(node, &order->at_node);
    return STORE_LATER;
}

/* An order to hand over on its way to the node. */
struct handing {
    struct node_failover at_node;
    struct group_failover *from;
};

static void
on_handed(struct store_call *call)
{
    struct handing *handing = call->owner;
    struct group_failover *from = handing->from;
    from->err = handing->at_node.err;
    memcpy(from->why, handing->at_node.why, sizeof from->why);
    free(handing);
    from->call.done_fn(&from->call);
}

static enum store_answer
hand_over(struct group *group, struct group_failover *from)
{
    struct node *node = replication__node(of(group));
    struct handing *handing = node == NULL ? NULL : calloc(1, sizeof *handing);
    from->err = node == NULL ? ERR_LOADING : ERR_NO_MEMORY;
    from->why[0] = '\0';
    if (handing == NULL) {
        return STORE_DONE;
    }
    handing->from = from;
    handing->at_node = (struct node_failover){
        .call = {.done_fn = on_handed, .owner = handing},
        .to = from->to,
        .is_forced = from->is_forced};
    node_failover(node, &handing->at_node);
    return STORE_LATER;
}

/* A wait on its way to the node. */
struct waiting {
    struct node_wait at_node;
    struct group_wait *from;
};

static void
on_wait_done(struct store_call *call)
{
    struct waiting *waiting = call->owner;
    struct group_wait *from = waiting->from;
    from->n_have = waiting->at_node.n_have;
    free(waiting);
    from->call.done_fn(&from->call);
}

static enum store_answer
begin_wait(struct group *group, struct group_wait *from)
{
    struct node *node = replication__node(of(group));
    struct waiting *waiting = node == NULL ? NULL : calloc(1, sizeof *waiting);
    if (waiting == NULL) { /* nobody is known to have it */
        from->n_have = 0;
        return STORE_DONE;
    }
    waiting->from = from;
    waiting->at_node =
        (struct node_wait){.call = {.done_fn = on_wait_done, .owner = waiting},
            .seq = from->seq,
            .n = from->n,
            .ms = from->ms,
            .is_unwanted = &from->is_unwanted};
    node_wait(node, &waiting->at_node);
    return STORE_LATER;
}

/* Changes on their way to the primary. */
struct forwarding {
    struct node_forward at_node;
    struct group_forward *from;
};

static void
on_forwarded(struct store_call *call)
{
    struct forwarding *forwarding = call->owner;
    struct group_forward *from = forwarding->from;
    from->err = forwarding->at_node.err;
    from->reply = forwarding->at_node.reply;
    from->late_seq = forwarding->at_node.late_seq;
    free(forwarding);
    from->call.done_fn(&from->call);
}

static enum store_answer
forward(struct group *group, struct group_forward *from)
{
    struct node *node = replication__node(of(group));
    struct forwarding *forwarding =
        node == NULL ? NULL : calloc(1, sizeof *forwarding);
    if (forwarding == NULL) {
        from->err = node == NULL ? ERR_LOADING : ERR_NO_MEMORY;
        return STORE_DONE;
    }
    forwarding->from = from;
    forwarding->at_node = (struct node_forward){
        .call = {.done_fn = on_forwarded, .owner = forwarding},
        .bytes = (const uint8_t *)from->request.data,
        .len = (uint32_t)from->request.len,
        .n = from->n,
        .is_binary = from->is_binary};
    node_forward(node, &forwarding->at_node);
    return STORE_LATER;
}

static bool
has_applied(struct group *group, uint64_t seq)
{
    struct node *node = replication__node(of(group));
    return node == NULL || node_has_applied(node, seq);
}

struct group
replication__group(bool is_automatic, bool forwards)
{
    return (struct group){.is_automatic = is_automatic,
        .primary_fn = primary_of,
        .is_fresh_fn = is_fresh,
        .order_fn = give_order,
        .wait_fn = begin_wait,
        .failover_fn = hand_over,
        .forward_fn = forwards ? forward : NULL,
        .has_applied_fn = has_applied};
}
