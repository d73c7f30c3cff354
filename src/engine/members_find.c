/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds numbers that no record has, and of which there are pairs: a crash has
 * come before these were taken out, and nobody has noted them since. Once
 * behind a start, for each column of members and shard:
 *
 *   STORED    all pairs of reserved numbers are looked at: one that is a stored
 *             note (members_stored.c) names a number; the only way where
 *             anything is covered, and where it is not, older programs have
 *             left none, and memory may have been short
 *   RECORDS   all records of the shard are looked at: each number below that
 *             of the next one is marked in a bit map
 *   PAIRS     all pairs of these numbers are: one that is not marked is noted
 *
 * A number below the next one is given to no record any more, so the marks are
 * all that there can be, if no record has been passed over. One that is in the
 * engine from the beginning to the end is met, as rows ascend and stay; so a
 * counter of which anything is covered is left alone, and so is a shard whose
 * records have left for a segment meanwhile.
 *
 * One call looks through a table. The bit map is of WINDOW numbers; where more
 * have been given, all is done again for the next ones. */
#include "engine/members_priv.h"

#include "base/assert.h"
#include "engine/engine_priv.h"
#include "engine/ranges_priv.h"
#include "engine/table_each.h"

enum { WINDOW = 1 << 20, WORD_BITS = 64, WORDS = WINDOW / WORD_BITS };

/* Where it looks now; false in each case where that is not there any more. */
struct place {
    const struct view *view;
    const struct ranges *records;
    struct ranges *pairs;
    const struct column *column;
};

static uint32_t
serial_in(const struct view *view, unsigned slot)
{
    /* relaxed: a moment sooner or later makes no difference */
    return atomic_load_explicit(
        &view->column[slot].serial, memory_order_relaxed);
}

static bool
find_place(
    struct engine *engine, const struct members_find *it, struct place *out)
{
    const struct counter *counter = engine__counter(engine, it->slot);
    lock_assert_held(&engine->shard[it->shard].lock);
    out->view = counter == NULL ? NULL : counter__view(counter);
    if (out->view == NULL || (out->view->members >> it->column & 1) == 0) {
        return false;
    }
    struct counter *pairs =
        engine__counter(engine, out->view->pairs[it->column]);
    if (pairs == NULL || counter__view(pairs) == NULL) {
        return false;
    }
    out->column = &out->view->column[it->column];
    out->records = &counter->ranges[it->shard];
    out->pairs = &pairs->ranges[it->shard];
    return true;
}

/* True where some record may be elsewhere. */
static bool
is_covered(const struct engine *engine, const struct place *place)
{
    return cover_keeps_any(
        &place->records->cover, 0, UINT64_MAX >> engine->shard_bits);
}

/* The next shard, column, or counter. */
static void
go_on(const struct engine *engine, struct members_find *it)
{
    it->state = MEMBERS_FIND_BEGIN;
    it->first = 0;
    if (++it->shard < engine->n_shards) {
        return;
    }
    it->shard = 0;
    if (++it->column == SCHEMA_COLUMNS_MAX) {
        it->column = 0;
        it->slot++;
    }
}

static void
begin_records(
    struct engine *engine, struct members_find *it, const struct place *place)
{
    if (is_covered(engine, place)) {
        go_on(engine, it);
        return;
    }
    for (size_t i = 0; i < WORDS; i++) {
        it->map[i] = 0;
    }
    it->state = MEMBERS_FIND_RECORDS;
    it->row = 0;
    it->n_evictions = engine->shard[it->shard].n_evictions;
}

/* Begins with the window that has number `first`, if there are such. */
static void
begin(
    struct engine *engine, struct members_find *it, const struct place *place)
{
    /* 0: the column has come since the start, and no number was given yet */
    it->end = place->pairs->next_number;
    if (it->first >= it->end) {
        go_on(engine, it);
        return;
    }
    it->serial = serial_in(place->view, it->column);
    if (it->first == 0) {
        it->state = MEMBERS_FIND_STORED;
        it->row = (uint64_t)MEMBER_NUMBER_BLOCK
            << members__bits(place->column);
    } else {
        begin_records(engine, it, place);
    }
}

