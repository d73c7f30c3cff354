/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of records.
 *
 * A batch is made shard by shard; each shard's lock is taken once. The changes
 * of one record are made together: one lookup, the new codes one after the
 * other, one write. count_record makes the usual change, a count in one column
 * of a record that stays in its line or in the stash, without arrays of
 * columns. change_record makes all others.
 *
 * If a write finds no memory, its changes are made once more, one by one, and
 * each is done or refused on its own. Where records can leave memory (cover.h)
 * and the budget is used up, the first refused change takes all behind it
 * along: the caller waits for room, and makes them again in their order.
 *
 * Where a counter has a maxjump, passes_guard judges all changes of the batch
 * first, in their order. A refused change has no part in the rest.
 *
 * A numbered change is made alone, and only if its number has no mark yet
 * (marks.h). The sink gets the mark together with the change.
 *
 * The change of a member is made alone, too (member.c), for it is one of
 * several records: those of a member that comes with others of its record are
 * all made one by one. It may tell the sink of three, so where room gets short
 * the sink is told before or after it, and once more at the end. So it is with
 * a change that gives up a record's members: it stores notes (members_stored.c)
 * and tells of these and the record at once.
 *
 * A change with a name (naming.h) gets its id first of all under the lock: what
 * was looked up before is of the id that its name had then. A name without a
 * number gets one if the change leaves something where there is no record;
 * those before it in the batch have not.
 *
 * A record that is not here, in a row that is covered (cover.h), comes with the
 * change, or counts as default while a log is replayed. It is stored whole
 * then, and the sink gets all of it.
 *
 * The sink gets what records have become, once for each shard but for that,
 * before the lock is left.
 *
 * Before the first lock, the batch is looked up as a read would be
 * (reader_body.h), to fetch memory: table heads, first lines, and second lines
 * where a first line asks for them. Of members the numbers are read, too, and
 * the lines of their pairs asked for. So the caller is an online reader. Under
 * the lock the record is looked for again, but not its table and its lines:
 * those hold unless stripes.n_exchanges says that a table of the shard was
 * exchanged meanwhile. */
#include "engine/change_store.h"
#include "engine/count.h"
#include "engine/engine.h"
#include "engine/engine_priv.h"
#include "engine/largest.h"
#include "engine/members_priv.h"
#include "engine/naming.h"
#include "engine/redo.h"
#include "engine/table_change.h"
#include "engine/table_place.h"

#include "base/assert.h"
#include "base/err.h"

#include <string.h>

enum {
    CHANGE_BATCH = 64, /* changes that are sorted and prefetched together */
    SHARD_BUCKETS = 64
};

/* Where a change of a batch goes; and, seen without the lock, where its record
 * may lie. */
struct pending {
    struct engine_row at;
    uint32_t n_exchanges;  /* the shard's, before: where it is another one
                            * under the lock, what follows is void */
    struct table *table;   /* NULL: not looked for, or none */
    struct line_pair pair; /* in table */
};

struct engine_batch {
    uint64_t todo[SHARD_BUCKETS]; /* bit i: change i, by its shard */
    uint64_t numbered;            /* bit i: change i has a producer */
    uint64_t named;               /* bit i: change i has a name */
    struct pending pending[CHANGE_BATCH];
    struct engine_write write[ENGINE_WRITES_MAX]; /* of one shard */
};

_Static_assert(CHANGE_BATCH <= 64, "one bit each in todo");
_Static_assert((int)CHANGE_BATCH <= (int)ENGINE_WRITES_MAX,
    "a change is at most one write, but those that members_priv.h names");

/* A flag beside columns: one of the changes is of a member. */
#define COLUMNS_APART (UINT32_C(1) << SCHEMA_COLUMNS_MAX)

/* True where a change of a record of which all is at its default leaves
 * something there, as far as that can be told without a look at its number. */
static bool
leaves_something(
    struct engine *engine, const struct view *view, struct change *change)
{
    uint64_t code[SCHEMA_COLUMNS_MAX] = {0};
    if (change_is_of_member(change)) {
        member__apply_new(engine, change, code);
    } else {
        change_apply(view, change, code);
    }
    return change->err == 0 && !table_is_nothing(code);
}

/* Judges a change by its counter's maxjump: false where it would make a record
 * too far beyond the largest id, and then it is refused. One that would make a
 * record and may raises the largest id at once: what comes behind is measured
 * by it, wherever and whenever either is done. Above the largest id all is at
 * its default, so what a change would make is known without a look. */
