/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the sockets, and says what each asks of its clients. A socket that was
 * handed over must keep the rules of -l: TLS where there is TLS, and no
 * address that others reach without logins, certificates of clients or
 * --insecure. */
#include "server/doors.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1100 };

static enum tls_use
tls_use_of(const struct doors *doors, enum options_tls tls)
{
    static const enum tls_use uses[] = {
        [OPTIONS_TLS_DEFAULT] = TLS_USE_DEFAULT,
        [OPTIONS_TLS_NOT] = TLS_USE_NONE,
        [OPTIONS_TLS_ANYONE] = TLS_USE_ANYONE,
        [OPTIONS_TLS_KNOWN] = TLS_USE_KNOWN};
    return doors->has_tls ? uses[tls] : TLS_USE_NONE;
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
listen_on(const struct doors *doors, const struct options_address *address,
    bool optional)
{
    const struct options *options = doors->options;
    int port =
        address->port != OPTIONS_NO_PORT ? address->port : options->port;
    enum tls_use use = tls_use_of(doors, address->tls);
    struct listener_address tcp = {.host = address->host,
        .port = port < 0 ? 0 : (uint16_t)port,
        .loopback_only = is_unguarded(options, use),
        .optional = optional,
        .binding = (enum session_binding)address->protocol,
        .tls_use = use};
    size_t before = doors->ports->len;
    int err =
        listener_add_tcp(doors->listener, &tcp, doors->ports, doors->why);
    if (err == 0 && doors->ports->len > before) {
        log_line(doors->logger, LOG_INFO, "listening on %s, %.*s",
            address->host, (int)(doors->ports->len - before - 1),
            doors->ports->data + before);
    }
    return err;
}

static int
take_given(const struct doors *doors)
{
    unsigned n = doors->activation->n;
    enum tls_use use = tls_use_of(doors, OPTIONS_TLS_DEFAULT);
    for (unsigned i = 0; i < n; i++) {
        struct listener_address given = {.host = "a socket handed over",
            .loopback_only = is_unguarded(doors->options, use),
            .binding =
                (enum session_binding)doors->activation->socket[i].protocol,
            .tls_use = use};
        int err = listener_add_fd(doors->listener,
            doors->activation->socket[i].fd, &given, doors->ports, doors->why);
        if (err != 0) {
            return err;
        }
    }
    if (n > 0) {
        log_line(doors->logger, LOG_INFO,
            "listening on sockets that were handed over: %u", n);
    }
    return 0;
}

int
doors_open(const struct doors *doors)
{
    const struct options *options = doors->options;
    int err = take_given(doors);
    if (err == 0 && options->unix_socket.text[0] != '\0') {
        err = listener_add_unix(doors->listener, options->unix_socket.text,
            (mode_t)options->unix_mask, doors->why);
    }
    bool wants_tcp = options_want_tcp(options) &&
        (doors->activation->n == 0 || options->given[OPTIONS_ID_listen] ||
            options->given[OPTIONS_ID_port]);
    for (unsigned i = 0; err == 0 && wants_tcp && i < options->listen.n; i++) {
        err = listen_on(
            doors, &options->listen.address[i], options->listen.is_default);
    }
    if (err == 0 && doors->listener->n_sockets == 0) {
        if (doors->why->len == 0) {
            buf_add_text(
                doors->why, "no address to listen on: give -l, -p or -s");
        }
        err = ERR_SYSTEM;
    }
    return err;
}

int
doors_write_ports(const struct doors *doors)
{
    const char *path = getenv("MEMCACHED_PORT_FILENAME");
    char temporary[PATH_BYTES];
    if (path == NULL || !options_want_tcp(doors->options)) {
        return 0;
    }
    int n = snprintf(temporary, sizeof temporary, "%s.lck", path);
    FILE *file =
        n < 0 || (size_t)n >= sizeof temporary ? NULL : fopen(temporary, "we");
    bool written = file != NULL &&
        (doors->ports->len == 0 ||
            fwrite(doors->ports->data, doors->ports->len, 1, file) == 1);
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (!written || rename(temporary, path) != 0) {
        buf_addf(doors->why, "cannot write MEMCACHED_PORT_FILENAME %s: %s",
            path, strerror(errno));
        return ERR_SYSTEM;
    }
    return 0;
}
