/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema language: words become an edit.
 *
 *   add counter NAME [absent=default|miss] [overflow=saturate|error]
 *                    [exptime=refuse|ignore] [maxjump=N]
 *                    [cold=oldest|quietest] [cold_after=N] [largest=N]
 *   add column COUNTER NAME [hint=N] [max=N] [default=N] [suffix=S]
 *                    [flags=N] [primarykey]
 *   drop column COUNTER NAME NAME
 *   drop counter NAME NAME
 *
 * Options come in any order, each at most once. Here everything is checked
 * that needs no schema to look at: grammar, names, ranges, confirmation. Names
 * first, then options as words, then their values, each with an error of its
 * own. A name that only refers to something need not be free of reserved
 * words: there is nothing of that name, and the answer says so.
 *
 * largest= is no attribute of the counter: it says what ids are measured by
 * from now on, and may be said at any time.
 *
 * A suffix that equals its column's own name is the same as none, and becomes
 * none, so that equal columns have equal edits. */
#include "schema/schema.h"

#include "base/assert.h"
#include "base/err.h"
#include "base/num.h"
#include "schema/schema_priv.h"

/* The options of one "add column" as they stand in the line. */
struct options {
    bool given[SCHEMA_OPTION_COUNT];
    struct schema_word value[SCHEMA_OPTION_COUNT];
};

static const char *const reserved[] = {
    "counter", "column", "counters", "columns", "noreply"};

static const char *const option_words[SCHEMA_OPTION_COUNT] = {
#define X(name) #name,
    SCHEMA_COLUMN_OPTIONS(X)
#undef X
};

const char *
schema__option_word(enum schema__option option)
{
    ASSERT((unsigned)option < SCHEMA_OPTION_COUNT);
    return option_words[option];
}

static bool
word_is(const struct schema_word *word, const char *text)
{
    return word->len == strlen(text) &&
        memcmp(word->text, text, word->len) == 0;
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool
schema_is_name(const char *text, size_t len)
{
    if (len == 0 || len > SCHEMA_NAME_MAX || !is_letter(text[0])) {
        return false;
    }
    for (size_t i = 1; i < len; i++) {
        if (!is_letter(text[i]) && (text[i] < '0' || text[i] > '9')) {
            return false;
        }
    }
    return true;
}

/* A name of something that may exist. */
static int
parse_reference(const struct schema_word *word, struct schema_name *out)
{
    if (!schema_is_name(word->text, word->len)) {
        return ERR_BAD_NAME;
    }
    memcpy(out->text, word->text, word->len);
    out->text[word->len] = '\0';
    out->len = (uint8_t)word->len;
    return 0;
}

/* A name to give. */
static int
parse_new_name(const struct schema_word *word, struct schema_name *out)
{
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (word_is(word, reserved[i])) {
            return ERR_RESERVED_NAME;
        }
    }
    return parse_reference(word, out);
}

/* Cuts "name=value" in two; a word without '=' is all name. */
static bool
cut_option(const struct schema_word *word, struct schema_word *name,
    struct schema_word *value)
{
    const char *equals = memchr(word->text, '=', word->len);

    *name = *word;
    *value = (struct schema_word){0};
    if (equals == NULL) {
        return false;
    }
    name->len = (size_t)(equals - word->text);
    value->text = equals + 1;
    value->len = word->len - name->len - 1;
    return true;
}

