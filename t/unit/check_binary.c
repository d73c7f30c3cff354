/* SPDX-License-Identifier: BSD-3-Clause */
/* proto/binary and answer_binary: packets of every opcode and what each means,
 * whole and in all cuts; all lengths that a header can have wrong; every
 * answer as a packet. */
#include "proto/binary.h"

#include "base/err.h"
#include "lib/packet.h"
#include "proto/answer.h"
#include "proto/login.h"
#include "proto/text.h"
#include "unit/proto_help.h"

#include <stdio.h>

enum { VALUE_MAX = 1000 };

/* A packet, and its request as say writes it. */
struct row {
    struct packet_said said;
    const char *request;
};

/* What is not empty, 0 or false of a request. */
static void
say(struct buf *out, const char *bytes, const struct request *request)
{
    const struct terms *terms = &request->terms;
    buf_add_text(out, op_name(request->op));
    if (request->op == REQUEST_TOO_LARGE) {
        buf_addf(out, " as=%s", op_name(request->stored_as));
    }
    if (request->op == REQUEST_ERROR) {
        buf_addf(out, " \"%s\"", err_text(request->err));
    } else {
        say_span(out, "key", bytes, request->key);
        say_span(out, "value", bytes, request->value);
    }
    say_number(out, "flags", request->flags);
    say_number(out, "exptime", (uint64_t)request->exptime);
    say_number(out, "number", request->number);
    say_number(out, "cas", terms->cas);
    say_number(out, "initial", terms->initial);
    say_number(out, "vivify", (uint64_t)terms->vivify_exptime);
    buf_add_text(out, terms->vivifies ? " vivifies" : "");
    buf_add_text(out, terms->must_exist ? " must_exist" : "");
    buf_add_text(out, terms->compares ? " compares" : "");
    buf_add_text(out, terms->touches ? " touches" : "");
    buf_add_text(out, terms->wants_value ? " wants_value" : "");
    buf_add_text(out, request->is_quiet ? " quiet" : "");
    buf_add_text(out, request->closes ? " closes" : "");
    say_number(out, "swallow", request->swallow_bytes);
    buf_add(out, "", 1);
    ck_assert(!out->failed);
}

/* One call on a copy of the first n bytes. */
static enum parse_status
parse(
    const char *bytes, size_t n, struct parse_scan *scan, struct request *out)
{
    char *copy = copy_of(bytes, n);
    enum parse_status status = binary_parse(copy, n, VALUE_MAX, scan, out);
    free(copy);
    return status;
}

static void
expect_request(
    const struct row *row, const char *bytes, const struct request *request)
{
    struct buf said = {0};
    say(&said, bytes, request);
    ck_assert_msg(strcmp(said.data, row->request) == 0,
        "opcode %02x is '%s', not '%s'", row->said.opcode, said.data,
        row->request);
    ck_assert_int_eq(request->proto, PROTO_BINARY);
    ck_assert_uint_eq(request->opcode, row->said.opcode);
    ck_assert_uint_eq(request->opaque, row->said.opaque);
    ck_assert(!request->noreply);
    buf_fini(&said);
}

/* With every one cut, and with bytes behind it. What is needed of the packet
 * is known from its last cut that is not enough. */
static void
play_row(const struct row *row)
{
    struct buf packet = {0};
    struct parse_scan growing = {0, 0};
    struct request request;
    packet_add(&packet, &row->said);
    size_t len = packet.len;
    size_t n = 0;
    buf_add_text(&packet, "\x80xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    ck_assert(!packet.failed);
    while (parse(packet.data, n, &growing, &request) == PARSE_MORE) {
        struct parse_scan fresh = {0, 0};
        ck_assert_uint_lt(n, len);
        ck_assert_int_eq(parse(packet.data, n, &fresh, &request), PARSE_MORE);
        ck_assert_uint_le(fresh.need, len);
        ck_assert_int_eq(
            parse(packet.data, packet.len, &fresh, &request), PARSE_REQUEST);
        expect_request(row, packet.data, &request);
        n++;
    }
    expect_request(row, packet.data, &request);
    ck_assert_uint_eq(request.len, n);
    if (!request.closes && row->said.body_more == 0) {
        ck_assert_uint_eq(request.len + request.swallow_bytes, len);
    }
    buf_fini(&packet);
}

static void
play(const struct row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        play_row(&row[i]);
    }
}

#define KEYED(code) .opcode = (code), .key = "a"
#define STORE(code)                                                           \
    .opcode = (code), .extras = "\0\0\0\7\xff\xff\xff\xfe", .extras_len = 8,  \
    .key = "a b", .value = "12"
