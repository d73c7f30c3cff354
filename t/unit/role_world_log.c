/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs of nodes: entries in the order of their batches. */
#include "unit/role_world_priv.h"

uint64_t
world__last(const struct node *node)
{
    return node->n_log == 0 ? 0 : node->log[node->n_log - 1].seq;
}

uint64_t
world__position(const struct node *node)
{
    if (world->level == WORLD_WRITTEN) {
        return world__last(node);
    }
    return node->n_synced == 0 ? 0 : node->log[node->n_synced - 1].seq;
}

void
world__tell_log(struct node *node)
{
    role_set_log(&node->role, world__last(node), world__position(node));
}

void
world__append(struct node *node, struct entry entry)
{
    ck_assert_uint_lt(node->n_log, LOG_MAX);
    if (entry.seq <= world__last(node)) {
        world__wrong(
            "a batch that does not follow", entry.seq, world__last(node));
    }
    if (entry.op != 0 && node->at_op[entry.op] != 0) {
        world__wrong("doubled", entry.op, entry.seq);
    }
    node->log[node->n_log++] = entry;
    node->at_op[entry.op] = entry.seq;
}

void
world__cut(struct node *node, unsigned n)
{
    for (unsigned i = n; i < node->n_log; i++) {
        node->at_op[node->log[i].op] = 0;
    }
    node->n_log = n < node->n_log ? n : node->n_log;
    node->n_synced = n < node->n_synced ? n : node->n_synced;
}

/* How many entries are not above seq. */
unsigned
world__entries_to(const struct node *node, uint64_t seq)
{
    unsigned low = 0, high = node->n_log;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (node->log[middle].seq <= seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

uint64_t
world__common(const struct node *node, uint64_t seq)
{
    unsigned n = world__entries_to(node, seq);

    return n == 0 ? 0 : node->log[n - 1].seq;
}
