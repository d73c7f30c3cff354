/* SPDX-License-Identifier: BSD-3-Clause */
/* Members for a dump.
 *
 * The pairs of a shard stand in the order of their rows, number << bits |
 * member; records come in the order of their ids, which go from shard to shard.
 * So the records of a piece are looked at together: what they want is sorted by
 * column, shard and number, and each table that has some of it is copied once,
 * from the first row that is wanted on. What was found is put in the order of
 * the records then.
 *
 *   want   column 0: shard 0: 5 7    shard 1: 2 3 9    column 1: ...
 *   tables                  [---]           [---][--]
 *
 * Records of which there are more members than there is room for are tried
 * again, half as many; one alone is gone through column by column, some members
 * at a time. So memory is that of one table and of found_max members, however
 * many a record has.
 *
 * Numbers are of the moment when their record was copied. One that has been
 * given up since may have lost pairs already, and none that it had is another
 * record's: a number is never given twice.
 *
 * A multiple of 256 is no record's number: the one pair there reserves numbers
 * (engine.h).
 *
 * Where there is a cold tier, what the engine has counts, tombstones too, and
 * segments have the rest (dump_members_cold.c). A pair is sealed or made hot
 * only under edit_lock, so that is held from the first table until the segments
 * are listed. Where a block cannot be read, its record is found by trying fewer
 * and fewer. */
#include "store/dump_members.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/cover.h"
#include "engine/engine_extents.h"
#include "engine/members.h"
#include "tier/cold_members.h"
#include "tier/cold_pairs.h"

#include <stdlib.h>
#include <string.h>

enum { SOME = 512 /* members of one record that are read together */ };

int
dump_members_init(struct dump_members *it)
{
    ASSERT(it->n_columns >= 1 && it->n_columns <= SCHEMA_COLUMNS_MAX);
    ASSERT(it->found_max > 0 && it->found_max <= DUMP_MEMBERS_FOUND);
    it->found =
        alloc_zeroed(it->rows.alloc, it->found_max * sizeof it->found[0]);
    it->want = alloc_zeroed(it->rows.alloc,
        (size_t)DUMP_MEMBERS_RECORDS * it->n_columns * sizeof it->want[0]);
    if (it->found == NULL || it->want == NULL) {
        dump_members_fini(it);
        return ERR_NO_MEMORY;
    }
    return 0;
}

void
dump_members_fini(struct dump_members *it)
{
    const struct alloc *alloc = it->rows.alloc;
    engine_rows_fini(&it->rows);
    alloc_free(alloc, it->found, it->found_max * sizeof it->found[0]);
    alloc_free(alloc, it->want,
        (size_t)DUMP_MEMBERS_RECORDS * it->n_columns * sizeof it->want[0]);
    it->found = NULL;
    it->want = NULL;
}

void
dump_members_begin(struct dump_members *it, uint32_t n, const uint64_t *id,
    const uint64_t *number)
{
    ASSERT(n <= DUMP_MEMBERS_RECORDS);
    it->n = n;
    it->id = id;
    it->number = number;
    it->at = 0;
    it->width = n;
    it->from_column = 0;
    it->from_member = 0;
    it->n_found = 0;
}

/* ---- what is wanted ---- */

