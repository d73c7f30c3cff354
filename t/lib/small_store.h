/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIB_SMALL_STORE_H
#define LIB_SMALL_STORE_H

#include "base/assert.h"
#include "store/store.h"

/* A real store for one test; the same calls give the same answers in each of
 * them. */

enum {
    SMALL_STORE_SHARDS = 4,
    SMALL_STORE_ITEM_BYTES = 1 << 20,
    SMALL_STORE_BYTES = 64 << 20,
    SMALL_STORE_SEED = 1,
    SMALL_STORE_HOT_BYTES = 64 << 20
};

/* The caller's; alloc is for its items, NULL the heap. */
static inline struct store *
small_store(const struct alloc *alloc)
{
    struct store_config config = {.shards = SMALL_STORE_SHARDS,
        .hot_bytes = SMALL_STORE_HOT_BYTES,
        .items = {.limit_bytes = SMALL_STORE_BYTES,
            .item_bytes_max = SMALL_STORE_ITEM_BYTES,
            .seed = SMALL_STORE_SEED,
            .alloc = alloc}};
    struct store *store;
    int err = store_create(&config, &store);
    ASSERT(err == 0);
    return store;
}

#endif
