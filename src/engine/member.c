/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of members. A record with members has a number, in its column of
 * members; member m of it is a record of another counter, that of the pairs,
 * in the row
 *
 *   number << bits | m      of the same shard,
 *
 * with one column: a pair. So both are under one lock, and the sink is told of
 * both at once. If a pair begins to hold something, or ceases to, the column
 * that counts the members goes up or down by one.
 *
 * Numbers are given out in each shard from 1 on, in ascending order, and none
 * twice. What the next one is, is not stored. It is found from the largest row
 * of the pairs, once: numbers are reserved in blocks of MEMBER_NUMBER_BLOCK.
 * Where the first number of a block is given, a pair is stored under the first
 * number behind the block, which no record gets:
 *
 *   1 ... 255   256       257 ... 511   512
 *               reserved                reserved
 *
 * So all numbers that were ever given are below the number of the largest row,
 * even if all their pairs are gone, and the next one is that + 1. The largest
 * row may be covered (cover.h): what covers rows says how far its records reach
 * in all shards, so numbers are passed over, and none is given twice.
 *
 * A record and its pair may each be here, or covered; of what is covered the
 * change brings a base. Under a new number nothing was ever stored, whatever
 * covers its rows, and the reserved rows are new then, too.
 *
 * What comes first is what can be taken back without memory: of a new member
 * the reservation and the pair, then the record; of one that goes the record,
 * then the pair. A pair that goes and came as a base is stored first, as it is.
 * Readers do not see the two change at one moment. */
#include "engine/members_priv.h"

#include "base/assert.h"
#include "base/err.h"
#include "engine/table_change.h"

#include <string.h>

_Static_assert(
    CHANGE_MEMBER_DELETE - CHANGE_MEMBER_SET == CHANGE_DELETE - CHANGE_SET &&
        CHANGE_MEMBER_ADD - CHANGE_MEMBER_SET == CHANGE_ADD - CHANGE_SET &&
        CHANGE_MEMBER_REPLACE - CHANGE_MEMBER_SET ==
            CHANGE_REPLACE - CHANGE_SET &&
        CHANGE_MEMBER_CAS - CHANGE_MEMBER_SET == CHANGE_CAS - CHANGE_SET &&
        CHANGE_MEMBER_INCR - CHANGE_MEMBER_SET == CHANGE_INCR - CHANGE_SET &&
        CHANGE_MEMBER_DECR - CHANGE_MEMBER_SET == CHANGE_DECR - CHANGE_SET,
    "they are those of a number, in their order");

enum { PAIR_COLUMN = 0, PAIR_COLUMNS = 1 }; /* its slot, and as a mask */

/* A record that is looked at and may get other codes. */
struct part {
    struct counter *counter;
    const struct view *view;
    struct ranges *ranges;
    uint32_t columns; /* those that are read and may change */
    enum origin origin;
    struct ranges_look look;
    uint64_t code[SCHEMA_COLUMNS_MAX]; /* as it is to be; of columns */
};

struct job {
    struct engine *engine;
    struct change *change;
    struct part record, pair;
    unsigned shard;
    unsigned row_bits;     /* of numbers: those beyond it fit no row */
    uint64_t number;       /* of the record; 0: it has none, and gets none */
    uint64_t reserved_row; /* of a pair that is to be stored; 0: none is */
    bool is_new_number;
};

static bool
is_there(const struct view *view, unsigned slot, uint32_t serial)
{
    ASSERT(slot < SCHEMA_COLUMNS_MAX);
    /* relaxed: 0 where it is being dropped, and then it is gone a moment
     * sooner or later */
    return serial != 0 &&
        atomic_load_explicit(
            &view->column[slot].serial, memory_order_relaxed) == serial;
}

/* False where there is no such counter. */
static bool
find_counter(const struct job *job, unsigned slot, struct part *part)
{
    part->counter = engine__counter(job->engine, slot);
    part->view = part->counter == NULL ? NULL : counter__view(part->counter);
    part->origin = ORIGIN_HERE;
    if (part->view == NULL) {
        return false;
    }
    part->ranges = &part->counter->ranges[job->shard];
    return true;
}

static uint64_t
pair_row(const struct job *job)
{
    const struct change_member *member = &job->change->member;
    return job->number << member->bits | member->member;
}

static uint64_t
pair_id(const struct job *job, uint64_t row)
{
    return engine__id(job->engine, job->shard, row);
}

