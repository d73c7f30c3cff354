/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/link: how two ends meet, and each reason for which they do not; the
 * three verdicts; what is sent when; batches with gaps, and acknowledgements of
 * what was not sent; terms that end; silence. And every type of frame in every
 * state. */
#include "repl/message_forward.h"
#include "unit/duo_help.h"

/* a is the primary, b the replica. */

static enum link_step
take(struct duo *duo, const struct stream_frame *frame)
{
    struct link_node node = peer_node(&duo->b);

    node.given = duo->given_seq;
    node.given_history = duo->given_history;
    return link_replica_take(&duo->down, &node, frame, duo->now_us);
}

static void
next(struct duo *duo)
{
    struct link_node node = peer_node(&duo->b);

    link_replica_next(&duo->down, &node, duo->now_us, duo->bytes, &duo->order);
}

static void
look(struct duo *duo)
{
    duo->view = peer_view(&duo->a);
}

static const struct duo_caller replica = {
    .take_fn = take, .next_fn = next, .look_fn = look};

static void
meet(struct duo *duo)
{
    link_replica_init(&duo->down, &duo->b.self, duo_nonce[1], duo->now_us);
    duo_meet(duo, &replica, &duo->down.call);
}

/* a has ten batches in term 3, b the first four of them, and promised 3. */
static void
begin(struct duo *duo)
{
    duo_begin(duo);
    duo->b.promised = 3;
    for (unsigned i = 0; i < 4; i++) {
        peer_write(&duo->b, duo->a.at[i].seq, duo->a.at[i].content);
    }
    duo->a.committed = seq_make(3, 7);
    meet(duo);
}

/* Its log is another one, which has nothing of the primary's. */
static void
go_astray(struct peer *peer)
{
    peer_cut(peer, 0);
    peer_write(peer, seq_first(2), 0xbbb);
}

static void
say_welcome(struct duo *duo)
{
    say_hello(duo);
    ck_assert_int_eq(duo->step, LINK_TAKEN);
    a_says(duo, STREAM_WELCOME);
    ck_assert_int_eq(duo->step, LINK_TAKEN);
}

/* Batches from..to of the primary go to the replica. */
static void
say_batches(struct duo *duo, size_t most)
{
    uint8_t frame[4096];
    size_t len;

    ck_assert_int_eq(ask_a(duo), LINK_BATCHES);
    len = peer_put_batches(
        &duo->a, &duo->up, duo->order.seq, most, duo->now_us, frame);
    to_b(duo, frame, len);
    ck_assert_int_eq(duo->step, LINK_YOURS);
}

static void
write_batches(struct duo *duo)
{
    struct message_batch batch;

    while (message_next_batch(&duo->down.batches, &batch)) {
        peer_write(&duo->b, batch.seq, bytes_get_u64(batch.payload));
    }
}

/* Both stream, and nothing is left to say. */
static void
settle(struct duo *duo)
{
    say_welcome(duo);
    b_says(duo, STREAM_ACK);
    say_batches(duo, 100);
    write_batches(duo);
    b_says(duo, STREAM_ACK);
    ck_assert_int_eq(ask_a(duo), LINK_WAIT);
    ck_assert_int_eq(ask_b(duo), LINK_WAIT);
}

START_TEST(test_stream)
{
    struct duo duo;

    begin(&duo);
    say_welcome(&duo);
    ck_assert_int_eq(duo.down.call.state, LINK_REPLICA_FOLLOWING);
    ck_assert_uint_eq(duo.down.verdict_seq, seq_make(3, 4));
    ck_assert_uint_eq(link_replica_committed(&duo.down), seq_make(3, 4));
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 4));
    say_batches(&duo, 2);
    write_batches(&duo);
    ck_assert_uint_eq(link_replica_committed(&duo.down), seq_make(3, 6));
    duo.now_us += 70;
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 6));
    ck_assert_uint_eq(duo.up.rtt_us, 70);
    say_batches(&duo, 100);
    write_batches(&duo);
    ck_assert_uint_eq(duo.down.news.rtt_us, 70);
    ck_assert_uint_eq(link_replica_committed(&duo.down), seq_make(3, 7));
    duo.b.n_synced = duo.b.n_applied = 5;
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 10));
    ck_assert_uint_eq(duo.up.ack.synced, seq_make(3, 5));
    ck_assert_uint_eq(duo.up.ack.applied, seq_make(3, 5));
    duo_end(&duo);
}
END_TEST

