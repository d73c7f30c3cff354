/* SPDX-License-Identifier: BSD-3-Clause */
/* A session that speaks the binary protocol: items and cells, the choice of the
 * protocol, what closes it, and batches; in all cuts the same. */
#include "lib/packet.h"
#include "session/session.h"
#include "unit/held_help.h"

/* A request, by what its opcode takes, and the replies to it. */
struct step {
    uint8_t opcode;
    const char *key;
    const char *value;
    uint64_t delta, initial;
    uint32_t flags, exptime;
    uint64_t cas;
    const char *answer;
};

static void
add(struct buf *out, const struct step *step)
{
    switch (step->opcode) {
    case BINARY_SET:
    case BINARY_SETQ:
    case BINARY_ADD:
    case BINARY_ADDQ:
    case BINARY_REPLACE:
    case BINARY_REPLACEQ:
        packet_add_store(out, step->opcode, step->key, step->value,
            step->flags, step->exptime, step->cas);
        return;
    case BINARY_INCREMENT:
    case BINARY_INCREMENTQ:
    case BINARY_DECREMENT:
        packet_add_count(out, step->opcode, step->key, step->delta,
            step->initial, step->exptime, step->cas);
        return;
    case BINARY_TOUCH:
    case BINARY_GAT:
    case BINARY_GATK:
        packet_add_touch(out, step->opcode, step->key, step->exptime);
        return;
    default:
        packet_add(out,
            &(struct packet_said){.opcode = step->opcode,
                .key = step->key,
                .value = step->value,
                .cas = step->cas});
        return;
    }
}

/* Compares the replies so far, as packet_show writes them, and forgets them. */
static void
expect_packets(struct dialog *dialog, const char *expected)
{
    struct buf shown = {0};
    ck_assert(packet_show(&shown, dialog->replies.data, dialog->replies.len));
    buf_add(&shown, "", 1);
    ck_assert_str_eq(shown.data, expected);
    buf_fini(&shown);
    buf_clear(&dialog->replies);
}

static void
say_step(struct dialog *dialog, const struct step *step)
{
    struct buf said = {0};
    add(&said, step);
    ck_assert(!said.failed);
    dialog_say(dialog, said.data, said.len);
    buf_fini(&said);
}

static void
play_steps(struct dialog *dialog, const struct step *step, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        say_step(dialog, &step[i]);
        expect_packets(dialog, step[i].answer);
    }
}

/* A dialog on store, in which the counters of the examples are declared. */
static void
open_declared(struct dialog *dialog, struct store *store)
{
    struct dialog text;
    dialog_open(&text, store, SMALL_STORE_ITEM_BYTES);
    declare(&text);
    dialog_close(&text);
    dialog_open(dialog, store, SMALL_STORE_ITEM_BYTES);
}

static void
play_declared(const struct step *step, size_t n)
{
    struct dialog dialog;
    open_declared(&dialog, small_store(NULL));
    play_steps(&dialog, step, n);
    close_new(&dialog);
}

#define PLAY_DECLARED(steps) play_declared(steps, COUNT_OF(steps))

#define KEYED(name, text) .opcode = BINARY_##name, .key = (text)
#define EXISTS " st=02 body=[Data exists for key.]\n"
#define NOT_FOUND " st=01 body=[Not found]\n"
#define EXPTIME " st=04 body=[a counter does not expire, send exptime 0]\n"
#define BAD_VALUE " st=04 body=[value must be an unsigned decimal integer]\n"

