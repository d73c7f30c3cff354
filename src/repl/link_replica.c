/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a replica's end:
 *
 *   greeting (repl/link_caller.c) --> (PROMISING) --> FOLLOWING
 *                      |                  |
 *                      |                  +--------> COPYING
 *                   FETCHING              +--------> CUTTING
 *
 * PROMISING is left out where the term has been promised before.
 *
 * What is written may move on while a welcome is to come. So the verdict is
 * about what HELLO told, and batches that have been written since come again;
 * so do those that the log has only been given. All of them are to be the
 * primary's: else they have to be on the disk before they can be cut, and the
 * link ends until then.
 *
 * FOLLOWING: every batch follows the one before by the primary's history, which
 * WELCOME brought and which does not change in a term; so nothing is written
 * that would leave a gap, and nothing of another branch. All frames are of the
 * term that was promised. `received` is the last one that was handed on; what
 * is acknowledged is what the caller says is written, never more.
 *
 * FETCHING is the same for a candidate, from a node that has promised its term
 * and is no primary: so the history ends in an earlier one. Nothing is cut for
 * it, and END comes when all is here. Where this log has all that the other one
 * has, and more, that is fetched at once.
 *
 * What can go wrong: any frame; a primary that is silent, or says that there is
 * more and does not send it; a later term, promised to somebody else. Each
 * ends the connection, and nothing that was handed on has to be taken back for
 * it. */
#include "repl/link_replica.h"

#include "base/assert.h"
#include "base/steps.h"
#include "repl/message_files.h"

#include <string.h>

#define BIT(name) STEP_TO(LINK_REPLICA_##name)
#define BITS_OF_WORK (BIT(FOLLOWING) | BIT(COPYING) | BIT(CUTTING))

/* See link_caller. */
static const unsigned may_lead[LINK_CALLER_STATES_N] = {
    [LINK_CALLER_GREETED] = BIT(PROMISING) | BIT(FETCHING) | BITS_OF_WORK,
    [LINK_REPLICA_PROMISING] = BITS_OF_WORK};

void
link_replica_init(struct link_replica *link, const struct link_self *self,
    const uint8_t nonce[STREAM_NONCE_BYTES], uint64_t now_us)
{
    *link = (struct link_replica){.heard_us = now_us, .said_us = now_us};
    link_caller__init(&link->call, self, MESSAGE_FOLLOW, may_lead, nonce);
}

void
link_replica_fetch(struct link_replica *link, uint64_t term)
{
    ASSERT(link->call.state == LINK_CALLER_OPEN);
    ASSERT(term >= 1 && term <= SEQ_TERM_MAX);
    link->call.purpose = MESSAGE_FETCH;
    link->term = term;
}

/* What HELLO told of the history. */
static struct history
told_history(const struct link_replica *link, const struct link_node *node)
{
    struct history history = *node->history;

    ASSERT(link->told <= node->written);
    if (link->told < node->written && history.n > 0) {
        history_cut(&history, link->told);
    }
    return history;
}

/* True where the verdict is the one that the two histories ask for. A snapshot
 * may be for another reason: the log does not reach back. */
static bool
is_verdict_right(const struct link_replica *link, const struct link_node *node,
    const struct message_welcome *welcome)
{
    const struct history history = told_history(link, node);
    uint64_t seq;
    enum history_fit fit;

    if (welcome->verdict == MESSAGE_SNAPSHOT) {
        return welcome->seq == 0;
    }
    fit = history_fit(
        &welcome->history, welcome->last, &history, link->told, &seq);
    return node->directory.epoch != 0 && seq == welcome->seq &&
        fit == (welcome->verdict == MESSAGE_CUT ? HISTORY_CUT : HISTORY_FITS);
}

/* True where the other end has all that the log was given behind what HELLO
 * told. */
static bool
is_rest_right(const struct link_replica *link, const struct link_node *node,
    const struct message_welcome *welcome)
{
    const struct history *history =
        node->given_history == NULL ? node->history : node->given_history;
    uint64_t last = node->given_history == NULL ? node->written : node->given;
    uint64_t seq;

    ASSERT(last >= node->written);
    return last == link->told ||
        history_fit(&welcome->history, welcome->last, history, last, &seq) ==
        HISTORY_FITS;
}

static void
begin_work(struct link_replica *link)
{
    switch (link->verdict) {
    case MESSAGE_CONTINUE:
        link_caller__move(&link->call, LINK_REPLICA_FOLLOWING);
        return;
    case MESSAGE_CUT:
        link_caller__move(&link->call, LINK_REPLICA_CUTTING);
        return;
    case MESSAGE_SNAPSHOT:
        link_caller__move(&link->call, LINK_REPLICA_COPYING);
        return;
    }
}

