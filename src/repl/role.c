/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node of a group becomes (repl/role.h has the picture): what is the
 * same in all states, and what a replica does. A term is promised before this
 * node has anything to do with it, and durable before anybody hears of it; who
 * promises has parted from all that is older. Candidates and primaries are in
 * files of their own. */
#include "repl/role.h"

#include "base/assert.h"
#include "repl/role_priv.h"
#include "repl/role_rules.h"

#include <string.h>

#define TO(state) (1u << ROLE_##state)

static const unsigned next_states[ROLE_STATES_N] = {
    [ROLE_REPLICA] = TO(ASKING),
    [ROLE_ASKING] = TO(REPLICA) | TO(TAKING),
    [ROLE_TAKING] = TO(REPLICA) | TO(GATHERING),
    [ROLE_GATHERING] =
        TO(REPLICA) | TO(FETCHING) | TO(FORCING) | TO(BEGINNING),
    [ROLE_FETCHING] = TO(REPLICA) | TO(FORCING) | TO(BEGINNING),
    [ROLE_FORCING] = TO(REPLICA) | TO(BEGINNING),
    [ROLE_BEGINNING] = TO(REPLICA) | TO(PRIMARY),
    [ROLE_PRIMARY] = TO(REPLICA) | TO(ISOLATED) | TO(HANDING),
    [ROLE_ISOLATED] = TO(REPLICA) | TO(PRIMARY),
    [ROLE_HANDING] = TO(REPLICA) | TO(PRIMARY),
};

void
role__move(struct role *role, enum role_state state, uint64_t now_us)
{
    ASSERT((next_states[role->state] & 1u << state) != 0);
    role->state = state;
    role->since_us = now_us;
    role->is_ordered = false;
    role->said = 0;
    role->said_us = now_us;
}

void
role_init(struct role *role, const struct role_config *config,
    uint64_t promised, bool is_doubtful, uint64_t now_us)
{
    ASSERT(config->self < QUORUM_NODES);
    ASSERT(config->least <= config->copies);
    *role = (struct role){.config = config,
        .state = ROLE_REPLICA,
        .since_us = now_us,
        .random = config->random,
        .is_doubtful = is_doubtful,
        .promised = promised,
        .promising = promised,
        .follows = ROLE_NOBODY,
        .look = {.holder = ROLE_NOBODY, .ordered = ROLE_NOBODY},
        .heir = ROLE_NOBODY};
}

bool
role_hears(const struct role *role, uint64_t now_us)
{
    if (role__leads(role)) {
        return role->state != ROLE_ISOLATED;
    }
    return role->heard_us != 0 && now_us - role->heard_us < ROLE_SILENCE_US;
}

void
role__promise(struct role *role, uint64_t term)
{
    if (term > role->promising) {
        role->promising = term;
    }
    if (role->follows != ROLE_NOBODY && role->follows_term < term &&
        RULE_HOLDS(PARTED)) {
        role->is_part_due = true;
    }
}

/* What was promised makes this node give way. */
static void
give_way(struct role *role, uint64_t term, uint64_t now_us)
{
    if (term <= role->term) {
        return;
    }
    if (role__leads(role) && RULE_HOLDS(RESIGN)) {
        role__resign(role, now_us);
    } else if (role__is_candidate(role) && RULE_HOLDS(YIELD)) {
        role__give_up(role, now_us);
    }
}

void
role_promised(struct role *role, uint64_t term, uint64_t now_us)
{
    if (term > role->promising && role->follows != ROLE_NOBODY) {
        role->follows_term = term; /* its stream has told */
    }
    if (term > role->promised) {
        role->promised = term;
        role->is_promise_asked = false;
        role__promise(role, term);
        give_way(role, term, now_us);
    }
}

void
role_asked(struct role *role, unsigned node, uint64_t term, bool is_probe,
    uint64_t now_us)
{
    ASSERT(node < QUORUM_NODES);
    ASSERT(node != role->config->self);
    if (is_probe) {
        role->peer[node].probes_term = term == 0 ? 1 : term;
        return;
    }
    role->peer[node].asks_term = term;
    if (term >= role->promising || !RULE_HOLDS(ONCE)) {
        role__promise(role, term);
        give_way(role, term, now_us);
    }
}

