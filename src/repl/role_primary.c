/* SPDX-License-Identifier: BSD-3-Clause */
/* A primary: what is committed, whether it has authority, who the voters are to
 * be, and how it hands over.
 *
 * Voters change in steps: from now on old and new ones both have to have a
 * change; when the new ones have all that is acknowledged, and all of former
 * terms, etcd is asked to write them; then only these count. An answer that
 * does not come leaves both in force, also when a look shows the old ones: what
 * was asked for may still be done. So the same is asked for again until etcd
 * says that it was done, or that it cannot be done any more. */
#include "repl/role_priv.h"

#include "base/assert.h"
#include "repl/role_rules.h"

void
role__lead(struct role *role, uint64_t seq, uint64_t now_us)
{
    ASSERT(seq > 0);
    role__move(role, ROLE_PRIMARY, now_us);
    role->is_forced = role->is_alone = false;
    role->first = seq;
    role->committed = 0;
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        struct role_peer *peer = &role->peer[i];

        peer->is_linked = peer->is_out = peer->is_near = false;
        peer->position = 0;
        peer->heard_us = now_us; /* each has time to come */
    }
    role->is_set_sent = role->is_set_refused = role->is_set_open = false;
    role->is_keep_sent = false;
    role->set_us = role->keep_us = now_us;
    role->sure_at = seq; /* it has what all others have, once that counts */
}

void
role__resign(struct role *role, uint64_t now_us)
{
    ASSERT(role__leads(role));
    role__move(role, ROLE_REPLICA, now_us);
    role->term = 0;
    role->first = role->committed = 0;
    role->lease_us = 0;
    role->sure_at = 0;
    role->rule.is_changing = false;
    role->is_set_sent = role->is_set_refused = role->is_set_open = false;
    role->changes = ROLE_CHANGES_REFUSED; /* CEDE says so */
    role->heir = ROLE_NOBODY;
    role->is_hand_due = false;
    role->is_cede_due = role->is_revoke_due = role->is_look_due = true;
}

/* Who was heard within that time, this node among them. */
static uint32_t
heard(const struct role *role, uint64_t within_us, uint64_t now_us)
{
    uint32_t nodes = quorum_bit(role->config->self);

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (now_us - role->peer[i].heard_us <= within_us) {
            nodes |= quorum_bit(i);
        }
    }
    return nodes;
}

bool
role_has_authority(const struct role *role, uint64_t now_us)
{
    if (!role__leads(role)) {
        return false;
    }
    return now_us < role->lease_us ||
        (role->config->copies > 0 &&
            quorum_is_heard(
                &role->rule.now, heard(role, role->config->ttl_us, now_us)));
}

static void
get_positions(const struct role *role, uint64_t *position)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        position[i] = role->peer[i].position;
    }
    position[role->config->self] = role->position;
}

void
role__count(struct role *role)
{
    uint64_t position[QUORUM_NODES], seq;

    ASSERT(role__leads(role));
    if (role->config->copies == 0) {
        return; /* when it is asked for */
    }
    get_positions(role, position);
    seq = quorum_committed(&role->rule, position, role->first);
    if (seq > role->committed) {
        role->committed = seq;
    }
}

uint64_t
role_committed(struct role *role, uint64_t now_us)
{
    if (role__leads(role) && role->config->copies == 0 &&
        (now_us < role->lease_us || !RULE_HOLDS(DEADLINE)) &&
        role->position >= role->first && role->position > role->committed) {
        role->committed = role->position;
    }
    return role->committed;
}

void
role_set_lease(struct role *role, uint64_t deadline_us)
{
    if (role->term != 0) {
        role->lease_us = deadline_us;
    }
}

void
role_linked(struct role *role, unsigned node, uint64_t now_us)
{
    struct role_peer *peer = &role->peer[node];

    if (role__leads(role)) {
        peer->is_linked = true;
        peer->is_near = peer->is_out = false;
        peer->position = 0;
        peer->heard_us = now_us;
    }
}

