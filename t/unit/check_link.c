/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/link: how two ends meet, and each reason for which they do not; the
 * three verdicts; what is sent when; batches with gaps, and acknowledgements of
 * what was not sent; terms that end; silence. And every type of frame in every
 * state. */
#include "repl/message_forward.h"
#include "unit/link_help.h"

/* Two ends, and frames from one to the other. */
struct pair {
    struct peer a, b; /* the primary, the replica */
    struct proof_secret secret;
    struct link_primary up;
    struct link_replica down;
    struct stream_reader at_up, at_down;
    uint8_t bytes[LINK_SEND_MAX];
    char *given; /* the last frame to the replica, which is looked at still */
    struct link_order order;
    enum link_step step; /* of the last frame */
    uint64_t now_us;
};

static void
meet(struct pair *pair)
{
    static const uint8_t nonce[2][STREAM_NONCE_BYTES] = {{1}, {2}};

    link_primary_init(&pair->up, &pair->a.self, nonce[0], pair->now_us);
    link_replica_init(&pair->down, &pair->b.self, nonce[1], pair->now_us);
    stream_reader_fini(&pair->at_up);
    stream_reader_fini(&pair->at_down);
    ck_assert_int_eq(stream_reader_init(&pair->at_up), 0);
    ck_assert_int_eq(stream_reader_init(&pair->at_down), 0);
}

/* a has ten batches in term 3, b the first four of them, and promised 3. */
static void
begin(struct pair *pair)
{
    memset(pair, 0, sizeof *pair);
    pair->now_us = 1000000;
    peer_init(&pair->a, "a", &pair->secret);
    peer_init(&pair->b, "b", &pair->secret);
    pair->a.directory = pair->b.directory = link_directory;
    pair->a.promised = pair->b.promised = 2;
    peer_begin(&pair->a, 0xaaa);
    pair->b.promised = 3;
    for (unsigned i = 1; i < 10; i++) {
        peer_write(&pair->a, seq_make(3, i + 1), i);
    }
    for (unsigned i = 0; i < 4; i++) {
        peer_write(&pair->b, pair->a.at[i].seq, pair->a.at[i].content);
    }
    pair->a.committed = seq_make(3, 7);
    meet(pair);
}

/* Its log is another one, which has nothing of the primary's. */
static void
go_astray(struct peer *peer)
{
    peer_cut(peer, 0);
    peer_write(peer, seq_first(2), 0xbbb);
}

static void
end(struct pair *pair)
{
    stream_reader_fini(&pair->at_up);
    stream_reader_fini(&pair->at_down);
    free(pair->given);
}

/* Hands on a frame. */
static void
to_replica(struct pair *pair, const uint8_t *bytes, size_t len)
{
    struct link_node node = peer_node(&pair->b);
    struct stream_frame frame;
    char *copy = copy_of((const char *)bytes, len);
    const uint8_t *at = (const uint8_t *)copy;

    ck_assert_int_eq(
        stream_read(&pair->at_down, &at, &len, &frame), STREAM_FRAME);
    pair->step = link_replica_take(&pair->down, &node, &frame, pair->now_us);
    pair->at_down.session = pair->down.call.session;
    free(pair->given);
    pair->given = copy;
}

static void
to_primary(struct pair *pair, const uint8_t *bytes, size_t len)
{
    struct link_view view = peer_view(&pair->a);
    struct stream_frame frame;
    char *copy = copy_of((const char *)bytes, len);
    const uint8_t *at = (const uint8_t *)copy;

    ck_assert_int_eq(
        stream_read(&pair->at_up, &at, &len, &frame), STREAM_FRAME);
    pair->step = link_primary_take(&pair->up, &view, &frame, pair->now_us);
    pair->at_up.session = pair->up.session;
    free(copy);
}