static bool
passes_guard(
    struct engine *engine, struct change *change, const struct engine_row *at)
{
    struct counter *counter = engine__counter(engine, change->counter);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    lock_assert_held(&engine->shard[at->shard].lock);
    if (view == NULL || view->max_jump == 0 || change->is_redo ||
        !counter__is_above(counter, change->id)) {
        return true;
    }
    if (change->producer != 0 &&
        engine->marks->look_fn(engine->marks, at->shard, change) !=
            ENGINE_MARK_NEW) {
        return true; /* it makes nothing */
    }
    if (!leaves_something(engine, view, change)) {
        return true;
    }
    if (counter__is_beyond(counter, view, change->id)) {
        change->err = ERR_JUMP;
        change->n_saturated = 0;
        change->is_repeat = false;
        return false;
    }
    counter__raise(counter, change->id);
    return true;
}

/* Does changes, those of mask, on code, which is what the record will be. */
static void
apply(const struct view *view, struct change *change, uint64_t mask,
    uint64_t *code)
{
    for (; mask != 0; mask &= mask - 1) {
        change_apply(view, &change[__builtin_ctzll(mask)], code);
    }
}

/* What the change of a mark or a member adds to columns_of. */
static uint32_t
columns_beside(const struct change *change)
{
    if (change_is_of_member(change)) {
        return COLUMNS_APART;
    }
    return change->source.from == SOURCE_HERE
        ? 1U << change->source.column % SCHEMA_COLUMNS_MAX
        : 0;
}

/* The slots that changes name or look at, those of mask, and COLUMNS_APART. */
static uint32_t
columns_of(const struct view *view, const struct change *change, uint64_t mask)
{
    uint32_t columns = 0;
    for (; mask != 0; mask &= mask - 1) {
        const struct change *it = &change[__builtin_ctzll(mask)];
        columns |= change_is_of_record(it) ? view->columns : 0;
        for (unsigned i = 0; i < it->n_columns; i++) {
            columns |= 1U << it->column[i] % SCHEMA_COLUMNS_MAX;
        }
        if (it->op > CHANGE_DELETE) {
            columns |= columns_beside(it);
        }
    }
    return columns;
}

static void
refuse(struct change *change, uint64_t mask, int err)
{
    for (; mask != 0; mask &= mask - 1) {
        struct change *it = &change[__builtin_ctzll(mask)];
        it->err = err;
        it->n_saturated = 0;
    }
}

/* Makes code, of which only some columns have been read and changed, that of
 * the whole record. */
static void
complete(struct ranges_look *look, uint32_t columns, uint64_t *code)
{
    uint64_t whole[SCHEMA_COLUMNS_MAX];
    table_fill(look->table, &look->spot);
    memcpy(whole, look->spot.record.code, sizeof whole);
    codes_copy(whole, code, columns);
    memcpy(code, whole, sizeof whole);
}

bool
change__take_base(const struct view *view, const struct engine_base *base,
    uint64_t id, uint64_t version, uint64_t *code)
{
    if (base == NULL || base->version != version || base->id != id) {
        return false;
    }
    ASSERT(!base->is_there || base->n_columns <= SCHEMA_COLUMNS_MAX);
    for (unsigned i = 0; base->is_there && i < base->n_columns; i++) {
        for (unsigned slot = 0; slot < SCHEMA_COLUMNS_MAX; slot++) {
            /* relaxed: 0 where it is being dropped, and then it is gone */
            if (base->serial[i] != 0 &&
                atomic_load_explicit(&view->column[slot].serial,
                    memory_order_relaxed) == base->serial[i]) {
                code[slot] = base->code[i];
            }
        }
    }
    return true;
}

enum origin
change__find_absent(const struct ranges *ranges, const struct view *view,
    uint64_t row, const struct change *change, uint64_t mask, uint64_t *code)
{
    table_owner_assert_held(ranges->owner);
    uint64_t version = cover_version(&ranges->cover, row);
    if (version == 0) {
        return ORIGIN_HERE;
    }
    if (version == ENGINE_COVER_LOADING ||
        change[__builtin_ctzll(mask)].is_redo) { /* then all of mask are */
        return ORIGIN_LOADING;
    }
    for (; mask != 0; mask &= mask - 1) {
        const struct change *it = &change[__builtin_ctzll(mask)];
        if (change__take_base(view, it->base, it->id, version, code)) {
            return it->base->is_to_stay ? ORIGIN_STAY : ORIGIN_BASE;
        }
    }
    return ORIGIN_UNKNOWN;
}

