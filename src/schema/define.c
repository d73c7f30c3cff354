/* SPDX-License-Identifier: BSD-3-Clause */
/* The schema language: words become an edit.
 *
 *   add counter NAME [absent=default|miss] [overflow=saturate|error]
 *                    [exptime=refuse|ignore] [maxjump=N]
 *                    [cold=oldest|quietest|never] [cold_after=N] [largest=N]
 *   add column COUNTER NAME [hint=N] [max=N] [default=N] [suffix=S]
 *                    [flags=N] [primarykey|primarykey=text]
 *   add column COUNTER NAME marks=COLUMN|ID.COLUMN unread=U
 *                    [unmarked=all|none] [forget=N] [suffix=S] [flags=N]
 *   add column COUNTER NAME follows=COLUMN [suffix=S] [flags=N]
 *   add column COUNTER NAME members=exact [max=N] [member=N]
 *                    [counts=COLUMN] [suffix=S] [flags=N]
 *   add column COUNTER NAME members=about memory=BYTES [error=N] [member=N]
 *                    [counts=COLUMN] [suffix=S] [flags=N]
 *   change counter NAME [absent=] [overflow=] [exptime=] [maxjump=]
 *                       [cold=] [cold_after=]
 *   change column COUNTER NAME [name=NEW] [suffix=S] [max=N] [hint=N]
 *                              [default=N] [flags=N] [memory=BYTES]
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

/* One option of "add counter" or "change counter"; given notes each by its
 * bit, one with two fields by both of theirs. */
static int
parse_counter_option(
    const struct schema_word *word, struct schema_edit *out, uint32_t *given)
{
    struct schema_counter *counter = &out->counter;
    struct schema_word name, value;
    uint32_t found = 0;
    bool is_value = false;

    if (!cut_option(word, &name, &value)) {
        return ERR_BAD_OPTION;
    }
#define X(field, option, no, yes)                                             \
    if (word_is(&name, option)) {                                             \
        counter->field = word_is(&value, yes);                                \
        is_value = is_value || counter->field || word_is(&value, no);         \
        found |= UINT32_C(1) << SCHEMA_BIT_##field;                           \
    }
    SCHEMA_COUNTER_OPTIONS(X)
#undef X
    if (found != 0) {
        if (!is_value || (*given & found) != 0) {
            return ERR_BAD_OPTION;
        }
        *given |= found;
        return 0;
    }
#define X(field, option)                                                      \
    if (word_is(&name, option)) {                                             \
        if ((*given >> SCHEMA_BIT_##field & 1) != 0 ||                        \
            !num_parse_u64(value.text, value.len, &counter->field)) {         \
            return ERR_BAD_OPTION;                                            \
        }                                                                     \
        *given |= UINT32_C(1) << SCHEMA_BIT_##field;                          \
        return 0;                                                             \
    }
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
    uint32_t given = 0;
    int err;

    if (n_words < 1) {
        return ERR_BAD_NAME;
    }
    err = parse_new_name(&word[0], &out->counter.name);
    for (size_t i = 1; i < n_words && err == 0; i++) {
        err = parse_counter_option(&word[i], out, &given);
    }
    if (err == 0 && out->counter.cold_is_never &&
        out->counter.cold_after != 0) {
        err = ERR_COLD_AFTER;
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
    if (option == SCHEMA_OPTION_COUNT || options->given[option]) {
        return ERR_BAD_OPTION;
    }
    if (option == SCHEMA_OPTION_primarykey) {
        has_value = !has_value || word_is(&value, SCHEMA_KEY_TEXT);
    }
    if (!has_value) {
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

/* What columns of all kinds may have. */
static int
parse_suffix_and_flags(
    const struct options *options, struct schema_column *column)
{
    uint64_t flags = 0;
    int err = parse_suffix(options, column);

    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_flags, 0, UINT32_MAX,
            ERR_BAD_FLAGS, &flags);
    }
    column->flags = (uint32_t)flags;
    return err;
}

/* True where an option is given that only a mark has. */
static bool
has_mark_option(const struct options *options)
{
    return options->given[SCHEMA_OPTION_unread] ||
        options->given[SCHEMA_OPTION_unmarked] ||
        options->given[SCHEMA_OPTION_forget];
}

/* True where an option is given that only a number has. */
static bool
has_number_option(const struct options *options)
{
    return options->given[SCHEMA_OPTION_hint] ||
        options->given[SCHEMA_OPTION_max] ||
        options->given[SCHEMA_OPTION_default];
}

/* True where an option is given that only members have. */
static bool
has_members_option(const struct options *options)
{
    return options->given[SCHEMA_OPTION_member] ||
        options->given[SCHEMA_OPTION_counts];
}

/* True where an option is given that only members=about has. */
static bool
has_about_option(const struct options *options)
{
    return options->given[SCHEMA_OPTION_memory] ||
        options->given[SCHEMA_OPTION_error];
}

static int
parse_values(const struct options *options, struct schema_column *column)
{
    int err;

    if (has_mark_option(options)) {
        return ERR_NOT_A_MARK;
    }
    if (has_members_option(options)) {
        return ERR_NOT_MEMBERS;
    }
    if (has_about_option(options)) {
        return ERR_NOT_ABOUT;
    }
    err = parse_widths(options, column);
    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_default, 0,
            schema_column_max(column), ERR_BAD_DEFAULT,
            &column->default_value);
    }
    return err != 0 ? err : parse_suffix_and_flags(options, column);
}

