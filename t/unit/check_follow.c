/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_follow: requests that are read in one pass because they are like
 * the one before them are answered, and counted, as where each comes alone and
 * goes the usual way. Random streams, plain requests among others, are told
 * both ways. And keys of multi-gets that come as foreseen (exec_get_keys.c) are
 * what others are. Gets of a slice take one request of the budget. */
#include "base/clock.h"
#include "base/sanitizer.h"
#include "lib/packet.h"
#include "lib/park.h"
#include "unit/held_help.h"

#include <stdio.h>

enum {
    STREAMS = SANITIZER_THREAD ? 10 : 60,
    RUNS = 12,
    RUN_MAX = 150,
    REQUESTS_MAX = 2000
};

static const char *const ids[] = {"0", "1", "7", "12", "1234567", "12345678",
    "1234567890123456", "9999999999999999999", "18446744073709551615", "01",
    "{7}", "7|#|", "x", ""};
static const char *const names[] = {".cntcm", ".cntrn", ".oa", ".cntan",
    ".comment_num", ".weibo", ".nosuch", ".", ""};
static const char *const deltas[] = {"0", "1", "5", "1234567", "12345678",
    "4294967295", "18446744073709551615", "18446744073709551616", "-1", "1x",
    "", "1 2"};
static const char *const members[] = {"1", "77", "536870911", "8589934591",
    "0", "8589934592", "18446744073709551616", "01", "x", "7x", ""};
static const char *const blocks[] = {" 0 0 1\r\n1\r\n", " 0 0 1\r\n0\r\n",
    " 0 0 3\r\n123\r\n", " 0 0 8\r\n12345678\r\n", " 0 0 2\r\n01\r\n",
    " 0 0 9\r\n123456789\r\n", " 7 0 1\r\n1\r\n", " 0 60 1\r\n1\r\n",
    " 0 0 1 noreply\r\n1\r\n", " 0 0 2\r\n1x\r\n", " 0 0 3\r\n1 2\r\n",
    " 0 0 0\r\n\r\n", " 0 0 01\r\n1\r\n", "  0 0 1\r\n1\r\n", " 0 0 1\n1\r\n",
    " 0 0 1\r\n12\r\n", " 0 0 2\r\n1\r\n", " 0 0 x\r\n", " 0 0\r\n",
    " 0 0 1 1\r\n1\r\n"};
static const char *const ends[] = {
    "\r\n", "\n", " noreply\r\n", " \r\n", " junk\r\n", "\r\r\n"};
static const char *const flags[] = {" v", " k", " q", " f", " c", " t", " s",
    " h", " l", " O1", " Oabcdefghij", " O0123456789012345678901234567890",
    " O01234567890123456789012345678901", " O", " C1", " C8", " kx", " b",
    "  v", " v ", " u", " T0", " E5", " N0", " 5", " \x01", " O\x80\x01"};

/* Requests, and where each ends. */
struct stream {
    struct buf bytes;
    unsigned n;
    size_t end[REQUESTS_MAX];
};

/* One of n texts, mostly one of the first few. */
static const char *
pick(uint64_t *random, const char *const *text, size_t n, size_t usual)
{
    return text[random_below(random, random_below(random, 8) > 0 ? usual : n)];
}

#define PICK(random, texts, usual) pick(random, texts, COUNT_OF(texts), usual)

static void
add_key(uint64_t *random, struct buf *out)
{
    buf_add_text(out, PICK(random, ids, 8));
    buf_add_text(out, PICK(random, names, 3));
}

static void
add_count(uint64_t *random, struct buf *out)
{
    buf_add_text(out, random_below(random, 4) > 0 ? "incr " : "decr ");
    add_key(random, out);
    buf_add_text(out, " ");
    buf_add_text(out, PICK(random, deltas, 4));
    buf_add_text(out, PICK(random, ends, 1));
}

static void
add_store(uint64_t *random, struct buf *out)
{
    buf_add_text(out, random_below(random, 4) > 0 ? "set " : "add ");
    add_key(random, out);
    buf_add_text(out, PICK(random, blocks, 4));
}

static void
add_member(uint64_t *random, struct buf *out)
{
    buf_add_text(out, random_below(random, 4) > 0 ? "add " : "set ");
    buf_add_text(out, PICK(random, ids, 8));
    buf_add_text(out, random_below(random, 4) > 0 ? ".liked:" : ".fan:");
    buf_add_text(out, PICK(random, members, 4));
    buf_add_text(out, PICK(random, blocks, 4));
}

