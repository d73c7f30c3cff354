/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd is one thing that does transactions one after the other. A request may
 * be lost, its answer as well, and it may be done long after the node has
 * ceased to wait for it. */
#include "unit/role_world_priv.h"

static bool etcd_forgets;

void
world_etcd_forgets(bool forgets)
{
    etcd_forgets = forgets;
}

static void
expire(void)
{
    if (world->etcd.holder != ROLE_NOBODY &&
        world->lease_us[world->key_lease] <= world->now) {
        world->etcd.holder = ROLE_NOBODY;
        world->etcd.key_term = 0;
        world->etcd.key_rev = 0;
        world->etcd.revision++;
    }
}

static void
put_key(const struct request *request, unsigned node)
{
    struct role_look *etcd = &world->etcd;

    etcd->revision++;
    etcd->holder = node;
    etcd->key_term = etcd->term;
    etcd->key_rev = etcd->revision;
    world->key_lease = request->lease;
    world->lease_us[request->lease] = world->now + TTL_US;
}

static bool
do_take(const struct request *request, unsigned node)
{
    const struct role_order *order = &request->order;
    struct role_look *etcd = &world->etcd;
    uint64_t term = etcd->term + 1;

    if (etcd->key_rev != order->key_rev || etcd->term_rev != order->term_rev) {
        return false;
    }
    etcd->term = term < order->term ? order->term : term;
    put_key(request, node);
    etcd->term_rev = etcd->revision;
    etcd->ordered = ROLE_NOBODY;
    if (etcd->voters.nodes == 0) {
        etcd->voters = order->voters;
        etcd->voters_rev = etcd->revision;
    }
    world->result->n_terms++;
    return true;
}

static bool
do_request(struct request *request, unsigned node)
{
    const struct role_order *order = &request->order;
    struct role_look *etcd = &world->etcd;

    switch (request->what) {
    case E_TAKE:
        return do_take(request, node);
    case E_KEEP:
        if (etcd->holder != ROLE_NOBODY || etcd->term != order->term) {
            return false;
        }
        put_key(request, node);
        world->result->n_kept++;
        return true;
    case E_SET:
        if ((etcd->term != order->term && !etcd_forgets) ||
            etcd->voters_rev != order->voters_rev) {
            return false;
        }
        etcd->voters = order->voters;
        etcd->voters_rev = ++etcd->revision;
        world->result->n_sets++;
        if (order->is_forced) {
            ck_assert_uint_eq(order->voters.nodes, quorum_bit(node));
            world__give_up(&world->node[node], order->term);
        }
        return true;
    case E_ALIVE:
        if (world->lease_us[request->lease] <= world->now) {
            return false;
        }
        world->lease_us[request->lease] = world->now + TTL_US;
        return true;
    case E_REVOKE:
        world->lease_us[request->lease] = 0;
        expire();
        return true;
    case E_HAND:
        if (etcd->holder != node || etcd->term != order->term) {
            return false;
        }
        world->lease_us[world->key_lease] = 0;
        expire();
        etcd->ordered = order->node;
        world->result->n_handed++;
        return true;
    case E_LOOK:
        break;
    }
    return true;
}

void
world__ask_etcd(struct node *node, enum etcd_what what, unsigned lease,
    const struct role_order *order)
{
    unsigned self = world__number(node);
    struct request request = {.what = what,
        .number = ++node->requests,
        .lease = lease,
        .sent_us = world__clock(node),
        .order = *order};
    struct event *event = world__push(ANSWER_US, EV_LATE, self);

    event->of.request = request;
    node->open[what] = request.number;
    if (world->has_reloads && world__chance(2)) { /* it is not sent */
        request.answer = what == E_TAKE ? ROLE_NO : ROLE_UNKNOWN;
        event = world__push(1000, EV_ANSWER, self);
        event->of.request = request;
        return;
    }
    if (!world->cut[self][ETCD] && !world__chance(1)) {
        uint64_t delay = 1000 + world__below(6000);

        delay += world->is_delayed && world__chance(10)
            ? world__below(ETCD_LATE_US)
            : 0;
        event = world__push(delay, EV_ETCD, ETCD);
        event->from = self;
        event->next = node->life;
        event->of.request = request;
    }
}

void
world__at_etcd(const struct event *event)
{
    struct request request = event->of.request;
    unsigned node = event->from, life = event->next;
    struct event *answer;

    expire();
    if (world->has_reloads) {
        world->etcd.revision += world__below(3); /* of other groups */
    }
    request.answer = do_request(&request, node) ? ROLE_YES : ROLE_NO;
    request.revision = world->etcd.revision;
    request.look = world->etcd;
    if (!world->cut[ETCD][node] && !world__chance(1) &&
        life == world->node[node].life) {
        answer = world__push(1000 + world__below(6000), EV_ANSWER, node);
        answer->of.request = request;
    }
}

/* False where nothing has changed and nobody is told. */
static bool
is_news(struct node *node, const struct role_look *look)
{
    struct role_look before = node->seen;

    if (look->revision < before.revision) {
        return false;
    }
    node->seen = *look;
    return !world->has_reloads || before.term_rev != look->term_rev ||
        before.key_rev != look->key_rev ||
        before.voters_rev != look->voters_rev ||
        before.ordered != look->ordered || before.revision == 0;
}

void
world__get_answer(
    struct node *node, const struct request *request, enum role_answer answer)
{
    struct role *role = &node->role;
    uint64_t now = world__clock(node);

    if (node->open[request->what] != request->number) {
        return;
    }
    node->open[request->what] = 0;
    if (answer == ROLE_YES &&
        (request->what == E_TAKE || request->what == E_KEEP ||
            (request->what == E_ALIVE && request->lease == node->lease))) {
        node->alive_us = request->sent_us + TTL_US / 3;
    }
    switch (request->what) {
    case E_LOOK:
        if (answer == ROLE_YES && is_news(node, &request->look)) {
            role_looked(role, &request->look, now);
        }
        break;
    case E_TAKE:
        role_took(role, answer, &request->look, now);
        break;
    case E_KEEP:
        role_kept(role, request->order.term, answer, now);
        break;
    case E_SET:
        role_set(role, request->order.term, answer, request->revision, now);
        break;
    default:
        break;
    }
    if (answer == ROLE_YES && request->lease == node->lease &&
        (request->what == E_TAKE || request->what == E_KEEP ||
            request->what == E_ALIVE)) {
        role_set_lease(role, request->sent_us + TTL_US - MARGIN_US);
    }
}

unsigned
world__new_lease(struct node *node)
{
    node->lease = ++world->leases;
    ck_assert_uint_lt(node->lease, OPS_MAX);
    return node->lease;
}
