/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers whose pairs are to be taken out, as they wait for it. Notes are on
 * stacks, some for those of a few shards each, and one for those whose rows are
 * covered:
 *
 *   members__push ---> HERE ---> what is here is taken out ---> done with
 *                                      |                           ^
 *                                      | covered rows              |
 *                                      v                           |
 *              COVERED: whoever has the segments ---> AGAIN: what has come
 *              reads them and deletes what they have   from them meanwhile
 *
 * Before a note is done with, its stored note (members_stored.c) is taken out;
 * where that is in a covered row there is one more stage, STORED, which is as
 * COVERED.
 *
 * What can go wrong: memory. A note that has no room is lost, and counted; its
 * pairs stay until another start. */
#include "engine/members_notes.h"

#include "base/assert.h"
#include "engine/engine_priv.h"
#include "engine/members_priv.h"

#include <stdlib.h>

enum { NOTES = 100 /* a block */ };

/* Notes that wait, the newest on top. */
struct members_notes {
    struct members_notes *below;
    unsigned n;
    struct members_note note[NOTES];
};

static struct members_notes **
stack_of(struct members *members, const struct members_note *note)
{
    return note->stage == MEMBERS_COVERED || note->stage == MEMBERS_STORED
        ? &members->covered
        : &members->top[note->shard % MEMBERS_STACKS];
}

/* Puts a note on top; false: there is no memory. */
static bool
put(struct engine *engine, const struct members_note *note)
{
    struct members_notes **stack = stack_of(&engine->members, note);
    struct members_notes *top = *stack;
    mutex_assert_held(&engine->members.lock);
    if (top == NULL || top->n == NOTES) {
        top = alloc_zeroed(engine->alloc, sizeof *top);
        if (top == NULL) {
            return false;
        }
        top->below = *stack;
        *stack = top;
    }
    top->note[top->n++] = *note;
    return true;
}

/* The note on top of a stack that is not empty. */
static const struct members_note *
look(const struct members_notes *top)
{
    ASSERT(top->n > 0 && top->n <= NOTES);
    return &top->note[top->n - 1];
}

/* Takes that one off. */
static void
drop(struct engine *engine, struct members_notes **stack)
{
    struct members_notes *top = *stack;
    if (--top->n == 0) {
        *stack = top->below;
        alloc_free(engine->alloc, top, sizeof *top);
    }
}

void
members__push(struct engine *engine, const struct members_note *note)
{
    struct members *members = &engine->members;
    ASSERT(note->stage == MEMBERS_HERE);
    mutex_lock(&members->lock);
    if (put(engine, note)) {
        members->n_waiting++;
    } else {
        members->n_lost++;
    }
    mutex_unlock(&members->lock);
}

void
members__leave(struct engine *engine, uint64_t n_pairs, unsigned n_notes)
{
    struct members *members = &engine->members;
    mutex_lock(&members->lock);
    ASSERT(members->n_waiting >= n_notes);
    members->n_waiting -= n_notes;
    members->n_pairs += n_pairs;
    mutex_unlock(&members->lock);
}

/* So many notes are lost. */
static void
lose(struct engine *engine, unsigned n_notes)
{
    members__leave(engine, 0, n_notes);
    mutex_lock(&engine->members.lock);
    engine->members.n_lost += n_notes;
    mutex_unlock(&engine->members.lock);
}

void
members__pass_on(
    struct engine *engine, struct members_note *note, enum members_stage stage)
{
    struct members *members = &engine->members;
    ASSERT(stage > note->stage);
    note->stage = (uint8_t)stage;
    mutex_lock(&members->lock);
    bool is_put = put(engine, note);
    mutex_unlock(&members->lock);
    if (!is_put) {
        lose(engine, 1);
    }
}

/* True where both can be done in one go. */
static bool
is_alike(const struct members_note *a, const struct members_note *b)
{
    return a->shard == b->shard && a->pairs == b->pairs &&
        a->serial == b->serial && a->bits == b->bits;
}

/* Takes the top ones off a stack, as long as they are alike. */
static void
pop(struct engine *engine, struct members_notes **stack)
{
    struct members *members = &engine->members;
    mutex_assert_held(&members->lock);
    while (*stack != NULL && members->n_now < MEMBERS_BATCH) {
        const struct members_note *note = look(*stack);
        if (members->n_now > 0 && !is_alike(note, &members->now[0])) {
            return;
        }
        members->now[members->n_now++] = *note;
        drop(engine, stack);
    }
}

