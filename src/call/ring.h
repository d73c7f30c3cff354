/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CALL_RING_H
#define CALL_RING_H

#include "base/err.h"
#include "call/store_calls.h"

#include <stdbool.h>
#include <stddef.h>

/* A ring: cold records that a thread with an event loop asks for, read by that
 * thread without waiting for them, where the store can do that. Of the thread
 * that opened it: all calls come from there, and struct store_call's ring is of
 * the thread that calls. A call of which the ring reads a block is answered in
 * store_ring_reap, or on some other thread as ever. */
struct store_ring_calls {
    void (*close)(struct store_ring *ring);
    int (*poll)(const struct store_ring *ring);
    bool (*submit)(struct store_ring *ring);
    void (*reap)(struct store_ring *ring);
};

/* What every implementation begins with. */
struct store_ring {
    const struct store_ring_calls *calls;
};

/* *out is the caller's, and the store must outlive it. 0, or ERR_NOT_FOUND
 * where there is none: calls go without, as well. */
static inline int
store_ring_open(struct store *store, struct store_ring **out)
{
    *out = NULL;
    return store->calls->open_ring == NULL
        ? ERR_NOT_FOUND
        : store->calls->open_ring(store, out);
}

/* No call with it may be waiting. NULL in it is fine. */
static inline void
store_ring_close(struct store_ring **ring)
{
    if (*ring != NULL) {
        (*ring)->calls->close(*ring);
        *ring = NULL;
    }
}

/* The descriptor that can be read, as poll says, while store_ring_reap has
 * something to do. */
static inline int
store_ring_fd(const struct store_ring *ring)
{
    return ring->calls->poll(ring);
}

/* Begins reads of the calls since, a bounded number; before the thread waits
 * for anything. True where others are left: then it must not wait. Need not be
 * an online reader. */
static inline bool
store_ring_submit(struct store_ring *ring)
{
    return ring->calls->submit(ring);
}

/* Answers some of what has come, a bounded number of blocks; calls done_fn of
 * calls, maybe those of other threads, too. Need not be an online reader. */
static inline void
store_ring_reap(struct store_ring *ring)
{
    ring->calls->reap(ring);
}

#endif