/* cntcm: max=32, default 0. */
static const struct step cells[] = {
    {KEYED(GET, "1.cntcm"), .answer = "GET st=00 cas=1 ext=[0] body=[0]\n"},
    {KEYED(GETK, "{1}.cntcm"),
        .answer = "GETK st=00 cas=1 ext=[0] key=[{1}.cntcm] body=[0]\n"},
    {KEYED(GETQ, "1.cntcm"), .answer = "GETQ st=00 cas=1 ext=[0] body=[0]\n"},
    /* a cell at its default is there for who does not want it made ... */
    {KEYED(INCREMENT, "1.cntcm"), .delta = 3, .exptime = UINT32_MAX,
        .answer = "INCREMENT st=00 cas=4 number=3\n"},
    {KEYED(DECREMENT, "1.cntcm"), .delta = 3, .exptime = UINT32_MAX,
        .answer = "DECREMENT st=00 cas=1 number=0\n"},
    {KEYED(DECREMENT, "1.cntcm"), .delta = 3, .exptime = UINT32_MAX,
        .answer = "DECREMENT st=00 cas=1 number=0\n"},
    {KEYED(GET, "1.cntcm"), .answer = "GET st=00 cas=1 ext=[0] body=[0]\n"},
    /* ... and becomes an initial value above it for the others */
    {KEYED(INCREMENT, "1.cntcm"), .delta = 3, .initial = 9,
        .answer = "INCREMENT st=00 cas=10 number=9\n"},
    {KEYED(INCREMENT, "1.cntcm"), .delta = 3, .initial = 9,
        .answer = "INCREMENT st=00 cas=13 number=12\n"},
    {KEYED(INCREMENT, "1.cntcm"), .delta = 1, .exptime = UINT32_MAX,
        .answer = "INCREMENT st=00 cas=14 number=13\n"},
    {KEYED(INCREMENTQ, "1.cntcm"), .delta = 1, .answer = ""},
    {KEYED(DECREMENT, "1.cntcm"), .delta = 4, .initial = 9,
        .answer = "DECREMENT st=00 cas=11 number=10\n"},
    {KEYED(INCREMENT, "1.cntcm"), .delta = 1, .cas = 5,
        .answer = "INCREMENT" EXISTS},
    {KEYED(INCREMENT, "1.cntcm"), .delta = 1, .cas = 11,
        .answer = "INCREMENT st=00 cas=12 number=11\n"},
    {KEYED(DECREMENT, "1.cntcm"), .delta = 100,
        .answer = "DECREMENT st=00 cas=1 number=0\n"},
    {KEYED(INCREMENT, "1.cntcm"), .initial = UINT64_C(1) << 32,
        .answer = "INCREMENT st=04 body=[value is above the column's max]\n"},
    {KEYED(INCREMENT, "1.cntcm"), .delta = 1, .exptime = 60,
        .answer = "INCREMENT" EXPTIME},
    {KEYED(INCREMENTQ, "1.cntcm"), .delta = 1, .exptime = 60,
        .answer = "INCREMENTQ" EXPTIME},
    {KEYED(GET, "1.cntcm"), .answer = "GET st=00 cas=1 ext=[0] body=[0]\n"},
};

