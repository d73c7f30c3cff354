/* SPDX-License-Identifier: BSD-3-Clause */
/* A schema as it was, from what was stored of it.
 *
 * Edits (edit.c) choose slots and serials; here they are given, and what the
 * edits ensured has to be checked: the schema asserts it later on, and a file
 * with a right checksum may still be one that nobody should have written. As
 * there, all is checked on the old version before the copy is made.
 *
 * A counter is sound in itself (counter_is_sound), and agrees with all others
 * (agrees): their names are one namespace, their serials one sequence, and each
 * has a slot of its own. Of a counter of pairs slot and serials are said by its
 * column of members, and are looked at there. The
 * name of a primary key is in no namespace but that of its own columns, as in
 * edit.c. What a mark or a list is about may be of a counter that is not there
 * yet: so that is checked of the whole (schema_check). It is older than they
 * are, and has a lower serial: nothing is about itself in a ring.
 *
 * What can go wrong: a counter that does not fit (ERR_CORRUPT), memory. */
#include "schema/restore.h"

#include "base/assert.h"
#include "base/err.h"
#include "schema/schema_priv.h"

static bool
name_is_sound(const struct schema_name *name)
{
    return name->len <= SCHEMA_NAME_MAX && name->text[name->len] == '\0' &&
        schema_is_name(name->text, name->len);
}

/* A name that need not be there. */
static bool
name_may_be(const struct schema_name *name)
{
    return name->len == 0 || name_is_sound(name);
}

static bool
column_is_sound(const struct schema_column *column, uint32_t last_serial)
{
    return name_is_sound(&column->name) && name_may_be(&column->suffix) &&
        column->serial > 0 && column->serial <= last_serial &&
        column->slot < SCHEMA_COLUMNS_MAX && column->max_bits >= 1 &&
        column->max_bits <= SCHEMA_BITS_MAX &&
        column->hint_bits <= column->max_bits &&
        column->default_value <= schema_column_max(column);
}

/* What holds of a mark as it stands. */
static bool
mark_is_sound(const struct schema_column *column)
{
    return name_is_sound(&column->unread) && column->default_value == 0 &&
        (column->source.is_fixed || column->source.id == 0) &&
        (column->forget == 0 || column->unmarked_is_none);
}

/* The same of what is no mark. */
static bool
has_no_mark(const struct schema_column *column)
{
    return column->unread.len == 0 && !column->unmarked_is_none &&
        column->forget == 0 && !column->source.is_fixed &&
        column->source.id == 0;
}

/* The same of what has no members. */
static bool
has_no_members(const struct schema_column *column)
{
    return column->counts == 0 && column->member_bits == 0 &&
        column->value_bits == 0 && column->pairs == 0;
}

/* The same of what is not of about. */
static bool
has_no_about(const struct schema_column *column)
{
    return column->error == 0 && column->memory == 0;
}

/* What both kinds of members have. */
static bool
members_fit(const struct schema_column *column)
{
    return has_no_mark(column) && column->source.serial == 0 &&
        column->member_bits >= SCHEMA_MEMBER_BITS_MIN &&
        column->member_bits <= SCHEMA_MEMBER_BITS_MAX &&
        column->default_value == 0 && column->value_bits >= 1 &&
        column->value_bits <= SCHEMA_VALUE_BITS_MAX &&
        column->counts < column->serial;
}

static bool
exact_fit(const struct schema_column *column)
{
    return members_fit(column) && has_no_about(column) &&
        column->max_bits == SCHEMA_BITS_MAX - column->member_bits &&
        column->hint_bits == SCHEMA_MEMBERS_HINT_BITS;
}

static bool
about_fit(const struct schema_column *column)
{
    return members_fit(column) && column->pairs == 0 &&
        column->value_bits == SCHEMA_MEMBERS_MAX_BITS &&
        column->max_bits == SCHEMA_EMPTY_MAX_BITS &&
        column->hint_bits == SCHEMA_EMPTY_HINT_BITS &&
        column->error >= SCHEMA_ERROR_MIN &&
        column->error <= SCHEMA_ERROR_MAX &&
        column->memory >= SCHEMA_MEMORY_MIN &&
        column->memory <= SCHEMA_MEMORY_MAX;
}