static enum link_do
ask_primary(struct pair *pair)
{
    struct link_view view = peer_view(&pair->a);

    link_primary_next(
        &pair->up, &view, pair->now_us, pair->bytes, &pair->order);
    return pair->order.what;
}

static enum link_do
ask_replica(struct pair *pair)
{
    struct link_node node = peer_node(&pair->b);

    link_replica_next(
        &pair->down, &node, pair->now_us, pair->bytes, &pair->order);
    return pair->order.what;
}

/* What the end sends now, and the other one takes. */
static void
primary_says(struct pair *pair, enum stream_type type)
{
    ck_assert_int_eq(ask_primary(pair), LINK_SEND);
    ck_assert_uint_eq(pair->bytes[5], type);
    to_replica(pair, pair->bytes, pair->order.len);
}

static void
replica_says(struct pair *pair, enum stream_type type)
{
    ck_assert_int_eq(ask_replica(pair), LINK_SEND);
    ck_assert_uint_eq(pair->bytes[5], type);
    to_primary(pair, pair->bytes, pair->order.len);
}

static void
say_hello(struct pair *pair)
{
    primary_says(pair, STREAM_CHALLENGE);
    ck_assert(!link_replica_may_take(&pair->down));
    replica_says(pair, STREAM_HELLO);
}

static void
say_welcome(struct pair *pair)
{
    say_hello(pair);
    ck_assert_int_eq(pair->step, LINK_TAKEN);
    primary_says(pair, STREAM_WELCOME);
    ck_assert_int_eq(pair->step, LINK_TAKEN);
}

/* Batches from..to of the primary go to the replica. */
static void
say_batches(struct pair *pair, size_t most)
{
    uint8_t frame[4096];
    size_t len;

    ck_assert_int_eq(ask_primary(pair), LINK_BATCHES);
    len = peer_put_batches(
        &pair->a, &pair->up, pair->order.seq, most, pair->now_us, frame);
    to_replica(pair, frame, len);
    ck_assert_int_eq(pair->step, LINK_YOURS);
}

static void
write_batches(struct pair *pair)
{
    struct message_batch batch;

    while (message_next_batch(&pair->down.batches, &batch)) {
        peer_write(&pair->b, batch.seq, bytes_get_u64(batch.payload));
    }
}

/* Both stream, and nothing is left to say. */
static void
settle(struct pair *pair)
{
    say_welcome(pair);
    replica_says(pair, STREAM_ACK);
    say_batches(pair, 100);
    write_batches(pair);
    replica_says(pair, STREAM_ACK);
    ck_assert_int_eq(ask_primary(pair), LINK_WAIT);
    ck_assert_int_eq(ask_replica(pair), LINK_WAIT);
}

START_TEST(test_stream)
{
    struct pair pair;

    begin(&pair);
    say_welcome(&pair);
    ck_assert_int_eq(pair.down.call.state, LINK_REPLICA_FOLLOWING);
    ck_assert_uint_eq(pair.down.verdict_seq, seq_make(3, 4));
    ck_assert_uint_eq(link_replica_committed(&pair.down), seq_make(3, 4));
    replica_says(&pair, STREAM_ACK);
    ck_assert_uint_eq(pair.up.ack.written, seq_make(3, 4));
    say_batches(&pair, 2);
    write_batches(&pair);
    ck_assert_uint_eq(link_replica_committed(&pair.down), seq_make(3, 6));
    pair.now_us += 70;
    replica_says(&pair, STREAM_ACK);
    ck_assert_uint_eq(pair.up.ack.written, seq_make(3, 6));
    ck_assert_uint_eq(pair.up.rtt_us, 70);
    say_batches(&pair, 100);
    write_batches(&pair);
    ck_assert_uint_eq(pair.down.news.rtt_us, 70);
    ck_assert_uint_eq(link_replica_committed(&pair.down), seq_make(3, 7));
    pair.b.n_synced = pair.b.n_applied = 5;
    replica_says(&pair, STREAM_ACK);
    ck_assert_uint_eq(pair.up.ack.written, seq_make(3, 10));
    ck_assert_uint_eq(pair.up.ack.synced, seq_make(3, 5));
    ck_assert_uint_eq(pair.up.ack.applied, seq_make(3, 5));
    end(&pair);
}
END_TEST

