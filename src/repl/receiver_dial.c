/* SPDX-License-Identifier: BSD-3-Clause */
/* How a receiver comes to a connection, and leaves it. The states:
 *
 *   IDLE <--> RESTING <--> DIALLING --> JOINED
 *     ^          ^                        |
 *     +----------+------- CLOSING <-------+
 *
 * What can go wrong: nobody connects, or nobody is there. After a rest, longer
 * each time, it asks again. */
#include "base/assert.h"
#include "base/err.h"
#include "base/steps.h"
#include "repl/node_priv.h"
#include "repl/receiver_priv.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define BIT(name) STEP_TO(RECEIVER_##name)

static const unsigned may_lead[RECEIVER_STATES_N] = {
    [RECEIVER_IDLE] = BIT(RESTING) | BIT(IDLE),
    [RECEIVER_RESTING] = BIT(IDLE) | BIT(DIALLING) | BIT(RESTING),
    [RECEIVER_DIALLING] = BIT(IDLE) | BIT(RESTING) | BIT(JOINED),
    [RECEIVER_JOINED] = BIT(CLOSING),
    [RECEIVER_CLOSING] = BIT(IDLE) | BIT(RESTING)};

static void
move_to(struct receiver *receiver, enum receiver_state state)
{
    ASSERT_STEP(may_lead, receiver->state, state);
    receiver->state = state;
}

/* 0 where there are no random numbers: good enough for a rest. */
static uint32_t
draw(void)
{
    uint32_t drawn;

    return getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn ? drawn
                                                                       : 0;
}

/* ---- before there is a connection ---- */

/* Connects again after a rest. */
static void
rest(struct receiver *receiver)
{
    struct node *node = receiver->node;
    uint64_t ms = receiver->rest_ms;

    if (receiver->address[0] == '\0') {
        move_to(receiver, RECEIVER_IDLE);
        return;
    }
    move_to(receiver, RECEIVER_RESTING);
    if (receiver->fetch == RECEIVER_FETCH_OPEN) { /* others wait for it */
        receiver->until_us = node_clock_us(node) + RECEIVER_LOOK_MS * 1000;
        node_wake_at(node, receiver->until_us);
        return;
    }
    if (receiver->is_early) {
        receiver->is_early = false;
        receiver->until_us = node_clock_us(node) + RECEIVER_HEIR_MS * 1000;
        node_wake_at(node, receiver->until_us);
        return;
    }
    receiver->until_us =
        node_clock_us(node) + (ms / 2 + draw() % (ms / 2 + 1)) * 1000;
    receiver->rest_ms =
        ms * 2 < RECEIVER_REST_MS_MAX ? ms * 2 : RECEIVER_REST_MS_MAX;
    node_wake_at(node, receiver->until_us);
}

static const char *
what_of(const struct receiver *receiver)
{
    return receiver->fetch == RECEIVER_FETCH_OPEN ? "node" : "primary";
}

/* For who looks at the node: why there is no link. */
static void
keep_why(struct receiver *receiver, const char *why)
{
    snprintf(receiver->why, sizeof receiver->why, "%s", why);
}

/* A try to connect has failed; it rests. */
static void
fail_to_dial(struct receiver *receiver, const char *why)
{
    struct node *node = receiver->node;

    node->figures.dial_errors++;
    log_event(node->config.logger, "repl_link",
        receiver->is_failing ? LOG_DEBUG : LOG_WARNING,
        "cannot reach the %s at %s: %s", what_of(receiver), receiver->address,
        why);
    keep_why(receiver, why);
    receiver->is_failing = true;
    receiver_end_fetch(receiver, false);
    rest(receiver);
}

void
receiver_expect(struct node *node, uint64_t seq)
{
    struct receiver *receiver = &node->receiver;

    receiver->put = seq > receiver->put ? seq : receiver->put;
}

/* A copy has to be over first, with what is left of it. What was put need not
 * be written: HELLO tells what is, and what is not comes again. */
static bool
may_dial(const struct receiver *receiver)
{
    return receiver->copy == NULL && !receiver->is_clearing;
}

void
receiver_dial(struct receiver *receiver)
{
    const char *why;

    if (!may_dial(receiver)) {
        rest(receiver);
        return;
    }
    why = node_dial(receiver->node, &receiver->dial, receiver->address);
    if (why != NULL) {
        fail_to_dial(receiver, why);
        return;
    }
    move_to(receiver, RECEIVER_DIALLING);
}

static void on_wire_closed(struct wire *wire);