/* What a column has that has no members. */
static bool
has_neither(const struct schema_column *column)
{
    return has_no_members(column) && has_no_about(column);
}

bool
schema_kind_is_sound(const struct schema_column *column)
{
    const struct schema_source *source = &column->source;

    switch (column->kind) {
    case SCHEMA_NUMBER:
        return has_no_mark(column) && has_neither(column) &&
            source->serial == 0;
    case SCHEMA_MARK:
        return mark_is_sound(column) && has_neither(column) &&
            source->serial > 0 && source->serial < column->serial;
    case SCHEMA_FOLLOWS:
        return has_no_mark(column) && has_neither(column) &&
            source->serial > 0 && source->serial < column->serial &&
            column->hint_bits == SCHEMA_EMPTY_HINT_BITS &&
            column->max_bits == SCHEMA_EMPTY_MAX_BITS &&
            column->default_value == 0;
    case SCHEMA_MEMBERS:
        return exact_fit(column);
    case SCHEMA_ABOUT:
        return about_fit(column);
    }
    return false;
}

/* True where counter has a number of that serial that members can count in. */
static bool
can_count(const struct schema_counter *counter, uint32_t serial)
{
    const struct schema_column *column = schema_column_of(counter, serial);

    return column != NULL && column->kind == SCHEMA_NUMBER &&
        column->default_value == 0;
}

bool
schema_members_are_sound(const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        bool has_pairs = column->kind == SCHEMA_MEMBERS;

        if (schema_is_in_record(column)) {
            continue;
        }
        if ((has_pairs && column->pairs == counter->slot) ||
            (column->counts != 0 && !can_count(counter, column->counts))) {
            return false;
        }
        for (unsigned k = 0; k < i; k++) {
            const struct schema_column *other = &counter->column[k];

            if ((has_pairs && other->kind == SCHEMA_MEMBERS &&
                    other->pairs == column->pairs) ||
                (column->counts != 0 && other->counts == column->counts)) {
                return false;
            }
        }
    }
    return true;
}

/* True where a column of target can be what column is about. */
static bool
suits(const struct schema_column *column, const struct schema_target *target)
{
    enum schema_kind kind = target->column->kind;

    if (target->counter->members_of != 0) {
        return false;
    }
    if (column->kind == SCHEMA_FOLLOWS) {
        return kind == SCHEMA_NUMBER && target->counter->cold_is_never;
    }
    return (kind == SCHEMA_NUMBER || kind == SCHEMA_MEMBERS) &&
        column->max_bits == schema__mark_max_bits(target->column) &&
        column->hint_bits == schema__mark_hint_bits(target->column);
}

int
schema_check(const struct schema *schema)
{
    for (uint32_t i = 0; i < schema->n_places; i++) {
        const struct schema_counter *counter = &schema->counter[i];

        for (unsigned k = 0; k < counter->n_columns; k++) {
            const struct schema_column *column = &counter->column[k];
            struct schema_target source;

            if (k > 0 && column[-1].serial >= column->serial) {
                return ERR_CORRUPT; /* they are printed in their order */
            }
            if ((column->kind == SCHEMA_MARK ||
                    column->kind == SCHEMA_FOLLOWS) &&
                (!schema_source(schema, counter, column, &source) ||
                    !suits(column, &source))) {
                return ERR_CORRUPT;
            }
        }
    }
    return 0;
}

/* All names after the dot that a counter has; returns how many. */
static unsigned
names_of(const struct schema_counter *counter,
    const struct schema_name *name[SCHEMA_COUNTER_NAMES])
{
    unsigned n = 0;

    name[n++] = &counter->name;
    for (unsigned i = 0; i < counter->n_columns; i++) {
        name[n++] = &counter->column[i].name;
        if (counter->column[i].suffix.len > 0) {
            name[n++] = &counter->column[i].suffix;
        }
        if (counter->column[i].unread.len > 0) {
            name[n++] = &counter->column[i].unread;
        }
    }
    return n;
}

