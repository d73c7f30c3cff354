/* SPDX-License-Identifier: BSD-3-Clause */
/* A range table, from its writer's side.
 *
 * A record is in its first line, in its second line (far), or in the stash.
 * Invariants (table_verify): a far record has its bit set in the overflow mask
 * of its first line, a record in the stash in the masks of both its lines; so a
 * reader that finds the bit clear looks no further. A record of zeros only is a
 * tombstone (cover.h) and counted as such. The counts in struct table are those
 * of what is there.
 *
 * A change of several lines is made on private copies (struct edits), which are
 * stored at once while all sequence counters involved are odd: readers see it
 * whole or try again. Between lines and stash, order does the same: a record is
 * put into the stash before it leaves its line, and into its line before it
 * leaves the stash. In between it is in both, and the line is read first.
 *
 * What can go wrong: no room (TABLE_FULL: the caller builds the table anew), or
 * no memory for the stash. Both leave everything as it was. */
#include "engine/table.h"
#include "engine/table_each.h"
#include "engine/table_place.h"
#include "engine/table_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/edits.h"
#include "engine/hook.h"

#include <string.h>

enum {
    NARROW_SHARE = 96,      /* narrow records in the stash: 1 in 96, and */
    STALE_SHARE = 25,       /* mask bits that may be stale: 1 in 25 */
    STASH_RECORDS_FIRST = 8 /* what a stash is made for at first */
};

/* Why a record of that need would be in the stash. */
static enum table_kind
kind_of(const struct table *table, const struct shapes_need *need)
{
    if (shapes_fit(table->form.shapes, need) >= 0) {
        return TABLE_NARROW;
    }
    return shapes_need_sum(need) + table->form.extra_bits > SHAPES_BITS_MAX
        ? TABLE_WIDE
        : TABLE_MISFIT;
}

/* True where one more of that kind may go to the stash of a table that then
 * has n_records. */
static bool
stash_may_take(
    const struct table *table, enum table_kind kind, uint32_t n_records)
{
    switch (kind) {
    case TABLE_NARROW:
        return ((uint64_t)table->n_stash[kind] + 1) * NARROW_SHARE <=
            n_records;
    case TABLE_MISFIT:
        return table->n_stash[kind] < table->n_misfits_max;
    case TABLE_WIDE:
    case TABLE_KINDS:
        break;
    }
    return true;
}

static void
store_edits(struct table_owner *owner, struct edits *edits)
{
    uint64_t seen = 0;
    for (unsigned i = 0; i < edits->n; i++) {
        unsigned stripe = edits->line[i] % TABLE_STRIPES;
        if ((seen >> stripe & 1) == 0) {
            table__begin(owner, stripe);
            seen |= UINT64_C(1) << stripe;
        }
    }
    for (unsigned i = 0; i < edits->n; i++) {
        ENGINE_HOOK("line store");
        line_store(table_line(edits->table, edits->line[i]), &edits->copy[i]);
    }
    for (; seen != 0; seen &= seen - 1) {
        table__end(owner, (unsigned)__builtin_ctzll(seen));
    }
}

static void
take_over(
    struct table_owner *owner, struct table *table, const struct edits *edits)
{
    ASSERT((int64_t)table->n_far + edits->n_far >= 0);
    table->n_far = (uint32_t)((int32_t)table->n_far + edits->n_far);
    table->n_stale += edits->n_stale;
    owner->moves += edits->n_moves;
}

/* Puts a record into the stash, which may have to become larger. */
static int
stash_store(struct table_owner *owner, struct table *table, uint64_t key,
    const uint64_t *code, enum pool_purpose purpose)
{
    struct stash *old = table_stash(table);
    struct stash *made;
    int err;
    if (old != NULL) {
        table__begin(owner, TABLE__STRIPE_STASH);
        ENGINE_HOOK("stash put");
        bool is_done = stash_put(old, key, code);
        table__end(owner, TABLE__STRIPE_STASH);
        if (is_done) {
            return 0;
        }
        err = stash_grown(owner->pool, old, code, purpose, &made);
    } else {
        struct shapes_need need = shapes_need_all(code);
        err = stash_create(owner->pool, table->width, STASH_RECORDS_FIRST,
            shapes_need_sum(&need), purpose, &made);
    }
    if (err != 0) {
        return err;
    }
    ASSERT(stash_put(made, key, code));
    /* release: readers see a whole stash */
    atomic_store_explicit(&table->stash, made, memory_order_release);
    if (owner->stripes == NULL) {
        /* Nobody else sees the table. A stash of many records grows often, and
         * all its sizes together are several times the last one: they must
         * not wait for readers. */
        stash_destroy(owner->pool, &old);
    } else {
        stash_retire(owner->pool, old);
    }
    return 0;
}