void
role_saw(struct role *role, uint64_t term, uint64_t now_us)
{
    if (term > role->seen && term <= role->promising + ROLE_TERMS_MAX) {
        role->seen = term;
    }
    if (role->term != 0 && term > role->term) {
        role->is_look_due = true;
        give_way(role, term, now_us);
    }
}

void
role_forget(struct role *role, unsigned node)
{
    ASSERT(node < QUORUM_NODES && node != role->config->self);
    role->peer[node] = (struct role_peer){0};
}

void
role_set_may_lead(struct role *role, bool may_lead)
{
    role->may_lead = may_lead;
}

void
role_set_log(struct role *role, uint64_t last, uint64_t position)
{
    ASSERT(position <= last);
    role->last = last;
    role->position = position;
    if (role->is_doubtful && role->sure_at != 0 &&
        (position >= role->sure_at ||
            (last >= role->sure_at && !RULE_HOLDS(SURE)))) {
        role->is_doubtful = false;
        role->is_sure_due = true;
    }
    if (role__leads(role)) {
        role__count(role);
    }
}

void
role_welcomed(struct role *role, uint64_t last, uint64_t now_us)
{
    ASSERT(last > 0);
    role->sure_at = RULE_HOLDS(CAUGHT_UP) ? last : 1;
    role->heard_us = now_us;
    role_set_log(role, role->last, role->position);
}

void
role_heard(struct role *role, bool has_authority, uint64_t now_us)
{
    if (has_authority && role->follows != ROLE_NOBODY) {
        role->heard_us = now_us;
    }
}

void
role_parted(struct role *role, uint64_t now_us)
{
    (void)now_us;
    role->heard_us = 0;
    role->sure_at = 0;
}

void
role_looked(struct role *role, const struct role_look *look, uint64_t now_us)
{
    bool is_of_other =
        look->holder != ROLE_NOBODY && look->holder != role->config->self;

    ASSERT(look->key_term <= look->term);
    if (role->has_looked && look->revision < role->look.revision) {
        return;
    }
    role->look = *look;
    role->has_looked = true;
    if (role->term != 0 && look->term > role->term) {
        if (role__leads(role)) {
            role__resign(role, now_us);
        } else {
            role__give_up(role, now_us);
        }
    } else if (role__leads(role)) {
        role__look_at_voters(role, now_us);
    } else if (role->state == ROLE_ASKING && is_of_other) {
        role__give_up(role, now_us);
    }
}

/* True where somebody else leads, in a term that this node may be in. */
static bool
is_led(const struct role *role)
{
    return role->has_looked && role->look.holder != ROLE_NOBODY &&
        role->look.holder != role->config->self &&
        role->look.key_term >= role->promising;
}

static bool
replica_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    const struct role_look *look = &role->look;

    if (!is_led(role)) {
        role__campaign(role, now_us);
        return false;
    }
    role->next_us = role->rest_us = 0; /* the next candidacy is another one */
    if (look->key_term > role->promising) {
        role__promise(role, look->key_term);
        return false;
    }
    if (role->promised != look->key_term ||
        (role->follows == look->holder &&
            role->follows_term >= look->key_term)) {
        return false;
    }
    role->follows = look->holder;
    role->follows_term = look->key_term;
    role->heard_us = 0;
    role->sure_at = 0;
    *order = (struct role_order){
        .what = ROLE_DO_FOLLOW, .node = look->holder, .term = look->key_term};
    return true;
}

/* Promises, in the order that makes them true: this node leads no more, follows
 * no more, and the term is on the disk. */
static bool
promise_next(struct role *role, struct role_order *order)
{
    if (role->is_cede_due) {
        role->is_cede_due = false;
        order->what = ROLE_DO_CEDE;
        return true;
    }
    if (role->is_part_due) {
        role->is_part_due = false;
        role->follows = ROLE_NOBODY;
        role->follows_term = 0;
        role->heard_us = 0;
        role->sure_at = 0;
        order->what = ROLE_DO_FOLLOW;
        order->node = ROLE_NOBODY;
        return true;
    }
    if (role->promising > role->promised && !role->is_promise_asked) {
        role->is_promise_asked = true;
        order->what = ROLE_DO_PROMISE;
        order->term = role->promising;
        return true;
    }
    return false;
}