/* COLUMN or ID.COLUMN */
static int
parse_source(const struct schema_word *word, struct schema_edit *out)
{
    struct schema_source *source = &out->column.source;
    struct schema_word column = *word;
    const char *dot = memchr(word->text, '.', word->len);

    if (dot != NULL) {
        size_t len = (size_t)(dot - word->text);

        if (!num_parse_id(word->text, len, &source->id)) {
            return ERR_BAD_SOURCE;
        }
        source->is_fixed = true;
        column = (struct schema_word){dot + 1, word->len - len - 1};
    }
    return parse_reference(&column, &out->source) == 0 ? 0 : ERR_BAD_SOURCE;
}

/* unmarked= and forget= */
static int
parse_unmarked(const struct options *options, struct schema_column *column)
{
    const struct schema_word *value = &options->value[SCHEMA_OPTION_unmarked];

    if (options->given[SCHEMA_OPTION_unmarked]) {
        column->unmarked_is_none = word_is(value, SCHEMA_UNMARKED_NONE);
        if (!column->unmarked_is_none &&
            !word_is(value, SCHEMA_UNMARKED_ALL)) {
            return ERR_BAD_OPTION;
        }
    }
    if (options->given[SCHEMA_OPTION_forget] && !column->unmarked_is_none) {
        return ERR_MARK_NEEDS;
    }
    return parse_number(options, SCHEMA_OPTION_forget, 0, UINT64_MAX,
        ERR_BAD_OPTION, &column->forget);
}

static int
parse_mark(const struct options *options, struct schema_edit *out)
{
    struct schema_column *column = &out->column;
    int err;

    column->kind = SCHEMA_MARK;
    if (has_number_option(options)) {
        return ERR_MARK_WIDTH;
    }
    if (has_members_option(options)) {
        return ERR_NOT_MEMBERS;
    }
    if (has_about_option(options)) {
        return ERR_NOT_ABOUT;
    }
    if (!options->given[SCHEMA_OPTION_unread]) {
        return ERR_MARK_NEEDS;
    }
    err = parse_unmarked(options, column);
    if (err == 0) {
        err = parse_source(&options->value[SCHEMA_OPTION_marks], out);
    }
    if (err == 0) {
        err = parse_new_name(
            &options->value[SCHEMA_OPTION_unread], &column->unread);
    }
    return err != 0 ? err : parse_suffix_and_flags(options, column);
}

