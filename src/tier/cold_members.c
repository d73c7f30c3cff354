/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists members of a record, those of the engine in front of those that
 * segments have.
 *
 * In a segment the pairs of all shards that have one number are side by side,
 * as their rows are; those of the record's shard count. The engine is asked for
 * some pairs at a time, tombstones too; up to the last of them all is known
 * that it has, and so far the segments are read:
 *
 *   engine    x  x     o x         x |      x: a pair, o: a tombstone
 *   segments     . x x .      x      | x x  .: passed over
 *
 * A pair moves from the engine to a segment, or back, only under edit_lock. So
 * that is held from the first look into the engine until what covers these rows
 * is listed: each pair is in one of them. */
#include "tier/cold_members.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/members.h"
#include "tier/cold_pairs.h"

enum { HERE_MAX = 256 /* pairs that the engine is asked for */ };

struct walk {
    struct segment_map *segment_map;
    const struct cold_record *record;
    unsigned shard;
    uint64_t first_row; /* of member 0 */
    uint64_t end;       /* behind the last member of this piece */
    /* what the engine has of it: */
    size_t n_here, at;
    uint64_t here[HERE_MAX], here_value[HERE_MAX];
    struct cold_pairs cold; /* what segments have */
    /* out: */
    size_t n, n_max;
    uint64_t *member, *value;
};

static bool
is_full(const struct walk *it)
{
    return it->n == it->n_max;
}

static void
put(struct walk *it, uint64_t member, uint64_t value)
{
    ASSERT(!is_full(it) && value != 0);
    ASSERT(it->n == 0 || member > it->member[it->n - 1]);
    it->member[it->n] = member;
    it->value[it->n++] = value;
}

/* Those of the engine below `end`, as far as there is room. */
static void
put_here(struct walk *it, uint64_t end)
{
    for (; it->at < it->n_here && it->here[it->at] < end && !is_full(it);
         it->at++) {
        if (it->here_value[it->at] != 0) {
            put(it, it->here[it->at], it->here_value[it->at]);
        }
    }
}

/* The next piece from a member on. */
static int
begin(struct walk *it, uint64_t from)
{
    struct segment_map *segment_map = it->segment_map;
    const struct cold_record *record = it->record;
    uint64_t of_row = segment_map->n_shards - 1; /* ids of a row, less one */
    if (segment_map->edit_lock != NULL) {
        mutex_lock(segment_map->edit_lock);
    }
    it->at = 0;
    it->n_here = engine_members_here(segment_map->engine, record->pairs,
        record->id, record->number, record->bits, from, HERE_MAX, it->here,
        it->here_value);
    it->end = it->n_here == HERE_MAX ? it->here[HERE_MAX - 1] + 1
                                     : UINT64_C(1) << record->bits;
    uint64_t first =
        engine_id(segment_map->engine, it->shard, it->first_row + from);
    uint64_t last =
        engine_id(segment_map->engine, it->shard, it->first_row + it->end - 1);
    int err = cold_pairs_init(&it->cold, segment_map, record->pairs,
        record->serial, first & ~of_row, last | of_row);
    if (segment_map->edit_lock != NULL) {
        mutex_unlock(segment_map->edit_lock);
    }
    return err;
}

/* The member whose pair that is; false where it is of another shard. */
static bool
member_of(const struct walk *it, uint64_t pair_id, uint64_t *member)
{
    unsigned shard;
    uint64_t row;
    engine_row(it->segment_map->engine, pair_id, &shard, &row);
    *member = row - it->first_row;
    return shard == it->shard;
}

/* Writes what the piece has. On an error of the disk it ends behind what cannot
 * be read. */
static int
merge(struct walk *it)
{
    bool is_end = false;
    while (!is_full(it) && !is_end) {
        struct cold_pair pair;
        uint64_t member;
        int err = cold_pairs_next(&it->cold, &pair, &is_end);
        if (err == ERR_NO_MEMORY) {
            return err;
        }
        if (err != 0) {
            (void)member_of(it, it->cold.bad_last_id, &member);
            it->end = member < it->end ? member + 1 : it->end;
            put_here(it, it->end);
            return err;
        }
        if (is_end) {
            put_here(it, it->end);
        } else if (member_of(it, pair.id, &member)) {
            ASSERT(member < it->end);
            put_here(it, member);
            bool is_here = it->at < it->n_here && it->here[it->at] == member;
            if (!is_here && !is_full(it)) {
                put(it, member, pair.code);
            }
        }
    }
    return 0;
}

int
cold_members(struct segment_map *segment_map, const struct cold_record *record,
    uint64_t from, size_t n, uint64_t *member, uint64_t *value,
    size_t *n_found, uint64_t *next)
{
    struct walk it;
    uint64_t row;
    uint64_t all = UINT64_C(1) << record->bits;
    int err = 0;
    ASSERT(n > 0 && record->number != 0 && record->bits < 64);
    it.segment_map = segment_map;
    it.record = record;
    it.first_row = record->number << record->bits;
    it.n = 0;
    it.n_max = n;
    it.member = member;
    it.value = value;
    engine_row(segment_map->engine, record->id, &it.shard, &row);
    while (err == 0 && !is_full(&it) && from < all) {
        err = begin(&it, from);
        if (err == 0) {
            err = merge(&it);
            ASSERT(it.end > from && it.end <= all);
            from = is_full(&it) ? member[n - 1] + 1 : it.end;
        }
        cold_pairs_fini(&it.cold);
    }
    *n_found = it.n;
    *next = from;
    return err;
}
