/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries to lines:
 *
 *   cells      set NAME ID COLUMN=VALUE...   columns that count members, lists
 *                                            and members themselves left out
 *              delete NAME ID.COLUMN         where a record has no members any
 *                                            more
 *   members    set NAME ID.COLUMN:MEMBER VALUE
 *   counter    drop column..., then the lines that declare it
 *   dropped    drop counter NAME NAME
 *   number     gathered, then numbers NAME HIGHEST BITS
 *   producer made or dropped   drop producer NAME
 *
 * A serial that is not known is that of a column, or a producer, which is gone
 * at the source by now: what it says is nowhere any more.
 *
 * A pair's id has the member in it (store_pair): behind the bits that say in
 * which shard it is, which anybody can leave out. */
#include "cli/reshard_lines.h"

#include "base/assert.h"
#include "base/err.h"
#include "schema/print.h"
#include "schema/restore.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
fail(struct reshard_lines *lines, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    (void)vsnprintf(lines->why, sizeof lines->why, format, list);
    va_end(list);
    return false;
}

int
reshard_lines_init(struct reshard_lines *lines, const struct owns *owns)
{
    *lines = (struct reshard_lines){.owns = owns};
    lines->schema = schema_create();
    return lines->schema == NULL ? ERR_NO_MEMORY : 0;
}

void
reshard_lines_fini(struct reshard_lines *lines)
{
    schema_destroy(&lines->schema);
    schema_destroy(&lines->known);
    free(lines->producer);
    lines->producer = NULL;
    buf_fini(&lines->text);
}

bool
reshard_lines_begin(struct reshard_lines *lines, uint32_t shards)
{
    if (shards == 0 || (shards & (shards - 1)) != 0) {
        return fail(
            lines, "the source says that it has %" PRIu32 " shards", shards);
    }
    if (lines->known == NULL) { /* else one that was not learnt to its end */
        lines->known = lines->schema;
        lines->schema = NULL;
    }
    schema_destroy(&lines->schema);
    lines->schema = schema_create();
    lines->shard_bits = (unsigned)__builtin_ctz(shards);
    for (size_t i = 0; i < lines->n_producers; i++) {
        lines->producer[i].is_there = lines->producer[i].has_seen = false;
    }
    memset(lines->largest, 0, sizeof lines->largest);
    memset(lines->told, 0, sizeof lines->told);
    buf_clear(&lines->text);
    return lines->schema != NULL || fail(lines, "out of memory");
}

/* ---- producers ---- */

