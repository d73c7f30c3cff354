/* SPDX-License-Identifier: BSD-3-Clause */
/* A counter as bytes. The layout is in doc/format-log.md:
 *
 *   varint: how many numbers follow; the numbers of the counter, a varint each
 *   name; name of the primary key
 *   varint: columns; varint: numbers of each of them
 *   then for each column: name; suffix; its numbers, a varint each; of a mark
 *   the name of what is unread
 *
 * where a name is a byte with its length and so many characters.
 *
 * The counts are what lets later versions add options: a number more at the
 * end, whose 0 means what was before there was the option. Who finds fewer
 * numbers than it knows takes 0 for the rest; who finds more takes them only
 * if they are 0. Numbers never change their place. What came later is written
 * only where it is not 0: then the bytes are those of before. All columns of a
 * counter have as many numbers: who does not know of marks and lists stumbles
 * over the number of their kind, before the name that a mark has more. A
 * counter of pairs has no bytes: it is made of its column of members again.
 *
 * Invariant: what is decoded could have been made by schema_apply, as far as
 * one counter can tell: the schema asserts that on what it is given. So
 * anything else is no counter, though its checksum may be right. */
#include "wal/schema_code.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "schema/restore.h"

#include <string.h>

enum option_bits {
    ABSENT_IS_MISS = 1,
    OVERFLOW_IS_ERROR = 2,
    EXPTIME_IS_IGNORED = 4,
    COLD_IS_QUIETEST = 8,
    COLD_IS_NEVER = 16,
    KEY_IS_TEXT = 32,
    OPTION_BITS = 64 - 1
};

/* Of a mark. */
enum mark_bits {
    SOURCE_IS_FIXED = 1,
    UNMARKED_IS_NONE = 2,
    MARK_BITS = 4 - 1
};

/* The numbers of a counter, in their order: name, largest. */
#define COUNTER_NUMBERS(X)                                                    \
    X(SERIAL, UINT32_MAX)                                                     \
    X(SLOT, SCHEMA_COUNTERS_MAX - 1)                                          \
    X(KEY_HINT_BITS, SCHEMA_BITS_MAX)                                         \
    X(OPTIONS, OPTION_BITS)                                                   \
    X(MAX_JUMP, UINT64_MAX)                                                   \
    X(COLD_AFTER, UINT64_MAX)

/* The same of a column. */
#define COLUMN_NUMBERS(X)                                                     \
    X(SERIAL, UINT32_MAX)                                                     \
    X(SLOT, SCHEMA_COLUMNS_MAX - 1)                                           \
    X(HINT_BITS, SCHEMA_BITS_MAX)                                             \
    X(MAX_BITS, SCHEMA_BITS_MAX)                                              \
    X(FLAGS, UINT32_MAX)                                                      \
    X(DEFAULT, UINT64_MAX)                                                    \
    X(KIND, SCHEMA_ABOUT)                                                     \
    X(SOURCE, UINT32_MAX)                                                     \
    X(MARK, MARK_BITS)                                                        \
    X(SOURCE_ID, UINT64_MAX)                                                  \
    X(FORGET, UINT64_MAX)                                                     \
    X(COUNTS, UINT32_MAX)                                                     \
    X(MEMBER_BITS, SCHEMA_MEMBER_BITS_MAX)                                    \
    X(VALUE_BITS, SCHEMA_VALUE_BITS_MAX)                                      \
    X(PAIRS, SCHEMA_COUNTERS_MAX - 1)                                         \
    X(ERROR, SCHEMA_ERROR_MAX)                                                \
    X(MEMORY, SCHEMA_MEMORY_MAX)

enum counter_number {
#define X(name, max) COUNTER_##name,
    COUNTER_NUMBERS(X)
#undef X
        COUNTER_NUMBERS_COUNT
};

enum column_number {
#define X(name, max) COLUMN_##name,
    COLUMN_NUMBERS(X)
#undef X
        COLUMN_NUMBERS_COUNT
};

#define X(name, max) max,
static const uint64_t counter_max[] = {COUNTER_NUMBERS(X)};
static const uint64_t column_max[] = {COLUMN_NUMBERS(X)};
#undef X

