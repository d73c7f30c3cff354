/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a request:
 *
 *   node_forward --> mail --> queued --> sent --> replied --> done_fn
 *                               |         |          +- applied, or late
 *                               |         +- the link ends --> UNSURE_PRIMARY
 *                               +- no link to a primary --> NOT_PRIMARY
 *
 * A window bounds what is sent and not answered, so that the primary needs no
 * queue; NODE_FORWARDS_MAX and NODE_FORWARD_ALL bound the one here. A reply is
 * given when what it stands for can be read here: whoever has it, by whatever
 * connection to this node, reads its own write. That is waited for no longer
 * than NODE_FORWARD_APPLY_MS; then the asker is told up to where it is not so
 * yet.
 *
 * What is sent again nobody knows: a request whose link ends is answered so,
 * and whoever has numbered its changes sends them again. */
#include "repl/forward_out.h"

#include "base/assert.h"
#include "base/err.h"
#include "repl/message_forward.h"
#include "repl/node_priv.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)NODE_FORWARD_BYTES == (int)STREAM_REQUEST_MAX,
    "what a client may forward has room in a frame");

enum {
    FRAME_BYTES = STREAM_HEAD_BYTES + MESSAGE_REPLY_HEAD + STREAM_REPLY_MAX
};

int
forward_out_start(struct node *node)
{
    if (node->config.forwards) {
        node->forward_frame = malloc(FRAME_BYTES);
        return node->forward_frame == NULL ? ERR_NO_MEMORY : 0;
    }
    return 0;
}

void
forward_out_fini(struct node *node)
{
    const struct forward_out *out = &node->forward;

    ASSERT(out->queued == NULL && out->sent == NULL && out->replied == NULL);
    free(node->forward_frame);
}

static struct node_forward *
next_of(const struct node_forward *forward)
{
    return (struct node_forward *)forward->call.next;
}

static void
set_next(struct node_forward *forward, struct node_forward *next)
{
    forward->call.next = next == NULL ? NULL : &next->call;
}

