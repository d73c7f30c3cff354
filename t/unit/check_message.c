/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/message and its kin: the bodies of a recorded stream read and written
 * again; each body cut off and made longer at every place, refused with the
 * place; each rule of a body broken; and random bytes in bodies: refused, or
 * read and written as they were. */
#include "repl/message_feed.h"
#include "repl/message_forward.h"

#include "base/bytes.h"
#include "base/err.h"
#include "unit/stream_help.h"

enum { BODY_BYTES = 4096, RANDOM_ROUNDS = 60000 };

static size_t
again_batches(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    struct message_news news;
    struct message_batches batches;
    struct message_batch batch;
    size_t len;
    uint32_t n = 0;

    if (message_get_batches(frame, &news, &batches, fault) != 0) {
        return 0;
    }
    len = message_put_news(out, &news);
    while (message_next_batch(&batches, &batch)) {
        message_put_batch(out + len, batch.seq, batch.len);
        memcpy(out + len + MESSAGE_BATCH_BYTES, batch.payload, batch.len);
        len += MESSAGE_BATCH_BYTES + batch.len;
        n++;
    }
    ck_assert_uint_eq(n, batches.n);
    return len;
}

static size_t
again_have(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    struct message_have have;
    struct message_have_file file;
    size_t len;

    if (message_get_have(frame, &have, fault) != 0) {
        return 0;
    }
    len = message_put_have(out, have.n);
    while (message_next_have(&have, &file)) {
        len += message_put_have_file(out + len, &file);
    }
    return len;
}

static size_t
again_data(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    struct message_data data;

    if (message_get_data(frame, &data, fault) != 0) {
        return 0;
    }
    message_put_data(out, data.offset);
    memcpy(out + MESSAGE_DATA_BYTES, data.bytes, data.len);
    return MESSAGE_DATA_BYTES + data.len;
}

static size_t
again_challenge(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    uint8_t nonce[STREAM_NONCE_BYTES];

    if (message_get_challenge(frame, nonce, fault) != 0) {
        return 0;
    }
    message_put_challenge(out, nonce);
    return sizeof nonce;
}

static size_t
again_switch(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    uint64_t seq;

    return message_get_switch(frame, &seq, fault) != 0
        ? 0
        : message_put_switch(out, seq);
}

static size_t
again_request(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    struct message_request request;
    size_t len;

    if (message_get_request(frame, &request, fault) != 0) {
        return 0;
    }
    len = message_put_request(out, request.id, request.is_binary);
    memcpy(out + len, request.bytes, request.len);
    return len + request.len;
}

static size_t
again_reply(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    struct message_reply reply;
    size_t len;

    if (message_get_reply(frame, &reply, fault) != 0) {
        return 0;
    }
    len = message_put_reply(out, &reply);
    if (reply.len > 0) {
        memcpy(out + len, reply.bytes, reply.len);
    }
    return len + reply.len;
}

#define AGAIN(type, name, get, put)                                           \
    case STREAM_##type: {                                                     \
        struct message_##name read;                                           \
        return get(frame, &read, fault) != 0 ? 0 : put(out, &read);           \
    }

/* Reads a body and writes it again; 0: it is refused. */
static size_t
again(
    const struct stream_frame *frame, uint8_t *out, struct stream_fault *fault)
{
    switch (frame->type) {
        AGAIN(HELLO, hello, message_get_hello, message_put_hello)
        AGAIN(WELCOME, welcome, message_get_welcome, message_put_welcome)
        AGAIN(ACK, ack, message_get_ack, message_put_ack)
        AGAIN(PROMISE, promise, message_get_promise, message_put_promise)
        AGAIN(PROMISED, promised, message_get_promised, message_put_promised)
        AGAIN(REFUSED, refused, message_get_refused, message_put_refused)
        AGAIN(FETCH, fetch, message_get_fetch, message_put_fetch)
        AGAIN(SNAPSHOT, snapshot, message_get_snapshot, message_put_snapshot)
        AGAIN(FILE, file, message_get_file, message_put_file)
        AGAIN(END, end, message_get_end, message_put_end)
        AGAIN(WANT, want, message_get_want, message_put_want)
        AGAIN(ERROR, error, message_get_error, message_put_error)
        AGAIN(SOURCE, source, message_get_source, message_put_source)
    case STREAM_HEARTBEAT: {
        struct message_news news;

        return message_get_heartbeat(frame, &news, fault) != 0
            ? 0
            : message_put_news(out, &news);
    }
    case STREAM_CHALLENGE:
        return again_challenge(frame, out, fault);
    case STREAM_BATCHES:
        return again_batches(frame, out, fault);
    case STREAM_HAVE:
        return again_have(frame, out, fault);
    case STREAM_DATA:
        return again_data(frame, out, fault);
    case STREAM_SWITCH:
        return again_switch(frame, out, fault);
    case STREAM_REQUEST:
        return again_request(frame, out, fault);
    case STREAM_REPLY:
        return again_reply(frame, out, fault);
    }
    ck_abort_msg("type %u", (unsigned)frame->type);
}