int
change__store(struct counter *counter, struct ranges *ranges,
    struct ranges_look *look, uint32_t columns, uint64_t *code, uint64_t id,
    enum origin origin)
{
    complete(look, columns, code);
    if (!origin_is_to_stay(origin) &&
        codes_are_same(code, look->spot.record.code)) {
        return 0;
    }
    bool is_new = look->spot.where == TABLE_NOWHERE;
    /* a record that is to be read later counts as one already */
    bool was_live =
        origin == ORIGIN_LOADING || !table_is_nothing(look->spot.record.code);
    uint64_t row = look->spot.row;
    int err = ranges_store(ranges, look, code);
    if (err == 0) {
        int step = !table_is_nothing(code) - was_live;
        ranges->n_live += step;
        if (ranges->is_counting && row < ranges->counted_to) {
            ranges->n_counted += step;
        }
    }
    if (err == 0 && is_new) {
        counter__raise(counter, id);
    }
    return err;
}

/* True where any of the changes, those of mask, was done. */
static bool
any_done(const struct change *change, uint64_t mask)
{
    for (; mask != 0; mask &= mask - 1) {
        if (change[__builtin_ctzll(mask)].err == 0) {
            return true;
        }
    }
    return false;
}

/* True where the table that was found without the lock is that of the row
 * still: no table of the shard was exchanged since. Else it is not looked at,
 * for it may be gone. Under the shard's lock. */
static inline bool
is_known(const struct pending *pending, const struct ranges *ranges)
{
    /* relaxed: stored under the same lock */
    return pending->table != NULL &&
        atomic_load_explicit(&ranges->owner->stripes->n_exchanges,
            memory_order_relaxed) == pending->n_exchanges;
}

/* Sees to it that pending has the table of its row, NULL where there is none,
 * and the lines there. */
static __attribute__((noinline)) void
look_again(const struct engine *engine, const struct ranges *ranges,
    struct pending *pending)
{
    /* relaxed: stored under the same lock */
    const struct directory *directory =
        atomic_load_explicit(&ranges->directory, memory_order_relaxed);
    uint64_t row = pending->at.row;
    struct table *table =
        directory == NULL ? NULL : directory_find(directory, row);
    pending->table = NULL;
    if (table != NULL && table_covers(table, row)) {
        table_prefetch_marks(table);
        pending->table = table;
        pending->pair = table_pair(table, &engine->perm, row);
    }
}

/* Fills *write with all columns of the record of a cell, which gets that code,
 * and returns how many they are: 0 where all are being dropped. */
static inline __attribute__((always_inline)) unsigned
tell_whole(const struct view *view, const struct pending *pending,
    const struct table_cell *cell, unsigned column, uint64_t code,
    struct engine_write *write)
{
    const struct line *line = pending->pair.line[cell->in_line.is_far];
    const struct line_form *form = &pending->table->form;
    uint64_t stashed[SCHEMA_COLUMNS_MAX];
    unsigned n = 0;
    if (__builtin_expect(cell->is_stashed, 0)) {
        table_cell_stashed(pending->table, pending->at.row, stashed);
    }
    for (uint32_t left = view->columns; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        /* relaxed: 0 where it is being dropped, and then it does not matter */
        uint32_t serial = atomic_load_explicit(
            &view->column[i].serial, memory_order_relaxed);
        uint64_t one = i == column ? code
            : __builtin_expect(cell->is_stashed, 0)
            ? stashed[i]
            : line_cell_other(line, form, &cell->in_line, i);
        write->serial[n] = serial;
        write->value[n] = column_decode(&view->column[i], one);
        n += serial != 0;
    }
    return n;
}

/* The end of count_record where the sink is told whole records: the column that
 * has been counted gets its code. */
static __attribute__((noinline)) bool
count_whole(const struct view *view, const struct ranges *ranges,
    const struct change *first, const struct pending *pending,
    const struct table_cell *cell, uint64_t code, struct redo *redo)
{
    unsigned column = first->column[0];
    struct engine_write *write = &redo->write[redo->n];
    if (code == cell->code) {
        return true;
    }
    /* first: the record may get another shape */
    unsigned n = tell_whole(view, pending, cell, column, code, write);
    if (!table_rewrite_cell(ranges->owner, pending->table, &pending->pair,
            cell, column, code)) {
        return false;
    }
    write->id = first->id;
    write->producer = 0;
    write->counter = first->counter;
    write->n = (uint8_t)n;
    write->is_pair = false;
    redo->n += n > 0;
    return true;
}

/* The short way of what most changes are: one column of a record counts, once
 * or several times, and the record stays in its place. False where it is for
 * change_record: then nothing has been done but for answers, which that gives
 * anew. Under the shard's lock. */
