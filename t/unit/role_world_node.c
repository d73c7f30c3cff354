/* SPDX-License-Identifier: BSD-3-Clause */
/* What goes on in a node: it does what its role orders, looks, beats, syncs,
 * starts and stops. */
#include "unit/role_world_priv.h"

#include "wal/seq.h"

static void
begin(struct node *node, uint64_t term)
{
    world__append(node, (struct entry){seq_first(term), 0});
    node->leads = term;
    node->n_wait = 0;
    memset(node->stream, 0, sizeof node->stream);
    world__tell_log(node);
    role_began(&node->role, term, seq_first(term), world__clock(node));
}

static void
cede(struct node *node)
{
    node->leads = 0;
    node->n_wait = 0;
    node->changes = ROLE_CHANGES_REFUSED;
    memset(node->stream, 0, sizeof node->stream);
    if (world->has_reloads && world__chance(50)) {
        world__push(world__below(200000), EV_RELOAD, world__number(node));
    }
}

static void
say(struct node *node, enum message_type type, const struct role_order *order)
{
    struct message message = {.type = type,
        .term = order->term,
        .seq = world__last(node),
        .flag = type == M_HEARS ? order->is_heard : node->role.is_doubtful};

    world__send(node, order->node, &message);
}

static void
obey_etcd(struct node *node, const struct role_order *order)
{
    switch (order->what) {
    case ROLE_DO_TAKE:
        world__ask_etcd(node, E_TAKE, world__new_lease(node), order);
        break;
    case ROLE_DO_KEEP:
        world__ask_etcd(node, E_KEEP, world__new_lease(node), order);
        break;
    case ROLE_DO_REVOKE:
        world__ask_etcd(node, E_REVOKE, node->lease, order);
        node->lease = 0;
        break;
    case ROLE_DO_SET:
        world__ask_etcd(node, E_SET, 0, order);
        break;
    case ROLE_DO_HAND:
        world__ask_etcd(node, E_HAND, 0, order);
        break;
    default:
        ck_assert_int_eq(order->what, ROLE_DO_LOOK);
        world__ask_etcd(node, E_LOOK, 0, order);
    }
}

static void
obey(struct node *node, const struct role_order *order)
{
    switch (order->what) {
    case ROLE_DO_CEDE:
        cede(node);
        break;
    case ROLE_DO_FOLLOW:
        node->follows = order->node;
        node->is_welcome = false;
        if (order->node != ROLE_NOBODY) {
            world__connect(node, order->node);
        }
        break;
    case ROLE_DO_PROMISE:
        world__push(
            1000 + world__below(10000), EV_DURABLE, world__number(node))
            ->of.value = order->term;
        break;
    case ROLE_DO_ANSWER:
        say(node, M_ANSWER, order);
        break;
    case ROLE_DO_REFUSE:
        say(node, M_REFUSE, order);
        break;
    case ROLE_DO_HEARS:
        say(node, M_HEARS, order);
        break;
    case ROLE_DO_PROBE:
        say(node, M_PROBE, order);
        break;
    case ROLE_DO_ASK:
        say(node, M_ASK, order);
        break;
    case ROLE_DO_FETCH:
        node->fetches = order->term;
        node->source = order->node;
        world__fetch(node);
        break;
    case ROLE_DO_BEGIN:
        if (order->is_forced) {
            world__give_up(node, order->term);
        }
        begin(node, order->term);
        break;
    case ROLE_DO_CHANGES:
        node->changes = order->changes;
        break;
    case ROLE_DO_SWITCH:
        break;
    case ROLE_DO_SURE:
        node->disk_doubtful = false;
        break;
    default:
        obey_etcd(node, order);
    }
}

void
world__turn(struct node *node)
{
    struct role_order order = {.what = ROLE_DO_CEDE};
    uint64_t wake_us;
    unsigned n = 0;

    do {
        world__tell_log(node);
        role_next(&node->role, world__clock(node), &order);
        if (order.what != ROLE_DO_WAIT) {
            obey(node, &order);
        }
        ck_assert_uint_lt(++n, 1000);
    } while (order.what != ROLE_DO_WAIT);
    if (world__has_all_rules()) {
        role_verify(&node->role);
    }
    ck_assert(!world__has_all_rules() ||
        (node->leads != 0) == (node->role.state >= ROLE_PRIMARY));
    world__commit(node);
    wake_us = world->now + 1 +
        (order.until_us - world__clock(node)) * 1000000 / node->rate;
    if (node->turn_us <= world->now || wake_us < node->turn_us) {
        node->turn_us = wake_us;
        world__push(wake_us - world->now, EV_TURN, world__number(node));
    }
}

static void
tick(struct node *node)
{
    static const struct role_order none = {.what = ROLE_DO_LOOK};
    unsigned self = world__number(node);

    world__push(100000 + world__below(20000), EV_TICK, self);
    role_set_may_lead(&node->role, world->now >= node->syncs_us);
    if (node->open[E_LOOK] == 0) {
        world__ask_etcd(node, E_LOOK, 0, &none);
    }
    if (node->lease != 0 && world__clock(node) >= node->alive_us &&
        node->open[E_ALIVE] == 0) {
        world__ask_etcd(node, E_ALIVE, node->lease, &none);
    }
    for (unsigned i = 0; i < world->n && node->leads != 0; i++) {
        struct message beat = {.type = M_BEAT,
            .session = node->stream[i].session,
            .seq = world__last(node),
            .flag = role_has_authority(&node->role, world__clock(node))};

        if (beat.session != 0) {
            world__pump(node, i);
            world__send(node, i, &beat);
        }
    }
    if (node->follows != ROLE_NOBODY &&
        world->now - node->stream_us >
            700000 - (node->is_welcome ? 0 : 500000)) {
        world__connect(node, node->follows);
    }
}

