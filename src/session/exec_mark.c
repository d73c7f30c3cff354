/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks, and what is behind them. A key of either is answered from two cells,
 * the mark and its source; the change of a mark needs the source too.
 *
 * A source of the same id stands beside the mark: in a get both are read at one
 * moment, and a change finds it in the record. One of a fixed id is another
 * record: a get has it read before all marks of the slice, once for all keys
 * that need it, and so have changes, in a call of their own before they are
 * made. So what is read of it can only be older than the mark, and nothing
 * counts as unread that is not. */
#include "session/exec_mark.h"

#include "base/assert.h"
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
    struct slot_mark *it = &job->mark[job->n_marks++];
    *it = (struct slot_mark){.cell = cell,
        .source = (uint16_t)get->n,
        .is_unread = is_unread,
        .unmarked_is_none = mark->unmarked_is_none,
        .forget = mark->forget};
    if (mark->source.is_fixed) {
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

void
exec_get__work_out_marks(struct session *session)
{
    struct job *job = session->job;
    unsigned n_unread = 0;
    for (unsigned i = 0; i < job->n_marks; i++) {
        const struct slot_mark *mark = &job->mark[i];
        ASSERT(mark->cell < job->get.n);
        work_out(&job->get, mark);
        n_unread += mark->is_unread;
    }
    exec__count(session, METRIC_unread_reads, n_unread);
    job->n_marks = 0; /* once only, however many turns the answer takes */
}

bool
exec_mark__is_elsewhere(const struct session *session, const struct key *key)
{
    const struct schema_source *source = &key->target.column->source;
    return source->is_fixed && session->executor->owns != NULL &&
        exec__is_other(session, source->id);
}

/* ---- changes ---- */

bool
exec_mark__must_settle(struct session *session, const struct key *key)
{
    const struct job *job = session->job;
    struct schema_target source;
    uint64_t id;
    if (!exec_is_gathering(session) || !key->target.column->source.is_fixed ||
        !find_source(session, key, &source, &id)) {
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

void
exec_mark__give_sources(struct job *job)
{
    const struct store_get *sources = &job->sources;
    for (unsigned i = 0; i < job->store_change.n; i++) {
        struct change_source *out = &job->change[i].source;
        unsigned at = job->source[i];
        if ((job->marks >> i & 1) == 0) {
            continue;
        }
        ASSERT(at < sources->n);
        switch ((enum cell_state)sources->state[at]) {
        case CELL_DEFAULT:
        case CELL_SET:
            out->from = SOURCE_GIVEN;
            out->value = sources->value[at];
            break;
        case CELL_GONE:
            out->from = SOURCE_GONE;
            break;
        case CELL_UNREADABLE:
            out->from = SOURCE_UNREADABLE;
            break;
        }
    }
}
