/* SPDX-License-Identifier: BSD-3-Clause */
/* server/activation, and what the listener takes of descriptors that were
 * handed over. */
#include "server/activation.h"

#include "base/err.h"
#include "net/listener.h"
#include "server/options.h"
#include "unit/check_help.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Takes what the environment says; count, names: NULL for none. */
static int
take(long pid, const char *count, const char *names, struct activation *out)
{
    char text[32];
    struct buf message = {0};
    snprintf(text, sizeof text, "%ld", pid);
    ck_assert_int_eq(setenv("LISTEN_PID", text, 1), 0);
    if (count != NULL) {
        ck_assert_int_eq(setenv("LISTEN_FDS", count, 1), 0);
    }
    if (names != NULL) {
        ck_assert_int_eq(setenv("LISTEN_FDNAMES", names, 1), 0);
    }
    int err = activation_take(out, &message);
    ck_assert_int_eq(err != 0, message.len > 0);
    buf_fini(&message);
    ck_assert_ptr_null(getenv("LISTEN_PID"));
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert_ptr_null(getenv("LISTEN_FDNAMES"));
    return err;
}

START_TEST(test_environment)
{
    struct activation got;
    long pid = (long)getpid();
    ck_assert_int_eq(take(pid, "3", "a:binary", &got), 0);
    ck_assert_uint_eq(got.n, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(got.socket[i].fd, 3 + i);
        ck_assert_int_eq(got.socket[i].protocol,
            i == 1 ? OPTIONS_PROTOCOL_BINARY : OPTIONS_PROTOCOL_AUTO);
    }
    ck_assert_int_eq(take(pid, "2", "ascii:asciii:binary", &got), 0);
    ck_assert_uint_eq(got.n, 2);
    ck_assert_int_eq(got.socket[0].protocol, OPTIONS_PROTOCOL_ASCII);
    ck_assert_int_eq(got.socket[1].protocol, OPTIONS_PROTOCOL_AUTO);
    ck_assert_int_eq(take(pid, "64", NULL, &got), 0);
    ck_assert_uint_eq(got.n, ACTIVATION_SOCKETS_MAX);
    ck_assert_int_eq(take(pid, "0", "", &got), 0);
    ck_assert_uint_eq(got.n, 0);
}
END_TEST

START_TEST(test_not_ours)
{
    struct activation got;
    long pid = (long)getpid();
    ck_assert_int_eq(take(pid + 1, "3", NULL, &got), 0);
    ck_assert_uint_eq(got.n, 0);
    ck_assert_int_eq(take(pid, NULL, "a", &got), 0);
    ck_assert_uint_eq(got.n, 0);
}
END_TEST

START_TEST(test_no_number)
{
    static const char *const counts[] = {"", "x", "-1", "65", "3 ", "1e1"};
    struct activation got;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        ck_assert_int_eq(
            take((long)getpid(), counts[i], NULL, &got), ERR_BAD_OPTION);
        ck_assert_uint_eq(got.n, 0);
    }
}
END_TEST

/* A TCP socket with that address; listens: it does. */
static int
tcp(uint32_t host, bool listens)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(host)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert(!listens || listen(fd, 1) == 0);
    return fd;
}

START_TEST(test_listener)
{
    struct conn_gauge gauge = {0};
    struct logger logger = {0};
    struct listener listener;
    uv_loop_t loop;
    struct buf ports = {0}, why = {0};
    int plain[2];
    struct listener_address address = {.host = "x",
        .loopback_only = true,
        .binding = SESSION_BINARY,
        .tls_use = TLS_USE_KNOWN};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    listener_init(&listener,
        &(struct listener_config){
            .loop = &loop, .logger = &logger, .gauge = &gauge});
    ck_assert_int_eq(pipe(plain), 0);
    int bad[] = {plain[0], tcp(INADDR_LOOPBACK, false),
        socket(AF_INET, SOCK_DGRAM, 0), 1000};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        buf_clear(&why);
        ck_assert_int_eq(
            listener_add_fd(&listener, bad[i], &address, &ports, &why),
            ERR_SYSTEM);
        ck_assert_uint_gt(why.len, 0);
        ck_assert(i == 3 || close(bad[i]) == 0); /* still the caller's */
    }
    close(plain[1]);
    ck_assert_uint_eq(listener.n_sockets, 0);
    int fd = tcp(INADDR_ANY, true);
    buf_clear(&why);
    ck_assert_int_eq(listener_add_fd(&listener, fd, &address, &ports, &why),
        ERR_NOT_LOOPBACK);
    ck_assert_uint_gt(why.len, 0);
    ck_assert_uint_eq(listener.n_sockets, 0);
    address.loopback_only = false;
    ck_assert_int_eq(
        listener_add_fd(&listener, fd, &address, &ports, &why), 0);
    listener_stop(&listener);
    uv_run(&loop, UV_RUN_DEFAULT);
    listener_init(&listener,
        &(struct listener_config){
            .loop = &loop, .logger = &logger, .gauge = &gauge});
    address.loopback_only = true;
    fd = tcp(INADDR_LOOPBACK, true);
    ck_assert_int_eq(
        listener_add_fd(&listener, fd, &address, &ports, &why), 0);
    ck_assert_int_eq((int)listener.socket[0].tls_use, TLS_USE_KNOWN);
    ck_assert_uint_eq(listener.n_sockets, 1);
    ck_assert_int_eq((int)listener.socket[0].binding, SESSION_BINARY);
    ck_assert(!listener.socket[0].is_unix);
    ck_assert_int_ne(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    ck_assert_uint_gt(ports.len, 0);
    listener_stop(&listener);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    buf_fini(&ports);
    buf_fini(&why);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_environment, test_not_ours, test_no_number, test_listener};
    return run_tests("activation", tests, COUNT_OF(tests));
}
