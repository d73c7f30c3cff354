/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec: changes that go to the store together, what ends a batch, and
 * what is refused while the store is at fault. */
#include "base/err.h"
#include "session/exec.h"
#include "session/group.h"
#include "unit/held_help.h"

#define GONE "CLIENT_ERROR the counter or column has been dropped\r\n"

static const struct batching batches[] = {
    {"incr 5.cntcm 1\r\nincr 5.cntcm 2\r\nincr 6.cntcm 3\r\n", 1,
        "1\r\n3\r\n3\r\n"},
    {"set 5.weibo 0 0 5\r\n7 8 9\r\nincr weibo 5.cntcm\r\ncas 5.cntrn 0 0 1 9"
     "\r\n1\r\nadd 5.cntan 0 0 1\r\n1\r\nreplace weibo 5 4 5 6\r\n"
     "decr {5}.cntan 2\r\ndelete weibo 5\r\ndelete 5.cntcm\r\nincr 5.oa 1\r\n",
        1,
        "STORED\r\n8\r\nSTORED\r\nNOT_STORED\r\nSTORED\r\n4\r\nDELETED\r\n"
        "NOT_FOUND\r\n6\r\n"},
    {"incr 7.oa 1 noreply\r\nincr 7.oa 1\r\nset 7.oa 0 0 1 noreply\r\n3\r\n"
     "decr 7.oa 1 noreply\r\nincr 7.oa 0\r\n",
        1, "7\r\n2\r\n"},
    /* reads and changes do not overtake one another */
    {"incr 8.oa 1\r\nget 8.oa\r\nincr 8.oa 1\r\nincr 8.oa 1\r\nget 8.oa\r\n",
        4,
        "6\r\nVALUE 8.oa 4 1\r\n6\r\nEND\r\n7\r\n8\r\n"
        "VALUE 8.oa 4 1\r\n8\r\nEND\r\n"},
    {"incr 8.cntcm 1\r\ntouch 8.cntcm 0\r\nincr 8.cntcm 1\r\n", 3,
        "1\r\nTOUCHED\r\n2\r\n"},
    /* nor does anything else */
    {"incr 9.cntcm 1\r\nversion\r\nincr 9.cntcm 1\r\n", 2,
        "1\r\nVERSION test\r\n2\r\n"},
    {"incr 9.cntcm 1\r\nset i 0 0 1\r\n5\r\nincr 9.cntcm 1\r\nincr i 1\r\n", 2,
        "3\r\nSTORED\r\n4\r\n6\r\n"},
    {"incr 9.cntcm 1\r\nnonsense\r\nincr 9.cntcm 1\r\n", 2,
        "5\r\nERROR type help\r\n6\r\n"},
    {"incr 9.cntcm 1\r\nset 9.cntcm 0 0 1\r\nx\r\nincr 9.cntcm 1\r\n", 2,
        "7\r\nCLIENT_ERROR value must be an unsigned decimal integer\r\n8"
        "\r\n"},
    {"incr 9.cntcm 1\r\nset 9.cntcm 0 0 1 noreply\r\nx\r\nset weibo 1 2\r\n"
     "incr 9.cntcm 1\r\n",
        2,
        "9\r\nCLIENT_ERROR this is a counter: send its id and one value a "
        "column\r\n10\r\n"},
    {"incr 9.cntcm 1\r\nset 9.cntcm 0 0 1\r\n123\r\nincr 9.cntcm 1\r\n", 2,
        "11\r\nCLIENT_ERROR bad data chunk\r\n12\r\n"},
    {"incr 9.cntcm 1\r\ndrop counter none none\r\nincr 9.cntcm 1\r\n", 2,
        "13\r\nCLIENT_ERROR no such counter\r\n14\r\n"},
    {"incr weibo 9 1 1\r\nincr nosuch 1\r\n", 0,
        "CLIENT_ERROR this is a counter: send its id and one value a "
        "column\r\nNOT_FOUND\r\n"},
    {"incr 9.cntcm 0\r\nset weibo 1 2\r\n", 1,
        "14\r\nCLIENT_ERROR this is a counter: send its id and one value a "
        "column\r\n"},
    {"incr 9.cntcm 1\r\nincr 9.cn", 1, "15\r\n"},
    {"tcm 1\r\nquit\r\n", 1, "16\r\n"},
};

