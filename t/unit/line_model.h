/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UNIT_LINE_MODEL_H
#define UNIT_LINE_MODEL_H

/* A line as tests know it: an array of records, which is written into a line
 * bit by bit. */

#include "engine/line.h"

#include "unit/check_help.h"
#include "unit/line_form.h"

#include <string.h>

struct model {
    unsigned n, far;
    uint16_t mask;
    struct line_record record[LINE_RECORDS_MAX];
};

static inline void
set_bits(struct line_copy *copy, unsigned at, unsigned width, uint64_t value)
{
    for (unsigned i = at; i < at + width; i++, value >>= 1) {
        MUST((copy->word[i / 64] >> i % 64 & 1) == 0);
        copy->word[i / 64] |= (value & 1) << i % 64;
    }
    MUST(value == 0);
}

/* As the picture in line.h says. */
static inline void
encode(
    const struct model *model, const struct form *form, struct line_copy *copy)
{
    unsigned end = 504;
    memset(copy, 0, sizeof *copy);
    set_bits(copy, 0, 16, model->mask);
    set_bits(copy, 504, 5, model->n);
    set_bits(copy, 509, 3, model->far);
    for (unsigned i = 0; i < model->n; i++) {
        const struct line_record *record = &model->record[i];
        unsigned extra_bits = form->form.extra_bits;
        set_bits(copy, 16 + 16 * i, 16, record->remainder & 0xffff);
        set_bits(copy, 16 + 16 * model->n + 4 * i, 4, record->shape);
        end -= form->form.total[record->shape];
        set_bits(copy, end, extra_bits,
            record->remainder >> (form->form.single != 0 ? 20 : 16));
        for (unsigned column = 0; column < SHAPES_COLUMNS_MAX; column++) {
            const struct shapes_field *field =
                &form->shapes.field[column][record->shape];
            set_bits(copy, end + extra_bits + field->start, field->width,
                record->code[column]);
        }
    }
}

static inline unsigned
model_used(const struct model *model, const struct form *form)
{
    unsigned used = 0;
    for (unsigned i = 0; i < model->n; i++) {
        used += 20 + form->form.total[model->record[i].shape];
    }
    return used;
}

static inline int
model_find(const struct model *model, uint64_t remainder, bool is_far)
{
    for (unsigned i = 0; i < model->n; i++) {
        if (model->record[i].remainder == remainder &&
            model->record[i].is_far == is_far) {
            return (int)i;
        }
    }
    return -1;
}

/* The first record with that tag. */
static inline int
model_find_tag(const struct model *model, uint16_t tag, bool is_far)
{
    for (unsigned i = 0; i < model->n; i++) {
        if ((uint16_t)model->record[i].remainder == tag &&
            model->record[i].is_far == is_far) {
            return (int)i;
        }
    }
    return -1;
}

static inline void
model_insert(struct model *model, const struct line_record *record)
{
    unsigned at = record->is_far ? model->n : model->n - model->far;
    memmove(model->record + at + 1, model->record + at,
        (model->n - at) * sizeof *record);
    model->record[at] = *record;
    model->n++;
    model->far += record->is_far;
}

static inline void
model_remove(struct model *model, unsigned index)
{
    model->far -= model->record[index].is_far;
    model->n--;
    memmove(model->record + index, model->record + index + 1,
        (model->n - index) * sizeof model->record[0]);
}

#endif