START_TEST(test_beats)
{
    struct pair pair;

    begin(&pair);
    settle(&pair);
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    ck_assert_uint_eq(pair.order.until_us, pair.now_us + LINK_BEAT_US);
    /* what is committed may wait a little */
    pair.a.committed = seq_make(3, 9);
    pair.now_us += 5;
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    ck_assert_uint_eq(pair.order.until_us, pair.now_us + LINK_NEWS_US);
    pair.now_us += LINK_NEWS_US - 1;
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    pair.now_us += 1;
    primary_says(&pair, STREAM_HEARTBEAT);
    ck_assert_uint_eq(link_replica_committed(&pair.down), seq_make(3, 9));
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    pair.now_us += LINK_BEAT_US - 1;
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    pair.now_us += 1;
    primary_says(&pair, STREAM_HEARTBEAT);
    /* and so does the replica; the clock goes back once */
    replica_says(&pair, STREAM_ACK);
    ck_assert_uint_eq(pair.down.echo_us, 0);
    ck_assert_int_eq(ask_replica(&pair), LINK_WAIT);
    ck_assert_uint_eq(pair.order.until_us, pair.now_us + LINK_BEAT_US);
    pair.now_us += LINK_BEAT_US;
    replica_says(&pair, STREAM_ACK);
    ck_assert_int_eq(pair.step, LINK_TAKEN);
    ck_assert_uint_eq(pair.up.rtt_us, 0);
    end(&pair);
}
END_TEST

/* Changes one end so that the primary refuses. */
static void
spoil(struct pair *pair, unsigned i, struct proof_secret *other)
{
    struct peer *b = &pair->b;

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
        pair->a.self.secret = other;
    }
}

START_TEST(test_refused)
{
    static const enum link_reason right[] = {LINK_GROUP, LINK_NAME,
        LINK_DIRECTORY, LINK_DIRECTORY, LINK_DIRECTORY, LINK_FORMAT,
        LINK_FORMAT, LINK_FORMAT, LINK_NEWER_TERM, LINK_PROOF};

    for (unsigned i = 0; i < COUNT_OF(right) - !proof_is_there(); i++) {
        struct proof_secret other = {0};
        struct pair pair;

        begin(&pair);
        spoil(&pair, i, &other);
        say_hello(&pair);
        ck_assert_int_eq(pair.step, LINK_ENDING);
        ck_assert_int_eq(pair.up.end.reason, right[i]);
        ck_assert_uint_eq(pair.up.end.term, i == 8 ? 4 : 3);
        primary_says(&pair, STREAM_ERROR);
        ck_assert_int_eq(pair.step, LINK_ENDING);
        ck_assert_int_eq(pair.down.call.end.reason, LINK_TOLD);
        ck_assert_uint_gt(pair.down.call.end.code, 0);
        ck_assert_mem_eq(pair.down.call.end.text, link_reason_text(right[i]),
            pair.down.call.end.text_len);
        ck_assert_int_eq(ask_primary(&pair), LINK_CLOSE);
        ck_assert_int_eq(ask_replica(&pair), LINK_CLOSE);
        end(&pair);
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
        struct pair pair;
        struct message_hello hello = tape_hello();
        size_t len;

        begin(&pair);
        primary_says(&pair, STREAM_CHALLENGE);
        hello.least = hellos[i].least;
        hello.most = hellos[i].most;
        hello.purpose = hellos[i].purpose;
        hello.epoch = link_directory.epoch;
        hello.seed = link_directory.seed;
        hello.shards = link_directory.shards;
        hello.promised = 1;
        memset(hello.proof, 0, PROOF_BYTES);
        len = message_put_hello(pair.bytes + STREAM_HEAD_BYTES, &hello);
        len = stream_seal(pair.bytes, STREAM_HELLO, (uint32_t)len, 1, 0);
        to_primary(&pair, pair.bytes, len);
        ck_assert_int_eq(pair.up.end.reason, hellos[i].reason);
        end(&pair);
    }
}
END_TEST

