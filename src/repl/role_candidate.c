/* SPDX-License-Identifier: BSD-3-Clause */
/* On the way to lead: ask the voters whether they hear a primary; take a term
 * from etcd, and with it who the voters are; have enough of them promise it;
 * get what the longest log of theirs has and this one has not; begin the term.
 * What fails is given up, with its lease, and another one may try. */
#include "repl/role_priv.h"

#include "base/assert.h"
#include "repl/role_rules.h"
#include "wal/seq.h"

static uint64_t
draw(struct role *role, uint64_t below)
{
    /* splitmix64 (Steele, Lea, Flood, 2014) */
    uint64_t z = role->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

/* How long this node lets others go first. */
static uint64_t
delay_us(struct role *role)
{
    const struct role_look *look = &role->look;
    unsigned self = role->config->self;
    uint64_t delay = draw(role, ROLE_DELAY_US);

    if (look->ordered == self) {
        return 0;
    }
    if (look->ordered != ROLE_NOBODY) {
        delay += ROLE_ORDERED_US;
    }
    if (!quorum_has(look->voters.nodes, self) || role->is_doubtful ||
        role->config->priority < 100) {
        delay += ROLE_LATER_US;
    }
    return delay;
}

static void
forget_answers(struct role *role)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        role->peer[i].has_answered = false;
    }
}

void
role__campaign(struct role *role, uint64_t now_us)
{
    const struct role_look *look = &role->look;
    bool is_free = role->has_looked &&
        (look->holder == ROLE_NOBODY || look->holder == role->config->self);

    ASSERT(role->state == ROLE_REPLICA);
    if (!is_free || role->is_take_open || !role->may_lead ||
        role->config->priority == 0 ||
        (role->config->copies > 0 && RULE_HOLDS(ASK_FIRST) &&
            role__hears(role, now_us))) {
        role->next_us = 0;
        return;
    }
    if (role->next_us == 0) {
        role->next_us = now_us + delay_us(role);
    }
    if (now_us >= role->next_us && now_us >= role->rest_us) {
        role->next_us = 0;
        forget_answers(role);
        role__move(role, ROLE_ASKING, now_us);
    }
}

void
role__give_up(struct role *role, uint64_t now_us)
{
    ASSERT(role__is_candidate(role));
    if (role->state != ROLE_ASKING) {
        role->is_revoke_due = true;
        role->is_look_due = true;
        role->rest_us = now_us + ROLE_REST_US / 2 + draw(role, ROLE_REST_US);
    }
    role->term = 0;
    role->lease_us = 0;
    role__move(role, ROLE_REPLICA, now_us);
}

/* Asks those who have not answered, once in a while. */
static bool
say_next(struct role *role, uint32_t nodes, enum role_what what,
    uint64_t now_us, struct role_order *order)
{
    if (now_us - role->said_us >= ROLE_ASKING_US) {
        role->said = 0;
        role->said_us = now_us;
    }
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (quorum_has(nodes & ~role->said, i) && i != role->config->self &&
            !role->peer[i].has_answered) {
            role->said |= quorum_bit(i);
            order->what = what;
            order->node = i;
            order->term = role->term;
            return true;
        }
    }
    return false;
}

/* True where no primary could be acknowledged by those who hear one. */
static bool
is_unheard(const struct role *role, uint64_t now_us)
{
    uint32_t deaf = 0;

    if (role->look.voters.nodes == 0 || role->config->copies == 0 ||
        !RULE_HOLDS(ASK_FIRST)) {
        return true;
    }
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (i == role->config->self
                ? !role__hears(role, now_us)
                : role->peer[i].has_answered && !role->peer[i].is_heard) {
            deaf |= quorum_bit(i);
        }
    }
    return quorum_may_lead(&role->look.voters, deaf, 0);
}

static bool
ask_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    if (is_unheard(role, now_us)) {
        role__move(role, ROLE_TAKING, now_us);
        return false;
    }
    if (now_us - role->since_us >= ROLE_CANDIDATE_US ||
        role__hears(role, now_us)) {
        role__give_up(role, now_us);
        return false;
    }
    return say_next(
        role, role->look.voters.nodes, ROLE_DO_PROBE, now_us, order);
}

static bool
take_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    uint64_t least;
    const struct role_config *config = role->config;
    const struct role_look *look = &role->look;

    if (role->is_ordered) {
        return false;
    }
    least = seq_next_term(role->last);
    if (least == 0) {
        role__give_up(role, now_us); /* there is no further term */
        return false;
    }
    role->is_ordered = role->is_take_open = true;
    order->what = ROLE_DO_TAKE;
    order->key_rev = look->holder == config->self ? look->key_rev : 0;
    order->term_rev = look->term_rev;
    order->term = least > role->promising ? least : role->promising + 1;
    order->voters.nodes = quorum_bit(config->self);
    order->voters.need = quorum_need(1, config->copies, config->least);
    return true;
}

