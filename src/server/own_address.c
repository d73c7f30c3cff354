/* SPDX-License-Identifier: BSD-3-Clause */
/* What a bound socket's address says of where it is reached. */
#include "server/own_address.h"

#include "net/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static unsigned
port_of(const struct sockaddr_storage *bound)
{
    const struct sockaddr_in *in = (const void *)bound;
    const struct sockaddr_in6 *in6 = (const void *)bound;
    return ntohs(bound->ss_family == AF_INET ? in->sin_port : in6->sin6_port);
}

/* True where a socket of that family is bound to all addresses of it. */
static bool
is_any(const struct sockaddr_storage *bound)
{
    const struct sockaddr_in *in = (const void *)bound;
    const struct sockaddr_in6 *in6 = (const void *)bound;
    return bound->ss_family == AF_INET
        ? in->sin_addr.s_addr == INADDR_ANY
        : IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

/* True where HOST, of the port that the socket is bound to, comes to it: its
 * address, or, of one that is bound to all, or to that, the loopback. Other
 * names nobody can look up here. */
static bool
is_own_host(const struct sockaddr_storage *bound, const char *host)
{
    const struct sockaddr_in *in = (const void *)bound;
    const struct sockaddr_in6 *in6 = (const void *)bound;
    struct in_addr v4;
    struct in6_addr v6;
    if (bound->ss_family == AF_INET) {
        uint32_t own = ntohl(in->sin_addr.s_addr);
        return (inet_pton(AF_INET, host, &v4) == 1 &&
                   (v4.s_addr == in->sin_addr.s_addr ||
                       (is_any(bound) &&
                           ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT ==
                               IN_LOOPBACKNET))) ||
            (strcmp(host, "localhost") == 0 &&
                (is_any(bound) || own == INADDR_LOOPBACK));
    }
    return inet_pton(AF_INET6, host, &v6) == 1 &&
        (memcmp(&v6, &in6->sin6_addr, sizeof v6) == 0 ||
            (is_any(bound) && IN6_IS_ADDR_LOOPBACK(&v6)));
}

bool
own_address_is(const int *fds, unsigned n, const char *host, const char *port)
{
    for (unsigned i = 0; i < n; i++) {
        struct sockaddr_storage bound;
        socklen_t len = sizeof bound;
        if (getsockname(fds[i], (struct sockaddr *)&bound, &len) == 0 &&
            port_of(&bound) == strtoul(port, NULL, 10) &&
            is_own_host(&bound, host)) {
            return true;
        }
    }
    return false;
}

bool
own_address_name(int fd, char *out, size_t size)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    char host[INET6_ADDRSTRLEN];
    const struct sockaddr_in *in = (const void *)&bound;
    const struct sockaddr_in6 *in6 = (const void *)&bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &len) != 0 ||
        (bound.ss_family != AF_INET && bound.ss_family != AF_INET6) ||
        is_any(&bound)) {
        return false;
    }
    if (bound.ss_family == AF_INET) {
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    } else {
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    }
    (void)snprintf(out, size, bound.ss_family == AF_INET ? "%s:%u" : "[%s]:%u",
        host, port_of(&bound));
    return true;
}

bool
own_address_choose(const int *fds, unsigned n, char *out, size_t size)
{
    bool is_found = false;
    for (unsigned i = 0; i < n; i++) {
        struct sockaddr_storage bound;
        socklen_t len = sizeof bound;
        bool is_near =
            getsockname(fds[i], (struct sockaddr *)&bound, &len) == 0 &&
            listener_is_loopback((struct sockaddr *)&bound);
        if (is_near && is_found) {
            continue;
        }
        if (own_address_name(fds[i], out, size)) {
            is_found = true;
            if (!is_near) {
                break;
            }
        }
    }
    return is_found;
}