static inline __attribute__((always_inline)) bool
count_record(struct engine *engine, struct change *change,
    struct change *first, struct pending *pending, uint64_t mask,
    struct redo *redo)
{
    struct counter *counter = engine__counter(engine, first->counter);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    if (view == NULL || !count_is_one(first)) {
        return false;
    }
    struct ranges *ranges = &counter->ranges[pending->at.shard];
    unsigned column = first->column[0];
    struct table_cell cell;
    ASSERT(column < SCHEMA_COLUMNS_MAX);
    if (!is_known(pending, ranges)) {
        look_again(engine, ranges, pending);
    }
    struct table *table = pending->table;
    const struct line_pair *pair = &pending->pair;
    if (table == NULL ||
        !table_seek_cell(table, pending->at.row, pair, column, &cell)) {
        return false;
    }
    uint64_t code = cell.code;
    for (struct change *it = first;; it = &change[__builtin_ctzll(mask)]) {
        if (code == 0 && it->absent != CHANGE_FROM_DEFAULT) {
            return false;
        }
        if (!count_one(view, it, &code)) {
            return false;
        }
        mask &= mask - 1;
        if (__builtin_expect(mask == 0, 1)) {
            break;
        }
        const struct change *next = &change[__builtin_ctzll(mask)];
        if (!count_is_one(next) || next->column[0] != column ||
            next->serial[0] != first->serial[0]) {
            return false;
        }
    }
    if (redo != NULL && (view->columns & redo->whole) != 0) {
        return count_whole(view, ranges, first, pending, &cell, code, redo);
    }
    if (!table_rewrite_cell(ranges->owner, table, pair, &cell, column, code)) {
        return false;
    }
    if (redo != NULL && code != cell.code) {
        redo_column(redo, first, column_decode(&view->column[column], code));
    }
    return true;
}

/* True where a change found no room in the budget, and others can leave it. */
static bool
may_wait(const struct engine *engine, const struct change *change)
{
    return change->err == ERR_HOT_FULL && engine->cover != NULL;
}

/* Before a change that may become n records: the sink is told what there is if
 * that leaves no room for them. */
static void
make_room(const struct engine *engine, struct redo *redo, unsigned n)
{
    if (redo != NULL && redo->n + n > ENGINE_WRITES_MAX) {
        (void)engine->sink->write_fn(engine->sink, redo->write, redo->n);
        redo->n = 0;
    }
}

/* And after it, is_member: of a member: all that are to come of this shard
 * find room for one write each. */
static void
keep_room(const struct engine *engine, struct redo *redo, bool is_member)
{
    if (redo == NULL) {
        return;
    }
    if (is_member) { /* one less, whichever it was */
        redo->todo &= redo->todo - 1;
    }
    ASSERT(redo->n <= ENGINE_WRITES_MAX);
    if (redo->n + (unsigned)__builtin_popcountll(redo->todo) >
        ENGINE_WRITES_MAX) {
        (void)engine->sink->write_fn(engine->sink, redo->write, redo->n);
        redo->n = 0;
    }
}

static void change_record(struct engine *engine, struct change *change,
    const struct engine_row *at, uint64_t mask, struct redo *redo);

/* A pair has been stored as it was told elsewhere: what is known of the members
 * of its number follows, as far as it can. */
static __attribute__((noinline)) void
follow_pair(struct engine *engine, struct ranges *pairs,
    const struct change *change, const struct engine_row *at,
    enum origin origin, bool was_in, bool is_in)
{
    unsigned bits = change->pair_bits;
    ASSERT(bits < 64 && change->n_columns == 1);
    const struct sorted_key key = {.number = at->row >> bits,
        .serial = change->serial[0],
        .pairs = change->counter,
        .bits = (uint8_t)bits};
    pairs->next_number = 0; /* found anew when it is wanted */
    pairs->knows_marks = false;
    if (origin == ORIGIN_LOADING) { /* it may have been one there, or not */
        pairs->is_counting = true;  /* from the first row, by who leads */
        pairs->counted_to = 0;
        sorted__forget(engine, at->shard, &key);
    } else if (was_in != is_in) {
        sorted__change(engine, at->shard, &key,
            at->row & ((UINT64_C(1) << bits) - 1), is_in);
    }
}

/* Does the changes of one record, those of mask, one by one: some are of
 * members. As change_record. */
static __attribute__((noinline)) void
change_apart(struct engine *engine, struct change *change,
    const struct engine_row *at, uint64_t mask, struct redo *redo)
{
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        struct change *it = &change[__builtin_ctzll(rest)];
        if (change_is_of_member(it)) {
            make_room(engine, redo, MEMBER_WRITES_MAX);
            member__change(engine, it, at, redo);
            if (it->producer == 0) { /* else change_numbered has more to add */
                keep_room(engine, redo, true);
            }
        } else {
            change_record(engine, change, at, rest & (0 - rest), redo);
        }
        if (it->err == ERR_COLD || may_wait(engine, it)) {
            refuse(change, rest, it->err);
            break;
        }
    }
}