void
role_acked(struct role *role, unsigned node, uint64_t term, uint64_t position,
    bool is_out, bool is_near, uint64_t now_us)
{
    struct role_peer *peer = &role->peer[node];

    if (!role__leads(role) || term != role->term || !peer->is_linked) {
        return;
    }
    if (!peer->is_near) {
        peer->near_us = now_us;
    }
    peer->is_near = is_near;
    peer->is_out = is_out;
    peer->position = position;
    peer->heard_us = now_us;
    role__count(role);
}

void
role_unlinked(struct role *role, unsigned node)
{
    role->peer[node].is_linked = false;
    role->peer[node].is_near = false;
}

/* Who is to vote; false: those who do. */
static bool
wish(const struct role *role, uint64_t now_us, struct quorum_voters *next)
{
    const struct role_config *config = role->config;
    struct quorum_wish wish = {.copies = config->copies,
        .least = config->least,
        .near = quorum_bit(config->self)};

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        const struct role_peer *peer = &role->peer[i];

        if (i == config->self) {
            continue;
        }
        if (peer->is_out || now_us - peer->heard_us > config->lag_us) {
            wish.gone |= quorum_bit(i);
        } else if (peer->is_linked && peer->is_near &&
            now_us - peer->near_us >= ROLE_NEAR_US) {
            wish.near |= quorum_bit(i);
        }
    }
    return quorum_next(&role->rule.now, &wish, next);
}

static void
end_change(struct role *role, bool is_done, uint64_t voters_rev)
{
    ASSERT(role->rule.is_changing);
    if (is_done) {
        role->rule.now = role->rule.next;
        role->voters_rev = voters_rev;
    }
    role->rule.is_changing = false;
    role->is_set_sent = role->is_set_refused = role->is_set_open = false;
    role__count(role);
}

/* What was asked for and not answered, or refused: has it been done? */
void
role__look_at_voters(struct role *role, uint64_t now_us)
{
    const struct role_look *look = &role->look;

    if (!role->rule.is_changing || look->term != role->term) {
        return;
    }
    if ((role->is_set_open || role->is_set_refused) &&
        look->voters_rev > role->voters_rev &&
        quorum_is_same(&look->voters, &role->rule.next)) {
        end_change(role, true, look->voters_rev);
    } else if (role->is_set_refused &&
        (look->revision >= role->set_revision ||
            look->voters_rev > role->voters_rev)) {
        role__resign(role, now_us); /* somebody else has written voters */
    }
}

void
role_set(struct role *role, uint64_t term, enum role_answer answer,
    uint64_t revision, uint64_t now_us)
{
    if (role->state == ROLE_FORCING && term == role->term) {
        role__forced(role, answer, revision, now_us);
        return;
    }
    if (!role__leads(role) || term != role->term || !role->is_set_sent) {
        return;
    }
    role->is_set_sent = false;
    switch (answer) {
    case ROLE_YES:
        end_change(role, true, revision);
        break;
    case ROLE_NO:
        role->is_set_refused = true;
        role->set_revision = revision;
        role->is_look_due = true;
        role__look_at_voters(role, now_us);
        break;
    case ROLE_UNKNOWN:
        role->is_set_open = true;
        role->set_us = now_us + ROLE_AGAIN_US;
        if (!RULE_HOLDS(RETRY)) {
            end_change(role, false, 0);
        }
        break;
    }
}

static bool
voters_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    struct quorum_rule *rule = &role->rule;
    uint64_t position[QUORUM_NODES];

    if (role->is_set_sent || role->is_set_refused) {
        return false;
    }
    if (!role->is_set_open) { /* nothing is asked for yet: it may be changed */
        bool was_changing = rule->is_changing;

        rule->is_changing = wish(role, now_us, &rule->next);
        if (was_changing) {
            role__count(role);
        }
    }
    get_positions(role, position);
    if (!rule->is_changing || now_us < role->set_us ||
        !quorum_may_change(rule, position, role->first, role->committed)) {
        return false;
    }
    role->is_set_sent = true;
    order->what = ROLE_DO_SET;
    order->term = role->term;
    order->voters = rule->next;
    order->voters_rev = role->voters_rev;
    return true;
}

