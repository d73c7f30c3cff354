/* SPDX-License-Identifier: BSD-3-Clause */

/* t/bench/floor without libuv: epoll_wait, read and write, and nothing between
 * them. Beside the floor it shows what the loop itself costs (doc/adr/0023).
 * Text only; a client that does not read its replies is closed. One thread;
 * loopback only. With --reads each read of a socket has one of a file behind
 * it, which it waits for: for one client the least that a cold get can be. */

#include "base/buf.h"
#include "bench/fail.h"
#include "bench/floor_form.h"
#include "lib/dist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 * 1024, /* as the floor */
    OUT_BYTES_MAX = 16 << 20,
    BACKLOG = 1024,
    EVENTS = 1024, /* of one wait, as libuv */
    BLOCK_BYTES = 4096
};

struct floor {
    struct floor_form form;
    struct floor_replies replies;
    struct buf out; /* the replies to one read */
    int epoll_fd;
    int listener_fd;
    int file_fd; /* of --reads */
    uint64_t n_blocks;
    struct dist_rng rng;
    char in[READ_BYTES];
    _Alignas(BLOCK_BYTES) char block[BLOCK_BYTES];
};

static int
need(int rv, const char *what)
{
    if (rv < 0) {
        fail_errno(what);
    }
    return rv;
}

static void
watch(const struct floor *floor, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    need(epoll_ctl(floor->epoll_fd, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

static void
listen_on(struct floor *floor)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)floor->form.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int one = 1;
    int fd = need(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
    need(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "reuse");
    need(bind(fd, (struct sockaddr *)&address, sizeof address), "bind");
    need(listen(fd, BACKLOG), "listen");
    need(getsockname(fd, (struct sockaddr *)&address, &len), "address");
    if (floor->form.port == 0) {
        printf("%u\n", (unsigned)ntohs(address.sin_port));
        fflush(stdout);
    }
    floor->listener_fd = fd;
    watch(floor, fd);
}

static void
take(const struct floor *floor)
{
    int one = 1;
    int fd = accept4(floor->listener_fd, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) {
        return; /* it has gone again */
    }
    need(
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "nodelay");
    watch(floor, fd);
}

static void
open_file(struct floor *floor)
{
    floor->file_fd =
        need(open(floor->form.reads, O_RDONLY | O_DIRECT), "open");
    floor->n_blocks =
        (uint64_t)lseek(floor->file_fd, 0, SEEK_END) / BLOCK_BYTES;
    dist_rng_init(&floor->rng, (uint64_t)getpid(), 0);
    if (floor->n_blocks == 0) {
        fail("--reads: the file has not 4 KB");
    }
}

static void
read_block(struct floor *floor)
{
    uint64_t block = dist_rng_u64(&floor->rng) % floor->n_blocks;
    if (pread(floor->file_fd, floor->block, BLOCK_BYTES,
            (off_t)(block * BLOCK_BYTES)) != BLOCK_BYTES) {
        fail_errno("pread");
    }
}

/* Answers what there is; closes the client where that cannot be done. */
static void
answer(struct floor *floor, int fd)
{
    ssize_t n = read(fd, floor->in, sizeof floor->in);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n > 0 && floor->form.reads != NULL) {
        read_block(floor);
    }
    buf_clear(&floor->out);
    floor_replies_lines(
        &floor->replies, floor->in, n > 0 ? (size_t)n : 0, &floor->out);
    if (floor->out.failed || floor->out.len > OUT_BYTES_MAX) {
        fail("a client asks for too much at once");
    }
    if (n <= 0 ||
        (floor->out.len > 0 &&
            write(fd, floor->out.data, floor->out.len) !=
                (ssize_t)floor->out.len)) {
        close(fd);
    }
}

int
main(int argc, char **argv)
{
    static struct floor floor;
    struct epoll_event event[EVENTS];
    floor_form_parse(&floor.form, argc, argv);
    if (floor.form.is_resp || floor.form.ring_waits) {
        fail("floor_bare answers text only, and has no io_uring");
    }
    floor_replies_init(&floor.replies, &floor.form);
    if (floor.form.reads != NULL) {
        open_file(&floor);
    }
    floor.epoll_fd = need(epoll_create1(0), "epoll");
    listen_on(&floor);
    for (;;) {
        int n = epoll_wait(floor.epoll_fd, event, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (event[i].data.fd == floor.listener_fd) {
                take(&floor);
            } else {
                answer(&floor, event[i].data.fd);
            }
        }
    }
}
