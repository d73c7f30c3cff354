/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "base/buf.h"
#include "base/log.h"
#include "net/alarm.h"
#include "net/listener_state.h"
#include "net/worker.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <uv.h>

/* Listening sockets, and the handing out of what they accept. Runs on the main
 * thread's loop. */

enum {
    LISTENER_SOCKETS_MAX = 64,
    LISTENER_PAUSE_MS = 10,
    LISTENER_MAGIC = 0x6c697374
};

struct listener;

struct listening {
    struct listener *listener;
    uv_poll_t poll;
    int fd;
    bool is_unix;
    enum session_binding binding; /* of what it accepts */
    enum tls_use tls_use;         /* the same */
    bool is_polling;              /* poll is an active handle of the loop */
};

struct listener_config {
    uv_loop_t *loop;
    struct logger *logger;
    struct conn_gauge *gauge;
    const struct clock *clock; /* of pauses; NULL: the system's */
    struct worker **workers;   /* n_workers; they outlive the listener, or
                              * are others after listener_hold */
    unsigned n_workers;
    unsigned conn_limit; /* memcached's -c */
    int backlog;         /* memcached's -b */
    bool listens_late;   /* connections are refused until listener_start */
    bool waits;          /* above conn_limit they wait in the backlog, instead
                          * of being told and closed: no_maxconns_fast */
};

struct listener {
    uint32_t magic; /* LISTENER_MAGIC, until it is stopped */
    enum listener_state state;
    struct listener_config config;
    unsigned n_sockets;
    unsigned next_worker;
    int spare_fd;          /* given up to accept who is told that there are no
                            * more; -1: there is none */
    bool is_short;         /* that has been said */
    struct alarm pause;    /* nothing can be accepted: tries again after it */
    uint64_t paused_at_us; /* of uv_hrtime; since when it does not accept */
    struct listening socket[LISTENER_SOCKETS_MAX];
    char unix_path[108];
};

/* Prepares an empty listener. */
void listener_init(
    struct listener *listener, const struct listener_config *config);

/* What to listen on. */
struct listener_address {
    const char *host;   /* a name, an address, or * for every address */
    uint16_t port;      /* 0: any free one, for each address */
    bool loopback_only; /* else: refused */
    bool optional;      /* skipped where this machine has not got its family */
    enum session_binding binding; /* SESSION_AUTO: as of other sockets */
    enum tls_use tls_use;         /* of its connections */
    const char *advice; /* what to give where loopback_only refuses; NULL: as
                         * of sockets for clients */
};

/* Binds every address that *address stands for. A line "TCP
 * INET: <port>" or "TCP INET6: <port>" a socket is appended to *ports. On
 * failure *why says what went wrong. 0, ERR_SYSTEM, or ERR_NOT_LOOPBACK. */
int listener_add_tcp(struct listener *listener,
    const struct listener_address *address, struct buf *ports,
    struct buf *why);

/* Binds a unix socket; a stale socket file there is replaced, anything else
 * is an error. mask: its permissions, as memcached's -a. */
int listener_add_unix(
    struct listener *listener, const char *path, mode_t mask, struct buf *why);

/* Takes over a socket that somebody else has bound and made listen: *listener
 * closes it, and leaves the file of a Unix socket alone. *address says what it
 * is to be, host its name for *why; port and optional mean nothing, and what is
 * said of TCP nothing for a Unix socket. *ports and *why: as above. ERR_SYSTEM
 * where it is no stream socket that listens, or ERR_NOT_LOOPBACK; then fd is as
 * it was. */
int listener_add_fd(struct listener *listener, int fd,
    const struct listener_address *address, struct buf *ports,
    struct buf *why);

/* Begins to accept; to be called once the workers run, and again after
 * listener_hold. */
int listener_start(struct listener *listener);

/* Accepts no more, after listener_start, until that is called again: the
 * sockets stay, and who connects waits in the backlog. */
void listener_hold(struct listener *listener);

/* True where nobody but this machine can reach the address. Pure. */
bool listener_is_loopback(const struct sockaddr *address);

/* Closes all sockets and removes the unix socket's file. No connection is
 * handed out after it; the loop must run once more to close the handles. */
void listener_stop(struct listener *listener);

#endif
