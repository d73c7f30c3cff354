/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a replica's end:
 *
 *   OPEN --> GREETING --> GREETED --> (PROMISING) --> FOLLOWING
 *                                          |
 *                                          +--------> COPYING
 *                                          +--------> CUTTING
 *
 * From each of them the end can be near: ENDING where the other end is told
 * why, ENDED where not. PROMISING is left out where the term has been promised
 * before.
 *
 * FOLLOWING: every batch follows the one before by the primary's history, which
 * WELCOME brought and which does not change in a term; so nothing is written
 * that would leave a gap, and nothing of another branch. All frames are of the
 * term that was promised. `received` is the last one that was handed on; what
 * is acknowledged is what the caller says is written, never more.
 *
 * What can go wrong: any frame; a primary that is silent, or says that there is
 * more and does not send it; a later term, promised to somebody else. Each
 * ends the connection, and nothing that was handed on has to be taken back for
 * it. */
#include "repl/link_replica.h"

#include "base/assert.h"
#include "base/steps.h"

#include <string.h>

#define BIT(name) STEP_TO(LINK_REPLICA_##name)
#define BITS_OF_END (BIT(ENDING) | BIT(ENDED))
#define BITS_OF_WORK (BIT(FOLLOWING) | BIT(COPYING) | BIT(CUTTING))

/* Where each state may lead. */
static const unsigned may_lead[LINK_REPLICA_STATES_N] = {
    [LINK_REPLICA_OPEN] = BIT(GREETING) | BITS_OF_END,
    [LINK_REPLICA_GREETING] = BIT(GREETED) | BITS_OF_END,
    [LINK_REPLICA_GREETED] = BIT(PROMISING) | BITS_OF_WORK | BITS_OF_END,
    [LINK_REPLICA_PROMISING] = BITS_OF_WORK | BITS_OF_END,
    [LINK_REPLICA_FOLLOWING] = BITS_OF_END,
    [LINK_REPLICA_COPYING] = BITS_OF_END,
    [LINK_REPLICA_CUTTING] = BITS_OF_END,
    [LINK_REPLICA_ENDING] = BIT(ENDED),
    [LINK_REPLICA_ENDED] = 0};

static void
move_to(struct link_replica *link, enum link_replica_state state)
{
    ASSERT_STEP(may_lead, link->state, state);
    link->state = state;
}

/* The other end knows the session once it has had a hello. */
static enum link_step
end_for(struct link_replica *link, enum link_reason reason)
{
    if (link->state < LINK_REPLICA_ENDING) {
        link->end.reason = reason;
        move_to(link,
            link->state < LINK_REPLICA_GREETED ? LINK_REPLICA_ENDED
                                               : LINK_REPLICA_ENDING);
    }
    return LINK_ENDING;
}

static enum link_step
end_with(struct link_replica *link, enum link_reason reason,
    const struct stream_fault *fault)
{
    link->end.fault = *fault;
    return end_for(link, reason);
}

static enum link_step
end_at(struct link_replica *link, enum link_reason reason,
    const struct stream_frame *frame, const char *what, uint32_t offset)
{
    struct stream_fault fault = {
        .what = what, .offset = offset, .type = (uint8_t)frame->type};

    return end_with(link, reason, &fault);
}

void
link_replica_init(struct link_replica *link, const struct link_self *self,
    const uint8_t nonce[STREAM_NONCE_BYTES], uint64_t now_us)
{
    ASSERT(message_is_name(self->group.at, self->group.len));
    ASSERT(message_is_name(self->name.at, self->name.len));
    *link = (struct link_replica){
        .self = self, .heard_us = now_us, .said_us = now_us};
    memcpy(link->nonce, nonce, STREAM_NONCE_BYTES);
}

