/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the schema language that define.c reads, with words from the tables
 * that it uses (schema_priv.h).
 *
 * All counters together (schema_print_all): a mark or a list needs the column
 * that it is about to be there, and the columns of a counter keep their order.
 * So the counters are gone through again and again, each as far as it can be
 * made by now. A column has a higher serial than what it is about and than
 * those before it in its counter: so the lowest that is left can always be
 * made, and there is an end, though two counters are about each other. Counters
 * of pairs are made with their columns. */
#include "schema/print.h"

#include "base/assert.h"
#include "base/err.h"
#include "schema/schema_priv.h"

static void
add_word(struct buf *out, const char *word)
{
    buf_add_text(out, " ");
    buf_add_text(out, word);
}

static void
add_option(struct buf *out, enum schema__option option)
{
    add_word(out, schema__option_word(option));
    buf_add_text(out, "=");
}

static void
add_number(struct buf *out, enum schema__option option, uint64_t value)
{
    add_option(out, option);
    buf_add_u64(out, value);
}

static void
add_text(struct buf *out, enum schema__option option, const char *text)
{
    add_option(out, option);
    buf_add_text(out, text);
}

static void
add_column(struct buf *out, const struct schema_counter *counter,
    const struct schema_name *name)
{
    buf_add_text(out, "add column");
    add_word(out, counter->name.text);
    add_word(out, name->text);
}

static void
add_widths(struct buf *out, unsigned hint_bits, unsigned max_bits,
    uint64_t default_value)
{
    add_number(out, SCHEMA_OPTION_hint, hint_bits);
    add_number(out, SCHEMA_OPTION_max, max_bits);
    add_number(out, SCHEMA_OPTION_default, default_value);
}

/* In the largest unit that says it. */
static void
add_memory(struct buf *out, uint64_t bytes)
{
    const char *unit = SCHEMA_UNITS;
    unsigned n = 0;

    while (unit[n] != '\0' && bytes % SCHEMA_UNIT_BYTES == 0) {
        bytes /= SCHEMA_UNIT_BYTES;
        n++;
    }
    add_number(out, SCHEMA_OPTION_memory, bytes);
    if (n > 0) {
        buf_add(out, &unit[n - 1], 1);
    }
}

static void
add_members(struct buf *out, const struct schema_counter *counter,
    const struct schema_column *column)
{
    const struct schema_column *counts =
        schema_column_of(counter, column->counts);

    if (column->kind == SCHEMA_ABOUT) {
        add_text(out, SCHEMA_OPTION_members, SCHEMA_MEMBERS_ABOUT);
    } else {
        add_text(out, SCHEMA_OPTION_members, SCHEMA_MEMBERS_EXACT);
        add_number(out, SCHEMA_OPTION_max, column->value_bits);
    }
    add_number(out, SCHEMA_OPTION_member, column->member_bits);
    if (counts != NULL) {
        add_text(out, SCHEMA_OPTION_counts, counts->name.text);
    }
    if (column->kind == SCHEMA_ABOUT) {
        add_memory(out, column->memory);
        add_number(out, SCHEMA_OPTION_error, column->error);
    }
}

/* The name of what a mark or a list is about. */
static const char *
source_name(const struct schema *schema, const struct schema_counter *counter,
    const struct schema_column *column)
{
    struct schema_target source;
    bool is_there = schema_source(schema, counter, column, &source);

    ASSERT(is_there);
    return source.column->name.text;
}

static void
add_mark(
    struct buf *out, const struct schema_column *column, const char *source)
{
    add_option(out, SCHEMA_OPTION_marks);
    if (column->source.is_fixed) {
        buf_add_u64(out, column->source.id);
        buf_add_text(out, ".");
    }
    buf_add_text(out, source);
    add_text(out, SCHEMA_OPTION_unread, column->unread.text);
    if (column->unmarked_is_none) {
        add_text(out, SCHEMA_OPTION_unmarked, SCHEMA_UNMARKED_NONE);
    }
    if (column->forget != 0) {
        add_number(out, SCHEMA_OPTION_forget, column->forget);
    }
}

