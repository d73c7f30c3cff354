/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCHEMA_SCHEMA_PRIV_H
#define SCHEMA_SCHEMA_PRIV_H

#include "base/alloc.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What the files of this layer share. */

/* The options of "add counter" that are one of a few words: field of struct
 * schema_counter, word, its value for false (the default), its value for
 * true. One with three values has two fields, of which one at most is true. */
#define SCHEMA_COUNTER_OPTIONS(X)                                             \
    X(absent_is_miss, "absent", "default", "miss")                            \
    X(overflow_is_error, "overflow", "saturate", "error")                     \
    X(exptime_is_ignored, "exptime", "refuse", "ignore")                      \
    X(cold_is_quietest, "cold", "oldest", "quietest")                         \
    X(cold_is_never, "cold", "oldest", "never")

/* Those that are a 64-bit number, 0 by default: field, word. */
#define SCHEMA_COUNTER_NUMBERS(X)                                             \
    X(max_jump, "maxjump")                                                    \
    X(cold_after, "cold_after")

/* The bit of each of these in the changes of an edit. */
enum schema__counter_bit {
#define X(field, ...) SCHEMA_BIT_##field,
    SCHEMA_COUNTER_OPTIONS(X) SCHEMA_COUNTER_NUMBERS(X)
#undef X
        SCHEMA_BIT_COUNT
};

/* That which is no attribute: a 64-bit number. */
#define SCHEMA_LARGEST "largest"

/* The options of "add column", in the order in which they are written; all
 * but the last take a value. The first is of "change column" only. */
#define SCHEMA_COLUMN_OPTIONS(X)                                              \
    X(name)                                                                   \
    X(members)                                                                \
    X(hint)                                                                   \
    X(max)                                                                    \
    X(default)                                                                \
    X(member)                                                                 \
    X(counts)                                                                 \
    X(memory)                                                                 \
    X(error)                                                                  \
    X(suffix)                                                                 \
    X(flags)                                                                  \
    X(marks)                                                                  \
    X(unread)                                                                 \
    X(unmarked)                                                               \
    X(forget)                                                                 \
    X(follows)                                                                \
    X(primarykey)

enum schema__option {
#define X(name) SCHEMA_OPTION_##name,
    SCHEMA_COLUMN_OPTIONS(X)
#undef X
        SCHEMA_OPTION_COUNT
};

enum {
    SCHEMA_DEFAULT_MAX_BITS = 32,
    SCHEMA_DEFAULT_HINT_BITS = 16, /* or max, where that is less */
    SCHEMA_MEMBERS_MAX_BITS = 1,   /* of a member's value */
    SCHEMA_MEMBERS_MEMBER_BITS = 33,
    SCHEMA_ABOUT_ERROR = 100,
    SCHEMA_EMPTY_HINT_BITS = 0, /* of a place in records that is always 0 */
    SCHEMA_EMPTY_MAX_BITS = 1,
    SCHEMA_COLUMN_NAMES = 3, /* its name, its suffix, what is unread */
    /* those of every column, and its own */
    SCHEMA_COUNTER_NAMES = SCHEMA_COLUMN_NAMES * SCHEMA_COLUMNS_MAX + 1,
    SCHEMA_NAMES_MAX = SCHEMA_COUNTERS_MAX * SCHEMA_COUNTER_NAMES
};

/* The values of unmarked=. */
#define SCHEMA_UNMARKED_NONE "none"
#define SCHEMA_UNMARKED_ALL "all"

/* The value of primarykey=. */
#define SCHEMA_KEY_TEXT "text"

/* The values of members=. */
#define SCHEMA_MEMBERS_EXACT "exact"
#define SCHEMA_MEMBERS_ABOUT "about"

/* What may stand behind the number of memory=: each is so many times as much as
 * the one before it, and the first as a byte. */
#define SCHEMA_UNITS "kmgt"
#define SCHEMA_UNIT_BYTES UINT64_C(1024)

enum schema__kind {
    SCHEMA_NOTHING, /* an empty place of the index */
    SCHEMA_COUNTER_NAME,
    SCHEMA_COLUMN_NAME,
    SCHEMA_COLUMN_SUFFIX,
    SCHEMA_COLUMN_UNREAD
};

/* One place of the index over all names. */
struct schema__entry {
    uint32_t tag;    /* the high half of the name's hash */
    uint8_t kind;    /* enum schema__kind */
    uint8_t counter; /* slot */
    uint8_t column;  /* place in schema_counter.column */
};

