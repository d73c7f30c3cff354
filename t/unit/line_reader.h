/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_LINE_READER_H
#define UNIT_LINE_READER_H

/* engine/line_read.h made for each instruction set, so that one test can run
 * them all: line_reader_NAME.c defines LINE_READ_NAME and LINE_READER before
 * it includes this. */

#include "engine/line_read.h"

struct line_reader {
    const char *name;
    bool (*runs)(void); /* this machine has it; else the rest may be NULL */
    int (*find)(const struct line *line, const struct line_form *form,
        uint64_t remainder, bool is_far, struct line_hit *hit);
    uint64_t (*value)(const struct line *line, const struct line_form *form,
        const struct line_hit *hit, unsigned column);
    /* both halves of a glance, and all values */
    uint32_t (*glance)(const struct line *line, const struct line_form *form,
        uint64_t remainder, bool is_far, unsigned bit, uint64_t *code);
    void (*fence)(void);
};

extern const struct line_reader line_reader_portable;
extern const struct line_reader line_reader_sse2;
extern const struct line_reader line_reader_avx2;
extern const struct line_reader line_reader_avx512;
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

static uint32_t
glance(const struct line *line, const struct line_form *form,
    uint64_t remainder, bool is_far, unsigned bit, uint64_t *code)
{
    uint64_t bits;
    struct line_glance seen =
        line_read_glance(line, form, (uint16_t)remainder, is_far);
    uint32_t open = line_read_glanced(line, form, seen, remainder, bit, &bits);
    bool is_near = form->total[seen.shape] <= LINE_READ_NEAR;
    for (unsigned i = 0; i < SHAPES_COLUMNS_MAX; i++) {
        code[i] = is_near
            ? line_read_near(&form->shapes->field[0][seen.shape], bits, i)
            : line_read_far(line, form, seen, i);
    }
    return open;
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