static int
compare_numbers(const void *a, const void *b)
{
    const struct members_note *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

bool
members__pop(struct engine *engine)
{
    struct members *members = &engine->members;
    ASSERT(members->n_now == 0);
    mutex_lock(&members->lock);
    for (unsigned i = 0; i < MEMBERS_STACKS && members->n_now == 0; i++) {
        members->stack = (members->stack + 1) % MEMBERS_STACKS;
        pop(engine, &members->top[members->stack]);
    }
    mutex_unlock(&members->lock);
    qsort(
        members->now, members->n_now, sizeof members->now[0], compare_numbers);
    return members->n_now > 0;
}

/* ---- covered rows ---- */

/* The next note of them; false where none waits. */
static bool
pop_covered(struct engine *engine)
{
    struct members *members = &engine->members;
    mutex_lock(&members->lock);
    members->has_left = members->covered != NULL;
    if (members->has_left) {
        members->left = *look(members->covered);
        drop(engine, &members->covered);
    }
    mutex_unlock(&members->lock);
    return members->has_left;
}

static bool
has_pairs(struct engine *engine, const struct members_note *note)
{
    struct shard *shard = &engine->shard[note->shard];
    shard__lock(shard);
    bool is_there = members__has_pairs(engine, note);
    shard__unlock(shard);
    return is_there;
}

/* The rows of what is to be taken out of covered ones. */
static uint64_t
first_row(const struct members_note *left)
{
    ASSERT(left->stage == MEMBERS_COVERED || left->stage == MEMBERS_STORED);
    return left->stage == MEMBERS_STORED
        ? members__stored_row(left->number, left->bits)
        : left->number << left->bits;
}

static uint64_t
last_row(const struct members_note *left)
{
    uint64_t first = first_row(left);
    return left->stage == MEMBERS_STORED
        ? first
        : first | ((UINT64_C(1) << left->bits) - 1);
}

bool
engine_left(struct engine *engine, struct engine_left *out)
{
    struct members *members = &engine->members;
    const struct members_note *left = &members->left;
    while (members->has_left || pop_covered(engine)) {
        if (has_pairs(engine, left)) {
            *out = (struct engine_left){.first_row = first_row(left),
                .last_row = last_row(left),
                .serial = left->serial,
                .pairs = left->pairs,
                .shard = left->shard};
            return true;
        }
        members->has_left = false;
        members__leave(engine, 0, 1);
    }
    return false;
}

/* The stored note is in no covered row any more, n_pairs: it was; here it is
 * where it has come from there meanwhile. */
static void
end_stored(
    struct engine *engine, const struct members_note *note, uint64_t n_pairs)
{
    struct counter *pairs = engine__counter(engine, note->pairs);
    struct engine_write write;
    struct redo redo = {.write = &write};
    shard__lock(&engine->shard[note->shard]);
    if (members__has_pairs(engine, note)) {
        (void)members__clear_stored(engine, note, &redo);
        members__count_mark(&pairs->ranges[note->shard],
            members__stored_row(note->number, note->bits), -(int64_t)n_pairs);
    }
    if (redo.n > 0 && engine->sink != NULL) {
        (void)engine->sink->write_fn(engine->sink, &write, redo.n);
    }
    shard__unlock(&engine->shard[note->shard]);
}

void
engine_left_done(struct engine *engine, uint64_t n_pairs, bool is_whole)
{
    struct members *members = &engine->members;
    ASSERT(members->has_left);
    members->has_left = false;
    mutex_lock(&members->lock);
    members->n_pairs += members->left.stage == MEMBERS_STORED ? 0 : n_pairs;
    members->n_unread += !is_whole;
    mutex_unlock(&members->lock);
    if (members->left.stage == MEMBERS_COVERED) {
        members__pass_on(engine, &members->left, MEMBERS_AGAIN);
    } else {
        end_stored(engine, &members->left, n_pairs);
        members__leave(engine, 0, 1);
    }
}

/* ---- all ---- */

static void
free_stack(struct engine *engine, struct members_notes **stack)
{
    while (*stack != NULL) {
        struct members_notes *below = (*stack)->below;
        alloc_free(engine->alloc, *stack, sizeof **stack);
        *stack = below;
    }
}

void
members__fini(struct engine *engine)
{
    struct members *members = &engine->members;
    for (unsigned i = 0; i < MEMBERS_STACKS; i++) {
        free_stack(engine, &members->top[i]);
    }
    free_stack(engine, &members->covered);
    members__find_end(engine);
    mutex_fini(&members->lock);
}
