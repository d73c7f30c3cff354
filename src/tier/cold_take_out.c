/* SPDX-License-Identifier: BSD-3-Clause */
/* Deletes the pairs of numbers that were given up, where segments have them:
 * each is a change of a cold record, with what was read as its base, so that a
 * tombstone is in the engine and in the log. They go with the segments when
 * these are merged or written anew. Blocks are read one after the other, and
 * what one has is deleted some records at a time.
 *
 * No lock is held from one batch to the next. What moves meanwhile:
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
    BATCH = 64,        /* pairs deleted at once */
    TAKE_MAX = 4096,   /* in one call, and */
    LOOK_MAX = 65536,  /* pairs of any shard that are read for them; */
    LOOK_BLOCK = 1024, /* a block that cannot be read counts as so many */
};

/* One call. */
struct piece {
    struct cold *cold;
    struct cold_taking *taking;
    struct engine_left left;
    struct cold_pairs pairs;
    unsigned n_looks, n_taken;
    bool is_end;
    /* found, and still there: */
    unsigned n;
    struct engine_base base[BATCH];
    struct change change[BATCH];
};

static uint64_t
first_id(const struct piece *it, uint64_t row)
{
    return row * it->cold->segment_map.n_shards;
}

/* The last id that one of the pairs may have. */
static uint64_t
last_id(const struct piece *it)
{
    return first_id(it, it->left.last_row) +
        (it->cold->segment_map.n_shards - 1);
}

/* Goes on with the rows that the call before was at, or begins with them. */
static void
take_up(struct piece *it)
{
    struct cold_taking *taking = it->taking;
    const struct engine_left *left = &it->left;
    ASSERT(left->first_row <= left->last_row);
    if (!taking->is_begun || taking->first_row != left->first_row ||
        taking->serial != left->serial || taking->shard != left->shard) {
        taking->is_begun = true;
        taking->first_row = left->first_row;
        taking->serial = left->serial;
        taking->shard = left->shard;
        taking->from_id = first_id(it, left->first_row);
        taking->n_pairs = 0;
        taking->has_bad = false;
    }
}

/* Nothing up to that id is to be looked at any more. */
static void
pass(struct piece *it, uint64_t id)
{
    ASSERT(id >= it->taking->from_id && id <= last_id(it));
    it->is_end = it->is_end || id == last_id(it);
    it->taking->from_id = id + 1;
}

static void
add(struct piece *it, const struct cold_pair *pair)
{
    struct engine_base *base = &it->base[it->n];
    ASSERT(it->n < BATCH);
    *base = (struct engine_base){.id = pair->id,
        .version = pair->version,
        .is_there = true,
        .n_columns = 1,
        .serial = {it->left.serial},
        .code = {pair->code}};
    it->change[it->n++] = (struct change){.id = pair->id,
        .op = CHANGE_DELETE,
        .counter = it->left.pairs,
        .n_columns = 1,
        .column = {0},
        .serial = {it->left.serial},
        .base = base};
}

/* Deletes what was found; 0, or why some are still there: then the first of
 * these is the next one to be looked at. */
static int
take_found(struct piece *it)
{
    struct cold *cold = it->cold;
    int err = 0;
    if (it->n == 0) {
        return 0;
    }
    qsbr_online(cold->segment_map.qsbr, &it->taking->reader);
    (void)engine_change(cold->engine, it->change, it->n);
    qsbr_offline(&it->taking->reader);
    for (unsigned i = 0; i < it->n; i++) {
        int one = it->change[i].err;
        it->n_taken += one == 0;
        if (one != 0 && one != ERR_NOT_FOUND && err == 0) {
            err = one;
            it->taking->from_id = it->change[i].id;
            it->is_end = false;
        }
    }
    it->n = 0;
    return err;
}

static bool
is_of_shard(const struct piece *it, uint64_t pair_id)
{
    unsigned shard;
    uint64_t row;
    engine_row(it->cold->engine, pair_id, &shard, &row);
    return shard == it->left.shard;
}

/* Looks at the next pair, if there is one; 0, or ERR_NO_MEMORY. */
static int
look(struct piece *it)
{
    struct cold_pair pair;
    bool is_end;
    int err = cold_pairs_next(&it->pairs, &pair, &is_end);
    if (err == ERR_NO_MEMORY) {
        return err;
    }
    if (err != 0) {
        it->taking->has_bad = true;
        it->n_looks += LOOK_BLOCK;
        pass(it, it->pairs.bad_last_id);
    } else if (is_end) {
        it->is_end = true;
    } else {
        it->n_looks++;
        if (is_of_shard(it, pair.id)) {
            add(it, &pair);
        }
        pass(it, pair.id);
    }
    return 0;
}

/* Some pairs; is_end where that were all. */
static int
do_piece(struct piece *it)
{
    int err = cold_pairs_init(&it->pairs, &it->cold->segment_map,
        it->left.pairs, it->left.serial, it->taking->from_id, last_id(it));
    while (err == 0 && !it->is_end && it->n_taken < TAKE_MAX &&
        it->n_looks < LOOK_MAX) {
        err = look(it);
        if (err == 0 && it->n == BATCH) {
            err = take_found(it);
        }
    }
    int last_err = take_found(it);
    cold_pairs_fini(&it->pairs);
    it->taking->n_pairs += it->n_taken;
    return err == 0 ? last_err : err;
}

void
cold_look_anew(struct cold *cold)
{
    ASSERT(cold->magic == COLD_MAGIC);
    cold->taking.at = 0;
    cold->taking.stored_serial = 0;
    cold->counting = (struct cold_counting){.is_over = false};
}

bool
cold_take_out(struct cold *cold)
{
    struct piece it;
    ASSERT(cold->magic == COLD_MAGIC);
    if (engine_stored_due(cold->engine)) {
        return cold__find_stored(cold);
    }
    if (!engine_left(cold->engine, &it.left)) {
        return false;
    }
    it.cold = cold;
    it.taking = &cold->taking;
    it.n_looks = it.n_taken = it.n = 0;
    it.is_end = false;
    take_up(&it);
    int err = do_piece(&it);
    if (err == ERR_COLD || err == ERR_GONE) { /* it has moved, or they go */
        return true;
    }
    if (err != 0) {
        return false;
    }
    if (it.is_end) {
        cold->taking.is_begun = false;
        engine_left_done(
            cold->engine, cold->taking.n_pairs, !cold->taking.has_bad);
    }
    return true;
}