/* The same of any bytes, of which a sanitizer sees the end. */
static size_t
again_of(enum stream_type type, const uint8_t *body, size_t len, uint8_t *out,
    struct stream_fault *fault)
{
    char *copy = copy_of((const char *)body, len);
    struct stream_frame frame = {.type = type,
        .term = TAPE_TERM,
        .body = (const uint8_t *)copy,
        .len = (uint32_t)len};
    size_t n;

    *fault = (struct stream_fault){0};
    n = again(&frame, out, fault);
    free(copy);
    ck_assert((n == 0) == (fault->what != NULL));
    if (n == 0) {
        ck_assert_uint_ge(fault->offset, STREAM_HEAD_BYTES);
        ck_assert_uint_le(fault->offset, STREAM_HEAD_BYTES + len);
        ck_assert_uint_eq(fault->type, type);
    }
    return n;
}

/* May more bytes of that kind stand behind a body of the type, or fewer? */
static bool
is_open(enum stream_type type)
{
    return type == STREAM_DATA;
}

static void
go_through(const struct tape *tape)
{
    static uint8_t out[BODY_BYTES], longer[BODY_BYTES];
    struct stream_fault fault;

    for (unsigned i = 0; i < tape->n; i++) {
        enum stream_type type = (enum stream_type)tape->bytes[tape->at[i] + 5];
        const uint8_t *body = tape->bytes + tape->at[i] + STREAM_HEAD_BYTES;
        size_t len = tape->at[i + 1] - tape->at[i] - STREAM_HEAD_BYTES;

        ck_assert_uint_eq(again_of(type, body, len, out, &fault), len);
        ck_assert_mem_eq(out, body, len);
        for (size_t cut = 0; cut < len && !is_open(type); cut++) {
            size_t n = again_of(type, body, cut, out, &fault);

            /* batches may be fewer */
            ck_assert_msg(n == 0 || (type == STREAM_BATCHES && n == cut),
                "%u cut at %zu", (unsigned)type, cut);
        }
        memcpy(longer, body, len);
        longer[len] = 0;
        if (!is_open(type)) {
            ck_assert_uint_eq(again_of(type, longer, len + 1, out, &fault), 0);
        }
    }
}

START_TEST(test_tape)
{
    static struct tape tape;

    tape_make(&tape);
    go_through(&tape);
    tape_make_feed(&tape);
    go_through(&tape);
}
END_TEST

/* A byte of a body of the tapes (the first of its type) that breaks a rule: the
 * place that is told. */
