/* SPDX-License-Identifier: BSD-3-Clause */
/* Evicts the records that are as they were in a copy (engine_evict).
 *
 *   - A table that has not changed since the copy goes whole.
 *   - A table that was compared without the lock, and has not changed since, is
 *     built anew of the records that stay.
 *   - Any other table is compared here, record by record: a record that is as
 *     it was copied goes, any other stays.
 *   - A record of the copy that has been removed since gets a tombstone, first
 *     of all and in the usual way, so that the rest sees only records.
 *
 * Until all tables and their directory are made, others see nothing of it but
 * those tombstones. If memory runs out, they are taken out again. Else
 * publish_fn publishes what answers for the rows from now on, and then the
 * directory is published: so a reader without a lock has an answer at every
 * moment. */
#include "base/assert.h"
#include "base/err.h"
#include "engine/ranges_priv.h"
#include "engine/stays.h"
#include "engine/table_each.h"
#include "engine/table_place.h"

#include <string.h>

struct eviction {
    struct ranges *ranges;
    const struct ranges_leaving *leaving;
    struct stays stays;
    size_t from, end; /* of leaving->rows: those of the table in hand */
    int err;
    /* what is to be: the entries, and what goes; one block */
    void *block;
    size_t block_bytes;
    struct directory_entry *entry;
    size_t n;
    struct table **gone;
    size_t n_gone;
    uint64_t records_gone, records_made;
};

static bool
is_in_range(const struct ranges_leaving *leaving, uint64_t row)
{
    return row >= leaving->first && row <= leaving->last;
}

/* True where a record that is here is in the copy, with these codes. */
static bool
is_as_copied(const struct eviction *it, uint64_t row, const uint64_t *code)
{
    const struct ranges_leaving *leaving = it->leaving;
    const struct carry_rows *rows = &leaving->rows;
    uint64_t copied[SHAPES_COLUMNS_MAX] = {0};
    size_t i = stays_from(rows, row, it->from, it->end);
    if (i == it->end || rows->row[i] != row) {
        return false;
    }
    (void)carry_codes(rows, i, copied);
    for (uint32_t left = leaving->columns; left != 0; left &= left - 1) {
        unsigned column = (unsigned)__builtin_ctz(left);
        if (copied[column] != code[column]) {
            return false;
        }
    }
    return true;
}

static void
sift(void *context, uint64_t row, const uint64_t *code)
{
    struct eviction *it = context;
    if (it->err == 0 &&
        (!is_in_range(it->leaving, row) || !is_as_copied(it, row, code))) {
        it->err = stays_add(&it->stays, row, code);
    }
}

bool
ranges_is_untouched(
    const struct ranges_leaving *leaving, const struct table *table)
{
    return table->copied == leaving->number && leaving->number != 0 &&
        table->base >= leaving->first &&
        table->base + table->mask <= leaving->last;
}

/* What has been worked out for a table, if it still holds; or NULL. */
static const struct ranges_ready *
ready_of(const struct ranges_leaving *leaving, const struct table *table)
{
    size_t first = 0;
    size_t end = leaving->n_ready;
    if (end == 0 || table->copied != leaving->ready_number) {
        return NULL;
    }
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (leaving->ready[middle].base < table->base) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    const struct ranges_ready *ready = &leaving->ready[first];
    ASSERT(first < leaving->n_ready && ready->base == table->base);
    ASSERT(ready->first + ready->n <= leaving->ready_rows->n);
    return ready;
}

/* Puts tombstones where records have been removed since they were copied; or,
 * with undo, takes them out again. */
static int
bury(const struct eviction *it, bool undo)
{
    struct ranges *ranges = it->ranges;
    const struct ranges_leaving *leaving = it->leaving;
    const struct carry_rows *rows = &leaving->rows;
    uint64_t code[SHAPES_COLUMNS_MAX] = {0};
    struct ranges_look look;
    int err = 0;
    for (size_t i = stays_from(rows, leaving->first, 0, rows->n);
         i < rows->n && rows->row[i] <= leaving->last && err == 0;) {
        ranges_find(ranges, rows->row[i], &look);
        if (look.table != NULL &&
            (ranges_is_untouched(leaving, look.table) ||
                ready_of(leaving, look.table) != NULL)) {
            i = stays_behind(rows, look.table->base + look.table->mask, i);
            continue;
        }
        bool is_here = look.spot.where != TABLE_NOWHERE;
        if (carry_codes(rows, i, code)) {
            if (!undo && !is_here) {
                err = ranges__bury(ranges, rows->row[i]);
            } else if (undo && is_here &&
                table_is_nothing(look.spot.record.code) &&
                !cover_keeps(&ranges->cover, rows->row[i])) {
                ranges__remove(ranges, &look);
            }
        }
        i++;
    }
    return err;
}

/* Looks at each record of a table: *rows is what stays. */
static int
sift_table(struct eviction *it, struct table *table, struct carry_rows *rows)
{
    const struct carry_rows *copied = &it->leaving->rows;
    it->from = stays_from(copied, table->base, 0, copied->n);
    it->end = stays_behind(copied, table->base + table->mask, it->from);
    it->stays.rows.n = 0;
    table_each(it->ranges->owner, table, sift, it);
    *rows = it->stays.rows;
    return it->err;
}

/* Makes a table of what stays of an old one; *out is NULL where nothing does,
 * and the old one where all does. */