/* One option of "add counter"; given notes each by its number. */
static int
parse_counter_option(
    const struct schema_word *word, struct schema_edit *out, unsigned *given)
{
    struct schema_counter *counter = &out->counter;
    struct schema_word name, value;
    unsigned bit = 1;

    if (!cut_option(word, &name, &value)) {
        return ERR_BAD_OPTION;
    }
#define X(field, option, no, yes)                                             \
    if (word_is(&name, option)) {                                             \
        counter->field = word_is(&value, yes);                                \
        if ((*given & bit) != 0 ||                                            \
            (!counter->field && !word_is(&value, no))) {                      \
            return ERR_BAD_OPTION;                                            \
        }                                                                     \
        *given |= bit;                                                        \
        return 0;                                                             \
    }                                                                         \
    bit <<= 1;
    SCHEMA_COUNTER_OPTIONS(X)
#undef X
#define X(field, option)                                                      \
    if (word_is(&name, option)) {                                             \
        if ((*given & bit) != 0 ||                                            \
            !num_parse_u64(value.text, value.len, &counter->field)) {         \
            return ERR_BAD_OPTION;                                            \
        }                                                                     \
        *given |= bit;                                                        \
        return 0;                                                             \
    }                                                                         \
    bit <<= 1;
    SCHEMA_COUNTER_NUMBERS(X)
#undef X
    if (word_is(&name, SCHEMA_LARGEST) && !out->has_largest &&
        num_parse_u64(value.text, value.len, &out->largest)) {
        out->has_largest = true;
        return 0;
    }
    return ERR_BAD_OPTION;
}

static int
parse_add_counter(
    const struct schema_word *word, size_t n_words, struct schema_edit *out)
{
    unsigned given = 0;
    int err;

    if (n_words < 1) {
        return ERR_BAD_NAME;
    }
    err = parse_new_name(&word[0], &out->counter.name);
    for (size_t i = 1; i < n_words && err == 0; i++) {
        err = parse_counter_option(&word[i], out, &given);
    }
    return err;
}

static int
collect_option(const struct schema_word *word, struct options *options)
{
    struct schema_word name, value;
    bool has_value = cut_option(word, &name, &value);
    int option = 0;

    while (option < SCHEMA_OPTION_COUNT &&
        !word_is(&name, option_words[option])) {
        option++;
    }
    if (option == SCHEMA_OPTION_COUNT || options->given[option] ||
        has_value == (option == SCHEMA_OPTION_primarykey)) {
        return ERR_BAD_OPTION;
    }
    options->given[option] = true;
    options->value[option] = value;
    return 0;
}

/* The number of an option, or what it is by default; err where it is no
 * number or above limit. */
static int
parse_number(const struct options *options, enum schema__option option,
    uint64_t by_default, uint64_t limit, int err, uint64_t *out)
{
    const struct schema_word *value = &options->value[option];

    if (!options->given[option]) {
        *out = by_default;
        return 0;
    }
    if (!num_parse_u64(value->text, value->len, out) || *out > limit) {
        return err;
    }
    return 0;
}

static int
parse_widths(const struct options *options, struct schema_column *column)
{
    uint64_t max, hint;
    int err = parse_number(options, SCHEMA_OPTION_max, SCHEMA_DEFAULT_MAX_BITS,
        SCHEMA_BITS_MAX, ERR_BAD_MAX, &max);

    if (err != 0) {
        return err;
    }
    if (max == 0) {
        return ERR_BAD_MAX;
    }
    err = parse_number(options, SCHEMA_OPTION_hint,
        max < SCHEMA_DEFAULT_HINT_BITS ? max : SCHEMA_DEFAULT_HINT_BITS, max,
        ERR_BAD_HINT, &hint);
    if (err != 0) {
        return err;
    }
    column->max_bits = (uint8_t)max;
    column->hint_bits = (uint8_t)hint;
    return 0;
}

static int
parse_suffix(const struct options *options, struct schema_column *column)
{
    int err;

    if (!options->given[SCHEMA_OPTION_suffix]) {
        return 0;
    }
    err =
        parse_new_name(&options->value[SCHEMA_OPTION_suffix], &column->suffix);
    if (err == 0 && schema__names_equal(&column->suffix, &column->name)) {
        column->suffix = (struct schema_name){0};
    }
    return err;
}