static void
seek(struct part *part, uint64_t row)
{
    memset(part->code, 0, sizeof part->code);
    ranges_seek(part->ranges, row, part->columns, &part->look);
    codes_copy(part->code, part->look.spot.record.code, part->columns);
}

/* The record, or why it cannot be changed. */
static int
look_at_record(struct job *job, uint64_t row)
{
    const struct change *change = job->change;
    const struct change_member *member = &change->member;
    struct part *it = &job->record;
    if (!find_counter(job, change->counter, it) ||
        !is_there(it->view, change->column[0], change->serial[0]) ||
        (member->counts &&
            !is_there(
                it->view, member->counts_column, member->counts_serial))) {
        return ERR_GONE;
    }
    it->columns = 1U << change->column[0];
    if (member->counts) {
        it->columns |= 1U << member->counts_column;
    }
    it->columns |= it->view->columns & job->engine->whole;
    ASSERT(it->view->column[change->column[0]].default_value == 0);
    seek(it, row);
    if (it->look.spot.where == TABLE_NOWHERE &&
        it->ranges->cover.cover != NULL) {
        it->origin = change__find_absent(
            it->ranges, it->view, row, change, 1, it->look.spot.record.code);
        if (it->origin == ORIGIN_UNKNOWN) {
            return ERR_COLD;
        }
        /* a log that is replayed has no changes of members */
        ASSERT(!origin_is_to_stay(it->origin));
        codes_copy(it->code, it->look.spot.record.code, it->columns);
    }
    job->number = it->code[change->column[0]];
    ASSERT(job->number >> job->row_bits == 0);
    ASSERT(job->number % MEMBER_NUMBER_BLOCK != 0 || job->number == 0);
    return 0;
}

/* The pair, of a number that was given before. */
static int
look_at_pair(struct job *job)
{
    const struct engine_base *base = job->change->member.base;
    struct part *it = &job->pair;
    uint64_t row = pair_row(job), version = 0;
    seek(it, row);
    if (it->look.spot.where == TABLE_NOWHERE) {
        version = cover_version(&it->ranges->cover, row);
    }
    if (version == 0) {
        return 0;
    }
    ASSERT(version != ENGINE_COVER_LOADING);
    if (!change__take_base(it->view, base, pair_id(job, row), version,
            it->look.spot.record.code)) {
        return ERR_COLD;
    }
    ASSERT(!base->is_to_stay);
    it->origin = ORIGIN_BASE;
    codes_copy(it->code, it->look.spot.record.code, it->columns);
    return 0;
}

/* Record and pair; without a number there is no pair. */
static int
look_at_both(struct job *job, uint64_t row)
{
    const struct change_member *member = &job->change->member;
    int err = look_at_record(job, row);
    if (err != 0) {
        return err;
    }
    if (!find_counter(job, member->counter, &job->pair)) {
        return ERR_GONE;
    }
    job->pair.columns = PAIR_COLUMNS;
    memset(job->pair.code, 0, sizeof job->pair.code);
    return job->number == 0 ? 0 : look_at_pair(job);
}

/* Does the change on the pair's codes, as one of a number: which it is for so
 * long. */
static void
apply(const struct view *pairs, struct change *change, uint64_t *code)
{
    enum change_op op = change->op;
    uint32_t serial = change->serial[0];
    uint8_t column = change->column[0];
    change->op = op - CHANGE_MEMBER_SET + CHANGE_SET;
    ASSERT(change->n_columns == 1 && change->kept == 0);
    ASSERT(!change_is_of_record(change));
    change->serial[0] = change->member.serial;
    change->column[0] = PAIR_COLUMN;
    change_apply(pairs, change, code);
    change->op = op;
    change->serial[0] = serial;
    change->column[0] = column;
}

void
member__apply_new(struct engine *engine, struct change *change, uint64_t *code)
{
    struct counter *counter = engine__counter(engine, change->member.counter);
    const struct view *pairs = counter == NULL ? NULL : counter__view(counter);
    ASSERT(change_is_of_member(change));
    if (pairs == NULL) {
        change->err = ERR_GONE;
        return;
    }
    apply(pairs, change, code);
}

/* One member more, or less, in the column that counts them. */
static int
count(struct job *job, int step)
{
    unsigned slot = job->change->member.counts_column;
    const struct column *column = &job->record.view->column[slot];
    uint64_t value = column_decode(column, job->record.code[slot]);
    if (step > 0 && value == column->max) {
        return ERR_OVERFLOW;
    }
    if (step < 0 && value == 0) {
        return 0; /* what counted it was lost */
    }
    value += step > 0 ? 1 : UINT64_MAX;
    job->record.code[slot] = column_encode(column, value);
    return 0;
}

