/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd/agent with a network that the test is: what it asks when, what it makes
 * of answers, of none, and of a node that hangs or is gone. */
#include "etcd/agent.h"

#include "unit/control_help.h"

#include <inttypes.h>

enum { MS = 1000000, TTL_S = 10, HANG_MS = 1000 };

#define REVISION_1 "{\"header\":{\"revision\":\"1\"}}"
#define DONE "{\"header\":{\"revision\":\"7\"},\"succeeded\":true}"
#define NOT_DONE "{\"header\":{\"revision\":\"7\"}}"
#define NO_LEASE "{\"message\":\"lease not found\",\"code\":5}"
#define UNAVAILABLE "{\"message\":\"no leader\",\"code\":14}"
#define GRANT "{\"ID\":\"758\",\"TTL\":\"10\"}"
#define ALIVE "{\"result\":{\"ID\":\"758\",\"TTL\":\"10\"}}"
#define OVER "{\"result\":{\"ID\":\"758\"}}"

/* Keeps what is asked. */
struct net {
    struct transport transport;
    char *body[AGENT_CALLS_N]; /* of what is under way */
    unsigned n[AGENT_CALLS_N]; /* asked, in all */
};

static void
net_post(struct transport *transport, const struct transport_post *post)
{
    struct net *net = (struct net *)transport;
    ck_assert_ptr_null(net->body[post->call]);
    ck_assert_int_eq(post->is_change, post->call >= AGENT_TAKE);
    net->body[post->call] = post->body;
    net->n[post->call]++;
}

static void
net_cancel(struct transport *transport, unsigned call)
{
    struct net *net = (struct net *)transport;
    free(net->body[call]);
    net->body[call] = NULL;
}

static const struct transport_calls net_calls = {
    .post = net_post, .cancel = net_cancel};

static struct net net;
static struct agent agent;
static struct control_event room;
static uint64_t now;

static void
turn(uint64_t ms)
{
    now += ms * MS;
    for (unsigned i = 0; i < 3; i++) { /* one thing leads to another */
        uint64_t wake = agent_turn(&agent, now);
        ck_assert_uint_gt(wake, now);
    }
}

static void
answer(enum agent_call call, enum transport_outcome outcome, const char *text)
{
    ck_assert_msg(net.body[call] != NULL, "call %d is not asked", (int)call);
    free(net.body[call]);
    net.body[call] = NULL;
    agent_answered(&agent, call, outcome, text, strlen(text), now);
    turn(0);
}

static uint64_t
beat(void)
{
    const struct control_request request = {.ask = CONTROL_BEAT, .number = 1};
    struct control_beat back = {0};
    agent_ask(&agent, &request, now, &back);
    ck_assert_uint_eq(back.number, 1);
    return back.deadline_ns;
}

/* The next thing that the node hears. */
static const struct control_event *
hear(enum control_say say)
{
    static struct control_event heard;
    const struct control_event *event = agent_event(&agent, &room);
    ck_assert_ptr_nonnull(event);
    ck_assert_int_eq(event->say, say);
    heard = *event;
    agent_heard(&agent, event);
    return &heard;
}

static void
hear_nothing(void)
{
    ck_assert_ptr_null(agent_event(&agent, &room));
}

static void
hear_result(uint32_t number, enum control_outcome outcome)
{
    const struct control_event *event = hear(CONTROL_SAY_RESULT);
    ck_assert_uint_eq(event->of.result.number, number);
    ck_assert_int_eq(event->of.result.outcome, outcome);
}

static void
ask(const struct control_request *request)
{
    struct control_beat back;
    agent_ask(&agent, request, now, &back);
    turn(0);
}

/* It has looked, and watches; all calls that a former test left are gone. */
static void
begin(void)
{
    const struct agent_config config = {
        .prefix = "/tallyd/c/g/", .ttl_s = TTL_S, .hang_ms = HANG_MS};
    for (unsigned i = 0; i < AGENT_CALLS_N; i++) {
        free(net.body[i]);
    }
    net = (struct net){.transport.calls = &net_calls};
    now = UINT64_C(1000000) * MS;
    agent_init(&agent, &config, &net.transport, now);
    turn(0);
    hear_nothing();
    answer(AGENT_LOOK, TRANSPORT_ANSWER, REVISION_1);
    hear(CONTROL_SAY_STATE);
    hear_nothing();
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_WATCH], "\"2\""));
}