static void
answer(struct node *node, struct node_forward *forward, int err)
{
    struct forward_out *out = &node->forward;

    forward->err = err;
    node->figures.forwarded += err == 0 ? forward->n : 0;
    node->figures.forwarded_unsure +=
        err == ERR_UNSURE_PRIMARY ? forward->n : 0;
    /* relaxed: bounds, which may be passed by a few */
    atomic_fetch_sub_explicit(&out->n, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(
        &out->n_bytes, forward->len, memory_order_relaxed);
    forward->call.done_fn(&forward->call);
}

static void
answer_all(struct node *node, struct node_forward **list, int err)
{
    struct node_forward *it = *list;

    *list = NULL;
    while (it != NULL) {
        struct node_forward *next = next_of(it);

        answer(node, it, err);
        it = next;
    }
}

void
node_forward(struct node *node, struct node_forward *forward)
{
    struct forward_out *out = &node->forward;
    /* relaxed: as above */
    unsigned n = atomic_fetch_add_explicit(&out->n, 1, memory_order_relaxed);
    size_t n_bytes = atomic_fetch_add_explicit(
        &out->n_bytes, forward->len, memory_order_relaxed);

    ASSERT(forward->len > 0 && forward->len <= NODE_FORWARD_BYTES);
    if (n < NODE_FORWARDS_MAX && n_bytes < NODE_FORWARD_ALL) {
        node__add_mail(node, &node->forwards, &forward->call);
        return;
    }
    atomic_fetch_sub_explicit(&out->n, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(
        &out->n_bytes, forward->len, memory_order_relaxed);
    forward->err = ERR_FORWARD_BUSY;
    forward->call.done_fn(&forward->call);
}

bool
node_has_applied(const struct node *node, uint64_t seq)
{
    /* acquire: what is applied by then is to be seen by the reads that follow
     */
    return atomic_load_explicit(&node->applied, memory_order_acquire) >= seq;
}

/* True where the primary may be asked. */
static bool
has_link(const struct node *node)
{
    return node->state == NODE_STATE_FOLLOWING &&
        node->receiver.state == RECEIVER_JOINED &&
        node->forward_frame != NULL &&
        link_replica_forwards(&node->receiver.link);
}

void
forward_out_begin(struct node *node)
{
    struct forward_out *out = &node->forward;
    struct store_call *call = node__take_mail(node, &node->forwards);

    while (call != NULL) {
        struct node_forward *forward = (struct node_forward *)call;

        call = call->next;
        set_next(forward, NULL);
        if (out->queued == NULL) {
            out->queued = forward;
        } else {
            set_next(out->newest, forward);
        }
        out->newest = forward;
    }
}

bool
forward_out_send(struct node *node)
{
    struct forward_out *out = &node->forward;
    struct node_forward *forward = out->queued;
    uint8_t *frame = node->forward_frame, *body;
    size_t len;

    if (forward == NULL || out->n_sent == NODE_FORWARD_WINDOW ||
        !has_link(node)) {
        return false;
    }
    out->queued = next_of(forward);
    forward->id = ++out->next_id;
    set_next(forward, out->sent);
    out->sent = forward;
    out->n_sent++;
    body = frame + STREAM_HEAD_BYTES;
    len = message_put_request(body, forward->id, forward->is_binary);
    memcpy(body + len, forward->bytes, forward->len);
    len = link_replica_request(
        &node->receiver.link, frame, (uint32_t)(len + forward->len));
    wire_send(&node->receiver.wire, frame, len);
    return true;
}

/* Takes the request with that id out of those that are sent; NULL: there is
 * none. */
static struct node_forward *
take_sent(struct forward_out *out, uint64_t id)
{
    struct node_forward *it = out->sent, *before = NULL;

    while (it != NULL && it->id != id) {
        before = it;
        it = next_of(it);
    }
    if (it == NULL) {
        return NULL;
    }
    if (before == NULL) {
        out->sent = next_of(it);
    } else {
        set_next(before, next_of(it));
    }
    ASSERT(out->n_sent > 0);
    out->n_sent--;
    return it;
}

bool
forward_out_take(struct node *node, const struct stream_frame *frame,
    struct stream_fault *fault)
{
    struct forward_out *out = &node->forward;
    struct node_forward *forward;
    struct message_reply reply;

    if (message_get_reply(frame, &reply, fault) != 0) {
        return false;
    }
    forward = take_sent(out, reply.id);
    if (forward == NULL) {
        *fault = (struct stream_fault){.what = "the id of a request",
            .offset = STREAM_HEAD_BYTES,
            .type = STREAM_REPLY};
        return false;
    }
    if (reply.outcome != MESSAGE_ANSWERED) {
        answer(node, forward,
            reply.outcome == MESSAGE_UNSURE ? ERR_UNSURE_PRIMARY
                                            : ERR_NOT_PRIMARY);
        return true;
    }
    buf_add(&forward->reply, (const char *)reply.bytes, reply.len);
    if (forward->reply.failed) {
        answer(node, forward, ERR_UNSURE_PRIMARY);
        return true;
    }
    forward->seq = reply.seq;
    forward->until_us = node->now_us + NODE_FORWARD_APPLY_MS * UINT64_C(1000);
    set_next(forward, out->replied);
    out->replied = forward;
    return true;
}

/* Answers those of which there is no more to be waited for. */
static void
look_at_replied(struct node *node, bool is_over)
{
    struct forward_out *out = &node->forward;
    struct node_forward *it = out->replied;

    out->replied = NULL;
    while (it != NULL) {
        struct node_forward *next = next_of(it);
        bool is_applied = node->position.applied >= it->seq;

        if (is_applied || is_over || node->now_us >= it->until_us) {
            it->late_seq = is_applied ? 0 : it->seq;
            node->figures.forwarded_late += !is_applied;
            answer(node, it, 0);
        } else {
            node_wake_at(node, it->until_us);
            set_next(it, out->replied);
            out->replied = it;
        }
        it = next;
    }
}

void
forward_out_look(struct node *node)
{
    struct forward_out *out = &node->forward;
    bool has_ended = !has_link(node);

    /* release: see node_has_applied */
    atomic_store_explicit(
        &node->applied, node->position.applied, memory_order_release);
    if (has_ended) {
        out->n_sent = 0;
        answer_all(node, &out->sent, ERR_UNSURE_PRIMARY);
        answer_all(node, &out->queued, ERR_NOT_PRIMARY);
    }
    look_at_replied(node, node->state == NODE_STATE_ENDING);
}
