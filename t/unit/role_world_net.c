/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between nodes: streams as those of repl/link, questions, fetches. Of
 * a pair they come in order; a cut link loses them. Who hears nothing connects
 * anew. */
#include "unit/role_world_priv.h"

void
world__send(struct node *from, unsigned to, const struct message *message)
{
    unsigned self = world__number(from);
    uint64_t at = world->now + 300 + world__below(4000);
    struct event *event;

    if (world__chance(world->n_slow)) {
        at += world__below(300000);
    }
    if (at <= world->fifo[self][to]) {
        at = world->fifo[self][to] + 1;
    }
    world->fifo[self][to] = at;
    if (world->cut[self][to]) {
        return;
    }
    event = world__push(at - world->now, EV_MESSAGE, to);
    event->from = self;
    event->life = 0; /* whoever is there then */
    event->of.message = *message;
}

void
world__send_ack(struct node *node)
{
    struct message message = {.type = M_ACK,
        .session = node->session,
        .term = node->stream_term,
        .seq = world__position(node),
        .flag = node->role.is_doubtful};

    world__send(node, node->follows, &message);
}

void
world__pump(struct node *node, unsigned to)
{
    struct stream *stream = &node->stream[to];

    while (stream->session != 0 && stream->sent < node->n_log) {
        unsigned n = node->n_log - stream->sent;
        struct message message = {.type = M_BATCH,
            .session = stream->session,
            .term = node->leads,
            .seq = stream->sent == 0 ? 0 : node->log[stream->sent - 1].seq};

        message.n = n < BATCH_MAX ? n : BATCH_MAX;
        memcpy(message.entry, node->log + stream->sent,
            message.n * sizeof message.entry[0]);
        stream->sent += message.n;
        world__send(node, to, &message);
    }
}

void
world__connect(struct node *node, unsigned to)
{
    struct message message = {.type = M_HELLO,
        .session = ++node->session,
        .term = node->role.promised,
        .seq = world__last(node)};

    node->is_welcome = false;
    node->stream_us = world->now;
    role_parted(&node->role, world__clock(node));
    world__send(node, to, &message);
}

static void
hear_hello(struct node *node, unsigned from, const struct message *message)
{
    struct message reply = {.type = M_WELCOME,
        .session = message->session,
        .term = node->leads,
        .seq = world__last(node)};
    uint64_t common = world__common(node, message->seq);

    if (node->leads == 0) {
        return;
    }
    if (message->term > node->leads) {
        role_saw(&node->role, message->term, world__clock(node));
        return;
    }
    if (common != message->seq) {
        reply.type = M_CUT;
        reply.seq = common;
    } else {
        node->stream[from] =
            (struct stream){message->session, world__entries_to(node, common)};
        role_linked(&node->role, from, world__clock(node));
    }
    world__send(node, from, &reply);
    if (reply.type == M_WELCOME) {
        world__pump(node, from);
    }
}

/* Of the primary that this node follows. */
static void
hear_stream(struct node *node, unsigned from, const struct message *message)
{
    uint64_t now = world__clock(node);

    if (node->follows != from || node->session != message->session) {
        return;
    }
    if (message->type == M_WELCOME || message->type == M_CUT) {
        node->stream_us = world->now;
        if (message->term < node->role.promised) {
            return;
        }
        if (message->term > node->role.promised) {
            node->disk_promised = message->term;
            role_promised(&node->role, message->term, now);
        }
        if (message->type == M_CUT) {
            world__cut(node, world__entries_to(node, message->seq));
            world__tell_log(node);
            if (world->has_reloads && world__chance(30)) {
                world__reload(node);
                return;
            }
            world__connect(node, from);
            return;
        }
        node->is_welcome = true;
        node->stream_term = message->term;
        node->gap = 0;
        role_welcomed(&node->role, message->seq, now);
        return;
    }
    if (!node->is_welcome) {
        return;
    }
    node->stream_us = world->now;
    if (message->type == M_BATCH) {
        if (world__last(node) != message->seq) {
            world__connect(node, from);
            return;
        }
        for (unsigned i = 0; i < message->n; i++) {
            world__append(node, message->entry[i]);
        }
        world__tell_log(node);
    } else {
        role_heard(&node->role, message->flag, now);
        node->gap = world__last(node) < message->seq ? node->gap + 1 : 0;
        if (node->gap > 5) {
            world__connect(node, from);
            return;
        }
    }
    world__send_ack(node);
}

static void
hear_fetch(struct node *node, unsigned from, const struct message *message)
{
    struct message reply = {.type = M_TAIL,
        .term = message->term,
        .seq = world__common(node, message->seq)};

    if (message->term != node->role.promised) {
        return;
    }
    if (reply.seq != message->seq) { /* true where that is all of it */
        reply.flag = reply.seq == world__last(node);
    } else {
        unsigned at = world__entries_to(node, reply.seq);
        unsigned n = node->n_log - at;

        reply.n = n < BATCH_MAX ? n : BATCH_MAX;
        reply.flag = n == reply.n;
        memcpy(reply.entry, node->log + at, reply.n * sizeof reply.entry[0]);
    }
    world__send(node, from, &reply);
}

void
world__fetch(struct node *node)
{
    struct message message = {
        .type = M_FETCH, .term = node->fetches, .seq = world__last(node)};

    world__send(node, node->source, &message);
}

static void
hear_tail(struct node *node, unsigned from, const struct message *message)
{
    if (node->fetches != message->term || node->source != from ||
        node->role.state != ROLE_FETCHING) {
        return;
    }
    if (message->seq != world__last(node)) { /* nothing is cut for it */
        role_fetched(&node->role, message->term,
            message->flag && world__common(node, message->seq) == message->seq,
            world__clock(node));
        return;
    }
    for (unsigned i = 0; i < message->n; i++) {
        world__append(node, message->entry[i]);
    }
    world__tell_log(node);
    if (message->flag) {
        role_fetched(&node->role, message->term, true, world__clock(node));
    } else {
        world__fetch(node);
    }
}

void
world__hear(struct node *node, unsigned from, const struct message *message)
{
    uint64_t now = world__clock(node);
    struct role *role = &node->role;

    switch (message->type) {
    case M_PROBE:
    case M_ASK:
        role_asked(role, from, message->term, message->type == M_PROBE, now);
        break;
    case M_HEARS:
        role_told(role, from, message->flag, now);
        break;
    case M_ANSWER:
        role_answered(
            role, from, message->term, message->seq, message->flag, now);
        break;
    case M_REFUSE:
        role_saw(role, message->term, now);
        break;
    case M_HELLO:
        hear_hello(node, from, message);
        break;
    case M_ACK:
        if (node->stream[from].session == message->session) {
            role_acked(role, from, message->term,
                message->flag ? 0 : message->seq, message->flag,
                message->seq + 20 >= world__last(node), now);
        }
        break;
    case M_FETCH:
        hear_fetch(node, from, message);
        break;
    case M_TAIL:
        hear_tail(node, from, message);
        break;
    case M_DOWN:
        node->stream[from].session = 0;
        role_unlinked(role, from);
        if (node->follows == from) {
            node->is_welcome = false;
            role_parted(role, now);
        }
        break;
    default:
        hear_stream(node, from, message);
    }
}
