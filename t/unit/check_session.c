/* SPDX-License-Identifier: BSD-3-Clause */
/* session/session: where the bytes are cut, how small a turn is, and whether
 * the store answers at once make no difference to the replies; and memory stays
 * bounded however much is asked for in one request. */
#include "session/session.h"

#include "base/err.h"
#include "lib/park.h"
#include "session/exec.h"
#include "unit/net_help.h"

#include <stdio.h>

/* Every command, the errors that skip bytes, and schema edits in between. */
static const struct exchange conversation[] = {
    {"set weibo 1 1 2\r\nabc", "CLIENT_ERROR bad data chunk\r\n"},
    {"set weibo 1 1 2 3", "CLIENT_ERROR no such counter\r\n"},
    {"add counter weibo", "STORED\r\n"},
    {"add column weibo id primarykey", "STORED\r\n"},
    {"add column weibo a suffix=cma", "STORED\r\n"},
    {"add column weibo b max=8", "STORED\r\n"},
    {"set weibo 1 a=11 b=22", "STORED\r\n"},
    {"add weibo 1 a=1", "NOT_STORED\r\n"},
    {"get weibo 1 2.cma",
        "VALUE 1 0 5\r\n11 22\r\nVALUE 2.cma 0 1\r\n0\r\nEND\r\n"},
    {"incr weibo 1.b 500", "255\r\n"},
    {"decr weibo 1 1 1", "10 254\r\n"},
    {"incr 1.cma 7", "17\r\n"},
    {"decr {1}.cma 1", "16\r\n"},
    {"gets 1.cma 9|#|.weibo",
        "VALUE 1.cma 0 2 17\r\n16\r\n"
        "VALUE 9|#|.weibo 0 3 7779995286251396973\r\n0 0\r\nEND\r\n"},
    {"cas 1.cma 0 0 1 17\r\n5", "STORED\r\n"},
    {"set 1.cma 0 0 1 noreply\r\n6", ""},
    {"touch 1.cma 0", "TOUCHED\r\n"},
    {"gat 0 1.cma", "VALUE 1.cma 0 1\r\n6\r\nEND\r\n"},
    {"delete 1.cma", "DELETED\r\n"},
    {"set a 5 0 6\r\nget\r\nb", "STORED\r\n"},
    {"get a b a",
        "VALUE a 5 6\r\nget\r\nb\r\nVALUE a 5 6\r\nget\r\nb\r\nEND\r\n"},
    {"append a 0 0 2\r\n\r\n", "STORED\r\n"},
    {"prepend a 0 0 1\r\n\n", "STORED\r\n"},
    {"gat 0 a", "VALUE a 5 9\r\n\nget\r\nb\r\n\r\nEND\r\n"},
    {"replace c 0 0 0\r\n", "NOT_STORED\r\n"},
    {"add c 0 0 1\r\n9", "STORED\r\n"},
    {"incr c 1", "10\r\n"},
    {"delete c noreply", ""},
    {"verbosity 1", "OK\r\n"},
    {"version", "VERSION test\r\n"},
    {"stats x", "STAT args x\r\nEND\r\n"},
    {"stats pieces", "STAT first 1\r\nSTAT args pieces\r\nEND\r\n"},
    {"nonsense", "ERROR type help\r\n"},
    {"nonsense", "ERROR\r\n"},
    {"", "CLIENT_ERROR bad command line format\r\n"},
    {"set a 0 0 2\r\nabcdef get a", "CLIENT_ERROR bad data chunk\r\n"},
    {"set a 0 0 70\r\n01234567890123456789012345678901234"
     "56789012345678901234567890123456789",
        "SERVER_ERROR object too large for cache\r\n"},
    {"get a", "END\r\n"},
    {"set kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
     "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
     "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
     "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
     " 0 0 7\r\nversion",
        "CLIENT_ERROR bad command line format\r\n"},
    {"show counters", "COUNTER weibo columns=2 records=1\r\nEND\r\n"},
    {"drop column weibo b b", "DELETED\r\n"},
    {"get weibo 1", "VALUE 1 0 1\r\n0\r\nEND\r\n"},
    {"drop counter weibo weibo", "DELETED\r\n"},
    {"get 1.cma", "END\r\n"},
    {"flush_all", "OK\r\n"},
    {"quit", ""},
};

enum { VALUE_MAX = 64 };

/* How a conversation is held. */
struct manner {
    uint64_t park_seed; /* 0: the store answers at once */
    size_t mark;
    unsigned budget;
};