static int
parse_list(const struct options *options, struct schema_edit *out)
{
    const struct schema_word *followed =
        &options->value[SCHEMA_OPTION_follows];

    out->column.kind = SCHEMA_FOLLOWS;
    if (has_number_option(options) || has_mark_option(options) ||
        has_members_option(options) || has_about_option(options) ||
        options->given[SCHEMA_OPTION_marks]) {
        return ERR_LIST_OPTIONS;
    }
    if (parse_reference(followed, &out->source) != 0) {
        return ERR_NO_FOLLOWED;
    }
    return parse_suffix_and_flags(options, &out->column);
}

/* member= and, up to max_bits_max, max=. */
static int
parse_members_bits(const struct options *options, uint64_t max_bits_max,
    int max_err, struct schema_column *column)
{
    uint64_t max, member;
    int err = parse_number(options, SCHEMA_OPTION_max, SCHEMA_MEMBERS_MAX_BITS,
        max_bits_max, max_err, &max);

    if (err == 0 && max == 0) {
        err = max_err;
    }
    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_member,
            SCHEMA_MEMBERS_MEMBER_BITS, SCHEMA_MEMBER_BITS_MAX,
            ERR_MEMBERS_BITS, &member);
    }
    if (err == 0 && member < SCHEMA_MEMBER_BITS_MIN) {
        err = ERR_MEMBERS_BITS;
    }
    if (err != 0) {
        return err;
    }
    column->value_bits = (uint8_t)max;
    column->member_bits = (uint8_t)member;
    return 0;
}

/* The number under which members are stored is above them in the ids of their
 * pairs: it has the bits that they leave. */
static int
parse_exact(const struct options *options, struct schema_column *column)
{
    int err = parse_members_bits(
        options, SCHEMA_VALUE_BITS_MAX, ERR_MEMBERS_MAX, column);

    column->max_bits = (uint8_t)(SCHEMA_BITS_MAX - column->member_bits);
    column->hint_bits = SCHEMA_MEMBERS_HINT_BITS;
    return err == 0 && has_about_option(options) ? ERR_NOT_ABOUT : err;
}

/* A number of bytes, with a unit or without. */
static int
parse_memory(const struct options *options, uint64_t *out)
{
    struct schema_word value = options->value[SCHEMA_OPTION_memory];
    const char *unit = value.len > 0
        ? memchr(
              SCHEMA_UNITS, value.text[value.len - 1], sizeof SCHEMA_UNITS - 1)
        : NULL;
    unsigned n = unit != NULL ? (unsigned)(unit - SCHEMA_UNITS) + 1 : 0;

    value.len -= unit != NULL;
    if (value.len == 0 || !num_parse_u64(value.text, value.len, out)) {
        return ERR_ABOUT_MEMORY;
    }
    for (; n > 0 && *out <= SCHEMA_MEMORY_MAX; n--) {
        *out *= SCHEMA_UNIT_BYTES;
    }
    return *out < SCHEMA_MEMORY_MIN || *out > SCHEMA_MEMORY_MAX
        ? ERR_ABOUT_MEMORY
        : 0;
}

static int
parse_about(const struct options *options, struct schema_column *column)
{
    uint64_t error = 0;
    int err = parse_members_bits(
        options, SCHEMA_MEMBERS_MAX_BITS, ERR_ABOUT_MAX, column);

    column->hint_bits = SCHEMA_EMPTY_HINT_BITS;
    column->max_bits = SCHEMA_EMPTY_MAX_BITS;
    if (err == 0) {
        err = parse_memory(options, &column->memory);
    }
    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_error, SCHEMA_ABOUT_ERROR,
            SCHEMA_ERROR_MAX, ERR_ABOUT_ERROR, &error);
    }
    if (err == 0 && error < SCHEMA_ERROR_MIN) {
        err = ERR_ABOUT_ERROR;
    }
    column->error = (uint16_t)error;
    return err;
}

