/* SPDX-License-Identifier: BSD-3-Clause */
/* Edits of the schema: each makes a new version beside the old one, which
 * stays as it is.
 *
 * Every check is done on the old version, in the order that helps a person
 * most; only then is the copy made, changed and indexed, so an edit that is
 * refused costs nothing, and the only thing that fails late is memory.
 *
 * A column of members has its counter of pairs with it: that is made and taken
 * away in the same edit (pairs.c).
 *
 * Counters and columns take the lowest free slot, since slots name places in
 * the engine's tables, and a serial number from one sequence that only grows.
 * A slot is used again, a serial never: that is what keeps the numbers of a
 * dropped column from coming back. */
#include "schema/schema.h"

#include "base/assert.h"
#include "base/err.h"
#include "schema/schema_priv.h"

_Static_assert(SCHEMA_COUNTERS_MAX - 1 <= UINT8_MAX, "a slot is a byte");
_Static_assert(SCHEMA_COLUMNS_MAX <= 32, "slots in use are a 32-bit mask");

const struct schema_counter *
schema__counter_of(const struct schema *schema, const struct schema_edit *edit)
{
    return schema_counter(
        schema, edit->counter.name.text, edit->counter.name.len);
}

static bool
is_taken(const struct schema *schema, const struct schema_name *name)
{
    struct schema_target target;

    return schema_find(schema, name->text, name->len, &target);
}

/* True where there are not as many left as kind takes. */
static bool
serials_are_out(const struct schema *schema, enum schema_kind kind)
{
    uint32_t more = kind == SCHEMA_MEMBERS ? SCHEMA_PAIRS_SERIALS : 0;

    return schema->last_serial >= UINT32_MAX - 1 - more;
}

const struct schema_column *
schema__column_named(
    const struct schema_counter *counter, const struct schema_name *name)
{
    const struct schema_column *column =
        schema_counter_column(counter, name->text, name->len);

    if (column == NULL || !schema__names_equal(&column->name, name)) {
        return NULL;
    }
    return column;
}

/* What a mark or a list is to be about. */
static int
find_source(const struct schema *schema, const struct schema_counter *counter,
    const struct schema_edit *edit, struct schema_target *out)
{
    const struct schema_name *name = &edit->source;
    bool follows = edit->column.kind == SCHEMA_FOLLOWS;

    *out = (struct schema_target){.counter = counter};
    if (follows || edit->column.source.is_fixed) {
        if (!schema_find(schema, name->text, name->len, out) ||
            out->is_unread) {
            out->column = NULL;
        }
    } else {
        out->column = schema_counter_column(counter, name->text, name->len);
    }
    if (out->column == NULL) {
        return follows ? ERR_NO_FOLLOWED : ERR_BAD_SOURCE;
    }
    if (out->column->kind == SCHEMA_ABOUT) {
        return ERR_ABOUT_SOURCE;
    }
    if (out->column->kind != SCHEMA_NUMBER &&
        (follows || out->column->kind != SCHEMA_MEMBERS)) {
        return ERR_SOURCE_KIND;
    }
    if (out->counter->key_is_text &&
        (follows || edit->column.source.is_fixed)) {
        return ERR_NAMES_SOURCE;
    }
    if (counter->key_is_text && out->counter == counter &&
        out->column->kind != SCHEMA_NUMBER) {
        return ERR_NAMES_KIND; /* members are pinned by ids that stay */
    }
    return follows && !out->counter->cold_is_never ? ERR_FOLLOW_COLD : 0;
}

/* The number that members are to count in, if there is to be one. */
static int
resolve_members(const struct schema_counter *counter,
    const struct schema_edit *edit, struct schema_column *out)
{
    const struct schema_name *name = &edit->source;
    const struct schema_column *counted;

    if (name->len == 0) {
        return 0;
    }
    counted = schema_counter_column(counter, name->text, name->len);
    if (counted == NULL || counted->kind != SCHEMA_NUMBER ||
        counted->default_value != 0) {
        return ERR_BAD_COUNTS;
    }
    out->counts = counted->serial;
    return 0;
}

int
schema__resolve(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_edit *edit,
    struct schema_column *out)
{
    struct schema_target source;
    int err;

