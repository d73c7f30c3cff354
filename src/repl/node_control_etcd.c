/* SPDX-License-Identifier: BSD-3-Clause */
/* Between a node and who speaks with etcd for it (repl/control.h): orders
 * become requests, at most one of a kind at a time; results and states become
 * what the machine hears.
 *
 * A TAKE waits for the end of a GIVE_UP: that would end it, too. A GIVE_UP
 * waits for the end of a HAND, and is asked for until it was heard: a lease
 * that nobody wants is kept alive for as long as this node beats.
 *
 * What can go wrong: results that do not come, since who speaks with etcd is
 * gone: all are unknown then, and this node takes no term any more. */
#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "repl/node_control_priv.h"
#include "repl/node_priv.h"
#include "wal/entry.h"

#include <stdio.h>
#include <string.h>

static enum role_answer
answer_of(const struct control_result *result)
{
    static const enum role_answer answers[] = {[CONTROL_YES] = ROLE_YES,
        [CONTROL_NO] = ROLE_NO,
        [CONTROL_UNKNOWN] = ROLE_UNKNOWN};

    return answers[result->outcome];
}

static struct node_control_ask *
ask_of(struct node *node, enum control_ask ask)
{
    return &node->control.ask[ask];
}

/* ---- what is asked ---- */

/* False: it could not be asked, and is not done. */
static bool
ask(struct node *node, struct control_request *request, uint64_t term)
{
    struct node_control *control = &node->control;
    struct node_control_ask *it = ask_of(node, request->ask);

    request->number = ++control->number;
    if (it->is_open || !control_ask(&control->pair.control, request)) {
        return false;
    }
    if (request->ask != CONTROL_BEAT) {
        *it = (struct node_control_ask){.is_open = true,
            .number = request->number,
            .term = term,
            .sent_us = control->now_us};
    }
    return true;
}

static void
copy_address(struct control_address *out, const char *text)
{
    _Static_assert((int)NODE_ADDRESS_MAX <= (int)CONTROL_ADDRESS_MAX,
        "etcd has room for an address");
    memset(out, 0, sizeof *out);
    memcpy(out->text, text, strlen(text));
}

static struct control_primary
key_of(const struct node *node)
{
    struct control_primary key = {
        .node = node->config.name, .boot = node->control.boot};

    copy_address(&key.client, node->config.client);
    copy_address(&key.repl, node->config.repl);
    return key;
}

/* What an order of etcd comes to that could not be asked. */
static void
fail(struct node *node, const struct role_order *order)
{
    struct role *role = &node->control.role;
    uint64_t now_us = control__now(node);

    switch (order->what) {
    case ROLE_DO_TAKE:
        role_took(role, ROLE_NO, NULL, now_us);
        break;
    case ROLE_DO_KEEP:
        role_kept(role, order->term, ROLE_UNKNOWN, now_us);
        break;
    case ROLE_DO_SET: /* so that it is said again */
        role_set(role, order->term, ROLE_UNKNOWN, 0, now_us);
        break;
    default:
        ASSERT(order->what == ROLE_DO_HAND);
        control__end_handing(node, ERR_NOT_HANDED,
            "this node leads no more, but etcd cannot be asked who is next");
    }
}

static void
ask_or_fail(struct node *node, const struct role_order *order)
{
    struct control_primary key = key_of(node);
    struct control_request request;

    if (!roster_request(&node->control.roster, order, &key,
            node->control.role.look.term, &request) ||
        !ask(node, &request,
            order->what == ROLE_DO_TAKE ? request.of.take.primary.term
                                        : order->term)) {
        fail(node, order);
    }
}

void
control__ask_etcd(struct node *node, const struct role_order *order)
{
    struct node_control *control = &node->control;

    if (order->what == ROLE_DO_REVOKE) {
        control->is_give_up_due = true;
        control->give_up_us = 0;
        return;
    }
    if (order->what == ROLE_DO_TAKE &&
        (control->is_give_up_due || ask_of(node, CONTROL_GIVE_UP)->is_open)) {
        control->is_take_held = true;
        control->take = *order;
        return;
    }
    control->is_handed |= order->what == ROLE_DO_HAND;
    ask_or_fail(node, order);
}

