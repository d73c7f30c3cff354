/* SPDX-License-Identifier: BSD-3-Clause */
/* Members beyond one change: those of a record in their order, and those that a
 * record has left behind.
 *
 * A record that loses its number, because it is deleted or its members are, has
 * no members from then on: nobody knows the number any more. Its pairs are
 * taken out later, a piece at a time, by the thread that tends. What is to be
 * taken out is noted in memory; and as a pair (members_stored.c), by which a
 * start finds it. A replay notes nothing: what is to be taken out is known when
 * all is loaded. */
#include "engine/members.h"

#include "base/assert.h"
#include "engine/members_priv.h"
#include "engine/ranges_priv.h"
#include "engine/sum.h"
#include "engine/table_each.h"

#include <stdlib.h>
#include <string.h>

enum { TAKE_OUT = ENGINE_WRITES_MAX };

/* 0 where it is being dropped. */
static uint32_t
serial_of(const struct view *view, unsigned slot)
{
    /* relaxed: a moment sooner or later makes no difference */
    return view == NULL ? 0
                        : atomic_load_explicit(&view->column[slot].serial,
                              memory_order_relaxed);
}

static const struct view *
view_of(const struct engine *engine, unsigned slot)
{
    const struct counter *counter = engine__counter(engine, slot);
    return counter == NULL ? NULL : counter__view(counter);
}

void
members__note(struct engine *engine, const struct view *view,
    const struct change *change, const struct engine_row *at,
    uint32_t given_up, const uint64_t *before)
{
    lock_assert_held(&engine->shard[at->shard].lock);
    if (pool_is_loading(&engine->pool)) {
        return;
    }
    for (uint32_t left = given_up; left != 0; left &= left - 1) {
        unsigned slot = (unsigned)__builtin_ctz(left);
        uint32_t serial = serial_of(view_of(engine, view->pairs[slot]), 0);
        if (serial == 0) {
            continue;
        }
        const struct members_note note = {.number = before[slot],
            .serial = serial,
            .shard = (uint16_t)at->shard,
            .pairs = view->pairs[slot],
            .bits = (uint8_t)members__bits(&view->column[slot])};
        const struct sorted_key key = {.id = change->id,
            .number = note.number,
            .serial = serial,
            .pairs = note.pairs,
            .bits = note.bits};
        if (!change->is_redo) { /* else who has told it sees to them */
            members__push(engine, &note);
        }
        sorted__forget(engine, at->shard, &key);
    }
}

struct largest {
    uint64_t row;
    bool any;
};

static void
take_larger(void *context, uint64_t row, const uint64_t *code)
{
    struct largest *it = context;
    if (code[0] != 0 && (!it->any || row > it->row)) {
        it->row = row;
        it->any = true;
    }
}

/* The largest number that has a pair here; 0: none has. */
static uint64_t
largest_here(const struct ranges *pairs, unsigned bits)
{
    const struct directory *directory = ranges__directory(pairs);
    size_t i = directory == NULL ? 0 : directory_count(directory);
    struct largest it = {.any = false};
    table_owner_assert_held(pairs->owner);
    while (i-- > 0 && !it.any) {
        table_each(pairs->owner, directory_entries(directory)[i].table,
            take_larger, &it);
    }
    return it.any ? it.row >> bits : 0;
}

uint64_t
members__top(const struct ranges *pairs, unsigned bits)
{
    uint64_t here = largest_here(pairs, bits), row = 0;
    uint64_t covered = cover_last_row(&pairs->cover, &row) ? row >> bits : 0;
    return here > covered ? here : covered;
}

struct values {
    unsigned column;
    bool any;
};

static void
look_for_value(void *context, uint64_t row, const uint64_t *code)
{
    struct values *it = context;
    (void)row;
    it->any |= code[it->column] != 0;
}

