/* SPDX-License-Identifier: BSD-3-Clause */
/* The states of a primary's end:
 *
 *   OPEN --> ASKED --> JUDGED --> STREAMING
 *               |         |           |
 *               |         +--> COPYING+
 *               |         |           |
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
 * What can go wrong: any frame; a replica that is silent; a log that was cut at
 * its beginning; a term that ends. Each ends the connection. */
#include "repl/link_primary.h"

#include "base/assert.h"
#include "base/steps.h"

#include <string.h>

#define BIT(name) STEP_TO(LINK_PRIMARY_##name)

/* Where each state may lead. */
static const unsigned may_lead[LINK_PRIMARY_STATES_N] = {
    [LINK_PRIMARY_OPEN] = BIT(ASKED) | BIT(ENDED),
    [LINK_PRIMARY_ASKED] = BIT(JUDGED) | BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_JUDGED] =
        BIT(STREAMING) | BIT(COPYING) | BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_STREAMING] = BIT(ENDING) | BIT(ENDED),
    [LINK_PRIMARY_COPYING] = BIT(ENDING) | BIT(ENDED),
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
    return hello->epoch == 0 ||
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
    if (hello->purpose != MESSAGE_FOLLOW) {
        return LINK_PURPOSE;
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

static void
judge(struct link_primary *link, const struct link_view *view,
    const struct message_hello *hello)
{
    uint64_t seq = 0;
    enum history_fit fit = hello->epoch == 0
        ? HISTORY_APART
        : history_fit(view->history, view->written, &hello->history,
              hello->written, &seq);

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
    judge(link, view, &hello);
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

/* True where a frame of that type may come in that state. */
static bool
is_due(const struct link_primary *link, enum stream_type type)
{
    switch (link->state) {
    case LINK_PRIMARY_ASKED:
        return type == STREAM_HELLO;
    case LINK_PRIMARY_STREAMING:
        return type == STREAM_ACK;
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
    if (frame->term != link->term) {
        link->end.term = frame->term;
        return end_for(link,
            frame->term > link->term ? LINK_NEWER_TERM : LINK_OLDER_TERM);
    }
    return frame->type == STREAM_HAVE ? LINK_YOURS
                                      : take_ack(link, view, frame, now_us);
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

static struct message_news
make_news(
    struct link_primary *link, const struct link_view *view, uint64_t now_us)
{
    link->told = view->committed;
    link->moved_us = 0;
    link->said_us = now_us;
    link->clock_us = now_us;
    return (struct message_news){.committed = view->committed,
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
    link->told = view->committed;
    if (link->verdict == MESSAGE_CUT) {
        link->end.reason = LINK_CUT;
        move_to(link, LINK_PRIMARY_ENDED);
    } else {
        move_to(link,
            link->verdict == MESSAGE_CONTINUE ? LINK_PRIMARY_STREAMING
                                              : LINK_PRIMARY_COPYING);
    }
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
    if (view->committed != link->told && link->moved_us == 0) {
        link->moved_us = now_us;
    }
    return now_us - link->said_us >= LINK_BEAT_US ||
        (link->moved_us != 0 && now_us - link->moved_us >= LINK_NEWS_US);
}

static void
go_on(struct link_primary *link, const struct link_view *view, uint64_t now_us,
    uint8_t *out, struct link_order *order)
{
    bool is_stream = link->state == LINK_PRIMARY_STREAMING;
    uint8_t *body = out + STREAM_HEAD_BYTES;

    if (is_stream && view->written > link->sent) {
        order->what = LINK_BATCHES;
        order->seq = link->sent;
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

/* Since when the other end has been silent. Until it has proved who it is that
 * is since the beginning: a byte now and then must not keep it here. */
static uint64_t
silent_since(const struct link_primary *link)
{
    return link->state < LINK_PRIMARY_JUDGED ? link->opened_us
                                             : link->heard_us;
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
    } else if (link->state >= LINK_PRIMARY_JUDGED &&
        link->term != view->term) {
        (void)end_for(link, LINK_TERM_OVER);
    } else if (link->sent < view->begin &&
        (link->state == LINK_PRIMARY_STREAMING ||
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
        return;
    case LINK_PRIMARY_JUDGED:
        send_welcome(link, view, now_us, out, order);
        return;
    case LINK_PRIMARY_STREAMING:
    case LINK_PRIMARY_COPYING:
        go_on(link, view, now_us, out, order);
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

    ASSERT(link->state == LINK_PRIMARY_STREAMING);
    ASSERT(last > link->sent && last <= view->written);
    ASSERT(n_bytes <= STREAM_BODY_MAX - MESSAGE_NEWS_BYTES);
    ASSERT(link->switch_seq == 0 || last <= link->switch_seq);
    link->sent = last;
    message_put_news(frame + STREAM_HEAD_BYTES, &news);
    return stream_seal(frame, STREAM_BATCHES,
        (uint32_t)(MESSAGE_NEWS_BYTES + n_bytes), link->term, link->session);
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
