/* SPDX-License-Identifier: BSD-3-Clause */

/* The protocols of the load generator: the bytes of commands, and replies in
 * every cut, each with what must be found in it. */

#include "bench/wire.h"

#include "unit/check_help.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes with their length, for those of the binary protocol hold NUL. */
#define BYTES(text) (text), sizeof(text) - 1

/* Packets of the binary protocol. The first arguments are bytes: opcode, length
 * of the key, of the extras, status, and of all that follows; then that. */
#define REPLY(op, key, extras, status, body, text)                            \
    "\x81" op "\0" key extras "\0\0" status "\0\0\0" body                     \
    "\0\0\0\0\0\0\0\0\0\0\0\0" text
#define REQUEST(op, key, extras, body, text)                                  \
    "\x80" op "\0" key extras "\0\0\0\0\0\0" body                             \
    "\0\0\0\0\0\0\0\0\0\0\0\0" text

#define FLAGS "\0\0\0\0"
#define ONE "\0\0\0\0\0\0\0\1"
#define MANY "\0\0\0\0\0\0\1\2" /* 258 */
#define GET_HIT REPLY("\0", "\0", "\4", "\0", "\6", FLAGS "27")
#define GET_MISS REPLY("\0", "\0", "\0", "\1", "\11", "Not found")
#define GET_ERROR REPLY("\0", "\0", "\0", "\6", "\0", "")
#define GET_SHORT REPLY("\0", "\3", "\0", "\0", "\2", "27")
#define GET_WRONG REPLY("\0", "\0", "\0", "\0", "\2", "2x")
#define KEY_HIT REPLY("\15", "\3", "\4", "\0", "\11", FLAGS "5.a27")
#define KEY_ERROR REPLY("\15", "\0", "\0", "\6", "\0", "")
#define NOOP REPLY("\12", "\0", "\0", "\0", "\0", "")
#define SUM REPLY("\5", "\0", "\0", "\0", "\10", MANY)
#define SUM_ABSENT REPLY("\5", "\0", "\0", "\1", "\0", "")
#define SUM_SHORT REPLY("\5", "\0", "\0", "\0", "\2", "27")
#define STORED REPLY("\1", "\0", "\0", "\0", "\0", "")
#define NOT_STORED REPLY("\1", "\0", "\0", "\1", "\0", "")
#define ASK_GET REQUEST("\0", "\3", "\0", "\3", "5.a")
#define ASK_ONE REQUEST("\5", "\3", "\24", "\27", ONE ONE FLAGS "5.a")
#define ASK_MANY REQUEST("\5", "\3", "\24", "\27", MANY MANY FLAGS "5.a")
#define ASK_SET REQUEST("\1", "\3", "\10", "\15", FLAGS FLAGS "5.a27")
#define ASK_KEY REQUEST("\15", "\3", "\0", "\3", "5.a")
#define ASK_NOOP REQUEST("\12", "\0", "\0", "\0", "")

