/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_STREAM_HELP_H
#define UNIT_STREAM_HELP_H

/* Recorded streams of frames, of each type one at least: what one node could
 * say to another one, in no sensible order. t/data/stream-v1 is the bytes of
 * tape_make; those of later programs are t/data/stream-v1-feed, of
 * tape_make_feed, and t/data/stream-v1-forward, of tape_make_forward. */

#include "repl/message_feed.h"
#include "repl/message_files.h"
#include "repl/message_forward.h"
#include "repl/message_term.h"

#include "unit/check_help.h"

enum { TAPE_FRAMES = 20, TAPE_BYTES_MAX = 16 << 10, TAPE_TERM = 5 };

struct tape {
    uint8_t bytes[TAPE_BYTES_MAX];
    size_t len;
    unsigned n;
    size_t at[TAPE_FRAMES + 1]; /* where each begins; and the end of all */
};

static inline struct message_text
text_of(const char *text)
{
    return (struct message_text){
        .at = (const uint8_t *)text, .len = (uint8_t)strlen(text)};
}

static inline struct history
tape_history(void)
{
    struct history history = {0};

    ck_assert(history_begin(&history, 1, 0x1111, 77));
    ck_assert(history_begin(&history, 2, 0x2222, seq_make(1, 400)));
    ck_assert(history_begin(&history, 5, 0x5555, seq_make(2, 123456789)));
    return history;
}

static inline struct message_hello
tape_hello(void)
{
    struct message_hello hello = {.purpose = MESSAGE_FOLLOW,
        .least = 1,
        .most = 3,
        .level = MESSAGE_SYNCED,
        .flags = HELLO_NEVER_VOTES,
        .priority = 100,
        .formats = {6, 7, 1},
        .shards = 16,
        .epoch = 0xe0e0e0e0e0e0e0e0,
        .seed = 0x5eed5eed5eed5eed,
        .promised = 5,
        .written = seq_make(5, 10),
        .synced = seq_make(5, 9),
        .group = text_of("posts/0"),
        .name = text_of("b.example"),
        .client = text_of("10.0.0.2:11211"),
        .repl = text_of("[fd00::2]:11213"),
        .history = tape_history()};

    for (unsigned i = 0; i < STREAM_NONCE_BYTES; i++) {
        hello.nonce[i] = (uint8_t)(0xb0 + i);
    }
    for (unsigned i = 0; i < PROOF_BYTES; i++) {
        hello.proof[i] = (uint8_t)(7 * i);
    }
    return hello;
}

static inline struct message_welcome
tape_welcome(void)
{
    return (struct message_welcome){.protocol = 1,
        .verdict = MESSAGE_CONTINUE,
        .seq = seq_make(5, 10),
        .last = seq_make(5, 30),
        .committed = seq_make(5, 28),
        .name = text_of("a"),
        .client = text_of("a.example:11211"),
        .history = tape_history()};
}

static inline void
tape_add(struct tape *tape, enum stream_type type, size_t len)
{
    ck_assert_uint_lt(tape->n, TAPE_FRAMES);
    tape->len += stream_seal(
        tape->bytes + tape->len, type, (uint32_t)len, TAPE_TERM, 0);
    ck_assert_uint_lt(tape->len, TAPE_BYTES_MAX / 2);
    tape->at[++tape->n] = tape->len;
}

static inline uint8_t *
tape_body(struct tape *tape)
{
    return tape->bytes + tape->len + STREAM_HEAD_BYTES;
}

static inline void
tape_add_batches(struct tape *tape, unsigned n)
{
    struct message_news news = {.committed = seq_make(5, 28),
        .last = seq_make(5, 30),
        .clock_us = 1234567890123,
        .rtt_us = 150,
        .flags = NEWS_AUTHORITY};
    uint8_t *body = tape_body(tape);
    size_t len = message_put_news(body, &news);

    for (unsigned i = 0; i < n; i++) {
        uint32_t payload = 1 + 37 * i;

        message_put_batch(body + len, seq_make(5, 11 + i), payload);
        len += MESSAGE_BATCH_BYTES;
        memset(body + len, 'a' + (int)i, payload);
        len += payload;
    }
    tape_add(tape, n == 0 ? STREAM_HEARTBEAT : STREAM_BATCHES, len);
}

static inline void
tape_add_terms(struct tape *tape)
{
    const struct message_promise promise = {.term = 6,
        .last = seq_make(5, 30),
        .flags = PROMISE_ASKS_ONLY,
        .name = text_of("c")};
    const struct message_promised promised = {.last = seq_make(5, 10),
        .flags = PROMISED_DOUBTFUL | PROMISED_HEARS_ONE,
        .history = tape_history()};
    const struct message_refused refused = {.promised = 7,
        .primary = text_of("c"),
        .address = text_of("10.0.0.3:11211")};
    const struct message_refused unknown = {.promised = 7};
    const struct message_fetch fetch = {
        .from = seq_make(5, 10), .history = tape_history()};

    tape_add(
        tape, STREAM_PROMISE, message_put_promise(tape_body(tape), &promise));
    tape_add(tape, STREAM_PROMISED,
        message_put_promised(tape_body(tape), &promised));
    tape_add(
        tape, STREAM_REFUSED, message_put_refused(tape_body(tape), &refused));
    tape_add(
        tape, STREAM_REFUSED, message_put_refused(tape_body(tape), &unknown));
    tape_add(tape, STREAM_FETCH, message_put_fetch(tape_body(tape), &fetch));
    tape_add(tape, STREAM_SWITCH,
        message_put_switch(tape_body(tape), seq_make(5, 30)));
}

