/* SPDX-License-Identifier: BSD-3-Clause */
/* session/exec_forward: what a replica hands on, and what not; that it is whole
 * and in order however its bytes come; what is said where no reply comes; and
 * reads behind what cannot be read yet. The primary is a list of replies. */
#include "base/err.h"
#include "lib/dialog.h"
#include "lib/small_store.h"
#include "unit/check_help.h"

#include <string.h>

/* The primary: notes what it is asked, and says what it is to. */
struct stage {
    struct group group; /* first */
    struct store *store;
    const struct store_calls *real;
    struct store_calls calls; /* the same, but for a fault */
    struct dialog dialog;
    struct buf asked; /* each request with its length before it */
    unsigned n_asked;
    const char *reply;
    int err;
    uint64_t late_seq;
    bool has_applied;
};

static const char *
primary_of(struct group *group)
{
    (void)group;
    return "a:1";
}

static bool
is_fresh(struct group *group)
{
    (void)group;
    return true;
}

static bool
has_applied(struct group *group, uint64_t seq)
{
    struct stage *stage = (struct stage *)group;
    ck_assert_uint_eq(seq, stage->late_seq);
    return stage->has_applied;
}

static enum store_answer
forward(struct group *group, struct group_forward *call)
{
    struct stage *stage = (struct stage *)group;
    buf_addf(&stage->asked, "%u:%d:", call->n, call->is_binary);
    buf_add(&stage->asked, call->request.data, call->request.len);
    stage->n_asked++;
    call->err = stage->err;
    call->late_seq = stage->late_seq;
    if (stage->err == 0) {
        buf_add_text(&call->reply, stage->reply);
    }
    call->call.done_fn(&call->call); /* as it may from another thread */
    return STORE_LATER;
}

static int
fault(struct store *store)
{
    (void)store;
    return ERR_NOT_PRIMARY;
}

static void
begin(struct stage *stage)
{
    static const char schema[] = "add counter weibo\r\n"
                                 "add column weibo id primarykey\r\n"
                                 "add column weibo n suffix=n\r\n";
    *stage = (struct stage){.store = small_store(NULL)};
    stage->group = (struct group){.primary_fn = primary_of,
        .is_fresh_fn = is_fresh,
        .forward_fn = forward,
        .has_applied_fn = has_applied};
    dialog_open(&stage->dialog, stage->store, 1024);
    dialog_say(&stage->dialog, schema, sizeof schema - 1);
    ck_assert_uint_eq(
        stage->dialog.replies.len, 3 * (sizeof "STORED\r\n" - 1));
    buf_clear(&stage->dialog.replies);
    stage->real = stage->store->calls;
    stage->calls = *stage->real;
    stage->calls.fault = fault;
    stage->store->calls = &stage->calls;
    stage->dialog.executor.group = &stage->group;
}

static void
end(struct stage *stage)
{
    dialog_close(&stage->dialog);
    buf_fini(&stage->asked);
    stage->store->calls = stage->real;
    store_destroy(&stage->store);
}

static bool
is(const struct buf *buf, const char *text)
{
    return buf->len == strlen(text) && memcmp(buf->data, text, buf->len) == 0;
}

/* Says it, with those replies of the primary, and looks at what it was asked
 * and what the client is told. */
static void
expect(
    struct stage *stage, const char *said, const char *asked, const char *told)
{
    buf_clear(&stage->asked);
    buf_clear(&stage->dialog.replies);
    dialog_say(&stage->dialog, said, strlen(said));
    ck_assert_msg(is(&stage->asked, asked), "%s: asked %.*s", said,
        (int)stage->asked.len, stage->asked.data);
    ck_assert_msg(is(&stage->dialog.replies, told), "%s: told %.*s", said,
        (int)stage->dialog.replies.len, stage->dialog.replies.data);
}

START_TEST(test_together)
{
    static const char three[] = "incr 1.n 1\r\nset 2.n 0 0 1\r\n5\r\n"
                                "add column weibo m\r\n";
    struct stage stage;
    begin(&stage);
    stage.reply = "1\r\nSTORED\r\nSTORED\r\n";
    expect(&stage, three,
        "3:0:incr 1.n 1\r\nset 2.n 0 0 1\r\n5\r\nadd column weibo m\r\n",
        stage.reply);
    /* in pieces each is asked for alone, or with others; nothing is lost */
    stage.reply = "";
    for (size_t cut = 1; cut < sizeof three - 1; cut++) {
        buf_clear(&stage.asked);
        dialog_say(&stage.dialog, three, cut);
        dialog_say(&stage.dialog, three + cut, sizeof three - 1 - cut);
        size_t len = stage.asked.len;
        ck_assert_uint_ge(len, sizeof three - 1 + 4);
        ck_assert_uint_le(len, sizeof three - 1 + 12);
    }
    end(&stage);
}
END_TEST