static void
keep_welcome(struct link_replica *link, const struct message_welcome *welcome)
{
    link_caller__keep(&link->call, welcome);
    link->verdict = welcome->verdict;
    link->verdict_seq = welcome->seq;
    link->history = welcome->history;
    link->received = welcome->seq;
    link->committed = welcome->committed;
    link->last = welcome->last;
    /* so that the first ACK goes out at once */
    link->said = (struct message_ack){.written = UINT64_MAX};
    ASSERT(welcome->verdict != MESSAGE_CONTINUE || welcome->seq == link->told);
}

/* Is the welcome of the term that its history ends in; of who is fetched from,
 * of the candidate's, which nobody has begun? */
static bool
is_term_right(const struct link_replica *link,
    const struct stream_frame *frame, const struct history *history)
{
    uint64_t newest = history->n == 0 ? 0 : history->at[history->n - 1].term;

    return link->call.purpose == MESSAGE_FETCH
        ? frame->term == link->term && newest < frame->term
        : newest != 0 && frame->term == newest;
}

static enum link_step
begin_fetch(struct link_replica *link)
{
    if (link->verdict == MESSAGE_CUT && link->verdict_seq == link->last) {
        link->call.end.reason = LINK_FETCHED;
        link_caller__move(&link->call, LINK_CALLER_ENDED);
        return LINK_ENDING;
    }
    if (link->verdict != MESSAGE_CONTINUE) {
        return link_caller__end_for(&link->call, LINK_APART);
    }
    link_caller__move(&link->call, LINK_REPLICA_FETCHING);
    return LINK_TAKEN;
}

static enum link_step
take_welcome(struct link_replica *link, const struct link_node *node,
    const struct stream_frame *frame)
{
    struct message_welcome welcome;
    const struct history *history = &welcome.history;

    if (!link_caller__take_welcome(&link->call, frame, &welcome)) {
        return LINK_ENDING;
    }
    if (!is_term_right(link, frame, history)) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "the newest term of the history", 16);
    }
    if (node->promised > 0 && frame->term > node->promised + LINK_TERMS_MAX) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "a term that promotions lead to", 16);
    }
    if (frame->term < node->promised) {
        link->call.end.term = frame->term;
        return link_caller__end_for(&link->call, LINK_OLDER_TERM);
    }
    if (link__is_split(history, node->history, frame->term)) {
        link->call.end.term = frame->term;
        return link_caller__end_for(&link->call, LINK_SAME_TERM);
    }
    if (!is_verdict_right(link, node, &welcome)) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "a verdict that is right", STREAM_HEAD_BYTES + PROOF_BYTES + 1);
    }
    if (welcome.verdict == MESSAGE_CONTINUE &&
        !is_rest_right(link, node, &welcome)) {
        return link_caller__end_for(&link->call, LINK_APART);
    }
    link->term = frame->term;
    keep_welcome(link, &welcome);
    if (link->call.purpose == MESSAGE_FETCH) {
        return begin_fetch(link);
    }
    if (link->term > node->promised) {
        link_caller__move(&link->call, LINK_REPLICA_PROMISING);
    } else {
        begin_work(link);
    }
    return LINK_TAKEN;
}

/* False where the primary's log has become shorter. */
static bool
take_news(struct link_replica *link)
{
    const struct message_news *news = &link->news;

    if (news->last < link->last) {
        return false;
    }
    link->last = news->last;
    if (news->committed > link->committed) {
        link->committed = news->committed;
    }
    link->echo_us = news->clock_us;
    return true;
}

static enum link_step
take_heartbeat(struct link_replica *link, const struct stream_frame *frame,
    uint64_t now_us)
{
    struct stream_fault fault;

    if (message_get_heartbeat(frame, &link->news, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if (!take_news(link)) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "no less than before", STREAM_HEAD_BYTES + 8);
    }
    /* a heartbeat comes behind the batches that it tells of */
    if (link->call.state != LINK_REPLICA_COPYING &&
        link->last > link->received && link->behind_us == 0) {
        link->behind_us = now_us;
    }
    return LINK_TAKEN;
}

/* Each batch follows the one before, the first one what is here. *at: of the
 * first that does not, from the beginning of the frame. */
