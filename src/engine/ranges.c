/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of one counter in one shard.
 *
 * Tables cover aligned ranges that do not overlap; a row that no table covers
 * has no record. A new row beyond them gets a table, as wide as the density of
 * its nearest neighbour asks for. A full table is built anew, larger, with new
 * shapes. Each time it has doubled, its range is planned again (plan.h); when
 * it has too many records, it is split. New tables are made aside and published
 * by one pointer, in the directory's place for the old one or with a new
 * directory. The old ones are retired.
 *
 * Invariant: n_records is the sum over all tables. Tables that take the place
 * of others have their records, but for tombstones that need not stay.
 *
 * What can go wrong: memory. Then the new tables are given up, and all stays as
 * it was. The caller gets an error only if something was to be stored. */
#include "engine/ranges.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/build.h"
#include "engine/carry.h"
#include "engine/hook.h"
#include "engine/plan.h"
#include "engine/ranges_priv.h"
#include "engine/reach.h"
#include "engine/table_change.h"
#include "engine/table_place.h"

#include <string.h>

enum {
    STORE_TRIES = 16,
    PLAN_RECORDS = 128, /* a table's range is first thought over then */
    SAMPLE_ROWS = 4096, /* rows that a plan is made of */
    MISSED_ROWS = 1024, /* and those that it left out */
    ROWS_MAX = SAMPLE_ROWS + 1 + MISSED_ROWS, /* and the new one */
    PLAN_ROUNDS = 8,
    RECORD_BYTES_USUAL = 8, /* a table of wider records has fewer of them */
    SPLIT_RECORDS_MIN = 32,
    MANY_TABLES = 16,       /* of which the newest is a small part */
    NEIGHBOUR_RECORDS = 64, /* fewer say nothing of the density */
    STEADY_RECORDS = 1024,  /* of fewer, chance alone makes as many more */
    GROWN_SHARE = 24 /* more bits than it was built with: a table grows */
};

struct directory *
ranges__directory(const struct ranges *ranges)
{
    /* relaxed: stored under the caller's lock */
    return atomic_load_explicit(&ranges->directory, memory_order_relaxed);
}

/* Records that a range is made wide enough for. */
static uint32_t
n_fit(const struct ranges *ranges)
{
    return ranges->n_records_max / 4 * 3;
}

static size_t
count_entries(const struct ranges *ranges)
{
    const struct directory *directory = ranges__directory(ranges);
    return directory == NULL ? 0 : directory_count(directory);
}

/* Some table is not what a row's table was: who has found one without the lock
 * is told by this number. */
static void
count_exchange(struct ranges *ranges)
{
    struct stripes *stripes = ranges->owner->stripes;
    if (stripes != NULL) {
        /* relaxed: under the lock. release: who sees it goes up sees the
         * directory that came before */
        uint32_t n =
            atomic_load_explicit(&stripes->n_exchanges, memory_order_relaxed);
        atomic_store_explicit(
            &stripes->n_exchanges, n + 1, memory_order_release);
    }
}

void
ranges__publish(struct ranges *ranges, struct directory *made)
{
    struct directory *old = ranges__directory(ranges);
    table_owner_assert_held(ranges->owner);
    ENGINE_HOOK("publish");
    /* release: readers see whole tables behind it */
    atomic_store_explicit(&ranges->directory, made, memory_order_release);
    count_exchange(ranges);
    ENGINE_HOOK("published");
    directory_retire(ranges->owner->pool, old);
}

