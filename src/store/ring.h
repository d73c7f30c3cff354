/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_RING_H
#define STORE_RING_H

#include "store/call.h"

#include <stdbool.h>

/* A ring: cold records that a thread with an event loop asks for, read by that
 * thread without waiting for them, where the kernel has an io_uring. Of the
 * thread that opened it: all calls come from there, and struct store_call's
 * ring is of the thread that calls. A call of which the ring reads a block is
 * answered in store_ring_reap, or on some other thread as ever. */

struct fetch_ring;
struct store;

/* *out is the caller's, and the store must outlive it. 0, or ERR_NOT_FOUND
 * where there is none: calls go without, as well. */
int store_ring_open(struct store *store, struct fetch_ring **out);

/* No call with it may be waiting. NULL in it is fine. */
void store_ring_close(struct fetch_ring **ring);

/* Can be read, as poll says, while store_ring_reap has something to do. */
int store_ring_fd(const struct fetch_ring *ring);

/* Begins reads of the calls since, a bounded number; before the thread waits
 * for anything. True where others are left: then it must not wait. Need not be
 * an online reader. */
bool store_ring_submit(struct fetch_ring *ring);

/* Answers some of what has come, a bounded number of blocks; calls done_fn of
 * calls, maybe those of other threads, too. Need not be an online reader. */
void store_ring_reap(struct fetch_ring *ring);

#endif