static int
parse_members(const struct options *options, struct schema_edit *out)
{
    const struct schema_word *members = &options->value[SCHEMA_OPTION_members];
    bool is_about = word_is(members, SCHEMA_MEMBERS_ABOUT);
    int err;

    out->column.kind = is_about ? SCHEMA_ABOUT : SCHEMA_MEMBERS;
    if (!is_about && !word_is(members, SCHEMA_MEMBERS_EXACT)) {
        return ERR_BAD_OPTION;
    }
    if (options->given[SCHEMA_OPTION_hint] ||
        options->given[SCHEMA_OPTION_default] || has_mark_option(options) ||
        options->given[SCHEMA_OPTION_marks] ||
        options->given[SCHEMA_OPTION_follows]) {
        return ERR_MEMBERS_OPTIONS;
    }
    err = is_about ? parse_about(options, &out->column)
                   : parse_exact(options, &out->column);
    if (err == 0 && options->given[SCHEMA_OPTION_counts] &&
        parse_reference(&options->value[SCHEMA_OPTION_counts], &out->source) !=
            0) {
        err = ERR_BAD_COUNTS;
    }
    return err != 0 ? err : parse_suffix_and_flags(options, &out->column);
}

/* A key is a whole 64-bit id: only its hint is free, and 64 by default; of a
 * name not even that. */
static int
parse_key(const struct options *options, struct schema_edit *out)
{
    struct schema_column *column = &out->column;
    uint64_t max, hint;
    int err;

    out->key_is_text = options->value[SCHEMA_OPTION_primarykey].len > 0;
    if (out->key_is_text && has_number_option(options)) {
        return ERR_NAME_OPTIONS;
    }
    err = parse_number(options, SCHEMA_OPTION_max, SCHEMA_BITS_MAX,
        SCHEMA_BITS_MAX, ERR_KEY_WIDTH, &max);

    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_default, 0, 0, ERR_KEY_WIDTH,
            &column->default_value);
    }
    if (err != 0) {
        return err;
    }
    if (max != SCHEMA_BITS_MAX || options->given[SCHEMA_OPTION_suffix] ||
        options->given[SCHEMA_OPTION_flags] || has_mark_option(options) ||
        has_members_option(options) || has_about_option(options) ||
        options->given[SCHEMA_OPTION_marks] ||
        options->given[SCHEMA_OPTION_follows] ||
        options->given[SCHEMA_OPTION_members]) {
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
    if (options.given[SCHEMA_OPTION_name]) {
        return ERR_BAD_OPTION;
    }
    out->is_key = options.given[SCHEMA_OPTION_primarykey];
    if (out->is_key) {
        return parse_key(&options, out);
    }
    if (options.given[SCHEMA_OPTION_members]) {
        return parse_members(&options, out);
    }
    if (options.given[SCHEMA_OPTION_follows]) {
        return parse_list(&options, out);
    }
    return options.given[SCHEMA_OPTION_marks]
        ? parse_mark(&options, out)
        : parse_values(&options, &out->column);
}

static int
parse_change_counter(
    const struct schema_word *word, size_t n_words, struct schema_edit *out)
{
    int err;

    if (n_words < 1) {
        return ERR_BAD_NAME;
    }
    err = parse_reference(&word[0], &out->counter.name);
    for (size_t i = 1; i < n_words && err == 0; i++) {
        err = parse_counter_option(&word[i], out, &out->changes);
    }
    if (err == 0 && (out->changes == 0 || out->has_largest)) {
        err = ERR_BAD_OPTION;
    }
    return err;
}