/* In one shard, a table under each hold of its lock. */
static bool
shard_has_values(struct engine *engine, const struct counter *counter,
    unsigned shard, unsigned column)
{
    struct values it = {.column = column};
    uint64_t row = 0;
    bool more = true;
    while (more && !it.any) {
        shard__lock(&engine->shard[shard]);
        const struct ranges *ranges = &counter->ranges[shard];
        const struct table *table = ranges_from(ranges, row);
        more = table != NULL;
        if (more) {
            table_each(ranges->owner, table, look_for_value, &it);
            row = table->base + table->mask + 1;
            more = row != 0; /* it was not the last there can be */
        }
        shard__unlock(&engine->shard[shard]);
    }
    return it.any;
}

bool
engine_has_values(struct engine *engine, unsigned slot, unsigned column)
{
    const struct counter *counter = engine__counter(engine, slot);
    bool any = false;
    ASSERT(slot < SCHEMA_COUNTERS_MAX && column < SCHEMA_COLUMNS_MAX);
    for (unsigned i = 0; counter != NULL && !any && i < engine->n_shards;
         i++) {
        any = shard_has_values(engine, counter, i, column);
    }
    return any;
}

bool
engine_is_covered(struct engine *engine, unsigned slot, unsigned column)
{
    const struct engine_cover *cover = engine->cover;
    const struct view *view = view_of(engine, slot);
    uint32_t serial = serial_of(view, column);
    bool any = false;
    ASSERT(slot < SCHEMA_COUNTERS_MAX && column < SCHEMA_COLUMNS_MAX);
    for (unsigned i = 0;
         cover != NULL && serial != 0 && !any && i < engine->n_shards; i++) {
        shard__lock(&engine->shard[i]);
        any = cover->column_fn(cover, slot, i, serial);
        shard__unlock(&engine->shard[i]);
    }
    return any;
}

bool
engine_has_numbers(const struct engine *engine, unsigned bits)
{
    ASSERT(bits < 64 - engine->shard_bits);
    /* the first reservation fits */
    return (uint64_t)MEMBER_NUMBER_BLOCK >> (64 - engine->shard_bits - bits) ==
        0;
}

void
engine_given_up(struct engine *engine, struct engine_given_up *out)
{
    struct members *members = &engine->members;
    mutex_lock(&members->lock);
    *out = (struct engine_given_up){.waiting = members->n_waiting,
        .lost = members->n_lost,
        .unread = members->n_unread,
        .pairs = members->n_pairs,
        .is_looking = members->is_looking};
    mutex_unlock(&members->lock);
}

void
engine_numbers(struct engine *engine, unsigned pairs, unsigned bits,
    unsigned shard, struct engine_numbers *out)
{
    struct counter *counter = engine__counter(engine, pairs);
    struct engine_given_up given_up;
    ASSERT(shard < engine->n_shards && bits < 64);
    engine_given_up(engine, &given_up);
    if (given_up.waiting > out->waiting) {
        out->waiting = given_up.waiting;
    }
    out->lost = given_up.lost;
    out->unread = given_up.unread;
    out->taken_out = given_up.pairs;
    out->looking |= given_up.is_looking;
    if (counter == NULL) {
        return;
    }
    shard__lock(&engine->shard[shard]);
    const struct ranges *ranges = &counter->ranges[shard];
    if (counter__view(counter) != NULL) {
        uint64_t last = ranges->next_number - 1;
        if (ranges->next_number == 0) {
            uint64_t top = members__top(ranges, bits);
            last = top - top % MEMBER_NUMBER_BLOCK;
        }
        /* of the last block, too: it has been begun */
        out->marks += ranges->knows_marks
            ? (uint64_t)ranges->n_marks
            : (last + MEMBER_NUMBER_BLOCK - 1) / MEMBER_NUMBER_BLOCK;
        out->counting |= ranges->is_counting;
        out->given += last - last / MEMBER_NUMBER_BLOCK;
    }
    shard__unlock(&engine->shard[shard]);
}

/* The n smallest rows from first to last that hold something: a heap whose
 * largest is on top, which is full where it has n_max. */
