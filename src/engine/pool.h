/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include "base/alloc.h"
#include "base/arena.h"
#include "base/mutex.h"
#include "base/qsbr.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The memory of all tables, stashes and directories: where it comes from, how
 * much it may be, and when what readers may still look at is freed. Any
 * thread may call any function; a pool has its own lock. */

struct pool;

enum pool_purpose {
    POOL_NEW,    /* for a new record: refused above the limit; what waits for
                 * readers does not count up to a 40th of the limit */
    POOL_UPDATE, /* for what exists: may pass the limit by 5 % */
    POOL_EVICT   /* for what takes the place of more: no limit */
};

/* The head of whatever is freed only when no reader can see it any more. */
struct pool_garbage {
    struct pool_garbage *next;
    uint64_t epoch; /* pool's: the target of its grace period */
    size_t bytes;   /* for the sum of what waits */
    void (*free_fn)(struct pool *pool, struct pool_garbage *garbage);
};

struct pool {
    const struct alloc *alloc; /* NULL: arena and heap; else all from it */
    struct arena *arena;       /* owned; NULL where alloc is given */
    struct qsbr *qsbr;         /* NULL: no readers, garbage goes at once */
    uint64_t limit_bytes;      /* read-only */
    const _Atomic uint64_t *beside; /* bytes of others within the same limit;
                                     * NULL: there are none. Set while nothing
                                     * is under way */
    _Atomic bool is_loading;        /* no limit holds */
    _Atomic uint64_t used_bytes;    /* pieces and blocks, garbage included */
    struct mutex lock;              /* what follows: */
    struct pool_garbage *first;     /* oldest; NULL: none waits */
    struct pool_garbage *last;      /* newest, while there is one */
    _Atomic uint64_t garbage_bytes; /* read without the lock too */
};

/* 0 or ERR_NO_MEMORY. */
int pool_init(struct pool *pool, const struct alloc *alloc, struct qsbr *qsbr,
    uint64_t limit_bytes);

/* Frees the garbage (no reader may be left) and asserts that all else has
 * been given back. */
void pool_fini(struct pool *pool);

/* 0 where that many bytes more would be within the limit now, else
 * ERR_HOT_FULL. A guess: others take memory meanwhile. */
int pool_has_room(struct pool *pool, size_t bytes, enum pool_purpose purpose);

/* Bytes that others have within the limit. */
static inline uint64_t
pool_beside_bytes(const struct pool *pool)
{
    /* relaxed, here and below: a number that orders nothing */
    return pool->beside == NULL
        ? 0
        : atomic_load_explicit(pool->beside, memory_order_relaxed);
}

/* Bytes in use now, by others too: a figure of a moment. */
static inline uint64_t
pool_used_bytes(const struct pool *pool)
{
    return atomic_load_explicit(&pool->used_bytes, memory_order_relaxed) +
        pool_beside_bytes(pool);
}

/* See engine_begin_loading. */
static inline bool
pool_is_loading(const struct pool *pool)
{
    /* relaxed: threads that load are started and joined in between */
    return atomic_load_explicit(&pool->is_loading, memory_order_relaxed);
}

/* *out is a piece of 128 << class bytes, contents undefined, aligned to 64
 * bytes where there is an arena and to 16 else. 0, ERR_HOT_FULL (limit) or
 * ERR_NO_MEMORY. */
int pool_take_piece(
    struct pool *pool, unsigned class_, enum pool_purpose purpose, void **out);
void pool_give_piece(struct pool *pool, void *piece, unsigned class_);

/* *out is a block of zero bytes: a piece where it is no larger than one, else
 * from the heap and accounted with an estimate of its overhead. bytes > 0.
 * Errors as above. */
int pool_take_block(
    struct pool *pool, size_t bytes, enum pool_purpose purpose, void **out);
void pool_give_block(struct pool *pool, void *block, size_t bytes);

/* What a block of so many bytes (> 0) is accounted with. */
size_t pool_block_bytes(const struct pool *pool, size_t bytes);

/* Hands over what has just been unpublished; free_fn is called once, on any
 * thread, without locks held but the caller's own, when every reader that was
 * online at this call has been quiescent since. It may be called from within
 * pool_retire when there is no qsbr. */
void pool_retire(struct pool *pool, struct pool_garbage *garbage, size_t bytes,
    void (*free_fn)(struct pool *, struct pool_garbage *));

/* Frees what may be freed now; never waits for a reader. */
void pool_reclaim(struct pool *pool);

/* Waits until all that was retired before the call can be freed and frees it;
 * what another thread has begun to free may not be done yet. The calling
 * thread must not be an online reader, and must hold no lock that one may wait
 * for. */
void pool_drain(struct pool *pool);

/* The same, but only where more waits for readers than new records may pass the
 * limit by: for who takes much in the place of more, time and again, so that
 * what was replaced does not add up. */
void pool_drain_excess(struct pool *pool);

/* Gives free memory back to the system where it can; now and then. */
void pool_trim(struct pool *pool);

/* Bytes that wait for readers. */
uint64_t pool_garbage_bytes(struct pool *pool);

#endif
