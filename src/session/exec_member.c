/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of ids. The column of members of an id has a number, and the value of
 * a member is a cell of the counter of pairs, whose id is made of that number
 * and the member (store_pair).
 *
 * A get asks twice: for the numbers of all members of a slice, which stand
 * behind its sources, alone; then for the slice, in which each has become the
 * cell of its pair. An id without a number has 0, under which nothing is
 * stored. Between the two all members of an id may go: then a pair is read that
 * was there when the number was, or one that is gone already. A number is never
 * another id's.
 *
 * Marks that are about members (exec_mark.c) take part: their numbers are read
 * with the others, and between the two calls the members are pinned.
 *
 * A change is one of the record that has the members: the engine does the
 * rest, under one lock. */
#include "session/exec_member.h"

#include "base/assert.h"
#include "base/err.h"
#include "session/exec_get.h"
#include "session/exec_mark.h"

#include <assert.h>

static_assert((int)EXEC_SLICE_KEYS_MAX <= (int)STORE_SOURCES_MAX,
    "each key of a slice has one source, or is of members, or neither");

void
exec_get__add_member(struct job *job, struct slot *slot, const struct key *key)
{
    const struct schema_column *column = key->target.column;
    struct store_get *get = &job->get;
    ASSERT(get->n < STORE_GET_MAX && job->n_members < EXEC_SLICE_KEYS_MAX);
    uint16_t cell = (uint16_t)get->n;
    slot->kind = SLOT_CELL;
    slot->n_cells = 1;
    slot->flags = column->flags;
    get->key[get->n++] = exec_get__cell(key->id, &key->target);
    if (key_fault(key) != 0) { /* it is so since it was checked */
        get->key[cell].serial = 0;
        return;
    }
    job->member[job->n_members++] = (struct slot_member){.cell = cell,
        .counter = column->pairs,
        .bits = column->member_bits,
        .serial = schema_pairs_serial(column),
        .member = key->member};
}

/* Makes the batch one of the numbers alone. */
static void
want_numbers(struct job *job)
{
    struct store_get *get = &job->get;
    unsigned at = STORE_GET_MAX + get->n_sources;
    ASSERT(get->n_sources + job->n_members <= STORE_SOURCES_MAX);
    for (unsigned i = 0; i < job->n_members; i++) {
        get->key[at + i] = get->key[job->member[i].cell];
    }
    get->n_sources += job->n_members;
    job->n_cells = get->n;
    get->n = 0;
}

/* The numbers have been read: makes it that of the slice, with pairs. */
static void
want_pairs(struct job *job)
{
    struct store *store = job->session->executor->store;
    struct store_get *get = &job->get;
    ASSERT(get->n == 0 && get->n_sources >= job->n_members);
    get->n = job->n_cells;
    get->n_sources -= job->n_members;
    for (unsigned i = 0; i < job->n_members; i++) {
        struct slot_member *it = &job->member[i];
        unsigned at = STORE_GET_MAX + get->n_sources + i;
        ASSERT(it->cell < get->n);
        struct cell_key *key = &get->key[it->cell];
        if (get->state[at] > CELL_SET) { /* no number: nothing is asked for */
            it->is_unreadable = get->state[at] == CELL_UNREADABLE;
            key->serial = 0;
            continue;
        }
        *key = (struct cell_key){.id = store_pair(store, key->id,
                                     get->value[at], it->bits, it->member),
            .serial = it->serial,
            .counter = it->counter};
    }
    if (exec_get__needs_pins(job) && get->n_sources == job->pins.n) {
        get->n_sources = 0; /* all are numbers of members, and are known */
    }
}