/* A TAKE that had to wait. */
static void
go_on_taking(struct node *node)
{
    struct node_control *control = &node->control;

    if (!control->is_take_held || control->is_give_up_due ||
        ask_of(node, CONTROL_GIVE_UP)->is_open) {
        return;
    }
    control->is_take_held = false;
    if (control->role.state == ROLE_TAKING) {
        ask_or_fail(node, &control->take);
    } else {
        fail(node, &control->take);
    }
}

static void
give_up(struct node *node)
{
    struct node_control *control = &node->control;
    struct control_request request = {.ask = CONTROL_GIVE_UP};

    if (!control->is_give_up_due || ask_of(node, CONTROL_HAND)->is_open ||
        control->now_us < control->give_up_us) {
        return;
    }
    control->give_up_us = control->now_us + NODE_CONTROL_AGAIN_US;
    if (ask(node, &request, 0)) {
        control->is_give_up_due = false;
    }
}

static void
beat(struct node *node)
{
    struct node_control *control = &node->control;
    struct control_request request = {.ask = CONTROL_BEAT};

    if (control->now_us >= control->beat_us) {
        control->beat_us = control->now_us + NODE_CONTROL_BEAT_US;
        if (!ask(node, &request, 0)) {
            node->figures.keeper_beats_missed++;
        }
        control->beaten_us[request.number % NODE_CONTROL_BEATS] =
            control->now_us;
    }
    node_wake_at(node, node->now_us + (control->beat_us - control->now_us));
}

/* Another node of this name is to be seen before its key is written over. A
 * node that takes the place of another one of this process is told of what
 * there is when it has said what it is. */
static bool
has_seen_names(const struct node *node)
{
    return node->control.state.revision != 0 ? control__twin(node) == NULL
                                             : node->config.is_again;
}

static void
say_node(struct node *node)
{
    struct node_control *control = &node->control;
    const struct node_config *config = &node->config;
    struct control_request request = {.ask = CONTROL_NODE};
    struct control_node *it = &request.of.node;

    memset(&request, 0, sizeof request);
    request.ask = CONTROL_NODE;
    it->name = config->name;
    copy_address(&it->client, config->client);
    copy_address(&it->repl, config->repl);
    (void)snprintf(it->role, sizeof it->role, "%s", role_word(&control->role));
    it->formats = ENTRY_KIND_NEWEST;
    it->priority = config->priority < CONTROL_PRIORITY_MAX
        ? config->priority
        : CONTROL_PRIORITY_MAX;
    it->votes = config->votes;
    it->is_doubtful = config->file.is_doubtful;
    it->is_member = control->is_member;
    if (!has_seen_names(node) || memcmp(it, &control->said, sizeof *it) == 0 ||
        control->now_us < control->node_us ||
        ask_of(node, CONTROL_NODE)->is_open) {
        return;
    }
    control->node_us = control->now_us + NODE_CONTROL_AGAIN_US;
    if (ask(node, &request, 0)) {
        control->said = *it;
    }
}

/* True where nobody may say which directory the group's is but a person: etcd
 * has lost what it had of the group, and who was in it may lack what others
 * have acknowledged. */
static bool
is_of_old(const struct node_control *control)
{
    const struct control_state *state = &control->state;
    bool is_any = control->is_member;

    for (uint32_t i = 0; i < state->n_nodes; i++) {
        is_any |= state->node[i].is_member;
    }
    return is_any && !control->is_epoch_ordered;
}

/* Where nobody has said which directory the group's is: this node's, if it may
 * lead; one that has nothing lets others say so first. */
static void
say_epoch(struct node *node)
{
    struct node_control *control = &node->control;
    const struct replica_file *file = &node->config.file;
    const struct link_directory *here = &node->directory;
    bool has_any = node->position.written > 0;
    struct control_request request = {.ask = CONTROL_EPOCH,
        .of.epoch = {
            .epoch = here->epoch, .seed = here->seed, .shards = here->shards}};

    if (control->state.revision == 0 || control->state.epoch.revision != 0 ||
        control->config.priority == 0 || here->epoch == 0 ||
        file->is_salvaged || file->is_exchanging || is_of_old(control) ||
        (control->now_us < control->epoch_us && !has_any) ||
        ask_of(node, CONTROL_EPOCH)->is_open) {
        return;
    }
    if (ask(node, &request, 0)) {
        log_event(node->config.logger, "repl_etcd", LOG_WARNING,
            "nobody has said which directory the group's is: this node says "
            "that it is its own");
    }
}