/* Stores a record that gives up the numbers of some columns, and notes them; as
 * change__store. */
static __attribute__((noinline)) int
store_without(struct engine *engine, struct change *first,
    const struct engine_row *at, struct ranges_look *look, uint32_t columns,
    uint32_t given_up, uint64_t *code, enum origin origin, struct redo *redo)
{
    struct counter *counter = engine__counter(engine, first->counter);
    const struct view *view = counter__view(counter);
    struct ranges *ranges = &counter->ranges[at->shard];
    uint64_t before[SCHEMA_COLUMNS_MAX];
    uint32_t stored = 0;
    int err = 0;
    memcpy(before, look->spot.record.code, sizeof before);
    if (redo != NULL) {
        make_room(engine, redo, GIVE_UP_WRITES_MAX);
    }
    if (redo != NULL && !first->is_redo) { /* else its notes are told, too */
        err = members__store(
            engine, view, ranges, at, given_up, before, &stored);
    }
    if (err != 0) {
        return err;
    }
    err =
        change__store(counter, ranges, look, columns, code, first->id, origin);
    if (err != 0) {
        members__unstore(engine, view, at, stored, before);
        return err;
    }
    members__note(engine, view, first, at, given_up, before);
    if (redo != NULL) {
        members__tell_stored(engine, view, at, stored, before, redo);
        redo_record(
            redo, view, first, columns, look->spot.record.code, code, origin);
        if (first->producer == 0) { /* else change_numbered has more to add */
            keep_room(engine, redo, false);
        }
    }
    return 0;
}

/* Does the changes of one record, those of mask, in order. redo: NULL where
 * nobody is told. Under the shard's lock. */
static void
change_record(struct engine *engine, struct change *change,
    const struct engine_row *at, uint64_t mask, struct redo *redo)
{
    struct change *first = &change[__builtin_ctzll(mask)];
    struct counter *counter = engine__counter(engine, first->counter);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    struct ranges_look look;
    uint64_t code[SCHEMA_COLUMNS_MAX];
    if (view == NULL) {
        refuse(change, mask, ERR_GONE);
        return;
    }
    struct ranges *ranges = &counter->ranges[at->shard];
    uint32_t columns =
        columns_of(view, change, mask) | (view->columns & engine->whole);
    enum origin origin = ORIGIN_HERE;
    if ((columns & COLUMNS_APART) != 0) {
        change_apart(engine, change, at, mask, redo);
        return;
    }
    ranges_seek(ranges, at->row, columns, &look);
    if (look.spot.where == TABLE_NOWHERE && ranges->cover.cover != NULL) {
        origin = change__find_absent(
            ranges, view, at->row, change, mask, look.spot.record.code);
        if (origin == ORIGIN_UNKNOWN) {
            refuse(change, mask, ERR_COLD);
            return;
        }
    }
    codes_copy(code, look.spot.record.code, columns);
    apply(view, change, mask, code);
    if (origin_is_to_stay(origin) && !any_done(change, mask)) {
        return;
    }
    int err = 0;
    uint32_t given_up =
        members__given_up(view, columns, look.spot.record.code, code);
    if (given_up != 0) {
        err = store_without(
            engine, first, at, &look, columns, given_up, code, origin, redo);
    } else if (!table_rewrite(
                   ranges->owner, look.table, &look.spot, code, columns)) {
        err = change__store(
            counter, ranges, &look, columns, code, first->id, origin);
    }
    if (err == 0) {
        if (__builtin_expect(first->is_redo, 0) && first->pair_bits != 0) {
            follow_pair(engine, ranges, first, at, origin,
                look.spot.record.code[0] != 0, code[0] != 0);
        }
        if (redo != NULL && given_up == 0) {
            redo_record(redo, view, first, columns, look.spot.record.code,
                code, origin);
        }
    } else if ((mask & (mask - 1)) == 0) {
        refuse(change, mask, err);
    } else {
        for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
            change_record(engine, change, at, rest & (0 - rest), redo);
            if (may_wait(engine, &change[__builtin_ctzll(rest)])) {
                refuse(change, rest, ERR_HOT_FULL);
                break;
            }
        }
    }
}

/* Answers a numbered change that was done before with the values now: those
 * that nothing added makes. */
