/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections with TLS on workers, with threads and sockets: handshakes that
 * end well, badly, late, and in the middle of a step; and turns behind them. */
#include "lib/tls_peer.h"
#include "unit/time_help.h"

#include <poll.h>

static struct tls_files files;
static struct tls *tls;
static struct rig rig;
static SSL_CTX *context;

static void
setup(void)
{
    tls_files_init(&files, "worker");
    struct tls_config config = tls_config_of(&files);
    tls = tls_of(&config);
    rig_init(&rig);
    rig.config.tls = tls;
    ck_assert_int_eq(helpers_start(&rig.config.helpers), 0);
    context = tls_client_context(0, 0);
}

static void
teardown(void)
{
    rig_stop(&rig);
    rig_join(&rig);
    helpers_stop(&rig.config.helpers);
    rig_fini(&rig);
    SSL_CTX_free(context);
    tls_destroy(&tls);
    tls_files_fini(&files);
}

/* A socket to a worker that wants TLS of it; the client's end. */
static int
open_socket(int worker)
{
    int pair[2];
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    atomic_fetch_add(&rig.gauge.current, 1);
    ck_assert(worker__add_fd(rig.worker[worker], pair[1], true, SESSION_AUTO,
        TLS_USE_DEFAULT, NULL));
    return pair[0];
}

/* A client on a blocking socket; the handshake is to be done. */
static SSL *
client_on(int fd)
{
    SSL *ssl = SSL_new(context);
    ck_assert_ptr_nonnull(ssl);
    SSL_set_fd(ssl, fd);
    SSL_set_connect_state(ssl);
    return ssl;
}

static SSL *
client(int worker)
{
    SSL *ssl = client_on(open_socket(worker));
    ck_assert_int_eq(SSL_do_handshake(ssl), 1);
    return ssl;
}

static void
end(SSL *ssl)
{
    close(SSL_get_fd(ssl));
    SSL_free(ssl);
}

static void
said(SSL *ssl, const char *text)
{
    ck_assert_int_eq(
        SSL_write(ssl, text, (int)strlen(text)), (int)strlen(text));
}

static void
expects(SSL *ssl, const char *text)
{
    size_t len = strlen(text);
    char got[256];
    size_t at = 0;
    while (at < len) {
        size_t n;
        ck_assert_int_eq(SSL_read_ex(ssl, got + at, len - at, &n), 1);
        at += n;
    }
    ck_assert_mem_eq(got, text, len);
}

static uint64_t
metric_sum_of(enum metric metric)
{
    return metric_of(rig.worker[0], metric) + metric_of(rig.worker[1], metric);
}

/* The server closes; what it says before does not matter. */
static void
is_closed(int fd)
{
    char bytes[512];
    ssize_t n;
    do {
        n = read(fd, bytes, sizeof bytes);
    } while (n > 0);
    ck_assert(n == 0 || errno == ECONNRESET);
    close(fd);
}

/* The same, for want of time. */
static void
is_closed_in_time(int fd)
{
    pass_until(&rig, fd, POLLRDHUP);
    is_closed(fd);
}

/* What a client would send first. */
static size_t
hello(char *bytes, size_t size)
{
    struct tls_client in_memory;
    tls_client_init(&in_memory, context);
    ck_assert_int_lt(SSL_do_handshake(in_memory.ssl), 1);
    int n = BIO_read(in_memory.out, bytes, (int)size);
    ck_assert_int_gt(n, TLS_HELLO_HEAD);
    tls_client_fini(&in_memory);
    return (size_t)n;
}