#define COUNT(code, end)                                                      \
    .opcode = (code),                                                         \
    .extras = "\0\0\0\0\0\0\1\1"                                              \
              "\0\0\0\0\0\0\0\5" end,                                         \
    .extras_len = 20, .key = "n"
#define TOUCH(code)                                                           \
    .opcode = (code), .extras = "\0\0\1\0", .extras_len = 4, .key = "a"

static const struct row storage[] = {
    {{STORE(0x01)}, "SET key=[a b] value=[12] flags=7 exptime=4294967294"},
    {{STORE(0x02)}, "ADD key=[a b] value=[12] flags=7 exptime=4294967294"},
    {{STORE(0x03)}, "REPLACE key=[a b] value=[12] flags=7 exptime=4294967294"},
    {{STORE(0x11), .opaque = 0xdeadbeef},
        "SET key=[a b] value=[12] flags=7 exptime=4294967294 quiet"},
    {{STORE(0x12)},
        "ADD key=[a b] value=[12] flags=7 exptime=4294967294 quiet"},
    {{STORE(0x13)},
        "REPLACE key=[a b] value=[12] flags=7 exptime=4294967294 quiet"},
    {{STORE(0x01), .cas = 9},
        "CAS key=[a b] value=[12] flags=7 exptime=4294967294 cas=9"},
    {{STORE(0x02), .cas = UINT64_MAX},
        "CAS key=[a b] value=[12] flags=7 exptime=4294967294 "
        "cas=18446744073709551615"},
    {{STORE(0x13), .cas = 9},
        "CAS key=[a b] value=[12] flags=7 exptime=4294967294 cas=9 quiet"},
    {{.opcode = 0x01, .extras_len = 8, .key = "a"}, "SET key=[a]"},
    {{KEYED(0x0e), .value = "12"}, "APPEND key=[a] value=[12]"},
    {{KEYED(0x0f), .value = "\r\n"}, "PREPEND key=[a] value=[\r\n]"},
    {{KEYED(0x19), .value = "12"}, "APPEND key=[a] value=[12] quiet"},
    {{KEYED(0x1a), .cas = 3}, "PREPEND key=[a] cas=3 compares quiet"},
};

static const struct row retrieval[] = {
    {{KEYED(0x00)}, "LOOK key=[a] wants_value"},
    {{KEYED(0x09)}, "LOOK key=[a] wants_value quiet"},
    {{KEYED(0x0c)}, "LOOK key=[a] wants_value"},
    {{KEYED(0x0d)}, "LOOK key=[a] wants_value quiet"},
    {{TOUCH(0x1c)}, "TOUCH key=[a] exptime=256 touches"},
    {{TOUCH(0x1d)}, "LOOK key=[a] exptime=256 touches wants_value"},
    {{TOUCH(0x1e)}, "LOOK key=[a] exptime=256 touches wants_value quiet"},
    {{TOUCH(0x23)}, "LOOK key=[a] exptime=256 touches wants_value"},
    {{TOUCH(0x24)}, "LOOK key=[a] exptime=256 touches wants_value quiet"},
};

static const struct row changes[] = {
    {{KEYED(0x04)}, "DELETE key=[a]"},
    {{KEYED(0x14), .cas = 7}, "DELETE key=[a] cas=7 compares quiet"},
    {{COUNT(0x05, "\0\0\0\0")},
        "INCR key=[n] number=257 initial=5 vivifies wants_value"},
    {{COUNT(0x06, "\0\0\0\1"), .cas = 2},
        "DECR key=[n] number=257 cas=2 initial=5 vivify=1 vivifies compares "
        "wants_value"},
    {{COUNT(0x15, "\xff\xff\xff\xff")},
        "INCR key=[n] number=257 must_exist wants_value quiet"},
    {{COUNT(0x16, "\xff\xff\xff\xfe")},
        "DECR key=[n] number=257 initial=5 vivify=4294967294 vivifies "
        "wants_value quiet"},
    {{.opcode = 0x08}, "FLUSH_ALL"},
    {{.opcode = 0x18}, "FLUSH_ALL quiet"},
    {{.opcode = 0x08, .extras = "\0\0\0\5", .extras_len = 4},
        "FLUSH_ALL exptime=5"},
};