/* True where all its names differ, and those of columns from its key's. */
static bool
names_differ(const struct schema_counter *counter)
{
    const struct schema_name *name[SCHEMA_COUNTER_NAMES];
    unsigned n = names_of(counter, name);

    for (unsigned i = 1; i < n; i++) {
        if (schema__names_equal(name[i], &counter->key_name)) {
            return false;
        }
        for (unsigned k = 0; k < i; k++) {
            if (schema__names_equal(name[i], name[k])) {
                return false;
            }
        }
    }
    return true;
}

/* The last serial that a column has: behind its own are those of its counter
 * of pairs, where it is one of members. */
static uint64_t
last_serial_of(const struct schema_column *column)
{
    return (uint64_t)column->serial +
        (column->kind == SCHEMA_MEMBERS ? SCHEMA_PAIRS_SERIALS : 0);
}

static bool
serials_meet(const struct schema_column *a, const struct schema_column *b)
{
    return a->serial <= last_serial_of(b) && b->serial <= last_serial_of(a);
}

/* True where slots and serials of its columns differ, and its own serial. */
static bool
places_differ(const struct schema_counter *counter)
{
    uint32_t slots = 0;

    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];
        uint32_t slot = UINT32_C(1) << column->slot;

        if ((slots & slot) != 0 ||
            (counter->serial >= column->serial &&
                counter->serial <= last_serial_of(column))) {
            return false;
        }
        slots |= slot;
        for (unsigned k = 0; k < i; k++) {
            if (serials_meet(column, &counter->column[k])) {
                return false;
            }
        }
    }
    return true;
}

/* True of a counter whose ids are no names, too. */
static bool
names_are_sound(const struct schema_counter *counter)
{
    if (!counter->key_is_text) {
        return true;
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_FOLLOWS ||
            counter->column[i].kind == SCHEMA_ABOUT) {
            return false;
        }
    }
    return counter->key_name.len > 0 && counter->max_jump == 0 &&
        counter->cold_after == 0;
}

static bool
counter_is_sound(const struct schema_counter *counter, uint32_t last_serial)
{
    if (!name_is_sound(&counter->name) || !name_may_be(&counter->key_name) ||
        counter->serial == 0 || counter->serial > last_serial ||
        counter->n_columns > SCHEMA_COLUMNS_MAX ||
        counter->key_hint_bits > SCHEMA_BITS_MAX ||
        (counter->n_columns > 0 && counter->key_name.len == 0) ||
        (counter->cold_is_never &&
            (counter->cold_is_quietest || counter->cold_after != 0))) {
        return false;
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        if (!column_is_sound(column, last_serial) ||
            !schema_kind_is_sound(column) ||
            (column->kind == SCHEMA_MEMBERS &&
                last_serial - column->serial < SCHEMA_PAIRS_SERIALS)) {
            return false;
        }
    }
    return counter->members_of == 0 && names_are_sound(counter) &&
        names_differ(counter) && places_differ(counter) &&
        schema_members_are_sound(counter);
}

/* True where counter, or a column of it, has one of those serials. */
static bool
has_serials(
    const struct schema_counter *counter, uint64_t first, uint64_t last)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].serial <= last &&
            last_serial_of(&counter->column[i]) >= first) {
            return true;
        }
    }
    return counter->serial >= first && counter->serial <= last;
}

static bool
serials_agree(
    const struct schema_counter *counter, const struct schema_counter *other)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (has_serials(other, counter->column[i].serial,
                last_serial_of(&counter->column[i]))) {
            return false;
        }
    }
    return !has_serials(other, counter->serial, counter->serial);
}

/* True where a slot of old has no counter, or that counter, or one of pairs of
 * that counter. */