START_TEST(test_talk)
{
    rig_start(&rig);
    SSL *ssl = client(0);
    said(ssl, "set a 0 0 1\r\n1\r\nget a\r\n");
    expects(ssl, "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
    said(ssl, "incr a 1\r\nquit\r\n");
    expects(ssl, "2\r\n");
    char byte;
    int result = SSL_read(ssl, &byte, 1);
    ck_assert_int_eq(SSL_get_error(ssl, result), SSL_ERROR_ZERO_RETURN);
    end(ssl);
    ck_assert_uint_eq(metric_sum_of(METRIC_ssl_handshake_errors), 0);
    ck_assert_uint_eq(metric_sum_of(METRIC_ssl_proto_errors), 0);
    uint64_t bytes_read = metric_sum_of(METRIC_bytes_read);
    ck_assert_uint_eq(bytes_read, 23 + 16); /* plain ones */
}
END_TEST

/* The socket's bytes come one by one, commands and all. */
START_TEST(test_one_byte_at_a_time)
{
    rig_start(&rig);
    int fd = open_socket(0);
    struct tls_client in_memory;
    tls_client_init(&in_memory, context);
    SSL *ssl = in_memory.ssl;
    SSL_do_handshake(ssl);
    bool has_asked = false;
    size_t heard = 0;
    while (heard < 5) {
        char bytes[2000];
        int n = BIO_read(in_memory.out, bytes, sizeof bytes);
        for (int i = 0; i < n; i++) {
            send_bytes(fd, bytes + i, 1);
        }
        if (n <= 0) {
            ssize_t got = read(fd, bytes, sizeof bytes);
            ck_assert_int_gt(got, 0);
            BIO_write(in_memory.in, bytes, (int)got);
        }
        if (SSL_do_handshake(ssl) == 1 && !has_asked) {
            said(ssl, "get a\r\n");
            has_asked = true;
        }
        size_t n_plain = 0;
        if (has_asked &&
            SSL_read_ex(ssl, bytes, sizeof bytes, &n_plain) == 1) {
            heard += n_plain;
        }
    }
    ck_assert_uint_eq(heard, 5);
    tls_client_fini(&in_memory);
    close(fd);
}
END_TEST

/* A value longer than the worker's buffer, in and out. */
START_TEST(test_large_value)
{
    enum { BYTES = SMALL_STORE_ITEM_BYTES - 200 };
    char head[64];
    char *value = malloc(BYTES);
    char *got = malloc(BYTES);
    memset(value, 'v', BYTES);
    rig_start(&rig);
    SSL *ssl = client(0);
    for (int i = 0; i < 3; i++) {
        snprintf(head, sizeof head, "set big 0 0 %d\r\n", BYTES);
        said(ssl, head);
        ck_assert_int_eq(SSL_write(ssl, value, BYTES), BYTES);
        said(ssl, "\r\nget big\r\n");
        snprintf(head, sizeof head, "STORED\r\nVALUE big 0 %d\r\n", BYTES);
        expects(ssl, head);
        size_t at = 0;
        while (at < BYTES) {
            size_t n;
            ck_assert_int_eq(SSL_read_ex(ssl, got + at, BYTES - at, &n), 1);
            at += n;
        }
        ck_assert_mem_eq(got, value, BYTES);
        expects(ssl, "\r\nEND\r\n");
    }
    end(ssl);
    free(value);
    free(got);
}
END_TEST

/* Replies that nobody reads stop the reading, and all of them come in the
 * end. */
START_TEST(test_slow_reader)
{
    enum { GETS = 20000 };
    rig_start(&rig);
    SSL *ssl = client(0);
    int fd = SSL_get_fd(ssl);
    said(ssl,
        "set a 0 0 100\r\n"
        "0123456789012345678901234567890123456789012345678901234567890"
        "123456789012345678901234567890123456789\r\n");
    expects(ssl, "STORED\r\n");
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    SSL_set_mode(ssl,
        SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    int asked = 0;
    int stalls = 0;
    while (asked < GETS && stalls < 3) { /* until the sockets are full */
        if (SSL_write(ssl, "get a\r\n", 7) == 7) {
            asked++;
            stalls = 0;
            continue;
        }
        struct pollfd poll_for = {.fd = fd, .events = POLLOUT};
        stalls += poll(&poll_for, 1, 100) == 0;
    }
    bool is_half = asked < GETS; /* SSL_write has to be given the same again */
    ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
    size_t left = 0;
    enum { REPLY = 14 + 100 + 2 + 5 }; /* VALUE a 0 100 */
    left = (size_t)asked * (REPLY + 1);
    char bytes[4096];
    while (left > 0) {
        size_t n;
        size_t want = left < sizeof bytes ? left : sizeof bytes;
        ck_assert_int_eq(SSL_read_ex(ssl, bytes, want, &n), 1);
        left -= n;
    }
    if (is_half) {
        ck_assert_int_eq(SSL_write(ssl, "get a\r\n", 7), 7);
        expects(ssl, "VALUE a 0 100\r\n");
    }
    end(ssl);
}
END_TEST

START_TEST(test_not_tls)
{
    static const char *const first[] = {"version\r\n",
        "GET / HTTP/1.1\r\n\r\n", "\x80\x0b\x00\x00\x00\x00\x00\x00\x00",
        "\x16\x03\x01\x40\x00\x01\x00\x7f\xff\xff\xff"};
    rig_start(&rig);
    for (size_t i = 0; i < COUNT_OF(first); i++) {
        int fd = open_socket((int)i % 2);
        send_bytes(fd, first[i], TLS_HELLO_HEAD);
        is_closed(fd);
    }
    ck_assert_uint_eq(
        metric_sum_of(METRIC_ssl_handshake_errors), COUNT_OF(first));
    int plain = connect_to(&rig, 0); /* and the other way round */
    char bytes[2000];
    send_bytes(plain, bytes, hello(bytes, sizeof bytes));
    expect_end(plain);
}
END_TEST

/* The rest of a handshake that is rubbish is answered with an alert. */
START_TEST(test_rubbish)
{
    char bytes[2000];
    rig_start(&rig);
    size_t len = hello(bytes, sizeof bytes);
    int fd = open_socket(0);
    memset(bytes + TLS_HELLO_HEAD + 40, 0xff, len - TLS_HELLO_HEAD - 40);
    send_bytes(fd, bytes, len);
    receive(fd, bytes, 1);
    ck_assert_int_eq(bytes[0], 0x15);
    is_closed(fd);
    ck_assert_uint_eq(metric_sum_of(METRIC_ssl_handshake_errors), 1);
    SSL *ssl = client(0); /* and after it */
    ck_assert_int_eq((int)write(SSL_get_fd(ssl), "rubbish", 7), 7);
    is_closed(dup(SSL_get_fd(ssl)));
    end(ssl);
    ck_assert_uint_eq(metric_sum_of(METRIC_ssl_proto_errors), 1);
}
END_TEST

/* Clients that go at each place of a handshake, while a step is under way
 * among others. */
START_TEST(test_gone)
{
    enum { TIMES = 200 };
    char bytes[2000];
    rig_start(&rig);
    size_t len = hello(bytes, sizeof bytes);
    for (size_t i = 0; i < TIMES; i++) {
        int fd = open_socket((int)(i % 2));
        send_bytes(fd, bytes, i % 4 == 0 ? i * len / TIMES : len);
        close(fd);
    }
    SSL *ssl = client(1);
    said(ssl, "get a\r\n");
    expects(ssl, "END\r\n");
    end(ssl);
}
END_TEST

/* All workers are stopped while handshakes are in all states. */
START_TEST(test_stop)
{
    enum { SOCKETS = 60 };
    int fd[SOCKETS];
    char bytes[2000];
    rig_start(&rig);
    size_t len = hello(bytes, sizeof bytes);
    for (size_t i = 0; i < SOCKETS; i++) {
        fd[i] = open_socket((int)(i % 2));
        send_bytes(fd[i], bytes, i % 3 == 0 ? len : i % 3 == 1 ? 5 : 0);
    }
    rig_stop(&rig);
    for (size_t i = 0; i < SOCKETS; i++) {
        is_closed(fd[i]);
    }
}
END_TEST

START_TEST(test_too_slow)
{
    char bytes[2000];
    rig.config.shake_timeout_ms = 1;
    rig_start(&rig);
    size_t len = hello(bytes, sizeof bytes);
    int silent = open_socket(0);
    int partly = open_socket(0);
    int half = open_socket(0);
    send_bytes(partly, bytes, 20);
    send_bytes(half, bytes, len);
    is_closed_in_time(silent);
    is_closed_in_time(partly);
    is_closed_in_time(half);
    ck_assert_uint_eq(metric_sum_of(METRIC_tls_slow_handshakes), 3);
}
END_TEST

/* More handshakes than there may be: the oldest goes, the newest gets in. */
START_TEST(test_crowd)
{
    enum { OVER = 10, SOCKETS = WORKER_SHAKES_MAX + OVER };
    static int fd[SOCKETS];
    rig_start(&rig);
    for (int i = 0; i < SOCKETS; i++) {
        fd[i] = open_socket(0);
        if (i == 0) {
            send_bytes(fd[i], "\x16\x03", 2);
        }
    }
    /* new ones are taken newest first where several come at once */
    int n_closed = 0;
    while (metric_of(rig.worker[0], METRIC_tls_crowded_out) < OVER) {
        SSL *ssl = client(1); /* the other worker goes on */
        end(ssl);
    }
    SSL *ssl = client(0);
    said(ssl, "get a\r\n");
    expects(ssl, "END\r\n");
    end(ssl);
    for (int i = 0; i < SOCKETS; i++) {
        struct pollfd poll_for = {.fd = fd[i], .events = POLLIN};
        n_closed += poll(&poll_for, 1, 0) == 1;
        close(fd[i]);
    }
    ck_assert_int_ge(n_closed, OVER);
    ck_assert_int_le(n_closed, OVER + 1);
}
END_TEST

/* The certificates are exchanged while handshakes run. */
START_TEST(test_reload_meanwhile)
{
    enum { TIMES = 60 };
    rig_start(&rig);
    SSL *old = client(0);
    for (int i = 0; i < TIMES; i++) {
        SSL *ssl = client_on(open_socket(i % 2));
        if (i % 10 == 0) {
            struct buf why = {0};
            ck_assert_int_eq(tls_reload(tls, &why), 0);
        }
        ck_assert_int_eq(SSL_do_handshake(ssl), 1);
        said(ssl, "get a\r\n");
        expects(ssl, "END\r\n");
        end(ssl);
    }
    said(old, "get a\r\n");
    expects(old, "END\r\n");
    end(old);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_talk, test_one_byte_at_a_time,
        test_large_value, test_slow_reader, test_not_tls, test_rubbish,
        test_gone, test_stop, test_too_slow, test_crowd,
        test_reload_meanwhile};
    TCase *tcase = tcase_create("tls_worker");
    Suite *suite = suite_create("tls_worker");
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, HELP_TIMEOUT_S);
    suite_add_tcase(suite, tcase);
    return run_suite(suite);
}
