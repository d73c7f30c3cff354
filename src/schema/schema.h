/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SCHEMA_SCHEMA_H
#define SCHEMA_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The schema: counters and their columns. A struct schema is immutable once
 * made; an edit makes a new one beside it (schema_apply), and the owner
 * publishes and frees them. Pure: no I/O, no locks; any thread may read. */

enum {
    SCHEMA_COUNTERS_MAX = 256,
    SCHEMA_COLUMNS_MAX = 16, /* value columns of one counter */
    SCHEMA_NAME_MAX = 32,
    SCHEMA_BITS_MAX = 64,
    SCHEMA_MEMBER_BITS_MIN = 16, /* of a column of members */
    SCHEMA_MEMBER_BITS_MAX = 48,
    SCHEMA_VALUE_BITS_MAX = 8,
    SCHEMA_MEMBERS_HINT_BITS = 16, /* of the numbers that it is of */
    SCHEMA_ERROR_MIN = 20,  /* of a column of about: one look in so many ... */
    SCHEMA_ERROR_MAX = 1000 /* ... may be wrong */
};

/* Bytes of a column of about. */
#define SCHEMA_MEMORY_MIN (UINT64_C(16) << 20)
#define SCHEMA_MEMORY_MAX (UINT64_C(1) << 46)

struct schema_name {
    uint8_t len;                    /* 0: no name */
    char text[SCHEMA_NAME_MAX + 1]; /* also terminated by a NUL */
};

/* What a column is; doc/protocol.md. A number, a mark and a list's place are
 * stored alike: as a number of the record. A list takes a slot as the others
 * do, with hint_bits 0, max_bits 1 and default 0: it is always 0. */
enum schema_kind {
    SCHEMA_NUMBER,
    SCHEMA_MARK,    /* how far its id has read a source, a number or members,
                    * whose widths it has; its default is 0 */
    SCHEMA_FOLLOWS, /* no number is stored: its lists are items */
    SCHEMA_MEMBERS, /* the number under which the members of its id are stored,
                     * as records of a counter of pairs; 0: it has none. It is
                     * not shown, and has no place in whole records */
    SCHEMA_ABOUT    /* members=about: no number is stored, members are bits of
                     * tables of the column's own. It takes a slot as a list
                     * does, and has no place in whole records either */
};

/* The column that another one marks, counts or follows. */
struct schema_source {
    uint32_t serial; /* of the column; 0: there is none */
    bool is_fixed;   /* it is of the id `id`, whichever counter has it; else of
                      * the same counter and id */
    uint8_t counter; /* the slot of its counter, and ... */
    uint8_t place;   /* ... its place in that one's column: where schema_source
                      * looks first. Right in a schema, else unknown */
    uint64_t id;     /* is_fixed; else 0 */
};

/* One value column. */
struct schema_column {
    struct schema_name name;
    struct schema_name suffix; /* len 0: the name serves as suffix */
    uint32_t serial;           /* never used twice; 0 is never given out */
    uint8_t slot;              /* 0..15, its place in the engine's records */
    uint8_t hint_bits;         /* 0..max_bits: the usual width */
    uint8_t max_bits;          /* 1..64: values are below 2^max_bits */
    uint32_t flags;            /* returned with every value */
    uint64_t default_value;
    enum schema_kind kind;
    struct schema_source source; /* of a mark; what a list follows, which is
                                  * of whichever counter, and not fixed */
    struct schema_name unread;   /* of a mark: the name of what is behind it;
                                  * else len 0 */
    bool unmarked_is_none; /* of a mark: without one, nothing is unread; else
                            * all is */
    uint64_t forget;       /* of a mark: one more than so far below its source
                            * counts as none; 0: none does */
    /* of members; else 0: */
    uint32_t counts;     /* serial of the number of the same counter that says
                          * how many there are; 0: none does */
    uint8_t member_bits; /* 16..48: members are below 2^member_bits */
    uint8_t value_bits;  /* 1..8: a member's value is below 2^value_bits; of
                          * about 1 */
    uint8_t pairs;       /* slot of the counter of their pairs; of about 0 */
    /* of about; else 0: */
    uint16_t error;  /* 20..1000: one in so many that are no members is said to
                      * be one */
    uint64_t memory; /* bytes of its tables: what lets it remember less or more
                      * (SCHEMA_MEMORY_MIN to _MAX) */
};