START_TEST(test_batches)
{
    struct held_dialog held;
    open_held(&held);
    play_batches(&held, batches, COUNT_OF(batches));
    ck_assert_uint_eq(
        metric_of(held.dialog.metrics, METRIC_dialect_misfits), 2);
    ck_assert_uint_eq(
        metric_of(held.dialog.metrics, METRIC_noreply_refused), 1);
    close_held(&held);
}
END_TEST

/* n increments in one step of these limits take so many calls. */
static void
expect_calls(struct held_dialog *held, unsigned n, unsigned budget,
    size_t mark, unsigned n_calls)
{
    static const char line[] = "incr 3.cntcm 0\r\n";
    struct dialog *dialog = &held->dialog;
    dialog->budget = budget;
    dialog->mark = mark;
    for (unsigned i = 0; i < n; i++) {
        dialog_add(dialog, line, sizeof line - 1);
    }
    ck_assert_uint_eq(step_through(held), n_calls);
    ck_assert_uint_eq(dialog->replies.len, n * strlen("0\r\n"));
    buf_clear(&dialog->replies);
}

START_TEST(test_batch_limits)
{
    enum { N = 2 * EXEC_BATCH_MAX + 1 };
    struct held_dialog held;
    open_held(&held);
    expect_calls(&held, N, 1000, DIALOG_MARK, 3);
    expect_calls(&held, EXEC_BATCH_MAX, 1000, DIALOG_MARK, 1);
    expect_calls(&held, 20, 7, DIALOG_MARK, 3);
    expect_calls(&held, 20, 1000, 1, 20);
    close_held(&held);
}
END_TEST

/* A column goes between gathering and execution: its changes alone fail. */
START_TEST(test_dropped_under_a_batch)
{
    static const char said[] =
        "incr 1.cntcm 1\r\nincr 1.cntrn 1\r\nset weibo 2 1 1 1\r\n"
        "incr 1.cntan 1\r\nincr 1.cntrn 1 noreply\r\n";
    struct held_dialog held;
    open_held(&held);
    struct dialog *dialog = &held.dialog;
    dialog_add(dialog, said, sizeof said - 1);
    ck_assert_int_eq(dialog_step(dialog), SESSION_PARKED);
    exchange(
        &held.other, "drop column weibo repost_num repost_num", "DELETED\r\n");
    ck_assert_uint_eq(hold_release(held.hold), 1);
    dialog_wait(dialog);
    ck_assert_uint_eq(step_through(&held), 0);
    expect_replies(dialog, said, "12\r\n" GONE GONE "14\r\n");
    ck_assert_uint_eq(metric_of(dialog->metrics, METRIC_noreply_refused), 1);
    close_held(&held);
}
END_TEST

#define DISK                                                                  \
    "SERVER_ERROR writing to the disk failed, counters are read-only\r\n"
#define LOADING "SERVER_ERROR loading, try again in a moment\r\n"