static const struct manner plain = {0, DIALOG_MARK, DIALOG_BUDGET};

/* A conversation cut at n places, in order; the replies to *replies. */
static void
hold(const struct manner *manner, const struct buf *said, const size_t *cut,
    size_t n, struct buf *replies)
{
    struct store *inner = small_store(NULL);
    struct store *store = inner;
    struct dialog dialog;
    size_t at = 0;
    if (manner->park_seed != 0) {
        ck_assert_int_eq(park_create(inner, manner->park_seed, &store), 0);
    }
    dialog_open(&dialog, store, VALUE_MAX);
    dialog.mark = manner->mark;
    dialog.budget = manner->budget;
    if (manner->park_seed % 2 != 0) { /* says the same, and notes it */
        dialog.executor.rules.holds_reads = SESSION_HOLDS_READS;
    }
    for (size_t i = 0; i <= n && !dialog.is_closed; i++) {
        size_t end = i < n ? cut[i] : said->len;
        dialog_say(&dialog, said->data + at, end - at);
        at = end;
    }
    *replies = dialog.replies;
    dialog.replies = (struct buf){0};
    dialog_close(&dialog);
    if (manner->park_seed != 0) {
        park_destroy(&store);
    }
    store_verify(inner);
    store_destroy(&inner);
}

static void
expect_same(const struct manner *manner, const struct buf *said,
    const size_t *cut, size_t n, const struct buf *expected)
{
    struct buf replies;
    hold(manner, said, cut, n, &replies);
    bool same = replies.len == expected->len &&
        memcmp(replies.data, expected->data, replies.len) == 0;
    ck_assert_msg(same, "%zu cuts, first %zu, seed %llu: %zu bytes: %.*s", n,
        n > 0 ? cut[0] : 0, (unsigned long long)manner->park_seed, replies.len,
        (int)replies.len, replies.data);
    buf_fini(&replies);
}

static void
make_conversation(struct buf *said, struct buf *expected)
{
    join(conversation, COUNT_OF(conversation), said, expected);
    buf_add_text(said, "version\r\n"); /* nothing behind quit is answered */
}

START_TEST(test_conversation)
{
    struct dialog dialog;
    dialog_open(&dialog, small_store(NULL), VALUE_MAX);
    PLAY(&dialog, conversation);
    ck_assert(dialog.is_closed);
    close_new(&dialog);
}
END_TEST

START_TEST(test_every_cut)
{
    struct buf said = {0};
    struct buf expected = {0};
    make_conversation(&said, &expected);
    expect_same(&plain, &said, NULL, 0, &expected);
    for (size_t cut = 0; cut <= said.len; cut += SWEEP_STEP) {
        expect_same(&plain, &said, &cut, 1, &expected);
    }
    buf_fini(&said);
    buf_fini(&expected);
}
END_TEST

/* n cuts at random places, in order. */
static void
cut_at_random(uint64_t *random, size_t len, size_t *cut, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)random_below(random, len + 1);
        size_t k = i;
        for (; k > 0 && cut[k - 1] > at; k--) {
            cut[k] = cut[k - 1];
        }
        cut[k] = at;
    }
}

static void
play_at_random(bool parks)
{
    enum { ROUNDS = 150 / SWEEP_STEP, CUTS_MAX = 40 };
    static const size_t marks[] = {1, 20, 100, DIALOG_MARK};
    struct buf said = {0};
    struct buf expected = {0};
    uint64_t random = 42;
    make_conversation(&said, &expected);
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        size_t cut[CUTS_MAX];
        size_t n = (size_t)random_below(&random, CUTS_MAX + 1);
        struct manner manner = {parks ? i : 0,
            marks[random_below(&random, COUNT_OF(marks))],
            1 + (unsigned)random_below(&random, 4)};
        cut_at_random(&random, said.len, cut, n);
        expect_same(&manner, &said, cut, n, &expected);
    }
    buf_fini(&said);
    buf_fini(&expected);
}

START_TEST(test_small_turns)
{
    play_at_random(false);
}
END_TEST

START_TEST(test_parking_store)
{
    play_at_random(true);
}
END_TEST