static void
sync_log(struct node *node)
{
    world__push(world->level == WORLD_SYNCED ? 20000 : 500000, EV_SYNC,
        world__number(node));
    if (node->n_synced < node->n_log) {
        node->n_synced = node->n_log;
        if (node->is_welcome && world->level == WORLD_SYNCED) {
            world__send_ack(node);
        }
    }
}

static void
begin_role(struct node *node)
{
    node->follows = ROLE_NOBODY;
    node->is_welcome = false;
    node->leads = 0;
    node->n_wait = 0;
    node->changes = ROLE_CHANGES_REFUSED;
    memset(node->open, 0, sizeof node->open);
    memset(node->stream, 0, sizeof node->stream);
    role_init(&node->role, &node->config, node->disk_promised,
        node->disk_doubtful, world__clock(node));
    role_set_may_lead(&node->role, world->now >= node->syncs_us);
}

void
world__reload(struct node *node)
{
    static const struct role_order none = {.what = ROLE_DO_REVOKE};

    world->result->n_reloads++;
    for (unsigned i = 0; i < world->n; i++) { /* its streams end */
        struct message down = {.type = M_DOWN};

        if (i != world__number(node)) {
            world__send(node, i, &down);
        }
    }
    if (node->lease != 0) {
        world__ask_etcd(node, E_REVOKE, node->lease, &none);
    }
    if (world__chance(30)) {
        node->syncs_us = world->now + world__below(3000000);
    }
    begin_role(node);
    if (node->seen.revision != 0) {
        role_looked(&node->role, &node->seen, world__clock(node));
    }
}

void
world__start(struct node *node)
{
    unsigned self = world__number(node);

    node->is_up = true;
    node->life++;
    node->turn_us = 0;
    node->lease = 0;
    node->seen.revision = 0;
    begin_role(node);
    world__push(10000 + world__below(50000), EV_TICK, self);
    world__push(20000, EV_SYNC, self);
    world__turn(node);
}

void
world__resume(struct node *node)
{
    if (node->is_paused) {
        unsigned index = node->held, next;

        node->is_paused = false;
        for (; index != EVENTS_MAX; index = next) {
            struct event *old = &world->event[index], *event;
            enum event_type type = old->type;

            next = old->next;
            event = world__push(0, type, old->node);
            event->from = old->from;
            event->life = old->life;
            event->of = old->of;
            world__give_back(old);
        }
        node->held = EVENTS_MAX;
    }
}

/* One at a time: what a change is on is not lost twice. */
static bool
may_be_hurt(void)
{
    for (unsigned i = 0; i < world->n; i++) {
        if (world->node[i].disk_doubtful) {
            return false;
        }
    }
    return world->has_reloads && world->level == WORLD_SYNCED &&
        world->least > 0;
}

void
world__stop(struct node *node, bool is_power)
{
    static const struct role_order none = {.what = ROLE_DO_REVOKE};
    unsigned self = world__number(node), index, next;

    if (!node->is_up) {
        return;
    }
    for (index = node->is_paused ? node->held : EVENTS_MAX;
         index != EVENTS_MAX; index = next) {
        next = world->event[index].next;
        world__give_back(&world->event[index]);
    }
    node->held = EVENTS_MAX;
    node->is_paused = false;
    if (node->lease != 0 && !is_power && world__chance(50)) {
        world__ask_etcd(node, E_REVOKE, node->lease, &none);
    }
    node->is_up = false;
    node->life++;
    for (unsigned i = 0; i < world->n; i++) {
        struct message down = {.type = M_DOWN};

        if (i != self && !is_power) {
            world__send(node, i, &down);
        }
    }
    if (is_power) {
        bool is_hurt = may_be_hurt() && world__chance(50);

        if (world__chance(80)) {
            world__cut(node, node->n_synced);
        }
        node->disk_doubtful |= world->level == WORLD_WRITTEN;
        if (is_hurt) { /* its log is cut short, and it knows */
            world__cut(node, (unsigned)world__below(node->n_synced + 1));
            node->disk_doubtful = true;
        }
        if (world->forced_term != 0 &&
            world->etcd.voters.nodes == quorum_bit(self)) {
            world__give_up(node, 0); /* nobody else is there to have it */
        }
    }
    world__push(100000 + world__below(world->has_force ? 12000000 : 3000000),
        EV_START, WORLD_NODES)
        ->from = self;
}

void
world__happen_in(struct node *node, const struct event *event)
{
    switch (event->type) {
    case EV_MESSAGE:
        world__hear(node, event->from, &event->of.message);
        break;
    case EV_ANSWER:
        world__get_answer(node, &event->of.request, event->of.request.answer);
        break;
    case EV_LATE:
        world__get_answer(node, &event->of.request, ROLE_UNKNOWN);
        break;
    case EV_TICK:
        tick(node);
        break;
    case EV_SYNC:
        sync_log(node);
        break;
    case EV_DURABLE:
        if (node->disk_promised < event->of.value) {
            node->disk_promised = event->of.value;
        }
        role_promised(&node->role, event->of.value, world__clock(node));
        break;
    case EV_RELOAD:
        world__reload(node);
        break;
    default:
        break;
    }
    world__turn(node);
}
