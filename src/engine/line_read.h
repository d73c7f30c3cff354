/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_READ_H
#define ENGINE_LINE_READ_H

#include "engine/line.h"
#include "engine/line_match.h"
#include "engine/line_target.h"
#include "engine/line_total.h"

/* A look into a line that a writer may be changing. What comes of it may be
 * garbage then, but nothing outside the line and the form is read, and nothing
 * is undefined but the race itself. The caller reads a sequence counter
 * (acquire), looks, calls line_read_fence() and reads the counter again
 * (relaxed): where it is even and the same, the result holds.
 *
 * Memory order (Boehm, Can seqlocks get along with programming language
 * memory models?, 2012): a writer makes the counter odd (relaxed), stores words
 * (release: line_store) and makes it even (release). The portable variant loads
 * words with acquire, so that what has seen a word of a change sees the odd
 * counter too; it needs no fence and is plain C11. The others load words
 * relaxed or, which C11 has no word for, as vectors, and the fence keeps the
 * second look at the counter behind them. On x86-64 none of this costs an
 * instruction. */

struct line_hit {
    uint16_t mask; /* the line's overflow mask, also where nothing is found */
    uint8_t index; /* below LINE_RECORDS_MAX */
    uint8_t shape; /* below SHAPES_N */
    uint16_t at;   /* first bit of its values, behind the extra bits: 0..511 */
    uint64_t bits; /* what is there: the first 57 - extra_bits bits, or all */
};

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

LINE_READ_INLINE void
line_read_fence(void)
{
#if !LINE_READ_PORTABLE
    /* acquire: loads before it stay before what follows it. */
    atomic_thread_fence(memory_order_acquire);
#endif
}

/* Where a record whose tag matches lies in a line of n. */
LINE_READ_INLINE void
line_read_hit(const struct line *line, const struct line_form *form,
    unsigned n, unsigned index, unsigned at, uint64_t bits,
    struct line_hit *hit)
{
    unsigned shape_at = LINE_MASK_BITS + LINE_TAG_BITS * n + 4 * index;
    uint64_t shapes = line_match_word(line, shape_at / 64);
    hit->index = (uint8_t)index;
    hit->shape = (uint8_t)(shapes >> shape_at % 64 & 15);
    hit->at = (uint16_t)((at + form->extra_bits) % 512);
    hit->bits = bits >> form->extra_bits;
}

/* Looks for a record among the home or the far ones: 1 and all of *hit where
 * there is one, else 0 and hit->mask. remainder is below
 * 2^(16 + extra_bits). */
LINE_READ_INLINE int
line_read_find(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, struct line_hit *hit)
{
    uint64_t counts = line_match_word(line, LINE_WORDS - 1);
    unsigned n = (unsigned)(counts >> LINE_COUNTS_SHIFT) & 31;
    unsigned far = (unsigned)(counts >> (LINE_COUNTS_SHIFT + 5));
    n = n <= LINE_RECORDS_MAX ? n : LINE_RECORDS_MAX; /* more is garbage */
    uint32_t all = (UINT32_C(2) << n) - 2;
    uint32_t homes = (UINT32_C(2) << ((n - far) & 31)) - 2;
    uint32_t match = line_match_tags(line, (uint16_t)remainder);
    match &= all & (is_far ? ~homes : homes);
    hit->mask = (uint16_t)line_match_word(line, 0);
    for (; match != 0; match &= match - 1) {
        unsigned index = (unsigned)__builtin_ctz(match) - 1;
        unsigned at =
            LINE_PAYLOADS_END - line_match_total(line, form, n, index + 1);
        uint64_t bits = line_match_near(line, at);
        if (line_match_low(bits, form->extra_bits) ==
            remainder >> LINE_TAG_BITS) {
            line_read_hit(line, form, n, index, at, bits, hit);
            return 1;
        }
    }
    return 0;
}

/* The code in a column (0..15) of what was found; any number of columns may
 * be read of one hit. */
LINE_READ_INLINE uint64_t
line_read_value(const struct line *line, const struct line_form *form,
    const struct line_hit *hit, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][hit->shape];
    if (form->extra_bits + field.start + field.width <= LINE_NEAR_BITS) {
        return line_match_low(hit->bits >> field.start % 64, field.width);
    }
    return line_match_low(
        line_match_bits(line, hit->at + field.start), field.width);
}

LINE_TARGET_END

#endif
#endif
