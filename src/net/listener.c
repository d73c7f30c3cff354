/* SPDX-License-Identifier: BSD-3-Clause */
/* Accepting connections: the main thread polls the listening sockets, accepts
 * what is there (a bounded number at a time) and hands each socket to the next
 * worker. Over the limit of connections a client is told so and closed, or
 * waits to be accepted. So it is when the process is out of file descriptors:
 * one is kept to tell who comes. Where clients wait, or not even that works,
 * accepting pauses and is tried again every LISTENER_PAUSE_MS, since the
 * waiting connection would wake the poll for ever.
 *
 *   NEW --> ACCEPTS --------> PAUSED      no room, or no descriptor
 *              ^ ^  room       |   ^
 *              | +-------------+   | still none
 *              |               v   |
 *              +------------- TRIES       the alarm; a client, or nobody
 *
 * From each of them to HELD, while there are no workers, and from there to
 * ACCEPTS; and to STOPPED. A pause that is said and counted lasts until
 * ACCEPTS, however often it was tried meanwhile. */
#include "net/listener.h"

#include "base/assert.h"
#include "base/err.h"
#include "net/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { WHERE_BYTES = 280 /* a name and its port */ };

enum {
    ACCEPTS_MAX = 64, /* of one socket, before others are looked at */
    NS_PER_US = 1000
};

static const char too_many[] = "ERROR Too many open connections\r\n";
static const char no_memory[] = "SERVER_ERROR out of memory\r\n";

static void on_pause_end(struct alarm *pause);

static void
move(struct listener *listener, enum listener_state to)
{
    listener->state = listener__step(listener->state, to);
}

static bool
is_waiting(const struct listener *listener)
{
    return listener->state == LISTENER_PAUSED ||
        listener->state == LISTENER_TRIES;
}

void
listener_init(struct listener *listener, const struct listener_config *config)
{
    *listener = (struct listener){
        .magic = LISTENER_MAGIC, .config = *config, .spare_fd = -1};
    alarm_init(&listener->pause, config->loop, clock_or_system(config->clock),
        on_pause_end);
}

static int
fail(struct buf *why, const char *what, const char *name, int error)
{
    buf_addf(why, "%s %s: %s", what, name, strerror(error));
    return ERR_SYSTEM;
}

/* Takes fd over; where there is no place for it, it is closed. */
static int
add_socket(
    struct listener *listener, const struct listening *socket, struct buf *why)
{
    if (listener->n_sockets == LISTENER_SOCKETS_MAX) {
        close(socket->fd);
        buf_addf(
            why, "more than %d addresses to listen on", LISTENER_SOCKETS_MAX);
        return ERR_SYSTEM;
    }
    listener->socket[listener->n_sockets++] = *socket;
    return 0;
}

/* The line of a bound address, as memcached writes it to the file of
 * MEMCACHED_PORT_FILENAME. */
static void
add_port(const struct sockaddr_storage *address, struct buf *out)
{
    bool is_v6 = address->ss_family == AF_INET6;
    buf_addf(out, "TCP %s: %u\n", is_v6 ? "INET6" : "INET",
        is_v6 ? ntohs(((const struct sockaddr_in6 *)address)->sin6_port)
              : ntohs(((const struct sockaddr_in *)address)->sin_port));
}

/* As listen, unless that is for later. */
static int
begin_listening(const struct listener *listener, int fd)
{
    return listener->config.listens_late
        ? 0
        : listen(fd, listener->config.backlog);
}

/* A bound and listening socket on one address, or -1 with errno. */
static int
bind_one(const struct listener *listener, const struct addrinfo *address,
    struct buf *ports)
{
    int one = 1;
    struct sockaddr_storage bound;
    socklen_t bound_len = sizeof bound;
    int fd = socket(
        address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (address->ai_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    }
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 ||
        begin_listening(listener, fd) != 0 ||
        getsockname(fd, (struct sockaddr *)&bound, &bound_len) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    add_port(&bound, ports);
    return fd;
}

bool
listener_is_loopback(const struct sockaddr *address)
{
    enum { NET_127 = 127 };
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == NET_127;
    }
    if (address->sa_family != AF_INET6) {
        return false;
    }
    const struct in6_addr *in6 =
        &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(in6) ||
        (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == NET_127);
}

static int
refuse_address(const struct listener_address *address, struct buf *why)
{
    buf_addf(why,
        "%s can be reached by others, who could read and change everything: "
        "give %s",
        address->host,
        address->advice != NULL
            ? address->advice
            : "-l 127.0.0.1, or -Y FILE for logins, or -Z with "
              "ssl_verify_mode=2 for clients that have certificates, or "
              "--insecure");
    return ERR_NOT_LOOPBACK;
}

