/* SPDX-License-Identifier: BSD-3-Clause */
/* Room for a record: first-unless-full, then short cuckoo moves (Pagh and
 * Rodler, "Cuckoo hashing", 2004; with buckets of several: Dietzfelbinger and
 * Weidling, 2007). A victim must be large enough that its leaving makes room;
 * it goes where it has room at once (depth 1), or where another victim makes
 * room for it (depth 2). Every line has some 16 records, so depth 2 sees some
 * 250 lines; the search is cut at PEEKS_MAX. */
#include "engine/edits.h"
#include "engine/table_place.h"

#include "base/assert.h"

enum { PEEKS_MAX = 96 };

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

struct search {
    struct edits *edits;
    unsigned n_peeks;
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

/* True where taking the victim out of its line (copy) makes room for a record
 * of that shape. */
static bool
helps(const struct edits *edits, const struct line_copy *copy,
    const struct victim *victim, unsigned shape, bool is_far)
{
    const struct line_form *form = &edits->table->form;
    int size = LINE_RECORD_BITS + form->total[victim->record.shape];
    if (size < missing_bits(copy, form, shape)) {
        return false;
    }
    return !is_far || line_far(copy) < LINE_FAR_MAX || victim->record.is_far;
}

/* Fills *victim with record index of a line. */
static void
consider(const struct edits *edits, uint32_t line,
    const struct line_copy *copy, unsigned index, struct victim *victim)
{
    victim->line = line;
    victim->index = index;
    line_get(copy, &edits->table->form, index, &victim->record);
    victim->other = edits_partner(
        edits->table, line, victim->record.remainder, victim->record.is_far);
}

/* A victim in `line` that has room in its other line, other than `not_line`,
 * and whose leaving makes room for the shape. */
static bool
find_victim(struct search *search, uint32_t line, uint32_t not_line,
    unsigned shape, bool is_far, struct victim *victim)
{
    const struct edits *edits = search->edits;
    const struct line_form *form = &edits->table->form;
    struct line_copy copy, other;
    peek(edits, line, &copy);
    /* from the end: far ones first, they may go home */
    for (unsigned i = line_count(&copy); i-- > 0;) {
        consider(edits, line, &copy, i, victim);
        if (victim->other == not_line ||
            !helps(edits, &copy, victim, shape, is_far)) {
            continue;
        }
        if (search->n_peeks++ >= PEEKS_MAX) {
            return false;
        }
        peek(edits, victim->other, &other);
        if (line_has_room(
                &other, form, victim->record.shape, !victim->record.is_far)) {
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

/* Depth 2: a victim of `line` whose other line can get room for it. */
static bool
find_two(struct search *search, uint32_t line, unsigned shape, bool is_far,
    struct victim *first, struct victim *second)
{
    const struct edits *edits = search->edits;
    struct line_copy copy;
    peek(edits, line, &copy);
    for (unsigned i = line_count(&copy); i-- > 0;) {
        consider(edits, line, &copy, i, first);
        if (!helps(edits, &copy, first, shape, is_far)) {
            continue;
        }
        if (find_victim(search, first->other, line, first->record.shape,
                !first->record.is_far, second)) {
            return true;
        }
        if (search->n_peeks >= PEEKS_MAX) {
            return false;
        }
    }
    return false;
}

bool
edits_make_room(struct edits *edits, const struct table_place *place,
    struct line_record *record)
{
    struct search search = {.edits = edits};
    struct victim first, second;
    const uint32_t line[2] = {place->line_1, place->line_2};
    for (int i = 0; i < 2; i++) {
        if (find_victim(
                &search, line[i], UINT32_MAX, record->shape, i == 1, &first)) {
            return move(edits, &first) && edits_insert(edits, place, record);
        }
    }
    for (int i = 0; i < 2; i++) {
        search.n_peeks = 0;
        if (find_two(
                &search, line[i], record->shape, i == 1, &first, &second)) {
            return move(edits, &second) && move(edits, &first) &&
                edits_insert(edits, place, record);
        }
    }
    return false;
}