    *out = edit->column;
    if (out->kind == SCHEMA_NUMBER) {
        return 0;
    }
    if (!schema_is_in_record(out)) {
        return resolve_members(counter, edit, out);
    }
    err = find_source(schema, counter, edit, &source);
    if (err != 0) {
        return err;
    }
    out->source.serial = source.column->serial;
    if (out->kind == SCHEMA_FOLLOWS) {
        out->hint_bits = SCHEMA_EMPTY_HINT_BITS;
        out->max_bits = SCHEMA_EMPTY_MAX_BITS;
    } else {
        out->hint_bits = schema__mark_hint_bits(source.column);
        out->max_bits = schema__mark_max_bits(source.column);
    }
    return 0;
}

bool
schema__is_source(const struct schema *schema, uint32_t serial,
    enum schema_kind kind, const struct schema_counter *except)
{
    for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
        const struct schema_counter *counter = schema_counter_at(schema, slot);

        if (counter == NULL || counter == except) {
            continue;
        }
        for (unsigned i = 0; i < counter->n_columns; i++) {
            if (counter->column[i].source.serial == serial &&
                counter->column[i].kind == kind) {
                return true;
            }
        }
    }
    return false;
}

/* True where a mark or a list, of any counter but except, is about a column of
 * that serial. */
static bool
is_about(const struct schema *schema, uint32_t serial,
    const struct schema_counter *except)
{
    return schema__is_source(schema, serial, SCHEMA_MARK, except) ||
        schema__is_source(schema, serial, SCHEMA_FOLLOWS, except);
}

static int
check_add_counter(const struct schema *old, const struct schema_edit *edit)
{
    if (is_taken(old, &edit->counter.name)) {
        return ERR_NAME_TAKEN;
    }
    if (old->n_counters == SCHEMA_COUNTERS_MAX) {
        return ERR_TOO_MANY_COUNTERS;
    }
    return serials_are_out(old, SCHEMA_NUMBER) ? ERR_TOO_MANY_COLUMNS : 0;
}

/* True where a column's name or suffix, or what is unread by it, cannot be
 * given. */
static bool
a_name_is_taken(const struct schema *old, const struct schema_counter *counter,
    const struct schema_column *column)
{
    const struct schema_name *const name[] = {
        &column->name, &column->suffix, &column->unread};

    for (unsigned i = 0; i < SCHEMA_COLUMN_NAMES; i++) {
        if (is_taken(old, name[i]) ||
            schema__names_equal(name[i], &counter->key_name)) {
            return true;
        }
    }
    return column->unread.len > 0 &&
        (schema__names_equal(&column->unread, &column->name) ||
            schema__names_equal(&column->unread, &column->suffix));
}

/* What only a new column of members has to fit. */
static int
check_members(const struct schema *old, const struct schema_counter *counter,
    const struct schema_column *column)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (column->counts != 0 &&
            counter->column[i].counts == column->counts) {
            return ERR_BAD_COUNTS;
        }
    }
    return column->kind == SCHEMA_MEMBERS &&
            old->n_counters == SCHEMA_COUNTERS_MAX
        ? ERR_TOO_MANY_COUNTERS
        : 0;
}

/* A name has an id that is a number of a dictionary, or its own, so there is no
 * newest one and none that stays when its records have gone. */
static int
check_names_key(const struct schema_counter *counter)
{
    return counter->max_jump != 0 || counter->cold_after != 0 ? ERR_NAMES_ORDER
                                                              : 0;
}

static int
check_key(const struct schema_counter *counter, const struct schema_edit *edit)
{
    if (counter->key_name.len > 0) {
        return ERR_TWO_KEYS;
    }
    return edit->key_is_text ? check_names_key(counter) : 0;
}

