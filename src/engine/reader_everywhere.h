/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_EVERYWHERE_H
#define ENGINE_READER_EVERYWHERE_H

/* The look that always ends, for the instruction set that the including file
 * has chosen; included for reader_body.h only: first line, second line and
 * stash between two looks at all their sequence counters, again and again, and
 * at last under the lock. A table that has been exchanged meanwhile is frozen
 * and remains what it was. */
#include "engine/hook.h"
#include "engine/reader_look.h"
#include "engine/reader_priv.h"

#if LINE_READ_HAVE

LINE_TARGET_BEGIN

enum { READ_TRIES = 64 /* before the lock is taken */ };

/* How a look went. */
enum found { FOUND, ABSENT, DISTURBED };

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
    struct keys keys = keys_of(group, i);
    for (uint32_t k = keys.first; k < keys.end; k++) {
        answer_one(
            part, keys.view, k, code == NULL ? 0 : code[part->key[k].column]);
    }
}

/* The same from what was found in a line. */
static inline void
answer_hit(const struct part *part, const struct group *group, uint32_t i,
    const struct line *line, const struct line_hit *hit)
{
    struct keys keys = keys_of(group, i);
    for (uint32_t k = keys.first; k < keys.end; k++) {
        answer_one(part, keys.view, k,
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
    ENGINE_HOOK("first line");
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
                stash_find(stash, group->row[i] & table_mask(table), code)) {
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
        reader__locked(part->engine,
            part->key[keys_of(group, i).first].counter,
            (uint32_t)group->shard[i], group->row[i], code);
        answer_codes(part, group, i, code);
    } else if (found == ABSENT) {
        answer_codes(part, group, i, NULL);
    }
}

LINE_TARGET_END

#endif
#endif