/* Marks a number; true where it is of the window and was not marked. */
static bool
mark(struct members_find *it, uint64_t number)
{
    uint64_t i = number - it->first;
    if (number < it->first || i >= WINDOW || number >= it->end) {
        return false;
    }
    uint64_t *word = &it->map[i / WORD_BITS];
    uint64_t bit = UINT64_C(1) << i % WORD_BITS;
    bool is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

static void
take_record(void *context, uint64_t row, const uint64_t *code)
{
    struct members_find *it = context;
    (void)row;
    if (code[it->column] != 0) {
        (void)mark(it, code[it->column]);
    }
}

struct pairs_look {
    struct engine *engine;
    struct members_find *it;
    const struct place *place;
};

static void
take_pair(void *context, uint64_t row, const uint64_t *code)
{
    const struct pairs_look *look = context;
    struct members_find *it = look->it;
    const struct view *view = look->place->view;
    unsigned bits = members__bits(look->place->column);
    uint64_t number = row >> bits;
    if (code[0] == 0 || number % MEMBER_NUMBER_BLOCK == 0 ||
        !mark(it, number)) {
        return;
    }
    uint8_t slot = view->pairs[it->column];
    const struct counter *pairs = engine__counter(look->engine, slot);
    const struct members_note note = {.number = number,
        .serial = serial_in(counter__view(pairs), 0),
        .shard = (uint16_t)it->shard,
        .pairs = slot,
        .bits = (uint8_t)bits};
    members__push(look->engine, &note);
}

/* Looks through the next table that has rows from it->row on, up to `last`;
 * false where there is none. */
static bool
look_through(struct members_find *it, const struct ranges *ranges,
    uint64_t last,
    void (*record_fn)(void *context, uint64_t row, const uint64_t *code),
    void *context)
{
    const struct table *table =
        it->row > last ? NULL : ranges_from(ranges, it->row);
    if (table == NULL || table->base > last) {
        return false;
    }
    table_each(ranges->owner, table, record_fn, context);
    it->row = table->base + table->mask + 1;
    return it->row != 0; /* it was not the last there can be */
}

static void
take_stored(void *context, uint64_t row, const uint64_t *code)
{
    const struct pairs_look *look = context;
    const struct members_find *it = look->it;
    uint8_t slot = look->place->view->pairs[it->column];
    const struct counter *counter = engine__counter(look->engine, slot);
    const struct engine_pairs pairs = {
        .serial = serial_in(counter__view(counter), 0),
        .pairs = slot,
        .bits = (uint8_t)members__bits(look->place->column)};
    if (code[0] != 0 && row >= it->row) {
        members__take_stored(look->engine, &pairs, it->shard, row);
    }
}

/* From a row of pairs on, the first one that can be a stored note. */
static uint64_t
stored_from(uint64_t row, unsigned bits)
{
    uint64_t number = row >> bits;
    uint64_t within = row & ((UINT64_C(1) << bits) - 1);
    if (number % MEMBER_NUMBER_BLOCK == 0 && within < MEMBER_NUMBER_BLOCK) {
        return row;
    }
    number += MEMBER_NUMBER_BLOCK - number % MEMBER_NUMBER_BLOCK;
    return number << bits;
}

static void
look_at_stored(
    struct engine *engine, struct members_find *it, const struct place *place)
{
    unsigned bits = members__bits(place->column);
    struct pairs_look look = {engine, it, place};
    uint64_t last = UINT64_MAX >> engine->shard_bits;
    if (look_through(it, place->pairs, last, take_stored, &look)) {
        uint64_t row = stored_from(it->row, bits);
        if (row >= it->row) { /* else there is no such row */
            it->row = row;
            return;
        }
    }
    begin_records(engine, it, place);
}

static void
look_at_records(
    struct engine *engine, struct members_find *it, const struct place *place)
{
    if (look_through(it, place->records, UINT64_MAX, take_record, it)) {
        return;
    }
    if (is_covered(engine, place) ||
        engine->shard[it->shard].n_evictions != it->n_evictions) {
        go_on(engine, it);
        return;
    }
    it->state = MEMBERS_FIND_PAIRS;
    it->row = it->first << members__bits(place->column);
}

static void
look_at_pairs(
    struct engine *engine, struct members_find *it, const struct place *place)
{
    unsigned bits = members__bits(place->column);
    struct pairs_look look = {engine, it, place};
    uint64_t end = it->end - it->first > WINDOW ? it->first + WINDOW : it->end;
    ASSERT(end > it->first);
    if (!look_through(it, place->pairs, (end << bits) - 1, take_pair, &look)) {
        it->first = end;
        it->state = MEMBERS_FIND_BEGIN;
    }
}

/* One step, under the lock of its shard. */
static void
step(struct engine *engine, struct members_find *it)
{
    struct place place;
    if (!find_place(engine, it, &place) ||
        (it->state != MEMBERS_FIND_BEGIN &&
            serial_in(place.view, it->column) != it->serial)) {
        go_on(engine, it);
        return;
    }
    switch (it->state) {
    case MEMBERS_FIND_BEGIN:
        begin(engine, it, &place);
        break;
    case MEMBERS_FIND_STORED:
        look_at_stored(engine, it, &place);
        break;
    case MEMBERS_FIND_RECORDS:
        look_at_records(engine, it, &place);
        break;
    case MEMBERS_FIND_PAIRS:
        look_at_pairs(engine, it, &place);
        break;
    case MEMBERS_FIND_OVER:
    default:
        ASSERT(false);
    }
}

/* Works out the next number of what there is at the start. */
static void
find_next_numbers(struct engine *engine)
{
    struct members_find at = {.state = MEMBERS_FIND_BEGIN};
    while (at.slot < SCHEMA_COUNTERS_MAX) {
        if (engine__counter(engine, at.slot) == NULL) {
            at.slot++;
            continue;
        }
        struct shard *shard = &engine->shard[at.shard];
        struct place place;
        shard__lock(shard);
        if (find_place(engine, &at, &place)) {
            (void)member__next_number(
                place.pairs, members__bits(place.column));
        }
        shard__unlock(shard);
        go_on(engine, &at);
    }
}

void
members__find_begin(struct engine *engine)
{
    struct members_find *it = &engine->members.find;
    members__find_end(engine);
    find_next_numbers(engine);
    members__count_begin(engine);
    *it = (struct members_find){.state = MEMBERS_FIND_BEGIN};
    mutex_lock(&engine->members.lock);
    engine->members.is_looking = true;
    mutex_unlock(&engine->members.lock);
}

void
members__find_end(struct engine *engine)
{
    struct members_find *it = &engine->members.find;
    alloc_free(engine->alloc, it->map, WORDS * sizeof it->map[0]);
    it->map = NULL;
    it->state = MEMBERS_FIND_OVER;
}

/* True where the counter has columns of members from it->column on. What has
 * been a view is kept for who holds a lock, of whichever shard (publish). */
static bool
has_columns(struct engine *engine, const struct members_find *it)
{
    const struct counter *counter = engine__counter(engine, it->slot);
    struct shard *shard = &engine->shard[it->shard];
    if (counter == NULL) {
        return false;
    }
    shard__lock(shard);
    const struct view *view = counter__view(counter);
    bool any = view != NULL && view->members >> it->column != 0;
    shard__unlock(shard);
    return any;
}

/* The next counter that has columns of members from it->slot on; false where
 * there is none. */
static bool
has_counter(struct engine *engine, struct members_find *it)
{
    for (; it->slot < SCHEMA_COUNTERS_MAX; it->slot++) {
        if (has_columns(engine, it)) {
            return true;
        }
        it->column = it->shard = 0;
        it->first = 0;
        it->state = MEMBERS_FIND_BEGIN;
    }
    return false;
}

bool
members__find(struct engine *engine)
{
    struct members_find *it = &engine->members.find;
    if (it->state == MEMBERS_FIND_OVER || pool_is_loading(&engine->pool)) {
        return false;
    }
    if (has_counter(engine, it) && it->map == NULL) {
        it->map = alloc_zeroed(engine->alloc, WORDS * sizeof it->map[0]);
    }
    if (it->slot == SCHEMA_COUNTERS_MAX || it->map == NULL) {
        members__find_end(engine);
        if (engine->cover == NULL) {
            engine_stored_end(engine);
        }
        return false;
    }
    struct shard *shard = &engine->shard[it->shard];
    shard__lock(shard);
    step(engine, it);
    shard__unlock(shard);
    return true;
}