static int
parse_values(const struct options *options, struct schema_column *column)
{
    uint64_t flags;
    int err = parse_widths(options, column);

    if (err != 0) {
        return err;
    }
    err = parse_number(options, SCHEMA_OPTION_default, 0,
        schema_column_max(column), ERR_BAD_DEFAULT, &column->default_value);
    if (err != 0) {
        return err;
    }
    err = parse_suffix(options, column);
    if (err != 0) {
        return err;
    }
    err = parse_number(
        options, SCHEMA_OPTION_flags, 0, UINT32_MAX, ERR_BAD_FLAGS, &flags);
    if (err != 0) {
        return err;
    }
    column->flags = (uint32_t)flags;
    return 0;
}

/* A key is a whole 64-bit id: only its hint is free, and 64 by default. */
static int
parse_key(const struct options *options, struct schema_column *column)
{
    uint64_t max, hint;
    int err = parse_number(options, SCHEMA_OPTION_max, SCHEMA_BITS_MAX,
        SCHEMA_BITS_MAX, ERR_KEY_WIDTH, &max);

    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_default, 0, 0, ERR_KEY_WIDTH,
            &column->default_value);
    }
    if (err != 0) {
        return err;
    }
    if (max != SCHEMA_BITS_MAX || options->given[SCHEMA_OPTION_suffix] ||
        options->given[SCHEMA_OPTION_flags]) {
        return ERR_KEY_WIDTH;
    }
    err = parse_number(options, SCHEMA_OPTION_hint, SCHEMA_BITS_MAX,
        SCHEMA_BITS_MAX, ERR_BAD_HINT, &hint);
    if (err != 0) {
        return err;
    }
    column->max_bits = SCHEMA_BITS_MAX;
    column->hint_bits = (uint8_t)hint;
    return 0;
}

static int
parse_add_column(
    const struct schema_word *word, size_t n_words, struct schema_edit *out)
{
    struct options options = {0};
    int err;

    if (n_words < 2) {
        return ERR_BAD_NAME;
    }
    err = parse_reference(&word[0], &out->counter.name);
    if (err == 0) {
        err = parse_new_name(&word[1], &out->column.name);
    }
    for (size_t i = 2; i < n_words && err == 0; i++) {
        err = collect_option(&word[i], &options);
    }
    if (err != 0) {
        return err;
    }
    out->is_key = options.given[SCHEMA_OPTION_primarykey];
    return out->is_key ? parse_key(&options, &out->column)
                       : parse_values(&options, &out->column);
}

/* NAME NAME */
static int
parse_confirmed(
    const struct schema_word *word, size_t n_words, struct schema_name *out)
{
    int err;

    if (n_words < 1) {
        return ERR_BAD_NAME;
    }
    err = parse_reference(&word[0], out);
    if (err != 0) {
        return err;
    }
    if (n_words < 2 || !schema__name_is(out, word[1].text, word[1].len)) {
        return ERR_NOT_CONFIRMED;
    }
    return n_words > 2 ? ERR_BAD_OPTION : 0;
}

static int
parse_drop_column(
    const struct schema_word *word, size_t n_words, struct schema_edit *out)
{
    int err;

    if (n_words < 1) {
        return ERR_BAD_NAME;
    }
    err = parse_reference(&word[0], &out->counter.name);
    if (err != 0) {
        return err;
    }
    return parse_confirmed(word + 1, n_words - 1, &out->column.name);
}

int
schema_edit_parse(enum schema_edit_op op, const struct schema_word *word,
    size_t n_words, struct schema_edit *out)
{
    *out = (struct schema_edit){.op = op};
    switch (op) {
    case SCHEMA_ADD_COUNTER:
        return parse_add_counter(word, n_words, out);
    case SCHEMA_ADD_COLUMN:
        return parse_add_column(word, n_words, out);
    case SCHEMA_DROP_COLUMN:
        return parse_drop_column(word, n_words, out);
    case SCHEMA_DROP_COUNTER:
        break;
    }
    ASSERT(op == SCHEMA_DROP_COUNTER);
    return parse_confirmed(word, n_words, &out->counter.name);
}
