/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_ANSWER_H
#define ENGINE_READER_ANSWER_H

/* From what lines say to what keys are told, for the instruction set that the
 * including file has chosen; included for reader_body.h only.
 *
 * A column's serial is compared after its code has been read, for one that is
 * dropped in place loses it before its numbers. */
#include "engine/reader_group.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* Answers a key with a code that has just been read. */
LINE_READ_INLINE void
answer_key(const struct view *view, const struct cell_key *key, uint64_t code,
    uint64_t *value, uint8_t *state)
{
    size_t slot = key->column;
    const struct column *column = &view->column[slot];
    /* After the code: a column's serial is gone before its numbers are.
     * relaxed: behind line_read_fence, or behind acquire loads */
    line_read_fence();
    uint32_t serial =
        atomic_load_explicit(&column->serial, memory_order_relaxed);
    if (__builtin_expect((key->serial == 0) | (serial != key->serial), 0)) {
        *value = 0;
        *state = CELL_GONE;
        return;
    }
    *state = code == 0 ? CELL_DEFAULT : CELL_SET;
    if (__builtin_expect(column->default_value != 0, 0)) {
        code = column_decode(column, code);
    }
    *value = code;
}

/* The same for key k of the part. */
static inline void
answer_one(const struct part *part, const struct view *view, uint32_t k,
    uint64_t code)
{
    answer_key(view, &part->key[k], code, &part->value[k], &part->state[k]);
}

/* Answers all keys, as if all values were near. */
static __attribute__((noinline)) void
answer(const struct part *part, const struct group *group)
{
    const struct part it = *part; /* which nothing written here can be */
    const struct line_looks *looks = &group->looks;
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        const struct shapes_field *field =
            &looks->form[i]->shapes->field[0][looks->shape[i]];
        struct keys keys = keys_of(group, i);
        uint64_t bits = looks->bits[i];
        const struct cell_key *key = &it.key[keys.first];
        const struct cell_key *end = &it.key[keys.end];
        uint64_t *value = &it.value[keys.first];
        uint8_t *state = &it.state[keys.first];
        do {
            uint64_t code = line_look_near(field, bits, key->column);
            answer_key(keys.view, key, code, value++, state++);
        } while (++key != end);
    }
}

/* The same as answer for records that have values which are not near. */
static __attribute__((noinline)) void
answer_wide(const struct part *part, const struct group *group)
{
    const struct line_looks *looks = &group->looks;
    for (uint32_t i = 0; i < group->n; i++) {
        const struct line_form *form = looks->form[i];
        struct keys keys = keys_of(group, i);
        uint32_t k = keys.first;
        if ((form->wide >> looks->shape[i] & 1) == 0) {
            continue;
        }
        do {
            uint64_t code =
                line_look_far(looks->line[i], form, (unsigned)looks->shape[i],
                    (unsigned)looks->at[i], part->key[k].column);
            answer_one(part, keys.view, k, code & looks->is_found[i]);
        } while (++k != keys.end);
    }
}

LINE_TARGET_END

#endif
#endif
