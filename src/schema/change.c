/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of what counters and columns are.
 *
 * What can be changed is what no stored number depends on: names, which
 * nothing but a schema has (numbers are stored under serials, and marks, lists
 * and counts point by them); a max that grows, since it only bounds what may
 * come; a hint, which tables that are made later begin with; flags, and the
 * options of a counter. cold=never is not, which says that nothing is in
 * segments.
 *
 * A default is changed only of a counter that has no records, which whoever
 * applies the edit sees to: numbers are stored as distances from it. The column
 * becomes another one, with a serial of its own, so that nothing that was
 * stored once, in an image, a segment or the log, is taken for a distance from
 * the new one. Serials grow from column to column: those behind it get new ones
 * too. So all of these are to be numbers that nothing points to.
 *
 * A mark has the widths of what it is about, which may be in another counter:
 * such a number keeps its widths, for an edit is of one counter. */
#include "schema/schema.h"

#include "base/assert.h"
#include "base/err.h"
#include "schema/schema_priv.h"

_Static_assert(SCHEMA_BIT_COUNT <= 32, "changes are 32 bits");

static bool
changes(const struct schema_edit *edit, uint32_t bits)
{
    return (edit->changes & bits) != 0;
}

static void
set_column(struct schema_column *column, const struct schema_edit *edit)
{
    if (changes(edit, SCHEMA_CHANGES_NAME)) {
        column->name = edit->new_name;
    }
    if (changes(edit, SCHEMA_CHANGES_SUFFIX)) {
        column->suffix = edit->column.suffix;
    }
    if (schema__names_equal(&column->name, &column->suffix)) {
        column->suffix = (struct schema_name){0};
    }
    if (changes(edit, SCHEMA_CHANGES_MAX)) {
        column->max_bits = edit->column.max_bits;
    }
    if (changes(edit, SCHEMA_CHANGES_HINT)) {
        column->hint_bits = edit->column.hint_bits;
    }
    if (changes(edit, SCHEMA_CHANGES_FLAGS)) {
        column->flags = edit->column.flags;
    }
    if (changes(edit, SCHEMA_CHANGES_DEFAULT)) {
        column->default_value = edit->column.default_value;
    }
    if (changes(edit, SCHEMA_CHANGES_MEMORY)) {
        column->memory = edit->column.memory;
    }
}

static void
set_counter(struct schema_counter *counter, const struct schema_edit *edit)
{
#define X(field, ...)                                                         \
    if (changes(edit, UINT32_C(1) << SCHEMA_BIT_##field)) {                   \
        counter->field = edit->counter.field;                                 \
    }
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
}

/* True where column of counter may be called so: nothing else is. */
static bool
is_free(const struct schema *old, const struct schema_counter *counter,
    const struct schema_column *column, const struct schema_name *name)
{
    struct schema_target target;

    if (schema__names_equal(name, &counter->key_name)) {
        return false;
    }
    return !schema_find(old, name->text, name->len, &target) ||
        (target.column == column && !target.is_unread);
}

/* True where column, and all columns behind it, can get new serials. */
static bool
can_be_renewed(const struct schema *old, const struct schema_counter *counter,
    const struct schema_column *column)
{
    for (; column < &counter->column[counter->n_columns]; column++) {
        if (column->kind != SCHEMA_NUMBER ||
            schema__is_source(old, column->serial, SCHEMA_MARK, NULL) ||
            schema__is_source(old, column->serial, SCHEMA_FOLLOWS, NULL) ||
            schema_is_counted(counter, column)) {
            return false;
        }
    }
    return true;
}

static int
check_column(const struct schema *old, const struct schema_counter *counter,
    const struct schema_edit *edit)
{
    const struct schema_column *column =
        schema__column_named(counter, &edit->column.name);
    struct schema_column next;

    if (schema__names_equal(&edit->column.name, &counter->key_name)) {
        return ERR_CHANGE_KEY;
    }
    if (column == NULL) {
        return ERR_NO_COLUMN;
    }
    if (changes(edit, SCHEMA_CHANGES_MEMORY) && column->kind != SCHEMA_ABOUT) {
        return ERR_NOT_ABOUT;
    }
    if (changes(edit, SCHEMA_CHANGES_MAX | SCHEMA_CHANGES_HINT) &&
        (column->kind != SCHEMA_NUMBER ||
            schema__is_source(old, column->serial, SCHEMA_MARK, NULL))) {
        return ERR_CHANGE_WIDTH;
    }
    next = *column;
    set_column(&next, edit);
    if (next.max_bits < column->max_bits) {
        return ERR_CHANGE_DOWN;
    }
    if (next.hint_bits > next.max_bits) {
        return ERR_BAD_HINT;
    }
    if (next.default_value > schema_column_max(&next)) {
        return ERR_BAD_DEFAULT;
    }
    if (next.default_value != column->default_value &&
        !can_be_renewed(old, counter, column)) {
        return ERR_CHANGE_FIXED;
    }
    return is_free(old, counter, column, &next.name) &&
            (next.suffix.len == 0 ||
                is_free(old, counter, column, &next.suffix))
        ? 0
        : ERR_NAME_TAKEN;
}

/* What the columns of a counter allow: the engine has pairs with the options of
 * a second counter, and what is followed stays in memory. */
static int
check_columns(const struct schema *old, const struct schema_counter *counter,
    const struct schema_counter *next)
{
    bool is_other = counter->absent_is_miss != next->absent_is_miss ||
        counter->overflow_is_error != next->overflow_is_error;

    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        if (is_other && column->kind == SCHEMA_MEMBERS) {
            return ERR_CHANGE_MEMBERS;
        }
        if (!next->cold_is_never &&
            schema__is_source(old, column->serial, SCHEMA_FOLLOWS, NULL)) {
            return ERR_IN_USE;
        }
    }
    return 0;
}