static const struct good {
    enum wire_protocol protocol;
    enum wire_ask ask;
    uint32_t n_keys;
    const char *bytes;
    size_t len;
    uint32_t hits;
    const char *found; /* as say() writes it; NULL of a store */
} good[] = {
    {WIRE_TEXT, WIRE_GET, 1, BYTES("VALUE 5.a 0 2\r\n27\r\nEND\r\n"), 1,
        "5.a=27 "},
    {WIRE_TEXT, WIRE_GET, 1, BYTES("END\r\n"), 0, ""},
    {WIRE_TEXT, WIRE_MULTI, 3,
        BYTES("VALUE 5.a 0 2\r\n27\r\nVALUE 7.b 12 1\r\n0\r\nEND\r\n"), 2,
        "5.a=27 7.b=0 "},
    /* the letter that the end is looked for by, in keys; and END as one */
    {WIRE_TEXT, WIRE_MULTI, 2,
        BYTES("VALUE 5.DD 0 1\r\n1\r\nVALUE END 0 1\r\n2\r\nEND\r\n"), 2,
        "5.DD=1 END=2 "},
    {WIRE_TEXT, WIRE_MULTI, 2, BYTES("END\r\n"), 0, ""},
    {WIRE_TEXT, WIRE_ADD, 1, BYTES("18446744073709551615\r\n"), 1,
        "18446744073709551615 "},
    {WIRE_TEXT, WIRE_ADD, 1, BYTES("NOT_FOUND\r\n"), 0, "absent "},
    {WIRE_TEXT, WIRE_SET, 1, BYTES("STORED\r\n"), 1, NULL},

    {WIRE_META, WIRE_GET, 1, BYTES("VA 2 k5.a\r\n27\r\n"), 1, "5.a=27 "},
    {WIRE_META, WIRE_GET, 1, BYTES("EN\r\n"), 0, "absent "},
    {WIRE_META, WIRE_GET, 1, BYTES("EN k5.a\r\n"), 0, "absent "},
    {WIRE_META, WIRE_MULTI, 2,
        BYTES("VA 2 k5.N\r\n27\r\nVA 1 kMN\r\n9\r\nMN\r\n"), 2,
        "5.N=27 MN=9 "},
    {WIRE_META, WIRE_MULTI, 2, BYTES("MN\r\n"), 0, ""},
    {WIRE_META, WIRE_ADD, 1, BYTES("VA 2\r\n28\r\n"), 1, "28 "},
    {WIRE_META, WIRE_ADD, 1, BYTES("NF\r\n"), 0, "absent "},
    {WIRE_META, WIRE_SET, 1, BYTES("HD\r\n"), 1, NULL},

    {WIRE_BINARY, WIRE_GET, 1, BYTES(GET_HIT), 1, "27 "},
    {WIRE_BINARY, WIRE_GET, 1, BYTES(GET_MISS), 0, "absent "},
    {WIRE_BINARY, WIRE_MULTI, 3, BYTES(KEY_HIT KEY_HIT NOOP), 2,
        "5.a=27 5.a=27 "},
    {WIRE_BINARY, WIRE_MULTI, 3, BYTES(NOOP), 0, ""},
    {WIRE_BINARY, WIRE_ADD, 1, BYTES(SUM), 1, "258 "},
    {WIRE_BINARY, WIRE_ADD, 1, BYTES(SUM_ABSENT), 0, "absent "},
    {WIRE_BINARY, WIRE_SET, 1, BYTES(STORED), 1, NULL},

    {WIRE_RESP, WIRE_GET, 1, BYTES("$2\r\n27\r\n"), 1, "27 "},
    {WIRE_RESP, WIRE_GET, 1, BYTES("$11\r\n12345678901\r\n"), 1,
        "12345678901 "},
    {WIRE_RESP, WIRE_GET, 1, BYTES("$-1\r\n"), 0, "absent "},
    {WIRE_RESP, WIRE_MULTI, 4,
        BYTES("*4\r\n$2\r\n27\r\n$-1\r\n$10\r\n1234567890\r\n$1\r\n0\r\n"), 3,
        "27 absent 1234567890 0 "},
    {WIRE_RESP, WIRE_ADD, 1, BYTES(":28\r\n"), 1, "28 "},
    {WIRE_RESP, WIRE_SET, 1, BYTES("+OK\r\n"), 1, NULL},
};

enum { N_GOOD = sizeof(good) / sizeof(good[0]) };

