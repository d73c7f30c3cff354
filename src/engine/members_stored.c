/* SPDX-License-Identifier: BSD-3-Clause */
/* Stored notes. That a number is given up is stored as a pair, in the change
 * that gives it up, until its pairs are taken out: so a log, an image and a
 * segment have it, and a start knows what a crash has left. It is a pair of the
 * number that is reserved at the end of the block (member.c), which no record
 * gets, and its member is the place of the number in the block:
 *
 *   number   257  258  259  ...  511   512
 *                  |                    member 0: reserves 257 ... 511
 *                  | given up           member 2: 258 is given up
 *                  +------------------> (pair of 512)
 *
 * A number is given up once, so its stored note is a pair that never was there,
 * whatever covers its row. It is taken out last of all.
 *
 * What can go wrong: memory. Where pairs or records may be in segments, nothing
 * else would find the number behind a crash, and the change is refused. Where
 * all is here, members_find.c does, and the change is made without. */
#include "engine/members_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/change_store.h"
#include "engine/ranges_priv.h"

enum { STORED = 1 /* what such a pair has */ };

/* Where the stored note of a column's number is. */
struct stored {
    struct counter *pairs;
    struct ranges *ranges;
    uint32_t serial;
    uint8_t slot;
    uint64_t row, id;
};

/* False where the pairs are being dropped. */
static bool
find_stored(const struct engine *engine, unsigned slot, unsigned shard,
    unsigned bits, uint64_t number, struct stored *out)
{
    out->pairs = engine__counter(engine, slot);
    const struct view *view =
        out->pairs == NULL ? NULL : counter__view(out->pairs);
    /* relaxed: a moment sooner or later makes no difference */
    out->serial = view == NULL
        ? 0
        : atomic_load_explicit(&view->column[0].serial, memory_order_relaxed);
    if (out->serial == 0) {
        return false;
    }
    out->ranges = &out->pairs->ranges[shard];
    out->slot = (uint8_t)slot;
    out->row = members__stored_row(number, bits);
    out->id = engine__id(engine, shard, out->row);
    return true;
}

static bool
stored_of(const struct engine *engine, const struct view *view,
    const struct engine_row *at, unsigned column, uint64_t number,
    struct stored *out)
{
    return find_stored(engine, view->pairs[column], at->shard,
        members__bits(&view->column[column]), number, out);
}

/* Stores such a pair, or takes one out that is here, which needs no memory. */
static int
put(const struct stored *at, uint64_t value)
{
    struct ranges_look look;
    uint64_t code[SCHEMA_COLUMNS_MAX] = {value};
    ranges_seek(at->ranges, at->row, 1, &look);
    if (look.spot.record.code[0] == value) {
        return 0;
    }
    int err = change__store(
        at->pairs, at->ranges, &look, 1, code, at->id, ORIGIN_HERE);
    ASSERT(err == 0 || value != 0);
    if (err == 0) {
        members__count_mark(at->ranges, at->row, value != 0 ? 1 : -1);
    }
    return err;
}

static void
tell(const struct stored *at, uint64_t value, struct redo *redo)
{
    ASSERT(redo->n < ENGINE_WRITES_MAX);
    redo->write[redo->n++] = (struct engine_write){.id = at->id,
        .counter = at->slot,
        .n = 1,
        .serial = {at->serial},
        .value = {value}};
}

/* True where a number that is given up must not go without its note: of what
 * covers records or pairs it cannot be told who has which number. */
static bool
is_needed(const struct engine *engine, const struct ranges *records,
    const struct stored *stored)
{
    uint64_t last = UINT64_MAX >> engine->shard_bits;
    return cover_keeps_any(&stored->ranges->cover, 0, last) ||
        cover_keeps_any(&records->cover, 0, last);
}

int
members__store(struct engine *engine, const struct view *view,
    const struct ranges *records, const struct engine_row *at,
    uint32_t given_up, const uint64_t *number, uint32_t *stored)
{
    *stored = 0;
    lock_assert_held(&engine->shard[at->shard].lock);
    for (; given_up != 0; given_up &= given_up - 1) {
        unsigned column = (unsigned)__builtin_ctz(given_up);
        struct stored it;
        if (!stored_of(engine, view, at, column, number[column], &it)) {
            continue;
        }
        int err = put(&it, STORED);
        if (err == 0) {
            *stored |= UINT32_C(1) << column;
        } else if (is_needed(engine, records, &it)) {
            members__unstore(engine, view, at, *stored, number);
            *stored = 0;
            return err;
        }
    }
    return 0;
}

