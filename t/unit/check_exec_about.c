/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_about: what is asked for at once, what is gathered apart, counts
 * that come later or fail, ids below what is known, and gets of many keys. What
 * commands answer is in t/proto/about.seq. */
#include "session/exec.h"
#include "unit/held_help.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BELOW "CLIENT_ERROR the id is below what that column still knows\r\n"
#define UNSEEN                                                                \
    "CLIENT_ERROR what was seen cannot be unseen, see members=exact\r\n"
#define GONE "CLIENT_ERROR the counter or column has been dropped\r\n"
#define PUT(command, key) command " " key " 0 0 1\r\n1"
#define ADD(key) PUT("add", key) "\r\n"
#define SET(key) PUT("set", key) "\r\n"

static const struct exchange schema[] = {
    {"add counter post", "STORED\r\n"},
    {"add column post pid primarykey", "STORED\r\n"},
    {"add column post views", "STORED\r\n"},
    {"add column post seen members=about memory=16m counts=views",
        "STORED\r\n"},
    {"add column post met members=about memory=16m member=16 flags=7",
        "STORED\r\n"},
    {"add column post liked members=exact", "STORED\r\n"},
    {"add counter user maxjump=100", "STORED\r\n"},
    {"add column user uid primarykey", "STORED\r\n"},
    {"add column user knows members=about memory=16m", "STORED\r\n"},
    {PUT("add", "1.seen:7"), "STORED\r\n"},
};

static void
open_abouts(struct held_dialog *held)
{
    open_held(held);
    PLAY(&held->other, schema);
}

/* Members alone need no call that may be answered later but that for their
 * counts; what is of another kind is gathered apart, in the same order. */
START_TEST(test_calls)
{
    static const struct batching batches[] = {
        {ADD("1.met:1") ADD("1.met:1") SET("1.met:1") ADD("2.met:65535"), 0,
            "STORED\r\nNOT_STORED\r\nSTORED\r\nSTORED\r\n"},
        {ADD("1.seen:7") SET("1.seen:7"), 0, "NOT_STORED\r\nSTORED\r\n"},
        {ADD("1.seen:8") ADD("2.seen:8") ADD("1.seen:8") ADD("1.met:2"), 1,
            "STORED\r\nSTORED\r\nNOT_STORED\r\nSTORED\r\n"},
        {"incr 1.liked:3 1\r\n" ADD(
             "1.seen:9") "get 1.views\r\n"
                         "delete 1.post\r\n" ADD(
                             "1.seen:10") "get 1.views 1.seen:9\r\n"
                                          "set post 1.liked:4 1\r\n"
                                          "add post 1.met:3 1\r\n"
                                          "get 1.met:3 1.liked:4 1.seen:11\r\n",
            9,
            "1\r\nSTORED\r\nVALUE 1.views 0 1\r\n3\r\nEND\r\nDELETED\r\n"
            "STORED\r\nVALUE 1.views 0 1\r\n1\r\nVALUE 1.seen:9 0 1\r\n1\r\n"
            "END\r\nSTORED\r\nSTORED\r\nVALUE 1.met:3 7 1\r\n1\r\n"
            "VALUE 1.liked:4 0 1\r\n1\r\nVALUE 1.seen:11 0 1\r\n0\r\n"
            "END\r\n"},
        {ADD("1.seen:20") "delete 1.seen:20\r\n" ADD("1.seen:21"), 2,
            "STORED\r\n" UNSEEN "STORED\r\n"},
        {"quit\r\n", 0, ""},
    };
    struct held_dialog held;
    open_abouts(&held);
    play_batches(&held, batches, COUNT_OF(batches));
    close_held(&held);
}
END_TEST

/* The column goes between the words and the call; the count's goes between the
 * member and its count, which is told as it is. */
START_TEST(test_dropped)
{
    static const char adds[] = ADD("1.seen:30") ADD("1.seen:7");
    struct held_dialog held;
    open_abouts(&held);
    held_add(&held, adds);
    exchange(&held.other, "drop column post seen seen", "DELETED\r\n");
    exchange(&held.other, "drop column post views views", "DELETED\r\n");
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(&held.dialog, adds, GONE "NOT_STORED\r\n");
    exchange(&held.other, "get 1.seen:7 1.met:1",
        "VALUE 1.met:1 7 1\r\n0\r\nEND\r\n");
    close_held(&held);
}
END_TEST

/* ---- a window that has moved on ---- */

/* What the store's calls were before nothing below id 10 was known. */
static const struct store_calls *before;

static void
forgetful_get(struct store *store, struct store_about *about)
{
    before->about_get(store, about);
    for (uint32_t i = 0; i < about->n; i++) {
        if (about->key[i].id < 10) {
            about->state[i] = STORE_ABOUT_BELOW;
        }
    }
}

static void
forgetful_add(struct store *store, struct store_about *about)
{
    before->about_add(store, about);
    for (uint32_t i = 0; i < about->n; i++) {
        if (about->key[i].id < 10) {
            about->state[i] = STORE_ABOUT_BELOW;
        }
    }
}

