/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/raw_reads.h"

#include "bench/fail.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(HAVE_LIBURING)
#include <liburing.h>
#endif

/* A buffer that any O_DIRECT takes. */
static void *
take_buffer(size_t n)
{
    void *buffer;

    if (posix_memalign(&buffer, RAW_BYTES, n * RAW_BYTES) != 0) {
        fail("out of memory");
    }
    return buffer;
}

struct pool {
    const struct raw_reads *reads;
    atomic_size_t next;
};

static void *
run_thread(void *context)
{
    struct pool *pool = context;
    const struct raw_reads *reads = pool->reads;
    void *buffer = take_buffer(1);
    size_t i;

    /* relaxed: it orders nothing, each number is taken once */
    while ((i = atomic_fetch_add_explicit(
                &pool->next, 1, memory_order_relaxed)) < reads->n) {
        if (pread(reads->fd, buffer, RAW_BYTES, (off_t)reads->at[i]) !=
            RAW_BYTES) {
            fail_errno("pread");
        }
    }
    free(buffer);
    return NULL;
}

void
raw_reads_pool(const struct raw_reads *reads)
{
    struct pool pool = {.reads = reads};
    pthread_t thread[RAW_DEPTH_MAX];

    for (unsigned i = 0; i < reads->depth; i++) {
        if (pthread_create(&thread[i], NULL, run_thread, &pool) != 0) {
            fail("no thread");
        }
    }
    for (unsigned i = 0; i < reads->depth; i++) {
        pthread_join(thread[i], NULL);
    }
}

#if defined(HAVE_LIBURING)
struct ring {
    const struct raw_reads *reads;
    struct io_uring uring;
    uint8_t *buffer; /* a page for each read under way */
    size_t begun, done;
};

/* Begins the next read in a slot that is free. */
static void
begin(struct ring *ring, uint64_t slot)
{
    const struct raw_reads *reads = ring->reads;
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

    if (sqe == NULL) {
        fail("the ring is full");
    }
    io_uring_prep_read(sqe, reads->fd, ring->buffer + slot * RAW_BYTES,
        RAW_BYTES, reads->at[ring->begun++]);
    io_uring_sqe_set_data(sqe, (void *)(uintptr_t)slot);
}

/* Takes what has come; the slots that are free again. */
static unsigned
take(struct ring *ring, uint64_t *slot)
{
    struct io_uring_cqe *cqe[RAW_DEPTH_MAX];
    unsigned n = io_uring_peek_batch_cqe(&ring->uring, cqe, RAW_DEPTH_MAX);

    for (unsigned i = 0; i < n; i++) {
        if (cqe[i]->res != RAW_BYTES) {
            fail("a read of the ring: %s", strerror(-cqe[i]->res));
        }
        slot[i] = (uintptr_t)io_uring_cqe_get_data(cqe[i]);
    }
    io_uring_cq_advance(&ring->uring, n);
    ring->done += n;
    return n;
}

static void
submit(struct ring *ring, unsigned wait_for)
{
    int n = io_uring_submit_and_wait(&ring->uring, wait_for);

    if (n < 0 && n != -EINTR) {
        fail("io_uring_enter: %s", strerror(-n));
    }
}

void
raw_reads_ring(const struct raw_reads *reads, bool is_batched)
{
    struct ring ring = {.reads = reads};
    uint64_t slot[RAW_DEPTH_MAX];
    unsigned n_free = reads->depth;

    if (io_uring_queue_init(RAW_DEPTH_MAX, &ring.uring, 0) != 0) {
        fail("no io_uring");
    }
    ring.buffer = take_buffer(reads->depth);
    for (unsigned i = 0; i < n_free; i++) {
        slot[i] = i;
    }
    while (ring.done < reads->n) {
        for (unsigned i = 0; i < n_free && ring.begun < reads->n; i++) {
            begin(&ring, slot[i]);
            if (!is_batched) {
                submit(&ring, 0);
            }
        }
        submit(&ring, 1);
        n_free = take(&ring, slot);
    }
    io_uring_queue_exit(&ring.uring);
    free(ring.buffer);
}

const char *
raw_reads_no_ring(void)
{
    struct io_uring uring;
    int error = io_uring_queue_init(RAW_DEPTH_MAX, &uring, 0);

    if (error == 0) {
        io_uring_queue_exit(&uring);
        return NULL;
    }
    return error == -EPERM ? "the kernel forbids it to this process"
        : error == -ENOSYS ? "the kernel has none"
                           : "the kernel refuses it";
}
#else
void
raw_reads_ring(const struct raw_reads *reads, bool is_batched)
{
    (void)reads;
    (void)is_batched;
    fail("built without liburing");
}

const char *
raw_reads_no_ring(void)
{
    return "built without liburing";
}
#endif
