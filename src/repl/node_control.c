/* SPDX-License-Identifier: BSD-3-Clause */
/* In each turn the machine hears how far the log is, and is asked what is next
 * until it says to wait. What it orders of the log, the disk and the streams is
 * done before it is asked again, so a promise is durable, and the stream of a
 * former primary at its end, when anybody hears of it. What it orders of etcd
 * and of other nodes is answered later, or never.
 *
 *   streams, peers, etcd --> role_... ; the turn: role_next --> orders
 *
 * What can go wrong: the disk, where a term is promised: it is tried again, and
 * nobody is answered until then; or begun: the term is given up. */
#include "repl/node_control.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "repl/node_control_priv.h"
#include "repl/node_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { ORDERS_MAX = 256 /* in one turn; then others have theirs */ };

bool
node_control_is_there(const struct node *node)
{
    return node->control.is_there;
}

bool
node_control_is_isolated(const struct node *node)
{
    return node->control.is_there && node->control.role.state == ROLE_ISOLATED;
}

bool
node_control_is_candidate(const struct node *node)
{
    return node->control.is_there && node->control.role.state > ROLE_REPLICA &&
        node->control.role.state < ROLE_PRIMARY;
}

uint64_t
control__now(struct node *node)
{
    node->control.now_us = clock_boottime_ns() / 1000;
    return node->control.now_us;
}

void
control__tell_log(struct node *node)
{
    struct role *role = &node->control.role;
    const struct store_position *at = &node->position;
    uint64_t position = node->config.level == REPLICA_SYNCED ? at->synced
        : node->config.level == REPLICA_APPLIED              ? at->applied
                                                             : at->written;

    role_set_log(
        role, role->state >= ROLE_PRIMARY ? at->given : at->written, position);
}

/* ---- orders ---- */

/* Tries until the disk has it: nobody is answered before. */
static void
promise(struct node *node)
{
    struct node_control *control = &node->control;
    uint64_t term = control->promise_due;
    int err = 0;

    if (term == 0 || control->now_us < control->promise_us) {
        return;
    }
    if (term > node->config.file.promised) {
        err = node_promise(node, term);
    }
    if (err == 0) {
        control->promise_due = 0;
        control->promise_err = 0;
        role_promised(&control->role, term, control__now(node));
        return;
    }
    log_event(node->config.logger, "repl_role",
        err == control->promise_err ? LOG_DEBUG : LOG_ERROR,
        "term %llu cannot be promised: %s; it is tried again",
        (unsigned long long)term, err_file_text(err));
    control->promise_err = err;
    control->promise_us = control__now(node) + NODE_CONTROL_AGAIN_US;
}

static void
follow(struct node *node, unsigned number)
{
    const struct roster *roster = &node->control.roster;
    const char *address =
        number == ROLE_NOBODY ? "" : roster->repl[number].text;

    mutex_lock(&node->lock);
    snprintf(node->follows, sizeof node->follows, "%s", address);
    mutex_unlock(&node->lock);
    receiver_follow(node, address);
}

static void
begin(struct node *node, uint64_t term)
{
    uint64_t seq = 0;
    int err = ERR_LOADING;

    if (!receiver_give_up_copy(node)) {
        node_reload(node);
    } else {
        err = node__begin_term(node, term, &seq);
    }
    if (err != 0) {
        log_event(node->config.logger, "repl_role", LOG_ERROR,
            "this node is not promoted: %s", err_file_text(err));
        role_began(&node->control.role, term, 0, control__now(node));
        return;
    }
    control__tell_log(node);
    role_began(&node->control.role, term, seq, control__now(node));
}

static void
take_changes(struct node *node, enum role_changes changes)
{
    static const int errs[] = {[ROLE_CHANGES_REFUSED] = ERR_NO_PRIMARY,
        [ROLE_CHANGES_FEW] = ERR_FEW_REPLICAS,
        [ROLE_CHANGES_PARKED] = ERR_NO_PRIMARY,
        [ROLE_CHANGES_TAKEN] = 0};
    static const char *const texts[] = {
        [ROLE_CHANGES_REFUSED] = "refused: this primary has no authority",
        [ROLE_CHANGES_FEW] = "refused: too few voters are heard",
        [ROLE_CHANGES_PARKED] = "refused: it hands over",
        [ROLE_CHANGES_TAKEN] = "taken"};

    if (node->state != NODE_STATE_LEADING) {
        return;
    }
    node->sender.refuses_changes = changes != ROLE_CHANGES_TAKEN;
    node__refuse_changes(node, errs[changes]);
    if (changes == ROLE_CHANGES_PARKED) { /* who had asked before */
        qsbr_wait(node->config.store->qsbr);
        node_look(node);
    }
    log_event(node->config.logger, "repl_changes", LOG_WARNING,
        "changes are %s", texts[changes]);
}

