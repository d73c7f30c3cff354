/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads records range by range: builds tables of them, instead of filling
 * tables one record at a time.
 *
 * An aligned range becomes one table, however few records it has, so that
 * images of ranges find the same ranges again. Any other range is cut into
 * aligned pieces. Records that cannot be a table of their own (in a piece of
 * one row, or in rows that a table covers already) are stored one by one.
 *
 * While less than a quarter of the memory is used, tables get room to grow; the
 * others are packed, so that all that was there before finds room again. What
 * the loose ones take more is then at most a sixth of that quarter, within the
 * allowance for what exists (POOL_UPDATE). */
#include "base/assert.h"
#include "engine/ranges.h"
#include "engine/ranges_priv.h"
#include "engine/stays.h"

#include <string.h>

enum {
    CROWDED_TIMES = 2 /* n_records_max: more records are cut */
};

/* Those from first to last. */
static struct carry_rows
between(const struct carry_rows *rows, uint64_t first, uint64_t last)
{
    size_t begin = stays_from(rows, first, 0, rows->n);
    return stays_slice(rows, begin, stays_behind(rows, last, begin));
}

static int
store_each(struct ranges *ranges, const struct carry_rows *rows)
{
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < rows->n; i++) {
        struct ranges_look look;
        if (!carry_codes(rows, i, code)) {
            continue;
        }
        ranges_find(ranges, rows->row[i], &look);
        int err = ranges_store(ranges, &look, code);
        if (err != 0) {
            return err;
        }
    }
    return 0;
}

static int
build(struct ranges *ranges, const struct carry_rows *rows, uint64_t base,
    unsigned width, bool is_clean)
{
    struct pool *pool = ranges->owner->pool;
    const struct directory *directory = ranges__directory(ranges);
    bool is_loose =
        pool_used_bytes(pool) < pool->limit_bytes / RANGES_LOOSE_SHARE;
    struct build build = ranges__build(ranges, NULL, POOL_UPDATE,
        is_loose ? BUILD_LOAD_GROW : BUILD_LOAD_TIGHT);
    struct table *made;
    build.rows = rows;
    int err = build_table(&build, base, width, &made);
    if (err != 0) {
        return err;
    }
    if (made->n_records == 0) {
        table_destroy(pool, &made);
        return 0;
    }
    size_t at = directory == NULL
        ? 0
        : (size_t)(directory_before(directory, base) + 1);
    err = ranges__replace(ranges, at, 0, &made, 1, POOL_UPDATE);
    if (err != 0) {
        table_destroy(pool, &made);
        return err;
    }
    made->is_clean = is_clean;
    made->is_quiet = true; /* when it was written last, nobody knows */
    ASSERT(made->n_records <= rows->n);
    ranges->n_records += made->n_records;
    return 0;
}

/* An aligned piece, and its records. */
static int
load_piece(struct ranges *ranges, const struct carry_rows *rows, uint64_t base,
    unsigned width, bool is_clean)
{
    const struct table *next = ranges_from(ranges, base);
    if (rows->n == 0) {
        return 0;
    }
    uint64_t last = base + (width == 0 ? 0 : perm_mask(width));
    if (width == 0 || (next != NULL && next->base <= last)) {
        return store_each(ranges, rows);
    }
    if (width == 1 ||
        rows->n <= (uint64_t)ranges->n_records_max * CROWDED_TIMES) {
        return build(ranges, rows, base, width, is_clean);
    }
    uint64_t half = base + (perm_mask(width) >> 1) + 1;
    struct carry_rows low = between(rows, base, half - 1);
    struct carry_rows high = between(rows, half, last);
    int err = load_piece(ranges, &low, base, width - 1, false);
    return err != 0 ? err : load_piece(ranges, &high, half, width - 1, false);
}

/* The width of the widest aligned range that begins with first and ends with
 * last or before. */
static unsigned
width_at(uint64_t first, uint64_t last)
{
    unsigned width = first == 0 ? 64 : (unsigned)__builtin_ctzll(first);
    while (width > 0 && perm_mask(width) > last - first) {
        width--;
    }
    return width;
}

int
ranges_load(struct ranges *ranges, const struct carry_rows *rows,
    uint64_t first, uint64_t last)
{
    uint64_t most = perm_mask(ranges->row_bits);
    table_owner_assert_held(ranges->owner);
    last = last < most ? last : most;
    bool is_clean = true; /* one piece */
    while (first <= last) {
        unsigned width = width_at(first, last);
        uint64_t end = first + (width == 0 ? 0 : perm_mask(width));
        struct carry_rows part = between(rows, first, end);
        is_clean = is_clean && end == last;
        int err = load_piece(ranges, &part, first, width, is_clean);
        if (err != 0 || end == UINT64_MAX) {
            return err;
        }
        first = end + 1;
        is_clean = false;
    }
    return 0;
}
