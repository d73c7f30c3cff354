/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/answer_binary: each kind of answer as a packet of each opcode that can
 * have it, what the quiet ones leave out, all errors, and figures. */
#include "base/err.h"
#include "lib/packet.h"
#include "proto/answer.h"
#include "proto/reply.h"
#include "proto/reply_stats.h"
#include "unit/check_help.h"

/* An answer, and the packet as packet_show writes it: "" for none. */
struct row {
    enum binary_opcode opcode;
    enum request_op op;
    struct answer answer;
    const char *packet;
};

static bool
is_quiet(enum binary_opcode opcode)
{
    static const bool quiet[UINT8_MAX + 1] = {
#define X(code, name, op, form, quiet) [code] = (quiet),
        BINARY_OPCODES(X)
#undef X
    };
    return quiet[opcode];
}

/* The key is at 3 of these bytes. */
static const char request_bytes[] = "xxxkeyxxx";

static struct echo
echo_for(enum binary_opcode opcode, enum request_op op)
{
    return (struct echo){.proto = PROTO_BINARY,
        .op = op,
        .opcode = (uint8_t)opcode,
        .is_quiet = is_quiet(opcode),
        .opaque = 0xabcd,
        .key = {3, 3}};
}

static void
expect_shown(const struct buf *packets, const char *expected)
{
    struct buf shown = {0};
    ck_assert(!packets->failed);
    ck_assert(packet_show(&shown, packets->data, packets->len));
    buf_add(&shown, "", 1);
    ck_assert_str_eq(shown.data, expected);
    buf_fini(&shown);
}

static void
play(const struct row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct echo echo = echo_for(row[i].opcode, row[i].op);
        struct buf out = {0};
        answer_put(&echo, request_bytes, &row[i].answer, &out);
        expect_shown(&out, row[i].packet);
        buf_fini(&out);
    }
}

#define NOT_FOUND " st=01 opaque=abcd body=[Not found]\n"
#define EXISTS " st=02 opaque=abcd body=[Data exists for key.]\n"
#define NOT_STORED " st=05 opaque=abcd body=[Not stored.]\n"
#define DONE(x) .kind = (x), .cas = 9, .flags = 5, .number = 3, .value_len = 2

static const struct row done[] = {
    {BINARY_SET, REQUEST_SET, {DONE(ANSWER_STORED)},
        "SET st=00 opaque=abcd cas=9\n"},
    {BINARY_ADD, REQUEST_CAS, {DONE(ANSWER_STORED)},
        "ADD st=00 opaque=abcd cas=9\n"},
    {BINARY_SETQ, REQUEST_SET, {DONE(ANSWER_STORED)}, ""},
    {BINARY_APPENDQ, REQUEST_APPEND, {DONE(ANSWER_STORED)}, ""},
    {BINARY_DELETE, REQUEST_DELETE, {DONE(ANSWER_DELETED)},
        "DELETE st=00 opaque=abcd\n"},
    {BINARY_DELETEQ, REQUEST_DELETE, {DONE(ANSWER_DELETED)}, ""},
    {BINARY_NOOP, REQUEST_NOOP, {DONE(ANSWER_OK)}, "NOOP st=00 opaque=abcd\n"},
    {BINARY_QUITQ, REQUEST_NOOP, {DONE(ANSWER_OK)}, ""},
    {BINARY_FLUSHQ, REQUEST_FLUSH_ALL, {DONE(ANSWER_OK)}, ""},
    {BINARY_INCREMENT, REQUEST_INCR,
        {.kind = ANSWER_NUMBER, .cas = 9, .number = UINT64_MAX},
        "INCREMENT st=00 opaque=abcd cas=9 number=18446744073709551615\n"},
    {BINARY_DECREMENT, REQUEST_DECR, {DONE(ANSWER_NUMBER)},
        "DECREMENT st=00 opaque=abcd cas=9 number=3\n"},
    {BINARY_INCREMENTQ, REQUEST_INCR, {DONE(ANSWER_NUMBER)}, ""},
};

#define VALUE                                                                 \
    .kind = ANSWER_VALUE, .cas = 9, .flags = 5, .value = "hello",             \
    .value_len = 5