/* Who leads has lost nothing that counts; of others see look_whether_sound. */
static void
note_sure(struct node *node)
{
    struct replica_file file = node->config.file;

    if (node->state != NODE_STATE_LEADING || !file.is_doubtful) {
        return;
    }
    file.is_doubtful = false;
    if (node_write_file(node, &file) == 0) {
        node->self.hello_flags &= (uint16_t)~HELLO_DOUBTFUL;
    }
}

static void
tell_switch(struct node *node, uint64_t seq)
{
    for (unsigned i = 0; i < QUORUM_NODES; i++) {
        struct sender_stream *stream = node->control.stream[i];

        if (stream != NULL && sender_is_streaming(stream)) {
            link_primary_switch(&stream->link, seq);
        }
    }
}

/* What concerns other nodes. */
static void
obey_to_others(struct node *node, const struct role_order *order)
{
    const struct roster *roster = &node->control.roster;
    const struct node_name *name = &roster->name[order->node];
    const char *address = roster->repl[order->node].text;

    switch (order->what) {
    case ROLE_DO_ANSWER:
        peers_answer(node, name, order->term);
        break;
    case ROLE_DO_REFUSE:
        peers_refuse(node, name);
        break;
    case ROLE_DO_HEARS:
        peers_tell(node, name, order->is_heard);
        break;
    case ROLE_DO_PROBE:
    case ROLE_DO_ASK:
        if (address[0] != '\0') {
            peers_ask(node, name, address, order->term,
                order->what == ROLE_DO_PROBE);
        }
        break;
    default:
        ASSERT(order->what == ROLE_DO_FETCH);
        peers_fetch(node, name, address, order->term);
    }
}

static void
obey(struct node *node, const struct role_order *order)
{
    switch (order->what) {
    case ROLE_DO_CEDE:
        node__cede(node);
        break;
    case ROLE_DO_FOLLOW:
        follow(node, order->node);
        break;
    case ROLE_DO_PROMISE:
        node->control.promise_due = order->term;
        node->control.promise_us = 0;
        promise(node);
        break;
    case ROLE_DO_BEGIN:
        begin(node, order->term);
        break;
    case ROLE_DO_CHANGES:
        take_changes(node, order->changes);
        break;
    case ROLE_DO_SWITCH:
        tell_switch(node, order->seq);
        break;
    case ROLE_DO_SURE:
        note_sure(node);
        break;
    case ROLE_DO_LOOK: /* each change of etcd's is heard of */
        break;
    case ROLE_DO_TAKE:
    case ROLE_DO_KEEP:
    case ROLE_DO_REVOKE:
    case ROLE_DO_SET:
    case ROLE_DO_HAND:
        control__ask_etcd(node, order);
        break;
    default:
        obey_to_others(node, order);
    }
}

/* ---- what the log says ---- */

static void
tell_state(struct node *node)
{
    static const char *const texts[] = {
        [ROLE_REPLICA] = "another one is to lead",
        [ROLE_ASKING] = "nobody leads: the voters are asked whether they hear "
                        "a primary",
        [ROLE_TAKING] = "no primary is heard: etcd is asked for a term",
        [ROLE_GATHERING] = "etcd has given a term: promises are asked for",
        [ROLE_FETCHING] = "enough have promised: one of them has more",
        [ROLE_FORCING] =
            "not enough have promised: by force it becomes the "
            "only voter, and what others have acknowledged and it "
            "has not is lost",
        [ROLE_BEGINNING] = "it has all that it can get",
        [ROLE_PRIMARY] = "it has authority",
        [ROLE_ISOLATED] = "it has no lease, and too few voters are heard",
        [ROLE_HANDING] = "another one is ordered to lead"};
    struct node_control *control = &node->control;
    const struct role *role = &control->role;

    if (role->state == control->told_state) {
        return;
    }
    control->told_state = role->state;
    log_event(node->config.logger, "repl_role",
        role->state >= ROLE_PRIMARY || role->state == ROLE_FORCING
            ? LOG_WARNING
            : LOG_INFO,
        "this node is %s: %s (term %llu, promised %llu, etcd says %llu%s%s)",
        role_word(role), texts[role->state], (unsigned long long)role->term,
        (unsigned long long)role->promised,
        (unsigned long long)role->look.term,
        control->why[0] == '\0' ? "" : "; etcd has refused: ", control->why);
    control->why[0] = '\0';
}

