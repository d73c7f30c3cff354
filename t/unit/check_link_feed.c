/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/link: the end of who is fed and that of a node that feeds: from the
 * beginning, and from a position; where a position is none; reasons for which
 * it ends; wrong batches and positions; and every type of frame in every
 * state. */
#include "unit/duo_help.h"

enum { TERM = 7, FRAME_BYTES = 4096 };

/* a feeds, b is fed. */

static enum link_step
take(struct duo *duo, const struct stream_frame *frame)
{
    return link_feed_take(&duo->feed, &duo->node, frame, duo->now_us);
}

static void
next(struct duo *duo)
{
    link_feed_next(
        &duo->feed, &duo->node, duo->now_us, duo->bytes, &duo->order);
}

static const struct duo_caller fed = {.take_fn = take, .next_fn = next};

static void
meet(struct duo *duo)
{
    const struct message_text rule = text_of("modulo:3/8");

    link_feed_init(&duo->feed, &duo->self, &rule, duo_nonce[1], duo->now_us);
    duo_meet(duo, &fed, &duo->feed.call);
}

/* a has ten batches of term 3, eight of which may be told, and has promised
 * TERM. */
static void
begin(struct duo *duo)
{
    duo_begin(duo);
    duo->self = duo->a.self;
    duo->self.name = text_of("mover");
    duo->node.history = &duo->history;
    duo->view = (struct link_view){.directory = link_directory,
        .term = TERM,
        .history = &duo->a.history,
        .written = peer_last(&duo->a),
        .committed = seq_make(3, 9),
        .is_replica = true,
        .may_feed = true,
        .fed = seq_make(3, 8)};
    meet(duo);
}

static void
say_want(struct duo *duo)
{
    say_hello(duo);
    ck_assert_int_eq(duo->step, LINK_TAKEN);
    a_says(duo, STREAM_WELCOME);
    ck_assert_int_eq(duo->step, LINK_TAKEN);
    b_says(duo, STREAM_WANT);
    ck_assert_int_eq(duo->step, LINK_YOURS);
    a_says(duo, STREAM_SOURCE);
    ck_assert_int_eq(duo->step, LINK_TAKEN);
}

/* Batches with these numbers, up to where 0 is, in a frame's place. */
static size_t
put_batches(struct duo *duo, const uint64_t *seq)
{
    uint8_t *body = duo->bytes + STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES;
    size_t len = 0;

    for (; *seq != 0; seq++) {
        message_put_batch(body + len, *seq, 1);
        body[len + MESSAGE_BATCH_BYTES] = 'x';
        len += MESSAGE_BATCH_BYTES + 1;
    }
    return len;
}

/* What is known at the moment, in two frames. */
static void
say_schema(struct duo *duo)
{
    const uint64_t seq[] = {duo->up.verdict_seq, 0};

    for (unsigned i = 0; i < 2; i++) {
        size_t len = put_batches(duo, seq);

        ck_assert_int_eq(ask_a(duo), LINK_BATCHES);
        ck_assert_uint_eq(duo->order.seq, seq[0]);
        len = link_primary_seal_schema(
            &duo->up, &duo->view, duo->bytes, len, i == 1, duo->now_us);
        to_b(duo, duo->bytes, len);
        ck_assert_int_eq(duo->step, LINK_YOURS);
        ck_assert(duo->feed.is_schema);
        ck_assert_uint_eq(duo->feed.position, seq[0]);
    }
}

static void
say_batches(struct duo *duo, const uint64_t *seq, uint64_t last)
{
    size_t len = put_batches(duo, seq);

    ck_assert_int_eq(ask_a(duo), LINK_BATCHES);
    ck_assert_uint_eq(duo->order.seq, duo->up.sent);
    len = link_primary_seal_feed(
        &duo->up, &duo->view, duo->bytes, len, last, duo->now_us);
    if (len > 0) {
        to_b(duo, duo->bytes, len);
        ck_assert_int_eq(duo->step, LINK_YOURS);
        ck_assert(!duo->feed.is_schema);
        ck_assert_uint_eq(duo->feed.position, last);
    }
}

