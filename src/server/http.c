/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread with libmicrohttpd, which reads requests and writes answers;
 * http_answer.c says what these are.
 *
 * The thread accepts itself, and no more than CONNECTIONS_MAX at a time: the
 * others wait in the backlog. Where one waits there the connection that has
 * been without a request for longest is ended, once that is KEPT_MS. Each
 * request has REQUEST_MS from the one before, or the connection, until its
 * answer has been read: a client that sends a byte now and then, or does not
 * read, is cut off then, and makes room. Headers have HEADERS_BYTES at most.
 * What can be asked for takes a millisecond of this thread, and no lock that a
 * worker takes for a command. */
#include "server/http.h"

#include "base/address.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "server/http_answer.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 32,
    BACKLOG = 64,
    HEADERS_BYTES = 16 << 10,
    REQUEST_MS = 10000,
    KEPT_MS = 100,  /* more than a request takes that is there */
    LOOK_MS = 1000, /* between looks for who has had his time */
    NS_PER_MS = 1000000,
    SOCKETS_MAX = 8,
    LOOP_MAGIC = 0x68747470
};

#define NEVER UINT64_MAX

/* A connection. fd < 0: free. */
struct client {
    int fd;
    uint64_t deadline_ns; /* clock_monotonic_ns; NEVER: it has been cut off */
};

struct http_loop {
    uint32_t magic; /* LOOP_MAGIC */
    struct server_admin *admin;
    struct MHD_Daemon *daemon;
    pthread_t thread;
    int stop_fd; /* an eventfd */
    bool is_public;
    unsigned n_sockets;
    int socket[SOCKETS_MAX]; /* the listener's */
    /* the thread's */
    unsigned n_clients;
    struct client client[CONNECTIONS_MAX];
};

/* ---- answers ---- */

static void
add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

static enum MHD_Result
queue(struct MHD_Connection *connection, struct http_answer *answer)
{
    struct MHD_Response *response = answer->page != NULL
        ? MHD_create_response_from_buffer(answer->page_len,
              (void *)(uintptr_t)answer->page, MHD_RESPMEM_PERSISTENT)
        : MHD_create_response_from_buffer(
              answer->body.len, answer->body.data, MHD_RESPMEM_MUST_COPY);
    if (response == NULL) {
        return MHD_NO;
    }
    add_header(response, "Content-Type", answer->type);
    add_header(response, "Cache-Control", "no-store");
    add_header(response, "X-Content-Type-Options", "nosniff");
    add_header(response, "Referrer-Policy", "no-referrer");
    add_header(response, "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'");
    if (answer->allows) {
        add_header(response, "Allow", "GET, HEAD");
    }
    enum MHD_Result result =
        MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return result;
}

static const char *
header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Called when the headers are there, and again for each piece of a body, which
 * is thrown away, and at its end. */
static enum MHD_Result
on_request(void *context, struct MHD_Connection *connection, const char *path,
    const char *method, const char *version, const char *body,
    size_t *body_len, void **is_known)
{
    struct http_loop *loop = context;
    struct http_answer answer = {.status = 0};
    const struct http_request request = {.method = method,
        .path = path,
        .host = header(connection, "Host"),
        .accept = header(connection, "Accept"),
        .is_public = loop->is_public};
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    (void)version;
    (void)body;
    ASSERT(loop->magic == LOOP_MAGIC);
    if (*is_known == NULL && reads) {
        *is_known = loop;
        return MHD_YES;
    }
    if (*body_len > 0) {
        *body_len = 0;
        return MHD_YES;
    }
    http_answer(loop->admin, &request, &answer);
    enum MHD_Result result = queue(connection, &answer);
    buf_fini(&answer.body);
    return result;
}

/* Paths are taken as they were sent: none that is there has a % in it. */
static size_t
keep_escapes(void *context, struct MHD_Connection *connection, char *text)
{
    (void)context;
    (void)connection;
    return strlen(text);
}

/* ---- connections ---- */

static uint64_t
deadline_ns(void)
{
    return clock_monotonic_ns() + (uint64_t)REQUEST_MS * NS_PER_MS;
}

