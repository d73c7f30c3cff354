/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_get: gets that follow one another are looked up together, and
 * nobody can tell by the replies. What is said here is told once line by line,
 * and then in one stream, cut at every place, with small turns and small reply
 * buffers, and before a store that parks calls. */
#include "base/err.h"
#include "base/sanitizer.h"
#include "lib/park.h"
#include "proto/reply.h"
#include "session/exec.h"
#include "unit/held_help.h"

#include <stdio.h>

#define KEY_50 "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define KEY_250 KEY_50 KEY_50 KEY_50 KEY_50 KEY_50
#define BAD_FORMAT "CLIENT_ERROR bad command line format\r\n"
#define GONE_ID "18446744073709551615"
/* Of weibo's record 1, 11 12 13. */
#define CAS_OF_RECORD "9209874518683412254"

static const struct exchange conversation[] = {
    {"set weibo 1 11 12 13", "STORED\r\n"},
    {"set weibo 1234567890123456 1 22 333", "STORED\r\n"},
    {"set weibo " GONE_ID " 4294967295 0 1000", "STORED\r\n"},
    {"set a 7 0 5\r\nhello", "STORED\r\n"},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"get 1.cntrn", "VALUE 1.cntrn 0 2\r\n12\r\nEND\r\n"},
    {"gets 1.cntan", "VALUE 1.cntan 0 2 14\r\n13\r\nEND\r\n"},
    {"get 2.cntcm", "VALUE 2.cntcm 0 1\r\n0\r\nEND\r\n"},
    {"get a", "VALUE a 7 5\r\nhello\r\nEND\r\n"},
    {"get b", "END\r\n"},
    {"get 1.cntcm a 1.weibo b {1}.cntan 1|#|.cntrn",
        "VALUE 1.cntcm 0 2\r\n11\r\nVALUE a 7 5\r\nhello\r\n"
        "VALUE 1.weibo 0 8\r\n11 12 13\r\nVALUE {1}.cntan 0 2\r\n13\r\n"
        "VALUE 1|#|.cntrn 0 2\r\n12\r\nEND\r\n"},
    {"get   1234567890123456.cntcm   1234567890123456.cntrn  ",
        "VALUE 1234567890123456.cntcm 0 1\r\n1\r\n"
        "VALUE 1234567890123456.cntrn 0 2\r\n22\r\nEND\r\n"},
    {"gets 1234567890123456.attitude_num " GONE_ID ".cntcm",
        "VALUE 1234567890123456.attitude_num 0 3 334\r\n333\r\n"
        "VALUE " GONE_ID ".cntcm 0 10 4294967296\r\n4294967295\r\nEND\r\n"},
    {"get " GONE_ID ".attitude_num",
        "VALUE " GONE_ID ".attitude_num 0 4\r\n1000\r\nEND\r\n"},
    {"mg 1.cntcm v", "VA 2\r\n11\r\n"},
    {"mg 1.cntrn v q k O77", "VA 2 k1.cntrn O77\r\n12\r\n"},
    {"get 3.oa", "END\r\n"}, /* absent=miss */
    {"mg 3.oa v q", ""},
    {"mg 3.oa v", "EN\r\n"},
    {"get 3.oa 1.cntcm 3.oa 3.opt", "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"mg 1.weibo s v c", "VA 8 s8 c" CAS_OF_RECORD "\r\n11 12 13\r\n"},
    {"mg MS5jbnRjbQ== b k v", "VA 2 kMS5jbnRjbQ== b\r\n11\r\n"},
    {"mn", "MN\r\n"},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"incr 1.cntcm 1", "12\r\n"}, /* a change waits, and is waited for */
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"get a", "VALUE a 7 5\r\nhello\r\nEND\r\n"},
    {"set a 0 0 1\r\n9", "STORED\r\n"},
    {"get a", "VALUE a 0 1\r\n9\r\nEND\r\n"},
    {"mg a v", "VA 1\r\n9\r\n"},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"mg a T0 v", "VA 1\r\n9\r\n"},
    {"mg 1.cntcm T0 v", "VA 2\r\n12\r\n"},
    {"mg 1.cntcm T9 v",
        "CLIENT_ERROR a counter does not expire, send exptime 0\r\n"},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"gat 0 1.cntcm a",
        "VALUE 1.cntcm 0 2\r\n12\r\nVALUE a 0 1\r\n9\r\nEND"
        "\r\n"},
    {"gat 9 a 1.cntcm",
        "CLIENT_ERROR a counter does not expire, send exptime 0\r\n"},
    {"touch 1.cntcm 0", "TOUCHED\r\n"},
    {"get 1.cntcm " KEY_250 "k 1.cntcm", BAD_FORMAT},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"get 1.cntcm " KEY_250, "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"get", BAD_FORMAT},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"get weibo 1 1.cntrn",
        "VALUE 1 0 8\r\n12 12 13\r\nVALUE 1.cntrn 0 2\r\n"
        "12\r\nEND\r\n"},
    {"get weibo 1.oa", "CLIENT_ERROR no such column in that counter\r\n"},
    {"get 1.cntcm", "VALUE 1.cntcm 0 2\r\n12\r\nEND\r\n"},
    {"delete 1.cntcm noreply", ""},
    {"get 1.cntcm", "VALUE 1.cntcm 0 1\r\n0\r\nEND\r\n"},
    {"drop column weibo repost_num repost_num", "DELETED\r\n"},
    {"get 1.cntrn 1.cntan", "VALUE 1.cntan 0 2\r\n13\r\nEND\r\n"},
    {"add column weibo again suffix=cntrn default=7", "STORED\r\n"},
    {"get 1.cntrn 1.cntan",
        "VALUE 1.cntrn 0 1\r\n7\r\nVALUE 1.cntan 0 2\r\n13\r\nEND\r\n"},
    {"get 1.cntan", "VALUE 1.cntan 0 2\r\n13\r\nEND\r\n"},
    {"quit", ""},
};