START_TEST(test_secret)
{
    struct proof_secret other = {.n_bytes = PROOF_SECRET_MIN, .bytes = {1}};
    struct pair pair;

    if (!proof_is_there()) {
        return;
    }
    begin(&pair);
    pair.secret.n_bytes = 50;
    settle(&pair);
    end(&pair);
    /* a primary that does not know it is found out as well */
    begin(&pair);
    pair.secret.n_bytes = 50;
    say_hello(&pair);
    pair.b.self.secret = &other;
    primary_says(&pair, STREAM_WELCOME);
    ck_assert_int_eq(pair.step, LINK_ENDING);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_PROOF);
    end(&pair);
}
END_TEST

START_TEST(test_cut)
{
    struct pair pair;

    begin(&pair);
    peer_cut(&pair.b, 2);
    /* what it wrote as the primary of a term that nobody else has */
    pair.b.promised = 1;
    pair.a.promised = 8;
    pair.b.history.n = 1;
    peer_begin(&pair.b, 0xbbb);
    peer_write(&pair.b, seq_make(4, 2), 1);
    peer_begin(&pair.a, 0xccc);
    say_welcome(&pair);
    ck_assert_int_eq(ask_replica(&pair), LINK_PROMISE);
    ck_assert_uint_eq(pair.order.term, 9);
    ck_assert(!link_replica_may_take(&pair.down));
    ck_assert_int_eq(ask_replica(&pair), LINK_PROMISE);
    link_replica_promised(&pair.down);
    pair.b.promised = 9;
    ck_assert_int_eq(ask_replica(&pair), LINK_CUT_LOG);
    ck_assert_uint_eq(pair.order.seq, seq_make(3, 2));
    ck_assert_int_eq(ask_primary(&pair), LINK_CLOSE);
    ck_assert_int_eq(pair.up.end.reason, LINK_CUT);
    peer_cut(&pair.b, 2);
    meet(&pair);
    settle(&pair);
    ck_assert_uint_eq(peer_last(&pair.b), seq_first(9));
    end(&pair);
}
END_TEST

START_TEST(test_snapshot)
{
    for (unsigned i = 0; i < 3; i++) {
        const struct message_end fin = {MESSAGE_END_SNAPSHOT, 0};
        struct pair pair;
        size_t len;

        begin(&pair);
        if (i == 0) {
            pair.a.n_gone = 5; /* the log does not reach back */
        } else if (i == 1) {
            peer_cut(&pair.b, 0);
            pair.b.directory = (struct link_directory){0};
        } else {
            go_astray(&pair.b);
        }
        say_welcome(&pair);
        ck_assert_int_eq(pair.down.verdict, MESSAGE_SNAPSHOT);
        replica_says(&pair, STREAM_ACK);
        ck_assert_int_eq(pair.step, LINK_TAKEN);
        ck_assert_int_eq(ask_replica(&pair), LINK_COPY);
        ck_assert_int_eq(ask_primary(&pair), LINK_COPY);
        len = message_put_have(pair.bytes + STREAM_HEAD_BYTES, 0);
        len = link_replica_have(
            &pair.down, pair.bytes, (uint32_t)len, pair.now_us);
        to_primary(&pair, pair.bytes, len);
        ck_assert_int_eq(pair.step, LINK_YOURS);
        len = message_put_end(pair.bytes + STREAM_HEAD_BYTES, &fin);
        len = link_primary_copy(
            &pair.up, STREAM_END, pair.bytes, (uint32_t)len, pair.now_us);
        to_replica(&pair, pair.bytes, len);
        ck_assert_int_eq(pair.step, LINK_YOURS);
        /* it is quiet, but alive */
        pair.now_us += LINK_BEAT_US;
        primary_says(&pair, STREAM_HEARTBEAT);
        ck_assert_int_eq(pair.step, LINK_TAKEN);
        end(&pair);
    }
    /* a replica without any batch needs none where the log has all */
    struct pair pair;

    begin(&pair);
    peer_cut(&pair.b, 0);
    settle(&pair);
    ck_assert_uint_eq(pair.b.n, 10);
    end(&pair);
}
END_TEST

