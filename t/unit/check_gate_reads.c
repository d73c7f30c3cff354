/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads under --reads=committed, through workers: a reply that may show what
 * is not committed leaves when that is, and else an error comes in its place;
 * whatever the protocol, and however long it is. */
#include "base/err.h"
#include "lib/packet.h"
#include "session/exec.h"
#include "unit/gate_help.h"

static const struct session_rules committed = {
    .holds_reads = SESSION_HOLDS_READS};

static void
open_reads(struct gated *gated, unsigned requests_per_turn)
{
    open_gated_by(
        gated, &committed, requests_per_turn, RIG_NEVER_MS, RIG_NEVER_MS);
}

static uint64_t
count_of(const struct gated *gated, enum metric metric)
{
    return metric_of(gated->rig.worker[0], metric) +
        metric_of(gated->rig.worker[1], metric);
}

/* A request, or several, and what they are answered with. */
struct form {
    const char *said, *answer;
    unsigned n_reads; /* replies that show something */
};

/* 1.a is 5; 9.b is what nobody else has committed. */
static const struct form forms[] = {
    {"get 1.a\r\n", "VALUE 1.a 0 1\r\n5\r\nEND\r\n", 1},
    {"gets 1.a\r\n", "VALUE 1.a 0 1 6\r\n5\r\nEND\r\n", 1},
    {"get 1.weibo\r\n", "VALUE 1.weibo 0 3\r\n5 0\r\nEND\r\n", 1},
    {"get weibo 1\r\n", "VALUE 1 0 3\r\n5 0\r\nEND\r\n", 1},
    {"get 7.b 1.a i\r\n",
        "VALUE 7.b 0 1\r\n0\r\nVALUE 1.a 0 1\r\n5\r\nVALUE i 0 1\r\nx\r\n"
        "END\r\n",
        1},
    {"gat 0 1.a\r\n", "VALUE 1.a 0 1\r\n5\r\nEND\r\n", 1},
    {"touch 1.a 0\r\n", "TOUCHED\r\n", 1},
    {"get 1.a\r\nget i\r\nget 1.a\r\n",
        "VALUE 1.a 0 1\r\n5\r\nEND\r\nVALUE i 0 1\r\nx\r\nEND\r\n"
        "VALUE 1.a 0 1\r\n5\r\nEND\r\n",
        2},
    {"mg 1.a v\r\n", "VA 1\r\n5\r\n", 1},
    {"mg 1.a\r\n", "HD\r\n", 1},
    {"mg 1.a k v q\r\nmg 1.b v\r\nmn\r\n",
        "VA 1 k1.a\r\n5\r\nVA 1\r\n0\r\nMN\r\n", 2},
    {"mg 1.m k v q\r\nmn\r\n", "MN\r\n", 1},
    {"get 1.m\r\n", "END\r\n", 1},
    {"add 1.a 0 0 1\r\n7\r\n", "NOT_STORED\r\n", 1},
    {"ms 1.a 1 ME\r\n7\r\n", "NS\r\n", 1},
    {"cas 1.a 0 0 1 99\r\n7\r\n", "EXISTS\r\n", 1},
    {"delete 1.m\r\n", "NOT_FOUND\r\n", 1},
    {"incr 1.c 9\r\n",
        "CLIENT_ERROR increment would pass the column's max\r\n", 1},
    {"version\r\nget 1.a\r\nversion\r\n",
        "VERSION test\r\nVALUE 1.a 0 1\r\n5\r\nEND\r\nVERSION test\r\n", 1},
};