static void
begin_primary(void)
{
    begin();
    struct control_request request = take_request("a", 1, 0, 0);
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, GRANT);
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_TAKE], "\"758\""));
    ck_assert_uint_eq(beat(), 0); /* not before it is known */
    answer(AGENT_TAKE, TRANSPORT_ANSWER, DONE);
    hear_result(1, CONTROL_YES);
}

START_TEST(test_looks)
{
    static const char change[] = "{\"result\":{\"events\":[{}]}}";
    static const char compacted[] =
        "{\"result\":{\"canceled\":true,\"compact_revision\":\"9\"}}";
    begin();
    ck_assert_ptr_null(net.body[AGENT_LOOK]);
    agent_watched(&agent, change, strlen(change), now);
    turn(0);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"3\"}}");
    hear_nothing(); /* nothing of the group's was another */
    ck_assert_uint_eq(net.n[AGENT_WATCH], 1);
    agent_watched(&agent, compacted, strlen(compacted), now);
    ck_assert_ptr_null(net.body[AGENT_WATCH]);
    turn(AGENT_RETRY_MS);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"9\"}}");
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_WATCH], "\"10\""));
    turn(AGENT_LOOK_MS);
    answer(AGENT_LOOK, TRANSPORT_UNSURE, "");
    hear(CONTROL_SAY_UNREACHABLE);
    hear_nothing();
    ck_assert_ptr_null(net.body[AGENT_WATCH]);
    turn(AGENT_RETRY_MS);
    /* a member that has been apart shows what was */
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"8\"}}");
    hear_nothing();
    turn(AGENT_RETRY_MS);
    answer(AGENT_LOOK, TRANSPORT_ERROR, UNAVAILABLE);
    turn(AGENT_RETRY_MS);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"9\"}}");
    hear(CONTROL_SAY_STATE);
    hear_nothing();
}
END_TEST

START_TEST(test_deadline)
{
    begin_primary();
    const uint64_t asked = UINT64_C(1000000) * MS;
    ck_assert_uint_eq(beat(), asked + UINT64_C(9000) * MS);
    for (unsigned ms = 0; ms < 3300; ms += 300) {
        turn(300);
        (void)beat();
    }
    ck_assert_uint_eq(net.n[AGENT_PRIMARY_ALIVE], 0);
    turn(100);
    ck_assert_ptr_nonnull(net.body[AGENT_PRIMARY_ALIVE]);
    uint64_t sent = now;
    now += 500 * MS; /* the answer takes its time: that does not count */
    answer(AGENT_PRIMARY_ALIVE, TRANSPORT_ANSWER, ALIVE);
    ck_assert_uint_eq(beat(), sent + UINT64_C(9000) * MS);
    for (unsigned i = 0; i < 10; i++) {
        turn(300);
        (void)beat();
    }
    answer(AGENT_PRIMARY_ALIVE, TRANSPORT_UNSURE, "");
    ck_assert_uint_eq(beat(), sent + UINT64_C(9000) * MS);
    turn(AGENT_RETRY_MS);
    answer(AGENT_PRIMARY_ALIVE, TRANSPORT_ANSWER, OVER);
    hear(CONTROL_SAY_LOST);
    ck_assert_uint_eq(beat(), 0);
}
END_TEST

/* Whatever does not say yes or no, and what the lease becomes. */
START_TEST(test_outcomes)
{
    static const struct {
        enum transport_outcome how;
        const char *text;
        enum control_outcome outcome;
    } rows[] = {{TRANSPORT_ANSWER, NOT_DONE, CONTROL_NO},
        {TRANSPORT_ANSWER, "{}", CONTROL_UNKNOWN},
        {TRANSPORT_ANSWER, "", CONTROL_UNKNOWN},
        {TRANSPORT_ERROR, UNAVAILABLE, CONTROL_UNKNOWN},
        {TRANSPORT_ERROR, "<html>", CONTROL_UNKNOWN},
        {TRANSPORT_ERROR, NO_LEASE, CONTROL_NO},
        {TRANSPORT_UNSENT, "", CONTROL_NO},
        {TRANSPORT_UNSURE, "", CONTROL_UNKNOWN}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        begin();
        struct control_request request = voters_request(1, 1, 1, 5);
        ask(&request);
        answer(AGENT_VOTERS, rows[i].how, rows[i].text);
        hear_result(2, rows[i].outcome);
        ck_assert_uint_eq(net.n[AGENT_VOTERS], 1);
        request = take_request("a", 1, 0, 0);
        ask(&request);
        answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, GRANT);
        answer(AGENT_TAKE, rows[i].how, rows[i].text);
        hear_result(1, rows[i].outcome);
        ck_assert_uint_eq(beat(), 0);
        ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "758"));
        answer(AGENT_REVOKE, TRANSPORT_UNSURE, "");
        turn(AGENT_RETRY_MS);
        answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
        turn(AGENT_RETRY_MS);
        ck_assert_ptr_null(net.body[AGENT_REVOKE]);
    }
}
END_TEST

