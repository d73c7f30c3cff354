/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ITEMS_FIGURES_H
#define ITEMS_FIGURES_H

#include "items/items.h"

/* What is told of single items and of items by size. Any thread. */

/* Size classes as memcached's slab classes are cut: chunks of 96 bytes and
 * each next one a quarter larger, in steps of 8; class 0 is not used. */
enum { ITEMS_CLASSES = 64 };

/* Of a size class: what is held now, then sums since the start. */
#define ITEMS_CLASS_STATS(X)                                                  \
    X(chunk_size, "bytes of the largest item of the class")                   \
    X(number, "items held now")                                               \
    X(mem_requested, "bytes of these as memcached counts them")               \
    X(age, "seconds since the least recently used was used")                  \
    X(evicted, "live items given up for room")                                \
    X(evicted_nonzero, "of these, with an expiry")                            \
    X(evicted_time, "seconds since the last one evicted had been used")       \
    X(outofmemory, "stores that failed for room")                             \
    X(reclaimed, "expired items given up")                                    \
    X(expired_unfetched, "of these, never read")                              \
    X(evicted_unfetched, "of those evicted, never read")                      \
    X(evicted_active, "of those evicted, read not long before")               \
    X(crawler_reclaimed, "expired items given up in the background")          \
    X(crawler_items_checked, "items looked at there")                         \
    X(get_hits, "gets that found one")                                        \
    X(cmd_set, "items stored")                                                \
    X(delete_hits, "items deleted")                                           \
    X(incr_hits, "items incremented")                                         \
    X(decr_hits, "items decremented")                                         \
    X(cas_hits, "items stored by cas")                                        \
    X(cas_badval, "cas with another unique")                                  \
    X(touch_hits, "items touched")

struct items_class {
#define X(name, text) uint64_t name;
    ITEMS_CLASS_STATS(X)
#undef X
};

/* An item as it is shown; valid during the call. */
struct items_seen {
    const char *key;
    size_t key_len;
    uint32_t value_len;
    uint32_t flags;
    uint64_t cas;
    uint64_t expiry_s;   /* ITEMS_NEVER or a time */
    uint64_t used_s;     /* when it was last read or stored */
    uint64_t bytes;      /* as memcached counts them */
    unsigned size_class; /* 1..ITEMS_CLASSES - 1 */
    bool was_fetched;
};

/* Where an enumeration is; all zero at its beginning. */
struct items_cursor {
    uint64_t at;
    bool has_ended;
};

/* Calls each_fn for some live items from *cursor on, about n_max, and moves it
 * on. An item that lives throughout an enumeration is not missed. each_fn is
 * called with a lock held: it may not call back. */
void items_each(struct items *items, struct items_cursor *cursor,
    unsigned n_max, uint64_t now_s,
    void (*each_fn)(void *context, const struct items_seen *seen),
    void *context);

/* The figures of all classes. */
void items_classes(struct items *items, uint64_t now_s,
    struct items_class out[ITEMS_CLASSES]);

#endif