static void
stash_forget(struct table_owner *owner, struct table *table, uint64_t key)
{
    table__begin(owner, TABLE__STRIPE_STASH);
    ENGINE_HOOK("stash remove");
    ASSERT(stash_remove(table_stash(table), key));
    table__end(owner, TABLE__STRIPE_STASH);
}

/* Puts a record that is in no line of edits into one of its lines, or fails.
 * With only_direct nothing is moved out of the way. */
static bool
find_room(const struct table_owner *owner, struct edits *edits,
    const struct table_spot *spot, struct line_record *record,
    bool only_direct)
{
    const struct table_place *place = &spot->place;
    struct edits trial;
    if (edits_insert(edits, place, record)) {
        return true;
    }
    if (only_direct) {
        return false;
    }
    trial = *edits;
    bool is_made = edits_make_room(&trial, place, record);
    if (!is_made && owner->is_thorough) {
        trial = *edits;
        is_made = edits_make_more_room(&trial, place, record);
    }
    if (is_made) {
        *edits = trial;
    }
    return is_made;
}

/* True where there is a tombstone at spot. */
static bool
is_empty_at(const struct table *table, const struct table_spot *spot)
{
    return table->n_empty != 0 && spot->where != TABLE_NOWHERE &&
        table_is_nothing(spot->record.code);
}

/* Takes the record at spot out of where it was, in the books. */
static void
uncount(struct table *table, const struct table_spot *spot)
{
    if (spot->where == TABLE_LINE) {
        uint64_t bits =
            (uint64_t)LINE_RECORD_BITS + table->form.total[spot->record.shape];
        ASSERT(table->used_bits >= bits);
        table->used_bits -= bits;
    } else if (spot->where == TABLE_STASH) {
        struct shapes_need need = shapes_need_all(spot->record.code);
        uint32_t *n = &table->n_stash[kind_of(table, &need)];
        ASSERT(*n > 0);
        --*n;
    } else {
        table->n_records++;
    }
}

/* Gives a record that is in a line or new its codes where only that line, or
 * the first one, is touched; false, and nothing done, where it has no room. */
static bool
put_in_own_line(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const struct line_record *record)
{
    const struct line_form *form = &table->form;
    struct line_copy copy;
    bool is_new = spot->where == TABLE_NOWHERE;
    uint32_t line = is_new ? spot->place.line_1 : spot->line;
    line_load(table_line(table, line), &copy);
    bool fits = is_new
        ? line_insert(&copy, form, record)
        : line_rewrite(&copy, form, spot->index, record->shape, record->code);
    if (fits) {
        table__store_line(owner, table, line, &copy);
    }
    return fits;
}

static int
put_in_line(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code, int shape)
{
    struct line_record record = {
        .remainder = spot->place.remainder, .shape = (uint8_t)shape};
    memcpy(record.code, code, sizeof record.code);
    if (spot->where == TABLE_STASH ||
        !put_in_own_line(owner, table, spot, &record)) {
        struct edits edits;
        __builtin_prefetch(table_line(table, spot->place.line_1));
        __builtin_prefetch(table_line(table, spot->place.line_2));
        edits_init(&edits, table);
        if (spot->where == TABLE_LINE) {
            edits_remove(&edits, spot->line, spot->index);
        }
        if (!find_room(
                owner, &edits, spot, &record, spot->where == TABLE_STASH)) {
            return TABLE_FULL;
        }
        store_edits(owner, &edits);
        take_over(owner, table, &edits);
    }
    if (spot->where == TABLE_STASH) {
        stash_forget(owner, table, spot->row & table->mask);
        table->n_stale += 2;
    }
    uncount(table, spot);
    table->used_bits += LINE_RECORD_BITS + (uint64_t)table->form.total[shape];
    return 0;
}