/* What is written while a welcome is to come was not told of: it comes again,
 * and is acknowledged then. */
START_TEST(test_written_later)
{
    struct duo duo;

    begin(&duo);
    say_hello(&duo);
    for (size_t i = 4; i < 7; i++) {
        peer_write(&duo.b, duo.a.at[i].seq, duo.a.at[i].content);
    }
    duo.b.n_synced = duo.b.n_applied = 6;
    a_says(&duo, STREAM_WELCOME);
    ck_assert_int_eq(duo.down.call.state, LINK_REPLICA_FOLLOWING);
    ck_assert_uint_eq(duo.down.verdict_seq, seq_make(3, 4));
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 4));
    ck_assert_uint_eq(duo.up.ack.synced, seq_make(3, 4));
    ck_assert_uint_eq(duo.up.ack.applied, seq_make(3, 4));
    say_batches(&duo, 2);
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 6));
    say_batches(&duo, 2);
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 7));
    ck_assert_uint_eq(duo.up.ack.synced, seq_make(3, 6));
    duo_end(&duo);
}
END_TEST

/* The same where the primary has not all that has been written since. */
START_TEST(test_written_astray)
{
    struct duo duo;

    begin(&duo);
    say_hello(&duo);
    for (unsigned i = 4; i < 11; i++) {
        peer_write(&duo.b, seq_make(3, i + 1), i);
    }
    a_says(&duo, STREAM_WELCOME);
    ck_assert_int_eq(duo.step, LINK_ENDING);
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_APART);
    duo_end(&duo);
}
END_TEST

/* So does what the log was given, and has not written: as far as batch n of a
 * term. The reason of the end. */
static enum link_reason
meet_with_given(unsigned term, unsigned n, uint64_t branch)
{
    struct duo duo;
    struct history given;
    enum link_reason reason;

    begin(&duo);
    given = duo.b.history;
    if (term > 3) {
        ck_assert(history_begin(&given, term, branch, seq_make(3, 10)));
    }
    duo.given_history = &given;
    duo.given_seq = seq_make(term, n);
    say_hello(&duo);
    a_says(&duo, STREAM_WELCOME);
    reason = duo.down.call.end.reason;
    if (reason == LINK_NONE) {
        ck_assert_uint_eq(duo.down.verdict_seq, seq_make(3, 4));
        b_says(&duo, STREAM_ACK);
        ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 4));
    }
    duo_end(&duo);
    return reason;
}

START_TEST(test_given)
{
    ck_assert_int_eq(meet_with_given(3, 4, 0), LINK_NONE);
    ck_assert_int_eq(meet_with_given(3, 5, 0), LINK_NONE);
    ck_assert_int_eq(meet_with_given(3, 10, 0), LINK_NONE);
    ck_assert_int_eq(meet_with_given(3, 11, 0), LINK_APART);
    ck_assert_int_eq(meet_with_given(4, 1, 0xddd), LINK_APART);
}
END_TEST

START_TEST(test_beats)
{
    struct duo duo;

    begin(&duo);
    settle(&duo);
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    ck_assert_uint_eq(duo.order.until_us, duo.now_us + LINK_BEAT_US);
    /* what is committed may wait a little */
    duo.a.committed = seq_make(3, 9);
    duo.now_us += 5;
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    ck_assert_uint_eq(duo.order.until_us, duo.now_us + LINK_NEWS_US);
    duo.now_us += LINK_NEWS_US - 1;
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    duo.now_us += 1;
    a_says(&duo, STREAM_HEARTBEAT);
    ck_assert_uint_eq(link_replica_committed(&duo.down), seq_make(3, 9));
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    duo.now_us += LINK_BEAT_US - 1;
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    duo.now_us += 1;
    a_says(&duo, STREAM_HEARTBEAT);
    /* and so does the replica; the clock goes back once */
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.down.echo_us, 0);
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    ck_assert_uint_eq(duo.order.until_us, duo.now_us + LINK_BEAT_US);
    duo.now_us += LINK_BEAT_US;
    b_says(&duo, STREAM_ACK);
    ck_assert_int_eq(duo.step, LINK_TAKEN);
    ck_assert_uint_eq(duo.up.rtt_us, 0);
    duo_end(&duo);
}
END_TEST

