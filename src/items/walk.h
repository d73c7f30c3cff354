/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_WALK_H
#define ITEMS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Walks over all items. Times as in items/items.h. */

struct items; /* items/items.h */
struct item;

/* An item that items_each shows; valid during the call only. */
struct items_seen {
    const char *key;
    size_t key_len;
    const struct item *item;
    uint64_t expiry_s; /* ITEMS_NEVER or a time */
    uint64_t used_s;   /* last read or stored */
    bool was_fetched;
    unsigned class_; /* 1..63 */
    size_t bytes;    /* as in mem_requested */
};

typedef void items_each_fn(void *context, const struct items_seen *seen);

/* Shows live items with keys of clients: calls fn for those of some buckets,
 * about n_max items and as many buckets, with a stripe's lock held, so fn must
 * be quick and must not call the cache. cursor is 0 at first, then what came
 * back; 0 comes back at the end. An item that lives throughout is shown at
 * least once; one that changes, or while the cache grows, perhaps twice. */
uint64_t items_each(struct items *items, uint64_t cursor, unsigned n_max,
    uint64_t now_s, items_each_fn *fn, void *context);

/* Looks at up to about n_max items for expired and flushed ones and gives them
 * up; cleans a little where the memory is above the limit. To be called again
 * and again, by one thread at a time; does nothing where nothing has expired.
 * True if there is more to do now. */
bool items_tend(struct items *items, uint64_t now_s, unsigned n_max);

#endif