static int
put_in_stash(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code,
    const struct shapes_need *need, enum pool_purpose purpose)
{
    enum table_kind kind = kind_of(table, need);
    uint32_t n = table->n_records + (spot->where == TABLE_NOWHERE);
    struct edits edits;
    if (spot->where != TABLE_STASH && !stash_may_take(table, kind, n)) {
        return TABLE_FULL;
    }
    int err =
        stash_store(owner, table, spot->row & table->mask, code, purpose);
    if (err != 0) {
        return err;
    }
    if (spot->where != TABLE_STASH) {
        edits_init(&edits, table);
        if (spot->where == TABLE_LINE) {
            edits_remove(&edits, spot->line, spot->index);
        }
        line_mask_add(edits_copy(&edits, spot->place.line_1), spot->place.bit);
        line_mask_add(edits_copy(&edits, spot->place.line_2), spot->place.bit);
        store_edits(owner, &edits);
        take_over(owner, table, &edits);
    }
    uncount(table, spot);
    table->n_stash[kind]++;
    return 0;
}

int
table_put(struct table_owner *owner, struct table *table,
    const struct table_spot *spot, const uint64_t *code,
    enum pool_purpose purpose)
{
    struct shapes_need need = shapes_need_all(code);
    int shape = shapes_fit(table->form.shapes, &need);
    int err = TABLE_FULL;
    bool was_empty = is_empty_at(table, spot);
    if (shape >= 0) {
        shape = (int)line_shape(
            &table->form, spot->place.remainder, (unsigned)shape);
    }
    if (spot->where == TABLE_LINE && shape == spot->record.shape) {
        table__put_in_place(
            owner, table, spot, code, table->form.shapes->columns);
        err = 0;
    } else if (shape >= 0) {
        err = put_in_line(owner, table, spot, code, shape);
    }
    if (err != 0) {
        err = put_in_stash(owner, table, spot, code, &need, purpose);
    }
    if (err == 0) {
        table->n_empty -= was_empty;
        table->n_empty += (need.packed[0] | need.packed[1]) == 0;
        table->widest = shapes_need_join(table->widest, need);
        table__mark_changed(table);
    }
    return err;
}

void
table_remove(struct table_owner *owner, struct table *table,
    const struct table_spot *spot)
{
    table_owner_assert_held(owner);
    ASSERT(spot->where != TABLE_NOWHERE);
    table->n_empty -= is_empty_at(table, spot);
    if (spot->where == TABLE_LINE) {
        struct edits edits;
        edits_init(&edits, table);
        edits_remove(&edits, spot->line, spot->index);
        store_edits(owner, &edits);
        take_over(owner, table, &edits);
    } else {
        stash_forget(owner, table, spot->row & table->mask);
        table->n_stale += 2;
    }
    uncount(table, spot);
    ASSERT(table->n_records > table->n_empty);
    table->n_records--;
    table__mark_changed(table);
}

/* The row of a record found in a line. */
static uint64_t
row_of(const struct table_owner *owner, const struct table *table,
    uint32_t line, const struct line_record *record)
{
    uint32_t home = record->is_far
        ? edits_partner(table, line, record->remainder, true)
        : line;
    uint64_t y = table__start(table, home) + record->remainder;
    return table->base + perm_undo(owner->perm, y, table->width);
}

struct each {
    const struct table *table;
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code);
    void *context;
};

static void
each_in_stash(void *context, uint64_t key, const uint64_t *code)
{
    struct each *each = context;
    each->record_fn(each->context, each->table->base + key, code);
}

void
table_each_line(const struct table_owner *owner, const struct table *table,
    uint32_t stride,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context)
{
    struct line_copy copy;
    struct line_record record;
    table_owner_assert_held(owner);
    ASSERT(stride > 0);
    for (uint32_t i = 0; i < table->n_lines; i += stride) {
        line_load(table_line(table, i), &copy);
        for (unsigned j = 0; j < line_count(&copy); j++) {
            line_get(&copy, &table->form, j, &record);
            record_fn(context, row_of(owner, table, i, &record), record.code);
        }
    }
}

