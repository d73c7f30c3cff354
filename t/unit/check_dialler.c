/* SPDX-License-Identifier: BSD-3-Clause */
/* server/dialler: what it connects to, what it says where that cannot be, what
 * it has, and when it ends. */
#include "server/dialler.h"

#include "repl/dial.h"
#include "unit/check_help.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { LABEL_BYTES = 64 /* one more than a name's part may have */ };

static int
start_with(bool loopback_only)
{
    struct buf why = {0};
    int pair_fd = -1;
    int err = dialler_start("", true, loopback_only, &pair_fd, &why);
    ck_assert_msg(err == 0, "%.*s", (int)why.len, why.data);
    ck_assert_int_ge(pair_fd, 0);
    buf_fini(&why);
    return pair_fd;
}

static int
start(void)
{
    return start_with(true);
}

static void
wait_for(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&poll_fd, 1, -1), 1);
}

static struct dial_reply
ask(int pair_fd, const char *address)
{
    static uint32_t number;
    struct dial_request request = {.number = ++number};
    struct dial_reply reply = {0};
    (void)snprintf(request.address, sizeof request.address, "%s", address);
    ck_assert_int_eq(dial__send_request(pair_fd, &request), 0);
    wait_for(pair_fd);
    ck_assert_int_eq(dial__receive_reply(pair_fd, &reply), 0);
    ck_assert_uint_eq(reply.number, number);
    return reply;
}

