/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/link: a candidate's end and that of who is asked: questions and answers,
 * and each that is wrong; a fetch, up to its end, and each reason for which
 * there is none. And every type of frame in every state. */
#include "repl/message_files.h"
#include "unit/duo_help.h"

enum { TERM = 7, TERM_MOST = 20 };

/* b is the candidate, a who is asked. */

static enum link_step
take_answer(struct duo *duo, const struct stream_frame *frame)
{
    return link_asker_take(&duo->asks, frame);
}

static void
next_question(struct duo *duo)
{
    struct link_node node = peer_node(&duo->b);

    link_asker_next(&duo->asks, &node, duo->now_us, duo->bytes, &duo->order);
}

static enum link_step
take_log(struct duo *duo, const struct stream_frame *frame)
{
    struct link_node node = peer_node(&duo->b);

    return link_replica_take(&duo->down, &node, frame, duo->now_us);
}

static void
next_fetch(struct duo *duo)
{
    struct link_node node = peer_node(&duo->b);

    link_replica_next(&duo->down, &node, duo->now_us, duo->bytes, &duo->order);
}

static const struct duo_caller asker = {
    .take_fn = take_answer, .next_fn = next_question};
static const struct duo_caller fetcher = {
    .take_fn = take_log, .next_fn = next_fetch};

static void
meet(struct duo *duo, bool is_fetch)
{
    struct message_text name = text_of("a");

    link_asker_init(
        &duo->asks, &duo->b.self, &name, duo_nonce[1], duo->now_us);
    link_replica_init(&duo->down, &duo->b.self, duo_nonce[1], duo->now_us);
    if (is_fetch) {
        link_replica_fetch(&duo->down, TERM);
    }
    duo_meet(duo, is_fetch ? &fetcher : &asker,
        is_fetch ? &duo->down.call : &duo->asks.call);
}

static void
look(struct duo *duo)
{
    duo->view.history = &duo->a.history;
    duo->view.directory = duo->a.directory;
    duo->view.term = duo->a.promised;
    duo->view.begin = peer_seq(&duo->a, duo->a.n_gone);
    duo->view.written = peer_last(&duo->a);
    duo->view.committed = duo->a.committed;
}

/* a has ten batches of term 3, b four; b has promised TERM, a too. */
static void
begin(struct duo *duo, bool is_fetch)
{
    duo_begin(duo);
    for (unsigned i = 0; i < 4; i++) {
        peer_write(&duo->b, duo->a.at[i].seq, duo->a.at[i].content);
    }
    duo->a.promised = duo->b.promised = TERM;
    duo->view = (struct link_view){.is_asked = true, .is_replica = true};
    look(duo);
    meet(duo, is_fetch);
}

static void
say_welcome(struct duo *duo)
{
    say_hello(duo);
    ck_assert_int_eq(duo->step, LINK_TAKEN);
    a_says(duo, STREAM_WELCOME);
}

/* Asks, and it has come. */
static void
say_question(struct duo *duo, uint64_t term, bool is_probe)
{
    link_asker_ask(&duo->asks, term, is_probe, duo->now_us);
    b_says(duo, STREAM_PROMISE);
    ck_assert_int_eq(duo->step, LINK_YOURS);
}

