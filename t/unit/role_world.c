/* SPDX-License-Identifier: BSD-3-Clause */
/* Discrete events in an order of time. A node's log is an array of entries, a
 * number of a batch and the client's change in it; what of it is synced
 * survives a power cut, all of it a kill. Streams are as those of repl/link, in
 * a few messages; who hears nothing connects anew. Each node has a clock of its
 * own speed. etcd is one thing that does transactions one after the other; a
 * request to it may be lost, its answer as well, and it may be done long after
 * the node has ceased to wait for it. */
#include "unit/role_world_priv.h"

#include "repl/role_rules.h"

struct world *world;
static uint64_t rules_out;

int
role_rule_holds(enum role_rule rule)
{
    if (rule == ROLE_RULE_ASK_FIRST && world != NULL && world->is_eager) {
        return false;
    }
    return (rules_out >> rule & 1) == 0;
}

bool
world__has_all_rules(void)
{
    return rules_out == 0;
}

void
world_without(uint64_t rules)
{
    rules_out = rules;
}

static void
happen(struct event *event)
{
    switch (event->type) {
    case EV_ETCD:
        world__at_etcd(event);
        break;
    case EV_CLIENT:
        world__client();
        break;
    case EV_FAULT:
        world__fault();
        break;
    case EV_FORCE:
        world__force();
        break;
    case EV_HEAL:
        world__heal();
        break;
    case EV_START:
        if (!world->node[event->from].is_up) {
            world__start(&world->node[event->from]);
        }
        break;
    case EV_RESUME:
        world__resume(&world->node[event->from]);
        break;
    default: {
        struct node *node = &world->node[event->node];

        if (!node->is_up ||
            (event->type != EV_MESSAGE && event->life != node->life)) {
            break;
        }
        if (node->is_paused) {
            *node->held_end = (unsigned)(event - world->event);
            node->held_end = &event->next;
            event->next = EVENTS_MAX;
            return;
        }
        world__happen_in(node, event);
    }
    }
    world__give_back(event);
}

/* Copies, least: as many as a group of that size may have. */
static void
draw_world(uint64_t seed)
{
    static const struct {
        unsigned n, copies, least;
    } kinds[] = {{3, 1, 1}, {3, 1, 1}, {3, 1, 1}, {3, 1, 0}, {3, 2, 1},
        {2, 1, 0}, {2, 1, 1}, {5, 2, 2}, {5, 1, 1}, {3, 0, 0}};
    uint64_t kind;

    world->random = seed;
    kind = world__below(COUNT_OF(kinds));
    world->n = kinds[kind].n;
    world->copies = kinds[kind].copies;
    world->least = kinds[kind].least;
    world->level = world__chance(50) ? WORLD_SYNCED : WORLD_WRITTEN;
    world->is_delayed = world__chance(50);
    world->is_eager = world__chance(40);
    world->has_force = seed % 4 == 2; /* the other ones stay as they are */
    world->faults_us = world->has_force ? 24000000 : 12000000;
    world->has_reloads = seed % 8 == 0 || seed % 8 == 6;
    world->n_slow = world__chance(40) ? 8 : 1;
    world->etcd = (struct role_look){.revision = 1,
        .holder = ROLE_NOBODY,
        .ordered = ROLE_NOBODY,
        .nodes = (UINT32_C(1) << world->n) - 1};
    world->lost_from = 1;
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        world->event[i].next = i + 1;
    }
    for (unsigned i = 0; i < world->n; i++) {
        struct node *node = &world->node[i];

        node->config = (struct role_config){.self = i,
            .copies = world->copies,
            .least = world->least,
            .ttl_us = TTL_US,
            .lag_us = LAG_US,
            .priority = 100,
            .random = world__below(UINT64_MAX)};
        node->rate = 970000 + world__below(60001);
        node->offset_us = 1 + world__below(UINT64_C(1000000000000));
        node->held = EVENTS_MAX;
        world__start(node);
    }
}

void
world_run(uint64_t seed, struct world_result *result)
{
    uint64_t next_look_us;

    memset(result, 0, sizeof *result);
    if (world == NULL) {
        world = malloc(sizeof *world);
        ck_assert_ptr_nonnull(world);
    }
    memset(world, 0, offsetof(struct world, event));
    world->result = result;
    draw_world(seed);
    next_look_us = world->faults_us + 1000000;
    world__push(100000, EV_CLIENT, WORLD_NODES);
    world__push(2500000, EV_FAULT, WORLD_NODES);
    if (world->has_force) {
        world__push(3000000, EV_FORCE, WORLD_NODES);
    }
    while (result->wrong[0] == '\0') {
        struct event *event = world__pop();

        if (world->now > world->faults_us && !world->is_healed) {
            world__end_faults();
        }
        if (world->now > next_look_us) {
            next_look_us += 100000;
            if (world__is_well() || world->now > world->well_us) {
                break;
            }
        }
        happen(event);
    }
    world__check_end();
}
