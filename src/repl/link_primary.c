/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of the end of who accepts:
 *
 *   OPEN --> ASKED --> JUDGED --> STREAMING, COPYING, LENDING, ANSWERING
 *               |         |           |  or WANTED --> FEEDING
 *               |  (cut)  v           v
 *               +-----> ENDED <--- ENDING
 *
 * From each of them the end can be near: ENDING where the other end is told
 * why, ENDED where not.
 *
 * STREAMING sends what is written as soon as it is asked, whether it is
 * committed or not, and never more than one frame ahead of being asked: what
 * goes out, the caller has room for. `sent` only grows, and a replica may
 * acknowledge nothing above it.
 *
 * LENDING is the same for a candidate whose term this node has promised, and
 * ends with END when all that is written was sent. ANSWERING hands questions
 * on; an answer waits here, one of them, until there is room: a later one takes
 * its place, for who has asked asks again.
 *
 * FEEDING sends no more than is committed and applied here, so that what was
 * told is never taken back. Its history is that of the welcome: where a term
 * begins the feed connects anew.
 *
 * What can go wrong: any frame; a replica that is silent; a log that was cut at
 * its beginning; a term that ends. Each ends the connection. */
#include "repl/link_primary.h"

#include "base/assert.h"
#include "base/steps.h"
#include "repl/message_files.h"

#include <string.h>

#define BIT(name) STEP_TO(LINK_PRIMARY_##name)

/* Where each state may lead. */
static const unsigned may_lead[LINK_PRIMARY_STATES_N] = {
    [LINK_PRIMARY_OPEN] = BIT(ASKED) | BIT(ENDED),
    [LINK_PRIMARY_ASKED] = BIT(JUDGED) | BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_JUDGED] = BIT(STREAMING) | BIT(COPYING) | BIT(LENDING) |
        BIT(ANSWERING) | BIT(WANTED) | BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_STREAMING] = BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_COPYING] = BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_LENDING] = BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_ANSWERING] = BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_WANTED] = BIT(FEEDING) | BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_FEEDING] = BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_ENDING] = BIT(ENDED),
    [LINK_PRIMARY_ENDED] = 0};

static void
move_to(struct link_primary *link, enum link_primary_state state)
{
    ASSERT_STEP(may_lead, link->state, state);
    link->state = state;
}

/* Before there is a session the other end would not understand it. */
static enum link_step
end_for(struct link_primary *link, enum link_reason reason)
{
    if (link->state < LINK_PRIMARY_ENDING) {
        link->end.reason = reason;
        move_to(link,
            link->session == 0 ? LINK_PRIMARY_ENDED : LINK_PRIMARY_ENDING);
    }
    return LINK_ENDING;
}

static enum link_step
end_with(struct link_primary *link, enum link_reason reason,
    const struct stream_fault *fault)
{
    link->end.fault = *fault;
    return end_for(link, reason);
}

/* Wrong is the type, or a number in the body, at that offset. */
static enum link_step
end_at(struct link_primary *link, enum link_reason reason,
    const struct stream_frame *frame, const char *what, uint32_t offset)
{
    struct stream_fault fault = {
        .what = what, .offset = offset, .type = (uint8_t)frame->type};

    return end_with(link, reason, &fault);
}

void
link_primary_init(struct link_primary *link, const struct link_self *self,
    const uint8_t nonce[STREAM_NONCE_BYTES], uint64_t now_us)
{
    ASSERT(message_is_name(self->group.at, self->group.len));
    ASSERT(message_is_name(self->name.at, self->name.len));
    *link = (struct link_primary){.self = self,
        .opened_us = now_us,
        .heard_us = now_us,
        .said_us = now_us};
    memcpy(link->nonce, nonce, STREAM_NONCE_BYTES);
}

static bool
is_text(const struct message_text *a, const struct message_text *b)
{
    return a->len == b->len && memcmp(a->at, b->at, a->len) == 0;
}

static bool
is_proved(const struct link_primary *link, const struct message_hello *hello)
{
    struct proof_claim claim = {.accepting = link->nonce,
        .connecting = hello->nonce,
        .purpose = (uint8_t)hello->purpose,
        .group = hello->group.at,
        .name = hello->name.at,
        .group_len = hello->group.len,
        .name_len = hello->name.len};

    return proof__is_right(link->self->secret, &claim, hello->proof);
}

