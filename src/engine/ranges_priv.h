/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_RANGES_PRIV_H
#define ENGINE_RANGES_PRIV_H

#include "engine/build.h"
#include "engine/ranges.h"

/* What the files of ranges share. What changes the tables asserts that the
 * shard's lock is held. */

enum {
    RANGES_LOAD_SHRINK = 614,   /* 60 %: below that a table is built smaller */
    RANGES_LOAD_PACK = 970,     /* 94.7 %: one that stands still is packed */
    RANGES_LOAD_PACKED = 955,   /* 93.3 %: one built above that was packed */
    RANGES_HINT_BITS_MAX = 192, /* leaves room for any id */
    RANGES_LOOSE_SHARE = 4 /* of the limit: with less in use, what is loaded
                            * has room to grow */
};

struct directory *ranges__directory(const struct ranges *ranges);

/* Puts made[], which have the records of n_old entries from `at` on, in their
 * place, and retires those tables. One that takes the place of one with the
 * same range counts as changed where that does, all others do. 0,
 * ERR_HOT_FULL, ERR_NO_MEMORY: then nothing has changed. */
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

/* How many records less `made` has than tables with so many: tombstones that
 * need not stay any more. Asserts that no other is missing. */
uint32_t ranges__n_let_go(
    uint32_t n_records, uint32_t n_empty, const struct table *made);

/* Exchanges the directory (NULL: no tables) and retires the old one, but not
 * its tables. */
void ranges__publish(struct ranges *ranges, struct directory *made);

/* Makes a tombstone in a row without a record; without regard to the budget.
 * 0, ERR_NO_MEMORY. */
int ranges__bury(struct ranges *ranges, uint64_t row);

/* Removes the record looked at, if there is one. */
void ranges__remove(struct ranges *ranges, const struct ranges_look *look);

/* Shrinks a table or takes it out, if that is due. */
void ranges__after_removal(struct ranges *ranges, struct table *table);

#endif