START_TEST(test_hang)
{
    begin_primary();
    struct control_request node = node_request("a");
    ask(&node);
    answer(AGENT_NODE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"9\"}");
    answer(AGENT_NODE, TRANSPORT_ANSWER, DONE);
    hear_result(3, CONTROL_YES);
    turn(HANG_MS - 1);
    ck_assert_ptr_null(net.body[AGENT_REVOKE]);
    turn(1);
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "758"));
    hear(CONTROL_SAY_LOST);
    turn(TTL_S * 1000); /* nor is the node's lease asked for again */
    ck_assert_uint_eq(net.n[AGENT_NODE_ALIVE], 0);
    ck_assert_uint_eq(beat(), 0);
    turn(0);
    /* it beats again: its key is put anew, with another lease */
    answer(AGENT_NODE_ALIVE, TRANSPORT_ERROR, NO_LEASE);
    answer(AGENT_NODE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"10\"}");
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_NODE], "\"10\""));
    answer(AGENT_NODE, TRANSPORT_ANSWER, DONE);
    (void)agent_event(&agent, &room);
    ck_assert_uint_eq(agent.n_events, 0);
}
END_TEST

/* What is said last is what etcd has, though another one is under way. */
START_TEST(test_node_again)
{
    struct control_request first = node_request("a"), second = first;
    begin();
    second.number = 9;
    second.of.node.priority = 55;
    ask(&first);
    answer(AGENT_NODE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"9\"}");
    ask(&second);
    hear_result(3, CONTROL_UNKNOWN);
    answer(AGENT_NODE, TRANSPORT_ANSWER, DONE);
    ck_assert_uint_eq(net.n[AGENT_NODE], 2);
    ck_assert(!agent_has_events(&agent));
    answer(AGENT_NODE, TRANSPORT_ANSWER, DONE);
    hear_result(9, CONTROL_YES);
    /* likewise while its lease is asked for */
    begin();
    ask(&first);
    ask(&second);
    hear_result(3, CONTROL_UNKNOWN);
    answer(AGENT_NODE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"9\"}");
    answer(AGENT_NODE, TRANSPORT_ANSWER, DONE);
    hear_result(9, CONTROL_YES);
    ck_assert_uint_eq(net.n[AGENT_NODE], 1);
}
END_TEST

START_TEST(test_give_up)
{
    const struct control_request request = {
        .ask = CONTROL_GIVE_UP, .number = 8};
    begin();
    ask(&request);
    hear_result(8, CONTROL_YES);
    begin_primary();
    ask(&request);
    ck_assert_uint_eq(beat(), 0); /* at once */
    ask(&request);
    hear_result(8, CONTROL_NO); /* one is under way */
    answer(AGENT_REVOKE, TRANSPORT_ERROR, NO_LEASE);
    hear_result(8, CONTROL_YES);
    begin_primary();
    ask(&request);
    answer(AGENT_REVOKE, TRANSPORT_UNSURE, "");
    for (unsigned i = 0; i < TTL_S * 5; i++) {
        ck_assert(!agent_has_events(&agent));
        turn(AGENT_RETRY_MS);
        if (net.body[AGENT_REVOKE] != NULL) {
            answer(AGENT_REVOKE, TRANSPORT_UNSENT, "");
        }
    }
    hear_result(8, CONTROL_UNKNOWN);
}
END_TEST

