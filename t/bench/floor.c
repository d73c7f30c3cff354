/* SPDX-License-Identifier: BSD-3-Clause */

/* The least that a server on libuv does for a client: it reads, counts the
 * commands that have come whole, and answers each with bytes made beforehand,
 * whoever asks for what. No command is looked at and no number looked up; what
 * it costs is what sockets cost, and a copy of the reply. It reads and writes
 * as tallyd does: the same read buffer, and one write for all commands of a
 * read. What a socket does not take waits, and nothing is read from that client
 * meanwhile.
 *
 * A command of text is a line. One of resp is 1 + 2 n lines, where n is how
 * many words its first line announces. One thread; loopback only. */

#include "base/buf.h"
#include "bench/fail.h"
#include "bench/floor_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    READ_BYTES = 64 * 1024,
    OUT_BYTES_MAX = 16 << 20, /* of the replies to one read */
    BACKLOG = 1024
};

struct floor {
    struct floor_form form;
    struct floor_replies replies;
    struct buf out; /* the replies to one read */
    char in[READ_BYTES];
};

struct client {
    union {
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_handle_t handle;
    } uv;
    uv_write_t write;
    struct buf rest; /* what the socket has not taken yet */

    /* resp: of the command that has begun */
    uint64_t words;
    uint64_t lines_left; /* 0: its first line is not over */
};

static void
check(int rv, const char *what)
{
    if (rv != 0) {
        fail("%s: %s", what, uv_strerror(rv));
    }
}

/* Bytes of resp up to and with the end of a line, or the last of a read; true
 * where a command ends with them. */
static bool
ends_command(struct client *client, const char *bytes, size_t len, bool is_end)
{
    if (client->lines_left == 0) {
        for (size_t i = 0; i < len; i++) {
            if (bytes[i] >= '0' && bytes[i] <= '9') {
                client->words =
                    client->words * 10 + (uint64_t)(bytes[i] - '0');
            }
        }
        if (is_end) {
            client->lines_left = 2 * client->words;
            client->words = 0;
        }
        return is_end && client->lines_left == 0;
    }
    return is_end && --client->lines_left == 0;
}

/* Makes the replies to what a read brought. */
static void
answer(
    struct floor *floor, struct client *client, const char *bytes, size_t len)
{
    const char *end = bytes + len;
    buf_clear(&floor->out);
    while (bytes < end) {
        const char *line = memchr(bytes, '\n', (size_t)(end - bytes));
        const char *next = line == NULL ? end : line + 1;
        if (floor->form.is_resp ? ends_command(client, bytes,
                                      (size_t)(next - bytes), line != NULL)
                                : line != NULL) {
            floor_replies_add(&floor->replies, &floor->out);
        }
        bytes = next;
    }
    if (floor->out.failed || floor->out.len > OUT_BYTES_MAX) {
        fail("a client asks for too much at once");
    }
}

static void
on_close(uv_handle_t *handle)
{
    struct client *client = handle->data;
    buf_fini(&client->rest);
    free(client);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void
on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct floor *floor = handle->loop->data;
    (void)size;
    *buf = uv_buf_init(floor->in, READ_BYTES);
}

static void
on_written(uv_write_t *write, int status)
{
    struct client *client = write->data;
    if (uv_is_closing(&client->uv.handle)) {
        return;
    }
    buf_clear(&client->rest);
    if (status != 0 ||
        uv_read_start(&client->uv.stream, on_alloc, on_read) != 0) {
        uv_close(&client->uv.handle, on_close);
    }
}

/* Sends the replies, or what the socket takes; the rest when it takes more. */
static void
send_out(struct floor *floor, struct client *client)
{
    uv_buf_t part = uv_buf_init(floor->out.data, (unsigned)floor->out.len);
    int sent = uv_try_write(&client->uv.stream, &part, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        uv_close(&client->uv.handle, on_close);
        return;
    }
    size_t done = sent < 0 ? 0 : (size_t)sent;
    if (done == floor->out.len) {
        return;
    }
    buf_add(&client->rest, floor->out.data + done, floor->out.len - done);
    if (client->rest.failed) {
        fail("out of memory for replies");
    }
    uv_read_stop(&client->uv.stream);
    part = uv_buf_init(client->rest.data, (unsigned)client->rest.len);
    check(uv_write(&client->write, &client->uv.stream, &part, 1, on_written),
        "write");
}

static void
on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct floor *floor = stream->loop->data;
    struct client *client = stream->data;
    if (n < 0) {
        uv_close(&client->uv.handle, on_close);
        return;
    }
    answer(floor, client, buf->base, (size_t)n);
    if (floor->out.len > 0) {
        send_out(floor, client);
    }
}

static void
on_connection(uv_stream_t *listener, int status)
{
    struct client *client = calloc(1, sizeof(*client));
    check(status, "listen");
    if (client == NULL) {
        fail("out of memory for connections");
    }
    check(uv_tcp_init(listener->loop, &client->uv.tcp), "socket");
    client->uv.handle.data = client;
    client->write.data = client;
    if (uv_accept(listener, &client->uv.stream) != 0 ||
        uv_tcp_nodelay(&client->uv.tcp, 1) != 0 ||
        uv_read_start(&client->uv.stream, on_alloc, on_read) != 0) {
        uv_close(&client->uv.handle, on_close);
    }
}

static void
listen_on(uv_loop_t *loop, uv_tcp_t *listener, uint64_t port)
{
    struct sockaddr_in address;
    int len = sizeof(address);
    check(uv_tcp_init(loop, listener), "socket");
    check(uv_ip4_addr("127.0.0.1", (int)port, &address), "address");
    check(uv_tcp_bind(listener, (const struct sockaddr *)&address, 0), "bind");
    check(
        uv_listen((uv_stream_t *)listener, BACKLOG, on_connection), "listen");
    check(uv_tcp_getsockname(listener, (struct sockaddr *)&address, &len),
        "address");
    if (port == 0) {
        printf("%u\n", (unsigned)ntohs(address.sin_port));
        fflush(stdout);
    }
}

int
main(int argc, char **argv)
{
    static struct floor floor;
    uv_loop_t loop;
    uv_tcp_t listener;
    floor_form_parse(&floor.form, argc, argv);
    if (floor.form.ring_waits) {
        fail("only floor_ring has an io_uring");
    }
    if (floor.form.reads != NULL) {
        fail("only floor_bare reads a file");
    }
    floor_replies_init(&floor.replies, &floor.form);
    check(uv_loop_init(&loop), "loop");
    loop.data = &floor;
    listen_on(&loop, &listener, floor.form.port);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