bool
exec_get__ask_members(struct session *session)
{
    struct job *job = session->job;
    struct store_call *call = &job->get.call;
    if (job->stage == JOB_GET_ASK) {
        exec__job_move(job, JOB_GET_ASK, JOB_GET_PAIRS);
        want_numbers(job);
        if (exec__waits(job, call, exec_get__ask)) {
            return true;
        }
    }
    if (job->stage == JOB_GET_PINS) {
        exec__job_move(job, JOB_GET_PINS, JOB_GET_FORMAT);
        return exec__waits(job, call, exec_get__ask);
    }
    want_pairs(job);
    if (exec_get__needs_pins(job)) {
        exec__job_move(job, JOB_GET_PAIRS, JOB_GET_PINS);
        exec_mark__want_pins(job, &job->get);
        if (exec__waits(job, &job->pins.call.call, exec_mark__ask_pins)) {
            return true;
        }
        exec__job_move(job, JOB_GET_PINS, JOB_GET_FORMAT);
    } else {
        exec__job_move(job, JOB_GET_PAIRS, JOB_GET_FORMAT);
    }
    return exec__waits(job, call, exec_get__ask);
}

void
exec_get__work_out_members(struct job *job)
{
    for (unsigned i = 0; i < job->n_members; i++) {
        if (job->member[i].is_unreadable) { /* no number is made up */
            job->get.state[job->member[i].cell] = CELL_UNREADABLE;
        }
    }
    job->n_members = 0; /* once only */
}

/* ---- changes ---- */

bool
exec_member__has_record(const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (schema_is_in_record(&counter->column[i])) {
            return true;
        }
    }
    return false;
}

int
exec_member__fault(const struct key *key, bool deletes, bool compares)
{
    if (!key->has_member && deletes && !compares) {
        return 0; /* of all members there is no cas unique */
    }
    return key_fault(key);
}

void
exec_member__take(const struct key *key, struct change *change)
{
    const struct schema_column *members = key->target.column;
    const struct schema_column *counts =
        schema_column_of(key->target.counter, members->counts);
    ASSERT(change->n_columns == 1 && change->serial[0] == members->serial);
    if (!key->has_member) {
        ASSERT(change->op == CHANGE_DELETE && !change->compares);
        if (counts != NULL) {
            change->n_columns = 2;
            change->column[1] = counts->slot;
            change->serial[1] = counts->serial;
        }
        return;
    }
    ASSERT(change_is_of_member(change));
    change->member = (struct change_member){.counter = members->pairs,
        .bits = members->member_bits,
        .counts = counts != NULL,
        .serial = schema_pairs_serial(members),
        .member = key->member};
    if (counts != NULL) {
        change->member.counts_column = counts->slot;
        change->member.counts_serial = counts->serial;
    }
}

/* A column that counts members is number i of a change of its record. */
static int
check_counted(bool is_named, struct change *change, unsigned i)
{
    if (change->op == CHANGE_INCR || change->op == CHANGE_DECR) {
        return change->operand[i] == 0 ? 0 : ERR_COUNTED;
    }
    if (is_named) {
        return ERR_COUNTED;
    }
    change->kept |= (uint16_t)(1U << i);
    change->operand[i] = 0;
    return 0;
}

int
exec_member__check(
    const struct schema_counter *counter, bool is_named, struct change *change)
{
    for (unsigned c = 0; c < counter->n_columns; c++) {
        const struct schema_column *column = &counter->column[c];
        for (unsigned i = 0; column->counts != 0 && i < change->n_columns;
             i++) {
            int err = change->serial[i] == column->counts
                ? check_counted(is_named, change, i)
                : 0;
            if (err != 0) {
                return err;
            }
        }
    }
    return 0;
}

void
exec_member__count(struct session *session, const struct change *change)
{
    bool adds = change->op == CHANGE_MEMBER_ADD;
    bool sets = adds || change->op == CHANGE_MEMBER_SET;
    bool is_repeat = change->err == 0
        ? sets && change->member.step == 0 && change->value[0] != 0
        : adds && change->err == ERR_NOT_STORED;
    bool is_done = change->err == 0;
    exec__count(
        session, METRIC_member_adds, is_done && change->member.step == 1);
    exec__count(session, METRIC_member_repeats, is_repeat);
    exec__count(
        session, METRIC_member_removes, is_done && change->member.step == -1);
}