void
control__tell_etcd(struct node *node)
{
    give_up(node);
    go_on_taking(node);
    beat(node);
    say_node(node);
    say_epoch(node);
}

/* ---- what is heard ---- */

/* These numbers are of other nodes by now. */
static void
forget(struct node_control *control, uint32_t fresh)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        if (quorum_has(fresh, i)) {
            role_forget(&control->role, i);
        }
    }
}

/* The state is this one. */
static void
take_state(struct node *node)
{
    struct node_control *control = &node->control;
    struct role_look look;
    uint32_t fresh;

    control__hold_numbers(node);
    if (!roster_look(&control->roster, &control->state, &look, &fresh)) {
        log_event(node->config.logger, "repl_etcd", LOG_ERROR,
            "what etcd has of this group cannot be: it is not acted upon");
        return;
    }
    forget(control, fresh);
    if (look.term > node->figures.terms_seen) {
        node->figures.terms_seen = look.term;
    }
    role_looked(&control->role, &look, control__now(node));
}

/* A lease that holds until then is relied upon no longer than who keeps it
 * alive waits for a beat behind that moment. */
static uint64_t
end_of_lease(const struct node *node, uint64_t beaten_us, uint64_t until_us)
{
    uint64_t hang_us = node->config.hang_ms * 1000;

    return hang_us != 0 && beaten_us + hang_us < until_us ? beaten_us + hang_us
                                                          : until_us;
}

/* A TAKE, or a KEEP, is done: its lease was granted after it was asked for. The
 * next beat says how long it holds; until then half of it is sure. */
static void
rely_on_lease(struct node *node, uint64_t sent_us)
{
    uint64_t ttl_us = node->config.ttl_ms * 1000;

    role_set_lease(&node->control.role,
        end_of_lease(node, sent_us, sent_us + ttl_us / 2));
    node->control.beat_us = 0;
}

/* A TAKE is done: what was seen before, and what is new. */
static void
take_term(struct node *node, const struct control_result *result)
{
    struct node_control *control = &node->control;
    struct role_look look = control->role.look;
    uint32_t fresh = 0;

    look.revision = look.key_rev = look.term_rev = result->revision;
    look.holder = ROSTER_SELF;
    look.term = look.key_term = ask_of(node, CONTROL_TAKE)->term;
    look.ordered = ROLE_NOBODY;
    control__hold_numbers(node);
    look.voters = roster_voters(&control->roster, &result->voters, &fresh);
    look.voters_rev = result->voters.revision;
    forget(control, fresh);
    role_took(&control->role, look.voters.nodes == 0 ? ROLE_UNKNOWN : ROLE_YES,
        &look, control__now(node));
    rely_on_lease(node, ask_of(node, CONTROL_TAKE)->sent_us);
}

static void
hear_take(struct node *node, const struct control_result *result)
{
    struct role *role = &node->control.role;

    if (result->outcome == CONTROL_YES) {
        take_term(node, result);
    } else {
        role_took(role, answer_of(result), &role->look, control__now(node));
    }
}

/* Its lease is kept alive from now on, if this primary still leads. */
static void
hear_keep(
    struct node *node, const struct control_result *result, uint64_t term)
{
    struct role *role = &node->control.role;

    if (result->outcome == CONTROL_YES && role->term != term) {
        node->control.is_give_up_due = true;
    }
    role_kept(role, term, answer_of(result), control__now(node));
    if (result->outcome == CONTROL_YES && role->term == term) {
        rely_on_lease(node, ask_of(node, CONTROL_KEEP)->sent_us);
    }
}

/* A NO that no comparison has said tells nothing of those before. */
static void
hear_voters(
    struct node *node, const struct control_result *result, uint64_t term)
{
    enum role_answer answer = answer_of(result);

    if (answer == ROLE_NO && result->revision == 0) {
        answer = ROLE_UNKNOWN;
    }
    node->figures.set_changes += answer == ROLE_YES;
    role_set(&node->control.role, term, answer, result->revision,
        control__now(node));
}