/* Changes one end so that the primary refuses. */
static void
spoil(struct duo *duo, unsigned i, struct proof_secret *other)
{
    struct peer *b = &duo->b;

    switch (i) {
    case 0:
        b->self.group = text_of("posts/1");
        break;
    case 1:
        b->self.name = text_of("a");
        break;
    case 2:
        b->directory.epoch++;
        break;
    case 3:
        b->directory.shards++;
        break;
    case 4:
        b->directory.seed++;
        break;
    case 5:
        b->self.formats.entry--;
        break;
    case 6:
        b->self.formats.manifest--;
        break;
    case 7:
        b->self.formats.segment--;
        break;
    case 8:
        b->promised = 4;
        break;
    default:
        other->n_bytes = PROOF_SECRET_MIN;
        duo->a.self.secret = other;
    }
}

START_TEST(test_refused)
{
    static const enum link_reason right[] = {LINK_GROUP, LINK_NAME,
        LINK_DIRECTORY, LINK_DIRECTORY, LINK_DIRECTORY, LINK_FORMAT,
        LINK_FORMAT, LINK_FORMAT, LINK_NEWER_TERM, LINK_PROOF};

    for (unsigned i = 0; i < COUNT_OF(right) - !proof_is_there(); i++) {
        struct proof_secret other = {0};
        struct duo duo;

        begin(&duo);
        spoil(&duo, i, &other);
        say_hello(&duo);
        ck_assert_int_eq(duo.step, LINK_ENDING);
        ck_assert_int_eq(duo.up.end.reason, right[i]);
        ck_assert_uint_eq(duo.up.end.term, i == 8 ? 4 : 3);
        a_says(&duo, STREAM_ERROR);
        ck_assert_int_eq(duo.step, LINK_ENDING);
        ck_assert_int_eq(duo.down.call.end.reason, LINK_TOLD);
        ck_assert_uint_gt(duo.down.call.end.code, 0);
        ck_assert_mem_eq(duo.down.call.end.text, link_reason_text(right[i]),
            duo.down.call.end.text_len);
        ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
        ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
        duo_end(&duo);
    }
}
END_TEST

/* A hello that the replica would not say: other versions, another purpose. */
START_TEST(test_other_hello)
{
    static const struct {
        uint8_t least, most;
        enum message_purpose purpose;
        enum link_reason reason;
    } hellos[] = {{2, 3, MESSAGE_FOLLOW, LINK_VERSIONS},
        {1, 255, MESSAGE_PROMISE, LINK_PURPOSE},
        {1, 1, MESSAGE_FETCH, LINK_PURPOSE},
        {1, 3, MESSAGE_FOLLOW, LINK_NONE}};

    for (unsigned i = 0; i < COUNT_OF(hellos); i++) {
        struct duo duo;
        struct message_hello hello = tape_hello();
        size_t len;

        begin(&duo);
        a_says(&duo, STREAM_CHALLENGE);
        hello.least = hellos[i].least;
        hello.most = hellos[i].most;
        hello.purpose = hellos[i].purpose;
        hello.epoch = link_directory.epoch;
        hello.seed = link_directory.seed;
        hello.shards = link_directory.shards;
        hello.promised = 1;
        memset(hello.proof, 0, PROOF_BYTES);
        len = message_put_hello(duo.bytes + STREAM_HEAD_BYTES, &hello);
        len = stream_seal(duo.bytes, STREAM_HELLO, (uint32_t)len, 1, 0);
        to_a(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.up.end.reason, hellos[i].reason);
        duo_end(&duo);
    }
}
END_TEST