/* A welcome that the primary would not say. */
START_TEST(test_other_welcome)
{
    for (unsigned i = 0; i < 7; i++) {
        struct pair pair;
        struct message_welcome welcome;
        enum link_reason right = LINK_BAD_FRAME;
        uint64_t term = 3;
        size_t len;

        begin(&pair);
        say_hello(&pair);
        welcome = (struct message_welcome){.protocol = 1,
            .verdict = MESSAGE_CONTINUE,
            .seq = seq_make(3, 4),
            .last = seq_make(3, 10),
            .name = text_of("a"),
            .history = pair.a.history};
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
            term = pair.b.promised + LINK_TERMS_MAX + 1;
            ck_assert(history_begin(
                &welcome.history, term, 0xffff, seq_make(3, 10)));
            welcome.last = seq_first(term);
            break;
        default:
            pair.b.promised = 5;
            right = LINK_OLDER_TERM;
        }
        len = message_put_welcome(pair.bytes + STREAM_HEAD_BYTES, &welcome);
        len = stream_seal(pair.bytes, STREAM_WELCOME, (uint32_t)len, term,
            pair.down.call.session);
        to_replica(&pair, pair.bytes, len);
        ck_assert_int_eq(pair.step, LINK_ENDING);
        ck_assert_msg(pair.down.call.end.reason == right, "%u", i);
        replica_says(&pair, STREAM_ERROR);
        ck_assert_int_eq(pair.up.end.reason, LINK_TOLD);
        end(&pair);
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
        struct pair pair;
        struct message_news news = {
            .last = seq_make(3, wrong_batches[i].last)};
        const uint64_t n[] = {wrong_batches[i].first, wrong_batches[i].second};
        uint8_t *body;
        size_t len;

        begin(&pair);
        say_welcome(&pair);
        body = pair.bytes + STREAM_HEAD_BYTES;
        len = message_put_news(body, &news);
        for (unsigned k = 0; k < 2; k++) {
            message_put_batch(body + len, seq_make(3, n[k]), 1);
            len += MESSAGE_BATCH_BYTES;
            body[len++] = 'x';
        }
        len = stream_seal(pair.bytes, STREAM_BATCHES, (uint32_t)len,
            wrong_batches[i].term, pair.down.call.session);
        to_replica(&pair, pair.bytes, len);
        ck_assert_int_eq(pair.down.call.end.reason, wrong_batches[i].reason);
        ck_assert_int_eq(pair.step,
            wrong_batches[i].reason == LINK_NONE ? LINK_YOURS : LINK_ENDING);
        if (wrong_batches[i].offset > 0) {
            ck_assert_uint_eq(pair.down.call.end.fault.offset,
                STREAM_HEAD_BYTES + wrong_batches[i].offset);
        }
        end(&pair);
    }
}
END_TEST

