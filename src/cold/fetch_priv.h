/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_FETCH_PRIV_H
#define COLD_FETCH_PRIV_H

#include "base/assert.h"
#include "base/mutex.h"
#include "cold/fetch.h"
#include "cold/warm.h"

#include <pthread.h>

/* What cold/fetch.c and cold/fetch_ring.c share. */

enum {
    FETCH__BUCKETS =
        1 << 10, /* of blocks that are waited for; a power of two */
    FETCH__NS_PER_US = 1000,
    FETCH__MAGIC = 0x19e6c3b8
};

struct fetch__reader;

struct fetch {
    uint32_t magic; /* FETCH__MAGIC */
    struct fetch_config config;
    struct cache *cache;
    /* of callers' threads */
    _Atomic uint64_t lookups, gaps, hits;
    struct mutex lock;   /* all that follows, and links of lookups that wait */
    pthread_cond_t more; /* queue, is_stopping */
    bool is_stopping;
    unsigned idle;                     /* threads that wait for more */
    unsigned called;                   /* of these, those on their way */
    struct fetch_lookup *first, *last; /* the queue, by `behind` */
    struct fetch_lookup *bucket[FETCH__BUCKETS]; /* by `beside` */
    struct fetch_stats stats;                    /* but what others count */
    uint64_t told_ns; /* when damage was last told */
    uint64_t untold;  /* lines left out since */
    /* of fetch_start and fetch_stop */
    unsigned started;
    struct fetch__reader *reader; /* config.threads */
};

/* Who reads blocks and answers: a thread of the pool, or a ring's. */
struct fetch__hand {
    struct fetch *fetch;
    struct block_room room;
};

/* A block that was read. */
struct fetch__came {
    int err;
    struct block block; /* in the reader's bytes */
    struct warm *warm;  /* the same in the cache, pinned; NULL: it is not */
    uint64_t us;        /* that the read took */
    bool is_read;
    bool by_ring;
    bool is_direct; /* past the page cache */
};

static inline void
fetch__lock(struct fetch *fetch)
{
    mutex_lock(&fetch->lock);
}

static inline void
fetch__unlock(struct fetch *fetch)
{
    mutex_unlock(&fetch->lock);
}

/* Has a lookup that stands for a block read by the pool; the caller, who holds
 * the lock, calls threads afterwards, fetch__count_calls of them. */
void fetch__enqueue(struct fetch *fetch, struct fetch_lookup *lookup);

/* How many threads are to be called now. The caller holds the lock. */
unsigned fetch__count_calls(struct fetch *fetch);

/* Calls them. The caller does not hold the lock. */
void fetch__call_threads(struct fetch *fetch, unsigned n);

/* The block of the lookup has been read, or not: came->err, and *fault where it
 * is not 0. Gives it to the cache and says what is wrong with it. */
void fetch__take(struct fetch__hand *hand, const struct fetch_lookup *lookup,
    struct fetch__came *came, const struct segment_fault *fault);

/* And then: answers all that wait for it. */
void fetch__answer(struct fetch__hand *hand, struct fetch_lookup *lookup,
    struct fetch__came *came);

/* Has a ring read the block of a lookup, at its next fetch_ring_submit. False:
 * as many as it takes are under way. The caller holds the lock. */
bool fetch__ring_add(struct fetch_ring *ring, struct fetch_lookup *lookup);

#endif