/* The place of a serial, or where it would be. */
static size_t
place_of(const struct reshard_lines *lines, uint32_t serial)
{
    size_t from = 0, to = lines->n_producers;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (lines->producer[middle].serial < serial) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static struct reshard_producer *
producer_of(struct reshard_lines *lines, uint32_t serial)
{
    size_t at = place_of(lines, serial);
    return at < lines->n_producers && lines->producer[at].serial == serial
        ? &lines->producer[at]
        : NULL;
}

static bool
add_producer(struct reshard_lines *lines, const struct entry *entry)
{
    struct reshard_producer *known = producer_of(lines, entry->producer);
    if (known != NULL) {
        known->name = entry->name;
        known->is_there = true;
        return true;
    }
    if (lines->n_producers == lines->producers_max) {
        size_t max = lines->producers_max == 0 ? 64 : 2 * lines->producers_max;
        struct reshard_producer *more = max > RESHARD_PRODUCERS_MAX
            ? NULL
            : realloc(lines->producer, max * sizeof *more);
        if (more == NULL) {
            return fail(lines, "no memory for so many producers");
        }
        lines->producer = more;
        lines->producers_max = max;
    }
    size_t at = place_of(lines, entry->producer);
    memmove(&lines->producer[at + 1], &lines->producer[at],
        (lines->n_producers - at) * sizeof *lines->producer);
    lines->n_producers++;
    lines->producer[at] = (struct reshard_producer){
        .serial = entry->producer, .is_there = true, .name = entry->name};
    return true;
}

static void
drop_producer(struct reshard_lines *lines, uint32_t serial)
{
    struct reshard_producer *known = producer_of(lines, serial);
    if (known == NULL) {
        return;
    }
    buf_addf(&lines->text, "drop producer %.*s\n", (int)known->name.len,
        known->name.text);
    size_t at = (size_t)(known - lines->producer);
    lines->n_producers--;
    memmove(known, known + 1, (lines->n_producers - at) * sizeof *known);
}

/* One that is new in the log: what the new group has of that name was of one
 * that has been dropped, maybe while nobody listened. All its numbers come
 * behind that. Where there may be numbers of other ids as well they stay: to
 * forget them would let a repeated change be done twice. */
static bool
make_producer(struct reshard_lines *lines, const struct entry *entry)
{
    if (!lines->is_shared) {
        buf_addf(&lines->text, "drop producer %.*s\n", (int)entry->name.len,
            entry->name.text);
    }
    return add_producer(lines, entry);
}

/* The line that joins a window in, which is not empty. */
static void
add_window(const struct producer_name *name, const struct seen_window *seen,
    struct buf *out)
{
    static const char digits[] = "0123456789abcdef";
    bool is_begun = false;
    buf_addf(out, "numbers %.*s %" PRIu64 " ", (int)name->len, name->text,
        seen->high);
    for (unsigned i = SEEN_WINDOW / 4; i-- > 0;) {
        unsigned digit = 0;
        for (unsigned k = 0; k < 4; k++) {
            uint64_t back = 4 * i + k;
            bool is_seen = back <= seen->high &&
                seen_look(seen, seen->high - back) == SEEN_BEFORE;
            digit |= is_seen ? 1U << k : 0;
        }
        is_begun = is_begun || digit != 0;
        if (is_begun) {
            buf_add(out, &digits[digit], 1);
        }
    }
    buf_add_text(out, "\n");
}

/* ---- the schema ---- */

static bool
take_schema(struct reshard_lines *lines, struct schema *schema, int err)
{
    if (err != 0) {
        return fail(lines, "the source tells of a counter that cannot be: %s",
            err_text(err));
    }
    schema_destroy(&lines->schema);
    lines->schema = schema;
    return true;
}

static bool
restore(struct reshard_lines *lines, const struct entry *entry)
{
    struct schema *schema = NULL;
    if (entry->counter.key_is_text) {
        return fail(lines,
            "counter %s cannot be moved: its ids are names, whose numbers are "
            "each directory's own; see doc/shard.md, or make the new group a "
            "replica first",
            entry->counter.name.text);
    }
    for (unsigned i = 0; i < entry->counter.n_columns; i++) {
        const struct schema_column *column = &entry->counter.column[i];
        if (column->kind == SCHEMA_ABOUT) {
            return fail(lines,
                "column %s of %s cannot be moved: members=about cannot be "
                "told one by one; drop it, or make the new group a replica "
                "first",
                column->name.text, entry->counter.name.text);
        }
    }
    int err = schema_restore(
        lines->schema, &entry->counter, entry->last_serial, &schema);
    return take_schema(lines, schema, err);
}

static const struct schema_counter *
counter_in(const struct schema *schema, uint32_t serial)
{
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *it = schema_counter_at(schema, i);
        if (it != NULL && it->serial == serial) {
            return it;
        }
    }
    return NULL;
}

static const struct schema_counter *
counter_of(const struct reshard_lines *lines, uint32_t serial)
{
    return counter_in(lines->schema, serial);
}

static void
add_change(struct reshard_lines *lines, const struct schema_edit *change)
{
    schema_print_change(change, &lines->text);
    buf_add_text(&lines->text, "\n");
}

/* What a column of now was; NULL: it is new. One edit does not drop and add: it
 * has given a column that stands in the place of another one a new serial, with
 * its default. */
static const struct schema_column *
column_before(const struct schema_counter *was,
    const struct schema_counter *now, unsigned i, bool is_one_edit)
{
    const struct schema_column *column =
        schema_column_of(was, now->column[i].serial);
    return column == NULL && is_one_edit && was->n_columns == now->n_columns
        ? &was->column[i]
        : column;
}

/* The lines by which what old has of a counter becomes what it is now, of what
 * both have: the new group would take a column with a new name for another
 * one. */