static const struct row found[] = {
    {BINARY_GET, REQUEST_LOOK, {VALUE},
        "GET st=00 opaque=abcd cas=9 ext=[5] body=[hello]\n"},
    {BINARY_GETQ, REQUEST_LOOK, {VALUE},
        "GETQ st=00 opaque=abcd cas=9 ext=[5] body=[hello]\n"},
    {BINARY_GETK, REQUEST_LOOK, {VALUE},
        "GETK st=00 opaque=abcd cas=9 ext=[5] key=[key] body=[hello]\n"},
    {BINARY_GETKQ, REQUEST_LOOK, {VALUE},
        "GETKQ st=00 opaque=abcd cas=9 ext=[5] key=[key] body=[hello]\n"},
    {BINARY_GATQ, REQUEST_LOOK, {VALUE},
        "GATQ st=00 opaque=abcd cas=9 ext=[5] body=[hello]\n"},
    {BINARY_GATK, REQUEST_LOOK, {VALUE},
        "GATK st=00 opaque=abcd cas=9 ext=[5] key=[key] body=[hello]\n"},
    {BINARY_GATKQ, REQUEST_LOOK, {VALUE},
        "GATKQ st=00 opaque=abcd cas=9 ext=[5] key=[key] body=[hello]\n"},
    {BINARY_TOUCH, REQUEST_TOUCH, {DONE(ANSWER_TOUCHED)},
        "TOUCH st=00 opaque=abcd cas=9 ext=[5]\n"},
};

static const struct row missed[] = {
    {BINARY_GET, REQUEST_LOOK, {DONE(ANSWER_MISS)}, "GET" NOT_FOUND},
    {BINARY_GAT, REQUEST_LOOK, {DONE(ANSWER_MISS)}, "GAT" NOT_FOUND},
    {BINARY_TOUCH, REQUEST_TOUCH, {DONE(ANSWER_MISS)}, "TOUCH" NOT_FOUND},
    {BINARY_GETK, REQUEST_LOOK, {DONE(ANSWER_MISS)},
        "GETK st=01 opaque=abcd key=[key]\n"},
    {BINARY_GATK, REQUEST_LOOK, {DONE(ANSWER_MISS)},
        "GATK st=01 opaque=abcd key=[key]\n"},
    {BINARY_GETQ, REQUEST_LOOK, {DONE(ANSWER_MISS)}, ""},
    {BINARY_GETKQ, REQUEST_LOOK, {DONE(ANSWER_MISS)}, ""},
    {BINARY_GATQ, REQUEST_LOOK, {DONE(ANSWER_MISS)}, ""},
    {BINARY_GATKQ, REQUEST_LOOK, {DONE(ANSWER_MISS)}, ""},
};

/* Quiet or not, what was not done is said. */
static const struct row not_done[] = {
    {BINARY_DELETEQ, REQUEST_DELETE, {DONE(ANSWER_NOT_FOUND)},
        "DELETEQ" NOT_FOUND},
    {BINARY_INCREMENTQ, REQUEST_INCR, {DONE(ANSWER_NOT_FOUND)},
        "INCREMENTQ" NOT_FOUND},
    {BINARY_SETQ, REQUEST_CAS, {DONE(ANSWER_NOT_FOUND)}, "SETQ" NOT_FOUND},
    {BINARY_SETQ, REQUEST_CAS, {DONE(ANSWER_EXISTS)}, "SETQ" EXISTS},
    {BINARY_ADD, REQUEST_ADD, {DONE(ANSWER_NOT_STORED)}, "ADD" EXISTS},
    {BINARY_ADDQ, REQUEST_ADD, {DONE(ANSWER_NOT_STORED)}, "ADDQ" EXISTS},
    {BINARY_REPLACEQ, REQUEST_REPLACE, {DONE(ANSWER_NOT_STORED)},
        "REPLACEQ" NOT_FOUND},
    {BINARY_APPENDQ, REQUEST_APPEND, {DONE(ANSWER_NOT_STORED)},
        "APPENDQ" NOT_STORED},
    {BINARY_PREPEND, REQUEST_PREPEND, {DONE(ANSWER_NOT_STORED)},
        "PREPEND" NOT_STORED},
    {BINARY_APPEND, REQUEST_APPEND,
        {.kind = ANSWER_REFUSED, .err = ERR_TOO_LARGE},
        "APPEND st=03 opaque=abcd body=[Too large.]\n"},
};