START_TEST(test_questions)
{
    struct duo duo;

    begin(&duo, false);
    link_asker_ask(&duo.asks, TERM, false, duo.now_us);
    say_welcome(&duo); /* nothing is asked before that */
    ck_assert_int_eq(duo.step, LINK_TAKEN);
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    b_says(&duo, STREAM_PROMISE);
    ck_assert_int_eq(duo.step, LINK_YOURS);
    ck_assert_uint_eq(duo.up.question.term, TERM);
    ck_assert_uint_eq(duo.up.question.last, peer_last(&duo.b));
    ck_assert_uint_eq(duo.up.question.flags, 0);
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    link_primary_answer(&duo.up, LINK_ANSWER_PROMISED, TERM);
    a_says(&duo, STREAM_PROMISED);
    ck_assert_int_eq(duo.step, LINK_YOURS);
    ck_assert_int_eq(duo.asks.reply, LINK_REPLY_PROMISED);
    ck_assert_uint_eq(duo.asks.reply_term, TERM);
    ck_assert_uint_eq(duo.asks.reply_last, peer_last(&duo.a));
    ck_assert(!duo.asks.is_doubtful);
    /* a later question takes the place of one that was not sent */
    link_asker_ask(&duo.asks, TERM, false, duo.now_us);
    say_question(&duo, 0, true);
    ck_assert_uint_eq(duo.up.question.flags, PROMISE_ASKS_ONLY);
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    /* so does an answer */
    link_primary_answer(&duo.up, LINK_ANSWER_HEARS_NONE, 0);
    link_primary_answer(&duo.up, LINK_ANSWER_HEARS_ONE, 0);
    duo.view.is_doubtful = true;
    a_says(&duo, STREAM_PROMISED);
    ck_assert_int_eq(duo.asks.reply, LINK_REPLY_HEARS_ONE);
    ck_assert(duo.asks.is_doubtful);
    ck_assert_int_eq(ask_a(&duo), LINK_WAIT);
    link_primary_answer(&duo.up, LINK_ANSWER_HEARS_NONE, 0);
    a_says(&duo, STREAM_PROMISED);
    ck_assert_int_eq(duo.asks.reply, LINK_REPLY_HEARS_NONE);
    say_question(&duo, TERM, false);
    link_primary_answer(&duo.up, LINK_ANSWER_REFUSED, 0);
    a_says(&duo, STREAM_REFUSED);
    ck_assert_int_eq(duo.step, LINK_YOURS);
    ck_assert_int_eq(duo.asks.reply, LINK_REPLY_REFUSED);
    ck_assert_uint_eq(duo.asks.reply_term, TERM);
    /* what is promised above that is no promise of it any more */
    say_question(&duo, TERM, false);
    link_primary_answer(&duo.up, LINK_ANSWER_PROMISED, TERM);
    duo.a.promised = TERM + 1;
    look(&duo);
    a_says(&duo, STREAM_REFUSED);
    ck_assert_uint_eq(duo.asks.reply_term, TERM + 1);
    /* nor is asked for what the candidate has given up */
    link_asker_ask(&duo.asks, TERM, false, duo.now_us);
    duo.b.promised = TERM + 2;
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    duo_end(&duo);
}
END_TEST

/* Who leads is asked, and who has no directory. */
START_TEST(test_any_node)
{
    struct duo duo;

    begin(&duo, false);
    duo.view.is_replica = false;
    duo.a.promised = duo.view.term = 3;
    say_welcome(&duo);
    say_question(&duo, TERM, false);
    duo.a.promised = TERM;
    duo.view.is_replica = true;
    look(&duo);
    link_primary_answer(&duo.up, LINK_ANSWER_PROMISED, TERM);
    a_says(&duo, STREAM_PROMISED);
    ck_assert_int_eq(duo.step, LINK_YOURS);
    duo_end(&duo);

    begin(&duo, false);
    peer_cut(&duo.a, 0);
    duo.a.directory = (struct link_directory){0};
    duo.a.promised = 0;
    look(&duo);
    say_welcome(&duo);
    ck_assert_int_eq(duo.step, LINK_TAKEN);
    say_question(&duo, TERM, false);
    duo.a.promised = TERM;
    look(&duo);
    duo.view.is_doubtful = true;
    link_primary_answer(&duo.up, LINK_ANSWER_PROMISED, TERM);
    a_says(&duo, STREAM_PROMISED);
    ck_assert_uint_eq(duo.asks.reply_last, 0);
    ck_assert(duo.asks.is_doubtful);
    duo_end(&duo);
}
END_TEST

