/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for a record: first-unless-full, then one cuckoo move (Pagh and Rodler,
 * "Cuckoo hashing", 2004; with buckets of several: Dietzfelbinger and
 * Weidling, 2007). A victim must be large enough that its leaving makes room,
 * and has room in its other line at once. Two moves in a row fill tables by
 * half a percent more before they grow, and make inserts half as dear again:
 * they are for packing only. */
#include "engine/edits.h"
#include "engine/table_place.h"

#include "base/assert.h"

uint32_t
edits_partner(
    const struct table *table, uint32_t line, uint64_t remainder, bool is_far)
{
    uint32_t n = table->n_lines;
    uint32_t distance = table__distance(table, table__hash(remainder));
    uint32_t other = is_far ? line + n - distance : line + distance;
    return other >= n ? other - n : other;
}

struct line_copy *
edits_copy(struct edits *edits, uint32_t line)
{
    for (unsigned i = 0; i < edits->n; i++) {
        if (edits->line[i] == line) {
            return &edits->copy[i];
        }
    }
    ASSERT(edits->n < EDITS_MAX);
    edits->line[edits->n] = line;
    line_load(table_line(edits->table, line), &edits->copy[edits->n]);
    return &edits->copy[edits->n++];
}

/* Looks at a line without meaning to change it. */
static void
peek(const struct edits *edits, uint32_t line, struct line_copy *copy)
{
    for (unsigned i = 0; i < edits->n; i++) {
        if (edits->line[i] == line) {
            *copy = edits->copy[i];
            return;
        }
    }
    line_load(table_line(edits->table, line), copy);
}

void
edits_remove(struct edits *edits, uint32_t line, unsigned index)
{
    struct line_copy *copy = edits_copy(edits, line);
    if (index >= line_count(copy) - line_far(copy)) {
        edits->n_far--;
        edits->n_stale++;
    }
    line_remove(copy, &edits->table->form, index);
}

bool
edits_insert(struct edits *edits, const struct table_place *place,
    struct line_record *record)
{
    const struct line_form *form = &edits->table->form;
    struct line_copy *copy = edits_copy(edits, place->line_1);
    record->is_far = false;
    if (line_insert(copy, form, record)) {
        return true;
    }
    struct line_copy second;
    peek(edits, place->line_2, &second);
    if (!line_has_room(&second, form, record->shape, true)) {
        return false;
    }
    record->is_far = true;
    ASSERT(line_insert(edits_copy(edits, place->line_2), form, record));
    line_mask_add(edits_copy(edits, place->line_1), place->bit);
    edits->n_far++;
    return true;
}

/* One record that may leave its line. */
struct victim {
    uint32_t line, other;
    struct line_record record; /* as it is in line */
    unsigned index;
};

/* Bits that are missing in a line for a record of that shape: at most 0 where
 * only a place among the far ones is missing. */
static int
missing_bits(
    const struct line_copy *copy, const struct line_form *form, unsigned shape)
{
    return (int)line_used_bits(copy, form) + LINE_RECORD_BITS +
        form->total[shape] - LINE_USABLE_BITS;
}

/* What is looked for in a line: a record whose leaving makes room. */
struct search {
    struct line_copy copy;
    const struct line_form *form;
    int missing;    /* bits */
    bool wants_far; /* only one of the far ones will do */
};

/* In `line`, for a record of that shape. */
static void
search_begin(struct search *search, const struct edits *edits, uint32_t line,
    unsigned shape, bool is_far)
{
    search->form = &edits->table->form;
    peek(edits, line, &search->copy);
    search->missing = missing_bits(&search->copy, search->form, shape);
    search->wants_far = is_far && line_far(&search->copy) == LINE_FAR_MAX;
}

/* Makes the record at an index of `line` a victim, but for its codes; false
 * where its leaving would not do. */
static bool
search_take(const struct search *search, const struct edits *edits,
    uint32_t line, unsigned index, struct victim *victim)
{
    struct line_record *record = &victim->record;
    line_get_head(&search->copy, search->form, index, record);
    int size = LINE_RECORD_BITS + search->form->total[record->shape];
    if (size < search->missing || (search->wants_far && !record->is_far)) {
        return false;
    }
    victim->line = line;
    victim->index = index;
    victim->other =
        edits_partner(edits->table, line, record->remainder, record->is_far);
    return true;
}

/* A victim in `line` that has room in its other line, and whose leaving makes
 * room for the shape. */
static bool
find_victim(const struct edits *edits, uint32_t line, unsigned shape,
    bool is_far, struct victim *victim)
{
    struct search search;
    struct line_copy other;
    search_begin(&search, edits, line, shape, is_far);
    /* from the end: far ones first, they may go home */
    for (unsigned i = line_count(&search.copy); i-- > 0;) {
        if (!search_take(&search, edits, line, i, victim)) {
            continue;
        }
        peek(edits, victim->other, &other);
        if (line_has_room(&other, search.form, victim->record.shape,
                !victim->record.is_far)) {
            line_get(&search.copy, search.form, i, &victim->record);
            return true;
        }
    }
    return false;
}

/* The same of one that has room in its other line once a second victim has
 * left that. */
static bool
find_victims(const struct edits *edits, uint32_t line, unsigned shape,
    bool is_far, struct victim *first, struct victim *second)
{
    struct search search;
    search_begin(&search, edits, line, shape, is_far);
    for (unsigned i = line_count(&search.copy); i-- > 0;) {
        if (search_take(&search, edits, line, i, first) &&
            find_victim(edits, first->other, first->record.shape,
                !first->record.is_far, second) &&
            second->other != line) {
            line_get(&search.copy, search.form, i, &first->record);
            return true;
        }
    }
    return false;
}

/* Moves a victim to its other line, which has room. */
static bool
move(struct edits *edits, struct victim *victim)
{
    const struct table *table = edits->table;
    struct line_record record = victim->record;
    edits_remove(edits, victim->line, victim->index);
    record.is_far = !record.is_far;
    if (!line_insert(
            edits_copy(edits, victim->other), &table->form, &record)) {
        return false;
    }
    if (record.is_far) {
        line_mask_add(edits_copy(edits, victim->line),
            table__bit(table__hash(record.remainder)));
        edits->n_far++;
    }
    edits->n_moves++;
    return true;
}

bool
edits_make_room(struct edits *edits, const struct table_place *place,
    struct line_record *record)
{
    struct victim victim;
    const uint32_t line[2] = {place->line_1, place->line_2};
    for (int i = 0; i < 2; i++) {
        if (find_victim(edits, line[i], record->shape, i == 1, &victim)) {
            return move(edits, &victim) && edits_insert(edits, place, record);
        }
    }
    return false;
}

bool
edits_make_more_room(struct edits *edits, const struct table_place *place,
    struct line_record *record)
{
    struct victim first, second;
    const uint32_t line[2] = {place->line_1, place->line_2};
    for (int i = 0; i < 2; i++) {
        if (find_victims(
                edits, line[i], record->shape, i == 1, &first, &second)) {
            return move(edits, &second) && move(edits, &first) &&
                edits_insert(edits, place, record);
        }
    }
    return false;
}