void
role_kept(
    struct role *role, uint64_t term, enum role_answer answer, uint64_t now_us)
{
    if (!role__leads(role) || term != role->term || !role->is_keep_sent) {
        return;
    }
    role->is_keep_sent = false;
    role->is_look_due = true;
    role->keep_us = now_us + ROLE_AGAIN_US;
    (void)answer; /* the look says it */
}

static bool
keep_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    if (role->look.holder != ROLE_NOBODY || role->look.term != role->term ||
        role->is_keep_sent || now_us < role->keep_us) {
        return false;
    }
    role->is_keep_sent = true;
    order->what = ROLE_DO_KEEP;
    order->term = role->term;
    order->term_rev = role->look.term_rev;
    return true;
}

bool
role_hand_over(struct role *role, unsigned node, uint64_t now_us)
{
    if (role->state != ROLE_PRIMARY || node >= QUORUM_NODES ||
        node == role->config->self || !role->peer[node].is_linked ||
        role->peer[node].is_out ||
        (role->config->copies > 0 &&
            !quorum_has(role->rule.now.nodes, node))) {
        return false;
    }
    role->heir = node;
    role__move(role, ROLE_HANDING, now_us);
    return true;
}

/* Changes are parked: when the heir has all, and all is committed, the others
 * are told that this is the end, and etcd who is next. */
static bool
hand_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    const struct role_peer *heir = &role->peer[role->heir];

    if (role->is_hand_due) {
        role->is_hand_due = false;
        order->what = ROLE_DO_HAND;
        order->node = role->heir;
        order->term = role->term;
        role__resign(role, now_us);
        role->rest_us = now_us + ROLE_ORDERED_US;
        return true;
    }
    if (now_us - role->since_us >= ROLE_HANDING_US || !heir->is_linked) {
        role->heir = ROLE_NOBODY;
        role__move(role, ROLE_PRIMARY, now_us);
        return false;
    }
    if (heir->position < role->last ||
        role_committed(role, now_us) < role->last) {
        return false;
    }
    role->is_hand_due = true;
    order->what = ROLE_DO_SWITCH;
    order->node = role->heir;
    order->seq = role->last;
    return true;
}

static enum role_changes
wanted_changes(const struct role *role, uint64_t now_us)
{
    if (role->state == ROLE_HANDING) {
        return ROLE_CHANGES_PARKED;
    }
    if (role->state == ROLE_ISOLATED) {
        return ROLE_CHANGES_REFUSED;
    }
    if (role->config->copies > 0 &&
        !quorum_is_heard(
            &role->rule.now, heard(role, role->config->lag_us, now_us))) {
        return ROLE_CHANGES_FEW;
    }
    return ROLE_CHANGES_TAKEN;
}

static bool
changes_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    enum role_changes changes = wanted_changes(role, now_us);

    if (changes == role->changes) {
        return false;
    }
    role->changes = changes;
    order->what = ROLE_DO_CHANGES;
    order->changes = changes;
    return true;
}

bool
role__primary_next(
    struct role *role, uint64_t now_us, struct role_order *order)
{
    bool has_authority =
        role_has_authority(role, now_us) || !RULE_HOLDS(ISOLATED);

    if (role->state == ROLE_PRIMARY && !has_authority) {
        role__move(role, ROLE_ISOLATED, now_us);
    } else if (role->state == ROLE_ISOLATED && has_authority) {
        role__move(role, ROLE_PRIMARY, now_us);
    }
    if (changes_next(role, now_us, order)) {
        return true;
    }
    if (role->state == ROLE_HANDING && hand_next(role, now_us, order)) {
        return true;
    }
    if (!role__leads(role)) {
        return false;
    }
    return keep_next(role, now_us, order) ||
        (role->config->copies > 0 && role->state != ROLE_HANDING &&
            voters_next(role, now_us, order));
}