/* Makes something of both nodes, or of who comes, not right. */
static void
go_wrong(struct duo *duo, unsigned what)
{
    switch (what) {
    case 1:
        duo->view.is_asked = false;
        break;
    case 2:
        duo->view.is_replica = false;
        duo->view.term = 3;
        break;
    case 3:
        duo->view.term = TERM + 1;
        break;
    case 4:
        duo->view.term = TERM - 1;
        break;
    case 5:
        duo->b.directory.epoch++;
        break;
    case 6:
        peer_cut(&duo->b, 0);
        duo->b.directory = (struct link_directory){0};
        break;
    case 7:
        duo->b.self.formats.entry--;
        break;
    case 8:
        duo->b.self.group = text_of("posts/1");
        break;
    case 9:
        duo->b.self.name = text_of("a");
        break;
    case 10:
        duo->other.n_bytes = duo->secret.n_bytes = PROOF_SECRET_MIN;
        duo->other.bytes[0] = 1;
        duo->b.self.secret = &duo->other;
        break;
    default:
        break;
    }
}

/* A hello that is refused, and why. */
START_TEST(test_refused)
{
    static const struct {
        enum link_reason asker, fetcher; /* NONE: it is served */
    } right[] = {{LINK_NONE, LINK_NONE}, {LINK_PURPOSE, LINK_PURPOSE},
        {LINK_NONE, LINK_PURPOSE}, {LINK_NONE, LINK_OLDER_TERM},
        {LINK_NONE, LINK_NEWER_TERM}, {LINK_DIRECTORY, LINK_DIRECTORY},
        {LINK_DIRECTORY, LINK_DIRECTORY}, {LINK_NONE, LINK_FORMAT},
        {LINK_GROUP, LINK_GROUP}, {LINK_NAME, LINK_NAME},
        {LINK_PROOF, LINK_PROOF}};
    size_t n = 2 * (COUNT_OF(right) - !proof_is_there());

    for (unsigned i = 0; i < n; i++) {
        bool is_fetch = i % 2 != 0;
        enum link_reason why =
            is_fetch ? right[i / 2].fetcher : right[i / 2].asker;
        struct duo duo;

        begin(&duo, is_fetch);
        go_wrong(&duo, i / 2);
        say_hello(&duo);
        ck_assert_msg(duo.up.end.reason == why, "%u: %s", i,
            link_reason_text(duo.up.end.reason));
        a_says(&duo, why == LINK_NONE ? STREAM_WELCOME : STREAM_ERROR);
        if (why != LINK_NONE) {
            ck_assert_int_eq(duo.step, LINK_ENDING);
            ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
            ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
        }
        duo_end(&duo);
    }
}
END_TEST

/* Nobody may follow a node that does not lead, who asks or not. */
START_TEST(test_no_primary)
{
    for (unsigned i = 0; i < 2; i++) {
        static const uint8_t nonce[STREAM_NONCE_BYTES] = {2};
        struct duo duo;

        begin(&duo, false);
        duo.view.is_asked = i == 0;
        duo.caller = &fetcher; /* a replica's end */
        duo.call = &duo.down.call;
        link_replica_init(&duo.down, &duo.b.self, nonce, duo.now_us);
        say_hello(&duo);
        ck_assert_int_eq(duo.up.end.reason, LINK_NO_PRIMARY);
        a_says(&duo, STREAM_ERROR);
        ck_assert_uint_eq(duo.down.call.end.code, MESSAGE_BUSY);
        duo_end(&duo);
    }
}
END_TEST

/* Who answers is not the node that is meant, or does not know the secret. */
START_TEST(test_other_node)
{
    struct duo duo;

    begin(&duo, false);
    duo.a.self.name = text_of("c");
    say_welcome(&duo);
    ck_assert_int_eq(duo.asks.call.end.reason, LINK_OTHER_NODE);
    b_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.up.end.reason, LINK_TOLD);
    duo_end(&duo);
    if (!proof_is_there()) {
        return;
    }
    begin(&duo, false);
    duo.secret.n_bytes = PROOF_SECRET_MIN;
    say_hello(&duo);
    duo.up.proof[3] ^= 4;
    a_says(&duo, STREAM_WELCOME);
    ck_assert_int_eq(duo.asks.call.end.reason, LINK_PROOF);
    duo_end(&duo);
}
END_TEST

static size_t
seal(struct duo *duo, enum stream_type type, size_t len, uint64_t term)
{
    return stream_seal(duo->bytes, type, (uint32_t)len, term, duo->up.session);
}

