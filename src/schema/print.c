/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the schema language that define.c reads, with words from the tables
 * that it uses (schema_priv.h). */
#include "schema/print.h"

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
add_column(struct buf *out, const struct schema_counter *counter,
    const struct schema_name *name, unsigned hint_bits, unsigned max_bits,
    uint64_t default_value)
{
    buf_add_text(out, "add column");
    add_word(out, counter->name.text);
    add_word(out, name->text);
    add_number(out, SCHEMA_OPTION_hint, hint_bits);
    add_number(out, SCHEMA_OPTION_max, max_bits);
    add_number(out, SCHEMA_OPTION_default, default_value);
}

static void
add_value_column(struct buf *out, const struct schema_counter *counter,
    const struct schema_column *column)
{
    add_column(out, counter, &column->name, column->hint_bits,
        column->max_bits, column->default_value);
    if (column->suffix.len > 0) {
        add_option(out, SCHEMA_OPTION_suffix);
        buf_add_text(out, column->suffix.text);
    }
    if (column->flags != 0) {
        add_number(out, SCHEMA_OPTION_flags, column->flags);
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

int
schema_print(const struct schema_counter *counter, struct buf *out)
{
    add_counter(counter, out);
    buf_add_text(out, "\r\n");
    if (counter->key_name.len > 0) {
        add_column(out, counter, &counter->key_name, counter->key_hint_bits,
            SCHEMA_BITS_MAX, 0);
        add_word(out, schema__option_word(SCHEMA_OPTION_primarykey));
        buf_add_text(out, "\r\n");
    }
    for (unsigned i = 0; i < counter->n_columns; i++) {
        add_value_column(out, counter, &counter->column[i]);
    }
    return out->failed ? ERR_NO_MEMORY : 0;
}
