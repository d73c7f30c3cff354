/* SPDX-License-Identifier: BSD-3-Clause */
/* What etcd's answers do to the agent; see etcd/agent.c. */
#include "base/assert.h"
#include "etcd/agent_priv.h"
#include "etcd/keys.h"

#include <stdio.h>
#include <string.h>

static void
keep(struct agent_lease *lease, uint64_t id, uint64_t deadline_ns,
    uint64_t alive_at_ns)
{
    *lease = (struct agent_lease){
        .id = id, .deadline_ns = deadline_ns, .alive_at_ns = alive_at_ns};
}

/* text[0..len): what the transport says. */
static void
set_why(char why[CONTROL_WHY_MAX + 1], const char *what, const char *text,
    size_t len)
{
    char line[CONTROL_WHY_MAX + 1];
    (void)snprintf(line, sizeof line, "%s%s%.*s", what, len > 0 ? ": " : "",
        (int)len, text);
    agent__set_why(why, line);
}

/* How a change came out. */
static enum control_outcome
outcome_of(const struct agent *agent, enum transport_outcome outcome,
    const char *text, size_t len, struct control_result *found)
{
    bool is_done = false;
    *found = (struct control_result){0};
    switch (outcome) {
    case TRANSPORT_ANSWER:
        if (!keys_read_change(agent->config.prefix, text, len, &is_done,
                &found->revision, &found->voters)) {
            agent__set_why(found->why, "an answer that is none of etcd's");
            return CONTROL_UNKNOWN;
        }
        agent__set_why(found->why, is_done ? "" : "it is not as it was seen");
        return is_done ? CONTROL_YES : CONTROL_NO;
    case TRANSPORT_ERROR:
        return keys_is_refusal(text, len, found->why) ? CONTROL_NO
                                                      : CONTROL_UNKNOWN;
    case TRANSPORT_UNSENT:
        set_why(found->why, "no etcd can be asked", text, len);
        return CONTROL_NO;
    default:
        set_why(found->why, "etcd does not answer", text, len);
        return CONTROL_UNKNOWN;
    }
}

static void
say_change(struct agent *agent, enum control_ask ask,
    enum control_outcome outcome, const struct control_result *found)
{
    struct control_result *result =
        agent__add_result(agent, ask, outcome, found->why);
    result->revision = found->revision;
    result->voters = found->voters;
}

/* Of KEEP, too. Where it is not known what became of it, the key may have been
 * replaced, and a lease of before cannot be relied on. */
static void
on_take(struct agent *agent, enum control_outcome outcome,
    struct control_result *found, uint64_t now_ns)
{
    if (outcome == CONTROL_YES && (agent->is_ended || agent->is_giving_up)) {
        outcome = CONTROL_UNKNOWN;
        *found = (struct control_result){0};
        agent__set_why(found->why, "it is given up meanwhile");
    }
    if (outcome == CONTROL_YES) {
        agent__end_lease(agent, agent->primary.id, now_ns);
        keep(&agent->primary, agent->taking, agent->taking_deadline_ns,
            agent__after_ms(agent->sent_ns[AGENT_TAKE_GRANT],
                agent__ttl_ms(agent) / AGENT__ALIVE_PARTS));
        agent->primary_revision = found->revision;
    } else {
        agent__end_lease(agent, agent->taking, now_ns);
        if (outcome == CONTROL_UNKNOWN && agent->primary.id != 0) {
            agent__drop_primary(
                agent, "its key may have been replaced", now_ns);
        }
    }
    agent->taking = 0;
    say_change(agent, agent->take.ask, outcome, found);
}

static void
on_hand(struct agent *agent, enum control_outcome outcome,
    const struct control_result *found, uint64_t now_ns)
{
    agent__end_lease(agent, agent->handing, now_ns);
    agent->handing = 0;
    say_change(agent, CONTROL_HAND, outcome, found);
}

static void
on_node(struct agent *agent, enum control_outcome outcome,
    const struct control_result *found, const char *text, size_t len,
    uint64_t now_ns)
{
    if (outcome == CONTROL_NO && keys_is_no_lease(text, len)) {
        agent__lose_node(agent);
    }
    if (agent->is_to_be_replaced) { /* the next one has the result */
        agent->is_to_be_replaced = false;
        return;
    }
    if (outcome != CONTROL_YES) {
        agent->is_node_due = agent->has_said;
        agent->node_at_ns = agent__after_ms(now_ns, AGENT_RETRY_MS);
    }
    say_change(agent, CONTROL_NODE, outcome, found);
}

