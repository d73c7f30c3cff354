/* SPDX-License-Identifier: BSD-3-Clause */
/* On the way to lead: ask the voters whether they hear a primary; take a term
 * from etcd, and with it who the voters are; have enough of them promise it;
 * get what the longest log of theirs has and this one has not; begin the term.
 * What fails is given up, with its lease, and another one may try.
 *
 * By force a node goes on with the promises that it gets. Then etcd has it as
 * the only voter before it leads, so that nobody who lacks what it acknowledges
 * can lead after it; the others become voters again one by one, when they have
 * all. What the voters of before acknowledge until they hear of the new term
 * is lost, and so is what they have and those who answered have not. */
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

static uint64_t
later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
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
        role->peer[i].is_heard = false;
    }
}

static bool
may_campaign(const struct role *role)
{
    const struct role_look *look = &role->look;

    return role->has_looked && role->may_lead && role->config->priority > 0 &&
        (look->holder == ROLE_NOBODY || look->holder == role->config->self);
}

void
role__campaign(struct role *role, uint64_t now_us)
{
    ASSERT(role->state == ROLE_REPLICA);
    if (!may_campaign(role) || role->is_take_open ||
        (role->config->copies > 0 && RULE_HOLDS(ASK_FIRST) &&
            role_hears(role, now_us))) {
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
    role->is_forced = role->is_alone = false;
    role__move(role, ROLE_REPLICA, now_us);
}

bool
role_force(struct role *role, uint64_t now_us)
{
    if (role__is_candidate(role)) {
        role->is_forced = true;
        return true;
    }
    if (role__leads(role) || !may_campaign(role) || role->is_take_open) {
        return false;
    }
    role->is_forced = true;
    role->next_us = 0;
    forget_answers(role);
    role__move(role, ROLE_ASKING, now_us);
    return true;
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
                ? !role_hears(role, now_us)
                : role->peer[i].has_answered && !role->peer[i].is_heard) {
            deaf |= quorum_bit(i);
        }
    }
    return quorum_may_lead(&role->look.voters, deaf, 0);
}

static bool
is_heard_by_any(const struct role *role)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (role->peer[i].is_heard) {
            return true;
        }
    }
    return false;
}

static bool
ask_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    bool is_late = now_us - role->since_us >= ROLE_CANDIDATE_US;

    if (is_unheard(role, now_us) ||
        (is_late && role->is_forced && !role_hears(role, now_us) &&
            !is_heard_by_any(role))) {
        role__move(role, ROLE_TAKING, now_us);
        return false;
    }
    if (is_late || role_hears(role, now_us)) {
        role__give_up(role, now_us);
        return false;
    }
    return say_next(
        role, role->look.voters.nodes, ROLE_DO_PROBE, now_us, order);
}

static struct quorum_voters
alone(const struct role *role)
{
    const struct role_config *config = role->config;

    return (struct quorum_voters){quorum_bit(config->self),
        quorum_need(1, config->copies, config->least)};
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
    order->term = later(least, later(role->promising, role->seen) + 1);
    order->voters = alone(role);
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
    if (role->is_forced) { /* the more the better */
        role->asked |= look->nodes;
    }
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

/* It has got all that it can get. */
static void
go_on(struct role *role, uint64_t now_us)
{
    role__move(role,
        role->is_alone && RULE_HOLDS(ALONE) ? ROLE_FORCING : ROLE_BEGINNING,
        now_us);
}

/* True where the length of a node's log says how much of what is committed it
 * has. By force that is the best that is known; else only voters have all up to
 * there: another node's log may end in a term that a forced one has passed
 * over. */
static bool
is_compared(const struct role *role, unsigned node)
{
    return role->config->copies == 0 || role->is_alone ||
        quorum_has(role->rule.now.nodes, node) || !RULE_HOLDS(OF_VOTERS);
}

/* Who has what this node may not have; ROLE_NOBODY: nobody. A log that is not
 * compared has all that the longest voter's has, or the fetch finds that it
 * has not. */
static unsigned
find_source(const struct role *role)
{
    unsigned source = ROLE_NOBODY;
    uint64_t most = is_compared(role, role->config->self) ? role->last : 0;

    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        const struct role_peer *peer = &role->peer[i];

        if (peer->has_answered && is_compared(role, i) && peer->last > most &&
            RULE_HOLDS(LONGEST)) {
            source = i;
            most = peer->last;
        }
    }
    return most == role->last ? ROLE_NOBODY : source;
}

static bool
gather_next(struct role *role, uint64_t now_us, struct role_order *order)
{
    if (!is_enough(role, now_us)) {
        bool is_durable = role->promised >= role->term || !RULE_HOLDS(DURABLE);

        if (now_us - role->since_us < ROLE_CANDIDATE_US) {
            return is_durable &&
                say_next(role, role->asked, ROLE_DO_ASK, now_us, order);
        }
        if (!role->is_forced || !is_durable) {
            role__give_up(role, now_us);
            return false;
        }
        role->is_alone = true;
        role->rule.now = alone(role);
    }
    role->source = find_source(role);
    if (role->source == ROLE_NOBODY) {
        go_on(role, now_us);
    } else {
        role__move(role, ROLE_FETCHING, now_us);
    }
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
    order->is_forced = role->is_alone;
    return true;
}

static bool
force_next(struct role *role, struct role_order *order)
{
    order->voters = role->rule.now;
    order->voters_rev = role->voters_rev;
    return order_once(role, ROLE_DO_SET, order);
}

void
role__forced(struct role *role, enum role_answer answer, uint64_t revision,
    uint64_t now_us)
{
    ASSERT(role->state == ROLE_FORCING);
    if (answer == ROLE_YES) {
        role->voters_rev = revision;
        role__move(role, ROLE_BEGINNING, now_us);
    } else { /* should it be done yet, this node is to lead all the same */
        role__give_up(role, now_us);
    }
}

void
role_fetched(struct role *role, uint64_t term, bool is_done, uint64_t now_us)
{
    if (role->state != ROLE_FETCHING || term != role->term) {
        return;
    }
    if (is_done && role->last >= role->peer[role->source].last) {
        go_on(role, now_us);
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
    case ROLE_FORCING:
        return force_next(role, order);
    default:
        ASSERT(role->state == ROLE_BEGINNING);
        return order_once(role, ROLE_DO_BEGIN, order);
    }
}