int
ranges__replace(struct ranges *ranges, size_t at, size_t n_old,
    struct table *const *made, size_t n_made, enum pool_purpose purpose)
{
    struct directory *directory = ranges__directory(ranges);
    struct pool *pool = ranges->owner->pool;
    size_t n = count_entries(ranges);
    const struct directory_entry *old =
        directory == NULL ? NULL : directory_entries(directory);
    table_owner_assert_held(ranges->owner);
    ASSERT(at + n_old <= n);
    if (n_old == 1 && n_made == 1 && old[at].base == made[0]->base &&
        old[at].width == made[0]->width) {
        struct table *before = old[at].table;
        ASSERT(made[0] != before);
        made[0]->is_clean = before->is_clean;
        made[0]->copied = before->copied;
        made[0]->is_quiet = before->is_quiet;
        ENGINE_HOOK("publish");
        directory_replace(directory, at, made[0]);
        count_exchange(ranges);
        ENGINE_HOOK("published");
        table_retire(pool, before);
        return 0;
    }
    size_t n_new = n - n_old + n_made;
    struct directory *fresh = NULL;
    if (n_new > 0) {
        void *block;
        size_t bytes = n_new * sizeof(struct directory_entry);
        int err = pool_take_block(pool, bytes, purpose, &block);
        if (err != 0) {
            return err;
        }
        struct directory_entry *entry = block;
        for (size_t i = 0; i < at; i++) {
            entry[i] = old[i];
        }
        for (size_t i = 0; i < n_made; i++) {
            entry[at + i] = (struct directory_entry){
                made[i]->base, made[i]->width, made[i]};
        }
        for (size_t i = at + n_old; i < n; i++) {
            entry[i - n_old + n_made] = old[i];
        }
        err = directory_create(pool, entry, n_new, purpose, &fresh);
        pool_give_block(pool, block, bytes);
        if (err != 0) {
            return err;
        }
    }
    struct table *gone[BUILD_SOURCES_MAX];
    ASSERT(n_old <= BUILD_SOURCES_MAX);
    for (size_t i = 0; i < n_old; i++) {
        gone[i] = old[at + i].table;
    }
    ranges__publish(ranges, fresh);
    for (size_t i = 0; i < n_old; i++) {
        table_retire(pool, gone[i]);
    }
    return 0;
}

/* Where the entry of a table is. */
static size_t
index_of(const struct ranges *ranges, const struct table *table)
{
    const struct directory *directory = ranges__directory(ranges);
    ptrdiff_t at = directory_before(directory, table->base);
    ASSERT(at >= 0 && directory_entries(directory)[at].table == table);
    return (size_t)at;
}

/* True while an engine loads and much of its memory is free: tables that
 * changes fill grow in large steps then, and do not shrink. */
static bool
is_roomy(const struct ranges *ranges)
{
    const struct pool *pool = ranges->owner->pool;
    return pool_is_loading(pool) &&
        pool_used_bytes(pool) < pool->limit_bytes / RANGES_LOOSE_SHARE;
}

struct build
ranges__build(struct ranges *ranges, const struct table *source,
    enum pool_purpose purpose, int load)
{
    return (struct build){.owner = ranges->owner,
        .source = {source, NULL},
        .cover = &ranges->cover,
        .columns = ranges->columns,
        .set = &ranges->set,
        .trained = &ranges->trained,
        .purpose = purpose,
        .load = load};
}

uint32_t
ranges__n_let_go(
    uint32_t n_records, uint32_t n_empty, const struct table *made)
{
    ASSERT(made->n_records <= n_records && made->n_empty <= n_empty);
    ASSERT(made->n_records - made->n_empty == n_records - n_empty);
    return n_records - made->n_records;
}

int
ranges__rebuild(
    struct ranges *ranges, struct table *table, const struct build *build)
{
    struct table *made;
    int err = build_table(build, table->base, table->width, &made);
    if (err != 0) {
        return err;
    }
    made->n_planned = table->n_planned;
    if (build->load == BUILD_LOAD_STEADY) { /* no better for a few records */
        made->packed_bits = table->packed_bits;
    }
    uint32_t n_let_go =
        ranges__n_let_go(table->n_records, table->n_empty, made);
    err = ranges__replace(
        ranges, index_of(ranges, table), 1, &made, 1, build->purpose);
    if (err != 0) {
        table_destroy(ranges->owner->pool, &made);
        return err;
    }
    ASSERT(ranges->n_records >= n_let_go);
    ranges->n_records -= n_let_go;
    ranges->n_rebuilds++;
    return 0;
}

