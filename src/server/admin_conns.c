/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers stats conns: the listening sockets, then each worker's connections.
 */
#include "server/admin_priv.h"

#include "base/num.h"

#include <stdio.h>

#define NS_PER_S UINT64_C(1000000000)
enum { NAME_BYTES = 48 /* "<fd>:<figure>" */ };

struct put {
    const struct server_admin *admin;
    struct reply_stats *out;
    uint64_t now_ns;
};

/* A pair whose name is "<fd>:<figure>". */
static void
put_text(const struct put *put, int fd, const char *figure, const char *value)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%d:%s", fd, figure);
    reply_stats_text(put->out, name, value);
}

static void
put_u64(const struct put *put, int fd, const char *figure, uint64_t value)
{
    char text[NUM_U64_DIGITS_MAX + 1];
    text[num_format_u64(value, text)] = '\0';
    put_text(put, fd, figure, text);
}

/* What memcached does not tell. */
static void
put_more(const struct put *put, const struct conn_shown *shown)
{
    uint64_t age_s = put->now_ns > shown->since_ns
        ? (put->now_ns - shown->since_ns) / NS_PER_S
        : 0;
    put_u64(put, shown->fd, "age", age_s);
    put_u64(put, shown->fd, "bytes_in", shown->bytes_in);
    put_u64(put, shown->fd, "bytes_out", shown->bytes_out);
    put_text(put, shown->fd, "last_cmd",
        shown->verb < LATENCY_VERB_COUNT
            ? latency_verb_name((enum latency_verb)shown->verb)
            : "none");
}

static void
put_conn(void *context, const struct conn_shown *shown)
{
    const struct put *put = context;
    char user[ADMIN__USER_BYTES];
    char idle[NUM_U64_DIGITS_MAX + 1];
    uint64_t idle_s = put->now_ns > shown->last_command_ns
        ? (put->now_ns - shown->last_command_ns) / NS_PER_S
        : 0;
    put_text(put, shown->fd, "addr", shown->addr);
    if (shown->state != CONN_STATE_LISTENING) {
        put_text(put, shown->fd, "listen_addr", shown->listen_addr);
    }
    if (shown->pass != 0 && admin__user(put->admin, shown->pass, user)) {
        put_text(put, shown->fd, "user", user);
    }
    if (shown->state != CONN_STATE_LISTENING) {
        put_text(put, shown->fd, "tls", shown->is_tls ? "yes" : "no");
    }
    put_text(put, shown->fd, "state", conn_state_name(shown->state));
    idle[num_format_u64(idle_s, idle)] = '\0';
    put_text(put, shown->fd, "secs_since_last_cmd", idle);
    if (shown->state != CONN_STATE_LISTENING) {
        put_more(put, shown);
    }
}

/* The sockets stay what they were until the listener stops; one that has been
 * closed by then has no address. */
static void
put_listening(const struct server_admin *admin, struct put *put)
{
    const struct listener *listener = admin->listener;
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        struct conn_shown shown = {.fd = listener->socket[i].fd,
            .state = CONN_STATE_LISTENING,
            .last_command_ns = admin->started_s * NS_PER_S};
        conn_list_own_addr(shown.fd, shown.addr);
        put_conn(put, &shown);
    }
}

void
admin__conns(struct server_admin *admin, struct reply_stats *out)
{
    struct put put = {admin, out, clock_monotonic_ns()};
    put_listening(admin, &put);
    for (unsigned i = 0; i < admin->n_workers; i++) {
        conn_list_each(&admin->workers[i]->conn_list, put_conn, &put);
    }
    reply_stats_end(out);
}