static int
check_add_column(const struct schema *old, const struct schema_edit *edit)
{
    const struct schema_counter *counter = schema__counter_of(old, edit);
    struct schema_column column;
    int err;

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (edit->is_key) {
        return check_key(counter, edit);
    }
    if (counter->key_name.len == 0) {
        return ERR_NO_KEY;
    }
    if (counter->key_is_text &&
        (edit->column.kind == SCHEMA_FOLLOWS ||
            edit->column.kind == SCHEMA_ABOUT)) {
        return ERR_NAMES_KIND;
    }
    if (a_name_is_taken(old, counter, &edit->column)) {
        return ERR_NAME_TAKEN;
    }
    if (counter->n_columns == SCHEMA_COLUMNS_MAX ||
        serials_are_out(old, edit->column.kind)) {
        return ERR_TOO_MANY_COLUMNS;
    }
    err = schema__resolve(old, counter, edit, &column);
    return err == 0 && !schema_is_in_record(&column)
        ? check_members(old, counter, &column)
        : err;
}

static int
check_drop_column(const struct schema *old, const struct schema_edit *edit)
{
    const struct schema_counter *counter = schema__counter_of(old, edit);
    const struct schema_column *column;

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (schema__names_equal(&edit->column.name, &counter->key_name)) {
        return ERR_DROP_KEY;
    }
    column = schema__column_named(counter, &edit->column.name);
    if (column == NULL) {
        return ERR_NO_COLUMN;
    }
    return is_about(old, column->serial, NULL) ||
            schema_is_counted(counter, column)
        ? ERR_IN_USE
        : 0;
}

/* Those of its columns that are about each other go together. */
static int
check_drop_counter(const struct schema *old, const struct schema_edit *edit)
{
    const struct schema_counter *counter = schema__counter_of(old, edit);

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (is_about(old, counter->column[i].serial, counter)) {
            return ERR_IN_USE;
        }
    }
    return 0;
}

static int
check(const struct schema *old, const struct schema_edit *edit)
{
    switch (edit->op) {
    case SCHEMA_ADD_COUNTER:
        return check_add_counter(old, edit);
    case SCHEMA_ADD_COLUMN:
        return check_add_column(old, edit);
    case SCHEMA_CHANGE_COUNTER:
    case SCHEMA_CHANGE_COLUMN:
        return schema__check_change(old, edit);
    case SCHEMA_DROP_COLUMN:
        return check_drop_column(old, edit);
    case SCHEMA_DROP_COUNTER:
        break;
    }
    ASSERT(edit->op == SCHEMA_DROP_COUNTER);
    return check_drop_counter(old, edit);
}

static void
add_counter(struct schema *schema, const struct schema_edit *edit)
{
    struct schema_counter *counter =
        schema__add(schema, schema__free_slot(schema));

    counter->name = edit->counter.name;
#define X(field, ...) counter->field = edit->counter.field;
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    counter->serial = ++schema->last_serial;
}

static unsigned
lowest_free_slot(const struct schema_counter *counter)
{
    uint32_t used = 0;

    for (unsigned i = 0; i < counter->n_columns; i++) {
        used |= UINT32_C(1) << counter->column[i].slot;
    }
    return (unsigned)__builtin_ctz(~used);
}

/* old: where the names of the edit are looked up. */
static void
add_column(const struct schema *old, struct schema *schema,
    struct schema_counter *counter, const struct schema_edit *edit)
{
    struct schema_column *column = &counter->column[counter->n_columns];
    int err;

    if (edit->is_key) {
        counter->key_name = edit->column.name;
        counter->key_hint_bits = edit->column.hint_bits;
        counter->key_is_text = edit->key_is_text;
        return;
    }
    ASSERT(counter->n_columns < SCHEMA_COLUMNS_MAX);
    err = schema__resolve(old, counter, edit, column);
    ASSERT(err == 0); /* as it was checked */
    ASSERT(column->max_bits >= 1 && column->max_bits <= SCHEMA_BITS_MAX);
    ASSERT(column->hint_bits <= column->max_bits);
    ASSERT(column->default_value <= schema_column_max(column));
    column->slot = (uint8_t)lowest_free_slot(counter);
    ASSERT(column->slot < SCHEMA_COLUMNS_MAX);
    column->serial = ++schema->last_serial;
    ASSERT(column->source.serial < column->serial);
    ASSERT(column->counts < column->serial);
    counter->n_columns++;
    if (column->kind == SCHEMA_MEMBERS) {
        column->pairs = (uint8_t)schema__free_slot(schema);
        schema->last_serial += SCHEMA_PAIRS_SERIALS;
        schema__pairs_add(schema, counter, column);
    }
}