static const struct {
    enum stream_type type;
    size_t at;
    uint8_t value;
    size_t offset;
    const char *what;
} rules[] = {
    {STREAM_HELLO, 48, 0, 48, "purpose"},
    {STREAM_HELLO, 48, 5, 48, "purpose"},
    {STREAM_HELLO, 49, 0, 49, "least protocol"},
    {STREAM_HELLO, 49, 4, 50, "most protocol"},
    {STREAM_HELLO, 51, 3, 51, "level"},
    {STREAM_HELLO, 52, 8, 52, "flags"},
    {STREAM_HELLO, 53, 1, 52, "flags"},
    {STREAM_HELLO, 59, 1, 59, "0"},
    {STREAM_HELLO, 60, 0, 60, "shards"},
    {STREAM_HELLO, 83, 1, 80, "promised"},
    {STREAM_HELLO, 87, 1, 80, "promised"},
    {STREAM_HELLO, 103, 1, 96, "last synced"},
    {STREAM_HELLO, 104, 0, 105, "group"},
    {STREAM_HELLO, 105, ' ', 105, "group"},
    {STREAM_WELCOME, 32, 0, 32, "protocol"},
    {STREAM_WELCOME, 33, 0, 33, "verdict"},
    {STREAM_WELCOME, 33, 4, 33, "verdict"},
    {STREAM_WELCOME, 34, 1, 34, "0"},
    {STREAM_WELCOME, 39, 128, 36, "0"},
    {STREAM_WELCOME, 47, 1, 48, "last"},
    {STREAM_WELCOME, 63, 1, 56, "committed"},
    {STREAM_WELCOME, 67, '\n', 67, "address for clients"},
    {STREAM_WELCOME, 55, 1, 126, "a history that ends with the last batch"},
    {STREAM_BATCHES, 7, 1, 8, "last"},
    {STREAM_BATCHES, 28, 2, 28, "flags"},
    {STREAM_BATCHES, 31, 1, 28, "flags"},
    {STREAM_BATCHES, 39, 1, 32, "a number up to that of the last batch"},
    {STREAM_BATCHES, 40, 0, 40, "length of a batch"},
    {STREAM_BATCHES, 40, 2, 44, "a batch of its length"},
    {STREAM_BATCHES, 43, 1, 40, "length of a batch"},
    {STREAM_HEARTBEAT, 28, 3, 28, "flags"},
    {STREAM_ACK, 15, 1, 8, "synced"},
    {STREAM_ACK, 23, 1, 16, "applied"},
    {STREAM_ACK, 32, 8, 32, "flags"},
    {STREAM_PROMISE, 0, 0, 0, "term"},
    {STREAM_PROMISE, 3, 1, 0, "term"},
    {STREAM_PROMISE, 16, 2, 16, "flags"},
    {STREAM_PROMISE, 20, 0, 21, "name"},
    {STREAM_PROMISED, 8, 6, 8, "flags"},
    {STREAM_PROMISED, 8, 8, 8, "flags"},
    {STREAM_REFUSED, 7, 1, 0, "promised"},
    {STREAM_REFUSED, 9, '\n', 9, "name"},
    {STREAM_REFUSED, 11, '\n', 11, "address for clients"},
    {STREAM_FETCH, 7, 9, 52, "a history that ends with that batch"},
    {STREAM_SNAPSHOT, 16, 0, 16, "files"},
    {STREAM_SNAPSHOT, 18, 16, 16, "files"},
    {STREAM_SNAPSHOT, 20, 0, 20, "length of the manifest"},
    {STREAM_SNAPSHOT, 23, 4, 20, "length of the manifest"},
    {STREAM_SNAPSHOT, 25, '?', 25, "source"},
    {STREAM_SNAPSHOT, 15, 128, 8, "bytes"},
    {STREAM_HAVE, 0, 1, 29, "the end"},
    {STREAM_HAVE, 3, 1, 0, "files"},
    {STREAM_HAVE, 4, 0, 4, "kind of a file"},
    {STREAM_HAVE, 29, MESSAGE_CONTENTS, 29, "kind of a file"},
    {STREAM_HAVE, 20, 128, 13, "bytes of a file"},
    {STREAM_FILE, 0, 0, 0, "kind of a file"},
    {STREAM_FILE, 0, 5, 0, "kind of a file"},
    {STREAM_FILE, 4, 0, 4, "number of a file"},
    {STREAM_FILE, 4, 2, 4, "number of a file"}, /* of the contents */
    {STREAM_FILE, 19, 128, 12, "bytes of a file"},
    {STREAM_DATA, 7, 128, 0, "offset"},
    {STREAM_END, 0, 0, 0, "what ends"},
    {STREAM_END, 0, 4, 0, "what ends"},
    {STREAM_END, 0, MESSAGE_END_SNAPSHOT, 4, "0"},
    {STREAM_SWITCH, 5, 6, 0, "a number of the term"},
    {STREAM_WANT, 0, 0, 1, "rule"},
    {STREAM_WANT, 1, ' ', 1, "rule"},
    {STREAM_ERROR, 0, 0, 0, "code"},
    {STREAM_ERROR, 5, 10, 5, "text"},
    {STREAM_ERROR, 6, 127, 6, "text"},
    {STREAM_SOURCE, 16, 0, 16, "shards"},
};