static void
add_value_column(struct buf *out, const struct schema *schema,
    const struct schema_counter *counter, const struct schema_column *column)
{
    add_column(out, counter, &column->name);
    if (column->kind == SCHEMA_NUMBER) {
        add_widths(
            out, column->hint_bits, column->max_bits, column->default_value);
    } else if (!schema_is_in_record(column)) {
        add_members(out, counter, column);
    }
    if (column->suffix.len > 0) {
        add_text(out, SCHEMA_OPTION_suffix, column->suffix.text);
    }
    if (column->flags != 0) {
        add_number(out, SCHEMA_OPTION_flags, column->flags);
    }
    if (column->kind == SCHEMA_MARK) {
        add_mark(out, column, source_name(schema, counter, column));
    } else if (column->kind == SCHEMA_FOLLOWS) {
        add_text(
            out, SCHEMA_OPTION_follows, source_name(schema, counter, column));
    }
    buf_add_text(out, "\r\n");
}

/* The line of the counter itself, without its end. */
static void
add_counter(const struct schema_counter *counter, struct buf *out)
{
    buf_add_text(out, "add counter");
    add_word(out, counter->name.text);
#define X(field, word, no, yes)                                               \
    if (counter->field) {                                                     \
        add_word(out, word "=" yes);                                          \
    }
    SCHEMA_COUNTER_OPTIONS(X)
#undef X
#define X(field, word)                                                        \
    if (counter->field != 0) {                                                \
        add_word(out, word "=");                                              \
        buf_add_u64(out, counter->field);                                     \
    }
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
}

int
schema_print_largest(
    const struct schema_counter *counter, uint64_t largest, struct buf *out)
{
    add_counter(counter, out);
    add_word(out, SCHEMA_LARGEST "=");
    buf_add_u64(out, largest);
    buf_add_text(out, "\r\n");
    return out->failed ? ERR_NO_MEMORY : 0;
}

/* All before the columns. */
static void
add_head(const struct schema_counter *counter, struct buf *out)
{
    add_counter(counter, out);
    buf_add_text(out, "\r\n");
    if (counter->key_name.len > 0) {
        add_column(out, counter, &counter->key_name);
        if (counter->key_is_text) {
            add_text(out, SCHEMA_OPTION_primarykey, SCHEMA_KEY_TEXT);
        } else {
            add_widths(out, counter->key_hint_bits, SCHEMA_BITS_MAX, 0);
            add_word(out, schema__option_word(SCHEMA_OPTION_primarykey));
        }
        buf_add_text(out, "\r\n");
    }
}

int
schema_print(const struct schema *schema, const struct schema_counter *counter,
    struct buf *out)
{
    add_head(counter, out);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        add_value_column(out, schema, counter, &counter->column[i]);
    }
    return out->failed ? ERR_NO_MEMORY : 0;
}

/* The word of an option of a counter that has it; where two have the same one,
 * of that which is true, if either is. */
