/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_LOOK_H
#define ENGINE_READER_LOOK_H

/* Looks into one line for each record of a group, for the instruction set that
 * the including file has chosen; included for reader_body.h only.
 *
 * Records and misses come in no order a processor could foresee, so all go the
 * same way, without a branch on what a line holds, and what a line did not
 * answer is set aside. All lines are matched before the first is answered
 * from: there is much to wait for from a line to a place in it, and the waits
 * overlap. */
#include "engine/hook.h"
#include "engine/reader_group.h"
#include "engine/table_place.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

static inline uint32_t
counter_now(const _Atomic uint32_t *stripe)
{
    /* acquire: what it guards is read after it */
    return atomic_load_explicit(stripe, memory_order_acquire);
}

static inline uint32_t
counter_after(const _Atomic uint32_t *stripe)
{
    /* relaxed: behind line_read_fence, or behind acquire loads */
    return atomic_load_explicit(stripe, memory_order_relaxed);
}

/* Answers key k with a code that has just been read. */
static inline void
answer_key(const struct part *part, const struct view *view, uint32_t k,
    uint64_t code)
{
    const struct cell_key *key = &part->key[k];
    const struct column *column = &view->column[key->column];
    /* After the code: a column's serial is gone before its numbers are.
     * relaxed: behind line_read_fence, or behind acquire loads */
    line_read_fence();
    uint32_t serial =
        atomic_load_explicit(&column->serial, memory_order_relaxed);
    if (__builtin_expect((key->serial == 0) | (serial != key->serial), 0)) {
        part->value[k] = 0;
        part->state[k] = CELL_GONE;
    } else {
        part->value[k] = column_decode(column, code);
        part->state[k] = code == 0 ? CELL_DEFAULT : CELL_SET;
    }
}

/* First pass: where in its line each record may be, among the home records or
 * the far ones. */
static inline void
match(struct group *group, bool is_far)
{
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        group->seq[i] = counter_now(group->stripe[i]);
        group->glance[i] = line_read_glance(group->line[i],
            &group->table[i]->form, (uint16_t)group->remainder[i], is_far);
    }
}

/* Second pass: the records' values. Returns how many have more than near
 * ones. */
static inline uint32_t
take_bits(struct group *group)
{
    uint32_t n = group->n;
    uint32_t n_wide = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct line_form *form = &group->table[i]->form;
        uint64_t remainder = group->remainder[i];
        group->is_open[i] = line_read_glanced(group->line[i], form,
            group->glance[i], remainder, table__bit(table__hash(remainder)),
            &group->bits[i]);
        n_wide += form->total[group->glance[i].shape] > LINE_READ_NEAR;
    }
    return n_wide;
}

/* Third pass: answers all keys, as if all values were near. */
static inline void
answer(const struct part *part, const struct group *group)
{
    const struct part it = *part; /* which nothing written here can be */
    uint32_t n = group->n;
    for (uint32_t i = 0; i < n; i++) {
        const struct shapes_field *field =
            &group->table[i]->form.shapes->field[0][group->glance[i].shape];
        const struct view *view = group->view[i];
        uint64_t bits = group->bits[i];
        uint32_t k = group->first[i];
        uint32_t end = group->end[i];
        do {
            answer_key(
                &it, view, k, line_read_near(field, bits, it.key[k].column));
        } while (++k != end);
    }
}

/* The same for records that have others. */
static __attribute__((noinline)) void
answer_wide(const struct part *part, const struct group *group)
{
    for (uint32_t i = 0; i < group->n; i++) {
        const struct line_form *form = &group->table[i]->form;
        uint32_t k = group->first[i];
        if (form->total[group->glance[i].shape] <= LINE_READ_NEAR) {
            continue;
        }
        do {
            answer_key(part, group->view[i], k,
                line_read_far(group->line[i], form, group->glance[i],
                    part->key[k].column));
        } while (++k != group->end[i]);
    }
}

/* Answers all keys of the group as far as one line of each record tells, and
 * writes to open which records that is not good for: they may be elsewhere, or
 * the line was being changed. Returns how many. */
static inline uint32_t
look(const struct part *part, struct group *group, bool is_far,
    uint8_t open[READ_GROUP + 1])
{
    uint32_t n_open = 0;
    match(group, is_far);
    uint32_t n_wide = take_bits(group);
    answer(part, group);
    if (n_wide > 0) {
        answer_wide(part, group);
    }
    line_read_fence();
    ENGINE_HOOK("validate");
    for (uint32_t i = 0; i < group->n; i++) {
        uint32_t seq = group->seq[i];
        uint32_t changed = counter_after(group->stripe[i]) ^ seq;
        open[n_open] = (uint8_t)i;
        n_open += (changed | (seq & 1) | group->is_open[i]) != 0;
    }
    return n_open;
}

LINE_TARGET_END

#endif
#endif