/* b has kept what it is to say next time. */
static void
keep(struct duo *duo)
{
    duo->history = duo->feed.history;
    duo->node.directory = duo->feed.directory;
    duo->node.written = duo->node.synced = duo->node.applied =
        duo->feed.position;
}

START_TEST(test_begin)
{
    const uint64_t seq[] = {seq_make(3, 9), 0};
    struct duo duo;

    begin(&duo);
    say_want(&duo);
    ck_assert_int_eq(duo.feed.verdict, MESSAGE_SNAPSHOT);
    ck_assert_uint_eq(duo.feed.verdict_seq, seq_make(3, 8));
    ck_assert_uint_eq(duo.feed.directory.epoch, link_directory.epoch);
    ck_assert_uint_eq(duo.feed.directory.shards, link_directory.shards);
    ck_assert_uint_eq(duo.up.rule_len, 10);
    ck_assert_mem_eq(duo.up.rule, "modulo:3/8", 10);
    b_says(&duo, STREAM_ACK); /* of what is dumped there is nothing yet */
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 8));
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    say_schema(&duo);
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    duo.view.fed = seq_make(3, 10);
    say_batches(&duo, seq, seq_make(3, 9));
    say_batches(&duo, seq + 1, seq_make(3, 10)); /* nothing is of the rule */
    ck_assert_uint_eq(duo.feed.position, seq_make(3, 9));
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    duo.now_us += LINK_NEWS_US;
    a_says(&duo, STREAM_HEARTBEAT);
    ck_assert_uint_eq(duo.feed.position, seq_make(3, 10));
    duo.node.written = seq_make(3, 9);
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.applied, seq_make(3, 9));
    duo.now_us += LINK_BEAT_US;
    b_says(&duo, STREAM_ACK);
    duo_end(&duo);
}
END_TEST

/* From a position, of a term that has ended since. */
START_TEST(test_go_on)
{
    const uint64_t seq[] = {seq_make(3, 9), seq_make(TERM, 1), 0};
    struct duo duo;

    begin(&duo);
    say_want(&duo);
    keep(&duo);
    duo.a.promised = TERM - 1;
    peer_begin(&duo.a, 0xbbb);
    duo.view.written = peer_last(&duo.a);
    duo.view.fed = seq_make(TERM, 1);
    ck_assert_int_eq(ask_a(&duo), LINK_SEND); /* the history is another one */
    ck_assert_int_eq(duo.up.end.reason, LINK_TERM_OVER);
    for (unsigned i = 0; i < 2; i++) {
        meet(&duo);
        say_want(&duo);
        ck_assert_int_eq(duo.feed.verdict, MESSAGE_CONTINUE);
        ck_assert_uint_eq(duo.feed.verdict_seq, seq_make(3, 8 + i));
        say_schema(&duo);
        keep(&duo); /* the newest term is behind the position */
        say_batches(&duo, seq + i, seq_make(TERM, 1));
        duo.node.written = duo.node.synced = duo.node.applied = seq_make(3, 9);
    }
    duo_end(&duo);
}
END_TEST

START_TEST(test_begin_anew)
{
    for (unsigned i = 0; i < 3; i++) {
        struct duo duo;

        begin(&duo);
        say_want(&duo);
        keep(&duo);
        if (i == 0) { /* another branch */
            duo.history.at[duo.history.n - 1].branch++;
        } else if (i == 1) {
            duo.view.begin = seq_make(3, 9);
            duo.view.fed = seq_make(3, 10);
        } else { /* another node, which is not so far */
            duo.view.fed = seq_make(3, 5);
        }
        meet(&duo);
        say_want(&duo);
        ck_assert_int_eq(duo.feed.verdict, MESSAGE_SNAPSHOT);
        ck_assert_uint_eq(duo.feed.verdict_seq, duo.view.fed);
        duo_end(&duo);
    }
}
END_TEST

