/* SPDX-License-Identifier: BSD-3-Clause */
/* Behind a start: looks in segments for stored notes, by which a number that
 * was given up is known (engine/members_stored.c). They are pairs of every
 * 256th number, and ids of all shards with one number are side by side:
 *
 *   row / 2^bits:   ... 255 | 256      | 257 ... 511 | 512      | 513 ...
 *                             looked at               looked at
 *
 * So some block of every 256 numbers is read. The engine has looked at its own
 * before: what has gone to a segment since is known, and what has come from one
 * is found by another start.
 *
 * What can go wrong: a block that cannot be read, which is passed over; memory,
 * and the same is tried again in the next round. */
#include "tier/cold_take_out.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/members.h"
#include "tier/cold_call.h"
#include "tier/cold_pairs.h"

enum { SEEKS_MAX = 64, LOOKS_MAX = 8192 /* in a call */ };

/* One call. */
struct search {
    struct cold *cold;
    struct engine_pairs of;
    struct cold_pairs pairs;
    unsigned n_seeks, n_looks;
    bool is_end;
};

static uint64_t
first_id(const struct search *it, uint64_t row)
{
    return row * it->cold->segment_map.n_shards;
}

/* The last row that there can be. */
static uint64_t
row_max(const struct search *it)
{
    return UINT64_MAX / it->cold->segment_map.n_shards;
}

/* Goes on with the first row of the next number that is a multiple of block,
 * behind that one. */
static void
go_to_next(struct search *it, uint64_t number)
{
    uint64_t next = number - number % it->of.block + it->of.block;
    if (next > row_max(it) >> it->of.bits) {
        it->is_end = true;
        return;
    }
    it->cold->taking.next_row = next << it->of.bits;
    cold_pairs_seek(&it->pairs, first_id(it, it->cold->taking.next_row));
    it->n_seeks++;
}

static void
take(struct search *it, uint64_t pair_id)
{
    struct cold_taking *taking = &it->cold->taking;
    unsigned shard;
    uint64_t row;
    engine_row(it->cold->engine, pair_id, &shard, &row);
    uint64_t number = row >> it->of.bits;
    uint64_t member = row - (number << it->of.bits);
    ASSERT(row >= taking->next_row);
    if (number % it->of.block == 0 && member < it->of.block) {
        engine_stored_found(it->cold->engine, &it->of, shard, row);
        taking->next_row = row; /* of other shards, too */
    } else {
        go_to_next(it, number);
    }
}

/* Looks at the next pair. */
static int
look(struct search *it)
{
    struct cold_pair pair;
    int err = cold_pairs_next(&it->pairs, &pair, &it->is_end);
    it->n_looks++;
    if (err == ERR_NO_MEMORY || it->is_end) {
        return err;
    }
    if (err != 0) { /* what is read goes on behind it */
        uint64_t row = it->pairs.bad_last_id / it->cold->segment_map.n_shards;
        it->cold->taking.next_row = row;
        it->is_end = row == row_max(it);
        it->n_seeks++;
        return 0;
    }
    take(it, pair.id);
    return 0;
}

/* Some of the counter of pairs under way; is_end where that were all. */
static int
do_some(struct search *it)
{
    int err = cold_pairs_init(&it->pairs, &it->cold->segment_map, it->of.pairs,
        it->of.serial, first_id(it, it->cold->taking.next_row), UINT64_MAX);
    while (err == 0 && !it->is_end && it->n_seeks < SEEKS_MAX &&
        it->n_looks < LOOKS_MAX) {
        err = look(it);
    }
    cold_pairs_fini(&it->pairs);
    return err;
}

bool
cold__find_stored(struct cold *cold)
{
    struct cold_taking *taking = &cold->taking;
    struct search it = {.cold = cold};
    unsigned at = taking->at;
    if (!engine_each_pairs(cold->engine, &at, &it.of)) {
        engine_stored_end(cold->engine);
        return true;
    }
    if (taking->stored_serial != it.of.serial) {
        taking->stored_serial = it.of.serial;
        taking->next_row = (uint64_t)it.of.block << it.of.bits;
    }
    int err = do_some(&it);
    if (it.is_end || err == ERR_GONE) {
        taking->stored_serial = 0;
        taking->at = at;
        err = 0;
    }
    return err == 0;
}
