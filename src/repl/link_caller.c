/* SPDX-License-Identifier: BSD-3-Clause */
/* The states that all ends which connect have:
 *
 *   OPEN --> GREETING --> GREETED --> the kind's own
 *
 * From each of them the end can be near: ENDING where the other end is told
 * why, ENDED where not. The other end knows the session once it has had a
 * hello; before that it is told nothing.
 *
 * What can go wrong: any frame; another secret, or another version. Each ends
 * the connection. */
#include "repl/link_caller.h"

#include "base/assert.h"
#include "base/steps.h"

#include <string.h>

#define BIT(name) STEP_TO(LINK_CALLER_##name)
#define BITS_OF_END (BIT(ENDING) | BIT(ENDED))

void
link_caller__init(struct link_caller *call, const struct link_self *self,
    enum message_purpose purpose, const unsigned *may_lead,
    const uint8_t nonce[STREAM_NONCE_BYTES])
{
    ASSERT(message_is_name(self->group.at, self->group.len));
    ASSERT(message_is_name(self->name.at, self->name.len));
    *call = (struct link_caller){
        .self = self, .may_lead = may_lead, .purpose = purpose};
    memcpy(call->nonce, nonce, STREAM_NONCE_BYTES);
}

static unsigned
may_follow(const struct link_caller *call)
{
    switch (call->state) {
    case LINK_CALLER_OPEN:
        return BIT(GREETING) | BITS_OF_END;
    case LINK_CALLER_GREETING:
        return BIT(GREETED) | BITS_OF_END;
    case LINK_CALLER_ENDING:
        return BIT(ENDED);
    case LINK_CALLER_ENDED:
        return 0;
    default:
        return call->may_lead[call->state] | BITS_OF_END;
    }
}

void
link_caller__move(struct link_caller *call, unsigned state)
{
    ASSERT(state < LINK_CALLER_STATES_N);
    ASSERT((may_follow(call) & STEP_TO(state)) != 0);
    call->state = state;
}

enum link_step
link_caller__end_for(struct link_caller *call, enum link_reason reason)
{
    if (!link_caller_is_over(call)) {
        call->end.reason = reason;
        link_caller__move(call,
            call->state < LINK_CALLER_GREETED ? LINK_CALLER_ENDED
                                              : LINK_CALLER_ENDING);
    }
    return LINK_ENDING;
}

enum link_step
link_caller__end_with(struct link_caller *call, enum link_reason reason,
    const struct stream_fault *fault)
{
    call->end.fault = *fault;
    return link_caller__end_for(call, reason);
}

enum link_step
link_caller__end_at(struct link_caller *call, enum link_reason reason,
    const struct stream_frame *frame, const char *what, uint32_t offset)
{
    struct stream_fault fault = {
        .what = what, .offset = offset, .type = (uint8_t)frame->type};

    return link_caller__end_with(call, reason, &fault);
}

bool
link_caller__is_due(const struct link_caller *call, enum stream_type type)
{
    return (call->state == LINK_CALLER_OPEN && type == STREAM_CHALLENGE) ||
        (call->state == LINK_CALLER_GREETED && type == STREAM_WELCOME);
}

static enum link_step
take_challenge(struct link_caller *call, const struct stream_frame *frame)
{
    struct stream_fault fault;

    if (message_get_challenge(frame, call->challenge, &fault) != 0) {
        return link_caller__end_with(call, LINK_BAD_FRAME, &fault);
    }
    call->session = stream_session(call->challenge, call->nonce);
    link_caller__move(call, LINK_CALLER_GREETING);
    return LINK_TAKEN;
}

bool
link_caller__take_welcome(struct link_caller *call,
    const struct stream_frame *frame, struct message_welcome *out)
{
    struct stream_fault fault;

    if (message_get_welcome(frame, out, &fault) != 0) {
        (void)link_caller__end_with(call, LINK_BAD_FRAME, &fault);
        return false;
    }
    if (!link__is_proved(call->self, out, call->challenge, call->nonce)) {
        (void)link_caller__end_for(call, LINK_PROOF);
        return false;
    }
    if (out->protocol != LINK_PROTOCOL) {
        (void)link_caller__end_for(call, LINK_VERSIONS);
        return false;
    }
    return true;
}

void
link_caller__keep(
    struct link_caller *call, const struct message_welcome *welcome)
{
    call->name_len = welcome->name.len;
    memcpy(call->name, welcome->name.at, welcome->name.len);
    call->client_len = welcome->client.len;
    if (welcome->client.len > 0) {
        memcpy(call->client, welcome->client.at, welcome->client.len);
    }
}

bool
link_caller__is_of_term(
    struct link_caller *call, const struct stream_frame *frame, uint64_t term)
{
    if (frame->term == term) {
        return true;
    }
    call->end.term = frame->term;
    (void)link_caller__end_for(
        call, frame->term > term ? LINK_NEWER_TERM : LINK_OLDER_TERM);
    return false;
}

static enum link_step
hear_end(struct link_caller *call, const struct stream_frame *frame)
{
    struct link_end end;

    link__hear_end(frame, &end);
    call->end = end;
    if (end.reason == LINK_BAD_FRAME) {
        return link_caller__end_for(call, end.reason);
    }
    link_caller__move(call, LINK_CALLER_ENDED);
    return LINK_ENDING;
}

static void
send_hello(struct link_caller *call, const struct link_node *node,
    uint8_t *out, struct link_order *order)
{
    order->len = link__put_hello(
        call->self, node, call->purpose, call->challenge, call->nonce, out);
    if (order->len == 0) {
        (void)link_caller__end_for(call, LINK_PROOF);
        order->what = LINK_CLOSE;
        return;
    }
    order->what = LINK_SEND;
    link_caller__move(call, LINK_CALLER_GREETED);
}

bool
link_caller__hear(struct link_caller *call, const struct stream_frame *frame,
    bool is_due, enum link_step *step)
{
    /* of who asks it is an answer, once there may be one */
    bool is_answer =
        call->purpose == MESSAGE_PROMISE && call->state >= LINK_CALLER_WORK;

    if (link_caller_is_over(call)) {
        *step = LINK_ENDING;
    } else if (frame->type == STREAM_ERROR ||
        (frame->type == STREAM_REFUSED && !is_answer)) {
        *step = hear_end(call, frame);
    } else if (!is_due) {
        *step = link_caller__end_at(
            call, LINK_BAD_ORDER, frame, "another type", 5);
    } else if (frame->type == STREAM_CHALLENGE) {
        *step = take_challenge(call, frame);
    } else {
        return false;
    }
    return true;
}

void
link_caller__next(struct link_caller *call, const struct link_node *node,
    uint64_t term, uint8_t *out, struct link_order *order)
{
    switch (call->state) {
    case LINK_CALLER_OPEN:
    case LINK_CALLER_GREETED:
        return;
    case LINK_CALLER_GREETING:
        send_hello(call, node, out, order);
        return;
    case LINK_CALLER_ENDING:
        order->len = link__put_end(&call->end, term, call->session, out);
        order->what = order->len > 0 ? LINK_SEND : LINK_CLOSE;
        link_caller__move(call, LINK_CALLER_ENDED);
        return;
    default:
        ASSERT(call->state == LINK_CALLER_ENDED);
        order->what = LINK_CLOSE;
    }
}