static int
check_counter(const struct schema *old, const struct schema_counter *counter,
    const struct schema_edit *edit)
{
    struct schema_counter next = *counter;

    set_counter(&next, edit);
    if (next.cold_is_never && !counter->cold_is_never) {
        return ERR_CHANGE_COLD;
    }
    if (next.cold_is_never && next.cold_after != 0) {
        return ERR_COLD_AFTER;
    }
    if (next.key_is_text && (next.max_jump != 0 || next.cold_after != 0)) {
        return ERR_NAMES_ORDER;
    }
    return check_columns(old, counter, &next);
}

int
schema__check_change(const struct schema *old, const struct schema_edit *edit)
{
    const struct schema_counter *counter = schema__counter_of(old, edit);

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    return edit->op == SCHEMA_CHANGE_COLUMN
        ? check_column(old, counter, edit)
        : check_counter(old, counter, edit);
}

/* Counters of pairs have options of the counter that has their column. */
static void
change_counter(struct schema *schema, struct schema_counter *counter,
    const struct schema_edit *edit)
{
    set_counter(counter, edit);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_MEMBERS) {
            schema__remove(schema, counter->column[i].pairs);
            schema__pairs_add(schema, counter, &counter->column[i]);
        }
    }
}

void
schema__change(struct schema *schema, struct schema_counter *counter,
    const struct schema_edit *edit)
{
    const struct schema_column *column;
    uint64_t default_value;
    unsigned place;

    if (edit->op == SCHEMA_CHANGE_COUNTER) {
        change_counter(schema, counter, edit);
        return;
    }
    ASSERT(edit->op == SCHEMA_CHANGE_COLUMN);
    column = schema__column_named(counter, &edit->column.name);
    ASSERT(column != NULL); /* as it was checked */
    place = (unsigned)(column - counter->column);
    default_value = column->default_value;
    set_column(&counter->column[place], edit);
    if (column->default_value != default_value) {
        for (; place < counter->n_columns; place++) {
            counter->column[place].serial = ++schema->last_serial;
        }
    }
}

static bool
is_same_counter(const struct schema_counter *a, const struct schema_counter *b)
{
#define X(field, ...)                                                         \
    if (a->field != b->field) {                                               \
        return false;                                                         \
    }
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    return true;
}