void
members__unstore(struct engine *engine, const struct view *view,
    const struct engine_row *at, uint32_t stored, const uint64_t *number)
{
    for (; stored != 0; stored &= stored - 1) {
        unsigned column = (unsigned)__builtin_ctz(stored);
        struct stored it;
        if (stored_of(engine, view, at, column, number[column], &it)) {
            (void)put(&it, 0);
        }
    }
}

void
members__tell_stored(const struct engine *engine, const struct view *view,
    const struct engine_row *at, uint32_t stored, const uint64_t *number,
    struct redo *redo)
{
    for (; stored != 0; stored &= stored - 1) {
        unsigned column = (unsigned)__builtin_ctz(stored);
        struct stored it;
        if (stored_of(engine, view, at, column, number[column], &it)) {
            tell(&it, STORED, redo);
        }
    }
}

bool
members__clear_stored(
    struct engine *engine, const struct members_note *note, struct redo *redo)
{
    struct stored it;
    struct ranges_look look;
    lock_assert_held(&engine->shard[note->shard].lock);
    if (!find_stored(
            engine, note->pairs, note->shard, note->bits, note->number, &it)) {
        return true;
    }
    ranges_seek(it.ranges, it.row, 1, &look);
    if (look.spot.where == TABLE_NOWHERE) {
        return cover_version(&it.ranges->cover, it.row) == 0;
    }
    if (look.spot.record.code[0] != 0) {
        (void)put(&it, 0);
        tell(&it, 0, redo);
    }
    return true;
}

/* The number that a pair names, if it is a stored note; else 0. */
static uint64_t
number_of(uint64_t row, unsigned bits)
{
    uint64_t reserved = row >> bits;
    uint64_t within = row & ((UINT64_C(1) << bits) - 1);
    return reserved % MEMBER_NUMBER_BLOCK != 0 || reserved == 0 ||
            within == 0 || within >= MEMBER_NUMBER_BLOCK
        ? 0
        : reserved - MEMBER_NUMBER_BLOCK + within;
}

void
members__take_stored(struct engine *engine, const struct engine_pairs *pairs,
    unsigned shard, uint64_t row)
{
    uint64_t number = number_of(row, pairs->bits);
    const struct members_note note = {.number = number,
        .serial = pairs->serial,
        .shard = (uint16_t)shard,
        .pairs = pairs->pairs,
        .bits = pairs->bits};
    if (number != 0) {
        members__push(engine, &note);
    }
}

/* ---- what covers rows ---- */

bool
engine_stored_due(const struct engine *engine)
{
    const struct members *members = &engine->members;
    return members->is_looking && members->find.state == MEMBERS_FIND_OVER;
}

bool
engine_each_pairs(
    struct engine *engine, unsigned *at, struct engine_pairs *out)
{
    struct shard *shard = &engine->shard[0]; /* any keeps a view */
    for (; *at < SCHEMA_COUNTERS_MAX * SCHEMA_COLUMNS_MAX; (*at)++) {
        unsigned column = *at % SCHEMA_COLUMNS_MAX;
        const struct counter *counter =
            engine__counter(engine, *at / SCHEMA_COLUMNS_MAX);
        if (counter == NULL) {
            continue;
        }
        struct stored it;
        shard__lock(shard);
        const struct view *view = counter__view(counter);
        bool is_one = view != NULL && (view->members >> column & 1) != 0;
        *out = (struct engine_pairs){.block = MEMBER_NUMBER_BLOCK};
        if (is_one) {
            out->pairs = view->pairs[column];
            out->bits = (uint8_t)members__bits(&view->column[column]);
            is_one = find_stored(engine, out->pairs, 0, out->bits, 1, &it);
            out->serial = it.serial;
        }
        shard__unlock(shard);
        if (is_one) {
            (*at)++;
            return true;
        }
    }
    return false;
}

void
engine_stored_found(struct engine *engine, const struct engine_pairs *pairs,
    unsigned shard, uint64_t row)
{
    uint64_t number = number_of(row, pairs->bits);
    struct stored it;
    struct ranges_look look;
    ASSERT(shard < engine->n_shards);
    if (number == 0) {
        return;
    }
    shard__lock(&engine->shard[shard]);
    if (find_stored(engine, pairs->pairs, shard, pairs->bits, number, &it) &&
        it.serial == pairs->serial) {
        ASSERT(it.row == row);
        ranges_seek(it.ranges, row, 1, &look);
        if (look.spot.where == TABLE_NOWHERE) {
            members__take_stored(engine, pairs, shard, row);
        }
    }
    shard__unlock(&engine->shard[shard]);
}

void
engine_stored_end(struct engine *engine)
{
    mutex_lock(&engine->members.lock);
    engine->members.is_looking = false;
    mutex_unlock(&engine->members.lock);
}