enum {
    NUMBERS_MAX = 64, /* more is no version of this */
    COUNTER_NUMBERS_FIRST = COUNTER_MAX_JUMP + 1, /* always there */
    COLUMN_NUMBERS_FIRST = COLUMN_DEFAULT + 1,    /* likewise */
    NAME_BYTES_MAX = 1 + SCHEMA_NAME_MAX,
    COUNTER_BYTES_MAX =
        1 + COUNTER_NUMBERS_COUNT * BYTES_VARINT_MAX + 2 * NAME_BYTES_MAX + 2,
    COLUMN_BYTES_MAX =
        3 * NAME_BYTES_MAX + COLUMN_NUMBERS_COUNT * BYTES_VARINT_MAX
};

_Static_assert(COUNTER_BYTES_MAX + SCHEMA_COLUMNS_MAX * COLUMN_BYTES_MAX <=
        SCHEMA_CODE_BYTES_MAX,
    "the largest counter fits");

static size_t
put_name(uint8_t *out, const struct schema_name *name)
{
    ASSERT(name->len <= SCHEMA_NAME_MAX);
    out[0] = name->len;
    memcpy(out + 1, name->text, name->len);
    return 1 + (size_t)name->len;
}

static size_t
put_numbers(
    uint8_t *out, const uint64_t *number, const uint64_t *max, size_t n)
{
    size_t len = 0;

    for (size_t i = 0; i < n; i++) {
        ASSERT(number[i] <= max[i]);
        len += bytes_put_varint(out + len, number[i]);
    }
    return len;
}

struct column_numbers {
    uint64_t at[COLUMN_NUMBERS_COUNT];
};

static struct column_numbers
numbers_of(const struct schema_column *column)
{
    const struct schema_source *source = &column->source;

    return (struct column_numbers){{
        [COLUMN_SERIAL] = column->serial,
        [COLUMN_SLOT] = column->slot,
        [COLUMN_HINT_BITS] = column->hint_bits,
        [COLUMN_MAX_BITS] = column->max_bits,
        [COLUMN_FLAGS] = column->flags,
        [COLUMN_DEFAULT] = column->default_value,
        [COLUMN_KIND] = (uint64_t)column->kind,
        [COLUMN_SOURCE] = source->serial,
        [COLUMN_MARK] = (source->is_fixed ? SOURCE_IS_FIXED : 0) |
            (column->unmarked_is_none ? UNMARKED_IS_NONE : 0),
        [COLUMN_SOURCE_ID] = source->id,
        [COLUMN_FORGET] = column->forget,
        [COLUMN_COUNTS] = column->counts,
        [COLUMN_MEMBER_BITS] = column->member_bits,
        [COLUMN_VALUE_BITS] = column->value_bits,
        [COLUMN_PAIRS] = column->pairs,
        [COLUMN_ERROR] = column->error,
        [COLUMN_MEMORY] = column->memory,
    }};
}

/* How many of a column's numbers are written of each. */
static size_t
count_numbers(const struct schema_counter *counter)
{
    size_t n = COLUMN_NUMBERS_FIRST;

    for (unsigned i = 0; i < counter->n_columns; i++) {
        struct column_numbers number = numbers_of(&counter->column[i]);

        for (size_t k = n; k < COLUMN_NUMBERS_COUNT; k++) {
            n = number.at[k] != 0 ? k + 1 : n;
        }
    }
    return n;
}

static size_t
put_column(uint8_t *out, const struct schema_column *column, size_t n_numbers)
{
    struct column_numbers number = numbers_of(column);
    size_t len = put_name(out, &column->name);

    len += put_name(out + len, &column->suffix);
    len += put_numbers(out + len, number.at, column_max, n_numbers);
    ASSERT((column->kind == SCHEMA_MARK) == (column->unread.len > 0));
    if (column->kind == SCHEMA_MARK) {
        len += put_name(out + len, &column->unread);
    }
    return len;
}