static void
add_changes(struct reshard_lines *lines, const struct schema *old,
    const struct schema_counter *now, bool is_one_edit)
{
    const struct schema_counter *was = counter_in(old, now->serial);
    struct schema_edit add = {.op = SCHEMA_ADD_COUNTER, .counter = *now};
    struct schema_edit change;
    if (was == NULL) {
        return;
    }
    if (schema_change_for(old, &add, &change)) {
        add_change(lines, &change);
    }
    for (unsigned i = 0; i < now->n_columns; i++) {
        const struct schema_column *column =
            column_before(was, now, i, is_one_edit);
        if (column != NULL &&
            schema_change_of(now, column, &now->column[i], &change)) {
            add_change(lines, &change);
        }
    }
}

/* The lines by which what the old one was becomes what it is now. */
static bool
change_counter(struct reshard_lines *lines, const struct entry *entry)
{
    const struct schema_counter *old =
        counter_of(lines, entry->counter.serial);
    const char *name = entry->counter.name.text;
    for (unsigned i = old == NULL ? 0 : old->n_columns; i-- > 0;) {
        const struct schema_column *column = &old->column[i];
        if (old->n_columns != entry->counter.n_columns &&
            schema_column_of(&entry->counter, column->serial) == NULL) {
            buf_addf(&lines->text, "drop column %s %s %s\n", name,
                column->name.text, column->name.text);
        }
    }
    if (old != NULL) {
        add_changes(lines, lines->schema, &entry->counter, true);
    }
    if (!restore(lines, entry)) {
        return false;
    }
    const struct schema_counter *now =
        counter_of(lines, entry->counter.serial);
    ASSERT(now != NULL);
    return schema_print(lines->schema, now, &lines->text) == 0 ||
        fail(lines, "out of memory");
}

static void
add_drop_counter(
    struct reshard_lines *lines, const struct schema_counter *counter)
{
    const char *name = counter->name.text;
    buf_addf(&lines->text, "drop counter %s %s\n", name, name);
}

static bool
drop_counter(struct reshard_lines *lines, const struct entry *entry)
{
    struct schema *schema = NULL;
    const struct schema_counter *old =
        counter_of(lines, entry->counter_serial);
    if (old == NULL) {
        return true;
    }
    add_drop_counter(lines, old);
    int err = schema_restore_drop(
        lines->schema, entry->counter_serial, entry->last_serial, &schema);
    return take_schema(lines, schema, err);
}

bool
reshard_lines_learn(
    struct reshard_lines *lines, const uint8_t *payload, size_t len)
{
    static struct entry entry;
    struct entry_reader reader = {.at = payload, .end = payload + len};
    while (entry_has_next(&reader)) {
        if (!entry_next(&reader, &entry)) {
            return fail(lines, "the source sends what is no entry");
        }
        bool is_right = entry.kind == ENTRY_COUNTER ? restore(lines, &entry)
            : entry.kind == ENTRY_PRODUCER ? add_producer(lines, &entry)
                                           : true;
        if (!is_right) {
            return false;
        }
    }
    return true;
}

bool
reshard_lines_learnt(struct reshard_lines *lines)
{
    /* the newest first, which may be about others */
    for (unsigned i = SCHEMA_COUNTERS_MAX; lines->known != NULL && i-- > 0;) {
        const struct schema_counter *it = schema_counter_at(lines->known, i);
        if (it != NULL && it->members_of == 0 &&
            counter_of(lines, it->serial) == NULL) {
            add_drop_counter(lines, it);
        }
    }
    for (unsigned i = 0; lines->known != NULL && i < SCHEMA_COUNTERS_MAX;
         i++) {
        const struct schema_counter *it = schema_counter_at(lines->schema, i);
        if (it != NULL && it->members_of == 0) {
            add_changes(lines, lines->known, it, false);
        }
    }
    schema_destroy(&lines->known);
    for (size_t i = lines->n_producers; i-- > 0;) {
        if (!lines->producer[i].is_there) {
            drop_producer(lines, lines->producer[i].serial);
        }
    }
    return !lines->text.failed || fail(lines, "out of memory");
}

/* ---- records ---- */

/* The counter that has a column of that serial; of all cells of an entry it is
 * the same. */
static const struct schema_counter *
counter_with(
    const struct reshard_lines *lines, const struct entry_cells *cells)
{
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *it = schema_counter_at(lines->schema, i);
        for (unsigned k = 0; it != NULL && k < cells->n; k++) {
            if (schema_column_of(it, cells->serial[k]) != NULL) {
                return it;
            }
        }
    }
    return NULL;
}

