/* SPDX-License-Identifier: BSD-3-Clause */
/* The role of a node: how it becomes a primary, or a replica, and orders for
 * that. The states are drawn in node.c.
 *
 * What can go wrong: the disk, where a term is promised or begun: the role
 * stays what it was. */
#include "base/assert.h"
#include "base/err.h"
#include "base/steps.h"
#include "repl/dial.h"
#include "repl/node_priv.h"

#include <stdio.h>

enum { PARTING_LOOK_US = 1000 /* between looks at what replicas have */ };

#define BIT(name) STEP_TO(NODE_STATE_##name)

static const unsigned may_lead[NODE_STATES_N] = {
    [NODE_STATE_STARTING] = BIT(LEADING) | BIT(FOLLOWING) | BIT(ENDING),
    [NODE_STATE_LEADING] = BIT(FOLLOWING) | BIT(RELOADING) | BIT(ENDING),
    [NODE_STATE_FOLLOWING] = BIT(LEADING) | BIT(RELOADING) | BIT(ENDING),
    [NODE_STATE_RELOADING] = BIT(ENDING),
    [NODE_STATE_ENDING] = 0};

/* True where, of a primary, its own log decides what is committed, and nobody
 * else says when that has moved. */
static bool
counts_itself(const struct node *node)
{
    return node_control_is_there(node) &&
        (node->config.semi_sync == 0 || node->config.level == REPLICA_SYNCED);
}

void
node__move(struct node *node, enum node_state state)
{
    ASSERT_STEP(may_lead, node->state, state);
    node->state = state;
    /* relaxed: see on_store_moved */
    atomic_store_explicit(&node->hears_store,
        state == NODE_STATE_FOLLOWING ||
            (state == NODE_STATE_LEADING && counts_itself(node)),
        memory_order_relaxed);
}

/* The term that begins here next: above all that the log has, that is promised,
 * and that those have promised who were refused for it. 0: there is none. */
static uint64_t
next_term(const struct node *node)
{
    const struct store_position *position = &node->position;
    uint64_t term = history_next_term(&position->history, position->written);
    uint64_t promised = node->config.file.promised;

    if (promised < node->refused_term) {
        promised = node->refused_term;
    }
    if (term != 0 && term <= promised) {
        term = promised + 1;
    }
    return term <= SEQ_TERM_MAX ? term : 0;
}

/* The log has begun the term. */
static void
begin_to_lead(struct node *node, uint64_t term, uint64_t seq)
{
    ASSERT(seq == seq_first(term));
    mutex_lock(&node->lock);
    node->follows[0] = '\0';
    node->leads = true;
    mutex_unlock(&node->lock);
    node->term = term;
    node__move(node, NODE_STATE_LEADING);
    /* relaxed: a number that stands for itself */
    atomic_store_explicit(
        &node->fresh_until_us, UINT64_MAX, memory_order_relaxed);
    node_look(node);
    sender_begin(node, seq);
    node->figures.promotions++;
    log_event(node->config.logger, "repl_role", LOG_WARNING,
        "this node is the primary, term %llu, from batch %llu on",
        (unsigned long long)term, (unsigned long long)seq);
}

/* The node becomes the primary, in a term of its own. 0, or why it is what it
 * was. */
static int
lead(struct node *node)
{
    const struct replica_file before = node->config.file;
    struct replica_file file = before;
    uint64_t term, seq;
    int err;

    node_look(node);
    term = next_term(node);
    if (term == 0) {
        return ERR_LOG_ORDER;
    }
    file.promised = (uint32_t)term;
    file.is_doubtful = false; /* who says so has decided that it counts */
    err = node_write_file(node, &file);
    /* as of sender_begin, for the store takes changes before that */
    node__refuse_changes(
        node, node->config.min_replicas > 0 ? ERR_FEW_REPLICAS : 0);
    if (err == 0) {
        err = store_begin_term(node->config.store, node->config.name.text,
            node->config.name.len, (uint32_t)term, &seq);
    }
    if (err != 0) { /* nobody else knows of the promise: it is none */
        (void)node_write_file(node, &before);
        node->config.file = before; /* what is written next is that */
        node->term = node->config.file.promised;
        return err;
    }
    node->self.hello_flags &= HELLO_FORWARDS;
    begin_to_lead(node, term, seq);
    return 0;
}

