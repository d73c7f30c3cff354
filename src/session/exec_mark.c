/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks, and what is behind them. A key of either is answered from two cells,
 * the mark and its source, or from the mark and members; the change of a mark
 * needs the source too.
 *
 * A source of the same id stands beside the mark: in a get both are read at one
 * moment, and a change finds it in the record. One of a fixed id is another
 * record: a get has it read before all marks of the slice, once for all keys
 * that need it, and so have changes, in a call of their own before they are
 * made. So what is read of it can only be older than the mark, and nothing
 * counts as unread that is not.
 *
 * Where the source is members, of whichever id, it is the largest of them. They
 * are in an array that the store has (engine/sorted.h): their number is read
 * first, as a source is, then they are pinned as they are at that moment, and
 * then come the marks or the changes. One pin serves all keys that are about
 * the same members of a fixed id. */
#include "session/exec_mark.h"

#include "base/assert.h"
#include "base/err.h"
#include "session/exec_get.h"

/* The source of the mark that key is about: false where it has been dropped. */
static inline bool
find_source(struct session *session, const struct key *key,
    struct schema_target *source, uint64_t *id)
{
    const struct schema_column *mark = key->target.column;
    ASSERT(mark->kind == SCHEMA_MARK);
    if (mark->source.is_fixed) {
        *id = mark->source.id;
        return schema_source(
            exec__schema(session), key->target.counter, mark, source);
    }
    *id = key->id;
    source->counter = key->target.counter; /* one of the schema: at once */
    source->column = schema_source_in(source->counter, &mark->source);
    return source->column != NULL;
}

static bool
is_same(const struct cell_key *a, const struct cell_key *b)
{
    return a->id == b->id && a->serial == b->serial &&
        a->counter == b->counter && a->column == b->column;
}

/* The number of a cell among keys first.. of a get, which has n of them there;
 * it is added where it is not among them. */
static uint16_t
add_once(
    struct store_get *get, uint32_t first, uint32_t *n, struct cell_key cell)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (is_same(&get->key[first + i], &cell)) {
            return (uint16_t)(first + i);
        }
    }
    ASSERT(first + *n < STORE_KEYS_MAX);
    get->key[first + *n] = cell;
    return (uint16_t)(first + (*n)++);
}

/* The place among the pins of the members that source has of an id. The number
 * is key i of the get that has the sources; shared: others may be about them
 * too. */
static uint16_t
add_pin(struct job *job, uint64_t id, const struct schema_target *source,
    uint16_t number, bool is_shared)
{
    const struct schema_column *column = source->column;
    struct job_pins *pins = &job->pins;
    uint32_t k = is_shared ? 0 : pins->n;
    ASSERT(column->kind == SCHEMA_MEMBERS);
    while (k < pins->n && pins->source[k] != number) {
        k++;
    }
    if (k == pins->n) {
        ASSERT(k < EXEC_SLICE_KEYS_MAX);
        pins->n++;
        pins->source[k] = number;
        pins->members[k] =
            (struct store_members){.key = {.id = id,
                                       .serial = schema_pairs_serial(column),
                                       .pairs = column->pairs,
                                       .bits = column->member_bits}};
    }
    return (uint16_t)k;
}

/* The number of the members that a mark of a get is about. */
static uint16_t
add_number(struct job *job, uint64_t id, const struct schema_target *source,
    bool is_shared)
{
    struct store_get *get = &job->get;
    struct cell_key cell = exec_get__cell(id, source);
    uint16_t at;
    if (is_shared) {
        at = add_once(get, STORE_GET_MAX, &get->n_sources, cell);
    } else {
        at = (uint16_t)(STORE_GET_MAX + get->n_sources++);
        ASSERT(at < STORE_KEYS_MAX);
        get->key[at] = cell;
    }
    return add_pin(job, id, source, at, is_shared);
}

void
exec_get__add_mark(struct job *job, struct slot *slot, const struct key *key)
{
    const struct schema_column *mark = key->target.column;
    struct store_get *get = &job->get;
    struct schema_target source;
    uint64_t id;
    uint16_t cell = (uint16_t)get->n;
    bool is_unread = key->kind == KEY_UNREAD;
    slot->kind = SLOT_MARK;
    slot->n_cells = 1;
    slot->flags = mark->flags;
    ASSERT(get->n + 2 <= STORE_GET_MAX && job->n_marks < EXEC_SLICE_KEYS_MAX);
    get->key[get->n++] = exec_get__cell(key->id, &key->target);
    if (!is_unread && mark->forget == 0) {
        return; /* it is what is stored */
    }
    if (!find_source(job->session, key, &source, &id)) {
        get->key[cell].serial = 0; /* and so is the mark */
        return;
    }
    if (exec_mark__is_elsewhere(job->session, key)) {
        exec__note_other(job->session, id);
        get->key[cell].serial = 0; /* a miss: a number would be wrong */
        return;
    }
    if (job->n_marks == 0) {
        job->pins.n = 0;
    }
    struct slot_mark *it = &job->mark[job->n_marks++];
    *it = (struct slot_mark){.cell = cell,
        .source = (uint16_t)get->n,
        .is_unread = is_unread,
        .unmarked_is_none = mark->unmarked_is_none,
        .forget = mark->forget};
    if (source.column->kind == SCHEMA_MEMBERS) {
        it->of_members = true;
        it->source = add_number(job, id, &source, mark->source.is_fixed);
    } else if (mark->source.is_fixed) {
        it->source = add_once(
            get, STORE_GET_MAX, &get->n_sources, exec_get__cell(id, &source));
    } else {
        get->key[get->n++] = exec_get__cell(id, &source);
    }
}

