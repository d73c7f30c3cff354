/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients, who ask for a change until it is answered, and faults. */
#include "unit/role_world_priv.h"

#include "wal/seq.h"

static bool stays_parted;

struct node *
world__primary(void)
{
    unsigned first = (unsigned)world__below(world->n);

    for (unsigned i = 0; i < world->n; i++) {
        struct node *node = &world->node[(first + i) % world->n];

        if (node->leads != 0 && node->is_up) {
            return node;
        }
    }
    return NULL;
}

static void
change(struct node *node, uint32_t op)
{
    uint64_t seq = node->at_op[op];

    if (!node->is_up || node->is_paused || node->leads == 0 ||
        node->changes != ROLE_CHANGES_TAKEN) {
        return;
    }
    if (seq == 0) {
        uint64_t last = world__last(node);

        seq = seq_term(last) == node->leads ? last + 1
                                            : seq_make(node->leads, 2);
        world__append(node, (struct entry){seq, op});
        for (unsigned i = 0; i < world->n; i++) {
            world__pump(node, i);
        }
    }
    if (node->n_wait < OPS_MAX) {
        node->wait[node->n_wait++] = (struct waiting){seq, op};
    }
    world__turn(node);
}

static bool
is_asked(const struct node *node, uint32_t op)
{
    for (unsigned i = 0; i < node->n_wait; i++) {
        if (node->wait[i].op == op) {
            return true;
        }
    }
    return false;
}

/* Each time one that is not answered, nor asked for there already: so that they
 * take no longer than there are of them. In no order. */
static void
ask_rest(struct node *node)
{
    uint32_t n, first;

    while (world->lost_from <= world->n_ops &&
        world->is_acked[world->lost_from]) {
        world->lost_from++;
    }
    n = world->n_ops + 1 - world->lost_from;
    first = n == 0 ? 0 : (uint32_t)world__below(n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = world->lost_from + (first + i) % n;

        if (!world->is_acked[op] && !is_asked(node, op)) {
            change(node, op);
            return;
        }
    }
}

void
world__client(void)
{
    struct node *node = world__primary();

    world__push(CLIENT_US, EV_CLIENT, WORLD_NODES);
    if (node == NULL) {
        return;
    }
    if (world->is_healed) {
        ask_rest(node);
        return;
    }
    if (world->n_ops + 1 < OPS_MAX) {
        change(node, ++world->n_ops);
    }
    for (unsigned n = 0; n < 10 && world->lost_from <= world->n_ops; n++) {
        if (world->is_acked[world->lost_from]) {
            world->lost_from++;
        } else {
            break;
        }
    }
    /* one that was not answered, or was to a node that is none any more */
    for (unsigned n = 0; n < 4 && world->lost_from <= world->n_ops; n++) {
        uint32_t op = world->lost_from +
            (uint32_t)world__below(world->n_ops - world->lost_from + 1);

        if (world->copies > 0 ? !world->is_acked[op] : node->at_op[op] == 0) {
            change(node, op);
            return;
        }
    }
    if (world->lost_from <= world->n_ops) {
        change(node, world->lost_from);
    }
}

static void
part(uint32_t side)
{
    for (unsigned a = 0; a < PLACES; a++) {
        for (unsigned b = 0; b < PLACES; b++) {
            world->cut[a][b] |= quorum_has(side, a) != quorum_has(side, b);
        }
    }
}

void
world__heal(void)
{
    memset(world->cut, 0, sizeof world->cut);
    for (unsigned i = 0; i < world->n && world->is_healed && stays_parted;
         i++) {
        part(quorum_bit(i));
    }
}

static struct node *
victim(void)
{
    struct node *node = world__primary();

    return node != NULL && world__chance(60)
        ? node
        : &world->node[world__below(world->n)];
}

static void
fault_of_network(struct node *node)
{
    unsigned self = world__number(node);
    unsigned other =
        world__chance(30) ? ETCD : (unsigned)world__below(world->n);

    switch (world__below(4)) {
    case 0:
        part(quorum_bit(self));
        break;
    case 1:
        part(quorum_bit(self) | quorum_bit(ETCD));
        break;
    case 2:
        world->cut[self][other] = true;
        world->cut[other][self] |= world__chance(50);
        break;
    default:
        part(quorum_bit(ETCD));
    }
    if (world__chance(70)) {
        world__push(50000 + world__below(4000000), EV_HEAL, WORLD_NODES);
    }
}

void
world__force(void)
{
    struct node *node = &world->node[world__below(world->n)];

    if (world->is_healed) {
        return;
    }
    world__push(100000 + world__below(1000000), EV_FORCE, WORLD_NODES);
    if (node->is_up && !node->is_paused) {
        (void)role_force(&node->role, world__clock(node));
        world__turn(node);
    }
}

void
world__fault(void)
{
    struct node *node = victim();
    unsigned kind = (unsigned)world__below(100);
    bool may_cut_power = world->level == WORLD_SYNCED ||
        (world->least > 0 && world->now - world->power_us > 4000000);

    if (world->is_healed) {
        return;
    }
    world__push(200000 + world__below(2000000), EV_FAULT, WORLD_NODES);
    world->result->n_faults++;
    if (world->has_force && world__chance(20)) { /* all but one */
        for (unsigned i = 0; i < world->n; i++) {
            if (i != world__number(node)) {
                world__stop(&world->node[i], false);
            }
        }
    } else if (kind < 25) {
        world__stop(node, false);
    } else if (kind < 37 && may_cut_power) {
        world->power_us = world->now;
        world__stop(node, true);
    } else if (kind < 52 && node->is_up && !node->is_paused) {
        node->is_paused = true;
        node->held = EVENTS_MAX;
        node->held_end = &node->held;
        world__push(200000 + world__below(5000000), EV_RESUME, WORLD_NODES)
            ->from = world__number(node);
    } else if (kind < (world->is_eager ? 65 : 57) && world->copies > 0) {
        /* without copies the lease is all that there is */
        world->lease_us[world->key_lease] = 0;
    } else if (kind < 70 && node->is_up && !node->is_paused) {
        (void)role_hand_over(
            &node->role, (unsigned)world__below(world->n), world__clock(node));
        world__turn(node);
    } else {
        fault_of_network(node);
    }
}

void
world_stays_parted(bool stays)
{
    stays_parted = stays;
}

void
world__end_faults(void)
{
    world->is_healed = true;
    world->well_us = world->now + HEALED_US +
        (uint64_t)(world->n_ops + 1 - world->lost_from) * CLIENT_US;
    world__heal();
    for (unsigned i = 0; i < world->n; i++) {
        if (!world->node[i].is_up) {
            world__start(&world->node[i]);
        }
        world__resume(&world->node[i]);
    }
}