/* Before any of them is bound. */
static int
check_loopback(const struct listener_address *address,
    const struct addrinfo *found, struct buf *why)
{
    for (; address->loopback_only && found != NULL; found = found->ai_next) {
        if (!listener_is_loopback(found->ai_addr)) {
            return refuse_address(address, why);
        }
    }
    return 0;
}

static bool
family_is_missing(int error)
{
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL ||
        error == EPROTONOSUPPORT;
}

int
listener_add_tcp(struct listener *listener,
    const struct listener_address *address, struct buf *ports, struct buf *why)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    char service[8];
    char where[WHERE_BYTES];
    const char *host = address->host;
    struct listening listening = {.listener = listener,
        .binding = address->binding,
        .tls_use = address->tls_use};
    snprintf(service, sizeof service, "%u", address->port);
    snprintf(where, sizeof where, "%.255s port %s", host, service);
    const char *node = strcmp(host, "*") == 0 ? NULL : host;
    int gai = getaddrinfo(node, service, &hints, &found);
    if (gai != 0) {
        buf_addf(why, "cannot resolve %s: %s", host, gai_strerror(gai));
        return address->optional ? 0 : ERR_SYSTEM;
    }
    int err = check_loopback(address, found, why);
    for (struct addrinfo *at = found; at != NULL && err == 0;
         at = at->ai_next) {
        listening.fd = bind_one(listener, at, ports);
        if (listening.fd >= 0) {
            err = add_socket(listener, &listening, why);
        } else if (!address->optional || !family_is_missing(errno)) {
            err = fail(why, "cannot listen on", where, errno);
        }
    }
    freeaddrinfo(found);
    return err;
}

/* True where nobody listens on the socket; else errno says what is there. */
static bool
is_stale(const struct sockaddr_un *address)
{
    /* non-blocking: a server whose backlog is full must not hold us up */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool connected =
        connect(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    int error = connected || errno == EAGAIN ? EADDRINUSE : errno;
    close(fd);
    errno = error;
    return error == ECONNREFUSED;
}

/* Removes a socket file that nobody listens on; true where the path is free
 * then. */
static bool
clear_path(const struct sockaddr_un *address)
{
    struct stat info;
    if (lstat(address->sun_path, &info) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISSOCK(info.st_mode)) {
        errno = EEXIST;
        return false;
    }
    return is_stale(address) && unlink(address->sun_path) == 0;
}

int
listener_add_unix(
    struct listener *listener, const char *path, mode_t mask, struct buf *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof address.sun_path) {
        return fail(why, "cannot listen on", path, ENAMETOOLONG);
    }
    memcpy(address.sun_path, path, len + 1);
    if (!clear_path(&address)) {
        return fail(why, "cannot listen on", path, errno);
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return fail(why, "cannot listen on", path, errno);
    }
    /* The file must never be open wider than asked for, not even briefly. */
    mode_t old = umask((mode_t) ~(mask & 0777));
    int bound = bind(fd, (struct sockaddr *)&address, sizeof address);
    int error = errno;
    umask(old);
    if (bound != 0 || begin_listening(listener, fd) != 0) {
        error = bound != 0 ? error : errno;
        close(fd);
        return fail(why, "cannot listen on", path, error);
    }
    memcpy(listener->unix_path, path, len + 1);
    return add_socket(listener,
        &(struct listening){.listener = listener, .fd = fd, .is_unix = true},
        why);
}

/* An option of a socket that is a number; -1 where fd is no socket. */
static int
option_of(int fd, int option)
{
    int value = 0;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 ? value : -1;
}

int
listener_add_fd(struct listener *listener, int fd,
    const struct listener_address *address, struct buf *ports, struct buf *why)
{
    struct sockaddr_storage bound;
    socklen_t bound_len = sizeof bound;
    struct listening listening = {
        .listener = listener, .fd = fd, .binding = address->binding};
    if (option_of(fd, SO_TYPE) != SOCK_STREAM ||
        option_of(fd, SO_ACCEPTCONN) != 1 ||
        getsockname(fd, (struct sockaddr *)&bound, &bound_len) != 0 ||
        (bound.ss_family != AF_INET && bound.ss_family != AF_INET6 &&
            bound.ss_family != AF_UNIX)) {
        buf_addf(why,
            "the descriptor %d that was handed over is no TCP or Unix socket "
            "that listens",
            fd);
        return ERR_SYSTEM;
    }
    if (bound.ss_family != AF_UNIX && address->loopback_only &&
        !listener_is_loopback((const struct sockaddr *)&bound)) {
        return refuse_address(address, why);
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return fail(why, "cannot use", "a socket handed over", errno);
    }
    listening.is_unix = bound.ss_family == AF_UNIX;
    if (!listening.is_unix) {
        listening.tls_use = address->tls_use;
        add_port(&bound, ports);
    }
    return add_socket(listener, &listening, why);
}

