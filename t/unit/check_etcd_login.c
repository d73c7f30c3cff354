/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd/login with a network that the test is: who waits for a token, what is
 * sent with which, and what becomes of calls when there is none. */
#include "etcd/login.h"

#include "unit/control_help.h"

#include <stdlib.h>

enum { CALLS = 3, MS = 1000000 };

#define TOKEN(text) "{\"header\":{},\"token\":\"" text "\"}"
#define BAD_TOKEN "{\"message\":\"invalid auth token\",\"code\":16}"
#define NO_NAME "{\"message\":\"etcdserver: user name is empty\",\"code\":3}"
#define WRONG "{\"message\":\"authentication failed\",\"code\":3}"
#define OFF "{\"message\":\"authentication is not enabled\",\"code\":9}"

struct net {
    struct transport transport;
    char *body[TRANSPORT_CALLS_MAX]; /* of what is under way */
    char token[TRANSPORT_CALLS_MAX][LOGIN_TOKEN_MAX + 1];
    unsigned n[TRANSPORT_CALLS_MAX];
};

static void
net_post(struct transport *transport, const struct transport_post *post)
{
    struct net *net = (struct net *)transport;
    ck_assert_ptr_null(net->body[post->call]);
    net->body[post->call] = post->body;
    net->n[post->call]++;
    (void)snprintf(net->token[post->call], sizeof net->token[0], "%s",
        post->token == NULL ? "-" : post->token);
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

struct told {
    unsigned n;
    enum transport_outcome outcome;
    char text[TRANSPORT_WHY_MAX + 1];
};

static struct net net;
static struct login login;
static struct told told[CALLS];
static bool asks_again; /* when it is told of an end */
static uint64_t now;

static void
post(unsigned call)
{
    const struct transport_post what = {
        .call = call, .path = "/v3/kv/txn", .body = strdup("{}")};
    struct transport *transport = login_transport(&login);
    transport->calls->post(transport, &what);
}

static void
on_ended(void *context, unsigned call, enum transport_outcome outcome,
    const char *text, size_t len)
{
    ck_assert_ptr_eq(context, told);
    ck_assert_uint_lt(call, CALLS);
    told[call].n++;
    told[call].outcome = outcome;
    (void)snprintf(
        told[call].text, sizeof told[call].text, "%.*s", (int)len, text);
    if (asks_again) {
        asks_again = false;
        post(call);
    }
}

static void
on_line(void *context, unsigned call, const char *text, size_t len)
{
    (void)text;
    (void)len;
    ck_assert_ptr_eq(context, told);
    told[call].n += 100;
}

static void
end(void)
{
    login_fini(&login);
    for (unsigned i = 0; i < TRANSPORT_CALLS_MAX; i++) {
        free(net.body[i]);
    }
    memset(&net, 0, sizeof net);
}

static void
begin(const char *name)
{
    const struct transport_ears ears = {
        .ended_fn = on_ended, .line_fn = on_line, .context = told};
    struct login_user user = {.password = "pass:word"};
    (void)snprintf(user.name, sizeof user.name, "%s", name);
    memset(told, 0, sizeof told);
    net.transport.calls = &net_calls;
    now = MS;
    login_init(&login, &user, &ears);
    login_set_below(&login, &net.transport);
    login_turn(&login, now);
}

static void
answer(unsigned call, enum transport_outcome outcome, const char *text)
{
    ck_assert_msg(net.body[call] != NULL, "call %u is not asked", call);
    free(net.body[call]);
    net.body[call] = NULL;
    struct transport_ears ears = login_ears(&login);
    ears.ended_fn(ears.context, call, outcome, text, strlen(text));
}

static void
expect_told(unsigned call, enum transport_outcome outcome, const char *text)
{
    ck_assert_uint_eq(told[call].n, 1);
    ck_assert_int_eq(told[call].outcome, outcome);
    ck_assert_str_eq(told[call].text, text);
    told[call].n = 0;
}

START_TEST(test_without)
{
    begin("");
    post(0);
    ck_assert_str_eq(net.token[0], "-");
    struct transport_ears ears = login_ears(&login);
    ears.line_fn(ears.context, 0, "x", 1);
    ck_assert_uint_eq(told[0].n, 100);
    told[0].n = 0;
    answer(0, TRANSPORT_ERROR, BAD_TOKEN);
    expect_told(0, TRANSPORT_ERROR, BAD_TOKEN);
    post(0);
    login_transport(&login)->calls->cancel(login_transport(&login), 0);
    ck_assert_ptr_null(net.body[0]);
    ck_assert_uint_eq(net.n[LOGIN_CALL], 0);
    end();
}
END_TEST

START_TEST(test_token)
{
    begin("u");
    post(0);
    post(1);
    ck_assert_uint_eq(net.n[0] + net.n[1], 0);
    ck_assert_uint_eq(net.n[LOGIN_CALL], 1);
    ck_assert_str_eq(
        net.body[LOGIN_CALL], "{\"name\":\"u\",\"password\":\"pass:word\"}");
    ck_assert_str_eq(net.token[LOGIN_CALL], "-");
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("T1"));
    ck_assert_str_eq(net.token[0], "T1");
    ck_assert_str_eq(net.token[1], "T1");
    ck_assert_str_eq(net.body[0], "{}");
    answer(0, TRANSPORT_ANSWER, "{}");
    expect_told(0, TRANSPORT_ANSWER, "{}");
    /* etcd does not know it any more: one that asks, both are sent again */
    post(0);
    answer(0, TRANSPORT_ERROR, BAD_TOKEN);
    answer(1, TRANSPORT_ERROR, NO_NAME);
    ck_assert_uint_eq(told[0].n + told[1].n, 0);
    ck_assert_uint_eq(net.n[LOGIN_CALL], 2);
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("T2"));
    ck_assert_str_eq(net.token[0], "T2");
    ck_assert_str_eq(net.body[1], "{}");
    /* nor the new one: that is told */
    answer(0, TRANSPORT_ERROR, BAD_TOKEN);
    expect_told(0, TRANSPORT_ERROR, BAD_TOKEN);
    /* a late refusal of one that is old by now asks for none */
    answer(1, TRANSPORT_ANSWER, "{}");
    ck_assert_uint_eq(net.n[LOGIN_CALL], 2);
    end();
}
END_TEST