static bool
make_proof(struct link_primary *link, const struct message_hello *hello)
{
    const struct link_self *self = link->self;
    struct proof_claim claim = {.accepting = link->nonce,
        .connecting = hello->nonce,
        .group = self->group.at,
        .name = self->name.at,
        .group_len = self->group.len,
        .name_len = self->name.len};

    return proof__make(self->secret, &claim, link->proof) == 0;
}

static bool
is_directory(
    const struct link_directory *here, const struct message_hello *hello)
{
    return hello->epoch == 0 || here->epoch == 0 ||
        (hello->epoch == here->epoch && hello->seed == here->seed &&
            hello->shards == here->shards);
}

static bool
can_read(
    const struct message_formats *reader, const struct message_formats *writer)
{
    return reader->entry >= writer->entry &&
        reader->manifest >= writer->manifest &&
        reader->segment >= writer->segment;
}

static enum link_reason
refuse_follower(const struct link_self *self, const struct link_view *view,
    const struct message_hello *hello)
{
    if (view->is_replica) {
        return LINK_NO_PRIMARY;
    }
    if (!is_directory(&view->directory, hello)) {
        return LINK_DIRECTORY;
    }
    if (hello->promised > view->term) {
        return LINK_NEWER_TERM;
    }
    if (link__is_split(view->history, &hello->history, view->term)) {
        return LINK_SAME_TERM;
    }
    return can_read(&hello->formats, &self->formats) ? LINK_NONE : LINK_FORMAT;
}

/* A candidate has a directory: a node without one would begin anew what others
 * have. Terms do not matter, for the question has one. */
static enum link_reason
refuse_asker(const struct link_view *view, const struct message_hello *hello)
{
    if (!view->is_asked) {
        return LINK_PURPOSE;
    }
    return hello->epoch != 0 && is_directory(&view->directory, hello)
        ? LINK_NONE
        : LINK_DIRECTORY;
}

/* What this node has may be known to a candidate whose term is promised here:
 * so it does not grow any more. */
static enum link_reason
refuse_fetcher(const struct link_self *self, const struct link_view *view,
    const struct message_hello *hello)
{
    enum link_reason reason = refuse_asker(view, hello);

    if (reason != LINK_NONE) {
        return reason;
    }
    if (!view->is_replica) {
        return LINK_PURPOSE;
    }
    if (hello->promised != view->term || view->term == 0) {
        return hello->promised > view->term ? LINK_NEWER_TERM
                                            : LINK_OLDER_TERM;
    }
    return can_read(&hello->formats, &self->formats) ? LINK_NONE : LINK_FORMAT;
}

/* Who is fed is no copy: terms do not matter to it, and it says which directory
 * it has begun with, or none. */
static enum link_reason
refuse_feed(const struct link_self *self, const struct link_view *view,
    const struct message_hello *hello)
{
    if (!view->may_feed) {
        return LINK_PURPOSE;
    }
    if (!is_directory(&view->directory, hello)) {
        return LINK_DIRECTORY;
    }
    return hello->formats.entry >= self->formats.entry ? LINK_NONE
                                                       : LINK_FORMAT;
}

/* What is wrong with who says hello; LINK_NONE: nothing. */
static enum link_reason
refuse(const struct link_primary *link, const struct link_view *view,
    const struct message_hello *hello)
{
    const struct link_self *self = link->self;

    if (hello->least > LINK_PROTOCOL || hello->most < LINK_PROTOCOL) {
        return LINK_VERSIONS;
    }
    if (!is_proved(link, hello)) {
        return LINK_PROOF;
    }
    if (!is_text(&hello->group, &self->group)) {
        return LINK_GROUP;
    }
    if (is_text(&hello->name, &self->name)) {
        return LINK_NAME;
    }
    switch (hello->purpose) {
    case MESSAGE_FOLLOW:
        return refuse_follower(self, view, hello);
    case MESSAGE_PROMISE:
        return refuse_asker(view, hello);
    case MESSAGE_FETCH:
        return refuse_fetcher(self, view, hello);
    case MESSAGE_FEED:
        return refuse_feed(self, view, hello);
    }
    return LINK_PURPOSE;
}

