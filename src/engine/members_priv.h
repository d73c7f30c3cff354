/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MEMBERS_PRIV_H
#define ENGINE_MEMBERS_PRIV_H

#include "engine/members.h"
#include "engine/redo.h"

/* What the files of the engine need of members. Under the shard's lock unless
 * said. */

enum {
    MEMBER_WRITES_MAX = 3,    /* records that the change of one becomes: the
                               * record, the pair, a reservation */
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

/* Notes the numbers that a record had and has no more. */
void members__note(struct engine *engine, const struct view *view,
    const struct change *change, const struct engine_row *at,
    const uint64_t *before, const uint64_t *code);

/* A note waits from now on, or is lost; its stage is MEMBERS_HERE. */
void members__push(struct engine *engine, const struct members_note *note);

/* The next notes, which are alike, into members.now, by number; they wait until
 * members__leave, or are put aside by members__pass_on. False where there are
 * none. The tending thread, without a lock, like the next one. */
bool members__pop(struct engine *engine);

/* So many pairs were taken out, and so many notes are done with. */
void members__leave(struct engine *engine, uint64_t n_pairs, unsigned n_notes);

/* So many notes are lost. */
void members__lose(struct engine *engine, unsigned n_notes);

/* A note goes to its next stage, and waits, or is lost. */
void members__pass_on(struct engine *engine, struct members_note *note);

/* True where the pairs of a note are those that there were. Under the lock of
 * its shard. */
bool members__has_pairs(
    const struct engine *engine, const struct members_note *note);

/* Behind a start: what nobody has noted is looked for from now on. */
void members__find_begin(struct engine *engine);
void members__find_end(struct engine *engine);

/* Looks through one table for it, under the shard's lock (some 0.3 ms at most).
 * True where it is not over. The tending thread, without a lock. */
bool members__find(struct engine *engine);

/* Frees the notes. No other call is under way; no lock. */
void members__fini(struct engine *engine);

/* Asserts what the numbers of a counter with members must be in a shard. */
void members__verify(struct engine *engine, unsigned slot, unsigned shard);

#endif
