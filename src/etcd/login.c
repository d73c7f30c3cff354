/* SPDX-License-Identifier: BSD-3-Clause */
/* A call goes through
 *
 *   FREE --> WAITS --> SENT --> FREE          with an answer
 *              |  ^------|                    the token is unknown: once
 *              v
 *            FAILED --> FREE                  no token can be had: not sent
 *
 * A token ends when it is old, and when etcd's users change or a member starts
 * anew. Then etcd refuses a call before it does anything of it, so that it may
 * be sent again, a change as well. Where authentication is not enabled in etcd
 * calls go without a token: it can be switched on while nodes run. */
#include "etcd/login.h"

#include "base/assert.h"
#include "etcd/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000 };

static bool
take_part(const char *text, size_t len, char *out, size_t most)
{
    if (len == 0 || len > most) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return false;
        }
    }
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

bool
login_read_user(const char *text, size_t len, struct login_user *out)
{
    memset(out, 0, sizeof *out);
    len -= len > 0 && text[len - 1] == '\n';
    len -= len > 0 && text[len - 1] == '\r';
    const char *colon = len == 0 ? NULL : memchr(text, ':', len);
    size_t name_len = colon == NULL ? 0 : (size_t)(colon - text);
    return colon != NULL &&
        take_part(text, name_len, out->name, LOGIN_USER_MAX) &&
        take_part(
            colon + 1, len - name_len - 1, out->password, LOGIN_PASSWORD_MAX);
}

static void
clear(struct login_call *call)
{
    free(call->post.body);
    *call = (struct login_call){0};
}

static void
fail(struct login *login, struct login_call *call, const char *why)
{
    call->state = LOGIN_FAILED;
    if (why != login->why) {
        (void)snprintf(login->why, sizeof login->why, "%s", why);
    }
}

static void
send_call(struct login *login, struct login_call *call)
{
    struct transport_post post = call->post;
    post.body = strdup(call->post.body);
    if (post.body == NULL) {
        fail(login, call, "no memory");
        return;
    }
    post.token = login->token[0] == '\0' ? NULL : login->token;
    call->state = LOGIN_SENT;
    call->token_number = login->token_number;
    login->below->calls->post(login->below, &post);
}

static void
fail_waiting(struct login *login)
{
    for (unsigned i = 0; i < LOGIN_CALL; i++) {
        if (login->call[i].state == LOGIN_WAITS) {
            fail(login, &login->call[i], login->why);
        }
    }
}

static void
get_token(struct login *login)
{
    if (login->is_asking) {
        return;
    }
    struct transport_post post = {.call = LOGIN_CALL,
        .path = "/v3/auth/authenticate",
        .body = keys_authenticate(login->user.name, login->user.password)};
    if (post.body == NULL) {
        (void)snprintf(login->why, sizeof login->why, "no memory");
        fail_waiting(login);
        return;
    }
    login->is_asking = true;
    login->below->calls->post(login->below, &post);
}

/* One that waits: sends it, or gets what it waits for. */
static void
go_on(struct login *login, struct login_call *call)
{
    if (login->has_token) {
        send_call(login, call);
    } else if (login->now_ns < login->rest_ns) {
        fail(login, call, login->why);
    } else {
        get_token(login);
    }
}

static struct login *
of_transport(struct transport *transport)
{
    struct login *login = (struct login *)(void *)((char *)transport -
        offsetof(struct login, transport));
    ASSERT(login->magic == LOGIN_MAGIC);
    return login;
}

static void
login_post(struct transport *transport, const struct transport_post *post)
{
    struct login *login = of_transport(transport);
    ASSERT(post->call < LOGIN_CALL && post->token == NULL);
    if (login->user.name[0] == '\0') {
        login->below->calls->post(login->below, post);
        return;
    }
    struct login_call *call = &login->call[post->call];
    ASSERT(call->state == LOGIN_FREE);
    *call = (struct login_call){.state = LOGIN_WAITS, .post = *post};
    go_on(login, call);
}