static void
on_connection(void *context, struct MHD_Connection *connection,
    void **socket_context, enum MHD_ConnectionNotificationCode what)
{
    struct http_loop *loop = context;
    struct client *client = *socket_context;
    ASSERT(loop->magic == LOOP_MAGIC);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        ASSERT(client != NULL && client->fd >= 0 && loop->n_clients > 0);
        client->fd = -1;
        loop->n_clients--;
        return;
    }
    ASSERT(loop->n_clients < CONNECTIONS_MAX);
    for (client = loop->client; client->fd >= 0; client++) {
    }
    client->fd =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
            ->connect_fd;
    client->deadline_ns = deadline_ns();
    loop->n_clients++;
    *socket_context = client;
}

/* The next request has its own time. */
static void
on_completed(void *context, struct MHD_Connection *connection, void **is_known,
    enum MHD_RequestTerminationCode why)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct client *client = info->socket_context;
    (void)context;
    (void)why;
    *is_known = NULL;
    if (client != NULL && client->deadline_ns != NEVER) {
        client->deadline_ns = deadline_ns();
    }
}

/* libmicrohttpd hears of it. */
static void
end_client(struct client *client)
{
    client->deadline_ns = NEVER;
    (void)shutdown(client->fd, SHUT_RDWR);
}

/* Ends the connections whose time is over. */
static void
cut_off(struct http_loop *loop)
{
    uint64_t now_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct client *client = &loop->client[i];
        if (client->fd >= 0 && client->deadline_ns <= now_ns) {
            end_client(client);
        }
    }
}

/* How long until a connection may be ended for another one: 0 now, with *out
 * the one; UINT64_MAX where one is on its way out, and there will be room. */
static uint64_t
until_room_ms(struct http_loop *loop, struct client **out)
{
    struct client *longest = NULL;
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        struct client *client = &loop->client[i];
        if (client->fd >= 0 && client->deadline_ns == NEVER) {
            return UINT64_MAX;
        }
        if (client->fd >= 0 &&
            (longest == NULL || client->deadline_ns < longest->deadline_ns)) {
            longest = client;
        }
    }
    ASSERT(longest != NULL);
    *out = longest;
    uint64_t may_go_ns =
        longest->deadline_ns - (uint64_t)(REQUEST_MS - KEPT_MS) * NS_PER_MS;
    uint64_t now_ns = clock_monotonic_ns();
    return now_ns >= may_go_ns ? 0 : (may_go_ns - now_ns) / NS_PER_MS + 1;
}

/* False where there is no room for one: it stays in the backlog. */
static bool
accept_one(struct http_loop *loop, int listening)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int fd = accept4(listening, (struct sockaddr *)&peer, &len,
        SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) { /* it closes fd where it cannot take it */
        (void)MHD_add_connection(
            loop->daemon, fd, (struct sockaddr *)&peer, len);
    }
    return fd >= 0 ||
        (errno != EMFILE && errno != ENFILE && errno != ENOBUFS &&
            errno != ENOMEM);
}

/* ---- the thread ---- */

/* How long to wait where nothing comes; most: at most. */
static int
wait_ms(struct http_loop *loop, uint64_t most)
{
    MHD_UNSIGNED_LONG_LONG ms;
    most = most < LOOK_MS ? most : LOOK_MS;
    return MHD_get_timeout(loop->daemon, &ms) == MHD_YES && ms < most
        ? (int)ms
        : (int)most;
}

/* Somebody waits at a socket. True: he is not to be looked at for a round. */
static bool
let_in(struct http_loop *loop, int listening, struct client *longest)
{
    if (loop->n_clients < CONNECTIONS_MAX) {
        return !accept_one(loop, listening);
    }
    if (longest != NULL && longest->deadline_ns != NEVER) {
        end_client(longest);
    }
    return false;
}

static void *
run(void *arg)
{
    struct http_loop *loop = arg;
    struct pollfd polled[2 + SOCKETS_MAX] = {
        {.fd = loop->stop_fd, .events = POLLIN},
        {.fd = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD)
                   ->epoll_fd,
            .events = POLLIN}};
    ASSERT(loop->magic == LOOP_MAGIC);
    for (unsigned i = 0; i < loop->n_sockets; i++) {
        polled[2 + i] =
            (struct pollfd){.fd = loop->socket[i], .events = POLLIN};
    }
    bool rests = false; /* without room nobody is let in for a round */
    for (;;) {
        struct client *longest = NULL;
        uint64_t ms = loop->n_clients < CONNECTIONS_MAX
            ? 0
            : until_room_ms(loop, &longest);
        unsigned n_looked = rests || ms > 0 ? 0 : loop->n_sockets;
        rests = false;
        (void)poll(polled, 2 + n_looked, wait_ms(loop, ms > 0 ? ms : LOOK_MS));
        if ((polled[0].revents & POLLIN) != 0) {
            return NULL;
        }
        for (unsigned i = 0; i < n_looked; i++) {
            if (polled[2 + i].revents != 0) {
                rests |= let_in(loop, loop->socket[i], longest);
            }
        }
        (void)MHD_run(loop->daemon);
        cut_off(loop);
    }
}

