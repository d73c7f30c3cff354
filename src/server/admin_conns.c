/* SPDX-License-Identifier: BSD-3-Clause */
/* stats conns: the listening sockets, then each worker's connections. */
#include "server/admin_priv.h"

#include "proto/reply.h"

#include <inttypes.h>

#define NS_PER_S UINT64_C(1000000000)

struct put {
    const struct server_admin *admin;
    struct buf *out;
    uint64_t now_ns;
};

static void
put_conn(void *context, const struct conn_shown *shown)
{
    struct put *put = context;
    char user[ADMIN__USER_BYTES];
    uint64_t idle_s = put->now_ns > shown->last_command_ns
        ? (put->now_ns - shown->last_command_ns) / NS_PER_S
        : 0;
    buf_addf(put->out, "STAT %d:addr %s\r\n", shown->fd, shown->addr);
    if (shown->state != CONN_STATE_LISTENING) {
        buf_addf(put->out, "STAT %d:listen_addr %s\r\n", shown->fd,
            shown->listen_addr);
    }
    if (shown->pass != 0 && admin__user(put->admin, shown->pass, user)) {
        buf_addf(put->out, "STAT %d:user %s\r\n", shown->fd, user);
    }
    if (shown->state != CONN_STATE_LISTENING) {
        buf_addf(put->out, "STAT %d:tls %s\r\n", shown->fd,
            shown->is_tls ? "yes" : "no");
    }
    buf_addf(put->out,
        "STAT %d:state %s\r\nSTAT %d:secs_since_last_cmd %" PRIu64 "\r\n",
        shown->fd, conn_state_name(shown->state), shown->fd, idle_s);
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
admin__conns(struct server_admin *admin, struct buf *out)
{
    struct put put = {admin, out, clock_monotonic_ns()};
    put_listening(admin, &put);
    for (unsigned i = 0; i < admin->n_workers; i++) {
        conn_list_each(&admin->workers[i]->conn_list, put_conn, &put);
    }
    reply_line(out, "END");
}