static const struct step stores[] = {
    {KEYED(SET, "2.cntcm"), .value = "41", .flags = 4,
        .answer = "SET st=00 cas=42\n"},
    {KEYED(GET, "2.cntcm"), .answer = "GET st=00 cas=42 ext=[0] body=[41]\n"},
    {KEYED(ADD, "2.cntcm"), .value = "1", .answer = "ADD" EXISTS},
    {KEYED(ADD, "3.cntcm"), .value = "1", .answer = "ADD st=00 cas=2\n"},
    {KEYED(REPLACE, "4.cntcm"), .value = "1", .answer = "REPLACE" NOT_FOUND},
    {KEYED(REPLACEQ, "3.cntcm"), .value = "5", .answer = ""},
    {KEYED(SET, "3.cntcm"), .value = "7", .cas = 2, .answer = "SET" EXISTS},
    {KEYED(SETQ, "3.cntcm"), .value = "7", .cas = 6, .answer = ""},
    {KEYED(GET, "3.cntcm"), .answer = "GET st=00 cas=8 ext=[0] body=[7]\n"},
    {KEYED(SETQ, "3.cntcm"), .value = "x", .answer = "SETQ" BAD_VALUE},
    {KEYED(SET, "3.cntcm"), .value = "", .answer = "SET" BAD_VALUE},
    {KEYED(SET, "3.cntcm"), .value = "4294967296",
        .answer = "SET st=04 body=[value is above the column's max]\n"},
    {KEYED(SET, "3.cntcm"), .value = "8", .exptime = 1,
        .answer = "SET" EXPTIME},
    {KEYED(APPEND, "3.cntcm"), .value = "8",
        .answer = "APPEND st=04 body=[a counter takes no append or "
                  "prepend]\n"},
    {KEYED(TOUCH, "3.cntcm"), .answer = "TOUCH st=00 cas=8 ext=[0]\n"},
    {KEYED(TOUCH, "3.cntcm"), .exptime = 5, .answer = "TOUCH" EXPTIME},
    {KEYED(GAT, "3.cntcm"), .answer = "GAT st=00 cas=8 ext=[0] body=[7]\n"},
    {KEYED(GATK, "3.cntcm"), .exptime = 5, .answer = "GATK" EXPTIME},
    {KEYED(DELETE, "3.cntcm"), .cas = 7, .answer = "DELETE" EXISTS},
    {KEYED(DELETE, "3.cntcm"), .cas = 8, .answer = "DELETE st=00\n"},
    {KEYED(DELETE, "3.cntcm"), .answer = "DELETE" NOT_FOUND},
    {KEYED(DELETEQ, "3.cntcm"), .answer = "DELETEQ" NOT_FOUND},
    {KEYED(GETKQ, "3.cntcm"),
        .answer = "GETKQ st=00 cas=1 ext=[0] key=[3.cntcm] body=[0]\n"},
};

/* absent=miss, overflow=error, exptime=ignore; oa: max=8 default=5 flags=4. */
static const struct step options[] = {
    {KEYED(GET, "1.oa"), .answer = "GET" NOT_FOUND},
    {KEYED(GETQ, "1.oa"), .answer = ""},
    {KEYED(GETK, "1.oa"), .answer = "GETK st=01 key=[1.oa]\n"},
    {KEYED(TOUCH, "1.oa"), .exptime = 7, .answer = "TOUCH" NOT_FOUND},
    {KEYED(INCREMENT, "1.oa"), .delta = 7, .exptime = UINT32_MAX,
        .answer = "INCREMENT" NOT_FOUND},
    {KEYED(INCREMENT, "2.oa"), .delta = 7, .initial = 0,
        .answer = "INCREMENT st=00 cas=1 number=0\n"},
    {KEYED(INCREMENT, "1.oa"), .delta = 7, .initial = 200, .exptime = 60,
        .answer = "INCREMENT st=00 cas=201 number=200\n"},
    {KEYED(INCREMENT, "1.oa"), .delta = 100,
        .answer = "INCREMENT st=04 body=[increment would pass the column's "
                  "max]\n"},
    {KEYED(GAT, "1.oa"), .exptime = 9,
        .answer = "GAT st=00 cas=201 ext=[4] body=[200]\n"},
    {KEYED(TOUCH, "1.oa"), .exptime = 7,
        .answer = "TOUCH st=00 cas=201 ext=[4]\n"},
    {KEYED(SET, "1.oa"), .value = "9", .exptime = 3,
        .answer = "SET st=00 cas=10\n"},
};

/* Of the columns of weibo; the values alone make it. */
#define CAS_OF_1_2_3 "5727531030225996550"

