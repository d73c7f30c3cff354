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
    uint32_t seq[READ_GROUP];
};

/* Looks into the second lines of all that are on their way there. */
static __attribute__((noinline)) void
look_at_seconds(const struct part *part, struct seconds *seconds)
{
    uint8_t open[READ_GROUP + 1];
    struct group *group = &seconds->group;
    ENGINE_HOOK("second lines");
    uint32_t n_open = look(part, group, true, open);
    uint32_t is_open = 0;
    for (uint32_t i = 0; i < n_open; i++) {
        is_open |= UINT32_C(1) << open[i];
    }
    for (uint32_t i = 0; i < group->n; i++) {
        if ((is_open >> i & 1) != 0 ||
            counter_after(seconds->stripe[i]) != seconds->seq[i]) {
            look_everywhere(part, group, i);
        }
    }
    group->n = 0;
}

/* What is to be done about record i of a group, which its first line did not
 * answer. */
static inline void
look_further(const struct part *part, const struct group *group, uint32_t i,
    struct seconds *seconds)
{
    struct group *to = &seconds->group;
    const struct table *table = group->table[i];
    if (group->is_open[i] != LINE_READ_ELSEWHERE || (group->seq[i] & 1) != 0) {
        look_everywhere(part, group, i);
        return;
    }
    ENGINE_HOOK("put off");
    uint32_t at = to->n;
    uint32_t number =
        table_second(table, group->number[i], group->remainder[i]);
    to->line[at] = table_line(table, number);
    __builtin_prefetch(to->line[at]);
    to->stripe[at] = &part->engine->shard[group->shard[i]]
                          .stripes.line[number % TABLE_STRIPES];
    to->first[at] = group->first[i];
    to->end[at] = group->end[i];
    to->view[at] = group->view[i];
    to->row[at] = group->row[i];
    to->shard[at] = group->shard[i];
    to->table[at] = table;
    to->remainder[at] = group->remainder[i];
    seconds->stripe[at] = group->stripe[i];
    seconds->seq[at] = group->seq[i];
    to->n++;
    if (to->n == READ_GROUP) {
        look_at_seconds(part, seconds);
    }
}

LINE_TARGET_END

#endif
#endif