static enum link_step
take_challenge(struct link_replica *link, const struct stream_frame *frame)
{
    struct stream_fault fault;

    if (message_get_challenge(frame, link->challenge, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    link->session = stream_session(link->challenge, link->nonce);
    move_to(link, LINK_REPLICA_GREETING);
    return LINK_TAKEN;
}

static bool
is_proved(
    const struct link_replica *link, const struct message_welcome *welcome)
{
    const struct link_self *self = link->self;
    struct proof_claim claim = {.accepting = link->challenge,
        .connecting = link->nonce,
        .group = self->group.at,
        .name = welcome->name.at,
        .group_len = self->group.len,
        .name_len = welcome->name.len};

    return proof__is_right(self->secret, &claim, welcome->proof);
}

/* True where the verdict is the one that the two histories ask for. A snapshot
 * may be for another reason: the log does not reach back. */
static bool
is_verdict_right(
    const struct link_node *node, const struct message_welcome *welcome)
{
    uint64_t seq;
    enum history_fit fit;

    if (welcome->verdict == MESSAGE_SNAPSHOT) {
        return true;
    }
    fit = history_fit(
        &welcome->history, welcome->last, node->history, node->written, &seq);
    return node->directory.epoch != 0 && seq == welcome->seq &&
        fit == (welcome->verdict == MESSAGE_CUT ? HISTORY_CUT : HISTORY_FITS);
}

static void
begin_work(struct link_replica *link)
{
    switch (link->verdict) {
    case MESSAGE_CONTINUE:
        move_to(link, LINK_REPLICA_FOLLOWING);
        return;
    case MESSAGE_CUT:
        move_to(link, LINK_REPLICA_CUTTING);
        return;
    case MESSAGE_SNAPSHOT:
        move_to(link, LINK_REPLICA_COPYING);
        return;
    }
}

static void
keep_welcome(struct link_replica *link, const struct message_welcome *welcome,
    const struct link_node *node)
{
    link->name_len = welcome->name.len;
    memcpy(link->name, welcome->name.at, welcome->name.len);
    link->client_len = welcome->client.len;
    if (welcome->client.len > 0) {
        memcpy(link->client, welcome->client.at, welcome->client.len);
    }
    link->verdict = welcome->verdict;
    link->verdict_seq = welcome->seq;
    link->history = welcome->history;
    link->received = welcome->seq;
    link->committed = welcome->committed;
    link->last = welcome->last;
    /* so that the first ACK goes out at once */
    link->said = (struct message_ack){.written = UINT64_MAX};
    ASSERT(
        welcome->verdict != MESSAGE_CONTINUE || welcome->seq == node->written);
}

static enum link_step
take_welcome(struct link_replica *link, const struct link_node *node,
    const struct stream_frame *frame)
{
    struct message_welcome welcome;
    struct stream_fault fault;
    const struct history *history = &welcome.history;

    if (message_get_welcome(frame, &welcome, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if (!is_proved(link, &welcome)) {
        return end_for(link, LINK_PROOF);
    }
    if (welcome.protocol != LINK_PROTOCOL) {
        return end_for(link, LINK_VERSIONS);
    }
    if (frame->term == 0 || frame->term != history->at[history->n - 1].term) {
        return end_at(
            link, LINK_BAD_FRAME, frame, "the newest term of the history", 16);
    }
    if (frame->term < node->promised) {
        link->end.term = frame->term;
        return end_for(link, LINK_OLDER_TERM);
    }
    if (link__is_split(history, node->history, frame->term)) {
        link->end.term = frame->term;
        return end_for(link, LINK_SAME_TERM);
    }
    if (!is_verdict_right(node, &welcome)) {
        return end_at(link, LINK_BAD_FRAME, frame, "a verdict that is right",
            STREAM_HEAD_BYTES + PROOF_BYTES + 1);
    }
    link->term = frame->term;
    keep_welcome(link, &welcome, node);
    if (link->term > node->promised) {
        move_to(link, LINK_REPLICA_PROMISING);
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
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if (!take_news(link)) {
        return end_at(link, LINK_BAD_FRAME, frame, "no less than before",
            STREAM_HEAD_BYTES + 8);
    }
    /* a heartbeat comes behind the batches that it tells of */
    if (link->state == LINK_REPLICA_FOLLOWING && link->last > link->received &&
        link->behind_us == 0) {
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
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if (!do_follow(link, frame, &at)) {
        return end_at(
            link, LINK_GAP, frame, "the batch behind the one before", at);
    }
    link->received = link->batches.last;
    link->behind_us = 0;
    if (!take_news(link)) {
        return end_at(link, LINK_BAD_FRAME, frame, "no less than before",
            STREAM_HEAD_BYTES + 8);
    }
    return LINK_YOURS;
}

static enum link_step
take_switch(struct link_replica *link, const struct stream_frame *frame)
{
    struct stream_fault fault;
    uint64_t seq;

    if (message_get_switch(frame, &seq, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if (seq < link->received) {
        return end_at(link, LINK_BAD_FRAME, frame, "a batch that is the last",
            STREAM_HEAD_BYTES);
    }
    link->switch_seq = seq;
    return LINK_TAKEN;
}

/* True where a frame of that type may come in that state. */
static bool
is_due(const struct link_replica *link, enum stream_type type)
{
    switch (link->state) {
    case LINK_REPLICA_OPEN:
        return type == STREAM_CHALLENGE;
    case LINK_REPLICA_GREETED:
        return type == STREAM_WELCOME;
    case LINK_REPLICA_FOLLOWING:
        return type == STREAM_BATCHES || type == STREAM_HEARTBEAT ||
            type == STREAM_SWITCH;
    case LINK_REPLICA_COPYING:
        return type == STREAM_HEARTBEAT || type == STREAM_SNAPSHOT ||
            type == STREAM_FILE || type == STREAM_DATA || type == STREAM_END;
    default:
        return false;
    }
}

static enum link_step
hear_end(struct link_replica *link, const struct stream_frame *frame)
{
    struct link_end end;

    link__hear_end(frame, &end);
    link->end = end;
    if (end.reason == LINK_BAD_FRAME) {
        return end_for(link, end.reason);
    }
    move_to(link, LINK_REPLICA_ENDED);
    return LINK_ENDING;
}

static enum link_step
take_work(struct link_replica *link, const struct stream_frame *frame,
    uint64_t now_us)
{
    if (frame->term != link->term) {
        link->end.term = frame->term;
        return end_for(link,
            frame->term > link->term ? LINK_NEWER_TERM : LINK_OLDER_TERM);
    }
    switch (frame->type) {
    case STREAM_BATCHES:
        return take_batches(link, frame);
    case STREAM_HEARTBEAT:
        return take_heartbeat(link, frame, now_us);
    case STREAM_SWITCH:
        return take_switch(link, frame);
    default:
        return LINK_YOURS;
    }
}

enum link_step
link_replica_take(struct link_replica *link, const struct link_node *node,
    const struct stream_frame *frame, uint64_t now_us)
{
    if (link->state >= LINK_REPLICA_ENDING) {
        return LINK_ENDING;
    }
    ASSERT(link_replica_may_take(link));
    link->heard_us = now_us;
    if (frame->type == STREAM_ERROR || frame->type == STREAM_REFUSED) {
        return hear_end(link, frame);
    }
    if (!is_due(link, frame->type)) {
        return end_at(link, LINK_BAD_ORDER, frame, "another type", 5);
    }
    switch (frame->type) {
    case STREAM_CHALLENGE:
        return take_challenge(link, frame);
    case STREAM_WELCOME:
        return take_welcome(link, node, frame);
    default:
        return take_work(link, frame, now_us);
    }
}

void
link_replica_heard(struct link_replica *link, uint64_t now_us)
{
    link->heard_us = now_us;
}

void
link_replica_wrong(struct link_replica *link, const struct stream_fault *fault)
{
    (void)end_with(link, LINK_BAD_FRAME, fault);
}

static void
order_send(struct link_replica *link, enum stream_type type, size_t len,
    uint64_t term, uint8_t *out, struct link_order *order)
{
    order->what = LINK_SEND;
    order->len = stream_seal(out, type, (uint32_t)len, term,
        type == STREAM_HELLO ? 0 : link->session);
}

/* False where there is no proof to be made. */
static bool
make_proof(const struct link_replica *link, struct message_hello *hello)
{
    struct proof_claim claim = {.accepting = link->challenge,
        .connecting = link->nonce,
        .purpose = (uint8_t)hello->purpose,
        .group = hello->group.at,
        .name = hello->name.at,
        .group_len = hello->group.len,
        .name_len = hello->name.len};

    return proof__make(link->self->secret, &claim, hello->proof) == 0;
}

static void
send_hello(struct link_replica *link, const struct link_node *node,
    uint8_t *out, struct link_order *order)
{
    const struct link_self *self = link->self;
    struct message_hello hello = {.purpose = MESSAGE_FOLLOW,
        .least = LINK_PROTOCOL,
        .most = LINK_PROTOCOL,
        .level = self->level,
        .flags = self->hello_flags,
        .priority = self->priority,
        .formats = self->formats,
        .shards = node->directory.shards,
        .epoch = node->directory.epoch,
        .seed = node->directory.seed,
        .promised = node->promised,
        .written = node->written,
        .synced = node->synced,
        .group = self->group,
        .name = self->name,
        .client = self->client,
        .repl = self->repl,
        .history = *node->history};

    memcpy(hello.nonce, link->nonce, STREAM_NONCE_BYTES);
    if (!make_proof(link, &hello)) {
        (void)end_for(link, LINK_PROOF);
        order->what = LINK_CLOSE;
        return;
    }
    order_send(link, STREAM_HELLO,
        message_put_hello(out + STREAM_HEAD_BYTES, &hello), node->promised,
        out, order);
    move_to(link, LINK_REPLICA_GREETED);
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

/* How far this node is; while a snapshot comes it has nothing. */
static struct message_ack
make_ack(const struct link_replica *link, const struct link_node *node)
{
    struct message_ack ack = {.flags = node->flags, .echo_us = link->echo_us};

    if (link->state == LINK_REPLICA_FOLLOWING) {
        ASSERT(node->written <= link->received);
        ASSERT(node->synced <= node->written);
        ASSERT(node->applied <= node->written);
        ack.written = node->written;
        ack.synced = node->synced;
        ack.applied = node->applied;
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
        link->state == LINK_REPLICA_FOLLOWING ? LINK_WAIT : LINK_COPY;
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
    if (link->state >= LINK_REPLICA_ENDING) {
        return;
    }
    if (node->is_paused) {
        link->heard_us = now_us;
        link->behind_us = 0;
    }
    if (now_us - link->heard_us >= link->self->timeout_us) {
        link->end.reason = LINK_TIMEOUT;
        move_to(link, LINK_REPLICA_ENDED);
    } else if (link->state > LINK_REPLICA_PROMISING &&
        node->promised > link->term) {
        link->end.term = node->promised;
        (void)end_for(link, LINK_TERM_OVER);
    } else if (link->behind_us != 0 &&
        now_us - link->behind_us >= LINK_STALL_US) {
        (void)end_for(link, LINK_STALLED);
    }
}

void
link_replica_next(struct link_replica *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    look_around(link, node, now_us);
    *order = (struct link_order){.what = LINK_WAIT,
        .until_us = link->heard_us + link->self->timeout_us};
    switch (link->state) {
    case LINK_REPLICA_OPEN:
    case LINK_REPLICA_GREETED:
        return;
    case LINK_REPLICA_GREETING:
        send_hello(link, node, out, order);
        return;
    case LINK_REPLICA_PROMISING:
        order->what = LINK_PROMISE;
        order->term = link->term;
        return;
    case LINK_REPLICA_CUTTING:
        order->what = LINK_CUT_LOG;
        order->seq = link->verdict_seq;
        return;
    case LINK_REPLICA_FOLLOWING:
    case LINK_REPLICA_COPYING:
        go_on(link, node, now_us, out, order);
        return;
    case LINK_REPLICA_ENDING:
        order->len =
            link__put_end(&link->end, node->promised, link->session, out);
        order->what = order->len > 0 ? LINK_SEND : LINK_CLOSE;
        move_to(link, LINK_REPLICA_ENDED);
        return;
    default:
        order->what = LINK_CLOSE;
    }
}

void
link_replica_promised(struct link_replica *link)
{
    if (link->state == LINK_REPLICA_PROMISING) {
        begin_work(link);
    }
}

size_t
link_replica_have(
    struct link_replica *link, uint8_t *frame, uint32_t len, uint64_t now_us)
{
    ASSERT(link->state == LINK_REPLICA_COPYING);
    link->said_us = now_us;
    return stream_seal(frame, STREAM_HAVE, len, link->term, link->session);
}