/* While a take is under way: what comes of it is given up, too. */
START_TEST(test_give_up_take)
{
    const struct control_request give_up = {
        .ask = CONTROL_GIVE_UP, .number = 8};
    struct control_request request = take_request("a", 1, 0, 0);
    begin();
    ask(&request);
    ask(&give_up);
    hear_nothing();
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, GRANT);
    ck_assert_uint_eq(net.n[AGENT_TAKE], 0);
    hear_result(1, CONTROL_NO);
    ck_assert(!agent_has_events(&agent));
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    hear_result(8, CONTROL_YES);
    begin();
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, GRANT);
    ask(&give_up);
    ask(&give_up);
    hear_result(8, CONTROL_NO); /* one is under way */
    answer(AGENT_TAKE, TRANSPORT_ANSWER, DONE);
    hear_result(1, CONTROL_UNKNOWN);
    ck_assert_uint_eq(beat(), 0);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    hear_result(8, CONTROL_YES);
    /* a keep, and a lease beside it */
    begin_primary();
    request = keep_request("a", 1, 0, 7);
    ask(&request);
    ask(&give_up);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"800\"}");
    hear_result(4, CONTROL_NO);
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "800"));
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    hear_result(8, CONTROL_YES);
}
END_TEST

START_TEST(test_keep)
{
    begin_primary();
    turn(500);
    struct control_request request = keep_request("a", 1, 0, 7);
    ask(&request);
    uint64_t asked = now;
    struct control_request take = take_request("a", 2, 7, 7);
    ask(&take);
    hear_result(1, CONTROL_NO); /* one of the two at a time */
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"800\"}");
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_TAKE], "\"800\""));
    answer(AGENT_TAKE, TRANSPORT_ANSWER,
        "{\"header\":{\"revision\":\"9\"},\"succeeded\":true}");
    const struct control_event *event = hear(CONTROL_SAY_RESULT);
    ck_assert_uint_eq(event->of.result.number, 4);
    ck_assert_int_eq(event->of.result.outcome, CONTROL_YES);
    ck_assert_uint_eq(event->of.result.revision, 9);
    ck_assert_uint_eq(beat(), asked + UINT64_C(9000) * MS);
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "758"));
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    /* refused: what there was goes on */
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"801\"}");
    answer(AGENT_TAKE, TRANSPORT_ANSWER, NOT_DONE);
    event = hear(CONTROL_SAY_RESULT);
    ck_assert_int_eq(event->of.result.outcome, CONTROL_NO);
    ck_assert_uint_eq(event->of.result.revision, 7);
    ck_assert_uint_eq(beat(), asked + UINT64_C(9000) * MS);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    /* no answer: the key may be another one, so no lease counts */
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"802\"}");
    answer(AGENT_TAKE, TRANSPORT_UNSURE, "");
    ck_assert_uint_eq(beat(), 0);
    hear(CONTROL_SAY_LOST);
    hear_result(4, CONTROL_UNKNOWN);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    ck_assert_uint_eq(agent.n_ending, 0);
}
END_TEST

/* The lease ends whatever comes out, and not before that is known. */
START_TEST(test_hand)
{
    static const struct {
        enum transport_outcome how;
        const char *text;
        enum control_outcome outcome;
    } rows[] = {{TRANSPORT_ANSWER, DONE, CONTROL_YES},
        {TRANSPORT_ANSWER, NOT_DONE, CONTROL_NO},
        {TRANSPORT_UNSENT, "", CONTROL_NO},
        {TRANSPORT_UNSURE, "", CONTROL_UNKNOWN}};
    const struct control_request give_up = {
        .ask = CONTROL_GIVE_UP, .number = 8};
    const struct control_request request = hand_request("b");
    begin();
    ask(&request);
    hear_result(5, CONTROL_NO); /* there is no key */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        begin_primary();
        ask(&request);
        ck_assert_uint_eq(beat(), 0); /* at once */
        ck_assert_ptr_nonnull(strstr(net.body[AGENT_HAND], "\"7\""));
        ask(&give_up);
        turn(500);
        ck_assert_ptr_null(net.body[AGENT_REVOKE]);
        answer(AGENT_HAND, rows[i].how, rows[i].text);
        ck_assert_uint_eq(net.n[AGENT_HAND], 1);
        hear_result(5, rows[i].outcome);
        ck_assert(!agent_has_events(&agent));
        ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "758"));
        answer(AGENT_REVOKE, TRANSPORT_ERROR, NO_LEASE);
        hear_result(8, CONTROL_YES);
    }
    begin_primary();
    ask(&request);
    agent_end(&agent, now);
    turn(0);
    ck_assert(!agent_is_through(&agent));
    answer(AGENT_HAND, TRANSPORT_ANSWER, DONE);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    ck_assert(agent_is_through(&agent));
}
END_TEST

/* Behind a no comes a state that was looked at afterwards, also where it is the
 * same; a look that was under way before is none. */
/* The process outlives a node whose directory is loaded anew: the next one
 * hears what there is, though nothing has changed. */
