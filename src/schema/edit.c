/* SPDX-License-Identifier: BSD-3-Clause */
/* Edits of the schema: each makes a new version beside the old one, which
 * stays as it is.
 *
 * Every check is done on the old version, in the order that helps a person
 * most; only then is the copy made, changed and indexed, so an edit that is
 * refused costs nothing, and the only thing that fails late is memory.
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

enum { NAMES_OF_EDIT_MAX = 2 /* what one adds: a name and a suffix */ };

static const struct schema_counter *
counter_of(const struct schema *schema, const struct schema_edit *edit)
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

static bool
serials_are_out(const struct schema *schema)
{
    return schema->last_serial >= UINT32_MAX - 1;
}

/* Columns are dropped by name; a suffix is only a way to ask. */
static const struct schema_column *
column_named(
    const struct schema_counter *counter, const struct schema_name *name)
{
    const struct schema_column *column =
        schema_counter_column(counter, name->text, name->len);

    if (column == NULL || !schema__names_equal(&column->name, name)) {
        return NULL;
    }
    return column;
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
    return serials_are_out(old) ? ERR_TOO_MANY_COLUMNS : 0;
}

static int
check_add_column(const struct schema *old, const struct schema_edit *edit)
{
    const struct schema_counter *counter = counter_of(old, edit);
    const struct schema_column *column = &edit->column;

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (edit->is_key) {
        return counter->key_name.len > 0 ? ERR_TWO_KEYS : 0;
    }
    if (counter->key_name.len == 0) {
        return ERR_NO_KEY;
    }
    if (is_taken(old, &column->name) || is_taken(old, &column->suffix) ||
        schema__names_equal(&column->name, &counter->key_name) ||
        schema__names_equal(&column->suffix, &counter->key_name)) {
        return ERR_NAME_TAKEN;
    }
    if (counter->n_columns == SCHEMA_COLUMNS_MAX || serials_are_out(old)) {
        return ERR_TOO_MANY_COLUMNS;
    }
    return 0;
}

static int
check_drop_column(const struct schema *old, const struct schema_edit *edit)
{
    const struct schema_counter *counter = counter_of(old, edit);

    if (counter == NULL) {
        return ERR_NO_COUNTER;
    }
    if (schema__names_equal(&edit->column.name, &counter->key_name)) {
        return ERR_DROP_KEY;
    }
    return column_named(counter, &edit->column.name) == NULL ? ERR_NO_COLUMN
                                                             : 0;
}

static int
check(const struct schema *old, const struct schema_edit *edit)
{
    switch (edit->op) {
    case SCHEMA_ADD_COUNTER:
        return check_add_counter(old, edit);
    case SCHEMA_ADD_COLUMN:
        return check_add_column(old, edit);
    case SCHEMA_DROP_COLUMN:
        return check_drop_column(old, edit);
    case SCHEMA_DROP_COUNTER:
        break;
    }
    ASSERT(edit->op == SCHEMA_DROP_COUNTER);
    return counter_of(old, edit) == NULL ? ERR_NO_COUNTER : 0;
}

static void
add_counter(struct schema *schema, const struct schema_edit *edit)
{
    struct schema_counter *counter;
    unsigned slot = 0;

    while (slot < schema->n_slots && schema->counter[slot].name.len > 0) {
        slot++;
    }
    ASSERT(slot < SCHEMA_COUNTERS_MAX);
    counter = schema__place(schema, slot);
    counter->name = edit->counter.name;
#define X(field, ...) counter->field = edit->counter.field;
    SCHEMA_COUNTER_OPTIONS(X)
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    counter->slot = (uint8_t)slot;
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

static void
add_column(struct schema *schema, struct schema_counter *counter,
    const struct schema_edit *edit)
{
    struct schema_column *column;

    if (edit->is_key) {
        counter->key_name = edit->column.name;
        counter->key_hint_bits = edit->column.hint_bits;
        return;
    }
    ASSERT(edit->column.max_bits >= 1 &&
        edit->column.max_bits <= SCHEMA_BITS_MAX);
    ASSERT(edit->column.hint_bits <= edit->column.max_bits);
    ASSERT(edit->column.default_value <= schema_column_max(&edit->column));
    column = &counter->column[counter->n_columns];
    *column = edit->column;
    column->slot = (uint8_t)lowest_free_slot(counter);
    ASSERT(column->slot < SCHEMA_COLUMNS_MAX);
    column->serial = ++schema->last_serial;
    counter->n_columns++;
}

static void
drop_column(struct schema_counter *counter, const struct schema_edit *edit)
{
    unsigned place = (unsigned)(column_named(counter, &edit->column.name) -
        counter->column);
    unsigned last = counter->n_columns - 1u;

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
    struct schema_counter *counter;
    int err = check(old, edit);

    if (err != 0) {
        return err;
    }
    schema = schema__copy(old, NAMES_OF_EDIT_MAX);
    if (schema == NULL) {
        return ERR_NO_MEMORY;
    }
    if (edit->op == SCHEMA_ADD_COUNTER) {
        add_counter(schema, edit);
    } else {
        counter = &schema->counter[counter_of(old, edit)->slot];
        if (edit->op == SCHEMA_ADD_COLUMN) {
            add_column(schema, counter, edit);
        } else if (edit->op == SCHEMA_DROP_COLUMN) {
            drop_column(counter, edit);
        } else {
            *counter = (struct schema_counter){0};
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
is_same_column(
    const struct schema_counter *counter, const struct schema_column *want)
{
    const struct schema_column *column = column_named(counter, &want->name);

    return column != NULL &&
        schema__names_equal(&column->suffix, &want->suffix) &&
        column->hint_bits == want->hint_bits &&
        column->max_bits == want->max_bits && column->flags == want->flags &&
        column->default_value == want->default_value;
}

bool
schema_has_same(const struct schema *schema, const struct schema_edit *edit)
{
    const struct schema_counter *counter = counter_of(schema, edit);

    if (counter == NULL) {
        return false;
    }
    if (edit->op == SCHEMA_ADD_COUNTER) {
        return is_same_counter(counter, edit);
    }
    if (edit->op != SCHEMA_ADD_COLUMN) {
        return false;
    }
    if (edit->is_key) {
        return schema__names_equal(&counter->key_name, &edit->column.name) &&
            counter->key_hint_bits == edit->column.hint_bits;
    }
    return is_same_column(counter, &edit->column);
}
