/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STORE_STORE_SEEN_H
#define STORE_STORE_SEEN_H

#include "store/store.h"

/* The call of store/call.h about what a read may have seen. */

static inline uint64_t
store_seen(struct store *store, const struct cell_key *key, uint32_t n)
{
    return store->calls->seen(store, key, n);
}

#endif
