/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLI_IMPORT_MAP_H
#define CLI_IMPORT_MAP_H

#include "base/buf.h"
#include "cli/rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which keys of another store are which columns. A rule is
 *
 *   PATTERN=COUNTER.COLUMN          post:{id}:likes=weibo.likes
 *   PATTERN[FIELD]=COUNTER.COLUMN   post:{id}[likes]=weibo.likes
 *
 * where {id} stands for a number, or a name where the counter's ids are names,
 * once, and FIELD is one of a hash. Where the column has members the key is
 * that of a set of numbers. Pure, but for the memory of buffers. One thread. */

enum {
    IMPORT_RULES_MAX = 64,
    IMPORT_COUNTERS_MAX = 16,
    IMPORT_PATTERN_MAX = 250,
    IMPORT_FIELD_MAX = 64
};

struct import_rule {
    uint8_t before_len, behind_len, field_len; /* of what is around {id} */
    char before[IMPORT_PATTERN_MAX + 1], behind[IMPORT_PATTERN_MAX + 1];
    char field[IMPORT_FIELD_MAX + 1]; /* "": none */
    struct schema_name counter, column;
    /* Known once the server was asked (import_map_know): */
    const struct rows_columns *columns;
    int number, members; /* the place of the column; -1: it is the other */
};

struct import_map {
    unsigned n;
    struct import_rule rule[IMPORT_RULES_MAX];
};

/* Adds a rule. NULL, or what is wrong; static storage. */
const char *import_map_add(struct import_map *map, const char *text);

/* The columns of the counter that a rule names. NULL, or what is wrong. */
const char *import_map_know(
    struct import_rule *rule, const struct rows_columns *columns);

/* The first rule from number `from` on that the key fits, and its id, which has
 * the key's bytes; NULL: there is none. The counters are known. */
const struct import_rule *import_map_find(const struct import_map *map,
    unsigned from, const char *key, size_t len, struct rows_id *id);

/* True where no rule fits the key, but one would if what stands in place of
 * {id} was an id: a name, a number with a sign, one that is too large; or, of
 * names, what has white space or is too long. A key
 * that has the byte beside {id} once more there, as `post:5:title` beside
 * `post:{id}`, is one of another kind; where nothing stands beside {id}, so is
 * one that does not begin with a digit. The latter two not of names, which may
 * have all that. */
bool import_map_is_near(
    const struct import_map *map, const char *key, size_t len);

/* Appends the line that stores the text of a number, or a member. False, and
 * nothing is appended, where the text is none. */
bool import_map_put(const struct import_rule *rule, const struct rows_id *id,
    const char *text, size_t len, struct buf *out);

#endif