/* What is gathered ends before whatever else comes, and gets before it. */
START_TEST(test_order)
{
    struct stage stage;
    begin(&stage);
    stage.reply = "9\r\n";
    expect(&stage, "get 1.n\r\nincr 1.n 9\r\nget 1.n\r\nmn\r\nincr 2.n 9\r\n",
        "1:0:incr 1.n 9\r\n1:0:incr 2.n 9\r\n",
        "VALUE 1.n 0 1\r\n0\r\nEND\r\n9\r\nVALUE 1.n 0 1\r\n0\r\nEND\r\n"
        "MN\r\n9\r\n");
    expect(&stage, "incr 1.n 9\r\nincr a 1\r\nflush_all\r\n",
        "1:0:incr 1.n 9\r\n",
        "9\r\nSERVER_ERROR not primary a:1\r\n"
        "SERVER_ERROR not primary a:1\r\n");
    /* more than one request has */
    struct buf many = {0};
    for (unsigned i = 0; i < 100; i++) {
        buf_add_text(&many, "incr 1.n 1\r\n");
    }
    stage.n_asked = 0;
    dialog_say(&stage.dialog, many.data, many.len);
    ck_assert_uint_ge(stage.n_asked, 2);
    ck_assert_uint_lt(stage.n_asked, 50);
    buf_fini(&many);
    end(&stage);
}
END_TEST

/* A counter that the replica does not know may be one of the primary's; who is
 * served for a replica hands nothing on. */
START_TEST(test_who)
{
    struct stage stage;
    begin(&stage);
    stage.reply = "1\r\n";
    expect(
        &stage, "incr weibo 1.new\r\n", "1:0:incr weibo 1.new\r\n", "1\r\n");
    stage.dialog.session.is_inner = true;
    expect(&stage, "incr 1.n 1\r\n", "", "SERVER_ERROR not primary a:1\r\n");
    stage.dialog.session.is_inner = false;
    stage.group.forward_fn = NULL;
    expect(&stage, "incr 1.n 1\r\n", "", "SERVER_ERROR not primary a:1\r\n");
    end(&stage);
}
END_TEST

/* No reply: an error for each. */
START_TEST(test_errors)
{
    static const struct {
        int err;
        const char *line;
    } rows[] = {{ERR_NOT_PRIMARY, "SERVER_ERROR not primary a:1\r\n"},
        {ERR_FORWARD_BUSY,
            "SERVER_ERROR too many changes wait for the primary, nothing was "
            "changed: try again\r\n"},
        {ERR_UNSURE_PRIMARY,
            "SERVER_ERROR outcome unknown, the primary went away: get the "
            "value before a retry\r\n"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf twice = {0};
        struct stage stage;
        begin(&stage);
        stage.err = rows[i].err;
        buf_addf(&twice, "%s%sMN\r\n", rows[i].line, rows[i].line);
        buf_add(&twice, "", 1);
        expect(&stage, "incr 1.n 1\r\nincr 1.n 2\r\nmn\r\n",
            "2:0:incr 1.n 1\r\nincr 1.n 2\r\n", twice.data);
        /* where no reply is wanted the end of the connection says it */
        expect(&stage, "incr 1.n 1 noreply\r\nincr 1.n 1\r\n",
            "2:0:incr 1.n 1 noreply\r\nincr 1.n 1\r\n", "");
        ck_assert(stage.dialog.is_closed);
        buf_fini(&twice);
        end(&stage);
    }
}
END_TEST

/* A line that is no request is counted once, also where what is before it must
 * be answered first: so many in a row end the conversation, and no fewer. */
START_TEST(test_errors_in_a_row)
{
    static const char *const lines[] = {"get\r\n", "nonsense\r\n"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct buf said = {0};
        struct stage stage;
        begin(&stage);
        stage.reply = "";
        stage.dialog.budget = 2 * SESSION_ERRORS_MAX;
        buf_add_text(&said, "incr 1.n 1\r\n");
        for (int n = 1; n < SESSION_ERRORS_MAX; n++) {
            buf_add_text(&said, lines[i]);
        }
        dialog_say(&stage.dialog, said.data, said.len);
        ck_assert_msg(!stage.dialog.is_closed, "%s", lines[i]);
        ck_assert_int_eq(stage.dialog.session.fault, 0);
        dialog_say(&stage.dialog, lines[i], strlen(lines[i]));
        ck_assert_msg(stage.dialog.is_closed, "%s", lines[i]);
        ck_assert_int_eq(stage.dialog.session.fault, ERR_ERRORS);
        buf_fini(&said);
        end(&stage);
    }
}
END_TEST

START_TEST(test_late)
{
    struct stage stage;
    begin(&stage);
    stage.reply = "1\r\n";
    stage.late_seq = 7;
    expect(&stage, "incr 1.n 1\r\nget 1.n\r\nmg 1.n v\r\nget weibo 1\r\n",
        "1:0:incr 1.n 1\r\n",
        "1\r\nSERVER_ERROR replica is stale\r\n"
        "SERVER_ERROR replica is stale\r\nSERVER_ERROR replica is stale\r\n");
    stage.has_applied = true;
    expect(&stage, "get 1.n\r\n", "", "VALUE 1.n 0 1\r\n0\r\nEND\r\n");
    stage.has_applied = false; /* it is not asked any more */
    expect(&stage, "get 1.n\r\n", "", "VALUE 1.n 0 1\r\n0\r\nEND\r\n");
    end(&stage);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_together, test_order, test_who,
        test_errors, test_errors_in_a_row, test_late};
    return run_tests("forward", tests, COUNT_OF(tests));
}