static const struct row others[] = {
    {{.opcode = 0x07}, "NOOP closes"},
    {{.opcode = 0x17}, "NOOP quiet closes"},
    {{.opcode = 0x0a, .opaque = 1}, "NOOP"},
    {{.opcode = 0x0b}, "VERSION"},
    {{.opcode = 0x1b, .extras = "\0\0\0\2", .extras_len = 4},
        "VERBOSITY number=2"},
    {{.opcode = 0x1b}, "ERROR \"unknown command\""},
    {{.opcode = 0x1b, .extras = "\0\0\0\2", .extras_len = 4, .value = "x"},
        "ERROR \"unknown command\" swallow=1"},
    {{.opcode = 0x10}, "STATS"},
    {{.opcode = 0x10, .key = "items x"}, "STATS key=[items x]"},
    /* all of the body is skipped, and no more; quiet or not */
    {{.opcode = 0x1f, .extras_len = 4}, "ERROR \"unknown command\""},
    {{.opcode = 0x30, .extras_len = 4, .key = "a", .value = "bcd"},
        "ERROR \"unknown command\" swallow=3"},
    {{.opcode = 0xff, .value = "bcd"}, "ERROR \"unknown command\" swallow=3"},
    {{.opcode = 0x20}, "LOGIN_WAYS"},
    {{.opcode = 0x21, .key = "PLAIN", .value = "u"},
        "LOGIN key=[PLAIN] value=[u]"},
    {{.opcode = 0x22, .key = "PLAIN"}, "LOGIN key=[PLAIN]"},
    {{.opcode = 0x22, .key = "PLAIN", .body_more = LOGIN_VALUE_MAX + 1},
        "LOGIN key=[PLAIN] swallow=768"},
};

static const struct row too_large[] = {
    {{STORE(0x01), .body_more = VALUE_MAX},
        "TOO_LARGE as=SET key=[a b] flags=7 exptime=4294967294 swallow=1002"},
    {{STORE(0x11), .body_more = VALUE_MAX - 1, .cas = 4},
        "TOO_LARGE as=SET key=[a b] flags=7 exptime=4294967294 cas=4 quiet "
        "swallow=1001"},
    {{STORE(0x12), .body_more = BINARY_BODY_MAX - 13},
        "TOO_LARGE as=ADD key=[a b] flags=7 exptime=4294967294 quiet "
        "swallow=1073741813"},
    {{KEYED(0x0e), .body_more = VALUE_MAX + 1},
        "TOO_LARGE as=APPEND key=[a] swallow=1001"},
    /* what is not looked at of these is the next packet */
    {{TOUCH(0x1c), .body_more = 5}, "TOUCH key=[a] exptime=256 touches"},
    {{.opcode = 0x10, .body_more = 5}, "STATS"},
    /* no packet has so much */
    {{STORE(0x01), .body_more = BINARY_BODY_MAX - 12},
        "ERROR \"bad command line format\" closes"},
    {{.opcode = 0x33, .body_more = UINT32_MAX},
        "ERROR \"bad command line format\" closes"},
};

START_TEST(test_storage)
{
    play(storage, COUNT_OF(storage));
}
END_TEST

START_TEST(test_retrieval)
{
    play(retrieval, COUNT_OF(retrieval));
}
END_TEST

START_TEST(test_changes)
{
    play(changes, COUNT_OF(changes));
}
END_TEST

START_TEST(test_others)
{
    play(others, COUNT_OF(others));
}
END_TEST

START_TEST(test_too_large)
{
    play(too_large, COUNT_OF(too_large));
}
END_TEST

/* The largest value that is waited for, and one byte short of it. */
START_TEST(test_value_limit)
{
    static const char zeroes[VALUE_MAX];
    struct packet_said said = {STORE(0x01)};
    struct buf packet = {0};
    struct parse_scan scan = {0, 0};
    struct request request;
    said.value = zeroes;
    said.value_len = VALUE_MAX;
    packet_add(&packet, &said);
    ck_assert_int_eq(
        parse(packet.data, packet.len - 1, &scan, &request), PARSE_MORE);
    ck_assert_uint_eq(scan.need, packet.len);
    ck_assert_int_eq(
        parse(packet.data, packet.len, &scan, &request), PARSE_REQUEST);
    ck_assert_int_eq(request.op, REQUEST_SET);
    ck_assert_uint_eq(request.value.len, VALUE_MAX);
    ck_assert_uint_eq(request.len, packet.len);
    buf_fini(&packet);
}
END_TEST

/* Which lengths the description of the protocol gives an opcode: extras,
 * whether there is a key, whether there may be something behind it. */