/* A primary without authority may be replaced by now: what it shows is fresh
 * for as long as what a replica shows that hears nothing. Before tell_state. */
static void
limit_reads(struct node *node)
{
    const struct node_control *control = &node->control;
    uint64_t stale_us = node->config.stale_ms * 1000;
    bool is_isolated = control->role.state == ROLE_ISOLATED;

    if (stale_us == 0 || control->role.state < ROLE_PRIMARY ||
        is_isolated == (control->told_state == ROLE_ISOLATED)) {
        return; /* a replica's: note_freshness of receiver.c */
    }
    /* relaxed: a number that stands for itself */
    atomic_store_explicit(&node->fresh_until_us,
        is_isolated ? node->now_us + stale_us : UINT64_MAX,
        memory_order_relaxed);
}

static void
tell_voters(struct node *node)
{
    struct node_control *control = &node->control;
    const struct role *role = &control->role;
    const struct quorum_voters *voters =
        role->term != 0 ? &role->rule.now : &role->look.voters;
    char names[NODE_CONTROL_NAMES];

    if (voters->nodes == control->told_voters &&
        voters->need == control->told_need) {
        return;
    }
    control->told_voters = voters->nodes;
    control->told_need = voters->need;
    roster_names(&control->roster, voters->nodes, names, sizeof names);
    log_event(node->config.logger, "repl_voters", LOG_INFO,
        "voters are %s, and %u of them have to have a change", names,
        voters->need);
}

/* Where clients find who leads: as etcd says, or, where nobody has the key, the
 * primary that is followed, which goes on without it. */
static void
tell_clients(struct node *node)
{
    const struct control_primary *key = &node->control.state.primary;
    const struct role_look *look = &node->control.role.look;
    const struct receiver *receiver = &node->receiver;
    bool is_other = look->holder != ROLE_NOBODY &&
        look->holder != ROSTER_SELF && key->revision != 0;
    bool is_followed = key->revision == 0 && receiver->is_following &&
        receiver->state == RECEIVER_JOINED;

    if (is_followed) {
        node_set_primary(
            node, receiver->link.call.client, receiver->link.call.client_len);
    } else {
        const char *address = is_other ? key->client.text : "";

        node_set_primary(node, address, strlen(address));
    }
}

/* ---- a turn ---- */

/* A directory that is not the group's, or not whole, must not come to be what
 * all others follow. */
static bool
may_lead(const struct node *node)
{
    const struct control_epoch *epoch = &node->control.state.epoch;
    const struct replica_file *file = &node->config.file;

    return epoch->revision != 0 && epoch->epoch == node->directory.epoch &&
        epoch->seed == node->directory.seed &&
        epoch->shards == node->directory.shards && !file->is_salvaged &&
        !file->is_exchanging && node->receiver.copy == NULL &&
        !node->control.pair.is_gone;
}

static void
obey_all(struct node *node)
{
    struct node_control *control = &node->control;
    struct role_order order;

    for (unsigned n = 0; n < ORDERS_MAX; n++) {
        uint64_t now_us = control__now(node);

        if (control->role.state != ROLE_FETCHING) { /* it was given up */
            peers_stop_fetch(node);
        }
        control__tell_log(node);
        role_next(&control->role, now_us, &order);
        if (order.what == ROLE_DO_WAIT) {
            node_wake_at(node, node->now_us + (order.until_us - now_us));
            return;
        }
        obey(node, &order);
        if (node->state == NODE_STATE_RELOADING) {
            return;
        }
        if (order.what == ROLE_DO_SWITCH) {
            break; /* it goes out before the streams end */
        }
    }
    node_wake_at(node, node->now_us);
}

/* Without a process beside it a node can go on as primary, but can come to be
 * none again, or follow nobody else: one that does not lead ends. */
static void
ask_for_end(struct node *node)
{
    struct node_control *control = &node->control;
    enum role_state state = control->role.state;
    bool is_lame = control->pair.is_gone || node->dial.is_lost;
    bool leads = state == ROLE_PRIMARY || state == ROLE_HANDING;

    if (!is_lame || leads || control->is_end_asked ||
        node->config.lost_fn == NULL) {
        return;
    }
    control->is_end_asked = true;
    log_event(node->config.logger, "repl_etcd", LOG_ERROR,
        "this node is %s, and %s is gone: the server is to end, and to be "
        "started anew",
        role_word(&control->role),
        control->pair.is_gone ? "the process that speaks with etcd"
                              : "the process that connects");
    node->config.lost_fn(node->config.context);
}