int
node__begin_term(struct node *node, uint64_t term, uint64_t *seq)
{
    const struct store_position *position = &node->position;
    uint64_t least;
    int err;

    ASSERT(node->state == NODE_STATE_FOLLOWING);
    ASSERT(node->config.file.promised == term);
    node_look(node);
    least = history_next_term(&position->history, position->written);
    if (least == 0 || least > term) {
        return ERR_LOG_ORDER;
    }
    /* for the store takes changes before it is decided whether they may be */
    node__refuse_changes(node, ERR_NO_PRIMARY);
    err = store_begin_term(node->config.store, node->config.name.text,
        node->config.name.len, (uint32_t)term, seq);
    if (err != 0) {
        node__refuse_changes(node, 0);
        return err;
    }
    node_set_primary(node, "", 0);
    begin_to_lead(node, term, *seq);
    return 0;
}

/* The node ceases to be the primary. False: the store did not come to be a
 * replica's, and is loaded anew. */
static bool
demote(struct node *node)
{
    int err;

    sender_end(node, false);
    node->figures.demotions++;
    log_event(node->config.logger, "repl_role", LOG_WARNING,
        "this node is no primary any more");
    err = store_set_replica(node->config.store);
    if (err != 0) {
        log_event(node->config.logger, "repl_role", LOG_WARNING,
            "the directory is loaded anew: %s", err_text(err));
        node_reload(node);
        return false;
    }
    node__refuse_changes(node, 0);
    node->sender.refuses_changes = false;
    node->committed = 0; /* what the store knows it does not forget */
    node_look(node);
    receiver_expect(node, node->position.given);
    return true;
}

void
node__cede(struct node *node)
{
    if (node->state != NODE_STATE_LEADING) {
        return;
    }
    mutex_lock(&node->lock);
    node->leads = false;
    mutex_unlock(&node->lock);
    if (demote(node)) {
        node__move(node, NODE_STATE_FOLLOWING);
        node->term = node->config.file.promised;
        node_set_primary(node, "", 0);
    }
}

/* The node follows that address. 0, or why it is what it was. */
static int
follow(struct node *node, const char *address)
{
    /* a start goes on, and shows what there is */
    if (node->config.dial_fd < 0 ||
        (node->state != NODE_STATE_STARTING &&
            !dial__is_there(node->config.dial_fd))) {
        return ERR_NO_DIALLER;
    }
    mutex_lock(&node->lock);
    snprintf(node->follows, sizeof node->follows, "%s", address);
    node->leads = false;
    mutex_unlock(&node->lock);
    log_event(node->config.logger, "repl_role", LOG_WARNING,
        "this node follows the primary at %s", address);
    if (node->state == NODE_STATE_LEADING && !demote(node)) {
        return 0;
    }
    if (node->state != NODE_STATE_FOLLOWING) {
        node__move(node, NODE_STATE_FOLLOWING);
    }
    node->term = node->config.file.promised;
    node_set_primary(node, "", 0);
    receiver_follow(node, address);
    return 0;
}

void
node_reload(struct node *node)
{
    node__move(node, NODE_STATE_RELOADING);
    node->config.reload_fn(node->config.context);
}

/* ---- orders ---- */

/* Who asks for figures behind it is shown what has come of it. */
static void
answer(struct node *node, struct node_order *order, int err)
{
    node__show(node);
    order->err = err;
    order->call.done_fn(&order->call);
}

/* The primary is one in a later term: above that which one who was refused has
 * promised, and who comes again now. As who becomes a replica and is promoted:
 * nothing is acknowledged any more in the old term when the new one begins. 0,
 * or why it is a replica of nobody. */
static int
renew(struct node *node)
{
    int err;

    if (!demote(node)) {
        return 0; /* when it has been loaded anew, in a later term */
    }
    mutex_lock(&node->lock);
    node->leads = false;
    mutex_unlock(&node->lock);
    node__move(node, NODE_STATE_FOLLOWING);
    node->term = node->config.file.promised;
    err = lead(node);
    if (err != 0) {
        log_event(node->config.logger, "repl_role", LOG_ERROR,
            "no later term begins: %s; this node is a replica of nobody: say "
            "replicaof no one again when that is mended",
            err_file_text(err));
    }
    return err;
}

/* A term that a node had promised is noted, so that the next one here is above
 * it whatever happens. 0, or as replica_file_write. */
static int
note_refused(struct node *node)
{
    struct replica_file file = node->config.file;

    if (next_term(node) == 0) {
        return ERR_LOG_ORDER;
    }
    file.promised = (uint32_t)node->refused_term;
    return node_write_file(node, &file);
}

/* True for an order to a primary that ends what it acknowledges: to follow
 * another one; to begin a later term, where a node was refused for that. */
static bool
ends_term(const struct node *node, const struct node_order *order)
{
    return node->state == NODE_STATE_LEADING && !node_control_is_there(node) &&
        (order->address[0] != '\0' ? dial__is_there(node->config.dial_fd)
                                   : node->refused_term >= node->term);
}

/* A primary's term is to end. What has been acknowledged is to be on its
 * replicas first, so it takes no more changes, and waits for them. */
