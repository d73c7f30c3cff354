/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_mark, of marks that are about members: when these are pinned,
 * who is gone meanwhile, what cannot be had, and gets of many keys. What
 * commands answer is in t/proto/marks-members.seq. */
#include "base/err.h"
#include "session/exec.h"
#include "unit/held_help.h"

#include <stdio.h>

#define UNREADABLE                                                            \
    "SERVER_ERROR a counter cannot be read from the disk, see the server's "  \
    "log\r\n"
#define NO_MEMORY "SERVER_ERROR out of memory\r\n"
#define NOT_STORED "SERVER_ERROR out of memory storing object\r\n"
#define CLOSED                                                                \
    "SERVER_ERROR the server is stopping or starts anew: try again\r\n"
#define GONE "CLIENT_ERROR the counter or column has been dropped\r\n"

static const struct exchange marks[] = {
    {"add counter board cold=never", "STORED\r\n"},
    {"add column board bid primarykey", "STORED\r\n"},
    {"add column board notice members=exact", "STORED\r\n"},
    {"add counter user cold=never", "STORED\r\n"},
    {"add column user uid primarykey", "STORED\r\n"},
    {"add column user at", "STORED\r\n"},
    {"add column user inbox members=exact", "STORED\r\n"},
    {"add column user iseen marks=inbox unread=uni", "STORED\r\n"},
    {"add column user aseen marks=1.notice unread=una", "STORED\r\n"},
};

#define SET(key, value) PUT(key, value) "\r\n"
#define PUT(key, value) "set " key " 0 0 2\r\n" value

static const struct exchange fill[] = {
    {PUT("1.notice:10", "01"), "STORED\r\n"},
    {PUT("1.notice:20", "01"), "STORED\r\n"},
    {PUT("7.inbox:30", "01"), "STORED\r\n"},
    {"set user 7 at=9 iseen=5 aseen=10", "STORED\r\n"},
    /* the arrays are there from here on */
    {"get 7.una 7.uni",
        "VALUE 7.una 0 1\r\n1\r\nVALUE 7.uni 0 1\r\n1\r\nEND\r\n"},
};

static void
open_marks(struct held_dialog *held)
{
    open_held(held);
    PLAY(&held->other, marks);
    PLAY(&held->other, fill);
}

/* Two calls where members are asked for, whatever else is; what is sent before
 * is seen. */
START_TEST(test_calls)
{
    static const struct batching batches[] = {
        {"get 7.una 8.una 7.at\r\n", 2,
            "VALUE 7.una 0 1\r\n1\r\nVALUE 8.una 0 1\r\n2\r\n"
            "VALUE 7.at 0 1\r\n9\r\nEND\r\n"},
        {"get 7.uni 7.inbox:30 8.uni 7.una\r\n", 2,
            "VALUE 7.uni 0 1\r\n1\r\nVALUE 7.inbox:30 0 1\r\n1\r\n"
            "VALUE 8.uni 0 1\r\n0\r\nVALUE 7.una 0 1\r\n1\r\nEND\r\n"},
        {"get 7.iseen\r\n", 1, "VALUE 7.iseen 0 1\r\n5\r\nEND\r\n"},
        {SET("7.inbox:40", "01") SET("7.iseen", "99") "get 7.iseen\r\n", 4,
            "STORED\r\nSTORED\r\nVALUE 7.iseen 0 2\r\n40\r\nEND\r\n"},
        {SET("8.inbox:50", "01") SET("7.aseen", "99") SET("9.aseen", "15"), 2,
            "STORED\r\nSTORED\r\nSTORED\r\n"},
        {SET("1.notice:30", "01") SET("7.aseen", "99") "get 7.una 9.una\r\n",
            5,
            "STORED\r\nSTORED\r\nVALUE 7.una 0 1\r\n0\r\n"
            "VALUE 9.una 0 1\r\n2\r\nEND\r\n"},
        {"quit\r\n", 0, ""},
    };
    struct held_dialog held;
    open_marks(&held);
    play_batches(&held, batches, COUNT_OF(batches));
    close_held(&held);
}
END_TEST

/* Members that come between the pins and the marks do not count, and a mark
 * goes no further than the largest that was pinned. */
START_TEST(test_source_moves)
{
    static const struct exchange meanwhile[] = {
        {PUT("1.notice:40", "01"), "STORED\r\n"},
        {PUT("7.inbox:60", "01"), "STORED\r\n"},
        {PUT("7.aseen", "20"), "STORED\r\n"}};
    static const char gets[] = "get 7.una 7.uni 8.una\r\n";
    struct held_dialog held;
    open_marks(&held);
    held_add(&held, gets);
    held_release(&held);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    PLAY(&held.other, meanwhile);
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(&held.dialog, gets,
        "VALUE 7.una 0 1\r\n0\r\nVALUE 7.uni 0 1\r\n1\r\n"
        "VALUE 8.una 0 1\r\n2\r\nEND\r\n");
    held_add(&held, SET("8.aseen", "99"));
    held_release(&held);
    ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
    exchange(&held.other, PUT("1.notice:50", "01"), "STORED\r\n");
    held_release(&held);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(&held.dialog, "set", "STORED\r\n");
    exchange(&held.other, "get 8.aseen 8.una",
        "VALUE 8.aseen 0 2\r\n40\r\nVALUE 8.una 0 1\r\n1\r\nEND\r\n");
    close_held(&held);
}
END_TEST

