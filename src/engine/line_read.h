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
            LINE_PAYLOADS_END - line_match_total(line, form, n, index);
        uint64_t bits = line_match_near(line, at);
        if (line_match_low(bits, form->extra_bits) ==
            remainder >> LINE_TAG_BITS) {
            line_read_hit(line, form, n, index, at, bits, hit);
            return 1;
        }
    }
    return 0;
}

/* The first record whose tag matches, as far as tags tell; what is in it
 * where none does is safe to use, and means nothing. */
struct line_glance {
    uint32_t match; /* 0: no tag matches */
    uint16_t at;    /* first bit of its payload */
    uint16_t shape;
};

/* The two halves of a look without a branch on what the line holds. The first
 * one, among the home records or the far ones. n and far are in one word, so
 * they always are those of some moment. */
LINE_READ_INLINE struct line_glance
line_read_glance(const struct line *line, const struct line_form *form,
    uint16_t tag, bool is_far)
{
    const uint32_t all = (UINT32_C(2) << LINE_RECORDS_MAX) - 2;
    const uint32_t last = UINT32_C(1) << LINE_RECORDS_MAX;
    uint64_t counts = line_match_word(line, LINE_WORDS - 1);
    unsigned n = (unsigned)(counts >> LINE_COUNTS_SHIFT) & 31;
    unsigned far = (unsigned)(counts >> (LINE_COUNTS_SHIFT + 5));
    uint32_t homes = line_match_below(all, n - far + 1);
    uint32_t wanted = is_far ? line_match_below(all, n + 1) ^ homes : homes;
    uint32_t match = line_match_tags(line, tag) & wanted;
    unsigned index = (unsigned)__builtin_ctz(match | last) - 1;
    unsigned shape_at = LINE_MASK_BITS + LINE_TAG_BITS * n + 4 * index;
    uint64_t shapes = line_match_word(line, shape_at / 64);
    return (struct line_glance){.match = match,
        .at = (uint16_t)(LINE_PAYLOADS_END -
            line_match_total(line, form, n, index)),
        .shape = (uint16_t)(shapes >> shape_at % 64 & 15)};
}

/* And the second: *bits are the record's values, as many as are near, or 0
 * where it was not found. Returns 0, or where it was not found but may be
 * somewhere: LINE_READ_ELSEWHERE (the line's overflow mask has bit), or more
 * (it may be here behind another tag that matches). */
LINE_READ_INLINE uint32_t
line_read_glanced(const struct line *line, const struct line_form *form,
    struct line_glance glance, uint64_t remainder, unsigned bit,
    uint64_t *bits)
{
    uint64_t payload = line_match_near(line, glance.at);
    uint64_t extra = line_match_low(payload, form->extra_bits);
    bool is_found =
        (extra == remainder >> LINE_TAG_BITS) & (glance.match != 0);
    /* bit 0 of a match is no record's */
    uint32_t may_be =
        ((uint32_t)line_match_word(line, 0) >> bit & 1) | glance.match;
    *bits = payload >> form->extra_bits & (0 - (uint64_t)is_found);
    return may_be & ((uint32_t)is_found - 1);
}

enum { LINE_READ_ELSEWHERE = 1 };

/* Payloads of so many bits are near. */
enum { LINE_READ_NEAR = 57 };

/* The code in a column (0..15) of values that are near; field is that of
 * column 0 in the record's shape. */
LINE_READ_INLINE uint64_t
line_read_near(
    const struct shapes_field *field, uint64_t bits, unsigned column)
{
    struct shapes_field it = field[SHAPES_N * column];
#if LINE_READ_AVX512 || LINE_READ_AVX2
    return __builtin_ia32_bextr_u64(bits, it.start | (unsigned)it.width << 8);
#else
    return line_match_low(bits >> it.start % 64, it.width);
#endif
}

/* The code in a column (0..15), of values of any length. Where tags match, the
 * record is there. */
LINE_READ_INLINE uint64_t
line_read_far(const struct line *line, const struct line_form *form,
    struct line_glance glance, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][glance.shape];
    uint64_t code = line_match_low(
        line_match_bits(
            line, (unsigned)glance.at + form->extra_bits + field.start),
        field.width);
    return glance.match != 0 ? code : 0;
}

/* The code in a column (0..15) of what was found; any number of columns may
 * be read of one hit. */
LINE_READ_INLINE uint64_t
line_read_value(const struct line *line, const struct line_form *form,
    const struct line_hit *hit, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][hit->shape];
    if (form->extra_bits + field.start + field.width <= LINE_READ_NEAR) {
        return line_match_low(hit->bits >> field.start % 64, field.width);
    }
    return line_match_low(
        line_match_bits(line, hit->at + field.start), field.width);
}

LINE_TARGET_END

#endif
#endif