static void
add_get(uint64_t *random, struct buf *out)
{
    buf_add_text(out, random_below(random, 8) > 0 ? "get " : "gets ");
    add_key(random, out);
    if (random_below(random, 8) == 0) {
        buf_add_text(out, " ");
        add_key(random, out);
    }
    buf_add_text(out, PICK(random, ends, 1));
}

static void
add_mg(uint64_t *random, struct buf *out)
{
    buf_add_text(out, "mg ");
    add_key(random, out);
    for (uint64_t n = random_below(random, 5); n > 0; n--) {
        buf_add_text(out, PICK(random, flags, 12));
    }
    buf_add_text(out, PICK(random, ends, 1));
}

static void
add_packet(uint64_t *random, struct buf *out)
{
    static const uint8_t opcodes[] = {BINARY_GET, BINARY_GETQ, BINARY_GETK,
        BINARY_GETKQ, BINARY_GETKQ, BINARY_GETKQ, BINARY_NOOP, BINARY_GAT};
    char key[64];
    uint8_t opcode = opcodes[random_below(random, COUNT_OF(opcodes))];
    snprintf(
        key, sizeof key, "%s%s", PICK(random, ids, 8), PICK(random, names, 3));
    if (key[0] == '\0') {
        strcpy(key, "a");
    }
    packet_add(out,
        &(struct packet_said){.opcode = opcode,
            .key = opcode == BINARY_NOOP ? NULL : key,
            .extras_len = opcode == BINARY_GAT ? 4 : 0,
            .cas = random_below(random, 8) == 0 ? 9 : 0,
            .opaque = (uint32_t)random_below(random, UINT32_MAX)});
}

typedef void add_fn(uint64_t *random, struct buf *out);

/* Runs of one kind each, as texts or as packets. */
static void
make_stream(uint64_t *random, bool is_binary, struct stream *stream)
{
    static add_fn *const texts[] = {
        add_count, add_count, add_get, add_mg, add_store, add_member};
    stream->n = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        add_fn *add = is_binary ? add_packet
                                : texts[random_below(random, COUNT_OF(texts))];
        for (uint64_t n = random_below(random, RUN_MAX); n > 0; n--) {
            add(random, &stream->bytes);
            stream->end[stream->n++] = stream->bytes.len;
        }
    }
    ck_assert(!stream->bytes.failed && stream->n <= REQUESTS_MAX);
}

/* Each request alone, and its first byte before: nothing follows anything, nor
 * is begun without being parsed. */
static void
tell_alone(struct dialog *dialog, const struct stream *stream)
{
    size_t at = 0;
    for (unsigned i = 0; i < stream->n; i++) {
        dialog_say(dialog, stream->bytes.data + at, 1);
        dialog_say(
            dialog, stream->bytes.data + at + 1, stream->end[i] - at - 1);
        at = stream->end[i];
    }
}

/* Each request alone. */
static void
tell_one_by_one(struct dialog *dialog, const struct stream *stream)
{
    size_t at = 0;
    for (unsigned i = 0; i < stream->n; i++) {
        dialog_say(dialog, stream->bytes.data + at, stream->end[i] - at);
        at = stream->end[i];
    }
}

/* In large pieces, cut anywhere. */
static void
tell_in_pieces(
    uint64_t *random, struct dialog *dialog, const struct stream *stream)
{
    static const size_t marks[] = {100, 3000, DIALOG_MARK, DIALOG_MARK};
    static const unsigned budgets[] = {3, DIALOG_BUDGET, 1000, 1000};
    size_t at = 0;
    dialog->mark = marks[random_below(random, COUNT_OF(marks))];
    dialog->budget = budgets[random_below(random, COUNT_OF(budgets))];
    while (at < stream->bytes.len) {
        size_t n = 1 + (size_t)random_below(random, 9000);
        n = n < stream->bytes.len - at ? n : stream->bytes.len - at;
        dialog_say(dialog, stream->bytes.data + at, n);
        at += n;
    }
}