static void
repeat(struct engine *engine, struct change *change,
    const struct engine_row *at, struct redo *redo)
{
    struct change look = *change;
    look.op = CHANGE_INCR;
    if (change_is_of_member(change)) {
        look.op = CHANGE_MEMBER_INCR;
        change->member.step = 0;
    } else if (change_is_of_mark(change)) {
        look.op = CHANGE_MARK_INCR;
        if (look.source.from != SOURCE_HERE &&
            look.source.from != SOURCE_GIVEN) { /* it was done all the same */
            look.source = (struct change_source){.from = SOURCE_GIVEN};
        }
    }
    look.absent = CHANGE_FROM_DEFAULT;
    look.compares = false;
    memset(look.operand, 0, sizeof look.operand);
    change_record(engine, &look, at, 1, redo);
    change->err = look.err;
    change->n_saturated = 0;
    change->is_repeat = look.err == 0;
    change->is_moved = false;
    memcpy(change->value, look.value, sizeof change->value);
}

/* Does one change that may be numbered, if it is to be done. As change_record,
 * and the usual change does not come here. */
static __attribute__((noinline)) void
change_numbered(struct engine *engine, struct change *change,
    const struct engine_row *at, struct redo *redo)
{
    struct engine_marks *marks = engine->marks;
    lock_assert_held(&engine->shard[at->shard].lock);
    change->is_repeat = false;
    switch (marks->look_fn(marks, at->shard, change)) {
    case ENGINE_MARK_BELOW:
        refuse(change, 1, ERR_OLD_TX);
        return;
    case ENGINE_MARK_GONE:
        refuse(change, 1, ERR_PRODUCER_GONE);
        return;
    case ENGINE_MARK_SEEN:
        repeat(engine, change, at, redo);
        return;
    case ENGINE_MARK_NEW:
        break;
    }
    make_room(engine, redo, GIVE_UP_WRITES_MAX); /* so n_before holds */
    unsigned n_before = redo == NULL ? 0 : redo->n;
    change_record(engine, change, at, 1, redo);
    if (change->err != 0) {
        return;
    }
    marks->mark_fn(marks, at->shard, change);
    if (redo != NULL) {
        redo_number(redo, n_before, change, at);
    }
    keep_room(engine, redo, change_is_of_member(change));
}

/* Tells the sink, if any of the changes, those of mask, was done. Under the
 * shard's lock. Returns the position, or the old one. */
static uint64_t
append_redo(const struct engine *engine, const struct change *change,
    uint64_t mask, const struct redo *redo, uint64_t position)
{
    bool is_due = redo->n > 0 || any_done(change, mask);
    return is_due ? engine->sink->write_fn(engine->sink, redo->write, redo->n)
                  : position;
}

/* Does the changes of one record, those of mask, by the way that suits them;
 * one that is numbered comes alone. As change_record. */
static inline __attribute__((always_inline)) void
change_some(struct engine *engine, struct change *change, struct change *first,
    struct pending *pending, uint64_t mask, struct redo *redo)
{
    if (first->producer != 0) {
        change_numbered(engine, first, &pending->at, redo);
    } else if (!count_record(engine, change, first, pending, mask, redo)) {
        change_record(engine, change, &pending->at, mask, redo);
    }
}

/* Sorts n changes by shard, and finds their tables. */
static inline void
sort(const struct engine *engine, const struct change *change, unsigned n,
    struct engine_batch *batch)
{
    uint64_t bit = 1;
    memset(batch->todo, 0, sizeof batch->todo);
    batch->numbered = 0;
    batch->named = 0;
    for (unsigned i = 0; i < n; i++, bit <<= 1) {
        struct pending *it = &batch->pending[i];
        const struct counter *counter =
            engine__counter(engine, change[i].counter);
        it->at = engine__row(engine, change[i].id);
        batch->numbered |= change[i].producer != 0 ? bit : 0;
        batch->named |= change[i].name != NULL ? bit : 0;
        batch->todo[it->at.shard % SHARD_BUCKETS] |= bit;
        /* acquire: the directory is seen that came before, or a later one, and
         * then the number has gone up when the lock is there */
        it->n_exchanges = atomic_load_explicit(
            &engine->shard[it->at.shard].stripes.n_exchanges,
            memory_order_acquire);
        it->table = counter == NULL
            ? NULL
            : counter__table(counter, it->at.shard, it->at.row);
        if (it->table != NULL) {
            table_prefetch(it->table);
            table_prefetch_marks(it->table);
        }
    }
}

/* Judges n changes in their order, whichever shards they are of, and takes out
 * those that are refused. */
static __attribute__((noinline)) void
guard(struct engine *engine, struct change *change, unsigned n,
    struct engine_batch *batch)
{
    for (unsigned i = 0; i < n; i++) {
        const struct engine_row *at = &batch->pending[i].at;
        const struct counter *counter =
            engine__counter(engine, change[i].counter);
        if (counter == NULL || !counter__is_above(counter, change[i].id)) {
            continue;
        }
        struct shard *shard = &engine->shard[at->shard];
        shard__lock(shard);
        bool passes = passes_guard(engine, &change[i], at);
        shard__unlock(shard);
        if (!passes) {
            batch->todo[at->shard % SHARD_BUCKETS] &= ~(UINT64_C(1) << i);
        }
    }
}