/* Nothing is changed while the store says so; reads and items go on. */
static const struct exchange faulty[] = {
    {"incr 1.cntcm 1\r\nget 1.cntcm",
        DISK "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"delete weibo 1\r\nset weibo 1 9 9 9", DISK DISK},
    {"set 1.cntcm 0 0 1\r\nx",
        "CLIENT_ERROR value must be an unsigned decimal integer\r\n"},
    {"add counter new\r\ndrop counter weibo weibo", DISK DISK},
    {"show counter new", "CLIENT_ERROR no such counter\r\n"},
    {"set a 0 0 1\r\n1\r\nincr a 1\r\ntouch a 0",
        "STORED\r\n2\r\nTOUCHED\r\n"},
    {"get weibo 1", "VALUE 1 0 8\r\n11 12 13\r\nEND\r\n"},
};

/* While it loads nothing is read either. */
static const struct exchange loading[] = {
    {"incr 1.cntcm 1\r\nincr 1.cntcm 1 noreply", LOADING},
    {"get 1.cntcm", LOADING},
    {"gets a b", LOADING},
    {"get weibo 1", LOADING},
    {"gat 0 1.cntcm", LOADING},
    {"touch a 0", LOADING},
    {"set a 0 0 1\r\n7", LOADING},
    {"incr a 1\r\ndelete a noreply\r\nflush_all", LOADING LOADING},
    {"incr nosuch 1.n 1 tx=p:1\r\ndecr nosuch 1.n 1 noreply\r\nversion",
        LOADING "VERSION test\r\n"},
    {"set nosuch 1.n 1\r\nadd nosuch 1.n:7 1 tx=p:1\r\nset nosuch 1 a=1 b=2",
        LOADING LOADING LOADING},
    {"delete nosuch 1\r\ndelete nosuch 1.n tx=p:1", LOADING LOADING},
    {"numbers p 1 1\r\ndump numbers", LOADING LOADING},
    {"add counter new\r\nshow counters\r\nshow counter weibo",
        LOADING LOADING LOADING},
    {"version\r\nverbosity 1\r\nnonsense",
        "VERSION test\r\nOK\r\nERROR type help\r\n"},
    {"stats x", "STAT args x\r\nEND\r\n"},
};

#define NOT_PRIMARY "SERVER_ERROR not primary\r\n"

/* A replica reads, and takes no change of counters, schema or items; who reads
 * by the way of a change does. */
static const struct exchange replica[] = {
    {"incr 1.cntcm 1\r\nget 1.cntcm",
        NOT_PRIMARY "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"get 1.cntcm\r\nincr 1.cntcm 1\r\nget weibo 1",
        "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n" NOT_PRIMARY
        "VALUE 1 0 8\r\n11 12 13\r\nEND\r\n"},
    {"delete weibo 1\r\nset weibo 1 9 9 9\r\nincr weibo 1 1 1 1",
        NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY},
    {"add weibo 7 1 1 1\r\nreplace weibo 1 1 1 1\r\ndecr weibo 1 1 1 1",
        NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY},
    {"set 1.cntcm 0 0 1\r\nx", NOT_PRIMARY},
    {"incr 1.cntcm 1 tx=p:1\r\ndelete 1.cntcm\r\ndecr 1.cntcm 1",
        NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY},
    {"add counter new\r\nadd counter weibo\r\ndrop counter weibo weibo",
        NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY},
    {"drop producer p\r\nnumbers p 1 1\r\ndump numbers",
        NOT_PRIMARY NOT_PRIMARY "END\r\n"},
    {"incr nosuch 1.n 1 tx=p:1\r\ndecr nosuch 1.n 1", NOT_PRIMARY NOT_PRIMARY},
    {"set a 0 0 1\r\n1", NOT_PRIMARY},
    {"add a 0 0 1\r\n1", NOT_PRIMARY},
    {"replace a 0 0 1\r\n1", NOT_PRIMARY},
    {"append a 0 0 1\r\n1", NOT_PRIMARY},
    {"prepend a 0 0 1\r\n1", NOT_PRIMARY},
    {"cas a 0 0 1 1\r\n1", NOT_PRIMARY},
    {"incr a 1\r\ndecr a 1\r\ndelete a\r\nflush_all",
        NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY},
    {"ms a 1\r\n1", NOT_PRIMARY},
    {"ms 1.cntcm 1 q\r\n1", NOT_PRIMARY},
    {"ma a\r\nma 1.cntcm\r\nmd a q\r\nmg a v N0\r\nmn",
        NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY NOT_PRIMARY "MN\r\n"},
    {"mg 1.cntcm v\r\nmg a v\r\ngat 0 1.cntcm\r\ntouch 1.cntcm 0",
        "VA 2\r\n11\r\nVA 1\r\n2\r\nVALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"
        "TOUCHED\r\n"},
    {"get a\r\ngat 0 a\r\nversion",
        "VALUE a 0 1\r\n2\r\nEND\r\nVALUE a 0 1\r\n2\r\nEND\r\n"
        "VERSION test\r\n"},
};

static const struct exchange well_again[] = {
    {"incr 1.cntcm 1\r\nincr a 1", "12\r\n3\r\n"},
    {"add counter new", "STORED\r\n"},
};

START_TEST(test_faults)
{
    struct held_dialog held;
    open_held(&held);
    hold_end(held.hold);
    struct outcomes *outcomes = hold_log(held.hold, false);
    outcomes_fail(outcomes, 0, ERR_DISK);
    PLAY(&held.dialog, faulty);
    outcomes_fail(outcomes, 0, ERR_LOADING);
    PLAY(&held.dialog, loading);
    outcomes_fail(outcomes, 0, ERR_NOT_PRIMARY);
    PLAY(&held.dialog, replica);
    outcomes_fail(outcomes, 0, 0);
    PLAY(&held.dialog, well_again);
    outcomes_fail(outcomes, 0, ERR_LOADING);
    exchange(&held.dialog, "quit", "");
    ck_assert(held.dialog.is_closed);
    close_held(&held);
}
END_TEST

static unsigned n_lines;

static void
count_line(struct admin *admin, const struct session *session, enum audit kind,
    const char *text, size_t len)
{
    (void)admin, (void)session;
    ck_assert_int_eq(kind, AUDIT_UNSAID);
    ck_assert_ptr_nonnull(memmem(text, len, "loading", strlen("loading")));
    n_lines++;
}

/* A change that the disk refuses and whose client wants no reply: what is asked
 * before it is answered, what is asked behind it is not, and the conversation
 * ends, whatever comes behind it. What has other reasons is silent only. There
 * is a line in the log about the first of both. */
START_TEST(test_unsaid)
{
    static const char *const quiet[] = {"incr 1.cntcm 1 noreply\r\n",
        "set 1.cntcm 0 0 1 noreply\r\n5\r\n",
        "set 1.weibo 0 0 5 noreply\r\n1 2 3\r\n", "delete 1.cntcm noreply\r\n",
        "set weibo 1 1 2 3 noreply\r\n", "incr weibo 1 1 1 1 noreply\r\n",
        "delete weibo 1 noreply\r\n"};
    static const char *const behind[] = {"", "version\r\n",
        "incr 1.cntcm 1\r\n", "get 1.cntcm\r\n", "set a 0 0 1\r\n1\r\n",
        "incr 1.cntcm 1\r\nget 1.cntcm\r\n", "get weibo 1\r\n",
        "set 1.cntcm 0 0 1\r\nx\r\n", "set weibo 1 x\r\n", "gat 0 a\r\n"};
    for (unsigned i = 0; i < COUNT_OF(quiet) * COUNT_OF(behind); i++) {
        struct held_dialog held;
        struct buf said = {0};
        open_held(&held);
        hold_end(held.hold);
        struct dialog *dialog = &held.dialog;
        struct outcomes *outcomes = hold_log(held.hold, false);
        dialog->admin.audit_fn = count_line;
        n_lines = 0;
        outcomes_fail(outcomes, 0, ERR_LOADING);
        exchange(
            dialog, "incr 1.cntcm 1 noreply\r\nversion", "VERSION test\r\n");
        outcomes_fail(outcomes, 0, ERR_DISK);
        buf_add_text(&said, "incr 1.cntcm 1\r\nget 1.cntcm\r\n");
        buf_add_text(&said, "incr 1.cntcm 1\r\n");
        buf_add_text(&said, quiet[i % COUNT_OF(quiet)]);
        buf_add_text(&said, behind[i / COUNT_OF(quiet)]);
        dialog_add(dialog, said.data, said.len);
        while (dialog_step(dialog) != SESSION_CLOSE) {
        }
        buf_add(&said, "", 1);
        expect_replies(
            dialog, said.data, DISK "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n" DISK);
        ck_assert_int_eq(dialog->session.unsaid, ERR_DISK);
        ck_assert_uint_eq(n_lines, 1);
        ck_assert_uint_eq(
            metric_of(dialog->metrics, METRIC_noreply_refused), 2);
        outcomes_fail(outcomes, 0, 0);
        buf_fini(&said);
        close_held(&held);
    }
}
END_TEST

/* The acks of a step: the last number, and the bytes of each change that was
 * done. */
START_TEST(test_acks)
{
    static const char said[] =
        "incr 1.cntcm 1\r\nget a\r\nincr 1.cntcm 1 noreply\r\n"
        "delete 7.cntcm\r\nset weibo 2 1 1 1\r\n";
    static const struct span expected[] = {{0, 4}, {9, 0}, {20, 8}};
    struct held_dialog held;
    open_held(&held);
    hold_end(held.hold);
    hold_log(held.hold, true);
    struct dialog *dialog = &held.dialog;
    dialog_add(dialog, said, sizeof said - 1);
    ck_assert_int_eq(dialog_step(dialog), SESSION_READY);
    expect_replies(dialog, said, "12\r\nEND\r\nNOT_FOUND\r\nSTORED\r\n");
    const struct session_acks *acks = &dialog->executor.acks;
    const struct session_ack *ack = (const void *)acks->at.data;
    ck_assert_uint_eq(acks->seq, 2);
    ck_assert_uint_eq(acks->at.len, COUNT_OF(expected) * sizeof *ack);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        ck_assert_mem_eq(&ack[i].span, &expected[i], sizeof expected[i]);
        ck_assert_uint_eq(ack[i].proto, PROTO_TEXT);
    }
    exchange(dialog, "get 1.cntcm", "VALUE 1.cntcm 0 2\r\n13\r\nEND\r\n");
    ck_assert_uint_eq(acks->seq, 0);
    ck_assert_uint_eq(acks->at.len, 0);
    close_held(&held);
}
END_TEST

