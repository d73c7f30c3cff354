/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_PRODUCER_H
#define STORE_STORE_PRODUCER_H

#include "store/store.h"

/* The calls of store/call.h that are about who numbers its changes. */

static inline int
store_producer(struct store *store, const char *name, size_t len,
    struct store_producer *out)
{
    return store->calls->producer(store, name, len, out);
}

static inline void
store_producer_stats(struct store *store,
    void (*stat_fn)(void *context, const char *name, const char *value),
    void *context)
{
    store->calls->producer_stats(store, stat_fn, context);
}

#endif