/* The one cell that a mark and its source come to. */
static void
work_out(struct store_get *get, const struct slot_mark *mark)
{
    uint64_t *value = &get->value[mark->cell];
    uint8_t *state = &get->state[mark->cell];
    uint64_t source = get->value[mark->source];
    uint8_t source_state = get->state[mark->source];
    if (*state == CELL_GONE || source_state == CELL_GONE) {
        *state = CELL_GONE;
    } else if (*state == CELL_UNREADABLE || source_state == CELL_UNREADABLE) {
        *state = CELL_UNREADABLE;
    } else {
        *value = mark_position(*value, source, mark->forget);
        if (mark->is_unread) {
            *value = mark_unread(*value, source, mark->unmarked_is_none);
        }
        *state = *value == 0 ? CELL_DEFAULT : CELL_SET;
    }
}

/* Why a source of members cannot be had: ERR_COLD_READ, or what else it is. */
static int
err_of_pin(const struct job_pins *pins, unsigned k)
{
    int err = pins->state[k] > CELL_SET ? 0 : pins->members[k].err;
    return err == ERR_CLOSED || err == ERR_NO_MEMORY ? err : ERR_COLD_READ;
}

int
exec_get__unreadable_err(const struct job *job, const struct slot *slot)
{
    int err = ERR_COLD_READ;
    for (unsigned i = 0; i < job->n_worked && err == ERR_COLD_READ; i++) {
        const struct slot_mark *mark = &job->mark[i];
        if (mark->of_members && mark->cell >= slot->first &&
            mark->cell < slot->first + slot->n_cells) {
            err = err_of_pin(&job->pins, mark->source);
        }
    }
    return err;
}

/* What stands for a source of members: as of a cell. */
static enum cell_state
state_of_pin(const struct job_pins *pins, unsigned k)
{
    if (pins->state[k] > CELL_SET) {
        return pins->state[k];
    }
    switch (pins->members[k].err) {
    case 0:
        return CELL_SET;
    case ERR_GONE:
        return CELL_GONE;
    default:
        return CELL_UNREADABLE;
    }
}

/* The same as work_out where the source is members. */
static void
work_out_members(struct job *job, const struct slot_mark *mark)
{
    uint64_t *value = &job->get.value[mark->cell];
    uint8_t *state = &job->get.state[mark->cell];
    const struct sorted_pin *pin = &job->pins.members[mark->source].pin;
    enum cell_state source = state_of_pin(&job->pins, mark->source);
    ASSERT(mark->source < job->pins.n);
    if (*state > CELL_SET || source > CELL_SET) {
        *state = *state == CELL_GONE || source == CELL_GONE ? CELL_GONE
                                                            : CELL_UNREADABLE;
        return;
    }
    *value = mark_position(*value, sorted_largest(pin), mark->forget);
    if (mark->is_unread) {
        *value = *value == 0 && mark->unmarked_is_none
            ? 0
            : sorted_above(pin, *value);
    }
    *state = *value == 0 ? CELL_DEFAULT : CELL_SET;
}

void
exec_get__work_out_marks(struct session *session)
{
    struct job *job = session->job;
    unsigned n_unread = 0;
    for (unsigned i = 0; i < job->n_marks; i++) {
        const struct slot_mark *mark = &job->mark[i];
        ASSERT(mark->cell < job->get.n);
        if (mark->of_members) {
            work_out_members(job, mark);
        } else {
            work_out(&job->get, mark);
        }
        n_unread += mark->is_unread;
    }
    if (job->has_pins) {
        exec_mark__unpin(job);
        if (job->get.n_sources < job->pins.n) { /* all are numbers of members,
                                                 * and have been seen */
            job->get.n_sources = job->pins.n;
        }
    }
    exec__count(session, METRIC_unread_reads, n_unread);
    job->n_worked = job->n_marks;
    job->n_marks = 0; /* once only, however many turns the answer takes */
}

bool
exec_mark__is_elsewhere(const struct session *session, const struct key *key)
{
    const struct schema_source *source = &key->target.column->source;
    return source->is_fixed && session->executor->has_others &&
        exec__is_other(session, source->id);
}

/* ---- pins ---- */

