/* SPDX-License-Identifier: BSD-3-Clause */
#include "store/ring.h"

#include "base/err.h"
#include "cold/fetch.h"
#include "store/store.h"

int
store_ring_open(struct store *store, struct fetch_ring **out)
{
    *out = NULL;
    return store->calls->open_ring == NULL
        ? ERR_NOT_FOUND
        : store->calls->open_ring(store, out);
}

void
store_ring_close(struct fetch_ring **ring)
{
    fetch_ring_destroy(ring);
}

int
store_ring_fd(const struct fetch_ring *ring)
{
    return fetch_ring_fd(ring);
}

bool
store_ring_submit(struct fetch_ring *ring)
{
    return fetch_ring_submit(ring);
}

void
store_ring_reap(struct fetch_ring *ring)
{
    fetch_ring_reap(ring);
}