START_TEST(test_byte_by_byte)
{
    struct buf said = {0};
    struct buf expected = {0};
    make_conversation(&said, &expected);
    size_t *cut = malloc(said.len * sizeof *cut);
    ck_assert_ptr_nonnull(cut);
    for (size_t i = 0; i < said.len; i++) {
        cut[i] = i;
    }
    expect_same(&plain, &said, cut, said.len, &expected);
    struct manner parked = {7, 1, 1};
    expect_same(&parked, &said, cut, said.len, &expected);
    free(cut);
    buf_fini(&said);
    buf_fini(&expected);
}
END_TEST

/* A get of n keys and its answer: cells, items that are there and that are
 * not, and records, mixed. */
static void
many_keys(unsigned n, struct buf *said, struct buf *expected)
{
    buf_add_text(said, "get");
    for (unsigned i = 0; i < n; i++) {
        switch (i % 4) {
        case 0:
            buf_addf(said, " %u.cntcm", i);
            buf_addf(expected, "VALUE %u.cntcm 0 1\r\n0\r\n", i);
            break;
        case 1:
            buf_add_text(said, " item");
            buf_add_text(expected, "VALUE item 0 5\r\nvalue\r\n");
            break;
        case 2:
            buf_addf(said, " none%u", i);
            break;
        default:
            buf_addf(said, " %u.weibo", i);
            buf_addf(expected, "VALUE %u.weibo 0 5\r\n0 0 0\r\n", i);
            break;
        }
    }
    buf_add_text(said, "\r\n");
    buf_add_text(expected, "END\r\n");
    ck_assert(!said->failed && !expected->failed);
}

START_TEST(test_many_keys)
{
    enum { KEYS = 10000, MARK = 4096, REPLY = 64 };
    struct dialog dialog;
    struct buf said = {0};
    struct buf expected = {0};
    open_new(&dialog);
    declare(&dialog);
    exchange(&dialog, "set item 0 0 5\r\nvalue", "STORED\r\n");
    many_keys(KEYS, &said, &expected);
    dialog.mark = MARK;
    dialog.budget = 1;
    dialog_say(&dialog, said.data, said.len);
    ck_assert_uint_eq(dialog.replies.len, expected.len);
    ck_assert_mem_eq(dialog.replies.data, expected.data, expected.len);
    ck_assert_uint_le(dialog.out_bytes_max, MARK + REPLY);
    ck_assert_uint_gt(dialog.n_full, 0);
    ck_assert_uint_gt(dialog.n_yield, 0);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_cmd_get), KEYS);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_get_misses), KEYS / 4);
    buf_fini(&said);
    buf_fini(&expected);
    close_new(&dialog);
}
END_TEST

/* The largest items, many times in one request: one of them at most is in the
 * reply buffer above its mark. */
START_TEST(test_many_large_items)
{
    enum { VALUE = 1000 * 1000, KEYS = 100, OVERHEAD = 64 };
    struct dialog dialog;
    struct buf said = {0};
    open_new(&dialog);
    buf_addf(&said, "set big 0 0 %d\r\n", VALUE);
    memset(buf_reserve(&said, VALUE), 'v', VALUE);
    said.len += VALUE;
    buf_add_text(&said, "\r\n");
    dialog_say(&dialog, said.data, said.len);
    expect_replies(&dialog, "set big", "STORED\r\n");
    buf_clear(&said);
    buf_add_text(&said, "get");
    for (int i = 0; i < KEYS; i++) {
        buf_add_text(&said, " big");
    }
    buf_add_text(&said, "\r\n");
    dialog_say(&dialog, said.data, said.len);
    ck_assert_uint_eq(dialog.n_full, KEYS - 1);
    ck_assert_uint_eq(dialog.replies.len,
        KEYS * (strlen("VALUE big 0 1000000\r\n\r\n") + VALUE) + 5);
    ck_assert_uint_le(dialog.out_bytes_max, DIALOG_MARK + VALUE + OVERHEAD);
    buf_fini(&said);
    close_new(&dialog);
}
END_TEST

/* A whole line of keys to the last byte that is let pass. */
START_TEST(test_longest_line)
{
    struct dialog dialog;
    struct buf said = {0};
    open_new(&dialog);
    declare(&dialog);
    buf_add_text(&said, "get");
    while (said.len + strlen(" 1.cntcm\r\n") <= TEXT_GET_LINE_MAX) {
        buf_add_text(&said, " 1.cntcm");
    }
    size_t keys = (said.len - 3) / 8;
    buf_add_text(&said, "\r\n");
    dialog.budget = 1 << 20;
    dialog.mark = 1 << 20;
    dialog_say(&dialog, said.data, said.len);
    ck_assert(!dialog.is_closed);
    ck_assert_uint_eq(
        dialog.replies.len, keys * strlen("VALUE 1.cntcm 0 1\r\n0\r\n") + 5);
    buf_fini(&said);
    close_new(&dialog);
}
END_TEST