/* Rows of a table for a plan: a sample of all, and what an earlier plan left
 * out. */
struct rows {
    uint32_t n, n_missed;
    uint32_t stride, at;
    const struct plan *plan; /* NULL: take the sample */
    uint64_t row[ROWS_MAX];
    uint64_t spare[ROWS_MAX];
};

static bool
plan_has(const struct plan *plan, uint64_t row)
{
    unsigned first = 0;
    unsigned end = plan->n;
    while (first < end) {
        unsigned middle = first + (end - first) / 2;
        const struct plan_range *range = &plan->range[middle];
        if (row < range->base) {
            end = middle;
        } else if (row - range->base > perm_mask(range->width)) {
            first = middle + 1;
        } else {
            return true;
        }
    }
    return false;
}

static void
take_row(void *context, uint64_t row)
{
    struct rows *rows = context;
    if (rows->plan == NULL) {
        if (rows->at++ % rows->stride == 0 && rows->n < SAMPLE_ROWS) {
            rows->row[rows->n++] = row;
        }
    } else if (rows->n_missed < MISSED_ROWS && !plan_has(rows->plan, row)) {
        rows->row[rows->n++] = row;
        rows->n_missed++;
    }
}

/* True where a table that is to have n records is to be split: too many, or
 * too wide ones. */
static bool
is_too_large(
    const struct ranges *ranges, const struct table *table, uint32_t n)
{
    return n > ranges->n_records_max ||
        (n >= SPLIT_RECORDS_MIN &&
            table_line_bytes(table) >
                (size_t)ranges->n_records_max * RECORD_BYTES_USUAL);
}

/* A plan that covers all rows of the table and one more; false where none was
 * found in some rounds. */
static bool
make_plan(const struct ranges *ranges, const struct table *table, uint64_t row,
    struct rows *rows, struct plan *plan)
{
    uint32_t n = table->n_records + 1;
    uint32_t n_max = ranges->n_records_max;
    rows->stride = n / SAMPLE_ROWS + 1;
    carry_each(ranges->owner, table, take_row, rows);
    ASSERT(rows->n <= SAMPLE_ROWS);
    rows->row[rows->n++] = row;
    for (int i = 0; i < PLAN_ROUNDS; i++) {
        uint32_t counted = rows->n * rows->stride;
        uint32_t limit = n_max;
        if (is_too_large(ranges, table, n) && counted <= n_max) {
            limit = counted - 1;
        }
        plan_sort(rows->row, rows->spare, rows->n);
        plan_ranges(plan, rows->row, rows->n, rows->stride, table->base,
            table->width, limit, n_fit(ranges));
        if (plan->n == 1 && plan->range[0].base == table->base &&
            plan->range[0].width == table->width) {
            return true;
        }
        uint32_t before = rows->n_missed;
        rows->plan = plan;
        carry_each(ranges->owner, table, take_row, rows);
        if (rows->n_missed == before) {
            return true;
        }
        if (rows->n_missed == MISSED_ROWS) {
            return false;
        }
    }
    return false;
}

/* Puts one table for each range of the plan in the place of an old one. */
static int
carry_out(struct ranges *ranges, struct table *table, const struct plan *plan,
    const struct build *build)
{
    struct table *made[PLAN_MAX];
    struct pool *pool = ranges->owner->pool;
    unsigned n = 0;
    uint32_t n_records = 0, n_empty = 0;
    uint32_t n_before = table->n_records, n_empty_before = table->n_empty;
    int err = 0;
    for (unsigned i = 0; i < plan->n && err == 0; i++) {
        err = build_table(
            build, plan->range[i].base, plan->range[i].width, &made[n]);
        if (err == 0) {
            n_records += made[n]->n_records;
            n_empty += made[n]->n_empty;
            n++;
        }
    }
    if (err == 0) {
        ASSERT(n_records <= n_before && n_empty <= n_empty_before);
        ASSERT(n_records - n_empty == n_before - n_empty_before);
        err = ranges__replace(
            ranges, index_of(ranges, table), 1, made, n, build->purpose);
    }
    if (err != 0) {
        while (n > 0) {
            table_destroy(pool, &made[--n]);
        }
        return err;
    }
    ASSERT(ranges->n_records >= n_before - n_records);
    ranges->n_records -= n_before - n_records;
    ranges->n_rebuilds++;
    ranges->n_splits += n > 1;
    return 0;
}

