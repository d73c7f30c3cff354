/* SPDX-License-Identifier: BSD-3-Clause */
/* net/gate, through workers: replies that acknowledge changes leave when these
 * are committed, and neither before nor, if that failed, at all; whatever the
 * connection, the worker or the store does meanwhile. */
#include "net/gate.h"

#include "base/clock.h"
#include "base/err.h"
#include "lib/packet.h"
#include "lib/park.h"
#include "unit/gate_help.h"
#include "unit/time_help.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Without numbers nothing is held. */
START_TEST(test_nothing_to_wait_for)
{
    struct gated gated;
    open_gated(&gated, 20);
    hold_log(gated.rig.store, false);
    talk(gated.other[0], "incr 1.a 1\r\nget 1.a\r\n",
        "1\r\nVALUE 1.a 0 1\r\n1\r\nEND\r\n");
    ck_assert_uint_eq(held_turns(&gated, 0), 0);
    close_gated(&gated);
}
END_TEST

/* All replies of the turn wait, in their order; others do not wait. */
START_TEST(test_whole_turn_waits)
{
    struct gated gated;
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    say(fd,
        "version\r\nincr 1.a 1\r\nget 1.a\r\nincr 1.a 1\r\nincr 2.a 5\r\n");
    outcomes_wait(gated.log, 2);
    expect_nothing(&gated, 0, fd);
    talk(gated.other[0], "get 1.a\r\n", "VALUE 1.a 0 1\r\n2\r\nEND\r\n");
    outcomes_commit(gated.log, 1, 0); /* the last one is missing */
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 2, 0);
    expect(fd, "VERSION test\r\n1\r\nVALUE 1.a 0 1\r\n1\r\nEND\r\n2\r\n5\r\n");
    ck_assert_uint_eq(held_turns(&gated, 0), 1);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* What is committed before the end of its turn does not wait. */
START_TEST(test_committed_at_once)
{
    struct gated gated;
    open_gated(&gated, 20);
    outcomes_commit(gated.log, 100, 0);
    talk(gated.other[0], "incr 1.a 1\r\n", "1\r\n");
    ck_assert_uint_eq(held_turns(&gated, 0), 0);
    close_gated(&gated);
}
END_TEST

/* A read behind a change without a reply waits for the change: in the same
 * turn, and when it comes later. */
START_TEST(test_read_behind_noreply)
{
    struct gated gated;
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    say(fd, "incr 1.a 1 noreply\r\nget 1.a\r\n");
    outcomes_wait(gated.log, 1);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 1, 0);
    expect(fd, "VALUE 1.a 0 1\r\n1\r\nEND\r\n");
    say(fd, "incr 1.a 1 noreply\r\n");
    outcomes_wait(gated.log, 2);
    say(fd, "get 1.a\r\nver");
    expect_nothing(&gated, 0, fd);
    say(fd, "sion\r\nincr 1.a 1\r\n");
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 2, 0);
    expect(fd, "VALUE 1.a 0 1\r\n2\r\nEND\r\n");
    outcomes_wait(gated.log, 3);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 3, 0);
    expect(fd, "VERSION test\r\n3\r\n");
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Much arrives while replies are held: some of it is kept, the rest stays in
 * the socket, and all is answered. */
