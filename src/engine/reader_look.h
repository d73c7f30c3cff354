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
#include "engine/reader_answer.h"
#include "engine/reader_answer_plain.h"
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

static inline uint64_t
stripe_now(const _Atomic uint32_t *const *stripe, unsigned i)
{
    return counter_after(stripe[i]);
}

/* Answers all keys of the group as far as one line of each record tells.
 * Returns which records that is not good for, as bits: they may be elsewhere,
 * or the line was being changed. Made once for first lines and once for second
 * ones, as is_far is a constant then. */
LINE_READ_INLINE uint64_t
look(const struct part *part, struct group *group, bool is_far)
{
    struct line_looks *looks = &group->looks;
    uint64_t open = 0;
    uint32_t n = group->n;
    if (n == 0) {
        return 0; /* it counts as plain, whatever part->plain is */
    }
    bool is_wide = line_look(looks, n, is_far);
    if (!group->is_plain || !answer_if_plain(part, group)) {
        answer(part, group);
    }
    if (is_wide) {
        answer_wide(part, group);
    }
    line_read_fence();
    ENGINE_HOOK("validate");
    for (uint32_t i = 0; i < n; i += LANES) {
        lanes changed = LANES_EACH(stripe_now, &looks->stripe[i]) ^
            lanes_load(&looks->seq[i]);
        lanes is_open =
            (lanes)((changed | lanes_load(&looks->is_open[i])) != 0);
        open |= (uint64_t)lanes_bits(is_open) << i;
    }
    return open & ((UINT64_C(1) << n) - 1);
}

LINE_TARGET_END

#endif
#endif
