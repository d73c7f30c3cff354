/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling cells from items by the look of the key.
 *
 * A key is cut at its only possible border: digits, then one of the three
 * separators, then a name. Nothing is copied. A key that fails any step is an
 * item's, so a schema change turns keys from one into the other and the
 * dialect refuses names where that could surprise (doc/protocol.md). */
#include "proto/key.h"

#include "base/err.h"
#include "base/num.h"

#include <string.h>

static const char proxy_stop[] = "|#|."; /* mcrouter's hash stop, and a dot */

/* The id that text begins with, and where what belongs to it ends. False where
 * it begins with none. */
static bool
cut_id(const char *text, size_t len, uint64_t *id, size_t *end)
{
    bool braced = len > 0 && text[0] == '{';
    size_t start = braced ? 1 : 0;
    size_t at = start;
    while (at < len && text[at] >= '0' && text[at] <= '9') {
        at++;
    }
    if (!num_parse_id(text + start, at - start, id)) {
        return false;
    }
    size_t stop_len = sizeof proxy_stop - 1;
    if (braced) {
        if (at == len || text[at] != '}') {
            return false;
        }
        at++;
    } else if (len - at >= stop_len &&
        memcmp(text + at, proxy_stop, stop_len) == 0) {
        at += stop_len - 1;
    }
    *end = at;
    return true;
}

/* Cuts text into an id and the name behind it; name_len 0 where there is no
 * separator at all (a bare id). False where the text has not that form. */
static bool
cut(const char *text, size_t len, uint64_t *id, const char **name,
    size_t *name_len)
{
    size_t at;
    if (!cut_id(text, len, id, &at)) {
        return false;
    }
    if (at == len) {
        *name_len = 0;
        return text[0] != '{';
    }
    if (text[at] != '.' || at + 1 == len) {
        return false;
    }
    *name = text + at + 1;
    *name_len = len - at - 1;
    return true;
}

/* What a name stands for, with a member behind it where it is a list's. */
static bool
find(
    const struct schema *schema, const char *name, size_t len, struct key *out)
{
    const char *colon;

    out->has_member = false;
    if (schema_find(schema, name, len, &out->target)) {
        return true;
    }
    colon = memchr(name, ':', len);
    if (colon == NULL) {
        return false;
    }
    size_t name_len = (size_t)(colon - name);
    out->has_member = true;
    return schema_find(schema, name, name_len, &out->target) &&
        key_kind_of(&out->target) == KEY_LIST &&
        num_parse_id(colon + 1, len - name_len - 1, &out->member);
}

void
key__parse(
    const struct schema *schema, const char *text, size_t len, struct key *out)
{
    const char *name;
    size_t name_len;
    out->kind = KEY_ITEM;
    if (len == 0 || (text[0] != '{' && (text[0] < '0' || text[0] > '9'))) {
        return;
    }
    if (!cut(text, len, &out->id, &name, &name_len) || name_len == 0 ||
        !find(schema, name, name_len, out)) {
        return;
    }
    out->kind = key_kind_of(&out->target);
}

int
key_near(const struct schema *schema, const char *text, size_t len)
{
    const char *dot = memrchr(text, '.', len);
    struct key key;
    uint64_t id;
    size_t at;
    if (dot == NULL || schema_is_empty(schema)) {
        return 0;
    }
    if (cut_id(text, len, &id, &at) && at < len && text[at] == '.') {
        return ERR_NEAR_NAME;
    }
    dot++;
    return find(schema, dot, (size_t)(text + len - dot), &key) ? ERR_NEAR_ID
                                                               : 0;
}

bool
key_parse_dialect(const struct schema_counter *counter, const char *text,
    size_t len, struct key *out)
{
    const char *name;
    size_t name_len;
    if (!cut(text, len, &out->id, &name, &name_len)) {
        return false;
    }
    out->target = (struct schema_target){.counter = counter};
    out->kind = KEY_RECORD;
    if (name_len == 0 ||
        (name_len == counter->name.len &&
            memcmp(name, counter->name.text, name_len) == 0)) {
        return true;
    }
    out->kind = KEY_CELL;
    out->has_member = false;
    out->target.column = schema_counter_column(counter, name, name_len);
    if (out->target.column == NULL) {
        return false;
    }
    if (out->target.column->kind == SCHEMA_FOLLOWS) {
        out->kind = KEY_LIST;
    }
    return true;
}

int
key_dialect_fault(const char *text, size_t len)
{
    return memchr(text, '.', len) == NULL ? ERR_BAD_ID : ERR_NO_COLUMN;
}