/* Of all cuts, those that a build has time for; the plain one has for all. */
enum {
    CUT_STEP = SANITIZER_ADDRESS || SANITIZER_THREAD ? 19 : 1,
    ROUNDS = SANITIZER_ADDRESS || SANITIZER_THREAD ? 60 : 300
};

/* A get of n keys, of which 1 has a value. */
static void
add_get(struct buf *said, struct buf *expected, unsigned n)
{
    buf_add_text(said, "get");
    for (unsigned i = 0; i < n; i++) {
        buf_addf(said, " %u.cntan", i);
        buf_addf(expected, "VALUE %u.cntan 0 %s\r\n", i,
            i == 1 ? "2\r\n13" : "1\r\n0");
    }
    buf_add_text(said, "\r\n");
    buf_add_text(expected, "END\r\n");
}

/* Requests of which each fits into a slice, but not two, and one with more
 * keys than a slice takes, between small ones. */
static void
add_long_gets(struct buf *said, struct buf *expected)
{
    static const unsigned n[] = {2, EXEC_SLICE_KEYS_MAX - 20,
        EXEC_SLICE_KEYS_MAX - 10, 2 * EXEC_SLICE_KEYS_MAX + 1, 2};
    for (size_t i = 0; i < COUNT_OF(n); i++) {
        add_get(said, expected, n[i]);
    }
}

static void
make_stream(struct buf *said, struct buf *expected)
{
    size_t n = COUNT_OF(conversation) - 1;
    join(declarations, COUNT_OF(declarations), said, expected);
    join(conversation, n, said, expected);
    add_long_gets(said, expected);
    join(&conversation[n], 1, said, expected);
    ck_assert(!said->failed && !expected->failed);
}

START_TEST(test_line_by_line)
{
    struct dialog dialog;
    open_new(&dialog);
    declare(&dialog);
    PLAY(&dialog, conversation);
    ck_assert(dialog.is_closed);
    close_new(&dialog);
}
END_TEST

/* How a stream is told. */
struct manner {
    size_t cut;
    size_t mark;
    unsigned budget;
    uint64_t park_seed; /* 0: the store answers at once */
};

static void
expect_same(const struct manner *manner, const struct buf *said,
    const struct buf *expected)
{
    struct store *inner = small_store(NULL);
    struct store *store = inner;
    struct dialog dialog;
    if (manner->park_seed != 0) {
        ck_assert_int_eq(park_create(inner, manner->park_seed, &store), 0);
    }
    dialog_open(&dialog, store, SMALL_STORE_ITEM_BYTES);
    dialog.mark = manner->mark;
    dialog.budget = manner->budget;
    if (manner->park_seed % 4 == 1) { /* says the same, and notes it */
        dialog.executor.rules.holds_reads = SESSION_HOLDS_READS;
    }
    dialog_say(&dialog, said->data, manner->cut);
    if (!dialog.is_closed) {
        dialog_say(&dialog, said->data + manner->cut, said->len - manner->cut);
    }
    ck_assert(dialog.is_closed);
    size_t same = 0;
    while (same < dialog.replies.len && same < expected->len &&
        dialog.replies.data[same] == expected->data[same]) {
        same++;
    }
    ck_assert_msg(same == dialog.replies.len && same == expected->len,
        "cut %zu mark %zu budget %u seed %llu: byte %zu, %.*s", manner->cut,
        manner->mark, manner->budget, (unsigned long long)manner->park_seed,
        same,
        dialog.replies.len - same < 80 ? (int)(dialog.replies.len - same) : 80,
        dialog.replies.data + same);
    ck_assert_uint_le(dialog.out_bytes_max, manner->mark + 512);
    dialog_close(&dialog);
    if (manner->park_seed != 0) {
        park_destroy(&store);
    }
    store_verify(inner);
    store_destroy(&inner);
}