static void
hear_hand(struct node *node, const struct control_result *result)
{
    char why[NODE_WHY_MAX + 1];

    node->figures.handovers += result->outcome == CONTROL_YES;
    (void)snprintf(why, sizeof why,
        "this node leads no more, but etcd has not taken who is next: %s",
        result->why);
    control__end_handing(
        node, result->outcome == CONTROL_YES ? 0 : ERR_NOT_HANDED, why);
}

static void
take_result(
    struct node *node, enum control_ask what, const struct control_result *it)
{
    struct node_control *control = &node->control;
    uint64_t term = ask_of(node, what)->term;

    ask_of(node, what)->is_open = false;
    if (it->outcome != CONTROL_YES) {
        node->figures.etcd_errors++;
        memcpy(control->why, it->why, sizeof control->why);
    }
    switch (what) {
    case CONTROL_TAKE:
        hear_take(node, it);
        break;
    case CONTROL_KEEP:
        hear_keep(node, it, term);
        break;
    case CONTROL_VOTERS:
        hear_voters(node, it, term);
        break;
    case CONTROL_HAND:
        hear_hand(node, it);
        break;
    case CONTROL_GIVE_UP: /* unknown: its leases end by themselves */
        control->is_give_up_due |= it->outcome == CONTROL_NO;
        break;
    case CONTROL_NODE: /* it is said again by who speaks with etcd */
        break;
    default:
        control->epoch_us = control->now_us + NODE_CONTROL_AGAIN_US;
    }
}

static void
hear_result(struct node *node, const struct control_result *result)
{
    for (enum control_ask i = 0; i < CONTROL_REQUESTS_N; i++) {
        struct node_control_ask *it = ask_of(node, i);

        if (it->is_open && it->number == result->number) {
            take_result(node, i, result);
            return;
        }
    }
}

static void
hear_beat(struct node *node, const struct control_beat *beat)
{
    struct node_control *control = &node->control;
    uint64_t sent_us = control->beaten_us[beat->number % NODE_CONTROL_BEATS];

    if (control->number - beat->number < NODE_CONTROL_BEATS) {
        role_set_lease(&control->role,
            end_of_lease(node, sent_us, beat->deadline_ns / 1000));
    } /* else too old to tell; or of an earlier node's */
}

/* Who speaks with etcd is gone: nothing is answered any more. */
static void
hear_end(struct node *node)
{
    struct node_control *control = &node->control;
    struct control_result none = {.outcome = CONTROL_UNKNOWN};

    log_event(node->config.logger, "repl_etcd", LOG_ERROR,
        "the process that speaks with etcd is gone: this node takes no term "
        "any more until the server is started anew");
    (void)snprintf(none.why, sizeof none.why, "nobody speaks with etcd");
    control->unreachable_us = control__now(node);
    for (enum control_ask i = 0; i < CONTROL_REQUESTS_N; i++) {
        if (ask_of(node, i)->is_open) {
            take_result(node, i, &none);
        }
    }
    role_set_lease(&control->role, 0);
}

void
control__hear(void *context, const struct control_event *event)
{
    struct node *node = context;
    struct node_control *control = &node->control;

    if (event == NULL) {
        hear_end(node);
        return;
    }
    control->heard_us = control__now(node);
    switch (event->say) {
    case CONTROL_SAY_BEAT_BACK:
        hear_beat(node, &event->of.beat);
        break;
    case CONTROL_SAY_RESULT:
        hear_result(node, &event->of.result);
        break;
    case CONTROL_SAY_STATE:
        if (control->unreachable_us != 0) {
            log_event(node->config.logger, "repl_etcd", LOG_WARNING,
                "etcd answers again");
        }
        control->unreachable_us = 0;
        control->state = event->of.state;
        control->is_member |= control->state.epoch.revision != 0;
        take_state(node);
        break;
    case CONTROL_SAY_LOST:
        log_event(node->config.logger, "repl_etcd", LOG_WARNING,
            "the lease of this primary is over: %s", event->of.why);
        role_set_lease(&control->role, 0);
        break;
    default:
        ASSERT(event->say == CONTROL_SAY_UNREACHABLE);
        control->unreachable_us = control->heard_us;
        node->figures.etcd_errors++;
        log_event(node->config.logger, "repl_etcd", LOG_WARNING,
            "etcd cannot be reached: %s", event->of.why);
    }
}