START_TEST(test_much_arrives)
{
    enum { LINES = 8000 };
    struct gated gated;
    struct buf said = {0};
    struct buf answer = {0};
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    say(fd, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 1);
    uint64_t bytes_read = metric_of(gated.rig.worker[0], METRIC_bytes_read);
    for (int i = 0; i < LINES; i++) {
        buf_add_text(&said, "get 1.a\r\n");
        buf_add_text(&answer, "VALUE 1.a 0 1\r\n1\r\nEND\r\n");
    }
    buf_add(&answer, "", 1);
    send_bytes(fd, said.data, said.len);
    expect_nothing(&gated, 0, fd);
    ck_assert_uint_lt(
        metric_of(gated.rig.worker[0], METRIC_bytes_read) - bytes_read,
        2 * WORKER_READ_BYTES);
    outcomes_commit(gated.log, 1, 0);
    expect(fd, "1\r\n");
    expect(fd, answer.data);
    buf_fini(&said);
    buf_fini(&answer);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Each acknowledgement is replaced, and nothing else; then the connection goes
 * on: refused at once, in other words, until the log is well again. */
START_TEST(test_failure)
{
    struct gated gated;
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    say(fd,
        "incr 1.a 1\r\nget 1.a\r\nincr 1.b 7\r\n"
        "set 1.a 0 0 1\r\nx\r\ndelete 9.a\r\nversion\r\n");
    outcomes_wait(gated.log, 3);
    outcomes_fail(gated.log, 3, ERR_DISK_FULL);
    expect(fd,
        UNSURE "VALUE 1.a 0 1\r\n1\r\nEND\r\n" UNSURE
               "CLIENT_ERROR value must be an unsigned decimal integer\r\n"
               "NOT_FOUND\r\nVERSION test\r\n");
    ck_assert_uint_eq(
        metric_of(gated.rig.worker[0], METRIC_changes_unsure), 2);
    talk(fd, "incr 1.a 1\r\nget 1.weibo\r\n",
        DISK_FULL "VALUE 1.weibo 0 3\r\n1 7\r\nEND\r\n");
    outcomes_commit(gated.log, 3, 0);
    say(fd, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 4);
    expect_nothing(&gated, 0, fd);
    outcomes_commit(gated.log, 4, 0);
    expect(fd, "2\r\n");
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Behind a change whose client wants no reply nothing is said: the connection
 * ends there, and what the client has sent meanwhile does not take from it what
 * was said before. */
START_TEST(test_failure_without_reply)
{
    struct gated gated;
    for (unsigned budget = 1; budget <= 20; budget += 19) {
        open_gated(&gated, budget);
        int fd = connect_to(&gated.rig, 0);
        say(fd,
            "incr 1.a 1\r\nget 1.a\r\nincr 1.b 9\r\nget 1.b\r\n"
            "incr 1.a 1 noreply\r\nincr 1.b 1\r\nversion\r\n");
        outcomes_wait(gated.log, budget == 1 ? 4 : 3);
        say_often(fd, "version\r\n", 1000);
        expect_nothing(&gated, 0, fd);
        outcomes_fail(gated.log, 4, ERR_DISK_FULL);
        expect(fd,
            UNSURE "VALUE 1.a 0 1\r\n1\r\nEND\r\n" UNSURE
                   "VALUE 1.b 0 1\r\n9\r\nEND\r\n");
        say_often(fd, "version\r\n", 1000);
        expect_end(fd);
        ck_assert_uint_eq(
            metric_of(gated.rig.worker[0], METRIC_noreply_refused), 1);
        close_gated(&gated);
    }
}
END_TEST

/* Refused at once, it is the same. Who does not close then is not waited for
 * for ever. */
START_TEST(test_refusal_without_reply)
{
    struct gated gated;
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    outcomes_fail(gated.log, 1, ERR_DISK_FULL);
    say(fd, "incr 1.a 1\r\nincr 1.a 1 noreply\r\nget 1.a\r\n");
    expect(fd, DISK_FULL);
    char byte;
    ck_assert_int_eq(read(fd, &byte, 1), 0);
    ssize_t n = send(fd, "version\r\n", 9, MSG_NOSIGNAL); /* it is heard */
    while (n == 9) {
        fake_clock_pass(&gated.rig.clock, WORKER_SWEEP_MS);
        go_round(&gated, 0);
        n = send(fd, "version\r\n", 9, MSG_NOSIGNAL);
    }
    ck_assert_int_eq(errno, EPIPE);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* In the binary protocol too: of a quiet change the packet has to be made of
 * what its acknowledgement keeps. */
START_TEST(test_failure_in_packets)
{
    static const char unsure[] = UNSURE_TEXT;
    struct gated gated;
    struct buf said = {0};
    struct buf shown = {0};
    struct buf expected = {0};
    char replies[3 * BINARY_HEADER_BYTES + 2 * (sizeof unsure - 1)];
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    packet_add_count(&said, BINARY_INCREMENTQ, "1.a", 1, 1, 0, 0);
    packet_add_store(&said, BINARY_SET, "1.b", "5", 0, 0, 0);
    packet_add(&said, &(struct packet_said){.opcode = BINARY_NOOP});
    said.data[15] = 7; /* the lowest byte of the first one's opaque */
    send_bytes(fd, said.data, said.len);
    outcomes_wait(gated.log, 1);
    outcomes_fail(gated.log, 1, ERR_DISK);
    receive(fd, replies, sizeof replies);
    ck_assert(packet_show(&shown, replies, sizeof replies));
    buf_addf(&expected,
        "INCREMENTQ st=a3 opaque=7 body=[%s]\nSET st=a3 body=[%s]\n"
        "NOOP st=00\n",
        unsure, unsure);
    ck_assert_uint_eq(shown.len, expected.len);
    ck_assert_mem_eq(shown.data, expected.data, shown.len);
    buf_fini(&said);
    buf_fini(&shown);
    buf_fini(&expected);
    outcomes_commit(gated.log, 1, 0);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* The same where the log is well again when the gate looks. */
START_TEST(test_failure_that_has_passed)
{
    struct gated gated;
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 1);
    say(fd, "incr 1.a 1\r\nincr 1.a 1\r\n");
    outcomes_wait(gated.log, 1);
    outcomes_fail(gated.log, 1, 0);
    expect(fd, UNSURE UNSURE);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Replies of any length among those held, also in the way of a failure. */
START_TEST(test_large_replies)
{
    enum { LARGE = 300000 };
    struct gated gated;
    struct buf said = {0};
    char *bytes = malloc(LARGE);
    ck_assert_ptr_nonnull(bytes);
    memset(bytes, 'v', LARGE);
    open_gated(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    buf_addf(&said, "set big 0 0 %d\r\n", LARGE);
    buf_add(&said, bytes, LARGE);
    buf_add_text(&said, "\r\n");
    send_bytes(fd, said.data, said.len);
    expect(fd, "STORED\r\n");
    for (uint64_t seq = 1; seq <= 4; seq++) {
        bool fails = seq % 2 == 0;
        say(fd, "incr 1.a 0\r\nget big\r\n");
        outcomes_wait(gated.log, seq);
        expect_nothing(&gated, 0, fd);
        if (fails) {
            outcomes_fail(gated.log, seq, 0);
        } else {
            outcomes_commit(gated.log, seq, 0);
        }
        expect(fd, fails ? UNSURE : "0\r\n");
        expect(fd, "VALUE big 0 300000\r\n");
        receive(fd, bytes, LARGE);
        ck_assert(bytes[0] == 'v' && bytes[LARGE - 1] == 'v');
        expect(fd, "\r\nEND\r\n");
    }
    buf_fini(&said);
    free(bytes);
    close(fd);
    close_gated(&gated);
}
END_TEST

/* Two workers and one log: each lets pass what is committed. */
START_TEST(test_two_workers)
{
    struct gated gated;
    open_gated(&gated, 20);
    int first = connect_to(&gated.rig, 0);
    int second = connect_to(&gated.rig, 1);
    int third = connect_to(&gated.rig, 1);
    say(first, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 1);
    say(second, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 2);
    say(third, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 3);
    outcomes_commit(gated.log, 1, 0);
    expect(first, "1\r\n");
    expect_nothing(&gated, 1, second);
    outcomes_commit(gated.log, 2, 0);
    expect(second, "2\r\n");
    expect_nothing(&gated, 1, third);
    say(first, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 4);
    outcomes_commit(gated.log, 4, 0);
    expect(third, "3\r\n");
    expect(first, "4\r\n");
    close(first);
    close(second);
    close(third);
    close_gated(&gated);
}
END_TEST

/* A gate on a loop of the test's own. */
struct alone {
    struct gate gate; /* first */
    struct metric_set metrics;
    struct bell bell;
    uv_loop_t loop;
    struct held held[2];
    unsigned n_rung, n_passed;
};

static struct alone the_alone; /* for pass_fn, which is told of no gate */

static void
on_rung(struct bell *bell)
{
    struct alone *alone =
        (struct alone *)((char *)bell - offsetof(struct alone, bell));
    alone->n_rung++;
    gate_look(&alone->gate);
}

static void
note_passed(struct held *held, struct buf *out)
{
    (void)held;
    ck_assert_uint_gt(out->len, 0);
    the_alone.n_passed++;
}

static void
hold_alone(struct alone *alone, unsigned at, uint64_t seq)
{
    struct session_acks acks = {.seq = seq};
    struct buf out = {0};
    buf_add_text(&out, "1\r\n");
    ck_assert(gate_hold(&alone->gate, &alone->held[at], &out, &acks));
    gate_commit(&alone->gate);
    buf_fini(&out);
    buf_fini(&acks.at);
}

/* What has come to the loop so far: how often it was woken in all. */
static unsigned
n_rung(struct alone *alone)
{
    (void)uv_run(&alone->loop, UV_RUN_NOWAIT);
    return alone->n_rung;
}

static struct alone *
open_alone(struct gated *gated)
{
    struct alone *alone = &the_alone;
    open_gated(gated, 20);
    memset(alone, 0, sizeof *alone);
    ck_assert_int_eq(uv_loop_init(&alone->loop), 0);
    ck_assert_int_eq(bell_init(&alone->bell, &alone->loop, on_rung), 0);
    gate_init(&alone->gate, gated->rig.store, &alone->metrics, &alone->bell,
        &gated->rig.clock.clock, RIG_NEVER_MS, note_passed);
    return alone;
}

static void
close_alone(struct alone *alone, struct gated *gated)
{
    gate_drop(&alone->gate, &alone->held[0]);
    gate_drop(&alone->gate, &alone->held[1]);
    gate_fini(&alone->gate);
    bell_close(&alone->bell);
    (void)uv_run(&alone->loop, UV_RUN_DEFAULT);
    bell_fini(&alone->bell);
    ck_assert_int_eq(uv_loop_close(&alone->loop), 0);
    close_gated(gated);
}

/* The loop is woken when what is held for longest may leave, and not for what
 * else moves. */
START_TEST(test_woken_for_news)
{
    struct gated gated;
    struct alone *alone = open_alone(&gated);
    hold_alone(alone, 0, 9);
    hold_alone(alone, 1, 5);
    outcomes_note(gated.log);
    outcomes_commit(gated.log, 4, 0);
    ck_assert_uint_eq(n_rung(alone), 0);
    outcomes_commit(gated.log, 5, 0);
    ck_assert_uint_eq(n_rung(alone), 1);
    ck_assert_uint_eq(alone->n_passed, 1);
    outcomes_commit(gated.log, 8, 0);
    ck_assert_uint_eq(n_rung(alone), 1);
    outcomes_fail(gated.log, 9, 0);
    outcomes_note(gated.log); /* it has been woken already */
    ck_assert_uint_eq(n_rung(alone), 2);
    ck_assert_uint_eq(alone->n_passed, 2);
    outcomes_note(gated.log); /* nothing is held */
    ck_assert_uint_eq(n_rung(alone), 2);
    close_alone(alone, &gated);
}
END_TEST

/* And when the newest has failed, while the one before waits for copies. */
START_TEST(test_woken_for_a_failure)
{
    struct gated gated;
    struct alone *alone = open_alone(&gated);
    hold_alone(alone, 0, 5);
    hold_alone(alone, 1, 9);
    outcomes_write(gated.log, 5);
    outcomes_note(gated.log);
    ck_assert_uint_eq(n_rung(alone), 0);
    outcomes_fail(gated.log, 9, 0);
    ck_assert_uint_eq(n_rung(alone), 1);
    ck_assert_uint_eq(alone->n_passed, 1);
    ck_assert_uint_eq(alone->held[0].n, 1);
    ck_assert_uint_eq(alone->held[1].n, 0);
    outcomes_commit(gated.log, 5, 0);
    ck_assert_uint_eq(n_rung(alone), 2);
    ck_assert_uint_eq(alone->n_passed, 2);
    close_alone(alone, &gated);
}
END_TEST

/* The client goes, wholly or with one half, while its replies are held. */
START_TEST(test_closed_while_held)
{
    struct gated gated;
    open_gated(&gated, 20);
    for (uint64_t seq = 1; seq <= 6; seq++) {
        int fd = connect_to(&gated.rig, 0);
        say(fd, seq % 2 == 0 ? "incr 1.a 1\r\n" : "incr 1.a 1\r\nquit\r\n");
        outcomes_wait(gated.log, seq);
        if (seq <= 4) {
            ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
            go_round(&gated, 0);
            outcomes_commit(gated.log, seq, 0);
            char number[] = {(char)('0' + seq), '\r', '\n', '\0'};
            expect(fd, number);
            expect_end(fd);
            continue;
        }
        close(fd); /* its reply finds nobody */
        go_round(&gated, 0);
        outcomes_commit(gated.log, seq, 0);
        while (atomic_load(&gated.rig.gauge.current) > RIG_WORKERS) {
            sched_yield();
        }
    }
    close_gated(&gated);
}
END_TEST

/* The connection breaks while the gate has its replies: it leaves the gate,
 * also when it was to have another turn. */
START_TEST(test_reset_while_held)
{
    for (unsigned budget = 1; budget <= 20; budget += 19) {
        struct gated gated;
        open_gated(&gated, budget);
        for (int i = 0; i < 10; i++) {
            int fd = connect_to(&gated.rig, 0);
            /* what it has not read makes the close a reset */
            say(fd, "version\r\n");
            go_round(&gated, 0);
            uint64_t turns = held_turns(&gated, 0);
            say_often(fd, "incr 1.a 1\r\n", 5);
            while (held_turns(&gated, 0) == turns) {
                sched_yield(); /* else the close may be taken for an end */
            }
            close(fd);
            while (atomic_load(&gated.rig.gauge.current) > RIG_WORKERS) {
                sched_yield(); /* nothing is committed meanwhile */
            }
        }
        outcomes_commit(gated.log, 100, 0);
        close_gated(&gated);
    }
}
END_TEST

/* The server stops while replies are held, of as many turns as can be: they
 * arrive when the commit does, and no further turn is begun. */
START_TEST(test_stopped_while_held)
{
    struct gated gated;
    open_gated(&gated, 1);
    int fd = connect_to(&gated.rig, 0);
    say_often(fd, "incr 1.a 1\r\n", HELD_CHANGES_MAX + 10);
    outcomes_wait(gated.log, HELD_CHANGES_MAX);
    stop_gated(&gated);
    outcomes_commit(gated.log, HELD_CHANGES_MAX + 10, 0);
    expect_numbers(fd, 1, HELD_CHANGES_MAX);
    expect_end(fd);
    end_gated(&gated);
}
END_TEST

/* The same where another commit never comes: it is not waited for for ever,
 * and those whose replies are sent do not wait for it. */
START_TEST(test_stopped_and_never_committed)
{
    struct gated gated;
    char byte;
    open_gated_for(&gated, 20, RIG_NEVER_MS, WORKER_STOP_MS);
    int fd = connect_to(&gated.rig, 0);
    say(fd, "incr 1.a 1\r\nversion\r\n");
    outcomes_wait(gated.log, 1);
    int never = connect_to(&gated.rig, 0); /* closed before the other, if both
                                            * are closed in the end */
    say(never, "incr 1.a 1\r\n");
    outcomes_wait(gated.log, 2);
    stop_gated(&gated);
    outcomes_commit(gated.log, 1, 0);
    expect(fd, "1\r\nVERSION test\r\n");
    expect_end(fd);
    ck_assert_int_eq(recv(never, &byte, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(errno, EAGAIN);
    expect_end_in_time(&gated.rig, never);
    end_gated(&gated);
}
END_TEST

/* A turn that ends with a call to the store under way is held too: the answer
 * and the commit come in either order. */
START_TEST(test_parked_and_held)
{
    for (int answer_first = 0; answer_first <= 1; answer_first++) {
        struct gated gated;
        open_gated(&gated, 20);
        struct store *store = gated.rig.store;
        int fd = connect_to(&gated.rig, 0);
        hold_begin(store, false);
        say(fd, "incr 1.a 1\r\nget 1.a\r\nversion\r\n");
        hold_wait(store, 1);
        ck_assert_uint_eq(hold_release(store), 1);
        outcomes_wait(gated.log, 1); /* so the turn has ended with the get */
        hold_wait(store, 1);
        expect_nothing(&gated, 0, fd);
        if (answer_first == 1) {
            ck_assert_uint_eq(hold_release(store), 1);
            expect_nothing(&gated, 0, fd);
            outcomes_commit(gated.log, 1, 0);
            expect(fd, "1\r\n");
        } else {
            outcomes_commit(gated.log, 1, 0);
            expect(fd, "1\r\n");
            expect_nothing(&gated, 0, fd);
            ck_assert_uint_eq(hold_release(store), 1);
        }
        expect(fd, "VALUE 1.a 0 1\r\n1\r\nEND\r\nVERSION test\r\n");
        hold_end(store);
        close(fd);
        close_gated(&gated);
    }
}
END_TEST

/* The client goes while its turn is held and its call is under way. */
START_TEST(test_closed_while_parked_and_held)
{
    struct gated gated;
    open_gated(&gated, 20);
    struct store *store = gated.rig.store;
    int fd = connect_to(&gated.rig, 0);
    hold_begin(store, false);
    say(fd, "incr 1.a 1\r\nget 1.a\r\n");
    hold_wait(store, 1);
    ck_assert_uint_eq(hold_release(store), 1);
    outcomes_wait(gated.log, 1);
    hold_wait(store, 1);
    close(fd);
    go_round(&gated, 0);
    outcomes_commit(gated.log, 1, 0);
    go_round(&gated, 0);
    ck_assert_uint_eq(hold_release(store), 1);
    while (atomic_load(&gated.rig.gauge.current) > RIG_WORKERS) {
        sched_yield();
    }
    hold_end(store);
    close_gated(&gated);
}
END_TEST

/* Clients that count in cells of their own, on a store that parks calls and
 * commits late, or not. */
struct counting {
    struct rig *rig;
    unsigned id;
    unsigned n_refused, n_closed;
    uint64_t random;
    pthread_t thread;
    char in[4096]; /* heard: bytes at..n of it are not taken yet */
    size_t at, n;
};

enum { CLIENTS = 6, ROUNDS = 60, DEPTH_MAX = 80 };

/* '\0' where the connection has been closed. */
static char
hear_byte(struct counting *counting, int fd)
{
    if (counting->at == counting->n) {
        ssize_t n = read(fd, counting->in, sizeof counting->in);
        ck_assert_msg(n >= 0, "read: %s", strerror(errno));
        if (n == 0) {
            return '\0';
        }
        counting->at = 0;
        counting->n = (size_t)n;
    }
    return counting->in[counting->at++];
}

/* Hears a line, without its end; an empty one where the connection has been
 * closed before it. */
static void
hear(struct counting *counting, int fd, char *line, size_t size)
{
    size_t len = 0;
    do {
        ck_assert_uint_lt(len + 1, size);
        line[len++] = hear_byte(counting, fd);
        if (len == 1 && line[0] == '\0') {
            return;
        }
    } while (line[len - 1] != '\n');
    ck_assert_uint_ge(len, 2);
    line[len - 2] = '\0';
}

/* One command of kind: 0 incr, 1 the same without a reply, 2 get. False where
 * the connection has been closed, as it may be behind one without a reply. */
static bool
hear_one(
    struct counting *counting, int fd, int kind, bool may_end, uint64_t value)
{
    char line[128];
    char expected[64];
    if (kind == 1) {
        return true; /* nothing comes, whatever becomes of it */
    }
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)value);
    if (kind == 2) {
        hear(counting, fd, line, sizeof line);
        if (may_end && line[0] == '\0') {
            return false;
        }
        ck_assert_int_eq(strncmp(line, "VALUE ", 6), 0);
        hear(counting, fd, line, sizeof line);
        ck_assert_str_eq(line, expected);
        hear(counting, fd, line, sizeof line);
        ck_assert_str_eq(line, "END");
        return true;
    }
    hear(counting, fd, line, sizeof line);
    if (line[0] == 'S') {
        counting->n_refused++;
    } else {
        ck_assert_str_eq(line, expected);
    }
    return true;
}

/* n commands at once. Each without a reply is followed by a get, which would
 * take an error for its own reply. False where the connection has been closed
 * between the two. */
static bool
count_on(struct counting *counting, int fd, uint64_t *value)
{
    int kind[DEPTH_MAX];
    uint64_t after[DEPTH_MAX];
    struct buf said = {0};
    unsigned n = 1 + (unsigned)random_below(&counting->random, DEPTH_MAX);
    for (unsigned i = 0; i < n; i++) {
        bool was_quiet = i > 0 && kind[i - 1] == 1;
        kind[i] = was_quiet ? 2 : (int)random_below(&counting->random, 3);
        if (i + 1 == n && kind[i] == 1) {
            kind[i] = 0;
        }
        buf_addf(&said, kind[i] == 2 ? "get %u.a\r\n" : "incr %u.a 1",
            counting->id);
        buf_add_text(&said,
            kind[i] == 2       ? ""
                : kind[i] == 1 ? " noreply\r\n"
                               : "\r\n");
        *value += kind[i] != 2;
        after[i] = *value;
    }
    send_bytes(fd, said.data, said.len);
    bool is_open = true;
    for (unsigned i = 0; i < n && is_open; i++) {
        bool may_end = i > 0 && kind[i - 1] == 1;
        is_open = hear_one(counting, fd, kind[i], may_end, after[i]);
    }
    buf_fini(&said);
    return is_open;
}

static void *
run_counting(void *arg)
{
    struct counting *counting = arg;
    uint64_t value = 0;
    int fd = connect_to(counting->rig, (int)counting->id % RIG_WORKERS);
    for (int i = 0; i < ROUNDS; i++) {
        if (!count_on(counting, fd, &value)) {
            close(fd);
            fd = connect_to(counting->rig, (int)counting->id % RIG_WORKERS);
            counting->id += CLIENTS; /* what is under way is of the old one */
            counting->n_closed++;
            value = 0;
        }
    }
    close(fd);
    return NULL;
}

static void
count_with(uint64_t seed, unsigned fails)
{
    struct rig rig;
    struct counting counting[CLIENTS];
    struct store *park;
    unsigned n_refused = 0, n_closed = 0;
    rig_init(&rig);
    rig.config.requests_per_turn = seed % 2 == 0 ? 20 : 3;
    ck_assert_int_eq(park_create(rig.inner, seed, &park), 0);
    rig.store = park;
    rig_start(&rig);
    int fd = connect_to(&rig, 0);
    talk(fd,
        "add counter weibo\r\nadd column weibo weibo_id primarykey\r\n"
        "add column weibo a max=64\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\n");
    park_fail(park, fails);
    for (unsigned i = 0; i < CLIENTS; i++) {
        counting[i] = (struct counting){.rig = &rig, .id = i, .random = i};
        ck_assert_int_eq(pthread_create(&counting[i].thread, NULL,
                             run_counting, &counting[i]),
            0);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        pthread_join(counting[i].thread, NULL);
        n_refused += counting[i].n_refused;
        n_closed += counting[i].n_closed;
    }
    ck_assert(fails > 0 ? n_refused > 0 : n_refused + n_closed == 0);
    ck_assert_uint_gt(metric_of(rig.worker[0], METRIC_turns_held), 0);
    close(fd);
    rig_stop(&rig);
    rig_join(&rig);
    park_destroy(&park);
    rig_fini(&rig);
}

START_TEST(test_random_commits)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        count_with(seed, 0);
    }
}
END_TEST

START_TEST(test_random_failures)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        count_with(seed, 4);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_nothing_to_wait_for,
        test_whole_turn_waits, test_committed_at_once,
        test_read_behind_noreply, test_much_arrives, test_failure,
        test_failure_without_reply, test_refusal_without_reply,
        test_failure_in_packets, test_failure_that_has_passed,
        test_large_replies, test_two_workers, test_woken_for_news,
        test_woken_for_a_failure, test_closed_while_held,
        test_reset_while_held, test_stopped_while_held,
        test_stopped_and_never_committed, test_parked_and_held,
        test_closed_while_parked_and_held, test_random_commits,
        test_random_failures};
    return run_tests("gate", tests, COUNT_OF(tests));
}