/* Requests and replies: a head, and bytes of which nothing is known. */
START_TEST(test_forward)
{
    static const uint8_t bytes[] = "incr 1.n 5\r\n";
    const struct message_reply reply = {
        .id = 7, .seq = seq_make(5, 9), .len = 3};
    const struct message_reply unsure = {.id = 7, .outcome = MESSAGE_UNSURE};
    uint8_t body[MESSAGE_REPLY_HEAD + sizeof bytes];
    static uint8_t out[BODY_BYTES];
    struct stream_fault fault;
    size_t len = message_put_request(body, 7, true);

    memcpy(body + len, bytes, sizeof bytes);
    len += sizeof bytes;
    ck_assert_uint_eq(again_of(STREAM_REQUEST, body, len, out, &fault), len);
    ck_assert_mem_eq(out, body, len);
    for (size_t cut = 0; cut <= MESSAGE_REQUEST_HEAD; cut++) {
        ck_assert_uint_eq(again_of(STREAM_REQUEST, body, cut, out, &fault), 0);
    }
    body[8] = 2;
    ck_assert_uint_eq(again_of(STREAM_REQUEST, body, len, out, &fault), 0);
    ck_assert_str_eq(fault.what, "protocol");

    len = message_put_reply(body, &reply);
    memcpy(body + len, "7\r\n", 3);
    ck_assert_uint_eq(
        again_of(STREAM_REPLY, body, len + 3, out, &fault), len + 3);
    ck_assert_mem_eq(out, body, len + 3);
    for (size_t cut = 0; cut < MESSAGE_REPLY_HEAD; cut++) {
        ck_assert_uint_eq(again_of(STREAM_REPLY, body, cut, out, &fault), 0);
    }
    body[16] = MESSAGE_UNSURE + 1;
    ck_assert_uint_eq(again_of(STREAM_REPLY, body, len, out, &fault), 0);
    ck_assert_str_eq(fault.what, "outcome");
    len = message_put_reply(body, &unsure);
    ck_assert_uint_eq(again_of(STREAM_REPLY, body, len, out, &fault), len);
    ck_assert_uint_eq(again_of(STREAM_REPLY, body, len + 1, out, &fault), 0);
}
END_TEST

START_TEST(test_rules)
{
    static struct tape tapes[2];
    static uint8_t out[BODY_BYTES], wrong[BODY_BYTES];

    tape_make(&tapes[0]);
    tape_make_feed(&tapes[1]);
    for (size_t r = 0; r < COUNT_OF(rules); r++) {
        bool is_of_feed =
            rules[r].type == STREAM_WANT || rules[r].type == STREAM_SOURCE;
        const struct tape *tape = &tapes[is_of_feed];
        struct stream_fault fault;
        unsigned i = 0;
        size_t len;

        while (tape->bytes[tape->at[i] + 5] != rules[r].type) {
            i++;
        }
        len = tape->at[i + 1] - tape->at[i] - STREAM_HEAD_BYTES;
        memcpy(wrong, tape->bytes + tape->at[i] + STREAM_HEAD_BYTES, len);
        wrong[rules[r].at] = rules[r].value;
        ck_assert_msg(
            again_of(rules[r].type, wrong, len, out, &fault) == 0, "%zu", r);
        ck_assert_msg(
            strcmp(fault.what, rules[r].what) == 0, "%zu: %s", r, fault.what);
        ck_assert_msg(fault.offset == STREAM_HEAD_BYTES + rules[r].offset,
            "%zu: %s at %u", r, fault.what, fault.offset);
    }
}
END_TEST

