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

#include "bench/fail.h"
#include "bench/number.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/num.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum {
    READ_BYTES = 64 * 1024,
    OUT_BYTES_MAX = 16 << 20, /* of the replies to one read */
    KEYS_MAX = 10000,
    FEW_KEYS = 30, /* up to so many, replies are of several lengths */
    VARIANTS = 10,
    BACKLOG = 1024,
    EXIT_USAGE = 2
};

struct settings {
    uint64_t port, keys;
    const char *key;
    double digits;
    bool is_resp;
};

/* Replies in turn, so that numbers have the right length on average. */
struct replies {
    struct buf bytes[VARIANTS];
    unsigned n, next;
};

struct floor {
    struct settings settings;
    struct replies replies;
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

static void
add_number(struct buf *out, size_t digits)
{
    for (size_t i = 0; i < digits; i++) {
        buf_add(out, &"1234567890"[i % 10], 1);
    }
}

/* Number i of all replies: digits so that the first n numbers together have
 * n times the mean, rounded down. */
static size_t
digits_of(const struct settings *settings, uint64_t i)
{
    uint64_t before = (uint64_t)((double)i * settings->digits);
    return (uint64_t)((double)(i + 1) * settings->digits) - before;
}

static void
add_value(struct buf *out, const struct settings *settings, size_t digits)
{
    if (settings->is_resp) {
        buf_add_text(out, "$");
    } else {
        buf_addf(out, "VALUE %s 0 ", settings->key);
    }
    buf_add_u64(out, digits);
    buf_add_text(out, "\r\n");
    add_number(out, digits);
    buf_add_text(out, "\r\n");
}

static void
make_replies(struct replies *replies, const struct settings *settings)
{
    uint64_t n = settings->keys;
    replies->n = n <= FEW_KEYS ? VARIANTS : 1;
    for (uint64_t i = 0; i < replies->n; i++) {
        struct buf *out = &replies->bytes[i];
        if (n == 0) {
            buf_add_text(out, settings->is_resp ? ":" : "");
            add_number(out, digits_of(settings, i));
            buf_add_text(out, "\r\n");
        } else if (n > 1 && settings->is_resp) {
            buf_addf(out, "*%u\r\n", (unsigned)n);
        }
        for (uint64_t k = 0; k < n; k++) {
            add_value(out, settings, digits_of(settings, i * n + k));
        }
        buf_add_text(out, n > 0 && !settings->is_resp ? "END\r\n" : "");
        if (out->failed) {
            fail("out of memory for --keys");
        }
    }
}

static void
add_reply(struct floor *floor)
{
    struct replies *replies = &floor->replies;
    const struct buf *reply = &replies->bytes[replies->next];
    replies->next = replies->next + 1 < replies->n ? replies->next + 1 : 0;
    buf_add(&floor->out, reply->data, reply->len);
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
        if (floor->settings.is_resp ? ends_command(client, bytes,
                                          (size_t)(next - bytes), line != NULL)
                                    : line != NULL) {
            add_reply(floor);
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

static void
help(void)
{
    printf(
        "Usage: floor [OPTION]...\n"
        "Answers every command with the same reply, as cheaply as a server on\n"
        "libuv can: what is compared with it does at least this.\n\n"
        "Options [default]:\n"
        "  --port=N               TCP port on 127.0.0.1; 0: a free one, which\n"
        "                         is written to stdout [11211]\n"
        "  --protocol=text|resp   what commands and replies are [text]\n"
        "  --keys=N               numbers of a reply; 0: a reply to incr [1]\n"
        "  --key=TEXT             key of each, in text "
        "[1677721600000000.cntcm]\n"
        "  --digits=D             mean digits of a number, 1 to 20 [1]\n"
        "  --help                 this text\n");
}

static double
digits_within(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 1.0) ||
        value > NUM_U64_DIGITS_MAX) {
        fail("--digits takes 1 to %d", NUM_U64_DIGITS_MAX);
    }
    return value;
}

static void
parse(struct settings *settings, int argc, char **argv)
{
    static const struct option option[] = {
        {"port", required_argument, NULL, 'p'},
        {"protocol", required_argument, NULL, 'P'},
        {"keys", required_argument, NULL, 'k'},
        {"key", required_argument, NULL, 't'},
        {"digits", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    int letter;
    while ((letter = getopt_long(argc, argv, "", option, NULL)) != -1) {
        switch (letter) {
        case 'p':
            settings->port = number_within("port", optarg, 0, UINT16_MAX);
            break;
        case 'P':
            settings->is_resp = strcmp(optarg, "resp") == 0;
            if (!settings->is_resp && strcmp(optarg, "text") != 0) {
                fail("--protocol takes text or resp");
            }
            break;
        case 'k':
            settings->keys = number_within("keys", optarg, 0, KEYS_MAX);
            break;
        case 't':
            settings->key = optarg;
            break;
        case 'd':
            settings->digits = digits_within(optarg);
            break;
        case 'h':
            help();
            exit(EXIT_SUCCESS);
        default:
            exit(EXIT_USAGE);
        }
    }
    if (optind != argc) {
        fail("%s is no option; see --help", argv[optind]);
    }
}

int
main(int argc, char **argv)
{
    static struct floor floor = {.settings = {.port = 11211,
                                     .keys = 1,
                                     .key = "1677721600000000.cntcm",
                                     .digits = 1}};
    uv_loop_t loop;
    uv_tcp_t listener;
    parse(&floor.settings, argc, argv);
    make_replies(&floor.replies, &floor.settings);
    check(uv_loop_init(&loop), "loop");
    loop.data = &floor;
    listen_on(&loop, &listener, floor.settings.port);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
