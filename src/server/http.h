/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include "base/buf.h"
#include "base/log.h"
#include "net/listener.h"
#include "server/admin.h"
#include "server/options.h"

#include <pthread.h>
#include <stdbool.h>

/* What --http tells, on a thread of its own that is there from before the data
 * directory is loaded until the server has stopped. All is read, and nothing
 * can be changed. The main thread; each function does nothing where no HTTP is
 * wanted. A build without libmicrohttpd has server/http_none.c. */

struct http_loop; /* the thread's own */

struct http {
    const struct options *options;
    struct logger *logger;
    struct listener listener; /* its sockets, bound; the thread accepts */
    struct http_loop *thread; /* NULL: it does not run */
};

/* loop: the main thread's, where listeners are. */
void http_init(struct http *http, const struct options *options,
    struct logger *logger, uv_loop_t *loop);

/* Binds the sockets; perhaps as root. 0; ERR_BAD_OPTION, ERR_SYSTEM,
 * ERR_NOT_LOOPBACK, and *why says in a line what went wrong. */
int http_open(struct http *http, struct buf *why);

/* Starts the thread. admin outlives it. 0, ERR_NO_MEMORY, ERR_NO_THREAD,
 * ERR_SYSTEM, likewise. */
int http_start(struct http *http, struct server_admin *admin, struct buf *why);

/* Ends the thread and its connections, and closes the sockets; the loop must
 * run once more. */
void http_stop(struct http *http);

#endif