START_TEST(test_wrong_questions)
{
    static const struct {
        uint64_t term, frame_term;
        uint32_t flags;
        const char *name;
        enum link_step step;
    } questions[] = {{TERM, TERM, 0, "b", LINK_YOURS},
        {TERM + 1, TERM, 0, "b", LINK_ENDING},
        {TERM, TERM + 1, 0, "b", LINK_ENDING}, {TERM, 0, 0, "b", LINK_ENDING},
        {TERM + 1, TERM, PROMISE_ASKS_ONLY, "b", LINK_YOURS},
        {TERM, TERM, 0, "c", LINK_ENDING},
        {TERM_MOST, TERM_MOST, 0, "b", LINK_YOURS},
        {TERM_MOST + 1, TERM_MOST + 1, 0, "b", LINK_ENDING},
        {TERM_MOST + 1, TERM, PROMISE_ASKS_ONLY, "b", LINK_YOURS}};

    for (unsigned i = 0; i < COUNT_OF(questions); i++) {
        struct message_promise promise = {.term = questions[i].term,
            .last = 5,
            .flags = questions[i].flags,
            .name = text_of(questions[i].name)};
        struct duo duo;
        size_t len;

        begin(&duo, false);
        duo.view.term_most = TERM_MOST;
        say_welcome(&duo);
        len = message_put_promise(duo.bytes + STREAM_HEAD_BYTES, &promise);
        len = seal(&duo, STREAM_PROMISE, len, questions[i].frame_term);
        to_a(&duo, duo.bytes, len);
        ck_assert_msg(duo.step == questions[i].step, "%u", i);
        if (duo.step == LINK_ENDING) {
            ck_assert_int_eq(duo.up.end.reason, LINK_BAD_FRAME);
            a_says(&duo, STREAM_ERROR);
        }
        duo_end(&duo);
    }
}
END_TEST

/* Answers to what was asked, and to what was not. */
START_TEST(test_wrong_answers)
{
    static const struct {
        bool has_asked, has_probed, is_refused;
        uint32_t flags;
        uint64_t term, promised;
        enum link_reason reason;
    } answers[] = {{true, false, false, 0, TERM, 0, LINK_NONE},
        {true, false, false, 0, TERM - 1, 0, LINK_NONE}, /* an earlier one's */
        {true, false, false, 0, TERM + 1, 0, LINK_BAD_FRAME},
        {true, false, false, 0, 0, 0, LINK_BAD_FRAME},
        {false, true, false, 0, TERM, 0, LINK_BAD_FRAME},
        {false, false, false, 0, TERM, 0, LINK_BAD_ORDER},
        {true, false, false, PROMISED_HEARS_ONE, TERM, 0, LINK_BAD_ORDER},
        {true, true, false, PROMISED_HEARS_ONE, TERM, 0, LINK_NONE},
        {true, false, true, 0, TERM + 1, TERM + 1, LINK_NONE},
        {true, false, true, 0, TERM, TERM + 1, LINK_BAD_FRAME},
        {false, true, true, 0, TERM, TERM, LINK_BAD_ORDER},
        {false, false, true, 0, TERM, TERM, LINK_BAD_ORDER}};

    for (unsigned i = 0; i < COUNT_OF(answers); i++) {
        struct message_refused refused = {.promised = answers[i].promised};
        struct message_promised promised = {.flags = answers[i].flags};
        struct duo duo;
        uint8_t *body;
        size_t len;

        begin(&duo, false);
        say_welcome(&duo);
        if (answers[i].has_asked) {
            say_question(&duo, TERM, false);
        }
        if (answers[i].has_probed) {
            say_question(&duo, 0, true);
        }
        body = duo.bytes + STREAM_HEAD_BYTES;
        len = answers[i].is_refused ? message_put_refused(body, &refused)
                                    : message_put_promised(body, &promised);
        len = seal(&duo,
            answers[i].is_refused ? STREAM_REFUSED : STREAM_PROMISED, len,
            answers[i].term);
        to_b(&duo, duo.bytes, len);
        ck_assert_msg(duo.asks.call.end.reason == answers[i].reason, "%u", i);
        ck_assert_int_eq(duo.step,
            answers[i].reason == LINK_NONE ? LINK_YOURS : LINK_ENDING);
        duo_end(&duo);
    }
}
END_TEST