static int
grow_by_plan(
    struct ranges *ranges, struct table *table, const struct build *build)
{
    struct pool *pool = ranges->owner->pool;
    struct plan plan;
    void *block;
    int err =
        pool_take_block(pool, sizeof(struct rows), build->purpose, &block);
    if (err != 0) {
        return err;
    }
    bool is_made = make_plan(ranges, table, build->row, block, &plan);
    pool_give_block(pool, block, sizeof(struct rows));
    if (is_made) {
        return carry_out(ranges, table, &plan, build);
    }
    return ranges__rebuild(ranges, table, build);
}

/* True where a table was packed when it was built: little more is to be
 * expected now than a record here and there. Once more it is not. */
static bool
was_packed(const struct table *table)
{
    uint64_t full = (uint64_t)table->n_lines * LINE_USABLE_BITS;
    return table->n_records >= STEADY_RECORDS &&
        table->built_bits * BUILD_LOAD_FULL * REACH_USUAL >
        full * RANGES_LOAD_PACKED * table->reach;
}

/* The newest table of many may be emptier than the rest: it is filled next,
 * and in larger steps less is copied. While a log is replayed all may, for
 * they are packed when that is done. */
static int
load_for(const struct ranges *ranges, const struct table *table)
{
    size_t n = count_entries(ranges);
    const struct directory_entry *entry =
        directory_entries(ranges__directory(ranges));
    if (is_roomy(ranges)) {
        return BUILD_LOAD_LOADING;
    }
    if (n >= MANY_TABLES && entry[n - 1].table == table) {
        return BUILD_LOAD_NEWEST;
    }
    return was_packed(table) ? BUILD_LOAD_STEADY : BUILD_LOAD_GROW;
}

/* A full budget refuses much, and is to do so at little cost: not while less
 * is free than the new table will hardly do without, nor again before some
 * memory has come back since this table was last refused. */
static bool
is_hopeless(const struct ranges *ranges, const struct table *table,
    enum pool_purpose purpose)
{
    struct pool *pool = ranges->owner->pool;
    size_t bytes = table_line_bytes(table);
    pool_reclaim(pool);
    if (purpose == POOL_EVICT) {
        return false;
    }
    if (pool_has_room(pool, bytes / 4 * 3, purpose) != 0) {
        return true;
    }
    return table->refused_bytes[purpose] != 0 &&
        pool_used_bytes(pool) + bytes / 32 >= table->refused_bytes[purpose];
}

static int
grow_by_build(
    struct ranges *ranges, struct table *table, const struct build *build)
{
    uint32_t n = table->n_records + build->is_new;
    if (table->width > 1 &&
        (is_too_large(ranges, table, n) ||
            (n >= PLAN_RECORDS && n / 2 >= table->n_planned))) {
        return grow_by_plan(ranges, table, build);
    }
    return ranges__rebuild(ranges, table, build);
}

/* Makes room for a record that its table had none for. */
static int
grow(struct ranges *ranges, const struct ranges_look *look,
    const uint64_t *code, enum pool_purpose purpose, bool again)
{
    struct table *table = look->table;
    ASSERT(table_covers(table, look->spot.row));
    struct build build =
        ranges__build(ranges, table, purpose, load_for(ranges, table));
    build.code = code;
    build.row = look->spot.row;
    build.is_new = look->spot.where == TABLE_NOWHERE;
    build.n_lines_min = again ? table->n_lines + 1 : 0;
    if (is_hopeless(ranges, table, purpose)) {
        return ERR_HOT_FULL;
    }
    int err = grow_by_build(ranges, table, &build);
    if (err == ERR_HOT_FULL && purpose != POOL_EVICT) {
        table->refused_bytes[purpose] = pool_used_bytes(ranges->owner->pool);
    }
    return err;
}