bool
schema__is_unchanged(
    const struct schema_counter *counter, const struct schema_edit *edit)
{
    const struct schema_column *column =
        schema__column_named(counter, &edit->column.name);
    struct schema_counter next = *counter;
    struct schema_column it;

    if (edit->op == SCHEMA_CHANGE_COUNTER) {
        set_counter(&next, edit);
        return is_same_counter(counter, &next);
    }
    if (column == NULL ||
        (changes(edit, SCHEMA_CHANGES_MEMORY) &&
            column->kind != SCHEMA_ABOUT)) {
        return false;
    }
    it = *column;
    set_column(&it, edit);
    return schema__names_equal(&it.name, &column->name) &&
        schema__is_column(column, &it) && it.memory == column->memory;
}

static bool
change_for_counter(const struct schema_counter *counter,
    const struct schema_edit *add, struct schema_edit *change)
{
    uint32_t cold = UINT32_C(1) << SCHEMA_BIT_cold_is_quietest |
        UINT32_C(1) << SCHEMA_BIT_cold_is_never;

    change->op = SCHEMA_CHANGE_COUNTER;
    change->counter = add->counter;
#define X(field, ...)                                                         \
    if (counter->field != add->counter.field) {                               \
        change->changes |= UINT32_C(1) << SCHEMA_BIT_##field;                 \
    }
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    if (changes(change, cold)) {
        change->changes |= cold;
    }
    return change->changes != 0;
}

static bool
change_for_key(const struct schema_counter *counter,
    const struct schema_edit *add, struct schema_edit *change)
{
    change->changes = SCHEMA_CHANGES_HINT;
    change->column = add->column;
    return schema__names_equal(&counter->key_name, &add->column.name) &&
        (counter->key_hint_bits != add->column.hint_bits ||
            counter->key_is_text != add->key_is_text);
}

bool
schema_change_of(const struct schema_counter *counter,
    const struct schema_column *column, const struct schema_column *want,
    struct schema_edit *change)
{
    *change = (struct schema_edit){.op = SCHEMA_CHANGE_COLUMN,
        .new_name = want->name,
        .counter.name = counter->name,
        .column = *want};
    change->column.name = column->name;
    if (!schema__names_equal(&column->name, &want->name)) {
        change->changes |= SCHEMA_CHANGES_NAME;
    }
    if (!schema__names_equal(&column->suffix, &want->suffix)) {
        change->changes |= SCHEMA_CHANGES_SUFFIX;
        if (want->suffix.len == 0) {
            change->column.suffix = want->name;
        }
    }
    if (column->max_bits != want->max_bits) {
        change->changes |= SCHEMA_CHANGES_MAX;
    }
    if (column->hint_bits != want->hint_bits) {
        change->changes |= SCHEMA_CHANGES_HINT;
    }
    if (column->flags != want->flags) {
        change->changes |= SCHEMA_CHANGES_FLAGS;
    }
    if (column->default_value != want->default_value) {
        change->changes |= SCHEMA_CHANGES_DEFAULT;
    }
    if (column->memory != want->memory) {
        change->changes |= SCHEMA_CHANGES_MEMORY;
    }
    return change->changes != 0;
}

static bool
change_for_column(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_edit *add,
    struct schema_edit *change)
{
    const struct schema_column *column =
        schema__column_named(counter, &add->column.name);
    struct schema_column it, want;

    if (column == NULL || schema__resolve(schema, counter, add, &want) != 0 ||
        !schema_change_of(counter, column, &want, change)) {
        return false;
    }
    it = *column;
    set_column(&it, change);
    return schema__is_column(&it, &want);
}

bool
schema_change_for(const struct schema *schema, const struct schema_edit *add,
    struct schema_edit *change)
{
    const struct schema_counter *counter = schema__counter_of(schema, add);

    *change = (struct schema_edit){.op = SCHEMA_CHANGE_COLUMN};
    if (counter == NULL) {
        return false;
    }
    if (add->op == SCHEMA_ADD_COUNTER) {
        return change_for_counter(counter, add, change);
    }
    change->counter.name = add->counter.name;
    if (add->op != SCHEMA_ADD_COLUMN) {
        return false;
    }
    return add->is_key ? change_for_key(counter, add, change)
                       : change_for_column(schema, counter, add, change);
}