static const char *
name_of(const struct schema_column *column)
{
    return column->suffix.len > 0 ? column->suffix.text : column->name.text;
}

static void
note_largest(struct reshard_lines *lines, const struct schema_counter *counter,
    uint64_t id)
{
    if (id > lines->largest[counter->slot]) {
        lines->largest[counter->slot] = id;
    }
}

/* A pair: the member that is in its id, of the record that came before. */
static bool
add_member(struct reshard_lines *lines, const struct schema_counter *pairs,
    const struct entry_cells *cells)
{
    const struct schema_column *column = schema_members(lines->schema, pairs);
    const struct schema_counter *counter = schema_owner(lines->schema, pairs);
    ASSERT(column != NULL && counter != NULL);
    if (!lines->owner_is_ours) {
        return true;
    }
    uint64_t row = cells->id >> lines->shard_bits;
    uint64_t member = row & ~(UINT64_MAX << column->member_bits);
    if (lines->owner_number == 0 ||
        row >> column->member_bits != lines->owner_number) {
        return fail(lines, "the source sends a member of %s without its id",
            counter->name.text);
    }
    note_largest(lines, counter, lines->owner);
    buf_addf(&lines->text, "set %s %" PRIu64 ".%s:%" PRIu64 " %" PRIu64 "\n",
        counter->name.text, lines->owner, name_of(column), member,
        cells->value[0]);
    return true;
}

/* Says that there are no members under a column, or keeps the number under
 * which they are. */
static void
note_members(struct reshard_lines *lines, const struct schema_counter *counter,
    const struct schema_column *column, uint64_t id, uint64_t number)
{
    lines->owner_number = number;
    if (number == 0) {
        buf_addf(&lines->text, "delete %s %" PRIu64 ".%s\n",
            counter->name.text, id, name_of(column));
    }
}

/* The line of a record's columns that may be set: all but lists, members, and
 * what counts these. */
static void
add_record(struct reshard_lines *lines, const struct schema_counter *counter,
    const struct entry_cells *cells)
{
    bool is_begun = false;
    for (unsigned i = 0; i < cells->n; i++) {
        const struct schema_column *column =
            schema_column_of(counter, cells->serial[i]);
        if (column == NULL || column->kind == SCHEMA_FOLLOWS ||
            !schema_is_in_record(column) ||
            schema_is_counted(counter, column)) {
            continue;
        }
        if (!is_begun) {
            buf_addf(&lines->text, "set %s %" PRIu64, counter->name.text,
                cells->id);
            is_begun = true;
        }
        buf_addf(
            &lines->text, " %s=%" PRIu64, column->name.text, cells->value[i]);
    }
    if (is_begun) {
        buf_add_text(&lines->text, "\n");
    }
}

/* pair_serial: of the entry of members that the cells are of, or 0. */
static bool
add_cells(struct reshard_lines *lines, const struct entry_cells *cells,
    uint32_t pair_serial)
{
    const struct schema_counter *counter = counter_with(lines, cells);
    if (counter == NULL) {
        return true;
    }
    if (counter->members_of != 0) {
        return add_member(lines, counter, cells);
    }
    lines->owner = cells->id;
    lines->owner_number = 0;
    lines->owner_is_ours = owns_has(lines->owns, cells->id);
    if (!lines->owner_is_ours) {
        return true;
    }
    add_record(lines, counter, cells);
    for (unsigned i = 0; i < cells->n; i++) {
        const struct schema_column *column =
            schema_column_of(counter, cells->serial[i]);
        if (column != NULL && column->kind == SCHEMA_MEMBERS &&
            (pair_serial == 0 || schema_pairs_serial(column) == pair_serial)) {
            note_members(lines, counter, column, cells->id, cells->value[i]);
        }
    }
    note_largest(lines, counter, cells->id);
    lines->n_records++;
    return true;
}

/* ---- what comes one after the other ---- */

/* The window of a producer that is to be told; NULL: it is gone. */
static struct seen_window *
window_of(struct reshard_lines *lines, uint32_t producer)
{
    struct reshard_producer *known = producer_of(lines, producer);
    if (known == NULL) {
        return NULL;
    }
    if (!known->has_seen) {
        known->seen = (struct seen_window){0};
        known->has_seen = true;
    }
    return &known->seen;
}