/* One that is longer is told so, and closed when all of it has come. */
START_TEST(test_too_long_line)
{
    enum { LEN = TEXT_GET_LINE_MAX + 1 };
    static const char told[] = "CLIENT_ERROR line too long\r\n";
    struct dialog dialog;
    char *line = malloc(LEN);
    ck_assert_ptr_nonnull(line);
    memset(line, ' ', LEN);
    memcpy(line, "get a", 5);
    open_new(&dialog);
    dialog_say(&dialog, line, LEN);
    ck_assert(!dialog.is_closed);
    dialog_say(&dialog, line, LEN);
    ck_assert(!dialog.is_closed);
    dialog_say(&dialog, "b\r\nversion\r\n", 12);
    ck_assert(dialog.is_closed);
    ck_assert_uint_eq(dialog.replies.len, sizeof told - 1);
    ck_assert_int_eq(memcmp(dialog.replies.data, told, sizeof told - 1), 0);
    close_new(&dialog);
    open_new(&dialog);
    line[LEN - 1] = '\n';
    dialog_say(&dialog, line, LEN);
    ck_assert(dialog.is_closed);
    ck_assert_uint_eq(dialog.replies.len, sizeof told - 1);
    close_new(&dialog);
    free(line);
}
END_TEST

START_TEST(test_budget)
{
    enum { REQUESTS = 100, BUDGET = 7 };
    static const char line[] = "incr 1.cntcm 1\r\n";
    struct dialog dialog;
    open_new(&dialog);
    declare(&dialog);
    for (int i = 0; i < REQUESTS; i++) {
        dialog_add(&dialog, line, sizeof line - 1);
    }
    dialog.budget = BUDGET;
    for (uint64_t done = 0; done < REQUESTS;) {
        enum session_state state = dialog_step(&dialog);
        uint64_t now = metric_of(dialog.metrics, METRIC_incr_hits);
        ck_assert_uint_le(now - done, BUDGET);
        done = now;
        ck_assert_int_eq(
            state, done < REQUESTS ? SESSION_YIELD : SESSION_READY);
    }
    /* none without a budget */
    dialog.budget = 0;
    dialog_add(&dialog, line, sizeof line - 1);
    ck_assert_int_eq(dialog_step(&dialog), SESSION_YIELD);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_incr_hits), REQUESTS);
    close_new(&dialog);
}
END_TEST

/* A full reply buffer begins nothing, and goes on with nothing either. */
START_TEST(test_full_stays_full)
{
    static const char said[] = "get a a a\r\nversion\r\n";
    enum { MARK = 10 };
    struct dialog dialog;
    struct buf out = {0};
    size_t at = 0;
    open_new(&dialog);
    exchange(&dialog, "set a 0 0 1\r\nx", "STORED\r\n");
    qsbr_online(dialog.store->qsbr, &dialog.reader);
    for (int i = 0; i < 5; i++) {
        unsigned budget = 10;
        size_t consumed;
        ck_assert_int_eq(
            session_run(&dialog.session, said + at, sizeof said - 1 - at, MARK,
                &budget, &out, &consumed),
            SESSION_FULL);
        at += consumed;
        ck_assert_uint_eq(out.len, strlen("VALUE a 0 1\r\nx\r\n"));
        ck_assert_uint_eq(at, 0); /* its bytes are still needed */
    }
    qsbr_offline(&dialog.reader);
    dialog_say(&dialog, said, sizeof said - 1);
    expect_replies(&dialog, said,
        "VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\nVERSION test\r\n");
    buf_fini(&out);
    close_new(&dialog);
}
END_TEST

/* Ended in the middle of a get: its job and its pins go too. */
START_TEST(test_fini_in_a_full_get)
{
    static const char get[] = "get a 1.cntcm a a\r\n";
    struct dialog dialog;
    open_new(&dialog);
    declare(&dialog);
    exchange(&dialog, "set a 0 0 1\r\nx", "STORED\r\n");
    dialog.mark = 1;
    dialog_add(&dialog, get, sizeof get - 1);
    ck_assert_int_eq(dialog_step(&dialog), SESSION_FULL);
    ck_assert_ptr_nonnull(dialog.session.job);
    close_new(&dialog);
}
END_TEST

