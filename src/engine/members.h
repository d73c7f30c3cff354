/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_MEMBERS_H
#define ENGINE_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exact members of records (SCHEMA_MEMBERS). A record that has some has a
 * number, which no other record of its shard has or will have; they are the
 * records of another counter, that of the pairs, in the rows number <<
 * member_bits and on of the same shard. engine_pair says where one is, struct
 * change_member changes one. */

struct engine;
struct engine_numbers;

/* The members of the record `id` that are >= from: writes the first n (> 0) of
 * them, ascending, to member[], and what they have, never 0, to value[];
 * returns how many there are, fewer than n where there are no more. pairs is
 * the slot of the counter of pairs; number and bits as engine_pair has them,
 * and number 0 has none. Looks through whole tables, one under each hold of
 * the shard's lock (some 0.3 ms at most): what changes meanwhile may be in it
 * or not. Any thread, online or not. */
size_t engine_members(struct engine *engine, unsigned pairs, uint64_t id,
    uint64_t number, unsigned bits, uint64_t from, size_t n, uint64_t *member,
    uint64_t *value);

/* Adds figures of a counter of pairs in one shard to *out (engine/sum.h), and
 * says what was given up; bits as engine_pair has them. Where pairs are covered
 * since before a restart, the numbers may be those of the shard that has most.
 * Looks through one table or two, under the shard's lock (some 0.3 ms at most).
 * Any thread. */
void engine_numbers(struct engine *engine, unsigned pairs, unsigned bits,
    unsigned shard, struct engine_numbers *out);

/* True where the counter in a slot is that of these pairs, by the serial of
 * their column: where it is so behind a look, it was so all the time, for no
 * serial comes again. Under a shard's lock for a moment. Any thread, online or
 * not. */
bool engine_has_pairs(struct engine *engine, unsigned pairs, uint32_t serial);

/* True where the column in a slot of the counter in a slot has a value that is
 * not its default, in a record that is here. Looks through all tables, each
 * under a hold of its shard's lock; what is changed meanwhile may be missed.
 * Who calls defines and undefines counters. */
bool engine_has_values(struct engine *engine, unsigned slot, unsigned column);

/* True where something covers records of the counter (engine/cover.h) that may
 * have values of that column which are not its default. As engine_has_values;
 * what it covers changes under the same lock. */
bool engine_is_covered(struct engine *engine, unsigned slot, unsigned column);

/* True where ids can be given numbers, with members below 2^bits: else so many
 * shards leave no room for any. */
bool engine_has_numbers(const struct engine *engine, unsigned bits);

/* The same of what the engine has: where rows are covered also those that hold
 * nothing, with 0 in value[]; what covers them counts for all others. */
size_t engine_members_here(struct engine *engine, unsigned pairs, uint64_t id,
    uint64_t number, unsigned bits, uint64_t from, size_t n, uint64_t *member,
    uint64_t *value);

/* Background work, and a part of engine_tend: a record that was deleted, or
 * whose members were, has left pairs that nobody reaches any more. Takes out
 * some 64 of them, of up to 128 records of a shard; the sink is told. What it
 * finds in no table may be in covered rows: see engine_left. (Behind a start
 * engine_tend looks for such pairs that nobody has noted.) True where there may
 * be more. One thread at a time, that of engine_tend. */
bool engine_take_out(struct engine *engine);

/* From now on the engine has what another one is told (change.is_redo), or, as
 * at first, it has not. While it has, engine_tend takes no pairs out and looks
 * for none: those changes come, too. When it ceases to, it looks as behind a
 * start. The thread of engine_tend, or while it is not at work; without a
 * lock. */
void engine_follow(struct engine *engine, bool follows);

/* Rows of a counter of pairs that are to hold nothing any more: what was here
 * has been taken out, and some are covered. */
struct engine_left {
    uint64_t first_row, last_row;
    uint32_t serial; /* of the one column of the pairs */
    uint8_t pairs;   /* slot of their counter */
    uint16_t shard;
};

/* Those that are to be taken out of what covers them now, by whoever can read
 * that: the same until engine_left_done, or until their counter is gone. False
 * where there are none. The thread of engine_take_out. */
bool engine_left(struct engine *engine, struct engine_left *out);

/* All that could be read of those has been deleted, so many pairs; is_whole:
 * there was nothing else. */
void engine_left_done(struct engine *engine, uint64_t n_pairs, bool is_whole);

/* Behind a start, the numbers that were given up before it are looked for. The
 * engine does so in what it has, and whoever can read what covers rows of pairs
 * does afterwards: the stored notes there (engine/members_stored.c) are pairs
 * of numbers that are multiples of `block`, but for member 0. */
struct engine_pairs {
    uint32_t serial; /* of their one column */
    uint8_t pairs;   /* slot of their counter */
    uint8_t bits;    /* as engine_pair has them */
    unsigned block;
};

/* True once the engine has, and until engine_stored_end. The thread of
 * engine_take_out. */
bool engine_stored_due(const struct engine *engine);

/* The next counter of pairs from *at on, which is 0 at first and is moved;
 * false where there is none. Any thread, online or not. */
bool engine_each_pairs(
    struct engine *engine, unsigned *at, struct engine_pairs *out);

/* What covers the row has a stored note there, or any other pair: where the
 * engine has nothing newer the number that it names is given up. */
void engine_stored_found(struct engine *engine,
    const struct engine_pairs *pairs, unsigned shard, uint64_t row);

/* That were all. */
void engine_stored_end(struct engine *engine);

/* Figures of that since the start. */
struct engine_given_up {
    uint64_t waiting; /* records whose members are still to be taken out */
    uint64_t lost;    /* those that could not be noted, for memory was short:
                       * their pairs stay until another start */
    uint64_t unread;  /* of which some members could not be read
                       * (engine_left_done), and stay */
    uint64_t pairs;   /* taken out */
    bool is_looking;  /* for those that were given up before the start */
};

/* Any thread. */
void engine_given_up(struct engine *engine, struct engine_given_up *out);

#endif
