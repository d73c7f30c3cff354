/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the engine: an account, and what waits for readers.
 *
 * Small blocks are pieces too: tables, stashes and directories come and go all
 * day in many sizes, which leaves holes in a heap. As pieces, their heads lie
 * close together and on large pages.
 *
 * Account: used_bytes is the sum of all pieces and blocks handed out and not
 * yet given back, garbage included. A piece counts its size; a larger block
 * counts what glibc's malloc takes for it (heap_bytes; other heaps differ by a
 * few bytes, and a block that is mapped on its own by a part of a page). The
 * account is raised before the memory is asked for and lowered after it was
 * given back, so the memory held is never more, and the limit never passed. A
 * take that finds no memory lowers it again; meanwhile another one may be
 * refused that would just have fitted.
 *
 * Garbage: each piece of garbage has its own grace period, begun under the lock
 * when it is retired. So the list, in order of retirement, is in order of
 * targets, and what may be freed is always its front.
 *
 * Invariants: targets rise along the list; garbage_bytes is the sum of bytes
 * over it. free_fn is called without the pool's lock, because it gives memory
 * back and may retire more.
 *
 * What can go wrong: a reader that stays online and says nothing keeps all
 * garbage, which fills the budget; pool_drain then does not return. */
#include "engine/pool.h"

#include "base/assert.h"
#include "base/err.h"

#include <stdbool.h>
#include <string.h>

enum {
    UPDATE_SHARE = 20, /* the reserve of POOL_UPDATE: a 20th of the limit */
    /* the most of it that new records may use against garbage */
    GARBAGE_SHARE = 2 * UPDATE_SHARE,
    /* glibc: a size word a block, multiples of 16, 32 at least */
    HEAP_HEAD_BYTES = 8,
    HEAP_STEP_BYTES = 16,
    HEAP_BLOCK_BYTES_MIN = 32
};

static size_t
piece_bytes(unsigned class_)
{
    ASSERT(class_ < ARENA_CLASSES);
    return (size_t)ARENA_PIECE_BYTES_MIN << class_;
}

/* What the heap takes for a block. */
static size_t
heap_bytes(size_t bytes)
{
    size_t all;

    ASSERT(bytes > 0);
    ASSERT(bytes <= SIZE_MAX - HEAP_HEAD_BYTES - HEAP_STEP_BYTES);
    all = (bytes + HEAP_HEAD_BYTES + HEAP_STEP_BYTES - 1) / HEAP_STEP_BYTES *
        HEAP_STEP_BYTES;
    return all < HEAP_BLOCK_BYTES_MIN ? HEAP_BLOCK_BYTES_MIN : all;
}

/* The account. */

/* What used_bytes may become. Garbage is in it and soon will not be; that of
 * a reader that stays must not cost updates all of their reserve. */
static uint64_t
most(const struct pool *pool, enum pool_purpose purpose)
{
    uint64_t limit = pool->limit_bytes;
    uint64_t reserve = limit / UPDATE_SHARE;

    if (purpose == POOL_EVICT || pool_is_loading(pool)) {
        return UINT64_MAX;
    }
    if (purpose == POOL_NEW) {
        /* relaxed: a number that orders nothing. It falls before used_bytes
         * does: where the account has not changed since, so much of it is
         * garbage still. */
        reserve =
            atomic_load_explicit(&pool->garbage_bytes, memory_order_relaxed);
        if (reserve > limit / GARBAGE_SHARE) {
            reserve = limit / GARBAGE_SHARE;
        }
    }
    return limit > UINT64_MAX - reserve ? UINT64_MAX : limit + reserve;
}

void
pool_trim(struct pool *pool)
{
    if (pool->arena != NULL) {
        arena_trim(pool->arena);
    }
}

int
pool_has_room(struct pool *pool, size_t bytes, enum pool_purpose purpose)
{
    return pool_used_bytes(pool) + bytes > most(pool, purpose) ? ERR_HOT_FULL
                                                               : 0;
}

