/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends are one program and one machine, so a packet is a struct as it is
 * in memory: a request, or the part of a reply that is no descriptor, which
 * goes beside it as SCM_RIGHTS. What comes is looked at all the same: the size,
 * the end of the text, and that there is a descriptor where one is said to
 * be. */
#include "repl/dial.h"

#include "base/assert.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct reply_packet {
    uint32_t number;
    uint32_t n_fds; /* 0 or 1 */
    char why[DIAL_WHY_MAX + 1];
};

/* Room for one descriptor, aligned as the kernel wants it. Its padding has room
 * for another: who receives says CMSG_LEN, so that more than one are cut off
 * and closed by the kernel, and MSG_CTRUNC says so. */
union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
};

/* What a call that has failed comes to. */
static int
error_of(int number)
{
    switch (number) {
    case EWOULDBLOCK:
#if EAGAIN != EWOULDBLOCK
    case EAGAIN:
#endif
        return EAGAIN;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return EPIPE;
    default:
        return number;
    }
}

static int
send_message(int pair_fd, struct msghdr *message, size_t len)
{
    ssize_t n;
    do {
        n = sendmsg(pair_fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return error_of(errno);
    }
    ASSERT((size_t)n == len); /* a packet goes whole */
    return 0;
}

/* The descriptor that came, or -1. */
static int
fd_of(struct msghdr *message)
{
    int fd = -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    if (head != NULL && head->cmsg_level == SOL_SOCKET &&
        head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof fd)) {
        memcpy(&fd, CMSG_DATA(head), sizeof fd);
    }
    return fd;
}

/* Takes a packet of that size to *packet; *fd becomes the descriptor beside it,
 * the caller's, or -1. */
static int
receive_packet(int pair_fd, void *packet, size_t size, int *fd)
{
    union control control = {0};
    struct iovec span = {.iov_base = packet, .iov_len = size};
    struct msghdr message = {.msg_iov = &span,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t n;
    do {
        n = recvmsg(pair_fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) { /* nobody sends an empty packet */
        return n < 0 ? error_of(errno) : EPIPE;
    }
    *fd = fd_of(&message);
    if ((size_t)n == size &&
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
        return 0;
    }
    if (*fd >= 0) {
        close(*fd);
    }
    return EBADMSG;
}

bool
dial__is_there(int pair_fd)
{
    struct pollfd look = {.fd = pair_fd};
    return pair_fd >= 0 && poll(&look, 1, 0) == 0; /* only an end is told */
}

int
dial__send_request(int pair_fd, const struct dial_request *request)
{
    struct dial_request packet = {.number = request->number};
    struct iovec span = {.iov_base = &packet, .iov_len = sizeof packet};
    struct msghdr message = {.msg_iov = &span, .msg_iovlen = 1};
    size_t len = strnlen(request->address, sizeof request->address);
    ASSERT(len < sizeof packet.address);
    memcpy(packet.address, request->address, len);
    return send_message(pair_fd, &message, sizeof packet);
}

int
dial_receive_request(int pair_fd, struct dial_request *out)
{
    struct dial_request packet;
    int fd;
    int err = receive_packet(pair_fd, &packet, sizeof packet, &fd);
    if (err != 0) {
        return err;
    }
    if (fd >= 0) {
        close(fd);
        return EBADMSG;
    }
    if (memchr(packet.address, '\0', sizeof packet.address) == NULL) {
        return EBADMSG;
    }
    *out = packet;
    return 0;
}

int
dial_send_reply(int pair_fd, const struct dial_reply *reply)
{
    struct reply_packet packet = {
        .number = reply->number, .n_fds = reply->fd >= 0};
    union control control = {0};
    struct iovec span = {.iov_base = &packet, .iov_len = sizeof packet};
    struct msghdr message = {.msg_iov = &span, .msg_iovlen = 1};
    size_t len = strnlen(reply->why, sizeof reply->why);
    ASSERT(len < sizeof packet.why);
    memcpy(packet.why, reply->why, len);
    if (reply->fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof reply->fd);
        memcpy(CMSG_DATA(head), &reply->fd, sizeof reply->fd);
    }
    return send_message(pair_fd, &message, sizeof packet);
}

int
dial__receive_reply(int pair_fd, struct dial_reply *out)
{
    struct reply_packet packet;
    int fd;
    int err = receive_packet(pair_fd, &packet, sizeof packet, &fd);
    if (err != 0) {
        return err;
    }
    if (packet.n_fds != (fd >= 0 ? 1 : 0) ||
        memchr(packet.why, '\0', sizeof packet.why) == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return EBADMSG;
    }
    out->number = packet.number;
    out->fd = fd;
    memcpy(out->why, packet.why, sizeof out->why);
    return 0;
}
