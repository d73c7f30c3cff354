/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_LINE_FORM_H
#define UNIT_LINE_FORM_H

/* Forms of lines, by hand and by chance. */

#include "engine/line.h"

#include "unit/check_help.h"

/* ck_assert writes to a file each time, which is too slow here. */
#define MUST(condition)                                                       \
    ((condition) ? (void)0 : ck_abort_msg("%s", #condition))

/* A form with what it points to. */
struct form {
    struct line_form form;
    struct shapes shapes;
};

static inline uint64_t
random_bits(uint64_t *state, unsigned width)
{
    return width == 0 ? 0 : random_below(state, UINT64_MAX) >> (64 - width);
}

/* Shape i of form becomes width[]; its fields lie side by side. */
static inline void
form_set(struct form *form, unsigned i, const unsigned *width)
{
    unsigned start = 0;
    for (unsigned column = 0; column < SHAPES_COLUMNS_MAX; column++) {
        form->shapes.field[column][i].start = (uint8_t)start;
        form->shapes.field[column][i].width = (uint8_t)width[column];
        start += width[column];
        if (width[column] != 0) {
            form->shapes.columns |= (uint16_t)(1u << column);
        }
    }
    form->shapes.total[i] = (uint8_t)start;
    form->form.total[i] = (uint8_t)(start + form->form.extra_bits);
    if (start + form->form.extra_bits > LINE_NEAR_BITS) {
        form->form.wide |= (uint16_t)(1u << i);
    }
    MUST(start + form->form.extra_bits <= (unsigned)SHAPES_BITS_MAX);
}

static inline int
form_compare(const void *a, const void *b)
{
    const unsigned *left = a;
    const unsigned *right = b;
    unsigned sum[2] = {0, 0};
    for (int i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        sum[0] += left[i];
        sum[1] += right[i];
    }
    return sum[0] < sum[1] ? -1 : sum[0] > sum[1];
}

/* From now on what names a shape is of the remainder. */
static inline void
form_make_single(struct form *form)
{
    MUST(form->form.total[0] == form->form.total[SHAPES_N - 1]);
    form->form.single = UINT16_MAX;
    form->shapes.is_single = true;
}

/* Bits of a remainder beyond its tag. */
static inline unsigned
form_high_bits(const struct form *form)
{
    return form->form.extra_bits + (form->form.single != 0 ? 4u : 0u);
}

/* The shape that a record of that remainder has, or else any. */
static inline unsigned
form_shape(const struct form *form, uint64_t remainder, unsigned any)
{
    return form->form.single != 0 ? remainder >> 16 & 15 : any;
}

/* Shapes of up to widest bits a column, as many as there is room for; or one
 * for all. */
static inline void
form_make(struct form *form, uint64_t *state, unsigned extra_bits,
    unsigned widest, bool is_single)
{
    unsigned width[SHAPES_N][SHAPES_COLUMNS_MAX] = {{0}};
    uint64_t columns =
        random_below(state, 4) == 0 ? 0xffff : 1 + random_below(state, 0xffff);
    memset(form, 0, sizeof *form);
    form->form.extra_bits = (uint8_t)extra_bits;
    form->form.shapes = &form->shapes;
    for (unsigned i = 0; i < SHAPES_N; i++) {
        unsigned left = SHAPES_BITS_MAX - extra_bits;
        for (unsigned column = 0; column < SHAPES_COLUMNS_MAX; column++) {
            if ((columns >> column & 1) == 0) {
                continue;
            }
            unsigned most = widest < left ? widest : left;
            width[i][column] = (unsigned)random_below(state, most + 1);
            left -= width[i][column];
        }
    }
    qsort(width, SHAPES_N, sizeof width[0], form_compare);
    for (unsigned i = 0; i < SHAPES_N; i++) {
        form_set(form, i, width[is_single ? SHAPES_N / 2 : i]);
    }
    if (is_single) {
        form_make_single(form);
    }
}

static inline void
form_random(struct form *form, uint64_t *state, unsigned round, bool is_single)
{
    static const unsigned widest[] = {0, 1, 2, 4, 8, 16, 32, 64};
    unsigned extra_bits =
        round % 3 == 0 ? 0 : (unsigned)random_below(state, 49);
    form_make(
        form, state, extra_bits, widest[round % COUNT_OF(widest)], is_single);
}

#endif
