/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_SORTED_ARRAY_H
#define ENGINE_SORTED_ARRAY_H

#include "base/assert.h"
#include "engine/pool.h"
#include "engine/sorted.h"

#include <stdatomic.h>

/* An array of the largest members of a record, ascending (sorted.c). What
 * changes one is under the lock of its shard, or nobody else has the array
 * yet. */

enum { SORTED_ROOM_MAX = SORTED_MAX + SORTED_MAX / 4 };

struct sorted_array {
    struct pool_garbage garbage;
    _Atomic uint32_t n_users; /* the entry, and a pin each */
    uint32_t room;            /* of members */
    bool is_cut;              /* there are more, below the first */
    _Atomic uint32_t n;
    uint64_t member[];
};

/* What has become of a member while an array is made. */
struct sorted_note {
    uint64_t member;
    uint32_t place; /* among the notes, as they came */
    bool is_in;
};

struct sorted_notes {
    uint32_t n, room;
    struct sorted_note note[];
};

size_t sorted__bytes(uint32_t room);

/* The room for so many members, and some more; small ones fill a piece of
 * memory. */
uint32_t sorted__room_for(uint32_t n);

/* An array of no members with one user; NULL when memory is out. */
struct sorted_array *sorted__create(struct pool *pool, uint32_t room);

/* One user less: the last one frees it. Any thread. */
void sorted__leave(struct pool *pool, struct sorted_array *array);

/* For who changes it: under the lock, or nobody else has the array. */
static inline uint32_t
sorted__count(const struct sorted_array *array)
{
    /* relaxed: whoever stores it holds the lock */
    return atomic_load_explicit(&array->n, memory_order_relaxed);
}

static inline void
sorted__set_count(struct sorted_array *array, uint32_t n)
{
    ASSERT(n <= array->room);
    /* release: with the members below it */
    atomic_store_explicit(&array->n, n, memory_order_release);
}

/* The first of n members that is not below that one. */
uint32_t sorted__place(const uint64_t *member, uint32_t n, uint64_t wanted);

/* A new array of the old one's members, with that member at a place or without
 * the one that is there; NULL when memory is out. */
struct sorted_array *sorted__remake(struct pool *pool,
    const struct sorted_array *old, uint32_t at, uint64_t member, bool is_in);

/* Puts a member behind the others of an array that nobody else has; where it is
 * full it becomes a larger one, or loses the smallest. 0 or ERR_NO_MEMORY. */
int sorted__append(
    struct pool *pool, struct sorted_array **array, uint64_t member);

/* Puts notes over what is in an array that nobody else has: the last one of a
 * member counts. *array is another one then; with ERR_NO_MEMORY it is void, and
 * still the caller's. */
int sorted__merge(struct pool *pool, struct sorted_notes *notes,
    struct sorted_array **array);

/* Asserts what holds of one. */
void sorted__verify_array(const struct sorted_array *array);

#endif
