/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the sockets, and says what each asks of its clients. A socket that was
 * handed over must keep the rules of -l: TLS where there is TLS, and no
 * address that others reach without logins, certificates of clients or
 * --insecure. */
#include "server/listeners.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1100 };

static enum tls_use
tls_use_of(const struct listeners *listeners, enum options_tls tls)
{
    static const enum tls_use uses[] = {
        [OPTIONS_TLS_DEFAULT] = TLS_USE_DEFAULT,
        [OPTIONS_TLS_NOT] = TLS_USE_NONE,
        [OPTIONS_TLS_ANYONE] = TLS_USE_ANYONE,
        [OPTIONS_TLS_KNOWN] = TLS_USE_KNOWN};
    return listeners->has_tls ? uses[tls] : TLS_USE_NONE;
}

/* True where whoever reaches the socket could do everything, and nobody has
 * said that this is meant. A certificate that a client needs is a login. */
static bool
is_unguarded(const struct options *options, enum tls_use use)
{
    bool is_known = use == TLS_USE_KNOWN ||
        (use == TLS_USE_DEFAULT &&
            options->ssl_verify_mode >= TLS_VERIFY_REQUIRE);
    return !is_known && !options->insecure &&
        options->auth_file.text[0] == '\0';
}

/* One address of -l. */
static int
listen_on(const struct listeners *listeners,
    const struct options_address *address, bool optional)
{
    const struct options *options = listeners->options;
    int port =
        address->port != OPTIONS_NO_PORT ? address->port : options->port;
    enum tls_use use = tls_use_of(listeners, address->tls);
    struct listener_address tcp = {.host = address->host,
        .port = port < 0 ? 0 : (uint16_t)port,
        .loopback_only = is_unguarded(options, use),
        .optional = optional,
        .binding = (enum session_binding)address->protocol,
        .tls_use = use};
    size_t before = listeners->ports->len;
    int err = listener_add_tcp(
        listeners->listener, &tcp, listeners->ports, listeners->why);
    if (err == 0 && listeners->ports->len > before) {
        log_line(listeners->logger, LOG_INFO, "listening on %s, %.*s",
            address->host, (int)(listeners->ports->len - before - 1),
            listeners->ports->data + before);
    }
    return err;
}

static int
take_given(const struct listeners *listeners)
{
    unsigned n = listeners->activation->n;
    enum tls_use use = tls_use_of(listeners, OPTIONS_TLS_DEFAULT);
    for (unsigned i = 0; i < n; i++) {
        struct listener_address given = {.host = "a socket handed over",
            .loopback_only = is_unguarded(listeners->options, use),
            .binding = (enum session_binding)listeners->activation->socket[i]
                           .protocol,
            .tls_use = use};
        int err = listener_add_fd(listeners->listener,
            listeners->activation->socket[i].fd, &given, listeners->ports,
            listeners->why);
        if (err != 0) {
            return err;
        }
    }
    if (n > 0) {
        log_line(listeners->logger, LOG_INFO,
            "listening on sockets that were handed over: %u", n);
    }
    return 0;
}

int
listeners_open(const struct listeners *listeners)
{
    const struct options *options = listeners->options;
    int err = take_given(listeners);
    if (err == 0 && options->unix_socket.text[0] != '\0') {
        err = listener_add_unix(listeners->listener, options->unix_socket.text,
            (mode_t)options->unix_mask, listeners->why);
    }
    bool wants_tcp = options_want_tcp(options) &&
        (listeners->activation->n == 0 || options->given[OPTIONS_ID_listen] ||
            options->given[OPTIONS_ID_port]);
    for (unsigned i = 0; err == 0 && wants_tcp && i < options->listen.n; i++) {
        err = listen_on(listeners, &options->listen.address[i],
            options->listen.is_default);
    }
    if (err == 0 && listeners->listener->n_sockets == 0) {
        if (listeners->why->len == 0) {
            buf_add_text(
                listeners->why, "no address to listen on: give -l, -p or -s");
        }
        err = ERR_SYSTEM;
    }
    return err;
}

int
listeners_write_ports(const struct listeners *listeners)
{
    const char *path = getenv("MEMCACHED_PORT_FILENAME");
    char temporary[PATH_BYTES];
    if (path == NULL || !options_want_tcp(listeners->options)) {
        return 0;
    }
    int n = snprintf(temporary, sizeof temporary, "%s.lck", path);
    FILE *file =
        n < 0 || (size_t)n >= sizeof temporary ? NULL : fopen(temporary, "we");
    bool written = file != NULL &&
        (listeners->ports->len == 0 ||
            fwrite(listeners->ports->data, listeners->ports->len, 1, file) ==
                1);
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (!written || rename(temporary, path) != 0) {
        buf_addf(listeners->why, "cannot write MEMCACHED_PORT_FILENAME %s: %s",
            path, strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}