static int
make_table(struct eviction *it, struct table *old, struct table **out)
{
    struct ranges *ranges = it->ranges;
    const struct ranges_leaving *leaving = it->leaving;
    const struct ranges_ready *ready = ready_of(leaving, old);
    struct carry_rows rows;
    *out = NULL;
    if (ranges_is_untouched(leaving, old)) {
        return 0;
    }
    bool is_all;
    table_verify_sums(old);
    if (ready != NULL) {
        rows = stays_slice(
            leaving->ready_rows, ready->first, ready->first + ready->n);
        is_all = ready->is_all;
    } else {
        int err = sift_table(it, old, &rows);
        if (err != 0) {
            return err;
        }
        is_all = rows.n == old->n_records;
    }
    rows.cover = &ranges->cover;
    /* nothing comes to a table that stays as it is; since it was looked at it
     * may have been packed, without tombstones that nothing covers any more */
    ASSERT(!is_all || rows.n >= old->n_records);
    if (is_all || rows.n == 0) {
        *out = is_all ? old : NULL;
        return 0;
    }
    struct build build =
        ranges__build(ranges, NULL, POOL_EVICT, BUILD_LOAD_GROW);
    build.rows = &rows;
    int err = build_table(&build, old->base, old->width, out);
    if (err == 0) {
        (*out)->n_planned = old->n_planned;
        (*out)->is_quiet = old->is_quiet;
        (*out)->heat = old->heat; /* what stays is what was written */
        (*out)->heat_ms = old->heat_ms;
        ASSERT((*out)->n_records == rows.n);
        it->records_made += (*out)->n_records;
    }
    return err;
}

static bool
is_concerned(
    const struct ranges_leaving *leaving, const struct directory_entry *entry)
{
    return entry->base <= leaving->last &&
        entry->base + perm_mask(entry->width) >= leaving->first;
}

/* Makes all tables that are to be; nobody sees them yet. */
static int
make_tables(struct eviction *it)
{
    struct directory *directory = ranges__directory(it->ranges);
    size_t n = directory_count(directory);
    const struct directory_entry *old = directory_entries(directory);
    it->block_bytes = n * (sizeof *it->entry + sizeof(struct table *));
    int err = pool_take_block(
        it->ranges->owner->pool, it->block_bytes, POOL_EVICT, &it->block);
    if (err != 0) {
        return err;
    }
    it->entry = it->block;
    it->gone = (struct table **)(it->entry + n);
    for (size_t i = 0; i < n; i++) {
        struct table *table = old[i].table;
        if (is_concerned(it->leaving, &old[i])) {
            err = make_table(it, old[i].table, &table);
            if (err != 0) {
                return err;
            }
        }
        ASSERT(it->n <= i && it->n_gone <= i);
        if (table != old[i].table) {
            it->gone[it->n_gone++] = old[i].table;
            it->records_gone += old[i].table->n_records;
        }
        if (table != NULL) {
            it->entry[it->n++] =
                (struct directory_entry){old[i].base, old[i].width, table};
        }
    }
    return 0;
}

/* Destroys tables that have been made, each in the place of one of gone. */
static void
give_up(struct eviction *it)
{
    const struct ranges *ranges = it->ranges;
    for (size_t i = 0, j = 0; i < it->n_gone && j < it->n;) {
        struct table *made = it->entry[j].table;
        if (made->base < it->gone[i]->base) {
            j++;
        } else if (made->base > it->gone[i]->base) {
            i++;
        } else {
            table_destroy(ranges->owner->pool, &made);
            i++;
            j++;
        }
    }
    it->ranges->cover.is_held = false;
    (void)bury(it, true);
}

static void
exchange(struct eviction *it, struct directory *fresh)
{
    struct ranges *ranges = it->ranges;
    if (it->n_gone > 0) {
        ranges__publish(ranges, fresh);
    }
    for (size_t i = 0; i < it->n_gone; i++) {
        table_retire(ranges->owner->pool, it->gone[i]);
    }
    ASSERT(ranges->n_records + it->records_made >= it->records_gone);
    ranges->n_records -= it->records_gone - it->records_made;
    for (size_t i = 0; i < it->n; i++) {
        if (is_concerned(it->leaving, &it->entry[i])) {
            it->entry[i].table->is_clean = false;
            it->entry[i].table->copied = 0;
        }
    }
}

/* All that can fail. *fresh is NULL where no table is left. */
static int
prepare(struct eviction *it, struct directory **fresh)
{
    struct pool *pool = it->ranges->owner->pool;
    *fresh = NULL;
    int err = bury(it, false);
    if (err == 0 && ranges__directory(it->ranges) != NULL) {
        err = make_tables(it);
    }
    if (err == 0 && it->n_gone > 0 && it->n > 0) {
        err = directory_create(pool, it->entry, it->n, POOL_EVICT, fresh);
    }
    return err;
}

int
ranges_evict(struct ranges *ranges, const struct ranges_leaving *leaving,
    void (*publish_fn)(void *context), void *context)
{
    struct eviction it = {.ranges = ranges, .leaving = leaving};
    struct directory *fresh;
    table_owner_assert_held(ranges->owner);
    ASSERT(leaving->first <= leaving->last && !ranges->cover.is_held);
    stays_init(&it.stays, leaving->alloc, ranges->columns);
    pool_reclaim(ranges->owner->pool);
    ranges->cover.is_held = true;
    int err = prepare(&it, &fresh);
    if (err == 0) {
        publish_fn(context);
        exchange(&it, fresh);
    } else {
        give_up(&it);
    }
    ranges->cover.is_held = false;
    stays_fini(&it.stays);
    if (it.block != NULL) {
        pool_give_block(ranges->owner->pool, it.block, it.block_bytes);
    }
    return err;
}