/* What a session asks of the other servers: answers at once. */
struct fake_group {
    struct group group;
    const char *primary;
    bool is_fresh;
    int err;
    char address[GROUP_ADDRESS_MAX + 1]; /* of the last order */
    struct group_failover failover;      /* the last one; its err and why are
                                          * answered */
    uint64_t seq;                        /* of the last wait */
};

static const char *
fake_primary(struct group *group)
{
    return ((struct fake_group *)group)->primary;
}

static bool
fake_is_fresh(struct group *group)
{
    return ((struct fake_group *)group)->is_fresh;
}

static enum store_answer
fake_order(struct group *group, struct group_order *order)
{
    struct fake_group *fake = (struct fake_group *)group;
    memcpy(fake->address, order->address, sizeof fake->address);
    order->err = fake->err;
    return STORE_DONE;
}

static enum store_answer
fake_failover(struct group *group, struct group_failover *failover)
{
    struct fake_group *fake = (struct fake_group *)group;
    failover->err = fake->failover.err;
    memcpy(failover->why, fake->failover.why, sizeof failover->why);
    fake->failover.to = failover->to;
    fake->failover.is_forced = failover->is_forced;
    return STORE_DONE;
}

static enum store_answer
fake_wait(struct group *group, struct group_wait *wait)
{
    ((struct fake_group *)group)->seq = wait->seq;
    wait->n_have = wait->n + (uint32_t)wait->ms;
    return STORE_DONE;
}