void
role_took(struct role *role, enum role_answer answer,
    const struct role_look *look, uint64_t now_us)
{
    struct quorum_voters voters = role->look.voters;

    role->is_take_open = false;
    if (role->state != ROLE_TAKING) {
        role->is_revoke_due = answer != ROLE_NO; /* it was given up */
        return;
    }
    if (answer != ROLE_YES || look->term <= role->promising) {
        role__give_up(role, now_us);
        return;
    }
    ASSERT(look->holder == role->config->self);
    ASSERT(look->voters.nodes != 0);
    role->look = *look;
    role->term = look->term;
    role->rule = (struct quorum_rule){.now = look->voters};
    if (!RULE_HOLDS(TAKEN_VOTERS) && voters.nodes != 0) {
        role->rule.now = voters;
    }
    role->voters_rev = look->voters_rev;
    role->asked =
        role->config->copies > 0 ? role->rule.now.nodes : look->nodes;
    forget_answers(role);
    role__promise(role, role->term);
    role__move(role, ROLE_GATHERING, now_us);
}

void
role_told(struct role *role, unsigned node, bool is_heard, uint64_t now_us)
{
    (void)now_us;
    if (role->state == ROLE_ASKING) {
        role->peer[node].has_answered = !is_heard; /* else it is asked again */
        role->peer[node].is_heard = is_heard;
    }
}

void
role_answered(struct role *role, unsigned node, uint64_t term, uint64_t last,
    bool is_doubtful, uint64_t now_us)
{
    struct role_peer *peer = &role->peer[node];

    (void)now_us;
    if (role->state == ROLE_GATHERING && term == role->term) {
        peer->has_answered = true;
        peer->is_doubtful = is_doubtful;
        peer->last = last;
    }
}

/* True where enough have promised. */
static bool
is_enough(const struct role *role, uint64_t now_us)
{
    unsigned self = role->config->self;
    uint32_t sure = 0, doubtful = 0;

    if (role->promised < role->term && RULE_HOLDS(DURABLE)) {
        return false;
    }
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        const struct role_peer *peer = &role->peer[i];

        if (i != self && !peer->has_answered) {
            continue;
        }
        if (i == self ? role->is_doubtful : peer->is_doubtful) {
            doubtful |= quorum_bit(i);
        } else {
            sure |= quorum_bit(i);
        }
    }
    if (role->config->copies == 0) {
        return (role->asked & ~(sure | doubtful)) == 0 ||
            now_us - role->since_us >= ROLE_ALL_US;
    }
    return quorum_may_lead(&role->rule.now, sure, doubtful);
}

static bool
gather_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    uint64_t most = role->last;

    if (!is_enough(role, now_us)) {
        if (now_us - role->since_us >= ROLE_CANDIDATE_US) {
            role__give_up(role, now_us);
            return false;
        }
        return (role->promised >= role->term || !RULE_HOLDS(DURABLE)) &&
            say_next(role, role->asked, ROLE_DO_ASK, now_us, order);
    }
    role->source = ROLE_NOBODY;
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (role->peer[i].has_answered && role->peer[i].last > most &&
            RULE_HOLDS(LONGEST)) {
            role->source = i;
            most = role->peer[i].last;
        }
    }
    role__move(role,
        role->source == ROLE_NOBODY ? ROLE_BEGINNING : ROLE_FETCHING, now_us);
    return false;
}

static bool
order_once(struct role *role, enum role_what what, struct role_order *order)
{
    if (role->is_ordered) {
        return false;
    }
    role->is_ordered = true;
    order->what = what;
    order->node = role->source;
    order->term = role->term;
    return true;
}

void
role_fetched(struct role *role, uint64_t term, bool is_done, uint64_t now_us)
{
    if (role->state != ROLE_FETCHING || term != role->term) {
        return;
    }
    if (is_done && role->last >= role->peer[role->source].last) {
        role__move(role, ROLE_BEGINNING, now_us);
    } else {
        role__give_up(role, now_us);
    }
}

void
role_began(struct role *role, uint64_t term, uint64_t seq, uint64_t now_us)
{
    if (role->state == ROLE_BEGINNING && term == role->term) {
        if (seq != 0) {
            role__lead(role, seq, now_us);
        } else {
            role__give_up(role, now_us);
        }
    } else if (seq != 0) {
        role->is_cede_due = true; /* too late */
    }
}

bool
role__candidate_next(
    struct role *role, uint64_t now_us, struct role_order *order)
{
    switch (role->state) {
    case ROLE_ASKING:
        return ask_next(role, now_us, order) ||
            (role->state == ROLE_TAKING && take_next(role, now_us, order));
    case ROLE_TAKING:
        return take_next(role, now_us, order);
    case ROLE_GATHERING:
        return gather_next(role, now_us, order);
    case ROLE_FETCHING:
        if (now_us - role->since_us >= ROLE_CANDIDATE_US) {
            role__give_up(role, now_us);
            return false;
        }
        return order_once(role, ROLE_DO_FETCH, order);
    default:
        ASSERT(role->state == ROLE_BEGINNING);
        return order_once(role, ROLE_DO_BEGIN, order);
    }
}