static const struct step records[] = {
    {KEYED(SET, "7.weibo"), .value = "1 2 3",
        .answer = "SET st=00 cas=" CAS_OF_1_2_3 "\n"},
    {KEYED(GET, "7.weibo"),
        .answer = "GET st=00 cas=" CAS_OF_1_2_3 " ext=[0] body=[1 2 3]\n"},
    {KEYED(ADD, "7.weibo"), .value = "1 2 3", .answer = "ADD" EXISTS},
    {KEYED(SET, "7.weibo"), .value = "1 2 4", .cas = 1,
        .answer = "SET" EXISTS},
    {KEYED(DELETE, "7.weibo"), .cas = 4, .answer = "DELETE" EXISTS},
    {KEYED(INCREMENT, "7.cntcm"), .delta = 1, .exptime = UINT32_MAX,
        .answer = "INCREMENT st=00 cas=3 number=2\n"},
    {KEYED(SET, "7.weibo"), .value = "1 2 4",
        .cas = UINT64_C(5727531030225996550), .answer = "SET" EXISTS},
    {KEYED(DELETE, "7.weibo"), .cas = UINT64_C(5727531030225996550),
        .answer = "DELETE" EXISTS},
    {KEYED(DECREMENT, "7.cntcm"), .delta = 1,
        .answer = "DECREMENT st=00 cas=2 number=1\n"},
    {KEYED(REPLACE, "7.weibo"), .value = "1 2 4",
        .answer = "REPLACE st=04 body=[a whole record takes get, set, add, "
                  "cas and delete only]\n"},
    {KEYED(SET, "7.weibo"), .value = "1 2 3",
        .cas = UINT64_C(5727531030225996550),
        .answer = "SET st=00 cas=" CAS_OF_1_2_3 "\n"},
    {KEYED(INCREMENT, "7.weibo"), .delta = 1,
        .answer = "INCREMENT st=06 body=[Non-numeric server-side value for "
                  "incr or decr]\n"},
    {KEYED(DELETE, "7.weibo"), .answer = "DELETE st=00\n"},
    {KEYED(GET, "weibo"),
        .answer = "GET st=04 body=[this is a counter's name: get, set, add, "
                  "replace, delete, incr and decr take it, see help]\n"},
    {KEYED(SET, "7.cntxx"), .value = "an item", .cas = 1,
        .answer = "SET" NOT_FOUND},
};

START_TEST(test_cells)
{
    PLAY_DECLARED(cells);
}
END_TEST

START_TEST(test_stores)
{
    PLAY_DECLARED(stores);
}
END_TEST

START_TEST(test_options)
{
    PLAY_DECLARED(options);
}
END_TEST

START_TEST(test_records)
{
    PLAY_DECLARED(records);
}
END_TEST

/* What a set that is too large leaves: nothing of the old value; no other
 * storage command does that. */
START_TEST(test_too_large)
{
    enum { LARGE = 100 };
    static const uint8_t opcodes[] = {
        BINARY_SET, BINARY_SETQ, BINARY_ADD, BINARY_REPLACEQ, BINARY_APPEND};
    char value[LARGE + 1];
    memset(value, 'x', LARGE);
    value[LARGE] = '\0';
    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        bool sets = opcodes[i] == BINARY_SET || opcodes[i] == BINARY_SETQ;
        struct dialog dialog;
        dialog_open(&dialog, small_store(NULL), LARGE - 1);
        say_step(&dialog, &(struct step){KEYED(SETQ, "a"), .value = "1"});
        say_step(&dialog,
            &(struct step){.opcode = opcodes[i], .key = "a", .value = value});
        ck_assert_int_eq(dialog.replies.data[7], 3);
        ck_assert_uint_eq(
            dialog.replies.len, BINARY_HEADER_BYTES + strlen("Too large."));
        buf_clear(&dialog.replies);
        say_step(&dialog, &(struct step){KEYED(GETQ, "a")});
        ck_assert_uint_eq(dialog.replies.len, sets ? 0 : 29);
        close_new(&dialog);
    }
}
END_TEST

