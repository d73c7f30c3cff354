/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_member: when numbers and pairs are read, what is so when they
 * change meanwhile or are gone, and gets of many keys. What commands on members
 * answer is in t/proto/members.seq. */
#include "session/exec.h"
#include "unit/held_help.h"

#include <inttypes.h>
#include <stdio.h>

#define GONE "CLIENT_ERROR the counter or column has been dropped\r\n"
#define UNREADABLE                                                            \
    "SERVER_ERROR a counter cannot be read from the disk, see the server's "  \
    "log\r\n"
#define COUNTED "CLIENT_ERROR that number counts members, change these\r\n"
#define NAMELESS "CLIENT_ERROR a member is named as ID.NAME:MEMBER\r\n"

static const struct exchange members[] = {
    {"add counter post cold=never", "STORED\r\n"},
    {"add column post pid primarykey", "STORED\r\n"},
    {"add column post likes", "STORED\r\n"},
    {"add column post liked members=exact counts=likes", "STORED\r\n"},
    {"add column post score members=exact max=8 member=16", "STORED\r\n"},
    {"add counter user", "STORED\r\n"},
    {"add column user uid primarykey", "STORED\r\n"},
    {"add column user at", "STORED\r\n"},
    {"add column user seen marks=1.likes unread=new", "STORED\r\n"},
    {"incr 1.liked:7 1", "1\r\n"},
    {"incr 1.score:7 9", "9\r\n"},
};

static void
open_members(struct held_dialog *held)
{
    open_held(held);
    PLAY(&held->other, members);
}

#define SET(key, value) PUT(key, value) "\r\n"
#define PUT(key, value) "set " key " 0 0 1\r\n" value

/* A call for the numbers of a slice, and one for all else; none more where
 * there are no members. A change is one of those that are made at once. */
START_TEST(test_calls)
{
    static const struct batching batches[] = {
        {"get 1.liked:7\r\n", 2, "VALUE 1.liked:7 0 1\r\n1\r\nEND\r\n"},
        {"get 1.likes 7.new\r\n", 1,
            "VALUE 1.likes 0 1\r\n1\r\nVALUE 7.new 0 1\r\n1\r\nEND\r\n"},
        {"get 1.liked:8 1.likes 2.liked:7\r\nmg 1.score:7 v c\r\n"
         "get 7.new 1.score:6 item\r\nmg 1.liked v\r\n",
            2,
            "VALUE 1.liked:8 0 1\r\n0\r\nVALUE 1.likes 0 1\r\n1\r\n"
            "VALUE 2.liked:7 0 1\r\n0\r\nEND\r\nVA 1 c10\r\n9\r\n"
            "VALUE 7.new 0 1\r\n1\r\nVALUE 1.score:6 0 1\r\n0\r\n"
            "END\r\n" NAMELESS},
        {"incr 1.liked:8 1\r\nincr 2.liked:7 1\r\n" SET("1.score:7", "3")
                SET("1.liked:8", "0") "delete 2.liked\r\n"
                                      "incr post 1.liked:9\r\n",
            1, "1\r\n1\r\nSTORED\r\nSTORED\r\nDELETED\r\n1\r\n"},
        {"get 1.liked:8 2.liked:7 1.liked:9 1.likes 2.likes\r\n", 2,
            "VALUE 1.liked:8 0 1\r\n0\r\nVALUE 2.liked:7 0 1\r\n0\r\n"
            "VALUE 1.liked:9 0 1\r\n1\r\nVALUE 1.likes 0 1\r\n2\r\n"
            "VALUE 2.likes 0 1\r\n0\r\nEND\r\n"},
        {"incr 1.likes 1\r\nset post 1 likes=1\r\nget 1.likes 1.liked\r\n", 0,
            COUNTED COUNTED NAMELESS},
        {"quit\r\n", 0, ""},
    };
    struct held_dialog held;
    open_members(&held);
    play_batches(&held, batches, COUNT_OF(batches));
    close_held(&held);
}
END_TEST

static const struct exchange drops[] = {
    {"drop column post liked liked", "DELETED\r\n"},
    {"drop column user seen seen", "DELETED\r\n"},
};