START_TEST(test_secret)
{
    struct proof_secret other = {.n_bytes = PROOF_SECRET_MIN, .bytes = {1}};
    struct duo duo;

    if (!proof_is_there()) {
        return;
    }
    begin(&duo);
    duo.secret.n_bytes = 50;
    settle(&duo);
    duo_end(&duo);
    /* a primary that does not know it is found out as well */
    begin(&duo);
    duo.secret.n_bytes = 50;
    say_hello(&duo);
    duo.b.self.secret = &other;
    a_says(&duo, STREAM_WELCOME);
    ck_assert_int_eq(duo.step, LINK_ENDING);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_PROOF);
    duo_end(&duo);
}
END_TEST

START_TEST(test_cut)
{
    struct duo duo;

    begin(&duo);
    peer_cut(&duo.b, 2);
    /* what it wrote as the primary of a term that nobody else has */
    duo.b.promised = 1;
    duo.a.promised = 8;
    duo.b.history.n = 1;
    peer_begin(&duo.b, 0xbbb);
    peer_write(&duo.b, seq_make(4, 2), 1);
    peer_begin(&duo.a, 0xccc);
    say_welcome(&duo);
    ck_assert_int_eq(ask_b(&duo), LINK_PROMISE);
    ck_assert_uint_eq(duo.order.term, 9);
    ck_assert(!link_replica_may_take(&duo.down));
    ck_assert_int_eq(ask_b(&duo), LINK_PROMISE);
    link_replica_promised(&duo.down);
    duo.b.promised = 9;
    ck_assert_int_eq(ask_b(&duo), LINK_CUT_LOG);
    ck_assert_uint_eq(duo.order.seq, seq_make(3, 2));
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.up.end.reason, LINK_CUT);
    peer_cut(&duo.b, 2);
    meet(&duo);
    settle(&duo);
    ck_assert_uint_eq(peer_last(&duo.b), seq_first(9));
    duo_end(&duo);
}
END_TEST

START_TEST(test_snapshot)
{
    for (unsigned i = 0; i < 3; i++) {
        const struct message_end fin = {MESSAGE_END_SNAPSHOT, 0};
        struct duo duo;
        size_t len;

        begin(&duo);
        if (i == 0) {
            duo.a.n_gone = 5; /* the log does not reach back */
        } else if (i == 1) {
            peer_cut(&duo.b, 0);
            duo.b.directory = (struct link_directory){0};
        } else {
            go_astray(&duo.b);
        }
        say_welcome(&duo);
        ck_assert_int_eq(duo.down.verdict, MESSAGE_SNAPSHOT);
        b_says(&duo, STREAM_ACK);
        ck_assert_int_eq(duo.step, LINK_TAKEN);
        ck_assert_int_eq(ask_b(&duo), LINK_COPY);
        ck_assert_int_eq(ask_a(&duo), LINK_COPY);
        len = message_put_have(duo.bytes + STREAM_HEAD_BYTES, 0);
        len =
            link_replica_have(&duo.down, duo.bytes, (uint32_t)len, duo.now_us);
        to_a(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.step, LINK_YOURS);
        len = message_put_end(duo.bytes + STREAM_HEAD_BYTES, &fin);
        len = link_primary_copy(
            &duo.up, STREAM_END, duo.bytes, (uint32_t)len, duo.now_us);
        to_b(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.step, LINK_YOURS);
        /* it is quiet, but alive */
        duo.now_us += LINK_BEAT_US;
        a_says(&duo, STREAM_HEARTBEAT);
        ck_assert_int_eq(duo.step, LINK_TAKEN);
        duo_end(&duo);
    }
    /* a replica without any batch needs none where the log has all */
    struct duo duo;

    begin(&duo);
    peer_cut(&duo.b, 0);
    settle(&duo);
    ck_assert_uint_eq(duo.b.n, 10);
    duo_end(&duo);
}
END_TEST

