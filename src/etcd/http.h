/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ETCD_HTTP_H
#define ETCD_HTTP_H

#include "etcd/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls to etcd's JSON gateway by HTTP/1.1, with libcurl. A call goes to the
 * endpoint that answered last; one that fails makes the next one that. One
 * thread. */

enum { HTTP_MAGIC = 0x70747468, HTTP_ENDPOINTS_MAX = 8, HTTP_URL_MAX = 280 };

/* What is in memory: PEM. len 0: none. */
struct http_pem {
    const char *data;
    size_t len;
};

struct http_config {
    unsigned n_endpoints;                     /* 1..HTTP_ENDPOINTS_MAX */
    const char *endpoint[HTTP_ENDPOINTS_MAX]; /* http_is_endpoint */
    struct http_pem ca;                       /* whom to believe; none: the
                                               * system's list */
    struct http_pem cert, key;                /* our own */
    uint32_t timeout_ms;                      /* of a call that is no stream */
};

struct http;

/* True for http://HOST[:PORT] and https://..., without anything behind. Pure */
bool http_is_endpoint(const char *url);

/* What config names stays the caller's and is there until the end; ears hear
 * from http_turn only. 0, ERR_NO_MEMORY or ERR_SYSTEM. */
int http_create(struct http **out, const struct http_config *config,
    const struct transport_ears *ears);
void http_destroy(struct http **http);

struct transport *http_transport(struct http *http);

/* Waits until fd has one of events (poll), a call wants a turn, or that time
 * has passed. */
void http_wait(struct http *http, int fd, short events, int timeout_ms);

/* Goes on with all calls, without waiting. */
void http_turn(struct http *http);

#endif
