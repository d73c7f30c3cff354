/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds room for a record: in its first line, in its second, or by one cuckoo
 * move (Pagh and Rodler, "Cuckoo hashing", 2004; with buckets of several:
 * Dietzfelbinger and Weidling, 2007). A record is moved only if that makes room
 * and its other line has room at once. Two moves in a row fill tables by half a
 * percent more before they grow, but make an insert half as dear again: only
 * packing uses them. */
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

/* True where a record of that shape has room in a line. */
static bool
has_room(const struct edits *edits, uint32_t line, unsigned shape, bool is_far)
{
    const struct line_form *form = &edits->table->form;
    for (unsigned i = 0; i < edits->n; i++) {
        if (edits->line[i] == line) {
            return line_has_room(&edits->copy[i], form, shape, is_far);
        }
    }
    return line_has_room_in(
        table_line(edits->table, line), form, shape, is_far);
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
    if (!has_room(edits, place->line_2, record->shape, true)) {
        return false;
    }
    record->is_far = true;
    ASSERT(line_insert(edits_copy(edits, place->line_2), form, record));
    line_mask_add(edits_copy(edits, place->line_1), place->bit);
    edits->n_far++;
    return true;
}

/* One record that may leave its line. */
struct leaver {
    uint32_t other; /* where to */
    uint8_t index, shape;
    bool is_far; /* now */
};

/* One that is to. */
struct victim {
    uint32_t line, other;
    unsigned index;
    struct line_record record; /* as it is in line */
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

/* A line, and those of its records whose leaving makes room. */
struct search {
    uint32_t line;
    unsigned n;
    struct line_copy copy;
    struct leaver leaver[LINE_RECORDS_MAX];
};

/* For a record of that shape in `line`. The other lines of those that are
 * found lie anywhere: all are asked for before the first is looked at. */
static void
search(struct search *out, const struct edits *edits, uint32_t line,
    unsigned shape, bool is_far)
{
    const struct table *table = edits->table;
    const struct line_form *form = &table->form;
    out->line = line;
    out->n = 0;
    peek(edits, line, &out->copy);
    int missing = missing_bits(&out->copy, form, shape);
    bool wants_far = is_far && line_far(&out->copy) == LINE_FAR_MAX;
    struct line_head head[LINE_RECORDS_MAX];
    /* from the end: far ones first, they may go home */
    for (unsigned i = line_heads(&out->copy, form, head); i-- > 0;) {
        int size = LINE_RECORD_BITS + form->total[head[i].shape];
        if (size < missing || (wants_far && !head[i].is_far)) {
            continue;
        }
        struct leaver *leaver = &out->leaver[out->n++];
        leaver->other =
            edits_partner(table, line, head[i].remainder, head[i].is_far);
        leaver->index = (uint8_t)i;
        leaver->shape = head[i].shape;
        leaver->is_far = head[i].is_far;
        __builtin_prefetch(table_line(table, leaver->other));
    }
}

static void
choose(const struct search *search, const struct edits *edits,
    const struct leaver *leaver, struct victim *victim)
{
    victim->line = search->line;
    victim->other = leaver->other;
    victim->index = leaver->index;
    line_get(
        &search->copy, &edits->table->form, leaver->index, &victim->record);
}

/* A victim in `line` that has room in its other line, and whose leaving makes
 * room for the shape. */
static bool
find_victim(const struct edits *edits, uint32_t line, unsigned shape,
    bool is_far, struct victim *victim)
{
    struct search found;
    search(&found, edits, line, shape, is_far);
    for (unsigned i = 0; i < found.n; i++) {
        const struct leaver *leaver = &found.leaver[i];
        if (has_room(edits, leaver->other, leaver->shape, !leaver->is_far)) {
            choose(&found, edits, leaver, victim);
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
    struct search found;
    search(&found, edits, line, shape, is_far);
    for (unsigned i = 0; i < found.n; i++) {
        const struct leaver *leaver = &found.leaver[i];
        if (find_victim(edits, leaver->other, leaver->shape, !leaver->is_far,
                second) &&
            second->other != line) {
            choose(&found, edits, leaver, first);
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
