/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a node:
 *
 *   STARTING --> LEADING <--> FOLLOWING <-- STARTING
 *                   |            |
 *                   +-> RELOADING <-+       each of them --> ENDING
 *
 * All is done on one thread, in turns: what has come on sockets is taken in
 * their callbacks; then, once before each poll, everybody is asked what is next
 * (sender.c, receiver.c), who waits is looked at, and what others may see of it
 * is shown. Other threads leave what they want in a list and ring.
 *
 * The thread may wait for the disk of its own store: where a batch begins a
 * term, a term is promised, or begins here. That is where a replica waits, or a
 * node that changes its role; what a primary reads of the log for a replica far
 * behind is read by other threads (sender.c).
 *
 * What can go wrong: memory and threads at the start; the disk, where a term is
 * promised or begun: the role stays what it was. */
#include "repl/node.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/steps.h"
#include "cold/segment_head.h"
#include "repl/node_priv.h"
#include "wal/entry.h"
#include "wal/manifest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTING_LOOK_US = 1000 /* between looks at what replicas have */ };

#define BIT(name) STEP_TO(NODE_STATE_##name)

static const unsigned may_lead[NODE_STATES_N] = {
    [NODE_STATE_STARTING] = BIT(LEADING) | BIT(FOLLOWING) | BIT(ENDING),
    [NODE_STATE_LEADING] = BIT(FOLLOWING) | BIT(RELOADING) | BIT(ENDING),
    [NODE_STATE_FOLLOWING] = BIT(LEADING) | BIT(RELOADING) | BIT(ENDING),
    [NODE_STATE_RELOADING] = BIT(ENDING),
    [NODE_STATE_ENDING] = 0};

/* Goes to another state, which has to be one that may follow. */
static void
move_to(struct node *node, enum node_state state)
{
    ASSERT_STEP(may_lead, node->state, state);
    node->state = state;
    /* relaxed: see on_store_moved */
    atomic_store_explicit(&node->hears_store, state == NODE_STATE_FOLLOWING,
        memory_order_relaxed);
}

void
node_look(struct node *node)
{
    store_position(node->config.store, &node->position);
    ASSERT(node->position.synced <= node->position.written);
    ASSERT(node->position.applied <= node->position.written);
}

void
node_set_committed(struct node *node, uint64_t seq)
{
    if (seq > node->committed) {
        node->committed = seq;
        store_set_committed(node->config.store, seq);
    }
}

void
node_set_primary(struct node *node, const char *address, size_t len)
{
    /* relaxed: this thread is the only one that writes it */
    char *old = atomic_load_explicit(&node->primary, memory_order_relaxed);
    char *text;

    if (strlen(old) == len && memcmp(old, address, len) == 0) {
        return;
    }
    text = calloc(1, len + 1);
    if (text == NULL) {
        return; /* clients are told what was so before */
    }
    memcpy(text, address, len);
    /* seq_cst: with the epochs of qsbr.c in one order */
    atomic_store_explicit(&node->primary, text, memory_order_seq_cst);
    qsbr_wait(node->config.store->qsbr);
    free(old);
}

const char *
node_primary(const struct node *node)
{
    /* seq_cst: see node_set_primary */
    return atomic_load_explicit(&node->primary, memory_order_seq_cst);
}

bool
node_is_fresh(const struct node *node)
{
    /* relaxed: a number that stands for itself */
    uint64_t until_us =
        atomic_load_explicit(&node->fresh_until_us, memory_order_relaxed);

    return until_us == UINT64_MAX || node_clock_us(node) < until_us;
}

/* ---- roles ---- */

/* The node becomes the primary, in a term of its own. 0, or why it is what it
 * was. */
