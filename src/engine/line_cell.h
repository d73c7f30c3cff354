/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_CELL_H
#define ENGINE_LINE_CELL_H

#include "base/assert.h"
#include "engine/line.h"
#include "engine/line_bits.h"

/* One code of a record, found in either of its lines and exchanged in its
 * place: what a count does. For the owner of the lock. */

/* Where a record may lie. */
struct line_pair {
    struct line *line[2];
    uint64_t remainder;
    uint32_t number[2]; /* of the lines; the caller's */
    uint32_t bit;       /* in overflow masks */
};

struct line_cell {
    uint64_t code;
    uint16_t at;    /* as in line_record */
    uint16_t bit;   /* where in the line the code begins */
    uint8_t width;  /* of its field */
    uint8_t shape;  /* of its record */
    uint8_t index;  /* of the record in the line */
    uint8_t is_far; /* 1: in the second line */
};

enum line_found {
    LINE_FOUND,
    LINE_ELSEWHERE, /* may be in the stash */
    LINE_NOWHERE
};

/* Of the record's code in that column *out; out only where it is found. */
enum line_found line_seek_cell(const struct line_pair *pair,
    const struct line_form *form, unsigned column, struct line_cell *out);

/* The code in another column of the record of a cell that was just found in
 * line; 0 where the form has no such column. */
static inline uint64_t
line_cell_other(const struct line *line, const struct line_form *form,
    const struct line_cell *cell, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][cell->shape];
    unsigned at = (unsigned)cell->at + field.start;
    /* relaxed, both: only the owner of the lock writes. % LINE_WORDS: nothing
     * of that word is looked at then */
    uint64_t low =
        atomic_load_explicit(&line->word[at / 64], memory_order_relaxed);
    uint64_t high = atomic_load_explicit(
        &line->word[(at / 64 + 1) % LINE_WORDS], memory_order_relaxed);
    return line_bits_join(low, high, at % 64) & line_bits_mask(field.width);
}

static inline void
line_cell__flip(struct line *line, unsigned i, uint64_t flip)
{
    /* relaxed: only the owner of the lock writes. release: see line_store. */
    uint64_t word = atomic_load_explicit(&line->word[i], memory_order_relaxed);
    atomic_store_explicit(&line->word[i], word ^ flip, memory_order_release);
}

/* Gives a cell that was just found in line another code, which has room in its
 * field. */
static inline __attribute__((always_inline)) void
line_cell_put(struct line *line, const struct line_cell *cell, uint64_t code)
{
    uint64_t flip = cell->code ^ code;
    unsigned shift = cell->bit % 64;
    unsigned word = cell->bit / 64;
    unsigned width = cell->width; /* 1..64, for the codes differ */
    ASSERT(width != 0 && flip >> (width - 1) >> 1 == 0);
    line_cell__flip(line, word, flip << shift);
    if (shift + width > 64) {
        line_cell__flip(line, word + 1, flip >> (64 - shift));
    }
}

#endif
