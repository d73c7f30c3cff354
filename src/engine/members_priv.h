/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MEMBERS_PRIV_H
#define ENGINE_MEMBERS_PRIV_H

#include "engine/members.h"
#include "engine/redo.h"

/* What the files of the engine need of members. Under the shard's lock unless
 * said. */

enum {
    MEMBER_WRITES_MAX = 3, /* records that the change of one becomes: the
                            * record, the pair, a reservation */
    /* the same of a change that gives numbers up: the record, stored notes */
    GIVE_UP_WRITES_MAX = 1 + SCHEMA_COLUMNS_MAX,
    MEMBER_NUMBER_BLOCK = 256 /* see member.c */
};

/* Does the change of a member; redo has room for MEMBER_WRITES_MAX more, or is
 * NULL. As all changes, it is done whole or not at all. */
void member__change(struct engine *engine, struct change *change,
    const struct engine_row *at, struct redo *redo);

/* What such a change makes of a record that there is not: err, and a code in
 * code[] that is not 0 where it would make one. */
void member__apply_new(
    struct engine *engine, struct change *change, uint64_t *code);

/* No number above it has a pair in these rows, be it here or in what covers
 * them; 0: none has. It may be more: what covers them may say so for the sake
 * of another shard. */
uint64_t members__top(const struct ranges *pairs, unsigned bits);

/* The number that the next record gets in the rows of pairs of a shard. */
uint64_t member__next_number(struct ranges *pairs, unsigned bits);

/* The bits of members, of a column of members. */
static inline unsigned
members__bits(const struct column *column)
{
    ASSERT(column->max != UINT64_MAX && column->max != 0);
    return (unsigned)__builtin_clzll(column->max);
}

/* Numbers that a record has and is to have no more: the columns of members, of
 * a mask of those that were read, that have one before and none behind. */
static inline uint32_t
members__given_up(const struct view *view, uint32_t columns,
    const uint64_t *before, const uint64_t *code)
{
    uint32_t given_up = 0;
    for (uint32_t left = view->members & columns; left != 0;
         left &= left - 1) {
        unsigned slot = (unsigned)__builtin_ctz(left);
        if (before[slot] != 0 && code[slot] == 0) {
            given_up |= UINT32_C(1) << slot;
        }
    }
    return given_up;
}

/* Stores notes of the numbers that a record has in some columns, so that a
 * start finds them; *stored: of which columns. 0; ERR_NO_MEMORY, ERR_HOT_FULL:
 * none is stored, and they must not be given up without. */
int members__store(struct engine *engine, const struct view *view,
    const struct ranges *records, const struct engine_row *at,
    uint32_t given_up, const uint64_t *number, uint32_t *stored);

/* Takes them back, for nothing was given up. */
void members__unstore(struct engine *engine, const struct view *view,
    const struct engine_row *at, uint32_t stored, const uint64_t *number);

/* The sink is to be told of them; redo has room for so many. */
void members__tell_stored(const struct engine *engine, const struct view *view,
    const struct engine_row *at, uint32_t stored, const uint64_t *number,
    struct redo *redo);

/* The row of the stored note of a number. */
static inline uint64_t
members__stored_row(uint64_t number, unsigned bits)
{
    uint64_t within = number % MEMBER_NUMBER_BLOCK;
    ASSERT(within != 0);
    return (number - within + MEMBER_NUMBER_BLOCK) << bits | within;
}

/* Takes out the stored note of a number whose pairs are gone, where it is here;
 * redo, which may be NULL, has room for one more. False where it is not, and
 * its row is covered: it may be there. */
bool members__clear_stored(
    struct engine *engine, const struct members_note *note, struct redo *redo);

/* The number is to be taken out that a stored note names; no lock but that of
 * its shard. */
void members__take_stored(struct engine *engine,
    const struct engine_pairs *pairs, unsigned shard, uint64_t row);

/* Notes the numbers that a record had in some columns and has no more. */
void members__note(struct engine *engine, const struct view *view,
    const struct change *change, const struct engine_row *at,
    uint32_t given_up, const uint64_t *before);

/* A note waits from now on, or is lost; its stage is MEMBERS_HERE. */
void members__push(struct engine *engine, const struct members_note *note);

/* The next notes, which are alike, into members.now, by number; they wait until
 * members__leave, or are put aside by members__pass_on. False where there are
 * none. The tending thread, without a lock, like the next one. */
bool members__pop(struct engine *engine);

/* So many pairs were taken out, and so many notes are done with. */
void members__leave(struct engine *engine, uint64_t n_pairs, unsigned n_notes);

/* A note goes to a later stage, and waits, or is lost. */
void members__pass_on(struct engine *engine, struct members_note *note,
    enum members_stage stage);

/* True where the pairs of a note are those that there were. Under the lock of
 * its shard. */
bool members__has_pairs(
    const struct engine *engine, const struct members_note *note);

/* Behind a start: what nobody has noted is looked for from now on. */
void members__find_begin(struct engine *engine);
void members__find_end(struct engine *engine);

/* And pairs are to be counted anew, where they are not known to be exact. */
void members__count_begin(struct engine *engine);

/* So many more pairs are no members, in that row. */
void members__count_mark(struct ranges *pairs, uint64_t row, int64_t step);

/* Looks through one table for it, under the shard's lock (some 0.3 ms at most).
 * True where it is not over. The tending thread, without a lock. */
bool members__find(struct engine *engine);

/* Frees the notes. No other call is under way; no lock. */
void members__fini(struct engine *engine);

/* Asserts what the numbers of a counter with members must be in a shard. */
void members__verify(struct engine *engine, unsigned slot, unsigned shard);

#endif