static void
login_cancel(struct transport *transport, unsigned number)
{
    struct login *login = of_transport(transport);
    struct login_call *call = &login->call[number];
    ASSERT(number < LOGIN_CALL);
    if (login->user.name[0] == '\0' || call->state == LOGIN_SENT) {
        login->below->calls->cancel(login->below, number);
    }
    clear(call);
}

static const struct transport_calls login_calls = {
    .post = login_post, .cancel = login_cancel};

static void
refuse(struct login *login, const char *text, size_t len)
{
    char words[CONTROL_WHY_MAX + 1];
    (void)keys_is_refusal(text, len, words);
    (void)snprintf(
        login->why, sizeof login->why, "user %s: %s", login->user.name, words);
    login->rest_ns = login->now_ns + (uint64_t)LOGIN_REST_MS * NS_PER_MS;
}

/* The answer to the question for a token. */
static void
on_token(struct login *login, enum transport_outcome outcome, const char *text,
    size_t len)
{
    login->is_asking = false;
    login->token[0] = '\0';
    if (outcome == TRANSPORT_ANSWER) {
        login->has_token =
            keys_read_token(text, len, login->token, LOGIN_TOKEN_MAX);
        (void)snprintf(login->why, sizeof login->why,
            "no token that can be used has come");
    } else if (outcome == TRANSPORT_ERROR) {
        login->has_token = keys_is_auth_off(text, len);
        refuse(login, text, len);
    } else {
        (void)snprintf(login->why, sizeof login->why, "%.*s", (int)len, text);
    }
    if (!login->has_token) {
        fail_waiting(login);
        return;
    }
    login->token_number++;
    login->rest_ns = 0;
    for (unsigned i = 0; i < LOGIN_CALL; i++) {
        if (login->call[i].state == LOGIN_WAITS) {
            send_call(login, &login->call[i]);
        }
    }
}

static void
on_ended(void *context, unsigned number, enum transport_outcome outcome,
    const char *text, size_t len)
{
    struct login *login = context;
    ASSERT(login->magic == LOGIN_MAGIC && number <= LOGIN_CALL);
    if (number == LOGIN_CALL) {
        on_token(login, outcome, text, len);
        return;
    }
    struct login_call *call = &login->call[number];
    if (call->state == LOGIN_SENT && !call->is_again &&
        outcome == TRANSPORT_ERROR && keys_is_no_token(text, len)) {
        call->is_again = true;
        call->state = LOGIN_WAITS;
        login->has_token =
            login->has_token && call->token_number != login->token_number;
        go_on(login, call);
        return;
    }
    clear(call);
    login->ears.ended_fn(login->ears.context, number, outcome, text, len);
}

static void
on_line(void *context, unsigned number, const char *text, size_t len)
{
    struct login *login = context;
    login->ears.line_fn(login->ears.context, number, text, len);
}

void
login_init(struct login *login, const struct login_user *user,
    const struct transport_ears *ears)
{
    memset(login, 0, sizeof *login);
    login->magic = LOGIN_MAGIC;
    login->transport.calls = &login_calls;
    login->user = *user;
    login->ears = *ears;
}

void
login_set_below(struct login *login, struct transport *below)
{
    login->below = below;
}

struct transport_ears
login_ears(struct login *login)
{
    return (struct transport_ears){
        .ended_fn = on_ended, .line_fn = on_line, .context = login};
}

struct transport *
login_transport(struct login *login)
{
    return &login->transport;
}

bool
login_is_due(const struct login *login)
{
    bool is_due = false;
    for (unsigned i = 0; i < LOGIN_CALL; i++) {
        is_due = is_due || login->call[i].state == LOGIN_FAILED;
    }
    return is_due;
}

void
login_turn(struct login *login, uint64_t now_ns)
{
    login->now_ns = now_ns;
    for (unsigned i = 0; i < LOGIN_CALL; i++) {
        if (login->call[i].state == LOGIN_FAILED) {
            clear(&login->call[i]); /* who is told may ask anew */
            login->ears.ended_fn(login->ears.context, i, TRANSPORT_UNSENT,
                login->why, strlen(login->why));
        }
    }
}

void
login_fini(struct login *login)
{
    for (unsigned i = 0; i < LOGIN_CALL; i++) {
        clear(&login->call[i]);
    }
    memset(login, 0, sizeof *login);
}