static void
add_changed_options(struct buf *out, const struct schema_edit *change)
{
    const struct schema_counter *counter = &change->counter;
    bool is_cold_said = counter->cold_is_quietest || counter->cold_is_never;

#define X(field, word, no, yes)                                               \
    if ((change->changes >> SCHEMA_BIT_##field & 1) != 0) {                   \
        bool is_cold = strcmp(word, "cold") == 0;                             \
                                                                              \
        if (counter->field || !is_cold || !is_cold_said) {                    \
            add_word(out, word "=");                                          \
            buf_add_text(out, counter->field ? yes : no);                     \
        }                                                                     \
        is_cold_said = is_cold_said || is_cold;                               \
    }
    SCHEMA_COUNTER_OPTIONS(X)
#undef X
#define X(field, word)                                                        \
    if ((change->changes >> SCHEMA_BIT_##field & 1) != 0) {                   \
        add_word(out, word "=");                                              \
        buf_add_u64(out, counter->field);                                     \
    }
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
}

static void
add_changed_attributes(struct buf *out, const struct schema_edit *change)
{
    const struct schema_column *column = &change->column;

    if ((change->changes & SCHEMA_CHANGES_NAME) != 0) {
        add_text(out, SCHEMA_OPTION_name, change->new_name.text);
    }
    if ((change->changes & SCHEMA_CHANGES_HINT) != 0) {
        add_number(out, SCHEMA_OPTION_hint, column->hint_bits);
    }
    if ((change->changes & SCHEMA_CHANGES_MAX) != 0) {
        add_number(out, SCHEMA_OPTION_max, column->max_bits);
    }
    if ((change->changes & SCHEMA_CHANGES_DEFAULT) != 0) {
        add_number(out, SCHEMA_OPTION_default, column->default_value);
    }
    if ((change->changes & SCHEMA_CHANGES_MEMORY) != 0) {
        add_memory(out, column->memory);
    }
    if ((change->changes & SCHEMA_CHANGES_SUFFIX) != 0) {
        add_text(out, SCHEMA_OPTION_suffix, column->suffix.text);
    }
    if ((change->changes & SCHEMA_CHANGES_FLAGS) != 0) {
        add_number(out, SCHEMA_OPTION_flags, column->flags);
    }
}

void
schema_print_change(const struct schema_edit *change, struct buf *out)
{
    if (change->op == SCHEMA_CHANGE_COUNTER) {
        buf_add_text(out, "change counter");
        add_word(out, change->counter.name.text);
        add_changed_options(out, change);
        return;
    }
    ASSERT(change->op == SCHEMA_CHANGE_COLUMN);
    buf_add_text(out, "change column");
    add_word(out, change->counter.name.text);
    add_word(out, change->column.name.text);
    add_changed_attributes(out, change);
}

/* How many columns of each counter are printed, by slot. */
struct printed {
    uint8_t n_columns[SCHEMA_COUNTERS_MAX];
    bool has_head[SCHEMA_COUNTERS_MAX];
};

/* True where column can be made after what is printed. */
static bool
can_be_made(const struct schema *schema, const struct printed *printed,
    const struct schema_counter *counter, const struct schema_column *column)
{
    struct schema_target source;
    const struct schema_counter *other;

    if (!schema_source(schema, counter, column, &source)) {
        return true; /* it is about none, or of members, which count in one
                      * before it */
    }
    other = source.counter;
    return source.column - other->column < printed->n_columns[other->slot];
}

/* Prints of counter what can be made by now; returns whether all is. */
static bool
print_some(const struct schema *schema, const struct schema_counter *counter,
    struct printed *printed, struct buf *out)
{
    uint8_t *n = &printed->n_columns[counter->slot];

    if (!printed->has_head[counter->slot]) {
        printed->has_head[counter->slot] = true;
        add_head(counter, out);
    }
    while (*n < counter->n_columns &&
        can_be_made(schema, printed, counter, &counter->column[*n])) {
        add_value_column(out, schema, counter, &counter->column[*n]);
        ++*n;
    }
    return *n == counter->n_columns;
}

int
schema_print_all(const struct schema *schema, struct buf *out)
{
    struct printed printed = {{0}, {0}};
    bool is_whole = false;

    /* a turn prints a column at least */
    for (unsigned turn = 0; !is_whole; turn++) {
        ASSERT(turn <= SCHEMA_COUNTERS_MAX * SCHEMA_COLUMNS_MAX);
        is_whole = true;
        for (unsigned slot = 0; slot < SCHEMA_COUNTERS_MAX; slot++) {
            const struct schema_counter *counter =
                schema_counter_at(schema, slot);

            if (counter != NULL && counter->members_of == 0 &&
                !print_some(schema, counter, &printed, out)) {
                is_whole = false;
            }
        }
    }
    return out->failed ? ERR_NO_MEMORY : 0;
}