uint64_t
member__next_number(struct ranges *pairs, unsigned bits)
{
    table_owner_assert_held(pairs->owner);
    if (pairs->next_number == 0) {
        uint64_t top = members__top(pairs, bits);
        /* it is a multiple already, unless something was lost or what covers
         * rows has more of another shard */
        top += MEMBER_NUMBER_BLOCK - 1;
        pairs->next_number = top - top % MEMBER_NUMBER_BLOCK + 1;
    }
    ASSERT(pairs->next_number % MEMBER_NUMBER_BLOCK != 0);
    return pairs->next_number;
}

static int
choose_number(struct job *job)
{
    unsigned bits = job->change->member.bits;
    uint64_t number = member__next_number(job->pair.ranges, bits);
    if (number % MEMBER_NUMBER_BLOCK == 1) {
        uint64_t reserved = number + MEMBER_NUMBER_BLOCK - 1;
        if (reserved >> job->row_bits != 0) {
            return ERR_MANY_MEMBERS;
        }
        job->reserved_row = reserved << bits;
    }
    ASSERT(number >> job->row_bits == 0);
    job->number = number;
    job->is_new_number = true;
    job->record.code[job->change->column[0]] = number;
    return 0;
}

/* The codes that record and pair are to have: 0, or why nothing changes. */
static int
work_out(struct job *job)
{
    struct change *change = job->change;
    uint64_t before = job->pair.code[PAIR_COLUMN];
    apply(job->pair.view, change, job->pair.code);
    int err = change->err;
    int step = (job->pair.code[PAIR_COLUMN] != 0) - (before != 0);
    if (err == 0 && step != 0 && change->member.counts) {
        err = count(job, step);
    }
    if (err == 0 && step > 0 && job->number == 0) {
        err = choose_number(job);
    }
    change->member.step = (int8_t)step;
    return err;
}

/* Gives what a look has found the codes it is to have. */
static int
put(struct part *part, uint64_t id)
{
    table_owner_assert_held(part->ranges->owner);
    if (table_rewrite(part->ranges->owner, part->look.table, &part->look.spot,
            part->code, part->columns)) {
        return 0;
    }
    return change__store(part->counter, part->ranges, &part->look,
        part->columns, part->code, id, part->origin);
}

/* Stores a pair in a row that has none, whatever covers it, or takes it out;
 * this needs no memory. */
static int
put_pair(const struct job *job, uint64_t row, uint64_t code)
{
    struct part part = job->pair;
    seek(&part, row);
    ASSERT((part.code[PAIR_COLUMN] == 0) == (code != 0));
    part.code[PAIR_COLUMN] = code;
    part.origin = ORIGIN_HERE;
    int err = put(&part, pair_id(job, row));
    ASSERT(err == 0 || code != 0);
    return err;
}

/* Stores a pair that came as a base as that says, which changes nothing for
 * anybody: what is here needs no memory to go. */
static int
bring_pair(struct job *job)
{
    struct part part = job->pair;
    ASSERT(part.look.spot.where == TABLE_NOWHERE);
    ASSERT(part.origin == ORIGIN_BASE);
    part.origin = ORIGIN_STAY; /* else it is left alone, being no other one */
    codes_copy(part.code, part.look.spot.record.code, part.columns);
    return put(&part, pair_id(job, pair_row(job)));
}

static int
put_record(struct job *job)
{
    return put(&job->record, job->change->id);
}

/* All that a new member needs, or nothing. */
static int
store_new(struct job *job)
{
    uint64_t row = pair_row(job);
    int err;
    if (job->reserved_row != 0) {
        err = put_pair(job, job->reserved_row, 1);
        if (err != 0) {
            return err;
        }
        members__count_mark(job->pair.ranges, job->reserved_row, 1);
    }
    if (job->is_new_number) {
        err = put_pair(job, row, job->pair.code[PAIR_COLUMN]);
    } else { /* it has been looked at */
        err = put(&job->pair, pair_id(job, row));
    }
    if (err != 0) {
        goto err_after_reservation;
    }
    err = put_record(job);
    if (err != 0) {
        goto err_after_pair;
    }
    if (job->is_new_number) {
        uint64_t next = job->number + 1;
        next += next % MEMBER_NUMBER_BLOCK == 0;
        job->pair.ranges->next_number = next;
    }
    return 0;

err_after_pair:
    (void)put_pair(job, row, 0);
err_after_reservation:
    if (job->reserved_row != 0) {
        (void)put_pair(job, job->reserved_row, 0);
        members__count_mark(job->pair.ranges, job->reserved_row, -1);
    }
    return err;
}