static bool
slot_is_free(const struct schema *old, const struct schema_counter *counter,
    unsigned slot)
{
    const struct schema_counter *there = schema_counter_at(old, slot);

    return there == NULL ||
        schema_owner(old, there)->serial == counter->serial;
}

static bool
slots_agree(const struct schema *old, const struct schema_counter *counter)
{
    const struct schema_counter *there = schema_counter_at(old, counter->slot);

    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        if (column->kind == SCHEMA_MEMBERS &&
            !slot_is_free(old, counter, column->pairs)) {
            return false;
        }
    }
    return there == NULL || there->serial == counter->serial;
}

/* True where counter can live with all others of old. */
static bool
agrees(const struct schema *old, const struct schema_counter *counter)
{
    const struct schema_name *name[SCHEMA_COUNTER_NAMES];
    unsigned n = names_of(counter, name);
    struct schema_target target;

    for (unsigned i = 0; i < n; i++) {
        if (schema_find(old, name[i]->text, name[i]->len, &target) &&
            target.counter->slot != counter->slot) {
            return false;
        }
    }
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *other = schema_counter_at(old, slot);

        if (other != NULL && slot != counter->slot && other->members_of == 0 &&
            !serials_agree(counter, other)) {
            return false;
        }
    }
    return true;
}

static void
note_edit(struct schema *schema, uint32_t last_serial)
{
    if (schema->last_serial < last_serial) {
        schema->last_serial = last_serial;
    }
    schema->version++;
    schema__index(schema);
}

uint32_t
schema_last_serial(const struct schema *schema)
{
    return schema->last_serial;
}

/* Puts counter into a copy of a schema where all agrees with it. */
static void
put(struct schema *schema, const struct schema_counter *counter)
{
    struct schema_counter *place = schema__at(schema, counter->slot);

    if (place == NULL) {
        place = schema__add(schema, counter->slot);
    } else {
        schema__pairs_remove(schema, place);
    }
    *place = *counter;
    for (unsigned i = counter->n_columns; i < SCHEMA_COLUMNS_MAX; i++) {
        place->column[i] = (struct schema_column){0};
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            schema__pairs_add(schema, place, &place->column[i]);
        }
    }
}

int
schema_restore(const struct schema *old, const struct schema_counter *counter,
    uint32_t last_serial, struct schema **out)
{
    struct schema *schema;

    if (!counter_is_sound(counter, last_serial) ||
        !slots_agree(old, counter) || !agrees(old, counter)) {
        return ERR_CORRUPT;
    }
    schema = schema__copy(old, SCHEMA_COUNTER_NAMES, 1 + SCHEMA_COLUMNS_MAX);
    if (schema == NULL) {
        return ERR_NO_MEMORY;
    }
    put(schema, counter);
    note_edit(schema, last_serial);
    *out = schema;
    return 0;
}

int
schema_restore_drop(const struct schema *old, uint32_t counter_serial,
    uint32_t last_serial, struct schema **out)
{
    struct schema *schema;
    unsigned slot = 0;

    while (slot < SCHEMA_COUNTERS_MAX &&
        (schema_counter_at(old, slot) == NULL ||
            schema_counter_at(old, slot)->serial != counter_serial)) {
        slot++;
    }
    if (slot == SCHEMA_COUNTERS_MAX || last_serial < counter_serial ||
        schema_counter_at(old, slot)->members_of != 0) {
        return ERR_CORRUPT;
    }
    schema = schema__copy(old, 0, 0);
    if (schema == NULL) {
        return ERR_NO_MEMORY;
    }
    schema__pairs_remove(schema, schema_counter_at(old, slot));
    schema__remove(schema, slot);
    note_edit(schema, last_serial);
    *out = schema;
    return 0;
}

int
schema_restore_serial(
    const struct schema *old, uint32_t last_serial, struct schema **out)
{
    struct schema *schema = schema__copy(old, 0, 0);

    if (schema == NULL) {
        return ERR_NO_MEMORY;
    }
    note_edit(schema, last_serial);
    *out = schema;
    return 0;
}