static bool
is_full(const struct listener *listener)
{
    /* relaxed: a count, and this is the only thread that adds */
    return atomic_load_explicit(&listener->config.gauge->current,
               memory_order_relaxed) >= listener->config.conn_limit;
}

/* Takes a place among the connections; false where all are taken. */
static bool
take_place(struct listener *listener)
{
    struct conn_gauge *gauge = listener->config.gauge;
    if (is_full(listener)) {
        atomic_fetch_add(&gauge->rejected, 1);
        return false;
    }
    atomic_fetch_add(&gauge->current, 1);
    atomic_fetch_add(&gauge->total, 1);
    return true;
}

/* The last words to a client that has just come. */
static void
turn_away(int fd, const char *line)
{
    /* a fresh socket's buffer takes one line; if not, so be it */
    ssize_t ignored = write(fd, line, strlen(line));
    (void)ignored;
    close(fd);
}

static void
hand_out(struct listener *listener, int fd, const struct listening *from,
    const struct watch_peer *peer)
{
    if (!take_place(listener)) {
        turn_away(fd, too_many);
        return;
    }
    unsigned n = listener->next_worker;
    listener->next_worker = (n + 1) % listener->config.n_workers;
    if (!worker__add_fd(listener->config.workers[n], fd, from->is_unix,
            from->binding, from->tls_use, peer)) {
        conn_gauge_leave(listener->config.gauge);
        turn_away(fd, from->tls_use == TLS_USE_NONE ? no_memory : "");
    }
}

/* Keeps a descriptor to accept with when there is no other. */
static void
keep_spare(struct listener *listener)
{
    if (listener->spare_fd < 0 && listener->n_sockets > 0) {
        listener->spare_fd = fcntl(listener->socket[0].fd, F_DUPFD_CLOEXEC, 0);
    }
}

/* Says why nobody can be accepted, once until somebody was. */
static void
say_short(struct listener *listener, int error)
{
    if (listener->is_short) {
        return;
    }
    listener->is_short = true;
    log_line(listener->config.logger, LOG_WARNING,
        "cannot accept connections: %s%s", strerror(error),
        error == EMFILE
            ? "; raise the limit of open files (ulimit -n, LimitNOFILE=) or "
              "lower -c"
            : error == ENFILE
            ? "; raise the system's limit of open files (fs.file-max)"
            : "");
}

/* Without a descriptor: the next client is accepted with the spare one, told
 * and closed. 0, or an errno value: EAGAIN where nobody waits, which the kernel
 * tells only who has a descriptor. */
static int
refuse_one(struct listener *listener, const struct listening *listening)
{
    if (listener->spare_fd < 0 || listener->config.waits) {
        return EMFILE;
    }
    close(listener->spare_fd);
    listener->spare_fd = -1;
    int fd = accept4(listening->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        atomic_fetch_add(&listener->config.gauge->rejected, 1);
        turn_away(fd, listening->tls_use == TLS_USE_NONE ? too_many : "");
    }
    keep_spare(listener);
    return error;
}

/* is_at_limit: the limit of connections is reached. A pause that has been said
 * and counted goes on. */
static void
pause_accepting(struct listener *listener, bool is_at_limit)
{
    struct conn_gauge *gauge = listener->config.gauge;
    bool goes_on = is_waiting(listener);
    move(listener, LISTENER_PAUSED);
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        uv_poll_stop(&listener->socket[i].poll);
    }
    alarm_set(&listener->pause, LISTENER_PAUSE_MS);
    if (goes_on) {
        return;
    }
    listener->paused_at_us = uv_hrtime() / NS_PER_US;
    atomic_store(&gauge->is_accepting, false);
    atomic_fetch_add(&gauge->pauses, 1);
    if (is_at_limit) {
        log_line(listener->config.logger, LOG_INFO,
            "all %u connections are taken: others wait",
            listener->config.conn_limit);
    }
}

/* Something was accepted, or nothing waits any more. */
static void
end_pause(struct listener *listener)
{
    struct conn_gauge *gauge = listener->config.gauge;
    uint64_t now_us = uv_hrtime() / NS_PER_US;
    if (is_waiting(listener)) {
        move(listener, LISTENER_ACCEPTS);
        atomic_fetch_add(&gauge->pause_us, now_us - listener->paused_at_us);
        atomic_store(&gauge->is_accepting, true);
    }
}