static void
judge(struct link_primary *link, const struct link_view *view,
    const struct message_hello *hello)
{
    uint64_t seq = 0;
    enum history_fit fit;

    if (hello->purpose == MESSAGE_PROMISE) { /* nothing is meant by it */
        link->verdict = MESSAGE_CONTINUE;
        return;
    }
    fit = hello->epoch == 0 ? HISTORY_APART
                            : history_fit(view->history, view->written,
                                  &hello->history, hello->written, &seq);

    if (fit == HISTORY_APART || seq < view->begin) {
        link->verdict = MESSAGE_SNAPSHOT;
        seq = 0;
    } else {
        link->verdict = fit == HISTORY_FITS ? MESSAGE_CONTINUE : MESSAGE_CUT;
    }
    link->verdict_seq = seq;
    link->sent = seq;
    link->ack = (struct message_ack){.written = seq,
        .synced = link__earlier(hello->synced, seq),
        .flags = (hello->flags & HELLO_DOUBTFUL) != 0 ? ACK_DOUBTFUL : 0};
}

/* It goes on behind its position where that is a batch that was told by this
 * log, or could have been; else it begins anew. */
static void
judge_feed(struct link_primary *link, const struct link_view *view,
    const struct message_hello *hello)
{
    const struct history *history = view->history;
    uint64_t seq = 0;
    bool fits = hello->epoch != 0 && hello->written > 0 &&
        history_fit(history, view->written, &hello->history, hello->written,
            &seq) == HISTORY_FITS;

    fits = fits && seq >= view->begin && seq <= view->fed;
    link->verdict = fits ? MESSAGE_CONTINUE : MESSAGE_SNAPSHOT;
    link->verdict_seq = fits ? seq : view->fed;
    link->sent = link->told = link->verdict_seq;
    link->ack = (struct message_ack){.written = link->verdict_seq,
        .synced = link->verdict_seq,
        .applied = link->verdict_seq};
    link->newest_term = history->n == 0 ? 0 : history->at[history->n - 1].term;
}