/* Asks for the lines of n changes. Each round waits for nothing but what the
 * one before has asked for. */
static inline void
ask(const struct engine *engine, unsigned n, struct engine_batch *batch)
{
    for (unsigned i = 0; i < n; i++) {
        struct pending *it = &batch->pending[i];
        const struct table *table = it->table;
        if (table == NULL || !table_covers(table, it->at.row)) {
            it->table = NULL;
            continue;
        }
        it->pair = table_pair(table, &engine->perm, it->at.row);
        __builtin_prefetch(it->pair.line[0], 1);
    }
    for (unsigned i = 0; i < n; i++) {
        const struct pending *it = &batch->pending[i];
        if (it->table != NULL &&
            line_may_lack(it->pair.line[0], it->pair.bit)) {
            __builtin_prefetch(it->pair.line[1], 1);
        }
    }
}

/* The same for the pairs of n changes of members, and of whatever others are
 * among them: the numbers of their records are read as by a get. Both lines of
 * a pair: a new one mostly looks at both. */
static __attribute__((noinline)) void
ask_pairs(struct engine *engine, const struct change *change, unsigned n,
    const struct engine_batch *batch)
{
    struct cell_key key[CHANGE_BATCH];
    uint64_t number[CHANGE_BATCH], row[CHANGE_BATCH];
    uint8_t state[CHANGE_BATCH];
    const struct table *table[CHANGE_BATCH];
    ASSERT(n > 0 && n <= CHANGE_BATCH);
    for (unsigned i = 0; i < n; i++) {
        key[i] = (struct cell_key){.id = change[i].id,
            .serial = change[i].serial[0],
            .counter = change[i].counter,
            .column = change[i].column[0]};
    }
    engine->get_fn(engine, key, n, number, state);
    for (unsigned i = 0; i < n; i++) {
        const struct change_member *member = &change[i].member;
        bool has_pair =
            change_is_of_member(&change[i]) && state[i] == CELL_SET;
        const struct counter *pairs =
            has_pair ? engine__counter(engine, member->counter) : NULL;
        row[i] = has_pair ? number[i] << member->bits | member->member : 0;
        table[i] = pairs == NULL
            ? NULL
            : counter__table(pairs, batch->pending[i].at.shard, row[i]);
        if (table[i] != NULL) {
            table_prefetch(table[i]);
        }
    }
    for (unsigned i = 0; i < n; i++) {
        if (table[i] != NULL && table_covers(table[i], row[i])) {
            struct line_pair pair =
                table_pair(table[i], &engine->perm, row[i]);
            __builtin_prefetch(pair.line[0], 1);
            __builtin_prefetch(pair.line[1], 1);
        }
    }
}

/* Those of mask that are of a shard. */
static uint64_t
of_shard(const struct engine_batch *batch, uint64_t mask, uint32_t number)
{
    for (uint64_t rest = mask; rest != 0; rest &= rest - 1) {
        if (batch->pending[__builtin_ctzll(rest)].at.shard != number) {
            mask &= ~(rest & (0 - rest));
        }
    }
    return mask;
}

/* True where a change of a name without a number needs one: it leaves
 * something, or is noted as done. */
static bool
wants_name(struct engine *engine, struct change *change)
{
    struct counter *counter = engine__counter(engine, change->counter);
    const struct view *view = counter == NULL ? NULL : counter__view(counter);
    return view != NULL &&
        (change->producer != 0 || leaves_something(engine, view, change));
}

/* Has a change with a name get the id that this has now, which *pending is then
 * of. False: it is refused. Under the shard's lock. */
static __attribute__((noinline)) bool
take_name(
    struct engine *engine, struct change *change, struct pending *pending)
{
    uint32_t shard = pending->at.shard;
    uint64_t id = change->id;
    struct engine_names *names = engine->names;
    ASSERT(names != NULL);
    lock_assert_held(&engine->shard[shard].lock);
    int err = 0;
    if (!names->look_fn(names, shard, change->name, &id) &&
        wants_name(engine, change)) {
        err = names->take_fn(names, shard, change->name, &id);
    }
    if (err != 0) {
        refuse(change, 1, err);
        return false;
    }
    if (id != change->id) {
        change->id = id;
        pending->at = engine__row(engine, id);
        pending->table = NULL; /* it is looked for again */
        ASSERT(pending->at.shard == shard);
    }
    return true;
}