static bool
answer_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        struct role_peer *peer = &role->peer[i];
        uint64_t term = peer->asks_term;

        order->node = i;
        if (peer->probes_term != 0) {
            peer->probes_term = 0;
            order->what = ROLE_DO_HEARS;
            order->is_heard = role_hears(role, now_us);
            return true;
        }
        if (term != 0 && term < role->promising && RULE_HOLDS(ONCE)) {
            peer->asks_term = 0;
            order->what = ROLE_DO_REFUSE;
            order->term = role->promising;
            return true;
        }
        if (term != 0 && (term <= role->promised || !RULE_HOLDS(DURABLE))) {
            peer->asks_term = 0;
            order->what = ROLE_DO_ANSWER;
            order->term = term;
            order->seq = role->last;
            return true;
        }
    }
    return false;
}

static bool
etcd_next(struct role *role, struct role_order *order)
{
    if (role->is_sure_due) {
        role->is_sure_due = false;
        order->what = ROLE_DO_SURE;
        return true;
    }
    if (role->is_revoke_due) {
        role->is_revoke_due = false;
        order->what = ROLE_DO_REVOKE;
        return true;
    }
    if (role->is_look_due) {
        role->is_look_due = false;
        order->what = ROLE_DO_LOOK;
        return true;
    }
    return false;
}

static bool
state_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    if (role__leads(role)) {
        return role__primary_next(role, now_us, order);
    }
    if (role__is_candidate(role)) {
        return role__candidate_next(role, now_us, order);
    }
    return replica_next(role, now_us, order);
}

void
role_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    uint64_t wakes[2];

    memset(order, 0, sizeof *order);
    /* a state may move, and find what is due before it */
    for (int i = 0; i < ROLE_STATES_N; i++) {
        if (promise_next(role, order) || answer_next(role, now_us, order) ||
            etcd_next(role, order) || state_next(role, now_us, order)) {
            return;
        }
    }
    order->what = ROLE_DO_WAIT;
    order->until_us = now_us + ROLE_TURN_US;
    wakes[0] = role->next_us > role->rest_us ? role->next_us : role->rest_us;
    wakes[1] = role->lease_us;
    for (int i = 0; i < 2; i++) {
        if (wakes[i] > now_us && wakes[i] < order->until_us) {
            order->until_us = wakes[i];
        }
    }
}

const char *
role_word(const struct role *role)
{
    static const char *const word[] = {
#define X(name, said, text) [ROLE_##name] = said,
        ROLE_STATES(X)
#undef X
    };

    return word[role->state];
}

void
role_verify(const struct role *role)
{
    ASSERT(role->state < ROLE_STATES_N);
    ASSERT(role->promised <= role->promising);
    ASSERT(role->position <= role->last);
    ASSERT(role->state != ROLE_REPLICA || role->term == 0);
    ASSERT(role->state < ROLE_GATHERING || role->term != 0);
    ASSERT(role->term == 0 || role->term == role->promising);
    ASSERT(role->state == ROLE_HANDING || !role->is_hand_due);
    ASSERT(!role->is_forced || role__is_candidate(role));
    ASSERT(!role->is_alone || role->is_forced);
    if (role__leads(role)) {
        ASSERT(role->promised == role->term);
        ASSERT(role->first > 0);
        ASSERT(role->first <= role->last);
        ASSERT(role->committed == 0 || role->committed >= role->first);
        ASSERT(role->committed <= role->last);
        ASSERT(role->rule.is_changing ||
            (!role->is_set_sent && !role->is_set_open));
        ASSERT(role->follows == ROLE_NOBODY);
    } else {
        ASSERT(role->committed == 0);
        ASSERT(role->changes == ROLE_CHANGES_REFUSED);
    }
}