/* What is given that can be changed; returns the bits. */
static uint32_t
changes_of(const struct options *options, unsigned *n)
{
    static const struct {
        enum schema__option option;
        uint32_t bit;
    } changeable[] = {{SCHEMA_OPTION_name, SCHEMA_CHANGES_NAME},
        {SCHEMA_OPTION_suffix, SCHEMA_CHANGES_SUFFIX},
        {SCHEMA_OPTION_max, SCHEMA_CHANGES_MAX},
        {SCHEMA_OPTION_hint, SCHEMA_CHANGES_HINT},
        {SCHEMA_OPTION_flags, SCHEMA_CHANGES_FLAGS},
        {SCHEMA_OPTION_memory, SCHEMA_CHANGES_MEMORY},
        {SCHEMA_OPTION_default, SCHEMA_CHANGES_DEFAULT}};
    uint32_t changes = 0;

    for (size_t i = 0; i < sizeof changeable / sizeof changeable[0]; i++) {
        if (options->given[changeable[i].option]) {
            changes |= changeable[i].bit;
            ++*n;
        }
    }
    return changes;
}

static int
parse_changed_names(const struct options *options, struct schema_edit *out)
{
    int err = 0;

    if (options->given[SCHEMA_OPTION_name]) {
        err = parse_new_name(
            &options->value[SCHEMA_OPTION_name], &out->new_name);
    }
    if (err == 0 && options->given[SCHEMA_OPTION_suffix]) {
        err = parse_new_name(
            &options->value[SCHEMA_OPTION_suffix], &out->column.suffix);
    }
    return err;
}

static int
parse_changed_numbers(
    const struct options *options, struct schema_column *column)
{
    uint64_t max, hint, flags;
    int err = parse_number(
        options, SCHEMA_OPTION_max, 1, SCHEMA_BITS_MAX, ERR_BAD_MAX, &max);

    if (err == 0 && max == 0) {
        err = ERR_BAD_MAX;
    }
    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_hint, 0, SCHEMA_BITS_MAX,
            ERR_BAD_HINT, &hint);
    }
    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_flags, 0, UINT32_MAX,
            ERR_BAD_FLAGS, &flags);
    }
    if (err == 0) {
        err = parse_number(options, SCHEMA_OPTION_default, 0, UINT64_MAX,
            ERR_BAD_DEFAULT, &column->default_value);
    }
    if (err == 0 && options->given[SCHEMA_OPTION_memory]) {
        err = parse_memory(options, &column->memory);
    }
    if (err != 0) {
        return err;
    }
    column->max_bits = (uint8_t)max;
    column->hint_bits = (uint8_t)hint;
    column->flags = (uint32_t)flags;
    return 0;
}

static int
parse_change_column(
    const struct schema_word *word, size_t n_words, struct schema_edit *out)
{
    struct options options = {0};
    unsigned n = 0;
    int err;

    if (n_words < 2) {
        return ERR_BAD_NAME;
    }
    err = parse_reference(&word[0], &out->counter.name);
    if (err == 0) {
        err = parse_reference(&word[1], &out->column.name);
    }
    for (size_t i = 2; i < n_words && err == 0; i++) {
        err = collect_option(&word[i], &options);
    }
    if (err != 0) {
        return err;
    }
    out->changes = changes_of(&options, &n);
    if (n == 0 || n < n_words - 2) {
        return ERR_CHANGE_OPTIONS;
    }
    err = parse_changed_names(&options, out);
    return err == 0 ? parse_changed_numbers(&options, &out->column) : err;
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
    case SCHEMA_CHANGE_COUNTER:
        return parse_change_counter(word, n_words, out);
    case SCHEMA_CHANGE_COLUMN:
        return parse_change_column(word, n_words, out);
    case SCHEMA_DROP_COLUMN:
        return parse_drop_column(word, n_words, out);
    case SCHEMA_DROP_COUNTER:
        break;
    }
    ASSERT(op == SCHEMA_DROP_COUNTER);
    return parse_confirmed(word, n_words, &out->counter.name);
}