static const struct exchange copy[] = {
    {"incr 1.cntcm 1\r\nget 1.cntcm",
        "SERVER_ERROR not primary db1:11211\r\n"
        "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n"},
    {"ms 1.cntcm 1 q\r\n1", "SERVER_ERROR not primary db1:11211\r\n"},
    {"add counter new", "SERVER_ERROR not primary db1:11211\r\n"},
};

#define STALE "SERVER_ERROR replica is stale\r\n"

static const struct exchange stale[] = {
    {"get 1.cntcm\r\nget a\r\ngets 1.cntcm", STALE STALE STALE},
    {"gat 0 1.cntcm\r\nget weibo 1\r\nmg 1.cntcm v", STALE STALE STALE},
    {"show counter nosuch", "CLIENT_ERROR no such counter\r\n"},
    {"version", "VERSION test\r\n"},
};

#define BAD_WAIT                                                              \
    "CLIENT_ERROR wanted is wait N MS: replicas, and milliseconds up to "     \
    "86400000\r\n"

static const struct exchange orders[] = {
    {"replicaof db2:5", "OK\r\n"},
    {"wait 2 40", "42\r\n"},
    {"wait 4294967296 1", BAD_WAIT},
    {"wait 1 86400001", BAD_WAIT},
    {"wait 1 -1", BAD_WAIT},
};

/* Where etcd says who is primary. */
static const struct exchange automatic[] = {
    {"replicaof no one",
        "SERVER_ERROR etcd decides who leads this group, see failover\r\n"},
    {"replicaof db2:5",
        "SERVER_ERROR etcd decides who leads this group, see failover\r\n"},
    {"incr 1.cntcm 1\r\nset a 0 0 1\r\n1",
        "SERVER_ERROR no primary at the moment, try again\r\n"
        "SERVER_ERROR no primary at the moment, try again\r\n"},
    {"ms a 1\r\n1", "SERVER_ERROR no primary at the moment, try again\r\n"},
};