static void
on_change(struct agent *agent, enum agent_call call,
    enum transport_outcome how, const char *text, size_t len, uint64_t now_ns)
{
    struct control_result found;
    enum control_outcome outcome = outcome_of(agent, how, text, len, &found);
    switch (call) {
    case AGENT_TAKE:
        on_take(agent, outcome, &found, now_ns);
        break;
    case AGENT_HAND:
        on_hand(agent, outcome, &found, now_ns);
        break;
    case AGENT_NODE:
        on_node(agent, outcome, &found, text, len, now_ns);
        break;
    case AGENT_VOTERS:
        say_change(agent, CONTROL_VOTERS, outcome, &found);
        break;
    case AGENT_EPOCH:
        say_change(agent, CONTROL_EPOCH, outcome, &found);
        break;
    default:
        ASSERT(call == AGENT_ORDER);
        say_change(agent, CONTROL_ORDER, outcome, &found);
        break;
    }
}

static void
on_take_grant(struct agent *agent, uint64_t lease, uint64_t now_ns)
{
    if (lease == 0) { /* one that was granted all the same ends by itself */
        (void)agent__add_result(
            agent, agent->take.ask, CONTROL_NO, "etcd grants no lease");
        return;
    }
    if (agent->is_ended || agent->is_giving_up) {
        agent__end_lease(agent, lease, now_ns);
        (void)agent__add_result(
            agent, agent->take.ask, CONTROL_NO, "it is given up meanwhile");
        return;
    }
    agent->taking = lease;
    agent->taking_deadline_ns =
        agent__deadline_of(agent, agent->sent_ns[AGENT_TAKE_GRANT]);
    agent__post(agent, AGENT_TAKE, lease,
        keys_change(agent->config.prefix, &agent->take, lease), now_ns);
}

static void
on_node_grant(struct agent *agent, uint64_t lease, uint64_t now_ns)
{
    if (lease == 0) {
        agent->node_at_ns = agent__after_ms(now_ns, AGENT_RETRY_MS);
        (void)agent__add_result(
            agent, CONTROL_NODE, CONTROL_NO, "etcd grants no lease");
    } else if (agent->is_ended) {
        agent__end_lease(agent, lease, now_ns);
    } else {
        uint64_t sent_ns = agent->sent_ns[AGENT_NODE_GRANT];
        keep(&agent->node, lease, agent__deadline_of(agent, sent_ns),
            agent__after_ms(
                sent_ns, agent__ttl_ms(agent) / AGENT__ALIVE_PARTS));
    }
}

/* A lease that was asked for again; true where it is over. */
static bool
on_alive(struct agent *agent, struct agent_lease *lease, enum agent_call call,
    enum transport_outcome how, const char *text, size_t len, uint64_t now_ns)
{
    uint32_t ttl_s = 0;
    if (lease->id == 0 || lease->id != agent->lease[call]) {
        return false; /* it is another one by now */
    }
    if (how == TRANSPORT_ERROR && keys_is_no_lease(text, len)) {
        return true;
    }
    if (how != TRANSPORT_ANSWER || !keys_read_alive(text, len, &ttl_s)) {
        lease->alive_at_ns = agent__after_ms(now_ns, AGENT_RETRY_MS);
        return false;
    }
    if (ttl_s == 0) {
        return true;
    }
    uint64_t sent_ns = agent->sent_ns[call];
    keep(lease, lease->id, agent__deadline_of(agent, sent_ns),
        agent__after_ms(sent_ns, agent__ttl_ms(agent) / AGENT__ALIVE_PARTS));
    return false;
}

void
agent__forget_ending(struct agent *agent, uint64_t id, bool is_over)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < agent->n_ending; i++) {
        if (agent->ending[i].id != id) {
            agent->ending[kept++] = agent->ending[i];
        }
    }
    agent->n_ending = kept;
    agent->is_give_up_unsure = agent->is_give_up_unsure || !is_over;
}

static void
on_revoke(struct agent *agent, enum transport_outcome how, const char *text,
    size_t len, uint64_t now_ns)
{
    if (how == TRANSPORT_ANSWER ||
        (how == TRANSPORT_ERROR && keys_is_no_lease(text, len))) {
        agent__forget_ending(agent, agent->lease[AGENT_REVOKE], true);
    } else {
        agent->revoke_at_ns = agent__after_ms(now_ns, AGENT_RETRY_MS);
    }
}

static void
on_unreachable(struct agent *agent, const char *why, uint64_t now_ns)
{
    agent->look_at_ns = agent__after_ms(now_ns, AGENT_RETRY_MS);
    agent__set_why(agent->why, why);
    agent->is_reachable = false;
    if (agent->is_under_way[AGENT_WATCH]) {
        agent->is_under_way[AGENT_WATCH] = false;
        agent->transport->calls->cancel(agent->transport, AGENT_WATCH);
    }
}