static bool
overlaps(const struct directory_entry *entry, uint64_t base, unsigned width)
{
    return entry->base <= base + perm_mask(width) &&
        base <= entry->base + perm_mask(entry->width);
}

/* The width of a new table for a row that no table covers. */
static unsigned
width_for(const struct ranges *ranges, uint64_t row)
{
    const struct directory *directory = ranges__directory(ranges);
    unsigned width = ranges->row_bits;
    if (directory == NULL) {
        return width;
    }
    const struct directory_entry *entry = directory_entries(directory);
    ptrdiff_t before = directory_before(directory, row);
    ptrdiff_t after = before + 1;
    bool has_after = (size_t)after < directory_count(directory);
    ptrdiff_t nearest = before;
    if (before < 0 ||
        (has_after &&
            entry[after].base - row <
                row - entry[before].base - perm_mask(entry[before].width))) {
        nearest = after;
    }
    const struct table *table = entry[nearest].table;
    if (table->n_records >= NEIGHBOUR_RECORDS) {
        unsigned fit =
            plan_width(table->n_records, table->width, n_fit(ranges));
        width = fit < width ? fit : width;
    }
    for (; width > 1; width--) {
        uint64_t base = row & ~perm_mask(width);
        if (!(before >= 0 && overlaps(&entry[before], base, width)) &&
            !(has_after && overlaps(&entry[after], base, width))) {
            break;
        }
    }
    return width;
}

/* Lines for as many records as there are in the table that ends where a range
 * begins, were it as wide: ids in time order fill the one as they did the
 * other. 0 where no table ends there. */
static uint32_t
lines_as_before(const struct ranges *ranges, uint64_t base, unsigned width)
{
    const struct directory *directory = ranges__directory(ranges);
    ptrdiff_t before =
        directory == NULL ? -1 : directory_before(directory, base);
    if (before < 0) {
        return 0;
    }
    const struct table *table = directory_entries(directory)[before].table;
    if (table->base + table->mask + 1 != base || table->width < width) {
        return 0;
    }
    uint64_t bits = table->used_bits >> (table->width - width);
    return (uint32_t)(bits * BUILD_LOAD_FULL /
        ((uint64_t)LINE_USABLE_BITS * BUILD_LOAD_GROW));
}

/* A table for a row that none covers; in the directory, still empty. */
static int
cover(struct ranges *ranges, uint64_t row, const uint64_t *code,
    enum pool_purpose purpose)
{
    const struct directory *directory = ranges__directory(ranges);
    struct build build = ranges__build(ranges, NULL, purpose, BUILD_LOAD_GROW);
    struct table *made;
    unsigned width = width_for(ranges, row);
    build.code = code;
    build.row = row;
    build.is_new = true;
    if (is_roomy(ranges)) {
        build.n_lines_min =
            lines_as_before(ranges, row & ~perm_mask(width), width);
    }
    int err = build_table(&build, row & ~perm_mask(width), width, &made);
    if (err != 0) {
        return err;
    }
    size_t at =
        directory == NULL ? 0 : (size_t)(directory_before(directory, row) + 1);
    err = ranges__replace(ranges, at, 0, &made, 1, purpose);
    if (err != 0) {
        table_destroy(ranges->owner->pool, &made);
    }
    return err;
}

/* Sets look to the table that covers row; or to that there is no record, and
 * returns false. */
static bool
find_table(const struct ranges *ranges, uint64_t row, struct ranges_look *look)
{
    const struct directory *directory = ranges__directory(ranges);
    look->table = directory == NULL ? NULL : directory_find(directory, row);
    if (look->table != NULL && table_covers(look->table, row)) {
        return true;
    }
    look->table = NULL;
    look->spot.where = TABLE_NOWHERE;
    look->spot.row = row;
    memset(&look->spot.record, 0, sizeof look->spot.record);
    return false;
}

