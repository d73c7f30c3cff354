/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/import_map.h"

#include "base/num.h"

#include <string.h>

static const char hole[] = "{id}";
enum { HOLE_LEN = sizeof hole - 1 };

static bool
take_name(const char *text, size_t len, struct schema_name *out)
{
    if (!schema_is_name(text, len)) {
        return false;
    }
    out->len = (uint8_t)len;
    memcpy(out->text, text, len);
    out->text[len] = '\0';
    return true;
}

/* COUNTER.COLUMN */
static bool
take_target(const char *text, struct import_rule *rule)
{
    const char *dot = strchr(text, '.');
    return dot != NULL &&
        take_name(text, (size_t)(dot - text), &rule->counter) &&
        take_name(dot + 1, strlen(dot + 1), &rule->column);
}

/* [FIELD] at the end of what stands behind {id}. */
static bool
take_field(struct import_rule *rule)
{
    const char *open = strrchr(rule->behind, '[');
    size_t len = rule->behind_len;
    if (open == NULL || rule->behind[len - 1] != ']') {
        return true;
    }
    size_t at = (size_t)(open - rule->behind);
    size_t field_len = len - at - 2;
    if (field_len == 0 || field_len > IMPORT_FIELD_MAX) {
        return false;
    }
    memcpy(rule->field, open + 1, field_len);
    rule->field[field_len] = '\0';
    rule->field_len = (uint8_t)field_len;
    rule->behind_len = (uint8_t)at;
    rule->behind[at] = '\0';
    return true;
}

const char *
import_map_add(struct import_map *map, const char *text)
{
    const char *at = strstr(text, hole), *equals = strrchr(text, '=');
    if (map->n == IMPORT_RULES_MAX) {
        return "is there too often: 64 times at most";
    }
    if (at == NULL || equals == NULL || equals < at + HOLE_LEN ||
        strstr(at + HOLE_LEN, hole) != NULL) {
        return "is PATTERN=COUNTER.COLUMN, and the pattern has {id} once";
    }
    size_t before = (size_t)(at - text);
    size_t behind = (size_t)(equals - at) - HOLE_LEN;
    if (before + behind > IMPORT_PATTERN_MAX) {
        return "has a pattern that is longer than a key can be";
    }
    struct import_rule *rule = &map->rule[map->n];
    *rule = (struct import_rule){.before_len = (uint8_t)before,
        .behind_len = (uint8_t)behind,
        .number = -1,
        .members = -1};
    memcpy(rule->before, text, before);
    memcpy(rule->behind, at + HOLE_LEN, behind);
    if (!take_field(rule)) {
        return "has a field of a hash of 1 to 64 bytes: PATTERN[FIELD]";
    }
    if (!take_target(equals + 1, rule)) {
        return "ends with =COUNTER.COLUMN";
    }
    map->n++;
    return NULL;
}

const char *
import_map_know(struct import_rule *rule, const struct rows_columns *columns)
{
    rule->columns = columns;
    rule->number =
        rows_column_of(columns, rule->column.text, rule->column.len);
    rule->members =
        rows_members_of(columns, rule->column.text, rule->column.len);
    if (rule->number < 0 && rule->members < 0) {
        return "the counter has no such column";
    }
    if (rule->number >= 0 && columns->is_counted[rule->number]) {
        return "members make that number: it cannot be stored";
    }
    return rule->members >= 0 && rule->field_len > 0
        ? "members come from a set, not from a field of a hash"
        : NULL;
}

/* True where the key has what stands around {id}. */
static bool
is_around(const struct import_rule *rule, const char *key, size_t len)
{
    return len >= (size_t)rule->before_len + rule->behind_len &&
        memcmp(key, rule->before, rule->before_len) == 0 &&
        memcmp(key + len - rule->behind_len, rule->behind, rule->behind_len) ==
        0;
}

/* Numbers as they are in keys: without zeroes in front. */
static bool
is_id(const struct import_rule *rule, const char *text, size_t len,
    struct rows_id *id)
{
    if (rule->columns->has_names) {
        return rows_id_of(rule->columns, text, len, id);
    }
    *id = (struct rows_id){0};
    return num_parse_id(text, len, &id->number);
}

const struct import_rule *
import_map_find(const struct import_map *map, unsigned from, const char *key,
    size_t len, struct rows_id *id)
{
    for (unsigned i = from; i < map->n; i++) {
        const struct import_rule *rule = &map->rule[i];
        if (is_around(rule, key, len) &&
            is_id(rule, key + rule->before_len,
                len - rule->before_len - rule->behind_len, id)) {
            return rule;
        }
    }
    return NULL;
}

/* True where the text, which is no id, was meant for one. */
static bool
is_bad_id(const struct import_rule *rule, const char *text, size_t len)
{
    bool has_before = rule->before_len > 0, has_behind = rule->behind_len > 0;
    if (rule->columns->has_names) {
        return len > 0 && (has_before || has_behind);
    }
    if (has_before &&
        memchr(text, rule->before[rule->before_len - 1], len) != NULL) {
        return false;
    }
    if (has_behind && memchr(text, rule->behind[0], len) != NULL) {
        return false;
    }
    return has_before || has_behind ||
        (len > 0 && *text >= '0' && *text <= '9');
}

bool
import_map_is_near(const struct import_map *map, const char *key, size_t len)
{
    struct rows_id id;
    if (import_map_find(map, 0, key, len, &id) != NULL) {
        return false;
    }
    for (unsigned i = 0; i < map->n; i++) {
        const struct import_rule *rule = &map->rule[i];
        if (is_around(rule, key, len) &&
            is_bad_id(rule, key + rule->before_len,
                len - rule->before_len - rule->behind_len)) {
            return true;
        }
    }
    return false;
}

bool
import_map_put(const struct import_rule *rule, const struct rows_id *id,
    const char *text, size_t len, struct buf *out)
{
    uint64_t number = 0;
    if (!num_parse_u64(text, len, &number)) {
        return false;
    }
    struct row row = {.id = *id};
    if (rule->members >= 0) {
        row.is_member = true;
        row.members = (uint8_t)rule->members;
        row.member = number;
        row.value = 1;
    } else {
        row.n = 1;
        row.cell[0].column = (uint8_t)rule->number;
        row.cell[0].value = number;
    }
    rows_put_set(rule->columns, &row, out);
    return true;
}