void
node_control_turn(struct node *node)
{
    struct node_control *control = &node->control;

    control__do_failovers(node);
    if (!control->is_there || node->state == NODE_STATE_RELOADING) {
        return;
    }
    ASSERT(node->state != NODE_STATE_ENDING);
    control__now(node);
    role_set_may_lead(&control->role, may_lead(node));
    promise(node);
    if (!control__has_to_wait(node)) {
        obey_all(node);
    }
    if (node->state == NODE_STATE_RELOADING) {
        return;
    }
    role_verify(&control->role);
    ASSERT((node->state == NODE_STATE_LEADING) ==
        (control->role.state >= ROLE_PRIMARY));
    control__do_failovers(node);
    control__tell_etcd(node);
    limit_reads(node);
    tell_state(node);
    tell_voters(node);
    control__tell_stuck(node);
    tell_clients(node);
    ask_for_end(node);
}

void
node_control_show(const struct node *node, struct node_control_shown *shown)
{
    const struct node_control *control = &node->control;
    const struct role *role = &control->role;
    const struct quorum_voters *voters =
        role->term != 0 ? &role->rule.now : &role->look.voters;

    shown->is_there = control->is_there;
    if (!control->is_there) {
        return;
    }
    shown->state = role->state;
    shown->leads = role->state >= ROLE_PRIMARY;
    shown->lease_us = role->lease_us;
    shown->has_lease = control->now_us < role->lease_us;
    shown->has_authority = role_has_authority(role, control->now_us);
    shown->need = voters->need;
    shown->is_in_doubt = role->is_set_open;
    shown->unreachable_us = control->unreachable_us;
    shown->heard_us = control->heard_us;
    shown->etcd_term = role->look.term;
    shown->stuck = control->stuck;
    roster_names(
        &control->roster, voters->nodes, shown->voters, sizeof shown->voters);
}

/* ---- a start, and the end ---- */

static void
on_readable(uv_poll_t *poll, int status, int events)
{
    struct node *node = poll->data;

    (void)status;
    (void)events;
    ASSERT(node->magic == NODE_MAGIC);
    node->now_us = node_clock_us(node);
    control_pair__turn(&node->control.pair);
    if (node->control.pair.is_gone) {
        uv_poll_stop(poll);
    }
}

int
node_control_start(struct node *node)
{
    struct node_control *control = &node->control;
    int fd = node->config.control_fd;

    if (fd < 0) {
        return 0;
    }
    ASSERT(node->config.semi_sync <= NODE_CONTROL_COPIES_MAX);
    ASSERT(node->config.ttl_ms > 0);
    if (uv_poll_init(&node->loop, &control->poll, fd) != 0) {
        return ERR_SYSTEM;
    }
    control->poll.data = node;
    control->is_poll_open = true;
    control_pair__init(&control->pair, fd, control__hear, node);
    uv_poll_start(&control->poll, UV_READABLE, on_readable);
    return 0;
}

static uint64_t
draw(void)
{
    uint64_t drawn;

    if (getrandom(&drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) {
        drawn = clock_boottime_ns();
    }
    return drawn;
}

void
node_control_begin(struct node *node)
{
    struct node_control *control = &node->control;
    const struct node_config *config = &node->config;

    control->is_there = true;
    control->boot = draw();
    /* so that no result of an earlier node's is taken for one of this */
    control->number = (uint32_t)draw();
    control->config = (struct role_config){.self = ROSTER_SELF,
        .copies = config->semi_sync,
        .least = config->min_replicas,
        .ttl_us = config->ttl_ms * 1000,
        .lag_us = config->max_lag_ms * 1000,
        .priority = config->votes ? config->priority : 0,
        .random = draw()};
    roster_init(&control->roster, &config->name);
    role_init(&control->role, &control->config, config->file.promised,
        config->file.is_doubtful, control__now(node));
    control->told_state = control->role.state;
    control->is_give_up_due = true; /* of a node before this one */
    control->epoch_us = control->now_us + NODE_CONTROL_EPOCH_US;
    node->peers.calls = &control__peers_calls;
}

void
node_control_end(struct node *node)
{
    struct node_control *control = &node->control;

    if (control->is_poll_open) {
        control->is_poll_open = false;
        uv_close((uv_handle_t *)&control->poll, NULL);
    }
    control__end_handing(node,
        control->is_handed ? ERR_NOT_HANDED : ERR_CLOSED,
        "etcd was asked, and has not answered before this node's end: see who "
        "leads");
    control__do_failovers(node);
}