START_TEST(test_state_for_new_node)
{
    static const char same[] = "{\"header\":{\"revision\":\"5\"}}";
    struct control_request request = node_request("a");
    begin();
    turn(AGENT_LOOK_MS);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, same);
    hear_nothing();
    ask(&request);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, same);
    ck_assert_uint_eq(hear(CONTROL_SAY_STATE)->of.state.revision, 5);
    hear_nothing();
}
END_TEST

START_TEST(test_state_behind_no)
{
    begin();
    struct control_request request = voters_request(1, 1, 1, 5);
    turn(AGENT_LOOK_MS);
    ck_assert_ptr_nonnull(net.body[AGENT_LOOK]);
    ask(&request);
    answer(AGENT_VOTERS, TRANSPORT_ANSWER, NOT_DONE);
    hear_result(2, CONTROL_NO);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"6\"}}");
    hear_nothing();
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"8\"}}");
    ck_assert_uint_eq(hear(CONTROL_SAY_STATE)->of.state.revision, 8);
    turn(AGENT_LOOK_MS);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"9\"}}");
    hear_nothing();
}
END_TEST

/* Somebody has deleted the key by hand. */
START_TEST(test_key_is_gone)
{
    begin_primary();
    /* a look of before the key was put says nothing */
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"6\"}}");
    ck_assert_uint_ne(beat(), 0);
    turn(AGENT_LOOK_MS - 1);
    (void)beat();
    turn(1);
    answer(AGENT_LOOK, TRANSPORT_ANSWER, "{\"header\":{\"revision\":\"8\"}}");
    ck_assert_uint_eq(beat(), 0);
    hear(CONTROL_SAY_LOST);
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "758"));
}
END_TEST

START_TEST(test_take_again)
{
    begin_primary();
    turn(500);
    struct control_request request = take_request("a", 2, 7, 7);
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"800\"}");
    (void)beat();
    turn(500);
    ck_assert_uint_ne(beat(), 0); /* the old one holds meanwhile */
    answer(AGENT_TAKE, TRANSPORT_ANSWER, DONE);
    hear_result(1, CONTROL_YES);
    ck_assert_ptr_nonnull(strstr(net.body[AGENT_REVOKE], "758"));
    ck_assert_uint_eq(agent.primary.id, 800);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    ck_assert_uint_eq(agent.primary.id, 800);
}
END_TEST

/* An answer about a lease that is another one by now. */
START_TEST(test_late_answer)
{
    begin_primary();
    for (unsigned i = 0; i < 12; i++) {
        turn(300);
        (void)beat();
    }
    ck_assert_ptr_nonnull(net.body[AGENT_PRIMARY_ALIVE]);
    struct control_request request = take_request("a", 2, 7, 7);
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, "{\"ID\":\"800\"}");
    answer(AGENT_TAKE, TRANSPORT_ANSWER, DONE);
    hear_result(1, CONTROL_YES);
    uint64_t deadline = beat();
    answer(AGENT_PRIMARY_ALIVE, TRANSPORT_ANSWER, OVER);
    ck_assert_uint_eq(beat(), deadline);
    ck_assert(!agent_has_events(&agent));
}
END_TEST

START_TEST(test_node_is_gone)
{
    begin_primary();
    agent_end(&agent, now);
    ck_assert(!agent_is_through(&agent));
    turn(0);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    ck_assert(agent_is_through(&agent));
    /* while it becomes primary */
    begin();
    struct control_request request = take_request("a", 1, 0, 0);
    ask(&request);
    agent_end(&agent, now);
    ck_assert(!agent_is_through(&agent));
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, GRANT);
    ck_assert_uint_eq(net.n[AGENT_TAKE], 0);
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    ck_assert(agent_is_through(&agent));
    begin();
    ask(&request);
    answer(AGENT_TAKE_GRANT, TRANSPORT_ANSWER, GRANT);
    agent_end(&agent, now);
    answer(AGENT_TAKE, TRANSPORT_ANSWER, DONE);
    ck_assert(!agent_is_through(&agent));
    answer(AGENT_REVOKE, TRANSPORT_ANSWER, "{}");
    ck_assert(agent_is_through(&agent));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_looks, test_deadline, test_outcomes,
        test_hang, test_node_again, test_give_up, test_give_up_take, test_keep,
        test_hand, test_state_for_new_node, test_state_behind_no,
        test_key_is_gone, test_take_again, test_late_answer,
        test_node_is_gone};
    return run_tests("etcd_agent", tests, COUNT_OF(tests));
}
