/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_LOGIN_H
#define ETCD_LOGIN_H

#include "etcd/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stands between the agent and the network: where etcd wants to know who asks
 * it gets a token for a name and a password, and gives it to each call.
 * Without a name it hands all on. Without I/O and without a clock. One
 * thread. */

enum {
    LOGIN_MAGIC = 0x6e676f6c,
    LOGIN_CALL = TRANSPORT_CALLS_MAX - 1, /* its own; calls are below it */
    LOGIN_USER_MAX = 64,
    LOGIN_PASSWORD_MAX = 128,
    LOGIN_TOKEN_MAX = 4096,
    LOGIN_REST_MS = 1000 /* after a refusal: etcd takes its time for each */
};

/* Bytes from 0x20 to 0x7e. */
struct login_user {
    char name[LOGIN_USER_MAX + 1]; /* "": none */
    char password[LOGIN_PASSWORD_MAX + 1];
};

/* Reads a line NAME:PASSWORD, its end may be missing; what is behind the first
 * colon is the password. False where it is none, or there are more lines. */
bool login_read_user(const char *text, size_t len, struct login_user *out);

/* A call of the agent's. */
struct login_call {
    enum login_state {
        LOGIN_FREE,
        LOGIN_WAITS, /* for a token */
        LOGIN_SENT,
        LOGIN_FAILED /* the agent is to be told */
    } state;
    struct transport_post post; /* its body is kept, for another try */
    bool is_again;              /* this is the other try */
    uint32_t token_number;      /* that it was sent with */
};

struct login {
    uint32_t magic;
    struct transport transport; /* the agent's */
    struct transport *below;
    struct transport_ears ears; /* who is told */
    struct login_user user;
    uint64_t now_ns;
    bool has_token; /* or etcd wants none */
    bool is_asking;
    uint32_t token_number;
    char token[LOGIN_TOKEN_MAX + 1]; /* "": etcd wants none */
    uint64_t rest_ns;                /* not asked for before that */
    char why[TRANSPORT_WHY_MAX + 1]; /* there is no token */
    struct login_call call[LOGIN_CALL];
};

/* *login may be anything. below is set by login_set_below before the first
 * call, and told of by login_ears. */
void login_init(struct login *login, const struct login_user *user,
    const struct transport_ears *ears);
void login_set_below(struct login *login, struct transport *below);
struct transport_ears login_ears(struct login *login);
struct transport *login_transport(struct login *login);

/* Tells the agent what has failed here. Before each call and turn of what is
 * below, and behind it; now_ns: CLOCK_BOOTTIME. */
void login_turn(struct login *login, uint64_t now_ns);

/* True where login_turn has something to tell. */
bool login_is_due(const struct login *login);

/* Frees what is kept of calls that are under way. */
void login_fini(struct login *login);

#endif
