/* SPDX-License-Identifier: BSD-3-Clause */
/* net/gate, through workers: turns of one connection that pile up behind held
 * replies, and replies that are not held any longer because their commit is
 * late. */
#include "base/err.h"
#include "net/gate.h"
#include "unit/gate_help.h"

#include <stdio.h>

/* More commands than a turn takes: the next turns do not wait for the replies
 * of the first; these leave with the commits of their own. */
START_TEST(test_turns_pile_up)
{
    enum { TURNS = 5, BUDGET = 20 };
    struct gated gated;
    open_gated(&gated, BUDGET);
    int fd = connect_to(&gated.rig, 0);
    say_often(fd, "incr 1.a 1\r\n", TURNS * BUDGET);
    outcomes_wait(gated.log, TURNS); /* and none is committed */
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 1, 0);
    expect_numbers(fd, 1, BUDGET);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 2, 0);
    expect_numbers(fd, BUDGET + 1, 2 * BUDGET);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(
        gated.log, TURNS - 1, 0); /* the others wait for the last */
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, TURNS, 0);
    expect_numbers(fd, 2 * BUDGET + 1, TURNS * BUDGET);
    ck_assert_uint_eq(held_turns(&gated, 0), TURNS);
    ck_assert_uint_eq(
        metric_of(gated.rig.worker[0], METRIC_conn_yields), TURNS - 1);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Reads in turns behind held ones wait as well, and whatever is odd about the
 * last turn happens when its replies have left. */
START_TEST(test_turns_of_all_kinds)
{
    static const char said[] = "incr 1.a 1\r\nget 1.a\r\nversion\r\n"
                               "incr 1.a 1 noreply\r\nset 1.a 0 0 1\r\nx\r\n"
                               "incr 1.a 1\r\nget 1.a\r\n";
    static const char answer[] =
        "1\r\nVALUE 1.a 0 1\r\n1\r\nEND\r\nVERSION test\r\n"
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n"
        "3\r\nVALUE 1.a 0 1\r\n3\r\nEND\r\n";
    static const char *const last[] = {"", "quit\r\n", "version\r\nver"};
    for (unsigned budget = 1; budget <= 4; budget++) {
        for (size_t i = 0; i < COUNT_OF(last); i++) {
            struct gated gated;
            open_gated(&gated, budget);
            int fd = connect_to(&gated.rig, 0);
            say(fd, said);
            say(fd, last[i]);
            if (i == 0) {
                ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
            }
            outcomes_wait(gated.log, 1);
            expect_nothing(&gated, 0, fd);
            outcomes_commit(gated.log, 100, 0);
            expect(fd, answer);
            if (i == 2) {
                expect(fd, "VERSION test\r\n");
                talk(fd, "sion\r\n", "VERSION test\r\n");
                close(fd);
            } else {
                expect_end(fd);
            }
            close_gated(&gated);
        }
    }
}
END_TEST

/* What piles up has a limit in changes; the rest is done when some have
 * left. Others go on meanwhile. */