size_t
schema_code_put(uint8_t *out, const struct schema_counter *counter)
{
    const uint64_t number[COUNTER_NUMBERS_COUNT] = {
        [COUNTER_SERIAL] = counter->serial,
        [COUNTER_SLOT] = counter->slot,
        [COUNTER_KEY_HINT_BITS] = counter->key_hint_bits,
        [COUNTER_OPTIONS] = (counter->absent_is_miss ? ABSENT_IS_MISS : 0) |
            (counter->overflow_is_error ? OVERFLOW_IS_ERROR : 0) |
            (counter->exptime_is_ignored ? EXPTIME_IS_IGNORED : 0) |
            (counter->cold_is_quietest ? COLD_IS_QUIETEST : 0) |
            (counter->cold_is_never ? COLD_IS_NEVER : 0) |
            (counter->key_is_text ? KEY_IS_TEXT : 0),
        [COUNTER_MAX_JUMP] = counter->max_jump,
        [COUNTER_COLD_AFTER] = counter->cold_after,
    };
    size_t n = COUNTER_NUMBERS_COUNT;
    while (n > COUNTER_NUMBERS_FIRST && number[n - 1] == 0) {
        n--;
    }
    size_t len = bytes_put_varint(out, n);

    ASSERT(counter->members_of == 0); /* its column says all of it */
    ASSERT(counter->n_columns <= SCHEMA_COLUMNS_MAX);
    len += put_numbers(out + len, number, counter_max, n);
    len += put_name(out + len, &counter->name);
    len += put_name(out + len, &counter->key_name);
    len += bytes_put_varint(out + len, counter->n_columns);
    n = count_numbers(counter);
    len += bytes_put_varint(out + len, n);
    for (unsigned i = 0; i < counter->n_columns; i++) {
        len += put_column(out + len, &counter->column[i], n);
    }
    ASSERT(len <= SCHEMA_CODE_BYTES_MAX);
    return len;
}

static bool
is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* A name of 0..SCHEMA_NAME_MAX characters. What words are reserved is not
 * looked at: a word may have become one after the name was given. */
static bool
get_name(const uint8_t **in, const uint8_t *end, struct schema_name *out)
{
    const uint8_t *at = *in;
    size_t len;

    if (at == end) {
        return false;
    }
    len = *at++;
    if (len > SCHEMA_NAME_MAX || len > (size_t)(end - at)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        bool is_digit = at[i] >= '0' && at[i] <= '9';

        if (!is_letter(at[i]) && !(is_digit && i > 0)) {
            return false;
        }
    }
    *out = (struct schema_name){.len = (uint8_t)len};
    memcpy(out->text, at, len);
    *in = at + len;
    return true;
}

/* Reads n numbers, of which known are known here; those that are not there
 * are 0. */
static bool
get_numbers(const uint8_t **in, const uint8_t *end, uint64_t n,
    uint64_t *number, const uint64_t *max, size_t known)
{
    uint64_t value;

    memset(number, 0, known * sizeof *number);
    for (size_t i = 0; i < n; i++) {
        if (!bytes_get_varint(in, end, &value)) {
            return false;
        }
        if (value > (i < known ? max[i] : 0)) {
            return false;
        }
        if (i < known) {
            number[i] = value;
        }
    }
    return true;
}

static bool
get_column(const uint8_t **in, const uint8_t *end, uint64_t n_numbers,
    struct schema_column *out)
{
    uint64_t number[COLUMN_NUMBERS_COUNT];

    if (!get_name(in, end, &out->name) || !get_name(in, end, &out->suffix) ||
        !get_numbers(
            in, end, n_numbers, number, column_max, COLUMN_NUMBERS_COUNT)) {
        return false;
    }
    out->serial = (uint32_t)number[COLUMN_SERIAL];
    out->slot = (uint8_t)number[COLUMN_SLOT];
    out->hint_bits = (uint8_t)number[COLUMN_HINT_BITS];
    out->max_bits = (uint8_t)number[COLUMN_MAX_BITS];
    out->flags = (uint32_t)number[COLUMN_FLAGS];
    out->default_value = number[COLUMN_DEFAULT];
    out->kind = (enum schema_kind)number[COLUMN_KIND];
    out->source.serial = (uint32_t)number[COLUMN_SOURCE];
    out->source.is_fixed = (number[COLUMN_MARK] & SOURCE_IS_FIXED) != 0;
    out->source.id = number[COLUMN_SOURCE_ID];
    out->unmarked_is_none = (number[COLUMN_MARK] & UNMARKED_IS_NONE) != 0;
    out->forget = number[COLUMN_FORGET];
    out->counts = (uint32_t)number[COLUMN_COUNTS];
    out->member_bits = (uint8_t)number[COLUMN_MEMBER_BITS];
    out->value_bits = (uint8_t)number[COLUMN_VALUE_BITS];
    out->pairs = (uint8_t)number[COLUMN_PAIRS];
    out->error = (uint16_t)number[COLUMN_ERROR];
    out->memory = number[COLUMN_MEMORY];
    if (out->kind == SCHEMA_MARK && !get_name(in, end, &out->unread)) {
        return false;
    }
    return out->name.len > 0 && out->serial > 0 && out->max_bits > 0 &&
        out->hint_bits <= out->max_bits &&
        out->default_value <= schema_column_max(out) &&
        schema_kind_is_sound(out);
}

