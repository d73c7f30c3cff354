/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_WITNESS_H
#define ITEMS_WITNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A witness hears of items with keys of clients that are given up for
 * room. */

struct items; /* items/items.h */

struct items_evicted {
    const char *key;
    size_t key_len, value_len;
    unsigned class_;
    int64_t ttl_s;   /* -1: it did not expire */
    uint64_t idle_s; /* since it was used */
    bool was_fetched;
};

/* A seam. */
struct items_witness {
    /* Under a stripe's lock: must be quick and must not call the cache. Any
     * thread. */
    void (*evicted_fn)(
        struct items_witness *witness, const struct items_evicted *item);
};

/* From now on it is told; NULL: nobody. It outlives the cache. Before threads
 * use it. */
void items_set_witness(struct items *items, struct items_witness *witness);

#endif