static enum link_step
take_hello(struct link_primary *link, const struct link_view *view,
    const struct stream_frame *frame)
{
    struct message_hello hello;
    struct stream_fault fault;
    enum link_reason reason;

    if (message_get_hello(frame, &hello, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if (frame->term != hello.promised) {
        return end_at(link, LINK_BAD_FRAME, frame, "the promised term", 16);
    }
    link->session = stream_session(link->nonce, hello.nonce);
    link->name_len = hello.name.len;
    memcpy(link->name, hello.name.at, hello.name.len);
    link->client_len = hello.client.len;
    if (hello.client.len > 0) {
        memcpy(link->client, hello.client.at, hello.client.len);
    }
    link->purpose = hello.purpose;
    link->level = hello.level;
    link->hello_flags = hello.flags;
    link->priority = hello.priority;
    reason = refuse(link, view, &hello);
    if (reason != LINK_NONE) {
        link->end.term = hello.promised;
        return end_for(link, reason);
    }
    if (!make_proof(link, &hello)) {
        return end_for(link, LINK_PROOF);
    }
    link->term = view->term;
    if (hello.purpose == MESSAGE_FEED) {
        judge_feed(link, view, &hello);
    } else {
        judge(link, view, &hello);
    }
    move_to(link, LINK_PRIMARY_JUDGED);
    return LINK_TAKEN;
}

static uint32_t
round_trip(uint64_t from_us, uint64_t to_us)
{
    uint64_t us = to_us - from_us;

    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static enum link_step
take_ack(struct link_primary *link, const struct link_view *view,
    const struct stream_frame *frame, uint64_t now_us)
{
    struct message_ack ack;
    struct stream_fault fault;

    if (message_get_ack(frame, &ack, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if (ack.echo_us != 0 &&
        (ack.echo_us > link->clock_us || ack.echo_us < link->opened_us)) {
        return end_at(link, LINK_BAD_FRAME, frame, "a clock that was sent",
            STREAM_HEAD_BYTES + 24);
    }
    if (ack.echo_us != 0) {
        link->rtt_us = round_trip(ack.echo_us, now_us);
    }
    if (link->state == LINK_PRIMARY_COPYING) {
        return LINK_TAKEN;
    }
    if (ack.written < link->ack.written || ack.written > link->sent ||
        (ack.written != link->verdict_seq &&
            history_find(view->history, ack.written) == NULL)) {
        return end_at(link, LINK_BAD_FRAME, frame, "a batch that was sent",
            STREAM_HEAD_BYTES);
    }
    if (ack.synced < link->ack.synced) {
        return end_at(link, LINK_BAD_FRAME, frame, "no less than before",
            STREAM_HEAD_BYTES + 8);
    }
    if (ack.applied < link->ack.applied) {
        return end_at(link, LINK_BAD_FRAME, frame, "no less than before",
            STREAM_HEAD_BYTES + 16);
    }
    link->ack = ack;
    return LINK_TAKEN;
}

/* Frames are of the term that who asks has promised: of its own, if it asks
 * for a promise. */
static enum link_step
take_question(struct link_primary *link, const struct link_view *view,
    const struct stream_frame *frame)
{
    struct message_promise question;
    struct stream_fault fault;

    if (message_get_promise(frame, &question, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    if ((question.flags & PROMISE_ASKS_ONLY) == 0 &&
        question.term != frame->term) {
        return end_at(link, LINK_BAD_FRAME, frame,
            "a term that the candidate has promised", STREAM_HEAD_BYTES);
    }
    if ((question.flags & PROMISE_ASKS_ONLY) == 0 && view->term_most > 0 &&
        question.term > view->term_most) {
        return end_at(link, LINK_BAD_FRAME, frame,
            "a term that promotions lead to", STREAM_HEAD_BYTES);
    }
    if (question.name.len != link->name_len ||
        memcmp(question.name.at, link->name, link->name_len) != 0) {
        return end_at(link, LINK_BAD_FRAME, frame, "the name of who asks",
            STREAM_HEAD_BYTES + 20);
    }
    question.name.at = (const uint8_t *)link->name;
    link->question = question;
    return LINK_YOURS;
}

static enum link_step
take_want(struct link_primary *link, const struct stream_frame *frame)
{
    struct message_want want;
    struct stream_fault fault;

    if (message_get_want(frame, &want, &fault) != 0) {
        return end_with(link, LINK_BAD_FRAME, &fault);
    }
    link->rule_len = want.rule.len;
    memcpy(link->rule, want.rule.at, want.rule.len);
    move_to(link, LINK_PRIMARY_FEEDING);
    return LINK_YOURS;
}

/* True where a frame of that type may come in that state. */
static bool
is_due(const struct link_primary *link, enum stream_type type)
{
    switch (link->state) {
    case LINK_PRIMARY_ASKED:
        return type == STREAM_HELLO;
    case LINK_PRIMARY_STREAMING:
        return type == STREAM_ACK ||
            (type == STREAM_REQUEST &&
                (link->hello_flags & HELLO_FORWARDS) != 0);
    case LINK_PRIMARY_LENDING:
    case LINK_PRIMARY_FEEDING:
        return type == STREAM_ACK;
    case LINK_PRIMARY_WANTED:
        return type == STREAM_WANT;
    case LINK_PRIMARY_ANSWERING:
        return type == STREAM_PROMISE;
    case LINK_PRIMARY_COPYING:
        return type == STREAM_ACK || type == STREAM_HAVE;
    default:
        return false;
    }
}

static enum link_step
hear_end(struct link_primary *link, const struct stream_frame *frame)
{
    struct link_end end;

    link__hear_end(frame, &end);
    link->end = end;
    if (end.reason == LINK_BAD_FRAME) {
        return end_for(link, end.reason);
    }
    move_to(link, LINK_PRIMARY_ENDED);
    return LINK_ENDING;
}

enum link_step
link_primary_take(struct link_primary *link, const struct link_view *view,
    const struct stream_frame *frame, uint64_t now_us)
{
    ASSERT(view->committed <= view->written && view->begin <= view->written);
    if (link->state >= LINK_PRIMARY_ENDING) {
        return LINK_ENDING;
    }
    link->heard_us = now_us;
    if (frame->type == STREAM_ERROR || frame->type == STREAM_REFUSED) {
        return hear_end(link, frame);
    }
    if (!is_due(link, frame->type)) {
        return end_at(link, LINK_BAD_ORDER, frame, "another type", 5);
    }
    if (frame->type == STREAM_HELLO) {
        return take_hello(link, view, frame);
    }
    if (frame->type == STREAM_PROMISE) {
        return take_question(link, view, frame);
    }
    if (frame->term != link->term) {
        link->end.term = frame->term;
        return end_for(link,
            frame->term > link->term ? LINK_NEWER_TERM : LINK_OLDER_TERM);
    }
    if (frame->type == STREAM_WANT) {
        return take_want(link, frame);
    }
    return frame->type == STREAM_ACK ? take_ack(link, view, frame, now_us)
                                     : LINK_YOURS;
}

void
link_primary_heard(struct link_primary *link, uint64_t now_us)
{
    link->heard_us = now_us;
}

void
link_primary_wrong(struct link_primary *link, const struct stream_fault *fault)
{
    (void)end_with(link, LINK_BAD_FRAME, fault);
}

/* What the other end is told as committed: a feed that all up to there was
 * sent. */
static uint64_t
to_tell(const struct link_primary *link, const struct link_view *view)
{
    return link->purpose == MESSAGE_FEED ? link->sent : view->committed;
}

static struct message_news
make_news(
    struct link_primary *link, const struct link_view *view, uint64_t now_us)
{
    link->told = to_tell(link, view);
    link->moved_us = 0;
    link->said_us = now_us;
    link->clock_us = now_us;
    return (struct message_news){.committed = link->told,
        .last = view->written,
        .clock_us = now_us,
        .rtt_us = link->rtt_us,
        .flags = view->has_authority ? NEWS_AUTHORITY : 0};
}

static void
order_send(struct link_primary *link, enum stream_type type, size_t len,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    order->what = LINK_SEND;
    order->len =
        stream_seal(out, type, (uint32_t)len, link->term, link->session);
    link->said_us = now_us;
}

/* The candidate has all that is here, and more; or the logs part. */
static enum link_reason
not_lent(const struct link_primary *link, const struct link_view *view)
{
    return link->verdict == MESSAGE_CUT && link->verdict_seq == view->written
        ? LINK_FETCHED
        : LINK_APART;
}

static void
begin_work(struct link_primary *link, const struct link_view *view)
{
    bool is_fetch = link->purpose == MESSAGE_FETCH;

    if (link->purpose == MESSAGE_PROMISE) {
        move_to(link, LINK_PRIMARY_ANSWERING);
    } else if (link->purpose == MESSAGE_FEED) {
        move_to(link, LINK_PRIMARY_WANTED);
    } else if (link->verdict == MESSAGE_CONTINUE) {
        move_to(
            link, is_fetch ? LINK_PRIMARY_LENDING : LINK_PRIMARY_STREAMING);
    } else if (link->verdict == MESSAGE_CUT || is_fetch) {
        link->end.reason = is_fetch ? not_lent(link, view) : LINK_CUT;
        move_to(link, LINK_PRIMARY_ENDED);
    } else {
        move_to(link, LINK_PRIMARY_COPYING);
    }
}

static void
send_welcome(struct link_primary *link, const struct link_view *view,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    struct message_welcome welcome = {.protocol = LINK_PROTOCOL,
        .verdict = link->verdict,
        .seq = link->verdict_seq,
        .last = view->written,
        .committed = view->committed,
        .name = link->self->name,
        .client = link->self->client,
        .history = *view->history};

    memcpy(welcome.proof, link->proof, PROOF_BYTES);
    order_send(link, STREAM_WELCOME,
        message_put_welcome(out + STREAM_HEAD_BYTES, &welcome), now_us, out,
        order);
    link->told = to_tell(link, view);
    begin_work(link, view);
}

/* Says when there is something to do, if nothing comes before. */
static void
wait(struct link_primary *link, struct link_order *order)
{
    order->until_us =
        link__earlier(order->until_us, link->said_us + LINK_BEAT_US);
    if (link->moved_us != 0) {
        order->until_us =
            link__earlier(order->until_us, link->moved_us + LINK_NEWS_US);
    }
}

static bool
is_beat_due(
    struct link_primary *link, const struct link_view *view, uint64_t now_us)
{
    if (to_tell(link, view) != link->told && link->moved_us == 0) {
        link->moved_us = now_us;
    }
    return now_us - link->said_us >= LINK_BEAT_US ||
        (link->moved_us != 0 && now_us - link->moved_us >= LINK_NEWS_US);
}

/* The candidate has all that is written here. */
static void
send_end(struct link_primary *link, uint64_t now_us, uint8_t *out,
    struct link_order *order)
{
    struct message_end end = {.of = MESSAGE_END_FETCH, .value = link->sent};

    order_send(link, STREAM_END,
        message_put_end(out + STREAM_HEAD_BYTES, &end), now_us, out, order);
    link->end.reason = LINK_FETCHED;
    move_to(link, LINK_PRIMARY_ENDED);
}

static size_t
put_refused(const struct link_view *view, uint8_t *body)
{
    struct message_refused refused = {.promised = view->term,
        .primary = view->primary,
        .address = view->primary_client};

    return message_put_refused(body, &refused);
}

static size_t
put_promised(const struct link_primary *link, const struct link_view *view,
    uint8_t *body)
{
    struct message_promised promised = {
        .last = view->written, .history = *view->history};

    if (link->answer == LINK_ANSWER_HEARS_ONE) {
        promised.flags = PROMISED_HEARS_ONE;
    } else if (link->answer == LINK_ANSWER_HEARS_NONE) {
        promised.flags = PROMISED_HEARS_NONE;
    }
    promised.flags |= view->is_doubtful ? (uint32_t)PROMISED_DOUBTFUL : 0;
    return message_put_promised(body, &promised);
}

/* Frames are of what is promised at this moment; where that is another term
 * than the one that was to be promised, that one is not to be had any more. */
static void
answer_next(struct link_primary *link, const struct link_view *view,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    uint8_t *body = out + STREAM_HEAD_BYTES;
    bool is_refused = link->answer == LINK_ANSWER_REFUSED ||
        (link->answer == LINK_ANSWER_PROMISED &&
            link->answer_term != view->term);

    if (link->answer == LINK_ANSWER_NONE) {
        return;
    }
    link->term = view->term;
    if (is_refused) {
        order_send(
            link, STREAM_REFUSED, put_refused(view, body), now_us, out, order);
    } else {
        order_send(link, STREAM_PROMISED, put_promised(link, view, body),
            now_us, out, order);
    }
    link->answer = LINK_ANSWER_NONE;
}

/* The replica has been sent all that comes in this term: what is written behind
 * that, for who had asked before, is for who follows next. */
static bool
is_switched(const struct link_primary *link)
{
    return link->switch_seq != 0 && link->sent >= link->switch_seq;
}

static void
go_on(struct link_primary *link, const struct link_view *view, uint64_t now_us,
    uint8_t *out, struct link_order *order)
{
    bool is_stream = link->state != LINK_PRIMARY_COPYING;
    uint8_t *body = out + STREAM_HEAD_BYTES;

    if (is_stream && view->written > link->sent && !is_switched(link)) {
        order->what = LINK_BATCHES;
        order->seq = link->sent;
        return;
    }
    if (link->state == LINK_PRIMARY_LENDING) {
        send_end(link, now_us, out, order);
        return;
    }
    if (is_stream && link->switch_seq != 0 && !link->is_switch_told) {
        link->is_switch_told = true;
        order_send(link, STREAM_SWITCH,
            message_put_switch(body, link->switch_seq), now_us, out, order);
        return;
    }
    if (is_beat_due(link, view, now_us)) {
        struct message_news news = make_news(link, view, now_us);

        order_send(link, STREAM_HEARTBEAT, message_put_news(body, &news),
            now_us, out, order);
        return;
    }
    order->what = is_stream ? LINK_WAIT : LINK_COPY;
    wait(link, order);
}

static void
feed_on(struct link_primary *link, const struct link_view *view,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    uint8_t *body = out + STREAM_HEAD_BYTES;

    if (!link->is_source_told) {
        struct message_source source = {.epoch = view->directory.epoch,
            .seed = view->directory.seed,
            .shards = view->directory.shards};

        link->is_source_told = true;
        order_send(link, STREAM_SOURCE, message_put_source(body, &source),
            now_us, out, order);
    } else if (!link->has_schema || view->fed > link->sent) {
        order->what = LINK_BATCHES;
        order->seq = link->sent;
    } else if (is_beat_due(link, view, now_us)) {
        struct message_news news = make_news(link, view, now_us);

        order_send(link, STREAM_HEARTBEAT, message_put_news(body, &news),
            now_us, out, order);
    } else {
        wait(link, order);
    }
}

/* Since when the other end has been silent. Until it has proved who it is that
 * is since the beginning: a byte now and then must not keep it here. */
static uint64_t
silent_since(const struct link_primary *link)
{
    return link->state < LINK_PRIMARY_JUDGED ? link->opened_us
                                             : link->heard_us;
}

/* The history that it was told holds for the whole connection. */
static void
look_at_feed(struct link_primary *link, const struct link_view *view)
{
    const struct history *history = view->history;
    uint64_t newest = history->n == 0 ? 0 : history->at[history->n - 1].term;

    if (!view->may_feed || link->term != view->term ||
        link->newest_term != newest) {
        (void)end_for(link, LINK_TERM_OVER);
    }
}

/* Ends the link where that is due without any frame. */
static void
look_around(
    struct link_primary *link, const struct link_view *view, uint64_t now_us)
{
    if (link->state >= LINK_PRIMARY_ENDING) {
        return;
    }
    if (now_us - silent_since(link) >= link->self->timeout_us) {
        link->end.reason = LINK_TIMEOUT;
        move_to(link, LINK_PRIMARY_ENDED);
    } else if (link->purpose == MESSAGE_PROMISE) {
        return;
    } else if (link->purpose == MESSAGE_FEED) {
        look_at_feed(link, view);
    } else if (link->state >= LINK_PRIMARY_JUDGED &&
        (link->term != view->term ||
            view->is_replica != (link->purpose == MESSAGE_FETCH))) {
        (void)end_for(link, LINK_TERM_OVER);
    } else if (link->sent < view->begin &&
        (link_primary_is_sent_log(link) ||
            (link->state == LINK_PRIMARY_JUDGED &&
                link->verdict != MESSAGE_SNAPSHOT))) {
        (void)end_for(link, LINK_BEHIND);
    }
}

void
link_primary_next(struct link_primary *link, const struct link_view *view,
    uint64_t now_us, uint8_t *out, struct link_order *order)
{
    ASSERT(view->committed <= view->written && view->begin <= view->written);
    look_around(link, view, now_us);
    *order = (struct link_order){.what = LINK_WAIT,
        .until_us = silent_since(link) + link->self->timeout_us};
    switch (link->state) {
    case LINK_PRIMARY_OPEN:
        message_put_challenge(out + STREAM_HEAD_BYTES, link->nonce);
        link->term = view->term;
        order_send(
            link, STREAM_CHALLENGE, STREAM_NONCE_BYTES, now_us, out, order);
        move_to(link, LINK_PRIMARY_ASKED);
        return;
    case LINK_PRIMARY_ASKED:
    case LINK_PRIMARY_WANTED:
        return;
    case LINK_PRIMARY_JUDGED:
        send_welcome(link, view, now_us, out, order);
        return;
    case LINK_PRIMARY_STREAMING:
    case LINK_PRIMARY_COPYING:
    case LINK_PRIMARY_LENDING:
        go_on(link, view, now_us, out, order);
        return;
    case LINK_PRIMARY_ANSWERING:
        answer_next(link, view, now_us, out, order);
        return;
    case LINK_PRIMARY_FEEDING:
        feed_on(link, view, now_us, out, order);
        return;
    case LINK_PRIMARY_ENDING:
        order->len = link__put_end(&link->end, view->term, link->session, out);
        order->what = order->len > 0 ? LINK_SEND : LINK_CLOSE;
        move_to(link, LINK_PRIMARY_ENDED);
        return;
    default:
        order->what = LINK_CLOSE;
    }
}

size_t
link_primary_seal(struct link_primary *link, const struct link_view *view,
    uint8_t *frame, size_t n_bytes, uint64_t last, uint64_t now_us)
{
    struct message_news news = make_news(link, view, now_us);

    ASSERT(link_primary_is_sent_log(link));
    ASSERT(last > link->sent && last <= view->written);
    ASSERT(n_bytes <= STREAM_BODY_MAX - MESSAGE_NEWS_BYTES);
    ASSERT(link->switch_seq == 0 || last <= link->switch_seq);
    link->sent = last;
    message_put_news(frame + STREAM_HEAD_BYTES, &news);
    return stream_seal(frame, STREAM_BATCHES,
        (uint32_t)(MESSAGE_NEWS_BYTES + n_bytes), link->term, link->session);
}

static size_t
seal_of_feed(struct link_primary *link, const struct link_view *view,
    uint8_t *frame, size_t n_bytes, uint64_t now_us)
{
    struct message_news news = make_news(link, view, now_us);

    ASSERT(n_bytes <= STREAM_BODY_MAX - MESSAGE_NEWS_BYTES);
    message_put_news(frame + STREAM_HEAD_BYTES, &news);
    return stream_seal(frame, STREAM_BATCHES,
        (uint32_t)(MESSAGE_NEWS_BYTES + n_bytes), link->term, link->session);
}

size_t
link_primary_seal_schema(struct link_primary *link,
    const struct link_view *view, uint8_t *frame, size_t n_bytes, bool is_all,
    uint64_t now_us)
{
    ASSERT(link->state == LINK_PRIMARY_FEEDING && !link->has_schema);
    ASSERT(link->sent == link->verdict_seq);
    link->has_schema = is_all;
    return n_bytes == 0 ? 0 : seal_of_feed(link, view, frame, n_bytes, now_us);
}

size_t
link_primary_seal_feed(struct link_primary *link, const struct link_view *view,
    uint8_t *frame, size_t n_bytes, uint64_t last, uint64_t now_us)
{
    ASSERT(link->state == LINK_PRIMARY_FEEDING && link->has_schema);
    ASSERT(last >= link->sent && last <= view->fed);
    ASSERT(n_bytes == 0 || last > link->sent);
    link->sent = last;
    return n_bytes == 0 ? 0 : seal_of_feed(link, view, frame, n_bytes, now_us);
}

void
link_primary_refuse_rule(struct link_primary *link)
{
    ASSERT(link->state == LINK_PRIMARY_FEEDING);
    (void)end_for(link, LINK_RULE);
}

void
link_primary_lost_log(struct link_primary *link)
{
    ASSERT(link->purpose == MESSAGE_FEED);
    (void)end_for(link, LINK_GONE);
}

size_t
link_primary_copy(struct link_primary *link, enum stream_type type,
    uint8_t *frame, uint32_t len, uint64_t now_us)
{
    ASSERT(link->state == LINK_PRIMARY_COPYING);
    ASSERT(type == STREAM_SNAPSHOT || type == STREAM_FILE ||
        type == STREAM_DATA || type == STREAM_END);
    link->said_us = now_us;
    return stream_seal(frame, type, len, link->term, link->session);
}

void
link_primary_switch(struct link_primary *link, uint64_t seq)
{
    ASSERT(seq_is_of(seq, link->term) && seq >= link->sent);
    link->switch_seq = seq;
    link->is_switch_told = false;
}

void
link_primary_answer(
    struct link_primary *link, enum link_answer answer, uint64_t term)
{
    ASSERT(link->purpose == MESSAGE_PROMISE);
    ASSERT(answer != LINK_ANSWER_PROMISED || term > 0);
    link->answer = answer;
    link->answer_term = term;
}

size_t
link_primary_reply(struct link_primary *link, uint8_t *frame, uint32_t len)
{
    ASSERT(link->state == LINK_PRIMARY_STREAMING);
    return stream_seal(frame, STREAM_REPLY, len, link->term, link->session);
}
