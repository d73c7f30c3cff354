/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/stream: a recorded stream read in one piece, in every two pieces, byte
 * by byte and in random ones gives the same frames; each bit of it flipped is
 * found; each field of a head; frames of another connection; the longest frame;
 * and the recorded stream of version 1, for ever. */
#include "repl/stream.h"

#include "base/bytes.h"
#include "unit/stream_help.h"

#include <stdio.h>

enum { RANDOM_ROUNDS = 400 };

/* What a reader made of a stream. */
struct heard {
    unsigned n;
    enum stream_step last;
};

static void
hear(struct stream_reader *reader, const struct tape *tape, const uint8_t *in,
    size_t len, struct heard *heard)
{
    char *copy = copy_of((const char *)in, len); /* a sanitizer sees its end */
    const uint8_t *at = (const uint8_t *)copy;
    struct stream_frame frame;

    while ((heard->last = stream_read(reader, &at, &len, &frame)) ==
        STREAM_FRAME) {
        const uint8_t *right = tape->bytes + tape->at[heard->n];

        ck_assert_uint_lt(heard->n, tape->n);
        ck_assert_uint_eq(frame.type, right[5]);
        ck_assert_uint_eq(frame.term, TAPE_TERM);
        ck_assert_uint_eq(STREAM_HEAD_BYTES + frame.len,
            tape->at[heard->n + 1] - tape->at[heard->n]);
        ck_assert_mem_eq(frame.body, right + STREAM_HEAD_BYTES, frame.len);
        heard->n++;
    }
    ck_assert(heard->last == STREAM_WRONG || len == 0);
    free(copy);
}

static void
hear_pieces(const struct tape *tape, const size_t *cut, size_t n_cuts)
{
    struct stream_reader reader;
    struct heard heard = {0, STREAM_MORE};
    size_t at = 0;

    ck_assert_int_eq(stream_reader_init(&reader), 0);
    for (size_t i = 0; i <= n_cuts; i++) {
        size_t end = i < n_cuts ? cut[i] : tape->len;

        hear(&reader, tape, tape->bytes + at, end - at, &heard);
        ck_assert_int_eq(heard.last, STREAM_MORE);
        at = end;
    }
    ck_assert_uint_eq(heard.n, tape->n);
    ck_assert_uint_eq(reader.offset, tape->len);
    stream_reader_fini(&reader);
}

START_TEST(test_pieces)
{
    static struct tape tape;
    static size_t cut[TAPE_BYTES_MAX];
    uint64_t state = 3;

    tape_make(&tape);
    hear_pieces(&tape, NULL, 0);
    for (size_t i = 0; i <= tape.len; i++) {
        hear_pieces(&tape, &i, 1);
        cut[i] = i;
    }
    hear_pieces(&tape, cut, tape.len);
    for (unsigned round = 0; round < RANDOM_ROUNDS; round++) {
        size_t n = 0, most = 2 + random_below(&state, 300);

        for (size_t at = 0; at < tape.len; n++) {
            at += random_below(&state, most);
            cut[n] = at < tape.len ? at : tape.len;
        }
        hear_pieces(&tape, cut, n);
    }
}
END_TEST

START_TEST(test_bits)
{
    static struct tape tape, wrong;
    struct stream_reader reader;

    tape_make(&tape);
    wrong = tape;
    ck_assert_int_eq(stream_reader_init(&reader), 0);
    for (size_t bit = 0; bit < 8 * tape.len; bit++) {
        struct heard heard = {0, STREAM_MORE};
        size_t at = bit / 8;
        unsigned hit = 0;

        wrong.bytes[at] ^= (uint8_t)(1U << bit % 8);
        while (tape.at[hit + 1] <= at) {
            hit++;
        }
        reader = (struct stream_reader){.kept = reader.kept};
        hear(&reader, &tape, wrong.bytes, tape.len, &heard);
        /* found; or its length is one that more bytes could make right */
        ck_assert_uint_eq(heard.n, hit);
        ck_assert(heard.last == STREAM_WRONG ||
            (at - tape.at[hit] >= 8 && at - tape.at[hit] < 12));
        if (heard.last == STREAM_WRONG) {
            ck_assert_uint_eq(reader.fault.frame_at, tape.at[hit]);
        } else {
            static const uint8_t more[STREAM_FRAME_MAX];

            hear(&reader, &tape, more, sizeof more, &heard);
            ck_assert_int_eq(heard.last, STREAM_WRONG);
            ck_assert_uint_eq(heard.n, hit);
        }
        wrong.bytes[at] = tape.bytes[at];
    }
    stream_reader_fini(&reader);
}
END_TEST

/* A frame whose head has a byte that is wrong, with a checksum that holds. */
static const struct {
    size_t at;
    uint8_t value;
    const char *what;
    uint32_t offset;
} heads[] = {
    {0, 't', "TLYR", 0},
    {3, 'B', "TLYR", 0},
    {4, 2, "version 1 of the stream", 4},
    {5, 0, "a type that is known", 5},
    {5, 22, "a type that is known", 5},
    {5, 255, "a type that is known", 5},
    {6, 1, "0", 6},
    {7, 128, "0", 6},
    {8, 33, "a length that the type has", 8},
    {11, 128, "a length that the type has", 8},
    {12, 1, "0", 12},
    {15, 1, "0", 12},
};

