/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RANGES_PRIV_H
#define ENGINE_RANGES_PRIV_H

#include "engine/build.h"
#include "engine/ranges.h"

/* What ranges.c and ranges_tend.c share. Under the shard's lock. */

enum {
    RANGES_LOAD_SHRINK = 614,  /* 60 %: below that a table is built smaller */
    RANGES_LOAD_PACK = 955,    /* 93.3 %: one that stands still is packed */
    RANGES_HINT_BITS_MAX = 192 /* leaves room for any id */
};

struct directory *ranges__directory(const struct ranges *ranges);

/* Records that a range is made wide enough for. */
uint32_t ranges__n_fit(const struct ranges *ranges);

/* Puts made[] in the place of n_old entries from `at` on, and retires those
 * tables. 0, ERR_HOT_FULL, ERR_NO_MEMORY: then nothing has changed. */
int ranges__replace(struct ranges *ranges, size_t at, size_t n_old,
    struct table *const *made, size_t n_made, enum pool_purpose purpose);

struct build ranges__build(struct ranges *ranges, const struct table *source,
    enum pool_purpose purpose, int load);

/* Builds a table anew over the same range. Errors as above. */
int ranges__rebuild(
    struct ranges *ranges, struct table *table, const struct build *build);

/* True where a table's load is below `below` and at `load` it would have
 * fewer lines; both in 1/1024. */
bool ranges__is_loose(
    const struct table *table, unsigned below, unsigned load);

/* Shrinks a table or takes it out, if that is due. */
void ranges__after_removal(struct ranges *ranges, struct table *table);

#endif
