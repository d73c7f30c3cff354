/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_READER_LOOK_H
#define ENGINE_READER_LOOK_H

/* Looks into the lines of a group's records; for reader_body.h only.
 *
 * First lines: records and misses come in no order a processor could foresee,
 * so all go the same way, without a branch on what a line holds, and what a
 * line did not answer is set aside. All lines are matched before the first is
 * answered from: there is much to wait for from a line to a place in it, and
 * the waits overlap.
 *
 * Everywhere, the look that always ends: first line, second line and stash
 * between two looks at all their sequence counters, again and again, and at
 * last under the lock. A table that has been exchanged meanwhile is frozen and
 * remains what it was.
 *
 * Second lines: a record may move between its first line, its second and the
 * stash; its overflow bits are set before it leaves a line, so a line that is
 * seen whole and has neither the record nor its bit ends the search. A record
 * that was not in its first line and is in its second, or ends there, is right
 * if the first line's sequence counter has stayed what it was before the first
 * look: on its way back to the first it would have raised that. What is still
 * open then is looked for everywhere. */
#include "engine/hook.h"
#include "engine/reader_answer.h"
#include "engine/reader_priv.h"
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