START_TEST(test_done)
{
    play(done, COUNT_OF(done));
}
END_TEST

START_TEST(test_found)
{
    play(found, COUNT_OF(found));
}
END_TEST

START_TEST(test_missed)
{
    play(missed, COUNT_OF(missed));
}
END_TEST

START_TEST(test_not_done)
{
    play(not_done, COUNT_OF(not_done));
}
END_TEST

/* A refusal in bytes: its status, and its text is the body. */
static unsigned
refuse(enum binary_opcode opcode, int err, struct buf *text)
{
    struct echo echo = echo_for(opcode, REQUEST_SET);
    struct answer answer = {.kind = ANSWER_REFUSED, .err = err, .cas = 4};
    struct buf out = {0};
    answer_put(&echo, NULL, &answer, &out);
    const uint8_t *header = (const uint8_t *)out.data;
    ck_assert_uint_ge(out.len, BINARY_HEADER_BYTES);
    ck_assert_uint_eq(
        bytes_get_be32(header + 8), out.len - BINARY_HEADER_BYTES);
    ck_assert_uint_eq(bytes_get_be64(header + 16), 0);
    unsigned status = bytes_get_be16(header + 6);
    buf_clear(text);
    buf_add(
        text, out.data + BINARY_HEADER_BYTES, out.len - BINARY_HEADER_BYTES);
    buf_add(text, "", 1);
    buf_fini(&out);
    return status;
}

/* Every error has a status: above 0x81 where the text protocol would say
 * SERVER_ERROR, but for what is too large; and a text, quiet or not. */
START_TEST(test_errors)
{
    struct buf text = {0};
    for (int err = 1; err < ERR_COUNT; err++) {
        unsigned status = refuse(BINARY_SETQ, err, &text);
        bool is_server = reply_is_server_error(err) && err != ERR_TOO_LARGE;
        ck_assert_msg((status >= 0x82) == is_server, "%s has the status %02x",
            err_text(err), status);
        ck_assert_uint_gt(text.len, 1);
    }
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_BAD_FORMAT, &text), 0x04);
    ck_assert_str_eq(text.data, "Invalid arguments");
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_UNKNOWN_COMMAND, &text), 0x81);
    ck_assert_str_eq(text.data, "Unknown command");
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_TOO_LARGE, &text), 0x03);
    ck_assert_str_eq(text.data, "Too large.");
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_NOT_NUMERIC, &text), 0x06);
    ck_assert_str_eq(
        text.data, "Non-numeric server-side value for incr or decr");
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_NO_MEMORY, &text), 0x82);
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_LOADING, &text), 0x86);
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_NOT_PRIMARY, &text), 0x86);
    ck_assert_str_eq(text.data, "not primary");
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_DISK, &text), 0x84);
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_DISK_FULL, &text), 0x86);
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_LOG_FULL, &text), 0x86);
    ck_assert_uint_eq(refuse(BINARY_SET, ERR_EXPTIME, &text), 0x04);
    ck_assert_str_eq(text.data, err_text(ERR_EXPTIME));
    buf_fini(&text);
}
END_TEST

/* What has been made has a status and words of its own, whatever it is that is
 * not known of it. */
START_TEST(test_unsure)
{
    struct buf text = {0};
    for (int err = 1; err < ERR_COUNT; err++) {
        bool is_unsure = err == ERR_UNSURE || err == ERR_UNSURE_SLOW ||
            err == ERR_UNSURE_COPIES || err == ERR_UNSURE_PRIMARY;
        const char *words = err_text(err);
        ck_assert_int_eq(
            refuse(BINARY_INCREMENTQ, err, &text) == 0xa3, is_unsure);
        ck_assert_int_eq(
            strncmp(words, ERR_UNSURE_TEXT, strlen(ERR_UNSURE_TEXT)) == 0,
            is_unsure);
    }
    buf_fini(&text);
}
END_TEST

