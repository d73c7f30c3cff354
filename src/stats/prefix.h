/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STATS_PREFIX_H
#define STATS_PREFIX_H

#include "base/mutex.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What `stats detail` counts: gets, hits, sets and deletes of keys by what
 * stands before their first delimiter. Off, as it is at first, it costs a
 * look at one flag a key. */

enum {
    PREFIX_MAX = 4096,      /* prefixes that are counted; others are not */
    PREFIX_KEY_BYTES = 250, /* of a longer key nothing is counted */
    PREFIX_CHAINS = 1024
};

/* One table for it all: the row, what counts in it. */
#define PREFIX_COUNTS(X)                                                      \
    X(get, "keys asked for")                                                  \
    X(hit, "of these, found")                                                 \
    X(set, "keys that were to be stored")                                     \
    X(del, "keys that were to be deleted")

struct prefix_counts {
#define X(name, text) uint64_t name;
    PREFIX_COUNTS(X)
#undef X
};

struct prefix; /* one of them */

struct prefixes {
    _Atomic bool is_on; /* written by prefixes_switch, read by any thread */
    char delimiter;     /* read-only */
    struct mutex lock;
    struct prefix *chain[PREFIX_CHAINS]; /* by hash of the name; under lock */
    unsigned n;                          /* prefixes; under lock */
};

/* An empty table, switched on or off. */
void prefixes_init(struct prefixes *prefixes, char delimiter, bool is_on);
void prefixes_fini(struct prefixes *prefixes);

/* Begins or ends counting; what has been counted stays. Any thread. */
void prefixes_switch(struct prefixes *prefixes, bool is_on);

/* Forgets all that has been counted. Any thread. */
void prefixes_clear(struct prefixes *prefixes);

/* True while keys are to be counted. Any thread. */
static inline bool
prefixes_are_on(const struct prefixes *prefixes)
{
    /* relaxed: a switch may take effect a key later */
    return atomic_load_explicit(&prefixes->is_on, memory_order_relaxed);
}

/* Adds counts to the prefix of key[0..len). Nothing is counted of a key
 * without delimiter, of a further prefix than PREFIX_MAX, and where memory is
 * out. Takes a lock; any thread. */
void prefixes_add(struct prefixes *prefixes, const char *key, size_t len,
    const struct prefix_counts *counts);

/* Calls each_fn for each prefix, in no order, with the lock held: it may not
 * call back. name has len bytes. Any thread. */
void prefixes_each(struct prefixes *prefixes,
    void (*each_fn)(void *context, const char *name, size_t len,
        const struct prefix_counts *counts),
    void *context);

#endif
