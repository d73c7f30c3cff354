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
#include "cold/segment_head.h"
#include "repl/node_priv.h"
#include "wal/entry.h"
#include "wal/manifest.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_LOOK_US = 100000, /* between looks whether a wait is wanted */
    END_LOOK_US = 5000,    /* likewise whether it can end */
    END_US = 1000000 /* what a node that is to end takes to send its log */
};

const struct history node_no_history;

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

/* ---- what other threads ask for ---- */

void
node__add_mail(
    struct node *node, struct store_call **list, struct store_call *call)
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
    node__add_mail(node, &node->orders, &order->call);
}

void
node_wait(struct node *node, struct node_wait *wait)
{
    node__add_mail(node, &node->waits, &wait->call);
}

void
node_failover(struct node *node, struct node_failover *order)
{
    node__add_mail(node, &node->failovers, &order->call);
}

struct store_call *
node__take_mail(struct node *node, struct store_call **list)
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

/* Who waits begins to. */
static void
begin_waits(struct node *node)
{
    struct store_call *call = node__take_mail(node, &node->waits);

    while (call != NULL) {
        struct node_wait *wait = (struct node_wait *)call;

        call = call->next;
        /* what is left of it, as a moment; 0: none */
        wait->until_us = wait->ms == 0 ? 0 : node->now_us + wait->ms * 1000;
        wait->call.next = node->waiting == NULL ? NULL : &node->waiting->call;
        node->waiting = wait;
    }
}

static bool
is_unwanted(const struct node_wait *wait)
{
    /* relaxed: it comes with nothing, and may come late */
    return wait->is_unwanted != NULL &&
        atomic_load_explicit(wait->is_unwanted, memory_order_relaxed);
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
            node->state == NODE_STATE_LEADING && !is_unwanted(wait)) {
            if (wait->until_us != 0) {
                node_wake_at(node, wait->until_us);
            }
            if (wait->is_unwanted != NULL) {
                node_wake_at(node, node->now_us + WAIT_LOOK_US);
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
    if (pthread_equal(pthread_self(), node->thread)) {
        return; /* it looks at the store after what it has had written */
    }
    bell_hold(&node->bell);
    bell_ring(&node->bell);
}

void
node__refuse_changes(struct node *node, int err)
{
    if (node->end_us == 0) {
        store_refuse_changes(node->config.store, err);
    }
}

/* A node that is to end takes no more changes, so that replicas can be sent all
 * that it has acknowledged. */
static void
look_whether_to_end(struct node *node)
{
    bool is_stopping;

    mutex_lock(&node->lock);
    is_stopping = node->is_stopping;
    mutex_unlock(&node->lock);
    if (is_stopping && node->end_us == 0) {
        node__refuse_changes(node, ERR_CLOSED);
        node->end_us = node->now_us + END_US;
        qsbr_wait(node->config.store->qsbr); /* for who had asked before */
    }
}

/* Is there something that replicas are to be sent first? */
static bool
has_more(const struct node *node)
{
    return node->state == NODE_STATE_LEADING &&
        (store_has_changes(node->config.store) || sender_is_behind(node));
}

static bool
ends_now(struct node *node)
{
    if (node->end_us == 0 || node->state == NODE_STATE_ENDING) {
        return false;
    }
    if (node->now_us < node->end_us && has_more(node)) {
        node_wake_at(node, node->now_us + END_LOOK_US);
        return false;
    }
    return true;
}

/* Closes all that the loop has; it runs until that is done. */
static void
end(struct node *node)
{
    node__move(node, NODE_STATE_ENDING);
    sender_end(node, true);
    receiver_end(node);
    peers_end(node);
    node_dial_end(node);
    node__do_orders(node);
    node_control_end(node);
    begin_waits(node);
    look_at_waits(node);
    forward_out_begin(node);
    forward_out_look(node);
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
    look_whether_to_end(node);
    node_look(node);
    node__do_orders(node);
    node_control_turn(node);
    begin_waits(node);
    node_dial_turn(node);
    forward_out_begin(node);
    if (node->state == NODE_STATE_FOLLOWING) {
        receiver_turn(node);
    }
    peers_turn(node);
    sender_turn(node);
    look_at_waits(node);
    forward_out_look(node);
    node__show(node);
    if (ends_now(node)) {
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
        .repl = text_of(config->repl, strlen(config->repl)),
        .secret = config->secret,
        .formats = {.entry = ENTRY_KIND_NEWEST,
            .manifest = MANIFEST_VERSION_NEWEST,
            .segment = SEGMENT_VERSION},
        .level = level_of(config->level),
        .hello_flags =
            (uint16_t)((config->file.is_doubtful ? HELLO_DOUBTFUL : 0) |
                (config->control_fd >= 0 && !config->votes ? HELLO_NEVER_VOTES
                                                           : 0) |
                (config->forwards ? HELLO_FORWARDS : 0)),
        .priority = config->priority < UINT16_MAX ? (uint16_t)config->priority
                                                  : UINT16_MAX,
        .timeout_us = config->timeout_ms * 1000};
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
    err = node_dial_start(node);
    if (err == 0) {
        err = sender_start(node);
    }
    if (err == 0) {
        err = receiver_start(node);
    }
    if (err == 0) {
        err = forward_out_start(node);
    }
    return err != 0 ? err : node_control_start(node);
}

static void
free_node(struct node *node)
{
    /* relaxed: nobody else is there any more */
    free(atomic_load_explicit(&node->primary, memory_order_relaxed));
    receiver_fini(node);
    sender_fini(node);
    peers_fini(node);
    forward_out_fini(node);
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
    /* a primary's is; what a replica shows is known after its first turn */
    atomic_init(&node->fresh_until_us, config->stale_ms == 0 ? UINT64_MAX : 0);
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

static void
abandon(struct node *node)
{
    end_loop(node);
    close_loop(node);
    free_node(node);
}

int
node__open(
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
        err = node__begin_role(node, why);
    }
    if (err != 0) {
        abandon(node);
        return err;
    }
    *out = node;
    return 0;
}

void
node__listen(struct node *node)
{
    store_listen(node->config.store, &node->listener);
    bell_hold(&node->bell);
    bell_ring(&node->bell); /* of what moved meanwhile */
}

int
node_start(
    const struct node_config *config, struct node **out, struct buf *why)
{
    struct node *node;
    int err = node__open(config, &node, why);

    if (err != 0) {
        return err;
    }
    if (pthread_create(&node->thread, NULL, run, node) != 0) {
        buf_add_text(why, err_text(ERR_NO_THREAD));
        abandon(node);
        return ERR_NO_THREAD;
    }
    node__listen(node);
    *out = node;
    return 0;
}

void
node__want_end(struct node *node)
{
    bell_hold(&node->bell);
    mutex_lock(&node->lock);
    node->is_stopping = true;
    mutex_unlock(&node->lock);
    bell_ring(&node->bell);
}

void
node__close(struct node *node)
{
    store_unlisten(node->config.store, &node->listener);
    sender_fini(node); /* whose threads ring until then */
    receiver_fini(node);
    close_loop(node);
    if (node->config.figures != NULL) {
        *node->config.figures = node->figures;
    }
    store_want_clean_end(node->config.store);
    free_node(node);
}

void
node_stop(struct node **node)
{
    struct node *it = *node;

    if (it == NULL) {
        return;
    }
    ASSERT(it->magic == NODE_MAGIC);
    node__want_end(it);
    pthread_join(it->thread, NULL);
    node__close(it);
    *node = NULL;
}
