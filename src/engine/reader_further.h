/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_FURTHER_H
#define ENGINE_READER_FURTHER_H

/* Looks into second lines, for the instruction set that the including file has
 * chosen; included for reader_body.h only.
 *
 * A record may move between its first line, its second and the stash; its
 * overflow bits are set before it leaves a line, so a line that is seen whole
 * and has neither the record nor its bit ends the search. A record that was
 * not in its first line and is in its second, or ends there, is right if the
 * first line's sequence counter has stayed what it was before the first look:
 * on its way back to the first it would have raised that. What is still open
 * then is looked for everywhere (reader_everywhere.h). */
#include "engine/hook.h"
#include "engine/reader_everywhere.h"
#include "engine/reader_look.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

/* Records on their way to their second lines, and what guards the first. */
struct seconds {
    struct group group;
    const _Atomic uint32_t *stripe[READ_GROUP];
    uint64_t seq[READ_GROUP];
    uint32_t n_asked; /* lines that are on their way */
};

/* Asks for the lines that have not been asked for yet: many at a time, as the
 * processor waits for the pages of them all at once then. */
static inline void
ask_seconds(struct seconds *seconds)
{
    for (; seconds->n_asked < seconds->group.n; seconds->n_asked++) {
        __builtin_prefetch(seconds->group.looks.line[seconds->n_asked], 0, 2);
    }
}

/* Looks into the stash for record i, which has its bit in both lines. False
 * where something was changed meanwhile. */
static bool
look_into_stash(
    const struct part *part, const struct seconds *seconds, uint32_t i)
{
    const struct group *group = &seconds->group;
    const struct line_looks *looks = &group->looks;
    const struct table *table = group->table[i];
    const _Atomic uint32_t *stripe =
        &part->engine->shard[group->shard[i]].stripes.stash;
    uint64_t code[SHAPES_COLUMNS_MAX];
    uint32_t seq = counter_now(stripe);
    if ((seq & 1) != 0) {
        return false;
    }
    ENGINE_HOOK("stash");
    /* acquire: a whole stash is seen */
    const struct stash *stash =
        atomic_load_explicit(&table->stash, memory_order_acquire);
    bool is_found = stash != NULL &&
        stash_find(stash, group->row[i] & table_mask(table), code);
    answer_codes(part, group, i, is_found ? code : NULL);
    line_read_fence();
    ENGINE_HOOK("validate");
    return counter_after(stripe) == seq &&
        counter_after(looks->stripe[i]) == looks->seq[i] &&
        counter_after(seconds->stripe[i]) == seconds->seq[i];
}

/* Looks into the second lines of all that are on their way there. */
static __attribute__((noinline)) void
look_at_seconds(const struct part *part, struct seconds *seconds)
{
    struct group *group = &seconds->group;
    ask_seconds(seconds);
    ENGINE_HOOK("second lines");
    uint64_t open = look(part, group, true);
    for (uint64_t left = open; left != 0; left &= left - 1) {
        const struct table *table = group->table[__builtin_ctzll(left)];
        /* relaxed: what of it is needed is loaded again */
        stash_prefetch(
            atomic_load_explicit(&table->stash, memory_order_relaxed));
    }
    for (uint32_t i = 0; i < group->n; i++) {
        if (counter_after(seconds->stripe[i]) != seconds->seq[i]) {
            look_everywhere(part, group, i);
        }
    }
    for (; open != 0; open &= open - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(open);
        if (group->looks.is_open[i] != LINE_LOOK_ELSEWHERE ||
            !look_into_stash(part, seconds, i)) {
            look_everywhere(part, group, i);
        }
    }
    group->n = 0;
    seconds->n_asked = 0;
    group->is_single = true;
    group->is_plain = true;
}

/* What is to be done about record i of a group, which its first line did not
 * answer. */
static inline void
look_further(const struct part *part, const struct group *group, uint32_t i,
    struct seconds *seconds)
{
    const struct line_looks *looks = &group->looks;
    const struct table *table = group->table[i];
    if (looks->is_open[i] != LINE_LOOK_ELSEWHERE) {
        look_everywhere(part, group, i);
        return;
    }
    ENGINE_HOOK("put off");
    struct group *to = &seconds->group;
    struct keys keys = keys_of(group, i);
    uint32_t at = to->n;
    uint64_t remainder = looks->remainder[i];
    uint32_t number =
        table_second(table, (uint32_t)group->number[i], remainder);
    const struct line *line = table_line(table, number);
    to->looks.line[at] = line;
    to->looks.form[at] = &table->form;
    to->looks.stripe[at] = &part->engine->shard[group->shard[i]]
                                .stripes.line[number % TABLE_STRIPES];
    to->looks.remainder[at] = remainder;
    to->looks.bit[at] = looks->bit[i];
    to->first[at] = keys.first;
    to->end[at] = keys.end;
    to->is_single &= group->is_single;
    to->is_plain &= group->is_plain;
    to->view[at] = keys.view;
    to->row[at] = group->row[i];
    to->shard[at] = group->shard[i];
    to->table[at] = table;
    seconds->stripe[at] = looks->stripe[i];
    seconds->seq[at] = looks->seq[i];
    to->n++;
    if (to->n == READ_GROUP) {
        look_at_seconds(part, seconds);
    }
}

LINE_TARGET_END

#endif
#endif