/* 0 or ERR_HOT_FULL. */
static int
charge(struct pool *pool, size_t bytes, enum pool_purpose purpose)
{
    /* relaxed, here and below: a number that orders nothing */
    uint64_t used =
        atomic_load_explicit(&pool->used_bytes, memory_order_relaxed);

    do {
        const uint64_t limit = most(pool, purpose);
        const uint64_t all = used + pool_beside_bytes(pool);

        if (all > limit || bytes > limit - all) {
            return ERR_HOT_FULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(&pool->used_bytes, &used,
        used + bytes, memory_order_relaxed, memory_order_relaxed));
    return 0;
}

static void
discharge(struct pool *pool, size_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(
        &pool->used_bytes, bytes, memory_order_relaxed);

    ASSERT(before >= bytes);
}

int
pool_take_piece(
    struct pool *pool, unsigned class_, enum pool_purpose purpose, void **out)
{
    const size_t bytes = piece_bytes(class_);
    int err = charge(pool, bytes, purpose);

    if (err != 0) {
        return err;
    }
    *out = pool->arena != NULL ? arena_take(pool->arena, class_)
                               : alloc_zeroed(pool->alloc, bytes);
    if (*out == NULL) {
        discharge(pool, bytes);
        return ERR_NO_MEMORY;
    }
    return 0;
}

void
pool_give_piece(struct pool *pool, void *piece, unsigned class_)
{
    const size_t bytes = piece_bytes(class_);

    ASSERT(piece != NULL);
    if (pool->arena != NULL) {
        arena_give(pool->arena, piece, class_);
    } else {
        alloc_free(pool->alloc, piece, bytes);
    }
    discharge(pool, bytes);
}

/* True where a block is a piece, and of which class. */
static bool
is_piece(const struct pool *pool, size_t bytes, unsigned *class_)
{
    *class_ = 0;
    while (*class_ < ARENA_CLASSES && piece_bytes(*class_) < bytes) {
        ++*class_;
    }
    return pool->arena != NULL && *class_ < ARENA_CLASSES;
}

size_t
pool_block_bytes(const struct pool *pool, size_t bytes)
{
    unsigned class_;
    return is_piece(pool, bytes, &class_) ? piece_bytes(class_)
                                          : heap_bytes(bytes);
}

int
pool_take_block(
    struct pool *pool, size_t bytes, enum pool_purpose purpose, void **out)
{
    unsigned class_;
    ASSERT(bytes > 0);
    if (is_piece(pool, bytes, &class_)) {
        int err = pool_take_piece(pool, class_, purpose, out);

        if (err == 0) {
            memset(*out, 0, bytes);
        }
        return err;
    }
    int err = charge(pool, heap_bytes(bytes), purpose);

    if (err != 0) {
        return err;
    }
    *out = alloc_zeroed(pool->alloc, bytes);
    if (*out == NULL) {
        discharge(pool, heap_bytes(bytes));
        return ERR_NO_MEMORY;
    }
    return 0;
}

void
pool_give_block(struct pool *pool, void *block, size_t bytes)
{
    unsigned class_;
    ASSERT(block != NULL);
    if (is_piece(pool, bytes, &class_)) {
        pool_give_piece(pool, block, class_);
        return;
    }
    alloc_free(pool->alloc, block, bytes);
    discharge(pool, heap_bytes(bytes));
}

/* Garbage. */

static void
garbage_add(struct pool *pool, uint64_t bytes)
{
    /* relaxed: a number that orders nothing */
    uint64_t sum =
        atomic_load_explicit(&pool->garbage_bytes, memory_order_relaxed);

    mutex_assert_held(&pool->lock);
    ASSERT(bytes <= INT64_MAX || sum >= 0 - bytes);
    atomic_store_explicit(
        &pool->garbage_bytes, sum + bytes, memory_order_relaxed);
}

/* Takes the garbage with targets up to target off the front of the list. */
static struct pool_garbage *
cut_front(struct pool *pool, uint64_t target)
{
    struct pool_garbage *front = pool->first, *end = NULL;

    mutex_assert_held(&pool->lock);
    while (pool->first != NULL && pool->first->epoch <= target) {
        end = pool->first;
        garbage_add(pool, 0 - (uint64_t)end->bytes);
        pool->first = end->next;
        ASSERT(pool->first == NULL || pool->first->epoch >= end->epoch);
    }
    /* relaxed: under the lock */
    ASSERT(pool->first != NULL ||
        atomic_load_explicit(&pool->garbage_bytes, memory_order_relaxed) == 0);
    if (end == NULL) {
        return NULL;
    }
    end->next = NULL;
    return front;
}

static void
free_all(struct pool *pool, struct pool_garbage *garbage)
{
    struct pool_garbage *next;

    mutex_assert_not_held(&pool->lock);
    for (; garbage != NULL; garbage = next) {
        next = garbage->next;
        garbage->free_fn(pool, garbage);
    }
}

/* The target of the newest garbage; 0, which no target is, where there is
 * none. */
static uint64_t
newest_target(const struct pool *pool)
{
    mutex_assert_held(&pool->lock);
    return pool->first == NULL ? 0 : pool->last->epoch;
}

void
pool_retire(struct pool *pool, struct pool_garbage *garbage, size_t bytes,
    void (*free_fn)(struct pool *, struct pool_garbage *))
{
    *garbage = (struct pool_garbage){.bytes = bytes, .free_fn = free_fn};
    if (pool->qsbr == NULL) {
        free_fn(pool, garbage);
        return;
    }
    mutex_lock(&pool->lock);
    garbage->epoch = qsbr_begin(pool->qsbr);
    ASSERT(garbage->epoch != 0 && garbage->epoch >= newest_target(pool));
    if (pool->first == NULL) {
        pool->first = garbage;
    } else {
        pool->last->next = garbage;
    }
    pool->last = garbage;
    garbage_add(pool, bytes);
    mutex_unlock(&pool->lock);
}

/* The newest target that is over; 0: none. Mostly all are or none is. */
static uint64_t
target_over(struct pool *pool)
{
    uint64_t over = newest_target(pool);

    if (over == 0 || qsbr_is_over(pool->qsbr, over)) {
        return over;
    }
    over = 0;
    for (const struct pool_garbage *garbage = pool->first;
         garbage->next != NULL && qsbr_is_over(pool->qsbr, garbage->epoch);
         garbage = garbage->next) {
        over = garbage->epoch;
    }
    return over;
}

void
pool_reclaim(struct pool *pool)
{
    struct pool_garbage *front;

    mutex_lock(&pool->lock);
    front = cut_front(pool, target_over(pool));
    mutex_unlock(&pool->lock);
    free_all(pool, front);
}

void
pool_drain(struct pool *pool)
{
    struct pool_garbage *front;
    uint64_t target;

    mutex_lock(&pool->lock);
    target = newest_target(pool);
    mutex_unlock(&pool->lock);
    if (target == 0) {
        return;
    }
    qsbr_wait(pool->qsbr);
    /* A grace period that began later is over, so those up to target are,
     * and are not asked for again: see qsbr.c. */
    mutex_lock(&pool->lock);
    front = cut_front(pool, target);
    mutex_unlock(&pool->lock);
    free_all(pool, front);
}

void
pool_drain_excess(struct pool *pool)
{
    if (pool_garbage_bytes(pool) > pool->limit_bytes / GARBAGE_SHARE) {
        pool_drain(pool);
    }
}

uint64_t
pool_garbage_bytes(struct pool *pool)
{
    /* relaxed: a number that orders nothing */
    return atomic_load_explicit(&pool->garbage_bytes, memory_order_relaxed);
}

int
pool_init(struct pool *pool, const struct alloc *alloc, struct qsbr *qsbr,
    uint64_t limit_bytes)
{
    *pool = (struct pool){
        .alloc = alloc, .qsbr = qsbr, .limit_bytes = limit_bytes};
    atomic_init(&pool->used_bytes, 0);
    atomic_init(&pool->garbage_bytes, 0);
    if (alloc == NULL) {
        pool->arena = arena_create(NULL);
        if (pool->arena == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    mutex_init(&pool->lock);
    return 0;
}

void
pool_fini(struct pool *pool)
{
    struct pool_garbage *all;

    do { /* what is freed may retire more */
        mutex_lock(&pool->lock);
        all = cut_front(pool, UINT64_MAX);
        mutex_unlock(&pool->lock);
        free_all(pool, all);
    } while (all != NULL);
    ASSERT(pool_garbage_bytes(pool) == 0);
    /* relaxed: no other thread is left */
    ASSERT(atomic_load_explicit(&pool->used_bytes, memory_order_relaxed) == 0);
    arena_destroy(&pool->arena);
    mutex_fini(&pool->lock);
}