static void
begin_parting(struct node *node, struct node_order *order)
{
    int err = order->address[0] != '\0' ? 0 : note_refused(node);

    if (err != 0) {
        answer(node, order, err);
        return;
    }
    node__refuse_changes(node, ERR_NOT_PRIMARY);
    qsbr_wait(node->config.store->qsbr); /* for who had asked before */
    node_look(node); /* what they have changed is in what the log was given */
    node->parting = order;
    node->part_by_us = node_clock_us(node) + node->config.max_lag_ms * 1000;
}

/* True where all is made that had been let in when changes were refused, and
 * the replicas that are there have it. */
static bool
has_parted(struct node *node)
{
    if (store_has_changes(node->config.store)) {
        return false;
    }
    node_look(node); /* behind that: what was made last is in it */
    return sender_all_have(node, node->position.given);
}

/* Goes on with that: false where it is to be waited for. */
static bool
look_at_parting(struct node *node)
{
    struct node_order *order = node->parting;

    if (order == NULL) {
        return true;
    }
    bool leads = node->state == NODE_STATE_LEADING;
    if (leads && !has_parted(node) && node->now_us < node->part_by_us) {
        node_wake_at(node, node->now_us + PARTING_LOOK_US);
        return false;
    }
    int err = !leads                ? ERR_CLOSED
        : order->address[0] != '\0' ? follow(node, order->address)
                                    : renew(node);

    node->parting = NULL;
    if (node->state == NODE_STATE_LEADING && err != 0) {
        sender_take_changes(node); /* who connects has gone meanwhile */
    }
    answer(node, order, err);
    return true;
}

/* A replica becomes the primary. 0, or why it follows whom it followed. */
static int
promote(struct node *node)
{
    const char *follows = node->follows; /* written by this thread only */
    int err;

    receiver_follow(node, "");
    node_set_primary(node, "", 0);
    if (!receiver_give_up_copy(node)) { /* it would replace what it takes */
        log_event(node->config.logger, "repl_role", LOG_WARNING,
            "a snapshot has come, so this node is not promoted: the directory "
            "is loaded anew, then say it again");
        node_reload(node);
        return ERR_LOADING;
    }
    err = lead(node);
    if (err != 0) {
        log_event(node->config.logger, "repl_role", LOG_ERROR,
            "this node is not promoted: %s; it %s%s", err_file_text(err),
            follows[0] == '\0' ? "follows nobody, as before"
                               : "goes on following the primary at ",
            follows);
        receiver_follow(node, follows);
    }
    return err;
}

static int
do_order(struct node *node, const struct node_order *order)
{
    if (node->state != NODE_STATE_LEADING &&
        node->state != NODE_STATE_FOLLOWING) {
        return ERR_CLOSED;
    }
    if (node_control_is_there(node)) {
        return ERR_BY_ETCD;
    }
    if (order->address[0] != '\0') {
        return follow(node, order->address);
    }
    return node->state == NODE_STATE_LEADING ? 0 : promote(node);
}

void
node__do_orders(struct node *node)
{
    while (look_at_parting(node)) {
        struct node_order *order;

        if (node->due == NULL) {
            node->due = node__take_mail(node, &node->orders);
        }
        if (node->due == NULL) {
            return;
        }
        order = (struct node_order *)node->due;
        node->due = order->call.next;
        if (ends_term(node, order)) {
            begin_parting(node, order);
        } else {
            answer(node, order, do_order(node, order));
        }
    }
}

/* ---- a start ---- */

/* A replica of nobody, until somebody says what it is: what it has lost its
 * replicas may have, and would lose in its term. */
static void
stand_by(struct node *node)
{
    node__move(node, NODE_STATE_FOLLOWING);
    node->term = node->config.file.promised;
    log_event(node->config.logger, "repl_role", LOG_WARNING,
        "this node may have lost changes that are on its replicas, so it does "
        "not begin as the primary: promote the one with the highest "
        "written_seq (stats replication), with replicaof no one, and have "
        "this one follow it; or, if there is no other, say that here");
}

int
node__begin_role(struct node *node, struct buf *why)
{
    const struct node_config *config = &node->config;
    bool leads = config->primary[0] == '\0';
    int err;

    node_look(node);
    if (config->control_fd >= 0) {
        node__move(node, NODE_STATE_FOLLOWING);
        node->term = config->file.promised;
        node_control_begin(node);
        return 0;
    }
    if (leads && config->file.is_doubtful && config->semi_sync > 0) {
        stand_by(node);
        return 0;
    }
    err = leads ? lead(node) : follow(node, config->primary);
    if (err != 0) {
        buf_addf(why, "the node cannot begin as %s: %s",
            leads ? "primary" : "replica", err_file_text(err));
    }
    return err;
}