static void
expect_spoken(enum session_binding binding, const void *said, size_t len,
    const char *answer, size_t answer_len, bool closes)
{
    for (size_t step = 1; step <= len; step += len - 1) {
        struct dialog dialog;
        dialog_open(&dialog, small_store(NULL), SMALL_STORE_ITEM_BYTES);
        dialog.session.binding = binding;
        for (size_t at = 0; at < len && !dialog.is_closed; at += step) {
            dialog_say(&dialog, (const char *)said + at,
                len - at < step ? len - at : step);
        }
        ck_assert_uint_eq(dialog.replies.len, answer_len);
        if (answer_len > 0) {
            ck_assert_mem_eq(dialog.replies.data, answer, answer_len);
        }
        ck_assert_int_eq(dialog.is_closed, closes);
        close_new(&dialog);
    }
}

/* The first byte chooses, once, unless only one protocol is spoken. */
START_TEST(test_choice)
{
    static const char noop[] = "\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\7"
                               "\0\0\0\0\0\0\0\0";
    static const char noop_done[] = "\x81\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\7"
                                    "\0\0\0\0\0\0\0\0";
    static const char text[] = "get a\r\n\x80\x01\r\nversion\r\n";
    static const char mixed[] = "\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\7"
                                "\0\0\0\0\0\0\0\0version\r\nversion\r\nversio";
    static const char line[] = "\x80\x01\0\0\0\0\r\nversion\r\n";
    expect_spoken(SESSION_AUTO, noop, 24, noop_done, 24, false);
    expect_spoken(SESSION_BINARY, noop, 24, noop_done, 24, false);
    expect_spoken(SESSION_AUTO, text, sizeof text - 1,
        "END\r\nERROR\r\nVERSION test\r\n", 26, false);
    expect_spoken(SESSION_TEXT, line, sizeof line - 1,
        "ERROR\r\nVERSION test\r\n", 21, false);
    expect_spoken(SESSION_AUTO, mixed, sizeof mixed - 1, noop_done, 24, true);
    expect_spoken(
        SESSION_BINARY, mixed + 24, sizeof mixed - 25, NULL, 0, true);
}
END_TEST

/* What closes the connection is answered, and nothing behind it is. */
START_TEST(test_closes)
{
    static const struct {
        struct packet_said said;
        const char *answer;
    } row[] = {
        {{.opcode = BINARY_QUIT}, "QUIT st=00\n"},
        {{.opcode = BINARY_QUITQ}, ""},
        {{.opcode = BINARY_QUITQ, .key = "a"},
            "QUITQ st=04 body=[Invalid arguments]\n"},
        {{.opcode = BINARY_GETQ}, "GETQ st=04 body=[Invalid arguments]\n"},
        {{.opcode = 0x77, .extras_len = 2, .body_more = -1},
            "? st=81 body=[Unknown command]\n"},
    };
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        struct buf said = {0};
        struct dialog dialog;
        open_declared(&dialog, small_store(NULL));
        packet_add_count(&said, BINARY_INCREMENTQ, "1.cntcm", 1, 5, 0, 0);
        packet_add(&said, &row[i].said);
        packet_add_count(&said, BINARY_INCREMENT, "2.cntcm", 1, 5, 0, 0);
        dialog_say(&dialog, said.data, said.len);
        ck_assert(dialog.is_closed);
        expect_packets(&dialog, row[i].answer);
        buf_fini(&said);
        close_new(&dialog);
    }
}
END_TEST

/* Admin's words as packets. */
START_TEST(test_admin)
{
    static const struct step steps[] = {
        {.opcode = BINARY_VERSION, .answer = "VERSION st=00 body=[test]\n"},
        {.opcode = BINARY_NOOP, .answer = "NOOP st=00\n"},
        {KEYED(STAT, " x y"),
            .answer = "STAT st=00 key=[args] body=[x y]\nSTAT st=00\n"},
        {.opcode = BINARY_FLUSH, .answer = "FLUSH st=00\n"},
        {.opcode = BINARY_FLUSHQ, .answer = ""},
    };
    PLAY_DECLARED(steps);
}
END_TEST

