/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_mark: when sources are read, what is so when they change
 * meanwhile or are gone, and gets of many keys. What commands on marks answer
 * is in t/proto/marks.seq. */
#include "session/exec.h"
#include "unit/held_help.h"

#include <inttypes.h>
#include <stdio.h>

#define GONE "CLIENT_ERROR the counter or column has been dropped\r\n"
#define UNREADABLE                                                            \
    "SERVER_ERROR a counter cannot be read from the disk, see the server's "  \
    "log\r\n"

#define MORE_WORDS                                                            \
    "CLIENT_ERROR unknown words: a counter takes tx=PRODUCER:NUMBER there\r\n"

static const struct exchange marks[] = {
    {"add counter board", "STORED\r\n"},
    {"add column board bid primarykey", "STORED\r\n"},
    {"add column board dot max=40", "STORED\r\n"},
    {"add column board late", "STORED\r\n"},
    {"add counter user", "STORED\r\n"},
    {"add column user uid primarykey", "STORED\r\n"},
    {"add column user at", "STORED\r\n"},
    {"add column user atseen marks=at unread=unat", "STORED\r\n"},
    {"add column user dotseen marks=1.dot unread=undot", "STORED\r\n"},
    {"add column user lseen marks=1.late unread=unl unmarked=none forget=9",
        "STORED\r\n"},
};

static void
open_marks(struct held_dialog *held)
{
    open_held(held);
    PLAY(&held->other, marks);
    exchange(&held->other, "set board 1 dot=10 late=20", "STORED\r\n");
    exchange(&held->other, "set user 7 at=30 atseen=5", "STORED\r\n");
}

#define SET(key, value) PUT(key, value) "\r\n"
#define PUT(key, value) "set " key " 0 0 2\r\n" value

/* A call for all sources, and only where there are fixed ones; changes of what
 * a source is in are done before it is read. */
START_TEST(test_calls)
{
    static const struct batching batches[] = {
        {"get 7.unat 7.at 7.atseen\r\n", 1,
            "VALUE 7.unat 0 2\r\n25\r\nVALUE 7.at 0 2\r\n30\r\n"
            "VALUE 7.atseen 0 1\r\n5\r\nEND\r\n"},
        {"get 7.undot 8.undot 7.unl\r\nmg 9.undot v\r\nget 1.dot\r\n", 1,
            "VALUE 7.undot 0 2\r\n10\r\nVALUE 8.undot 0 2\r\n10\r\n"
            "VALUE 7.unl 0 1\r\n0\r\nEND\r\nVA 2\r\n10\r\n"
            "VALUE 1.dot 0 2\r\n10\r\nEND\r\n"},
        {SET("7.atseen", "11") "incr 7.at 1\r\n" SET(
             "7.atseen", "99") "incr 7.atseen 0\r\n",
            1, "STORED\r\n31\r\nSTORED\r\n31\r\n"},
        {SET("7.dotseen", "99") SET("8.dotseen", "88")
                SET("7.lseen", "77") "incr 7.at 1\r\n",
            2, "STORED\r\nSTORED\r\nSTORED\r\n32\r\n"},
        {SET("1.dot", "40") SET("7.dotseen", "99") "get 7.undot\r\n", 4,
            "STORED\r\nSTORED\r\nVALUE 7.undot 0 1\r\n0\r\nEND\r\n"},
        {SET("2.dot", "40") SET("7.dotseen", "99") SET("1.dot", "41"), 2,
            "STORED\r\nSTORED\r\nSTORED\r\n"}, /* others, and behind it */
        {"incr board 1 dot=1\r\nset 1.board 0 0 5\r\n60 70\r\n"
         "incr 7.dotseen 99\r\ndelete 8.undot noreply\r\n"
         "incr 8.dotseen 0\r\n",
            3, "42\r\nSTORED\r\n60\r\n60\r\n"},
        {"set 7.dotseen 0 0 2 noreplay\r\n11\r\n", 0, MORE_WORDS},
        {SET("7.dotseen", "99") "set 7.dotseen 0 0 2 no\r\n11\r\n"
                                "incr 8.dotseen 1 no\r\n",
            2, "STORED\r\n" MORE_WORDS MORE_WORDS},
        {"quit\r\n", 0, ""},
    };
    struct held_dialog held;
    open_marks(&held);
    play_batches(&held, batches, COUNT_OF(batches));
    close_held(&held);
}
END_TEST