START_TEST(test_silence)
{
    struct duo duo;
    uint64_t timeout_us;

    begin(&duo, false); /* before they have met */
    timeout_us = duo.b.self.timeout_us;
    duo.now_us += timeout_us - 1;
    ck_assert_int_eq(ask_b(&duo), LINK_WAIT);
    ck_assert_uint_eq(duo.order.until_us, duo.now_us + 1);
    duo.now_us++;
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.asks.call.end.reason, LINK_TIMEOUT);
    duo_end(&duo);

    begin(&duo, false); /* no answer, though it asks again */
    say_welcome(&duo);
    say_question(&duo, TERM, false);
    duo.now_us += timeout_us - 1;
    say_question(&duo, TERM, false);
    duo.now_us++;
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.asks.call.end.reason, LINK_TIMEOUT);
    duo_end(&duo);

    begin(&duo, false); /* nothing is asked any more */
    say_welcome(&duo);
    say_question(&duo, TERM, false);
    duo.now_us += timeout_us - 1;
    link_primary_answer(&duo.up, LINK_ANSWER_PROMISED, TERM);
    a_says(&duo, STREAM_PROMISED);
    duo.now_us++;
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.asks.call.end.reason, LINK_IDLE);
    duo.now_us += timeout_us; /* nor does anything come */
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.up.end.reason, LINK_TIMEOUT);
    duo_end(&duo);
}
END_TEST

/* ---- a fetch ---- */

/* Sends up to n batches, which b takes. */
static void
say_batches(struct duo *duo, size_t n)
{
    struct message_batch batch;
    size_t len;

    ck_assert_int_eq(ask_a(duo), LINK_BATCHES);
    len = peer_put_batches(
        &duo->a, &duo->up, duo->order.seq, n, duo->now_us, duo->bytes);
    to_b(duo, duo->bytes, len);
    if (duo->step == LINK_YOURS) {
        while (message_next_batch(&duo->down.batches, &batch)) {
            peer_write(&duo->b, batch.seq, bytes_get_u64(batch.payload));
        }
    }
}

START_TEST(test_fetch)
{
    struct duo duo;

    begin(&duo, true);
    say_welcome(&duo);
    ck_assert_int_eq(duo.step, LINK_TAKEN);
    ck_assert_int_eq(duo.up.state, LINK_PRIMARY_LENDING);
    ck_assert_int_eq(duo.down.call.state, LINK_REPLICA_FETCHING);
    b_says(&duo, STREAM_ACK);
    say_batches(&duo, 4);
    b_says(&duo, STREAM_ACK);
    ck_assert_uint_eq(duo.up.ack.written, seq_make(3, 8));
    say_batches(&duo, 4);
    a_says(&duo, STREAM_END);
    ck_assert_int_eq(duo.step, LINK_ENDING);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_FETCHED);
    ck_assert_uint_eq(peer_last(&duo.b), peer_last(&duo.a));
    ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
    ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
    ck_assert_int_eq(duo.up.end.reason, LINK_FETCHED);
    /* where nothing is missing */
    meet(&duo, true);
    say_welcome(&duo);
    a_says(&duo, STREAM_END);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_FETCHED);
    duo_end(&duo);
}
END_TEST

/* The logs part, or what is missing has gone: nothing is fetched, or cut. */
START_TEST(test_apart)
{
    for (unsigned i = 0; i < 3; i++) {
        struct duo duo;

        begin(&duo, true);
        if (i == 0) { /* each has what the other one has not */
            peer_cut(&duo.a, 2);
            peer_write(&duo.a, seq_make(4, 1), 0xaaa);
        } else if (i == 1) {
            peer_cut(&duo.b, 0);
            peer_write(&duo.b, seq_first(2), 0xbbb);
        } else {
            duo.a.n_gone = 5;
        }
        look(&duo);
        say_welcome(&duo);
        ck_assert_int_eq(duo.down.call.end.reason, LINK_APART);
        ck_assert_int_eq(duo.up.end.reason, LINK_APART);
        ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
        ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
        duo_end(&duo);
    }
}
END_TEST

