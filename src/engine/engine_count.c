/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the pairs of a counter anew, behind a start. What is loaded for
 * covered rows has been counted as if what covers them had it, too
 * (engine_size); who can read that goes through all rows, and here each piece
 * is counted under its shard's lock:
 *
 *   rows    0 ............ counted_to ..............
 *           in n_counted,            not yet
 *           changes as well
 *
 * So n_counted is exact when the last row is counted, and takes the place of
 * n_live. What covers rows does not change from where a piece of it is read to
 * where that is counted; an eviction between two pieces changes no record. */
#include "engine/cover.h"

#include "base/assert.h"
#include "engine/engine_priv.h"
#include "engine/members_priv.h"
#include "engine/ranges_priv.h"
#include "engine/table_each.h"

/* What covers rows from..last of a shard has row[0..n-1]. */
struct piece {
    uint64_t from, last;
    const uint64_t *row;
    size_t n;
    unsigned bits;
    int64_t n_live, n_marks; /* counted */
};

static bool
is_mark(const struct piece *it, uint64_t row)
{
    return (row >> it->bits) % MEMBER_NUMBER_BLOCK == 0;
}

static bool
has_row(const struct piece *it, uint64_t row)
{
    size_t low = 0, high = it->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (it->row[mid] < row) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < it->n && it->row[low] == row;
}

static void
count_here(void *context, uint64_t row, const uint64_t *code)
{
    struct piece *it = context;
    if (row >= it->from && row <= it->last) {
        int step = (code[0] != 0) - has_row(it, row);
        it->n_live += step;
        it->n_marks += is_mark(it, row) ? step : 0;
    }
}

/* Counts up to the end of the first table there; false where nothing is to be
 * counted any more. */
static bool
count_on(struct counter *counter, unsigned shard, struct piece *it)
{
    struct ranges *ranges = &counter->ranges[shard];
    table_owner_assert_held(ranges->owner);
    if (counter__view(counter) == NULL || !ranges->is_counting) {
        return false;
    }
    uint64_t last = it->last;
    const struct table *table = ranges_from(ranges, ranges->counted_to);
    it->from = ranges->counted_to;
    if (table != NULL && table->base + table->mask < last) {
        it->last = table->base + table->mask;
    }
    struct piece now = *it;
    for (now.n = 0; now.n < it->n && it->row[now.n] <= it->last; now.n++) {
        ASSERT(it->row[now.n] >= it->from);
        now.n_live++;
        now.n_marks += is_mark(it, it->row[now.n]);
    }
    if (table != NULL) {
        table_each(ranges->owner, table, count_here, &now);
    }
    ranges->n_counted += now.n_live;
    ranges->n_marks += now.n_marks;
    /* no pair has the last row that there is, for its number is no record's */
    ranges->counted_to = now.last == UINT64_MAX ? UINT64_MAX : now.last + 1;
    it->row += now.n;
    it->n -= now.n;
    bool is_over = now.last == last;
    it->last = last;
    return !is_over;
}

void
engine_count_rows(struct engine *engine, const struct engine_pairs *pairs,
    unsigned shard, uint64_t last_row, const uint64_t *row, size_t n)
{
    unsigned slot = pairs->pairs;
    struct counter *counter = engine__counter(engine, slot);
    struct piece it = {
        .last = last_row, .row = row, .n = n, .bits = pairs->bits};
    bool more = counter != NULL;
    ASSERT(slot < SCHEMA_COUNTERS_MAX && shard < engine->n_shards);
    while (more) {
        shard__lock(&engine->shard[shard]);
        more = count_on(counter, shard, &it);
        shard__unlock(&engine->shard[shard]);
    }
}

bool
engine_is_counting(struct engine *engine, unsigned slot)
{
    const struct counter *counter = engine__counter(engine, slot);
    bool is_counting = counter != NULL;
    for (unsigned i = 0; is_counting && i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        is_counting = counter->ranges[i].is_counting;
        shard__unlock(&engine->shard[i]);
    }
    return is_counting;
}

void
engine_count_end(struct engine *engine, unsigned slot)
{
    struct counter *counter = engine__counter(engine, slot);
    for (unsigned i = 0; counter != NULL && i < engine->n_shards; i++) {
        struct ranges *ranges = &counter->ranges[i];
        shard__lock(&engine->shard[i]);
        if (ranges->is_counting) {
            ranges->n_live = ranges->n_counted;
            ranges->is_counting = false;
            ranges->knows_marks = true;
        }
        shard__unlock(&engine->shard[i]);
    }
}

void
members__count_mark(struct ranges *pairs, uint64_t row, int64_t step)
{
    table_owner_assert_held(pairs->owner);
    if (pairs->knows_marks ||
        (pairs->is_counting && row < pairs->counted_to)) {
        pairs->n_marks += step;
    }
}

/* True where some of the counter is covered, or was while what it is was told
 * (follow_pair): then what came beside it may have been there, and numbers that
 * were passed over have no marks. */
static bool
is_doubtful(struct engine *engine, const struct counter *counter)
{
    uint64_t last = UINT64_MAX >> engine->shard_bits;
    bool any = false;
    for (unsigned i = 0; !any && i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        any = counter->ranges[i].is_counting ||
            cover_keeps_any(&counter->ranges[i].cover, 0, last);
        shard__unlock(&engine->shard[i]);
    }
    return any;
}

void
members__count_begin(struct engine *engine)
{
    struct engine_pairs pairs;
    unsigned at = 0;
    while (engine_each_pairs(engine, &at, &pairs)) {
        struct counter *counter = engine__counter(engine, pairs.pairs);
        bool is_counting = is_doubtful(engine, counter);
        for (unsigned i = 0; i < engine->n_shards; i++) {
            struct ranges *ranges = &counter->ranges[i];
            shard__lock(&engine->shard[i]);
            ranges->is_counting = is_counting;
            ranges->counted_to = 0;
            ranges->n_counted = ranges->n_marks = 0;
            ranges->knows_marks = false;
            shard__unlock(&engine->shard[i]);
        }
    }
}