/* The source goes up between its read and the change: the mark is no further
 * than what was read. */
START_TEST(test_source_moves)
{
    struct held_dialog held;
    open_marks(&held);
    held_add(&held, SET("7.dotseen", "99"));
    held_release(&held);
    exchange(&held.other, "incr 1.dot 10", "20\r\n");
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    exchange(&held.other, "incr 1.dot 10", "30\r\n");
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(&held.dialog, "set", "STORED\r\n");
    exchange(&held.other, "get 7.dotseen 7.undot",
        "VALUE 7.dotseen 0 2\r\n10\r\nVALUE 7.undot 0 2\r\n20\r\nEND\r\n");
    close_held(&held);
}
END_TEST

static const struct exchange drops[] = {
    {"drop column user dotseen dotseen", "DELETED\r\n"},
    {"drop column board dot dot", "DELETED\r\n"},
    {"drop column user atseen atseen", "DELETED\r\n"},
    {"drop column user at at", "DELETED\r\n"},
};

/* Marks and sources that are dropped while a request waits. */
START_TEST(test_dropped)
{
    static const char gets[] =
        "get 7.undot 7.lseen 7.unat\r\nmg 7.undot v\r\n";
    static const char sets[] =
        SET("7.dotseen", "99") SET("7.atseen", "99") SET("7.lseen", "19");
    struct held_dialog held;
    open_marks(&held);
    held_add(&held, gets);
    PLAY(&held.other, drops);
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(
        &held.dialog, gets, "VALUE 7.lseen 0 1\r\n0\r\nEND\r\nEN\r\n");
    close_held(&held);
    for (unsigned is_read = 0; is_read < 2; is_read++) {
        open_marks(&held);
        held_add(&held, sets);
        if (is_read) {
            held_release(&held);
            ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
        }
        PLAY(&held.other, drops);
        held_release(&held);
        ck_assert_uint_eq(step_through(&held), is_read ? 0 : 1);
        expect_replies(&held.dialog, sets, GONE GONE "STORED\r\n");
        exchange(
            &held.other, "get 7.lseen", "VALUE 7.lseen 0 2\r\n19\r\nEND\r\n");
        close_held(&held);
    }
}
END_TEST

/* What the store's get was before it could not read the cells of id 1. */
static enum store_answer (*seeing_get)(
    struct store *store, struct store_get *get);

static enum store_answer
blind_get(struct store *store, struct store_get *get)
{
    enum store_answer answer = seeing_get(store, get);
    for (uint32_t i = 0; i < STORE_KEYS_MAX; i++) {
        bool is_asked = i < STORE_GET_MAX ? i < get->n
                                          : i - STORE_GET_MAX < get->n_sources;
        if (is_asked && get->key[i].id == 1) {
            get->state[i] = CELL_UNREADABLE;
        }
    }
    return answer;
}

/* No number is made up, and no mark is moved. */
START_TEST(test_unreadable)
{
    static const struct exchange exchanges[] = {
        {"get 7.undot", UNREADABLE},
        {"get 7.unat 7.undot 7.at",
            "VALUE 7.unat 0 1\r\n0\r\nVALUE 7.at 0 1\r\n0\r\n" UNREADABLE},
        {"get 7.dotseen", "VALUE 7.dotseen 0 1\r\n0\r\nEND\r\n"},
        {"get 7.lseen", UNREADABLE}, /* is it forgotten? */
        {"mg 7.undot v", UNREADABLE},
        {"touch 7.undot 0", UNREADABLE},
        {SET("7.dotseen", "09") "incr 7.atseen 1", UNREADABLE "0\r\n"},
        {"incr 7.dotseen 1", UNREADABLE},
        {"delete 7.undot", UNREADABLE},
        {"delete 7.dotseen", UNREADABLE},
        {"get user 7", "VALUE 7 0 7\r\n0 0 0 0\r\nEND\r\n"},
    };
    struct dialog dialog;
    open_new(&dialog);
    PLAY(&dialog, marks);
    struct store_calls calls = *dialog.store->calls;
    seeing_get = calls.get;
    calls.get = blind_get;
    dialog.store->calls = &calls;
    PLAY(&dialog, exchanges);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_marks_moved), 0);
    close_new(&dialog);
}
END_TEST

enum { MANY = 3 * EXEC_SLICE_KEYS_MAX + 7 };