START_TEST(test_failover)
{
    struct fake_group fake = {.group = {.primary_fn = fake_primary,
                                  .is_fresh_fn = fake_is_fresh,
                                  .failover_fn = fake_failover},
        .primary = "",
        .is_fresh = true};
    struct held_dialog held;
    open_held(&held);
    hold_end(held.hold);
    exchange(&held.dialog, "failover",
        "CLIENT_ERROR this server has no copies on others, see --repl-port, "
        "--replicaof\r\n");
    struct outcomes *outcomes = hold_log(held.hold, false);
    held.dialog.executor.group = &fake.group;
    exchange(&held.dialog, "failover b",
        "CLIENT_ERROR who is primary is said by replicaof here, see "
        "--replicate\r\n");
    fake.group.is_automatic = true;
    outcomes_fail(outcomes, 0, ERR_NOT_PRIMARY);
    PLAY(&held.dialog, automatic);
    outcomes_fail(outcomes, 0, ERR_NO_PRIMARY); /* it leads, but may not */
    fake.primary = "db1:11211";
    exchange(&held.dialog, "incr 1.cntcm 1\r\nset a 0 0 1\r\n1\r\nget a",
        "SERVER_ERROR no primary at the moment, try again\r\n"
        "SERVER_ERROR no primary at the moment, try again\r\nEND\r\n");
    exchange(&held.dialog, "failover", "OK\r\n");
    ck_assert_uint_eq(fake.failover.to.len, 0);
    ck_assert(!fake.failover.is_forced);
    exchange(&held.dialog, "failover db-2 force", "OK\r\n");
    ck_assert_uint_eq(fake.failover.to.len, 4);
    ck_assert_mem_eq(fake.failover.to.text, "db-2", 4);
    ck_assert(fake.failover.is_forced);
    fake.failover.err = ERR_NOT_PRIMARY;
    (void)strcpy(fake.failover.why, "not shown");
    exchange(
        &held.dialog, "failover b", "SERVER_ERROR not primary db1:11211\r\n");
    fake.failover.err = ERR_NOT_HANDED;
    (void)strcpy(fake.failover.why, "b is behind");
    exchange(&held.dialog, "failover b",
        "SERVER_ERROR not handed over (b is behind)\r\n");
    fake.failover.why[0] = '\0';
    fake.failover.err = ERR_CLOSED;
    exchange(&held.dialog, "failover b",
        "SERVER_ERROR the server is stopping or starts anew: try again\r\n");
    outcomes_fail(outcomes, 0, 0);
    close_held(&held);
}
END_TEST

START_TEST(test_group)
{
    struct fake_group fake = {.group = {.primary_fn = fake_primary,
                                  .is_fresh_fn = fake_is_fresh,
                                  .order_fn = fake_order,
                                  .wait_fn = fake_wait},
        .primary = "db1:11211",
        .is_fresh = true};
    struct held_dialog held;
    open_held(&held);
    hold_end(held.hold);
    exchange(&held.dialog, "wait 1 0",
        "CLIENT_ERROR this server has no copies on others, see --repl-port, "
        "--replicaof\r\n");
    struct outcomes *outcomes = hold_log(held.hold, false);
    outcomes_fail(outcomes, 0, ERR_NOT_PRIMARY);
    held.dialog.executor.group = &fake.group;
    PLAY(&held.dialog, copy);
    fake.is_fresh = false;
    PLAY(&held.dialog, stale);
    fake.primary = "";
    exchange(&held.dialog, "incr 1.cntcm 1", NOT_PRIMARY);
    PLAY(&held.dialog, orders);
    ck_assert_str_eq(fake.address, "db2:5");
    ck_assert_uint_eq(fake.seq, 0);
    fake.err = ERR_CLOSED;
    exchange(&held.dialog, "replicaof no one",
        "SERVER_ERROR the server is stopping or starts anew: try again\r\n");
    ck_assert_str_eq(fake.address, "");
    outcomes_fail(outcomes, 0, 0); /* a primary's reads are not old */
    exchange(
        &held.dialog, "get 1.cntcm", "VALUE 1.cntcm 0 2\r\n11\r\nEND\r\n");
    close_held(&held);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_batches, test_batch_limits,
        test_dropped_under_a_batch, test_faults, test_group, test_failover,
        test_unsaid, test_acks};
    return run_tests("batch", tests, COUNT_OF(tests));
}