/* A welcome that the primary would not say. */
START_TEST(test_other_welcome)
{
    for (unsigned i = 0; i < 7; i++) {
        struct duo duo;
        struct message_welcome welcome;
        enum link_reason right = LINK_BAD_FRAME;
        uint64_t term = 3;
        size_t len;

        begin(&duo);
        say_hello(&duo);
        welcome = (struct message_welcome){.protocol = 1,
            .verdict = MESSAGE_CONTINUE,
            .seq = seq_make(3, 4),
            .last = seq_make(3, 10),
            .name = text_of("a"),
            .history = duo.a.history};
        switch (i) {
        case 0:
            welcome.protocol = 2;
            right = LINK_VERSIONS;
            break;
        case 1:
            welcome.seq = seq_make(3, 5);
            break;
        case 2:
            welcome.verdict = MESSAGE_CUT;
            welcome.seq = seq_make(3, 3);
            break;
        case 3:
            welcome.history.at[0].branch++;
            right = LINK_SAME_TERM;
            break;
        case 4:
            term = 4;
            break;
        case 5: /* no promotions lead there */
            term = duo.b.promised + LINK_TERMS_MAX + 1;
            ck_assert(history_begin(
                &welcome.history, term, 0xffff, seq_make(3, 10)));
            welcome.last = seq_first(term);
            break;
        default:
            duo.b.promised = 5;
            right = LINK_OLDER_TERM;
        }
        len = message_put_welcome(duo.bytes + STREAM_HEAD_BYTES, &welcome);
        len = stream_seal(duo.bytes, STREAM_WELCOME, (uint32_t)len, term,
            duo.down.call.session);
        to_b(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.step, LINK_ENDING);
        ck_assert_msg(duo.down.call.end.reason == right, "%u", i);
        b_says(&duo, STREAM_ERROR);
        ck_assert_int_eq(duo.up.end.reason, LINK_TOLD);
        duo_end(&duo);
    }
}
END_TEST

/* Frames of the primary that must not be taken; the batches are those that are
 * named, the replica has up to 4. */
static const struct {
    uint64_t term, first, second, last;
    enum link_reason reason;
    uint32_t offset; /* in the body */
} wrong_batches[] = {
    {3, 6, 7, 10, LINK_GAP, 32},
    {3, 4, 5, 10, LINK_GAP, 32},
    {3, 1, 2, 10, LINK_GAP, 32},
    {3, 5, 7, 10, LINK_GAP, 32 + MESSAGE_BATCH_BYTES + 1},
    {3, 5, 6, 9, LINK_BAD_FRAME, 8},
    {2, 5, 6, 10, LINK_OLDER_TERM, 0},
    {4, 5, 6, 10, LINK_NEWER_TERM, 0},
    {3, 5, 6, 10, LINK_NONE, 0},
};

START_TEST(test_wrong_batches)
{
    for (unsigned i = 0; i < COUNT_OF(wrong_batches); i++) {
        struct duo duo;
        struct message_news news = {
            .last = seq_make(3, wrong_batches[i].last)};
        const uint64_t n[] = {wrong_batches[i].first, wrong_batches[i].second};
        uint8_t *body;
        size_t len;

        begin(&duo);
        say_welcome(&duo);
        body = duo.bytes + STREAM_HEAD_BYTES;
        len = message_put_news(body, &news);
        for (unsigned k = 0; k < 2; k++) {
            message_put_batch(body + len, seq_make(3, n[k]), 1);
            len += MESSAGE_BATCH_BYTES;
            body[len++] = 'x';
        }
        len = stream_seal(duo.bytes, STREAM_BATCHES, (uint32_t)len,
            wrong_batches[i].term, duo.down.call.session);
        to_b(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.down.call.end.reason, wrong_batches[i].reason);
        ck_assert_int_eq(duo.step,
            wrong_batches[i].reason == LINK_NONE ? LINK_YOURS : LINK_ENDING);
        if (wrong_batches[i].offset > 0) {
            ck_assert_uint_eq(duo.down.call.end.fault.offset,
                STREAM_HEAD_BYTES + wrong_batches[i].offset);
        }
        duo_end(&duo);
    }
}
END_TEST

