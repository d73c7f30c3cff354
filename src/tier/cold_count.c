/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what segments have of pairs, once behind a start, a piece a call: so
 * many pairs of all shards, up to a whole row. For each shard the engine is
 * told the rows among them, and counts up to there. A piece is read and counted
 * under edit_lock, so nothing moves meanwhile.
 *
 * What can go wrong: a block that cannot be read: then the number is not known,
 * and the figure stays one that is being counted. Memory: the same is tried
 * again in the next round. */
#include "tier/cold_count.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/cover.h"
#include "engine/members.h"
#include "tier/cold_call.h"
#include "tier/cold_pairs.h"

#include <stdlib.h>

enum { PIECE_MAX = 16384 /* pairs; more of one row: of that one */ };

struct one {
    uint64_t row;
    unsigned shard;
};

/* One call. */
struct piece {
    struct cold *cold;
    struct engine_pairs of;
    struct cold_pairs pairs;
    struct one *one; /* n of capacity */
    size_t n, capacity;
    uint64_t *row; /* of one shard; capacity */
    uint64_t last_row;
    bool is_end;
};

/* A row is in no two pieces: so many pairs, and those of its other shards. */
static int
make_room(struct piece *it)
{
    it->capacity = PIECE_MAX + it->cold->segment_map.n_shards;
    it->one = malloc(it->capacity * sizeof *it->one);
    it->row = malloc(it->capacity * sizeof *it->row);
    return it->one == NULL || it->row == NULL ? ERR_NO_MEMORY : 0;
}

/* Reads the next pairs. */
static int
read_pairs(struct piece *it)
{
    const struct segment_map *segment_map = &it->cold->segment_map;
    uint64_t last = UINT64_MAX;
    while (it->n < it->capacity) {
        struct cold_pair pair;
        struct one one;
        int err = cold_pairs_next(&it->pairs, &pair, &it->is_end);
        if (err != 0 || it->is_end) {
            it->last_row = UINT64_MAX / segment_map->n_shards;
            return err;
        }
        engine_row(segment_map->engine, pair.id, &one.shard, &one.row);
        if (it->n >= PIECE_MAX && one.row != last) {
            break;
        }
        last = one.row;
        it->one[it->n++] = one;
    }
    it->last_row = last;
    return 0;
}

/* By shard, and by row in each. */
static int
compare(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    if (x->shard != y->shard) {
        return x->shard < y->shard ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

static void
count(const struct piece *it)
{
    size_t at = 0;
    qsort(it->one, it->n, sizeof *it->one, compare);
    for (unsigned i = 0; i < it->cold->segment_map.n_shards; i++) {
        size_t n = 0;
        for (; at < it->n && it->one[at].shard == i; at++) {
            it->row[n++] = it->one[at].row;
        }
        engine_count_rows(
            it->cold->engine, &it->of, i, it->last_row, it->row, n);
    }
    ASSERT(at == it->n);
}

/* Reads and counts a piece. */
static int
do_piece(struct piece *it)
{
    struct segment_map *segment_map = &it->cold->segment_map;
    uint64_t next = it->cold->counting.next_row;
    int err = make_room(it);
    if (err != 0) {
        return err;
    }
    mutex_lock(segment_map->edit_lock);
    err = cold_pairs_init(&it->pairs, segment_map, it->of.pairs, it->of.serial,
        next * segment_map->n_shards, UINT64_MAX);
    if (err == 0) {
        err = read_pairs(it);
    }
    if (err == 0) {
        count(it);
        it->cold->counting.next_row = it->last_row + 1;
    }
    cold_pairs_fini(&it->pairs);
    mutex_unlock(segment_map->edit_lock);
    return err;
}

bool
cold_count(struct cold *cold)
{
    struct cold_counting *counting = &cold->counting;
    struct piece it = {.cold = cold};
    unsigned at = counting->at;
    ASSERT(cold->magic == COLD_MAGIC);
    if (counting->is_over) {
        return false;
    }
    if (!engine_each_pairs(cold->engine, &at, &it.of)) {
        counting->is_over = true;
        return false;
    }
    if (counting->serial != it.of.serial) {
        counting->serial = it.of.serial;
        counting->next_row = 0;
    }
    int err = engine_is_counting(cold->engine, it.of.pairs) ? do_piece(&it)
                                                            : ERR_GONE;
    free(it.one);
    free(it.row);
    if (err == ERR_NO_MEMORY) {
        return false;
    }
    if (err == 0 && it.is_end) {
        engine_count_end(cold->engine, it.of.pairs);
    }
    if (err != 0 || it.is_end) {
        counting->at = at;
        counting->serial = 0;
    }
    return true;
}