/* What the number was read of is dropped before, and after that. */
START_TEST(test_dropped)
{
    static const char gets[] =
        "get 1.liked:7 1.score:7 7.new 1.likes\r\nmg 1.liked:7 v\r\n";
    for (unsigned is_read = 0; is_read < 2; is_read++) {
        struct held_dialog held;
        open_members(&held);
        held_add(&held, gets);
        if (is_read) {
            held_release(&held);
            ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
        }
        PLAY(&held.other, drops);
        held_release(&held);
        ck_assert_uint_eq(step_through(&held), is_read ? 0 : 1);
        expect_replies(&held.dialog, gets,
            "VALUE 1.score:7 0 1\r\n9\r\nVALUE 1.likes 0 1\r\n1\r\nEND\r\n"
            "EN\r\n");
        close_held(&held);
    }
}
END_TEST

/* A change of what is dropped before it is made. */
START_TEST(test_dropped_change)
{
    static const char sets[] = SET("1.liked:9", "1") "incr 1.score:7 1\r\n";
    struct held_dialog held;
    open_members(&held);
    held_add(&held, sets);
    PLAY(&held.other, drops);
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(&held.dialog, sets, GONE "10\r\n");
    close_held(&held);
}
END_TEST

/* All members go between the two: those of the next number are not read. */
START_TEST(test_all_go)
{
    static const char gets[] = "get 1.liked:7 1.liked:8\r\n";
    struct held_dialog held;
    open_members(&held);
    held_add(&held, gets);
    held_release(&held);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    exchange(&held.other, "delete 1.liked", "DELETED\r\n");
    exchange(&held.other, "incr 1.liked:8 1", "1\r\n");
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    /* 7 was in when the number was read, and is not taken out yet */
    expect_replies(&held.dialog, gets,
        "VALUE 1.liked:7 0 1\r\n1\r\nVALUE 1.liked:8 0 1\r\n0\r\nEND\r\n");
    exchange(&held.other, "get 1.liked:7 1.liked:8 1.likes",
        "VALUE 1.liked:7 0 1\r\n0\r\nVALUE 1.liked:8 0 1\r\n1\r\n"
        "VALUE 1.likes 0 1\r\n1\r\nEND\r\n");
    close_held(&held);
}
END_TEST

/* A key that was right when it was checked, and is wrong by its turn: nothing
 * is read, and it is a miss. */
START_TEST(test_wrong_by_then)
{
    struct held_dialog held;
    struct buf said = {0}, wanted = {0};
    open_members(&held);
    buf_add_text(&said, "get");
    for (unsigned i = 0; i < EXEC_SLICE_KEYS_MAX; i++) {
        buf_addf(&said, " %u.likes", i);
        buf_addf(&wanted, "VALUE %u.likes 0 1\r\n%d\r\n", i, i == 1);
    }
    buf_add_text(&said, " 1.liked:65536 1.score:7\r\n");
    buf_add_text(&wanted, "VALUE 1.score:7 0 1\r\n9\r\nEND\r\n");
    buf_add(&said, "", 1);
    buf_add(&wanted, "", 1);
    held_add(&held, said.data);
    exchange(&held.other, "drop column post liked liked", "DELETED\r\n");
    exchange(&held.other, "add column post liked members=exact member=16",
        "STORED\r\n");
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 2);
    expect_replies(&held.dialog, said.data, wanted.data);
    buf_fini(&said);
    buf_fini(&wanted);
    close_held(&held);
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
        if (is_asked && get->key[i].id == 1 && get->key[i].serial != 0) {
            get->state[i] = CELL_UNREADABLE;
        }
    }
    return answer;
}