/* A listening socket on 127.0.0.1; *port is its port. */
static int
open_listener(unsigned *port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(listen(fd, 4), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int
option_of(int fd, int level, int name)
{
    int value = 0;
    socklen_t len = sizeof value;
    ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* By an address and by a name, one after the other. */
START_TEST(test_connects)
{
    static const char *const hosts[] = {
        "127.0.0.1", "localhost", "[::ffff:127.0.0.1]"};
    char address[64], byte;
    unsigned port;
    int listener = open_listener(&port), pair_fd = start();

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        (void)snprintf(address, sizeof address, "%s:%u", hosts[i], port);
        struct dial_reply reply = ask(pair_fd, address);
        ck_assert_msg(reply.fd >= 0, "%s: %s", address, reply.why);
        ck_assert_str_eq(reply.why, "");
        ck_assert_int_ne(fcntl(reply.fd, F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_eq(fcntl(reply.fd, F_GETFD), FD_CLOEXEC);
        ck_assert_int_ne(option_of(reply.fd, IPPROTO_TCP, TCP_NODELAY), 0);
        ck_assert_int_ne(option_of(reply.fd, SOL_SOCKET, SO_KEEPALIVE), 0);
        int peer = accept(listener, NULL, NULL);
        ck_assert_int_ge(peer, 0);
        ck_assert_int_eq(write(reply.fd, "x", 1), 1);
        ck_assert_int_eq(read(peer, &byte, 1), 1);
        close(reply.fd); /* the child has none of it any more */
        ck_assert_int_eq(read(peer, &byte, 1), 0);
        close(peer);
    }
    close(listener);
    close(pair_fd);
}
END_TEST

/* Whose address swallows everything does not keep others waiting. */
START_TEST(test_at_once)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned deaf_port, port;
    int deaf = open_listener(&deaf_port), listener = open_listener(&port);
    int fill[8], pair_fd = start();
    struct dial_request request = {.number = 1000};

    ck_assert_int_eq(listen(deaf, 0), 0);
    to.sin_port = htons((uint16_t)deaf_port);
    for (size_t i = 0; i < sizeof fill / sizeof fill[0]; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(fill[i], (struct sockaddr *)&to, sizeof to);
    }
    (void)snprintf(
        request.address, sizeof request.address, "127.0.0.1:%u", deaf_port);
    ck_assert_int_eq(dial__send_request(pair_fd, &request), 0);
    (void)snprintf(
        request.address, sizeof request.address, "127.0.0.1:%u", port);
    struct dial_reply reply = ask(pair_fd, request.address);
    ck_assert_int_ge(reply.fd, 0);
    close(reply.fd);
    for (size_t i = 0; i < sizeof fill / sizeof fill[0]; i++) {
        close(fill[i]);
    }
    close(deaf);
    close(listener);
    close(pair_fd);
}
END_TEST

START_TEST(test_refused)
{
    char address[LABEL_BYTES + sizeof ":1"], here[64];
    unsigned port;
    int listener = open_listener(&port), pair_fd = start();

    close(listener);
    (void)snprintf(here, sizeof here, "127.0.0.1:%u", port);
    struct dial_reply reply = ask(pair_fd, here);
    ck_assert_int_eq(reply.fd, -1);
    ck_assert_str_eq(reply.why, strerror(ECONNREFUSED));
    reply = ask(pair_fd, "nothing");
    ck_assert_int_eq(reply.fd, -1);
    ck_assert_str_eq(reply.why, "the address is not HOST:PORT");
    memset(address, 'x', LABEL_BYTES);
    memcpy(address + LABEL_BYTES, ":1", sizeof ":1");
    reply = ask(pair_fd, address);
    ck_assert_int_eq(reply.fd, -1);
    ck_assert_msg(
        strncmp(reply.why, "no such host: ", 14) == 0, "%s", reply.why);
    close(pair_fd);
}
END_TEST

/* What is not on this machine, where that is not wanted: nobody is asked. */
START_TEST(test_loopback_only)
{
    int pair_fd = start();
    struct dial_reply reply = ask(pair_fd, "192.0.2.1:1"); /* nobody's */
    ck_assert_int_eq(reply.fd, -1);
    ck_assert_msg(
        strncmp(reply.why, "not on this machine", 19) == 0, "%s", reply.why);
    close(pair_fd);
}
END_TEST

/* Beyond it another kind of loopback: an address that refuses at once. */
START_TEST(test_anywhere)
{
    int pair_fd = start_with(false);
    struct dial_reply reply = ask(pair_fd, "0.0.0.0:1");
    ck_assert_int_eq(reply.fd, -1);
    ck_assert_str_eq(reply.why, strerror(ECONNREFUSED));
    close(pair_fd);
}
END_TEST

/* A descriptor that the caller had is closed in the child, and the child ends
 * with the pair; signals to the group do not end it. */
START_TEST(test_end)
{
    int fds[2], status;
    char byte;

    ck_assert_int_eq(pipe(fds), 0);
    int pair_fd = start();
    close(fds[1]);
    ck_assert_int_eq(read(fds[0], &byte, 1), 0);
    close(fds[0]);
    (void)signal(SIGTERM, SIG_IGN);
    ck_assert_int_eq(kill(0, SIGTERM), 0);
    struct dial_reply reply = ask(pair_fd, "nothing");
    ck_assert_str_eq(reply.why, "the address is not HOST:PORT");
    close(pair_fd);
    ck_assert_int_gt(waitpid(-1, &status, 0), 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(waitpid(-1, &status, 0), -1);
}
END_TEST

/* The server dies while another one has its end of the pair. */
START_TEST(test_parent_dies)
{
    struct dial_reply reply = {0};
    int pair[2], status, n_killed = 0;

    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    pid_t server = fork();
    ck_assert_int_ge(server, 0);
    if (server == 0) {
        reply.fd = start();
        _exit(dial_send_reply(pair[1], &reply));
    }
    wait_for(pair[0]);
    ck_assert_int_eq(dial__receive_reply(pair[0], &reply), 0);
    ck_assert_int_ge(reply.fd, 0);
    for (int i = 0; i < 2; i++) {
        pid_t one = waitpid(-1, &status, 0);
        ck_assert_int_gt(one, 0);
        ck_assert(one == server
                ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                : WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        n_killed += one != server;
    }
    ck_assert_int_eq(n_killed, 1);
    close(reply.fd);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

/* A user that there is not: said, and nobody is left. */
START_TEST(test_no_user)
{
    struct buf why = {0};
    int pair_fd = -1, status;

    if (geteuid() == 0) {
        ck_assert_int_ne(
            dialler_start("no such user", true, true, &pair_fd, &why), 0);
        ck_assert_uint_gt(why.len, 0);
        ck_assert_int_eq(pair_fd, -1);
        ck_assert_int_gt(waitpid(-1, &status, 0), 0);
    }
    buf_fini(&why);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {test_connects, test_at_once, test_refused,
        test_loopback_only, test_anywhere, test_end, test_parent_dies,
        test_no_user};
    return run_tests("dialler", tests, COUNT_OF(tests));
}
