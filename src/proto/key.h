/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PROTO_KEY_H
#define PROTO_KEY_H

#include "base/err.h"
#include "schema/schema.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which keys name counter cells: `ID.NAME`, `{ID}.NAME` and `ID|#|.NAME`,
 * with ID a canonical decimal number up to 2^64-1 and NAME a suffix, a value
 * column, what a mark leaves unread, or a counter; and of a list or of members
 * also `ID.NAME:MEMBER`, with MEMBER such a number. Where NAME is of a counter
 * whose ids are names (primarykey=text), ID is all that stands before the last
 * dot, without braces around it or the hash stop behind it. Every other key is
 * an item's. */

enum key_kind {
    KEY_ITEM,
    KEY_CELL,    /* a number */
    KEY_COUNTED, /* likewise; it counts members, and changes by these alone */
    KEY_RECORD,  /* all columns of an id, but for those of members */
    KEY_MARK,    /* how far an id has read; a number that changes otherwise */
    KEY_UNREAD,  /* what is behind a mark; target.column is the mark */
    KEY_LIST,    /* what an id follows */
    KEY_MEMBER,  /* the value of one member of an id; or, without has_member,
                  * all of them, which can only be deleted */
    KEY_ABOUT    /* the same of members=about, which are not deleted */
};

struct key {
    enum key_kind kind;
    uint64_t id;                 /* of all but KEY_ITEM */
    struct schema_target target; /* likewise; column NULL for KEY_RECORD */
    bool has_member;             /* of these last three: it is about one ... */
    uint64_t member; /* ... of those that id follows, or of its members, where
                      * it may be above what the column takes */
    /* of a counter whose ids are names; of others void: */
    const char *name; /* in the text, where it is no id by itself, and id says
                       * nothing; else NULL */
    uint8_t name_len;
    bool is_bad_name; /* what should be a name is none: see
                       * key_name_fault */
};

/* True where key is by a name that has no id by itself. */
static inline bool
key_has_name(const struct key *key)
{
    return key->kind != KEY_ITEM && key->target.counter->key_is_text &&
        key->name != NULL;
}

/* ERR_BAD_ID_NAME where the key's id should be a name, and is none; else 0. */
static inline int
key_name_fault(const struct key *key)
{
    return key->kind != KEY_ITEM && key->target.counter->key_is_text &&
            key->is_bad_name
        ? ERR_BAD_ID_NAME
        : 0;
}

/* What to say where an id of the counter is missing. */
static inline int
key_none_fault(const struct schema_counter *counter)
{
    return counter != NULL && counter->key_is_text ? ERR_BAD_ID_NAME
                                                   : ERR_BAD_ID;
}

/* What a key is whose name stands for target. */
static inline enum key_kind
key_kind_of(const struct schema_target *target)
{
    if (target->column == NULL) {
        return KEY_RECORD;
    }
    switch (target->column->kind) {
    case SCHEMA_NUMBER:
        break;
    case SCHEMA_MARK:
        return target->is_unread ? KEY_UNREAD : KEY_MARK;
    case SCHEMA_FOLLOWS:
        return KEY_LIST;
    case SCHEMA_MEMBERS:
        return KEY_MEMBER;
    case SCHEMA_ABOUT:
        return KEY_ABOUT;
    }
    return schema_is_counted(target->counter, target->column) ? KEY_COUNTED
                                                              : KEY_CELL;
}

/* True for a number that is read as it is stored. */
static inline bool
key_is_number(enum key_kind kind)
{
    return kind == KEY_CELL || kind == KEY_COUNTED;
}

/* True for a key that may have a member behind its name. */
static inline bool
key_takes_member(enum key_kind kind)
{
    return kind == KEY_LIST || kind == KEY_MEMBER || kind == KEY_ABOUT;
}

/* What is wrong with a key that is to be read, or of members of which one is to
 * be changed: that of key_name_fault; of members ERR_NO_MEMBER, or ERR_MEMBER
 * where the column takes no such one; else 0. */
static inline int
key_fault(const struct key *key)
{
    if (key->kind != KEY_MEMBER && key->kind != KEY_ABOUT) {
        return key_name_fault(key);
    }
    if (key_name_fault(key) != 0) {
        return ERR_BAD_ID_NAME;
    }
    if (!key->has_member) {
        return ERR_NO_MEMBER;
    }
    return key->member >> key->target.column->member_bits == 0 ? 0
                                                               : ERR_MEMBER;
}

/* Tells what text[0..len) names under this schema; *out points into it. */
void key__parse(const struct schema *schema, const char *text, size_t len,
    struct key *out);

/* Looks whether a key that is an item's looks as if a cell had been meant:
 * ERR_NEAR_NAME where it begins with an id and a dot, in any of the three
 * forms, so that what follows is no name of this schema; ERR_NEAR_ID where it
 * ends in a dot and a name (with a member behind it, where it has some), so
 * that what is before is no id; else 0. Without a counter no key looks so. */
int key_near(const struct schema *schema, const char *text, size_t len);

/* A word of the dialect on one counter: `ID` (the record), or `ID.NAME` with a
 * column of that counter, perhaps with a member, also in the two proxy forms.
 * False where it is neither. A mark is a cell here. Where ids are names, a word
 * that does not end in a dot and such a NAME is all name. */
bool key_parse_dialect(const struct schema_counter *counter, const char *text,
    size_t len, struct key *out);

/* Writes a name as a word of the dialect on a counter whose ids are names, of
 * which key_parse_dialect makes its record: its length; up to len +
 * KEY_WORD_MORE bytes. With column, the same of one of its cells, behind which
 * a member may be put. */
enum { KEY_WORD_MORE = 3 + SCHEMA_NAME_MAX };
size_t key_put_word(const struct schema_counter *counter,
    const struct schema_column *column, const char *name, size_t len,
    char *out);

/* What to say of a word that key_parse_dialect refuses: ERR_BAD_ID or
 * ERR_NO_COLUMN. */
int key_dialect_fault(const char *text, size_t len);

#endif
