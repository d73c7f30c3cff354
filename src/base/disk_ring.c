/* SPDX-License-Identifier: BSD-3-Clause */
/* An io_uring for reads.
 *
 * The ring belongs to one thread, which tells the kernel so: then a read that
 * ends interrupts nobody, and what is left to do for it is done when that
 * thread enters the kernel next, or sleeps there. A kernel that knows no such
 * rings (before 6.0) gets a plain one. IORING_SETUP_DEFER_TASKRUN would leave
 * it to reap; but then who polls the descriptor is not told of a read that had
 * to wait for the disk (seen with Linux 6.18).
 *
 * What can go wrong: the kernel begins no read. Those that it has not taken are
 * handed back, and their entries in its queue, which cannot be taken out, are
 * made to do nothing. If it goes on taking none, its queue is full of those in
 * the end, and reads are handed back that had no entry. */
#include "base/disk_ring.h"

#include "base/assert.h"

#include <errno.h>

#if defined(HAVE_LIBURING)

#include <liburing.h>
#include <stdlib.h>

struct kernel_ring {
    struct disk_ring ring; /* first */
    struct io_uring uring;
};

static struct kernel_ring *
kernel_of(struct disk_ring *ring)
{
    return (struct kernel_ring *)ring;
}

/* Gives each read an entry of the queue; none to those there is no room for. */
static void
enter(struct io_uring *uring, struct disk_read *reads)
{
    for (struct disk_read *read = reads; read != NULL; read = read->next) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(uring);

        read->entry = sqe;
        if (sqe != NULL) {
            io_uring_prep_read(
                sqe, read->fd, read->bytes, (unsigned)read->len, read->at);
            io_uring_sqe_set_data(sqe, read);
        }
    }
}

/* The entries of these reads stand for nothing any more. */
static void
make_idle(struct disk_read *reads)
{
    for (struct disk_read *read = reads; read != NULL; read = read->next) {
        if (read->entry != NULL) {
            io_uring_prep_nop(read->entry);
            io_uring_sqe_set_data(read->entry, NULL);
        }
    }
}

static struct disk_read *
submit(struct disk_ring *ring, struct disk_read *reads)
{
    struct io_uring *uring = &kernel_of(ring)->uring;
    unsigned old = io_uring_sq_ready(uring);     /* that do nothing */
    unsigned n_ended = io_uring_cq_ready(uring); /* before */
    unsigned n_begun = 0;

    enter(uring, reads);
    while (io_uring_sq_ready(uring) > 0) {
        int n = io_uring_submit(uring);

        if (n == -EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        n_begun += (unsigned)n;
        for (; n > 0; n--) {
            if (old > 0) {
                old--;
            } else {
                reads = reads->next;
            }
        }
    }
    ring->is_quick = io_uring_cq_ready(uring) - n_ended >= n_begun;
    make_idle(reads);
    return reads;
}

static struct disk_read *
reap(struct disk_ring *ring, unsigned n_max)
{
    struct io_uring *uring = &kernel_of(ring)->uring;
    struct disk_read *first = NULL, **end = &first;
    struct io_uring_cqe *cqe;

    for (unsigned n = 0; n < n_max && io_uring_peek_cqe(uring, &cqe) == 0;
         n++) {
        struct disk_read *read = io_uring_cqe_get_data(cqe);

        if (read != NULL) {
            read->error = cqe->res < 0 ? -cqe->res : 0;
            read->n_read = cqe->res < 0 ? 0 : (size_t)cqe->res;
            read->next = NULL;
            *end = read;
            end = &read->next;
        }
        io_uring_cqe_seen(uring, cqe);
    }
    return first;
}

static void
destroy(struct disk_ring **ring)
{
    io_uring_queue_exit(&kernel_of(*ring)->uring);
    free(*ring);
    *ring = NULL;
}

int
disk_ring__open(unsigned n_reads, struct disk_ring **out)
{
    static const struct disk_ring_calls calls = {submit, reap, destroy};
    struct kernel_ring *kernel = malloc(sizeof *kernel);
    struct io_uring_params params = {0};
    int error;

    ASSERT(n_reads >= 1 && n_reads <= DISK_RING_READS_MAX);
    if (kernel == NULL) {
        return ENOMEM;
    }
    *kernel = (struct kernel_ring){.ring = {.calls = &calls}};
#if defined(IORING_SETUP_COOP_TASKRUN)
    params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
        IORING_SETUP_TASKRUN_FLAG;
#endif
    /* as many entries again: those that do nothing take some, too */
    error = -io_uring_queue_init_params(2 * n_reads, &kernel->uring, &params);
    if (error == EINVAL && params.flags != 0) {
        params = (struct io_uring_params){0};
        error =
            -io_uring_queue_init_params(2 * n_reads, &kernel->uring, &params);
    }
    if (error != 0) {
        free(kernel);
        return error;
    }
    kernel->ring.fd = kernel->uring.ring_fd;
    *out = &kernel->ring;
    return 0;
}

#else

int
disk_ring__open(unsigned n_reads, struct disk_ring **out)
{
    ASSERT(n_reads >= 1 && n_reads <= DISK_RING_READS_MAX);
    (void)out;
    return ENOSYS;
}

#endif