START_TEST(test_close)
{
    static const struct exchange closing[] = {
        {"version\r\nquit\r\nversion", "VERSION test\r\n"},
        {"version\r\nGET / HTTP/1.1\r\nHost: x", "VERSION test\r\n"},
        {"set a 0 0 1\r\nx\r\nquit now", "STORED\r\n"},
    };
    for (size_t i = 0; i < COUNT_OF(closing); i++) {
        struct dialog dialog;
        open_new(&dialog);
        play(&dialog, &closing[i], 1);
        ck_assert(dialog.is_closed);
        ck_assert_uint_eq(dialog.in.len, 0);
        close_new(&dialog);
    }
}
END_TEST

/* Told to end: what is under way is finished, and nothing is begun. */
START_TEST(test_end)
{
    static const char said[] = "get a a\r\nversion\r\n";
    struct dialog dialog;
    open_new(&dialog);
    exchange(&dialog, "set a 0 0 1\r\nx", "STORED\r\n");
    dialog.mark = 1;
    dialog_add(&dialog, said, sizeof said - 1);
    ck_assert_int_eq(dialog_step(&dialog), SESSION_FULL);
    session_end(&dialog.session);
    dialog_say(&dialog, "", 0);
    ck_assert(dialog.is_closed);
    expect_replies(
        &dialog, said, "VALUE a 0 1\r\nx\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    close_new(&dialog);
}
END_TEST

START_TEST(test_line_too_long)
{
    enum { LEN = 9000 };
    char bytes[LEN];
    struct dialog dialog;
    open_new(&dialog);
    memset(bytes, 'x', LEN);
    exchange(&dialog, "version", "VERSION test\r\n");
    dialog_say(&dialog, bytes, LEN);
    ck_assert(dialog.is_closed);
    ck_assert_uint_eq(dialog.replies.len, 0);
    close_new(&dialog);
}
END_TEST

/* What is skipped is not kept: a refused value may be of any length. */
START_TEST(test_swallows_in_pieces)
{
    enum { VALUE = 10 << 20, PIECE = 4096 };
    char piece[PIECE];
    char line[64];
    struct dialog dialog;
    open_new(&dialog);
    memset(piece, '\n', PIECE);
    snprintf(line, sizeof line, "set a 0 0 %d\r\n", VALUE - 2);
    dialog_say(&dialog, line, strlen(line));
    for (int sent = 0; sent < VALUE; sent += PIECE) {
        ck_assert(session_waits_for_bytes(&dialog.session, dialog.in.len));
        dialog_say(&dialog, piece, PIECE);
        ck_assert_uint_eq(dialog.in.len, 0);
    }
    ck_assert(!session_waits_for_bytes(&dialog.session, dialog.in.len));
    expect_replies(
        &dialog, "set a", "SERVER_ERROR object too large for cache\r\n");
    exchange(&dialog, "version", "VERSION test\r\n");
    close_new(&dialog);
}
END_TEST

START_TEST(test_waits_for_bytes)
{
    struct dialog dialog;
    open_new(&dialog);
    ck_assert(!session_waits_for_bytes(&dialog.session, 0));
    dialog_say(&dialog, "set a 0 0 5\r\nhe", 15);
    ck_assert_uint_eq(dialog.in.len, 15);
    ck_assert(session_waits_for_bytes(&dialog.session, dialog.in.len));
    dialog_say(&dialog, "llo\r\n", 5);
    ck_assert_uint_eq(dialog.in.len, 0);
    ck_assert(!session_waits_for_bytes(&dialog.session, 0));
    dialog_say(&dialog, "set a 0 0 1\r\nabcd", 17);
    ck_assert(session_waits_for_bytes(&dialog.session, dialog.in.len));
    dialog_say(&dialog, "\n", 1);
    ck_assert(!session_waits_for_bytes(&dialog.session, dialog.in.len));
    expect_replies(
        &dialog, "set", "STORED\r\nCLIENT_ERROR bad data chunk\r\n");
    close_new(&dialog);
}
END_TEST

/* So many lines in a row that are no request end the conversation; one right
 * request in between, and they begin anew. */
START_TEST(test_errors_in_a_row)
{
    struct dialog dialog;
    open_new(&dialog);
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < SESSION_ERRORS_MAX; i++) {
            exchange(&dialog, i % 2 ? "no sense" : "get",
                i % 2 ? "ERROR\r\n"
                      : "CLIENT_ERROR bad command line format\r\n");
        }
        exchange(&dialog, "get a", "END\r\n");
    }
    for (int i = 1; i < SESSION_ERRORS_MAX; i++) {
        exchange(
            &dialog, "nonsense", i == 1 ? "ERROR type help\r\n" : "ERROR\r\n");
    }
    ck_assert_int_eq(dialog.session.fault, 0);
    ck_assert(!dialog.is_closed);
    dialog_say(&dialog, "nonsense\r\nversion\r\n", 19);
    expect_replies(&dialog, "the last one", "ERROR\r\n");
    ck_assert(dialog.is_closed);
    ck_assert_int_eq(dialog.session.fault, ERR_ERRORS);
    close_new(&dialog);
}
END_TEST