START_TEST(test_switch)
{
    struct duo duo;

    begin(&duo);
    settle(&duo);
    peer_write(&duo.a, seq_make(3, 11), 11);
    link_primary_switch(&duo.up, seq_make(3, 11));
    say_batches(&duo, 1); /* first what is behind it */
    write_batches(&duo);
    peer_write(&duo.a, seq_make(3, 12), 12); /* that stays here */
    a_says(&duo, STREAM_SWITCH);
    ck_assert_uint_eq(duo.down.switch_seq, seq_make(3, 11));
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    /* nothing comes behind it */
    duo.up.switch_seq = 0;
    ck_assert_int_eq(ask_a(&duo), LINK_BATCHES);
    to_b(&duo, duo.bytes,
        peer_put_batches(
            &duo.a, &duo.up, duo.order.seq, 1, duo.now_us, duo.bytes));
    ck_assert_int_eq(duo.down.call.end.reason, LINK_GAP);
    duo_end(&duo);
}
END_TEST

START_TEST(test_wrong_acks)
{
    static const struct {
        uint64_t written, synced, applied, echo;
        enum link_reason reason;
    } acks[] = {{10, 6, 6, 0, LINK_NONE}, {11, 6, 6, 0, LINK_BAD_FRAME},
        {9, 6, 6, 0, LINK_BAD_FRAME}, {10, 5, 6, 0, LINK_BAD_FRAME},
        {10, 6, 5, 0, LINK_BAD_FRAME}, {10, 10, 10, 999999, LINK_BAD_FRAME},
        {10, 10, 10, 1000000, LINK_NONE},
        {10, 10, 10, 1000001, LINK_BAD_FRAME}};

    for (unsigned i = 0; i < COUNT_OF(acks); i++) {
        struct duo duo;
        struct message_ack ack;
        size_t len;

        begin(&duo);
        settle(&duo);
        duo.b.n_synced = duo.b.n_applied = 6;
        b_says(&duo, STREAM_ACK);
        peer_write(&duo.a, seq_make(3, 11), 11); /* not sent */
        ack = (struct message_ack){seq_make(3, acks[i].written),
            seq_make(3, acks[i].synced), seq_make(3, acks[i].applied),
            acks[i].echo, 0};
        len = message_put_ack(duo.bytes + STREAM_HEAD_BYTES, &ack);
        len = stream_seal(
            duo.bytes, STREAM_ACK, (uint32_t)len, 3, duo.up.session);
        to_a(&duo, duo.bytes, len);
        ck_assert_msg(duo.up.end.reason == acks[i].reason, "%u", i);
        ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 10));
        ck_assert_uint_ge(duo.up.ack.synced, seq_make(3, 6));
        duo_end(&duo);
    }
}
END_TEST

START_TEST(test_silence)
{
    struct duo duo;

    begin(&duo);
    settle(&duo);
    duo.now_us += duo.a.self.timeout_us - 1;
    link_primary_heard(&duo.up, duo.now_us); /* a part of a frame */
    duo.now_us += duo.a.self.timeout_us - 1;
    ck_assert_int_ne(ask_a(&duo), LINK_CLOSE);
    duo.now_us += 1;
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.up.end.reason, LINK_TIMEOUT);
    duo_end(&duo);

    begin(&duo);
    settle(&duo);
    duo.now_us += duo.a.self.timeout_us - 1;
    link_replica_heard(&duo.down, duo.now_us);
    duo.now_us += duo.a.self.timeout_us - 1;
    ck_assert_int_ne(ask_b(&duo), LINK_CLOSE);
    duo.now_us += 1;
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_TIMEOUT);
    duo_end(&duo);

    /* also before they have met; and not while nothing is read */
    begin(&duo);
    duo.now_us += duo.a.self.timeout_us;
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    duo_end(&duo);
    begin(&duo); /* nor does a byte keep who has not said who it is */
    ck_assert_int_eq(ask_a(&duo), LINK_SEND);
    duo.now_us += duo.a.self.timeout_us - 1;
    link_primary_heard(&duo.up, duo.now_us);
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    duo.now_us += 1;
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.up.end.reason, LINK_TIMEOUT);
    duo_end(&duo);
    begin(&duo);
    settle(&duo);
    struct link_node node = peer_node(&duo.b);
    node.is_paused = true;
    duo.now_us += duo.a.self.timeout_us;
    link_replica_next(&duo.down, &node, duo.now_us, duo.bytes, &duo.order);
    ck_assert_int_eq(duo.order.what, LINK_SEND);
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    duo_end(&duo);
}
END_TEST

