/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_LISTENERS_H
#define SERVER_LISTENERS_H

#include "base/buf.h"
#include "base/log.h"
#include "net/listener.h"
#include "server/activation.h"
#include "server/options.h"

#include <stdbool.h>

/* The sockets that clients come through: those that were handed over, the Unix
 * socket, and the addresses of -l. The main thread, before the workers run. */
struct listeners {
    const struct options *options;
    const struct activation *activation;
    struct listener *listener;
    struct logger *logger;
    bool has_tls;      /* -Z: TCP has TLS, unless -l says otherwise */
    struct buf *ports; /* takes a line for each TCP socket */
    struct buf *why;   /* takes one line, without newline, where one fails */
};

/* Opens all of them. 0, or an ERR_; what has been opened is the listener's. */
int listeners_open(const struct listeners *listeners);

/* Writes *ports to the file of $MEMCACHED_PORT_FILENAME, if there is one: all,
 * or not at all. 0 or ERR_SYSTEM. */
int listeners_write_ports(const struct listeners *listeners);

#endif