/* These show nothing that a crash could undo. */
static const struct form others[] = {
    {"get i\r\n", "VALUE i 0 1\r\nx\r\nEND\r\n", 0},
    {"get none i\r\n", "VALUE i 0 1\r\nx\r\nEND\r\n", 0},
    {"mg i v\r\n", "VA 1\r\nx\r\n", 0},
    {"set i 0 0 1\r\nx\r\n", "STORED\r\n", 0},
    {"add i 0 0 1\r\nx\r\n", "NOT_STORED\r\n", 0},
    {"version\r\n", "VERSION test\r\n", 0},
    {"mn\r\n", "MN\r\n", 0},
    {"set 1.a 0 0 1\r\nx\r\n",
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n", 0},
    {"add 1.a 0 0 1 noreply\r\n7\r\nversion\r\n", "VERSION test\r\n", 0},
    {"touch 1.a 1\r\n",
        "CLIENT_ERROR a counter does not expire, send exptime 0\r\n", 0},
};

/* What forms need, committed. */
static void
prepare(struct gated *gated)
{
    talk(gated->other[1],
        "add counter mite absent=miss\r\nadd column mite id primarykey\r\n"
        "add column mite m max=64 suffix=m\r\n"
        "add counter cent overflow=error\r\nadd column cent id2 primarykey\r\n"
        "add column cent c max=3 suffix=c\r\nset i 0 0 1\r\nx\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\nSTORED\r\nSTORED\r\nSTORED\r\n"
        "STORED\r\n");
    outcomes_commit(gated->log, 1, 0);
    talk(gated->other[1], "set 1.a 0 0 1\r\n5\r\n", "STORED\r\n");
}

static void
commit_all(struct gated *gated)
{
    outcomes_commit(gated->log, outcomes_open(gated->log), 0);
}

static void
fail_all(struct gated *gated)
{
    outcomes_fail(gated->log, outcomes_open(gated->log), ERR_DISK);
}

/* All is committed; has a change done that is not, and is the last that waits
 * for a commit by itself. */
static int
begin_change(struct gated *gated)
{
    int fd = connect_to(&gated->rig, 1);
    hold_log(gated->rig.store, true);
    say(fd, "set 9.b 0 0 1\r\n1\r\n");
    outcomes_wait(gated->log, gated->log->committed + 1);
    hold_log(gated->rig.store, false);
    return fd;
}

START_TEST(test_each_waits)
{
    struct gated gated;
    open_reads(&gated, 20);
    prepare(&gated);
    for (unsigned i = 0; i < COUNT_OF(forms); i++) {
        int writer = begin_change(&gated);
        uint64_t n = count_of(&gated, METRIC_reads_held);
        int fd = connect_to(&gated.rig, 0);
        say(fd, forms[i].said);
        while (count_of(&gated, METRIC_reads_held) < n + forms[i].n_reads) {
            go_round(&gated, 0);
        }
        expect_nothing(&gated, 0, fd);
        commit_all(&gated);
        expect(fd, forms[i].answer);
        expect(writer, "STORED\r\n");
        ck_assert_uint_eq(
            count_of(&gated, METRIC_reads_held), n + forms[i].n_reads);
        talk(fd, forms[i].said, forms[i].answer); /* nothing to wait for */
        close(fd);
        close(writer);
    }
    ck_assert_uint_eq(count_of(&gated, METRIC_reads_unsure), 0);
    close_gated(&gated);
}
END_TEST

START_TEST(test_others_do_not_wait)
{
    struct gated gated;
    open_reads(&gated, 20);
    prepare(&gated);
    int writer = begin_change(&gated);
    for (unsigned i = 0; i < COUNT_OF(others); i++) {
        talk(gated.other[0], others[i].said, others[i].answer);
    }
    ck_assert_uint_eq(count_of(&gated, METRIC_reads_held), 0);
    ck_assert_uint_eq(held_turns(&gated, 0), 0);
    commit_all(&gated);
    expect(writer, "STORED\r\n");
    close(writer);
    close_gated(&gated);
}
END_TEST

/* Without the rule none does. */
START_TEST(test_latest)
{
    struct gated gated;
    open_gated(&gated, 20);
    prepare(&gated);
    int writer = begin_change(&gated);
    for (unsigned i = 0; i < COUNT_OF(forms); i++) {
        talk(gated.other[0], forms[i].said, forms[i].answer);
    }
    ck_assert_uint_eq(count_of(&gated, METRIC_reads_held), 0);
    commit_all(&gated);
    expect(writer, "STORED\r\n");
    close(writer);
    close_gated(&gated);
}
END_TEST

/* Each reply that shows something is replaced, and no other one; while the log
 * fails at once, and when it is well nothing is missing. */
START_TEST(test_failure)
{
    struct gated gated;
    open_reads(&gated, 20);
    prepare(&gated);
    int writer = begin_change(&gated);
    int fd = connect_to(&gated.rig, 0);
    say(fd,
        "get 1.a 9.b\r\nget i\r\nmg 1.a v k q\r\nmg 1.m v q\r\n"
        "add 1.a 0 0 1\r\n7\r\nversion\r\nget weibo 1 9\r\ngat 0 i 1.a\r\n");
    while (count_of(&gated, METRIC_reads_held) < 6) {
        go_round(&gated, 0);
    }
    fail_all(&gated);
    expect(writer, UNSURE);
    expect(fd,
        UNCOMMITTED
        "VALUE i 0 1\r\nx\r\nEND\r\n" UNCOMMITTED UNCOMMITTED UNCOMMITTED
        "VERSION test\r\n" UNCOMMITTED UNCOMMITTED);
    talk(
        fd, "get 1.a\r\nget i\r\n", UNCOMMITTED "VALUE i 0 1\r\nx\r\nEND\r\n");
    ck_assert_uint_eq(count_of(&gated, METRIC_reads_unsure), 7);
    ck_assert_uint_eq(count_of(&gated, METRIC_changes_unsure), 1);
    commit_all(&gated);
    talk(fd, "get 1.a 9.b\r\n",
        "VALUE 1.a 0 1\r\n5\r\nVALUE 9.b 0 1\r\n1\r\nEND\r\n");
    close(fd);
    close(writer);
    close_gated(&gated);
}
END_TEST

/* What waits for too long, too. */
START_TEST(test_late)
{
    struct gated gated;
    open_gated_by(&gated, &committed, 20, 1, RIG_NEVER_MS);
    outcomes_commit(gated.log, 1, 0);
    talk(gated.other[0], "incr 1.a 5\r\n", "5\r\n");
    talk(gated.other[0], "incr 1.a 1\r\nget 1.a\r\nversion\r\n",
        UNSURE_SLOW UNCOMMITTED_SLOW "VERSION test\r\n");
    talk(gated.other[1], "get 1.a\r\n", UNCOMMITTED_SLOW);
    ck_assert_uint_eq(count_of(&gated, METRIC_changes_late), 1);
    ck_assert_uint_eq(count_of(&gated, METRIC_reads_unsure), 2);
    outcomes_commit(gated.log, 100, 0);
    talk(gated.other[1], "get 1.a\r\n", "VALUE 1.a 0 1\r\n6\r\nEND\r\n");
    close_gated(&gated);
}
END_TEST

/* Packets, quiet ones that find nothing among them: silence would say so. */
START_TEST(test_packets)
{
    static const char why[] = UNCOMMITTED_TEXT;
    struct gated gated;
    struct buf said = {0};
    struct buf shown = {0};
    struct buf expected = {0};
    char replies[4 * BINARY_HEADER_BYTES + 3 * (sizeof why - 1)];
    open_reads(&gated, 20);
    prepare(&gated);
    int writer = begin_change(&gated);
    int fd = connect_to(&gated.rig, 0);
    packet_add(
        &said, &(struct packet_said){.opcode = BINARY_GETKQ, .key = "1.a"});
    packet_add(&said,
        &(struct packet_said){
            .opcode = BINARY_GETQ, .key = "1.m", .opaque = 0x07000000});
    packet_add_store(&said, BINARY_ADDQ, "1.a", "5", 0, 0, 0);
    packet_add(&said, &(struct packet_said){.opcode = BINARY_NOOP});
    said.data[15] = 9; /* the lowest byte of the first one's opaque */
    send_bytes(fd, said.data, said.len);
    while (count_of(&gated, METRIC_reads_held) < 3) {
        go_round(&gated, 0);
    }
    fail_all(&gated);
    receive(fd, replies, sizeof replies);
    ck_assert(packet_show(&shown, replies, sizeof replies));
    buf_addf(&expected,
        "GETKQ st=86 opaque=9 body=[%s]\nGETQ st=86 opaque=%x body=[%s]\n"
        "ADDQ st=86 body=[%s]\nNOOP st=00\n",
        why, 0x07000000U, why, why);
    buf_add(&expected, "", 1);
    buf_add(&shown, "", 1);
    ck_assert_str_eq(shown.data, expected.data);
    buf_fini(&said);
    buf_fini(&shown);
    buf_fini(&expected);
    expect(writer, UNSURE);
    commit_all(&gated);
    close(fd);
    close(writer);
    close_gated(&gated);
}
END_TEST

enum { LARGE = 100000 }; /* a value that is lent, where it is alone */

/* Appends the reply to a get of the large item, but for END. */
static void
add_large(struct buf *out)
{
    buf_addf(out, "VALUE big 0 %d\r\n", LARGE);
    for (int i = 0; i < LARGE; i++) {
        buf_add(out, "x", 1);
    }
    buf_add_text(out, "\r\n");
}

static void
set_large(int fd)
{
    struct buf said = {0};
    buf_addf(&said, "set big 0 0 %d\r\n", LARGE);
    for (int i = 0; i < LARGE; i++) {
        buf_add(&said, "x", 1);
    }
    buf_add(&said, "\r\n", sizeof "\r\n");
    talk(fd, said.data, "STORED\r\n");
    buf_fini(&said);
}

/* What is said before the large item's value, and behind it: all is well, or
 * the commit fails. NULL: nothing, and no value. */
static const struct large_form {
    const char *said, *before, *behind, *failed_before, *failed_behind;
} large_forms[] = {
    {"get 1.a big\r\n", "VALUE 1.a 0 1\r\n5\r\n", "END\r\n", UNCOMMITTED,
        NULL},
    /* the value alone fills a turn, and was not held */
    {"get big 1.a\r\n", "", "VALUE 1.a 0 1\r\n5\r\nEND\r\n", "", UNCOMMITTED},
    {"get 1.a\r\nget big\r\n", "VALUE 1.a 0 1\r\n5\r\nEND\r\n", "END\r\n",
        UNCOMMITTED, "END\r\n"},
};

static void
expect_large(int fd, const char *before, const char *behind)
{
    struct buf answer = {0};
    buf_add_text(&answer, before);
    if (behind != NULL) {
        add_large(&answer);
        buf_add_text(&answer, behind);
    }
    buf_add(&answer, "", 1);
    expect(fd, answer.data);
    buf_fini(&answer);
}

/* A large value beside a cell waits once, with it; where the commit fails, what
 * shows the cell does, and the connection goes on. */
START_TEST(test_large_value)
{
    struct gated gated;
    open_reads(&gated, 20);
    prepare(&gated);
    set_large(gated.other[1]);
    for (unsigned i = 0; i < 2 * COUNT_OF(large_forms); i++) {
        const struct large_form *form = &large_forms[i / 2];
        int writer = begin_change(&gated);
        int fd = connect_to(&gated.rig, 0);
        uint64_t n = held_turns(&gated, 0);
        say(fd, form->said);
        while (held_turns(&gated, 0) == n) {
            go_round(&gated, 0);
        }
        expect_nothing(&gated, 0, fd);
        if (i % 2 == 0) {
            commit_all(&gated);
            expect_large(fd, form->before, form->behind);
            expect(writer, "STORED\r\n");
        } else {
            fail_all(&gated);
            expect_large(fd, form->failed_before, form->failed_behind);
            expect(writer, UNSURE);
            talk(fd, "version\r\n", "VERSION test\r\n"); /* it is open */
            commit_all(&gated);
        }
        close(fd);
        close(writer);
    }
    close_gated(&gated);
}
END_TEST

enum { MANY = 3 * EXEC_SLICE_KEYS_MAX + 7 };

static void
say_many(int fd)
{
    struct buf said = {0};
    buf_add_text(&said, "get");
    for (unsigned i = 0; i < MANY; i++) {
        buf_addf(&said, " %u.a", 1 + i);
    }
    buf_add_text(&said, "\r\nversion\r\n");
    send_bytes(fd, said.data, said.len);
    buf_fini(&said);
}

static void
expect_many(int fd)
{
    struct buf answer = {0};
    for (unsigned i = 0; i < MANY; i++) {
        buf_addf(&answer, "VALUE %u.a 0 1\r\n%u\r\n", 1 + i, i == 0 ? 5 : 0);
    }
    buf_add_text(&answer, "END\r\nVERSION test\r\n");
    buf_add(&answer, "", 1);
    expect(fd, answer.data);
    buf_fini(&answer);
}

/* A reply of several slices is one in one turn. */
START_TEST(test_many_keys)
{
    struct gated gated;
    open_reads(&gated, 20);
    prepare(&gated);
    int writer = begin_change(&gated);
    int fd = connect_to(&gated.rig, 0);
    say_many(fd);
    while (count_of(&gated, METRIC_reads_held) < 1) {
        go_round(&gated, 0);
    }
    expect_nothing(&gated, 0, fd);
    ck_assert_uint_eq(count_of(&gated, METRIC_reads_held), 1);
    fail_all(&gated);
    expect(fd, UNCOMMITTED "VERSION test\r\n");
    expect(writer, UNSURE);
    commit_all(&gated);
    say_many(fd);
    expect_many(fd);
    close(fd);
    close(writer);
    close_gated(&gated);
}
END_TEST

/* In several turns it is as many: the first one that fails ends the
 * connection, for what else there is would be taken for the whole. */
START_TEST(test_many_turns)
{
    struct gated gated;
    open_reads(&gated, 1);
    prepare(&gated);
    int writer = begin_change(&gated);
    int fd = connect_to(&gated.rig, 0);
    say_many(fd);
    while (count_of(&gated, METRIC_reads_held) < 3) {
        go_round(&gated, 0);
    }
    expect_nothing(&gated, 0, fd);
    commit_all(&gated);
    expect_many(fd);
    expect(writer, "STORED\r\n");
    close(writer);
    writer = begin_change(&gated);
    say_many(fd);
    while (count_of(&gated, METRIC_reads_held) < 6) {
        go_round(&gated, 0);
    }
    fail_all(&gated);
    expect(fd, UNCOMMITTED);
    expect_end(fd);
    expect(writer, UNSURE);
    commit_all(&gated);
    close(writer);
    close_gated(&gated);
}
END_TEST

/* A turn that reads behind changes of its own waits for the last of all. */
START_TEST(test_mixed)
{
    struct gated gated;
    open_reads(&gated, 20);
    int fd = connect_to(&gated.rig, 0);
    say(fd, "incr 1.a 1\r\nget 1.a\r\nincr 1.a 1\r\nget 1.a\r\n");
    outcomes_wait(gated.log, 2);
    outcomes_commit(gated.log, 1, 0);
    expect_nothing(&gated, 0, fd);
    fail_all(&gated);
    expect(fd, UNSURE UNCOMMITTED UNSURE UNCOMMITTED);
    commit_all(&gated);
    talk(fd, "get 1.a\r\n", "VALUE 1.a 0 1\r\n2\r\nEND\r\n");
    close(fd);
    close_gated(&gated);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_each_waits, test_others_do_not_wait,
        test_latest, test_failure, test_late, test_packets, test_large_value,
        test_many_keys, test_many_turns, test_mixed};
    return run_tests("gate_reads", tests, COUNT_OF(tests));
}