START_TEST(test_every_cut)
{
    struct buf said = {0};
    struct buf expected = {0};
    make_stream(&said, &expected);
    for (size_t cut = 0; cut <= said.len; cut += CUT_STEP) {
        struct manner manner = {cut, DIALOG_MARK, 1000, 0};
        expect_same(&manner, &said, &expected);
    }
    buf_fini(&said);
    buf_fini(&expected);
}
END_TEST

START_TEST(test_small_turns)
{
    static const size_t marks[] = {1, 20, 100, 700, DIALOG_MARK};
    static const unsigned budgets[] = {1, 2, 3, 5, DIALOG_BUDGET, 1000};
    struct buf said = {0};
    struct buf expected = {0};
    uint64_t random = 7;
    make_stream(&said, &expected);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct manner manner = {
            .cut = (size_t)random_below(&random, said.len + 1),
            .mark = marks[random_below(&random, COUNT_OF(marks))],
            .budget = budgets[random_below(&random, COUNT_OF(budgets))],
            .park_seed = i % 2 == 0 ? 0 : i};
        expect_same(&manner, &said, &expected);
    }
    buf_fini(&said);
    buf_fini(&expected);
}
END_TEST

static const struct batching batches[] = {
    {"get 1.cntcm\r\nget 1.cntrn\r\ngets 9.cntcm a 1.weibo\r\n", 1,
        "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\nVALUE 1.cntrn 0 2\r\n12\r\nEND\r\n"
        "VALUE 9.cntcm 0 1 1\r\n0\r\nVALUE 1.weibo 0 8 " CAS_OF_RECORD
        "\r\n11 12 13\r\n"
        "END\r\n"},
    {"mg 1.cntcm v\r\nmg 3.oa q v\r\nget 1.cntrn\r\nmg 1.cntan q v\r\nmn\r\n",
        1,
        "VA 2\r\n11\r\nVALUE 1.cntrn 0 2\r\n12\r\nEND\r\nVA 2\r\n13\r\n"
        "MN\r\n"},
    {"get a\r\nget b\r\n", 0, "END\r\nEND\r\n"},
    /* an item's meta get, and what gives a new exptime, wait for the others */
    {"mg 1.cntcm v\r\nmg a v\r\nmg 1.cntcm v\r\n", 2,
        "VA 2\r\n11\r\nEN\r\nVA 2\r\n11\r\n"},
    {"mg 1.cntcm v\r\nmg 1.cntcm T0 v\r\nget 1.cntcm\r\n", 3,
        "VA 2\r\n11\r\nVA 2\r\n11\r\nVALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"get 1.cntcm\r\nincr 1.cntcm 1\r\nincr 1.cntcm 1\r\nget 1.cntcm\r\n"
     "get 1.cntcm\r\n",
        3,
        "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n12\r\n13\r\n"
        "VALUE 1.cntcm 0 2\r\n13\r\nEND\r\nVALUE 1.cntcm 0 2\r\n13\r\nEND"
        "\r\n"},
    {"get 1.cntrn\r\nget weibo 1\r\nget 1.cntrn\r\n", 3,
        "VALUE 1.cntrn 0 2\r\n12\r\nEND\r\nVALUE 1 0 8\r\n13 12 13\r\nEND\r\n"
        "VALUE 1.cntrn 0 2\r\n12\r\nEND\r\n"},
    {"get 1.cntrn\r\nget 1.cntrn " KEY_250 "k\r\nget 1.cntrn\r\n", 2,
        "VALUE 1.cntrn 0 2\r\n12\r\nEND\r\n" BAD_FORMAT
        "VALUE 1.cntrn 0 2\r\n12\r\nEND\r\n"},
    {"get 1.cntrn\r\nquit\r\n", 1, "VALUE 1.cntrn 0 2\r\n12\r\nEND\r\n"},
};

START_TEST(test_calls)
{
    struct held_dialog held;
    open_held(&held);
    play_batches(&held, batches, COUNT_OF(batches));
    close_held(&held);
}
END_TEST

/* n gets of n_keys keys in one step of this budget take so many calls. */
static void
expect_calls(struct held_dialog *held, unsigned n, unsigned n_keys,
    unsigned budget, unsigned n_calls)
{
    struct buf said = {0};
    held->dialog.budget = budget;
    for (unsigned i = 0; i < n; i++) {
        buf_add_text(&said, "get");
        for (unsigned k = 0; k < n_keys; k++) {
            buf_addf(&said, " %u.cntcm", i * n_keys + k + 10);
        }
        buf_add_text(&said, "\r\n");
    }
    dialog_add(&held->dialog, said.data, said.len);
    unsigned calls = step_through(held);
    ck_assert_msg(calls == n_calls, "%u calls of %u x %u", calls, n, n_keys);
    buf_fini(&said);
    buf_clear(&held->dialog.replies);
}