/* Two names that are both given and the same. */
static bool
clash(const struct schema_name *a, const struct schema_name *b)
{
    return a->len > 0 && a->len == b->len &&
        memcmp(a->text, b->text, a->len) == 0;
}

static bool
name_clashes(
    const struct schema_name *name, const struct schema_column *column)
{
    return clash(name, &column->name) || clash(name, &column->suffix) ||
        clash(name, &column->unread);
}

static bool
columns_clash(const struct schema_column *a, const struct schema_column *b)
{
    return a->slot == b->slot || a->serial == b->serial ||
        name_clashes(&a->name, b) || name_clashes(&a->suffix, b) ||
        name_clashes(&a->unread, b);
}

/* True where the columns can live together in one counter. */
static bool
counter_agrees(const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        const struct schema_column *column = &counter->column[i];

        if (clash(&column->name, &column->suffix) ||
            clash(&column->unread, &column->name) ||
            clash(&column->unread, &column->suffix) ||
            name_clashes(&counter->name, column) ||
            name_clashes(&counter->key_name, column)) {
            return false;
        }
        for (unsigned j = 0; j < i; j++) {
            if (columns_clash(column, &counter->column[j])) {
                return false;
            }
        }
    }
    return (counter->n_columns == 0 || counter->key_name.len > 0) &&
        schema_members_are_sound(counter);
}

/* All before the columns. */
static bool
get_head(const uint8_t **in, const uint8_t *end, struct schema_counter *out)
{
    uint64_t n, number[COUNTER_NUMBERS_COUNT];

    if (!bytes_get_varint(in, end, &n) || n > NUMBERS_MAX ||
        !get_numbers(in, end, n, number, counter_max, COUNTER_NUMBERS_COUNT) ||
        !get_name(in, end, &out->name) || !get_name(in, end, &out->key_name)) {
        return false;
    }
    out->serial = (uint32_t)number[COUNTER_SERIAL];
    out->slot = (uint8_t)number[COUNTER_SLOT];
    out->key_hint_bits = (uint8_t)number[COUNTER_KEY_HINT_BITS];
    out->absent_is_miss = (number[COUNTER_OPTIONS] & ABSENT_IS_MISS) != 0;
    out->overflow_is_error =
        (number[COUNTER_OPTIONS] & OVERFLOW_IS_ERROR) != 0;
    out->exptime_is_ignored =
        (number[COUNTER_OPTIONS] & EXPTIME_IS_IGNORED) != 0;
    out->cold_is_quietest = (number[COUNTER_OPTIONS] & COLD_IS_QUIETEST) != 0;
    out->cold_is_never = (number[COUNTER_OPTIONS] & COLD_IS_NEVER) != 0;
    out->key_is_text = (number[COUNTER_OPTIONS] & KEY_IS_TEXT) != 0;
    out->max_jump = number[COUNTER_MAX_JUMP];
    out->cold_after = number[COUNTER_COLD_AFTER];
    return out->name.len > 0 && out->serial > 0 &&
        !(out->cold_is_never &&
            (out->cold_is_quietest || out->cold_after != 0));
}

bool
schema_code_has_kinds(const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind != SCHEMA_NUMBER) {
            return true;
        }
    }
    return counter->cold_is_never;
}

bool
schema_code_has_about(const struct schema_counter *counter)
{
    for (unsigned i = 0; i < counter->n_columns; i++) {
        if (counter->column[i].kind == SCHEMA_ABOUT) {
            return true;
        }
    }
    return false;
}

bool
schema_code_get(
    const uint8_t **in, const uint8_t *end, struct schema_counter *out)
{
    const uint8_t *at = *in;
    uint64_t n_columns, n_numbers;

    memset(out, 0, sizeof *out);
    if (!get_head(&at, end, out) || !bytes_get_varint(&at, end, &n_columns) ||
        n_columns > SCHEMA_COLUMNS_MAX ||
        !bytes_get_varint(&at, end, &n_numbers) || n_numbers > NUMBERS_MAX) {
        return false;
    }
    out->n_columns = (uint8_t)n_columns;
    for (unsigned i = 0; i < n_columns; i++) {
        if (!get_column(&at, end, n_numbers, &out->column[i])) {
            return false;
        }
    }
    if (!counter_agrees(out)) {
        return false;
    }
    *in = at;
    return true;
}
