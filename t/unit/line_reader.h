/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_LINE_READER_H
#define UNIT_LINE_READER_H

/* engine/line_read.h made for each instruction set, so that one test can run
 * them all: line_reader_NAME.c defines LINE_READ_NAME and LINE_READER before
 * it includes this. */

#include "base/assert.h"
#include "engine/line_look.h"
#include "engine/line_read.h"

struct line_reader {
    const char *name;
    bool (*runs)(void); /* this machine has it; else the rest may be NULL */
    int (*find)(const struct line *line, const struct line_form *form,
        uint64_t remainder, bool is_far, struct line_hit *hit);
    uint64_t (*value)(const struct line *line, const struct line_form *form,
        const struct line_hit *hit, unsigned column);
    /* a group's look, and all values */
    uint32_t (*glance)(const struct line *line, const struct line_form *form,
        uint64_t remainder, bool is_far, unsigned bit, uint64_t *code);
    void (*fence)(void);
};

extern const struct line_reader line_reader_portable;
extern const struct line_reader line_reader_sse2;
extern const struct line_reader line_reader_avx2;
extern const struct line_reader line_reader_neon;

#ifdef LINE_READER

static bool
runs(void)
{
    return LINE_TARGET_RUNS;
}

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

static int
find(const struct line *line, const struct line_form *form, uint64_t remainder,
    bool is_far, struct line_hit *hit)
{
    return line_read_find(line, form, remainder, is_far, hit);
}

static uint64_t
value(const struct line *line, const struct line_form *form,
    const struct line_hit *hit, unsigned column)
{
    return line_read_value(line, form, hit, column);
}

/* The same look from every place of a group: all see the same. */
static uint32_t
glance(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, unsigned bit, uint64_t *code)
{
    static _Atomic uint32_t stripe;
    struct line_looks looks;
    for (uint32_t i = 0; i < LINE_LOOKS; i++) {
        looks.line[i] = line;
        looks.form[i] = form;
        looks.stripe[i] = &stripe;
        looks.remainder[i] = remainder;
        looks.bit[i] = bit;
    }
    uint32_t n = 1 + (uint32_t)(remainder + bit) % LINE_LOOKS;
    bool is_wide = line_look(&looks, n, is_far);
    uint32_t at = n / 2;
    for (uint32_t i = 0; i < n; i++) {
        ASSERT(looks.is_open[i] == looks.is_open[at] &&
            looks.is_found[i] == looks.is_found[at] &&
            looks.bits[i] == looks.bits[at] &&
            looks.shape[i] == looks.shape[at] && looks.seq[i] == 0);
    }
    unsigned shape = (unsigned)looks.shape[at];
    bool is_near = form->total[shape] <= LINE_NEAR_BITS;
    ASSERT(is_wide != is_near);
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        const struct shapes_field *field = &form->shapes->field[0][shape];
        unsigned first = (unsigned)looks.at[at];
        code[i] = is_near
            ? line_look_near(field, looks.bits[at], i)
            : line_look_far(line, form, shape, first, i) & looks.is_found[at];
    }
    return (uint32_t)looks.is_open[at];
}

static void
fence(void)
{
    line_read_fence();
}

LINE_TARGET_END

#define LINE_READER_IS(text)                                                  \
    const struct line_reader LINE_READER = {                                  \
        text, runs, find, value, glance, fence}
#else
#define LINE_READER_IS(text)                                                  \
    const struct line_reader LINE_READER = {text, runs, NULL, NULL, NULL, NULL}
#endif

#endif
#endif
