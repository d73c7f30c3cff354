/* SPDX-License-Identifier: BSD-3-Clause */
/* repl/dial: addresses, and the packets between a server and the process that
 * connects for it. */
#include "repl/dial.h"

#include "unit/check_help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/uio.h>

START_TEST(test_addresses)
{
    static const struct {
        const char *address, *host, *port;
    } good[] = {{"a:1", "a", "1"},
        {"db1.example:65535", "db1.example", "65535"},
        {"127.0.0.1:11213", "127.0.0.1", "11213"}, {"[::1]:5", "::1", "5"},
        {"[fe80::1%eth0]:5", "fe80::1%eth0", "5"}};
    static const char *const bad[] = {"", "a", "a:", ":1", "[]:1", "[:1",
        "[a:1", "a]:1", "a:0", "a:65536", "a:123456", "a:1x", "a b:1", "a\n:1",
        "a:-1", "a: 1", "::1:5", "2001:db8::7", "::1"};
    char host[ADDRESS_MAX + 1], port[ADDRESS_PORT_MAX + 1];
    char is_long[ADDRESS_MAX + 2];

    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        ck_assert_msg(
            address_split(good[i].address, host, port), "%s", good[i].address);
        ck_assert_str_eq(host, good[i].host);
        ck_assert_str_eq(port, good[i].port);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!address_split(bad[i], host, port), "%s", bad[i]);
    }
    memset(is_long, 'x', sizeof is_long);
    memcpy(is_long + sizeof is_long - 3, ":1", 3);
    ck_assert(!address_split(is_long, host, port));
    ck_assert(address_split(is_long + 1, host, port));
}
END_TEST

static void
open_pair(int pair[2])
{
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

START_TEST(test_packets)
{
    struct dial_request request = {.number = 7, .address = "a:1"}, got = {0};
    struct dial_reply reply = {.number = 7, .fd = -1, .why = "refused"};
    struct dial_reply other = {0};
    int pair[2], pipe_fds[2];
    char byte = 0;

    open_pair(pair);
    ck_assert_int_eq(dial_receive_request(pair[1], &got), EAGAIN);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), EAGAIN);
    ck_assert_int_eq(dial__send_request(pair[0], &request), 0);
    ck_assert_int_eq(dial_receive_request(pair[1], &got), 0);
    ck_assert_uint_eq(got.number, 7);
    ck_assert_str_eq(got.address, "a:1");
    ck_assert_int_eq(dial_send_reply(pair[1], &reply), 0);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), 0);
    ck_assert_uint_eq(other.number, 7);
    ck_assert_int_eq(other.fd, -1);
    ck_assert_str_eq(other.why, "refused");

    /* a descriptor: another one of the same thing, the first one stays */
    ck_assert_int_eq(pipe(pipe_fds), 0);
    reply.fd = pipe_fds[1];
    ck_assert_int_eq(dial_send_reply(pair[1], &reply), 0);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), 0);
    ck_assert_int_ge(other.fd, 0);
    ck_assert_int_ne(other.fd, pipe_fds[1]);
    ck_assert_int_eq(fcntl(other.fd, F_GETFD), FD_CLOEXEC);
    close(pipe_fds[1]);
    ck_assert_int_eq(write(other.fd, "x", 1), 1);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 1);
    close(other.fd);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);

    close(pair[1]);
    ck_assert_int_eq(dial__send_request(pair[0], &request), EPIPE);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), EPIPE);
    close(pair[0]);
}
END_TEST

/* As many as there is room for, then EAGAIN, and in their order. */
START_TEST(test_full)
{
    struct dial_request request = {.address = "a:1"}, got;
    uint32_t n = 0;
    int pair[2], number;

    open_pair(pair);
    while ((number = dial__send_request(pair[0], &request)) == 0) {
        request.number = ++n;
    }
    ck_assert_int_eq(number, EAGAIN);
    ck_assert_uint_gt(n, 1);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_int_eq(dial_receive_request(pair[1], &got), 0);
        ck_assert_uint_eq(got.number, i);
    }
    ck_assert_int_eq(dial_receive_request(pair[1], &got), EAGAIN);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

static void
send_with(int fd, const void *bytes, size_t len, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec span = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &span, .msg_iovlen = 1};
    if (n_fds > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(head), fds, n_fds * sizeof(int));
    }
    ck_assert_int_eq(sendmsg(fd, &message, 0), (ssize_t)len);
}

/* Whatever comes that is no packet: refused, and nothing stays open of it. */
START_TEST(test_bad_packets)
{
    struct dial_request request = {0}, got;
    struct dial_reply reply = {.fd = -1}, other;
    char packet[1024];
    int pair[2], pipe_fds[2], taken[2];
    ssize_t len;
    char byte;

    open_pair(pair);
    memset(packet, 'x', sizeof packet);
    send_with(pair[0], packet, 1, NULL, 0);
    ck_assert_int_eq(dial_receive_request(pair[1], &got), EBADMSG);
    send_with(pair[0], packet, sizeof packet, NULL, 0);
    ck_assert_int_eq(dial_receive_request(pair[1], &got), EBADMSG);
    memset(request.address, 'x', sizeof request.address);
    send_with(pair[0], &request, sizeof request, NULL, 0);
    ck_assert_int_eq(dial_receive_request(pair[1], &got), EBADMSG);

    /* of a reply: too short, and more or fewer descriptors than it says */
    ck_assert_int_eq(pipe(pipe_fds), 0);
    taken[0] = taken[1] = pipe_fds[1];
    send_with(pair[1], packet, 1, taken, 1);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), EBADMSG);
    ck_assert_int_eq(dial_send_reply(pair[1], &reply), 0);
    len = recv(pair[0], packet, sizeof packet, 0);
    ck_assert_int_gt(len, 0);
    send_with(pair[1], packet, (size_t)len, taken, 1);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), EBADMSG);
    reply.fd = pipe_fds[1];
    ck_assert_int_eq(dial_send_reply(pair[1], &reply), 0);
    len = recv(pair[0], packet, sizeof packet, 0);
    send_with(pair[1], packet, (size_t)len, NULL, 0);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), EBADMSG);
    send_with(pair[1], packet, (size_t)len, taken, 2);
    ck_assert_int_eq(dial__receive_reply(pair[0], &other), EBADMSG);
    send_with(pair[0], &request, sizeof request, taken, 1);
    ck_assert_int_eq(dial_receive_request(pair[1], &got), EBADMSG);
    close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 0);
    close(pipe_fds[0]);
    close(pair[0]);
    close(pair[1]);
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = {
        test_addresses, test_packets, test_full, test_bad_packets};
    return run_tests("dial", tests, COUNT_OF(tests));
}