/* True for a column that has a value in a whole record. */
static inline bool
schema_is_in_record(const struct schema_column *column)
{
    return column->kind != SCHEMA_MEMBERS && column->kind != SCHEMA_ABOUT;
}

/* One counter: a 64-bit key and its value columns in column order. */
struct schema_counter {
    struct schema_name name;
    struct schema_name key_name; /* len 0: no primary key yet */
    uint32_t serial;
    uint8_t slot; /* 0..255, its place in the engine */
    uint8_t n_columns;
    uint8_t key_hint_bits;  /* the primary key's hint, as it was declared */
    bool key_is_text;       /* primarykey=text: ids are names. Then there is no
                              * max_jump, no cold_after, no list and no column
                              * of about, and no fixed source is of it */
    bool absent_is_miss;    /* absent=miss */
    bool overflow_is_error; /* overflow=error */
    bool exptime_is_ignored; /* exptime=ignore */
    bool cold_is_quietest;   /* cold=quietest: what is written least goes to
                              * the cold tier first; else the lowest ids */
    bool cold_is_never;      /* cold=never: none of it goes there; not with
                              * cold_is_quietest or cold_after */
    uint32_t members_of;     /* of a counter of pairs: the serial of the column
                              * of members; else 0. It comes and goes with that
                              * column and is not shown: its name is # and that
                              * serial, its own serial that + 1, that of its one
                              * column that + 2, and key_name and names of the
                              * column are empty */
    uint64_t max_jump;       /* maxjump: how far a new id may be above the
                              * largest one; 0: as far as it likes */
    uint64_t cold_after;     /* cold_after=: ids more than so far below the
                              * largest one go to the cold tier by
                              * themselves; 0: only where memory is short */
    struct schema_column column[SCHEMA_COLUMNS_MAX];
};

struct schema; /* opaque */
struct alloc;  /* base/alloc.h */

/* What a name after the dot, or after a command, stands for. */
struct schema_target {
    const struct schema_counter *counter;
    const struct schema_column *column; /* NULL: the whole record */
    bool is_unread; /* of a mark: not the mark, what is behind it */
};

/* The largest value of a column: 2^max_bits - 1. */
static inline uint64_t
schema_column_max(const struct schema_column *column)
{
    return UINT64_MAX >> (SCHEMA_BITS_MAX - column->max_bits);
}

/* An empty schema; NULL when memory is out. The caller owns it. */
struct schema *schema_create(void);

/* The same with memory from alloc (NULL: the heap), as every schema that is
 * made of it by edits. alloc must outlive them all. */
struct schema *schema_create_from(const struct alloc *alloc);

/* Frees *schema and nulls it; NULL in it is fine. */
void schema_destroy(struct schema **schema);

/* True where there is no counter. */
bool schema_is_empty(const struct schema *schema);

/* True where the ids of some counter are names. */
bool schema_has_text(const struct schema *schema);

/* Grows by one with every edit. */
uint64_t schema_version(const struct schema *schema);

/* The counter of that name, or NULL. */
const struct schema_counter *schema_counter(
    const struct schema *schema, const char *name, size_t len);

/* The counter in a slot (0..255), or NULL; counters of pairs are there too. */
const struct schema_counter *schema_counter_at(
    const struct schema *schema, unsigned slot);

/* True where text is 1 to SCHEMA_NAME_MAX letters, digits or _, no digit
 * first; reserved words are not looked at. */
bool schema_is_name(const char *text, size_t len);

/* What stands after the dot: a suffix, a value column's name, the name of what
 * a mark leaves unread, or a counter's name. False where there is no such
 * name. */
bool schema_find(const struct schema *schema, const char *name, size_t len,
    struct schema_target *out);

/* A column of this counter by name or suffix, or NULL. */
const struct schema_column *schema_counter_column(
    const struct schema_counter *counter, const char *name, size_t len);