static int
lead(struct node *node)
{
    struct replica_file file = node->config.file;
    uint64_t term, seq;
    int err;

    node_look(node);
    term = history_next_term(&node->position.history, node->position.written);
    if (term <= file.promised && term != 0) {
        term = (uint64_t)file.promised + 1;
    }
    if (term == 0 || term > SEQ_TERM_MAX) {
        return ERR_LOG_ORDER;
    }
    file.promised = (uint32_t)term;
    file.is_doubtful = false; /* who says so has decided that it counts */
    err = node_write_file(node, &file);
    if (err == 0) {
        err = store_begin_term(node->config.store, node->config.name.text,
            node->config.name.len, (uint32_t)term, &seq);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(seq == seq_first(term));
    mutex_lock(&node->lock);
    node->follows[0] = '\0';
    node->leads = true;
    mutex_unlock(&node->lock);
    node->term = term;
    move_to(node, NODE_STATE_LEADING);
    /* relaxed: a number that stands for itself */
    atomic_store_explicit(
        &node->fresh_until_us, UINT64_MAX, memory_order_relaxed);
    node_look(node);
    sender_begin(node, seq);
    node->figures.promotions++;
    log_line(node->config.logger, LOG_WARNING,
        "this node is the primary, term %llu, from batch %llu on",
        (unsigned long long)term, (unsigned long long)seq);
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
    log_line(
        node->config.logger, LOG_WARNING, "this node is no primary any more");
    err = store_set_replica(node->config.store);
    if (err != 0) {
        log_line(node->config.logger, LOG_WARNING,
            "the directory is loaded anew: %s", err_text(err));
        node_reload(node);
        return false;
    }
    store_refuse_changes(node->config.store, 0);
    node->sender.refuses_changes = false;
    node->committed = 0; /* what the store knows it does not forget */
    node_look(node);
    receiver_expect(node, node->position.given);
    return true;
}

/* The node follows that address. 0, or why it is what it was. */
static int
follow(struct node *node, const char *address)
{
    if (node->config.dial_fd < 0) {
        return ERR_SYSTEM;
    }
    mutex_lock(&node->lock);
    snprintf(node->follows, sizeof node->follows, "%s", address);
    node->leads = false;
    mutex_unlock(&node->lock);
    log_line(node->config.logger, LOG_WARNING,
        "this node follows the primary at %s", address);
    if (node->state == NODE_STATE_LEADING && !demote(node)) {
        return 0;
    }
    if (node->state != NODE_STATE_FOLLOWING) {
        move_to(node, NODE_STATE_FOLLOWING);
    }
    node->term = node->config.file.promised;
    node_set_primary(node, "", 0);
    receiver_follow(node, address);
    return 0;
}

bool
node_leads(struct node *node)
{
    mutex_lock(&node->lock);
    bool leads = node->leads;
    mutex_unlock(&node->lock);
    return leads;
}

void
node_follows(struct node *node, char out[NODE_ADDRESS_MAX + 1])
{
    mutex_lock(&node->lock);
    memcpy(out, node->follows, sizeof node->follows);
    mutex_unlock(&node->lock);
}

void
node_reload(struct node *node)
{
    move_to(node, NODE_STATE_RELOADING);
    node->config.reload_fn(node->config.context);
}

/* ---- what other threads ask for ---- */

static void
add_mail(struct node *node, struct store_call **list, struct store_call *call)
{
    bell_hold(&node->bell);
    mutex_lock(&node->lock);
    call->next = *list;
    *list = call;
    mutex_unlock(&node->lock);
    bell_ring(&node->bell);
}

void
node_replicaof(struct node *node, struct node_order *order)
{
    add_mail(node, &node->orders, &order->call);
}

void
node_wait(struct node *node, struct node_wait *wait)
{
    add_mail(node, &node->waits, &wait->call);
}

/* Takes a list out of the mail, the oldest first. */
static struct store_call *
take_mail(struct node *node, struct store_call **list)
{
    struct store_call *newest, *oldest = NULL;

    mutex_lock(&node->lock);
    newest = *list;
    *list = NULL;
    mutex_unlock(&node->lock);
    while (newest != NULL) {
        struct store_call *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void
answer(struct node_order *order, int err)
{
    order->err = err;
    order->call.done_fn(&order->call);
}

/* A primary is to follow another one. What has been acknowledged is to be on
 * its replicas first, so it takes no more changes, and waits for them. */
static void
begin_parting(struct node *node, struct node_order *order)
{
    store_refuse_changes(node->config.store, ERR_NOT_PRIMARY);
    qsbr_wait(node->config.store->qsbr); /* for who had asked before */
    node->parting = order;
    node->part_by_us = node_clock_us(node) + node->config.max_lag_ms * 1000;
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
    if (leads && !sender_all_have(node, node->position.written) &&
        node->now_us < node->part_by_us) {
        node_wake_at(node, node->now_us + PARTING_LOOK_US);
        return false;
    }
    node->parting = NULL;
    answer(order, leads ? follow(node, order->address) : ERR_CLOSED);
    return true;
}

static int
do_order(struct node *node, const struct node_order *order)
{
    if (node->state != NODE_STATE_LEADING &&
        node->state != NODE_STATE_FOLLOWING) {
        return ERR_CLOSED;
    }
    if (order->address[0] != '\0') {
        return follow(node, order->address);
    }
    if (node->state == NODE_STATE_LEADING) {
        return 0;
    }
    receiver_follow(node, "");
    node_set_primary(node, "", 0);
    if (!receiver_give_up_copy(node)) { /* it would replace what it takes */
        log_line(node->config.logger, LOG_WARNING,
            "a snapshot has come, so this node is not promoted: the directory "
            "is loaded anew, then say it again");
        node_reload(node);
        return ERR_LOADING;
    }
    return lead(node);
}

static void
do_orders(struct node *node)
{
    while (look_at_parting(node)) {
        struct node_order *order;

        if (node->due == NULL) {
            node->due = take_mail(node, &node->orders);
        }
        if (node->due == NULL) {
            return;
        }
        order = (struct node_order *)node->due;
        node->due = order->call.next;
        if (node->state == NODE_STATE_LEADING && order->address[0] != '\0' &&
            node->config.dial_fd >= 0) {
            begin_parting(node, order);
        } else {
            answer(order, do_order(node, order));
        }
    }
}

/* Who waits begins to. */
static void
begin_waits(struct node *node)
{
    struct store_call *call = take_mail(node, &node->waits);

    while (call != NULL) {
        struct node_wait *wait = (struct node_wait *)call;

        call = call->next;
        /* what is left of it, as a moment; 0: none */
        wait->until_us = wait->ms == 0 ? 0 : node->now_us + wait->ms * 1000;
        wait->call.next = node->waiting == NULL ? NULL : &node->waiting->call;
        node->waiting = wait;
    }
}

/* Answers those whose wait is over. */
static void
look_at_waits(struct node *node)
{
    struct node_wait **at = &node->waiting;

    while (*at != NULL) {
        struct node_wait *wait = *at;
        bool is_late = wait->until_us != 0 && node->now_us >= wait->until_us;

        wait->n_have = sender_n_applied(node, wait->seq);
        if (wait->n_have < wait->n && wait->seq != 0 && !is_late &&
            node->state == NODE_STATE_LEADING) {
            if (wait->until_us != 0) {
                node_wake_at(node, wait->until_us);
            }
            at = (struct node_wait **)&wait->call.next;
            continue;
        }
        *at = (struct node_wait *)wait->call.next;
        wait->call.done_fn(&wait->call);
    }
}

/* ---- the thread ---- */

static void
on_rung(struct bell *bell)
{
    (void)bell; /* the turn that follows takes what there is */
}

static void
on_alarm(struct alarm *alarm)
{
    (void)alarm;
}

/* The store's positions have moved. Any thread. */
static void
on_store_moved(struct store_listener *listener)
{
    struct node *node =
        (struct node *)((char *)listener - offsetof(struct node, listener));

    /* relaxed: who begins to hear has a turn of its own first */
    if (!atomic_load_explicit(&node->hears_store, memory_order_relaxed)) {
        return;
    }
    bell_hold(&node->bell);
    bell_ring(&node->bell);
}

static bool
is_to_end(struct node *node)
{
    bool is_stopping;

    mutex_lock(&node->lock);
    is_stopping = node->is_stopping;
    mutex_unlock(&node->lock);
    return is_stopping && node->state != NODE_STATE_ENDING;
}

/* Closes all that the loop has; it runs until that is done. */
static void
end(struct node *node)
{
    move_to(node, NODE_STATE_ENDING);
    sender_end(node, true);
    receiver_end(node);
    do_orders(node);
    begin_waits(node);
    look_at_waits(node);
    ASSERT(node->waiting == NULL);
    bell_close(&node->bell);
    alarm_close(&node->alarm);
    uv_close((uv_handle_t *)&node->prepare, NULL);
}

/* When the next turn is due. */
static void
set_alarm(struct node *node)
{
    uint64_t in_us =
        node->wake_us > node->now_us ? node->wake_us - node->now_us : 0;

    uv_update_time(&node->loop);
    if (node->wake_us != UINT64_MAX) {
        alarm_set(&node->alarm, (in_us + 999) / 1000);
    }
}

static void
on_prepare(uv_prepare_t *prepare)
{
    struct node *node = prepare->data;

    ASSERT(node->magic == NODE_MAGIC);
    node->now_us = node_clock_us(node);
    node->wake_us = UINT64_MAX;
    node_look(node);
    do_orders(node);
    begin_waits(node);
    if (node->state == NODE_STATE_FOLLOWING) {
        receiver_turn(node);
    }
    sender_turn(node);
    look_at_waits(node);
    node__show(node);
    if (is_to_end(node)) {
        end(node);
        return;
    }
    set_alarm(node);
}

static void *
run(void *context)
{
    struct node *node = context;

    (void)uv_run(&node->loop, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- start and stop ---- */

static enum message_level
level_of(enum replica_level level)
{
    switch (level) {
    case REPLICA_SYNCED:
        return MESSAGE_SYNCED;
    case REPLICA_APPLIED:
        return MESSAGE_APPLIED;
    default:
        return MESSAGE_WRITTEN;
    }
}

static struct message_text
text_of(const char *text, size_t len)
{
    ASSERT(len <= UINT8_MAX);
    return (struct message_text){(const uint8_t *)text, (uint8_t)len};
}

static void
set_self(struct node *node)
{
    static const char no_group[] = "/"; /* no group can have that name */
    const struct node_config *config = &node->config;

    node->self = (struct link_self){.group = config->group.len > 0
            ? text_of(config->group.text, config->group.len)
            : text_of(no_group, 1),
        .name = text_of(config->name.text, config->name.len),
        .client = text_of(config->client, strlen(config->client)),
        .secret = config->secret,
        .formats = {.entry = ENTRY_KIND_NEWEST,
            .manifest = MANIFEST_VERSION_NEWEST,
            .segment = SEGMENT_VERSION},
        .level = level_of(config->level),
        .hello_flags = config->file.is_doubtful ? HELLO_DOUBTFUL : 0,
        .priority = config->priority < UINT16_MAX ? (uint16_t)config->priority
                                                  : UINT16_MAX,
        .timeout_us = config->timeout_ms * 1000};
}

/* A replica of nobody, until somebody says what it is: what it has lost its
 * replicas may have, and would lose in its term. */
static void
stand_by(struct node *node)
{
    move_to(node, NODE_STATE_FOLLOWING);
    node->term = node->config.file.promised;
    log_line(node->config.logger, LOG_WARNING,
        "this node may have lost changes that are on its replicas, so it does "
        "not begin as the primary: promote the one with the highest "
        "written_seq (stats replication), with replicaof no one, and have "
        "this one follow it; or, if there is no other, say that here");
}

static int
begin_role(struct node *node, struct buf *why)
{
    const struct node_config *config = &node->config;
    bool leads = config->primary[0] == '\0';
    int err;

    node_look(node);
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

/* All that the loop has; what was made is closed by end_loop. */
static int
open_loop(struct node *node)
{
    int err = bell_init(&node->bell, &node->loop, on_rung);

    if (err != 0) {
        return err;
    }
    alarm_init(&node->alarm, &node->loop, node->clock, on_alarm);
    uv_prepare_init(&node->loop, &node->prepare);
    node->prepare.data = node;
    uv_prepare_start(&node->prepare, on_prepare);
    err = sender_start(node);
    return err != 0 ? err : receiver_start(node);
}

static void
free_node(struct node *node)
{
    /* relaxed: nobody else is there any more */
    free(atomic_load_explicit(&node->primary, memory_order_relaxed));
    receiver_fini(node);
    sender_fini(node);
    mutex_fini(&node->lock);
    node->magic = 0;
    free(node);
}

static struct node *
make_node(const struct node_config *config)
{
    struct node *node = calloc(1, sizeof *node);
    char *primary = calloc(1, 1);

    if (node == NULL || primary == NULL) {
        free(node);
        free(primary);
        return NULL;
    }
    node->magic = NODE_MAGIC;
    node->config = *config;
    if (config->figures != NULL) {
        node->figures = *config->figures;
    }
    node->clock = clock_or_system(config->clock);
    node->listener.moved_fn = on_store_moved;
    mutex_init(&node->lock);
    atomic_init(&node->primary, primary);
    atomic_init(&node->fresh_until_us, UINT64_MAX);
    node->now_us = node_clock_us(node);
    return node;
}

/* The loop has been opened, and nobody runs it: it ends. */
static void
end_loop(struct node *node)
{
    end(node);
    (void)uv_run(&node->loop, UV_RUN_DEFAULT);
}

static void
close_loop(struct node *node)
{
    int error = uv_loop_close(&node->loop);

    ASSERT(error == 0);
    bell_fini(&node->bell);
}

int
node_start(
    const struct node_config *config, struct node **out, struct buf *why)
{
    struct node *node = make_node(config);
    struct store_directory directory;
    int err;

    ASSERT(config->min_replicas <= config->semi_sync);
    ASSERT(config->semi_sync <= NODE_STREAMS_MAX);
    if (node == NULL) {
        buf_add_text(why, err_text(ERR_NO_MEMORY));
        return ERR_NO_MEMORY;
    }
    if (uv_loop_init(&node->loop) != 0) {
        buf_add_text(why, err_text(ERR_SYSTEM));
        free_node(node);
        return ERR_SYSTEM;
    }
    store_directory(config->store, &directory);
    node->directory = (struct link_directory){.epoch = directory.epoch,
        .seed = directory.seed,
        .shards = directory.shards};
    err = open_loop(node);
    if (err == 0) {
        err = node_begin_file(node);
        set_self(node);
    }
    if (err != 0) {
        buf_addf(why, "the node cannot begin: %s", err_file_text(err));
    } else {
        err = begin_role(node, why);
    }
    if (err == 0) {
        store_listen(config->store, &node->listener);
        if (pthread_create(&node->thread, NULL, run, node) == 0) {
            *out = node;
            return 0;
        }
        store_unlisten(config->store, &node->listener);
        err = ERR_NO_THREAD;
        buf_add_text(why, err_text(err));
    }
    end_loop(node);
    close_loop(node);
    free_node(node);
    return err;
}

void
node_stop(struct node **node)
{
    struct node *it = *node;

    if (it == NULL) {
        return;
    }
    ASSERT(it->magic == NODE_MAGIC);
    bell_hold(&it->bell);
    mutex_lock(&it->lock);
    it->is_stopping = true;
    mutex_unlock(&it->lock);
    bell_ring(&it->bell);
    pthread_join(it->thread, NULL);
    store_unlisten(it->config.store, &it->listener);
    sender_fini(it); /* whose threads ring until then */
    receiver_fini(it);
    close_loop(it);
    if (it->config.figures != NULL) {
        *it->config.figures = it->figures;
    }
    store_want_clean_end(it->config.store);
    free_node(it);
    *node = NULL;
}