static struct watch_peer
peer_of(const struct sockaddr_storage *from)
{
    struct watch_peer peer = {.family = (uint8_t)from->ss_family};
    const struct sockaddr_in *in = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;
    if (from->ss_family == AF_INET) {
        peer.port = ntohs(in->sin_port);
        memcpy(peer.address, &in->sin_addr, sizeof in->sin_addr);
    } else if (from->ss_family == AF_INET6) {
        peer.port = ntohs(in6->sin6_port);
        memcpy(peer.address, &in6->sin6_addr, sizeof in6->sin6_addr);
    }
    return peer;
}

/* Takes one connection. False: no more for now. */
static bool
accept_one(struct listener *listener, const struct listening *listening)
{
    if (listener->config.waits && is_full(listener)) {
        pause_accepting(listener, true);
        return false;
    }
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t from_len = sizeof from;
    int fd = accept4(listening->fd, (struct sockaddr *)&from, &from_len,
        SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        end_pause(listener);
        listener->is_short = false;
        keep_spare(listener);
        struct watch_peer peer = peer_of(&from);
        hand_out(listener, fd, listening, &peer);
        return true;
    }
    int error = errno == EMFILE ? refuse_one(listener, listening) : errno;
    if (error == 0) {
        say_short(listener, EMFILE);
        return true;
    }
    switch (accept_end_of(error)) {
    case ACCEPT_NOBODY:
        end_pause(listener);
        return false;
    case ACCEPT_SHORT:
        say_short(listener, error);
        pause_accepting(listener, false);
        return false;
    default:
        return true;
    }
}

static void
on_connection(uv_poll_t *poll, int status, int events)
{
    struct listening *listening = poll->data;
    (void)status;
    (void)events;
    ASSERT(listening->listener->magic == LISTENER_MAGIC);
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        if (!accept_one(listening->listener, listening)) {
            return;
        }
    }
}

static void
on_pause_end(struct alarm *pause)
{
    struct listener *listener =
        (struct listener *)((char *)pause - offsetof(struct listener, pause));
    ASSERT(listener->magic == LISTENER_MAGIC);
    if (listener->state != LISTENER_PAUSED) {
        return; /* it has been held meanwhile */
    }
    if (listener->config.waits && is_full(listener)) {
        alarm_set(pause, LISTENER_PAUSE_MS);
        return;
    }
    if (listener->config.waits) {
        end_pause(listener); /* there is room, whether or not someone waits */
    } else {
        move(listener, LISTENER_TRIES);
    }
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        uv_poll_start(&listener->socket[i].poll, UV_READABLE, on_connection);
    }
}

int
listener_start(struct listener *listener)
{
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        struct listening *listening = &listener->socket[i];
        if (listener->config.listens_late &&
            listen(listening->fd, listener->config.backlog) != 0) {
            return ERR_SYSTEM;
        }
        if (!listening->is_polling &&
            uv_poll_init(
                listener->config.loop, &listening->poll, listening->fd) != 0) {
            return ERR_SYSTEM;
        }
        listening->is_polling = true;
        listening->poll.data = listening;
        if (uv_poll_start(&listening->poll, UV_READABLE, on_connection) != 0) {
            return ERR_SYSTEM;
        }
    }
    keep_spare(listener);
    move(listener, LISTENER_ACCEPTS);
    atomic_store(&listener->config.gauge->is_accepting, true);
    return 0;
}

void
listener_hold(struct listener *listener)
{
    struct conn_gauge *gauge = listener->config.gauge;
    uint64_t now_us = uv_hrtime() / NS_PER_US;
    if (is_waiting(listener)) {
        atomic_fetch_add(&gauge->pause_us, now_us - listener->paused_at_us);
    }
    move(listener, LISTENER_HELD);
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        uv_poll_stop(&listener->socket[i].poll);
    }
    atomic_store(&gauge->is_accepting, false);
}

void
listener_stop(struct listener *listener)
{
    ASSERT(listener->magic == LISTENER_MAGIC);
    move(listener, LISTENER_STOPPED);
    listener->magic = 0;
    for (unsigned i = 0; i < listener->n_sockets; i++) {
        struct listening *listening = &listener->socket[i];
        if (listening->is_polling) {
            uv_close((uv_handle_t *)&listening->poll, NULL);
        }
        close(listening->fd);
    }
    if (listener->spare_fd >= 0) {
        close(listener->spare_fd);
        listener->spare_fd = -1;
    }
    alarm_close(&listener->pause);
    if (listener->unix_path[0] != '\0') {
        unlink(listener->unix_path);
    }
}