/* Who is told so. */
static void
ends_for(struct duo *duo, enum link_reason reason, enum message_code code)
{
    ck_assert_int_eq(duo->up.end.reason, reason);
    while (ask_a(duo) == LINK_SEND) {
        to_b(duo, duo->bytes, duo->order.len);
    }
    ck_assert_int_eq(duo->feed.call.end.reason, LINK_TOLD);
    ck_assert_uint_eq(duo->feed.call.end.code, code);
    ck_assert_int_eq(ask_b(duo), LINK_CLOSE);
    duo_end(duo);
}

START_TEST(test_refused)
{
    struct duo duo;

    begin(&duo);
    duo.view.may_feed = false;
    say_hello(&duo);
    ends_for(&duo, LINK_PURPOSE, MESSAGE_BAD_PURPOSE);
    begin(&duo);
    duo.node.directory = link_directory;
    duo.node.directory.seed++;
    say_hello(&duo);
    ends_for(&duo, LINK_DIRECTORY, MESSAGE_BAD_DIRECTORY);
    begin(&duo);
    duo.self.formats.entry--;
    say_hello(&duo);
    ends_for(&duo, LINK_FORMAT, MESSAGE_BAD_FORMAT);
    begin(&duo);
    say_want(&duo);
    link_primary_refuse_rule(&duo.up);
    ends_for(&duo, LINK_RULE, MESSAGE_BAD_RULE);
    begin(&duo);
    say_want(&duo);
    link_primary_lost_log(&duo.up);
    ends_for(&duo, LINK_GONE, MESSAGE_GONE);
    begin(&duo);
    say_want(&duo);
    duo.view.term++;
    ck_assert_int_eq(ask_a(&duo), LINK_SEND);
    to_b(&duo, duo.bytes, duo.order.len);
    ends_for(&duo, LINK_TERM_OVER, MESSAGE_BAD_TERM);
}
END_TEST

/* A frame of BATCHES that a sound source does not send, and the reason. */
static enum link_reason
take_wrong(uint64_t committed, uint64_t first, uint64_t second)
{
    const uint64_t seq[] = {first, second, 0};
    struct message_news news = {
        .committed = committed, .last = seq_make(4, 1)};
    enum link_reason reason;
    struct duo duo;
    size_t len;

    begin(&duo);
    say_want(&duo);
    say_schema(&duo);
    len = put_batches(&duo, seq);
    message_put_news(duo.bytes + STREAM_HEAD_BYTES, &news);
    len = stream_seal(duo.bytes, STREAM_BATCHES,
        (uint32_t)(MESSAGE_NEWS_BYTES + len), TERM, duo.up.session);
    to_b(&duo, duo.bytes, len);
    reason = duo.feed.call.end.reason;
    ck_assert_int_eq(duo.step, reason == LINK_NONE ? LINK_YOURS : LINK_ENDING);
    duo_end(&duo);
    return reason;
}

START_TEST(test_wrong_batches)
{
    const uint64_t at = seq_make(3, 8);

    ck_assert_int_eq(take_wrong(at + 2, at + 1, at + 2), LINK_NONE);
    ck_assert_int_eq(take_wrong(at + 2, at + 1, 0), LINK_NONE);
    ck_assert_int_eq(take_wrong(at + 1, at, at + 1), LINK_GAP);
    ck_assert_int_eq(take_wrong(at + 1, at, 0), LINK_GAP);
    ck_assert_int_eq(take_wrong(at + 1, at - 1, 0), LINK_GAP);
    ck_assert_int_eq(take_wrong(at + 1, at + 1, at + 2), LINK_GAP);
    ck_assert_int_eq(take_wrong(at, at + 1, 0), LINK_GAP);
    ck_assert_int_eq(take_wrong(at - 1, at + 1, 0), LINK_BAD_FRAME);
    ck_assert_int_eq(take_wrong(seq_make(2, 1), at + 1, 0), LINK_BAD_FRAME);
}
END_TEST