/* The source, if it is at its place in that counter, or NULL. */
static inline const struct schema_column *
schema_source_in(
    const struct schema_counter *counter, const struct schema_source *source)
{
    return source->place < counter->n_columns &&
            counter->column[source->place].serial == source->serial
        ? &counter->column[source->place]
        : NULL;
}

/* The column of that serial, or NULL; no column has serial 0. */
const struct schema_column *schema_column_of(
    const struct schema_counter *counter, uint32_t serial);

/* The column that a mark of counter, or a list, is about: false where there is
 * none any more, which a schema never lets happen to one that it has. What is
 * of this schema is found at once. */
bool schema_source(const struct schema *schema,
    const struct schema_counter *counter, const struct schema_column *column,
    struct schema_target *out);

/* A counter of pairs has so many serials, behind that of its column of members:
 * its own, and that of its one column. */
enum { SCHEMA_PAIRS_SERIALS = 2 };

static inline uint32_t
schema_pairs_serial(const struct schema_column *members)
{
    return members->serial + SCHEMA_PAIRS_SERIALS;
}

/* The counter of pairs of a column of members. */
static inline const struct schema_counter *
schema_pairs(const struct schema *schema, const struct schema_column *column)
{
    return schema_counter_at(schema, column->pairs);
}

/* counter itself, or, of a counter of pairs, that whose column of members has
 * them. */
const struct schema_counter *schema_owner(
    const struct schema *schema, const struct schema_counter *counter);

/* The column of members whose pairs that counter of pairs has. */
const struct schema_column *schema_members(
    const struct schema *schema, const struct schema_counter *pairs);

/* The slots of the counters of pairs that schema has and other has not, as
 * their serials tell, ascending; returns how many. For two schemas of which
 * one counter differs. */
unsigned schema_pairs_beside(const struct schema *schema,
    const struct schema *other, uint8_t slot[SCHEMA_COLUMNS_MAX]);

/* The column of members, of either kind, that counts in that column of counter;
 * NULL: none does. */
const struct schema_column *schema_counted_by(
    const struct schema_counter *counter, const struct schema_column *column);

static inline bool
schema_is_counted(
    const struct schema_counter *counter, const struct schema_column *column)
{
    return schema_counted_by(counter, column) != NULL;
}

enum schema_edit_op {
    SCHEMA_ADD_COUNTER,
    SCHEMA_ADD_COLUMN,
    SCHEMA_CHANGE_COUNTER,
    SCHEMA_CHANGE_COLUMN,
    SCHEMA_DROP_COLUMN,
    SCHEMA_DROP_COUNTER
};

/* What a CHANGE_COLUMN sets; the bits of a CHANGE_COUNTER are schema_priv.h's.
 */
enum {
    SCHEMA_CHANGES_NAME = 1,
    SCHEMA_CHANGES_SUFFIX = 2,
    SCHEMA_CHANGES_MAX = 4,
    SCHEMA_CHANGES_HINT = 8,
    SCHEMA_CHANGES_FLAGS = 16,
    SCHEMA_CHANGES_MEMORY = 32,
    SCHEMA_CHANGES_DEFAULT = 64
};

/* One change of the schema, made by schema_edit_parse. */
struct schema_edit {
    enum schema_edit_op op;
    bool is_key;                   /* ADD_COLUMN: primarykey ... */
    bool key_is_text;              /* ... primarykey=text */
    bool has_largest;              /* ADD_COUNTER: largest= */
    uint64_t largest;              /* an id that counts as if it had had a
                                    * record; not kept in the schema */
    uint32_t changes;              /* CHANGE_COUNTER, CHANGE_COLUMN: a bit for
                                    * each attribute that is set; else 0 */
    struct schema_name new_name;   /* CHANGE_COLUMN, SCHEMA_CHANGES_NAME */
    struct schema_counter counter; /* ADD_COUNTER, CHANGE_COUNTER: options;
                                    * all: the name */
    struct schema_column column;   /* CHANGE_COLUMN: the name, and what changes
                                    * says, a suffix that is to be none the
                                    * column's name; ADD_COLUMN, DROP_COLUMN;
                                    * of a mark or a list without what comes of
                                    * its source: serial and widths; of members
                                    * without counts and pairs */
    struct schema_name source;     /* ADD_COLUMN: the name or suffix of what a
                                    * mark or a list is about, or of the number
                                    * that members count in; else len 0 */
};