/* There is a connection: a link begins. */
static void
join(struct receiver *receiver, int fd)
{
    struct node *node = receiver->node;
    uint8_t nonce[STREAM_NONCE_BYTES];
    int err;

    receiver->wire = (struct wire){
        .moved_fn = receiver_on_moved, .closed_fn = on_wire_closed};
    if (getrandom(nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce ||
        stream_reader_init(&receiver->reader) != 0) {
        close(fd);
        fail_to_dial(receiver, err_text(ERR_NO_MEMORY));
        return;
    }
    err = wire_open(&receiver->wire, &node->loop, fd, node->config.tls, true);
    if (err != 0) {
        stream_reader_fini(&receiver->reader);
        fail_to_dial(receiver, err_text(err));
        return;
    }
    move_to(receiver, RECEIVER_JOINED);
    link_replica_init(&receiver->link, &node->self, nonce, node->now_us);
    if (receiver->fetch == RECEIVER_FETCH_OPEN) {
        link_replica_fetch(&receiver->link, receiver->fetch_term);
    }
    receiver->way = (struct fresh_way){0};
    receiver->in_at = receiver->in_len = 0;
    receiver->has_batches = receiver->has_batch = false;
    receiver->is_paused = receiver->is_following = false;
    receiver->paused_us = 0;
    node->figures.links++;
    wire_read_on(&receiver->wire, true);
}

static void
on_dialled(struct node_dial_call *call, int fd, const char *why)
{
    struct receiver *receiver =
        (struct receiver *)((char *)call - offsetof(struct receiver, dial));

    ASSERT(receiver->magic == RECEIVER_MAGIC);
    ASSERT(receiver->state == RECEIVER_DIALLING);
    if (fd < 0) {
        fail_to_dial(receiver, why);
    } else {
        join(receiver, fd);
    }
}

int
receiver_start(struct node *node)
{
    struct receiver *receiver = &node->receiver;

    receiver->magic = RECEIVER_MAGIC;
    receiver->node = node;
    receiver->rest_ms = RECEIVER_REST_MS_MIN;
    receiver->dial.done_fn = on_dialled;
    receiver->in = malloc(WIRE_READ_BYTES);
    return receiver->in == NULL ? ERR_NO_MEMORY : 0;
}

void
receiver_fini(struct node *node)
{
    copy_in_destroy(&node->receiver.copy);
    free(node->receiver.in);
    node->receiver.in = NULL;
}

/* ---- the end of a link ---- */

static void
on_wire_closed(struct wire *wire)
{
    struct receiver *receiver = (struct receiver *)wire;

    ASSERT(receiver->magic == RECEIVER_MAGIC);
    stream_reader_fini(&receiver->reader);
    rest(receiver);
}

void
receiver_leave(struct receiver *receiver, bool gently)
{
    move_to(receiver, RECEIVER_CLOSING);
    node_control_parted(receiver->node);
    if (receiver->copy != NULL) {
        copy_in_stop(receiver->copy);
    }
    if (gently) {
        wire_end(&receiver->wire);
    } else {
        wire_close(&receiver->wire);
    }
}

/* Says why the link is over, once for the same reason. */
static void
tell_end(struct receiver *receiver, const char *why)
{
    log_event(receiver->node->config.logger, "repl_link",
        receiver->is_failing ? LOG_DEBUG : LOG_WARNING, "the %s at %s: %s",
        what_of(receiver), receiver->address, why);
    keep_why(receiver, why);
    receiver->is_failing = true;
}

/* Who is followed has its term of etcd, and does not lead yet: in a group etcd
 * tells of it before its first batch, and it needs this node to commit that.
 */
static bool
is_early(const struct receiver *receiver)
{
    const struct node *node = receiver->node;
    const struct link_end *end = &receiver->link.call.end;

    return node_control_is_there(node) && end->reason == LINK_TOLD &&
        end->code == MESSAGE_BUSY && receiver->fetch == RECEIVER_FETCH_NONE &&
        node->now_us < receiver->soon_us;
}

void
receiver_end_link(struct receiver *receiver)
{
    const struct link_end *end = &receiver->link.call.end;
    char why[512];

    node_count_end(receiver->node, end);
    receiver->is_early = is_early(receiver);
    if (end->reason == LINK_TOLD && end->code == MESSAGE_BAD_TERM &&
        receiver->link.term == 0) { /* instead of a welcome */
        snprintf(why, sizeof why,
            "its term is not above %u, which this node has promised to another "
            "one: if it is the right primary, say replicaof no one there",
            receiver->node->config.file.promised);
    } else {
        node_end_text(end, why, sizeof why);
    }
    if (end->reason == LINK_FETCHED) {
        log_event(receiver->node->config.logger, "repl_log", LOG_INFO,
            "fetched from the node at %s, up to batch %llu", receiver->address,
            (unsigned long long)receiver->link.received);
    } else {
        tell_end(receiver, why);
    }
    receiver_end_fetch(receiver, end->reason == LINK_FETCHED);
    receiver_leave(receiver, end->reason != LINK_TIMEOUT);
}

void
receiver_break(struct receiver *receiver, const char *why)
{
    tell_end(receiver, why);
    receiver_end_fetch(receiver, false);
    receiver_leave(receiver, false);
}

void
receiver_follow(struct node *node, const char *address)
{
    struct receiver *receiver = &node->receiver;

    receiver->fetch = RECEIVER_FETCH_NONE;
    snprintf(receiver->address, sizeof receiver->address, "%s", address);
    receiver->rest_ms = RECEIVER_REST_MS_MIN;
    receiver->is_early = false;
    receiver->soon_us =
        node_clock_us(node) + RECEIVER_SOON_MS * UINT64_C(1000);
    receiver->is_failing = receiver->has_failed = false;
    receiver->why[0] = '\0';
    receiver->told_us = 0;
    switch (receiver->state) {
    case RECEIVER_JOINED:
        receiver_leave(receiver, false);
        return;
    case RECEIVER_CLOSING:
        return;
    default:
        node_dial_forget(node, &receiver->dial);
        rest(receiver);
        receiver->until_us = node_clock_us(node);
    }
}

void
receiver_end(struct node *node)
{
    struct receiver *receiver = &node->receiver;

    if (receiver->magic != RECEIVER_MAGIC) {
        return; /* it was not started */
    }
    receiver_follow(node, "");
    if (receiver->state == RECEIVER_CLOSING) {
        wire_close(&receiver->wire);
    }
}