/* The primary says that there is more, and it does not come. */
START_TEST(test_stalled)
{
    struct duo duo;
    struct message_news news = {.last = seq_make(3, 11)};
    size_t len;

    begin(&duo);
    settle(&duo);
    len = message_put_news(duo.bytes + STREAM_HEAD_BYTES, &news);
    len = stream_seal(
        duo.bytes, STREAM_HEARTBEAT, (uint32_t)len, 3, duo.down.call.session);
    to_b(&duo, duo.bytes, len);
    ck_assert_int_eq(duo.step, LINK_TAKEN);
    duo.now_us += LINK_STALL_US - 1;
    ck_assert_int_eq(ask_b(&duo), LINK_SEND);
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    ck_assert_uint_eq(duo.order.until_us, duo.now_us + 1);
    duo.now_us += 1;
    b_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_STALLED);
    ck_assert_int_eq(duo.up.end.reason, LINK_TOLD);
    ck_assert_uint_eq(duo.up.end.code, MESSAGE_LATE);
    duo_end(&duo);
}
END_TEST

START_TEST(test_terms_end)
{
    struct duo duo;

    begin(&duo);
    settle(&duo);
    duo.b.promised = 4; /* to somebody else */
    b_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_TERM_OVER);
    ck_assert_uint_eq(duo.down.call.end.term, 4);
    ck_assert_int_eq(duo.up.end.reason, LINK_TOLD);
    ck_assert_uint_eq(duo.up.end.code, MESSAGE_BAD_TERM);
    duo_end(&duo);

    begin(&duo);
    settle(&duo);
    peer_begin(&duo.a, 0xddd);
    a_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.up.end.reason, LINK_TERM_OVER);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_TOLD);
    duo_end(&duo);

    begin(&duo);
    say_welcome(&duo);
    duo.a.n_gone = 5; /* the beginning of its log went before it was sent */
    a_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.up.end.reason, LINK_BEHIND);
    duo_end(&duo);
}
END_TEST

START_TEST(test_refused_by_node)
{
    const struct message_refused refused = {
        .promised = 9, .primary = text_of("c"), .address = text_of("c:1")};
    struct duo duo;
    size_t len;

    begin(&duo);
    settle(&duo);
    len = message_put_refused(duo.bytes + STREAM_HEAD_BYTES, &refused);
    len = stream_seal(
        duo.bytes, STREAM_REFUSED, (uint32_t)len, 9, duo.down.call.session);
    to_b(&duo, duo.bytes, len);
    ck_assert_int_eq(duo.step, LINK_ENDING);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_REFUSED);
    ck_assert_uint_eq(duo.down.call.end.term, 9);
    ck_assert_mem_eq(duo.down.call.end.text, "c", duo.down.call.end.text_len);
    ck_assert_mem_eq(duo.down.call.end.address, "c:1", 3);
    ck_assert_uint_eq(duo.down.call.end.address_len, 3);
    duo_end(&duo);
}
END_TEST

/* Takes both ends so far: 0, nothing was said; 1, the challenge; 2, the hello;
 * 3, the welcome, a snapshot comes; 4, the log does. */
static void
go_to(struct duo *duo, unsigned stage)
{
    begin(duo);
    if (stage == 3) {
        go_astray(&duo->b);
    }
    if (stage == 1) {
        a_says(duo, STREAM_CHALLENGE);
    } else if (stage == 2) {
        say_hello(duo);
    } else if (stage >= 3) {
        say_welcome(duo);
    }
}

/* Every frame of the tape in every state, at both ends: either it is due, or
 * it is what ends the link. */
