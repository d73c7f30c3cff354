/* SPDX-License-Identifier: BSD-3-Clause */

/* A connection of the load generator. The socket does not block once it is
 * connected. Both buffers are read from an offset, and are moved down only
 * when all is consumed or a reply is cut, so no byte is moved more than once a
 * read. Whatever goes wrong with a socket ends the program. */

#include "bench/conn.h"

#include "base/assert.h"
#include "bench/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
connect_to(const char *host, uint64_t port)
{
    char service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *address;
    snprintf(service, sizeof(service), "%" PRIu64, port);
    int rv = getaddrinfo(host, service, &hints, &address);
    if (rv != 0) {
        fail("%s: %s", host, gai_strerror(rv));
    }
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fail_errno("socket");
    }
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0) {
        fail("connect to %s port %s: %s", host, service, strerror(errno));
    }
    freeaddrinfo(address);
    return fd;
}

void
conn_open(struct conn *conn, const char *host, uint64_t port, uint64_t depth)
{
    int one = 1;
    *conn = (struct conn){.depth = (uint32_t)depth};
    conn->fd = connect_to(host, port);
    if (setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) !=
            0 ||
        fcntl(conn->fd, F_SETFL, O_NONBLOCK) != 0) {
        fail_errno("socket options");
    }
    conn->ring = calloc(depth, sizeof(conn->ring[0]));
    if (conn->ring == NULL) {
        fail("out of memory for --connections and --depth");
    }
}

void
conn_close(struct conn *conn)
{
    close(conn->fd);
    free(conn->ring);
    buf_fini(&conn->out);
    buf_fini(&conn->in);
    *conn = (struct conn){.fd = -1};
}

struct conn_op *
conn_push(struct conn *conn)
{
    ASSERT(conn->n < conn->depth);
    uint32_t at = conn->head + conn->n++;
    struct conn_op *op = &conn->ring[at < conn->depth ? at : at - conn->depth];
    *op = (struct conn_op){0};
    return op;
}

struct conn_op *
conn_oldest(struct conn *conn)
{
    return conn->n == 0 ? NULL : &conn->ring[conn->head];
}

void
conn_pop(struct conn *conn)
{
    ASSERT(conn->n > 0);
    conn->n--;
    conn->head = conn->head + 1 < conn->depth ? conn->head + 1 : 0;
}

void
conn_flush(struct conn *conn)
{
    if (conn->out.failed) {
        fail("out of memory for requests");
    }
    while (conn->out_at < conn->out.len) {
        ssize_t rv = send(conn->fd, conn->out.data + conn->out_at,
            conn->out.len - conn->out_at, MSG_NOSIGNAL);
        if (rv < 0 && errno == EINTR) {
            continue;
        }
        if (rv < 0 && errno == EAGAIN) {
            break;
        }
        if (rv < 0) {
            fail_errno("send");
        }
        conn->out_at += (size_t)rv;
    }
    conn->is_writing = conn->out_at < conn->out.len;
    if (!conn->is_writing) {
        buf_clear(&conn->out);
        conn->out_at = 0;
    }
}

void
conn_receive(struct conn *conn)
{
    buf_consume(&conn->in, conn->in_at);
    conn->in_at = 0;
    char *at = buf_reserve(&conn->in, CONN_READ_BYTES);
    if (at == NULL) {
        fail("out of memory for replies");
    }
    ssize_t rv = recv(conn->fd, at, CONN_READ_BYTES, 0);
    if (rv == 0) {
        fail("the server closed a connection");
    }
    if (rv < 0 && errno != EAGAIN && errno != EINTR) {
        fail_errno("recv");
    }
    if (rv > 0) {
        conn->in.len += (size_t)rv;
    }
}