/* The candidate has all, and more. */
START_TEST(test_more)
{
    for (size_t n = 0; n < 4; n++) {
        struct duo duo;

        begin(&duo, true);
        peer_cut(&duo.a, n);
        look(&duo);
        say_welcome(&duo);
        ck_assert_int_eq(duo.step, LINK_ENDING);
        ck_assert_int_eq(
            duo.down.call.end.reason, n == 0 ? LINK_APART : LINK_FETCHED);
        ck_assert_int_eq(duo.up.end.reason, duo.down.call.end.reason);
        ck_assert_int_eq(ask_b(&duo), LINK_CLOSE);
        ck_assert_int_eq(ask_a(&duo), LINK_CLOSE);
        ck_assert_uint_eq(peer_last(&duo.b), seq_make(3, 4));
        duo_end(&duo);
    }
}
END_TEST

/* Either promises more meanwhile. */
START_TEST(test_term_over)
{
    struct duo duo;

    begin(&duo, true);
    say_welcome(&duo);
    duo.view.term = TERM + 1;
    a_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.up.end.reason, LINK_TERM_OVER);
    duo_end(&duo);
    begin(&duo, true);
    say_welcome(&duo);
    duo.b.promised = TERM + 1;
    b_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_TERM_OVER);
    duo_end(&duo);
    begin(&duo, true); /* it leads */
    say_welcome(&duo);
    duo.view.is_replica = false;
    a_says(&duo, STREAM_ERROR);
    ck_assert_int_eq(duo.up.end.reason, LINK_TERM_OVER);
    duo_end(&duo);
}
END_TEST

START_TEST(test_wrong_ends)
{
    static const struct message_end ends[] = {
        {MESSAGE_END_FETCH, (UINT64_C(3) << 40) | 5}, {MESSAGE_END_FETCH, 0},
        {MESSAGE_END_SNAPSHOT, 0}, {MESSAGE_END_FILE, 7}};

    for (unsigned i = 0; i < COUNT_OF(ends); i++) {
        struct duo duo;
        size_t len;

        begin(&duo, true);
        say_welcome(&duo);
        len = message_put_end(duo.bytes + STREAM_HEAD_BYTES, &ends[i]);
        len = seal(&duo, STREAM_END, len, TERM);
        to_b(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.step, LINK_ENDING);
        ck_assert_int_eq(duo.down.call.end.reason, LINK_BAD_FRAME);
        duo_end(&duo);
    }
}
END_TEST

/* A welcome that no such node would say. */
START_TEST(test_wrong_welcome)
{
    for (unsigned i = 0; i < 4; i++) {
        struct message_welcome welcome = {
            .protocol = 1, .verdict = MESSAGE_CONTINUE, .name = text_of("a")};
        struct duo duo;
        uint64_t term = TERM;
        size_t len;

        begin(&duo, true);
        say_hello(&duo);
        welcome.seq = seq_make(3, 4);
        welcome.last = seq_make(3, 10);
        welcome.history = duo.a.history;
        if (i == 0) {
            term = TERM + 1;
        } else if (i == 1) {
            term = 3;
        } else if (i == 2) { /* that the term has begun */
            welcome.last = seq_first(TERM);
            ck_assert(
                history_begin(&welcome.history, TERM, 0x77, seq_make(3, 10)));
        } else {
            welcome.seq = seq_make(3, 5);
        }
        len = message_put_welcome(duo.bytes + STREAM_HEAD_BYTES, &welcome);
        len = seal(&duo, STREAM_WELCOME, len, term);
        to_b(&duo, duo.bytes, len);
        ck_assert_int_eq(duo.step, LINK_ENDING);
        ck_assert_msg(duo.down.call.end.reason == LINK_BAD_FRAME, "%u", i);
        duo_end(&duo);
    }
}
END_TEST

