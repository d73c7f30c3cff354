/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of the end of who is fed:
 *
 *   greeting (repl/link_caller.c) --> WANTING --> FEEDING
 *
 * FEEDING: SOURCE comes first, then what is known at the moment (is_schema: its
 * batch has the number of the position, which no other batch has), then the
 * log, of which only some batches come. So a batch need not follow the one
 * before; but all numbers go up, are of the history that WELCOME brought, and
 * none is above the position that its frame brings.
 *
 * What can go wrong: any frame; a source that is silent, or whose term ends.
 * Each ends the connection, and the position is what is told next time. */
#include "repl/link_feed.h"

#include "base/assert.h"
#include "base/steps.h"

#include <string.h>

/* See link_caller. */
static const unsigned may_lead[LINK_CALLER_STATES_N] = {
    [LINK_CALLER_GREETED] = STEP_TO(LINK_FEED_WANTING),
    [LINK_FEED_WANTING] = STEP_TO(LINK_FEED_FEEDING)};

void
link_feed_init(struct link_feed *link, const struct link_self *self,
    const struct message_text *rule, const uint8_t nonce[STREAM_NONCE_BYTES],
    uint64_t now_us)
{
    ASSERT(rule->len >= 1 && rule->len <= MESSAGE_RULE_MAX);
    *link = (struct link_feed){
        .rule_len = rule->len, .heard_us = now_us, .said_us = now_us};
    memcpy(link->rule, rule->at, rule->len);
    link_caller__init(&link->call, self, MESSAGE_FEED, may_lead, nonce);
}

/* What the node has, for HELLO and a verdict: the source's history up to its
 * position, which may be of an earlier term than the newest. */
static struct history
history_of(const struct link_node *node)
{
    struct history history = *node->history;

    if (history.n > 0) {
        ASSERT(history_find(&history, node->written) != NULL);
        history_cut(&history, node->written);
    }
    return history;
}

/* True where the stream goes on at a batch that the source has: behind the
 * position, or, where it does not fit or there is none, anywhere. */
static bool
is_verdict_right(
    const struct link_node *node, const struct message_welcome *welcome)
{
    const struct history history = history_of(node);
    uint64_t seq;

    if (welcome->verdict == MESSAGE_SNAPSHOT) {
        return welcome->seq > 0 &&
            history_find(&welcome->history, welcome->seq) != NULL;
    }
    return welcome->verdict == MESSAGE_CONTINUE &&
        node->directory.epoch != 0 && welcome->seq == node->written &&
        history_fit(&welcome->history, welcome->last, &history, node->written,
            &seq) == HISTORY_FITS;
}

/* What a welcome says of the source is kept. */
static void
keep_welcome(struct link_feed *link, const struct message_welcome *welcome)
{
    link_caller__keep(&link->call, welcome);
    link->verdict = welcome->verdict;
    link->verdict_seq = welcome->seq;
    link->history = welcome->history;
    link->position = welcome->seq;
    link->last = welcome->last;
    /* so that the first ACK goes out at once */
    link->said = (struct message_ack){.written = UINT64_MAX};
}

static enum link_step
take_welcome(struct link_feed *link, const struct link_node *node,
    const struct stream_frame *frame)
{
    struct message_welcome welcome;
    const struct history *history = &welcome.history;

    if (!link_caller__take_welcome(&link->call, frame, &welcome)) {
        return LINK_ENDING;
    }
    if (history->n == 0 || history->at[history->n - 1].term > frame->term) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "a term not below the history's", 16);
    }
    if (!is_verdict_right(node, &welcome)) {
        return link_caller__end_at(&link->call, LINK_BAD_FRAME, frame,
            "a verdict that is right", STREAM_HEAD_BYTES + PROOF_BYTES + 1);
    }
    link->term = frame->term;
    keep_welcome(link, &welcome);
    link_caller__move(&link->call, LINK_FEED_WANTING);
    return LINK_TAKEN;
}