/* Quiet changes of cells go to the store in one call; what is acknowledged by
 * nothing is known to wait, all the same. */
START_TEST(test_batch)
{
    struct held_dialog held;
    struct buf said = {0};
    open_held(&held);
    hold_log(held.hold, true);
    packet_add_count(&said, BINARY_INCREMENTQ, "1.cntcm", 1, 0, 0, 0);
    packet_add_store(&said, BINARY_SETQ, "2.cntcm", "5", 0, 0, 0);
    packet_add_count(&said, BINARY_INCREMENT, "1.cntcm", 1, 0, 0, 0);
    packet_add_key(&said, BINARY_DELETEQ, "7.cntcm");
    packet_add_key(&said, BINARY_NOOP, NULL);
    dialog_add(&held.dialog, said.data, said.len);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    ck_assert_uint_eq(hold_release(held.hold), 1);
    dialog_wait(&held.dialog);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_READY);
    const struct session_acks *acks = &held.dialog.executor.acks;
    const struct session_ack *ack = (const void *)acks->at.data;
    ck_assert_uint_eq(acks->at.len, 3 * sizeof *ack);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ack[i].proto, PROTO_BINARY);
    }
    ck_assert_uint_eq(ack[0].opcode, BINARY_INCREMENTQ);
    ck_assert_uint_eq(ack[0].span.len, 0);
    ck_assert_uint_eq(ack[1].opcode, BINARY_SETQ);
    ck_assert_uint_eq(ack[2].opcode, BINARY_INCREMENT);
    ck_assert_uint_eq(ack[2].span.len, BINARY_HEADER_BYTES + 8);
    expect_packets(&held.dialog,
        "INCREMENT st=00 cas=14 number=13\nDELETEQ" NOT_FOUND "NOOP st=00\n");
    buf_fini(&said);
    close_held(&held);
}
END_TEST

/* All steps of the tables above in one stream. */
static void
add_all(struct buf *said)
{
#define ADD_ALL(steps)                                                        \
    for (size_t i = 0; i < COUNT_OF(steps); i++) {                            \
        add(said, &(steps)[i]);                                               \
    }
    ADD_ALL(cells)
    ADD_ALL(stores)
    ADD_ALL(options)
    ADD_ALL(records)
#undef ADD_ALL
    ck_assert(!said->failed);
}

/* The stream in pieces of so many bytes; the replies to *replies. */
static void
say_in_pieces(const struct buf *said, size_t piece, size_t mark,
    unsigned budget, struct buf *replies)
{
    struct dialog dialog;
    open_declared(&dialog, small_store(NULL));
    dialog.mark = mark;
    dialog.budget = budget;
    for (size_t at = 0; at < said->len; at += piece) {
        size_t left = said->len - at;
        dialog_say(&dialog, said->data + at, left < piece ? left : piece);
    }
    *replies = dialog.replies;
    dialog.replies = (struct buf){0};
    close_new(&dialog);
}

START_TEST(test_cuts)
{
    struct buf said = {0};
    struct buf whole;
    add_all(&said);
    say_in_pieces(&said, said.len, DIALOG_MARK, DIALOG_BUDGET, &whole);
    for (size_t piece = 1; piece < 150; piece++) {
        struct buf cut;
        say_in_pieces(&said, piece, piece % 3 == 0 ? 1 : DIALOG_MARK,
            1 + piece % 4, &cut);
        ck_assert_uint_eq(cut.len, whole.len);
        ck_assert_mem_eq(cut.data, whole.data, whole.len);
        buf_fini(&cut);
    }
    buf_fini(&said);
    buf_fini(&whole);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_cells, test_stores, test_options,
        test_records, test_too_large, test_choice, test_closes, test_admin,
        test_batch, test_cuts};
    return run_tests("binary_session", tests, COUNT_OF(tests));
}