START_TEST(test_changes_held_max)
{
    enum {
        BUDGET = 20,
        FIRST = (HELD_CHANGES_MAX + BUDGET - 1) / BUDGET,
        TURNS = FIRST + 30
    };
    struct gated gated;
    open_gated(&gated, BUDGET);
    int fd = connect_to(&gated.rig, 0);
    say_often(fd, "incr 1.a 1\r\n", TURNS * BUDGET);
    outcomes_wait(gated.log, FIRST);
    expect_nothing(&gated, 0, fd);
    ck_assert_uint_eq(held_turns(&gated, 0), FIRST);
    outcomes_commit(gated.log, 1, 0);
    expect_numbers(fd, 1, BUDGET);
    outcomes_wait(gated.log, FIRST + 1);
    expect_nothing(&gated, 0, fd);
    ck_assert_uint_eq(held_turns(&gated, 0), FIRST + 1);
    outcomes_commit(gated.log, TURNS, 0);
    expect_numbers(fd, BUDGET + 1, TURNS * BUDGET);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* And in bytes. */
START_TEST(test_bytes_held_max)
{
    enum { LARGE = 20000, GETS = 20, FIRST = HELD_BYTES_MAX / LARGE + 1 };
    struct gated gated;
    struct buf said = {0};
    char *bytes = malloc(LARGE);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'v', LARGE);
    open_gated(&gated, 1);
    int fd = connect_to(&gated.rig, 0);
    buf_addf(&said, "set big 0 0 %d\r\n", LARGE);
    buf_add(&said, bytes, LARGE);
    buf_add_text(&said, "\r\nincr 1.a 0\r\n");
    for (int i = 0; i < GETS; i++) {
        buf_add_text(&said, "get big\r\n");
    }
    buf_add_text(&said, "incr 1.a 1\r\n");
    send_bytes(fd, said.data, said.len);
    expect(fd, "STORED\r\n");
    outcomes_wait(gated.log, 1);
    expect_nothing(&gated, 0, fd);
    ck_assert_uint_eq(held_turns(&gated, 0), 1 + FIRST);
    outcomes_commit(gated.log, 2, 0);
    expect(fd, "0\r\n");
    for (int i = 0; i < GETS; i++) {
        expect(fd, "VALUE big 0 20000\r\n");
        receive(fd, bytes, LARGE);
        ck_assert(bytes[0] == 'v' && bytes[LARGE - 1] == 'v');
        expect(fd, "\r\nEND\r\n");
    }
    expect(fd, "1\r\n");
    buf_fini(&said);
    free(bytes);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Turns that have piled up fail, or become late, each for itself. */
START_TEST(test_pile_fails)
{
    enum { TURNS = 6 };
    struct gated gated;
    open_gated(&gated, 1);
    int fd = connect_to(&gated.rig, 0);
    say_often(fd, "incr 1.a 1\r\n", TURNS);
    outcomes_wait(gated.log, TURNS);
    outcomes_commit(gated.log, 1, 0);
    expect(fd, "1\r\n");
    outcomes_fail(gated.log, 2, ERR_DISK_FULL);
    expect(fd, UNSURE);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, TURNS, 0);
    expect_numbers(fd, 3, TURNS);
    ck_assert_uint_eq(
        metric_of(gated.rig.worker[0], METRIC_changes_unsure), 1);
    close(fd);
    close_gated(&gated);
    open_gated_until(&gated, 1, 1);
    fd = connect_to(&gated.rig, 0);
    say_often(fd, "incr 1.a 1\r\n", TURNS);
    for (int i = 0; i < TURNS; i++) {
        expect(fd, UNSURE_SLOW);
    }
    outcomes_commit(gated.log, 100, 0);
    talk(fd, "incr 1.a 1\r\n", "7\r\n");
    close(fd);
    close_gated(&gated);
}
END_TEST

/* A commit that does not come: the acknowledgements are replaced as after a
 * failure, once; what the commit says later changes nothing. */
START_TEST(test_late)
{
    struct gated gated;
    open_gated_until(&gated, 20, 1);
    int fd = connect_to(&gated.rig, 0);
    talk(fd,
        "incr 1.a 1\r\nget 1.a\r\nincr 1.a 1\r\n"
        "set 1.a 0 0 1\r\nx\r\ndelete 9.a\r\nversion\r\n",
        UNSURE_SLOW
        "VALUE 1.a 0 1\r\n1\r\nEND\r\n" UNSURE_SLOW
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n"
        "NOT_FOUND\r\nVERSION test\r\n");
    ck_assert_uint_eq(metric_of(gated.rig.worker[0], METRIC_changes_late), 2);
    ck_assert_uint_eq(
        metric_of(gated.rig.worker[0], METRIC_changes_unsure), 2);
    talk(fd, "get 1.a\r\n", "VALUE 1.a 0 1\r\n2\r\nEND\r\n");
    outcomes_commit(gated.log, 1, 0);
    expect_nothing(&gated, 0, fd);
    talk(fd, "incr 1.a 1\r\nget 1.a\r\n",
        UNSURE_SLOW "VALUE 1.a 0 1\r\n3\r\nEND\r\n");
    outcomes_fail(gated.log, 100, ERR_DISK);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 100, 0);
    expect_nothing(&gated, 0, fd);
    talk(fd, "incr 1.a 1\r\n", "4\r\n");
    ck_assert_uint_eq(metric_of(gated.rig.worker[0], METRIC_changes_late), 3);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Where its client wants no reply, the connection ends. */
