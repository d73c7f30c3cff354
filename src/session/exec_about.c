/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of members=about: bits in tables of their column, which know neither
 * records nor columns (call.h, struct store_about).
 *
 * A get asks for them before the cells of its slice, in one call, and puts what
 * it has heard in the place of cells that no store has, when the others have
 * been read. An id below what the column knows is a miss, whatever absent=
 * says: 0 would be a guess.
 *
 * Changes of them are gathered apart from others: they are added in one call,
 * which answers at once. Where the column has counts=, those that are new are
 * counted then, by one more call, in the other half of the job's changes. Its
 * batch of the log may be a later one: a crash between the two leaves a count
 * that is too low by one, never one too high. */
#include "session/exec_about.h"

#include "base/assert.h"
#include "base/err.h"
#include "session/exec_get.h"

#include <assert.h>

static_assert((int)EXEC_SLICE_KEYS_MAX <= (int)STORE_ABOUT_MAX &&
        (int)EXEC_ABOUTS_MAX <= (int)STORE_ABOUT_MAX,
    "a slice, and a batch, is one call");

/* ---- gets ---- */

void
exec_get__add_about(struct job *job, struct slot *slot, const struct key *key)
{
    const struct schema_column *column = key->target.column;
    struct store_get *get = &job->get;
    unsigned i = job->n_abouts++;
    ASSERT(get->n < STORE_GET_MAX && i < EXEC_SLICE_KEYS_MAX);
    slot->kind = SLOT_CELL;
    slot->n_cells = 1;
    slot->flags = column->flags;
    job->about_cell[i] = (uint16_t)get->n;
    job->about.key[i] = (struct store_about_key){
        .id = key->id, .member = key->member, .serial = column->serial};
    get->key[get->n] = exec_get__cell(key->id, &key->target);
    if (key_fault(key) != 0) { /* it is so since it was checked */
        get->key[get->n].serial = 0;
    }
    get->n++;
}

void
exec_get__ask_abouts(struct session *session)
{
    struct job *job = session->job;
    struct store_about *about = &job->about;
    unsigned n_below = 0;
    about->n = job->n_abouts;
    for (unsigned i = 0; i < about->n; i++) {
        struct cell_key *cell = &job->get.key[job->about_cell[i]];
        if (cell->serial == 0) { /* another server's, for instance */
            about->key[i].serial = 0;
        }
        cell->serial = 0; /* no store looks for it */
    }
    store_about_get(session->executor->store, about);
    for (unsigned i = 0; i < about->n; i++) {
        n_below += about->state[i] == STORE_ABOUT_BELOW;
    }
    exec__count(session, METRIC_members_below, n_below);
}

void
exec_get__work_out_abouts(struct job *job)
{
    for (unsigned i = 0; i < job->n_abouts; i++) {
        unsigned cell = job->about_cell[i];
        bool is_in = job->about.state[i] == STORE_ABOUT_IN;
        job->get.value[cell] = is_in;
        job->get.state[cell] = is_in                 ? CELL_SET
            : job->about.state[i] == STORE_ABOUT_OUT ? CELL_DEFAULT
                                                     : CELL_GONE;
    }
}

/* ---- changes ---- */

int
exec_about__fault(const struct key *key, enum change_op op, bool compares)
{
    switch (op) {
    case CHANGE_DELETE:
    case CHANGE_DECR:
        return ERR_UNSEEN;
    case CHANGE_SET:
    case CHANGE_ADD:
        break;
    default:
        return ERR_ABOUT_OP;
    }
    return compares ? ERR_ABOUT_OP : key_fault(key);
}

int
exec_about__take(const struct key *key, struct change *change)
{
    ASSERT(change->n_columns == 1 && change_is_of_member(change));
    change->member = (struct change_member){.member = key->member};
    return change->operand[0] == 1 ? 0
        : change->operand[0] == 0  ? ERR_UNSEEN
                                   : ERR_OVER_MAX;
}