/* A replica takes no welcome without a history. */
START_TEST(test_no_history)
{
    static const uint8_t nonce[STREAM_NONCE_BYTES] = {2};
    struct message_welcome welcome = {
        .protocol = 1, .verdict = MESSAGE_SNAPSHOT, .name = text_of("a")};
    struct duo duo;
    size_t len;

    begin(&duo, true);
    duo.view.is_replica = false;
    duo.view.term = 3;
    duo.b.promised = 3;
    link_replica_init(&duo.down, &duo.b.self, nonce, duo.now_us);
    say_hello(&duo);
    ck_assert_int_eq(duo.up.end.reason, LINK_NONE);
    len = message_put_welcome(duo.bytes + STREAM_HEAD_BYTES, &welcome);
    len = seal(&duo, STREAM_WELCOME, len, 3);
    to_b(&duo, duo.bytes, len);
    ck_assert_int_eq(duo.down.call.end.reason, LINK_BAD_FRAME);
    duo_end(&duo);
}
END_TEST

/* ---- every frame ---- */

static void
go_to(struct duo *duo, unsigned stage)
{
    begin(duo, stage >= 5);
    if (stage % 5 == 1) {
        a_says(duo, STREAM_CHALLENGE);
    } else if (stage % 5 == 2) {
        say_hello(duo);
    } else if (stage % 5 >= 3) {
        say_welcome(duo);
    }
    if (stage == 4) {
        say_question(duo, TERM, false);
    } else if (stage == 9) {
        say_batches(duo, 2);
    }
}

static bool
may_take(const struct duo *duo)
{
    return (duo->caller == &fetcher) ? link_replica_may_take(&duo->down)
                                     : link_asker_may_take(&duo->asks);
}

static bool
is_over(const struct duo *duo, bool is_up)
{
    return is_up ? duo->up.state >= LINK_PRIMARY_ENDING
        : (duo->caller == &fetcher)
        ? duo->down.call.state >= LINK_CALLER_ENDING
        : duo->asks.call.state >= LINK_CALLER_ENDING;
}

START_TEST(test_all_frames)
{
    static struct tape tape;
    unsigned n_ended = 0, n_taken = 0;

    tape_make(&tape);
    for (unsigned stage = 0; stage < 10; stage++) {
        for (unsigned i = 0; i < 2 * tape.n; i++) {
            size_t len = tape.at[i / 2 + 1] - tape.at[i / 2];
            bool is_up = i % 2 == 0;
            struct duo duo;
            uint8_t frame[4096];

            go_to(&duo, stage);
            memcpy(frame, tape.bytes + tape.at[i / 2], len);
            (void)stream_seal(frame, (enum stream_type)frame[5],
                (uint32_t)len - STREAM_HEAD_BYTES, TERM,
                is_up ? duo.at_a.session : duo.at_b.session);
            if (is_up) {
                to_a(&duo, frame, len);
            } else if (may_take(&duo)) {
                to_b(&duo, frame, len);
            } else {
                duo_end(&duo);
                continue;
            }
            ck_assert_int_eq(is_over(&duo, is_up), duo.step == LINK_ENDING);
            n_ended += duo.step == LINK_ENDING;
            n_taken += duo.step != LINK_ENDING;
            if (duo.step == LINK_ENDING) {
                while ((is_up ? ask_a(&duo) : ask_b(&duo)) == LINK_SEND) {
                    ck_assert_uint_eq(duo.bytes[5], STREAM_ERROR);
                }
                ck_assert_int_eq(duo.order.what, LINK_CLOSE);
            }
            duo_end(&duo);
        }
    }
    ck_assert_uint_gt(n_ended, 200);
    ck_assert_uint_gt(n_taken, 5);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_questions, test_any_node, test_refused,
        test_no_primary, test_other_node, test_wrong_questions,
        test_wrong_answers, test_silence, test_fetch, test_apart, test_more,
        test_term_over, test_wrong_ends, test_wrong_welcome, test_no_history,
        test_all_frames};

    return run_tests("link_ask", tests, COUNT_OF(tests));
}
