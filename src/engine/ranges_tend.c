/* SPDX-License-Identifier: BSD-3-Clause */
/* Background work on tables, and their checks. A step works on one table, or
 * joins two, and takes as long as building one. */
#include "base/assert.h"
#include "engine/plan.h"
#include "engine/ranges_priv.h"
#include "engine/table_each.h"
#include "engine/table_heat.h"

enum {
    STILL_MS = 1000, /* a table that has not changed for so long is packed */
    /* changes of less than 1 in so many bits do not count: a packed table has
     * 2 % to spare, which then last for most of a minute */
    STILL_SHARE = 2048,
    PACKED_SHARE = 32, /* nor, to one that has been packed, those of less */
    AGAIN_MS = 600000  /* unless it was made anew since, so long ago: where as
                       * much goes as comes it would be made anew again soon */
};

/* The index of the first entry that has rows from `row` on. */
static size_t
index_from(const struct directory *directory, uint64_t row)
{
    const struct directory_entry *entry = directory_entries(directory);
    ptrdiff_t before = directory_before(directory, row);
    if (before >= 0 &&
        row - entry[before].base <= perm_mask(entry[before].width)) {
        return (size_t)before;
    }
    return (size_t)(before + 1);
}

struct table *
ranges_from(const struct ranges *ranges, uint64_t row)
{
    const struct directory *directory = ranges__directory(ranges);
    size_t at = directory == NULL ? 0 : index_from(directory, row);
    if (directory == NULL || at == directory_count(directory)) {
        return NULL;
    }
    return directory_entries(directory)[at].table;
}

bool
ranges_drop_columns(
    struct ranges *ranges, uint64_t *row, uint32_t columns, int *err)
{
    struct table *table = ranges_from(ranges, *row);
    table_owner_assert_held(ranges->owner);
    if (table == NULL) {
        return false;
    }
    uint64_t last = table->base + table->mask;
    uint32_t before = table->n_records;
    uint32_t live_before = before - table->n_empty;
    int failed = table_clear(ranges->owner, table, columns, &ranges->cover);
    if (failed != 0) {
        *err = failed;
    }
    ASSERT(table->n_records <= before &&
        ranges->n_records >= before - table->n_records);
    ranges->n_records -= before - table->n_records;
    ranges->n_live -= live_before - (table->n_records - table->n_empty);
    if (table->n_records != before) {
        ranges__after_removal(ranges, table);
    }
    *row = last + 1;
    return last != UINT64_MAX;
}

static bool
differs(uint64_t a, uint64_t b, uint64_t share)
{
    uint64_t distance = a > b ? a - b : b - a;
    return distance > b / share;
}

/* Packs a table that stands still; true where it did. Of large records lines
 * may have too few to be filled as far: then it stays as it is. */
static bool
pack(struct ranges *ranges, struct table *table, uint64_t now_ms)
{
    uint64_t bits = table->used_bits;
    if (table->seen_ms == 0 || differs(bits, table->seen_bits, STILL_SHARE)) {
        table->seen_bits = bits;
        table->seen_ms = now_ms;
        return false;
    }
    uint64_t still_ms = now_ms - table->seen_ms;
    if (still_ms < STILL_MS ||
        (still_ms < AGAIN_MS &&
            !differs(bits, table->packed_bits, PACKED_SHARE)) ||
        !ranges__is_loose(table, RANGES_LOAD_PACK, BUILD_LOAD_TIGHT)) {
        return false;
    }
    struct build build =
        ranges__build(ranges, table, POOL_UPDATE, BUILD_LOAD_TIGHT);
    build.n_lines_max = table->n_lines - 1;
    struct directory *directory = ranges__directory(ranges);
    size_t at = (size_t)directory_before(directory, table->base);
    table->packed_bits = bits;
    table->seen_ms = now_ms; /* should it be in vain */
    if (ranges__rebuild(ranges, table, &build) != 0) {
        return false;
    }
    struct table *made = directory_entries(directory)[at].table;
    made->seen_bits = made->used_bits;
    made->packed_bits = made->used_bits;
    made->seen_ms = now_ms;
    ranges->n_tightened++;
    return true;
}

/* The smallest aligned range around two. */
static unsigned
hull(const struct directory_entry *a, const struct directory_entry *b,
    uint64_t *base)
{
    uint64_t end = b->base + perm_mask(b->width);
    unsigned width = shapes_bits(a->base ^ end);
    *base = a->base & ~perm_mask(width);
    return width;
}