static void
drop_column(struct schema *schema, struct schema_counter *counter,
    const struct schema_edit *edit)
{
    unsigned place =
        (unsigned)(schema__column_named(counter, &edit->column.name) -
            counter->column);
    unsigned last = counter->n_columns - 1u;

    if (counter->column[place].kind == SCHEMA_MEMBERS) {
        schema__remove(schema, counter->column[place].pairs);
    }
    memmove(&counter->column[place], &counter->column[place + 1],
        (last - place) * sizeof counter->column[0]);
    counter->column[last] = (struct schema_column){0};
    counter->n_columns--;
}

int
schema_apply(const struct schema *old, const struct schema_edit *edit,
    struct schema **out)
{
    struct schema *schema;
    unsigned slot;
    int err = check(old, edit);

    if (err != 0) {
        return err;
    }
    schema = schema__copy(old, SCHEMA_COLUMN_NAMES, 1);
    if (schema == NULL) {
        return ERR_NO_MEMORY;
    }
    if (edit->op == SCHEMA_ADD_COUNTER) {
        add_counter(schema, edit);
    } else {
        slot = schema__counter_of(old, edit)->slot;
        if (edit->op == SCHEMA_ADD_COLUMN) {
            add_column(old, schema, schema__at(schema, slot), edit);
        } else if (edit->op == SCHEMA_CHANGE_COLUMN ||
            edit->op == SCHEMA_CHANGE_COUNTER) {
            schema__change(schema, schema__at(schema, slot), edit);
        } else if (edit->op == SCHEMA_DROP_COLUMN) {
            drop_column(schema, schema__at(schema, slot), edit);
        } else {
            schema__pairs_remove(schema, schema__counter_of(old, edit));
            schema__remove(schema, slot);
        }
    }
    schema->version++;
    schema__index(schema);
    *out = schema;
    return 0;
}

static bool
is_same_counter(
    const struct schema_counter *counter, const struct schema_edit *edit)
{
#define X(field, ...)                                                         \
    if (counter->field != edit->counter.field) {                              \
        return false;                                                         \
    }
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    return true;
}

static bool
is_same_source(const struct schema_source *a, const struct schema_source *b)
{
    return a->serial == b->serial && a->is_fixed == b->is_fixed &&
        a->id == b->id;
}

bool
schema__is_column(
    const struct schema_column *column, const struct schema_column *want)
{
    return schema__names_equal(&column->suffix, &want->suffix) &&
        column->hint_bits == want->hint_bits &&
        column->max_bits == want->max_bits && column->flags == want->flags &&
        column->default_value == want->default_value &&
        column->kind == want->kind &&
        is_same_source(&column->source, &want->source) &&
        schema__names_equal(&column->unread, &want->unread) &&
        column->unmarked_is_none == want->unmarked_is_none &&
        column->forget == want->forget && column->counts == want->counts &&
        column->member_bits == want->member_bits &&
        column->value_bits == want->value_bits && column->error == want->error;
}

static bool
is_same_column(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_edit *edit)
{
    const struct schema_column *column =
        schema__column_named(counter, &edit->column.name);
    struct schema_column want;

    return column != NULL &&
        schema__resolve(schema, counter, edit, &want) == 0 &&
        schema__is_column(column, &want);
}

bool
schema_has_same(const struct schema *schema, const struct schema_edit *edit)
{
    const struct schema_counter *counter = schema__counter_of(schema, edit);

    if (counter == NULL) {
        return false;
    }
    if (edit->op == SCHEMA_ADD_COUNTER) {
        return is_same_counter(counter, edit);
    }
    if (edit->op == SCHEMA_CHANGE_COLUMN ||
        edit->op == SCHEMA_CHANGE_COUNTER) {
        return schema__is_unchanged(counter, edit);
    }
    if (edit->op != SCHEMA_ADD_COLUMN) {
        return false;
    }
    if (edit->is_key) {
        return schema__names_equal(&counter->key_name, &edit->column.name) &&
            counter->key_hint_bits == edit->column.hint_bits &&
            counter->key_is_text == edit->key_is_text;
    }
    return is_same_column(schema, counter, edit);
}