/* The same for those of mask; returns those that are left. */
static __attribute__((noinline)) uint64_t
take_names(struct engine *engine, struct change *change, uint64_t mask,
    struct engine_batch *batch)
{
    for (uint64_t rest = mask & batch->named; rest != 0; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctzll(rest);
        if (!take_name(engine, &change[i], &batch->pending[i])) {
            mask &= ~(rest & (0 - rest));
        }
    }
    return mask;
}

/* The changes of one shard, that of change[first] and others behind it.
 * Returns the position of the sink, or the old one. */
static uint64_t
change_shard(struct engine *engine, struct change *change, unsigned first,
    struct engine_batch *batch, uint64_t position)
{
    struct redo redo;
    struct redo *redo_or_none = engine->sink == NULL ? NULL : &redo;
    uint32_t number = batch->pending[first].at.shard;
    struct shard *shard = &engine->shard[number];
    uint64_t *todo = &batch->todo[number % SHARD_BUCKETS];
    uint64_t mask = *todo;
    if (engine->n_shards > SHARD_BUCKETS) { /* else a bucket is a shard */
        mask = of_shard(batch, mask, number);
    }
    *todo &= ~mask;
    shard__lock(shard);
    if (__builtin_expect((mask & batch->named) != 0, 0)) {
        mask = take_names(engine, change, mask, batch);
    }
    redo = (struct redo){
        .write = batch->write, .todo = mask, .whole = engine->whole};
    for (uint64_t left = mask; left != 0;) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        uint64_t same = left & (0 - left);
        for (uint64_t rest = left ^ same; rest != 0; rest &= rest - 1) {
            unsigned j = (unsigned)__builtin_ctzll(rest);
            if (change[j].id == change[i].id &&
                change[j].counter == change[i].counter) {
                same |= UINT64_C(1) << j;
            }
        }
        uint64_t now = same;
        if ((same & batch->numbered) != 0) { /* one by one, in their order */
            now = UINT64_C(1) << i;
        }
        change_some(
            engine, change, &change[i], &batch->pending[i], now, redo_or_none);
        /* of a member the pair may be cold, and not the record */
        if (now != same &&
            (change[i].err == ERR_COLD || may_wait(engine, &change[i]))) {
            refuse(change, same, change[i].err);
            now = same;
        }
        left &= ~now;
    }
    if (engine->sink != NULL) {
        position = append_redo(engine, change, mask, &redo, position);
    }
    shard__unlock(shard);
    return position;
}

static uint64_t
change_one(struct engine *engine, struct change *change)
{
    struct pending pending = {.at = engine__row(engine, change->id)};
    struct shard *shard = &engine->shard[pending.at.shard];
    struct engine_write write[GIVE_UP_WRITES_MAX]; /* where there is a sink */
    struct redo redo = {.write = write, .todo = 1, .whole = engine->whole};
    struct redo *redo_or_none = engine->sink == NULL ? NULL : &redo;
    uint64_t position = 0;
    shard__lock(shard);
    if (engine__has_guard(engine) &&
        !passes_guard(engine, change, &pending.at)) {
        shard__unlock(shard);
        return 0;
    }
    if (change->name != NULL && !take_name(engine, change, &pending)) {
        shard__unlock(shard);
        return 0;
    }
    change_some(engine, change, change, &pending, 1, redo_or_none);
    if (redo_or_none != NULL) {
        position = append_redo(engine, change, 1, redo_or_none, 0);
    }
    shard__unlock(shard);
    return position;
}

/* A function of its own: its frame is large. */
static __attribute__((noinline)) uint64_t
change_many(struct engine *engine, struct change *change, size_t n)
{
    struct engine_batch batch;
    uint64_t position = 0;
    while (n > 0) {
        unsigned now = n < CHANGE_BATCH ? (unsigned)n : CHANGE_BATCH;
        sort(engine, change, now, &batch);
        if (engine__has_guard(engine)) {
            guard(engine, change, now, &batch);
        }
        ask(engine, now, &batch);
        if (change_is_of_member(change)) { /* then all are, mostly */
            ask_pairs(engine, change, now, &batch);
        }
        for (unsigned i = 0; i < now; i++) {
            uint32_t shard = batch.pending[i].at.shard;
            if ((batch.todo[shard % SHARD_BUCKETS] >> i & 1) != 0) {
                position = change_shard(engine, change, i, &batch, position);
            }
        }
        change += now;
        n -= now;
    }
    return position;
}

uint64_t
engine_change(struct engine *engine, struct change *change, size_t n)
{
    return n == 1 ? change_one(engine, change)
                  : change_many(engine, change, n);
}