static bool
may_have(unsigned opcode, size_t extras, size_t key, size_t rest)
{
    static const char plain[] = {0x00, 0x04, 0x09, 0x0c, 0x0d, 0x14};
    static const char empty[] = {0x07, 0x0a, 0x0b, 0x17, 0x20};
    static const char store[] = {0x01, 0x02, 0x03, 0x11, 0x12, 0x13};
    static const char extend[] = {0x0e, 0x0f, 0x19, 0x1a, 0x21, 0x22};
    static const char count[] = {0x05, 0x06, 0x15, 0x16};
    static const char touch[] = {0x1c, 0x1d, 0x1e, 0x23, 0x24};
    bool has_key = key > 0;
#define IS(list) (memchr(list, (int)opcode, sizeof(list)) != NULL)
    if (IS(plain)) {
        return extras == 0 && has_key && rest == 0;
    }
    if (IS(empty)) {
        return extras == 0 && !has_key && rest == 0;
    }
    if (IS(store)) {
        return extras == 8 && has_key;
    }
    if (IS(extend)) {
        return extras == 0 && has_key;
    }
    if (IS(count)) {
        return extras == 20 && has_key && rest == 0;
    }
    if (IS(touch)) {
        return extras == 4 && has_key;
    }
#undef IS
    if (opcode == 0x08 || opcode == 0x18) {
        return (extras == 0 || extras == 4) && !has_key && rest == 0;
    }
    return opcode != 0x10 || extras == 0;
}

static void
expect_closes(const struct packet_said *said, enum err err, bool closes)
{
    struct buf packet = {0};
    struct parse_scan scan = {0, 0};
    struct request request;
    packet_add(&packet, said);
    ck_assert_int_eq(
        parse(packet.data, packet.len, &scan, &request), PARSE_REQUEST);
    ck_assert_msg(request.closes == closes,
        "opcode %02x, %zu bytes of extras, %zu of the key: closes %d",
        said->opcode, said->extras_len,
        said->key == NULL ? 0 : strlen(said->key), request.closes);
    if (closes) {
        ck_assert_int_eq(request.op, REQUEST_ERROR);
        ck_assert_int_eq(request.err, (int)err);
    }
    buf_fini(&packet);
}

/* Every opcode with all lengths of extras and some of keys and of the rest. */
START_TEST(test_lengths)
{
    static const char *const keys[] = {NULL, "a", "ab"};
    for (unsigned opcode = 0; opcode <= UINT8_MAX; opcode++) {
        for (size_t i = 0; i < 26 * COUNT_OF(keys) * 2; i++) {
            struct packet_said said = {.opcode = (uint8_t)opcode,
                .extras_len = i / 6,
                .key = keys[i / 2 % 3],
                .value = i % 2 == 0 ? "" : "v"};
            bool fits = may_have(opcode, said.extras_len, i / 2 % 3, i % 2);
            bool quits = opcode == BINARY_QUIT || opcode == BINARY_QUITQ;
            if (!(fits && quits)) {
                expect_closes(&said, ERR_BAD_FORMAT, !fits);
            }
        }
    }
}
END_TEST

/* A body that has no room for what the header says is in it, or too long a
 * key: of every opcode, known or not. */
START_TEST(test_framing)
{
    char key[TEXT_KEY_MAX + 2];
    memset(key, 'k', sizeof key);
    key[TEXT_KEY_MAX + 1] = '\0';
    for (unsigned opcode = 0; opcode <= UINT8_MAX; opcode++) {
        struct packet_said said = {.opcode = (uint8_t)opcode,
            .extras_len = 3,
            .key = "abc",
            .body_more = -1};
        expect_closes(&said, ERR_UNKNOWN_COMMAND, true);
        said.body_more = -6;
        expect_closes(&said, ERR_UNKNOWN_COMMAND, true);
        said = (struct packet_said){.opcode = (uint8_t)opcode, .key = key};
        expect_closes(&said, ERR_BAD_FORMAT, true);
    }
    struct packet_said said = {.opcode = 0x00, .key = key + 1};
    expect_closes(&said, 0, false);
}
END_TEST

/* What is no packet: known when a header's length of it is there. */
START_TEST(test_magic)
{
    static const char magics[] = {0, 'g', 0x7f, (char)0x81};
    char bytes[BINARY_HEADER_BYTES] = {0};
    for (size_t i = 0; i < COUNT_OF(magics); i++) {
        struct parse_scan scan = {0, 0};
        struct request request;
        bytes[0] = magics[i];
        ck_assert_int_eq(
            parse(bytes, sizeof bytes - 1, &scan, &request), PARSE_MORE);
        ck_assert_int_eq(
            parse(bytes, sizeof bytes, &scan, &request), PARSE_CLOSE);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_storage, test_retrieval, test_changes,
        test_others, test_too_large, test_value_limit, test_lengths,
        test_framing, test_magic};
    return run_tests("binary", tests, COUNT_OF(tests));
}