START_TEST(test_hello_of_nobody)
{
    uint8_t body[MESSAGE_SMALL_MAX], out[MESSAGE_SMALL_MAX];
    struct message_hello hello = tape_hello();
    struct stream_fault fault;
    size_t len;

    hello.epoch = hello.seed = hello.written = hello.synced = 0;
    hello.shards = 0;
    hello.history = (struct history){0};
    hello.client = hello.repl = (struct message_text){0};
    len = message_put_hello(body, &hello);
    ck_assert_uint_eq(again_of(STREAM_HELLO, body, len, out, &fault), len);
    ck_assert_mem_eq(out, body, len);
    body[72] = 1; /* a seed without a directory */
    ck_assert_uint_eq(again_of(STREAM_HELLO, body, len, out, &fault), 0);
    ck_assert_str_eq(fault.what, "seed");
    body[72] = 0;
    body[88] = 1;
    ck_assert_uint_eq(again_of(STREAM_HELLO, body, len, out, &fault), 0);
    ck_assert_str_eq(fault.what, "last written");
}
END_TEST

/* As much as may be, and no more. */
START_TEST(test_longest_snapshot)
{
    uint8_t body[MESSAGE_SMALL_MAX];
    char name[MESSAGE_NAME_MAX + 1] = "";
    struct message_snapshot snapshot = {.first = 1,
                                .bytes = INT64_MAX,
                                .files = MESSAGE_FILES_MAX,
                                .manifest_len = MESSAGE_MANIFEST_MAX},
                            read;
    struct stream_frame frame = {.type = STREAM_SNAPSHOT, .body = body};
    struct stream_fault fault;

    memset(name, 'n', MESSAGE_NAME_MAX);
    snapshot.source = text_of(name);
    frame.len = (uint32_t)message_put_snapshot(body, &snapshot);
    ck_assert_uint_eq(frame.len, 89);
    ck_assert_int_eq(message_get_snapshot(&frame, &read, &fault), 0);
    ck_assert_uint_eq(read.manifest_len, MESSAGE_MANIFEST_MAX);
    ck_assert_uint_eq(message_contents_bytes(&read),
        (17 << 20) + (uint64_t)MESSAGE_MANIFEST_MAX);
}
END_TEST

/* A row of the list of files, and what is wrong in it. */
START_TEST(test_listed)
{
    static const struct {
        uint8_t at, value;
    } wrong[] = {{0, 0}, {0, MESSAGE_CONTENTS}, {1, 0}, {9, 0}, {16, 128}};
    const struct message_file file = {MESSAGE_LOG, 7, 200};
    uint8_t bytes[MESSAGE_LISTED_BYTES];
    struct message_file read;

    message_put_listed(bytes, &file);
    ck_assert(message_get_listed(bytes, &read));
    ck_assert_uint_eq(read.kind, MESSAGE_LOG);
    ck_assert_uint_eq(read.number, 7);
    ck_assert_uint_eq(read.bytes, 200);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        message_put_listed(bytes, &file);
        bytes[wrong[i].at] = wrong[i].value;
        ck_assert_msg(!message_get_listed(bytes, &read), "%zu", i);
    }
}
END_TEST

/* Bodies of the tape with some bytes changed. */
START_TEST(test_random)
{
    static struct tape tape;
    static uint8_t out[BODY_BYTES], body[BODY_BYTES];
    uint64_t state = 11;
    unsigned n_read = 0;

    tape_make(&tape);
    for (unsigned round = 0; round < RANDOM_ROUNDS; round++) {
        unsigned i = (unsigned)random_below(&state, tape.n);
        enum stream_type type = (enum stream_type)tape.bytes[tape.at[i] + 5];
        size_t len = tape.at[i + 1] - tape.at[i] - STREAM_HEAD_BYTES, n;
        struct stream_fault fault;

        memcpy(body, tape.bytes + tape.at[i] + STREAM_HEAD_BYTES, len);
        for (uint64_t k = random_below(&state, 4); k > 0; k--) {
            body[random_below(&state, len)] =
                (uint8_t)random_below(&state, 256);
        }
        n = again_of(type, body, len, out, &fault);
        if (n > 0) {
            ck_assert_uint_eq(n, len);
            ck_assert_mem_eq(out, body, len);
            n_read++;
        }
    }
    ck_assert_uint_gt(n_read, RANDOM_ROUNDS / 20);
    ck_assert_uint_lt(n_read, RANDOM_ROUNDS);
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_tape, test_rules, test_forward,
        test_hello_of_nobody, test_longest_snapshot, test_listed, test_random};

    return run_tests("message", tests, COUNT_OF(tests));
}
