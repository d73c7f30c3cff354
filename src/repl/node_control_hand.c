/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders to hand over, or to lead by force: one at a time. Handing over ends
 * when etcd has taken who is next, or the other one did not have all in time;
 * force, when this node leads, or is no candidate any more. */
#include "base/assert.h"
#include "base/err.h"
#include "repl/node_control_priv.h"
#include "repl/node_priv.h"
#include "repl/semi_sync.h"

#include <stdio.h>
#include <string.h>

static void
answer(
    struct node *node, struct node_failover *order, int err, const char *why)
{
    node__show(node);
    order->err = err;
    (void)snprintf(
        order->why, sizeof order->why, "%s", err == ERR_NOT_HANDED ? why : "");
    if (err != 0) {
        log_event(node->config.logger, "repl_role", LOG_WARNING,
            "failover: %s%s%s", err_text(err),
            order->why[0] == '\0' ? "" : ": ", order->why);
    }
    order->call.done_fn(&order->call);
}

void
control__end_handing(struct node *node, int err, const char *why)
{
    struct node_failover *order = node->control.handing;

    node->control.handing = NULL;
    node->control.is_handed = node->control.is_forcing = false;
    node->control.is_epoch_ordered = false;
    if (order != NULL) {
        answer(node, order, err, why);
    }
}

static bool
may_be_heir(const struct sender_stream *stream)
{
    return stream != NULL && sender_is_streaming(stream) &&
        stream->link.priority > 0;
}

/* The node that has most of those that may lead; ROLE_NOBODY. */
static unsigned
find_best(const struct node *node)
{
    const struct role *role = &node->control.role;
    unsigned best = ROLE_NOBODY;
    uint64_t most = 0;

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        const struct sender_stream *stream = node->control.stream[i];

        if (may_be_heir(stream) && !role->peer[i].is_out &&
            (role->config->copies == 0 ||
                quorum_has(role->rule.now.nodes, i)) &&
            (best == ROLE_NOBODY ||
                semi_sync_position(&stream->link) > most)) {
            best = i;
            most = semi_sync_position(&stream->link);
        }
    }
    return best;
}

/* NULL, or why that node cannot be the next. */
static const char *
fault_of(struct node *node, const struct node_failover *order, unsigned heir)
{
    const struct node_control *control = &node->control;

    if (control->handing != NULL) {
        return "one is under way";
    }
    if (heir == ROLE_NOBODY) {
        return order->to.len == 0 ? "no node follows that may lead"
                                  : "there is no such node";
    }
    if (heir == ROSTER_SELF) {
        return "this node leads";
    }
    if (!may_be_heir(control->stream[heir])) {
        return "that node does not follow, or has priority 0";
    }
    return NULL;
}

#define NOT_FORCED                                                            \
    "etcd was not seen yet, another node has the key, or this node must not " \
    "lead"

/* etcd has nothing of the group: this node is to say that it has the group's
 * directory, and to lead then. False: it has. */
static bool
begin_with_epoch(struct node *node)
{
    struct node_control *control = &node->control;

    if (control->state.revision == 0 || control->state.epoch.revision != 0) {
        return false;
    }
    control->is_epoch_ordered = true;
    control->epoch_end_us = control__now(node) + ROLE_CANDIDATE_US;
    node_wake_at(node, node->now_us + ROLE_CANDIDATE_US);
    return true;
}

/* NULL, or why this node cannot be forced to lead. */
static const char *
fault_of_force(struct node *node, const struct node_failover *order)
{
    struct node_control *control = &node->control;

    if (order->to.len > 0 &&
        roster_find(&control->roster, &order->to) != ROSTER_SELF) {
        return "force is said at the node that is to lead";
    }
    if (node->state == NODE_STATE_LEADING) {
        return "this node leads";
    }
    if (control->handing != NULL) {
        return "one is under way";
    }
    if (!begin_with_epoch(node) &&
        !role_force(&control->role, control__now(node))) {
        return NOT_FORCED;
    }
    return NULL;
}

static void
begin_by_force(struct node *node, struct node_failover *order)
{
    const char *fault = fault_of_force(node, order);

    if (fault != NULL) {
        answer(node, order, ERR_NOT_HANDED, fault);
        return;
    }
    node->control.handing = order;
    node->control.is_forcing = true;
    log_event(node->config.logger, "repl_role", LOG_WARNING,
        "failover: this node is to lead, also without enough promises");
}

static void
begin(struct node *node, struct node_failover *order)
{
    struct node_control *control = &node->control;
    unsigned heir = order->to.len == 0
        ? find_best(node)
        : roster_find(&control->roster, &order->to);
    const char *fault;

    if (order->is_forced) {
        begin_by_force(node, order);
        return;
    }
    if (node->state != NODE_STATE_LEADING) {
        answer(node, order, ERR_NOT_PRIMARY, "");
        return;
    }
    fault = fault_of(node, order, heir);
    if (fault == NULL &&
        !role_hand_over(&control->role, heir, control__now(node))) {
        fault = control->role.state == ROLE_ISOLATED
            ? "this primary is cut off"
            : "that node does not vote yet, or lacks too much";
    }
    if (fault != NULL) {
        answer(node, order, ERR_NOT_HANDED, fault);
        return;
    }
    control->handing = order;
    control->is_handed = false;
    log_event(node->config.logger, "repl_role", LOG_WARNING,
        "failover: %.*s is to lead", control->roster.name[heir].len,
        control->roster.name[heir].text);
}

/* True while etcd has not got the epoch that was ordered. */
static bool
awaits_epoch(struct node *node)
{
    struct node_control *control = &node->control;

    if (!control->is_epoch_ordered) {
        return false;
    }
    if (!control->role.may_lead && control->now_us < control->epoch_end_us) {
        return true;
    }
    control->is_epoch_ordered = false;
    if (!role_force(&control->role, control__now(node))) {
        control__end_handing(node, ERR_NOT_HANDED, NOT_FORCED);
        return true;
    }
    return false;
}

static void
look_at_forcing(struct node *node)
{
    enum role_state state;

    if (awaits_epoch(node)) {
        return;
    }
    state = node->control.role.state;
    if (state >= ROLE_PRIMARY) {
        control__end_handing(node, 0, "");
    } else if (state == ROLE_REPLICA) {
        control__end_handing(node, ERR_NOT_HANDED,
            "etcd, a voter that hears a primary, or a later term was against "
            "it: it may be said again");
    }
}

/* It has come to nothing, without etcd. */
static void
look_at_handing(struct node *node)
{
    const struct node_control *control = &node->control;

    if (control->is_forcing) {
        look_at_forcing(node);
        return;
    }
    if (control->handing == NULL || control->is_handed ||
        control->role.state == ROLE_HANDING) {
        return;
    }
    control__end_handing(node, ERR_NOT_HANDED,
        control->role.state >= ROLE_PRIMARY
            ? "that node did not have all within a second"
            : "this node leads no more: there is a later term");
}

void
control__do_failovers(struct node *node)
{
    struct store_call *call;

    look_at_handing(node);
    call = node__take_mail(node, &node->failovers);
    while (call != NULL) {
        struct node_failover *order = (struct node_failover *)call;

        call = call->next;
        if (!node->control.is_there) {
            answer(node, order, ERR_NO_GROUP, "");
        } else if (node->state == NODE_STATE_ENDING ||
            node->state == NODE_STATE_RELOADING) {
            answer(node, order, ERR_CLOSED, "");
        } else {
            begin(node, order);
        }
    }
}