static bool
do_follow(const struct link_replica *link, const struct stream_frame *frame,
    uint32_t *at)
{
    struct message_batches all = link->batches;
    struct message_batch batch;
    uint64_t seq = link->received;

    while (message_next_batch(&all, &batch)) {
        *at = STREAM_HEAD_BYTES +
            (uint32_t)(batch.payload - MESSAGE_BATCH_BYTES - frame->body);
        if (!history_follows(&link->history, seq, batch.seq)) {
            return false;
        }
        seq = batch.seq;
    }
    return link->switch_seq == 0 || seq <= link->switch_seq;
}

static enum link_step
take_batches(struct link_replica *link, const struct stream_frame *frame)
{
    struct stream_fault fault;
    uint32_t at = 0;

    if (message_get_batches(frame, &link->news, &link->batches, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if (!do_follow(link, frame, &at)) {
        return link_caller__end_at(&link->call, LINK_GAP, frame,
            "the batch behind the one before", at);
    }
    link->received = link->batches.last;
    link->behind_us = 0;
    if (!take_news(link)) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "no less than before", STREAM_HEAD_BYTES + 8);
    }
    return LINK_YOURS;
}

/* All that the other end has was sent. */
static enum link_step
take_end(struct link_replica *link, const struct stream_frame *frame)
{
    struct message_end end;
    struct stream_fault fault;

    if (message_get_end(frame, &end, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if (end.of != MESSAGE_END_FETCH || end.value != link->received) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "the last batch that came", STREAM_HEAD_BYTES);
    }
    link->call.end.reason = LINK_FETCHED;
    link_caller__move(&link->call, LINK_CALLER_ENDED);
    return LINK_ENDING;
}

static enum link_step
take_switch(struct link_replica *link, const struct stream_frame *frame)
{
    struct stream_fault fault;
    uint64_t seq;

    if (message_get_switch(frame, &seq, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if (seq < link->received) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "a batch that is the last", STREAM_HEAD_BYTES);
    }
    link->switch_seq = seq;
    return LINK_TAKEN;
}

/* True where a frame of that type may come in that state. */
static bool
is_due(const struct link_replica *link, enum stream_type type)
{
    switch (link->call.state) {
    case LINK_REPLICA_FOLLOWING:
        return type == STREAM_BATCHES || type == STREAM_HEARTBEAT ||
            type == STREAM_SWITCH ||
            (type == STREAM_REPLY && link_replica_forwards(link));
    case LINK_REPLICA_FETCHING:
        return type == STREAM_BATCHES || type == STREAM_HEARTBEAT ||
            type == STREAM_END;
    case LINK_REPLICA_COPYING:
        return type == STREAM_HEARTBEAT || type == STREAM_SNAPSHOT ||
            type == STREAM_FILE || type == STREAM_DATA || type == STREAM_END;
    default:
        return link_caller__is_due(&link->call, type);
    }
}

static enum link_step
take_work(struct link_replica *link, const struct stream_frame *frame,
    uint64_t now_us)
{
    if (!link_caller__is_of_term(&link->call, frame, link->term)) {
        return LINK_ENDING;
    }
    switch (frame->type) {
    case STREAM_BATCHES:
        return take_batches(link, frame);
    case STREAM_HEARTBEAT:
        return take_heartbeat(link, frame, now_us);
    case STREAM_SWITCH:
        return take_switch(link, frame);
    case STREAM_END:
        return link->call.state == LINK_REPLICA_FETCHING
            ? take_end(link, frame)
            : LINK_YOURS;
    default:
        return LINK_YOURS;
    }
}

enum link_step
link_replica_take(struct link_replica *link, const struct link_node *node,
    const struct stream_frame *frame, uint64_t now_us)
{
    enum link_step step;

    ASSERT(link_replica_may_take(link));
    link->heard_us = now_us;
    if (link_caller__hear(
            &link->call, frame, is_due(link, frame->type), &step)) {
        return step;
    }
    return frame->type == STREAM_WELCOME ? take_welcome(link, node, frame)
                                         : take_work(link, frame, now_us);
}

void
link_replica_heard(struct link_replica *link, uint64_t now_us)
{
    link->heard_us = now_us;
}

void
link_replica_wrong(struct link_replica *link, const struct stream_fault *fault)
{
    (void)link_caller__end_with(&link->call, LINK_BAD_FRAME, fault);
}

static void
order_send(struct link_replica *link, enum stream_type type, size_t len,
    uint64_t term, uint8_t *out, struct link_order *order)
{
    order->what = LINK_SEND;
    order->len =
        stream_seal(out, type, (uint32_t)len, term, link->call.session);
}

