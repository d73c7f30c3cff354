/* SPDX-License-Identifier: BSD-3-Clause */
/* What a lease goes through:
 *
 *   the primary's: TAKE or KEEP asked, a lease is granted, the transaction
 *   puts the key with it. YES: it is kept alive, and the one before it ended.
 *   NO or unknown: it is ended, so that a transaction that comes late finds no
 *   lease and does nothing. HAND: it is neither kept alive nor relied upon from
 *   then on, and ended when the transaction is over, however that came out.
 *   the node's: granted at the first NODE; where it is lost, a new one, and the
 *   node's key is put again.
 *
 * The deadline of a lease is counted from before it was asked for, so it is
 * over here before it is over in etcd. It is asked for again each third of it,
 * but only while the node beats; a node that does not for hang_ms has lost it.
 *
 * Looks: one at the start; then a watch from the revision behind it; each
 * change, and each end of the watch, is a look again. Beside that one a second,
 * since a watch on a server that stands still says nothing.
 *
 * A change is sent once and never again. Whether etcd has refused it is told by
 * its own error (keys_is_refusal); everything else is unknown. */
#include "etcd/agent.h"

#include "base/assert.h"
#include "etcd/agent_priv.h"
#include "etcd/keys.h"

#include <stdio.h>
#include <string.h>

static const char *const paths[AGENT_CALLS_N] = {
#define X(name, path) [AGENT_##name] = (path),
    AGENT_CALLS(X)
#undef X
};

uint64_t
agent__after_ms(uint64_t now_ns, uint64_t ms)
{
    return now_ns + ms * AGENT__NS_PER_MS;
}

uint64_t
agent__ttl_ms(const struct agent *agent)
{
    return (uint64_t)agent->config.ttl_s * AGENT__MS_PER_S;
}

uint64_t
agent__deadline_of(const struct agent *agent, uint64_t sent_ns)
{
    uint64_t ttl = agent__ttl_ms(agent);
    uint64_t margin = ttl / 10;
    margin = margin > AGENT_MARGIN_MS ? margin : AGENT_MARGIN_MS;
    return agent__after_ms(sent_ns, ttl - margin);
}

/* ---- what is said ---- */

static struct control_event *
add_event(struct agent *agent, enum control_say what)
{
    ASSERT(agent->n_events < AGENT_EVENTS_MAX);
    struct control_event *event = &agent->event[agent->n_events++];
    memset(event, 0, sizeof *event);
    event->say = what;
    return event;
}