void
ranges_find(
    const struct ranges *ranges, uint64_t row, struct ranges_look *look)
{
    if (find_table(ranges, row, look)) {
        table_find(ranges->owner, look->table, row, &look->spot);
    }
}

void
ranges_seek(const struct ranges *ranges, uint64_t row, uint32_t columns,
    struct ranges_look *look)
{
    if (find_table(ranges, row, look)) {
        table_seek(ranges->owner, look->table, row, columns, &look->spot);
    }
}

/* Lines that a table would have at a load. */
static bool
would_shrink(const struct table *table, unsigned load)
{
    uint64_t lines = table->used_bits * BUILD_LOAD_FULL /
            ((uint64_t)LINE_USABLE_BITS * load) +
        1;
    return table_lines_round((uint32_t)lines) < table->n_lines;
}

bool
ranges__is_loose(const struct table *table, unsigned below, unsigned load)
{
    return table->used_bits * BUILD_LOAD_FULL <
        (uint64_t)table->n_lines * LINE_USABLE_BITS * below &&
        would_shrink(table, load);
}

/* True where so much has gone since a table was built that it may be smaller:
 * one that could not be made so small must not be tried at each removal. */
static bool
has_become_loose(const struct table *table)
{
    unsigned reach = table->reach;
    return table->used_bits < table->built_bits / 32 * 31 &&
        ranges__is_loose(table, RANGES_LOAD_SHRINK * reach / REACH_USUAL,
            BUILD_LOAD_GROW * reach / REACH_USUAL);
}

/* True where a table has hardly more than when it was built: as much has gone
 * as has come. */
static bool
is_steady(const struct table *table)
{
    uint64_t built = table->built_bits;
    return table->n_records >= STEADY_RECORDS &&
        table->used_bits <= built + built / GROWN_SHARE;
}

/* Builds a table anew for the better. Out of memory: it stays as it is, and is
 * tried again when there is some. */
static void
renew(struct ranges *ranges, struct table *table)
{
    int load = is_steady(table) ? BUILD_LOAD_STEADY : BUILD_LOAD_GROW;
    struct build build = ranges__build(ranges, table, POOL_UPDATE, load);
    if (!is_hopeless(ranges, table, POOL_UPDATE) &&
        ranges__rebuild(ranges, table, &build) == ERR_HOT_FULL) {
        table->refused_bytes[POOL_UPDATE] =
            pool_used_bytes(ranges->owner->pool);
    }
}

void
ranges__after_removal(struct ranges *ranges, struct table *table)
{
    if (table->n_records == 0) {
        /* out of memory: an empty table stays, as good as none */
        (void)ranges__replace(
            ranges, index_of(ranges, table), 1, NULL, 0, POOL_UPDATE);
    } else if (table_is_worn(table) ||
        (has_become_loose(table) && !is_roomy(ranges))) {
        renew(ranges, table);
    }
}

/* Codes of slots not in use are 0. */
static bool
is_nothing(const struct ranges *ranges, const uint64_t *code)
{
    uint64_t any = 0;
    for (uint32_t left = ranges->columns; left != 0; left &= left - 1) {
        any |= code[__builtin_ctz(left)];
    }
    return any == 0;
}

void
ranges__remove(struct ranges *ranges, const struct ranges_look *look)
{
    if (look->spot.where != TABLE_NOWHERE) {
        table_remove(ranges->owner, look->table, &look->spot);
        ASSERT(ranges->n_records > 0);
        ranges->n_records--;
        ranges__after_removal(ranges, look->table);
    }
}