/* Nothing but the moment of the look is another. */
static bool
is_same(const struct control_state *a, const struct control_state *b)
{
    const size_t from = offsetof(struct control_state, term_revision);
    return memcmp((const char *)a + from, (const char *)b + from,
               sizeof *a - from) == 0;
}

/* Somebody may have taken the key away by hand: no lease helps then. */
static void
look_at_key(struct agent *agent, uint64_t now_ns)
{
    const struct control_state *state = &agent->state;
    if (agent->primary.id != 0 && !agent__is_taking(agent) &&
        state->revision >= agent->primary_revision &&
        state->primary.revision != agent->primary_revision) {
        agent__drop_primary(agent, "its key is not there any more", now_ns);
    }
}

static void
on_look(struct agent *agent, enum transport_outcome how, const char *text,
    size_t len, uint64_t now_ns)
{
    static struct control_state state;
    char why[CONTROL_WHY_MAX + 1];
    if (how == TRANSPORT_ERROR) {
        (void)keys_is_refusal(text, len, why);
        on_unreachable(agent, why, now_ns);
        return;
    }
    if (how != TRANSPORT_ANSWER) {
        set_why(why, "etcd does not answer", text, len);
        on_unreachable(agent, why, now_ns);
        return;
    }
    if (!keys_read_state(agent->config.prefix, text, len, &state, why)) {
        on_unreachable(agent, why, now_ns);
        return;
    }
    if (state.revision < agent->state.revision) { /* a look of before */
        on_unreachable(agent, "etcd shows what was before", now_ns);
        return;
    }
    agent->look_at_ns = agent__after_ms(now_ns, AGENT_LOOK_MS);
    agent->is_state_due = agent->is_state_due || !agent->is_reachable ||
        agent->is_unreachable_said || agent->is_look_to_be_said ||
        !is_same(&state, &agent->state);
    agent->is_reachable = true;
    agent->is_look_to_be_said = false;
    memcpy(&agent->state, &state, sizeof state);
    look_at_key(agent, now_ns);
    if (!agent->is_under_way[AGENT_WATCH]) {
        agent__post(agent, AGENT_WATCH, 0,
            keys_watch(agent->config.prefix, state.revision + 1), now_ns);
    }
}

/* Not at once: a watch that ends each time would have it look all the time. */
static void
look_soon(struct agent *agent, uint64_t now_ns)
{
    uint64_t at_ns = agent__after_ms(now_ns, AGENT_RETRY_MS);
    agent->look_at_ns = at_ns < agent->look_at_ns ? at_ns : agent->look_at_ns;
}

void
agent_answered(struct agent *agent, enum agent_call call,
    enum transport_outcome outcome, const char *text, size_t len,
    uint64_t now_ns)
{
    ASSERT(agent->magic == AGENT_MAGIC && call < AGENT_CALLS_N);
    uint64_t lease = 0;
    agent->is_under_way[call] = false;
    switch (call) {
    case AGENT_LOOK:
        on_look(agent, outcome, text, len, now_ns);
        break;
    case AGENT_WATCH:
        look_soon(agent, now_ns);
        break;
    case AGENT_TAKE_GRANT:
    case AGENT_NODE_GRANT:
        lease =
            outcome == TRANSPORT_ANSWER && keys_read_grant(text, len, &lease)
            ? lease
            : 0;
        (call == AGENT_TAKE_GRANT ? on_take_grant : on_node_grant)(
            agent, lease, now_ns);
        break;
    case AGENT_PRIMARY_ALIVE:
        if (on_alive(
                agent, &agent->primary, call, outcome, text, len, now_ns)) {
            agent__lose_primary(agent, "etcd has ended the lease");
        }
        break;
    case AGENT_NODE_ALIVE:
        if (on_alive(agent, &agent->node, call, outcome, text, len, now_ns)) {
            agent__lose_node(agent);
        }
        break;
    case AGENT_REVOKE:
        on_revoke(agent, outcome, text, len, now_ns);
        break;
    default:
        on_change(agent, call, outcome, text, len, now_ns);
        break;
    }
    agent__settle_give_up(agent);
}

void
agent_watched(
    struct agent *agent, const char *text, size_t len, uint64_t now_ns)
{
    switch (keys_read_watch(text, len)) {
    case KEYS_WATCHED_CHANGE:
        agent->is_look_due = true;
        break;
    case KEYS_WATCHED_END:
        look_soon(agent, now_ns);
        agent->is_under_way[AGENT_WATCH] = false;
        agent->transport->calls->cancel(agent->transport, AGENT_WATCH);
        break;
    case KEYS_WATCHED_NOTHING:
        break;
    }
}
