/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_CHANGE_STORE_H
#define ENGINE_CHANGE_STORE_H

#include "engine/engine_priv.h"

/* What the files that make changes share. Under the shard's lock. */

static inline bool
codes_are_same(const uint64_t *a, const uint64_t *b)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < SCHEMA_COLUMNS_MAX; i++) {
        any |= a[i] ^ b[i];
    }
    return any == 0;
}

/* The codes of some columns. */
static inline void
codes_copy(uint64_t *to, const uint64_t *from, uint32_t columns)
{
    for (; columns != 0; columns &= columns - 1) {
        unsigned column = (unsigned)__builtin_ctz(columns);
        to[column] = from[column];
    }
}

/* Where what is changed came from. */
enum origin {
    ORIGIN_HERE,    /* the engine; or there was nothing */
    ORIGIN_BASE,    /* the segment, as a change brought it */
    ORIGIN_STAY,    /* the same, and it is to be here afterwards */
    ORIGIN_LOADING, /* it counts as default, and is to be here afterwards */
    ORIGIN_UNKNOWN  /* the segment, and no change brought it */
};

static inline bool
origin_is_to_stay(enum origin origin)
{
    return origin == ORIGIN_LOADING || origin == ORIGIN_STAY;
}

/* The record of a row that is not here, for changes, those of mask. */
enum origin change__find_absent(const struct ranges *ranges,
    const struct view *view, uint64_t row, const struct change *change,
    uint64_t mask, uint64_t *code);

/* True where a base (NULL: none) is of that id and of the version that covers
 * it; and then its codes, by slot. */
bool change__take_base(const struct view *view, const struct engine_base *base,
    uint64_t id, uint64_t version, uint64_t *code);

/* Stores what a look (ranges_seek) found and changes have changed in some
 * columns; 0, or why not. *code is that of the whole record afterwards. */
int change__store(struct counter *counter, struct ranges *ranges,
    struct ranges_look *look, uint32_t columns, uint64_t *code, uint64_t id,
    enum origin origin);

#endif