START_TEST(test_heads)
{
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        struct tape tape = {0};
        struct stream_reader reader;
        struct heard heard = {0, STREAM_MORE};
        const uint8_t *at = tape.bytes;
        size_t len = 1;
        struct stream_frame frame;

        tape_add_batches(&tape, 0);
        tape.bytes[heads[i].at] = heads[i].value;
        /* the head alone is enough to tell */
        ck_assert_int_eq(stream_reader_init(&reader), 0);
        hear(&reader, &tape, tape.bytes, STREAM_HEAD_BYTES, &heard);
        ck_assert_int_eq(heard.last, STREAM_WRONG);
        ck_assert_str_eq(reader.fault.what, heads[i].what);
        ck_assert_uint_eq(reader.fault.offset, heads[i].offset);
        ck_assert_uint_eq(reader.fault.frame_at, 0);
        ck_assert_uint_eq(
            reader.fault.type, heads[i].offset > 5 ? STREAM_HEARTBEAT : 0);
        /* for good */
        ck_assert_int_eq(
            stream_read(&reader, &at, &len, &frame), STREAM_WRONG);
        ck_assert_uint_eq(len, 1);
        stream_reader_fini(&reader);
    }
}
END_TEST

START_TEST(test_session)
{
    uint8_t a[STREAM_NONCE_BYTES] = {1}, b[STREAM_NONCE_BYTES] = {2};
    uint64_t session = stream_session(a, b);
    struct message_news news = {.committed = 1, .last = 2};
    uint8_t bytes[STREAM_HEAD_BYTES + MESSAGE_NEWS_BYTES];

    ck_assert_uint_ne(session, stream_session(b, a));
    ck_assert_uint_ne(session, 0);
    message_put_news(bytes + STREAM_HEAD_BYTES, &news);
    ck_assert_uint_eq(sizeof bytes,
        stream_seal(bytes, STREAM_HEARTBEAT, MESSAGE_NEWS_BYTES, 9, session));
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t sessions[] = {session, 0, stream_session(b, a)};
        struct stream_reader reader;
        struct stream_frame frame;
        const uint8_t *at = bytes;
        size_t len = sizeof bytes;

        ck_assert_int_eq(stream_reader_init(&reader), 0);
        reader.session = sessions[i];
        ck_assert_int_eq(stream_read(&reader, &at, &len, &frame),
            i == 0 ? STREAM_FRAME : STREAM_WRONG);
        if (i > 0) {
            ck_assert_str_eq(reader.fault.what, "the checksum");
            ck_assert_uint_eq(reader.fault.offset, 24);
        }
        stream_reader_fini(&reader);
    }
}
END_TEST

START_TEST(test_longest)
{
    uint8_t *bytes = malloc(2 * STREAM_FRAME_MAX), *body;
    struct stream_reader reader;
    struct message_news news = {.committed = 1, .last = seq_make(1, 2)};
    size_t len, all, at = 0;
    unsigned n = 0;

    ck_assert_ptr_nonnull(bytes);
    body = bytes + STREAM_HEAD_BYTES;
    len = message_put_news(body, &news);
    message_put_batch(body + len, seq_make(1, 1), FRAME_PAYLOAD_MAX);
    memset(body + len + MESSAGE_BATCH_BYTES, 5, FRAME_PAYLOAD_MAX);
    len += MESSAGE_BATCH_BYTES + FRAME_PAYLOAD_MAX;
    message_put_batch(body + len, seq_make(1, 2),
        (uint32_t)(STREAM_BODY_MAX - len - MESSAGE_BATCH_BYTES));
    memset(body + len + MESSAGE_BATCH_BYTES, 6,
        STREAM_BODY_MAX - len - MESSAGE_BATCH_BYTES);
    all = stream_seal(bytes, STREAM_BATCHES, STREAM_BODY_MAX, 1, 0);
    ck_assert_uint_eq(all, STREAM_FRAME_MAX);
    memcpy(bytes + all, bytes, all);
    ck_assert_int_eq(stream_reader_init(&reader), 0);
    while (at < 2 * all) {
        size_t piece = 2 * all - at < 65536 ? 2 * all - at : 65536;
        const uint8_t *in = bytes + at;
        struct stream_frame frame;
        struct message_batches batches;
        struct stream_fault fault;

        at += piece;
        while (stream_read(&reader, &in, &piece, &frame) == STREAM_FRAME) {
            ck_assert_int_eq(
                message_get_batches(&frame, &news, &batches, &fault), 0);
            ck_assert_uint_eq(batches.n, 2);
            n++;
        }
        ck_assert(!reader.is_wrong);
    }
    ck_assert_uint_eq(n, 2);
    stream_reader_fini(&reader);
    free(bytes);
}
END_TEST

static void
look_at_golden(const char *path, const struct tape *tape)
{
    static uint8_t bytes[TAPE_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    size_t len;

    ck_assert_ptr_nonnull(file);
    len = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    ck_assert_uint_eq(len, tape->len);
    ck_assert_mem_eq(bytes, tape->bytes, len);
}

START_TEST(test_golden)
{
    static struct tape tape;

    tape_make(&tape);
    look_at_golden(DATA_DIR "/stream-v1", &tape);
    tape_make_feed(&tape);
    look_at_golden(DATA_DIR "/stream-v1-feed", &tape);
    tape_make_forward(&tape);
    look_at_golden(DATA_DIR "/stream-v1-forward", &tape);
}
END_TEST

START_TEST(test_names)
{
    ck_assert_str_eq(stream_type_name(STREAM_CHALLENGE), "CHALLENGE");
    ck_assert_str_eq(stream_type_name(STREAM_ERROR), "ERROR");
    ck_assert_str_eq(stream_type_name(0), "unknown");
    ck_assert_str_eq(stream_type_name(22), "unknown");
    ck_assert_str_eq(stream_type_name(255), "unknown");
}
END_TEST

int
main(void)
{
    const TTest *tests[] = {test_pieces, test_bits, test_heads, test_session,
        test_longest, test_golden, test_names};

    return run_tests("stream", tests, COUNT_OF(tests));
}
