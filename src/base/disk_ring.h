/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_DISK_RING_H
#define BASE_DISK_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads that are begun many at a time and heard of later, for one thread with
 * an event loop; a seam beside struct disk: t/lib/fake_ring has an
 * implementation that comes late and fails on demand. */

/* A read of len bytes (at most INT_MAX) at `at` of an open file. The caller's;
 * it and bytes must stay from disk_ring_submit until it or
 * disk_ring_reap gives it back. */
struct disk_read {
    int fd;
    void *bytes;
    size_t len;
    uint64_t at;
    /* out: */
    int error;     /* errno value; 0: n_read bytes have come */
    size_t n_read; /* less than len: the file ends there, or the read was cut
                    * short and may be made again */
    struct disk_read *next; /* in lists that are handed over */
    void *entry;            /* the ring's own */
};

struct disk_ring;

struct disk_ring_calls {
    struct disk_read *(*submit)(
        struct disk_ring *ring, struct disk_read *reads);
    struct disk_read *(*reap)(struct disk_ring *ring, unsigned n_max);
    void (*destroy)(struct disk_ring **ring);
};

/* What every implementation begins with. All calls come from the thread that
 * made it. */
struct disk_ring {
    const struct disk_ring_calls *calls;
    int fd; /* can be read, as poll says, while there is something to reap */
    bool is_quick; /* all reads of the last call of submit had ended when it
                    * returned: they were in the page cache */
};

/* Begins a list of reads (by next; NULL is an empty one) with one system call,
 * no more of them under way than the ring was made for. Never waits for the
 * disk; what is in the page cache may be there at once. Returns a list of those
 * that could not be begun, for want of memory in the kernel, say: they are the
 * caller's again. */
static inline struct disk_read *
disk_ring_submit(struct disk_ring *ring, struct disk_read *reads)
{
    return ring->calls->submit(ring, reads);
}

/* Takes up to n_max (1 or more) reads that have ended, as a list. Does not
 * wait. */
static inline struct disk_read *
disk_ring_reap(struct disk_ring *ring, unsigned n_max)
{
    return ring->calls->reap(ring, n_max);
}

/* Closes it; nothing may be under way. NULL in it is fine. */
static inline void
disk_ring_destroy(struct disk_ring **ring)
{
    if (*ring != NULL) {
        (*ring)->calls->destroy(ring);
    }
}

enum { DISK_RING_READS_MAX = 1024 };

/* The kernel's: an io_uring for up to n_reads (1..DISK_RING_READS_MAX) under
 * way, of the calling thread. 0, or an errno value: ENOSYS where the kernel has
 * none or tallyd was built without, EPERM where it is forbidden, ENOMEM. */
int disk_ring__open(unsigned n_reads, struct disk_ring **out);

#endif