/* A client that is gone while it has pins: they are given back, or the store
 * finds its memory missing at the end. */
START_TEST(test_abandoned)
{
    for (unsigned n_released = 1; n_released <= 2; n_released++) {
        struct held_dialog held;
        open_marks(&held);
        held_add(&held, "get 7.una 7.uni\r\n");
        held_release(&held);
        if (n_released == 2) {
            ck_assert_int_eq(dialog_step(&held.dialog), SESSION_PARKED);
            ck_assert(held.dialog.session.job->has_pins);
            held_release(&held);
        }
        /* what it has pinned is another array by then */
        exchange(&held.other, "delete 1.notice:10", "DELETED\r\n");
        close_held(&held);
    }
}
END_TEST

/* ---- what cannot be had ---- */

static int pin_err;

static enum store_answer
fail_pin(struct store *store, struct store_pin *pin)
{
    (void)store;
    for (uint32_t i = 0; i < pin->n; i++) {
        pin->members[i].pin = (struct sorted_pin){NULL, 0};
        pin->members[i].err = pin_err;
    }
    return STORE_DONE;
}

/* What is said where members cannot be had. */
static void
play_refused(struct dialog *dialog, const char *text, const char *stored)
{
    char also[200];
    snprintf(also, sizeof also, "VALUE 7.at 0 1\r\n9\r\n%s", text);
    exchange(dialog, "get 7.una", text);
    exchange(dialog, "get 7.at 7.uni", also);
    exchange(dialog, "get 7.aseen", "VALUE 7.aseen 0 2\r\n10\r\nEND\r\n");
    exchange(dialog, "mg 7.una v", text);
    exchange(dialog, PUT("7.aseen", "11"), stored);
    exchange(dialog, "incr 7.iseen 1", text);
    exchange(dialog, "delete 7.uni", text);
    exchange(dialog, PUT("7.inbox:70", "01"), "STORED\r\n");
}

START_TEST(test_not_to_be_had)
{
    static const struct exchange gone[] = {
        {"get 7.una 7.at", "VALUE 7.at 0 1\r\n9\r\nEND\r\n"},
        {"incr 7.iseen 1", GONE},
    };
    static const int errs[] = {ERR_NO_MEMORY, ERR_COLD_READ, ERR_CLOSED};
    static const char *const texts[] = {NO_MEMORY, UNREADABLE, CLOSED};
    for (size_t i = 0; i < COUNT_OF(errs) + 1; i++) {
        struct dialog dialog;
        open_new(&dialog);
        PLAY(&dialog, marks);
        PLAY(&dialog, fill);
        struct store_calls calls = *dialog.store->calls;
        pin_err = i < COUNT_OF(errs) ? errs[i] : ERR_GONE;
        calls.pin = fail_pin;
        dialog.store->calls = &calls;
        if (i < COUNT_OF(errs)) {
            play_refused(&dialog, texts[i], i == 0 ? NOT_STORED : texts[i]);
        } else {
            PLAY(&dialog, gone);
        }
        ck_assert_uint_eq(metric_of(dialog.metrics, METRIC_marks_moved), 0);
        close_new(&dialog);
    }
}
END_TEST

enum { MANY = 3 * EXEC_SLICE_KEYS_MAX + 7, USERS = 59 };

/* Slices of all kinds of keys, with members of many ids. */
START_TEST(test_many)
{
    static const char *const names[] = {
        "uni", "at", "una", "inbox:50", "iseen", "uni", "una", "inbox:3"};
    struct dialog dialog;
    struct buf said = {0}, wanted = {0};
    char line[128];
    open_new(&dialog);
    PLAY(&dialog, marks);
    for (unsigned m = 1; m <= 20; m++) {
        snprintf(line, sizeof line, "set board 1.notice:%u 1", m);
        exchange(&dialog, line, "STORED\r\n");
    }
    for (unsigned i = 1; i <= USERS; i++) { /* i + 1 to 60 */
        for (unsigned m = i + 1; m <= 60; m++) {
            snprintf(line, sizeof line, "set user %u.inbox:%u 1", i, m);
            exchange(&dialog, line, "STORED\r\n");
        }
        snprintf(line, sizeof line, "set user %u at=%u iseen=%u aseen=%u", i,
            i, 40U, i % 25);
        exchange(&dialog, line, "STORED\r\n");
    }
    buf_add_text(&said, "get");
    for (unsigned k = 0; k < MANY; k++) {
        unsigned i = 1 + k % USERS, at = k % COUNT_OF(names), seen = i % 25;
        unsigned uni = i < 40 ? 20 : 60 - i, una = seen < 20 ? 20 - seen : 0;
        const unsigned value[] = {uni, i, una, i < 50, 40, uni, una, i < 3};
        int n = snprintf(line, sizeof line, "%u", value[at]);
        buf_addf(&said, " %u.%s", i, names[at]);
        buf_addf(&wanted, "VALUE %u.%s 0 %d\r\n%s\r\n", i, names[at], n, line);
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

int
main(void)
{
    const TTest *const tests[] = {test_calls, test_source_moves,
        test_abandoned, test_not_to_be_had, test_many};
    return run_tests("exec_mark_members", tests, COUNT_OF(tests));
}
