/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_FURTHER_H
#define ENGINE_READER_FURTHER_H

/* Further looks for what a first line did not answer, for the instruction set
 * that the including file has chosen; included for reader_body.h only.
 *
 * A record may move between its first line, its second and the stash; its
 * overflow bits are set before it leaves a line, so a line that is seen whole
 * and has neither the record nor its bit ends the search. A record that was
 * not in its first line and is in its second, or ends there, is right if the
 * first line's sequence counter has stayed what it was before the first look:
 * on its way back to the first it would have raised that. Whatever is still
 * open then is looked for again, in all three places between two looks at
 * their sequence counters. A table that has been exchanged meanwhile is frozen
 * and remains what it was. */
#include "engine/hook.h"
#include "engine/reader_look.h"
#include "engine/reader_priv.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum { READ_TRIES = 64 /* before the lock is taken */ };

/* How a look went. */
enum found { FOUND, ABSENT, DISTURBED };

/* Records on their way to their second lines, and what guards the first. */
struct seconds {
    struct group group;
    const _Atomic uint32_t *stripe[READ_GROUP];
    uint32_t seq[READ_GROUP];
};

static inline void
pause_a_little(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#endif
}

/* Answers the keys of record i from all its codes; NULL: there is none. */
static void
answer_codes(const struct part *part, const struct group *group, uint32_t i,
    const uint64_t *code)
{
    for (uint32_t k = group->first[i]; k < group->end[i]; k++) {
        answer_key(part, group->view[i], k,
            code == NULL ? 0 : code[part->key[k].column]);
    }
}

/* The same from what was found in a line. */
static inline void
answer_hit(const struct part *part, const struct group *group, uint32_t i,
    const struct line *line, const struct line_hit *hit)
{
    for (uint32_t k = group->first[i]; k < group->end[i]; k++) {
        answer_key(part, group->view[i], k,
            line_read_value(
                line, &group->table[i]->form, hit, part->key[k].column));
    }
}

/* One try for record i in all three places; where it is FOUND, the keys are
 * answered. */
static enum found
try_all(const struct part *part, const struct group *group, uint32_t i,
    const struct table_place *place)
{
    const struct table *table = group->table[i];
    const struct stripes *stripes =
        &part->engine->shard[group->shard[i]].stripes;
    const _Atomic uint32_t *stripe_1 =
        &stripes->line[place->line_1 % TABLE_STRIPES];
    const _Atomic uint32_t *stripe_2 =
        &stripes->line[place->line_2 % TABLE_STRIPES];
    uint32_t seq_1 = counter_now(stripe_1);
    uint32_t seq_2 = counter_now(stripe_2);
    uint32_t seq_stash = counter_now(&stripes->stash);
    uint64_t code[SHAPES_COLUMNS_MAX];
    struct line_hit hit;
    enum found found = ABSENT;
    if (((seq_1 | seq_2 | seq_stash) & 1) != 0) {
        return DISTURBED;
    }
    const struct line *line = table_line(table, place->line_1);
    if (line_read_find(line, &table->form, place->remainder, false, &hit)) {
        answer_hit(part, group, i, line, &hit);
        found = FOUND;
    } else if ((hit.mask >> place->bit & 1) != 0) {
        ENGINE_HOOK("second line");
        line = table_line(table, place->line_2);
        if (line_read_find(line, &table->form, place->remainder, true, &hit)) {
            answer_hit(part, group, i, line, &hit);
            found = FOUND;
        } else if ((hit.mask >> place->bit & 1) != 0) {
            ENGINE_HOOK("stash");
            /* acquire: a whole stash is seen */
            const struct stash *stash =
                atomic_load_explicit(&table->stash, memory_order_acquire);
            if (stash != NULL &&
                stash_find(stash, group->row[i] & table->mask, code)) {
                answer_codes(part, group, i, code);
                found = FOUND;
            }
        }
    }
    line_read_fence();
    ENGINE_HOOK("validate");
    bool is_unchanged = counter_after(stripe_1) == seq_1 &&
        counter_after(stripe_2) == seq_2 &&
        counter_after(&stripes->stash) == seq_stash;
    return is_unchanged ? found : DISTURBED;
}

/* Looks for record i until it is found, or is not there. */
static __attribute__((noinline)) void
look_everywhere(const struct part *part, const struct group *group, uint32_t i)
{
    uint64_t code[SHAPES_COLUMNS_MAX];
    struct table_place place =
        table_place(group->table[i], &part->engine->perm, group->row[i]);
    enum found found = try_all(part, group, i, &place);
    for (int n = 1; found == DISTURBED && n < READ_TRIES; n++) {
        pause_a_little();
        found = try_all(part, group, i, &place);
    }
    if (found == DISTURBED) {
        reader__locked(part->engine, part->key[group->first[i]].counter,
            group->shard[i], group->row[i], code);
        answer_codes(part, group, i, code);
    } else if (found == ABSENT) {
        answer_codes(part, group, i, NULL);
    }
}

/* Looks into the second lines of all that are on their way there. */
static __attribute__((noinline)) void
look_at_seconds(const struct part *part, struct seconds *seconds)
{
    uint8_t open[READ_GROUP + 1];
    struct group *group = &seconds->group;
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
