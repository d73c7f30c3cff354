/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_ANSWER_H
#define ENGINE_READER_ANSWER_H

/* From what lines say to what keys are told, for the instruction set that the
 * including file has chosen; included for reader_body.h only.
 *
 * A column's serial is compared after its code has been read, for one that is
 * dropped in place loses it before its numbers. Where all keys of a group are
 * of the counter in part->plain that is done for the whole group: keys are
 * compared with what was learnt of it, and that, behind the last code, with
 * what is so now. */
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

/* Are keys as part->plain has them, and its columns still there? differ: bits
 * in which keys are not. */
static inline bool
is_still_plain(const struct part *part, uint64_t differ)
{
    const struct plain *plain = &part->plain;
    differ &= rest_mask();
    /* After all codes: a column's serial is gone before its numbers are. */
    line_read_fence();
    for (uint32_t left = plain->columns; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        differ |= serial_now(plain->view, i) ^ plain->serial[i];
    }
    return differ == 0;
}

/* Answers all keys of a plain group that is not in a row, as if all values
 * were near. False where answer() has to do it again. */
static inline bool
answer_plain(const struct part *part, const struct group *group)
{
    const struct part it = *part; /* see answer */
    const struct line_looks *looks = &group->looks;
    uint64_t differ = 0;
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        const struct shapes_field *field =
            &looks->form[i]->shapes->field[0][looks->shape[i]];
        uint64_t bits = looks->bits[i];
        uint32_t k = group->first[i];
        do {
            unsigned column = it.key[k].column;
            uint64_t code = line_look_near(field, bits, column);
            differ |= rest_of(it.key, k) ^ part->plain.rest[column];
            it.value[k] = code;
            it.state[k] = code == 0 ? CELL_DEFAULT : CELL_SET;
        } while (++k != group->end[i]);
    }
    return is_still_plain(part, differ);
}

/* The same where each record has one key, in a row or not. */
LINE_READ_INLINE bool
answer_single(const struct part *part, const struct group *group, bool is_row)
{
    const struct part it = *part;
    const struct line_looks *looks = &group->looks;
    const uint64_t *rest = part->plain.rest;
    uint64_t differ = 0;
    uint32_t n = group->n;
    LINE_TARGET_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = is_row ? group->first[0] + i : group->first[i];
        unsigned column = it.key[k].column;
        const struct shapes_field *field =
            &looks->form[i]->shapes->field[0][looks->shape[i]];
        uint64_t code = line_look_near(field, looks->bits[i], column);
        differ |= rest_of(it.key, k) ^ rest[column];
        it.value[k] = code;
        it.state[k] = code == 0 ? CELL_DEFAULT : CELL_SET;
    }
    return is_still_plain(part, differ);
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
