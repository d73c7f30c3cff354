/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines over a socket that never blocks, so that thousands of them may be sent
 * at once while their answers come: it is written to while it takes bytes, and
 * read whenever it has some. How long an answer may be, and how long it may
 * take, is up to who asks. */
#include "client/talk.h"

#include "base/assert.h"
#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    READ_BYTES = 1 << 16,
    NS_PER_MS = 1000000,
    MS_PER_S = 1000,
    PATH_BYTES = sizeof((struct sockaddr_un *)NULL)->sun_path
};

static bool
fail(struct talk *talk, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(talk->why, sizeof talk->why, format, list);
    va_end(list);
    talk_close(talk);
    return false;
}

/* As address_split, of a text that need not end with a NUL. */
static bool
take_apart(const char *text, size_t len, char host[ADDRESS_MAX + 1],
    char port[ADDRESS_PORT_MAX + 1])
{
    char address[ADDRESS_MAX + 1];
    if (len > ADDRESS_MAX || memchr(text, '\0', len) != NULL) {
        return false;
    }
    memcpy(address, text, len);
    address[len] = '\0';
    return address_split(address, host, port);
}

bool
talk_is_address(const char *text, size_t len)
{
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    return take_apart(text, len, host, port);
}

const char *
talk_take_servers(struct talk *talk, const char *text)
{
    talk->n_servers = 0;
    while (true) {
        size_t len = strcspn(text, ",");
        if (!talk_is_address(text, len)) {
            return "is HOST:PORT, or several of these with commas between "
                   "them";
        }
        if (talk->n_servers == TALK_SERVERS_MAX) {
            return "takes at most 16";
        }
        memcpy(talk->server[talk->n_servers].text, text, len);
        talk->server[talk->n_servers++].text[len] = '\0';
        if (text[len] == '\0') {
            return NULL;
        }
        text += len + 1;
    }
}

const char *
talk_take_server(struct talk *talk, const char *text)
{
    size_t len = strlen(text);
    bool is_path = text[0] == '/' && len < PATH_BYTES && len <= ADDRESS_MAX;
    if (!is_path && !talk_is_address(text, len)) {
        return "is HOST:PORT, or the path of a Unix socket that begins with "
               "/ and has at most 107 bytes";
    }
    talk->n_servers = 1;
    memcpy(talk->server[0].text, text, len + 1);
    return NULL;
}

/* The next connection goes to that address; what is none is passed over. */
static void
hint(struct talk *talk, const char *text, size_t len)
{
    if (talk_is_address(text, len)) {
        memcpy(talk->other.text, text, len);
        talk->other.text[len] = '\0';
    }
}

void
talk_close(struct talk *talk)
{
    secure_close(&talk->stream);
    if (talk->fd >= 0) {
        (void)close(talk->fd);
    }
    talk->fd = -1;
    talk->taken = 0;
    buf_clear(&talk->in);
}

void
talk_fini(struct talk *talk)
{
    talk_close(talk);
    buf_fini(&talk->in);
}

static uint64_t
now_ms(void)
{
    return clock_monotonic_ns() / NS_PER_MS;
}

/* From now on until what comes next must be there. */
static void
set_limit(struct talk *talk, uint32_t ms)
{
    talk->until_ms = ms == 0 ? 0 : now_ms() + ms;
}

/* The time left of what must be there, at most most. */
static uint32_t
time_left(const struct talk *talk, uint32_t most)
{
    if (talk->until_ms == 0) {
        return most;
    }
    uint64_t now = now_ms();
    uint64_t left = talk->until_ms > now ? talk->until_ms - now : 0;
    return left < most ? (uint32_t)left : most;
}

/* Waits for one of those events; false: timed out, or what errno says; ETIME
 * where it is the answer that takes too long. */
static bool
await(const struct talk *talk, short events, short *got)
{
    struct pollfd wait = {.fd = talk->fd, .events = events};
    uint32_t waited_ms = 0;
    int n = 0;
    while (n <= 0) {
        uint32_t ms = time_left(talk, talk->timeout_ms - waited_ms);
        if (ms == 0 && talk->until_ms != 0) {
            errno = ETIME;
            return false;
        }
        if (talk->tick_fn != NULL) {
            if (!talk->tick_fn(talk->context)) {
                errno = ECANCELED;
                return false;
            }
            ms = ms > TALK_TICK_MS ? TALK_TICK_MS : ms;
        }
        n = poll(&wait, 1, (int)ms);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        waited_ms += n == 0 ? ms : 0;
        if (n == 0 && waited_ms >= talk->timeout_ms) {
            errno = ETIMEDOUT;
            return false;
        }
    }
    *got = wait.revents;
    return true;
}

