/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a candidate's end:
 *
 *   greeting (repl/link_caller.c) --> ASKING
 *
 * Nothing is asked before the other end has proved who it is, for a promise of
 * somebody else is none. An answer is one to what was asked on this connection:
 * a promise says by its frame's head which term it is of, so that one that
 * comes after the next question is told from the answer to that.
 *
 * What can go wrong: any frame; another node at that address; one that does not
 * answer. Each ends the connection, and who asks asks again. */
#include "repl/link_asker.h"

#include "base/assert.h"
#include "base/steps.h"

#include <string.h>

/* So long nothing is asked before it closes: well before the other end takes
 * it for dead. */
#define IDLE_PART 2

/* See link_caller. */
static const unsigned may_lead[LINK_CALLER_STATES_N] = {
    [LINK_CALLER_GREETED] = STEP_TO(LINK_ASKER_ASKING)};

void
link_asker_init(struct link_asker *link, const struct link_self *self,
    const struct message_text *name, const uint8_t nonce[STREAM_NONCE_BYTES],
    uint64_t now_us)
{
    ASSERT(message_is_name(name->at, name->len));
    *link = (struct link_asker){
        .name_len = name->len, .opened_us = now_us, .used_us = now_us};
    memcpy(link->name, name->at, name->len);
    link_caller__init(&link->call, self, MESSAGE_PROMISE, may_lead, nonce);
}

void
link_asker_ask(
    struct link_asker *link, uint64_t term, bool is_probe, uint64_t now_us)
{
    ASSERT(is_probe || (term >= 1 && term <= SEQ_TERM_MAX));
    link->is_due = true;
    link->is_probe = is_probe;
    link->term = term;
    link->used_us = now_us;
}

static enum link_step
take_welcome(struct link_asker *link, const struct stream_frame *frame)
{
    struct message_welcome welcome;

    if (!link_caller__take_welcome(&link->call, frame, &welcome)) {
        return LINK_ENDING;
    }
    if (welcome.name.len != link->name_len ||
        memcmp(welcome.name.at, link->name, link->name_len) != 0) {
        return link_caller__end_for(&link->call, LINK_OTHER_NODE);
    }
    link_caller__move(&link->call, LINK_ASKER_ASKING);
    return LINK_TAKEN;
}

static enum link_step
take_promised(struct link_asker *link, const struct stream_frame *frame)
{
    const uint32_t hears = PROMISED_HEARS_ONE | PROMISED_HEARS_NONE;
    struct message_promised promised;
    struct stream_fault fault;

    if (message_get_promised(frame, &promised, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if ((promised.flags & hears) != 0) {
        if (!link->has_probed) {
            return link_caller__end_at(
                &link->call, LINK_BAD_ORDER, frame, "another type", 5);
        }
        link->reply = (promised.flags & PROMISED_HEARS_ONE) != 0
            ? LINK_REPLY_HEARS_ONE
            : LINK_REPLY_HEARS_NONE;
    } else {
        if (frame->term == 0 || frame->term > link->asked_term) {
            return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
                "a term that was asked for", 16);
        }
        link->reply = LINK_REPLY_PROMISED;
    }
    link->reply_term = frame->term;
    link->reply_last = promised.last;
    link->is_doubtful = (promised.flags & PROMISED_DOUBTFUL) != 0;
    return LINK_YOURS;
}

static enum link_step
take_refused(struct link_asker *link, const struct stream_frame *frame)
{
    struct message_refused refused;
    struct stream_fault fault;

    if (message_get_refused(frame, &refused, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if (refused.promised != frame->term) {
        return link_caller__end_at(
            &link->call, LINK_BAD_FRAME, frame, "the promised term", 16);
    }
    link->reply = LINK_REPLY_REFUSED;
    link->reply_term = refused.promised;
    link->reply_last = 0;
    link->is_doubtful = false;
    return LINK_YOURS;
}

/* True where a frame of that type may come in that state. */
static bool
is_due(const struct link_asker *link, enum stream_type type)
{
    if (link->call.state != LINK_ASKER_ASKING) {
        return link_caller__is_due(&link->call, type);
    }
    return type == STREAM_PROMISED
        ? link->asked_term != 0 || link->has_probed
        : type == STREAM_REFUSED && link->asked_term != 0;
}

enum link_step
link_asker_take(struct link_asker *link, const struct stream_frame *frame)
{
    enum link_step step;

    ASSERT(link_asker_may_take(link));
    if (link_caller__hear(
            &link->call, frame, is_due(link, frame->type), &step)) {
        return step;
    }
    if (frame->type == STREAM_WELCOME) {
        return take_welcome(link, frame);
    }
    link->waits_us = 0;
    return frame->type == STREAM_PROMISED ? take_promised(link, frame)
                                          : take_refused(link, frame);
}

void
link_asker_wrong(struct link_asker *link, const struct stream_fault *fault)
{
    (void)link_caller__end_with(&link->call, LINK_BAD_FRAME, fault);
}

/* Of a probe the term says nothing, but there is one in each frame. */
static void
send_question(struct link_asker *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    struct message_promise promise = {.term = link->term,
        .last = node->written,
        .flags = link->is_probe ? (uint32_t)PROMISE_ASKS_ONLY : 0,
        .name = link->call.self->name};

    if (link->is_probe) {
        promise.term = node->promised > 0 ? node->promised : 1;
        link->has_probed = true;
    } else if (link->term > link->asked_term) {
        link->asked_term = link->term;
    }
    order->what = LINK_SEND;
    order->len = stream_seal(out, STREAM_PROMISE,
        (uint32_t)message_put_promise(out + STREAM_HEAD_BYTES, &promise),
        node->promised, link->call.session);
    link->is_due = false;
    if (link->waits_us == 0) {
        link->waits_us = now_us;
    }
}

static bool
is_idle(const struct link_asker *link)
{
    return link->call.state >= LINK_ASKER_ASKING && link->waits_us == 0;
}

uint64_t
link_asker_ends_us(const struct link_asker *link)
{
    uint64_t timeout_us = link->call.self->timeout_us;

    return is_idle(link)      ? link->used_us + timeout_us / IDLE_PART
        : link->waits_us != 0 ? link->waits_us + timeout_us
                              : link->opened_us + timeout_us;
}

void
link_asker_next(struct link_asker *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    uint64_t until_us = link_asker_ends_us(link);

    if (now_us >= until_us && !link_caller_is_over(&link->call)) {
        link->call.end.reason = is_idle(link) ? LINK_IDLE : LINK_TIMEOUT;
        link_caller__move(&link->call, LINK_CALLER_ENDED);
    }
    if (link->is_due && !link->is_probe && link->term != node->promised) {
        link->is_due = false;
    }
    *order = (struct link_order){.what = LINK_WAIT, .until_us = until_us};
    if (link->call.state != LINK_ASKER_ASKING) {
        link_caller__next(&link->call, node, node->promised, out, order);
    } else if (link->is_due) {
        send_question(link, node, now_us, out, order);
    }
}