struct smallest {
    const struct members *only; /* rows of its numbers; NULL: all */
    bool with_empty;            /* those that hold nothing, too */
    uint64_t first, last;
    uint64_t *row, *value; /* value may be NULL */
    size_t n, n_max;
};

static void
swap(struct smallest *it, size_t a, size_t b)
{
    uint64_t row = it->row[a];
    it->row[a] = it->row[b];
    it->row[b] = row;
    if (it->value != NULL) {
        uint64_t value = it->value[a];
        it->value[a] = it->value[b];
        it->value[b] = value;
    }
}

static void
sift_down(struct smallest *it, size_t n)
{
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < n && it->row[child + 1] > it->row[child]) {
            child++;
        }
        if (child >= n || it->row[child] <= it->row[at]) {
            return;
        }
        swap(it, child, at);
        at = child;
    }
}

static void
sift_up(struct smallest *it, size_t at)
{
    while (at > 0 && it->row[(at - 1) / 2] < it->row[at]) {
        swap(it, at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
}

static void
put_at(struct smallest *it, size_t at, uint64_t row, uint64_t value)
{
    it->row[at] = row;
    if (it->value != NULL) {
        it->value[at] = value;
    }
}

/* The first of the notes whose pairs are not all before the row; n_now where
 * there is none. */
static unsigned
note_from(const struct members *members, uint64_t row)
{
    uint64_t number = row >> members->now[0].bits;
    unsigned low = 0, high = members->n_now;
    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (members->now[mid].number < number) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

/* True where the row has a pair of one of the notes. */
static bool
has_number(const struct members *members, uint64_t row)
{
    unsigned at = note_from(members, row);
    return at < members->n_now &&
        members->now[at].number == row >> members->now[0].bits;
}

static void
take_smaller(void *context, uint64_t row, const uint64_t *code)
{
    struct smallest *it = context;
    if ((code[0] == 0 && !it->with_empty) || row < it->first ||
        row > it->last || (it->only != NULL && !has_number(it->only, row))) {
        return;
    }
    if (it->n < it->n_max) {
        put_at(it, it->n, row, code[0]);
        sift_up(it, it->n++);
    } else if (row < it->row[0]) {
        put_at(it, 0, row, code[0]);
        sift_down(it, it->n);
    }
}

/* Ascending. */
static void
sort(struct smallest *it)
{
    for (size_t n = it->n; n > 1; n--) {
        swap(it, 0, n - 1);
        sift_down(it, n - 1);
    }
}

/* The smallest rows of the next table that has some from *from on, ascending;
 * and moves *from behind what has been looked at. False where none follows. */
static bool
look_on(const struct ranges *ranges, uint64_t *from, struct smallest *it)
{
    struct table *table = ranges_from(ranges, *from);
    it->first = *from;
    it->n = 0;
    if (table == NULL || table->base > it->last) {
        return false;
    }
    table_each(ranges->owner, table, take_smaller, it);
    sort(it);
    uint64_t end = table->base + table->mask;
    if (it->n == it->n_max) {
        end = it->row[it->n - 1];
    }
    *from = end + 1;
    return end < it->last;
}

/* Of those of a number. */
static uint64_t
last_row(uint64_t number, unsigned bits)
{
    return number << bits | ((UINT64_C(1) << bits) - 1);
}

static size_t
list(struct engine *engine, unsigned pairs, uint64_t id, uint64_t number,
    unsigned bits, uint64_t from, size_t n, bool with_empty, uint64_t *member,
    uint64_t *value)
{
    struct counter *counter = engine__counter(engine, pairs);
    unsigned shard = engine__row(engine, id).shard;
    size_t n_found = 0;
    ASSERT(pairs < SCHEMA_COUNTERS_MAX && n > 0 && bits < 64);
    if (counter == NULL || number == 0 || from >> bits != 0) {
        return 0;
    }
    uint64_t row = number << bits | from;
    bool more = true;
    while (more && n_found < n) {
        struct smallest it = {.with_empty = with_empty,
            .last = last_row(number, bits),
            .row = member + n_found,
            .value = value + n_found,
            .n_max = n - n_found};
        shard__lock(&engine->shard[shard]);
        more = view_of(engine, pairs) != NULL &&
            look_on(&counter->ranges[shard], &row, &it);
        shard__unlock(&engine->shard[shard]);
        n_found += it.n;
    }
    for (size_t i = 0; i < n_found; i++) {
        ASSERT(member[i] >> bits == number);
        member[i] -= number << bits;
    }
    return n_found;
}

size_t
engine_members(struct engine *engine, unsigned pairs, uint64_t id,
    uint64_t number, unsigned bits, uint64_t from, size_t n, uint64_t *member,
    uint64_t *value)
{
    return list(
        engine, pairs, id, number, bits, from, n, false, member, value);
}

size_t
engine_members_here(struct engine *engine, unsigned pairs, uint64_t id,
    uint64_t number, unsigned bits, uint64_t from, size_t n, uint64_t *member,
    uint64_t *value)
{
    return list(engine, pairs, id, number, bits, from, n, true, member, value);
}

bool
members__has_pairs(
    const struct engine *engine, const struct members_note *note)
{
    lock_assert_held(&engine->shard[note->shard].lock);
    return serial_of(view_of(engine, note->pairs), 0) == note->serial;
}

bool
engine_has_pairs(struct engine *engine, unsigned pairs, uint32_t serial)
{
    struct shard *shard = &engine->shard[0]; /* any keeps a view */
    ASSERT(pairs < SCHEMA_COUNTERS_MAX && serial != 0);
    shard__lock(shard);
    bool is_there = serial_of(view_of(engine, pairs), 0) == serial;
    shard__unlock(shard);
    return is_there;
}

/* Takes out what is in the list of rows, as far as a call goes. */
static void
take_rows(struct engine *engine, struct redo *redo)
{
    struct members *members = &engine->members;
    const struct members_note *now = &members->now[0];
    struct counter *counter = engine__counter(engine, now->pairs);
    struct ranges *ranges = &counter->ranges[now->shard];
    lock_assert_held(&engine->shard[now->shard].lock);
    while (members->at < members->n && redo->n < TAKE_OUT) {
        uint64_t code[SCHEMA_COLUMNS_MAX] = {0};
        uint64_t row = members->row[members->at++];
        uint64_t id = engine__id(engine, now->shard, row);
        struct ranges_look look;
        ranges_seek(ranges, row, 1, &look);
        if (look.spot.record.code[0] == 0) {
            continue;
        }
        int err =
            change__store(counter, ranges, &look, 1, code, id, ORIGIN_HERE);
        ASSERT(err == 0);
        redo->write[redo->n++] = (struct engine_write){
            .id = id, .counter = now->pairs, .n = 1, .serial = {now->serial}};
    }
}

/* Begins with other notes, if some wait. */
static bool
begin(struct engine *engine)
{
    struct members *members = &engine->members;
    if (!members__pop(engine)) {
        return false;
    }
    members->from = members->now[0].number << members->now[0].bits;
    members->is_last = false;
    members->n = members->at = 0;
    members->n_ended = 0;
    return true;
}

/* The next rows to be taken out, where those before are: of one table. */
static void
find_rows(struct engine *engine)
{
    struct members *members = &engine->members;
    const struct members_note *now = members->now;
    const struct counter *counter = engine__counter(engine, now[0].pairs);
    struct smallest it = {.only = members,
        .last = last_row(now[members->n_now - 1].number, now[0].bits),
        .row = members->row,
        .n_max = MEMBERS_TAKE_MAX};
    if (members->at < members->n || members->is_last) {
        return;
    }
    members->is_last =
        !look_on(&counter->ranges[now[0].shard], &members->from, &it);
    members->n = (unsigned)it.n;
    members->at = 0;
    unsigned next = note_from(members, members->from);
    if (!members->is_last && next < members->n_now &&
        now[next].number << now[0].bits > members->from) {
        members->from = now[next].number << now[0].bits;
    }
}

/* What is here of a note has been taken out: it goes on where there may be more
 * of it. True where it is done with. */
static bool
end_note(struct engine *engine, struct members_note *note, struct redo *redo)
{
    const struct counter *counter = engine__counter(engine, note->pairs);
    const struct ranges *ranges = &counter->ranges[note->shard];
    if (note->stage == MEMBERS_HERE &&
        cover_keeps_any(&ranges->cover, note->number << note->bits,
            last_row(note->number, note->bits))) {
        members__pass_on(engine, note, MEMBERS_COVERED);
        return false;
    }
    if (!members__clear_stored(engine, note, redo)) {
        members__pass_on(engine, note, MEMBERS_STORED);
        return false;
    }
    return true;
}

/* The same for all that are under way, as far as a call goes; returns how many
 * are done with. */
static unsigned
end_notes(struct engine *engine, struct redo *redo)
{
    struct members *members = &engine->members;
    unsigned n_done = 0;
    lock_assert_held(&engine->shard[members->now[0].shard].lock);
    while (members->n_ended < members->n_now && redo->n < TAKE_OUT) {
        n_done += end_note(engine, &members->now[members->n_ended++], redo);
    }
    return n_done;
}

bool
engine_take_out(struct engine *engine)
{
    struct engine_write write[TAKE_OUT];
    struct redo redo = {.write = write};
    struct members *members = &engine->members;
    if (pool_is_loading(&engine->pool) || /* not all is known yet */
        (members->n_now == 0 && !begin(engine))) {
        return false;
    }
    const struct members_note *now = &members->now[0];
    struct shard *shard = &engine->shard[now->shard];
    unsigned n_pairs = 0, n_done = 0;
    shard__lock(shard);
    if (!members__has_pairs(engine, now)) {
        n_done = members->n_now - members->n_ended;
        members->n_ended = members->n_now;
    } else {
        find_rows(engine);
        take_rows(engine, &redo);
        n_pairs = redo.n;
        if (members->is_last && members->at == members->n) {
            n_done = end_notes(engine, &redo);
        }
    }
    if (redo.n > 0 && engine->sink != NULL) {
        (void)engine->sink->write_fn(engine->sink, write, redo.n);
    }
    shard__unlock(shard);
    members__leave(engine, n_pairs, n_done);
    members->n_now = members->n_ended == members->n_now ? 0 : members->n_now;
    return true;
}

/* Numbers that have been given are below the largest one there is a pair of,
 * which is no record's. Where rows can be covered, that pair may be elsewhere,
 * and where numbers were passed over there may be none. */
static void
verify_column(const struct engine *engine, const struct view *view,
    unsigned column, unsigned shard)
{
    const struct counter *pairs = engine__counter(engine, view->pairs[column]);
    if (pairs == NULL || counter__view(pairs) == NULL) {
        return;
    }
    const struct ranges *ranges = &pairs->ranges[shard];
    uint64_t top = largest_here(ranges, members__bits(&view->column[column]));
    uint64_t next = ranges->next_number;
    uint64_t last = next + (MEMBER_NUMBER_BLOCK - 2);
    last -= last % MEMBER_NUMBER_BLOCK; /* that is reserved, if any is */
    ASSERT(next == 0 || top <= last);
    ASSERT(next % MEMBER_NUMBER_BLOCK != 0 || next == 0);
    if (engine->cover == NULL) {
        ASSERT(top % MEMBER_NUMBER_BLOCK == 0);
        ASSERT(next == 0 || top == last);
    }
}

void
members__verify(struct engine *engine, unsigned slot, unsigned shard)
{
    const struct view *view = view_of(engine, slot);
    lock_assert_held(&engine->shard[shard].lock);
    for (uint32_t left = view == NULL ? 0 : view->members; left != 0;
         left &= left - 1) {
        verify_column(engine, view, (unsigned)__builtin_ctz(left), shard);
    }
}
