/* SPDX-License-Identifier: BSD-3-Clause */

/* t/bench/floor with an io_uring for what sockets bring and take: each socket
 * has one receive that stays begun and takes a buffer of the ring when bytes
 * come, and one system call sends the replies of all clients of a turn
 * (doc/adr/0056). --wait=loop has libuv wait, which polls the ring's
 * descriptor, as a worker's loop would; --wait=ring has the ring wait, which
 * polls that of libuv's loop: the fewest calls that there can be.
 *
 * A send does not wait and ends within the call that begins it, so its bytes
 * may go after that. It is heard of only where the socket has not taken all,
 * and then the client is closed. Text only. One thread; loopback only. */

#include "base/buf.h"
#include "bench/fail.h"
#include "bench/floor_form.h"

#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

enum {
    ENTRIES = 1024,            /* of what is begun in one call */
    COMPLETIONS_MAX = 512,     /* of a turn; each has a reply at most */
    BUFFERS = 128,             /* that receives take; a power of two */
    BUFFER_BYTES = 4096,       /* of each */
    OUT_BYTES_MAX = 256 << 20, /* of the replies of a turn */
    TURNS_MAX = 8,             /* before libuv looks at the rest */
    BACKLOG = 1024,
    KIND_BITS = 2
};

/* What has ended; the other bits of its number are the client's descriptor. */
enum kind { KIND_RECEIVE, KIND_SEND, KIND_LOOP };

struct reply {
    int fd;
    size_t at, len; /* in out */
};

struct floor {
    struct floor_form form;
    struct floor_replies replies;
    uv_loop_t loop;
    uv_poll_t listener, ring_poll;
    uv_prepare_t prepare;
    struct io_uring ring;
    struct io_uring_buf_ring *buffers;
    char *bytes;    /* BUFFERS of BUFFER_BYTES */
    struct buf out; /* the replies of a turn */
    struct reply reply[COMPLETIONS_MAX];
    unsigned n_replies;
    unsigned n_buffers; /* to be given back */
};

static int
need(int rv, const char *what)
{
    if (rv < 0) {
        fail("%s: %s", what, strerror(-rv));
    }
    return rv;
}

static int
need_errno(int rv, const char *what)
{
    if (rv < 0) {
        fail_errno(what);
    }
    return rv;
}

/* Room for something to begin, which a number is to be given (`mark`) when it
 * is filled in. */
static struct io_uring_sqe *
entry(struct floor *floor)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&floor->ring);
    if (sqe == NULL) {
        need(io_uring_submit(&floor->ring), "io_uring_submit");
        sqe = io_uring_get_sqe(&floor->ring);
    }
    if (sqe == NULL) {
        fail("no room in the ring");
    }
    return sqe;
}

static void
mark(struct io_uring_sqe *sqe, enum kind kind, int fd)
{
    io_uring_sqe_set_data64(sqe, (uint64_t)fd << KIND_BITS | (uint64_t)kind);
}

static void
receive(struct floor *floor, int fd)
{
    struct io_uring_sqe *sqe = entry(floor);
    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    mark(sqe, KIND_RECEIVE, fd);
}

static void
on_connection(uv_poll_t *poll, int status, int events)
{
    struct floor *floor = poll->loop->data;
    int one = 1;
    (void)status;
    (void)events;
    uv_os_fd_t listener;
    uv_fileno((uv_handle_t *)poll, &listener);
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0) {
        return; /* it has gone again */
    }
    need_errno(
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one), "nodelay");
    receive(floor, fd);
}

static void
give_back(struct floor *floor, unsigned id)
{
    io_uring_buf_ring_add(floor->buffers,
        floor->bytes + (size_t)id * BUFFER_BYTES, BUFFER_BYTES,
        (unsigned short)id, io_uring_buf_ring_mask(BUFFERS),
        (int)floor->n_buffers++);
}

static void
answer(struct floor *floor, int fd, const char *bytes, size_t len)
{
    size_t at = floor->out.len;
    floor_replies_lines(&floor->replies, bytes, len, &floor->out);
    if (floor->out.failed || floor->out.len > OUT_BYTES_MAX) {
        fail("clients ask for too much at once");
    }
    if (floor->out.len > at) {
        floor->reply[floor->n_replies++] =
            (struct reply){.fd = fd, .at = at, .len = floor->out.len - at};
    }
}

/* Asks to be told once that libuv's loop has something. */
static void
watch_loop(struct floor *floor)
{
    struct io_uring_sqe *sqe = entry(floor);
    io_uring_prep_poll_add(sqe, uv_backend_fd(&floor->loop), POLLIN);
    mark(sqe, KIND_LOOP, 0);
}

static void
complete(struct floor *floor, const struct io_uring_cqe *cqe)
{
    enum kind kind = (enum kind)(cqe->user_data & ((1 << KIND_BITS) - 1));
    int fd = (int)(cqe->user_data >> KIND_BITS);
    if (kind == KIND_SEND) {
        shutdown(fd, SHUT_RDWR); /* its receive ends, and closes it */
        return;
    }
    if (kind == KIND_LOOP) {
        uv_run(&floor->loop, UV_RUN_NOWAIT);
        watch_loop(floor);
        return;
    }
    if (cqe->res > 0) {
        unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
        answer(floor, fd, floor->bytes + (size_t)id * BUFFER_BYTES,
            (size_t)cqe->res);
        give_back(floor, id);
    }
    if ((cqe->flags & IORING_CQE_F_MORE) != 0) {
        return;
    }
    if (cqe->res > 0 || cqe->res == -ENOBUFS) {
        receive(floor, fd);
    } else {
        close(fd);
    }
}