/* Slices of all kinds of keys, replies that take many turns, and requests that
 * join others and are taken back. */
START_TEST(test_many)
{
    static const char *const names[] = {
        "unat", "at", "undot", "lseen", "atseen", "unl", "user", "none"};
    struct dialog dialog;
    struct buf said = {0}, wanted = {0};
    open_new(&dialog);
    PLAY(&dialog, marks);
    exchange(&dialog, "set board 1 dot=10 late=20", "STORED\r\n");
    for (unsigned i = 1; i < 60; i++) {
        char line[128];
        snprintf(line, sizeof line, "set user %u %u %u %u %u", i, 2 * i, i,
            i % 13, i % 23);
        exchange(&dialog, line, "STORED\r\n");
    }
    buf_add_text(&said, "get 1.at 1.unat\r\nget");
    buf_add_text(
        &wanted, "VALUE 1.at 0 1\r\n2\r\nVALUE 1.unat 0 1\r\n1\r\nEND\r\n");
    for (unsigned k = 0; k < MANY; k++) {
        unsigned i = 1 + k % 59, dot = i % 13, late = i % 23;
        unsigned seen = late + 9 < 20 ? 0 : late;
        char text[64];
        const char *name = names[k % COUNT_OF(names)];
        unsigned value[] = {i, 2 * i, dot < 10 ? 10 - dot : 0, seen, i,
            seen == 0 || seen >= 20 ? 0 : 20 - seen};
        int n = snprintf(text, sizeof text, "%u",
            k % COUNT_OF(names) < COUNT_OF(value) ? value[k % COUNT_OF(names)]
                                                  : 0);
        if (strcmp(name, "user") == 0) {
            n = snprintf(
                text, sizeof text, "%u %u %u %u", 2 * i, i, dot, late);
        }
        buf_addf(&said, " %u.%s", i, name);
        if (strcmp(name, "none") != 0) {
            buf_addf(&wanted, "VALUE %u.%s 0 %d\r\n%s\r\n", i, name, n, text);
        }
    }
    buf_add_text(&said, "\r\n");
    buf_add_text(&wanted, "END\r\n");
    buf_add(&wanted, "", 1);
    ck_assert(!said.failed && !wanted.failed);
    for (unsigned small = 0; small < 2; small++) {
        dialog.mark = small ? 100 : DIALOG_MARK;
        dialog_say(&dialog, said.data, said.len);
        expect_replies(&dialog, "many", wanted.data);
        ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_unread_reads),
            (small + 1) * (1 + 3 * 49));
    }
    buf_fini(&said);
    buf_fini(&wanted);
    close_new(&dialog);
}
END_TEST

/* What was moved, and what was not. */
START_TEST(test_counted)
{
    static const struct exchange exchanges[] = {
        {"set user 7 at=30", "STORED\r\n"},
        {PUT("7.atseen", "10"), "STORED\r\n"},
        {PUT("7.atseen", "10"), "STORED\r\n"},
        {PUT("7.atseen", "09"), "STORED\r\n"},
        {"add 7.atseen 0 0 1\r\n9", "NOT_STORED\r\n"},
        {"incr 7.atseen 99", "30\r\n"},
        {"incr 7.atseen 1", "30\r\n"},
        {"decr 7.atseen 3", "27\r\n"},
        {"delete 7.unat", "DELETED\r\n"},
        {"delete 7.unat", "NOT_FOUND\r\n"},
        {"cas 7.atseen 0 0 2 31\r\n30", "STORED\r\n"},
        {"get 7.unat 8.unat",
            "VALUE 7.unat 0 1\r\n0\r\nVALUE 8.unat 0 1\r\n"
            "0\r\nEND\r\n"},
        {"incr 7.unat 1",
            "CLIENT_ERROR what is unread is counted, set its mark\r\n"},
    };
    struct dialog dialog;
    open_new(&dialog);
    PLAY(&dialog, marks);
    PLAY(&dialog, exchanges);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_marks_moved), 4);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_marks_behind), 3);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_unread_reads), 2);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_cell_saturated), 0);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_incr_hits), 2);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_delete_hits), 1);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_delete_misses), 1);
    close_new(&dialog);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_calls, test_source_moves, test_dropped,
        test_unreadable, test_many, test_counted};
    return run_tests("exec_mark", tests, COUNT_OF(tests));
}