static void
expect_same_sums(struct dialog *a, struct dialog *b)
{
    uint64_t sum_a[METRIC_COUNT] = {0};
    uint64_t sum_b[METRIC_COUNT] = {0};
    metric_sum(a->metrics, sum_a);
    metric_sum(b->metrics, sum_b);
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        ck_assert_msg(i == METRIC_calls_parked || sum_a[i] == sum_b[i],
            "%s: %llu and %llu", metric_name((enum metric)i),
            (unsigned long long)sum_a[i], (unsigned long long)sum_b[i]);
    }
}

static void
expect_same_replies(
    const struct dialog *a, const struct dialog *b, uint64_t seed)
{
    size_t at = 0;
    while (at < a->replies.len && at < b->replies.len &&
        a->replies.data[at] == b->replies.data[at]) {
        at++;
    }
    size_t from = at < 60 ? 0 : at - 60;
    ck_assert_msg(at == a->replies.len && at == b->replies.len,
        "seed %llu, from byte %zu on: %.*s\nand not: %.*s",
        (unsigned long long)seed, at, (int)(at + 60 - from),
        b->replies.data + from, (int)(at + 60 - from), a->replies.data + from);
}

/* One stream; some before a store that answers later and holds commits. The
 * items' clock stands: replies tell of seconds (flags l and t). */
static void
compare(uint64_t seed, bool is_binary)
{
    enum { WAYS = 3 };
    static struct stream stream;
    uint64_t random = seed;
    struct clock_shift clock = {0};
    struct dialog admin[WAYS], alone, one_by_one, in_pieces;
    clock_shift_stop(&clock);
    for (unsigned i = 0; i < WAYS; i++) { /* a session is binary for good */
        open_new(&admin[i]);
        declare(&admin[i]);
        exchange(&admin[i], "add column weibo fans", "STORED\r\n");
        exchange(&admin[i], "add column weibo liked members=exact counts=fans",
            "STORED\r\n");
        exchange(&admin[i], "add column weibo fan members=exact max=8",
            "STORED\r\n");
    }
    struct store *store = admin[1].store;
    if (seed % 3 == 0) {
        ck_assert_int_eq(park_create(admin[1].store, seed, &store), 0);
    }
    dialog_open(&alone, admin[0].store, SMALL_STORE_ITEM_BYTES);
    dialog_open(&in_pieces, store, SMALL_STORE_ITEM_BYTES);
    dialog_open(&one_by_one, admin[2].store, SMALL_STORE_ITEM_BYTES);
    alone.admin.clock = in_pieces.admin.clock = one_by_one.admin.clock =
        &clock;
    make_stream(&random, is_binary, &stream);
    tell_alone(&alone, &stream);
    tell_one_by_one(&one_by_one, &stream);
    tell_in_pieces(&random, &in_pieces, &stream);
    expect_same_replies(&alone, &one_by_one, seed);
    expect_same_replies(&alone, &in_pieces, seed);
    expect_same_sums(&alone, &one_by_one);
    expect_same_sums(&alone, &in_pieces);
    ck_assert(!alone.is_closed && !one_by_one.is_closed);
    ck_assert(!in_pieces.is_closed);
    dialog_close(&alone);
    dialog_close(&one_by_one);
    dialog_close(&in_pieces);
    if (seed % 3 == 0) {
        park_destroy(&store);
    }
    for (unsigned i = 0; i < WAYS; i++) {
        close_new(&admin[i]);
    }
    buf_fini(&stream.bytes);
}

START_TEST(test_texts)
{
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        compare(seed, false);
    }
}
END_TEST

START_TEST(test_packets)
{
    for (uint64_t seed = 1; seed <= STREAMS; seed++) {
        compare(seed, true);
    }
}
END_TEST

/* What the three columns of an id are in test_multi_gets. */
static unsigned
digit_of(uint64_t id)
{
    return (unsigned)(id % 9);
}

/* A key of a multi-get, and what is said of it. */
static void
add_one_of_many(
    uint64_t *random, uint64_t id, struct buf *said, struct buf *expected)
{
    static const char *const known[] = {".cntcm", ".cntrn", ".cntan",
        ".comment_num", ".weibo", ".oa", ".cntcmx", ".cntc", ".", ""};
    enum { CELLS = 4, RECORD = 4 };
    unsigned long long number = id;
    unsigned digit = digit_of(id);
    unsigned i = (unsigned)random_below(
        random, random_below(random, 6) > 0 ? 3 : COUNT_OF(known));
    buf_add_text(said, random_below(random, 40) > 0 ? " " : "   ");
    buf_addf(said, "%llu%s", number, known[i]);
    if (i < CELLS) {
        buf_addf(
            expected, "VALUE %llu%s 0 1\r\n%u\r\n", number, known[i], digit);
    } else if (i == RECORD) {
        buf_addf(expected, "VALUE %llu%s 0 5\r\n%u %u %u\r\n", number,
            known[i], digit, digit, digit);
    }
}