/* The same after the first try found no table, or no room in it. */
static int
store_again(struct ranges *ranges, uint64_t row, const uint64_t *code,
    enum pool_purpose purpose)
{
    struct ranges_look look;
    table_owner_assert_held(ranges->owner);
    for (int i = 0; i < STORE_TRIES; i++) {
        int err = 0;
        ranges_find(ranges, row, &look);
        if (look.table == NULL) {
            err = cover(ranges, row, code, purpose);
        } else {
            err = table_put(
                ranges->owner, look.table, &look.spot, code, purpose);
            if (err == 0) {
                ranges->n_records += look.spot.where == TABLE_NOWHERE;
                return 0;
            }
            if (err == TABLE_FULL) {
                err = grow(ranges, &look, code, purpose, i > 1);
            }
        }
        if (err != 0) {
            return err;
        }
    }
    return ERR_NO_MEMORY;
}

/* Records that only a stash has room for fill no lines, so that their table
 * is never found full. */
static bool
is_overgrown(const struct ranges *ranges, const struct table *table)
{
    uint32_t n = table->n_records;
    return n > ranges->n_records_max && n - n / 4 > table->n_planned;
}

/* Cuts a table that has a record at row. Out of memory: it stays as it is for
 * now. */
static void
cut(struct ranges *ranges, struct table *table, uint64_t row)
{
    struct build build =
        ranges__build(ranges, table, POOL_UPDATE, BUILD_LOAD_GROW);
    build.row = row;
    table->n_planned = table->n_records;
    (void)grow_by_plan(ranges, table, &build);
}

int
ranges_store(struct ranges *ranges, const struct ranges_look *look,
    const uint64_t *code)
{
    bool is_new = look->spot.where == TABLE_NOWHERE;
    enum pool_purpose purpose = is_new ? POOL_NEW : POOL_UPDATE;
    int err = TABLE_FULL;
    if (is_nothing(ranges, code) &&
        !cover_keeps(&ranges->cover, look->spot.row)) {
        ranges__remove(ranges, look);
        return 0;
    }
    if (look->table != NULL) {
        err =
            table_put(ranges->owner, look->table, &look->spot, code, purpose);
        if (err == 0) {
            ranges->n_records += is_new;
            if (table_is_worn(look->table)) {
                renew(ranges, look->table);
            } else if (is_overgrown(ranges, look->table)) {
                cut(ranges, look->table, look->spot.row);
            }
        }
    }
    return err == TABLE_FULL
        ? store_again(ranges, look->spot.row, code, purpose)
        : err;
}

int
ranges__bury(struct ranges *ranges, uint64_t row)
{
    const uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    return store_again(ranges, row, code, POOL_EVICT);
}

int
ranges_hint(struct ranges *ranges, const uint8_t *hint_bits)
{
    struct shapes shapes;
    struct shapes_set *set;
    table_owner_assert_held(ranges->owner);
    shapes_from_hints(
        &shapes, hint_bits, ranges->columns, RANGES_HINT_BITS_MAX);
    int err = shapes_set_create(ranges->owner->pool, &shapes, POOL_NEW, &set);
    if (err == 0) {
        shapes_set_drop(ranges->owner->pool, ranges->set);
        ranges->set = set;
        ranges->trained.n = 0;
    }
    return err;
}

void
ranges_clear(struct ranges *ranges)
{
    struct directory *old = ranges__directory(ranges);
    struct pool *pool = ranges->owner->pool;
    uint64_t n_records = 0;
    table_owner_assert_held(ranges->owner);
    if (old != NULL) {
        size_t n = directory_count(old);
        /* release: as any publication */
        atomic_store_explicit(&ranges->directory, NULL, memory_order_release);
        count_exchange(ranges);
        /* the entries stay readable until the directory itself is retired */
        for (size_t i = 0; i < n; i++) {
            n_records += directory_entries(old)[i].table->n_records;
            table_retire(pool, directory_entries(old)[i].table);
        }
        directory_retire(pool, old);
    }
    ASSERT(n_records == ranges->n_records);
    shapes_set_drop(pool, ranges->set);
    ranges->set = NULL;
    ranges->trained.n = 0;
    ranges->n_records = 0;
    ranges->n_live = 0;
    ranges->is_counting = ranges->knows_marks = false;
    ranges->next_number = 0;
}
