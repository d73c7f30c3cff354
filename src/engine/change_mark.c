/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of marks. A mark says how far an id has read a source, which is
 * another number; 0 is no mark. It never goes back but by MARK_DECR and
 * MARK_DELETE, and never beyond the source, so that whatever is done twice, or
 * late, comes to the same. A mark that the source has left too far behind
 * counts as none, and MARK_FORGET takes it out. What is unread is the distance
 * between the two: nothing of it is stored.
 *
 * The source is a column of the same record, which is read with the mark under
 * the lock, or a value that was read before: that can only hold the mark back.
 * Of members it is the largest one; what is unread is how many are above the
 * mark, which is not known here but for whether it is none.
 * Where a change moves nothing the record stays as it is. */
#include "engine/engine_priv.h"

#include "base/assert.h"
#include "base/err.h"

/* What a mark is moved by. */
struct mark {
    uint64_t stored;
    uint64_t
        position; /* how far it is; 0: there is none, or it is forgotten */
    uint64_t source;
};

/* The column's serial is still that one. */
static bool
is_there(const struct column *column, uint32_t serial)
{
    /* relaxed: 0 where it is being dropped, and then it is gone a moment
     * sooner or later */
    return serial != 0 &&
        atomic_load_explicit(&column->serial, memory_order_relaxed) == serial;
}

/* The source's value: 0, or why there is none. */
static int
find_source(const struct view *view, const struct change_source *source,
    const uint64_t *code, uint64_t *value)
{
    const struct column *column;
    switch (source->from) {
    case SOURCE_GIVEN:
        *value = source->value;
        return 0;
    case SOURCE_UNREADABLE:
        return ERR_COLD_READ;
    case SOURCE_GONE:
        return ERR_GONE;
    case SOURCE_HERE:
        break;
    }
    ASSERT(source->column < SCHEMA_COLUMNS_MAX);
    column = &view->column[source->column];
    *value = column_decode(column, code[source->column]);
    return is_there(column, source->serial) ? 0 : ERR_GONE;
}

static uint64_t
unread(const struct change *change, const struct mark *mark)
{
    return mark_unread(
        mark->position, mark->source, change->source.unmarked_is_none);
}

/* Whether there is what the change is for: the mark, or for READ_ALL what is
 * unread. */
static int
compare(const struct view *view, const struct change *change,
    const struct mark *mark)
{
    uint64_t value =
        change->op == CHANGE_READ_ALL ? unread(change, mark) : mark->position;
    if (view->absent_is_miss && value == 0) {
        return ERR_NOT_FOUND;
    }
    if (change->op == CHANGE_READ_ALL && change->source.of_members &&
        value != 0) {
        return mark->position >= change->operand[0] &&
                mark->position <= change->operand[1]
            ? 0
            : ERR_EXISTS;
    }
    return cell_cas(value) == change->cas ? 0 : ERR_EXISTS;
}

/* Where a mark that is set to a position comes to. */
static uint64_t
raise(const struct mark *mark, uint64_t to)
{
    to = to < mark->source ? to : mark->source;
    return to > mark->position ? to : mark->position;
}

/* MARK_INCR where there is no mark: true where that is not to begin at 0. Then
 * *err is why not, or *to where the mark comes to. As starts in change.c. */
static bool
starts(const struct view *view, const struct change *change,
    const struct mark *mark, uint64_t *to, int *err)
{
    switch (change->absent) {
    case CHANGE_FROM_DEFAULT:
        break;
    case CHANGE_NOT_ABSENT:
        *err = ERR_NOT_FOUND;
        return view->absent_is_miss;
    case CHANGE_TO_INITIAL:
        *err = 0;
        *to = raise(mark, change->initial);
        return view->absent_is_miss || change->initial > 0;
    }
    return false;
}

/* MARK_INCR and MARK_DECR. */
static int
count(const struct view *view, const struct change *change,
    const struct mark *mark, uint64_t *to)
{
    uint64_t position = mark->position;
    uint64_t delta = change->operand[0];
    int err = 0;
    if (position == 0 && starts(view, change, mark, to, &err)) {
        return err;
    }
    if (change->op == CHANGE_MARK_DECR) {
        *to = delta < position ? position - delta : 0;
    } else {
        *to = raise(mark,
            delta <= UINT64_MAX - position ? position + delta : UINT64_MAX);
    }
    return 0;
}

/* *to is where the mark comes to: 0, or why it stays. */
static int
move(const struct view *view, const struct change *change,
    const struct mark *mark, uint64_t *to)
{
    bool is_marked = mark->position != 0;
    if (change->op == CHANGE_MARK_CAS || change->compares) {
        int err = compare(view, change, mark);
        if (err != 0) {
            return err;
        }
    }
    switch (change->op) {
    case CHANGE_MARK_INCR:
    case CHANGE_MARK_DECR:
        return count(view, change, mark, to);
    case CHANGE_MARK_DELETE:
        *to = 0;
        return mark->stored != 0 ? 0 : ERR_NOT_FOUND;
    case CHANGE_MARK_FORGET:
        *to = 0;
        return mark->stored != 0 && mark->position == 0 &&
                mark->stored == change->operand[0]
            ? 0
            : ERR_NOT_FOUND;
    case CHANGE_READ_ALL:
        *to = raise(mark, mark->source);
        return unread(change, mark) != 0 ? 0 : ERR_NOT_FOUND;
    default: /* those that bring a position */
        break;
    }
    if ((change->op == CHANGE_MARK_ADD && is_marked) ||
        (change->op == CHANGE_MARK_REPLACE && !is_marked)) {
        return ERR_NOT_STORED;
    }
    *to = raise(mark, change->operand[0]);
    return 0;
}

void
change__mark(const struct view *view, struct change *change, uint64_t *code)
{
    const struct change_source *source = &change->source;
    unsigned slot = change->column[0];
    struct mark mark;
    uint64_t to;
    ASSERT(change_is_of_mark(change));
    ASSERT(change->n_columns == 1 && slot < SCHEMA_COLUMNS_MAX);
    const struct column *column = &view->column[slot];
    change->is_moved = false;
    if (!is_there(column, change->serial[0])) {
        change->err = ERR_GONE;
        return;
    }
    change->err = find_source(view, source, code, &mark.source);
    if (change->err != 0) {
        return;
    }
    ASSERT(mark.source <= column->max);
    mark.stored = column_decode(column, code[slot]);
    mark.position = mark_position(mark.stored, mark.source, source->forget);
    change->err = move(view, change, &mark, &to);
    if (change->err != 0) {
        return;
    }
    ASSERT(to <= column->max);
    change->value[0] = mark_position(to, mark.source, source->forget);
    if (mark.position == 0 && to < mark.stored &&
        change->op != CHANGE_MARK_DELETE && change->op != CHANGE_MARK_FORGET) {
        to =
            mark.stored; /* forgotten: it may count again, and goes not back */
    }
    if (to != mark.stored) {
        code[slot] = column_encode(column, to);
        change->is_moved = true;
    }
}
