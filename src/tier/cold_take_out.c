/* SPDX-License-Identifier: BSD-3-Clause */
/* Deletes the pairs of numbers that were given up, where segments have them:
 * each is a change of a cold record, with what was read as its base, so that a
 * tombstone is in the engine and in the log. They go with the segments when
 * these are merged or written anew.
 *
 * No lock is held from one pair to the next. What moves meanwhile:
 *
 *   to a newer segment   the engine refuses the base; the rest is listed anew
 *   into the engine      the base is ignored, and the pair there is deleted;
 *                        what is not met here any more is found by the look
 *                        into the engine that follows (MEMBERS_AGAIN)
 *
 * What can go wrong: blocks that cannot be read, which is counted; memory, hot
 * tables that are full: the same is tried again in the next round. */
#include "tier/cold_take_out.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/members.h"
#include "tier/cold_call.h"
#include "tier/cold_pairs.h"

enum {
    TAKE_MAX = 64,     /* pairs deleted in one call, and */
    LOOK_MAX = 8192,   /* pairs of any shard that are read for them; */
    LOOK_BLOCK = 1024, /* a block that cannot be read counts as so many */
};

/* One call. */
struct piece {
    struct cold *cold;
    struct cold_taking *taking;
    struct engine_left left;
    struct cold_pairs pairs;
    unsigned n_looks, n_taken;
};

static uint64_t
first_id(const struct piece *it, uint64_t row)
{
    return row * it->cold->segment_map.n_shards;
}

/* The id behind the last one that a pair of the number may have; 0: there is
 * none behind it. */
static uint64_t
end_id(const struct piece *it)
{
    return first_id(it, (it->left.number + 1) << it->left.bits);
}

/* Goes on with the number that the call before was at, or begins with it. */
static void
take_up(struct piece *it)
{
    struct cold_taking *taking = it->taking;
    const struct engine_left *left = &it->left;
    ASSERT(left->number != 0);
    if (taking->number != left->number || taking->serial != left->serial ||
        taking->shard != left->shard) {
        *taking = (struct cold_taking){.number = left->number,
            .serial = left->serial,
            .shard = left->shard,
            .from_id = first_id(it, left->number << left->bits)};
    }
}

/* Deletes one; 0, or why it is still there. */
static int
take_one(struct piece *it, const struct cold_pair *pair)
{
    const struct engine_base base = {.id = pair->id,
        .version = pair->version,
        .is_there = true,
        .n_columns = 1,
        .serial = {it->left.serial},
        .code = {pair->code}};
    struct change change = {.id = pair->id,
        .op = CHANGE_DELETE,
        .counter = it->left.pairs,
        .n_columns = 1,
        .column = {0},
        .serial = {it->left.serial},
        .base = &base};
    (void)engine_change(it->cold->engine, &change, 1);
    it->n_taken += change.err == 0;
    return change.err == ERR_NOT_FOUND ? 0 : change.err;
}

static bool
is_of_shard(const struct piece *it, uint64_t pair_id)
{
    unsigned shard;
    uint64_t row;
    engine_row(it->cold->engine, pair_id, &shard, &row);
    return shard == it->left.shard;
}

/* The next pair, if there is one; 0, or why it is not done with. */
static int
do_next(struct piece *it, bool *is_end)
{
    struct cold_pair pair;
    struct cold_taking *taking = it->taking;
    int err = cold_pairs_next(&it->pairs, &pair, is_end);
    if (err == ERR_NO_MEMORY || *is_end) {
        return err;
    }
    if (err != 0) {
        taking->has_bad = true;
        taking->from_id = it->pairs.bad_last_id + 1;
        it->n_looks += LOOK_BLOCK;
        return 0;
    }
    it->n_looks++;
    err = is_of_shard(it, pair.id) ? take_one(it, &pair) : 0;
    if (err == 0) {
        taking->from_id = pair.id + 1;
    }
    return err;
}

/* Some pairs; *is_end where that were all. */
static int
do_piece(struct piece *it, bool *is_end)
{
    int err = cold_pairs_init(&it->pairs, &it->cold->segment_map,
        it->left.pairs, it->left.serial, it->taking->from_id, end_id(it) - 1);
    while (err == 0 && !*is_end && it->n_taken < TAKE_MAX &&
        it->n_looks < LOOK_MAX) {
        err = do_next(it, is_end);
        *is_end = *is_end || it->taking->from_id == end_id(it);
    }
    cold_pairs_fini(&it->pairs);
    it->taking->n_pairs += it->n_taken;
    return err;
}

bool
cold_take_out(struct cold *cold)
{
    struct piece it = {.cold = cold, .taking = &cold->taking};
    bool is_end = false;
    ASSERT(cold->magic == COLD_MAGIC);
    if (!engine_left(cold->engine, &it.left)) {
        return false;
    }
    take_up(&it);
    int err = do_piece(&it, &is_end);
    if (err == ERR_COLD || err == ERR_GONE) { /* it has moved, or they go */
        return true;
    }
    if (err != 0) {
        return false;
    }
    if (is_end) {
        engine_left_done(
            cold->engine, cold->taking.n_pairs, !cold->taking.has_bad);
        cold->taking.number = 0;
    }
    return true;
}