static void
add_number(struct reshard_lines *lines, const struct entry *entry)
{
    struct seen_window *seen = window_of(lines, entry->producer);
    if (seen != NULL) {
        seen_add(seen, entry->number);
    }
}

static void
join_numbers(struct reshard_lines *lines, const struct entry *entry)
{
    struct seen_window *seen = window_of(lines, entry->producer);
    if (seen != NULL) {
        seen_join(seen, &entry->seen);
    }
}

/* All changes of these ids that there were, or will be until they are here
 * again, stand before the entry. */
static void
note_moved(struct reshard_lines *lines, const struct moved_one *moved)
{
    if (strcmp(moved->rule, owns_rule(lines->owns)) == 0) {
        (void)snprintf(
            lines->moved, sizeof lines->moved, "%s", moved->address);
    }
}

static bool
take_entry(struct reshard_lines *lines, const struct entry_reader *reader,
    const struct entry *entry)
{
    switch (entry->kind) {
    case ENTRY_CELLS:
        return entry->cells.serial[0] == ENTRY_MARK_SERIAL ||
            add_cells(lines, &entry->cells,
                reader->n_parts == 0 ? 0 : reader->members.pair_serial);
    case ENTRY_COUNTER:
        return change_counter(lines, entry);
    case ENTRY_DROPPED:
        return drop_counter(lines, entry);
    case ENTRY_NUMBER:
        add_number(lines, entry);
        return true;
    case ENTRY_PRODUCER:
        return make_producer(lines, entry);
    case ENTRY_PRODUCER_JOINED:
        join_numbers(lines, entry);
        return true;
    case ENTRY_PRODUCER_DROPPED:
        drop_producer(lines, entry->producer);
        return true;
    case ENTRY_MOVED:
        note_moved(lines, &entry->moved);
        return true;
    default:
        return true;
    }
}

static bool
is_alone(enum entry_kind kind)
{
    return kind == ENTRY_COUNTER || kind == ENTRY_DROPPED;
}

enum reshard_take
reshard_lines_take(struct reshard_lines *lines, struct entry_reader *reader)
{
    static struct entry entry;
    while (entry_has_next(reader)) {
        struct entry_reader before = *reader;
        if (!entry_next(reader, &entry)) {
            (void)fail(lines, "the source sends what is no entry");
            return RESHARD_WRONG;
        }
        if (is_alone(entry.kind) && lines->text.len > 0) {
            *reader = before;
            return RESHARD_SEND;
        }
        if (!take_entry(lines, reader, &entry)) {
            return RESHARD_WRONG;
        }
        if (lines->text.failed) {
            (void)fail(lines, "out of memory");
            return RESHARD_WRONG;
        }
        if (is_alone(entry.kind) && lines->text.len > 0) {
            return RESHARD_SEND;
        }
    }
    return RESHARD_TAKEN;
}

static size_t
lines_of(const struct buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->len; i++) {
        n += text->data[i] == '\n';
    }
    return n;
}

/* Ids of a counter with a guard are let in, though those between them are
 * another server's. */
static bool
add_largest(struct reshard_lines *lines, struct buf *out)
{
    for (unsigned i = 0; i < SCHEMA_COUNTERS_MAX; i++) {
        const struct schema_counter *it = schema_counter_at(lines->schema, i);
        if (it == NULL || it->max_jump == 0 ||
            lines->largest[i] <= lines->told[i]) {
            continue;
        }
        if (schema_print_largest(it, lines->largest[i], out) != 0) {
            return false;
        }
        lines->told[i] = lines->largest[i];
    }
    return true;
}

bool
reshard_lines_finish(struct reshard_lines *lines, struct buf *out, size_t *n)
{
    if (!add_largest(lines, out)) {
        return fail(lines, "out of memory");
    }
    buf_add(out, lines->text.data, lines->text.len);
    buf_clear(&lines->text);
    for (size_t i = 0; i < lines->n_producers; i++) {
        struct reshard_producer *it = &lines->producer[i];
        if (it->has_seen) {
            add_window(&it->name, &it->seen, out);
            it->has_seen = false;
        }
    }
    *n = lines_of(out);
    return !out->failed || fail(lines, "out of memory");
}