START_TEST(test_version)
{
    struct echo echo = echo_for(BINARY_VERSION, REQUEST_VERSION);
    struct buf out = {0};
    answer_binary_version(&echo, "1.6.45", &out);
    expect_shown(&out, "VERSION st=00 opaque=abcd body=[1.6.45]\n");
    buf_fini(&out);
}
END_TEST

static void
say_end(struct reply_stats *stats)
{
    reply_stats_end(stats);
}

static void
say_done(struct reply_stats *stats)
{
    reply_stats_done(stats, "RESET");
}

static void
say_refuse(struct reply_stats *stats)
{
    reply_stats_refuse(stats, "ERROR");
}

static void
say_error(struct reply_stats *stats)
{
    reply_stats_error(stats, ERR_NO_COUNTER);
}

#define END "STAT st=00 opaque=abcd\n"

START_TEST(test_stats)
{
    struct echo echo = echo_for(BINARY_STAT, REQUEST_STATS);
    struct buf out = {0};
    struct reply_stats stats = {&out, &echo};
    reply_stats_u64(&stats, "pid", 5);
    reply_stats_text(&stats, "version", "1 2");
    reply_stats_text(&stats, "a", "");
    expect_shown(&out,
        "STAT st=00 opaque=abcd key=[pid] body=[5]\n"
        "STAT st=00 opaque=abcd key=[version] body=[1 2]\n"
        "STAT st=00 opaque=abcd key=[a]\n");
    reply_stats_end(&stats);
    expect_shown(&out,
        "STAT st=00 opaque=abcd key=[pid] body=[5]\n"
        "STAT st=00 opaque=abcd key=[version] body=[1 2]\n"
        "STAT st=00 opaque=abcd key=[a]\n" END);
    buf_fini(&out);
}
END_TEST

/* A reply without pairs. */
START_TEST(test_stats_without_pairs)
{
    static void (*const say[])(struct reply_stats *) = {
        say_end, say_done, say_refuse, say_error};
    static const char *const packets[] = {
        END, END, "STAT" NOT_FOUND, "STAT" NOT_FOUND};
    for (size_t i = 0; i < COUNT_OF(say); i++) {
        struct echo echo = echo_for(BINARY_STAT, REQUEST_STATS);
        struct buf out = {0};
        struct reply_stats stats = {&out, &echo};
        say[i](&stats);
        expect_shown(&out, packets[i]);
        buf_fini(&out);
    }
}
END_TEST

/* Lines that are no pairs: one value, where they have a name there. */
START_TEST(test_stats_of_lines)
{
    static const struct {
        const char *name, *lines, *packets;
    } row[] = {
        {"detailed", "",
            "STAT st=00 opaque=abcd key=[detailed] body=[END\r\n]\n" END},
        {"detailed", "PREFIX a get 1\r\n",
            "STAT st=00 opaque=abcd key=[detailed] "
            "body=[PREFIX a get 1\r\nEND\r\n]\n" END},
        {NULL, "ITEM a [1 b; 0 s]\r\n", "STAT" NOT_FOUND},
        {NULL, "", END},
    };
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        struct echo echo = echo_for(BINARY_STAT, REQUEST_STATS);
        struct buf out = {0};
        struct buf aside = {0};
        struct reply_stats stats = {&out, &echo};
        buf_add_text(reply_stats_dump(&stats, &aside), row[i].lines);
        ck_assert_uint_eq(out.len, 0);
        reply_stats_end_dump(&stats, row[i].name, &aside);
        expect_shown(&out, row[i].packets);
        buf_fini(&out);
    }
}
END_TEST

/* Lines for which there is no memory: the reply has failed, too. */
START_TEST(test_stats_without_memory)
{
    struct echo echo = echo_for(BINARY_STAT, REQUEST_STATS);
    struct buf out = {0};
    struct buf aside = {0};
    struct reply_stats stats = {&out, &echo};
    reply_stats_dump(&stats, &aside)->failed = true;
    reply_stats_end_dump(&stats, "detailed", &aside);
    ck_assert(out.failed);
    buf_fini(&out);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_done, test_found, test_missed,
        test_not_done, test_errors, test_unsure, test_version, test_stats,
        test_stats_without_pairs, test_stats_of_lines,
        test_stats_without_memory};
    return run_tests("answer_binary", tests, COUNT_OF(tests));
}