/* Dumps may begin. */
static const char *
allow_all(struct admin *admin, const struct text_admin *command)
{
    (void)admin, (void)command;
    return NULL;
}

static unsigned
lines_of(const struct buf *text)
{
    unsigned n = 0;
    for (size_t i = 0; i < text->len; i++) {
        n += text->data[i] == '\n';
    }
    return n;
}

/* A dump of all items while n_others long replies are under way beside it: the
 * most lines that a turn has shown. */
static unsigned
dump_beside(struct dialog *dialog, unsigned n_others, unsigned n_items)
{
    static const char line[] = "lru_crawler metadump all\r\n";
    enum session_state state = SESSION_YIELD;
    unsigned most = 0, all = 0;
    dialog->executor.n_long += n_others;
    dialog_add(dialog, line, sizeof line - 1);
    while (state == SESSION_YIELD) {
        buf_clear(&dialog->replies);
        state = dialog_step(dialog);
        unsigned n = lines_of(&dialog->replies);
        most = n > most ? n : most;
        all += n;
    }
    ck_assert_int_eq(state, SESSION_READY);
    ck_assert_uint_eq(all, n_items + 2); /* OK and END */
    buf_clear(&dialog->replies);
    dialog->executor.n_long -= n_others;
    ck_assert_uint_eq(dialog->executor.n_long, 0);
    return most;
}

/* The more long replies there are, the less one of them shows a turn. */
START_TEST(test_dumps_share)
{
    enum { N_ITEMS = 2000, OTHERS = 99, ALONE_MIN = 200, SHARE_MAX = 64 };
    struct dialog dialog;
    char line[64];
    open_new(&dialog);
    dialog.admin.command_fn = allow_all;
    for (int i = 0; i < N_ITEMS; i++) {
        int n =
            snprintf(line, sizeof line, "set key%d 0 0 1 noreply\r\n1\r\n", i);
        dialog_say(&dialog, line, (size_t)n);
    }
    unsigned alone = dump_beside(&dialog, 0, N_ITEMS);
    unsigned shared = dump_beside(&dialog, OTHERS, N_ITEMS);
    ck_assert_uint_ge(alone, ALONE_MIN);
    ck_assert_uint_le(shared, SHARE_MAX);
    close_new(&dialog);
}
END_TEST

/* Packets are refused as many as come; what is none ends it. */
START_TEST(test_packets_refused)
{
    enum { HEADER = 24, UNKNOWN = 0x99, NOOP = 0x0a };
    char packet[HEADER] = {(char)0x80, (char)UNKNOWN};
    struct dialog dialog;
    open_new(&dialog);
    for (int i = 0; i < 2 * SESSION_ERRORS_MAX; i++) {
        dialog_say(&dialog, packet, HEADER);
        ck_assert(!dialog.is_closed);
    }
    packet[1] = NOOP;
    dialog_say(&dialog, packet, HEADER);
    ck_assert(!dialog.is_closed);
    ck_assert_int_eq(dialog.session.fault, 0);
    packet[0] = 'g';
    dialog_say(&dialog, packet, HEADER);
    ck_assert(dialog.is_closed);
    ck_assert_int_eq(dialog.session.fault, ERR_NO_PACKET);
    close_new(&dialog);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_dumps_share, test_packets_refused,
        test_conversation, test_every_cut, test_small_turns,
        test_parking_store, test_byte_by_byte, test_many_keys,
        test_many_large_items, test_longest_line, test_too_long_line,
        test_budget, test_full_stays_full, test_fini_in_a_full_get, test_close,
        test_end, test_line_too_long, test_swallows_in_pieces,
        test_waits_for_bytes, test_errors_in_a_row};
    return run_tests("session", tests, COUNT_OF(tests));
}