/* What is no reply to the question, and is known for that at once. */
static const struct bad {
    enum wire_protocol protocol;
    enum wire_ask ask;
    uint32_t n_keys;
    const char *bytes;
    size_t len;
} bad[] = {
    {WIRE_TEXT, WIRE_GET, 1, BYTES("ERROR\r\n")},
    {WIRE_TEXT, WIRE_GET, 1, BYTES("SERVER_ERROR out of memory\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 2, BYTES("ERROR\r\n")},
    /* one line too many, or one too few, or one value */
    {WIRE_TEXT, WIRE_MULTI, 2,
        BYTES("VALUE 5.a 0 2\r\n27\r\nSERVER_ERROR no\r\nEND\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 2, BYTES("VALUE 5.a 0 2\r\nEND\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 2,
        BYTES("VALUE 5.a 0 2\r\n27\r\nVALUE 6.a 0 2\r\n27\r\n"
              "VALUE 7.a 0 2\r\n27\r\nEND\r\n")},
    {WIRE_TEXT, WIRE_ADD, 1, BYTES("ERROR\r\n")},
    {WIRE_TEXT, WIRE_ADD, 1, BYTES("12x\r\n")},
    {WIRE_TEXT, WIRE_ADD, 1, BYTES("12\n")},
    {WIRE_TEXT, WIRE_ADD, 1, BYTES("18446744073709551616\r\n")},
    {WIRE_TEXT, WIRE_SET, 1, BYTES("NOT_STORED\r\n")},
    {WIRE_META, WIRE_GET, 1, BYTES("HD\r\n")},
    {WIRE_META, WIRE_GET, 1, BYTES("ENX\r\n")},
    {WIRE_META, WIRE_GET, 1, BYTES("VA 2\n27\n")},
    {WIRE_META, WIRE_MULTI, 2, BYTES("CLIENT_ERROR x\r\n")},
    {WIRE_META, WIRE_ADD, 1, BYTES("NS\r\n")},
    {WIRE_META, WIRE_SET, 1, BYTES("NS\r\n")},
    {WIRE_BINARY, WIRE_GET, 1, BYTES("ERROR\r\n")},
    {WIRE_BINARY, WIRE_GET, 1, BYTES(SUM)},
    {WIRE_BINARY, WIRE_GET, 1, BYTES(GET_ERROR)},
    {WIRE_BINARY, WIRE_SET, 1, BYTES(NOT_STORED)},
    /* a key that is longer than all that follows */
    {WIRE_BINARY, WIRE_GET, 1, BYTES(GET_SHORT)},
    {WIRE_BINARY, WIRE_MULTI, 1, BYTES(KEY_HIT KEY_HIT NOOP)},
    {WIRE_BINARY, WIRE_MULTI, 2, BYTES(KEY_ERROR)},
    {WIRE_BINARY, WIRE_MULTI, 2, BYTES(GET_HIT)},
    {WIRE_RESP, WIRE_GET, 1, BYTES("-ERR unknown command\r\n")},
    {WIRE_RESP, WIRE_GET, 1, BYTES(":1\r\n")},
    {WIRE_RESP, WIRE_GET, 1, BYTES("$2\r\n27x\r\n")},
    {WIRE_RESP, WIRE_GET, 1, BYTES("$1000\r\n")},
    {WIRE_RESP, WIRE_GET, 1, BYTES("$12345678901234567890123456789012345")},
    {WIRE_RESP, WIRE_MULTI, 2, BYTES("*3\r\n")},
    {WIRE_RESP, WIRE_MULTI, 2, BYTES("$2\r\n27\r\n")},
    {WIRE_RESP, WIRE_ADD, 1, BYTES(":-3\r\n")},
    {WIRE_RESP, WIRE_SET, 1, BYTES("+NO\r\n")},
};

enum { N_BAD = sizeof(bad) / sizeof(bad[0]) };

/* Whole replies whose numbers do not have their form. */
static const struct bad wrong[] = {
    {WIRE_TEXT, WIRE_MULTI, 1, BYTES("VALUE 5.a 0 3\r\n27\r\nEND\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 1, BYTES("VALUE 5.a 0 2\r\n2x\r\nEND\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 1, BYTES("VALUE 5.a 2\r\n27\r\nEND\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 1, BYTES("VALUES 5.a 0 2\r\n27\r\nEND\r\n")},
    {WIRE_META, WIRE_GET, 1, BYTES("VA 2\r\n27\r\n")},
    {WIRE_META, WIRE_MULTI, 1, BYTES("VA 1 k5.a\r\n27\r\nMN\r\n")},
    {WIRE_META, WIRE_MULTI, 1, BYTES("VA 2 c5\r\n27\r\nMN\r\n")},
    {WIRE_TEXT, WIRE_MULTI, 1, BYTES("VALUE 5.a 0 2 9\r\n27\r\nEND\r\n")},
    {WIRE_BINARY, WIRE_GET, 1, BYTES(GET_WRONG)},
    {WIRE_BINARY, WIRE_ADD, 1, BYTES(SUM_SHORT)},
    {WIRE_RESP, WIRE_GET, 1, BYTES("$2\r\n2x\r\n")},
};

enum { N_WRONG = sizeof(wrong) / sizeof(wrong[0]) };

/* "KEY=NUMBER ", "NUMBER " or "absent " for each number of a whole reply,
 * "wrong" where it has not its form. */
static void
say(const struct wire *wire, enum wire_ask ask, const char *bytes, size_t len,
    struct buf *out)
{
    size_t at = 0;
    for (;;) {
        struct wire_value value;
        switch (wire->next_fn(ask, bytes, len, &at, &value)) {
        case WIRE_END:
            ck_assert_uint_eq(at, len);
            return;
        case WIRE_WRONG:
            buf_add_text(out, "wrong");
            return;
        case WIRE_VALUE:
            break;
        }
        buf_add(out, value.key.at, value.key.len);
        buf_add_text(out, value.key.at != NULL ? "=" : "");
        if (value.is_absent) {
            buf_add_text(out, "absent ");
        } else {
            buf_addf(out, "%" PRIu64 " ", value.number);
        }
    }
}

static void
assert_said(const struct good *one)
{
    struct buf said = {0};
    say(wire_of(one->protocol), one->ask, one->bytes, one->len, &said);
    buf_add(&said, "", 1);
    ck_assert_str_eq(said.data, one->found);
    buf_fini(&said);
}

/* More of the stream behind it changes nothing, a byte less does. */
START_TEST(test_replies_in_all_cuts)
{
    const struct good *one = &good[_i];
    const struct wire *wire = wire_of(one->protocol);
    char *twice = malloc(2 * one->len);
    ck_assert_ptr_nonnull(twice);
    memcpy(twice, one->bytes, one->len);
    memcpy(twice + one->len, one->bytes, one->len);
    for (size_t cut = 0; cut <= 2 * one->len; cut++) {
        struct wire_reply reply;
        char *bytes = copy_of(twice, cut);
        enum wire_state state =
            wire->frame_fn(one->ask, one->n_keys, bytes, cut, &reply);
        if (cut < one->len) {
            ck_assert_int_eq(state, WIRE_MORE);
        } else {
            ck_assert_int_eq(state, WIRE_WHOLE);
            ck_assert_uint_eq(reply.len, one->len);
            ck_assert_uint_eq(reply.hits, one->hits);
        }
        free(bytes);
    }
    free(twice);
    if (one->found != NULL) {
        assert_said(one);
    }
}
END_TEST

START_TEST(test_bad_replies)
{
    const struct bad *one = &bad[_i];
    struct wire_reply reply;
    char *bytes = copy_of(one->bytes, one->len);
    ck_assert_int_eq(
        wire_of(one->protocol)
            ->frame_fn(one->ask, one->n_keys, bytes, one->len, &reply),
        WIRE_BAD);
    free(bytes);
}
END_TEST

START_TEST(test_wrong_numbers)
{
    const struct bad *one = &wrong[_i];
    const struct wire *wire = wire_of(one->protocol);
    struct wire_reply reply;
    struct buf said = {0};
    char *bytes = copy_of(one->bytes, one->len);
    ck_assert_int_eq(
        wire->frame_fn(one->ask, one->n_keys, bytes, one->len, &reply),
        WIRE_WHOLE);
    say(wire, one->ask, bytes, one->len, &said);
    buf_add(&said, "", 1);
    ck_assert_ptr_nonnull(strstr(said.data, "wrong"));
    buf_fini(&said);
    free(bytes);
}
END_TEST

/* So long that lines are counted in blocks, and more than once through the
 * counters of a block; some letters of the end are in the keys. */
START_TEST(test_long_replies)
{
    enum { KEYS = 3000 };
    struct buf out = {0};
    for (uint32_t n = 0; n <= KEYS; n = n < 20 ? n + 1 : n * 3 / 2) {
        struct wire_reply reply;
        buf_clear(&out);
        for (uint32_t i = 0; i < n; i++) {
            buf_addf(&out, "VALUE %u.END 0 1\r\n7\r\n", (unsigned)i);
        }
        buf_add_text(&out, "END\r\n");
        ck_assert_int_eq(
            wire_text.frame_fn(WIRE_MULTI, KEYS, out.data, out.len, &reply),
            WIRE_WHOLE);
        ck_assert_uint_eq(reply.hits, n);
        ck_assert_uint_eq(reply.len, out.len);
        ck_assert_int_eq(wire_text.frame_fn(
                             WIRE_MULTI, KEYS, out.data, out.len - 1, &reply),
            WIRE_MORE);
    }
    buf_fini(&out);
}
END_TEST

static const struct wire_text key = {"5.a", 3};

/* Everything that a protocol writes, one behind the other. */
static void
write_all(const struct wire *wire, struct buf *out)
{
    wire->get_fn(out, key);
    wire->add_fn(out, key, (struct wire_text){"1", 1});
    wire->add_fn(out, key, (struct wire_text){"258", 3});
    wire->set_fn(out, key, (struct wire_text){"27", 2});
    wire->head_fn(out, 2);
    wire->key_fn(out, key);
    wire->key_fn(out, key);
    wire->tail_fn(out);
}

START_TEST(test_commands)
{
    static const struct {
        const char *bytes;
        size_t len;
    } wanted[] = {
        [WIRE_TEXT] = {BYTES("get 5.a\r\nincr 5.a 1\r\nincr 5.a 258\r\n"
                             "set 5.a 0 0 2\r\n27\r\nget 5.a 5.a\r\n")},
        [WIRE_META] = {BYTES("mg 5.a v k\r\nma 5.a v\r\nma 5.a D258 v\r\n"
                             "ms 5.a 2\r\n27\r\n"
                             "mg 5.a v k q\r\nmg 5.a v k q\r\nmn\r\n")},
        [WIRE_BINARY] = {BYTES(
            ASK_GET ASK_ONE ASK_MANY ASK_SET ASK_KEY ASK_KEY ASK_NOOP)},
        [WIRE_RESP] = {BYTES("*2\r\n$3\r\nGET\r\n$3\r\n5.a\r\n"
                             "*3\r\n$6\r\nINCRBY\r\n$3\r\n5.a\r\n$1\r\n1\r\n"
                             "*3\r\n$6\r\nINCRBY\r\n$3\r\n5.a\r\n"
                             "$3\r\n258\r\n"
                             "*3\r\n$3\r\nSET\r\n$3\r\n5.a\r\n$2\r\n27\r\n"
                             "*3\r\n$4\r\nMGET\r\n"
                             "$3\r\n5.a\r\n$3\r\n5.a\r\n")},
    };
    struct buf out = {0};
    write_all(wire_of((enum wire_protocol)_i), &out);
    ck_assert_uint_eq(out.len, wanted[_i].len);
    ck_assert_mem_eq(out.data, wanted[_i].bytes, out.len);
    buf_fini(&out);
}
END_TEST

static void
add(Suite *suite, const TTest *test, int n)
{
    TCase *tcase = tcase_create(test->name);
    tcase_add_loop_test(tcase, test, 0, n);
    suite_add_tcase(suite, tcase);
}

int
main(void)
{
    Suite *suite = suite_create("wire");
    add(suite, test_replies_in_all_cuts, N_GOOD);
    add(suite, test_bad_replies, N_BAD);
    add(suite, test_wrong_numbers, N_WRONG);
    add(suite, test_long_replies, 1);
    add(suite, test_commands, WIRE_RESP + 1);

    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