void
agent__set_why(char why[CONTROL_WHY_MAX + 1], const char *text)
{
    size_t len = 0;
    for (; text[len] != '\0' && len < CONTROL_WHY_MAX; len++) {
        why[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    }
    why[len] = '\0';
}

/* The result of what is asked, if one is due. */
struct control_result *
agent__add_result(struct agent *agent, enum control_ask ask,
    enum control_outcome outcome, const char *why)
{
    static struct control_result nobody;
    if (!agent->is_asked[ask]) {
        return &nobody;
    }
    agent->is_asked[ask] = false;
    struct control_result *result =
        &add_event(agent, CONTROL_SAY_RESULT)->of.result;
    result->number = agent->number[ask];
    result->outcome = outcome;
    agent__set_why(result->why, why);
    agent->is_to_be_said = agent->is_to_be_said || outcome != CONTROL_YES;
    agent->is_look_due = true;
    return result;
}

/* ---- calls ---- */

void
agent__post(struct agent *agent, enum agent_call call, uint64_t lease,
    char *body, uint64_t now_ns)
{
    struct transport_post what = {.call = call,
        .path = paths[call],
        .body = body,
        .is_change = call >= AGENT_TAKE,
        .is_stream = call == AGENT_WATCH};
    ASSERT(!agent->is_under_way[call]);
    agent->sent_ns[call] = now_ns;
    agent->lease[call] = lease;
    if (body == NULL) { /* memory is out: as where nobody listens */
        agent_answered(agent, call, TRANSPORT_UNSENT, "", 0, now_ns);
        return;
    }
    agent->is_under_way[call] = true;
    agent->transport->calls->post(agent->transport, &what);
}

void
agent__end_lease(struct agent *agent, uint64_t id, uint64_t now_ns)
{
    if (id == 0) {
        return;
    }
    agent->revoke_at_ns = now_ns;
    if (agent->n_ending == AGENT_ENDING_MAX) { /* the oldest ends by itself */
        agent__forget_ending(agent, agent->ending[0].id, false);
    }
    agent->ending[agent->n_ending++] = (struct agent_ending){
        .id = id, .until_ns = agent__after_ms(now_ns, agent__ttl_ms(agent))};
}

void
agent__lose_primary(struct agent *agent, const char *why)
{
    agent->primary = (struct agent_lease){0};
    agent__set_why(add_event(agent, CONTROL_SAY_LOST)->of.why, why);
}

void
agent__drop_primary(struct agent *agent, const char *why, uint64_t now_ns)
{
    agent__end_lease(agent, agent->primary.id, now_ns);
    agent__lose_primary(agent, why);
}

void
agent__lose_node(struct agent *agent)
{
    agent->node = (struct agent_lease){0};
    agent->is_node_due = agent->has_said;
}

/* ---- the node's side ---- */

void
agent_init(struct agent *agent, const struct agent_config *config,
    struct transport *transport, uint64_t now_ns)
{
    ASSERT(config->ttl_s >= AGENT_TTL_MIN_S &&
        config->ttl_s <= AGENT_TTL_MAX_S && config->hang_ms > 0);
    memset(agent, 0, sizeof *agent); /* padding too: states are compared */
    agent->magic = AGENT_MAGIC;
    agent->config = *config;
    agent->transport = transport;
    agent->beat_ns = now_ns;
    agent->is_look_due = agent->is_to_be_said = true;
    agent->is_reachable = true;
}

bool
agent__is_taking(const struct agent *agent)
{
    return agent->taking != 0 || agent->is_under_way[AGENT_TAKE_GRANT];
}

/* Of KEEP, too. */
static void
ask_take(struct agent *agent, const struct control_request *request,
    uint64_t now_ns)
{
    if (agent__is_taking(agent) || agent->handing != 0 ||
        agent->is_giving_up) {
        (void)agent__add_result(
            agent, request->ask, CONTROL_NO, "another one is under way");
        return;
    }
    agent->take = *request;
    agent__post(
        agent, AGENT_TAKE_GRANT, 0, keys_grant(agent->config.ttl_s), now_ns);
}

static void
ask_hand(struct agent *agent, const struct control_request *request,
    uint64_t now_ns)
{
    if (agent->primary.id == 0 || agent__is_taking(agent)) {
        (void)agent__add_result(agent, CONTROL_HAND, CONTROL_NO,
            agent->primary.id == 0 ? "there is no key to hand over"
                                   : "another one is under way");
        return;
    }
    agent->handing = agent->primary.id;
    agent->primary = (struct agent_lease){0};
    agent__post(agent, AGENT_HAND, agent->handing,
        keys_hand(agent->config.prefix, &request->of.hand.to,
            agent->primary_revision),
        now_ns);
}

static void
ask_give_up(struct agent *agent, uint64_t now_ns)
{
    agent->is_giving_up = true;
    agent->is_give_up_unsure = false;
    agent__end_lease(agent, agent->primary.id, now_ns);
    agent->primary = (struct agent_lease){0};
    agent__settle_give_up(agent);
}

void
agent__settle_give_up(struct agent *agent)
{
    if (agent->is_giving_up && agent->n_ending == 0 &&
        !agent__is_taking(agent) && agent->handing == 0) {
        bool is_sure = !agent->is_give_up_unsure;
        agent->is_giving_up = false;
        (void)agent__add_result(agent, CONTROL_GIVE_UP,
            is_sure ? CONTROL_YES : CONTROL_UNKNOWN,
            is_sure ? "" : "etcd does not answer");
    }
}

static void
ask_node(struct agent *agent, const struct control_request *request)
{
    agent->said = *request;
    agent->has_said = true;
    agent->is_node_due = true;
    agent->node_at_ns = 0;
    agent->is_look_due = agent->is_to_be_said = true; /* it may be a new one */
}

/* What is one transaction, and its call. */
static void
ask_change(struct agent *agent, const struct control_request *request,
    enum agent_call call, uint64_t now_ns)
{
    agent__post(
        agent, call, 0, keys_change(agent->config.prefix, request, 0), now_ns);
}

void
agent_ask(struct agent *agent, const struct control_request *request,
    uint64_t now_ns, struct control_beat *beat_back)
{
    ASSERT(agent->magic == AGENT_MAGIC && !agent->is_ended);
    agent->beat_ns = now_ns;
    if (request->ask == CONTROL_BEAT) {
        *beat_back = (struct control_beat){.number = request->number,
            .deadline_ns = agent->primary.deadline_ns};
        return;
    }
    if (agent->is_asked[request->ask] && request->ask == CONTROL_NODE) {
        agent->is_to_be_replaced = agent->is_under_way[AGENT_NODE];
        (void)agent__add_result(
            agent, CONTROL_NODE, CONTROL_UNKNOWN, "another one is said");
    } else if (agent->is_asked[request->ask]) {
        ASSERT(!agent_has_events(agent));
        struct control_result *result =
            &add_event(agent, CONTROL_SAY_RESULT)->of.result;
        result->number = request->number;
        result->outcome = CONTROL_NO;
        agent__set_why(result->why, "another one is under way");
        return;
    }
    agent->is_asked[request->ask] = true;
    agent->number[request->ask] = request->number;
    switch (request->ask) {
    case CONTROL_TAKE:
    case CONTROL_KEEP:
        ask_take(agent, request, now_ns);
        break;
    case CONTROL_HAND:
        ask_hand(agent, request, now_ns);
        break;
    case CONTROL_GIVE_UP:
        ask_give_up(agent, now_ns);
        break;
    case CONTROL_NODE:
        ask_node(agent, request);
        break;
    case CONTROL_VOTERS:
        ask_change(agent, request, AGENT_VOTERS, now_ns);
        break;
    case CONTROL_EPOCH:
        ask_change(agent, request, AGENT_EPOCH, now_ns);
        break;
    default:
        ASSERT(request->ask == CONTROL_ORDER);
        ask_change(agent, request, AGENT_ORDER, now_ns);
        break;
    }
}

void
agent_end(struct agent *agent, uint64_t now_ns)
{
    agent->is_ended = true;
    agent__end_lease(agent, agent->primary.id, now_ns);
    agent__end_lease(agent, agent->node.id, now_ns);
    agent->primary = (struct agent_lease){0};
    agent->node = (struct agent_lease){0};
    agent->has_said = agent->is_node_due = false;
}

bool
agent_is_through(const struct agent *agent)
{
    return agent->is_ended && agent->n_ending == 0 &&
        !agent__is_taking(agent) && agent->handing == 0 &&
        !agent->is_under_way[AGENT_NODE_GRANT];
}

/* ---- turns ---- */

static void
earlier(uint64_t *wake_ns, uint64_t at_ns)
{
    *wake_ns = at_ns < *wake_ns ? at_ns : *wake_ns;
}

static void
turn_lease(struct agent *agent, const struct agent_lease *lease,
    enum agent_call call, uint64_t now_ns, uint64_t *wake_ns)
{
    if (lease->id == 0 || agent->is_under_way[call]) {
        return;
    }
    if (now_ns < lease->alive_at_ns) {
        earlier(wake_ns, lease->alive_at_ns);
    } else {
        agent__post(agent, call, lease->id, keys_lease(lease->id), now_ns);
    }
}

static void
turn_leases(struct agent *agent, uint64_t now_ns, uint64_t *wake_ns)
{
    uint64_t hang_ns = agent__after_ms(agent->beat_ns, agent->config.hang_ms);
    if (now_ns < hang_ns) {
        turn_lease(
            agent, &agent->primary, AGENT_PRIMARY_ALIVE, now_ns, wake_ns);
        turn_lease(agent, &agent->node, AGENT_NODE_ALIVE, now_ns, wake_ns);
        earlier(wake_ns, hang_ns);
    } else if (agent->primary.id != 0) {
        agent__drop_primary(agent, "the server does not beat", now_ns);
    }
}

static void
turn_endings(struct agent *agent, uint64_t now_ns, uint64_t *wake_ns)
{
    while (agent->n_ending > 0 && !agent->is_under_way[AGENT_REVOKE] &&
        now_ns >= agent->ending[0].until_ns) {
        agent__forget_ending(agent, agent->ending[0].id, false);
    }
    if (agent->n_ending == 0 || agent->is_under_way[AGENT_REVOKE]) {
        return;
    }
    if (now_ns >= agent->revoke_at_ns) {
        uint64_t id = agent->ending[0].id;
        agent__post(agent, AGENT_REVOKE, id, keys_lease(id), now_ns);
    } else {
        earlier(wake_ns, agent->revoke_at_ns);
    }
}

static void
turn_node(struct agent *agent, uint64_t now_ns, uint64_t *wake_ns)
{
    if (!agent->is_node_due || agent->is_under_way[AGENT_NODE] ||
        agent->is_under_way[AGENT_NODE_GRANT]) {
        return;
    }
    if (now_ns < agent->node_at_ns) {
        earlier(wake_ns, agent->node_at_ns);
    } else if (agent->node.id == 0) {
        agent__post(agent, AGENT_NODE_GRANT, 0,
            keys_grant(agent->config.ttl_s), now_ns);
    } else {
        agent->is_node_due = false;
        agent__post(agent, AGENT_NODE, agent->node.id,
            keys_change(agent->config.prefix, &agent->said, agent->node.id),
            now_ns);
    }
}

static void
turn_look(struct agent *agent, uint64_t now_ns, uint64_t *wake_ns)
{
    if (agent->is_under_way[AGENT_LOOK]) {
        return;
    }
    if ((agent->is_look_due && agent->is_reachable) ||
        now_ns >= agent->look_at_ns) {
        agent->is_look_due = false;
        agent->is_look_to_be_said = agent->is_to_be_said;
        agent->is_to_be_said = false;
        agent__post(
            agent, AGENT_LOOK, 0, keys_range(agent->config.prefix), now_ns);
    } else {
        earlier(wake_ns, agent->look_at_ns);
    }
}

uint64_t
agent_turn(struct agent *agent, uint64_t now_ns)
{
    uint64_t wake_ns = agent__after_ms(now_ns, AGENT_LOOK_MS);
    ASSERT(agent->magic == AGENT_MAGIC);
    turn_endings(agent, now_ns, &wake_ns);
    if (!agent->is_ended) {
        turn_leases(agent, now_ns, &wake_ns);
        turn_endings(agent, now_ns, &wake_ns);
        turn_node(agent, now_ns, &wake_ns);
        turn_look(agent, now_ns, &wake_ns);
    }
    agent__settle_give_up(agent); /* a lease was left to end by itself */
    return wake_ns;
}

/* ---- what the node hears ---- */

const struct control_event *
agent_event(struct agent *agent, struct control_event *room)
{
    if (agent->n_events > 0) {
        return &agent->event[0];
    }
    if (!agent->is_reachable && !agent->is_unreachable_said) {
        memset(room, 0, sizeof *room);
        room->say = CONTROL_SAY_UNREACHABLE;
        agent__set_why(room->of.why, agent->why);
        return room;
    }
    if (agent->is_reachable && agent->is_state_due) {
        memset(room, 0, sizeof *room);
        room->say = CONTROL_SAY_STATE;
        room->of.state = agent->state;
        return room;
    }
    return NULL;
}

void
agent_heard(struct agent *agent, const struct control_event *event)
{
    if (event == &agent->event[0]) {
        agent->n_events--;
        memmove(agent->event, agent->event + 1,
            agent->n_events * sizeof agent->event[0]);
    } else if (event->say == CONTROL_SAY_STATE) {
        agent->is_state_due = agent->is_unreachable_said = false;
    } else {
        agent->is_unreachable_said = true;
    }
}