/* ---- life ---- */

void
http_init(struct http *http, const struct options *options,
    struct logger *logger, uv_loop_t *loop)
{
    const struct listener_config config = {
        .loop = loop, .logger = logger, .backlog = BACKLOG};
    *http = (struct http){.options = options, .logger = logger};
    if (options->http.text[0] != '\0') {
        listener_init(&http->listener, &config);
    }
}

int
http_open(struct http *http, struct buf *why)
{
    const char *given = http->options->http.text;
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    struct buf ports = {0};
    uint32_t number;
    size_t before = why->len;
    if (given[0] == '\0') {
        return 0;
    }
    buf_addf(why, "--http=%s: ", given);
    if (!address_split(given, host, port) ||
        !num_parse_u32(port, strlen(port), &number)) {
        buf_add_text(why, "wanted is ADDR:PORT, as 127.0.0.1:11290");
        return ERR_BAD_OPTION;
    }
    struct listener_address address = {.host = host,
        .port = (uint16_t)number,
        .loopback_only = !http->options->http_public,
        .advice = "--http=127.0.0.1:PORT, or --http-public"};
    int err = listener_add_tcp(&http->listener, &address, &ports, why);
    if (err == 0 && http->listener.n_sockets > SOCKETS_MAX) {
        buf_add_text(why, "that are too many addresses");
        err = ERR_BAD_OPTION;
    }
    if (err == 0) {
        why->len = before;
        log_line(http->logger, LOG_INFO, "HTTP on %s", given);
    }
    buf_fini(&ports);
    return err;
}

/* What must be there before the thread; what there is of it is freed by
 * free_loop. */
static int
prepare(struct http_loop *loop, const struct http *http,
    struct server_admin *admin)
{
    *loop = (struct http_loop){.magic = LOOP_MAGIC,
        .admin = admin,
        .is_public = http->options->http_public,
        .n_sockets = http->listener.n_sockets};
    for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
        loop->client[i].fd = -1;
    }
    for (unsigned i = 0; i < loop->n_sockets; i++) {
        loop->socket[i] = http->listener.socket[i].fd;
    }
    loop->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->stop_fd < 0) {
        return ERR_SYSTEM;
    }
    loop->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET,
        0, NULL, NULL, on_request, loop, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HEADERS_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        loop, MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, loop, MHD_OPTION_END);
    return loop->daemon == NULL ? ERR_NO_MEMORY : 0;
}

static void
free_loop(struct http_loop **loop)
{
    if ((*loop)->daemon != NULL) {
        MHD_stop_daemon((*loop)->daemon);
    }
    if ((*loop)->stop_fd >= 0) {
        close((*loop)->stop_fd);
    }
    (*loop)->magic = 0;
    free(*loop);
    *loop = NULL;
}

int
http_start(struct http *http, struct server_admin *admin, struct buf *why)
{
    if (http->options->http.text[0] == '\0') {
        return 0;
    }
    struct http_loop *loop = calloc(1, sizeof *loop);
    int err = loop == NULL ? ERR_NO_MEMORY : prepare(loop, http, admin);
    if (err == 0 && pthread_create(&loop->thread, NULL, run, loop) != 0) {
        err = ERR_NO_THREAD;
    }
    if (err != 0) {
        buf_addf(why, "--http: %s", err_text(err));
        if (loop != NULL) {
            free_loop(&loop);
        }
        return err;
    }
    http->thread = loop;
    return 0;
}

void
http_stop(struct http *http)
{
    const uint64_t one = 1;
    if (http->thread != NULL) {
        ssize_t n = write(http->thread->stop_fd, &one, sizeof one);
        ASSERT(n == (ssize_t)sizeof one);
        pthread_join(http->thread->thread, NULL);
        free_loop(&http->thread);
    }
    if (http->options->http.text[0] != '\0') {
        listener_stop(&http->listener);
    }
}