/* One block of memory, as large as what is in it: counters, and behind them
 * the index. Places of counter that are not in use are zero. */
struct schema {
    const struct alloc *alloc; /* where this and its successors come from */
    uint64_t version;
    uint32_t last_serial; /* the last one given out, to what lives or not */
    uint32_t n_counters;
    uint32_t n_text; /* counters whose ids are names */
    uint32_t n_names;
    uint32_t index_mask; /* places of the index - 1 */
    uint32_t n_places;   /* of counter; as many as are in use, or more */
    struct schema__entry *index;
    uint16_t place[SCHEMA_COUNTERS_MAX]; /* by slot: 1 + its place in counter;
                                          * 0: there is none */
    struct schema_counter counter[];
};

/* The counter in a slot (0..255), or NULL. */
static inline struct schema_counter *
schema__at(struct schema *schema, unsigned slot)
{
    unsigned place = schema->place[slot];

    return place == 0 ? NULL : &schema->counter[place - 1];
}

static inline bool
schema__name_is(const struct schema_name *name, const char *text, size_t len)
{
    return name->len == len && memcmp(name->text, text, len) == 0;
}

static inline bool
schema__names_equal(const struct schema_name *a, const struct schema_name *b)
{
    return schema__name_is(a, b->text, b->len);
}

/* The widths of a mark that is about that column: those of its numbers, or of
 * its members. */
static inline uint8_t
schema__mark_max_bits(const struct schema_column *source)
{
    return source->kind == SCHEMA_MEMBERS ? source->member_bits
                                          : source->max_bits;
}

static inline uint8_t
schema__mark_hint_bits(const struct schema_column *source)
{
    return source->kind == SCHEMA_MEMBERS ? source->member_bits
                                          : source->hint_bits;
}

/* A copy of old with room for more_names more in its index, which is empty,
 * and for so many counters more; NULL when memory is out. The caller changes
 * counters in place, then calls schema__index. */
struct schema *schema__copy(
    const struct schema *old, uint32_t more_names, uint32_t more_counters);

/* The room of a copy for one counter more, all zero but for its slot, which
 * has had none. The caller names it before it adds another one. */
struct schema_counter *schema__add(struct schema *schema, unsigned slot);

/* Empties a slot of a copy that has a counter. */
void schema__remove(struct schema *schema, unsigned slot);

/* The lowest slot without a counter; there is one. */
unsigned schema__free_slot(const struct schema *schema);

/* ---- edit.c ---- */

const struct schema_counter *schema__counter_of(
    const struct schema *schema, const struct schema_edit *edit);

/* A column by its name; a suffix is only a way to ask. */
const struct schema_column *schema__column_named(
    const struct schema_counter *counter, const struct schema_name *name);

/* The column that an edit would add to counter, without slot, serial and the
 * slot of its pairs. 0 or an ERR_ of schema_apply. */
int schema__resolve(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_edit *edit,
    struct schema_column *out);

/* True where a column of that kind, of any counter but except, is about a
 * column of that serial. */
bool schema__is_source(const struct schema *schema, uint32_t serial,
    enum schema_kind kind, const struct schema_counter *except);

/* True where a column is what schema__resolve has made, as far as that tells;
 * memory= is not compared: it may have been changed since. */
bool schema__is_column(
    const struct schema_column *column, const struct schema_column *want);

/* ---- change.c ---- */

/* 0 or an ERR_ of schema_apply, of a change. */
int schema__check_change(
    const struct schema *old, const struct schema_edit *edit);

/* Makes a change, that has been checked, in a copy of the schema. counter: of
 * the copy, as it was. */
void schema__change(struct schema *schema, struct schema_counter *counter,
    const struct schema_edit *edit);

/* True where a change would leave all as it is. */
bool schema__is_unchanged(
    const struct schema_counter *counter, const struct schema_edit *edit);

/* ---- pairs.c ---- */

/* Makes the counter of pairs of a column of members of counter, in the slot
 * that the column says and that is free. counter: of schema, a copy. */
void schema__pairs_add(struct schema *schema,
    const struct schema_counter *counter, const struct schema_column *column);

/* Takes the counters of pairs of all columns of counter out of a copy of the
 * schema that counter is of. */
void schema__pairs_remove(
    struct schema *schema, const struct schema_counter *counter);

/* Fills the empty index, notes where the sources of columns are, and counts
 * counters and names. */
void schema__index(struct schema *schema);

/* The word of an option. Static storage. */
const char *schema__option_word(enum schema__option option);

#endif
