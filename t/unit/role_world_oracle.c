/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked of every world: nothing that was acknowledged is lost, nothing
 * is done twice, no two nodes acknowledge in one another's term, and in the end
 * all logs are the same and all is answered. */
#include "unit/role_world_priv.h"

static void
check_lost(const struct node *node)
{
    for (uint32_t op = 1; op <= world->n_ops; op++) {
        if (world->is_acked[op] && node->at_op[op] == 0) {
            world__wrong("lost", op, node->leads);
        }
    }
}

static void
acknowledge(struct node *node, uint32_t op)
{
    const struct node *newest = &world->node[world->acker];

    if (node->leads < world->forced_term) {
        return; /* it has not heard of it yet */
    }
    if (world->copies == 0 && node->leads < world->acked_term) {
        world__wrong("acknowledged in another one's term", node->leads,
            world->acked_term);
    }
    if (node->leads > world->acked_term) {
        world->acked_term = node->leads;
        world->acker = world__number(node);
        if (world->copies > 0) {
            check_lost(node);
        }
    } else if (node->leads < world->acked_term && world->copies > 0 &&
        !world->is_acked[op] && newest->at_op[op] == 0 &&
        !newest->disk_doubtful) {
        world__wrong(
            "acknowledged what a later term has not", op, node->leads);
    }
    if (!world->is_acked[op]) {
        world->is_acked[op] = true;
        world->result->n_acked++;
    }
}

void
world__give_up(const struct node *node, uint64_t term)
{
    if (term > world->forced_term) {
        world->forced_term = term;
        world->result->n_forced++;
    }
    for (uint32_t op = 1; op <= world->n_ops; op++) {
        if (world->is_acked[op] && node->at_op[op] == 0) {
            world->is_acked[op] = false;
            world->result->n_given_up++;
            world->well_us += CLIENT_US; /* it is asked for again */
            if (op < world->lost_from) {
                world->lost_from = op;
            }
        }
    }
}

void
world__commit(struct node *node)
{
    uint64_t committed = role_committed(&node->role, world__clock(node));
    unsigned kept = 0;

    for (unsigned i = 0; i < node->n_wait && node->leads != 0; i++) {
        if (node->wait[i].seq <= committed) {
            acknowledge(node, node->wait[i].op);
        } else {
            node->wait[kept++] = node->wait[i];
        }
    }
    node->n_wait = kept;
}

/* True where one leads by etcd, all logs are the same, and all is answered. */
bool
world__is_well(void)
{
    const struct node *primary = NULL;

    for (unsigned i = 0; i < world->n; i++) {
        const struct node *node = &world->node[i];

        if (node->leads != 0) {
            if (primary != NULL || node->leads != world->etcd.term ||
                world->etcd.holder != i) {
                return false;
            }
            primary = node;
        }
        if (world__last(node) != world__last(&world->node[0]) ||
            node->n_log != world->node[0].n_log) {
            return false;
        }
    }
    return primary != NULL && primary->changes == ROLE_CHANGES_TAKEN &&
        world->lost_from > world->n_ops && primary->n_wait == 0;
}

void
world__check_end(void)
{
    const struct node *first = &world->node[0];

    if (!world__is_well()) {
        world__wrong("all is not well", world->lost_from, world->etcd.term);
        return;
    }
    if (world->copies > 0) {
        check_lost(first);
    }
    for (unsigned i = 1; i < world->n; i++) {
        if (memcmp(first->log, world->node[i].log,
                first->n_log * sizeof first->log[0]) != 0) {
            world__wrong("logs differ", 0, i);
        }
    }
}
