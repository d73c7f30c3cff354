/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_OWN_ADDRESS_H
#define SERVER_OWN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Where this server's listening sockets are reached. */

/* True where HOST and PORT come to one of the sockets. */
bool own_address_is(
    const int *fds, unsigned n, const char *host, const char *port);

/* The address of a socket as HOST:PORT, where it is one that others could
 * connect to; false where it is bound to all addresses, or has no port. */
bool own_address_name(int fd, char *out, size_t size);

/* That of the first of them that has one, of the loopback only where no other
 * does. False: none has. */
bool own_address_choose(const int *fds, unsigned n, char *out, size_t size);

#endif