/* Connects to one of the addresses of a name; 0 or an errno value. */
static int
connect_to(struct talk *talk, const struct addrinfo *address)
{
    int err = 0, one = 1;
    short got = 0;
    socklen_t len = sizeof err;
    talk->fd = socket(address->ai_family,
        address->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (talk->fd < 0) {
        return errno;
    }
    if (connect(talk->fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS || !await(talk, POLLOUT, &got)) {
            return errno;
        }
        if (getsockopt(talk->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0) {
            return errno;
        }
    }
    if (address->ai_family != AF_UNIX) {
        (void)setsockopt(talk->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return err;
}

static int
connect_to_path(struct talk *talk, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const struct addrinfo address = {.ai_family = AF_UNIX,
        .ai_socktype = SOCK_STREAM,
        .ai_addr = (struct sockaddr *)&name,
        .ai_addrlen = sizeof name};
    ASSERT(strlen(path) < PATH_BYTES);
    memcpy(name.sun_path, path, strlen(path) + 1);
    return connect_to(talk, &address);
}

static bool
is_secure(const struct talk *talk)
{
    return talk->secure != NULL && talk->secure->is_wanted;
}

/* TLS over the connection, with all of its handshake. */
static bool
open_stream(struct talk *talk, const char *host)
{
    short got = 0;
    talk->stream = secure_open(talk->secure, host, talk->fd);
    if (talk->stream == NULL) {
        return fail(
            talk, "%s: no certificate can be for that name", talk->at.text);
    }
    if (talk->until_ms == 0) { /* it has an end, drop by drop as well */
        set_limit(talk, talk->timeout_ms);
    }
    while (true) {
        enum secure_step step = secure_shake(talk->stream);
        if (step == SECURE_DONE) {
            return true;
        }
        if (step == SECURE_FAILED) {
            return fail(
                talk, "%s: %s", talk->at.text, secure_why(talk->stream));
        }
        if (!await(talk, step == SECURE_READS ? POLLIN : POLLOUT, &got)) {
            return fail(talk, "%s: no TLS comes about: %s", talk->at.text,
                strerror(errno == ETIME ? ETIMEDOUT : errno));
        }
    }
}

/* To HOST:PORT. */
static bool
connect_to_name(struct talk *talk, const char *name)
{
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    struct addrinfo *found = NULL;
    if (!take_apart(name, strlen(name), host, port)) {
        return fail(talk, "%s is no HOST:PORT", name);
    }
    int err = getaddrinfo(host, port, &hints, &found);
    if (err != 0) {
        return fail(talk, "%s: %s", name, gai_strerror(err));
    }
    err = ENOENT;
    for (struct addrinfo *it = found; it != NULL && err != 0;
         it = it->ai_next) {
        talk_close(talk);
        err = connect_to(talk, it);
    }
    freeaddrinfo(found);
    if (err != 0) {
        return fail(talk, "%s: %s", name, strerror(err));
    }
    return !is_secure(talk) || open_stream(talk, host);
}

bool
talk_connect(struct talk *talk)
{
    ASSERT(talk->fd < 0 && talk->n_servers > 0);
    set_limit(talk, talk->answer_ms_max);
    if (talk->other.text[0] != '\0') {
        talk->at = talk->other;
        talk->other.text[0] = '\0';
    } else {
        talk->at = talk->server[talk->next];
        talk->next = (talk->next + 1) % talk->n_servers;
    }
    const char *name = talk->at.text;
    if (name[0] != '/') {
        return connect_to_name(talk, name);
    }
    if (is_secure(talk)) {
        return fail(talk, "%s: TLS is for HOST:PORT", name);
    }
    int err = connect_to_path(talk, name);
    return err == 0 || fail(talk, "%s: %s", name, strerror(err));
}

/* errno is of what has just failed. */
static bool
fail_io(struct talk *talk)
{
    return fail(talk, "%s: %s", talk->at.text,
        errno == EPROTO && talk->stream != NULL ? secure_why(talk->stream)
                                                : strerror(errno));
}

/* Sends what the socket takes. */
static bool
send_some(struct talk *talk, const char *text, size_t len, size_t *sent)
{
    while (*sent < len) {
        const char *at = text + *sent;
        size_t left = len - *sent;
        ssize_t n = talk->stream != NULL
            ? secure_send(talk->stream, at, left)
            : send(talk->fd, at, left, MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR || fail_io(talk);
        }
        *sent += (size_t)n;
    }
    return true;
}

static bool
read_some(struct talk *talk)
{
    buf_consume(&talk->in, talk->taken);
    talk->taken = 0;
    char *room = buf_reserve(&talk->in, READ_BYTES);
    if (room == NULL) {
        return fail(talk, "out of memory");
    }
    ssize_t n = talk->stream != NULL
        ? secure_recv(talk->stream, room, READ_BYTES)
        : recv(talk->fd, room, READ_BYTES, 0);
    if (n == 0) {
        return fail(talk, "%s ended the connection", talk->at.text);
    }
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR || fail_io(talk);
    }
    talk->in.len += (size_t)n;
    talk->got_bytes += (size_t)n;
    if (talk->answer_bytes_max != 0 &&
        talk->got_bytes > talk->answer_bytes_max) {
        return fail(talk, "%s: an answer of more than %zu bytes",
            talk->at.text, talk->answer_bytes_max);
    }
    return true;
}

/* A server that is no primary may name it. */
static void
take_hint(struct talk *talk, const char *line, size_t len)
{
    static const char begin[] = "SERVER_ERROR not primary ";
    size_t n = sizeof begin - 1;
    if (len > n && memcmp(line, begin, n) == 0) {
        hint(talk, line + n, len - n);
    }
}

/* Hands on the lines that have come. False: the connection has been ended. */
static bool
take_lines(
    struct talk *talk, talk_line_fn line_fn, void *context, bool *is_over)
{
    while (!*is_over && talk->taken < talk->in.len) {
        const char *line = talk->in.data + talk->taken;
        size_t left = talk->in.len - talk->taken;
        const char *end = memchr(line, '\n', left);
        if (end == NULL) {
            return left <= TALK_LINE_MAX ||
                fail(talk, "%s: a line too long", talk->at.text);
        }
        size_t len = (size_t)(end - line);
        talk->taken += len + 1;
        len -= len > 0 && line[len - 1] == '\r';
        enum talk_take take = line_fn(context, line, len);
        if (take == TALK_WRONG) {
            take_hint(talk, line, len);
            return fail(talk, "%s: %.*s", talk->at.text,
                len > TALK_WHY_MAX / 2 ? TALK_WHY_MAX / 2 : (int)len, line);
        }
        *is_over = take == TALK_END;
    }
    return true;
}

/* Waits for the socket, and hands on what has come. */
static bool
step(struct talk *talk, bool sends, talk_line_fn line_fn, void *context,
    bool *is_over)
{
    short got = 0;
    if (!await(talk, sends ? POLLIN | POLLOUT : POLLIN, &got)) {
        return errno == ETIME
            ? fail(talk, "%s: the answer has not ended after %" PRIu32 " s",
                  talk->at.text, talk->answer_ms_max / MS_PER_S)
            : fail(talk, "%s: %s", talk->at.text, strerror(errno));
    }
    return (got & ~POLLOUT) == 0 ||
        (read_some(talk) && take_lines(talk, line_fn, context, is_over));
}

static bool
fail_more(struct talk *talk)
{
    return fail(talk, "%s: more answers than asked for", talk->at.text);
}

bool
talk_ask(struct talk *talk, const char *text, size_t len, talk_line_fn line_fn,
    void *context)
{
    size_t sent = 0;
    bool is_over = false;
    ASSERT(talk->fd >= 0 && talk->taken == talk->in.len);
    set_limit(talk, talk->answer_ms_max);
    talk->got_bytes = 0;
    while (!is_over) {
        if (!send_some(talk, text, len, &sent) ||
            !step(talk, sent < len, line_fn, context, &is_over)) {
            return false;
        }
    }
    return (sent == len && talk->taken == talk->in.len) || fail_more(talk);
}

bool
talk_send(struct talk *talk, const char *text, size_t len,
    talk_line_fn line_fn, void *context)
{
    size_t sent = 0;
    bool is_over = false;
    ASSERT(talk->fd >= 0);
    set_limit(talk, talk->answer_ms_max);
    talk->got_bytes = 0;
    while (send_some(talk, text, len, &sent)) {
        if (sent == len) {
            return true;
        }
        if (!take_lines(talk, line_fn, context, &is_over) ||
            !step(talk, true, line_fn, context, &is_over)) {
            return false;
        }
        if (is_over) {
            return fail_more(talk);
        }
    }
    return false;
}

bool
talk_await(struct talk *talk, talk_line_fn line_fn, void *context)
{
    bool is_over = false;
    ASSERT(talk->fd >= 0);
    set_limit(talk, talk->answer_ms_max);
    talk->got_bytes = 0;
    if (!take_lines(talk, line_fn, context, &is_over)) {
        return false;
    }
    while (!is_over) {
        if (!step(talk, false, line_fn, context, &is_over)) {
            return false;
        }
    }
    return true;
}

void
talk_own_address(const struct talk *talk, char out[TALK_OWN_MAX + 1])
{
    struct sockaddr_storage own;
    socklen_t len = sizeof own;
    char host[INET6_ADDRSTRLEN], port[ADDRESS_PORT_MAX + 1];
    out[0] = '\0';
    if (talk->fd >= 0 &&
        getsockname(talk->fd, (struct sockaddr *)&own, &len) == 0 &&
        getnameinfo((const struct sockaddr *)&own, len, host, sizeof host,
            port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0) {
        (void)snprintf(out, TALK_OWN_MAX + 1,
            own.ss_family == AF_INET ? "tcp:%s:%s" : "tcp6:[%s]:%s", host,
            port);
    }
}

static enum talk_take
take_stored(void *context, const char *line, size_t len)
{
    static const char stored[] = "STORED";
    (void)context;
    return len == sizeof stored - 1 && memcmp(line, stored, len) == 0
        ? TALK_END
        : TALK_WRONG;
}

bool
talk_login(struct talk *talk, const char *login)
{
    char text[TALK_LINE_MAX];
    if (login == NULL || login[0] == '\0') {
        return true;
    }
    int len = snprintf(text, sizeof text, "set login 0 0 %zu\r\n%s\r\n",
        strlen(login), login);
    ASSERT(len > 0 && (size_t)len < sizeof text);
    return talk_ask(talk, text, (size_t)len, take_stored, NULL);
}