struct schema_word {
    const char *text;
    size_t len;
};

/* Makes an edit of the words after "add counter", "add column", "change
 * counter", "change column", "drop column" or "drop counter"
 * (doc/protocol.md). Checks grammar,
 * ranges and the confirmation; the state is checked by schema_apply. 0 or
 * ERR_BAD_NAME,
 * ERR_RESERVED_NAME, ERR_BAD_OPTION, ERR_BAD_MAX, ERR_BAD_HINT,
 * ERR_BAD_DEFAULT, ERR_BAD_FLAGS, ERR_KEY_WIDTH, ERR_NAME_OPTIONS,
 * ERR_NOT_CONFIRMED, ERR_COLD_AFTER; of marks and lists ERR_BAD_SOURCE,
 * ERR_MARK_NEEDS, ERR_MARK_WIDTH, ERR_NOT_A_MARK, ERR_LIST_OPTIONS,
 * ERR_NO_FOLLOWED; of members ERR_MEMBERS_OPTIONS, ERR_MEMBERS_MAX,
 * ERR_MEMBERS_BITS, ERR_NOT_MEMBERS, ERR_BAD_COUNTS, ERR_ABOUT_MEMORY,
 * ERR_ABOUT_ERROR, ERR_ABOUT_MAX, ERR_NOT_ABOUT; of a change
 * ERR_CHANGE_OPTIONS. */
int schema_edit_parse(enum schema_edit_op op, const struct schema_word *word,
    size_t n_words, struct schema_edit *out);

/* Applies edit to old: *out is a new schema (the caller's), old is untouched.
 * 0 or ERR_NO_MEMORY, ERR_NAME_TAKEN, ERR_NO_COUNTER, ERR_NO_COLUMN,
 * ERR_NO_KEY, ERR_TWO_KEYS, ERR_DROP_KEY, ERR_TOO_MANY_COUNTERS,
 * ERR_TOO_MANY_COLUMNS; of a counter whose ids are names ERR_NAMES_ORDER,
 * ERR_NAMES_KIND, ERR_NAMES_SOURCE; of a mark or a list ERR_BAD_SOURCE,
 * ERR_NO_FOLLOWED, ERR_SOURCE_KIND, ERR_ABOUT_SOURCE, ERR_FOLLOW_COLD; of a
 * change ERR_CHANGE_KEY, ERR_CHANGE_WIDTH, ERR_CHANGE_FIXED, ERR_BAD_DEFAULT,
 * ERR_CHANGE_DOWN, ERR_BAD_HINT,
 * ERR_NOT_ABOUT, ERR_CHANGE_COLD, ERR_CHANGE_MEMBERS, ERR_COLD_AFTER,
 * ERR_IN_USE; of members ERR_BAD_COUNTS,
 * ERR_TOO_MANY_COUNTERS where none is left for their pairs;
 * ERR_IN_USE where a mark or a list is about what would be dropped, or members
 * count in it, unless these would be dropped in the same edit. */
int schema_apply(const struct schema *old, const struct schema_edit *edit,
    struct schema **out);

/* True where edit would add what is there already, with the same attributes
 * (largest= is none, and memory= is that which it has by now), or change a
 * column or a counter to what it is: reading a schema file again is then no
 * error. */
bool schema_has_same(
    const struct schema *schema, const struct schema_edit *edit);

/* The change of attributes that would make what is there what add would add.
 * False where there is none: nothing is there, it is the same, or differs in
 * what is never changed. schema_apply may still refuse *change: it does where
 * that is the hint of a primary key. */
bool schema_change_for(const struct schema *schema,
    const struct schema_edit *add, struct schema_edit *change);

/* The change of names, widths, flags and memory that makes a column of counter
 * what want is. False where there is none. */
bool schema_change_of(const struct schema_counter *counter,
    const struct schema_column *column, const struct schema_column *want,
    struct schema_edit *change);

#endif