void
table_each_stashed(const struct table *table,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context)
{
    struct each each = {table, record_fn, context};
    if (table_stash(table) != NULL) {
        stash_each(table_stash(table), each_in_stash, &each);
    }
}

void
table_each(const struct table_owner *owner, const struct table *table,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context)
{
    table_each_line(owner, table, 1, record_fn, context);
    table_each_stashed(table, record_fn, context);
}

/* False where nothing is left. */
static bool
clear_code(uint64_t *code, uint32_t columns)
{
    uint64_t rest = 0;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        if ((columns >> i & 1) != 0) {
            code[i] = 0;
        }
        rest |= code[i];
    }
    return rest != 0;
}

static bool
has_any(const uint64_t *code, uint32_t columns)
{
    for (; columns != 0; columns &= columns - 1) {
        if (code[__builtin_ctz(columns)] != 0) {
            return true;
        }
    }
    return false;
}

static int
clear_record(struct table_owner *owner, struct table *table,
    struct table_spot *spot, uint32_t columns, const struct cover_at *cover)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    memcpy(code, spot->record.code, sizeof code);
    if (!clear_code(code, columns) && !cover_keeps(cover, spot->row)) {
        table_remove(owner, table, spot);
        return 0;
    }
    /* its old shape would do, so a line has room for the new one */
    return table_put(owner, table, spot, code, POOL_UPDATE);
}

/* Each record is met twice, and a third time where it has gone around the end:
 * after a change its place is looked at again, where another one may be now
 * (stash_next). */
static int
clear_stash(struct table_owner *owner, struct table *table, uint32_t columns,
    const struct cover_at *cover)
{
    const struct stash *stash = table_stash(table);
    struct table_spot spot;
    uint64_t key, code[SHAPES_COLUMNS_MAX];
    uint32_t place = 0;
    while (stash_next(stash, &place, &key, code)) {
        ENGINE_HOOK("stash clear");
        if (!has_any(code, columns)) {
            place++;
            continue;
        }
        table_find(owner, table, table->base + key, &spot);
        ASSERT(spot.where == TABLE_STASH);
        int err = clear_record(owner, table, &spot, columns, cover);
        if (err != 0) {
            return err;
        }
        /* no record has got longer, so none has needed a larger one */
        ASSERT(table_stash(table) == stash);
    }
    return 0;
}

int
table_clear(struct table_owner *owner, struct table *table, uint32_t columns,
    const struct cover_at *cover)
{
    struct line_copy copy;
    struct table_spot spot;
    table_owner_assert_held(owner);
    for (uint32_t i = 0; i < table->n_lines; i++) {
        line_load(table_line(table, i), &copy);
        /* from the end: a removal moves only what is behind it */
        for (unsigned j = line_count(&copy); j-- > 0;) {
            struct line_record record;
            line_get(&copy, &table->form, j, &record);
            if (has_any(record.code, columns)) {
                table_find(
                    owner, table, row_of(owner, table, i, &record), &spot);
                int err = clear_record(owner, table, &spot, columns, cover);
                ASSERT(err == 0);
            }
        }
    }
    return table_stash(table) == NULL
        ? 0
        : clear_stash(owner, table, columns, cover);
}

uint32_t
table_n_stashed(const struct table *table)
{
    uint32_t n = 0;
    for (int i = 0; i < TABLE_KINDS; i++) {
        n += table->n_stash[i];
    }
    return n;
}

bool
table_is_worn(const struct table *table)
{
    uint32_t n_small = table->n_stash[TABLE_NARROW];
    uint64_t most = (uint64_t)table->n_lines * LINE_MASK_BITS / STALE_SHARE;
    uint64_t n_stash = table_n_stashed(table);
    /* where many records are in the stash, most bits are set for them */
    most = most < n_stash / 4 ? n_stash / 4 : most;
    return table->n_stale > most ||
        (uint64_t)n_small * TABLE_STASH_SHARE > table->n_records;
}