START_TEST(test_switch)
{
    struct pair pair;

    begin(&pair);
    settle(&pair);
    peer_write(&pair.a, seq_make(3, 11), 11);
    link_primary_switch(&pair.up, seq_make(3, 11));
    say_batches(&pair, 1); /* first what is behind it */
    write_batches(&pair);
    peer_write(&pair.a, seq_make(3, 12), 12); /* that stays here */
    primary_says(&pair, STREAM_SWITCH);
    ck_assert_uint_eq(pair.down.switch_seq, seq_make(3, 11));
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    /* nothing comes behind it */
    pair.up.switch_seq = 0;
    ck_assert_int_eq(ask_primary(&pair), LINK_BATCHES);
    to_replica(&pair, pair.bytes,
        peer_put_batches(
            &pair.a, &pair.up, pair.order.seq, 1, pair.now_us, pair.bytes));
    ck_assert_int_eq(pair.down.call.end.reason, LINK_GAP);
    end(&pair);
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
        struct pair pair;
        struct message_ack ack;
        size_t len;

        begin(&pair);
        settle(&pair);
        pair.b.n_synced = pair.b.n_applied = 6;
        replica_says(&pair, STREAM_ACK);
        peer_write(&pair.a, seq_make(3, 11), 11); /* not sent */
        ack = (struct message_ack){seq_make(3, acks[i].written),
            seq_make(3, acks[i].synced), seq_make(3, acks[i].applied),
            acks[i].echo, 0};
        len = message_put_ack(pair.bytes + STREAM_HEAD_BYTES, &ack);
        len = stream_seal(
            pair.bytes, STREAM_ACK, (uint32_t)len, 3, pair.up.session);
        to_primary(&pair, pair.bytes, len);
        ck_assert_msg(pair.up.end.reason == acks[i].reason, "%u", i);
        ck_assert_uint_eq(pair.up.ack.written, seq_make(3, 10));
        ck_assert_uint_ge(pair.up.ack.synced, seq_make(3, 6));
        end(&pair);
    }
}
END_TEST

START_TEST(test_silence)
{
    struct pair pair;

    begin(&pair);
    settle(&pair);
    pair.now_us += pair.a.self.timeout_us - 1;
    link_primary_heard(&pair.up, pair.now_us); /* a part of a frame */
    pair.now_us += pair.a.self.timeout_us - 1;
    ck_assert_int_ne(ask_primary(&pair), LINK_CLOSE);
    pair.now_us += 1;
    ck_assert_int_eq(ask_primary(&pair), LINK_CLOSE);
    ck_assert_int_eq(pair.up.end.reason, LINK_TIMEOUT);
    end(&pair);

    begin(&pair);
    settle(&pair);
    pair.now_us += pair.a.self.timeout_us - 1;
    link_replica_heard(&pair.down, pair.now_us);
    pair.now_us += pair.a.self.timeout_us - 1;
    ck_assert_int_ne(ask_replica(&pair), LINK_CLOSE);
    pair.now_us += 1;
    ck_assert_int_eq(ask_replica(&pair), LINK_CLOSE);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_TIMEOUT);
    end(&pair);

    /* also before they have met; and not while nothing is read */
    begin(&pair);
    pair.now_us += pair.a.self.timeout_us;
    ck_assert_int_eq(ask_primary(&pair), LINK_CLOSE);
    ck_assert_int_eq(ask_replica(&pair), LINK_CLOSE);
    end(&pair);
    begin(&pair); /* nor does a byte keep who has not said who it is */
    ck_assert_int_eq(ask_primary(&pair), LINK_SEND);
    pair.now_us += pair.a.self.timeout_us - 1;
    link_primary_heard(&pair.up, pair.now_us);
    ck_assert_int_eq(ask_primary(&pair), LINK_WAIT);
    pair.now_us += 1;
    ck_assert_int_eq(ask_primary(&pair), LINK_CLOSE);
    ck_assert_int_eq(pair.up.end.reason, LINK_TIMEOUT);
    end(&pair);
    begin(&pair);
    settle(&pair);
    struct link_node node = peer_node(&pair.b);
    node.is_paused = true;
    pair.now_us += pair.a.self.timeout_us;
    link_replica_next(&pair.down, &node, pair.now_us, pair.bytes, &pair.order);
    ck_assert_int_eq(pair.order.what, LINK_SEND);
    ck_assert_int_eq(ask_replica(&pair), LINK_WAIT);
    end(&pair);
}
END_TEST