/* No number is made up where that of the members cannot be read. */
START_TEST(test_unreadable)
{
    static const struct exchange exchanges[] = {
        {"get 1.liked:7", UNREADABLE},
        {"get 2.liked:7 1.liked:7 2.score:1",
            "VALUE 2.liked:7 0 1\r\n0\r\nVALUE 2.score:1 0 1\r\n"
            "0\r\n" UNREADABLE},
        {"mg 1.score:7 v", UNREADABLE},
        {"mg 2.score:7 v", "VA 1\r\n0\r\n"},
        {"touch 1.score:7 0", UNREADABLE},
    };
    struct dialog dialog;
    open_new(&dialog);
    PLAY(&dialog, members);
    struct store_calls calls = *dialog.store->calls;
    seeing_get = calls.get;
    calls.get = blind_get;
    dialog.store->calls = &calls;
    PLAY(&dialog, exchanges);
    close_new(&dialog);
}
END_TEST

enum { MANY = 3 * EXEC_SLICE_KEYS_MAX + 7 };

/* Slices of all kinds of keys, replies that take many turns, and requests that
 * join others and are taken back. */
START_TEST(test_many)
{
    static const char *const names[] = {
        "liked:3", "likes", "new", "score:65535", "post", "liked:4", "none"};
    struct dialog dialog;
    struct buf said = {0}, wanted = {0};
    open_new(&dialog);
    PLAY(&dialog, members);
    for (unsigned i = 2; i < 60; i++) {
        char line[64];
        snprintf(line, sizeof line, "set post %u.score:65535 %u", i, i);
        exchange(&dialog, line, "STORED\r\n");
        snprintf(line, sizeof line, "set post %u.liked:%u 1", i, 3 + i % 2);
        exchange(&dialog, line, "STORED\r\n");
    }
    buf_add_text(&said, "get 1.liked:7 1.likes\r\nget");
    buf_add_text(&wanted,
        "VALUE 1.liked:7 0 1\r\n1\r\nVALUE 1.likes 0 1\r\n1\r\nEND\r\n");
    for (unsigned k = 0; k < MANY; k++) {
        unsigned i = 2 + k % 58, name = k % COUNT_OF(names);
        unsigned value[] = {i % 2 == 0, 1, 1, i, 1, i % 2 == 1, 0};
        buf_addf(&said, " %u.%s", i, names[name]);
        if (name + 1 < COUNT_OF(names)) {
            buf_addf(&wanted, "VALUE %u.%s 0 %d\r\n%u\r\n", i, names[name],
                value[name] < 10 ? 1 : 2, value[name]);
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
    buf_fini(&said);
    buf_fini(&wanted);
    close_new(&dialog);
}
END_TEST

/* What has come in and gone out, and what was in already. */
START_TEST(test_counted)
{
    static const struct exchange exchanges[] = {
        {PUT("2.liked:1", "1"), "STORED\r\n"},          /* in */
        {PUT("2.liked:1", "1"), "STORED\r\n"},          /* again */
        {PUT("2.liked:2", "0"), "STORED\r\n"},          /* neither */
        {"add 2.liked:1 0 0 1\r\n1", "NOT_STORED\r\n"}, /* again */
        {"incr 2.score:1 5", "5\r\n"},                  /* in */
        {"incr 2.score:1 5", "10\r\n"},
        {PUT("2.score:1", "4"), "STORED\r\n"}, /* again */
        {"incr 2.score:2 3 tx=p:1", "3\r\n"},  /* in */
        {"incr 2.score:2 3 tx=p:1", "3\r\n"},
        {"decr 2.score:1 9", "0\r\n"},       /* out */
        {"delete 2.liked:1", "DELETED\r\n"}, /* out */
        {"delete 2.liked:1", "NOT_FOUND\r\n"},
        {"set 2.score:1 0 0 3\r\n999",
            "CLIENT_ERROR value is above the column's max\r\n"},
    };
    struct dialog dialog;
    open_new(&dialog);
    PLAY(&dialog, members);
    PLAY(&dialog, exchanges);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_member_adds), 2 + 3);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_member_repeats), 3);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_member_removes), 2);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_incr_hits), 2 + 3);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_delete_hits), 1);
    ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_delete_misses), 1);
    close_new(&dialog);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_calls, test_dropped,
        test_dropped_change, test_all_go, test_wrong_by_then, test_unreadable,
        test_many, test_counted};
    return run_tests("exec_member", tests, COUNT_OF(tests));
}