/* What has come of a change. */
static int
err_of(const struct change *change, enum store_about_state state)
{
    switch (state) {
    case STORE_ABOUT_OUT:
        return 0;
    case STORE_ABOUT_IN:
        return change->op == CHANGE_MEMBER_ADD ? ERR_NOT_STORED : 0;
    case STORE_ABOUT_BELOW:
        return ERR_BELOW;
    case STORE_ABOUT_JUMP:
        return ERR_JUMP;
    case STORE_ABOUT_GONE:
        break;
    }
    return ERR_GONE;
}

/* One more in the column that counts what change i has added. */
static void
add_count(struct job *job, unsigned i, const struct schema_column *counts)
{
    const struct change *change = &job->change[i];
    unsigned n = job->n_counts++;
    ASSERT(n < EXEC_ABOUTS_MAX);
    job->count_of[n] = (uint8_t)i;
    job->change[EXEC_ABOUTS_MAX + n] = (struct change){.id = change->id,
        .op = CHANGE_INCR,
        .absent = CHANGE_FROM_DEFAULT,
        .producer = change->producer,
        .producer_slot = change->producer_slot,
        .number = change->number,
        .counter = change->counter,
        .n_columns = 1,
        .column = {counts->slot},
        .serial = {counts->serial},
        .operand = {1}};
}

/* Adds the members of all changes, and makes the counts of those that are
 * new. */
static void
add_members(struct session *session)
{
    struct job *job = session->job;
    const struct schema *schema = exec__schema(session);
    const struct schema_column *counts[EXEC_ABOUTS_MAX] = {NULL};
    struct store_about about = {.n = job->store_change.n};
    ASSERT(about.n <= EXEC_ABOUTS_MAX);
    for (unsigned i = 0; i < about.n; i++) {
        const struct change *change = &job->change[i];
        const struct schema_counter *counter =
            schema_counter_at(schema, change->counter);
        const struct schema_column *column = counter == NULL
            ? NULL
            : schema_column_of(counter, change->serial[0]);
        about.key[i] = (struct store_about_key){change->id,
            change->member.member, column == NULL ? 0 : column->serial};
        if (column != NULL) {
            about.max_jump[i] = counter->max_jump;
            counts[i] = schema_column_of(counter, column->counts);
        }
    }
    store_about_add(session->executor->store, &about);
    job->about_seq = about.seq;
    for (unsigned i = 0; i < about.n; i++) {
        struct change *change = &job->change[i];
        enum store_about_state state = (enum store_about_state)about.state[i];
        change->err = err_of(change, state);
        change->value[0] = 1;
        change->n_saturated = 0;
        change->is_repeat = false;
        change->member.step = state == STORE_ABOUT_OUT;
        exec__count(session, METRIC_members_below, state == STORE_ABOUT_BELOW);
        if (change->member.step == 1 && counts[i] != NULL) {
            add_count(job, i, counts[i]);
        }
    }
}

static enum store_answer
ask_counts(struct job *job)
{
    return store_change(job->session->executor->store, &job->store_change);
}

bool
exec_about__make(struct session *session, int fault)
{
    struct job *job = session->job;
    ASSERT(job->stage == JOB_CHANGE && job->of_about);
    job->n_abouts_made = job->store_change.n;
    job->n_counts = 0;
    job->about_seq = 0;
    if (fault != 0) {
        for (unsigned i = 0; i < job->store_change.n; i++) {
            job->change[i].err = fault;
        }
        return false;
    }
    add_members(session);
    if (job->n_counts == 0) {
        return false;
    }
    job->store_change.change = &job->change[EXEC_ABOUTS_MAX];
    job->store_change.n = job->n_counts;
    return exec__waits(job, &job->store_change.call, ask_counts);
}

void
exec_about__end(struct job *job)
{
    ASSERT(job->of_about && job->n_counts <= job->n_abouts_made);
    for (unsigned n = 0; n < job->n_counts; n++) {
        job->change[job->count_of[n]].err =
            job->change[EXEC_ABOUTS_MAX + n].err;
    }
    job->store_change.change = job->change;
    job->store_change.n = job->n_abouts_made;
    if (job->store_change.seq < job->about_seq) {
        job->store_change.seq = job->about_seq;
    }
}
