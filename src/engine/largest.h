/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LARGEST_H
#define ENGINE_LARGEST_H

#include "engine/engine_priv.h"

/* The largest id of a counter: a maxjump measures new records by it. One number
 * for all shards; any thread. For the files of this layer. */

/* True where any counter has a maxjump. */
static inline bool
engine__has_guard(const struct engine *engine)
{
    /* relaxed: whoever changes such a counter has its name from a schema that
     * was published later */
    return atomic_load_explicit(&engine->n_guarded, memory_order_relaxed) != 0;
}

/* An id has a record, or is to have one. Kept without a maxjump too: a counter
 * is loaded without its own. */
static inline void
counter__raise(struct counter *counter, uint64_t id)
{
    /* relaxed: a guard against strays, not an order between threads */
    uint64_t largest =
        atomic_load_explicit(&counter->largest_id, memory_order_relaxed);
    if (id <= largest &&
        atomic_load_explicit(&counter->has_largest, memory_order_relaxed)) {
        return;
    }
    while (id > largest &&
        !atomic_compare_exchange_weak_explicit(&counter->largest_id, &largest,
            id, memory_order_relaxed, memory_order_relaxed)) {
    }
    /* release: who sees it true sees an id in largest_id */
    atomic_store_explicit(&counter->has_largest, true, memory_order_release);
}

/* True where no record of that id has ever been there. */
static inline bool
counter__is_above(const struct counter *counter, uint64_t id)
{
    /* acquire: an id is in largest_id where this is true */
    return !atomic_load_explicit(
               &counter->has_largest, memory_order_acquire) ||
        /* relaxed: a guard against strays, not an order between threads */
        id > atomic_load_explicit(&counter->largest_id, memory_order_relaxed);
}

/* True where the guard keeps it out. */
static inline bool
counter__is_beyond(
    const struct counter *counter, const struct view *view, uint64_t id)
{
    /* acquire, relaxed: as above */
    if (!atomic_load_explicit(&counter->has_largest, memory_order_acquire)) {
        return false;
    }
    uint64_t largest =
        atomic_load_explicit(&counter->largest_id, memory_order_relaxed);
    return id > largest && id - largest > view->max_jump;
}

#endif
