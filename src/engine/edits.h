/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_EDITS_H
#define ENGINE_EDITS_H

#include "engine/table.h"

/* Private copies of the lines of a change, until it is sure to succeed. Under
 * the shard's lock. */

enum { EDITS_MAX = 8 };

struct edits {
    const struct table *table;
    unsigned n;
    int n_far;        /* far records more (or fewer) */
    unsigned n_stale; /* records that left their masks' bits behind */
    unsigned n_moves;
    uint32_t line[EDITS_MAX];
    struct line_copy copy[EDITS_MAX];
};

static inline void
edits_init(struct edits *edits, const struct table *table)
{
    edits->table = table;
    edits->n = 0;
    edits->n_far = 0;
    edits->n_stale = 0;
    edits->n_moves = 0;
}

/* The other line of a record in `line`; is_far says that `line` is its
 * second. */
uint32_t edits_partner(
    const struct table *table, uint32_t line, uint64_t remainder, bool is_far);

/* The copy of a line, to be changed at will; valid until edits ends. */
struct line_copy *edits_copy(struct edits *edits, uint32_t line);

/* Takes record index out of a line. */
void edits_remove(struct edits *edits, uint32_t line, unsigned index);

/* Puts a record into its first line, else into its second; false, and nothing
 * changed, where neither has room. Sets record->is_far. */
bool edits_insert(struct edits *edits, const struct table_place *place,
    struct line_record *record);

/* The same after moving another one to its other line; false, and
 * *edits void, where that cannot be. */
bool edits_make_room(struct edits *edits, const struct table_place *place,
    struct line_record *record);

/* The same after moving two others, where one does not suffice: the second
 * makes room for the first. Looks at up to 2 x 23 x 23 lines. */
bool edits_make_more_room(struct edits *edits, const struct table_place *place,
    struct line_record *record);

#endif