/* The record, then the pair, which is to hold nothing any more. */
static int
store_gone(struct job *job)
{
    bool is_here = job->pair.look.spot.where != TABLE_NOWHERE;
    int err = is_here ? 0 : bring_pair(job);
    if (err == 0) {
        err = put_record(job);
    }
    if (err == 0 && is_here) { /* it has been looked at */
        int gone = put(&job->pair, pair_id(job, pair_row(job)));
        ASSERT(gone == 0);
    } else if (err == 0) {
        (void)put_pair(job, pair_row(job), 0);
    }
    return err;
}

static int
store(struct job *job)
{
    int step = job->change->member.step;
    if (step > 0) {
        return store_new(job);
    }
    if (job->number == 0) {
        return 0; /* it had no member, and has none */
    }
    if (step == 0) {
        return put(&job->pair, pair_id(job, pair_row(job)));
    }
    return store_gone(job);
}

/* has_record: that of the change is what was told before. */
static void
tell_pair(const struct job *job, struct redo *redo, uint64_t row,
    uint64_t code, bool has_record)
{
    struct engine_write *write = &redo->write[redo->n++];
    write->id = pair_id(job, row);
    write->counter = job->change->member.counter;
    write->n = 1;
    write->is_pair = has_record;
    write->producer = 0;
    write->serial[0] = job->change->member.serial;
    write->value[0] =
        column_decode(&job->pair.view->column[PAIR_COLUMN], code);
}

/* Where records are told whole a pair is told with its record even if only the
 * pair has changed: alone it does not say whose it is, and who is fed some ids
 * of a log has to know (repl/feed_filter.h). */
static void
tell(struct job *job, uint64_t before, struct redo *redo)
{
    const struct part *record = &job->record;
    bool has_pair = job->pair.code[PAIR_COLUMN] != before;
    unsigned n_before = redo->n;
    ASSERT(redo->n + MEMBER_WRITES_MAX <= ENGINE_WRITES_MAX);
    if (job->reserved_row != 0) {
        tell_pair(job, redo, job->reserved_row, 1, false);
        n_before++;
    }
    if (job->change->member.step != 0) {
        redo_record(redo, record->view, job->change, record->columns,
            record->look.spot.record.code, record->code, record->origin);
    } else if (has_pair && redo->whole != 0) {
        redo_as_it_is(redo, record->view, job->change, record->code);
    }
    if (has_pair) {
        tell_pair(job, redo, pair_row(job), job->pair.code[PAIR_COLUMN],
            redo->n > n_before);
    }
}

/* The array of the record's members, if there is one, has the change too. */
static void
follow(const struct job *job)
{
    const struct change_member *member = &job->change->member;
    const struct sorted_key key = {.id = job->change->id,
        .number = job->number,
        .serial = member->serial,
        .pairs = member->counter,
        .bits = member->bits};
    if (member->step != 0) {
        sorted__change(
            job->engine, job->shard, &key, member->member, member->step > 0);
    }
}

void
member__change(struct engine *engine, struct change *change,
    const struct engine_row *at, struct redo *redo)
{
    const struct change_member *member = &change->member;
    unsigned bits = member->bits;
    struct job job; /* filled in as it is looked at */
    job.engine = engine;
    job.change = change;
    job.shard = at->shard;
    job.row_bits = 64 - engine->shard_bits - bits;
    job.number = 0;
    job.reserved_row = 0;
    job.is_new_number = false;
    lock_assert_held(&engine->shard[at->shard].lock);
    ASSERT(change_is_of_member(change) && change->n_columns == 1);
    ASSERT(member->counter != change->counter && bits >= 16 && bits <= 48 &&
        member->member >> bits == 0);
    change->n_saturated = 0;
    change->err = look_at_both(&job, at->row);
    if (change->err == 0) {
        uint64_t before = job.pair.code[PAIR_COLUMN];
        change->err = work_out(&job);
        if (change->err == 0) {
            change->err = store(&job);
        }
        if (change->err == 0) {
            follow(&job);
        }
        if (change->err == 0 && redo != NULL) {
            tell(&job, before, redo);
        }
    }
    if (change->err != 0) {
        change->n_saturated = 0;
        change->member.step = 0;
    }
}