START_TEST(test_all_frames)
{
    static struct tape tape;
    unsigned n_ended = 0, n_taken = 0;

    tape_make(&tape);
    for (unsigned stage = 0; stage < 5; stage++) {
        for (unsigned i = 0; i < 2 * tape.n; i++) {
            const uint8_t *bytes = tape.bytes + tape.at[i / 2];
            size_t len = tape.at[i / 2 + 1] - tape.at[i / 2];
            bool is_up = i % 2 == 0;
            struct duo duo;
            uint8_t frame[4096];
            bool is_over;

            go_to(&duo, stage);
            memcpy(frame, bytes, len);
            (void)stream_seal(frame, (enum stream_type)frame[5],
                (uint32_t)len - STREAM_HEAD_BYTES, 3,
                is_up ? duo.up.session : duo.down.call.session);
            if (is_up) {
                to_a(&duo, frame, len);
                is_over = duo.up.state >= LINK_PRIMARY_ENDING;
            } else if (link_replica_may_take(&duo.down)) {
                to_b(&duo, frame, len);
                is_over = duo.down.call.state >= LINK_CALLER_ENDING;
            } else {
                duo_end(&duo);
                continue;
            }
            ck_assert_int_eq(is_over, duo.step == LINK_ENDING);
            n_ended += is_over;
            n_taken += !is_over;
            if (is_over) {
                while ((is_up ? ask_a(&duo) : ask_b(&duo)) == LINK_SEND) {
                    ck_assert_uint_eq(duo.bytes[5], STREAM_ERROR);
                }
                ck_assert_int_eq(duo.order.what, LINK_CLOSE);
            }
            duo_end(&duo);
        }
    }
    ck_assert_uint_gt(n_ended, 100);
    ck_assert_uint_gt(n_taken, 5);
}
END_TEST

START_TEST(test_no_frame)
{
    const struct stream_fault fault = {.what = "the checksum", .offset = 24};
    struct duo duo;

    begin(&duo);
    settle(&duo);
    link_replica_wrong(&duo.down, &fault);
    ck_assert_str_eq(duo.down.call.end.fault.what, "the checksum");
    b_says(&duo, STREAM_ERROR);
    ck_assert_uint_eq(duo.up.end.code, MESSAGE_BAD_FRAME);
    duo_end(&duo);
    begin(&duo);
    settle(&duo);
    link_primary_wrong(&duo.up, &fault);
    a_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_TOLD);
    duo_end(&duo);
}
END_TEST

/* What a client of the replica changes goes to the primary, and its reply back;
 * not before both know of it, nor where the replica has not said that it
 * does. */
START_TEST(test_forward)
{
    for (unsigned forwards = 0; forwards < 2; forwards++) {
        uint8_t frame[STREAM_HEAD_BYTES + MESSAGE_REPLY_HEAD + 8];
        const struct message_reply reply = {.id = 1};
        struct duo duo;
        size_t len;

        begin(&duo);
        duo.b.self.hello_flags = forwards == 1 ? HELLO_FORWARDS : 0;
        ck_assert(!link_replica_forwards(&duo.down));
        settle(&duo);
        ck_assert_uint_eq(link_replica_forwards(&duo.down), forwards);
        len = message_put_request(frame + STREAM_HEAD_BYTES, 1, false);
        frame[STREAM_HEAD_BYTES + len++] = 'x';
        len = forwards == 1
            ? link_replica_request(&duo.down, frame, (uint32_t)len)
            : stream_seal(frame, STREAM_REQUEST, (uint32_t)len, duo.down.term,
                  duo.down.call.session);
        to_a(&duo, frame, len);
        ck_assert_int_eq(duo.step, forwards == 1 ? LINK_YOURS : LINK_ENDING);
        if (forwards == 0) {
            ck_assert_int_eq(duo.up.end.reason, LINK_BAD_ORDER);
            duo_end(&duo);
            continue;
        }
        len = message_put_reply(frame + STREAM_HEAD_BYTES, &reply);
        len = link_primary_reply(&duo.up, frame, (uint32_t)len);
        to_b(&duo, frame, len);
        ck_assert_int_eq(duo.step, LINK_YOURS);
        ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
        duo_end(&duo);
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_stream, test_written_later,
        test_written_astray, test_given, test_beats, test_refused,
        test_other_hello, test_secret, test_cut, test_snapshot,
        test_other_welcome, test_wrong_batches, test_switch, test_wrong_acks,
        test_silence, test_stalled, test_terms_end, test_refused_by_node,
        test_all_frames, test_no_frame, test_forward};

    return run_tests("link", tests, COUNT_OF(tests));
}