/* Puts the replies of a turn into the ring, to be sent at once. */
static void
put_sends(struct floor *floor)
{
    for (unsigned i = 0; i < floor->n_replies; i++) {
        const struct reply *reply = &floor->reply[i];
        struct io_uring_sqe *sqe = entry(floor);
        io_uring_prep_send(sqe, reply->fd, floor->out.data + reply->at,
            reply->len, MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL);
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
        mark(sqe, KIND_SEND, reply->fd);
    }
    floor->n_replies = 0;
}

/* Answers what has come, up to a turn of it; how many completions. */
static unsigned
take_turn(struct floor *floor)
{
    const struct io_uring_cqe *cqe;
    unsigned head, n = 0;
    buf_clear(&floor->out);
    io_uring_for_each_cqe(&floor->ring, head, cqe)
    {
        complete(floor, cqe);
        if (++n == COMPLETIONS_MAX) {
            break;
        }
    }
    io_uring_buf_ring_advance(floor->buffers, (int)floor->n_buffers);
    floor->n_buffers = 0;
    io_uring_cq_advance(&floor->ring, n);
    put_sends(floor);
    return n;
}

static void
submit(struct floor *floor)
{
    if (io_uring_sq_ready(&floor->ring) > 0) {
        need(io_uring_submit(&floor->ring), "io_uring_submit");
    }
}

/* The ring's descriptor can be read. What sending brings along is answered,
 * too, before libuv polls again. */
static void
on_ring(uv_poll_t *poll, int status, int events)
{
    struct floor *floor = poll->loop->data;
    (void)events;
    need(status, "poll");
    for (unsigned i = 0; i < TURNS_MAX && take_turn(floor) > 0; i++) {
        submit(floor);
    }
}

static void
on_prepare(uv_prepare_t *prepare)
{
    submit(prepare->loop->data);
}

static void
listen_on(struct floor *floor)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)floor->form.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int one = 1;
    int fd =
        need_errno(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");
    need_errno(
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), "reuse");
    need_errno(bind(fd, (struct sockaddr *)&address, sizeof address), "bind");
    need_errno(listen(fd, BACKLOG), "listen");
    need_errno(getsockname(fd, (struct sockaddr *)&address, &len), "address");
    if (floor->form.port == 0) {
        printf("%u\n", (unsigned)ntohs(address.sin_port));
        fflush(stdout);
    }
    need(uv_poll_init(&floor->loop, &floor->listener, fd), "poll");
    need(uv_poll_start(&floor->listener, UV_READABLE, on_connection), "poll");
}

static void
open_ring(struct floor *floor)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
            IORING_SETUP_CQSIZE |
            (floor->form.ring_waits ? IORING_SETUP_DEFER_TASKRUN
                                    : IORING_SETUP_COOP_TASKRUN),
        .cq_entries = 4 * ENTRIES};
    need(io_uring_queue_init_params(ENTRIES, &floor->ring, &params),
        "io_uring");
    need(io_uring_register_ring_fd(&floor->ring), "register_ring_fd");
    size_t head = BUFFERS * sizeof(struct io_uring_buf);
    void *memory = mmap(NULL, head + (size_t)BUFFERS * BUFFER_BYTES,
        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fail_errno("mmap");
    }
    floor->buffers = memory;
    floor->bytes = (char *)memory + head;
    struct io_uring_buf_reg reg = {
        .ring_addr = (uint64_t)memory, .ring_entries = BUFFERS, .bgid = 0};
    need(io_uring_register_buf_ring(&floor->ring, &reg, 0), "buffers");
    io_uring_buf_ring_init(floor->buffers);
    for (unsigned i = 0; i < BUFFERS; i++) {
        give_back(floor, i);
    }
    io_uring_buf_ring_advance(floor->buffers, BUFFERS);
    floor->n_buffers = 0;
}

static void
run_by_loop(struct floor *floor)
{
    need(uv_poll_init(&floor->loop, &floor->ring_poll, floor->ring.ring_fd),
        "poll");
    need(uv_poll_start(&floor->ring_poll, UV_READABLE, on_ring), "poll");
    uv_prepare_init(&floor->loop, &floor->prepare);
    uv_prepare_start(&floor->prepare, on_prepare);
    uv_run(&floor->loop, UV_RUN_DEFAULT);
}

static void
run_by_ring(struct floor *floor)
{
    uv_run(&floor->loop, UV_RUN_NOWAIT);
    watch_loop(floor);
    for (;;) {
        int rv = io_uring_submit_and_wait(&floor->ring, 1);
        need(rv == -EINTR ? 0 : rv, "wait");
        take_turn(floor);
    }
}

int
main(int argc, char **argv)
{
    static struct floor floor;
    floor_form_parse(&floor.form, argc, argv);
    if (floor.form.is_resp) {
        fail("floor_ring answers text only");
    }
    if (floor.form.reads != NULL) {
        fail("only floor_bare reads a file");
    }
    floor_replies_init(&floor.replies, &floor.form);
    need(uv_loop_init(&floor.loop), "loop");
    floor.loop.data = &floor;
    open_ring(&floor);
    listen_on(&floor);
    if (floor.form.ring_waits) {
        run_by_ring(&floor);
    } else {
        run_by_loop(&floor);
    }
    return 0;
}