START_TEST(test_silence)
{
    struct duo duo;

    begin(&duo);
    say_want(&duo);
    b_says(&duo, STREAM_ACK);
    duo.now_us += duo.self.timeout_us;
    duo.node.is_paused = true; /* it does not read, and goes on to say so */
    b_says(&duo, STREAM_ACK);
    ck_assert_int_ne(ask_a(&duo), LINK_CLOSE);
    duo.node.is_paused = false;
    duo.now_us += duo.self.timeout_us;
    link_feed_heard(&duo.feed, duo.now_us); /* a part of a frame */
    ck_assert_int_eq(ask_b(&duo), LINK_SEND);
    duo.now_us += duo.self.timeout_us;
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.feed.call.end.reason, LINK_TIMEOUT);
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.up.end.reason, LINK_TIMEOUT);
    duo_end(&duo);
}
END_TEST

static void
go_to(struct duo *duo, unsigned stage)
{
    begin(duo);
    if (stage == 1) {
        a_says(duo, STREAM_CHALLENGE);
    } else if (stage == 2 || stage == 3) {
        say_hello(duo);
        if (stage == 3) {
            a_says(duo, STREAM_WELCOME);
        }
    } else if (stage >= 4) {
        say_want(duo);
        if (stage == 5) {
            say_schema(duo);
        }
    }
}

/* One frame of a tape, at the end that is meant. */
static void
take_of_tape(struct duo *duo, const struct tape *tape, unsigned i, bool is_up)
{
    size_t len = tape->at[i + 1] - tape->at[i];
    uint8_t frame[FRAME_BYTES];
    bool is_over;

    memcpy(frame, tape->bytes + tape->at[i], len);
    (void)stream_seal(frame, (enum stream_type)frame[5],
        (uint32_t)len - STREAM_HEAD_BYTES, TERM,
        is_up ? duo->at_a.session : duo->at_b.session);
    if (is_up) {
        to_a(duo, frame, len);
    } else {
        to_b(duo, frame, len);
    }
    is_over = is_up ? duo->up.state >= LINK_PRIMARY_ENDING
                    : duo->feed.call.state >= LINK_CALLER_ENDING;
    ck_assert_int_eq(is_over, duo->step == LINK_ENDING);
    while (is_over && (is_up ? ask_a(duo) : ask_b(duo)) == LINK_SEND) {
        ck_assert_uint_eq(duo->bytes[5], STREAM_ERROR);
    }
    ck_assert(!is_over || duo->order.what == LINK_CLOSE);
}

START_TEST(test_all_frames)
{
    static struct tape tape[2];
    unsigned n_ended = 0, n_taken = 0;

    tape_make(&tape[0]);
    tape_make_feed(&tape[1]);
    for (unsigned stage = 0; stage < 6; stage++) {
        for (unsigned i = 0; i < 2 * (tape[0].n + tape[1].n); i++) {
            bool is_second = i / 2 >= tape[0].n;
            unsigned at = i / 2 - (is_second ? tape[0].n : 0);
            bool is_up = i % 2 == 0;
            struct duo duo;

            go_to(&duo, stage);
            if (is_up || link_feed_may_take(&duo.feed)) {
                take_of_tape(&duo, &tape[is_second], at, is_up);
                n_ended += duo.step == LINK_ENDING;
                n_taken += duo.step != LINK_ENDING;
            }
            duo_end(&duo);
        }
    }
    ck_assert_uint_gt(n_ended, 150);
    ck_assert_uint_ge(n_taken, 3);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_begin, test_go_on, test_begin_anew,
        test_refused, test_wrong_batches, test_silence, test_all_frames};

    return run_tests("link_feed", tests, COUNT_OF(tests));
}