START_TEST(test_slices)
{
    struct held_dialog held;
    uint64_t keys = 0;
    open_held(&held);
    expect_calls(&held, EXEC_SLICE_KEYS_MAX, 1, 1000, 1);
    expect_calls(&held, EXEC_SLICE_KEYS_MAX + 1, 1, 1000, 2);
    expect_calls(&held, 20, 1, 1, 1);    /* a slice is one of the budget */
    expect_calls(&held, 3, 50, 1000, 2); /* one is never cut for others */
    expect_calls(&held, 1, 2 * EXEC_SLICE_KEYS_MAX, 1000, 2);
    expect_calls(&held, 2, EXEC_SLICE_KEYS_MAX + 1, 1000, 4);
    keys = 4 * (uint64_t)EXEC_SLICE_KEYS_MAX + 1 + 20 + 150 +
        2 * (uint64_t)EXEC_SLICE_KEYS_MAX + 2;
    ck_assert_uint_eq(metric_of(held.dialog.metrics, METRIC_cmd_get), keys);
    ck_assert_uint_eq(metric_of(held.dialog.metrics, METRIC_get_hits), keys);
    ck_assert_uint_eq(metric_of(held.dialog.metrics, METRIC_get_misses), 0);
    close_held(&held);
}
END_TEST

/* A column goes between the look at it and the reply. */
START_TEST(test_dropped_under_gets)
{
    static const char said[] =
        "get 1.cntcm\r\nget 1.cntrn\r\nmg 1.cntrn v\r\nget 1.weibo\r\n";
    struct held_dialog held;
    open_held(&held);
    dialog_add(&held.dialog, said, sizeof said - 1);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    exchange(
        &held.other, "drop column weibo repost_num repost_num", "DELETED\r\n");
    ck_assert_uint_eq(hold_release(held.hold), 1);
    dialog_wait(&held.dialog);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(&held.dialog, said,
        "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\nEND\r\nEN\r\n"
        "VALUE 1.weibo 0 5\r\n11 13\r\nEND\r\n");
    close_held(&held);
}
END_TEST

/* A store that cannot read the cells of id 66. */
struct blind {
    struct store store; /* first */
    struct store *inner;
};

static enum store_answer
blind_get(struct store *store, struct store_get *get)
{
    struct blind *blind = (struct blind *)store;
    enum store_answer answer = store_get(blind->inner, get);
    for (uint32_t i = 0; i < get->n; i++) {
        if (get->key[i].id == 66) {
            get->state[i] = CELL_UNREADABLE;
        }
    }
    return answer;
}

/* What is no get is the store's behind it. */
static int
blind_fault(struct store *store)
{
    return store_fault(((struct blind *)store)->inner);
}

/* Only the request that has asked for it is told. */
START_TEST(test_unreadable)
{
    static const char said[] =
        "get 1.cntcm\r\nget 2.cntcm 66.cntcm 3.cntcm\r\nget 66.weibo\r\n"
        "mg 66.cntcm v\r\nget 4.cntcm\r\n";
    struct store *inner = small_store(NULL);
    struct store_calls calls = *inner->calls;
    struct blind blind = {.store = *inner, .inner = inner};
    struct dialog dialog;
    char expected[512];
    calls.get = blind_get;
    calls.fault = blind_fault;
    blind.store.calls = &calls;
    dialog_open(&dialog, inner, SMALL_STORE_ITEM_BYTES);
    declare(&dialog);
    dialog_close(&dialog);
    dialog_open(&dialog, &blind.store, SMALL_STORE_ITEM_BYTES);
    struct buf text = {0};
    reply__error(&text, ERR_COLD_READ);
    int len = (int)text.len;
    snprintf(expected, sizeof expected,
        "VALUE 1.cntcm 0 1\r\n0\r\nEND\r\n"
        "VALUE 2.cntcm 0 1\r\n0\r\nVALUE 3.cntcm 0 1\r\n0\r\n%.*s%.*s%.*s"
        "VALUE 4.cntcm 0 1\r\n0\r\nEND\r\n",
        len, text.data, len, text.data, len, text.data);
    dialog_say(&dialog, said, sizeof said - 1);
    expect_replies(&dialog, said, expected);
    buf_fini(&text);
    dialog_close(&dialog);
    store_destroy(&inner);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_line_by_line, test_every_cut,
        test_small_turns, test_calls, test_slices, test_dropped_under_gets,
        test_unreadable};
    return run_tests("gets", tests, COUNT_OF(tests));
}
