/* SPDX-License-Identifier: BSD-3-Clause */
/* What keeps a node from its part in the group and does not pass by itself: for
 * a person, once a minute. */
#include "base/assert.h"
#include "repl/node_control_priv.h"
#include "repl/node_priv.h"

#include <string.h>

static bool
has_name_of(const struct node *node, const struct control_node *it)
{
    const struct node_name *name = &node->config.name;

    return it->name.len == name->len &&
        memcmp(it->name.text, name->text, name->len) == 0;
}

const char *
control__twin(const struct node *node)
{
    const struct control_state *state = &node->control.state;

    for (uint32_t i = 0; i < state->n_nodes; i++) {
        const struct control_node *it = &state->node[i];

        if (has_name_of(node, it) &&
            strcmp(it->repl.text, node->config.repl) != 0) {
            return it->repl.text;
        }
    }
    return NULL;
}

bool
control__has_to_wait(const struct node *node)
{
    const struct role *role = &node->control.role;

    return role->state == ROLE_REPLICA && role->follows == ROLE_NOBODY &&
        control__twin(node) != NULL;
}

/* Nobody leads, and nobody is heard who does: why not this node. */
static enum control_stuck
why_not_here(const struct node *node)
{
    const struct role *role = &node->control.role;
    const struct node_control *control = &node->control;

    if (control->is_member && control->state.epoch.revision == 0) {
        return CONTROL_STUCK_BLANK;
    }
    return role->config->priority == 0 ? CONTROL_STUCK_NEVER
        : !role->may_lead              ? CONTROL_STUCK_UNFIT
                                       : CONTROL_STUCK_FEW;
}

static enum control_stuck
look_for_it(const struct node *node)
{
    const struct node_control *control = &node->control;
    const struct role *role = &control->role;
    const struct role_look *look = &role->look;

    if (control->unreachable_us != 0 || control->pair.is_gone ||
        control->state.revision == 0) {
        return CONTROL_STUCK_NOT; /* these have lines of their own */
    }
    if (control__twin(node) != NULL) {
        return CONTROL_STUCK_TWIN;
    }
    if (role->state >= ROLE_PRIMARY || !role->has_looked) {
        return CONTROL_STUCK_NOT;
    }
    if (look->holder == ROLE_NOBODY) {
        return role_hears(role, control->now_us) ? CONTROL_STUCK_NOT
                                                 : why_not_here(node);
    }
    return look->holder != ROSTER_SELF && look->key_term < role->promised
        ? CONTROL_STUCK_AHEAD
        : CONTROL_STUCK_NOT;
}

static void
tell(const struct node *node)
{
    const struct node_control *control = &node->control;
    const struct role *role = &control->role;
    struct logger *logger = node->config.logger;
    const char *twin = control__twin(node);

    switch (control->stuck) {
    case CONTROL_STUCK_TWIN:
        log_event(logger, "repl_stuck", LOG_ERROR,
            "another node of this name is at %s: each needs a --node of its "
            "own; one that comes later takes no part until the other one is "
            "gone",
            twin == NULL ? "another address" : twin);
        break;
    case CONTROL_STUCK_AHEAD:
        log_event(logger, "repl_stuck", LOG_ERROR,
            "this node has promised term %llu, and etcd has given out %llu: "
            "it follows nobody until there is a later one; should none come, "
            "let it begin with an empty directory",
            (unsigned long long)role->promised,
            (unsigned long long)role->look.term);
        break;
    case CONTROL_STUCK_NEVER:
        log_event(logger, "repl_stuck", LOG_ERROR,
            "nobody leads the group, and this node never does: see "
            "--replica-priority and --replica-votes");
        break;
    case CONTROL_STUCK_BLANK:
        log_event(logger, "repl_stuck", LOG_ERROR,
            "etcd has nothing of this group, and this node was in it: another "
            "one may have more, so nobody leads by himself; say failover "
            "force to the one with the highest written_seq (stats "
            "replication)");
        break;
    case CONTROL_STUCK_UNFIT:
        log_event(logger, "repl_stuck", LOG_ERROR,
            "nobody leads the group, and this node must not: its directory is "
            "not the group's, or not whole");
        break;
    default:
        log_event(logger, "repl_stuck", LOG_ERROR,
            "nobody leads the group: this node does not, as too few of its "
            "voters answer, or some hear a primary");
    }
}

void
control__tell_stuck(struct node *node)
{
    struct node_control *control = &node->control;
    enum control_stuck stuck = look_for_it(node);

    if (stuck != control->stuck) {
        control->stuck = stuck;
        control->stuck_us = control->now_us + NODE_CONTROL_STUCK_US;
    }
    if (stuck == CONTROL_STUCK_NOT) {
        return;
    }
    if (control->now_us >= control->stuck_us) {
        tell(node);
        control->stuck_us = control->now_us + NODE_CONTROL_TOLD_US;
    }
    ASSERT(control->stuck_us > control->now_us);
}