/* The primary says that there is more, and it does not come. */
START_TEST(test_stalled)
{
    struct pair pair;
    struct message_news news = {.last = seq_make(3, 11)};
    size_t len;

    begin(&pair);
    settle(&pair);
    len = message_put_news(pair.bytes + STREAM_HEAD_BYTES, &news);
    len = stream_seal(pair.bytes, STREAM_HEARTBEAT, (uint32_t)len, 3,
        pair.down.call.session);
    to_replica(&pair, pair.bytes, len);
    ck_assert_int_eq(pair.step, LINK_TAKEN);
    pair.now_us += LINK_STALL_US - 1;
    ck_assert_int_eq(ask_replica(&pair), LINK_SEND);
    ck_assert_int_eq(ask_replica(&pair), LINK_WAIT);
    ck_assert_uint_eq(pair.order.until_us, pair.now_us + 1);
    pair.now_us += 1;
    replica_says(&pair, STREAM_ERROR);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_STALLED);
    ck_assert_int_eq(pair.up.end.reason, LINK_TOLD);
    ck_assert_uint_eq(pair.up.end.code, MESSAGE_LATE);
    end(&pair);
}
END_TEST

START_TEST(test_terms_end)
{
    struct pair pair;

    begin(&pair);
    settle(&pair);
    pair.b.promised = 4; /* to somebody else */
    replica_says(&pair, STREAM_ERROR);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_TERM_OVER);
    ck_assert_uint_eq(pair.down.call.end.term, 4);
    ck_assert_int_eq(pair.up.end.reason, LINK_TOLD);
    ck_assert_uint_eq(pair.up.end.code, MESSAGE_BAD_TERM);
    end(&pair);

    begin(&pair);
    settle(&pair);
    peer_begin(&pair.a, 0xddd);
    primary_says(&pair, STREAM_ERROR);
    ck_assert_int_eq(pair.up.end.reason, LINK_TERM_OVER);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_TOLD);
    end(&pair);

    begin(&pair);
    say_welcome(&pair);
    pair.a.n_gone = 5; /* the beginning of its log went before it was sent */
    primary_says(&pair, STREAM_ERROR);
    ck_assert_int_eq(pair.up.end.reason, LINK_BEHIND);
    end(&pair);
}
END_TEST

START_TEST(test_refused_by_node)
{
    const struct message_refused refused = {
        .promised = 9, .primary = text_of("c"), .address = text_of("c:1")};
    struct pair pair;
    size_t len;

    begin(&pair);
    settle(&pair);
    len = message_put_refused(pair.bytes + STREAM_HEAD_BYTES, &refused);
    len = stream_seal(
        pair.bytes, STREAM_REFUSED, (uint32_t)len, 9, pair.down.call.session);
    to_replica(&pair, pair.bytes, len);
    ck_assert_int_eq(pair.step, LINK_ENDING);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_REFUSED);
    ck_assert_uint_eq(pair.down.call.end.term, 9);
    ck_assert_mem_eq(
        pair.down.call.end.text, "c", pair.down.call.end.text_len);
    ck_assert_mem_eq(pair.down.call.end.address, "c:1", 3);
    ck_assert_uint_eq(pair.down.call.end.address_len, 3);
    end(&pair);
}
END_TEST

/* Takes both ends so far: 0, nothing was said; 1, the challenge; 2, the hello;
 * 3, the welcome, a snapshot comes; 4, the log does. */