static inline void
tape_add_files(struct tape *tape)
{
    const struct message_snapshot snapshot = {.first = seq_make(2, 9),
        .bytes = 123456,
        .files = 3,
        .manifest_len = 10,
        .source = text_of("a")};
    const struct message_have_file have[] = {
        {MESSAGE_CHECKPOINT, 3, 4096, 0x3333},
        {MESSAGE_SEGMENT, 4, 1, 0x4444}};
    const struct message_file contents = {
        MESSAGE_CONTENTS, 1, message_contents_bytes(&snapshot)};
    const struct message_file file = {MESSAGE_SEGMENT, 9, 70000};
    const struct message_end end = {MESSAGE_END_FILE, 0x7777};
    size_t len;

    tape_add(tape, STREAM_SNAPSHOT,
        message_put_snapshot(tape_body(tape), &snapshot));
    tape_add(tape, STREAM_FILE, message_put_file(tape_body(tape), &contents));
    len = message_put_have(tape_body(tape), 2);
    for (unsigned i = 0; i < 2; i++) {
        len += message_put_have_file(tape_body(tape) + len, &have[i]);
    }
    tape_add(tape, STREAM_HAVE, len);
    tape_add(tape, STREAM_FILE, message_put_file(tape_body(tape), &file));
    message_put_data(tape_body(tape), 65536);
    memset(tape_body(tape) + MESSAGE_DATA_BYTES, 'd', 100);
    tape_add(tape, STREAM_DATA, MESSAGE_DATA_BYTES + 100);
    tape_add(tape, STREAM_END, message_put_end(tape_body(tape), &end));
}

static inline void
tape_make(struct tape *tape)
{
    const struct message_hello hello = tape_hello();
    const struct message_welcome welcome = tape_welcome();
    const struct message_ack ack = {.written = seq_make(5, 14),
        .synced = seq_make(5, 12),
        .applied = seq_make(5, 13),
        .echo_us = 1234567890123,
        .flags = ACK_DISK_FULL};
    const struct message_error error = {
        MESSAGE_BAD_GROUP, text_of("another group")};

    *tape = (struct tape){0};
    message_put_challenge(tape_body(tape), hello.nonce);
    tape_add(tape, STREAM_CHALLENGE, STREAM_NONCE_BYTES);
    tape_add(tape, STREAM_HELLO, message_put_hello(tape_body(tape), &hello));
    tape_add(
        tape, STREAM_WELCOME, message_put_welcome(tape_body(tape), &welcome));
    tape_add_batches(tape, 1);
    tape_add_batches(tape, 4);
    tape_add_batches(tape, 0);
    tape_add(tape, STREAM_ACK, message_put_ack(tape_body(tape), &ack));
    tape_add_terms(tape);
    tape_add_files(tape);
    tape_add(tape, STREAM_ERROR, message_put_error(tape_body(tape), &error));
    ck_assert_uint_eq(tape->n, TAPE_FRAMES);
}

/* What a feed has of its own. */
static inline void
tape_make_feed(struct tape *tape)
{
    const struct message_want want = {text_of("crc32a:2/4")};
    const struct message_source source = {
        .epoch = 0xe0e0e0e0e0e0e0e0, .seed = 0x5eed5eed5eed5eed, .shards = 16};
    const struct message_error error = {
        MESSAGE_GONE, text_of("the log it needs is gone")};
    struct message_hello hello = tape_hello();
    struct message_welcome welcome = tape_welcome();

    *tape = (struct tape){0};
    hello.purpose = MESSAGE_FEED;
    welcome.verdict = MESSAGE_SNAPSHOT;
    tape_add(tape, STREAM_HELLO, message_put_hello(tape_body(tape), &hello));
    tape_add(
        tape, STREAM_WELCOME, message_put_welcome(tape_body(tape), &welcome));
    tape_add(tape, STREAM_WANT, message_put_want(tape_body(tape), &want));
    tape_add(
        tape, STREAM_SOURCE, message_put_source(tape_body(tape), &source));
    tape_add(tape, STREAM_ERROR, message_put_error(tape_body(tape), &error));
}

static inline void
tape_add_reply(struct tape *tape, const struct message_reply *reply)
{
    size_t head = message_put_reply(tape_body(tape), reply);

    memcpy(tape_body(tape) + head, reply->bytes, reply->len);
    tape_add(tape, STREAM_REPLY, head + reply->len);
}

/* What a replica that hands changes on has of its own. */
static inline void
tape_make_forward(struct tape *tape)
{
    static const char line[] = "incr 1234.cntcm 1\r\n", said[] = "8\r\n";
    const struct message_reply reply = {.id = 0x1122334455667788,
        .seq = seq_make(5, 15),
        .outcome = MESSAGE_ANSWERED,
        .bytes = (const uint8_t *)said,
        .len = sizeof said - 1};
    const struct message_reply none = {
        .id = 2, .outcome = MESSAGE_UNSURE, .bytes = (const uint8_t *)said};
    struct message_hello hello = tape_hello();
    size_t head;

    *tape = (struct tape){0};
    hello.flags = HELLO_FORWARDS;
    tape_add(tape, STREAM_HELLO, message_put_hello(tape_body(tape), &hello));
    head = message_put_request(tape_body(tape), reply.id, false);
    memcpy(tape_body(tape) + head, line, sizeof line - 1);
    tape_add(tape, STREAM_REQUEST, head + sizeof line - 1);
    head = message_put_request(tape_body(tape), none.id, true);
    memset(tape_body(tape) + head, 0x80, 24);
    tape_add(tape, STREAM_REQUEST, head + 24);
    tape_add_reply(tape, &reply);
    tape_add_reply(tape, &none);
}

#endif
