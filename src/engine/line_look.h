/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_LINE_LOOK_H
#define ENGINE_LINE_LOOK_H

#include "engine/line_steps.h"
#include "engine/line_take.h"

/* Many lines looked into at once, for the same step of all before the next
 * one. No step branches on what a line holds: records and misses come in no
 * order that a processor could foresee. The arithmetic between looks at memory
 * is done for LANES of them at a time. Where nothing is found numbers mean
 * nothing, and every one is safe to go on with.
 *
 * Memory order: see line_read.h. */

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* Puts look i beside itself, so that there are enough to fill a vector. */
LINE_READ_INLINE void
line_look_again(struct line_looks *looks, uint32_t i)
{
    looks->line[i + 1] = looks->line[i];
    looks->form[i + 1] = looks->form[i];
    looks->stripe[i + 1] = looks->stripe[i];
    looks->remainder[i + 1] = looks->remainder[i];
    looks->bit[i + 1] = looks->bit[i];
}

/* All of it. The stripes are read before the lines. Returns whether some
 * record has more than near bits. */
LINE_READ_INLINE bool
line_look(struct line_looks *looks, uint32_t n, bool is_far)
{
    struct line_look_steps steps;
    for (; n % LANES != 0; n++) {
        line_look_again(looks, n - 1);
    }
    line_look_match(looks, &steps, n, is_far);
    line_look_place(looks, &steps, n);
    return line_look_take(looks, &steps, n);
}

/* The code in a column (0..15) of values that are near; field is that of
 * column 0 in the record's shape. */
LINE_READ_INLINE uint64_t
line_look_near(
    const struct shapes_field *field, uint64_t bits, unsigned column)
{
#if LINE_READ_AVX512 || LINE_READ_AVX2
    uint16_t start_width;
    memcpy(&start_width, &field[SHAPES_N * column], sizeof start_width);
    return __builtin_ia32_bextr_u64(bits, start_width);
#else
    struct shapes_field it = field[SHAPES_N * column];
    return line_match_low(bits >> it.start % 64, it.width);
#endif
}

/* The code in a column (0..15), of a record of this shape and any length whose
 * payload begins at bit at. */
LINE_READ_INLINE uint64_t
line_look_far(const struct line *line, const struct line_form *form,
    unsigned shape, unsigned at, unsigned column)
{
    struct shapes_field field = form->shapes->field[column][shape];
    at += form->extra_bits + field.start;
    return line_match_low(line_match_bits(line, at), field.width);
}

LINE_TARGET_END

#endif
#endif