static void
go_to(struct pair *pair, unsigned stage)
{
    begin(pair);
    if (stage == 3) {
        go_astray(&pair->b);
    }
    if (stage == 1) {
        primary_says(pair, STREAM_CHALLENGE);
    } else if (stage == 2) {
        say_hello(pair);
    } else if (stage >= 3) {
        say_welcome(pair);
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
            struct pair pair;
            uint8_t frame[4096];
            bool is_over;

            go_to(&pair, stage);
            memcpy(frame, bytes, len);
            (void)stream_seal(frame, (enum stream_type)frame[5],
                (uint32_t)len - STREAM_HEAD_BYTES, 3,
                is_up ? pair.up.session : pair.down.call.session);
            if (is_up) {
                to_primary(&pair, frame, len);
                is_over = pair.up.state >= LINK_PRIMARY_ENDING;
            } else if (link_replica_may_take(&pair.down)) {
                to_replica(&pair, frame, len);
                is_over = pair.down.call.state >= LINK_CALLER_ENDING;
            } else {
                end(&pair);
                continue;
            }
            ck_assert_int_eq(is_over, pair.step == LINK_ENDING);
            n_ended += is_over;
            n_taken += !is_over;
            if (is_over) {
                while ((is_up ? ask_primary(&pair) : ask_replica(&pair)) ==
                    LINK_SEND) {
                    ck_assert_uint_eq(pair.bytes[5], STREAM_ERROR);
                }
                ck_assert_int_eq(pair.order.what, LINK_CLOSE);
            }
            end(&pair);
        }
    }
    ck_assert_uint_gt(n_ended, 100);
    ck_assert_uint_gt(n_taken, 5);
}
END_TEST

START_TEST(test_no_frame)
{
    const struct stream_fault fault = {.what = "the checksum", .offset = 24};
    struct pair pair;

    begin(&pair);
    settle(&pair);
    link_replica_wrong(&pair.down, &fault);
    ck_assert_str_eq(pair.down.call.end.fault.what, "the checksum");
    replica_says(&pair, STREAM_ERROR);
    ck_assert_uint_eq(pair.up.end.code, MESSAGE_BAD_FRAME);
    end(&pair);
    begin(&pair);
    settle(&pair);
    link_primary_wrong(&pair.up, &fault);
    primary_says(&pair, STREAM_ERROR);
    ck_assert_int_eq(pair.down.call.end.reason, LINK_TOLD);
    end(&pair);
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
        struct pair pair;
        size_t len;

        begin(&pair);
        pair.b.self.hello_flags = forwards == 1 ? HELLO_FORWARDS : 0;
        ck_assert(!link_replica_forwards(&pair.down));
        settle(&pair);
        ck_assert_uint_eq(link_replica_forwards(&pair.down), forwards);
        len = message_put_request(frame + STREAM_HEAD_BYTES, 1, false);
        frame[STREAM_HEAD_BYTES + len++] = 'x';
        len = forwards == 1
            ? link_replica_request(&pair.down, frame, (uint32_t)len)
            : stream_seal(frame, STREAM_REQUEST, (uint32_t)len, pair.down.term,
                  pair.down.call.session);
        to_primary(&pair, frame, len);
        ck_assert_int_eq(pair.step, forwards == 1 ? LINK_YOURS : LINK_ENDING);
        if (forwards == 0) {
            ck_assert_int_eq(pair.up.end.reason, LINK_BAD_ORDER);
            end(&pair);
            continue;
        }
        len = message_put_reply(frame + STREAM_HEAD_BYTES, &reply);
        len = link_primary_reply(&pair.up, frame, (uint32_t)len);
        to_replica(&pair, frame, len);
        ck_assert_int_eq(pair.step, LINK_YOURS);
        ck_assert_int_eq(ask_replica(&pair), LINK_WAIT);
        end(&pair);
    }
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_stream, test_beats, test_refused,
        test_other_hello, test_secret, test_cut, test_snapshot,
        test_other_welcome, test_wrong_batches, test_switch, test_wrong_acks,
        test_silence, test_stalled, test_terms_end, test_refused_by_node,
        test_all_frames, test_no_frame, test_forward};

    return run_tests("link", tests, COUNT_OF(tests));
}