/* A miss, not 0, whatever absent= says; and nothing is stored. */
START_TEST(test_below)
{
    static const struct exchange exchanges[] = {
        {"get 9.seen:7 10.seen:7 9.views",
            "VALUE 10.seen:7 0 1\r\n0\r\nVALUE 9.views 0 1\r\n0\r\nEND\r\n"},
        {"mg 9.seen:7 v", "EN\r\n"},
        {PUT("add", "9.seen:7"), BELOW},
        {PUT("set", "9.seen:7"), BELOW},
        {PUT("add", "10.seen:7"), "STORED\r\n"},
        {"ms 9.met:7 1\r\n1", BELOW},
        {"get 9.views 10.views",
            "VALUE 9.views 0 1\r\n0\r\nVALUE 10.views 0 1\r\n1\r\nEND\r\n"},
    };
    struct dialog dialog;
    open_new(&dialog);
    PLAY(&dialog, schema);
    struct store_calls calls = *dialog.store->calls;
    before = dialog.store->calls;
    calls.about_get = forgetful_get;
    calls.about_add = forgetful_add;
    dialog.store->calls = &calls;
    PLAY(&dialog, exchanges);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_members_below), 2 + 3);
    dialog.store->calls = before;
    close_new(&dialog);
}
END_TEST

static enum store_answer
full_change(struct store *store, struct store_change *call)
{
    (void)store;
    for (uint32_t i = 0; i < call->n; i++) {
        call->change[i].err = ERR_HOT_FULL;
    }
    call->seq = 0;
    return STORE_DONE;
}

/* Where a member cannot be counted that is told; the member is in. */
START_TEST(test_counts_that_fail)
{
    static const struct exchange exchanges[] = {
        {PUT("add", "1.seen:7"), "NOT_STORED\r\n"},
        {PUT("add", "1.seen:8"),
            "SERVER_ERROR no memory for more counters\r\n"},
        {PUT("add", "1.met:8"), "STORED\r\n"},
        {"get 1.seen:8", "VALUE 1.seen:8 0 1\r\n1\r\nEND\r\n"},
    };
    struct dialog dialog;
    char full[96];
    snprintf(full, sizeof full, "SERVER_ERROR %s\r\n", err_text(ERR_HOT_FULL));
    open_new(&dialog);
    PLAY(&dialog, schema);
    struct store_calls calls = *dialog.store->calls;
    before = dialog.store->calls;
    calls.change = full_change;
    dialog.store->calls = &calls;
    for (size_t i = 0; i < COUNT_OF(exchanges); i++) {
        exchange(
            &dialog, exchanges[i].said, i == 1 ? full : exchanges[i].answer);
    }
    dialog.store->calls = before;
    close_new(&dialog);
}
END_TEST

/* An id that is far above all others would take what is known of these. */
START_TEST(test_jump)
{
    static const struct exchange exchanges[] = {
        {PUT("add", "50.knows:1"), "STORED\r\n"},
        {PUT("add", "150.knows:1"), "STORED\r\n"},
        {PUT("add", "251.knows:1"), ""}, /* see jump */
        {"get 150.knows:1 251.knows:1",
            "VALUE 150.knows:1 0 1\r\n1\r\nVALUE 251.knows:1 0 1\r\n0\r\n"
            "END\r\n"},
    };
    struct dialog dialog;
    char jump[96];
    snprintf(jump, sizeof jump, "CLIENT_ERROR %s\r\n", err_text(ERR_JUMP));
    open_new(&dialog);
    PLAY(&dialog, schema);
    for (size_t i = 0; i < COUNT_OF(exchanges); i++) {
        exchange(
            &dialog, exchanges[i].said, i == 2 ? jump : exchanges[i].answer);
    }
    close_new(&dialog);
}
END_TEST

enum { MANY = 3 * EXEC_SLICE_KEYS_MAX + 7, ADDS = 3 * EXEC_ABOUTS_MAX + 5 };

/* More adds than a batch, slices of all kinds of keys, replies that take many
 * turns, and requests that join others and are taken back. */
START_TEST(test_many)
{
    static const char *const names[] = {
        "seen:3", "views", "met:65535", "post", "seen:4", "none"};
    struct dialog dialog;
    struct buf said = {0}, wanted = {0};
    open_new(&dialog);
    PLAY(&dialog, schema);
    for (unsigned i = 2; i < 2 + ADDS; i++) {
        buf_addf(&said, "add %u.seen:%u 0 0 1\r\n1\r\n", i, 3 + i % 2);
        buf_add_text(&wanted, "STORED\r\n");
        if (i % 3 == 0) {
            buf_addf(&said, "ms %u.met:65535 1\r\n1\r\n", i);
            buf_add_text(&wanted, "HD\r\n");
        }
    }
    buf_add(&wanted, "", 1);
    dialog_say(&dialog, said.data, said.len);
    expect_replies(&dialog, "adds", wanted.data);
    buf_clear(&said);
    buf_clear(&wanted);
    buf_add_text(&said, "get 1.seen:7 1.views\r\nget");
    buf_add_text(&wanted,
        "VALUE 1.seen:7 0 1\r\n1\r\nVALUE 1.views 0 1\r\n1\r\nEND\r\n");
    for (unsigned k = 0; k < MANY; k++) {
        unsigned i = 2 + k % ADDS, name = k % COUNT_OF(names);
        bool value[] = {i % 2 == 0, true, i % 3 == 0, true, i % 2 == 1};
        buf_addf(&said, " %u.%s", i, names[name]);
        if (name + 1 < COUNT_OF(names)) {
            buf_addf(&wanted, "VALUE %u.%s %d 1\r\n%d\r\n", i, names[name],
                name == 2 ? 7 : 0, value[name]);
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
    }
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_member_adds),
        1 + ADDS + (ADDS + 1) / 3);
    buf_fini(&said);
    buf_fini(&wanted);
    close_new(&dialog);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_calls, test_dropped, test_below,
        test_counts_that_fail, test_jump, test_many};
    return run_tests("exec_about", tests, COUNT_OF(tests));
}
