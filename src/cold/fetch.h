/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COLD_FETCH_H
#define COLD_FETCH_H

#include "base/clock.h"
#include "base/log.h"
#include "cold/cache.h"
#include "cold/segment.h"

#include <stdatomic.h>

/* Lookups in segments, off the caller's thread where they wait for the disk: a
 * pool of threads, each of which reads one block at a time, or a ring of the
 * calling thread; in front of them a cache of blocks. A block that several
 * lookups ask for at the same time is read once. */

enum {
    FETCH_THREADS_MAX = 256,
    FETCH_THREADS_DEFAULT = 16,
    FETCH_LATENCIES = 32 /* powers of two of microseconds */
};

struct fetch_config {
    unsigned threads;          /* 1..FETCH_THREADS_MAX */
    uint64_t cache_bytes;      /* see cache_create; 0: no cache */
    struct logger *logger;     /* NULL: logs nothing */
    const struct alloc *alloc; /* NULL: the heap */
    const struct clock *clock; /* of what is told; NULL: the system's */
};

enum {
    FETCH_RING_READS = 128, /* of one ring under way; beyond that the pool
                             * reads */
    FETCH_RING_TURN = 16    /* that it begins, or answers, in one call: so that
                             * others have their turn in between */
};

enum { FETCH_CALL_MAGIC = 0x2c94d7a1, FETCH_LOOKUP_MAGIC = 0x67f1508e };

struct fetch;
struct fetch_call;
struct fetch_ring;

/* One id in one segment. */
struct fetch_lookup {
    const struct segment *segment; /* open until the call is answered */
    uint64_t id;
    unsigned columns; /* of the segment's, those that are asked for: bit c is
                       * number c; BLOCK_COLUMNS_ALL */
    /* out: */
    int err;    /* 0; ERR_CORRUPT, ERR_NEWER_FORMAT, ERR_DISK: the block cannot
              * be read, and the next lookup tries again; ERR_NO_MEMORY;
              * ERR_CLOSED: stopping */
    bool found; /* whether there is a record; false after an error */
    uint64_t code[SCHEMA_COLUMNS_MAX]; /* where found: its numbers in these
                                        * columns, in their places among the
                                        * segment's and in the form of
                                        * segment_write_add */
    /* fetch's own while the call is not answered: */
    uint32_t magic; /* FETCH_LOOKUP_MAGIC, while it waits for its block */
    struct cache_key key;
    struct fetch_call *call;
    struct fetch_lookup *next; /* waits for the same block */
    struct fetch_lookup
        *behind; /* of those who stand for a block: the next one
                                  * in the queue */
    struct fetch_lookup *beside; /* and in the bucket */
};

/* Any number of lookups. The caller's; it and they must stay until it is
 * answered, and may be used again or freed then, also in done_fn. */
struct fetch_call {
    struct fetch_lookup *lookup;
    size_t n;
    void (*done_fn)(struct fetch_call *call); /* on a thread of the pool, or
                                               * in fetch_ring_reap on that of
                                               * some ring; must not block */
    void *owner;                              /* the caller's */
    struct fetch_ring *ring; /* the calling thread's; NULL: none */
    /* fetch's own: */
    uint32_t magic; /* FETCH_CALL_MAGIC, while it waits */
    _Atomic size_t n_waiting;
};

/* Starts the threads. Config is copied. 0, ERR_NO_MEMORY, ERR_NO_THREAD. */
int fetch_start(const struct fetch_config *config, struct fetch **out);

/* Does the lookups. What needs no disk is answered on the calling thread: ids
 * that no block of the segment can have, and those of blocks in the cache. Each
 * block that is missing is read once, all of them at the same time as far as
 * there are threads. True where all lookups are answered: done_fn is not called
 * then. Else it is called once, when the last block has come, which may be
 * before fetch_begin returns.
 *
 * The queue has no limit of its own and takes no memory: its links are in the
 * lookups. It is as long as callers make it, who have a bounded number of calls
 * under way. Any thread. */
bool fetch_begin(struct fetch *fetch, struct fetch_call *call);

/* Drops what the cache has of a segment that is to be closed; see cache_forget.
 * Any thread. */
void fetch_forget(struct fetch *fetch, const struct segment *segment);

/* Waits for the reads under way, answers calls that are in the queue with
 * ERR_CLOSED, ends the threads and frees all; NULL in it is fine. What begins
 * meanwhile and is not in the cache is answered with ERR_CLOSED; when it has
 * ended no thread may be in another call. */
void fetch_stop(struct fetch **fetch);

/* Counts a block that somebody else has read in vain, with that error, among
 * read_failures or damaged. Any thread. */
void fetch_count_fault(struct fetch *fetch, int err);

/* A ring: blocks that a thread with an event loop asks for are read without
 * going to another thread and back. It is of the thread that made it; all calls
 * come from there. disk is the ring of the segments' files, which may have
 * FETCH_RING_READS reads under way; *out owns it. 0 or ERR_NO_MEMORY (disk is
 * the caller's then). */
int fetch_ring_create(
    struct fetch *fetch, struct disk_ring *disk, struct fetch_ring **out);

/* No call with the ring may be waiting. NULL in it is fine. Before
 * fetch_stop. */
void fetch_ring_destroy(struct fetch_ring **ring);

/* Can be read, as poll says, while fetch_ring_reap has something to do. */
int fetch_ring_fd(const struct fetch_ring *ring);

/* Begins FETCH_RING_TURN, at most, of the reads that fetch_begin has left to
 * the ring; to be called before the thread waits for anything. True where
 * others are left, so that it must not wait. One system call, or none. */
bool fetch_ring_submit(struct fetch_ring *ring);

/* Answers FETCH_RING_TURN of the reads that have ended, at most; half of those
 * under way, at most, where these are as many as FETCH_RING_TURN and waited for
 * the disk. Calls done_fn of calls, those of other threads included. */
void fetch_ring_reap(struct fetch_ring *ring);

/* Figures of one moment. */
#define FETCH_STATS(X)                                                        \
    X(lookups, "ids looked for")                                              \
    X(gaps, "of these, those that no block can have")                         \
    X(hits, "of these, those whose block was in the cache")                   \
    X(joins, "of these, those whose block another one had asked for")         \
    X(reads, "blocks read, or tried to")                                      \
    X(read_bytes, "bytes read")                                               \
    X(read_failures, "reads that the disk refused, those of seals too")       \
    X(damaged, "blocks that are not what was written, seals' too")            \
    X(ring_reads, "of these, those through io_urings")                        \
    X(direct_reads, "of these, those past the page cache")                    \
    X(ring_failures, "reads that an io_uring left to a thread")               \
    X(rings, "io_urings in use")                                              \
    X(uncached, "blocks read that the cache did not take")                    \
    X(queued, "blocks that wait for a thread now")                            \
    X(queued_max, "most that have waited at a time")                          \
    X(reading, "blocks that are being read now")

struct fetch_stats {
#define X(name, text) uint64_t name;
    FETCH_STATS(X)
#undef X
    uint64_t read_us[FETCH_LATENCIES]; /* reads that took < 2^i us, the last
                                        * one also longer ones */
    struct cache_stats cache;
};

void fetch_stats(struct fetch *fetch, struct fetch_stats *out);

#endif