START_TEST(test_late_without_reply)
{
    struct gated gated;
    open_gated_until(&gated, 20, 1);
    int fd = connect_to(&gated.rig, 0);
    talk(fd, "incr 1.a 1\r\nincr 1.a 1 noreply\r\nversion\r\n", UNSURE_SLOW);
    expect_end(fd);
    ck_assert_uint_eq(metric_of(gated.rig.worker[0], METRIC_changes_late), 2);
    ck_assert_uint_eq(
        metric_of(gated.rig.worker[0], METRIC_noreply_refused), 1);
    outcomes_commit(gated.log, 100, 0);
    close_gated(&gated);
}
END_TEST

/* While a call to the store is under way, too, which ends later. */
START_TEST(test_late_without_reply_and_parked)
{
    struct gated gated;
    open_gated_until(&gated, 20, 1);
    struct store *store = gated.rig.store;
    int fd = connect_to(&gated.rig, 0);
    hold_begin(store, false);
    say(fd, "incr 1.a 1\r\nincr 1.a 1 noreply\r\nget 1.a\r\nversion\r\n");
    hold_wait(store, 1);
    ck_assert_uint_eq(hold_release(store), 1);
    hold_wait(store, 1);
    expect(fd, UNSURE_SLOW);
    expect_end(fd);
    ck_assert_uint_eq(hold_release(store), 1);
    hold_end(store);
    close_gated(&gated);
}
END_TEST

/* Each connection has a deadline of its own, and what waits behind a held
 * reply, in the socket too, is answered after it. */
START_TEST(test_late_on_many_connections)
{
    enum { CONNECTIONS = 12, EACH = 3 };
    struct gated gated;
    int fd[CONNECTIONS];
    char number[32];
    open_gated_until(&gated, 1, 3);
    for (int i = 0; i < CONNECTIONS; i++) {
        fd[i] = connect_to(&gated.rig, i % RIG_WORKERS);
        say(fd[i], "incr 1.a 1\r\nversion\r\n");
        go_round(&gated, i % RIG_WORKERS);
        say(fd[i], "incr 2.a 0\r\nversion\r\n");
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        expect(fd[i],
            UNSURE_SLOW "VERSION test\r\n" UNSURE_SLOW "VERSION test\r\n");
    }
    outcomes_commit(gated.log, 1000, 0);
    for (int i = 0; i < CONNECTIONS; i++) {
        snprintf(number, sizeof number, "%d\r\n", CONNECTIONS + i + 1);
        talk(fd[i], "incr 1.a 1\r\n", number);
        close(fd[i]);
    }
    close_gated(&gated);
}
END_TEST

/* Late while a call to the store is under way, and the other way about. */
START_TEST(test_parked_and_late)
{
    struct gated gated;
    open_gated_until(&gated, 20, 1);
    struct store *store = gated.rig.store;
    int fd = connect_to(&gated.rig, 0);
    hold_begin(store, false);
    say(fd, "incr 1.a 1\r\nget 1.a\r\nversion\r\n");
    hold_wait(store, 1);
    ck_assert_uint_eq(hold_release(store), 1);
    hold_wait(store, 1);
    expect(fd, UNSURE_SLOW);
    expect_nothing(&gated, 0, fd);
    ck_assert_uint_eq(hold_release(store), 1);
    expect(fd, "VALUE 1.a 0 1\r\n1\r\nEND\r\nVERSION test\r\n");
    hold_end(store);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* The client has gone with one half, or the server stops: the error is sent
 * before the connection is closed. */
START_TEST(test_late_at_the_end)
{
    struct gated gated;
    open_gated_until(&gated, 20, 50);
    int fd = connect_to(&gated.rig, 0);
    say(fd, "incr 1.a 1\r\nversion\r\n");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect(fd, UNSURE_SLOW "VERSION test\r\n");
    expect_end(fd);
    fd = connect_to(&gated.rig, 0);
    say(fd, "incr 1.a 1\r\nquit\r\n");
    outcomes_wait(gated.log, 2);
    stop_gated(&gated);
    expect(fd, UNSURE_SLOW);
    expect_end(fd);
    end_gated(&gated);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_turns_pile_up, test_turns_of_all_kinds,
        test_changes_held_max, test_bytes_held_max, test_pile_fails, test_late,
        test_late_without_reply, test_late_without_reply_and_parked,
        test_late_on_many_connections, test_parked_and_late,
        test_late_at_the_end};
    return run_tests("gate pile", tests, COUNT_OF(tests));
}