static bool
is_ack_due(const struct link_replica *link, const struct message_ack *ack,
    uint64_t now_us)
{
    const struct message_ack *said = &link->said;

    return ack->written != said->written || ack->synced != said->synced ||
        ack->applied != said->applied || ack->flags != said->flags ||
        now_us - link->said_us >= LINK_BEAT_US;
}

/* How far this node is; while a snapshot comes it has nothing. What it has of
 * batches that are still to come again it has not had from this link. */
static struct message_ack
make_ack(const struct link_replica *link, const struct link_node *node)
{
    struct message_ack ack = {.flags = node->flags, .echo_us = link->echo_us};

    if (link->call.state != LINK_REPLICA_COPYING) {
        ASSERT(node->synced <= node->written);
        ASSERT(node->applied <= node->written);
        ack.written = link__earlier(node->written, link->received);
        ack.synced = link__earlier(node->synced, link->received);
        ack.applied = link__earlier(node->applied, link->received);
    }
    return ack;
}

static void
go_on(struct link_replica *link, const struct link_node *node, uint64_t now_us,
    uint8_t *out, struct link_order *order)
{
    struct message_ack ack = make_ack(link, node);

    if (is_ack_due(link, &ack, now_us)) {
        order_send(link, STREAM_ACK,
            message_put_ack(out + STREAM_HEAD_BYTES, &ack), link->term, out,
            order);
        link->said = ack;
        link->said_us = now_us;
        link->echo_us = 0;
        return;
    }
    order->what =
        link->call.state == LINK_REPLICA_COPYING ? LINK_COPY : LINK_WAIT;
    order->until_us =
        link__earlier(order->until_us, link->said_us + LINK_BEAT_US);
    if (link->behind_us != 0) {
        order->until_us =
            link__earlier(order->until_us, link->behind_us + LINK_STALL_US);
    }
}

/* Ends the link where that is due without any frame. */
static void
look_around(
    struct link_replica *link, const struct link_node *node, uint64_t now_us)
{
    if (link_caller_is_over(&link->call)) {
        return;
    }
    if (node->is_paused) {
        link->heard_us = now_us;
        link->behind_us = 0;
    }
    if (now_us - link->heard_us >= link->call.self->timeout_us) {
        link->call.end.reason = LINK_TIMEOUT;
        link_caller__move(&link->call, LINK_CALLER_ENDED);
    } else if (link->call.state > LINK_REPLICA_PROMISING &&
        node->promised > link->term) {
        link->call.end.term = node->promised;
        (void)link_caller__end_for(&link->call, LINK_TERM_OVER);
    } else if (link->behind_us != 0 &&
        now_us - link->behind_us >= LINK_STALL_US) {
        (void)link_caller__end_for(&link->call, LINK_STALLED);
    }
}

void
link_replica_next(struct link_replica *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    look_around(link, node, now_us);
    *order = (struct link_order){.what = LINK_WAIT,
        .until_us = link->heard_us + link->call.self->timeout_us};
    switch (link->call.state) {
    case LINK_REPLICA_PROMISING:
        order->what = LINK_PROMISE;
        order->term = link->term;
        return;
    case LINK_REPLICA_CUTTING:
        order->what = LINK_CUT_LOG;
        order->seq = link->verdict_seq;
        return;
    case LINK_REPLICA_FOLLOWING:
    case LINK_REPLICA_FETCHING:
    case LINK_REPLICA_COPYING:
        go_on(link, node, now_us, out, order);
        return;
    case LINK_CALLER_GREETING:
        link->told = node->written;
        link_caller__next(&link->call, node, node->promised, out, order);
        return;
    default:
        link_caller__next(&link->call, node, node->promised, out, order);
    }
}

void
link_replica_promised(struct link_replica *link)
{
    if (link->call.state == LINK_REPLICA_PROMISING) {
        begin_work(link);
    }
}

size_t
link_replica_have(
    struct link_replica *link, uint8_t *frame, uint32_t len, uint64_t now_us)
{
    ASSERT(link->call.state == LINK_REPLICA_COPYING);
    link->said_us = now_us;
    return stream_seal(
        frame, STREAM_HAVE, len, link->term, link->call.session);
}

size_t
link_replica_request(struct link_replica *link, uint8_t *frame, uint32_t len)
{
    ASSERT(link_replica_forwards(link));
    return stream_seal(
        frame, STREAM_REQUEST, len, link->term, link->call.session);
}