/* Another id: the one beside it, one with a digit more or less, or any. */
static uint64_t
other_id(uint64_t *random, uint64_t id)
{
    switch (random_below(random, 5)) {
    case 0:
        return id / 10;
    case 1:
        return id < UINT64_MAX / 10 ? id * 10 : id;
    case 2:
        return UINT64_MAX >> random_below(random, 64);
    default:
        return id - (id > 0);
    }
}

/* A line: several columns of an id, or one, as pages ask for them; and some
 * turns that nobody could foresee. */
static void
add_multi_get(uint64_t *random, struct buf *stored, struct buf *said,
    struct buf *expected)
{
    enum { KEYS_MAX = 160 };
    uint64_t number = UINT64_MAX >> random_below(random, 64);
    uint64_t columns = 1 + random_below(random, 3);
    buf_add_text(said, "get");
    for (uint64_t n = random_below(random, KEYS_MAX) + 1; n > 0; n--) {
        if (n % columns == 0 || random_below(random, 8) == 0) {
            number = other_id(random, number);
        }
        unsigned digit = digit_of(number);
        unsigned long long id = number;
        buf_addf(
            stored, "set weibo %llu %u %u %u\r\n", id, digit, digit, digit);
        add_one_of_many(random, number, said, expected);
        if (random_below(random, 30) == 0) { /* an item */
            buf_addf(said, " 0%llu.cntcm", id);
        }
    }
    buf_add_text(said, "\r\n");
    buf_add_text(expected, "END\r\n");
}

START_TEST(test_multi_gets)
{
    enum { LINES = 200, EDITED = 20 };
    struct dialog dialog;
    struct buf stored = {0};
    struct buf said = {0};
    struct buf expected = {0};
    uint64_t random = 3;
    open_new(&dialog);
    declare(&dialog);
    dialog.budget = 1000;
    for (unsigned i = 0; i < LINES; i++) {
        add_multi_get(&random, &stored, &said, &expected);
        dialog_say(&dialog, stored.data, stored.len);
        buf_clear(&dialog.replies);
        dialog_say(&dialog, said.data, said.len);
        buf_add(&expected, "", 1);
        expect_replies(&dialog, said.data, expected.data);
        buf_clear(&stored);
        buf_clear(&said);
        buf_clear(&expected);
        if (i % EDITED == 0) { /* the same name is another column's */
            exchange(&dialog, "drop column weibo attitude_num attitude_num",
                "DELETED\r\n");
            exchange(&dialog, "add column weibo attitude_num suffix=cntan",
                "STORED\r\n");
        }
    }
    close_new(&dialog);
    buf_fini(&stored);
    buf_fini(&said);
    buf_fini(&expected);
}
END_TEST

/* A key with bytes behind its name that no text has. */
START_TEST(test_zeros_in_keys)
{
    struct dialog dialog;
    struct buf said = {0};
    struct buf shown = {0};
    open_new(&dialog);
    declare(&dialog);
    struct dialog binary;
    dialog_open(&binary, dialog.store, SMALL_STORE_ITEM_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        packet_add_key(&said, BINARY_GETKQ, "5.cntcm");
        packet_add_key(&said, BINARY_GETKQ, "5.cntcm!");
        said.data[said.len - 1] = '\0';
    }
    packet_add_key(&said, BINARY_NOOP, NULL);
    dialog_say(&binary, said.data, said.len);
    ck_assert(packet_show(&shown, binary.replies.data, binary.replies.len));
    buf_add(&shown, "", 1);
    ck_assert_str_eq(shown.data,
        "GETKQ st=00 cas=1 ext=[0] key=[5.cntcm] body=[0]\n"
        "GETKQ st=00 cas=1 ext=[0] key=[5.cntcm] body=[0]\n"
        "GETKQ st=00 cas=1 ext=[0] key=[5.cntcm] body=[0]\n"
        "NOOP st=00\n");
    dialog_close(&binary);
    close_new(&dialog);
    buf_fini(&said);
    buf_fini(&shown);
}
END_TEST