void
exec_mark__want_pins(struct job *job, const struct store_get *get)
{
    struct job_pins *pins = &job->pins;
    for (uint32_t k = 0; k < pins->n; k++) {
        unsigned at = pins->source[k];
        struct store_members *it = &pins->members[k];
        pins->state[k] = get->state[at];
        it->key.number = get->state[at] <= CELL_SET ? get->value[at] : 0;
        it->err = 0;
        it->pin = (struct sorted_pin){NULL, 0};
    }
    pins->call.n = pins->n;
    pins->call.members = pins->members;
    job->has_pins = true;
}

enum store_answer
exec_mark__ask_pins(struct job *job)
{
    return store_pin(job->session->executor->store, &job->pins.call);
}

void
exec_mark__unpin(struct job *job)
{
    ASSERT(job->has_pins && !job->waits);
    for (uint32_t k = 0; k < job->pins.n; k++) {
        store_unpin(job->session->executor->store, &job->pins.members[k].pin);
    }
    job->has_pins = false;
}

/* ---- changes ---- */

bool
exec_mark__must_settle(struct session *session, const struct key *key)
{
    const struct job *job = session->job;
    struct schema_target source;
    uint64_t id;
    if (!exec_is_gathering(session) ||
        !find_source(session, key, &source, &id) ||
        (!key->target.column->source.is_fixed &&
            source.column->kind != SCHEMA_MEMBERS)) {
        return false;
    }
    for (unsigned i = 0; i < job->store_change.n; i++) {
        const struct change *change = &job->change[i];
        if (change->id == id && change->counter == source.counter->slot) {
            return true;
        }
    }
    return false;
}

void
exec_mark__take_source(struct session *session, const struct key *key)
{
    const struct schema_column *mark = key->target.column;
    struct job *job = session->job;
    unsigned i = job->store_change.n;
    struct change_source *out = &job->change[i].source;
    struct schema_target source;
    uint64_t id;
    *out = (struct change_source){.from = SOURCE_GONE,
        .unmarked_is_none = mark->unmarked_is_none,
        .forget = mark->forget};
    if (!find_source(session, key, &source, &id)) {
        return;
    }
    if (job->marks == 0) {
        job->of_members = 0;
        job->pins.n = 0;
    }
    if (source.column->kind == SCHEMA_MEMBERS) {
        uint16_t number = add_once(
            &job->sources, 0, &job->sources.n, exec_get__cell(id, &source));
        job->marks |= UINT64_C(1) << i;
        job->of_members |= UINT64_C(1) << i;
        job->source[i] = (uint8_t)add_pin(job, id, &source, number, true);
        return;
    }
    if (!mark->source.is_fixed) {
        out->from = SOURCE_HERE;
        out->serial = source.column->serial;
        out->column = source.column->slot;
        return;
    }
    /* the answer says how it is */
    job->marks |= UINT64_C(1) << i;
    job->source[i] = (uint8_t)add_once(
        &job->sources, 0, &job->sources.n, exec_get__cell(id, &source));
}

/* What is said of the source of a change, whose state is that. */
static void
give_source(enum cell_state state, uint64_t value, struct change_source *out)
{
    switch (state) {
    case CELL_DEFAULT:
    case CELL_SET:
        out->from = SOURCE_GIVEN;
        out->value = value;
        break;
    case CELL_GONE:
        out->from = SOURCE_GONE;
        break;
    case CELL_UNREADABLE:
        out->from = SOURCE_UNREADABLE;
        break;
    }
}

/* Members are the source of a change. What is to be unread where all is marked
 * as read for a cas only is known as the positions of which that holds. */
static void
give_members(
    const struct sorted_pin *pin, enum cell_state state, struct change *change)
{
    give_source(state, sorted_largest(pin), &change->source);
    change->source.of_members = true;
    if (change->op == CHANGE_READ_ALL && change->compares &&
        (change->cas == 0 ||
            !sorted_positions(pin, change->cas - 1, &change->operand[0],
                &change->operand[1]))) {
        change->operand[0] = 1; /* none has so many above it */
        change->operand[1] = 0;
    }
}

void
exec_mark__give_sources(struct job *job)
{
    const struct store_get *sources = &job->sources;
    for (unsigned i = 0; i < job->store_change.n; i++) {
        struct change *change = &job->change[i];
        unsigned at = job->source[i];
        if ((job->marks >> i & 1) == 0) {
            continue;
        }
        if ((job->of_members >> i & 1) != 0) {
            ASSERT(at < job->pins.n);
            give_members(&job->pins.members[at].pin,
                state_of_pin(&job->pins, at), change);
            continue;
        }
        ASSERT(at < sources->n);
        give_source((enum cell_state)sources->state[at], sources->value[at],
            &change->source);
    }
}

void
exec_mark__name_errors(struct job *job)
{
    for (unsigned i = 0; i < job->store_change.n; i++) {
        struct change *change = &job->change[i];
        if ((job->of_members >> i & 1) != 0 && change->err == ERR_COLD_READ &&
            change->source.from == SOURCE_UNREADABLE) {
            change->err = err_of_pin(&job->pins, job->source[i]);
        }
    }
}
