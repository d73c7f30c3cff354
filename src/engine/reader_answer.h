/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_ANSWER_H
#define ENGINE_READER_ANSWER_H

/* Codes that lines hold become values, and keys are answered; for reader_body.h
 * only.
 *
 * A column's serial is compared after its code has been read, for one that is
 * dropped in place loses it before its numbers. */
#include "engine/reader_keys.h"

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

/* Plain groups: all keys are of the counter in part->plain. Serials are
 * compared for the whole group: keys with what was learnt of the counter, and
 * that, behind the last code, with what is so now. */

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

/* Answers a group that is not in a row. */
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

/* Answers the one key of record i. Not 0 where it is not as part->plain has
 * it. */
LINE_READ_INLINE uint64_t
answer_near(const struct plain *plain, const struct line_looks *looks,
    size_t i, const struct cell_key *key, uint64_t *value, uint8_t *state)
{
    unsigned column = key->column;
    const struct shapes_field *field =
        &looks->form[i]->shapes->field[0][looks->shape[i]];
    uint64_t code = line_look_near(field, looks->bits[i], column);
    *value = code;
    *state = code == 0 ? CELL_DEFAULT : CELL_SET;
    return rest_of(key, 0) ^ plain->rest[column];
}

/* The same as answer_plain where each record has one key. */
static inline bool
answer_single(const struct part *part, const struct group *group)
{
    const struct part it = *part; /* see answer */
    uint64_t differ = 0;
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = group->first[i];
        differ |= answer_near(&part->plain, &group->looks, i, &it.key[k],
            &it.value[k], &it.state[k]);
    }
    return is_still_plain(part, differ);
}

/* The same where all of these are in a row. */
static inline bool
answer_row(const struct part *part, const struct group *group)
{
    const struct cell_key *key = &part->key[group->first[0]];
    uint64_t *value = &part->value[group->first[0]];
    uint8_t *state = &part->state[group->first[0]];
    uint64_t differ = 0;
    size_t n = group->n;
    LINE_TARGET_UNROLL
    for (size_t i = 0; i < n; i++) {
        differ |= answer_near(
            &part->plain, &group->looks, i, key++, value++, state++);
    }
    return is_still_plain(part, differ);
}

/* The same where records in a row have several keys each, column by column:
 * keys have been compared when they were taken (take_rows). */
static inline bool
answer_rows(const struct part *part, const struct group *group)
{
    const struct line_looks *looks = &group->looks;
    const struct shapes_field *field[READ_GROUP]; /* of column 0 */
    uint32_t stride = group->stride;
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        field[i] = &looks->form[i]->shapes->field[0][looks->shape[i]];
    }
    for (uint32_t k = 0; k < stride; k++) {
        uint32_t first = group->first[0] + k;
        unsigned column = part->key[first].column;
        uint64_t *value = &part->value[first];
        uint8_t *state = &part->state[first];
        for (uint32_t i = 0; i < n; i++) {
            uint64_t code = line_look_near(field[i], looks->bits[i], column);
            *value = code;
            *state = code == 0 ? CELL_DEFAULT : CELL_SET;
            value += stride;
            state += stride;
        }
    }
    return is_still_plain(part, 0);
}

/* Answers all keys of a plain group, as if all values were near. False where
 * answer() has to do it again. */
LINE_READ_INLINE bool
answer_if_plain(const struct part *part, const struct group *group)
{
    if (group->is_single) {
        return group->is_row ? answer_row(part, group)
                             : answer_single(part, group);
    }
    return group->is_row ? answer_rows(part, group)
                         : answer_plain(part, group);
}

LINE_TARGET_END

#endif
#endif