/* A column is dropped while gets of it wait for the store: each is told as a
 * miss, but for those that a miss is not told to. */
START_TEST(test_dropped_meanwhile)
{
    static const char said[] =
        "mg 1.cntrn v\r\nmg 1.cntrn v k\r\nmg 1.cntcm v\r\n"
        "mg 1.cntrn v q\r\nmg 1.cntrn O7\r\nmg 1.cntcm s v\r\n";
    struct held_dialog held;
    open_held(&held);
    dialog_add(&held.dialog, said, sizeof said - 1);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    exchange(
        &held.other, "drop column weibo repost_num repost_num", "DELETED\r\n");
    ck_assert_uint_eq(hold_release(held.hold), 1);
    dialog_wait(&held.dialog);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_READY);
    expect_replies(&held.dialog, said,
        "EN\r\nEN k1.cntrn\r\nVA 2\r\n11\r\nEN O7\r\nVA 2 s2\r\n11\r\n");
    close_held(&held);
}
END_TEST

/* Says n requests, a get of one key each, to a session that has a budget of
 * so many in a turn; how many turns it takes. */
static unsigned
count_turns(const char *form, unsigned n, unsigned budget)
{
    struct dialog dialog;
    struct buf said = {0};
    open_new(&dialog);
    declare(&dialog);
    dialog.budget = budget;
    for (unsigned i = 0; i < n; i++) {
        buf_addf(&said, form, i + 1);
    }
    dialog_say(&dialog, said.data, said.len);
    unsigned n_turns = dialog.n_yield + 1;
    close_new(&dialog);
    buf_fini(&said);
    return n_turns;
}

/* The same with packets. */
static unsigned
count_turns_of_packets(unsigned n, unsigned budget)
{
    struct dialog dialog, binary;
    struct buf said = {0};
    open_new(&dialog);
    declare(&dialog);
    dialog_open(&binary, dialog.store, SMALL_STORE_ITEM_BYTES);
    binary.budget = budget;
    for (unsigned i = 0; i < n; i++) {
        packet_add_key(&said, i % 2 ? BINARY_GETKQ : BINARY_GET, "5.cntcm");
    }
    dialog_say(&binary, said.data, said.len);
    unsigned n_turns = binary.n_yield + 1;
    dialog_close(&binary);
    close_new(&dialog);
    buf_fini(&said);
    return n_turns;
}

/* A slice of gets counts as one request of the budget. */
START_TEST(test_slices_in_a_turn)
{
    static const char *const plain[] = {
        "get %u.cntcm\r\n", "mg %u.cntcm v\r\n", "mg %u.cntcm k q v\r\n"};
    static const char *const others[] = {"gets %u.cntcm\r\n",
        "get %u.weibo\r\n", "get %u.cntcm\n", "mg %u.weibo v\r\n"};
    enum { SLICE = 128 };
    for (unsigned i = 0; i < COUNT_OF(plain); i++) {
        for (unsigned slices = 1; slices <= 3; slices++) {
            unsigned n = slices * SLICE;
            ck_assert_uint_eq(count_turns(plain[i], n, 1), slices);
            ck_assert_uint_eq(count_turns(plain[i], n, slices), 1);
            ck_assert_uint_eq(count_turns(plain[i], n + 1, slices), 2);
            ck_assert_uint_eq(count_turns_of_packets(n, 1), slices);
            ck_assert_uint_eq(count_turns_of_packets(n, slices), 1);
            ck_assert_uint_eq(count_turns_of_packets(n + 1, slices), 2);
        }
    }
    for (unsigned i = 0; i < COUNT_OF(others); i++) {
        ck_assert_uint_eq(count_turns(others[i], SLICE / 4, 2), 1);
    }
    /* a change after each: nothing to share */
    ck_assert_uint_eq(
        count_turns("get 1.cntcm\r\nincr %u.cntcm 1\r\n", 10, 2), 10);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_texts, test_packets, test_multi_gets,
        test_zeros_in_keys, test_dropped_meanwhile, test_slices_in_a_turn};
    return run_tests("follow", tests, COUNT_OF(tests));
}