START_TEST(test_late)
{
    begin("u");
    post(0);
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("T1"));
    post(1);
    answer(0, TRANSPORT_ERROR, BAD_TOKEN);
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("T2"));
    answer(1, TRANSPORT_ERROR, BAD_TOKEN); /* of T1 */
    ck_assert_uint_eq(net.n[LOGIN_CALL], 2);
    ck_assert_str_eq(net.token[1], "T2");
    end();
}
END_TEST

START_TEST(test_refused)
{
    begin("u");
    post(0);
    post(1);
    answer(LOGIN_CALL, TRANSPORT_ERROR, WRONG);
    ck_assert_uint_eq(told[0].n, 0);
    ck_assert(login_is_due(&login));
    asks_again = true;
    login_turn(&login, now);
    expect_told(0, TRANSPORT_UNSENT, "user u: authentication failed");
    expect_told(1, TRANSPORT_UNSENT, "user u: authentication failed");
    /* it is not asked each time */
    ck_assert_uint_eq(net.n[LOGIN_CALL], 1);
    ck_assert(login_is_due(&login));
    login_turn(&login, now + (uint64_t)(LOGIN_REST_MS - 1) * MS);
    expect_told(0, TRANSPORT_UNSENT, "user u: authentication failed");
    ck_assert(!login_is_due(&login));
    login_turn(&login, now + (uint64_t)LOGIN_REST_MS * MS);
    post(0);
    ck_assert_uint_eq(net.n[LOGIN_CALL], 2);
    answer(LOGIN_CALL, TRANSPORT_UNSURE, "it is away");
    login_turn(&login, login.now_ns);
    expect_told(0, TRANSPORT_UNSENT, "it is away");
    post(0);
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("two words"));
    login_turn(&login, login.now_ns);
    expect_told(0, TRANSPORT_UNSENT, "no token that can be used has come");
    ck_assert_uint_eq(net.n[0], 0);
    end();
}
END_TEST

/* Where etcd asks nobody calls go without; until it does. */
START_TEST(test_off)
{
    begin("u");
    post(0);
    answer(LOGIN_CALL, TRANSPORT_ERROR, OFF);
    ck_assert_str_eq(net.token[0], "-");
    answer(0, TRANSPORT_ANSWER, "{}");
    post(1);
    ck_assert_uint_eq(net.n[LOGIN_CALL], 1);
    answer(1, TRANSPORT_ERROR, NO_NAME);
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("T1"));
    ck_assert_str_eq(net.token[1], "T1");
    end();
}
END_TEST

START_TEST(test_cancel)
{
    struct transport *transport = login_transport(&login);
    begin("u");
    post(0);
    transport->calls->cancel(transport, 0);
    answer(LOGIN_CALL, TRANSPORT_ANSWER, TOKEN("T1"));
    ck_assert_uint_eq(net.n[0], 0);
    post(0);
    transport->calls->cancel(transport, 0);
    ck_assert_ptr_null(net.body[0]);
    post(0);
    ck_assert_uint_eq(net.n[0], 2);
    ck_assert_uint_eq(told[0].n, 0);
    end();
}
END_TEST

START_TEST(test_read_user)
{
    static const struct {
        const char *text, *name, *password; /* name NULL: none */
    } rows[] = {{"a:b", "a", "b"}, {"a:b\n", "a", "b"}, {"a:b\r\n", "a", "b"},
        {"a:b:c d", "a", "b:c d"}, {"", NULL, ""}, {"\n", NULL, ""},
        {"a", NULL, ""}, {":b", NULL, ""}, {"a:", NULL, ""},
        {"a:b\nc:d\n", NULL, ""}, {"a:b\n\n", NULL, ""}, {"a:\tb", NULL, ""}};
    char text[LOGIN_USER_MAX + LOGIN_PASSWORD_MAX + 3];
    struct login_user user;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bool is_one =
            login_read_user(rows[i].text, strlen(rows[i].text), &user);
        ck_assert_msg(is_one == (rows[i].name != NULL), "row %zu", i);
        if (is_one) {
            ck_assert_str_eq(user.name, rows[i].name);
            ck_assert_str_eq(user.password, rows[i].password);
        }
    }
    memset(text, 'x', sizeof text);
    text[LOGIN_USER_MAX] = ':';
    const size_t most = LOGIN_USER_MAX + 1 + LOGIN_PASSWORD_MAX;
    ck_assert(login_read_user(text, most, &user));
    ck_assert_uint_eq(strlen(user.password), LOGIN_PASSWORD_MAX);
    ck_assert(!login_read_user(text, most + 1, &user));
    text[LOGIN_USER_MAX] = 'x';
    text[LOGIN_USER_MAX + 1] = ':';
    ck_assert(!login_read_user(text, most, &user));
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_without, test_token, test_late,
        test_refused, test_off, test_cancel, test_read_user};
    return run_tests("etcd_login", tests, COUNT_OF(tests));
}