static enum link_step
take_source(struct link_feed *link, const struct link_node *node,
    const struct stream_frame *frame)
{
    struct message_source source;
    struct stream_fault fault;

    if (message_get_source(frame, &source, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    link->directory = (struct link_directory){
        .epoch = source.epoch, .seed = source.seed, .shards = source.shards};
    if (node->directory.epoch != 0 &&
        (node->directory.epoch != source.epoch ||
            node->directory.seed != source.seed ||
            node->directory.shards != source.shards)) {
        return link_caller__end_for(&link->call, LINK_DIRECTORY);
    }
    return LINK_TAKEN;
}

/* What the source says of itself, and how far it is. False, and *at: it goes
 * back, or to where it has never been. */
static bool
take_news(struct link_feed *link, uint32_t *at)
{
    const struct message_news *news = &link->news;

    *at = STREAM_HEAD_BYTES;
    if (news->committed < link->position ||
        history_find(&link->history, news->committed) == NULL) {
        return false;
    }
    *at = STREAM_HEAD_BYTES + 8;
    if (news->last < link->last) {
        return false;
    }
    link->position = news->committed;
    link->last = news->last;
    link->echo_us = news->clock_us;
    return true;
}

static enum link_step
take_heartbeat(struct link_feed *link, const struct stream_frame *frame)
{
    struct stream_fault fault;
    uint32_t at;

    if (message_get_heartbeat(frame, &link->news, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    return take_news(link, &at)
        ? LINK_TAKEN
        : link_caller__end_at(
              &link->call, LINK_BAD_FRAME, frame, "no less than before", at);
}

static enum link_step
take_batches(struct link_feed *link, const struct stream_frame *frame)
{
    const struct message_batches *batches = &link->batches;
    struct stream_fault fault;
    uint64_t before = link->position;
    uint32_t at;

    if (message_get_batches(frame, &link->news, &link->batches, &fault) != 0) {
        return link_caller__end_with(&link->call, LINK_BAD_FRAME, &fault);
    }
    if (!take_news(link, &at)) {
        return link_caller__end_at(
            &link->call, LINK_BAD_FRAME, frame, "no less than before", at);
    }
    link->is_schema = batches->n == 1 && batches->first == before &&
        before == link->verdict_seq && link->position == before;
    if (!link->is_schema &&
        (batches->first <= before || batches->last > link->position)) {
        return link_caller__end_at(&link->call, LINK_GAP, frame,
            "batches behind the position before, and up to that of the frame",
            STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES);
    }
    return LINK_YOURS;
}

/* True where a frame of that type may come in that state. */
static bool
is_due(const struct link_feed *link, enum stream_type type)
{
    if (link->call.state != LINK_FEED_FEEDING) {
        return link_caller__is_due(&link->call, type);
    }
    return link->directory.epoch == 0
        ? type == STREAM_SOURCE
        : type == STREAM_BATCHES || type == STREAM_HEARTBEAT;
}

static enum link_step
take_work(struct link_feed *link, const struct link_node *node,
    const struct stream_frame *frame)
{
    if (!link_caller__is_of_term(&link->call, frame, link->term)) {
        return LINK_ENDING;
    }
    switch (frame->type) {
    case STREAM_SOURCE:
        return take_source(link, node, frame);
    case STREAM_BATCHES:
        return take_batches(link, frame);
    default:
        return take_heartbeat(link, frame);
    }
}

enum link_step
link_feed_take(struct link_feed *link, const struct link_node *node,
    const struct stream_frame *frame, uint64_t now_us)
{
    enum link_step step;

    ASSERT(link_feed_may_take(link));
    link->heard_us = now_us;
    if (link_caller__hear(
            &link->call, frame, is_due(link, frame->type), &step)) {
        return step;
    }
    return frame->type == STREAM_WELCOME ? take_welcome(link, node, frame)
                                         : take_work(link, node, frame);
}

void
link_feed_heard(struct link_feed *link, uint64_t now_us)
{
    link->heard_us = now_us;
}

void
link_feed_wrong(struct link_feed *link, const struct stream_fault *fault)
{
    (void)link_caller__end_with(&link->call, LINK_BAD_FRAME, fault);
}

/* The hello tells what is known of the history up to the position. */
static void
send_hello(struct link_feed *link, const struct link_node *node, uint8_t *out,
    struct link_order *order)
{
    const struct history history = history_of(node);
    struct link_node hello = *node;

    hello.history = &history;
    link_caller__next(&link->call, &hello, link->term, out, order);
}

static void
send_want(struct link_feed *link, uint8_t *out, struct link_order *order)
{
    struct message_want want = {
        .rule = {(const uint8_t *)link->rule, link->rule_len}};

    order->what = LINK_SEND;
    order->len = stream_seal(out, STREAM_WANT,
        (uint32_t)message_put_want(out + STREAM_HEAD_BYTES, &want), link->term,
        link->call.session);
    link_caller__move(&link->call, LINK_FEED_FEEDING);
}

static void
go_on(struct link_feed *link, const struct link_node *node, uint64_t now_us,
    uint8_t *out, struct link_order *order)
{
    uint64_t seq =
        node->written < link->verdict_seq ? link->verdict_seq : node->written;
    struct message_ack ack = {.written = seq,
        .synced = seq,
        .applied = seq,
        .flags = node->flags,
        .echo_us = link->echo_us};

    ASSERT(seq <= link->position);
    if (seq != link->said.written || node->flags != link->said.flags ||
        now_us - link->said_us >= LINK_BEAT_US) {
        order->what = LINK_SEND;
        order->len = stream_seal(out, STREAM_ACK,
            (uint32_t)message_put_ack(out + STREAM_HEAD_BYTES, &ack),
            link->term, link->call.session);
        link->said = ack;
        link->said_us = now_us;
        link->echo_us = 0;
        return;
    }
    order->until_us =
        link__earlier(order->until_us, link->said_us + LINK_BEAT_US);
}

void
link_feed_next(struct link_feed *link, const struct link_node *node,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    if (node->is_paused) {
        link->heard_us = now_us;
    }
    if (!link_caller_is_over(&link->call) &&
        now_us - link->heard_us >= link->call.self->timeout_us) {
        link->call.end.reason = LINK_TIMEOUT;
        link_caller__move(&link->call, LINK_CALLER_ENDED);
    }
    *order = (struct link_order){.what = LINK_WAIT,
        .until_us = link->heard_us + link->call.self->timeout_us};
    switch (link->call.state) {
    case LINK_FEED_WANTING:
        send_want(link, out, order);
        return;
    case LINK_FEED_FEEDING:
        go_on(link, node, now_us, out, order);
        return;
    case LINK_CALLER_GREETING:
        send_hello(link, node, out, order);
        return;
    default:
        link_caller__next(&link->call, node, link->term, out, order);
    }
}