static int
by_place(const void *a, const void *b)
{
    const struct dump_members_want *x = a, *y = b;
    if (x->column != y->column) {
        return x->column < y->column ? -1 : 1;
    }
    if (x->shard != y->shard) {
        return x->shard < y->shard ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* What records at..at+n-1 have in columns first..last, in the order in which
 * it is looked for; returns how many. */
static uint32_t
list_wants(struct dump_members *it, uint32_t n, unsigned first, unsigned last)
{
    uint32_t n_wants = 0;
    for (uint32_t i = it->at; i < it->at + n; i++) {
        for (unsigned c = first; c <= last; c++) {
            uint64_t number = it->number[(size_t)i * it->n_columns + c];
            struct dump_members_want *want = &it->want[n_wants];
            uint64_t row;
            unsigned shard;
            if (number == 0) {
                continue;
            }
            engine_row(it->engine, it->id[i], &shard, &row);
            *want = (struct dump_members_want){
                (uint16_t)i, (uint8_t)c, shard, number};
            n_wants++;
        }
    }
    qsort(it->want, n_wants, sizeof it->want[0], by_place);
    return n_wants;
}

/* ---- what is there ---- */

static uint64_t
first_row(const struct dump_members *it, const struct dump_members_want *want)
{
    return want->number << it->column[want->column].bits;
}

static uint64_t
last_row(const struct dump_members *it, const struct dump_members_want *want)
{
    uint64_t rows = UINT64_C(1) << it->column[want->column].bits;
    return first_row(it, want) + (rows - 1);
}

/* Copies what one table has from row `from` on, up to `last`; no rows where
 * none has any. rows.last_row is how far it is known. */
static int
copy_table(struct dump_members *it, const struct dump_members_want *want,
    uint64_t from, uint64_t last)
{
    const struct dump_members_column *column = &it->column[want->column];
    struct engine_extent extent;
    ASSERT(from <= last);
    if (engine_extent(it->engine, column->pairs, want->shard, from, &extent)) {
        /* where it begins behind that, nothing was there */
        from = extent.first_row > from ? extent.first_row : from;
        last = extent.last_row < last ? extent.last_row : last;
    }
    if (from > last) {
        it->rows.n = 0;
        it->rows.last_row = last;
        return 0;
    }
    int err = engine_copy_range(
        it->engine, column->pairs, want->shard, from, last, &it->rows);
    if (err != 0) {
        return err;
    }
    return it->rows.n_columns == 1 &&
            it->rows.serial[0] == column->pairs_serial
        ? 0
        : ERR_OTHER_COLUMNS;
}

/* Adds what the copied rows have of n wants of one shard and column; false
 * where there is no room for all of it. */
static bool
add_found(struct dump_members *it, const struct dump_members_want *want,
    uint32_t n, unsigned bits)
{
    const struct engine_rows *rows = &it->rows;
    uint32_t w = 0;
    for (uint32_t i = 0; i < rows->n; i++) {
        uint64_t number = rows->row[i] >> bits;
        while (w < n && want[w].number < number) {
            w++;
        }
        if (w == n) {
            break;
        }
        bool is_wanted =
            rows->code[0][i] != 0 || it->segment_map != NULL; /* it hides */
        if (want[w].number != number || !is_wanted) {
            continue;
        }
        if (it->n_found == it->found_max) {
            return false;
        }
        ASSERT(rows->code[0][i] <= UINT8_MAX);
        it->found[it->n_found++] = (struct dump_members_one){want[w].record,
            want[w].column, (uint8_t)rows->code[0][i],
            rows->row[i] & ~(~UINT64_C(0) << bits)};
    }
    return true;
}

/* Looks for n wants of one shard and column, from row `from` on; *is_full where
 * there was no room. */
static int
look_in_shard(struct dump_members *it, const struct dump_members_want *want,
    uint32_t n, uint64_t from, bool *is_full)
{
    unsigned bits = it->column[want->column].bits;
    uint64_t end = last_row(it, &want[n - 1]);
    while (n > 0) {
        int err = copy_table(it, want, from, end);
        if (err != 0) {
            return err;
        }
        if (!add_found(it, want, n, bits)) {
            *is_full = true;
            return 0;
        }
        if (it->rows.last_row >= end) {
            return 0;
        }
        from = it->rows.last_row + 1;
        while (n > 0 && last_row(it, want) < from) {
            want++;
            n--;
        }
        /* what is between two numbers is nobody's here */
        if (n > 0 && first_row(it, want) > from) {
            from = first_row(it, want);
        }
    }
    return 0;
}

static int
look_for(struct dump_members *it, uint32_t n_wants, bool *is_full)
{
    uint32_t n;
    int err = 0;
    for (uint32_t i = 0; i < n_wants && err == 0 && !*is_full; i += n) {
        const struct dump_members_want *want = &it->want[i];
        n = 1;
        while (i + n < n_wants && want[n].column == want->column &&
            want[n].shard == want->shard) {
            n++;
        }
        err = look_in_shard(it, want, n, first_row(it, want), is_full);
    }
    return err;
}

/* ---- in order ---- */

int
dump_members__by_record(const void *a, const void *b)
{
    const struct dump_members_one *x = a, *y = b;
    if (x->record != y->record) {
        return x->record < y->record ? -1 : 1;
    }
    if (x->column != y->column) {
        return x->column < y->column ? -1 : 1;
    }
    return x->member < y->member ? -1 : x->member > y->member;
}

/* What is wanted, of the engine and of segments. */
static int
look_in_both(struct dump_members *it, uint32_t n_wants, bool *is_full)
{
    struct cold_pairs cold[SCHEMA_COLUMNS_MAX];
    struct mutex *lock = it->segment_map->edit_lock;
    memset(cold, 0, it->n_columns * sizeof cold[0]);
    if (lock != NULL) {
        mutex_lock(lock);
    }
    int err = look_for(it, n_wants, is_full);
    if (err == 0 && !*is_full) {
        err = dump_members__list_cold(it, n_wants, cold);
    }
    if (lock != NULL) {
        mutex_unlock(lock);
    }
    if (err == 0 && !*is_full) {
        err = dump_members__add_cold(it, n_wants, cold, is_full);
    }
    for (unsigned c = 0; c < it->n_columns; c++) {
        cold_pairs_fini(&cold[c]);
    }
    *is_full =
        *is_full || dump_members_is_of_disk(err); /* which record is it? */
    return dump_members_is_of_disk(err) ? 0 : err;
}

/* All members of `width` records, or *is_full. */
static int
find_many(struct dump_members *it, bool *is_full)
{
    uint32_t n = it->n - it->at < it->width ? it->n - it->at : it->width;
    uint32_t n_wants = list_wants(it, n, 0, it->n_columns - 1);
    int err = it->segment_map == NULL || n_wants == 0
        ? look_for(it, n_wants, is_full)
        : look_in_both(it, n_wants, is_full);
    if (err == 0 && !*is_full) {
        qsort(it->found, it->n_found, sizeof it->found[0],
            dump_members__by_record);
        it->at += n;
        it->width =
            n < DUMP_MEMBERS_RECORDS / 2 ? 2 * n : DUMP_MEMBERS_RECORDS;
    }
    return err;
}

/* n_max members of one record, of one column; *next is as cold_members has it,
 * and so is what it returns. */
static int
read_some(struct dump_members *it, size_t n_max, uint64_t *member,
    uint64_t *value, size_t *n, uint64_t *next)
{
    const struct dump_members_column *column = &it->column[it->from_column];
    const struct cold_record record = {.id = it->id[it->at],
        .number = it->number[(size_t)it->at * it->n_columns + it->from_column],
        .serial = column->pairs_serial,
        .pairs = column->pairs,
        .bits = column->bits};
    *n = 0;
    *next = UINT64_C(1) << column->bits;
    if (record.number == 0) {
        return 0;
    }
    if (it->segment_map != NULL) {
        return cold_members(it->segment_map, &record, it->from_member, n_max,
            member, value, n, next);
    }
    *n = engine_members(it->engine, record.pairs, record.id, record.number,
        record.bits, it->from_member, n_max, member, value);
    *next = *n == n_max ? member[*n - 1] + 1 : *next;
    return engine_has_pairs(it->engine, record.pairs, record.serial)
        ? 0
        : ERR_GONE;
}

/* The next members of one record, of one column. */
static int
find_some(struct dump_members *it)
{
    uint64_t member[SOME], value[SOME];
    unsigned bits = it->column[it->from_column].bits;
    size_t n_max = it->found_max < SOME ? it->found_max : (size_t)SOME;
    size_t n;
    uint64_t next;
    int err = read_some(it, n_max, member, value, &n, &next);
    if (err != 0 && !dump_members_is_of_disk(err)) {
        return err == ERR_GONE ? ERR_OTHER_COLUMNS : err;
    }
    ASSERT(n <= n_max && next > it->from_member);
    for (size_t i = 0; i < n; i++) {
        ASSERT(value[i] != 0 && value[i] <= UINT8_MAX);
        it->found[it->n_found++] = (struct dump_members_one){
            (uint16_t)it->at, it->from_column, (uint8_t)value[i], member[i]};
    }
    it->bad_id = it->id[it->at];
    it->from_member = next;
    if (it->from_member >> bits != 0) {
        it->from_member = 0;
        it->from_column++;
    }
    if (it->from_column == it->n_columns) {
        it->from_column = 0;
        it->at++;
        it->width = 2;
    }
    return err;
}

int
dump_members_next(struct dump_members *it)
{
    bool is_full = true;
    int err = 0;
    ASSERT(it->at < it->n && it->width > 0);
    while (err == 0 && is_full && it->width > 1) {
        it->n_found = 0;
        is_full = false;
        err = find_many(it, &is_full);
        it->width = is_full ? it->width / 2 : it->width;
    }
    if (err == 0 && is_full) {
        it->n_found = 0;
        err = find_some(it);
    }
    return err;
}
