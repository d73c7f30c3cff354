/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_CLASSES_H
#define ITEMS_CLASSES_H

#include "items/items.h"

/* Figures by size class. The classes are memcached's: items have none here,
 * they are only counted by the class they would have there. Inside src/items
 * only. */

enum {
    ITEMS__CLASS_SHARDS = 8,
    ITEMS__CLASS_ALIGN = 8,         /* of a chunk */
    ITEMS__CLASS_SMALL_BYTES = 1024 /* what there is a table for */
};

struct classes {
    uint32_t chunk_bytes[ITEMS_CLASSES]; /* read-only; 0: no such class */
    unsigned last;                       /* read-only: the largest class */
    /* read-only: of what has up to so many times ITEMS__CLASS_ALIGN bytes */
    uint8_t of_small[ITEMS__CLASS_SMALL_BYTES / ITEMS__CLASS_ALIGN + 1];
    /* Sums modulo 2^64; one shard alone may be "negative". Any thread. */
    struct class_sums {
#define X(name, text) _Atomic uint64_t name;
        ITEMS_CLASS_HELD(X)
        ITEMS_CLASS_SUMS(X)
#undef X
    } sums[ITEMS__CLASS_SHARDS][ITEMS_CLASSES];
};

void items__classes_init(struct classes *classes, uint64_t item_bytes_max);

/* What memcached would ask of its allocator for such an item. */
uint64_t items__classes_bytes(size_t key_len, size_t value_len);

unsigned items__classes_of(
    const struct classes *classes, size_t key_len, size_t value_len);

/* Adds up the shards; oldest_s stays what it is. */
void items__classes_sum(
    struct classes *classes, struct items_class out[ITEMS_CLASSES]);

/* Takes the sums since the start back to 0. */
void items__classes_reset(struct classes *classes);

#endif
