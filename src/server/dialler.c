/* SPDX-License-Identifier: BSD-3-Clause */
/* Each request has a thread, so that one to a machine that is gone does not
 * make others wait: a candidate asks several nodes just then. The name is
 * looked up, its addresses are tried in the order of the look-up until one
 * connects, and the socket, or why there is none, goes back. Each address has
 * an equal part of the time that is left, so that one that swallows everything
 * leaves time for the next.
 *
 * What it is to the system: server/child.c. */
#include "server/dialler.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/listener.h"
#include "repl/dial.h"
#include "server/child.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NS_PER_MS = 1000000,
    STACK_BYTES = 512 << 10 /* of a thread: a look-up takes some */
};

static void
say(struct dial_reply *reply, const char *what, const char *why)
{
    (void)snprintf(reply->why, sizeof reply->why, "%s%s", what, why);
}

/* Waits until a socket that connects has come to an end, at most so long. 0 or
 * an errno value. */
static int
wait_connected(int fd, uint64_t ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof(int);
    int result, number = 0;
    do {
        result = poll(&poll_fd, 1, (int)ms);
    } while (result < 0 && errno == EINTR);
    if (result == 0) {
        return ETIMEDOUT;
    }
    if (result < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) != 0) {
        return errno;
    }
    return number;
}

/* A socket to one address, or -1, and *number says why. */
static int
connect_to(const struct addrinfo *address, uint64_t ms, int *number)
{
    const int on = 1;
    int fd = socket(address->ai_family,
        address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
        address->ai_protocol);
    if (fd < 0) {
        *number = errno;
        return -1;
    }
    *number =
        connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (*number == EINPROGRESS || *number == EINTR) {
        *number = wait_connected(fd, ms);
    }
    if (*number == 0 &&
        (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
            setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0)) {
        *number = errno;
    }
    if (*number != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void
try_all(
    const struct addrinfo *list, bool loopback_only, struct dial_reply *reply)
{
    uint64_t end = clock_monotonic_ns() / NS_PER_MS + DIALLER_TIMEOUT_MS;
    uint64_t n = 0;
    int number = 0;
    for (const struct addrinfo *one = list; one != NULL; one = one->ai_next) {
        n++;
    }
    for (; list != NULL && reply->fd < 0; list = list->ai_next, n--) {
        uint64_t now = clock_monotonic_ns() / NS_PER_MS;
        uint64_t left = now < end ? end - now : 0;
        if (loopback_only && !listener_is_loopback(list->ai_addr)) {
            say(reply, "not on this machine: that wants TLS (-Z with -o ",
                "ssl_ca_cert), or --repl-insecure on both sides");
            continue;
        }
        reply->fd = connect_to(list, left / n, &number);
    }
    if (reply->fd < 0 && number != 0) {
        say(reply, "", strerror(number));
    } else if (reply->fd >= 0) {
        reply->why[0] = '\0';
    }
}

static void
answer(const struct dial_request *request, bool loopback_only,
    struct dial_reply *reply)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV};
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    struct addrinfo *list = NULL;
    reply->number = request->number;
    reply->fd = -1;
    if (!address_split(request->address, host, port)) {
        say(reply, "the address is not HOST:PORT", "");
        return;
    }
    int result = getaddrinfo(host, port, &hints, &list);
    if (result != 0) {
        say(reply, "no such host: ",
            result == EAI_SYSTEM ? strerror(errno) : gai_strerror(result));
        return;
    }
    try_all(list, loopback_only, reply);
    freeaddrinfo(list);
}

/* Waits for room in the pair. False: nobody is there any more. */
static bool
reply_to(int pair_fd, const struct dial_reply *reply)
{
    int number;
    while ((number = dial_send_reply(pair_fd, reply)) == EAGAIN) {
        struct pollfd poll_fd = {.fd = pair_fd, .events = POLLOUT};
        (void)poll(&poll_fd, 1, -1);
    }
    return number == 0;
}

/* One request on its way: a thread's, which frees it. */
struct errand {
    struct dial_request request;
    int pair_fd;
    bool loopback_only;
    atomic_uint *n; /* that have threads */
};

static void
run_errand(const struct errand *errand)
{
    struct dial_reply reply = {0};
    answer(&errand->request, errand->loopback_only, &reply);
    bool is_sent = reply_to(errand->pair_fd, &reply);
    if (reply.fd >= 0) {
        close(reply.fd);
    }
    if (!is_sent) {
        _exit(EXIT_SUCCESS);
    }
}

static void *
run_thread(void *context)
{
    struct errand *errand = context;
    run_errand(errand);
    atomic_fetch_sub(errand->n, 1);
    free(errand);
    return NULL;
}

/* Has a thread do it. False: there are too many, or none is to be had. */
static bool
send_out(const struct errand *errand)
{
    struct errand *copy = NULL;
    pthread_attr_t attr;
    pthread_t thread;
    if (atomic_load(errand->n) >= DIALLER_AT_ONCE ||
        pthread_attr_init(&attr) != 0) {
        return false;
    }
    bool is_out =
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0 &&
        pthread_attr_setstacksize(&attr, STACK_BYTES) == 0 &&
        (copy = malloc(sizeof *copy)) != NULL;
    if (is_out) {
        *copy = *errand;
        atomic_fetch_add(errand->n, 1);
        is_out = pthread_create(&thread, &attr, run_thread, copy) == 0;
        if (!is_out) {
            atomic_fetch_sub(errand->n, 1);
            free(copy);
        }
    }
    (void)pthread_attr_destroy(&attr);
    return is_out;
}

static _Noreturn void
answer_all(int pair_fd, bool loopback_only)
{
    atomic_uint n = 0;
    struct errand errand = {
        .pair_fd = pair_fd, .loopback_only = loopback_only, .n = &n};
    for (;;) {
        struct pollfd poll_fd = {.fd = pair_fd, .events = POLLIN};
        int number = dial_receive_request(pair_fd, &errand.request);
        if (number == EAGAIN) {
            (void)poll(&poll_fd, 1, -1);
            continue;
        }
        if (number != 0) {
            _exit(EXIT_SUCCESS); /* the server is gone, or not itself */
        }
        if (!send_out(&errand)) {
            run_errand(&errand);
        }
    }
}

struct life {
    bool loopback_only;
};

static void
live(const void *context, int pair_fd)
{
    const struct life *life = context;
    answer_all(pair_fd, life->loopback_only);
}

int
dialler_start(const char *user, bool holds_files, bool loopback_only,
    int *pair_fd, struct buf *message)
{
    const struct life life = {.loopback_only = loopback_only};
    const struct child_config config = {.name = "tallyd-connect",
        .what = "connects to other servers",
        .user = user,
        .holds_files = holds_files,
        .live_fn = live,
        .context = &life};
    return child_start(&config, pair_fd, message);
}