/* True where one of the tables is an overlay and the other is not. They leave
 * memory at different times, and how much each is written is to be known. */
static bool
is_border(const struct ranges *ranges, const struct table *low,
    const struct table *high)
{
    const struct cover_at *cover = &ranges->cover;
    return cover_keeps_any(cover, low->base, low->base + low->mask) !=
        cover_keeps_any(cover, high->base, high->base + high->mask);
}

/* Joins entry `at` with the next, if both are small and cheaper as one. */
static bool
join(struct ranges *ranges, size_t at)
{
    const struct directory *directory = ranges__directory(ranges);
    size_t n = directory_count(directory);
    if (at + 1 >= n) {
        return false;
    }
    const struct directory_entry *entry = directory_entries(directory);
    struct table *low = entry[at].table;
    struct table *high = entry[at + 1].table;
    uint64_t base;
    unsigned width = hull(&entry[at], &entry[at + 1], &base);
    uint64_t sum = (uint64_t)low->n_records + high->n_records;
    uint64_t last = base + perm_mask(width);
    if (sum > ranges->n_records_max / 2 ||
        (at > 0 &&
            entry[at - 1].base + perm_mask(entry[at - 1].width) >= base) ||
        (at + 2 < n && entry[at + 2].base <= last) ||
        plan_bits(sum, width) >= plan_bits(low->n_records, low->width) +
                plan_bits(high->n_records, high->width) ||
        is_border(ranges, low, high)) {
        return false;
    }
    struct build build = ranges__build(ranges, low, POOL_NEW, BUILD_LOAD_GROW);
    struct table *made;
    build.source[1] = high;
    if (build_table(&build, base, width, &made) != 0) {
        return false;
    }
    uint32_t n_let_go =
        ranges__n_let_go((uint32_t)sum, low->n_empty + high->n_empty, made);
    if (ranges__replace(ranges, at, 2, &made, 1, POOL_NEW) != 0) {
        table_destroy(ranges->owner->pool, &made);
        return false;
    }
    ASSERT(ranges->n_records >= n_let_go);
    ranges->n_records -= n_let_go;
    ranges->n_rebuilds++;
    ranges->n_merges++;
    return true;
}

ptrdiff_t
ranges_tend(struct ranges *ranges, ptrdiff_t at, uint64_t now_ms, bool *worked)
{
    const struct directory *directory = ranges__directory(ranges);
    table_owner_assert_held(ranges->owner);
    if (directory == NULL || (size_t)at >= directory_count(directory)) {
        return -1;
    }
    struct table *table = directory_entries(directory)[at].table;
    table_verify_sums(table);
    ASSERT(table->n_records <= ranges->n_records);
    if (table->n_records == 0) {
        size_t n = directory_count(directory);
        ranges__after_removal(ranges, table);
        directory = ranges__directory(ranges);
        return directory == NULL || directory_count(directory) < n ? at
                                                                   : at + 1;
    }
    table_heat_look(table, now_ms);
    if (join(ranges, (size_t)at)) {
        *worked = true;
        return at;
    }
    if (pack(ranges, table, now_ms)) {
        *worked = true;
    }
    return at + 1;
}

void
ranges_verify(const struct ranges *ranges)
{
    const struct directory *directory = ranges__directory(ranges);
    uint64_t n_records = 0;
    table_owner_assert_held(ranges->owner);
    if (directory != NULL) {
        directory_verify(directory);
        const struct directory_entry *entry = directory_entries(directory);
        for (size_t i = 0; i < directory_count(directory); i++) {
            const struct table *table = entry[i].table;
            ASSERT(table->base == entry[i].base);
            ASSERT(table->width == entry[i].width);
            ASSERT(directory_find(directory, table->base) == table);
            ASSERT(
                directory_find(directory, table->base + table->mask) == table);
            table_verify(ranges->owner, table);
            ASSERT(table->n_empty == 0 || ranges->cover.cover != NULL);
            n_records += table->n_records;
        }
    }
    ASSERT(n_records == ranges->n_records);
    ASSERT(!ranges->cover.is_held);
    if (ranges->set != NULL) {
        shapes_verify(&ranges->set->shapes);
    }
}
